/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests and answers; see request.h. What comes is hostile until it has passed here. */
#include "request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ring_shape.h"
#include "wire.h"

#define BS_REQUEST_ROOM 256 /* bytes received at most; longer ones are cut and refused */
#define BS_REQUEST_FDS	8   /* descriptors taken, and closed, at most; the kernel drops others */

static int bs_refusal(char why[BW_SERVICE_TEXT], int error, const char *text)
{
	snprintf(why, BW_SERVICE_TEXT, "%s", text);
	return error;
}

/* Printable bytes, and zero bytes behind them. */
static bool bs_name_good(const char name[BW_SERVICE_NAME])
{
	size_t n = strnlen(name, BW_SERVICE_NAME);

	for (size_t i = 0; i < n; i++) {
		if (name[i] < '!' || name[i] > '~')
			return false;
	}
	for (size_t i = n; i < BW_SERVICE_NAME; i++) {
		if (name[i])
			return false;
	}
	return n < BW_SERVICE_NAME;
}

int bs_request_parse(struct bw_service_request *r, const void *bytes, size_t n, uint16_t ethertype,
		     char why[BW_SERVICE_TEXT])
{
	if (n < sizeof(r->head))
		return bs_refusal(why, -EPROTO, "that is no request");
	memcpy(&r->head, bytes, sizeof(r->head));
	if (r->head.magic != BW_SERVICE_MAGIC)
		return bs_refusal(why, -EPROTO, "that is no request");
	if (r->head.version != BW_SERVICE_VERSION) {
		snprintf(why, BW_SERVICE_TEXT,
			 "beowired speaks version %u, this libbeowire version %u; fix: the same "
			 "release of both",
			 BW_SERVICE_VERSION, r->head.version);
		return -EPROTONOSUPPORT;
	}
	if (n != sizeof(*r) || r->head.kind != BW_SERVICE_OPEN)
		return bs_refusal(why, -EPROTO, "that is no request");
	memcpy(r, bytes, sizeof(*r));
	if (r->zero || !bs_name_good(r->interface))
		return bs_refusal(why, -EPROTO, "that is no request");
	if (r->engine <= BW_ENGINE_KERNEL)
		return bs_refusal(why, -EINVAL, "engine numbers up to 32767 are the kernel's");
	if (r->ring_bytes < BW_RING_MIN)
		return bs_refusal(why, -EINVAL, "a ring of less than 256 KiB; fix: BEOWIRE_RING");
	if (r->ethertype != ethertype) {
		snprintf(why, BW_SERVICE_TEXT,
			 "beowired serves EtherType 0x%04X, not 0x%04X; fix: BEOWIRE_ETHERTYPE, "
			 "or 'ethertype' in beowired.conf",
			 ethertype, r->ethertype);
		return -EPROTOTYPE;
	}
	return 0;
}

/* The first descriptor that came; all others are closed. Their number. */
static int bs_request_descriptors(struct msghdr *m, int *first)
{
	int n = 0, fd;

	*first = -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(fd) <= c->cmsg_len - CMSG_LEN(0);
		     at += sizeof(fd)) {
			memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
			if (n++)
				close(fd);
			else
				*first = fd;
		}
	}
	return n;
}

int bs_request_receive(int fd, struct bw_service_request *r, int *claim, uint16_t ethertype,
		       char why[BW_SERVICE_TEXT])
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(BS_REQUEST_FDS * sizeof(int))];
	} control;
	uint8_t bytes[BS_REQUEST_ROOM];
	struct iovec part = {.iov_base = bytes, .iov_len = sizeof(bytes)};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int error, fds;

	*claim = -1;
	why[0] = 0;
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	fds = bs_request_descriptors(&m, claim);
	if (n == 0 && !fds)
		return -ECONNRESET;
	error = bs_request_parse(r, bytes, (size_t)n, ethertype, why);
	if (!error && (fds != 1 || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))))
		error = bs_refusal(why, -EPROTO, "that is no request");
	if (error && *claim >= 0) {
		close(*claim);
		*claim = -1;
	}
	return error;
}

int bs_request_answer(int fd, const struct bw_service_answer *a, int descriptor)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = (void *)a, .iov_len = sizeof(*a)};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

	if (descriptor >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		control.header = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof(int)),
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
		};
		memcpy(CMSG_DATA(&control.header), &descriptor, sizeof(descriptor));
	}
	return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(*a) ? 0 : -EPIPE;
}

void bs_request_refuse(int fd, int error, const char *why)
{
	struct bw_service_answer a = {
		.head = {BW_SERVICE_MAGIC, BW_SERVICE_VERSION, BW_SERVICE_REFUSED},
		.error = error,
	};

	snprintf(a.text, sizeof(a.text), "%s", why);
	bs_request_answer(fd, &a, -1);
}
