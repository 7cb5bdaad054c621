/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The common frames that come, in a straight line: a message, a segment of one or a piece of a
 * pull, alone in its frame, in order, on a path where nothing is missing. What such a frame looks
 * like is foreseen ("header prediction", Jacobson 1988); whatever is not so is left to recv.c,
 * which also handles all this, and nothing is changed before that is certain.
 */
#include "ack.h"
#include "contact.h"
#include "duplex.h"
#include "event.h"
#include "path.h"
#include "peer.h"
#include "pull.h"
#include "recv.h"
#include "reliable.h"
#include "single.h"
#include "submit.h"

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
	flow = bw_peer_flow_find(e, p, s->msg.dst_ep, s->msg.src_ep);
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
		bw_ack_note(e, p, t, t->rx.got.base++, 1, f->mark, s->h.flags & BW_HDR_ACK_NOW);
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
	    !bw_single_right(e, p, t, s, head))
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
