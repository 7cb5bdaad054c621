/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ports that share a number; see shard.h. */
#include "shard.h"

#include <linux/cpumask.h>
#include <linux/slab.h>

/* One port can have its lock held on one processor at a time. */
static u32 bwk_shards_wanted(const struct bwk_node *node)
{
	u32 set = READ_ONCE(node->set.shards);

	return set ? set : min_t(u32, num_online_cpus(), BWK_SHARDS_MAX);
}

void bwk_shards_join(struct bwk_port *port, struct bwk_port *first)
{
	struct bwk_shards *shards =
		rcu_dereference_protected(first->shards, lockdep_is_held(&first->node->ports_lock));

	port->number = first->number;
	port->inc = first->inc;
	port->shard = shards->left;
	RCU_INIT_POINTER(port->shards, shards);
	rcu_assign_pointer(shards->port[shards->left++], port);
}

bool bwk_shards_leave(struct bwk_port *port)
{
	struct bwk_shards *shards =
		rcu_dereference_protected(port->shards, lockdep_is_held(&port->node->ports_lock));

	if (!shards)
		return true;
	RCU_INIT_POINTER(shards->port[port->shard], NULL);
	RCU_INIT_POINTER(port->shards, NULL);
	if (--shards->left)
		return false;
	kfree_rcu(shards, rcu);
	return true;
}

/* What all may take together is what one may that has no others beside it. */
static void bwk_shards_begin(struct bwk_shards *shards, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++)
		WRITE_ONCE(rcu_dereference_protected(shards->port[i], true)->sharers, count);
	WRITE_ONCE(shards->count, count);
}

void bwk_shards_open(struct bwk_port *first, const struct bwk_port_attr *attr)
{
	u32 wanted = bwk_shards_wanted(first->node), count = 1;
	struct bwk_port_attr next = *attr;
	struct bwk_shards *shards;
	struct bwk_port *made;

	if (wanted < 2)
		return;
	shards = kzalloc(sizeof(*shards), GFP_KERNEL_ACCOUNT);
	if (!shards)
		return;
	shards->count = shards->left = 1;
	RCU_INIT_POINTER(shards->port[0], first);
	rcu_assign_pointer(first->shards, shards);
	smp_store_release(&first->own, BWK_PORT_SHARED); /* `shards` is seen by who sees that */
	next.beside = first;
	next.place = &made;
	while (count < wanted && bwk_port_open(first->node, &next) == 0)
		count++;
	bwk_shards_begin(shards, count);
}

void bwk_shards_release(struct bwk_port *first, const void *owner)
{
	/* The first one, whose owner has not left it, keeps what describes them. */
	struct bwk_shards *shards = rcu_dereference_protected(first->shards, true);
	u32 i;

	for (i = 1; shards && i < shards->count; i++)
		bwk_port_release(rcu_dereference_protected(shards->port[i], true), owner);
}

const struct bwk_shards *bwk_shards_find(struct bwk_node *node, u16 number)
{
	const struct bwk_port *port;

	smp_rmb(); /* the port was looked for by its own number before */
	hash_for_each_possible_rcu(node->ports, port, hash, number)
		if (port->number == number)
			return rcu_dereference(port->shards);
	return NULL;
}

struct bwk_port *bwk_shards_choose(const struct bwk_shards *shards, const struct sk_buff *skb)
{
	struct bw_hdr room BWK_FILLED;
	const struct bw_hdr *h = skb_header_pointer(skb, 0, sizeof(room), &room);

	return rcu_dereference(shards->port[bwk_shard_of(h->src_engine, READ_ONCE(shards->count))]);
}

void bwk_shards_visit(struct bwk_port *port, void (*each)(struct bwk_port *port, void *sum),
		      void *sum)
{
	const struct bwk_shards *shards;
	struct bwk_port *other;
	u32 i;

	rcu_read_lock();
	shards = rcu_dereference(port->shards);
	if (!shards)
		each(port, sum);
	for (i = 0; shards && i < BWK_SHARDS_MAX; i++) {
		other = rcu_dereference(shards->port[i]);
		if (other)
			each(other, sum);
	}
	rcu_read_unlock();
}
