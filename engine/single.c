/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The common frames that come, in a straight line: a message, a segment of one or a piece of a
 * pull, alone in its frame, in order, on a path where nothing is missing. What such a frame looks
 * like is foreseen ("header prediction", Jacobson 1988); whatever is not so is left to recv.c,
 * which also handles all this, and nothing is changed before that is certain.
 */
#include "duplex.h"
#include "reliable.h"

/* The start of a DATA frame with one part. */
struct bw_single {
	struct bw_hdr h;
	struct bw_ackblk b;
	union {
		struct bw_part part;
		struct bw_part_msg msg;
		struct bw_part_bulk bulk;
	};
};

#define BW_SINGLE_FIXED (sizeof(struct bw_hdr) + sizeof(struct bw_ackblk))

BW_ASSERT_LAYOUT(bw_single, BW_MESSAGE_HEAD);

/* Bytes of the frame before the payload; 0: it carries something else. */
static BW_WITHIN uint32_t bw_single_head(const struct bw_rx_frame *f, uint32_t trailer)
{
	const struct bw_single *s = f->head;
	uint32_t size = BW_SINGLE_FIXED;

	if (f->head_len < BW_SINGLE_FIXED + sizeof(s->part))
		return 0;
	if (s->part.kind == BW_PART_MESSAGE)
		size += sizeof(s->msg);
	else if (s->part.kind == BW_PART_BULK)
		size += sizeof(s->bulk);
	else
		return 0;
	return f->head_len >= size && s->h.len == size - sizeof(s->h) + s->part.plen + trailer
		       ? size
		       : 0;
}

static bool bw_single_genuine(struct bw_engine *e, const struct bw_peer *p, const struct bw_path *t,
			      const struct bw_single *s, uint32_t head)
{
	struct bw_single copy;

	if (p->trailer) /* it is to be opened first, and comes again */
		return false;
	memcpy(&copy, s, head);
	return bw_key_tag(e, p->keys->rx.tag, &copy.h, head, t->rx.got.base) ==
	       ((uint64_t)s->h.token << 32 | s->h.hcrc);
}

static BW_WITHIN bool bw_single_intact(struct bw_engine *e, const struct bw_single *s,
				       uint32_t head)
{
	const uint8_t *from = (const uint8_t *)s;
	uint64_t h[4]; /* the header, its check 0: the last four bytes */
	uint32_t crc, i;

	for (i = 0; i < 4; i++)
		memcpy(&h[i], from + 8 * i, 8);
	h[3] &= UINT32_MAX;
	crc = bw_ops(e)->crc32c(0, h, sizeof(h));
	return bw_ops(e)->crc32c(crc, &s->b, head - sizeof(h)) == s->h.hcrc;
}

/* Has nothing to be said of the path but that another packet came? */
static BW_WITHIN bool bw_single_smooth(const struct bw_path *t, const struct bw_single *s)
{
	return t->state == BW_PATH_UP && !t->rx.got.n && s->h.pn == (uint32_t)t->rx.got.base &&
	       (int32_t)(s->b.floor - (uint32_t)t->rx.got.base) <= 0 &&
	       !(s->b.flags & ~BW_ACKBLK_NO_ACK);
}

/* Is the acknowledgement as it mostly is: of nothing, or of the one packet under way, that carried
 * one message? */
static BW_WITHIN bool bw_single_acks(const struct bw_path *t, const struct bw_single *s)
{
	const struct bw_record *r = bw_first(&t->flight, struct bw_record, list);

	if (t->lost.n || t->carry.loaded || bw_cc_marked(&t->cc, s->b.marks))
		return false;
	return bw_list_empty(&t->flight) ||
	       (r->list.next == &t->flight && (uint32_t)r->pn == s->b.ack &&
		r->kind == BW_OWNED_MESSAGE && !t->pmtu.lost && t->reorder == BW_REORDER_MIN &&
		r->pn >= t->cc.limited_pn && t->rtt.srtt && !s->b.flags);
}

static BW_WITHIN void bw_single_acked(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
				      const struct bw_single *s)
{
	struct bw_record *r = bw_first(&t->flight, struct bw_record, list);
	struct bw_txmsg *m = NULL;

	if (!bw_single_acks(t, s)) {
		bw_ack_received(e, p, t, &s->h, &s->b, NULL, NULL);
		return;
	}
	p->pressed = false;
	bw_credit_limit(p, s->b.credit);
	t->floor = t->pn_next;
	t->loss_at = BW_NEVER;
	if (!bw_list_empty(&t->flight)) {
		m = r->obj;
		m->refs--;
		bw_duplex_landed(e, t, t->inflight);
		t->pto_count = 0;
		t->acked_max = r->pn;
		bw_path_answered(e, p, t);
		if (e->now - r->sent_ns < t->rtt.srtt) /* else the program took its time */
			bw_rtt_sample(&t->rtt, e->now - r->sent_ns);
		bw_list_init(&t->flight);
		bw_slab_free(&e->records, r);
		bw_txmsg_settle(e, m);
	}
	if (!p->is_ready && !bw_peer_idle(p))
		bw_peer_ready(e, p);
}

/* Can the message be handed over at once? */
static BW_WITHIN bool bw_single_due(const struct bw_engine *e, const struct bw_peer *p,
				    const struct bw_flow *flow, const struct bw_part_msg *w)
{
	return bw_ops(e)->message && !e->ev_first && flow && w->id == flow->rx_next &&
	       w->total == w->part.plen && !w->offset && bw_list_empty(&flow->rx) &&
	       bw_credit_covers(p, bw_credit_charge(w->total, e->cfg.charge_min));
}

static BW_WITHIN void bw_single_tell(struct bw_engine *e, struct bw_peer *p,
				     const struct bw_part_msg *w)
{
	uint64_t charge = bw_credit_charge(w->total, e->cfg.charge_min);

	p->rx_used += charge;
	bw_duplex_received(e, w->total);
	bw_duplex_received_message(e);
	bw_credit_taken(e, p, charge);
	bw_told_message(e, p, w);
	e->told.frame_off = sizeof(struct bw_single);
}

/* What recv.c does with a part. *told: the message is to be handed over. */
static BW_WITHIN int bw_single_part(struct bw_engine *e, struct bw_peer *p,
				    const struct bw_rx_frame *f, const struct bw_single *s,
				    uint32_t head, bool *told)
{
	struct bw_flow *flow;

	if (s->part.kind == BW_PART_BULK)
		return bw_pull_data(e, p, f, &s->bulk, head);
	flow = bw_peer_flow_find(p, s->msg.dst_ep, s->msg.src_ep);
	if (!bw_single_due(e, p, flow, &s->msg))
		return bw_recv_message(e, p, f, &s->msg, head);
	if (s->part.plen &&
	    bw_ops(e)->place(e->host, 0, 0, f, head, s->part.plen, p->checksum, s->part.crc))
		return -BW_DROP_DATA;
	flow->rx_next++;
	bw_single_tell(e, p, &s->msg);
	*told = true;
	return 0;
}

/* When the peer needs attention next. */
static BW_WITHIN void bw_single_plan(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
				     const struct bw_single *s)
{
	if (s->part.kind == BW_PART_BULK && (!p->ping_pause || bw_list_empty(&p->pulls))) {
		bw_peer_schedule(e, p);
		return;
	}
	if (p->waiting_since && !bw_peer_waits(p))
		p->waiting_since = 0;
	bw_peer_sooner(e, p, bw_min_u64(t->rx.ack_at, t->loss_at));
}

/* What the frame brings is taken. */
static BW_WITHIN int bw_single_take(struct bw_engine *e, const struct bw_rx_frame *f,
				    struct bw_peer *p, struct bw_path *t, uint32_t head)
{
	const struct bw_single *s = f->head;
	bool told = false;
	int r;

	bw_single_acked(e, p, t, s);
	r = bw_single_part(e, p, f, s, head, &told);
	if (!r)
		bw_ack_note(e, p, t, t->rx.got.base++, f, s->h.flags & BW_HDR_ACK_NOW);
	bw_single_plan(e, p, t, s);
	if (told)
		bw_ops(e)->message(e->host, &e->told);
	return r;
}

bool bw_single_received(struct bw_engine *e, const struct bw_rx_frame *f, int *result)
{
	const struct bw_single *s = f->head;
	uint32_t head = bw_single_head(f, 0);
	struct bw_peer *p;
	struct bw_path *t;

	if (!head)
		return false;
	p = bw_peer_get(e, s->h.conn);
	if (!bw_contact_shows(p, &s->h) || !p->confirmed || p->credit_stalled)
		return false;
	t = bw_peer_path(p, s->h.path);
	if (!t || !bw_link_same(&f->from, &t->to) || !bw_single_smooth(t, s) ||
	    !(BW_UNLIKELY(p->keyed) ? bw_single_genuine(e, p, t, s, head)
				    : bw_single_intact(e, s, head)))
		return false;
	*result = bw_single_take(e, f, p, t, head);
	return true;
}

bool bw_single_opened(struct bw_engine *e, const struct bw_rx_frame *f, struct bw_peer *p,
		      struct bw_path *t, int *result)
{
	uint32_t head = bw_single_head(f, p->trailer);

	if (!head || p->credit_stalled || !bw_single_smooth(t, f->head))
		return false;
	*result = bw_single_take(e, f, p, t, head);
	return true;
}
