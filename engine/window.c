/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How much may be under way on a path (CUBIC, RFC 9438; slow start as in RFC 9406; marks as in RFC
 * 8257). All in integers.
 */
#include "reliable.h"

#define BW_ALPHA_ONE   1024	   /* mark_alpha: all packets marked */
#define BW_CUBIC_C     410	   /* 0.4 frames a second cubed, in 1/1024; RFC 9438 5 */
#define BW_CUBIC_ALPHA 542	   /* 3 * (1 - 0.7) / (1 + 0.7), in 1/1024; RFC 9438 4.3 */
#define BW_CUBIC_FAR   (30 * 1024) /* 1/1024 s; beyond it the curve is as good as vertical */

/* HyStart++: RFC 9406 4.3. A local network's delays are too short for its bounds. */
#define BW_HYSTART_MIN	   (4 * BW_MS)
#define BW_HYSTART_MAX	   (16 * BW_MS)
#define BW_HYSTART_SAMPLES 8
#define BW_CSS_DIVISOR	   4
#define BW_CSS_ROUNDS	   5

#define BW_LOSS_SPAN  512 /* packets over which losses are counted, or the window */
#define BW_LOSS_PARTS 32  /* one of so many may be lost by chance; 1 % hardly ever comes to that */
#define BW_QUEUE_MIN  BW_MS /* a longer delay than that is a queue's */

static uint64_t bw_window_min(const struct bw_path *t)
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
static void bw_cubic_begin(struct bw_engine *e, struct bw_path *t)
{
	uint64_t lack = t->w_max > t->cwnd ? (t->w_max - t->cwnd) / t->mtu : 0;

	t->cubic_since = e->now;
	t->cubic_k = (uint32_t)bw_cube_root((lack << 30) * 1024 / BW_CUBIC_C);
	t->w_max = bw_max_u64(t->w_max, t->cwnd);
	t->w_reno = t->cwnd;
}

/* Where the curve will be a round trip from now, in bytes. */
static uint64_t bw_cubic_target(const struct bw_engine *e, const struct bw_path *t)
{
	uint64_t tick = (e->now - t->cubic_since + t->rtt.srtt) / (BW_S / 1024);
	uint64_t far = tick > t->cubic_k ? tick - t->cubic_k : t->cubic_k - tick;
	uint64_t step;

	far = bw_min_u64(far, BW_CUBIC_FAR);
	step = (far * far * far * BW_CUBIC_C >> 30) * t->mtu / 1024;
	if (tick > t->cubic_k)
		return t->w_max + step;
	return t->w_max > step ? t->w_max - step : 0;
}

/* The curve stands still while nothing tests the window: it goes on where it was, so that a program
 * that waits for answers loses none of its growth (RFC 9438 5.8). */
static void bw_cubic_resume(struct bw_engine *e, struct bw_path *t)
{
	uint64_t gap = e->now - t->cubic_at;

	if (t->cubic_since && gap > t->rtt.srtt)
		t->cubic_since += gap - t->rtt.srtt;
	t->cubic_at = e->now;
}

/* Congestion avoidance: the curve, or where that is slower than what standard TCP would do, the
 * latter (RFC 9438 4.3). */
static void bw_cubic_acked(struct bw_engine *e, struct bw_path *t, uint64_t bytes)
{
	uint64_t target, grown = bytes * t->mtu / t->cwnd;

	bw_cubic_resume(e, t);
	if (!t->cubic_since)
		bw_cubic_begin(e, t);
	t->w_reno += t->w_reno < t->w_max ? grown * BW_CUBIC_ALPHA / 1024 : grown;
	target = bw_min_u64(bw_cubic_target(e, t), t->cwnd + t->cwnd / 2);
	if (target > t->cwnd)
		t->cwnd += (target - t->cwnd) * bytes / t->cwnd;
	t->cwnd = bw_max_u64(t->cwnd, t->w_reno);
}

/* Slow start ends when the delay says that a queue builds up, before a loss does. On a path of a
 * local network the smoothed round trip is compared, whose noise is large; on a distant one the
 * least of each round (HyStart++, RFC 9406): growth slows down at first, and goes on if the delay
 * was no queue's. */
static void bw_slow_start(struct bw_engine *e, struct bw_path *t, uint64_t bytes)
{
	if (!bw_rtt_distant(&t->rtt)) {
		if (t->rtt.min && t->rtt.srtt > 2 * t->rtt.min + 500 * BW_US)
			t->ssthresh = t->cwnd;
		else
			t->cwnd += bytes;
		return;
	}
	t->cwnd += t->delay.slow ? bytes / BW_CSS_DIVISOR : bytes;
}

/* The first samples of a round trip tell of the queue that the last one left behind. */
static void bw_slow_start_round(struct bw_path *t)
{
	uint64_t least = t->delay.least, bound = t->rtt.min / 8;

	bound = t->rtt.min + bw_min_u64(bw_max_u64(bound, BW_HYSTART_MIN), BW_HYSTART_MAX);
	if (least < bound)
		t->delay.slow = 0;
	else if (t->cwnd < t->ssthresh && t->delay.slow++ == BW_CSS_ROUNDS)
		t->ssthresh = t->cwnd;
}

void bw_window_sample(struct bw_path *t, uint64_t rtt, uint64_t pn)
{
	if (!bw_rtt_distant(&t->rtt))
		return;
	if (pn >= t->delay.end) {
		t->delay.end = t->pn_next;
		t->delay.samples = 0;
		t->delay.least = rtt;
	}
	t->delay.least = bw_min_u64(t->delay.least, rtt);
	if (++t->delay.samples == BW_HYSTART_SAMPLES)
		bw_slow_start_round(t);
}

void bw_window_acked(struct bw_engine *e, struct bw_path *t, uint64_t bytes, uint64_t pn)
{
	if (pn >= t->limited_pn || pn < t->recovery_pn)
		return;
	if (t->cwnd < t->ssthresh)
		bw_slow_start(e, t, bytes);
	else
		bw_cubic_acked(e, t, bytes);
	t->cwnd = bw_min_u64(t->cwnd, BW_CWND_MAX);
}

/* The window shrinks to `cwnd`. A flow that did not reach its former window gives way to new ones:
 * it aims lower ("fast convergence", RFC 9438 4.7). */
static void bw_window_shrink(struct bw_path *t, uint64_t cwnd)
{
	t->w_max = t->cwnd < t->w_max ? t->cwnd * 17 / 20 : t->cwnd;
	t->cwnd = bw_max_u64(cwnd, bw_window_min(t));
	t->ssthresh = t->cwnd;
	t->cubic_since = 0;
}

void bw_window_respond(struct bw_engine *e, struct bw_path *t, uint64_t pn)
{
	if (pn < t->recovery_pn)
		return;
	t->undo_cwnd = t->cwnd;
	t->undo_ssthresh = t->ssthresh;
	t->undo_w_max = t->w_max;
	bw_window_shrink(t, t->cwnd * 7 / 10); /* RFC 9438 4.6 */
	t->recovery_pn = t->pn_next;
	e->count.backoffs++;
}

/* Over a distance frames get lost that no queue dropped. While no queue can be seen in the round
 * trip, single losses leave the window as it is; more than BW_LOSS_PARTS of the packets do not. A
 * line that is full shows a queue first, unless the queue is short beside the line: then the window
 * is too wide by that much at most. */
static bool bw_window_random(struct bw_path *t, uint64_t pn)
{
	uint64_t span = bw_max_u64(t->cwnd / t->mtu, BW_LOSS_SPAN);

	if (!bw_rtt_distant(&t->rtt))
		return false;
	if (pn >= t->loss_from + span) {
		t->loss_from = pn;
		t->loss_count = 0;
	}
	return ++t->loss_count <= span / BW_LOSS_PARTS &&
	       t->rtt.srtt <= t->rtt.min + bw_max_u64(t->rtt.min / 8, BW_QUEUE_MIN);
}

void bw_window_lost(struct bw_engine *e, struct bw_path *t, uint64_t pn)
{
	if (!bw_window_random(t, pn))
		bw_window_respond(e, t, pn);
}

void bw_window_undo(struct bw_path *t)
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

void bw_window_marks(struct bw_engine *e, struct bw_path *t, uint16_t marks, uint32_t packets)
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
		bw_window_shrink(t, t->cwnd - t->cwnd * t->mark_alpha / (2 * BW_ALPHA_ONE));
		e->count.backoffs++;
	}
	t->round_pn = t->pn_next;
	t->round_packets = 0;
	t->round_marks = 0;
}
