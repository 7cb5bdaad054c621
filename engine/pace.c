/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pacing on distant paths: a window leaves spread over a round trip and not as one burst, for which
 * the queue before a line that is slower than our own need not have room. Local paths are left
 * alone: there a timer costs more than the queue.
 */
#include "reliable.h"

#define BW_PACE_BURST  BW_MS /* what the rate allows in so long may leave at once */
#define BW_PACE_PART   8     /* or in this part of a round trip: a host may be late by that */
#define BW_PACE_MEMORY 16 /* round trips in which a rate that is not reached again is forgotten */

/* Once a round trip: what has been acknowledged in it is a rate that the path can carry. Rounds in
 * which the program gave less say nothing against a higher one. */
void bw_pace_acked(const struct bw_engine *e, struct bw_path *t, uint64_t bytes, uint64_t pn)
{
	uint64_t ns;

	if (BW_LIKELY(!bw_rtt_distant(&t->rtt)))
		return;
	ns = e->now - t->pace.since;
	t->pace.bytes += bytes;
	if (pn < t->pace.end)
		return;
	if (t->pace.end && ns) {
		if (pn < t->limited_pn)
			t->pace.rate -= t->pace.rate / BW_PACE_MEMORY;
		t->pace.rate = bw_max_u64(t->pace.rate, t->pace.bytes * BW_MS / ns);
	}
	t->pace.end = t->pn_next;
	t->pace.since = e->now;
	t->pace.bytes = 0;
}

/* How long the path is to be let alone after so many bytes. In slow start the window doubles within
 * a round trip; later it is a little more than what the path has carried, so that the window is
 * what limits: its own rate is too high after a pause, when the round trip is short again. */
static uint64_t bw_pace_ns(const struct bw_path *t, uint64_t bytes)
{
	uint64_t ns = bytes * t->rtt.srtt / t->cwnd;

	if (t->cwnd < t->ssthresh)
		return ns / 2;
	ns = ns * 4 / 5;
	return t->pace.rate ? bw_max_u64(ns, bytes * BW_MS / (t->pace.rate + t->pace.rate / 8))
			    : ns;
}

bool bw_pace_holds(const struct bw_engine *e, struct bw_path *t)
{
	if (BW_LIKELY(!bw_rtt_distant(&t->rtt)) || t->pace.at <= e->now)
		return false;
	t->pace.until = t->pace.at + BW_PACE_BURST / 2; /* no timer for each frame */
	return true;
}

void bw_pace_sent(const struct bw_engine *e, struct bw_path *t, uint64_t bytes)
{
	uint64_t burst;

	if (BW_LIKELY(!bw_rtt_distant(&t->rtt)))
		return;
	burst = bw_max_u64(t->rtt.srtt / BW_PACE_PART, BW_PACE_BURST);
	t->pace.at =
		bw_max_u64(t->pace.at, e->now > burst ? e->now - burst : 0) + bw_pace_ns(t, bytes);
}
