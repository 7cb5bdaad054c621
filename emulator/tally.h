/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a direction did, against what its model said: the model's counts, how late frames left, how
 * fast the link was while busy, and every way in which reality fell short. A verdict is drawn from
 * it.
 */
#ifndef EM_TALLY_H
#define EM_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "histogram.h"
#include "model.h"

/* Times on the busy link: between frames of one period, which the model sends with no gap. */
struct em_busy {
	uint64_t took_ns;    /* as it was */
	uint64_t planned_ns; /* as it should have been */
	uint64_t wire_bytes; /* in that time */
	uint64_t periods;    /* of more than one frame */
};

struct em_tally {
	struct em_settings set;
	struct em_counts count;
	struct em_busy busy;
	uint64_t delay_least;	  /* ns; the shortest that was set in this time */
	uint64_t given;		  /* frames handed to the kernel */
	uint64_t under_way;	  /* frames not yet due */
	uint64_t missed;	  /* frames that the kernel had no room for in the ring */
	uint64_t refused;	  /* frames that the kernel would not send */
	uint64_t dropped_device;  /* frames that the device threw away, some of `down` as well */
	uint64_t no_memory;	  /* frames beyond what may be under way */
	uint64_t down;		  /* frames lost because the outgoing interface was down */
	uint64_t beyond_mtu;	  /* frames longer than the outgoing interface takes */
	uint64_t odd;		  /* super-frames that could not be taken apart */
	uint64_t naps, spins;	  /* how the time between frames was waited */
	struct em_histogram late; /* ns from when a frame was due to when it was handed over */
};

/* The frame before, to which the next one of the same busy period is compared. */
struct em_last {
	uint64_t given, sent, charged;
	uint32_t period;
	bool any, follows; /* there is one; it was not the first of its period */
};
/* Count a frame as handed to the kernel at `given`. */
void em_tally_given(struct em_tally *t, struct em_last *last, const struct em_fate *fate,
		    uint64_t given);

/* Begin anew. What stays is the settings. */
void em_tally_reset(struct em_tally *t);

/* bit/s on the wire while the link was busy; 0: it never was, or has no rate. */
uint64_t em_tally_rate(const struct em_tally *t);

/* Lost frames among those that the wire carried, in parts per EM_SHARE_ONE. */
uint32_t em_tally_loss(const struct em_tally *t);

/* Frames that the outgoing device threw away though it was up. */
uint64_t em_tally_dropped(const struct em_tally *t);

/* ---- The verdict ---- */

#define EM_LATE_NS	 100000u    /* by default: lateness that is never too much */
#define EM_LATE_SHARE	 50000000u  /* share of the delay that is not: 5 % */
#define EM_RATE_SHARE	 20000000u  /* how far the rate may be off: 2 % */
#define EM_RATE_LEAST_NS 100000000u /* of busy time before the rate is judged */
#define EM_REASONS	 8

struct em_bound {
	uint64_t late_ns;
	uint32_t late_share;
};

/* The lateness that 99 % of the frames may have, in ns. */
uint64_t em_bound_late(const struct em_bound *b, uint64_t delay);

/* Write the reasons why a direction was not what its settings say; their number, 0: valid. */
int em_verdict(const struct em_tally *t, const struct em_bound *b, const char *direction,
	       char reason[EM_REASONS][EM_WHY_MAX]);

#endif
