/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When a rank sends which message to whom: drawn before anything is sent, so that no completion
 * can delay it (an open loop), and from a seed alone, so that every rank knows what the others
 * send it.
 */
#ifndef EXAMPLES_LOAD_SCHEDULE_H
#define EXAMPLES_LOAD_SCHEDULE_H

#include "load_sizes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum arrivals {
	ARRIVALS_POISSON, /* gaps are drawn (exponential), each sender's its own */
	ARRIVALS_WAVES,	  /* all senders at once, each gap as long */
	ARRIVALS_IDLE,	  /* rank 1 alone to rank 0, sizes as listed: nothing else moves */
};

struct message {
	uint64_t due_ns; /* after the start */
	uint64_t bytes;
	uint64_t number; /* among the messages of its sender, from 0 */
	int from, to;
};

/* What a phase's schedules are drawn from; alike on all ranks. */
struct arrangement {
	enum arrivals arrivals;
	struct sizes sizes;
	bool to_all;	      /* to random others; else all to rank 0, which sends nothing */
	uint64_t gap_ns;      /* between messages of a sender: the mean, or each; above 0 */
	uint64_t horizon_ns;  /* messages are due before it */
	uint64_t seed;	      /* of the phase */
	uint64_t idle_copies; /* ARRIVALS_IDLE: how often each size is sent */
	const uint64_t *idle_bytes, *idle_gaps_ns; /* each with idle_sizes members */
	size_t idle_sizes;
	int ranks;
};

struct schedule {
	struct message *messages; /* by due_ns; the schedule's own */
	size_t count, room;
	uint64_t bytes; /* of all messages */
};

/*
 * The messages of rank @from, to rank @to alone if that is not negative. @room is the most that
 * may be drawn; false, with nothing kept, if that does not suffice.
 */
bool schedule_draw(struct schedule *schedule, const struct arrangement *arrangement, int from,
		   int to, size_t room);

void schedule_free(struct schedule *schedule);

/* What a message's content is made from. */
uint64_t message_seed(const struct arrangement *arrangement, const struct message *message);

#endif
