/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How much may be under way on a path (CUBIC, RFC 9438; slow start as in RFC 9406; marks as in RFC
 * 8257). All in integers.
 */
#include "reliable.h"

#define BW_ALPHA_ONE   1024	   /* mark.alpha: all packets marked */
#define BW_CUBIC_C     410	   /* 0.4 frames a second cubed, in 1/1024; RFC 9438 5 */
#define BW_CUBIC_ALPHA 542	   /* 3 * (1 - 0.7) / (1 + 0.7), in 1/1024; RFC 9438 4.3 */
#define BW_CUBIC_FAR   (30 * 1024) /* 1/1024 s; beyond it the curve is as good as vertical */

/* HyStart++: RFC 9406 4.3. A local network's delays are too short for its bounds. */
#define BW_HYSTART_MIN	   (4 * BW_MS)
#define BW_HYSTART_MAX	   (16 * BW_MS)
#define BW_HYSTART_SAMPLES 8
#define BW_HYSTART_LOCAL   (500 * BW_US)
#define BW_CSS_DIVISOR	   4
#define BW_CSS_ROUNDS	   5

#define BW_LOSS_SPAN  512 /* packets over which losses are counted, or the window */
#define BW_LOSS_PARTS 32  /* one of so many may be lost by chance; 1 % hardly ever comes to that */
#define BW_QUEUE_MIN  BW_MS /* a longer delay than that is a queue's */

static uint64_t bw_window_min(const struct bw_path *t)
{
	return (uint64_t)BW_CWND_PACKETS * t->pmtu.mtu;
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
 * response, w_max, after `k`. Time is counted in 1/1024 s, so that its cube fits. */
static void bw_cubic_begin(struct bw_engine *e, struct bw_path *t)
{
	struct bw_cc *c = &t->cc;
	uint64_t lack = c->cubic.w_max > c->cwnd ? (c->cubic.w_max - c->cwnd) / t->pmtu.mtu : 0;

	c->cubic.since = e->now;
	c->cubic_k = (uint32_t)bw_cube_root((lack << 30) * 1024 / BW_CUBIC_C);
	c->cubic.w_max = bw_max_u64(c->cubic.w_max, c->cwnd);
	c->cubic.w_reno = c->cwnd;
}

/* Where the curve will be a round trip from now, in bytes. */
static uint64_t bw_cubic_target(const struct bw_engine *e, const struct bw_path *t)
{
	const struct bw_cc *c = &t->cc;
	uint64_t tick = (e->now - c->cubic.since + t->rtt.srtt) / (BW_S / 1024);
	uint64_t far = tick > c->cubic_k ? tick - c->cubic_k : c->cubic_k - tick;
	uint64_t step;

	far = bw_min_u64(far, BW_CUBIC_FAR);
	step = (far * far * far * BW_CUBIC_C >> 30) * t->pmtu.mtu / 1024;
	if (tick > c->cubic_k)
		return c->cubic.w_max + step;
	return c->cubic.w_max > step ? c->cubic.w_max - step : 0;
}

/* The curve stands still while nothing tests the window: it goes on where it was, so that a program
 * that waits for answers loses none of its growth (RFC 9438 5.8). */
static void bw_cubic_resume(struct bw_engine *e, struct bw_path *t)
{
	struct bw_cc *c = &t->cc;
	uint64_t gap = e->now - c->cubic.at;

	if (c->cubic.since && gap > t->rtt.srtt)
		c->cubic.since += gap - t->rtt.srtt;
	c->cubic.at = e->now;
}

/* Congestion avoidance: the curve, or where that is slower than what standard TCP would do, the
 * latter (RFC 9438 4.3). */
static void bw_cubic_acked(struct bw_engine *e, struct bw_path *t, uint64_t bytes)
{
	struct bw_cc *c = &t->cc;
	uint64_t target, grown = bytes * t->pmtu.mtu / c->cwnd;

	bw_cubic_resume(e, t);
	if (!c->cubic.since)
		bw_cubic_begin(e, t);
	c->cubic.w_reno += c->cubic.w_reno < c->cubic.w_max ? grown * BW_CUBIC_ALPHA / 1024 : grown;
	target = bw_min_u64(bw_cubic_target(e, t), c->cwnd + c->cwnd / 2);
	if (target > c->cwnd)
		c->cwnd += (target - c->cwnd) * bytes / c->cwnd;
	c->cwnd = bw_max_u64(c->cwnd, c->cubic.w_reno);
}

/*
 * Slow start ends when the delay says that a queue builds up, before a loss does (HyStart++, RFC
 * 9406). The least of a round trip's samples is compared: growth slows down at first, and goes on
 * if the delay was no queue's. On a local network it mostly is not: the peer's program had not
 * begun to receive yet, touched its buffer for the first time, or waited for a core.
 */
static void bw_slow_start(struct bw_path *t, uint64_t bytes)
{
	t->cc.cwnd += t->cc.delay.slow ? bytes / BW_CSS_DIVISOR : bytes;
}

/* The longest of the least samples of a round trip that tells of no queue. */
static uint64_t bw_slow_start_bound(const struct bw_path *t)
{
	uint64_t min = t->rtt.min;

	if (!bw_rtt_distant(&t->rtt))
		return 2 * min + BW_HYSTART_LOCAL;
	return min + bw_min_u64(bw_max_u64(min / 8, BW_HYSTART_MIN), BW_HYSTART_MAX);
}

static void bw_slow_start_round(struct bw_path *t)
{
	struct bw_cc *c = &t->cc;

	if (c->delay.least < bw_slow_start_bound(t))
		c->delay.slow = 0;
	else if (c->delay.slow++ == BW_CSS_ROUNDS)
		c->ssthresh = c->cwnd;
}

/* Over a distance the first samples of a round trip decide, which tell of the queue that the last
 * one left behind. On a local path, where a round trip may have but one or two, all of it do, and
 * only if it filled the window. */
void bw_window_sample(struct bw_path *t, uint64_t rtt, uint64_t pn)
{
	struct bw_cc *c = &t->cc;
	bool distant;

	if (c->cwnd >= c->ssthresh)
		return;
	distant = bw_rtt_distant(&t->rtt);
	if (pn >= c->delay.end) {
		if (!distant && c->delay.end && c->delay.end <= c->limited_pn)
			bw_slow_start_round(t);
		c->delay.end = t->pn_next;
		c->delay.samples = 0;
		c->delay.least = rtt;
	}
	c->delay.least = bw_min_u64(c->delay.least, rtt);
	if (++c->delay.samples == BW_HYSTART_SAMPLES && distant)
		bw_slow_start_round(t);
}

void bw_window_acked(struct bw_engine *e, struct bw_path *t, uint64_t bytes, uint64_t pn)
{
	struct bw_cc *c = &t->cc;

	if (pn >= c->limited_pn || pn < c->recovery_pn)
		return;
	if (c->cwnd < c->ssthresh)
		bw_slow_start(t, bytes);
	else
		bw_cubic_acked(e, t, bytes);
	c->cwnd = bw_min_u64(c->cwnd, BW_CWND_MAX);
}

/* The window shrinks to `cwnd`. A flow that did not reach its former window gives way to new ones:
 * it aims lower ("fast convergence", RFC 9438 4.7). */
static void bw_window_shrink(struct bw_path *t, uint64_t cwnd)
{
	struct bw_cc *c = &t->cc;

	c->cubic.w_max = c->cwnd < c->cubic.w_max ? c->cwnd * 17 / 20 : c->cwnd;
	c->cwnd = bw_max_u64(cwnd, bw_window_min(t));
	c->ssthresh = c->cwnd;
	c->cubic.since = 0;
}

void bw_window_respond(struct bw_engine *e, struct bw_path *t, uint64_t pn)
{
	struct bw_cc *c = &t->cc;

	if (pn < c->recovery_pn)
		return;
	c->undo.cwnd = c->cwnd;
	c->undo.ssthresh = c->ssthresh;
	c->undo.w_max = c->cubic.w_max;
	bw_window_shrink(t, c->cwnd * 7 / 10); /* RFC 9438 4.6 */
	c->recovery_pn = t->pn_next;
	e->count.backoffs++;
}

/* Over a distance frames get lost that no queue dropped. While no queue can be seen in the round
 * trip, single losses leave the window as it is; more than BW_LOSS_PARTS of the packets do not. A
 * line that is full shows a queue first, unless the queue is short beside the line: then the window
 * is too wide by that much at most. */
static bool bw_window_random(struct bw_path *t, uint64_t pn)
{
	struct bw_cc *c = &t->cc;
	uint64_t span = bw_max_u64(c->cwnd / t->pmtu.mtu, BW_LOSS_SPAN);

	if (!bw_rtt_distant(&t->rtt))
		return false;
	if (pn >= c->chance_from + span) {
		c->chance_from = pn;
		c->chance_count = 0;
	}
	return ++c->chance_count <= span / BW_LOSS_PARTS &&
	       t->rtt.srtt <= t->rtt.min + bw_max_u64(t->rtt.min / 8, BW_QUEUE_MIN);
}

void bw_window_lost(struct bw_engine *e, struct bw_path *t, uint64_t pn)
{
	if (!bw_window_random(t, pn))
		bw_window_respond(e, t, pn);
}

void bw_window_undo(struct bw_path *t)
{
	struct bw_cc *c = &t->cc;

	if (!c->undo.cwnd)
		return;
	c->cwnd = bw_max_u64(c->cwnd, c->undo.cwnd);
	c->ssthresh = bw_max_u64(c->ssthresh, c->undo.ssthresh);
	c->cubic.w_max = c->undo.w_max;
	c->cubic.since = 0;
	c->recovery_pn = 0;
	c->undo.cwnd = 0;
}

void bw_window_marks(struct bw_engine *e, struct bw_path *t, uint16_t marks, uint32_t packets)
{
	struct bw_cc *c = &t->cc;
	int16_t fresh = (int16_t)(marks - c->mark.seen);
	uint32_t share;

	c->mark.packets += packets;
	if (fresh > 0) { /* else the frame is older than what is known */
		c->mark.seen = marks;
		c->mark.marked += (uint32_t)fresh;
	}
	if (t->acked_max < c->mark.end || !c->mark.packets)
		return;
	share = c->mark.marked >= c->mark.packets ? BW_ALPHA_ONE
						  : c->mark.marked * BW_ALPHA_ONE / c->mark.packets;
	c->mark.alpha += share / 16;
	c->mark.alpha -= c->mark.alpha / 16; /* gain of RFC 8257 4.2 */
	if (c->mark.marked) {
		bw_window_shrink(t, c->cwnd - c->cwnd * c->mark.alpha / (2 * BW_ALPHA_ONE));
		e->count.backoffs++;
	}
	c->mark.end = t->pn_next;
	c->mark.packets = 0;
	c->mark.marked = 0;
}
