/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sockets that offers travel by. See registrar.h. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "owned.h"
#include "real.h"
#include "registrar.h"

static const uint8_t bws_offer_mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

bool bws_offer_address(const void *name, uint8_t *address, uint16_t *port)
{
	const struct sockaddr *any = name;

	if (any->sa_family == AF_INET) {
		const struct sockaddr_in *in = name;

		memcpy(address, bws_offer_mapped, sizeof(bws_offer_mapped));
		memcpy(address + sizeof(bws_offer_mapped), &in->sin_addr, 4);
		*port = ntohs(in->sin_port);
		return true;
	}
	if (any->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in = name;

		memcpy(address, &in->sin6_addr, 16);
		*port = ntohs(in->sin6_port);
		return true;
	}
	return false;
}

bool bws_offer_is_v4(const uint8_t *address)
{
	return !memcmp(address, bws_offer_mapped, sizeof(bws_offer_mapped));
}

static socklen_t bws_offer_name(const struct bws_from *of, struct sockaddr_storage *name)
{
	struct sockaddr_in *in4 = (struct sockaddr_in *)name;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)name;

	memset(name, 0, sizeof(*name));
	if (bws_offer_is_v4(of->address)) {
		in4->sin_family = AF_INET;
		in4->sin_port = htons(of->port);
		memcpy(&in4->sin_addr, of->address + sizeof(bws_offer_mapped), 4);
		return sizeof(*in4);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(of->port);
	memcpy(&in6->sin6_addr, of->address, 16);
	return sizeof(*in6);
}

int bws_offer_socket(int family, uint16_t port)
{
	struct bws_from any = {.port = port};
	struct sockaddr_storage name;
	const int on = 1;
	socklen_t len;
	int fd;

	if (!family)
		memcpy(any.address, bws_offer_mapped, sizeof(bws_offer_mapped));
	len = bws_offer_name(&any, &name);
	fd = bws_own_socket(family ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			    0);
	if (fd < 0)
		return -1;
	if (family)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (family)
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof(on));
	else
		setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&name, len)) {
		bws_own_close(fd);
		return -1;
	}
	return fd;
}

bool bws_offer_send(const int *sockets, const uint8_t *here, const struct bws_from *to,
		    const uint8_t *bytes)
{
	bool v4 = bws_offer_is_v4(to->address);
	union {
		struct cmsghdr head;
		uint8_t room[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	} control = {0};
	struct sockaddr_storage name;
	struct iovec iov = {(void *)bytes, BWS_OFFER_BYTES};
	struct msghdr m = {.msg_name = &name, .msg_iov = &iov, .msg_iovlen = 1};
	struct in6_pktinfo from6 = {0};
	struct in_pktinfo from4 = {0};

	m.msg_namelen = bws_offer_name(to, &name);
	if (here && v4) {
		memcpy(&from4.ipi_spec_dst, here + sizeof(bws_offer_mapped), 4);
		control.head = (struct cmsghdr){.cmsg_level = IPPROTO_IP,
						.cmsg_type = IP_PKTINFO,
						.cmsg_len = CMSG_LEN(sizeof(from4))};
		memcpy(CMSG_DATA(&control.head), &from4, sizeof(from4));
		m.msg_controllen = CMSG_SPACE(sizeof(from4));
	} else if (here) {
		memcpy(&from6.ipi6_addr, here, 16);
		control.head = (struct cmsghdr){.cmsg_level = IPPROTO_IPV6,
						.cmsg_type = IPV6_PKTINFO,
						.cmsg_len = CMSG_LEN(sizeof(from6))};
		memcpy(CMSG_DATA(&control.head), &from6, sizeof(from6));
		m.msg_controllen = CMSG_SPACE(sizeof(from6));
	}
	if (here)
		m.msg_control = &control;
	if (sockets[v4 ? 0 : 1] < 0)
		return false;
	return bws_r()->sendmsg(sockets[v4 ? 0 : 1], &m, MSG_NOSIGNAL) == BWS_OFFER_BYTES;
}

int bws_offer_receive(int fd, struct bws_from *from, uint8_t *bytes, size_t room)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	ssize_t n;

	n = bws_r()->recvfrom(fd, bytes, room, MSG_DONTWAIT | MSG_TRUNC, (struct sockaddr *)&name,
			      &len);
	if (n < 0 || !bws_offer_address(&name, from->address, &from->port))
		return -1;
	return n <= (ssize_t)room ? (int)n : 0;
}

bool bws_offer_refused(int fd, struct bws_from *by)
{
	struct sockaddr_storage name;
	uint8_t control[512];
	struct msghdr m = {.msg_name = &name,
			   .msg_namelen = sizeof(name),
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};

	if (bws_r()->recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
		return false;
	return bws_offer_address(&name, by->address, &by->port);
}
