/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names claimed by binding abstract unix sockets: the kernel keeps them unique per network
 * namespace.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "claim.h"
#include "discard.h"
#include "who.h"

#define BW_CLAIM_STEPS	   8	/* other names for one that strangers hold */
#define BW_CLAIM_ASKS	   3	/* of who is silent: between its bind() and listen(), perhaps, */
#define BW_CLAIM_ASKS_SOLE 100	/* where two holders are worse than waiting, */
#define BW_CLAIM_US	   1000 /* after this time each */
#define BW_CLAIM_DRAINS	   1024 /* calls at a time */

struct bw_claim {
	const char *name;
	uid_t owner; /* in the name; its processes hold it rightly, beside our user's */
	int asks;
};

static _Atomic uint64_t bw_claim_stepped;

uint64_t bw_claim_strangers(void)
{
	return atomic_load(&bw_claim_stepped);
}

static int bw_claim_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	bw_discard_rights(fd, false);
	return fd;
}

/* The address of a name in the n-th form; its length, 0: too long. */
static socklen_t bw_claim_address(struct sockaddr_un *sun, const struct bw_claim *c, int n)
{
	const size_t room = sizeof(sun->sun_path) - 1;
	int len;

	*sun = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (n)
		len = snprintf(sun->sun_path + 1, room, "%s/%u/%d", c->name, c->owner, n);
	else
		len = snprintf(sun->sun_path + 1, room, "%s/%u", c->name, c->owner);
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

/* A connection to the holder; -ECONNREFUSED if nobody listens, -EAGAIN if it has no room for calls,
 * or we have none for strangers, -EACCES if it is one. */
static int bw_claim_ask(const struct bw_claim *c, const struct sockaddr_un *sun, socklen_t len)
{
	int fd = bw_claim_socket(), error;
	struct ucred who = {.uid = (uid_t)-1};

	if (fd < 0)
		return fd;
	if (!bw_discard_reserve()) {
		close(fd);
		return -EAGAIN;
	}
	error = connect(fd, (const struct sockaddr *)sun, len) ? -errno : bw_who_may(fd, &who);
	if (error == -EACCES && who.uid != c->owner) {
		bw_discard(fd);
		return error;
	}
	bw_discard_return();
	if (!error || error == -EACCES)
		return fd;
	close(fd);
	return error;
}

static bool bw_claim_silent(int asked)
{
	return asked == -ECONNREFUSED || asked == -EAGAIN;
}

/* Claim one form of a name. As bw_claim_name(): who stays silent is a stranger. */
static int bw_claim_try(const struct bw_claim *c, const struct sockaddr_un *sun, socklen_t len)
{
	for (int i = 0; i < c->asks; i++) {
		int fd = bw_claim_bind(sun, len), asked;

		if (fd != -EADDRINUSE)
			return fd;
		asked = bw_claim_ask(c, sun, len);
		if (asked >= 0)
			close(asked);
		if (!bw_claim_silent(asked))
			return asked == -EACCES ? -EACCES : -EADDRINUSE;
		usleep(BW_CLAIM_US);
	}
	return -EACCES;
}

/* Claim the first form that no stranger holds; *form tells which. */
static int bw_claim_walk(const struct bw_claim *c, int *form)
{
	struct sockaddr_un sun;
	int fd = -EACCES;

	for (*form = 0; *form < BW_CLAIM_STEPS; ++*form) {
		socklen_t len = bw_claim_address(&sun, c, *form);

		if (!len)
			return -ENAMETOOLONG;
		fd = bw_claim_try(c, &sun, len);
		if (fd != -EACCES)
			break;
		atomic_fetch_add(&bw_claim_stepped, 1);
	}
	return fd;
}

/* A connection to who holds any form but this one (-1: any at all). As bw_claim_dial(). */
static int bw_claim_seek(const struct bw_claim *c, int but)
{
	struct sockaddr_un sun;

	for (int n = 0; n < BW_CLAIM_STEPS; n++) {
		socklen_t len = bw_claim_address(&sun, c, n);
		int fd = -ECONNREFUSED;

		if (n != but)
			fd = len ? bw_claim_ask(c, &sun, len) : -ENAMETOOLONG;
		if (fd != -EACCES && !bw_claim_silent(fd))
			return fd;
	}
	return -ECONNREFUSED;
}

int bw_claim_name(const char *name)
{
	const struct bw_claim c = {name, geteuid(), BW_CLAIM_ASKS};
	int form;

	return bw_claim_walk(&c, &form);
}

int bw_claim_sole(const char *name, uid_t owner)
{
	const struct bw_claim c = {name, owner, BW_CLAIM_ASKS_SOLE};
	int form, fd = bw_claim_walk(&c, &form), other;

	if (fd < 0)
		return fd;
	/* Strangers that the other one stepped around may have gone. */
	other = bw_claim_seek(&c, form);
	if (other < 0)
		return fd;
	close(other);
	bw_discard_listener(fd);
	return -EADDRINUSE;
}

int bw_claim_dial(const char *name)
{
	const struct bw_claim c = {name, geteuid(), BW_CLAIM_ASKS};

	return bw_claim_seek(&c, -1);
}

void bw_claim_drain(int fd)
{
	for (int i = 0; i < BW_CLAIM_DRAINS && bw_discard_reserve(); i++) {
		int caller = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (caller >= 0 && bw_who_may(caller, NULL)) {
			bw_discard(caller);
			continue;
		}
		bw_discard_return();
		if (caller < 0)
			return;
		close(caller);
	}
}
