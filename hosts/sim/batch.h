/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Many runs, each a process's business of its own, so that a crash or a hang names its seed. */
#ifndef SIM_BATCH_H
#define SIM_BATCH_H

#include "sim.h"

struct sim_batch {
	const struct bw_protocol *protocol;
	const struct sim_spec *scenario; /* NULL: drawn from the seed */
	uint64_t first, last;		 /* seeds */
	uint64_t frames;		 /* stop after so many; 0: no limit */
	uint32_t jobs;
	bool singly; /* sim_spec.singly in all runs */
	bool json;
};

/* Make the specification of one run. */
void sim_batch_spec(const struct sim_batch *b, uint64_t seed, struct sim_spec *spec);
/* Exit status: 0 when all invariants held in all runs. */
int sim_batch_run(const struct sim_batch *b);

#endif
