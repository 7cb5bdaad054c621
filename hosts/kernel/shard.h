/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shards: ports that share a number and an incarnation, each with an engine and a lock of its own.
 * To other nodes they are one port. A frame goes to the shard that the number of the engine it
 * comes from chooses, whatever interface it came by, so that all of a peer is in one engine.
 *
 * A listening socket has one for each processor: its connections are spread over that many locks.
 */
#ifndef BWK_SHARD_H
#define BWK_SHARD_H

#include "port.h"

#define BWK_SHARDS_MAX 8

struct bwk_shards {
	u32 count; /* of those that frames are dealt out to; 1 until all are open */
	u32 left;  /* in the node's table; its ports_lock */
	u32 salt;  /* of the choice among them: who is with whom is not for peers to choose */
	struct rcu_head rcu;
	struct bwk_port __rcu *port[BWK_SHARDS_MAX]; /* NULL: ended; the node's ports_lock */
};

/* Opens shards beside this port, whose owner calls, once: as many as the node's setting says, or
 * memory allows. Peers of the port that belong to others from then on are left. `attr`: as the
 * port's own. Process context. */
void bwk_shards_open(struct bwk_port *first, const struct bwk_port_attr *attr);
/* The owner goes: all but the first one are released. */
void bwk_shards_release(struct bwk_port *first, const void *owner);

/* Of one of a port's shards: into the node's table, and out of it. LEAVE: no other is in it, so the
 * number is free. The node's ports_lock held. */
void bwk_shards_join(struct bwk_port *port, struct bwk_port *first);
bool bwk_shards_leave(struct bwk_port *port);

/* Those of a number that no port has alone, or NULL. RCU's read lock held. */
const struct bwk_shards *bwk_shards_find(struct bwk_node *node, u16 number);
/* The one that this frame is for, whose header has been seen; NULL: it has ended. RCU's read lock
 * held. */
struct bwk_port *bwk_shards_choose(const struct bwk_shards *shards, const struct sk_buff *skb);

/* `each` with every shard of a port that has not ended, itself included, by turns. Not locked. */
void bwk_shards_visit(struct bwk_port *port, void (*each)(struct bwk_port *port, void *sum),
		      void *sum);

#endif
