/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "numa.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BW_NUMA_SYS   "/sys/devices/system/node"
#define BW_NUMA_NET   "/sys/class/net"
#define BW_NUMA_DEPTH 4 /* interfaces upon interfaces */
#define BW_NUMA_UP    6 /* devices above one another */
/* The kernel takes one off what it is told (mm/mempolicy.c). */
#define BW_NUMA_MAX (BW_NUMA_NODES + 1ul)

void bw_nodes_add(struct bw_nodes *nodes, int node)
{
	nodes->bits[(size_t)node / BW_NUMA_WORD] |= 1ul << ((size_t)node % BW_NUMA_WORD);
}

bool bw_nodes_has(const struct bw_nodes *nodes, int node)
{
	return node >= 0 && node < BW_NUMA_NODES &&
	       (nodes->bits[(size_t)node / BW_NUMA_WORD] >> ((size_t)node % BW_NUMA_WORD) & 1);
}

int bw_nodes_count(const struct bw_nodes *nodes)
{
	int n = 0;

	for (int node = 0; node < BW_NUMA_NODES; node++)
		n += bw_nodes_has(nodes, node);
	return n;
}

int bw_nodes_first(const struct bw_nodes *nodes)
{
	for (int node = 0; node < BW_NUMA_NODES; node++) {
		if (bw_nodes_has(nodes, node))
			return node;
	}
	return -1;
}

bool bw_nodes_within(const struct bw_nodes *nodes, const struct bw_nodes *all)
{
	for (size_t i = 0; i < BW_NUMA_NODES / BW_NUMA_WORD; i++) {
		if (nodes->bits[i] & ~all->bits[i])
			return false;
	}
	return true;
}

/* A number below BW_NUMA_NODES at *text, which moves behind it; -1 if there is none. */
static int bw_nodes_number(const char **text)
{
	int node = 0;

	if (!isdigit((unsigned char)**text))
		return -1;
	for (; isdigit((unsigned char)**text); (*text)++) {
		node = 10 * node + (**text - '0');
		if (node >= BW_NUMA_NODES)
			return -1;
	}
	return node;
}

bool bw_nodes_parse(struct bw_nodes *nodes, const char *text)
{
	memset(nodes, 0, sizeof(*nodes));
	while (true) {
		int first = bw_nodes_number(&text), last = first;

		if (*text == '-') {
			text++;
			last = bw_nodes_number(&text);
		}
		if (first < 0 || last < first)
			return false;
		for (int node = first; node <= last; node++)
			bw_nodes_add(nodes, node);
		if (!*text)
			return true;
		if (*text++ != ',')
			return false;
	}
}

char *bw_nodes_print(const struct bw_nodes *nodes, char text[BW_NUMA_TEXT])
{
	size_t n = 0;

	text[0] = 0;
	for (int node = 0, last; node < BW_NUMA_NODES; node = last + 1) {
		last = node;
		if (!bw_nodes_has(nodes, node))
			continue;
		while (bw_nodes_has(nodes, last + 1))
			last++;
		if (n + 16 > BW_NUMA_TEXT) {
			snprintf(text + n, BW_NUMA_TEXT - n, "...");
			break;
		}
		n += (size_t)snprintf(text + n, BW_NUMA_TEXT - n, "%s%d", n ? "," : "", node);
		if (last > node)
			n += (size_t)snprintf(text + n, BW_NUMA_TEXT - n, "-%d", last);
	}
	return text;
}

/* The first line of a file, without its end. */
static bool bw_numa_read(const char *path, char *line, int n)
{
	FILE *f = fopen(path, "re");
	bool read = f && fgets(line, n, f);

	if (f)
		fclose(f);
	if (read)
		line[strcspn(line, "\n")] = 0;
	return read;
}

void bw_numa_online(struct bw_nodes *nodes)
{
	char line[4096];

	if (bw_numa_read(BW_NUMA_SYS "/has_memory", line, sizeof(line)) &&
	    bw_nodes_parse(nodes, line))
		return;
	memset(nodes, 0, sizeof(*nodes));
	bw_nodes_add(nodes, 0);
}

int bw_numa_allowed(struct bw_nodes *nodes)
{
	memset(nodes, 0, sizeof(*nodes));
	return syscall(SYS_get_mempolicy, NULL, nodes->bits, BW_NUMA_MAX, NULL,
		       MPOL_F_MEMS_ALLOWED) < 0
		       ? -errno
		       : 0;
}

static int bw_numa_of_interface_at(const char *name, int depth)
{
	static const char lower[] = "lower_";
	char path[PATH_MAX], line[32];
	struct dirent *entry;
	int node = -1;
	DIR *dir;

	/* A name of the kernel's, but a path is made of it. */
	if (!*name || strchr(name, '/') || *name == '.')
		return -1;
	/* A virtual or USB device has no node itself, but one above it that is on a bus. */
	for (int up = 0; node < 0 && up <= BW_NUMA_UP; up++) {
		snprintf(path, sizeof(path), BW_NUMA_NET "/%s/device/%.*snuma_node", name, 3 * up,
			 "../../../../../../");
		if (bw_numa_read(path, line, sizeof(line)))
			node = atoi(line);
	}
	if (node >= 0 || depth == BW_NUMA_DEPTH)
		return node < BW_NUMA_NODES ? node : -1;
	snprintf(path, sizeof(path), BW_NUMA_NET "/%s", name);
	dir = opendir(path);
	while (dir && node < 0 && (entry = readdir(dir))) {
		if (!strncmp(entry->d_name, lower, strlen(lower)))
			node = bw_numa_of_interface_at(entry->d_name + strlen(lower), depth + 1);
	}
	if (dir)
		closedir(dir);
	return node;
}

int bw_numa_of_interface(const char *name)
{
	return bw_numa_of_interface_at(name, 0);
}

int bw_numa_here(void)
{
	unsigned int cpu, node;

	return syscall(SYS_getcpu, &cpu, &node, NULL) < 0 || node >= BW_NUMA_NODES ? 0 : (int)node;
}

int bw_numa_nearest(int node, const struct bw_nodes *among)
{
	int best = bw_nodes_first(among);
	long least = LONG_MAX;
	struct bw_nodes online;
	char path[64], line[8 * BW_NUMA_NODES], *at = line;

	if (bw_nodes_has(among, node))
		return node;
	snprintf(path, sizeof(path), BW_NUMA_SYS "/node%d/distance", node);
	if (!bw_numa_read(BW_NUMA_SYS "/online", line, sizeof(line)) ||
	    !bw_nodes_parse(&online, line) || !bw_numa_read(path, line, sizeof(line)))
		return best;
	/* One distance for each node that is online, in their order. */
	for (int other = 0; other < BW_NUMA_NODES && *at; other++) {
		if (!bw_nodes_has(&online, other))
			continue;
		long far = strtol(at, &at, 10);

		if (bw_nodes_has(among, other) && far < least) {
			least = far;
			best = other;
		}
	}
	return best;
}

int bw_policy_get(struct bw_policy *policy)
{
	memset(policy, 0, sizeof(*policy));
	return syscall(SYS_get_mempolicy, &policy->mode, policy->nodes.bits, BW_NUMA_MAX, NULL, 0) <
			       0
		       ? -errno
		       : 0;
}

int bw_policy_set(const struct bw_policy *policy)
{
	bool some = bw_nodes_first(&policy->nodes) >= 0;

	return syscall(SYS_set_mempolicy, policy->mode, some ? policy->nodes.bits : NULL,
		       some ? BW_NUMA_MAX : 0) < 0
		       ? -errno
		       : 0;
}

int bw_policy_bind(const struct bw_policy *policy, void *at, size_t bytes)
{
	return syscall(SYS_mbind, at, bytes, policy->mode, policy->nodes.bits, BW_NUMA_MAX, 0) < 0
		       ? -errno
		       : 0;
}
