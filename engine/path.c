/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is known of one path to a peer: its round trip (RFC 6298), how much may be under way on it
 * (CUBIC, RFC 9438; marks as in RFC 8257), and how large a frame passes (probing as in RFC 8899).
 * All in integers.
 */
#include "reliable.h"

#define BW_ALPHA_ONE   1024	   /* mark_alpha: all packets marked */
#define BW_CUBIC_C     410	   /* 0.4 frames a second cubed, in 1/1024; RFC 9438 5 */
#define BW_CUBIC_ALPHA 542	   /* 3 * (1 - 0.7) / (1 + 0.7), in 1/1024; RFC 9438 4.3 */
#define BW_CUBIC_FAR   (30 * 1024) /* 1/1024 s; beyond it the curve is as good as vertical */

void bw_path_init(struct bw_engine *e, struct bw_path *t, const struct bw_link_addr *to)
{
	memset(t, 0, sizeof(*t));
	t->to = *to;
	t->state = BW_PATH_TRYING;
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
	t->cwnd = BW_CWND_INITIAL;
	t->ssthresh = UINT64_MAX;
	bw_list_init(&t->flight);
	bw_list_init(&t->share);
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
	t->mtu = ceiling < BW_MTU_BASE ? ceiling : BW_MTU_BASE;
	t->mtu_fail = ceiling + 1;
	t->probe_size = ceiling > t->mtu ? ceiling : 0;
	t->probe_tries = 0;
	t->probe_flying = false;
	bw_path_choose(e, p);
	bw_event_push(e, &t->ev, BW_EV_PATH);
	bw_peer_ready(e, p);
}

/* The first link in the host's order; of those in use together, the one that a short message
 * crosses soonest. The one in use stays unless another is clearly better. */
static bool bw_path_better(const struct bw_engine *e, const struct bw_peer *p,
			   const struct bw_path *a, const struct bw_path *b)
{
	uint64_t x, y;

	if (!p->stripes || !bw_stripe_together(e, a, b))
		return a->to.link < b->to.link;
	x = bw_stripe_reach(a);
	y = bw_stripe_reach(b);
	if (b == &p->path[p->best])
		y -= y / 4;
	else if (a == &p->path[p->best])
		x -= x / 4;
	return x < y;
}

void bw_path_choose(struct bw_engine *e, struct bw_peer *p)
{
	uint8_t i, best = p->npaths, together = 0;

	for (i = 0; i < p->npaths; i++) {
		if (p->path[i].state != BW_PATH_UP)
			continue;
		if (best == p->npaths || bw_path_better(e, p, &p->path[i], &p->path[best]))
			best = i;
	}
	if (best != p->npaths)
		p->best = best;
	for (i = 0; p->stripes && i < p->npaths; i++)
		together += p->path[i].state == BW_PATH_UP &&
			    bw_stripe_together(e, &p->path[i], &p->path[p->best]);
	p->striped = together > 1;
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
	t->rttvar += diff / 4;
	t->rttvar -= t->rttvar / 4;
	t->srtt += sample / 8;
	t->srtt -= t->srtt / 8;
	if (!t->srtt)
		t->srtt = 1;
}

uint64_t bw_path_pto(const struct bw_engine *e, const struct bw_path *t)
{
	uint64_t srtt = t->srtt ? t->srtt : BW_RTT_INITIAL;
	uint64_t pto = bw_max_u64(2 * srtt, srtt + 4 * t->rttvar);
	uint32_t shift = t->pto_count < 16 ? t->pto_count : 16;

	pto = bw_max_u64(pto, BW_PTO_MIN) + e->cfg.ack_delay_ns;
	return bw_min_u64(pto << shift, bw_max_u64(BW_PTO_MAX, pto));
}

static uint64_t bw_path_cwnd_min(const struct bw_path *t)
{
	return (uint64_t)BW_CWND_PACKETS * t->mtu;
}

/* The integer cube root of x, rounded down. */
static uint64_t bw_cube_root(uint64_t x)
{
	uint64_t root = 0;

	for (int bit = 20; bit >= 0; bit--) {
		uint64_t more = root | 1ull << bit;

		if (more * more * more <= x)
			root = more;
	}
	return root;
}

/* A new curve (RFC 9438 4.2) begins at the present window; it reaches the window before the last
 * response, w_max, after cubic_k. Time is counted in 1/1024 s, so that its cube fits. */
static void bw_path_cubic_begin(struct bw_engine *e, struct bw_path *t)
{
	uint64_t lack = t->w_max > t->cwnd ? (t->w_max - t->cwnd) / t->mtu : 0;

	t->cubic_since = e->now;
	t->cubic_k = (uint32_t)bw_cube_root((lack << 30) * 1024 / BW_CUBIC_C);
	t->w_max = bw_max_u64(t->w_max, t->cwnd);
	t->w_reno = t->cwnd;
}

/* Where the curve will be a round trip from now, in bytes. */
static uint64_t bw_path_cubic_target(const struct bw_engine *e, const struct bw_path *t)
{
	uint64_t tick = (e->now - t->cubic_since + t->srtt) / (BW_S / 1024);
	uint64_t far = tick > t->cubic_k ? tick - t->cubic_k : t->cubic_k - tick;
	uint64_t step;

	far = bw_min_u64(far, BW_CUBIC_FAR);
	step = (far * far * far * BW_CUBIC_C >> 30) * t->mtu / 1024;
	if (tick > t->cubic_k)
		return t->w_max + step;
	return t->w_max > step ? t->w_max - step : 0;
}

/* Congestion avoidance: the curve, or where that is slower than what standard TCP would do, the
 * latter (RFC 9438 4.3). */
static void bw_path_cubic_ack(struct bw_engine *e, struct bw_path *t, uint64_t bytes)
{
	uint64_t target, grown = bytes * t->mtu / t->cwnd;

	if (!t->cubic_since)
		bw_path_cubic_begin(e, t);
	t->w_reno += t->w_reno < t->w_max ? grown * BW_CUBIC_ALPHA / 1024 : grown;
	target = bw_min_u64(bw_path_cubic_target(e, t), t->cwnd + t->cwnd / 2);
	if (target > t->cwnd)
		t->cwnd += (target - t->cwnd) * bytes / t->cwnd;
	t->cwnd = bw_max_u64(t->cwnd, t->w_reno);
}

void bw_path_cc_ack(struct bw_engine *e, struct bw_path *t, uint64_t bytes, uint64_t pn)
{
	if (pn >= t->limited_pn) {
		t->cubic_since = 0; /* the curve does not go on while nothing tests the window */
		return;
	}
	if (pn < t->recovery_pn)
		return;
	if (t->cwnd < t->ssthresh && t->rtt_min && t->srtt > 2 * t->rtt_min + 500 * BW_US)
		/* Queues build up: the delay says so before a loss does. */
		t->ssthresh = t->cwnd;
	if (t->cwnd < t->ssthresh)
		t->cwnd += bytes;
	else
		bw_path_cubic_ack(e, t, bytes);
	t->cwnd = bw_min_u64(t->cwnd, BW_CWND_MAX);
}

/* The window shrinks to `cwnd`. A flow that did not reach its former window gives way to new ones:
 * it aims lower ("fast convergence", RFC 9438 4.7). */
static void bw_path_cc_shrink(struct bw_path *t, uint64_t cwnd)
{
	t->w_max = t->cwnd < t->w_max ? t->cwnd * 17 / 20 : t->cwnd;
	t->cwnd = bw_max_u64(cwnd, bw_path_cwnd_min(t));
	t->ssthresh = t->cwnd;
	t->cubic_since = 0;
}

void bw_path_cc_loss(struct bw_engine *e, struct bw_path *t, uint64_t pn)
{
	if (pn < t->recovery_pn)
		return;
	t->undo_cwnd = t->cwnd;
	t->undo_ssthresh = t->ssthresh;
	t->undo_w_max = t->w_max;
	bw_path_cc_shrink(t, t->cwnd * 7 / 10); /* RFC 9438 4.6 */
	t->recovery_pn = t->pn_next;
	e->count.backoffs++;
}

void bw_path_cc_undo(struct bw_path *t)
{
	if (!t->undo_cwnd)
		return;
	t->cwnd = bw_max_u64(t->cwnd, t->undo_cwnd);
	t->ssthresh = bw_max_u64(t->ssthresh, t->undo_ssthresh);
	t->w_max = t->undo_w_max;
	t->cubic_since = 0;
	t->recovery_pn = 0;
	t->undo_cwnd = 0;
}

void bw_path_cc_marks(struct bw_engine *e, struct bw_path *t, uint16_t marks, uint32_t packets)
{
	int16_t fresh = (int16_t)(marks - t->marks_seen);
	uint32_t share;

	t->round_packets += packets;
	if (fresh > 0) { /* else the frame is older than what is known */
		t->marks_seen = marks;
		t->round_marks += (uint32_t)fresh;
	}
	if (t->acked_max < t->round_pn || !t->round_packets)
		return;
	share = t->round_marks >= t->round_packets
			? BW_ALPHA_ONE
			: t->round_marks * BW_ALPHA_ONE / t->round_packets;
	t->mark_alpha += share / 16;
	t->mark_alpha -= t->mark_alpha / 16; /* gain of RFC 8257 4.2 */
	if (t->round_marks) {
		bw_path_cc_shrink(t, t->cwnd - t->cwnd * t->mark_alpha / (2 * BW_ALPHA_ONE));
		e->count.backoffs++;
	}
	t->round_pn = t->pn_next;
	t->round_packets = 0;
	t->round_marks = 0;
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

void bw_path_probe_lost(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint32_t size)
{
	t->probe_flying = false;
	bw_peer_ready(e, p);
	if (size != t->probe_size || ++t->probe_tries < BW_PROBE_TRIES)
		return;
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
