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
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23 /* Linux 4.20 */
#endif

#define FRAME_MAX (64u << 10) /* bytes of a frame, or of several that the kernel has joined */

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

static uint64_t stamp_of(struct msghdr *m)
{
	struct timespec t;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		memcpy(&t, CMSG_DATA(c), sizeof(t));
		return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	}
	return 0;
}

uint64_t arrival_stamp(struct arrival *arrival, uint64_t number)
{
	static uint8_t bytes[FRAME_MAX];
	ssize_t n;

	do {
		char control[256];
		struct iovec part = {bytes, sizeof(bytes)};
		struct msghdr m = {.msg_iov = &part,
				   .msg_iovlen = 1,
				   .msg_control = control,
				   .msg_controllen = sizeof(control)};

		n = recvmsg(arrival->observer, &m, 0);
		if (n > 0)
			note(arrival, bytes, (size_t)n, stamp_of(&m));
	} while (n >= 0 || errno == EINTR);
	return number - 1 < arrival->warm + arrival->count ? arrival->stamps[number - 1] : 0;
}
