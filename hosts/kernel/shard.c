/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ports that share a number; see shard.h. */
#include "shard.h"

#include <linux/cpumask.h>
#include <linux/jhash.h>
#include <linux/random.h>
#include <linux/slab.h>

/* The place of who has this engine number. */
static u32 bwk_shards_place(const struct bwk_shards *shards, u16 engine, u32 count)
{
	return (u32)(((u64)jhash_1word(engine, shards->salt) * count) >> 32);
}

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
	smp_store_release(&shards->count, count); /* all of them are seen by who sees that */
}

/* Peers that the first one had alone, and whose frames now go elsewhere, are told that they are
 * left, and make contact anew. */
static void bwk_shards_part(struct bwk_port *first, const struct bwk_shards *shards, u32 count)
{
	unsigned long number;
	struct bwk_peer *peer;
	u32 done = 0;

	bwk_port_lock(first);
	for (number = 0; (peer = xa_find(&first->by_number, &number, ULONG_MAX, XA_PRESENT));
	     number++) {
		if (bwk_shards_place(shards, peer->addr.sbw_port, count)) {
			bwk_peer_leave(first, peer);
			bwk_port_run(first); /* an engine keeps a few farewells at a time */
		}
		bwk_port_breathe(first, &done);
	}
	bwk_port_unlock(first);
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
	shards->salt = get_random_u32();
	RCU_INIT_POINTER(shards->port[0], first);
	rcu_assign_pointer(first->shards, shards);
	smp_store_release(&first->own, BWK_PORT_SHARED); /* `shards` is seen by who sees that */
	next.beside = first;
	next.place = &made;
	while (count < wanted && bwk_port_open(first->node, &next) == 0)
		count++;
	bwk_shards_begin(shards, count);
	synchronize_rcu_expedited(); /* no frame is on its way to the first one alone any more */
	bwk_shards_part(first, shards, count);
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
	const struct bwk_shards *shards;
	const struct bwk_port *port;

	smp_rmb(); /* the port was looked for by its own number before */
	hash_for_each_possible_rcu(node->ports, port, hash, number) {
		shards = port->number == number ? rcu_dereference(port->shards) : NULL;
		if (shards) /* one that ends has none any more */
			return shards;
	}
	return NULL;
}

struct bwk_port *bwk_shards_choose(const struct bwk_shards *shards, const struct sk_buff *skb)
{
	struct bw_hdr room BWK_FILLED;
	const struct bw_hdr *h = skb_header_pointer(skb, 0, sizeof(room), &room);
	u32 count = smp_load_acquire(&shards->count);

	return rcu_dereference(shards->port[bwk_shards_place(shards, h->src_engine, count)]);
}

void bwk_shards_visit(struct bwk_port *port, void (*each)(struct bwk_port *port, void *sum),
		      void *sum)
{
	const struct bwk_shards *shards;
	struct bwk_port *other;
	u32 i, count;

	rcu_read_lock();
	shards = rcu_dereference(port->shards);
	count = shards ? smp_load_acquire(&shards->count) : 0; /* others may have no engine yet */
	if (!shards)
		each(port, sum);
	for (i = 0; i < count; i++) {
		other = rcu_dereference(shards->port[i]);
		if (other)
			each(other, sum);
	}
	rcu_read_unlock();
}
