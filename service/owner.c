/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Claims of interfaces; see owner.h. */
#include "owner.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Is it a beowired that listens there? Any user could have taken the name. */
static bool bs_owner_serves(const struct sockaddr_un *name, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred who = {.uid = (uid_t)-1};
	socklen_t n = sizeof(who);
	bool is;

	if (fd < 0)
		return false;
	is = !connect(fd, (const struct sockaddr *)name, len) &&
	     !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) &&
	     (!who.uid || who.uid == geteuid());
	close(fd);
	return is;
}

int bs_owner_claim(int index, int *claim)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				    (size_t)snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
						     "beowired/%d", index));

	*claim = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*claim < 0)
		return -errno;
	if (!bind(*claim, (struct sockaddr *)&name, len) && !listen(*claim, 1))
		return 0;
	close(*claim);
	*claim = -1;
	return bs_owner_serves(&name, len) ? -EBUSY : 0;
}
