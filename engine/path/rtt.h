/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long a path's answers take (RFC 6298), and what follows from it. Times are in ns; nothing
 * here reads a clock or can fail.
 */
#ifndef BW_RTT_H
#define BW_RTT_H

#include "platform.h"

#define BW_RTT_INITIAL (1 * BW_MS)   /* assumed before the first sample: a local network */
#define BW_RTT_LONGEST BW_S	     /* first contact that takes longer was waiting, no way */
#define BW_RTT_GUESS   (100 * BW_MS) /* longest one taken from first contact */
#define BW_PTO_MIN     (50 * BW_US)  /* below this a probe would only meet scheduling noise */
#define BW_DISTANT     (2 * BW_MS)   /* shortest round trip from which a path is distant */

/* Written by bw_rtt_sample() and bw_rtt_bound() only. */
struct bw_rtt {
	uint64_t srtt;	/* ns, smoothed; 0: not measured */
	uint64_t var;	/* ns, its smoothed deviation */
	uint64_t min;	/* ns, the shortest one; 0: not measured */
	uint64_t guess; /* ns, stands for srtt before the first sample */
};

/* One was measured. */
void bw_rtt_sample(struct bw_rtt *r, uint64_t sample);
/* An answer to a HELLO has come, so long after the first one: no round trip is longer than that. If
 * it took very long, the peer was not there yet, or had nothing to say. */
void bw_rtt_bound(struct bw_rtt *r, uint64_t since);

static inline uint64_t bw_rtt_smooth(const struct bw_rtt *r)
{
	return r->srtt ? r->srtt : r->guess;
}

/* A packet whose acknowledgement takes longer may be lost; the peer's delay comes on top. */
static inline uint64_t bw_rtt_pto(const struct bw_rtt *r)
{
	uint64_t srtt = bw_rtt_smooth(r);

	return bw_max_u64(bw_max_u64(2 * srtt, srtt + 4 * r->var), BW_PTO_MIN);
}

/* A packet that others have overtaken is lost after so long (RFC 9002 6.1.2). */
static inline uint64_t bw_rtt_late(const struct bw_rtt *r)
{
	uint64_t srtt = bw_rtt_smooth(r);

	return srtt + srtt / 8 + bw_max_u64(4 * r->var, BW_PTO_MIN);
}

/* Is the peer so far away that a window's burst is more than a queue can hold? */
static inline bool bw_rtt_distant(const struct bw_rtt *r)
{
	return r->min >= BW_DISTANT;
}

#endif
