/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Every variable of libbeowire, parsed into one structure; the table is in env.c. */
#ifndef BW_ENV_H
#define BW_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include "link/name.h"
#include "log.h"
#include "numa.h"

enum bw_env_link {
	BW_LINK_LOCAL = 1,
	BW_LINK_PACKET = 2,
	BW_LINK_UDP = 4,
	BW_LINK_KERNEL = 8,
	BW_LINK_UDP6 = 16 /* in addresses alone: udp over IPv6, and BW_LINK_UDP is over IPv4 */
};
enum bw_env_wait { BW_WAIT_SPIN, BW_WAIT_ADAPTIVE, BW_WAIT_BLOCK };
enum bw_env_memory { BW_MEMORY_DEFAULT, BW_MEMORY_BIND, BW_MEMORY_INTERLEAVE, BW_MEMORY_PREFERRED };

struct bw_env {
	const char *interface;	   /* BEOWIRE_INTERFACE, NULL: choose */
	const char *interfaces;	   /* BEOWIRE_INTERFACES, NULL: one */
	const char *stats_dir;	   /* BEOWIRE_STATS, NULL: none */
	const char *status_dir;	   /* BEOWIRE_STATUS, NULL: off */
	const char *node;	   /* BEOWIRE_NODE, NULL: from the network namespace */
	const char *key;	   /* BEOWIRE_KEY, a file; NULL: none */
	const char *service;	   /* BEOWIRE_SERVICE, a path; NULL: off */
	char service_path[108];	   /* where that lies */
	unsigned int links;	   /* BEOWIRE_LINKS: set of enum bw_env_link */
	enum bw_env_wait wait;	   /* BEOWIRE_WAIT */
	enum bw_log_level log;	   /* BEOWIRE_LOG */
	bool checksum;		   /* BEOWIRE_CHECKSUM */
	bool encrypt;		   /* BEOWIRE_ENCRYPT; not without a key, or who may give it */
	bool each;		   /* BEOWIRE_DOMAINS: libfabric is told of each interface */
	bool helper;		   /* BEOWIRE_HELPER */
	bool fanout;		   /* BEOWIRE_FANOUT */
	uint16_t ethertype;	   /* BEOWIRE_ETHERTYPE */
	uint16_t udp_lo, udp_hi;   /* BEOWIRE_UDP_PORTS, host byte order */
	bool udp_offload;	   /* BEOWIRE_UDP_OFFLOAD */
	union bw_name udp_address; /* BEOWIRE_UDP_ADDRESS; family 0: the interface's */
	uint32_t cluster;	   /* BEOWIRE_CLUSTER */
	uint32_t mtu;		   /* BEOWIRE_MTU, in bytes; 0: no cap */
	uint32_t eager_max;	   /* BEOWIRE_EAGER_MAX, in bytes; 0: each link's default */
	uint32_t send_copies;	   /* BEOWIRE_SEND_COPIES, in bytes */
	uint32_t ring_bytes;	   /* BEOWIRE_RING, in bytes */
	uint64_t dead_ns;	   /* BEOWIRE_DEAD_TIMEOUT */
	enum bw_env_memory memory; /* BEOWIRE_MEMORY */
	struct bw_nodes nodes;	   /* of that; none: those that the policy takes by itself */
	bool memory_asked;	   /* it is set */
	uint64_t huge_bytes; /* BEOWIRE_HUGE_PAGES, their size; 0: none, 1: the kernel's default */
};

/* Read them all. 0, or -EINVAL with *why naming the variable, its value and what is allowed. The
 * strings point into the environment, into what was read of files of settings, or into *env. */
int bw_env_read(struct bw_env *env, const char **why);

/* 64-bit FNV-1a hash of a text, continued from `hash` (BW_ENV_HASH to begin); for identities. */
#define BW_ENV_HASH 0xcbf29ce484222325u
uint64_t bw_env_hash(uint64_t hash, const void *p, size_t n);

#endif
