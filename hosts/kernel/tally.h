/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the engines of a node's ports have dropped and refused: of all ports that there were. */
#ifndef BWK_TALLY_H
#define BWK_TALLY_H

#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "protocol.h"

struct bwk_node;
struct bwk_port;

struct bwk_sums {
	u64 drop[BW_DROP_REASONS];
	u64 refusals_tx, refusals_rx, challenges_tx, challenges_rx, evicted;
};

/* A reading goes over the open ports, beside which ports end. */
struct bwk_tally {
	struct mutex one;	/* reading at a time */
	spinlock_t lock;	/* of all that follows; taken with a port's lock held */
	u64 reading;		/* its number, from 1 */
	struct bwk_sums ended;	/* of ports that have ended */
	struct bwk_sums missed; /* of those since the reading began that it had not come to */
};

void bwk_tally_init(struct bwk_tally *tally);
/* From now on the port's engine is asked. Lock held. */
void bwk_tally_begin(struct bwk_port *port);
/* Its engine counts no more. Lock held. */
void bwk_tally_end(struct bwk_port *port);
/* No port is missing in it, and none is there twice. Process context. */
void bwk_tally_read(struct bwk_node *node, struct bwk_sums *sums);

#endif
