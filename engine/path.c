/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is known of one path to a peer: its state, its round trip (RFC 6298), and how large a frame
 * passes (probing as in RFC 8899). How much may be under way on it: window.c.
 */
#include "reliable.h"

void bw_path_init(struct bw_engine *e, struct bw_path *t, const struct bw_link_addr *to)
{
	memset(t, 0, sizeof(*t));
	t->to = *to;
	t->state = BW_PATH_TRYING;
	t->nonce = bw_nonce(e);
	t->remote_no = BW_PATH_UNKNOWN;
	t->hello_due = true;
	t->hello_pause = BW_HELLO_FIRST;
	t->hello_next = e->now + BW_HELLO_FIRST;
	t->pn_next = 1;
	t->floor = 1;
	t->rx.base = 1;
	t->loss_at = BW_NEVER;
	t->ack_at = BW_NEVER;
	t->reorder = BW_REORDER_MIN;
	t->rtt_guess = BW_RTT_INITIAL;
	t->cwnd = BW_CWND_INITIAL;
	t->pace.until = BW_NEVER;
	t->ssthresh = UINT64_MAX;
	bw_list_init(&t->flight);
	bw_list_init(&t->share);
	bw_list_init(&t->late);
}

/* Largest frame that both ends can handle on this path. */
static uint32_t bw_path_ceiling(const struct bw_engine *e, const struct bw_path *t)
{
	uint32_t mtu = e->cfg.link_mtu[t->to.link % 8];

	return t->frame_max < mtu ? t->frame_max : mtu;
}

void bw_path_up(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	uint32_t ceiling = bw_path_ceiling(e, t);

	if (t->state == BW_PATH_UP)
		return;
	t->state = BW_PATH_UP;
	t->pto_count = 0;
	bw_loss_floor(e, p, t); /* what was lost long ago is forgotten before anything is sent */
	t->mtu = ceiling < BW_MTU_BASE ? ceiling : BW_MTU_BASE;
	t->mtu_fail = ceiling + 1;
	t->probe_size = ceiling > t->mtu ? ceiling : 0;
	t->probe_tries = 0;
	t->probe_flying = false;
	bw_carry_up(e, p, t);
	bw_path_choose(e, p);
	bw_event_push(e, &t->ev, BW_EV_PATH);
	bw_peer_ready(e, p);
}

void bw_path_answered(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	t->answered = e->now;
	t->ask |= t->probe_held;
	t->probe_held = false;
	bw_peer_proven(e, p);
}

/* The first link in the host's order; of those in use together, the one that a short message
 * crosses soonest. The one in use stays unless another is clearly better. */
static bool bw_path_better(const struct bw_engine *e, const struct bw_peer *p,
			   const struct bw_path *a, const struct bw_path *b)
{
	uint64_t x, y;

	if (!p->stripes || !bw_stripe_together(e, a, b) || bw_carry_rivals(e, a, b))
		return a->to.link < b->to.link;
	x = bw_stripe_reach(a);
	y = bw_stripe_reach(b);
	if (b == &p->path[p->best])
		y -= y / 4;
	else if (a == &p->path[p->best])
		x -= x / 4;
	return x < y;
}

/* How many paths are used together, over how many lines. */
static void bw_path_together(struct bw_engine *e, struct bw_peer *p)
{
	uint8_t i, k;

	p->together = p->lines = 0;
	for (i = 0; p->stripes && i < p->npaths; i++) {
		bool other = true; /* a line that none of those before leads over */

		if (p->path[i].state != BW_PATH_UP ||
		    !bw_stripe_together(e, &p->path[i], &p->path[p->best]))
			continue;
		for (k = 0; k < i; k++)
			other &= p->path[k].state != BW_PATH_UP ||
				 !bw_carry_rivals(e, &p->path[i], &p->path[k]);
		p->together++;
		p->lines += other;
	}
	bw_carry_choose(e, p);
	bw_stripe_update(p);
}

void bw_path_choose(struct bw_engine *e, struct bw_peer *p)
{
	uint8_t i, best = p->npaths;

	for (i = 0; i < p->npaths; i++) {
		if (p->path[i].state != BW_PATH_UP)
			continue;
		if (best == p->npaths || bw_path_better(e, p, &p->path[i], &p->path[best]))
			best = i;
	}
	if (best != p->npaths)
		p->best = best;
	bw_path_together(e, p);
	bw_peer_ready(e, p);
}

void bw_path_rtt(struct bw_path *t, uint64_t sample)
{
	uint64_t diff;

	if (!t->rtt_min || sample < t->rtt_min)
		t->rtt_min = sample ? sample : 1;
	if (!t->srtt) {
		t->srtt = sample ? sample : 1;
		t->rttvar = sample / 2;
		return;
	}
	diff = sample > t->srtt ? sample - t->srtt : t->srtt - sample;
	t->rttvar = t->rttvar - t->rttvar / 4 + diff / 4;
	t->srtt = t->srtt - t->srtt / 8 + sample / 8;
	if (!t->srtt)
		t->srtt = 1;
}

void bw_path_guess(const struct bw_engine *e, struct bw_path *t)
{
	uint64_t since = e->now - t->hello_sent;

	if (!t->srtt && t->hello_sent && since < BW_RTT_LONGEST)
		t->rtt_guess = bw_min_u64(bw_max_u64(since, BW_RTT_INITIAL), BW_RTT_GUESS);
}

uint64_t bw_path_pto(const struct bw_engine *e, const struct bw_path *t)
{
	uint64_t srtt = bw_path_srtt(t);
	uint64_t pto = bw_max_u64(2 * srtt, srtt + 4 * t->rttvar);
	uint32_t shift = t->pto_count < 16 ? t->pto_count : 16;

	pto = bw_max_u64(pto, BW_PTO_MIN) + e->cfg.ack_delay_ns;
	return bw_min_u64(pto << shift, BW_PTO_MAX);
}

/* Halve the interval between what passes and what does not, until it is small. */
static void bw_path_probe_next(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	t->probe_tries = 0;
	t->probe_size = 0;
	if (t->mtu_fail > t->mtu + BW_PROBE_GRAIN)
		t->probe_size = (t->mtu + (t->mtu_fail - t->mtu) / 2) & ~7u;
	else
		bw_event_push(e, &t->ev, BW_EV_PATH);
	bw_peer_ready(e, p);
}

void bw_path_probe_acked(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint32_t size)
{
	t->probe_flying = false;
	if (size <= t->mtu)
		return;
	t->mtu = size;
	bw_path_probe_next(e, p, t);
}

void bw_path_probe_lost(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint32_t size,
			bool later)
{
	t->probe_flying = false;
	bw_peer_ready(e, p);
	if (size != t->probe_size)
		return;
	t->ask = true; /* a short packet behind the next try: is it the size, or silence? */
	t->probe_held = !later;
	if (!later || ++t->probe_tries < BW_PROBE_TRIES)
		return;
	t->ask = false;
	t->mtu_fail = size;
	bw_path_probe_next(e, p, t);
}

/* When several large frames in a row get lost, and none of their size or larger arrives in between,
 * but smaller ones do, the path no longer takes this size (a "black hole", RFC 8899 4.3). */
void bw_path_size_acked(struct bw_path *t, uint32_t size)
{
	if (BW_LIKELY(!t->large_lost))
		return;
	if (size < t->large_least)
		t->small_acked = true;
	else
		t->large_lost = 0;
}

void bw_path_size_lost(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint32_t size)
{
	if (size <= BW_MTU_BASE / 2) { /* then it is not for their size that frames get lost */
		t->large_lost = 0;
		return;
	}
	if (!t->large_lost)
		t->small_acked = false;
	if (!t->large_lost || size < t->large_least)
		t->large_least = size;
	if (++t->large_lost < BW_BLACK_HOLE || !t->small_acked)
		return;
	t->large_lost = 0;
	t->mtu_fail = t->mtu;
	t->mtu = t->mtu > BW_MTU_BASE ? BW_MTU_BASE : BW_FRAME_MIN_MTU;
	bw_event_push(e, &t->ev, BW_EV_PATH);
	bw_path_probe_next(e, p, t);
}
