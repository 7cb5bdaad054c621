/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* /proc/sys/net/beowire: the settings of a node. */
#include <linux/cred.h>
#include <linux/slab.h>
#include <linux/sysctl.h>
#include <linux/uidgid.h>

#include "compat.h"
#include "shard.h"

static unsigned int bwk_no_shards, bwk_most_shards = BWK_SHARDS_MAX;
static unsigned int bwk_least_memory = 1 << 20, bwk_most_memory = 1 << 30;

/* `data` is the offset in struct bwk_settings. */
#define BWK_SETTING(field) .data = (void *)offsetof(struct bwk_settings, field), .mode = 0644

static const struct ctl_table bwk_sysctl_template[] = {
	{
		.procname = "cluster",
		BWK_SETTING(cluster),
		.maxlen = sizeof(unsigned int),
		.proc_handler = proc_douintvec,
	},
	{
		.procname = "group_range",
		BWK_SETTING(group_range),
		.maxlen = 2 * sizeof(unsigned long),
		.proc_handler = proc_doulongvec_minmax,
	},
	{
		.procname = "qdisc_bypass",
		BWK_SETTING(qdisc_bypass),
		.maxlen = sizeof(int),
		.proc_handler = proc_dointvec_minmax,
		.extra1 = SYSCTL_ZERO,
		.extra2 = SYSCTL_ONE,
	},
	{
		.procname = "taps",
		BWK_SETTING(taps),
		.maxlen = sizeof(int),
		.proc_handler = proc_dointvec_minmax,
		.extra1 = SYSCTL_ZERO,
		.extra2 = SYSCTL_ONE,
	},
	{
		.procname = "copy_max",
		BWK_SETTING(copy_max),
		.maxlen = sizeof(unsigned int),
		.proc_handler = proc_dointvec_minmax,
		.extra1 = SYSCTL_ZERO,
		.extra2 = SYSCTL_INT_MAX,
	},
	{
		.procname = "memory_max",
		BWK_SETTING(memory_max),
		.maxlen = sizeof(unsigned int),
		.proc_handler = proc_douintvec_minmax,
		.extra1 = &bwk_least_memory,
		.extra2 = &bwk_most_memory,
	},
	{
		.procname = "shards",
		BWK_SETTING(shards),
		.maxlen = sizeof(unsigned int),
		.proc_handler = proc_douintvec_minmax,
		.extra1 = &bwk_no_shards,
		.extra2 = &bwk_most_shards,
	},
	{
		.procname = "key",
		BWK_SETTING(key),
		.proc_handler = bwk_key_handler,
	},
	{
		.procname = "encrypt",
		BWK_SETTING(encrypt),
		.maxlen = sizeof(int),
		.proc_handler = bwk_encrypt_handler,
		.extra1 = SYSCTL_ZERO,
		.extra2 = SYSCTL_ONE,
	},
	{}, /* ends the table for kernels before 6.11 */
};

#define BWK_SYSCTLS (ARRAY_SIZE(bwk_sysctl_template) - 1)

int bwk_sysctl_init(struct bwk_node *node)
{
	int i;

	node->table = kmemdup(bwk_sysctl_template, sizeof(bwk_sysctl_template), GFP_KERNEL);
	if (!node->table)
		return -ENOMEM;
	for (i = 0; i < (int)BWK_SYSCTLS; i++)
		node->table[i].data = (char *)&node->set + (size_t)node->table[i].data;
	node->sysctl = bwk_register_net_sysctl(node->net, "net/beowire", node->table, BWK_SYSCTLS);
	if (node->sysctl)
		return 0;
	kfree(node->table);
	return -ENOMEM;
}

void bwk_sysctl_exit(struct bwk_node *node)
{
	unregister_net_sysctl_table(node->sysctl);
	kfree(node->table);
}

bool bwk_sysctl_allows(struct bwk_node *node)
{
	struct user_namespace *users = node->net->user_ns;
	struct group_info *groups;
	kgid_t low, high;
	bool allowed;
	int i;

	if (ns_capable(users, CAP_NET_RAW))
		return true;
	low = make_kgid(users, READ_ONCE(node->set.group_range[0]));
	high = make_kgid(users, READ_ONCE(node->set.group_range[1]));
	if (!gid_valid(low) || !gid_valid(high) || !gid_lte(low, high))
		return false;
	allowed = gid_lte(low, current_egid()) && gid_lte(current_egid(), high);
	groups = get_current_groups();
	for (i = 0; i < groups->ngroups && !allowed; i++)
		allowed = gid_lte(low, groups->gid[i]) && gid_lte(groups->gid[i], high);
	put_group_info(groups);
	return allowed;
}
