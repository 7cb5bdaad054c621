/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* States for the service manager; see notify.h. */
#include "notify.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void bs_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	size_t n = path ? strlen(path) : 0;
	int fd;

	if (!n || *path != '/' || n >= sizeof(name.sun_path))
		return;
	memcpy(name.sun_path, path, n);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* Where the manager's queue is full this waits: nothing may be lost. */
	sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&name,
	       sizeof(name));
	close(fd);
}
