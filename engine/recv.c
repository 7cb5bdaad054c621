/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Received DATA and ACK frames. The header's check is verified over every fixed part before
 * anything is believed; a packet is acknowledged only when all its parts were taken, so that
 * whatever could not be (no buffer, damaged payload) comes again.
 */
#include "ack.h"
#include "contact.h"
#include "credit.h"
#include "duplex.h"
#include "event.h"
#include "farewell.h"
#include "keys.h"
#include "path.h"
#include "peer.h"
#include "pull.h"
#include "queue.h"
#include "recv.h"
#include "reliable.h"
#include "single.h"

#define BW_PARTS_MAX 64 /* parts of one frame that are believed */

uint64_t bw_unwrap(uint64_t near, uint32_t wire)
{
	int32_t diff = (int32_t)(wire - (uint32_t)near);

	if (diff < 0 && near < (uint64_t) - (int64_t)diff)
		return 0; /* before the first number: nobody sent that */
	return near + (uint64_t)(int64_t)diff;
}

/* What the check of a frame covers, piece by piece: by CRC, or with a key by a tag of all of it. */
struct bw_covered {
	struct bw_engine *e;
	const uint8_t *key; /* NULL: CRC */
	uint64_t over;	    /* as in bw_key_tag() */
	uint32_t crc, len;
	uint64_t head[BW_HEAD_MAX / 8];
};

/* False: more than a frame's head may be. */
static bool bw_covered_add(struct bw_covered *c, const void *p, uint32_t n)
{
	if (!BW_UNLIKELY(c->key)) {
		c->crc = bw_ops(c->e)->crc32c(c->crc, p, n);
		return true;
	}
	if (n > sizeof(c->head) - c->len)
		return false;
	memcpy((uint8_t *)c->head + c->len, p, n);
	c->len += n;
	return true;
}

/* The header with its check field zero. */
static void bw_covered_begin(struct bw_covered *c, struct bw_engine *e, const struct bw_rx_frame *f,
			     const uint8_t *key, uint64_t over)
{
	struct bw_hdr h;

	memcpy(&h, f->head, sizeof(h));
	h.hcrc = 0;
	c->e = e;
	c->key = key;
	c->over = over;
	c->crc = c->len = 0;
	bw_covered_add(c, &h, sizeof(h));
}

static bool bw_covered_right(struct bw_covered *c, const struct bw_hdr *h)
{
	if (!BW_UNLIKELY(c->key))
		return c->crc == h->hcrc;
	return bw_key_tag(c->e, c->key, (struct bw_hdr *)c->head, c->len, c->over) ==
	       ((uint64_t)h->token << 32 | h->hcrc);
}

static bool bw_recv_intact(struct bw_engine *e, const struct bw_rx_frame *f, const uint8_t *key,
			   uint64_t over, uint32_t fixed)
{
	const struct bw_hdr *h = f->head;
	struct bw_covered c;

	if (fixed > f->head_len || fixed > f->len || sizeof(*h) + h->len != fixed)
		return false;
	bw_covered_begin(&c, e, f, key, over);
	return bw_covered_add(&c, h + 1, fixed - sizeof(*h)) && bw_covered_right(&c, h);
}

bool bw_recv_head_ok(struct bw_engine *e, const struct bw_rx_frame *f, uint32_t fixed)
{
	return bw_recv_intact(e, f, NULL, 0, fixed);
}

/* What the tag of a peer's ACK or BYE covers beside it: where its numbers are those of now. */
static uint64_t bw_recv_over(struct bw_peer *p, const struct bw_hdr *h)
{
	const struct bw_ackblk *b = (const struct bw_ackblk *)(h + 1);
	const struct bw_path *t = bw_peer_path(p, h->path);
	uint64_t ack = 0, floor = 0;

	if (h->len < sizeof(*b))
		return 0; /* a BYE that acknowledges nothing */
	if (t) {
		ack = b->flags & BW_ACKBLK_NO_ACK ? 0 : bw_unwrap(t->pn_next, b->ack);
		floor = bw_unwrap(t->rx.got.base, b->floor);
	}
	return bw_key_over_ack(ack, floor, bw_credit_whole(p, b->credit));
}

int bw_recv_peers_head(struct bw_engine *e, const struct bw_rx_frame *f, struct bw_peer *p,
		       uint32_t fixed)
{
	bool keyed = p && p->keyed;

	/* Nobody here could check the tag of who is gone. */
	if (e->cfg.keyed && !bw_contact_shows(p, f->head))
		return -BW_DROP_HANDLE;
	if (fixed > f->head_len)
		return -BW_DROP_HEADER;
	return bw_recv_intact(e, f, keyed ? p->keys->rx.tag : NULL,
			      keyed ? bw_recv_over(p, f->head) : 0, fixed)
		       ? 0
		       : -BW_DROP_HEADER;
}

/* Where the next part of a DATA frame lies; `at` is its start, `pay` that of its payload. */
struct bw_walk {
	const struct bw_rx_frame *f;
	uint32_t at, pay, end;
	const struct bw_part *part;
};

/* 1: there is a part, 0: the end, negative: malformed. */
static int bw_walk_next(struct bw_walk *w)
{
	uint32_t size;

	w->at = w->part ? (w->pay + w->part->plen + 7) & ~7u : (uint32_t)BW_DATA_HEAD;
	if (w->at >= w->end)
		return 0;
	if (w->at + sizeof(struct bw_part) > w->end ||
	    w->at + sizeof(struct bw_part) > w->f->head_len)
		return -BW_DROP_MALFORMED;
	w->part = (const struct bw_part *)((const uint8_t *)w->f->head + w->at);
	size = bw_part_bytes(w->part->kind);
	w->pay = w->at + size;
	if (!size || w->pay > w->f->head_len || w->pay + w->part->plen > w->end)
		return -BW_DROP_MALFORMED;
	return 1;
}

/* Structure and header check of a DATA frame; `over` as in bw_key_tag(). */
static int bw_recv_verify(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h,
			  const uint8_t *key, uint64_t over)
{
	struct bw_walk w = {.f = f, .end = sizeof(*h) + h->len};
	const uint8_t *head = f->head;
	uint32_t from = sizeof(*h), parts = 0;
	struct bw_covered c;
	int r;

	if (h->len < sizeof(struct bw_ackblk) || w.end > f->len)
		return -BW_DROP_SHORT;
	bw_covered_begin(&c, e, f, key, over);
	while ((r = bw_walk_next(&w)) > 0) {
		if (++parts > BW_PARTS_MAX)
			return -BW_DROP_MALFORMED;
		if (!bw_covered_add(&c, head + from, w.pay - from))
			return -BW_DROP_MALFORMED;
		from = w.pay + w.part->plen;
	}
	if (r < 0)
		return r;
	if (from < w.end) { /* no part at all, or padding behind the last one */
		if (w.end > f->head_len || !bw_covered_add(&c, head + from, w.end - from))
			return -BW_DROP_MALFORMED;
	}
	return bw_covered_right(&c, h) ? 0 : -BW_DROP_HEADER;
}

/* The peer that sent the frame, known and alive; else the reason to drop it (and refuse it). */
static int bw_recv_peer(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h,
			struct bw_peer **out, struct bw_path **path)
{
	struct bw_peer *p;

	p = bw_peer_get(e, h->conn);
	if (!bw_contact_shows(p, h)) {
		if (h->type == BW_FRAME_DATA)
			bw_farewell_unknown(e, f, h);
		return -BW_DROP_HANDLE;
	}
	*path = bw_peer_path(p, h->path);
	if (!p->conn || !*path)
		return -BW_DROP_EARLY;
	if (!bw_link_same(&f->from, &(*path)->to))
		return -BW_DROP_ADDRESS;
	if (!p->confirmed && !p->doubted) {
		p->confirmed = true;
		bw_path_guess(e, *path);
		bw_path_up(e, p, *path);
		bw_peer_proven(e, p); /* it has got our HELLO */
	}
	*out = p;
	return 0;
}

static void bw_rxmsg_push(struct bw_engine *e, struct bw_flow *flow, struct bw_rxmsg *m)
{
	flow->rx_next++;
	bw_event_push(e, &m->ev, BW_EV_MESSAGE);
}

BW_WITHIN void bw_flow_deliver(struct bw_engine *e, struct bw_flow *flow)
{
	while (!bw_list_empty(&flow->rx)) {
		struct bw_rxmsg *m = bw_first(&flow->rx, struct bw_rxmsg, queue);

		if (m->id != flow->rx_next || m->received != m->total)
			return;
		bw_rxmsg_push(e, flow, bw_queue_take(e, flow));
	}
}

bool bw_flow_drop_one(struct bw_engine *e, struct bw_flow *flow)
{
	struct bw_rxmsg *m;

	if (bw_list_empty(&flow->rx))
		return false;
	m = bw_queue_take(e, flow);
	if (m->buf)
		bw_ops(e)->buf_put(e->host, m->buf);
	bw_slab_free(&e->rxmsgs, m);
	return true;
}

static struct bw_rxmsg *bw_rxmsg_new(struct bw_engine *e, struct bw_peer *p,
				     const struct bw_part_msg *w)
{
	struct bw_rxmsg *m = bw_slab_alloc(&e->rxmsgs);

	if (!m)
		return NULL;
	m->ev.type = 0;
	bw_list_init(&m->queue);
	m->peer = p;
	m->peer_handle = p->handle;
	m->id = w->id;
	m->tag = w->tag;
	m->imm = w->imm;
	m->total = w->total;
	m->buf = 0;
	m->received = 0;
	m->frame_off = 0;
	m->nspans = 0;
	m->dst_ep = w->dst_ep;
	m->src_ep = w->src_ep;
	m->code = w->part.code;
	p->rx_used += bw_credit_charge(w->total, e->cfg.charge_min);
	return m;
}

static void bw_rxmsg_undo(struct bw_engine *e, struct bw_rxmsg *m)
{
	m->peer->rx_used -= bw_credit_charge(m->total, e->cfg.charge_min);
	bw_slab_free(&e->rxmsgs, m);
}

/* Where a message of several frames is put together; its receiver may have a place for it if all
 * that was sent before has been told of. */
static uint64_t bw_recv_buffer(struct bw_engine *e, const struct bw_peer *p,
			       const struct bw_flow *flow, const struct bw_part_msg *w)
{
	bool next = w->id == flow->rx_next;
	uint64_t buf = 0;

	if (bw_ops(e)->buf_for && next && !e->ev_first) {
		bw_told_message(e, p, w);
		buf = bw_ops(e)->buf_for(e->host, &e->told);
	}
	return buf ? buf : bw_ops(e)->buf_get(e->host, p->handle, w->total, next);
}

/* The common case: the whole message lies in this frame, and its turn has come. */
static int bw_recv_whole(struct bw_engine *e, struct bw_peer *p, struct bw_flow *flow,
			 const struct bw_rx_frame *f, const struct bw_part_msg *w, uint32_t at)
{
	struct bw_rxmsg *m;

	if (w->part.plen && p->checksum &&
	    bw_ops(e)->place(e->host, 0, 0, f, at, w->part.plen, true, w->part.crc))
		return -BW_DROP_DATA;
	m = bw_rxmsg_new(e, p, w);
	if (!m)
		return -BW_DROP_NO_BUFFER;
	m->received = m->total;
	m->frame_off = at;
	bw_duplex_received(e, m->total);
	bw_rxmsg_push(e, flow, m);
	bw_flow_deliver(e, flow);
	return 0;
}

/* The arriving message with this number, or the place in the queue before which it belongs. */
static struct bw_rxmsg *bw_flow_find(struct bw_engine *e, struct bw_flow *flow, uint64_t id,
				     struct bw_list **before)
{
	struct bw_rxmsg *last = bw_entry(flow->rx.prev, struct bw_rxmsg, queue);

	*before = &flow->rx;
	if (bw_list_empty(&flow->rx) || last->id < id)
		return NULL;
	return last->id == id ? last : bw_queue_find(e, flow, id, before);
}

struct bw_rxmsg *bw_recv_arriving(struct bw_engine *e, struct bw_peer *p,
				  const struct bw_part_msg *w)
{
	struct bw_flow *flow = bw_peer_flow_find(e, p, w->dst_ep, w->src_ep);
	struct bw_list *before;

	return flow ? bw_flow_find(e, flow, w->id, &before) : NULL;
}

BW_WITHIN void bw_recv_placed(struct bw_engine *e, struct bw_rxmsg *m, uint64_t lo, uint64_t hi)
{
	uint64_t added = bw_spans_add(m->span, &m->nspans, lo, hi);

	m->received += added;
	m->peer->arrived = e->now;
	bw_duplex_received(e, added);
}

static int bw_recv_segment(struct bw_engine *e, struct bw_peer *p, struct bw_flow *flow,
			   const struct bw_rx_frame *f, const struct bw_part_msg *w, uint32_t at)
{
	uint64_t lo = w->offset, hi = lo + w->part.plen;
	struct bw_list *before;
	struct bw_rxmsg *m = bw_flow_find(e, flow, w->id, &before);

	if (!m && !bw_credit_covers(p, bw_credit_charge(w->total, e->cfg.charge_min)))
		return -BW_DROP_CREDIT;
	if (!m && w->id == flow->rx_next && w->part.plen == w->total)
		return bw_recv_whole(e, p, flow, f, w, at);
	if (!m) {
		/* The next one needs no index, as it is the first: so the rest can always go on. */
		if (!bw_queue_room(e, flow) && w->id != flow->rx_next)
			return -BW_DROP_NO_BUFFER;
		m = bw_rxmsg_new(e, p, w);
		if (!m)
			return -BW_DROP_NO_BUFFER;
		m->buf = w->total ? bw_recv_buffer(e, p, flow, w) : 0;
		if (w->total && !m->buf) {
			bw_rxmsg_undo(e, m);
			return -BW_DROP_NO_BUFFER;
		}
		bw_queue_add(flow, m, before);
		p->arrived = e->now;
		if (!p->arriving++)
			bw_peer_sooner(e, p, e->now + e->cfg.dead_ns / 8);
	}
	if (m->total != w->total)
		return -BW_DROP_MALFORMED;
	if (w->part.plen && !bw_spans_cover(m->span, m->nspans, lo, hi)) {
		if (!bw_spans_fit_whole(m->span, m->nspans, BW_MSG_SPANS, lo, hi))
			return -BW_DROP_RANGES;
		if (bw_ops(e)->place(e->host, m->buf, lo, f, at, w->part.plen, p->checksum,
				     w->part.crc))
			return -BW_DROP_DATA;
		bw_recv_placed(e, m, lo, hi);
	}
	bw_flow_deliver(e, flow);
	return 0;
}

/* The flow of a message; one that its sender opens is made, while it has not opened too many. */
static struct bw_flow *bw_recv_flow(struct bw_engine *e, struct bw_peer *p,
				    const struct bw_part_msg *w)
{
	struct bw_flow *flow = bw_peer_flow_find(e, p, w->dst_ep, w->src_ep);

	if (flow || p->flows_opened == BW_FLOWS_MAX)
		return flow;
	flow = bw_peer_flow(e, p, w->dst_ep, w->src_ep);
	p->flows_opened += flow != NULL;
	return flow;
}

static bool bw_recv_too_long(const struct bw_engine *e, uint64_t total)
{
	return BW_UNLIKELY(total > BW_EAGER_LIMIT) &&
	       (total > BW_LONG_LIMIT || !(e->cfg.features & BW_FEATURE_LONG));
}

int bw_recv_message(struct bw_engine *e, struct bw_peer *p, const struct bw_rx_frame *f,
		    const struct bw_part_msg *w, uint32_t at)
{
	struct bw_flow *flow;

	if (bw_recv_too_long(e, w->total) || w->offset > w->total ||
	    w->part.plen > w->total - w->offset || (w->total && !w->part.plen) ||
	    w->dst_ep == BW_EP_CONTROL || w->src_ep == BW_EP_CONTROL)
		return -BW_DROP_MALFORMED;
	flow = bw_recv_flow(e, p, w);
	if (!flow)
		return -BW_DROP_NO_BUFFER;
	if (w->id < flow->rx_next)
		return 0; /* delivered before */
	if (w->id - flow->rx_next >= BW_FLOW_WINDOW)
		return -BW_DROP_WINDOW;
	return bw_recv_segment(e, p, flow, f, w, at);
}

/* Control messages act in any order, once: a window of seen numbers outlives them [RFC 6479]. */
static int bw_recv_control(struct bw_engine *e, struct bw_peer *p, const struct bw_part_msg *w)
{
	uint64_t *word = &p->control_seen[w->id % BW_CONTROL_MAX / 64], bit = 1ull << w->id % 64;
	int r = 0;

	if (w->id < p->control_seen_base)
		return 0;
	if (w->id - p->control_seen_base >= BW_CONTROL_MAX)
		return -BW_DROP_WINDOW;
	if (*word & bit)
		return 0;
	if (w->part.kind == BW_PART_PULL)
		r = bw_pull_request(e, p, w);
	else
		bw_pull_error(e, p, w);
	if (r)
		return r;
	*word |= bit;
	for (;;) {
		uint64_t base = p->control_seen_base;

		word = &p->control_seen[base % BW_CONTROL_MAX / 64];
		if (!(*word & 1ull << base % 64))
			return 0;
		*word &= ~(1ull << base % 64);
		p->control_seen_base++;
	}
}

static int bw_recv_part(struct bw_engine *e, struct bw_peer *p, const struct bw_walk *w)
{
	switch (w->part->kind) {
	case BW_PART_MESSAGE:
		return bw_recv_message(e, p, w->f, (const struct bw_part_msg *)w->part, w->pay);
	case BW_PART_PULL:
	case BW_PART_PULL_ERROR:
		return bw_recv_control(e, p, (const struct bw_part_msg *)w->part);
	case BW_PART_BULK:
		return bw_pull_data(e, p, w->f, (const struct bw_part_bulk *)w->part, w->pay);
	}
	return 0; /* PAD */
}

static int bw_recv_parts(struct bw_engine *e, struct bw_peer *p, const struct bw_rx_frame *f,
			 const struct bw_hdr *h)
{
	struct bw_walk w = {.f = f, .end = sizeof(*h) + h->len - p->trailer};
	int r, worst = 0;

	while (bw_walk_next(&w) > 0) {
		r = bw_recv_part(e, p, &w);
		if (r)
			worst = r;
	}
	return worst;
}

/* What the tag of a peer's DATA covers beside it. */
static uint64_t bw_recv_over_data(const struct bw_peer *p, const struct bw_rx_frame *f, uint64_t pn)
{
	const struct bw_ackblk *b = (const void *)((const struct bw_hdr *)f->head + 1);

	if (f->head_len < BW_DATA_HEAD)
		return 0; /* it is too short anyway */
	return bw_key_over_data(pn, bw_credit_whole(p, b->credit));
}

/* The same of a sealed frame. The tag of what is shown comes first: whoever has not the key, or
 * sends a packet again, makes nobody open it. The latter is dropped by bw_recv_data(). */
static int bw_recv_unseal(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h,
			  const struct bw_peer *p, const struct bw_path *t, uint64_t pn)
{
	const struct bw_seal_by by = {.key = p->keys->rx.seal, .pn = pn};
	struct bw_walk w = {.f = f, .end = sizeof(*h) + h->len - BW_SEAL_TAG};
	struct bw_covered c;
	uint32_t parts = 0;
	int r;

	if (h->len < sizeof(struct bw_ackblk) + BW_SEAL_TAG || f->head_len < BW_DATA_HEAD)
		return -BW_DROP_SHORT;
	bw_covered_begin(&c, e, f, p->keys->rx.tag, bw_recv_over_data(p, f, pn));
	bw_covered_add(&c, h + 1, sizeof(struct bw_ackblk));
	if (!bw_covered_right(&c, h))
		return -BW_DROP_HEADER;
	if (bw_pnset_has(&t->rx.got, pn))
		return 0;
	if (bw_ops(e)->unseal(e->host, f, w.end, &by))
		return -BW_DROP_SEAL;
	while ((r = bw_walk_next(&w)) > 0)
		if (++parts > BW_PARTS_MAX)
			return -BW_DROP_MALFORMED;
	return r;
}

/* The same where there is a key: the peer is to be found first, and what nobody here can check is
 * refused. */
static int bw_recv_verify_tag(struct bw_engine *e, const struct bw_rx_frame *f,
			      const struct bw_hdr *h)
{
	struct bw_peer *p = bw_peer_get(e, h->conn);
	struct bw_path *t;
	uint64_t pn;

	if (!bw_contact_shows(p, h)) {
		bw_farewell_unknown(e, f, h);
		return -BW_DROP_HANDLE;
	}
	t = bw_peer_path(p, h->path);
	if (!p->keyed || !t)
		return -BW_DROP_EARLY;
	pn = bw_unwrap(t->rx.any ? t->rx.max + 1 : 1, h->pn);
	return p->trailer ? bw_recv_unseal(e, f, h, p, t, pn)
			  : bw_recv_verify(e, f, h, p->keys->rx.tag, bw_recv_over_data(p, f, pn));
}

/* A packet that is of no use: its sender may not know that it came. */
static BW_APART int bw_recv_again(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	t->rx.ack_now = true;
	bw_peer_ready(e, p);
	return -BW_DROP_DUPLICATE;
}

int bw_recv_data(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h)
{
	struct bw_peer *p;
	struct bw_path *t;
	uint64_t pn;
	int r;

	if (bw_single_received(e, f, &r))
		return r;
	r = BW_UNLIKELY(e->cfg.keyed) ? bw_recv_verify_tag(e, f, h)
				      : bw_recv_verify(e, f, h, NULL, 0);
	if (r)
		return r;
	r = bw_recv_peer(e, f, h, &p, &t);
	if (r || (BW_UNLIKELY(p->trailer) && bw_single_opened(e, f, p, t, &r)))
		return r;
	pn = bw_unwrap(t->rx.any ? t->rx.max + 1 : 1, h->pn);
	if (bw_pnset_has(&t->rx.got, pn)) /* whose acknowledgement was taken, long ago perhaps */
		return bw_recv_again(e, p, t);
	bw_ack_received(e, p, t, h, (const struct bw_ackblk *)(h + 1), NULL, NULL);
	if (BW_UNLIKELY(pn < t->rx.got.base)) /* it says itself that it was given up */
		return bw_recv_again(e, p, t);
	if (pn != t->rx.got.base &&
	    !bw_spans_fit(t->rx.got.span, t->rx.got.n, BW_PNSET_SPANS, pn, pn + 1)) {
		t->rx.ack_now = true;
		bw_peer_ready(e, p);
		return -BW_DROP_RANGES;
	}
	r = bw_recv_parts(e, p, f, h);
	if (!r) {
		bw_pnset_add(&t->rx.got, pn);
		bw_ack_note(e, p, t, pn, 1, f->mark, h->flags & BW_HDR_ACK_NOW);
	}
	bw_peer_schedule(e, p);
	return r;
}

int bw_recv_ack_body(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h)
{
	const struct bw_ack *a = (const struct bw_ack *)((const struct bw_ackblk *)(h + 1) + 1);
	uint32_t len = sizeof(struct bw_ackblk) + sizeof(*a);
	int r;

	if (h->len < len)
		return -BW_DROP_SHORT;
	r = bw_recv_peers_head(e, f, bw_peer_get(e, h->conn), sizeof(*h) + h->len);
	if (r)
		return r;
	if (h->len < len + a->ranges * sizeof(struct bw_range) || a->ranges > BW_ACK_RANGES_MAX)
		return -BW_DROP_MALFORMED;
	return 0;
}

void bw_recv_ack_taken(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
		       const struct bw_hdr *h)
{
	const struct bw_ackblk *b = (const struct bw_ackblk *)(h + 1);
	const struct bw_ack *a = (const struct bw_ack *)(b + 1);

	bw_ack_received(e, p, t, h, b, a, (const struct bw_range *)(a + 1));
}

int bw_recv_ack(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h)
{
	struct bw_peer *p;
	struct bw_path *t;
	int r = bw_recv_ack_body(e, f, h);

	if (!r)
		r = bw_recv_peer(e, f, h, &p, &t);
	if (r)
		return r;
	e->count.acks_rx++;
	bw_recv_ack_taken(e, p, t, h);
	bw_peer_schedule(e, p);
	return 0;
}
