/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Accounts of users; see users.h. */
#include "users.h"

#include <stddef.h>

#include "platform.h"

static bool bs_user_idle(const struct bs_user *u, uint64_t now)
{
	return !u->endpoints && u->rest_at <= now;
}

struct bs_user *bs_users_find(struct bs_users *all, uint32_t uid, uint64_t now)
{
	struct bs_user *room = NULL;

	for (unsigned int i = 0; i < BS_USERS; i++) {
		struct bs_user *u = &all->user[i];

		if (u->used && u->uid == uid)
			return u;
		if (!room && (!u->used || bs_user_idle(u, now)))
			room = u;
	}
	if (room)
		*room = (struct bs_user){.uid = uid, .used = true};
	return room;
}

bool bs_user_attempts(struct bs_user *u, const struct bs_policy *p, uint64_t now)
{
	if (u->rest_at < now)
		u->rest_at = now;
	/* As many at once as in a second. */
	if (u->rest_at - now > BW_S - BW_S / p->attempts)
		return false;
	u->rest_at += BW_S / p->attempts;
	return true;
}

bool bs_user_takes(struct bs_user *u, const struct bs_policy *p)
{
	if (u->endpoints >= p->endpoints)
		return false;
	u->endpoints++;
	return true;
}

bool bs_users_room(const struct bs_users *all, const struct bs_policy *p, uint64_t bytes)
{
	return bytes <= p->ring_total && all->ring_bytes <= p->ring_total - bytes;
}

bool bs_user_rings(struct bs_users *all, struct bs_user *u, const struct bs_policy *p,
		   uint64_t bytes)
{
	if (bytes > p->ring_bytes || u->ring_bytes > p->ring_bytes - bytes)
		return false;
	u->ring_bytes += bytes;
	all->ring_bytes += bytes;
	return true;
}

void bs_user_gives(struct bs_users *all, struct bs_user *u, uint64_t bytes)
{
	u->endpoints--;
	u->ring_bytes -= bytes;
	all->ring_bytes -= bytes;
}
