/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests to the kernel about network devices; see netlink.h. */
#include "netlink.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int bs_netlink_open(void)
{
	struct sockaddr_nl self = {.nl_family = AF_NETLINK};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), on = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&self, sizeof(self))) {
		int error = -errno;

		close(fd);
		return error;
	}
	return fd;
}

void bs_netlink_raw(struct bs_netlink *r, const void *data, uint32_t bytes)
{
	uint32_t at = NLMSG_ALIGN(r->head.nlmsg_len);

	if (at + NLMSG_ALIGN(bytes) <= sizeof(r->bytes))
		memcpy(r->bytes + at, data, bytes);
	r->head.nlmsg_len = at + bytes;
}

void bs_netlink_begin(struct bs_netlink *r, uint16_t type, uint16_t flags, const void *fixed,
		      uint32_t bytes)
{
	memset(r, 0, sizeof(*r));
	r->head.nlmsg_type = type;
	r->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	r->head.nlmsg_len = NLMSG_HDRLEN;
	bs_netlink_raw(r, fixed, bytes);
}

void bs_netlink_put(struct bs_netlink *r, uint16_t type, const void *data, uint32_t bytes)
{
	struct nlattr a = {.nla_type = type, .nla_len = (uint16_t)(NLA_HDRLEN + bytes)};

	bs_netlink_raw(r, &a, sizeof(a));
	bs_netlink_raw(r, data, bytes);
}

void bs_netlink_put_u32(struct bs_netlink *r, uint16_t type, uint32_t value)
{
	bs_netlink_put(r, type, &value, sizeof(value));
}

void bs_netlink_put_text(struct bs_netlink *r, uint16_t type, const char *text)
{
	bs_netlink_put(r, type, text, (uint32_t)strlen(text) + 1);
}

uint32_t bs_netlink_nest(struct bs_netlink *r, uint16_t type)
{
	uint32_t at = NLMSG_ALIGN(r->head.nlmsg_len);
	struct nlattr a = {.nla_type = type, .nla_len = NLA_HDRLEN};

	bs_netlink_raw(r, &a, sizeof(a));
	return at;
}

void bs_netlink_unnest(struct bs_netlink *r, uint32_t nest)
{
	uint16_t len = (uint16_t)(r->head.nlmsg_len - nest);

	if (nest + sizeof(struct nlattr) <= sizeof(r->bytes))
		memcpy(r->bytes + nest, &len, sizeof(len)); /* nla_len comes first */
}

int bs_netlink_ask(int fd, struct bs_netlink *r)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	union {
		struct nlmsghdr head;
		uint8_t bytes[4096];
	} answer;
	static _Atomic uint32_t number;
	ssize_t n;

	if (NLMSG_ALIGN(r->head.nlmsg_len) > sizeof(r->bytes))
		return -E2BIG;
	r->head.nlmsg_seq = ++number;
	if (sendto(fd, r->bytes, r->head.nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof(kernel)) <
	    0)
		return -errno;
	while (true) {
		const struct nlmsgerr *told = NLMSG_DATA(&answer.head);

		n = recv(fd, &answer, sizeof(answer), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if ((size_t)n >= NLMSG_LENGTH(sizeof(*told)) &&
		    answer.head.nlmsg_seq == r->head.nlmsg_seq &&
		    answer.head.nlmsg_type == NLMSG_ERROR)
			return told->error;
	}
}
