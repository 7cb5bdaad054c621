/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who may have endpoints, how many, on which interfaces: /etc/beowire/beowired.conf. */
#ifndef BS_POLICY_H
#define BS_POLICY_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "key.h"
#include "subuid.h"

#define BS_POLICY_FILE	"/etc/beowire/beowired.conf"
#define BS_POLICY_IDS	64   /* users, and groups, that may be named */
#define BS_POLICY_LINE	1024 /* bytes of a line */
#define BS_POLICY_WHY	512  /* bytes of a reason */
#define BS_POLICY_PATH	128  /* bytes of the key's path, with the zero byte */
#define BS_DEVICES	8    /* interfaces */
#define BS_ENDPOINTS	4096 /* of all users */
#define BS_ENDPOINTS_OF 64   /* default of `endpoints` */
#define BS_RINGS_OF	(512ull << 20)
#define BS_ATTEMPTS_OF	100

struct bs_ids {
	uint32_t id[BS_POLICY_IDS];
	unsigned int n;
};

struct bs_policy {
	struct bs_ids users, groups;
	bool everybody; /* whoever it is */
	char interface[BS_DEVICES][IFNAMSIZ];
	unsigned int interfaces;
	uint16_t ethertype;
	uint32_t endpoints;  /* of one user, at most */
	uint64_t ring_bytes; /* of one user's endpoints together */
	uint64_t ring_total; /* of those of all users */
	uint32_t attempts;   /* of one user in a second, as many at once */
	/* The cluster's key: its file ("": none), and what was read there. Wiped wherever a copy is
	 * not needed any more. */
	char key_file[BS_POLICY_PATH];
	uint8_t key[BW_KEY_BYTES];
	bool encrypts; /* who has the key from us encrypts, too */
	uint32_t set;  /* keys seen, by their place in the table */
	bool unknown;  /* the line that is wrong has a name that nobody knows, now */
	struct bs_subuids subuids;
};

void bs_policy_init(struct bs_policy *p);
/* Take a line without its end: 0, or -EINVAL with the cause. */
int bs_policy_line(struct bs_policy *p, char *line, char why[BS_POLICY_WHY]);
/* Is all there that is needed? */
int bs_policy_check(const struct bs_policy *p, char why[BS_POLICY_WHY]);
/* Read the file, that of the key, and whose numbers of users are whose: 0, or a negative errno with the file, the line and the cause.
 * `p` has no key then. */
int bs_policy_read(struct bs_policy *p, const char *path, char why[BS_POLICY_WHY]);

/* May a process of this user and these groups have endpoints? */
bool bs_policy_allows(const struct bs_policy *p, uid_t user, const gid_t *group, unsigned int n);

#endif
