/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Users and groups of callers; see caller.h. */
#include "caller.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#define BS_GROUPS      256	   /* groups that most processes have at most, */
#define BS_GROUPS_MAX  NGROUPS_MAX /* and that any has */
#define BS_GROUP_BYTES ((socklen_t)sizeof(gid_t))

uint32_t bs_caller_account(const struct bs_policy *p, const struct ucred *who)
{
	return bs_subuids_owner(&p->subuids, who->uid);
}

/* What the kernel says is too long for the first question. */
static bool bs_caller_in_many(const struct bs_policy *p, int fd, uid_t user, socklen_t bytes)
{
	bool allowed = false;
	gid_t *group;

	if (bytes > BS_GROUPS_MAX * BS_GROUP_BYTES)
		return false;
	group = malloc(bytes);
	if (group && !getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, group, &bytes))
		allowed = bs_policy_allows(p, user, group, bytes / BS_GROUP_BYTES);
	free(group);
	return allowed;
}

bool bs_caller_allowed(const struct bs_policy *p, int fd, const struct ucred *who)
{
	gid_t group[BS_GROUPS];
	socklen_t bytes = sizeof(group);

	if (bs_policy_allows(p, who->uid, &who->gid, 1) ||
	    bs_policy_allows(p, bs_caller_account(p, who), NULL, 0))
		return true;
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, group, &bytes))
		return bs_policy_allows(p, who->uid, group, bytes / BS_GROUP_BYTES);
	return errno == ERANGE && bs_caller_in_many(p, fd, who->uid, bytes);
}
