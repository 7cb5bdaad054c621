/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who may attach to whom; see who.h. */
#include <errno.h>
#include <unistd.h>

#include "who.h"

int bw_who_may(int fd, struct ucred *who)
{
	struct ucred told;
	socklen_t n = sizeof(told);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &told, &n) < 0)
		return -errno;
	if (who)
		*who = told;
	return told.uid == geteuid() ? 0 : -EACCES;
}
