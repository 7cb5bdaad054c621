/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Several paths that carry pulled data together: how fast each is, which is the next to send a
 * frame, and which are silent. In the end ranges that are under way on a slow path are sent again
 * by a faster one. What each is to send: share.c.
 */
#include "carry.h"
#include "late.h"
#include "again.h"
#include "loss.h"
#include "path.h"
#include "reliable.h"
#include "send.h"
#include "stripe.h"

bool bw_stripe_together(const struct bw_engine *e, const struct bw_path *a, const struct bw_path *b)
{
	uint8_t group = e->cfg.link_group[a->to.link % 8];

	return group && group == e->cfg.link_group[b->to.link % 8];
}

uint64_t bw_stripe_rtt(const struct bw_path *t)
{
	return t->rtt.min ? t->rtt.min : BW_RTT_INITIAL;
}

uint64_t bw_stripe_rate(const struct bw_path *t)
{
	uint64_t rate = t->rate ? t->rate : t->cc.cwnd * BW_MS / bw_stripe_rtt(t);

	return bw_max_u64(rate, 1);
}

/* Time at which the last of so many bytes under way arrives, from now: half a round trip of what
 * has not been acknowledged has arrived already. */
static uint64_t bw_stripe_arrival(const struct bw_path *t, uint64_t bytes)
{
	uint64_t ns = bytes * BW_MS / bw_stripe_rate(t), rtt = bw_stripe_rtt(t);

	return ns > rtt ? ns - rtt / 2 : rtt / 2;
}

uint64_t bw_stripe_eta(const struct bw_path *t, uint64_t len)
{
	return bw_max_u64(bw_stripe_arrival(t, t->inflight + len),
			  bw_stripe_rtt(t) / 2 + len * BW_MS / bw_stripe_rate(t));
}

uint64_t bw_stripe_reach(const struct bw_path *t)
{
	if (t->pto_count >= BW_PTO_MOVE)
		return BW_NEVER;
	return bw_stripe_rtt(t) + 2ull * BW_FRAME_MIN_MTU * BW_MS / bw_stripe_rate(t);
}

bool bw_stripe_usable(const struct bw_engine *e, const struct bw_peer *p, const struct bw_path *t)
{
	return t->state == BW_PATH_UP && !t->pto_count &&
	       bw_stripe_together(e, t, p->path[p->best]);
}

bool bw_stripe_carries(const struct bw_engine *e, const struct bw_peer *p, const struct bw_path *t)
{
	return bw_stripe_usable(e, p, t) && p->path[bw_carry_instead(e, p, t)] == t;
}

/* The fastest path fills its window. On the others no longer queue than on that one is of use:
 * it would only hold up the end of messages. */
uint64_t bw_stripe_limit(const struct bw_engine *e, const struct bw_peer *p,
			 const struct bw_path *t)
{
	uint64_t rate = bw_stripe_rate(t), ns = 0;
	uint8_t i;

	for (i = 0; i < p->npaths; i++) {
		const struct bw_path *o = p->path[i];

		if (o == t || bw_stripe_rate(o) <= rate || !bw_stripe_carries(e, p, o))
			continue;
		ns = bw_max_u64(ns, o->inflight * BW_MS / bw_stripe_rate(o));
	}
	if (!ns || !t->rate)
		return t->cc.cwnd;
	ns += bw_stripe_rtt(t) * 3 / 2 + e->cfg.ack_delay_ns + BW_STRIPE_SLACK;
	return bw_min_u64(t->cc.cwnd, rate * ns / BW_MS + BW_STRIPE_FRAMES * t->pmtu.mtu);
}

static bool bw_stripe_room(const struct bw_engine *e, const struct bw_peer *p, struct bw_path *t)
{
	if (t->inflight >= t->cc.cwnd) {
		t->cc.limited_pn = t->pn_next;
		return false;
	}
	return t->inflight < bw_stripe_limit(e, p, t);
}

/* The usable path with room by which a frame would be there first, except those in `tried`. */
static struct bw_path *bw_stripe_pick(const struct bw_engine *e, struct bw_peer *p, uint32_t tried)
{
	struct bw_path *best = NULL;
	uint64_t least = 0;
	uint8_t i;

	for (i = 0; i < p->npaths; i++) {
		struct bw_path *t = p->path[i];
		uint64_t eta;

		if (tried >> i & 1 || !bw_stripe_carries(e, p, t) || !bw_stripe_room(e, p, t))
			continue;
		eta = bw_stripe_eta(t, t->pmtu.mtu);
		if (!best || eta < least) {
			best = t;
			least = eta;
		}
	}
	return best;
}

/* The range last sent by this path that has not moved yet; *after: bytes sent later. */
static struct bw_record *bw_stripe_tail(const struct bw_path *t, uint64_t *after)
{
	struct bw_list *l;

	*after = 0;
	for (l = t->flight.prev; l != &t->flight; l = l->prev) {
		struct bw_record *r = bw_entry(l, struct bw_record, list);

		if (r->kind == BW_OWNED_BULK && !((struct bw_serve *)r->obj)->aborted)
			return r;
		*after += r->frame_len;
	}
	return NULL;
}

/* Everything is under way. The range that would arrive last moves to a path by which it would
 * arrive clearly earlier: it is sent again there, and only its packet stays. */
static struct bw_path *bw_stripe_hurry(struct bw_engine *e, struct bw_peer *p)
{
	struct bw_path *fast = bw_stripe_pick(e, p, 0), *slow = NULL;
	struct bw_record *r = NULL, *again;
	uint64_t eta = 0;
	uint8_t i;

	if (!fast || p->aside || !bw_list_empty(&p->serving) || !bw_list_empty(&p->again))
		return NULL;
	for (i = 0; i < p->npaths; i++) {
		struct bw_path *t = p->path[i];
		struct bw_record *tail;
		uint64_t after, at;

		tail = t == fast ? NULL : bw_stripe_tail(t, &after);
		if (!tail)
			continue;
		at = bw_stripe_usable(e, p, t) ? bw_stripe_arrival(t, t->inflight - after)
					       : BW_NEVER;
		if (at > eta) {
			eta = at;
			slow = t;
			r = tail;
		}
	}
	if (!slow || eta - eta / 4 < bw_stripe_eta(fast, r->len) + BW_PTO_MIN)
		return NULL;
	again = bw_record_new(e, p, BW_OWNED_BULK, r->obj, r->off, r->len);
	if (!again)
		return NULL;
	bw_again_add(e, p, again);
	bw_late_keep(e, p, slow, r);
	bw_record_vacate(r);
	return fast;
}

bool bw_stripe_probe(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f)
{
	uint8_t i;

	for (i = 0; i < p->npaths; i++) {
		struct bw_path *t = p->path[i];

		if ((t->ask || (t->pmtu.probe && !t->pmtu.flying)) &&
		    bw_stripe_together(e, t, p->path[p->best]) && bw_send_by(e, p, t, 0, f))
			return true;
	}
	return false;
}

static bool bw_stripe_data(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f)
{
	struct bw_path *t;
	uint32_t tried = 0;

	while ((t = bw_stripe_pick(e, p, tried))) {
		if (bw_send_by(e, p, t, BW_SEND_AGAIN | BW_SEND_BULK, f))
			return true;
		t->lax = true;
		tried |= 1u << t->no;
	}
	t = bw_stripe_hurry(e, p);
	return t && bw_send_by(e, p, t, BW_SEND_AGAIN, f);
}

bool bw_stripe_frame(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f)
{
	struct bw_path *way = bw_carry_message(e, p, bw_send_length(e, p));
	bool turn = p->eager_turn >= BW_EAGER_TURN && (!bw_list_empty(&p->serving) || p->aside);
	uint8_t i;

	if (bw_stripe_probe(e, p, f))
		return true;
	for (i = 0; i < p->npaths && !bw_stripe_usable(e, p, p->path[i]); i++)
		;
	if (i == p->npaths) /* all are silent: the peer is busy, or gone */
		return bw_send_by(e, p, p->path[p->best], BW_SEND_ALL, f);
	if (!bw_list_empty(&p->again) && bw_stripe_data(e, p, f))
		return true;
	if (!turn && bw_send_by(e, p, way, BW_SEND_MESSAGES, f))
		return true;
	if (bw_stripe_data(e, p, f))
		return true;
	return turn && bw_send_by(e, p, way, BW_SEND_MESSAGES, f);
}

void bw_stripe_acked(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint64_t bytes)
{
	uint64_t ns = e->now - t->rate_since, rate;

	bw_carry_acked(e, p, t, bytes);
	t->delivered += bytes;
	t->lax |= !t->inflight;
	if (t->acked_max < t->rate_pn || (t->rate_since && ns < BW_STRIPE_ROUND))
		return;
	if (t->rate_since && ns) {
		rate = (t->delivered - t->rate_from) * BW_MS / ns;
		if (t->lax)
			t->rate = bw_max_u64(t->rate - t->rate / 64, rate);
		else
			t->rate = t->rate ? t->rate - t->rate / 4 + rate / 4 : rate;
	}
	t->rate_pn = t->pn_next;
	t->rate_since = e->now;
	t->rate_from = t->delivered;
	t->lax = false;
	bw_path_choose(e, p);
}

void bw_stripe_doubt(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	bool answered = false;
	uint8_t i;

	t->ask = true;
	for (i = 0; i < p->npaths; i++) {
		struct bw_path *o = p->path[i];

		if (o == t || o->state != BW_PATH_UP || !bw_stripe_together(e, o, t))
			continue;
		answered |= o->answered > t->pto_since;
		o->ask |= o->answered <= t->pto_since && bw_list_empty(&o->flight);
	}
	if (!answered || t->pto_count < BW_PTO_MOVE)
		return;
	bw_loss_requeue_path(e, p, t);
	bw_stripe_leave(p, t);
	t->pmtu.lost = 0; /* not for their size */
	t->cc.ssthresh = bw_min_u64(t->cc.ssthresh, t->cc.cwnd);
	t->cc.cwnd = bw_min_u64(t->cc.cwnd, BW_CWND_INITIAL);
	t->rate = t->rate_since = 0;
	bw_path_choose(e, p);
}

void bw_stripe_retry(struct bw_engine *e, struct bw_peer *p)
{
	uint8_t i;

	for (i = 0; p->stripes && i < p->npaths; i++) {
		struct bw_path *t = p->path[i];

		if (t->state == BW_PATH_TRYING && bw_stripe_together(e, t, p->path[p->best]))
			t->hello.next = bw_min_u64(t->hello.next, e->now + BW_HELLO_LAST);
	}
}

void bw_stripe_update(struct bw_peer *p)
{
	bool before = p->striped;
	uint8_t i;

	p->striped = p->lines > 1;
	for (i = 0; p->striped && !before && i < p->npaths; i++)
		p->path[i]->ask |= p->path[i]->state == BW_PATH_UP && p->path[i]->pto_count;
}
