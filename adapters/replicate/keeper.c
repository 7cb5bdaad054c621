/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies are shared by the processes of one command through its keeper, at a socket of the file
 * system. A request is a packet: 'G' (get) or 'P' (put, with a descriptor) and the copy's name; the
 * answer is 'Y' with a descriptor, or 'N'. Whoever gets a copy compares it with its own memory.
 */
#include "replicate.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_S 5

/* Room for one descriptor beside a packet. */
union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr aligned;
};

int bwrp_keeper_connect(const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = PATIENCE_S};
	struct ucred who;
	socklen_t n = sizeof(who);
	int fd;

	if (strlen(path) >= sizeof(to.sun_path))
		return -1;
	memcpy(to.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) || who.uid != geteuid()) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool ask(int keeper, char what, const char *name, int copy)
{
	struct iovec parts[2] = {{&what, 1}, {(void *)(uintptr_t)name, strlen(name)}};
	union control control = {.bytes = {0}};
	struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
	struct cmsghdr *c;

	if (copy >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control.bytes);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(copy));
		memcpy(CMSG_DATA(c), &copy, sizeof(copy));
	}
	return sendmsg(keeper, &m, MSG_NOSIGNAL) >= 0;
}

/* The copy, or -1: whatever else comes is closed. */
static int answer(int keeper)
{
	char word = 0;
	struct iovec part = {&word, 1};
	union control control = {.bytes = {0}};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   /* without the padding, which has room for a second one */
			   .msg_controllen = CMSG_LEN(sizeof(int))};
	ssize_t n = recvmsg(keeper, &m, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);
	int copy = -1;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(&copy, CMSG_DATA(c), sizeof(copy));
	if (n == 1 && word == 'Y' && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return copy;
	if (copy >= 0)
		close(copy);
	return -1;
}

int bwrp_keeper_get(int keeper, const char *name)
{
	return keeper >= 0 && ask(keeper, 'G', name, -1) ? answer(keeper) : -1;
}

int bwrp_keeper_put(int keeper, const char *name, int copy)
{
	return keeper >= 0 && ask(keeper, 'P', name, copy) ? answer(keeper) : -1;
}
