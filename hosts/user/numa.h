/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * NUMA nodes of this machine as the kernel tells of them, and its policies for memory. By system
 * calls: three of them are no reason for every program to load one more library.
 */
#ifndef BW_NUMA_H
#define BW_NUMA_H

#include <stdbool.h>
#include <stddef.h>

#define BW_NUMA_NODES 1024 /* more than any kernel is built for */
#define BW_NUMA_TEXT  128  /* bytes of a list as text; a longer one ends in "..." */
#define BW_NUMA_WORD  (8 * sizeof(unsigned long))

struct bw_nodes {
	unsigned long bits[BW_NUMA_NODES / BW_NUMA_WORD];
};

/* A policy as linux/mempolicy.h numbers them, and its nodes. */
struct bw_policy {
	int mode;
	struct bw_nodes nodes;
};

/* A list such as 0-3,6, as the kernel writes and numactl(8) reads it: false if it is none, or names
 * no node. */
bool bw_nodes_parse(struct bw_nodes *nodes, const char *text);
char *bw_nodes_print(const struct bw_nodes *nodes, char text[BW_NUMA_TEXT]);
void bw_nodes_add(struct bw_nodes *nodes, int node);
bool bw_nodes_has(const struct bw_nodes *nodes, int node);
int bw_nodes_count(const struct bw_nodes *nodes);
/* The lowest one, -1 if there is none. */
int bw_nodes_first(const struct bw_nodes *nodes);
/* Is each of them one of `all`? */
bool bw_nodes_within(const struct bw_nodes *nodes, const struct bw_nodes *all);

/* The nodes of this machine that have memory: node 0 alone where the kernel tells of none. */
void bw_numa_online(struct bw_nodes *nodes);
/* Those that this thread may have memory of (cpusets(7)). 0 or a negative errno. */
int bw_numa_allowed(struct bw_nodes *nodes);
/* The node of a network interface, through those that it is made of (VLAN, bond); -1: none. */
int bw_numa_of_interface(const char *name);
/* The node of the processor that executes this. */
int bw_numa_here(void);
/* The one of `among` that is nearest to a node. */
int bw_numa_nearest(int node, const struct bw_nodes *among);

/* The policy of this thread. 0 or a negative errno. */
int bw_policy_get(struct bw_policy *policy);
int bw_policy_set(const struct bw_policy *policy);
/* That of whole pages of this process. */
int bw_policy_bind(const struct bw_policy *policy, void *at, size_t bytes);

#endif
