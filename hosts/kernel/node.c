/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Network namespaces come and go; each is a node of its own while it exists. See node.h. */
#include "node.h"

#include <linux/random.h>
#include <net/netns/generic.h>

#include "port.h"

#define BWK_MEMORY_MAX (64 << 20) /* bytes */
#define BWK_REFUSALS   1000	  /* a second */

unsigned int bwk_node_id;

struct bwk_node *bwk_node_of(const struct net *net)
{
	return net_generic(net, bwk_node_id);
}

static int __net_init bwk_node_begin(struct net *net)
{
	struct bwk_node *node = bwk_node_of(net);
	int error;

	node->net = net;
	node->id = get_random_u64() | 1;
	node->set = (struct bwk_settings){
		.cluster = BW_CLUSTER_DEFAULT,
		.group_range = {1, 0},
		.qdisc_bypass = 1,
		.taps = 1,
		.memory_max = BWK_MEMORY_MAX,
	};
	bwk_key_init(&node->set.key);
	mutex_init(&node->lock);
	spin_lock_init(&node->ports_lock);
	hash_init(node->ports);
	spin_lock_init(&node->socks_lock);
	INIT_HLIST_HEAD(&node->socks);
	mutex_init(&node->telling);
	bwk_tally_init(&node->tally);
	ratelimit_state_init(&node->refusals, HZ, BWK_REFUSALS);
	ratelimit_set_flags(&node->refusals, RATELIMIT_MSG_ON_RELEASE); /* it is no complaint */
	hash_init(node->server_ports);
	node->count = alloc_percpu(struct bwk_node_counters);
	if (!node->count)
		return -ENOMEM;
	error = bwk_sysctl_init(node);
	if (error)
		goto no_sysctl;
	error = bwk_proc_init(node);
	if (error)
		goto no_proc;
	return 0;
no_proc:
	bwk_sysctl_exit(node);
no_sysctl:
	free_percpu(node->count);
	return error;
}

static void __net_exit bwk_node_end(struct net *net)
{
	struct bwk_node *node = bwk_node_of(net);

	bwk_proc_exit(node);
	bwk_sysctl_exit(node);
	bwk_port_end_all(node);
	bwk_iface_detach_all(node);
	bwk_key_wipe(&node->set.key);
	free_percpu(node->count);
}

static struct pernet_operations bwk_node_ops = {
	.init = bwk_node_begin,
	.exit = bwk_node_end,
	.id = &bwk_node_id,
	.size = sizeof(struct bwk_node),
};

int bwk_node_init(void)
{
	return register_pernet_device(&bwk_node_ops);
}

void bwk_node_exit(void)
{
	unregister_pernet_device(&bwk_node_ops);
}
