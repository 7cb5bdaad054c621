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
	struct bw_cc *c = &t->cc;
	uint64_t ns;

	if (BW_LIKELY(!bw_rtt_distant(&t->rtt)))
		return;
	ns = e->now - c->pace.since;
	c->pace.bytes += bytes;
	if (pn < c->pace.end)
		return;
	if (c->pace.end && ns) {
		if (pn < c->limited_pn)
			c->pace.rate -= c->pace.rate / BW_PACE_MEMORY;
		c->pace.rate = bw_max_u64(c->pace.rate, c->pace.bytes * BW_MS / ns);
	}
	c->pace.end = t->pn_next;
	c->pace.since = e->now;
	c->pace.bytes = 0;
}

/* How long the path is to be let alone after so many bytes. In slow start the window doubles within
 * a round trip; later it is a little more than what the path has carried, so that the window is
 * what limits: its own rate is too high after a pause, when the round trip is short again. */
static uint64_t bw_pace_ns(const struct bw_path *t, uint64_t bytes)
{
	const struct bw_cc *c = &t->cc;
	uint64_t ns = bytes * t->rtt.srtt / c->cwnd;

	if (c->cwnd < c->ssthresh)
		return ns / 2;
	ns = ns * 4 / 5;
	return c->pace.rate ? bw_max_u64(ns, bytes * BW_MS / (c->pace.rate + c->pace.rate / 8))
			    : ns;
}

bool bw_pace_holds(const struct bw_engine *e, struct bw_path *t)
{
	struct bw_cc *c = &t->cc;

	if (BW_LIKELY(!bw_rtt_distant(&t->rtt)) || c->pace.at <= e->now)
		return false;
	c->pace.until = c->pace.at + BW_PACE_BURST / 2; /* no timer for each frame */
	return true;
}

void bw_pace_sent(const struct bw_engine *e, struct bw_path *t, uint64_t bytes)
{
	struct bw_cc *c = &t->cc;
	uint64_t burst;

	if (BW_LIKELY(!bw_rtt_distant(&t->rtt)))
		return;
	burst = bw_max_u64(t->rtt.srtt / BW_PACE_PART, BW_PACE_BURST);
	c->pace.at =
		bw_max_u64(c->pace.at, e->now > burst ? e->now - burst : 0) + bw_pace_ns(t, bytes);
}
