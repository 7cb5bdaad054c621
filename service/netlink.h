/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests to the kernel about network devices (rtnetlink(7)), one at a time. */
#ifndef BS_NETLINK_H
#define BS_NETLINK_H

#include <linux/netlink.h>
#include <stdbool.h>
#include <stdint.h>

#define BS_NETLINK_MAX 1024 /* bytes of a request */

struct bs_netlink {
	union {
		struct nlmsghdr head;
		uint8_t bytes[BS_NETLINK_MAX];
	};
};

/* In the network namespace of the calling thread, for good. A descriptor or a negative errno. */
int bs_netlink_open(void);

/* Begin a request with its fixed part; then attributes; nests are ended by bs_netlink_unnest(). */
void bs_netlink_begin(struct bs_netlink *r, uint16_t type, uint16_t flags, const void *fixed,
		      uint32_t bytes);
void bs_netlink_put(struct bs_netlink *r, uint16_t type, const void *data, uint32_t bytes);
void bs_netlink_put_u32(struct bs_netlink *r, uint16_t type, uint32_t value);
void bs_netlink_put_text(struct bs_netlink *r, uint16_t type, const char *text);
uint32_t bs_netlink_nest(struct bs_netlink *r, uint16_t type);
void bs_netlink_unnest(struct bs_netlink *r, uint32_t nest);
/* Bytes that are no attribute. */
void bs_netlink_raw(struct bs_netlink *r, const void *data, uint32_t bytes);

/* Ask, and wait for the answer: 0 or a negative errno. */
int bs_netlink_ask(int fd, struct bs_netlink *r);

#endif
