/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When a frame arrived: a packet socket of our own beside the program's, for every way the same.
 * The kernel stamps a frame before it hands it to anybody; the stamp is read after the wake-up.
 */
#include "arrival.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23 /* Linux 4.20 */
#endif

#define FRAME_MAX  (64u << 10) /* bytes of a frame, or of several that the kernel has joined */
#define STAMPS_MAX 10000       /* ms that the kernel may take until it stamps frames */

static uint64_t nanoseconds(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

static uint64_t stamp_of(struct msghdr *m)
{
	struct timespec t;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		memcpy(&t, CMSG_DATA(c), sizeof(t));
		return nanoseconds(&t);
	}
	return 0;
}

/* As recvmsg(): what has come, and when, in ns of the clock that may be set. */
static ssize_t receive_stamped(int fd, void *bytes, size_t room, uint64_t *stamp)
{
	char control[256];
	struct iovec part = {bytes, room};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &m, 0);

	*stamp = n > 0 ? stamp_of(&m) : 0;
	return n;
}

/* A socket that receives what it sends, or -1. */
static int mirror(void)
{
	struct sockaddr_in self = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htobe32(INADDR_LOOPBACK)};
	socklen_t len = sizeof(self);
	int on = 1, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	if (!setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) &&
	    !bind(fd, (struct sockaddr *)&self, len) &&
	    !getsockname(fd, (struct sockaddr *)&self, &len) &&
	    !connect(fd, (struct sockaddr *)&self, len))
		return fd;
	close(fd);
	return -1;
}

/* The kernel begins to stamp frames a while after somebody wants that, on a busy machine a long
 * one. Until then it tells when a frame was read. */
static void await_stamps(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	uint64_t stamp = UINT64_MAX, before = 0;
	int fd = mirror();
	struct timespec t;
	char byte = 0;

	for (int i = 0; fd >= 0 && i < STAMPS_MAX && stamp >= before; i++) {
		if (send(fd, &byte, 1, 0) != 1)
			break;
		nanosleep(&pause, NULL);
		clock_gettime(CLOCK_REALTIME, &t);
		before = nanoseconds(&t);
		if (receive_stamped(fd, &byte, 1, &stamp) != 1)
			stamp = UINT64_MAX; /* a filter may have dropped it */
	}
	if (fd >= 0)
		close(fd);
}

void arrival_observe(struct arrival *arrival)
{
	int on = 1, room = 1 << 20;
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htobe16(ETH_P_ALL));

	if (fd < 0)
		act_fail("frames cannot be observed: %s", strerror(errno));
	if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)))
		act_fail("frames cannot be stamped: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	arrival->stamps = calloc(arrival->warm + arrival->count, sizeof(*arrival->stamps));
	if (!arrival->stamps)
		act_fail("out of memory");
	arrival->observer = fd;
	await_stamps();
}

/* Notes the time of the messages in these bytes that were not seen before: a frame has several of
 * them if its sender was late. */
static void note(struct arrival *arrival, const uint8_t *bytes, size_t n, uint64_t stamp)
{
	const uint8_t *at = bytes, *end = bytes + n;
	uint64_t number;

	while ((at = memmem(at, (size_t)(end - at), arrival_token, ARRIVAL_TOKEN))) {
		at += ARRIVAL_TOKEN;
		if ((size_t)(end - at) < sizeof(number))
			return;
		memcpy(&number, at, sizeof(number));
		if (number - 1 < arrival->warm + arrival->count && !arrival->stamps[number - 1])
			arrival->stamps[number - 1] = stamp;
	}
}

uint64_t arrival_stamp(struct arrival *arrival, uint64_t number)
{
	static uint8_t bytes[FRAME_MAX];
	uint64_t stamp;
	ssize_t n;

	do {
		n = receive_stamped(arrival->observer, bytes, sizeof(bytes), &stamp);
		if (n > 0)
			note(arrival, bytes, (size_t)n, stamp);
	} while (n >= 0 || errno == EINTR);
	return number - 1 < arrival->warm + arrival->count ? arrival->stamps[number - 1] : 0;
}
