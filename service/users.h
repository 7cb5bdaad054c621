/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What each user has, and its bounds. */
#ifndef BS_USERS_H
#define BS_USERS_H

#include <stdbool.h>
#include <stdint.h>

#include "policy.h"

#define BS_USERS 1024 /* known at a time; who has nothing and is at rest makes room */

struct bs_user {
	uint32_t uid;
	bool used;
	uint32_t endpoints;  /* connections and endpoints */
	uint64_t ring_bytes; /* of these */
	uint64_t rest_at;    /* when it has made no attempt that counts (ns) */
};

struct bs_users {
	struct bs_user user[BS_USERS];
	uint64_t ring_bytes; /* of all of them */
};

/* The user's entry; NULL: the table is full of others. */
struct bs_user *bs_users_find(struct bs_users *all, uint32_t uid, uint64_t now);
/* May it try once more now? */
bool bs_user_attempts(struct bs_user *u, const struct bs_policy *p, uint64_t now);
/* May it have one more connection, or that much more memory? Then it has. */
bool bs_user_takes(struct bs_user *u, const struct bs_policy *p);
bool bs_user_rings(struct bs_users *all, struct bs_user *u, const struct bs_policy *p,
		   uint64_t bytes);
/* Is there so much for anybody? */
bool bs_users_room(const struct bs_users *all, const struct bs_policy *p, uint64_t bytes);
/* An endpoint with so much memory is gone. */
void bs_user_gives(struct bs_users *all, struct bs_user *u, uint64_t bytes);

#endif
