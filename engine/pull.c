/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pulls: the receiver of long data asks for a region of the sender, and the data goes straight
 * where it is wanted. Three objects: the region at its owner, the pull at who asked, and the serve,
 * which is a peer's pull as the owner works on it.
 */
#include "credit.h"
#include "duplex.h"
#include "event.h"
#include "late.h"
#include "peer.h"
#include "pull.h"
#include "reliable.h"
#include "stripe.h"
#include "submit.h"

uint32_t bw_nonce(struct bw_engine *e)
{
	uint32_t x = (uint32_t)bw_ops(e)->random(e->host);

	return x ? x : 1;
}

int bw_pull_expose(struct bw_engine *e, struct bw_op *op)
{
	struct bw_peer *p = bw_peer_get(e, op->peer);
	struct bw_region *g;
	uint32_t handle;

	if (!p)
		return -ENOTCONN;
	if (!op->expose.buf && op->expose.len)
		return -EINVAL;
	g = bw_slab_alloc(&e->regions);
	if (!g)
		return -EAGAIN;
	handle = bw_table_add(&e->region_table, g, 0);
	if (!handle) {
		bw_slab_free(&e->regions, g);
		return -EAGAIN;
	}
	memset(g, 0, sizeof(*g));
	g->peer = p;
	g->peer_handle = p->handle;
	g->key = (uint64_t)bw_nonce(e) << 32 | handle;
	g->cookie = op->cookie;
	g->buf = op->expose.buf;
	g->buf_off = op->expose.buf_off;
	g->len = op->expose.len;
	bw_list_init(&g->serves);
	bw_list_add_before(&p->regions, &g->all);
	e->work++;
	op->expose.key = g->key;
	return 0;
}

static struct bw_region *bw_region_get(struct bw_engine *e, uint64_t key)
{
	struct bw_region *g = bw_table_get(&e->region_table, (uint32_t)key);

	return g && g->key == key && g->peer->state != BW_PEER_DOWN ? g : NULL;
}

bool bw_reliable_begun(void *p, uint64_t key)
{
	const struct bw_region *g = bw_region_get(p, key);

	return g && g->begun;
}

bool bw_reliable_asked(void *p, uint64_t key)
{
	const struct bw_region *g = bw_region_get(p, key);

	return g && g->asked >= g->len;
}

static void bw_region_leave(struct bw_engine *e, struct bw_region *g)
{
	bw_table_remove(&e->region_table, (uint32_t)g->key);
	bw_list_del(&g->all);
	e->work--;
}

void bw_region_end(struct bw_engine *e, struct bw_region *g, int32_t status)
{
	bw_region_leave(e, g);
	g->status = status;
	bw_event_push(e, &g->ev, BW_EV_REGION_DONE);
}

/* Nobody has heard of it. */
static void bw_region_forget(struct bw_engine *e, struct bw_region *g)
{
	bw_region_leave(e, g);
	bw_slab_free(&e->regions, g);
}

/* The asker has no more use for it: it ends as soon as nothing is read from it any more. */
static void bw_region_release(struct bw_engine *e, struct bw_region *g)
{
	g->released = true;
	if (bw_list_empty(&g->serves))
		bw_region_end(e, g, g->recalled ? -ECANCELED : 0);
}

/* The end of a pull that data does not bring about: an error, or 0 for a pull of nothing.
 * `charged`: bytes of the pull that have been sent, for whose credit the asker must account. */
static bool bw_pull_answer(struct bw_engine *e, struct bw_peer *p, uint64_t pull_id, int32_t status,
			   uint64_t charged)
{
	struct bw_txmsg *m = bw_send_control(e, p, BW_PART_PULL_ERROR);

	if (!m)
		return false;
	p->asked++;
	m->tag = pull_id;
	m->total = charged;
	m->wire_status = status;
	return true;
}

/* The host's memory `buf` is no longer read for what it allowed. */
static void bw_pull_served(struct bw_engine *e, uint64_t buf)
{
	if (bw_ops(e)->served)
		bw_ops(e)->served(e->host, buf);
}

void bw_serve_end(struct bw_engine *e, struct bw_serve *s)
{
	bw_list_del(&s->all);
	bw_list_del(&s->sibling);
	bw_list_del(&s->turn);
	e->work--;
	if (s->hosts)
		bw_pull_served(e, s->buf);
	bw_slab_free(&e->serves, s);
}

void bw_serve_settle(struct bw_engine *e, struct bw_serve *s)
{
	struct bw_region *g = s->region;
	bool final = s->final;

	if (s->refs || (!s->aborted && s->next_off < s->len))
		return;
	if (s->peer->late)
		bw_late_ended(e, s->peer, s);
	s->peer->asked--;
	bw_serve_end(e, s);
	if (g && (final || g->released))
		bw_region_release(e, g);
}

/* Nothing is read for it any more, and who asked is told. false: there is no memory to tell. */
static bool bw_serve_abort(struct bw_engine *e, struct bw_serve *s)
{
	if (!bw_pull_answer(e, s->peer, s->pull_id, -ECANCELED,
			    s->next_off - bw_stripe_unsent(s->peer, s)))
		return false;
	s->aborted = true;
	bw_stripe_forget(e, s->peer, s);
	s->region = NULL;
	bw_list_del(&s->sibling);
	bw_list_del(&s->turn);
	if (s->hosts)
		bw_pull_served(e, s->buf);
	s->hosts = false;
	bw_serve_settle(e, s);
	return true;
}

int bw_pull_retract(struct bw_engine *e, struct bw_op *op)
{
	struct bw_region *g = bw_region_get(e, op->expose.key);

	if (!g)
		return -ENOENT;
	while (!bw_list_empty(&g->serves)) {
		if (!bw_serve_abort(e, bw_first(&g->serves, struct bw_serve, sibling)))
			return -EAGAIN;
		if (!op->one)
			continue;
		g->recalled = true; /* else its peer could ask for it anew as fast as it is ended */
		return -EINPROGRESS;
	}
	if (op->expose.untold)
		bw_region_forget(e, g);
	else
		bw_region_end(e, g, -ECANCELED);
	return 0;
}

/* Those of a peer with this key. */
static bool bw_pull_forbid_key(struct bw_engine *e, struct bw_peer *p, uint64_t key)
{
	struct bw_list *l, *next;

	for (l = p->serves.next; l != &p->serves; l = next) {
		struct bw_serve *s = bw_entry(l, struct bw_serve, all);

		next = l->next;
		if (s->hosts && s->key == key && !bw_serve_abort(e, s))
			return false;
	}
	return true;
}

/* All of a peer, one by one if the host wants so: each that has been looked at goes behind the
 * others, and so many are left to look at as the peer had asked for at first. */
static int bw_pull_forbid_all(struct bw_engine *e, struct bw_peer *p, struct bw_op *op)
{
	if (!op->left)
		op->left = p->asked;
	while (op->left && !bw_list_empty(&p->serves)) {
		struct bw_serve *s = bw_first(&p->serves, struct bw_serve, all);

		bw_list_del(&s->all);
		bw_list_add_before(&p->serves, &s->all);
		if (s->hosts && !bw_serve_abort(e, s)) {
			bw_list_del(&s->all);
			bw_list_add_before(p->serves.next, &s->all);
			return -EAGAIN;
		}
		if (--op->left && op->one)
			return -EINPROGRESS;
	}
	op->left = 0;
	return 0;
}

int bw_pull_forbid(struct bw_engine *e, struct bw_op *op)
{
	struct bw_peer *p = op->forbid.all ? bw_peer_get(e, op->peer) : NULL;
	struct bw_list *l;

	if (op->forbid.all)
		return p ? bw_pull_forbid_all(e, p, op) : -ENOTCONN;
	for (l = e->peers.next; l != &e->peers; l = l->next) {
		p = bw_entry(l, struct bw_peer, all);
		if (p->state != BW_PEER_DOWN && !bw_pull_forbid_key(e, p, op->forbid.key))
			return -EAGAIN;
	}
	return 0;
}

/* Where the requested bytes lie; 0 or a negative errno for the asker. */
static int32_t bw_pull_locate(struct bw_engine *e, struct bw_peer *p, const struct bw_part_msg *w,
			      struct bw_region **region, uint64_t *buf, uint64_t *off)
{
	struct bw_region *g;

	*region = NULL;
	if (w->status & BW_PULL_HOST_KEY)
		return e->ops->region_find(e->host, p->handle, w->tag, w->offset, w->total, buf,
					   off);
	g = bw_region_get(e, w->tag);
	if (!g || g->released || g->recalled)
		return -ENOENT;
	if (g->peer != p)
		return -EACCES;
	if (w->offset > g->len || w->total > g->len - w->offset)
		return -EINVAL;
	g->begun = true;
	g->asked += w->total;
	*region = g;
	*buf = g->buf;
	*off = g->buf_off + w->offset;
	return 0;
}

/* It ends without data: with this status. */
static int bw_pull_told_why(struct bw_engine *e, struct bw_peer *p, const struct bw_part_msg *w,
			    int32_t status)
{
	return w->imm && !bw_pull_answer(e, p, w->imm, status, 0) ? -BW_DROP_NO_BUFFER : 0;
}

static int bw_pull_of_nothing(struct bw_engine *e, struct bw_peer *p, const struct bw_part_msg *w,
			      struct bw_region *g, uint64_t buf)
{
	int r = bw_pull_told_why(e, p, w, 0);

	if (!g)
		bw_pull_served(e, buf);
	else if (!r && (w->status & BW_PULL_FINAL))
		bw_region_release(e, g);
	return r;
}

int bw_pull_request(struct bw_engine *e, struct bw_peer *p, const struct bw_part_msg *w)
{
	struct bw_region *g;
	struct bw_serve *s;
	uint64_t buf = 0, off = 0;
	int32_t status;

	if (p->asked >= BW_ASKED_MAX)
		return -BW_DROP_NO_BUFFER;
	status = bw_pull_locate(e, p, w, &g, &buf, &off);
	if (status == -EAGAIN) /* asked again when the request comes again */
		return -BW_DROP_NO_BUFFER;
	if (status)
		return bw_pull_told_why(e, p, w, status);
	if (!w->total)
		return bw_pull_of_nothing(e, p, w, g, buf);
	s = bw_slab_alloc(&e->serves);
	if (!s) {
		if (!g)
			bw_pull_served(e, buf);
		return -BW_DROP_NO_BUFFER;
	}
	e->count.tx_pulls++;
	p->asked++;
	memset(s, 0, sizeof(*s));
	s->peer = p;
	s->region = g;
	s->hosts = !g;
	s->key = w->tag;
	s->pull_id = w->imm;
	s->buf = buf;
	s->buf_off = off;
	s->len = w->total;
	s->final = w->status & BW_PULL_FINAL;
	bw_list_init(&s->sibling);
	if (g)
		bw_list_add_before(&g->serves, &s->sibling);
	bw_list_add_before(&p->serves, &s->all);
	bw_list_add_before(&p->serving, &s->turn);
	e->work++;
	bw_stripe_retry(e, p);
	bw_peer_ready(e, p);
	return 0;
}

struct bw_pull *bw_pull_get(struct bw_engine *e, uint64_t id)
{
	struct bw_pull *u = bw_table_get(&e->pull_table, (uint32_t)id);

	return u && u->id == id && u->peer->state != BW_PEER_DOWN ? u : NULL;
}

/* Nothing more can come of it, all its credit is given back: its id is forgotten. */
static void bw_pull_settle(struct bw_engine *e, struct bw_pull *u)
{
	bw_table_remove(&e->pull_table, (uint32_t)u->id);
	bw_list_del(&u->all);
	u->peer->owed -= u->owed;
	u->settled = true;
	if (u->told)
		bw_slab_free(&e->pulls, u);
}

void bw_pull_told(struct bw_engine *e, struct bw_pull *u)
{
	u->told = true;
	if (u->settled)
		bw_slab_free(&e->pulls, u);
}

static void bw_pull_report(struct bw_engine *e, struct bw_pull *u, int32_t status)
{
	if (u->request)
		u->request->pull = NULL;
	u->request = NULL;
	u->ended = true;
	u->status = status;
	if (!status && u->len)
		e->count.rx_pulls++;
	bw_event_push(e, &u->ev, BW_EV_PULLED);
}

void bw_pull_end(struct bw_engine *e, struct bw_pull *u, int32_t status)
{
	if (!u->ended)
		bw_pull_report(e, u, status);
	bw_pull_settle(e, u);
}

/* What a peer may say of a pull. Others of its numbers would mean something else to our host, such
 * as that the peer is lost, or that the pull is to be tried again. Status 0 ends a pull of nothing
 * only. */
static int32_t bw_pull_wire_status(int32_t status, uint64_t len)
{
	switch (status) {
	case -ENOENT:
	case -EACCES:
	case -EINVAL:
	case -ECANCELED:
		return status;
	case 0:
		return len ? -EIO : 0;
	}
	return -EIO;
}

void bw_pull_error(struct bw_engine *e, struct bw_peer *p, const struct bw_part_msg *w)
{
	struct bw_pull *u = bw_pull_get(e, w->tag);
	uint64_t missing;
	int32_t status;

	if (!u || u->peer != p)
		return;
	missing = w->total > u->received && w->total <= u->len ? w->total - u->received : 0;
	if (!bw_credit_covers(p, missing)) {
		e->count.drop[BW_DROP_CREDIT]++;
	} else if (missing) {
		p->rx_used += missing;
		bw_credit_taken(e, p, missing);
	}
	status = bw_pull_wire_status(w->status, u->len);
	if (status != w->status)
		e->count.drop[BW_DROP_MALFORMED]++;
	bw_pull_end(e, u, status);
}

/* What a pull asks for, under this id; 0: without an answer. */
static void bw_pull_ask(struct bw_txmsg *m, const struct bw_op *op, uint64_t id)
{
	m->tag = op->pull.key;
	m->imm = id;
	m->offset = op->pull.off;
	m->total = op->pull.len;
	m->wire_status = (int32_t)(op->pull.flags & ~BW_OP_QUIET);
}

/* The region is of no more use to us. */
static int bw_pull_give_up(struct bw_engine *e, struct bw_peer *p, struct bw_op *op)
{
	struct bw_txmsg *m;

	if (op->pull.len || op->pull.flags != (BW_PULL_FINAL | BW_OP_QUIET))
		return -EINVAL;
	m = bw_send_control(e, p, BW_PART_PULL);
	if (!m)
		return -EAGAIN;
	bw_pull_ask(m, op, 0);
	return 0;
}

int bw_pull_submit(struct bw_engine *e, struct bw_op *op)
{
	struct bw_peer *p = bw_peer_get(e, op->peer);
	struct bw_txmsg *m;
	struct bw_pull *u;
	uint32_t handle;

	if (!p)
		return -ENOTCONN;
	if (op->pull.flags & BW_OP_QUIET)
		return bw_pull_give_up(e, p, op);
	if ((op->pull.len && !op->pull.buf) || op->pull.flags & ~(BW_PULL_FINAL | BW_PULL_HOST_KEY))
		return -EINVAL;
	u = bw_slab_alloc(&e->pulls);
	if (!u)
		return -EAGAIN;
	memset(u, 0, offsetof(struct bw_pull, span));
	handle = bw_table_add(&e->pull_table, u, 0);
	m = handle ? bw_send_control(e, p, BW_PART_PULL) : NULL;
	if (!m) {
		if (handle)
			bw_table_remove(&e->pull_table, handle);
		bw_slab_free(&e->pulls, u);
		return -EAGAIN;
	}
	u->id = ++e->serial << 32 | handle;
	u->peer = p;
	u->peer_handle = p->handle;
	u->request = m;
	u->cookie = op->cookie;
	u->buf = op->pull.buf;
	u->buf_off = op->pull.buf_off;
	u->len = op->pull.len;
	bw_list_add_before(&p->pulls, &u->all);
	m->pull = u;
	bw_pull_ask(m, op, u->id);
	op->pull.id = u->id;
	return 0;
}

int bw_pull_abort(struct bw_engine *e, struct bw_op *op)
{
	struct bw_pull *u = bw_pull_get(e, op->pull_id);

	if (!u || u->ended)
		return -ENOENT;
	bw_pull_report(e, u, -ECANCELED);
	bw_list_del(&u->all);
	bw_list_add_before(&u->peer->given_up, &u->all);
	u->owed = true;
	u->peer->owed++;
	if (!u->len)
		bw_pull_settle(e, u);
	else if (u->peer->owed > BW_OWED_MAX)
		bw_peer_down(e, u->peer, BW_DOWN_TIMEOUT); /* it answers none */
	return 0;
}

void bw_pull_count(struct bw_engine *e, struct bw_pull *u, uint64_t lo, uint64_t hi)
{
	uint64_t added = bw_spans_add(u->span, &u->nspans, lo, hi);

	u->received += added;
	u->peer->rx_used += added;
	bw_peer_progress(u->peer);
	bw_peer_proven(e, u->peer); /* it has got the PULL */
	if (!u->ended)
		bw_duplex_received(e, added);
	bw_credit_taken(e, u->peer, added);
	if (u->received == u->len)
		bw_pull_end(e, u, 0);
}

int bw_pull_data(struct bw_engine *e, struct bw_peer *p, const struct bw_rx_frame *f,
		 const struct bw_part_bulk *w, uint32_t at)
{
	struct bw_pull *u = bw_pull_get(e, w->id);
	uint64_t lo = w->offset, hi = lo + w->part.plen;

	if (!u || u->peer != p || u->ended)
		e->count.drop[BW_DROP_STALE]++;
	if (!u || u->peer != p)
		return 0; /* its credit was given back when the pull ended */
	if (!w->part.plen || hi < lo || hi > u->len)
		return -BW_DROP_MALFORMED;
	if (bw_spans_cover(u->span, u->nspans, lo, hi))
		return 0;
	if (!bw_spans_fit_whole(u->span, u->nspans, BW_MSG_SPANS, lo, hi))
		return -BW_DROP_RANGES;
	if (!bw_credit_covers(p, w->part.plen))
		return -BW_DROP_CREDIT;
	if (!u->ended && e->ops->place(e->host, u->buf, u->buf_off + lo, f, at, w->part.plen,
				       p->checksum, w->part.crc))
		return -BW_DROP_DATA;
	bw_pull_count(e, u, lo, hi);
	return 0;
}
