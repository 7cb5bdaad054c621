/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Engine numbers and their names; see number.h. */
#include "number.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71 /* Linux 5.14 */
#endif

/* As libbeowire names it (hosts/user/link/local/socket.c). */
static socklen_t bs_number_name(uint16_t engine, struct sockaddr_un *name)
{
	*name = (struct sockaddr_un){.sun_family = AF_UNIX};
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1,
					    "beowire.%u", engine));
}

static int bs_number_namespace(int fd, uint64_t *cookie)
{
	socklen_t n = sizeof(*cookie);

	return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, cookie, &n) ? -errno : 0;
}

/* The socket that is bound to its name, not another one of the same name: each type of socket has
 * names of its own, and a connection that was accepted has the name of the listener. */
static bool bs_number_bound(int claim)
{
	struct sockaddr_un peer;
	socklen_t n = sizeof(int);
	int type = 0;

	if (getsockopt(claim, SOL_SOCKET, SO_TYPE, &type, &n) || type != SOCK_SEQPACKET)
		return false;
	n = sizeof(peer);
	return getpeername(claim, (struct sockaddr *)&peer, &n) && errno == ENOTCONN;
}

int bs_number_proved(int claim, uint16_t engine, bool *here, ino_t *inode)
{
	struct sockaddr_un wanted, is = {0};
	socklen_t n = sizeof(is), len = bs_number_name(engine, &wanted);
	uint64_t theirs, ours;
	struct stat told;
	int fd, error;

	if (getsockname(claim, (struct sockaddr *)&is, &n) || n != len ||
	    memcmp(&is, &wanted, len) || !bs_number_bound(claim) || fstat(claim, &told))
		return -EPERM;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	error = bs_number_namespace(claim, &theirs);
	if (!error)
		error = bs_number_namespace(fd, &ours);
	close(fd);
	*here = !error && theirs == ours;
	*inode = told.st_ino;
	return error;
}

int bs_number_hold(uint16_t engine)
{
	struct sockaddr_un name;
	socklen_t len = bs_number_name(engine, &name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), error;

	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&name, len))
		return fd;
	error = -errno;
	close(fd);
	return error;
}
