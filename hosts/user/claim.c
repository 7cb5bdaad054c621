/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names claimed by binding abstract unix sockets: the kernel keeps them unique per network
 * namespace.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "claim.h"
#include "link/who.h"

#define BW_CLAIM_STEPS	8    /* other names for one that strangers hold */
#define BW_CLAIM_ASKS	3    /* of who is silent: between its bind() and listen(), perhaps, */
#define BW_CLAIM_US	1000 /* after this time each */
#define BW_CLAIM_DRAINS 1024 /* calls at a time */

static _Atomic uint64_t bw_claim_stepped;

uint64_t bw_claim_strangers(void)
{
	return atomic_load(&bw_claim_stepped);
}

static int bw_claim_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

/* The address of a name of this user's, in the n-th form; its length, 0: too long. */
static socklen_t bw_claim_address(struct sockaddr_un *sun, const char *name, int n)
{
	const size_t room = sizeof(sun->sun_path) - 1;
	int len;

	*sun = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (n)
		len = snprintf(sun->sun_path + 1, room, "%s/%u/%d", name, geteuid(), n);
	else
		len = snprintf(sun->sun_path + 1, room, "%s/%u", name, geteuid());
	if (len < 0 || (size_t)len >= room)
		return 0;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static int bw_claim_bind(const struct sockaddr_un *sun, socklen_t len)
{
	int fd = bw_claim_socket(), error;

	if (fd < 0)
		return fd;
	if (!bind(fd, (const struct sockaddr *)sun, len) && !listen(fd, SOMAXCONN))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

/* A connection to the holder; -ECONNREFUSED if nobody listens, -EACCES if a stranger does, or one
 * who has no room for calls: nobody can say that it is none. */
static int bw_claim_ask(const struct sockaddr_un *sun, socklen_t len)
{
	int fd = bw_claim_socket(), error;

	if (fd < 0)
		return fd;
	error = connect(fd, (const struct sockaddr *)sun, len) ? -errno : bw_who_may(fd, NULL);
	if (!error)
		return fd;
	close(fd);
	return error == -EAGAIN ? -EACCES : error;
}

/* Claim one form of a name. As bw_claim_name(). */
static int bw_claim_try(const struct sockaddr_un *sun, socklen_t len)
{
	for (int i = 0; i < BW_CLAIM_ASKS; i++) {
		int fd = bw_claim_bind(sun, len), asked;

		if (fd != -EADDRINUSE)
			return fd;
		asked = bw_claim_ask(sun, len);
		if (asked >= 0)
			close(asked);
		if (asked != -ECONNREFUSED)
			return asked == -EACCES ? -EACCES : -EADDRINUSE;
		usleep(BW_CLAIM_US);
	}
	return -EACCES;
}

int bw_claim_name(const char *name)
{
	struct sockaddr_un sun;
	int fd = -EACCES;

	for (int n = 0; n < BW_CLAIM_STEPS && fd == -EACCES; n++) {
		socklen_t len = bw_claim_address(&sun, name, n);

		if (!len)
			return -ENAMETOOLONG;
		fd = bw_claim_try(&sun, len);
		if (fd == -EACCES)
			atomic_fetch_add(&bw_claim_stepped, 1);
	}
	return fd;
}

int bw_claim_dial(const char *name)
{
	struct sockaddr_un sun;

	for (int n = 0; n < BW_CLAIM_STEPS; n++) {
		socklen_t len = bw_claim_address(&sun, name, n);
		int fd = len ? bw_claim_ask(&sun, len) : -ENAMETOOLONG;

		if (fd != -EACCES && fd != -ECONNREFUSED)
			return fd;
	}
	return -ECONNREFUSED;
}

void bw_claim_drain(int fd)
{
	for (int i = 0; i < BW_CLAIM_DRAINS; i++) {
		int caller = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (caller < 0)
			return;
		close(caller);
	}
}
