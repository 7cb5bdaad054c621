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
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23 /* Linux 4.20 */
#endif

#define FRAME_HEAD 512 /* of a frame is looked at */

int arrival_observe(void)
{
	int on = 1, room = 1 << 20;
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htobe16(ETH_P_ALL));

	if (fd < 0)
		act_fail("frames cannot be observed: %s", strerror(errno));
	if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)))
		act_fail("frames cannot be stamped: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	return fd;
}

/* The number of the message in these bytes; false if there is none. */
static bool number_in(const uint8_t *bytes, size_t n, uint64_t *number)
{
	const uint8_t *at = memmem(bytes, n, arrival_token, ARRIVAL_TOKEN);

	if (!at || n - (size_t)(at - bytes) < ARRIVAL_TOKEN + sizeof(*number))
		return false;
	memcpy(number, at + ARRIVAL_TOKEN, sizeof(*number));
	return true;
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

uint64_t arrival_stamp(int observer, uint64_t number)
{
	uint64_t found = 0, other;
	uint8_t bytes[FRAME_HEAD];
	ssize_t n;

	for (;;) {
		char control[256];
		struct iovec part = {bytes, sizeof(bytes)};
		struct msghdr m = {.msg_iov = &part,
				   .msg_iovlen = 1,
				   .msg_control = control,
				   .msg_controllen = sizeof(control)};

		n = recvmsg(observer, &m, 0);
		if (n < 0 && errno != EINTR)
			return found;
		if (n > 0 && !found && number_in(bytes, (size_t)n, &other) && other == number)
			found = stamp_of(&m);
	}
}
