/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Acknowledgements. Packets are acknowledged, per path: gap-free ones by one number that rides on
 * every DATA frame, the others as ranges in ACK frames. An ACK frame is sent at once when something
 * is missing or somebody waits, else after a few packets or a short delay. Of programs that answer
 * what they receive, the answer is to take the acknowledgement along: so even after a few packets
 * it waits for a moment where the host says so.
 */
#include "ack.h"
#include "carry.h"
#include "contact.h"
#include "credit.h"
#include "duplex.h"
#include "keys.h"
#include "late.h"
#include "loss.h"
#include "path.h"
#include "peer.h"
#include "recv.h"
#include "reliable.h"
#include "send.h"
#include "stripe.h"

#define BW_ACK_PACKETS_GAPS 2 /* packets per acknowledgement while something is missing */
/* Packets by which a frame's acknowledgement may be behind another one's for its count of marks to
 * be believed: less than half of what 16 bits count. */
#define BW_ACK_LATE 16384U

void bw_ack_note(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint64_t pn,
		 uint32_t packets, uint32_t marks, bool now)
{
	struct bw_rxset *x = &t->rx;
	bool gap = pn != (x->any ? x->max : 0) + packets;

	if (!x->any || pn > x->max) {
		x->max = pn;
		x->max_ns = e->now;
	}
	x->any = true;
	x->unacked += packets;
	x->marks += marks;
	e->count.marks_rx += marks;
	if (now || gap || x->unacked >= (x->got.n ? BW_ACK_PACKETS_GAPS : e->ack_packets))
		x->ack_now = true;
	if (x->ack_now)
		bw_peer_ready(e, p);
	else
		x->ack_at = bw_min_u64(x->ack_at,
				       e->now + (x->unacked < BW_ACK_PACKETS ? e->cfg.ack_delay_ns
									     : e->cfg.ack_soon_ns));
}

void bw_ack_block(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, struct bw_ackblk *b)
{
	b->ack = (uint32_t)(t->rx.got.base - 1);
	b->floor = (uint32_t)t->floor;
	b->credit = (uint32_t)(p->rx_limit / BW_CREDIT_UNIT);
	b->flags = (e->pressure ? BW_ACKBLK_PRESSURE : 0) | (t->rx.any ? 0 : BW_ACKBLK_NO_ACK);
	b->marks = t->rx.marks;
	bw_credit_told(p);
	if (!t->rx.got.n)
		bw_rxset_told(&t->rx);
}

void bw_ack_whole(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, struct bw_ackblk *b,
		  struct bw_ack *a)
{
	bw_ack_block(e, p, t, b);
	memset(a, 0, sizeof(*a));
	a->delay_ns = (uint32_t)bw_min_u64(e->now - t->rx.max_ns, UINT32_MAX);
	a->largest = (uint32_t)t->rx.max;
}

uint64_t bw_ack_over(const struct bw_peer *p, const struct bw_path *t)
{
	return bw_key_over_ack(t->rx.any ? t->rx.got.base - 1 : 0, t->floor,
			       p->rx_told / BW_CREDIT_UNIT);
}

uint64_t bw_ack_over_data(const struct bw_peer *p, uint64_t pn)
{
	return bw_key_over_data(pn, p->rx_told / BW_CREDIT_UNIT);
}

uint32_t bw_ack_write(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint8_t type,
		      void *head)
{
	struct bw_hdr *h = head;
	struct bw_ackblk *b = (struct bw_ackblk *)(h + 1);
	struct bw_ack *a = (struct bw_ack *)(b + 1);
	struct bw_range *r = (struct bw_range *)(a + 1);
	uint64_t from = t->rx.got.base;
	uint32_t i, len;

	bw_hdr_fill(e, p, h, type);
	h->path = t->no;
	bw_ack_whole(e, p, t, b, a);
	a->ranges = (uint16_t)t->rx.got.n;
	for (i = 0; i < t->rx.got.n; i++) {
		r[i].gap = (uint32_t)(t->rx.got.span[i].lo - from);
		r[i].run = (uint32_t)(t->rx.got.span[i].hi - t->rx.got.span[i].lo);
		from = t->rx.got.span[i].hi;
	}
	bw_rxset_told(&t->rx);
	len = (uint32_t)((uint8_t *)(r + a->ranges) - (uint8_t *)h);
	bw_head_seal(e, bw_peer_tag_key(p), bw_ack_over(p, t), h, len, len);
	e->count.acks_tx += type == BW_FRAME_ACK;
	return len;
}

void bw_ack_build(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, struct bw_tx_frame *f)
{
	f->to = t->to;
	f->segments = 0;
	f->head_len = f->len = bw_ack_write(e, p, t, BW_FRAME_ACK, f->head);
}

bool bw_ack_owed(const struct bw_peer *p, const struct bw_path *t)
{
	return p->confirmed && (t->rx.ack_now || t->rx.ack_at != BW_NEVER);
}

bool bw_ack_frame(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f)
{
	uint8_t i;

	if (!p->confirmed) /* it would take this for the confirmation, of whatever conversation */
		return false;
	for (i = 0; i < p->npaths; i++) {
		if (!p->path[i]->rx.ack_now)
			continue;
		bw_ack_build(e, p, p->path[i], f);
		return true;
	}
	return false;
}

bool bw_ack_urgent(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f)
{
	const struct bw_path *way = bw_carry_message(e, p, bw_send_length(e, p));
	uint8_t i;

	for (i = 0; p->confirmed && i < p->npaths; i++) {
		struct bw_path *t = p->path[i];

		if (!t->rx.ack_now || (t == way && !t->rx.got.n))
			continue;
		bw_ack_build(e, p, t, f);
		return true;
	}
	return false;
}

/* What one frame acknowledges for the first time. */
struct bw_acked {
	uint64_t bytes, largest, largest_sent_ns;
	uint32_t packets;
};

/* Records from *at on, up to the end of [lo, hi), are acknowledged; *at moves behind them. */
static void bw_ack_span(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
			struct bw_list **at, uint64_t lo, uint64_t hi, struct bw_acked *sum)
{
	while (*at != &t->flight) {
		struct bw_record *r = bw_entry(*at, struct bw_record, list);

		if (r->pn >= hi)
			return;
		*at = r->list.next;
		if (r->pn < lo)
			continue;
		if (r->pn != sum->largest)
			sum->packets++;
		sum->bytes += r->frame_len;
		sum->largest = r->pn;
		sum->largest_sent_ns = r->sent_ns;
		bw_duplex_landed(e, t, r->frame_len);
		if (r->frame_len && r->kind != BW_OWNED_PAD)
			bw_pmtu_acked(&t->pmtu, r->frame_len);
		bw_record_acked(e, p, t, r);
	}
}

/* Packets that were concluded lost and now turn out to have arrived: wait longer next time. What
 * they carried need not be sent again. */
static void bw_ack_spurious(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint64_t lo,
			    uint64_t hi)
{
	uint32_t i;

	if (BW_LIKELY(!t->lost.n))
		return;
	for (i = 0; i < BW_LOST_RING; i++) {
		uint64_t pn = t->lost.ring[i].pn;

		if (!pn || pn < lo || pn >= hi)
			continue;
		t->lost.ring[i].pn = 0;
		e->count.spurious++;
		bw_path_answered(e, p, t);
		/* This is how long to wait; other samples, of frames acknowledged at once, hide
		 * it. */
		bw_rtt_sample(&t->rtt, e->now - t->lost.ring[i].sent_ns);
		if (pn < t->cc.recovery_pn)
			bw_window_undo(t);
		if (t->acked_max > pn && t->acked_max - pn >= t->reorder)
			t->reorder = (uint16_t)bw_min_u64(t->acked_max - pn + 1, BW_REORDER_MAX);
		t->reorder_pn = t->pn_next;
		bw_late_acked(e, p, t, pn);
	}
}

static void bw_ack_rtt(struct bw_engine *e, struct bw_path *t, const struct bw_acked *sum,
		       const struct bw_ack *a)
{
	uint64_t sample = e->now - sum->largest_sent_ns;

	if (a && (uint32_t)sum->largest == a->largest) {
		if (sample > a->delay_ns)
			sample -= a->delay_ns;
		bw_rtt_sample(&t->rtt, sample);
		bw_window_sample(t, sample, sum->largest);
	} else if (sample < t->rtt.srtt || !t->rtt.srtt) {
		/* The peer's program took its time to answer: an upper bound only. */
		bw_rtt_sample(&t->rtt, sample);
	}
}

/* What the acknowledged packets mean for the path. */
static void bw_ack_progress(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
			    uint16_t marks, const struct bw_ack *a, const struct bw_acked *sum)
{
	if (sum->packets) {
		bw_path_answered(e, p, t);
		if (t->pto_count)
			bw_lost_heard(&t->lost, t->pto_since, e->now);
		t->pto_count = 0;
		t->acked_max = bw_max_u64(t->acked_max, sum->largest);
		bw_ack_rtt(e, t, sum, a);
		bw_pace_acked(e, t, sum->bytes, sum->largest);
		bw_window_acked(e, t, sum->bytes, sum->largest);
		if (p->striped)
			bw_stripe_acked(e, p, t, sum->bytes);
		else if (bw_carry_contested(p))
			bw_carry_acked(e, p, t, sum->bytes);
		bw_loss_detect(e, p, t);
	}
	if (bw_cc_marked(&t->cc, marks))
		bw_window_marks(e, t, marks, sum->packets);
	bw_loss_floor(e, p, t);
}

/* Was the frame overtaken, or is it an old one that comes again: did the peer give less credit when
 * it left? Its word of pressure is that of then. */
static bool bw_ack_overtaken(const struct bw_peer *p, const struct bw_ackblk *b)
{
	return bw_credit_whole(p, b->credit) < p->tx_limit / BW_CREDIT_UNIT;
}

void bw_ack_received(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
		     const struct bw_hdr *h, const struct bw_ackblk *b, const struct bw_ack *a,
		     const struct bw_range *r)
{
	struct bw_acked sum = {0};
	struct bw_list *at = t->flight.next;
	uint64_t lo = t->floor, hi = bw_unwrap(t->pn_next, b->ack) + 1;
	bool late = hi + BW_ACK_LATE < t->acked_max, overtaken = bw_ack_overtaken(p, b);
	bool news = bw_credit_limit(p, b->credit);
	uint32_t i;

	if (!overtaken)
		p->pressed = b->flags & BW_ACKBLK_PRESSURE;
	bw_pnset_floor(&t->rx.got, bw_unwrap(t->rx.got.base, b->floor));
	if (!(b->flags & BW_ACKBLK_NO_ACK) && hi <= t->pn_next) {
		bw_ack_spurious(e, p, t, lo, hi);
		bw_ack_span(e, p, t, &at, 0, hi, &sum);
		for (i = 0; a && i < a->ranges; i++) {
			lo = hi + r[i].gap;
			hi = lo + r[i].run;
			if (hi > t->pn_next)
				break;
			bw_ack_spurious(e, p, t, lo, hi);
			bw_ack_span(e, p, t, &at, lo, hi, &sum);
		}
		bw_ack_progress(e, p, t, late ? t->cc.mark.seen : b->marks, a, &sum);
		if (a && a->ranges == BW_ACK_RANGES_MAX)
			bw_loss_settle(e, p, t);
		news |= sum.packets != 0;
	}
	if (news && !p->is_ready && !bw_peer_idle(p))
		bw_peer_ready(e, p);
}
