/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What becomes of a sent packet's ranges: acknowledged, or sent again. A packet counts as lost when
 * later ones were acknowledged beyond the reordering window (in packets, adaptive; or in time, RFC
 * 9002 6.1.2); a lost tail is found by a probe, which is the oldest packet sent again [B4].
 */
#include "again.h"
#include "carry.h"
#include "duplex.h"
#include "event.h"
#include "late.h"
#include "loss.h"
#include "path.h"
#include "peer.h"
#include "pull.h"
#include "reliable.h"
#include "stripe.h"
#include "submit.h"

#define BW_LOST_LIFE 4 /* smoothed round trips for which a lost packet is remembered */

static void bw_record_drop(struct bw_engine *e, struct bw_record *r)
{
	bw_list_del(&r->list);
	bw_slab_free(&e->records, r);
}

void bw_record_forget(struct bw_engine *e, struct bw_record *r)
{
	bw_again_leave(r);
	bw_record_vacate(r);
	bw_record_drop(e, r);
}

void bw_record_vacate(struct bw_record *r)
{
	if (r->kind == BW_OWNED_MESSAGE)
		((struct bw_txmsg *)r->obj)->refs--;
	else if (r->kind == BW_OWNED_BULK)
		((struct bw_serve *)r->obj)->refs--;
	r->kind = BW_OWNED_MOVED;
	r->obj = NULL;
}

void bw_record_acked(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, struct bw_record *r)
{
	void *obj = r->obj;
	uint8_t kind = r->kind;
	uint32_t size = r->len;
	uint64_t pn = r->pn;

	bw_record_vacate(r); /* it was under way: it does not wait to be sent again */
	bw_record_drop(e, r);
	if (kind == BW_OWNED_MESSAGE)
		bw_txmsg_settle(e, obj);
	else if (kind == BW_OWNED_BULK)
		bw_serve_settle(e, obj);
	else if (kind == BW_OWNED_PAD)
		bw_path_probe_acked(e, p, t, size);
	else if (kind == BW_OWNED_MOVED)
		bw_late_acked(e, p, t, pn);
}

/* The range of a packet that is taken for lost, or never left, goes back to the retransmission
 * queue. */
static void bw_record_again(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
			    struct bw_record *r)
{
	bw_duplex_landed(e, t, r->frame_len);
	r->frame_len = 0;
	if (r->kind == BW_OWNED_PING) {
		bw_record_drop(e, r);
		if (p->striped)
			t->ask = true;
		else
			p->ping_due = true;
	} else if (r->kind == BW_OWNED_MOVED) {
		bw_record_drop(e, r);
	} else if (r->kind == BW_OWNED_PAD) {
		bw_record_drop(e, r);
		t->pmtu.flying = false;
	} else if (r->kind == BW_OWNED_BULK && ((struct bw_serve *)r->obj)->aborted) {
		struct bw_serve *s = r->obj;

		bw_record_forget(e, r);
		bw_serve_settle(e, s);
	} else {
		bw_list_del(&r->list);
		bw_again_add(e, p, r);
	}
	bw_peer_ready(e, p);
}

/* All records of the packet that r is the first of. */
static void bw_loss_packet(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
			   struct bw_record *r)
{
	uint64_t pn = r->pn, forgotten = bw_lost_add(&t->lost, pn, r->sent_ns, e->now);

	if (forgotten)
		bw_late_forget(e, p, t, forgotten);
	if (r->kind == BW_OWNED_PAD)
		bw_path_probe_lost(e, p, t, r->len, pn < t->acked_max);
	else
		bw_path_size_lost(e, p, t, r->frame_len);
	while (&r->list != &t->flight && r->pn == pn) {
		struct bw_list *next = r->list.next;

		bw_late_keep(e, p, t, r);
		bw_record_again(e, p, t, r);
		r = bw_entry(next, struct bw_record, list);
	}
}

void bw_loss_detect(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	uint64_t late = bw_rtt_late(&t->rtt);
	bool response = false;

	t->loss_at = BW_NEVER;
	while (!bw_list_empty(&t->flight)) {
		struct bw_record *r = bw_first(&t->flight, struct bw_record, list);
		bool pad = r->kind == BW_OWNED_PAD;
		uint64_t pn = r->pn;

		if (pn >= t->acked_max)
			break;
		if (t->acked_max - pn < t->reorder && r->sent_ns + late > e->now) {
			t->loss_at = r->sent_ns + late;
			break;
		}
		bw_loss_packet(e, p, t, r);
		if (!pad) { /* a probe that does not pass says nothing about the line */
			e->count.losses++;
			t->losses++;
			bw_window_lost(e, t, pn);
			response = true;
		}
	}
	if (!response && t->reorder > BW_REORDER_MIN && t->acked_max >= t->reorder_pn) {
		t->reorder -= (t->reorder - BW_REORDER_MIN + 63) / 64;
		t->reorder_pn = t->pn_next;
	}
}

void bw_loss_leave_path(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	bw_loss_requeue_path(e, p, t);
	bw_stripe_leave(p, t);
	t->ask = false;
	t->state = BW_PATH_TRYING;
	bw_hellos_hasten(&t->hello, e->now);
	t->hello.repeated = true; /* the first one left long ago */
	bw_event_push(e, &t->ev, BW_EV_PATH);
	bw_path_choose(e, p);
}

/* Nothing that is sent on a path is acknowledged. A busy peer answers on none: so ask on the
 * others, and leave this one only when another has answered since the first tail probe. That frames
 * of the peer come on this one means nothing: it may be cut in our direction only, or the peer have
 * moved to another address. It is asked as well, as an answer tells of such a move. If it answers,
 * if only late and to what was taken for lost, it is slower than we thought, and stays, until it is
 * silent for another pause between probes. */
static void bw_loss_doubt_path(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	bool answered = false, silent = t->answered <= t->pto_since;
	uint8_t i;

	t->hello.due = true;
	for (i = 0; i < p->npaths; i++) {
		struct bw_path *other = p->path[i];

		if (other == t || other->state != BW_PATH_UP)
			continue;
		other->hello.due = true;
		answered |= other->answered > t->pto_since;
	}
	if (!silent)
		t->pto_since = e->now;
	else if (answered && t->pto_count >= BW_PTO_LEAVE)
		bw_loss_leave_path(e, p, t);
}

void bw_loss_probe(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	struct bw_record *r = bw_first(&t->flight, struct bw_record, list);

	if (!t->pto_count++)
		t->pto_since = e->now;
	t->last_sent = e->now;
	t->probe_allow = true;
	e->count.probes++;
	if (t->pto_count == BW_PTO_PING && r->kind != BW_OWNED_PAD)
		bw_window_respond(e, t, t->pn_next);
	if (t->pto_count >= BW_PTO_PING && !p->striped)
		p->ping_due = true;
	bw_loss_packet(e, p, t, r);
	if (p->striped || bw_carry_contested(p))
		bw_stripe_doubt(e, p, t);
	if (t->pto_count >= BW_PTO_ASK)
		bw_loss_doubt_path(e, p, t);
	bw_loss_floor(e, p, t);
}

void bw_loss_requeue_path(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	while (!bw_list_empty(&t->flight))
		bw_loss_packet(e, p, t, bw_first(&t->flight, struct bw_record, list));
}

void bw_loss_requeue_packet(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint64_t pn)
{
	struct bw_list *l = t->flight.prev;

	while (l != &t->flight && bw_entry(l, struct bw_record, list)->pn == pn) {
		struct bw_record *r = bw_entry(l, struct bw_record, list);

		l = l->prev;
		bw_record_again(e, p, t, r);
	}
	bw_loss_floor(e, p, t);
}

void bw_loss_settle(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	uint32_t i;

	for (i = 0; t->lost.n && i < BW_LOST_RING; i++) {
		uint64_t pn = t->lost.ring[i].pn;

		if (!pn || pn >= t->acked_max)
			continue;
		bw_late_forget(e, p, t, pn);
		t->lost.ring[i].pn = 0;
	}
	bw_loss_floor(e, p, t);
}

void bw_loss_floor(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	uint64_t floor = t->pn_next, life = BW_LOST_LIFE * bw_rtt_smooth(&t->rtt);
	bool live = false;
	uint32_t i;

	if (!bw_list_empty(&t->flight))
		floor = bw_first(&t->flight, struct bw_record, list)->pn;
	for (i = 0; t->lost.n && i < BW_LOST_RING; i++) {
		if (!t->lost.ring[i].pn)
			continue;
		if (!t->pto_count && t->lost.ring[i].since_ns + life + BW_PTO_MIN < e->now) {
			bw_late_forget(e, p, t, t->lost.ring[i].pn);
			t->lost.ring[i].pn = 0;
			continue;
		}
		floor = bw_min_u64(floor, t->lost.ring[i].pn);
		live = true;
	}
	if (!live)
		t->lost.n = 0;
	t->floor = bw_max_u64(t->floor, floor);
}
