/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is going to happen, ordered by virtual time; equal times in the order of insertion, so that
 * a run repeats exactly.
 */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

struct sim_event {
	uint64_t at;	/* ns */
	uint64_t order; /* insertion number */
	void *what;	/* meaning depends on kind */
	uint32_t arg;
	uint32_t kind; /* enum sim_event_kind */
};

struct sim_queue {
	struct sim_event *heap; /* four children each: shallower than a binary heap */
	uint32_t used, room;
	uint64_t inserted;
};

void sim_queue_add(struct sim_queue *q, uint64_t at, uint32_t kind, void *what, uint32_t arg);
/* Take the earliest event; false when nothing is left. */
bool sim_queue_take(struct sim_queue *q, struct sim_event *out);
void sim_queue_free(struct sim_queue *q);

#endif
