/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "home.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "setting.h"

#ifndef MPOL_PREFERRED_MANY
#define MPOL_PREFERRED_MANY 5 /* Linux 5.15 */
#endif

static const char *const bw_home_names[] = {"default", "bind", "interleave", "preferred"};
static const int bw_home_modes[] = {MPOL_DEFAULT, MPOL_BIND, MPOL_INTERLEAVE, MPOL_PREFERRED};

/* The node where an interface is, or else that of this processor: among those that are allowed. */
static int bw_home_node(struct bw_home *home, const char *interface, const char *policy)
{
	int node = interface ? bw_numa_of_interface(interface) : -1, near;
	char list[BW_NUMA_TEXT];

	if (node < 0) {
		node = bw_numa_nearest(bw_numa_here(), &home->allowed);
		snprintf(home->text, sizeof(home->text), "node %d of this processor (%s)%s%s", node,
			 policy, interface ? ", as no node is known of " : "",
			 interface ? interface : "");
		return node;
	}
	near = bw_numa_nearest(node, &home->allowed);
	if (near == node) {
		snprintf(home->text, sizeof(home->text), "node %d, where %s is (%s)", node,
			 interface, policy);
		return node;
	}
	snprintf(home->text, sizeof(home->text),
		 "node %d (%s), the nearest to node %d of %s that is allowed", near, policy, node,
		 interface);
	bw_log_once(home->explicit ? BW_LOG_WARN : BW_LOG_INFO, "cpuset",
		    "%s is at node %d, and this process may have memory of node %s only "
		    "(cpuset.mems): it lies on node %d",
		    interface, node, bw_nodes_print(&home->allowed, list), near);
	return near;
}

static int bw_home_mode(const struct bw_home *home, enum bw_env_memory memory)
{
	bool many = bw_nodes_count(&home->areas.policy.nodes) > 1;

	return memory == BW_MEMORY_PREFERRED && many ? MPOL_PREFERRED_MANY : bw_home_modes[memory];
}

/* Whether the kernel takes it: asked of the thread's own policy, which is as before afterwards. */
static int bw_home_try(const struct bw_policy *policy)
{
	struct bw_policy before;
	int error = bw_policy_get(&before);

	if (!error)
		error = bw_policy_set(policy);
	return error ? error : bw_policy_set(&before);
}

/* A policy by name. */
static int bw_home_explicit(struct bw_home *home, const struct bw_env *env, const char *interface,
			    const char **why)
{
	const char *name = bw_home_names[env->memory];
	struct bw_policy *policy = &home->areas.policy;
	char list[BW_NUMA_TEXT], all[BW_NUMA_TEXT];
	int error;

	home->explicit = true;
	if (bw_nodes_first(&env->nodes) >= 0)
		policy->nodes = env->nodes;
	else if (env->memory == BW_MEMORY_INTERLEAVE)
		policy->nodes = home->allowed;
	else
		bw_nodes_add(&policy->nodes, bw_home_node(home, interface, name));
	if (!home->text[0])
		snprintf(home->text, sizeof(home->text), "nodes %s (%s)",
			 bw_nodes_print(&policy->nodes, list), name);
	if (!bw_nodes_within(&policy->nodes, &home->allowed))
		return bw_fail(why, -EINVAL,
			       "BEOWIRE_MEMORY=%s is not valid here: this process may have memory "
			       "of node %s only",
			       bw_setting("BEOWIRE_MEMORY"), bw_nodes_print(&home->allowed, all));
	policy->mode = bw_home_mode(home, env->memory);
	error = bw_home_try(policy);
	if (error == -EINVAL && policy->mode == MPOL_PREFERRED_MANY)
		return bw_fail(why, -EOPNOTSUPP,
			       "BEOWIRE_MEMORY=%s: this kernel prefers one node only (several need "
			       "Linux 5.15)",
			       bw_setting("BEOWIRE_MEMORY"));
	if (error)
		return bw_fail(why, error, "BEOWIRE_MEMORY=%s: the kernel refuses it: %s",
			       bw_setting("BEOWIRE_MEMORY"), strerror(-error));
	home->areas.placed = home->areas.own = true;
	home->by_interface = bw_nodes_first(&env->nodes) < 0 && env->memory != BW_MEMORY_INTERLEAVE;
	return 0;
}

/* Without one: near the interface, where there are several nodes and nobody has decided before. */
static void bw_home_default(struct bw_home *home, const char *interface)
{
	struct bw_policy before, *policy = &home->areas.policy;
	struct bw_nodes online;

	if (bw_policy_get(&before) || before.mode != MPOL_DEFAULT) {
		snprintf(home->text, sizeof(home->text), "as the policy of this process has it");
		return;
	}
	bw_numa_online(&online);
	if (bw_nodes_count(&online) < 2) {
		snprintf(home->text, sizeof(home->text), "the only node");
		return;
	}
	if (!interface || bw_numa_of_interface(interface) < 0) {
		snprintf(home->text, sizeof(home->text), "where it is touched first%s%s",
			 interface ? ", as no node is known of " : "", interface ? interface : "");
		return;
	}
	bw_nodes_add(&policy->nodes, bw_home_node(home, interface, "preferred"));
	policy->mode = MPOL_PREFERRED;
	if (bw_home_try(policy)) {
		snprintf(home->text, sizeof(home->text),
			 "where it is touched first, as the kernel refuses policies");
		return;
	}
	home->areas.placed = home->areas.own = home->by_interface = true;
}

static int bw_home_huge(struct bw_home *home, const struct bw_env *env, const char **why)
{
	size_t bytes = (size_t)env->huge_bytes;

	if (bytes == 1)
		bytes = bw_area_huge_default();
	if (env->huge_bytes && !bytes)
		return bw_fail(why, -EOPNOTSUPP,
			       "BEOWIRE_HUGE_PAGES=%s: this kernel has no huge pages",
			       bw_setting("BEOWIRE_HUGE_PAGES"));
	home->areas.huge = bytes;
	home->areas.own |= bytes > 0;
	return 0;
}

int bw_home_open(struct bw_home *home, const struct bw_env *env, const char *interface,
		 const char **why)
{
	int error;

	if (home->open)
		return 0;
	error = bw_numa_allowed(&home->allowed);
	if (error && env->memory != BW_MEMORY_DEFAULT)
		return bw_fail(why, error,
			       "BEOWIRE_MEMORY=%s: the kernel has no policies of memory for this "
			       "process: %s",
			       bw_setting("BEOWIRE_MEMORY"), strerror(-error));
	if (error)
		snprintf(home->text, sizeof(home->text), "as the kernel likes, without policies");
	else if (env->memory == BW_MEMORY_DEFAULT)
		bw_home_default(home, interface);
	else
		error = bw_home_explicit(home, env, interface, why);
	if (error && env->memory != BW_MEMORY_DEFAULT)
		return error;
	error = bw_home_huge(home, env, why);
	home->open = !error;
	return error;
}

void bw_home_enter(struct bw_home *home, const char *interface)
{
	struct bw_policy policy = home->areas.policy;
	struct bw_home other = *home;

	if (!home->areas.placed || (!home->entered && bw_policy_get(&home->before)))
		return;
	home->entered = true;
	if (interface && home->by_interface && bw_numa_of_interface(interface) >= 0) {
		memset(&policy.nodes, 0, sizeof(policy.nodes));
		bw_nodes_add(&policy.nodes, bw_home_node(&other, interface, ""));
	}
	bw_policy_set(&policy);
}

void bw_home_leave(struct bw_home *home)
{
	if (home->entered)
		bw_policy_set(&home->before);
	home->entered = false;
}

void bw_home_share(const struct bw_home *home, void *at, size_t bytes)
{
	if (home && home->explicit)
		bw_policy_bind(&home->areas.policy, at, bytes);
}

const char *bw_home_tell(const struct bw_home *home, char text[BW_HOME_TEXT])
{
	static const char *const pages[] = {
		[BW_AREA_PLAIN] = "no huge pages, as there are none",
		[BW_AREA_TRANSPARENT] = "transparent huge pages where the kernel finds some",
		[BW_AREA_HUGE] = "huge pages of the reserve",
	};

	if (home->areas.huge)
		snprintf(text, BW_HOME_TEXT, "%s; pools in %zu KiB: %s", home->text,
			 home->areas.huge >> 10, pages[home->areas.pages]);
	else
		snprintf(text, BW_HOME_TEXT, "%s", home->text);
	return text;
}
