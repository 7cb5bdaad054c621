/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The reliable message protocol [A5 A12 B4] behind the common interface: start and end of an
 * engine, and which of its parts handles what comes in and what goes out. Retransmission and order
 * of work: see reliable.h.
 */
#include "ack.h"
#include "carry.h"
#include "contact.h"
#include "cookie.h"
#include "event.h"
#include "farewell.h"
#include "hello.h"
#include "keys.h"
#include "loss.h"
#include "peer.h"
#include "pull.h"
#include "recv.h"
#include "reliable.h"
#include "row.h"
#include "send.h"
#include "stripe.h"
#include "submit.h"
#include "starve.h"
#include "sweep.h"
#include "timer.h"

#define BW_FIRST_ARENA 131072 /* bytes; enough for the first pages of the tables and a few peers */

static size_t bw_reliable_size(const struct bw_config *cfg)
{
	return sizeof(struct bw_engine) + BW_FIRST_ARENA;
}

static int bw_reliable_open(void *mem, const struct bw_config *cfg, const struct bw_host_ops *ops,
			    void *host, uint64_t now)
{
	struct bw_engine *e = mem;

	if (!cfg->node || !cfg->incarnation || !cfg->dead_ns)
		return -EINVAL;
	if (cfg->features & BW_FEATURE_ENCRYPT && (!cfg->keyed || !ops->unseal))
		return -EINVAL;
	memset(e, 0, sizeof(*e));
	e->cfg = *cfg;
	if (!e->cfg.ack_delay_ns)
		e->cfg.ack_delay_ns = BW_ACK_DELAY;
	if (!e->cfg.piece)
		e->cfg.piece = UINT32_MAX;
	e->ack_packets = e->cfg.ack_soon_ns ? BW_ACK_PACKETS_MAX : BW_ACK_PACKETS;
	e->ops = ops;
	e->host = host;
	e->now = now;
	bw_arena_add(&e->arena, e + 1, BW_FIRST_ARENA);
	bw_slab_init(&e->peers_slab, &e->arena, sizeof(struct bw_peer));
	bw_slab_init(&e->paths, &e->arena, sizeof(struct bw_path));
	bw_slab_init(&e->flows, &e->arena, sizeof(struct bw_flow));
	bw_slab_init(&e->txmsgs, &e->arena, sizeof(struct bw_txmsg));
	bw_slab_init(&e->rxmsgs, &e->arena, sizeof(struct bw_rxmsg));
	bw_slab_init(&e->pulls, &e->arena, sizeof(struct bw_pull));
	bw_slab_init(&e->regions, &e->arena, sizeof(struct bw_region));
	bw_slab_init(&e->serves, &e->arena, sizeof(struct bw_serve));
	bw_slab_init(&e->records, &e->arena, sizeof(struct bw_record));
	bw_slab_init(&e->keys, &e->arena, sizeof(struct bw_keys));
	bw_slab_init(&e->indexes, &e->arena, sizeof(struct bw_flow_index));
	bw_slab_init(&e->flow_tables, &e->arena, sizeof(struct bw_flow_table));
	bw_table_init(&e->peer_table, &e->arena, bw_nonce(e));
	bw_table_init(&e->pull_table, &e->arena, 0); /* that are named in conversations alone */
	bw_table_init(&e->region_table, &e->arena, 0);
	bw_list_init(&e->peers);
	bw_list_init(&e->ready);
	bw_list_init(&e->callers);
	bw_list_init(&e->guests);
	bw_list_init(&e->left);
	bw_contact_open(e);
	bw_key_open(e);
	return 0;
}

void bw_reliable_close_begin(void *mem, uint64_t now)
{
	struct bw_engine *e = mem;

	e->now = now;
	e->row.peer = NULL;
	e->closed = true;
	e->sweep.left = 0;
	e->sweep.next = e->peers.next;
	e->dropping = NULL;
}

/* Buffers of messages of a peer that have not arrived completely, so many of them, and flows. True:
 * there are none left. */
static bool bw_reliable_drop_flows(struct bw_engine *e, struct bw_peer *p, uint32_t *left)
{
	struct bw_flow *flow = e->dropping ? e->dropping : &p->app;

	for (; flow && *left; --*left)
		if (!bw_flow_drop_one(e, flow))
			flow = flow->next;
	e->dropping = flow;
	return !flow;
}

/* The same of messages that nobody took. */
static void bw_reliable_drop_events(struct bw_engine *e, uint32_t *left)
{
	while (e->ev_first && *left) {
		struct bw_evnode *n = e->ev_first;
		struct bw_rxmsg *m = bw_entry(n, struct bw_rxmsg, ev);

		if (n->type == BW_EV_PEER_DOWN &&
		    !bw_reliable_drop_flows(e, bw_entry(n, struct bw_peer, ev_down), left))
			return;
		e->ev_first = n->next;
		if (n->type == BW_EV_MESSAGE && m->buf)
			bw_ops(e)->buf_put(e->host, m->buf);
		*left -= *left != 0;
	}
	if (!e->ev_first)
		e->ev_last = NULL;
}

bool bw_reliable_close_piece(void *mem)
{
	struct bw_engine *e = mem;
	uint32_t left = e->cfg.piece;

	while (left && e->sweep.next != &e->peers) {
		if (!bw_reliable_drop_flows(e, bw_entry(e->sweep.next, struct bw_peer, all), &left))
			break;
		e->sweep.next = e->sweep.next->next;
		left -= left != 0;
	}
	bw_reliable_drop_events(e, &left);
	return e->sweep.next != &e->peers || e->ev_first;
}

static void bw_reliable_close(void *mem, uint64_t now)
{
	bw_reliable_close_begin(mem, now);
	while (bw_reliable_close_piece(mem))
		;
}

static void bw_reliable_grow(void *mem, void *more)
{
	struct bw_engine *e = mem;

	e->crowded = !more;
	if (more)
		bw_arena_add(&e->arena, more, BW_GROW_BYTES);
}

static void bw_reliable_slabs(struct bw_engine *e, struct bw_slab *slab[BW_SLABS])
{
	struct bw_slab *all[] = {&e->peers_slab, &e->paths, &e->flows,	 &e->txmsgs,
				 &e->rxmsgs,	 &e->pulls, &e->regions, &e->serves,
				 &e->records,	 &e->keys,  &e->indexes, &e->flow_tables};

	_Static_assert(sizeof(all) == BW_SLABS * sizeof(*slab), "all of them");
	memcpy(slab, all, sizeof(all));
}

/* Sort one more free object, or what was left at the end of a piece. False: all are sorted. */
static bool bw_reliable_sort(struct bw_engine *e, struct bw_grown *const *pieces, uint32_t n,
			     struct bw_grown **piece)
{
	struct bw_slab *slab[BW_SLABS];

	bw_reliable_slabs(e, slab);
	while (!e->sorted || !bw_slab_sort(slab[e->sorted - 1], pieces, n, piece)) {
		if (e->sorted == BW_SLABS)
			return bw_arena_sort(&e->arena, pieces, n, piece);
		bw_slab_unsort(slab[e->sorted++]);
	}
	return true;
}

struct bw_grown *bw_reliable_shrink(void *mem, struct bw_grown *const *pieces, uint32_t n,
				    uint32_t *left)
{
	struct bw_engine *e = mem;
	struct bw_grown *piece;

	while (*left) {
		if (!bw_reliable_sort(e, pieces, n, &piece)) {
			e->sorted = 0;
			return NULL;
		}
		--*left;
		e->looks++;
		if (!piece || !bw_grown_empty(piece))
			continue;
		bw_grown_leave(piece);
		e->crowded = false; /* the host has room again */
		return piece;
	}
	return NULL;
}

uint64_t bw_reliable_used(void *mem)
{
	struct bw_slab *slab[BW_SLABS];
	uint64_t bytes = 0;
	uint32_t i;

	bw_reliable_slabs(mem, slab);
	for (i = 0; i < BW_SLABS; i++)
		bytes += (uint64_t)slab[i]->in_use * slab[i]->size;
	return bytes;
}

static int bw_reliable_watch(struct bw_engine *e, struct bw_op *op)
{
	struct bw_peer *p = bw_peer_get(e, op->peer);

	if (!p)
		return -ENOTCONN;
	p->watch = op->on;
	bw_peer_schedule(e, p);
	return 0;
}

static int bw_reliable_disconnect(struct bw_engine *e, struct bw_op *op)
{
	struct bw_peer *p = bw_peer_get(e, op->peer);

	if (!p)
		return -ENOTCONN;
	if (op->on)
		bw_farewell_settle(e, p);
	bw_farewell_bid_bye(e, p, op->on);
	bw_peer_down(e, p, BW_DOWN_CANCELED);
	return 0;
}

static void bw_reliable_pressure(struct bw_engine *e, bool on)
{
	if (e->pressure == on)
		return;
	e->pressure = on;
	bw_sweep_begin(e);
}

static int bw_reliable_submit(void *mem, struct bw_op *op, uint64_t now)
{
	struct bw_engine *e = mem;

	e->now = now;
	e->row.peer = NULL;
	switch (op->type) {
	case BW_OP_CONNECT:
		return bw_contact_connect(e, op);
	case BW_OP_DISCONNECT:
		return bw_reliable_disconnect(e, op);
	case BW_OP_SEND:
		return bw_send_submit(e, op);
	case BW_OP_PULL:
		return bw_pull_submit(e, op);
	case BW_OP_EXPOSE:
		return bw_pull_expose(e, op);
	case BW_OP_RETRACT:
		return bw_pull_retract(e, op);
	case BW_OP_FORBID:
		return bw_pull_forbid(e, op);
	case BW_OP_CANCEL_PULL:
		return bw_pull_abort(e, op);
	case BW_OP_PRESSURE:
		bw_reliable_pressure(e, op->on);
		return 0;
	case BW_OP_WATCH:
		return bw_reliable_watch(e, op);
	}
	return -EINVAL;
}

static int bw_reliable_dispatch(struct bw_engine *e, const struct bw_rx_frame *f)
{
	const struct bw_hdr *h = f->head;
	bool lasting; /* types whose layout is the same in all versions */

	if (f->len < sizeof(*h) || f->head_len < sizeof(*h))
		return -BW_DROP_SHORT;
	if (h->magic != BW_MAGIC)
		return -BW_DROP_FOREIGN;
	lasting = h->type == BW_FRAME_HELLO || h->type == BW_FRAME_REFUSE;
	if ((h->version < BW_VERSION_MIN || h->version > BW_VERSION_MAX) && !lasting)
		return -BW_DROP_VERSION;
	if (h->cluster != e->cfg.cluster)
		return -BW_DROP_CLUSTER;
	if (h->dst_engine != e->cfg.engine)
		return -BW_DROP_ENGINE;
	if (sizeof(*h) + h->len > f->len)
		return -BW_DROP_SHORT;
	switch (h->type) {
	case BW_FRAME_DATA:
		return bw_recv_data(e, f, h);
	case BW_FRAME_ACK:
		return bw_recv_ack(e, f, h);
	case BW_FRAME_HELLO:
		return bw_hello_received(e, f, h);
	case BW_FRAME_REFUSE:
		return bw_farewell_refused(e, f, h);
	case BW_FRAME_BYE:
		return bw_farewell_bye(e, f, h);
	case BW_FRAME_CHALLENGE:
		return bw_cookie_challenged(e, f, h);
	}
	return -BW_DROP_TYPE;
}

static int bw_reliable_rx(void *mem, const struct bw_rx_frame *f, uint64_t now)
{
	struct bw_engine *e = mem;
	int r;

	e->now = now;
	e->row.peer = NULL;
	e->count.rx_frames++;
	r = bw_reliable_dispatch(e, f);
	if (r)
		e->count.drop[-r]++;
	return r;
}

static int bw_reliable_rx_row(void *mem, const struct bw_rx_frame *f, uint32_t n, uint32_t *taken,
			      uint64_t now)
{
	struct bw_engine *e = mem;
	int r = bw_reliable_rx(mem, f, now);

	*taken = 1;
	if (!r && n > 1 && !e->ev_first)
		*taken += bw_row_received(e, f, n);
	return r;
}

/* The next frame of one peer: first contact, urgent acknowledgements with gaps to tell, data, and
 * acknowledgements that no data frame took along. */
static bool bw_reliable_peer_frame(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f)
{
	struct bw_path *t = p->path[p->best];

	if (bw_hello_frame(e, p, f))
		return true;
	if (p->striped || bw_carry_contested(p)
		    ? bw_ack_urgent(e, p, f)
		    : t->rx.ack_now && t->rx.got.n && bw_ack_frame(e, p, f))
		return true;
	return bw_send_frame(e, p, f) || bw_ack_frame(e, p, f);
}

/* Nothing more is to be sent to a peer until something happens. */
static void bw_reliable_rest(struct bw_engine *e, struct bw_peer *p)
{
	bw_list_del(&p->ready);
	p->is_ready = false;
	bw_peer_schedule(e, p);
}

/* False with peers left that are due or ready: it is to be asked again, and the next deadline says
 * so. */
static bool bw_reliable_open_frame(struct bw_engine *e, struct bw_tx_frame *f)
{
	const struct bw_hdr *h = (const struct bw_hdr *)f->head;
	struct bw_peer *p, *turn = NULL;
	uint32_t left;

	for (left = e->cfg.piece; left && (p = bw_timer_due(e, e->now)); left--) {
		e->looks++;
		bw_peer_timers(e, p);
	}
	if (bw_stray_frame(e, f))
		return true;
	if (BW_UNLIKELY(e->sweep.left))
		bw_sweep_piece(e);
	if (bw_starve_ends(e))
		turn = bw_starve_turn(e);
	for (left = e->cfg.piece; left && !bw_list_empty(&e->ready); left--) {
		e->looks++;
		p = bw_first(&e->ready, struct bw_peer, ready);
		e->last.peer = p->handle;
		if (!bw_send_single(e, p, f)) {
			if (!bw_reliable_peer_frame(e, p, f)) {
				bw_reliable_rest(e, p);
				continue;
			}
			if (bw_peer_idle(p))
				bw_reliable_rest(e, p);
		}
		if (p->is_ready && !--p->quantum) {
			p->quantum = BW_QUANTUM;
			bw_list_del(&p->ready);
			bw_list_add_before(&e->ready, &p->ready);
		}
		if (BW_UNLIKELY(p == turn) && h->type != BW_FRAME_DATA)
			bw_starve_enter(e, p); /* it still wants its record */
		return true;
	}
	return false;
}

static bool bw_reliable_next_frame(void *mem, struct bw_tx_frame *f, uint64_t now)
{
	struct bw_engine *e = mem;
	const struct bw_hdr *h = (const struct bw_hdr *)f->head;

	e->now = now;
	e->last.peer = 0;
	e->last.stray = false;
	e->row.peer = NULL;
	f->seal.key = NULL;
	if (e->closed ? !bw_farewell_frame(e, f) : !bw_reliable_open_frame(e, f))
		return false;
	e->last.type = h->type;
	e->last.path = h->path;
	e->count.tx_frames++;
	return true;
}

static bool bw_reliable_next_alike(void *mem, struct bw_tx_frame *f)
{
	struct bw_engine *e = mem;

	return e->row.peer && bw_row_next(e, f);
}

static void bw_reliable_unsent(void *mem, uint64_t now)
{
	struct bw_engine *e = mem;
	struct bw_peer *p = bw_peer_get(e, e->last.peer);
	struct bw_path *t;

	e->now = now;
	e->row.peer = NULL;
	e->count.tx_frames--;
	if (e->last.stray) { /* it still lies there: nothing has been added since */
		e->stray_tail--;
		e->last.stray = false;
	}
	if (!p)
		return;
	t = p->path[e->last.path];
	if (e->last.type == BW_FRAME_DATA) {
		bw_loss_requeue_packet(e, p, t, e->last.pn);
	} else if (e->last.type == BW_FRAME_ACK) {
		t->rx.ack_now = true;
	} else if (e->last.move) {
		t->hello.move.due = true;
	} else if (t->state != BW_PATH_NONE) {
		t->hello.due = true;
		t->hello.answer = e->last.answer;
		if (!e->last.answer)
			bw_cookies_unshown(&t->hello.cookies);
	}
	bw_peer_ready(e, p);
	e->last.peer = 0;
}

/* Asked after each frame, when there is mostly nothing to tell. */
static bool bw_reliable_next_event(void *mem, struct bw_event *out)
{
	struct bw_engine *e = mem;

	return BW_UNLIKELY(e->ev_first) && bw_event_next(e, out);
}

/* Is there something to tell, to send or to look at now? */
static inline bool bw_reliable_at_once(const struct bw_engine *e)
{
	return e->ev_first || !bw_list_empty(&e->ready) || e->stray_head != e->stray_tail ||
	       e->sweep.left || bw_starve_ends(e);
}

static uint64_t bw_reliable_next_deadline(void *mem)
{
	struct bw_engine *e = mem;

	if (BW_UNLIKELY(e->closed))
		return bw_farewell_deadline(e);
	if (bw_reliable_at_once(e))
		return e->now;
	return bw_timer_next(e);
}

uint64_t bw_reliable_soonest(const void *mem)
{
	const struct bw_engine *e = mem;

	if (BW_UNLIKELY(e->closed))
		return bw_farewell_deadline(e);
	if (bw_reliable_at_once(e))
		return e->now;
	return e->heap ? e->heap->heap_key : BW_NEVER;
}

bool bw_reliable_untold(const void *mem)
{
	const struct bw_engine *e = mem;

	return e->ev_first;
}

bool bw_reliable_tells(const void *mem)
{
	const struct bw_engine *e = mem;

	return e->ev_first && e->ev_first->type != BW_EV_PEER_DOWN;
}

static bool bw_reliable_hungry(void *mem)
{
	struct bw_engine *e = mem;

	return bw_arena_low(&e->arena);
}

bool bw_reliable_starved(const void *mem)
{
	const struct bw_engine *e = mem;

	return e->starve.peers && !bw_slab_roomy(&e->records);
}

static bool bw_reliable_parting(void *mem)
{
	struct bw_engine *e = mem;

	return e->parting;
}

static bool bw_reliable_busy(void *mem)
{
	struct bw_engine *e = mem;

	return e->work != 0;
}

static const struct bw_counters *bw_reliable_counters(void *mem)
{
	struct bw_engine *e = mem;

	return &e->count;
}

void bw_reliable_failed(void *mem)
{
	struct bw_engine *e = mem;

	e->failed = true;
}

bool bw_reliable_pressed(void *mem, uint32_t peer)
{
	const struct bw_peer *p = bw_peer_get(mem, peer);

	return p && p->pressed;
}

bool bw_reliable_serving(void *mem, uint64_t key)
{
	struct bw_engine *e = mem;
	struct bw_list *l, *k;

	for (l = e->peers.next; l != &e->peers; l = l->next) {
		struct bw_peer *p = bw_entry(l, struct bw_peer, all);

		for (k = p->serves.next; k != &p->serves; k = k->next) {
			const struct bw_serve *s = bw_entry(k, struct bw_serve, all);

			if (s->hosts && s->key == key)
				return true;
		}
	}
	return false;
}

int bw_reliable_path(void *mem, uint32_t peer, uint64_t *srtt_ns, uint32_t *mtu, uint8_t *link)
{
	struct bw_peer *p = bw_peer_get(mem, peer);
	const struct bw_path *t;

	if (!p || p->state != BW_PEER_UP)
		return -ENOTCONN;
	t = p->path[p->best];
	*srtt_ns = t->rtt.srtt;
	*mtu = t->pmtu.mtu;
	*link = t->to.link;
	return 0;
}

int bw_reliable_path_view(void *mem, uint32_t peer, uint8_t index, struct bw_path_view *view)
{
	struct bw_peer *p = bw_peer_get(mem, peer);
	const struct bw_path *t;

	if (!p)
		return -ENOTCONN;
	if (index >= p->npaths)
		return -ENOENT;
	t = p->path[index];
	*view = (struct bw_path_view){
		.to = t->to,
		.up = t->state == BW_PATH_UP,
		.silent = t->pto_count != 0,
		.best = index == p->best,
		.together = p->together > 1 && t->state == BW_PATH_UP &&
			    bw_stripe_together(mem, t, p->path[p->best]) && !t->carry.yields,
		.srtt_ns = t->rtt.srtt,
		.rate_bps = t->rate * 8000,
		.mtu = t->pmtu.mtu,
	};
	return 0;
}

size_t bw_reliable_peer_bytes(uint32_t paths)
{
	return sizeof(struct bw_peer) + paths * sizeof(struct bw_path) + sizeof(struct bw_slot);
}

const struct bw_protocol bw_reliable = {
	.name = "reliable",
	.version = BW_VERSION_MAX,
	.size = bw_reliable_size,
	.open = bw_reliable_open,
	.close = bw_reliable_close,
	.grow = bw_reliable_grow,
	.submit = bw_reliable_submit,
	.rx = bw_reliable_rx,
	.rx_row = bw_reliable_rx_row,
	.next_frame = bw_reliable_next_frame,
	.next_alike = bw_reliable_next_alike,
	.next_event = bw_reliable_next_event,
	.next_deadline = bw_reliable_next_deadline,
	.hungry = bw_reliable_hungry,
	.unsent = bw_reliable_unsent,
	.busy = bw_reliable_busy,
	.parting = bw_reliable_parting,
	.counters = bw_reliable_counters,
};
