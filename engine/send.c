/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DATA frames: what is to be sent again first, then control messages, then eager messages and
 * pulled data in turns, as many parts as fit, within the window of the path and the credit of the
 * peer.
 */
#include "ack.h"
#include "carry.h"
#include "contact.h"
#include "credit.h"
#include "duplex.h"
#include "again.h"
#include "keys.h"
#include "loss.h"
#include "path.h"
#include "peer.h"
#include "pull.h"
#include "reliable.h"
#include "send.h"
#include "starve.h"
#include "stripe.h"
#include "submit.h"

#define BW_SERVE_TURN  32 /* frames one pull may send before the next one's turn */
#define BW_LOAD_FRAMES 4  /* a message of more frames tells how fast its path carries */
#define BW_ALIGN8(x)   (((x) + 7u) & ~7u)

/* A frame that is being filled. */
struct bw_builder {
	struct bw_engine *e;
	struct bw_peer *p;
	struct bw_path *t;
	struct bw_tx_frame *f;
	uint32_t mtu;		/* that is left by what comes behind the parts */
	uint32_t head_len, len; /* as in the frame, so far */
	uint32_t parts, segments;
	struct bw_record *first; /* record of the first part */
	uint32_t what;		 /* enum bw_send_what: what may be sent */
	bool urgent;
	bool load; /* some of what is long is in it */
	bool full; /* nothing more fits */
};

/* A part in `head`, at any address: it is aligned in the frame, but `head` lacks the payloads. */
union bw_part_any {
	struct bw_part part;
	struct bw_part_msg msg;
	struct bw_part_bulk bulk;
} __attribute__((__packed__));

static BW_WITHIN uint32_t bw_builder_room(const struct bw_builder *b, uint32_t part)
{
	uint32_t at = BW_ALIGN8(b->len) + part;

	if (b->full || b->parts == BW_TX_SEGMENTS || at > BW_HEAD_MAX)
		return 0;
	return at < b->mtu ? b->mtu - at : 0;
}

/* Where the next part is to be written, behind a padding of zeroes. */
static BW_WITHIN union bw_part_any *bw_builder_part(struct bw_builder *b, uint32_t size)
{
	uint8_t *at = (uint8_t *)b->f->head + b->head_len;
	uint32_t pad = BW_ALIGN8(b->len) - b->len;

	if (pad)
		memset(at, 0, 8);
	b->head_len += pad + size;
	b->len += pad + size;
	b->parts++;
	return (union bw_part_any *)(at + pad);
}

/* The part's payload, buf 0: zeroes; and the record of its range. The first record of a packet
 * tells the packet's length. */
static BW_WITHIN void bw_builder_payload(struct bw_builder *b, union bw_part_any *w,
					 struct bw_record *r, uint64_t buf, uint64_t off,
					 uint32_t len, bool check)
{
	struct bw_tx_segment *s = &b->f->segment[b->segments];

	w->part.plen = (uint16_t)len;
	w->part.crc = len && check ? bw_ops(b->e)->payload_crc(b->e->host, buf, off, len) : 0;
	s->head_end = b->head_len;
	s->len = len;
	s->buf = buf;
	s->off = off;
	b->segments += len != 0;
	b->len += len;
	if (!b->first)
		b->first = r;
	r->pn = b->t->pn_next;
	r->sent_ns = b->e->now;
	r->frame_len = 0;
	bw_list_add_before(&b->t->flight, &r->list);
}

static BW_WITHIN struct bw_record *bw_record_made(struct bw_engine *e, struct bw_peer *p,
						  uint8_t kind, void *obj, uint64_t off,
						  uint32_t len)
{
	struct bw_record *r = BW_LIKELY(!e->starve.seeks) ? bw_slab_alloc(&e->records) : NULL;

	if (!r) {
		bw_starve_enter(e, p);
		return NULL;
	}
	bw_list_init(&r->list);
	r->kind = kind;
	r->obj = obj;
	r->off = off;
	r->len = len;
	r->waits = false;
	if (kind == BW_OWNED_MESSAGE)
		((struct bw_txmsg *)obj)->refs++;
	else if (kind == BW_OWNED_BULK)
		((struct bw_serve *)obj)->refs++;
	return r;
}

struct bw_record *bw_record_new(struct bw_engine *e, struct bw_peer *p, uint8_t kind, void *obj,
				uint64_t off, uint32_t len)
{
	return bw_record_made(e, p, kind, obj, off, len);
}

static BW_WITHIN bool bw_send_loads(const struct bw_path *t, const struct bw_txmsg *m)
{
	return m->len > BW_LOAD_FRAMES * t->pmtu.mtu;
}

/* It is if somebody waits for that, or if the message is long and its path is being measured: it
 * is when it is acknowledged that counts, not when the peer has something to say. */
BW_WITHIN bool bw_send_urgent(const struct bw_path *t, const struct bw_txmsg *m)
{
	return m->urgent || (!t->carry.warm && bw_send_loads(t, m));
}

static BW_WITHIN void bw_builder_message(struct bw_builder *b, struct bw_record *r,
					 const struct bw_txmsg *m, uint64_t off, uint32_t len)
{
	union bw_part_any *w = bw_builder_part(b, sizeof(w->msg));

	w->part.kind = m->kind;
	w->part.code = m->code;
	w->msg.id = m->id;
	w->msg.offset = m->offset + off;
	w->msg.total = m->total;
	w->msg.tag = m->tag;
	w->msg.imm = m->imm;
	w->msg.dst_ep = m->flow->remote_ep;
	w->msg.src_ep = m->flow->local_ep;
	w->msg.status = m->wire_status;
	b->load |= bw_send_loads(b->t, m);
	b->urgent |= off + len == m->len && bw_send_urgent(b->t, m);
	bw_builder_payload(b, w, r, m->buf, m->buf_off + off, len, b->p->checksum);
}

static BW_WITHIN void bw_builder_bulk(struct bw_builder *b, struct bw_record *r,
				      const struct bw_serve *s, uint64_t off, uint32_t len)
{
	union bw_part_any *w = bw_builder_part(b, sizeof(w->bulk));

	w->part.kind = BW_PART_BULK;
	w->part.code = 0;
	w->bulk.id = s->pull_id;
	w->bulk.offset = off;
	b->load = true;
	b->urgent |= off + len == s->len;
	b->full = true; /* bulk travels alone or last */
	bw_builder_payload(b, w, r, s->buf, s->buf_off + off, len, b->p->checksum);
}

/* A range that is in some list, or as much of it as fits: the record itself, which leaves the list,
 * or one of the range's beginning. NULL: there is no memory. */
static struct bw_record *bw_builder_piece(struct bw_builder *b, struct bw_record *r, uint32_t len)
{
	struct bw_record *piece = r;

	if (len < r->len) {
		piece = bw_record_new(b->e, b->p, r->kind, r->obj, r->off, len);
		if (!piece)
			return NULL;
		r->off += len;
		r->len -= len;
	}
	bw_again_leave(piece);
	bw_list_del(&piece->list);
	return piece;
}

/* One range of the retransmission queue, as much of it as fits. False: nothing was added. */
static bool bw_builder_again(struct bw_builder *b)
{
	struct bw_record *r = bw_again_first(b->p);
	bool bulk = r->kind == BW_OWNED_BULK;
	uint32_t room =
		bw_builder_room(b, bulk ? sizeof(struct bw_part_bulk) : sizeof(struct bw_part_msg));
	uint32_t len = (uint32_t)bw_min_u64(r->len, room);

	if ((b->parts && (bulk || len < r->len)) || (!room && (r->len || b->parts)))
		return false;
	if (bulk && ((struct bw_serve *)r->obj)->aborted) {
		struct bw_serve *s = r->obj;

		bw_record_forget(b->e, r);
		bw_serve_settle(b->e, s);
		return true;
	}
	r = bw_builder_piece(b, r, len);
	if (!r)
		return false;
	b->e->count.retransmits++;
	b->t->lost.retransmits++;
	BW_PROBE2(retransmission, b->p->engine, len);
	if (bulk)
		bw_builder_bulk(b, r, r->obj, r->off, len);
	else
		bw_builder_message(b, r, r->obj, r->off, len);
	return true;
}

/* There is credit for so much; else the peer is expected to give some. */
static BW_WITHIN bool bw_builder_credit(struct bw_builder *b, uint64_t charge)
{
	struct bw_peer *p = b->p;

	if (BW_LIKELY(p->tx_used + charge <= p->tx_limit))
		return true;
	if (!p->credit_stalled) {
		p->credit_stalled = true;
		b->e->count.credit_stalls++;
		bw_peer_progress(p);
	}
	return false;
}

BW_WITHIN void bw_send_message_left(struct bw_engine *e, struct bw_txmsg *m, uint32_t len)
{
	m->next_off += len;
	bw_duplex_sent(e, len);
	if (m->next_off == m->len)
		bw_txmsg_left(e, m);
}

/* Its turn ends with its bytes, or if others wait. */
BW_WITHIN void bw_send_serve_left(struct bw_engine *e, struct bw_serve *s, uint32_t len)
{
	struct bw_peer *p = s->peer;

	s->next_off += len;
	p->tx_used += len;
	bw_duplex_sent(e, len);
	if (s->next_off == s->len) {
		bw_list_del(&s->turn);
		p->serve_turn = 0;
	} else if (++p->serve_turn >= BW_SERVE_TURN) {
		bw_list_del(&s->turn);
		bw_list_add_before(&p->serving, &s->turn);
		p->serve_turn = 0;
	}
}

/* The first message of a flow, or as much of it as fits into a frame of its own. */
static BW_WITHIN bool bw_builder_next_message(struct bw_builder *b, struct bw_flow *flow)
{
	struct bw_txmsg *m = bw_first(&flow->tx, struct bw_txmsg, queue);
	uint32_t room = bw_builder_room(b, sizeof(struct bw_part_msg));
	uint32_t off = m->next_off, left = m->len - off, len = left < room ? left : room;
	uint64_t charge = m->charged ? 0 : bw_credit_charge(m->total, b->p->charge_min);
	struct bw_record *r;

	if (len < left && (b->parts || !room))
		return false;
	if (!left && !bw_builder_room(b, sizeof(struct bw_part_msg) - 1))
		return false;
	if (!bw_builder_credit(b, charge))
		return false;
	r = bw_record_made(b->e, b->p, BW_OWNED_MESSAGE, m, off, len);
	if (!r)
		return false;
	b->p->tx_used += charge;
	m->charged = true;
	bw_builder_message(b, r, m, off, len);
	bw_send_message_left(b->e, m, len);
	return true;
}

static BW_APART bool bw_builder_some_message(struct bw_builder *b, struct bw_flow *flow)
{
	return bw_builder_next_message(b, flow);
}

static bool bw_builder_next_control(struct bw_builder *b)
{
	struct bw_peer *p = b->p;
	struct bw_txmsg *m = bw_first(&p->control.tx, struct bw_txmsg, queue);
	struct bw_txmsg *oldest = bw_first(&p->controls, struct bw_txmsg, all);

	if (m->id - oldest->id >= BW_CONTROL_MAX)
		return false;
	return bw_builder_some_message(b, &p->control);
}

/* Some of what is set aside for the path. */
static bool bw_builder_share(struct bw_builder *b)
{
	uint32_t room = bw_builder_room(b, sizeof(struct bw_part_bulk)), len;
	struct bw_record *r, *piece;

	if (b->parts || !room)
		return false;
	r = bw_stripe_next(b->e, b->p, b->t, room);
	if (!r)
		return false;
	len = r->len < room ? r->len : room;
	piece = bw_builder_credit(b, len) ? bw_builder_piece(b, r, len) : NULL;
	if (!piece)
		return false;
	b->p->aside -= piece == r;
	b->p->tx_used += len;
	bw_builder_bulk(b, piece, piece->obj, piece->off, len);
	bw_duplex_sent(b->e, len);
	return true;
}

/* As much as fits of the pull whose turn it is. */
static BW_WITHIN bool bw_builder_next_bulk(struct bw_builder *b)
{
	struct bw_peer *p = b->p;
	struct bw_serve *s = bw_first(&p->serving, struct bw_serve, turn);
	uint32_t room = bw_builder_room(b, sizeof(struct bw_part_bulk));
	uint64_t off = s->next_off;
	uint32_t len = (uint32_t)bw_min_u64(s->len - off, room);
	struct bw_record *r;

	if (b->parts || !room || !bw_builder_credit(b, len))
		return false;
	r = bw_record_made(b->e, b->p, BW_OWNED_BULK, s, off, len);
	if (!r)
		return false;
	bw_builder_bulk(b, r, s, off, len);
	bw_send_serve_left(b->e, s, len);
	return true;
}

/* The first flow with messages to be sent from this one on, within its bucket if there are any. */
static struct bw_flow *bw_send_flow_from(struct bw_engine *e, const struct bw_peer *p,
					 struct bw_flow *flow)
{
	uint16_t bucket = flow ? flow->bucket : 0;

	for (; flow && (!p->flow_table || flow->bucket == bucket); flow = flow->next) {
		e->steps++;
		if (!bw_list_empty(&flow->tx))
			return flow;
	}
	return NULL;
}

/* The first flow with messages to be sent in these buckets and those behind them. */
static struct bw_flow *bw_send_flow_in(struct bw_engine *e, struct bw_peer *p, uint32_t bucket)
{
	struct bw_flow_table *t = p->flow_table;
	struct bw_flow *flow;

	while (bucket < BW_FLOW_BUCKETS) {
		uint64_t rest = t->sends[bucket / 64] >> bucket % 64;

		if (!rest) {
			bucket = (bucket | 63) + 1;
			continue;
		}
		bucket += (uint32_t)__builtin_ctzll(rest);
		flow = bw_send_flow_from(e, p, t->bucket[bucket]);
		if (flow)
			return flow;
		t->sends[bucket / 64] &= ~(1ull << bucket % 64); /* all of it has left */
		bucket++;
	}
	return NULL;
}

/* The next flow with messages to be sent behind this one, which may be `app`. A peer makes many by
 * which nothing is sent: they are not looked at. */
static BW_APART struct bw_flow *bw_send_flow_after(struct bw_engine *e, struct bw_peer *p,
						   const struct bw_flow *last)
{
	struct bw_flow *flow;

	if (!p->flow_table)
		return bw_send_flow_from(e, p, last->next);
	if (last == &p->app)
		return bw_send_flow_in(e, p, 0);
	flow = last->next && last->next->bucket == last->bucket ? last->next : NULL;
	flow = bw_send_flow_from(e, p, flow);
	return flow ? flow : bw_send_flow_in(e, p, last->bucket + 1u);
}

static bool bw_builder_next_eager(struct bw_builder *b)
{
	struct bw_flow *flow = &b->p->app;

	if (!b->p->unsent)
		return false;
	if (!bw_list_empty(&flow->tx) && bw_builder_some_message(b, flow))
		return true;
	while (flow->next && (flow = bw_send_flow_after(b->e, b->p, flow)))
		if (bw_builder_some_message(b, flow))
			return true;
	return false;
}

static bool bw_builder_next_pulled(struct bw_builder *b)
{
	return b->p->striped || b->p->aside ? bw_builder_share(b) : bw_builder_next_bulk(b);
}

static void bw_builder_fill(struct bw_builder *b)
{
	struct bw_peer *p = b->p;
	bool bulk = b->what & BW_SEND_BULK && (!bw_list_empty(&p->serving) || p->aside);
	bool messages = b->what & BW_SEND_MESSAGES;

	while (b->what & BW_SEND_AGAIN && !bw_list_empty(&p->again) && bw_builder_again(b))
		;
	while (messages && !bw_list_empty(&p->control.tx) && bw_builder_next_control(b))
		;
	if (bulk && p->eager_turn >= BW_EAGER_TURN) {
		p->eager_turn = 0;
		if (bw_builder_next_pulled(b))
			return;
	}
	if (messages && bw_builder_next_eager(b)) {
		p->eager_turn++;
		while (bw_builder_next_eager(b))
			;
	} else if (bulk) {
		bw_builder_next_pulled(b);
	}
}

static BW_WITHIN void bw_builder_begin(struct bw_builder *b)
{
	struct bw_hdr *h = (struct bw_hdr *)b->f->head;

	bw_hdr_fill(b->e, b->p, h, BW_FRAME_DATA);
	h->pn = (uint32_t)b->t->pn_next;
	h->path = b->t->no;
	b->mtu = b->t->pmtu.mtu - b->p->trailer;
	b->head_len = b->len = BW_DATA_HEAD;
}

/* What is sealed is under its own tag: that of the head covers what is shown, so that a frame which
 * is not the peer's, or comes again, is not opened. */
static BW_WITHIN void bw_builder_seal(struct bw_builder *b, uint64_t pn)
{
	const uint8_t *key = bw_peer_tag_key(b->p);
	uint32_t covered = b->head_len;

	if (BW_UNLIKELY(key) && b->p->trailer) {
		covered = BW_DATA_HEAD;
		b->f->seal.key = b->p->keys->tx.seal;
		b->f->seal.pn = pn;
	}
	bw_head_seal(b->e, key, bw_ack_over_data(b->p, pn), b->f->head, covered, b->len);
}

/* The packet leaves. */
static BW_WITHIN void bw_builder_end(struct bw_builder *b)
{
	struct bw_engine *e = b->e;
	struct bw_path *t = b->t;
	struct bw_hdr *h = (struct bw_hdr *)b->f->head;
	const uint64_t pn = t->pn_next;

	if (b->p->npaths > 1)
		bw_carry_sent(e, t, b->load);
	b->len += b->p->trailer;
	b->f->to = t->to;
	b->f->head_len = b->head_len;
	b->f->segments = b->segments;
	b->f->len = b->first->frame_len = b->len;
	bw_duplex_left(e, t, b->len);
	if (b->urgent || t->inflight >= (b->p->striped ? bw_stripe_limit(e, b->p, t) : t->cc.cwnd))
		h->flags = BW_HDR_ACK_NOW;
	bw_ack_block(e, b->p, t, (struct bw_ackblk *)(h + 1));
	bw_pace_sent(e, t, b->len);
	bw_builder_seal(b, pn);
	e->last.pn = pn;
	t->pn_next = pn + 1;
	t->last_sent = e->now;
	t->probe_allow = false;
}

/* A frame of padding alone with a record of its own: a ping, or a probe of the frame size. */
static bool bw_builder_alone(struct bw_builder *b, uint8_t kind, uint32_t size)
{
	struct bw_record *r = bw_record_new(b->e, b->p, kind, NULL, 0, size);
	union bw_part_any *w;

	if (!r)
		return false;
	w = bw_builder_part(b, sizeof(w->bulk));
	memset(w, 0, sizeof(w->bulk));
	w->part.kind = BW_PART_PAD;
	b->urgent = true;
	bw_builder_payload(b, w, r, 0, 0, size - b->len - b->p->trailer, false);
	return true;
}

static bool bw_builder_probe(struct bw_builder *b)
{
	struct bw_path *t = b->t;

	if (BW_LIKELY(!t->pmtu.probe) || t->pmtu.flying || t->pmtu.held)
		return false;
	if (!bw_builder_alone(b, BW_OWNED_PAD, t->pmtu.probe))
		return false;
	t->pmtu.flying = true;
	return true;
}

static bool bw_builder_data(struct bw_builder *b)
{
	struct bw_path *t = b->t;

	if (t->inflight >= t->cc.cwnd && !t->probe_allow) {
		t->cc.limited_pn = t->pn_next;
		return false;
	}
	if (!t->probe_allow && bw_pace_holds(b->e, t))
		return false;
	bw_builder_fill(b);
	return b->first;
}

static bool bw_builder_ping(struct bw_builder *b)
{
	if (b->t->ask) {
		b->t->ask = false;
	} else {
		if (!b->p->ping_due || !(b->what & BW_SEND_MESSAGES))
			return false;
		b->p->ping_due = false;
	}
	/* As long as the refusal that may be its answer. */
	return bw_builder_alone(b, BW_OWNED_PING, BW_REFUSE_BYTES);
}

bool bw_send_by(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint32_t what,
		struct bw_tx_frame *f)
{
	struct bw_builder b = {.e = e, .p = p, .t = t, .f = f, .what = what};

	if (!p->confirmed || t->state != BW_PATH_UP)
		return false;
	bw_builder_begin(&b);
	if (!(t->pto_count >= BW_PTO_PING && bw_builder_ping(&b)) && !bw_builder_probe(&b) &&
	    !(what && bw_builder_data(&b)) && !bw_builder_ping(&b))
		return false;
	bw_builder_end(&b);
	return true;
}

/* Is there nothing to be sent to this peer but messages and pulled data? */
static bool bw_send_clear(const struct bw_peer *p)
{
	uint8_t i;

	for (i = 0; i < p->npaths; i++) {
		const struct bw_path *t = p->path[i];

		if (t->hello.due || t->pmtu.probe || t->ask || (t->rx.ack_now && i != p->best))
			return false;
	}
	return p->confirmed && !p->striped && !p->aside && !p->ping_due &&
	       bw_list_empty(&p->again) && bw_list_empty(&p->control.tx);
}

/* May a frame leave by this path as if nothing had ever been lost? */
static bool bw_send_open(const struct bw_path *t)
{
	return t->state == BW_PATH_UP && !t->pto_count && !t->rx.got.n &&
	       t->inflight < t->cc.cwnd && !bw_rtt_distant(&t->rtt);
}

/* The first flow with messages to be sent. */
static struct bw_flow *bw_send_flow(struct bw_engine *e, struct bw_peer *p)
{
	if (!p->unsent)
		return NULL;
	return bw_list_empty(&p->app.tx) ? bw_send_flow_after(e, p, &p->app) : &p->app;
}

/* With nothing left to be sent the peer is no longer ready; and a pull alone has all turns. */
BW_WITHIN void bw_send_rest(struct bw_peer *p, const struct bw_flow *flow)
{
	if (flow)
		p->eager_turn++;
	else if (p->serving.next == p->serving.prev)
		p->serve_turn = 0;
	if (!bw_list_empty(flow ? &flow->tx : &p->serving))
		return;
	bw_list_del(&p->ready);
	p->is_ready = false;
}

/* When the peer needs attention next. */
static void bw_send_plan(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	if (!p->waiting_since)
		p->waiting_since = e->now ? e->now : 1;
	bw_peer_sooner(e, p,
		       bw_min_u64(e->now + bw_path_pto(e, t),
				  bw_max_u64(p->proven, p->waiting_since) + e->cfg.dead_ns));
}

bool bw_send_single(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f)
{
	struct bw_builder b = {.e = e, .p = p, .f = f};
	bool served = !bw_list_empty(&p->serving);
	struct bw_flow *flow;

	if (!bw_send_clear(p))
		return false;
	flow = bw_send_flow(e, p);
	if (flow ? served || p->unsent > 1 : !served)
		return false;
	b.t = flow ? bw_carry_message(e, p, bw_first(&flow->tx, struct bw_txmsg, queue)->len)
		   : p->path[bw_carry_instead(e, p, p->path[p->best])];
	if (!bw_send_open(b.t))
		return false;
	bw_builder_begin(&b);
	if (flow ? !bw_builder_next_message(&b, flow) : !bw_builder_next_bulk(&b))
		return false;
	bw_builder_end(&b);
	bw_send_plan(e, p, b.t);
	bw_send_rest(p, flow);
	if (BW_UNLIKELY(p->is_ready) && !p->trailer)
		e->row = (struct bw_row){.peer = p,
					 .path = b.t,
					 .serve = flow ? NULL : b.first->obj,
					 .msg = flow ? b.first->obj : NULL};
	return true;
}

uint64_t bw_send_length(struct bw_engine *e, struct bw_peer *p)
{
	const struct bw_flow *flow = bw_send_flow(e, p);

	return flow ? bw_first(&flow->tx, struct bw_txmsg, queue)->len : 0;
}

bool bw_send_frame(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f)
{
	if (BW_UNLIKELY(p->striped))
		return bw_stripe_frame(e, p, f);
	if (bw_carry_contested(p))
		return bw_carry_frame(e, p, f);
	return bw_send_by(e, p, p->path[p->best], BW_SEND_ALL, f);
}
