/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Are there more runnable threads than cores granted to us? Then spinning takes the core away from
 * whoever we wait for. Judged by evidence: how long our own thread waited for a core, and whether
 * the control group ran into its quota. Where others have an idle core beside them meanwhile, the
 * thread moves there instead.
 */
#ifndef BW_CROWD_H
#define BW_CROWD_H

#include <stdbool.h>
#include <stdint.h>

#include "cores.h"

#define BW_CROWD_SAMPLE_NS (10 * 1000000ull) /* between two looks at the evidence */

struct bw_crowd {
	bool crowded;
	bool spread;	       /* set by who uses it: its threads may move to cores that are idle */
	uint64_t until;	       /* no new judgement before, while crowded */
	uint64_t hold_ns;      /* length of the next such time */
	uint64_t sampled_at;   /* last look; 0: none yet */
	uint64_t delay_ns;     /* time that this thread had waited for a core then */
	uint64_t throttled;    /* periods throttled by then */
	uint32_t evidence;     /* looks in a row that spoke for crowding */
	uint32_t tries;	       /* in a row to move to a core that was idle */
	int thread;	       /* the thread that looked */
	struct bw_cores cores; /* at the first evidence in a row */
	char cpu_stat[256];    /* file of the control group with a quota, "" if there is none */
};

void bw_crowd_init(struct bw_crowd *c, uint64_t now);

/* Look again if it is time. */
void bw_crowd_sample(struct bw_crowd *c, uint64_t now);

/* Cores that this process may use at the same time, by affinity and quota. */
double bw_crowd_cores(struct bw_crowd *c);

#endif
