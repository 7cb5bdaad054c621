/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The traffic of one phase on one rank: what it sends, what it receives, and a bulk transfer
 * beside.
 */
#ifndef EXAMPLES_LOAD_TRAFFIC_H
#define EXAMPLES_LOAD_TRAFFIC_H

#include "load_bulk.h"
#include "load_sender.h"

#define MESSAGES_MAX (1u << 22) /* of a sender in a phase */

struct limits {
	int outstanding; /* messages of a sender, see load_sender.h */
	uint64_t outstanding_bytes;
	uint64_t nap_ns; /* how long a rank that has nothing to do sleeps; 0: it looks on */
	bool answers;	 /* times are round trips; else one way, by a clock that all ranks share */
};

struct traffic {
	struct sender sender;
	struct receiver receiver;
	struct bulk bulk;
	uint64_t end_ns; /* after the start, when all was done */
	/*
	 * Of the times in which the rank did not look for longer than AWAY_NS: when it did not run,
	 * others having its processor, and when it ran, in a call of MPI's.
	 */
	uint64_t away_ns, inside_ns;
};

#define AWAY_NS 1000000u

/*
 * Runs the phase to its end, and not less than the arrangement's horizon. Every rank must call it.
 * The traffic's results stay until traffic_close().
 */
void traffic_run(struct traffic *traffic, const struct arrangement *arrangement,
		 const struct limits *limits, const struct bulk *bulk, int rank);

void traffic_close(struct traffic *traffic);

#endif
