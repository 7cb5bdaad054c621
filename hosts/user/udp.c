/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The socket behind the udp link: one port of a fixed range, so that a firewall rule can name it.
 * Explicit congestion notification is asked for and handed on; closed ports come back through the
 * socket's error queue together with the first bytes of the datagram that met them.
 *
 * Where the kernel takes rows of frames (batch.h), it also delivers several of one sender as one
 * datagram and says at what length to cut it (UDP_GRO).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "checksum.h"
#include "filter.h"
#include "refuse.h"
#include "udp.h"

#define BW_UDP_BUFFER (4 << 20) /* bytes asked of the kernel for each direction */
#define BW_UDP_ECT0   0x02	/* IP_TOS: able to read congestion marks, RFC 3168 5 */
#define BW_UDP_CE     0x03	/* IP_TOS: congestion experienced */

struct bw_udp_slot {
	struct iovec iov;
	struct sockaddr_in from;
	uint32_t cut; /* bytes of each frame in the datagram but the last one */
	bool mark;    /* a router has marked it: congestion */
	union {
		struct cmsghdr align;
		uint8_t bytes[2 * CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint32_t))];
	} control;
};

static uint32_t bw_udp_buffers(int fd)
{
	int bytes = BW_UDP_BUFFER, got = 0;
	socklen_t len = sizeof(got);

	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &len);
	return (uint32_t)got;
}

static int bw_udp_options(int fd)
{
	int on = 1, probe = IP_PMTUDISC_PROBE, tos = BW_UDP_ECT0;

	if (setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe)) ||
	    setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos)) ||
	    setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof(on)) ||
	    setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on)))
		return -errno;
	return 0;
}

/* Rows, both ways, if the kernel has them. Length 0 leaves the socket as it was: a kernel that does
 * not know the option would pass over a row's control message and send one long datagram. */
static void bw_udp_rows(struct bw_udp *u, bool wanted)
{
	int none = 0, on = 1;

	u->stride = (u->mtu + 63 + 64) & ~(size_t)63;
	if (!wanted || setsockopt(u->fd, IPPROTO_UDP, UDP_SEGMENT, &none, sizeof(none)))
		return;
	u->batch->join = true;
	if (!setsockopt(u->fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)))
		u->stride = BW_UDP_ROW;
}

static int bw_udp_bind(struct bw_udp *u, const struct bw_env *env, const char **why)
{
	uint32_t ports = (uint32_t)(env->udp_hi - env->udp_lo) + 1;
	uint32_t first = (uint32_t)getpid() % ports;

	for (uint32_t i = 0; i < ports; i++) {
		struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = u->address};

		u->port = (uint16_t)(env->udp_lo + (first + i) % ports);
		address.sin_port = htons(u->port);
		if (bind(u->fd, (struct sockaddr *)&address, sizeof(address)) == 0)
			return 0;
		if (errno != EADDRINUSE)
			return bw_fail(why, -errno, "cannot bind UDP port %u of %s: %s", u->port,
				       inet_ntoa(u->address), strerror(errno));
	}
	return bw_fail(why, -EADDRINUSE,
		       "all UDP ports %u-%u of %s are in use; mend: a wider BEOWIRE_UDP_PORTS",
		       env->udp_lo, env->udp_hi, inet_ntoa(u->address));
}

static int bw_udp_memory(struct bw_udp *u, bool rows)
{
	u->batch = bw_batch_new(0, true);
	u->slot = calloc(BW_UDP_FRAMES, sizeof(*u->slot));
	if (!u->batch || !u->slot)
		return -ENOMEM;
	bw_udp_rows(u, rows);
	u->frames = aligned_alloc(64, u->stride * BW_UDP_FRAMES);
	if (!u->frames)
		return -ENOMEM;
	for (int i = 0; i < BW_UDP_FRAMES; i++) {
		struct bw_udp_slot *s = &u->slot[i];
		struct msghdr *m = &u->rx[i].msg_hdr;

		s->iov.iov_base = u->frames + u->stride * (size_t)i;
		s->iov.iov_len = u->stride;
		m->msg_iov = &s->iov;
		m->msg_iovlen = 1;
		m->msg_name = &s->from;
		m->msg_control = s->control.bytes;
	}
	u->got = BW_UDP_FRAMES; /* none of them is ready to be filled */
	u->next = u->got;
	return 0;
}

int bw_udp_open(struct bw_udp *u, const struct bw_env *env, const struct bw_iface *iface,
		uint16_t engine, const char **why)
{
	uint32_t mtu = iface->mtu - BW_UDP_OVERHEAD;
	int error;

	memset(u, 0, sizeof(*u));
	u->address = iface->address;
	u->mtu = mtu < BW_FRAME_MAX_MTU ? mtu : BW_FRAME_MAX_MTU;
	if (env->mtu && env->mtu < u->mtu)
		u->mtu = env->mtu;
	u->mtu &= ~7u; /* each frame of a row begins aligned */
	u->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (u->fd < 0)
		return bw_fail(why, -errno, "cannot open a UDP socket: %s", strerror(errno));
	u->rcvbuf = bw_udp_buffers(u->fd);
	error = bw_udp_options(u->fd);
	if (!error)
		error = bw_filter_udp(u->fd, engine);
	if (error)
		bw_fail(why, error, "cannot set up a UDP socket: %s", strerror(-error));
	if (!error)
		error = bw_udp_bind(u, env, why);
	if (!error && bw_udp_memory(u, env->udp_offload))
		error = bw_fail(why, -ENOMEM, "out of memory");
	if (error)
		bw_udp_close(u);
	return error;
}

void bw_udp_close(struct bw_udp *u)
{
	if (u->fd >= 0)
		close(u->fd);
	bw_batch_free(u->batch);
	free(u->slot);
	free(u->frames);
	u->batch = NULL;
	u->slot = NULL;
	u->frames = NULL;
	u->fd = -1;
}

int bw_udp_receive(struct bw_udp *u)
{
	/* The kernel writes to those that it fills. */
	for (int i = 0; i < u->got; i++) {
		u->rx[i].msg_hdr.msg_namelen = sizeof(u->slot[i].from);
		u->rx[i].msg_hdr.msg_controllen = sizeof(u->slot[i].control.bytes);
	}
	long n = syscall(SYS_recvmmsg, u->fd, u->rx, BW_UDP_FRAMES, MSG_DONTWAIT, NULL);

	u->got = n > 0 ? (int)n : 0;
	u->next = 0;
	u->at = 0;
	if (n >= 0)
		return (int)n;
	if (errno == EAGAIN && !u->batch->refused)
		return 0;
	u->batch->refused = false;
	return -ECONNREFUSED;
}

void bw_udp_link_addr(struct bw_link_addr *a, struct in_addr address, uint16_t port)
{
	memset(a, 0, sizeof(*a));
	a->link = BW_LINK_NO_UDP;
	a->len = 6;
	memcpy(a->bytes, &address, 4);
	memcpy(a->bytes + 4, &port, 2);
}

static void bw_udp_overflow(struct bw_udp *u, const struct cmsghdr *c)
{
	uint32_t seen;

	memcpy(&seen, CMSG_DATA(c), sizeof(seen));
	u->count.rx_overruns += (uint32_t)(seen - u->overflow);
	u->overflow = seen;
}

static bool bw_udp_marked(const struct cmsghdr *tos)
{
	return (*CMSG_DATA(tos) & BW_UDP_CE) == BW_UDP_CE;
}

/* What the kernel tells of a datagram. No frame is shorter than a header, so that a length that is,
 * or one beyond the datagram, makes it one frame. */
static void bw_udp_told(struct bw_udp *u, struct bw_udp_slot *s, struct msghdr *m, uint32_t len)
{
	const struct cmsghdr *only = &s->control.align;
	int cut = 0;

	s->mark = false;
	s->cut = len;
	/* Mostly there is nothing but the type of service. */
	if (BW_LIKELY(m->msg_controllen == CMSG_SPACE(1) && only->cmsg_level == IPPROTO_IP &&
		      only->cmsg_type == IP_TOS)) {
		s->mark = bw_udp_marked(only);
		return;
	}
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS)
			s->mark = bw_udp_marked(c);
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL)
			bw_udp_overflow(u, c);
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
			memcpy(&cut, CMSG_DATA(c), sizeof(cut));
	}
	if (cut < (int)sizeof(struct bw_hdr) || (uint32_t)cut >= len)
		return;
	s->cut = (uint32_t)cut;
	u->rx_rows++;
}

bool bw_udp_frame(struct bw_udp *u, struct bw_rx_frame *f)
{
	struct bw_udp_slot *s = &u->slot[u->next];
	struct mmsghdr *m = &u->rx[u->next];
	uint8_t *head;

	if (u->next == u->got)
		return false;
	if (!u->at)
		bw_udp_told(u, s, &m->msg_hdr, m->msg_len);
	head = (uint8_t *)s->iov.iov_base + u->at;
	f->len = (uint32_t)bw_min_u64(s->cut, m->msg_len - u->at);
	/* Behind a frame of another length: down to where the engine can read it, over the end of
	 * the frame before, which has been taken. */
	if (BW_UNLIKELY(u->at % 8))
		head = memmove(head - u->at % 8, head, f->len);
	u->at += f->len;
	if (u->at == m->msg_len) {
		u->next++;
		u->at = 0;
	}
	f->head = head;
	f->head_len = f->len;
	f->mark = s->mark;
	f->cookie = NULL;
	bw_udp_link_addr(&f->from, s->from.sin_addr, ntohs(s->from.sin_port));
	u->count.rx_frames++;
	u->count.rx_bytes += f->len;
	return true;
}

/* Is this, from the error queue, what became of a datagram to a port that nobody has? */
static bool bw_udp_port_closed(struct msghdr *m)
{
	const struct sock_extended_err *error;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_RECVERR)
			continue;
		error = (const struct sock_extended_err *)CMSG_DATA(c);
		return error->ee_errno == ECONNREFUSED;
	}
	return false;
}

bool bw_udp_refusal(struct bw_udp *u, uint32_t cluster, struct bw_refuse_frame *r,
		    struct bw_rx_frame *f)
{
	union {
		struct cmsghdr align;
		uint8_t bytes[256];
	} control;
	uint8_t bytes[sizeof(struct bw_hdr) + sizeof(struct bw_hello)];
	struct sockaddr_in to;
	struct iovec iov = {bytes, sizeof(bytes)};
	struct msghdr m = {&to, sizeof(to), &iov, 1, control.bytes, sizeof(control), 0};

	while (true) {
		ssize_t n = recvmsg(u->fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT);

		if (n < 0)
			return false;
		if (bw_udp_port_closed(&m) &&
		    bw_refuse_build(r, bytes, (uint32_t)n, cluster, "", bw_checksum))
			break;
		m.msg_namelen = sizeof(to);
		m.msg_controllen = sizeof(control);
	}
	f->head = r;
	f->len = sizeof(*r);
	f->head_len = f->len;
	f->mark = false;
	f->cookie = NULL;
	bw_udp_link_addr(&f->from, to.sin_addr, ntohs(to.sin_port));
	return true;
}

bool bw_udp_add(struct bw_udp *u, const struct bw_tx_frame *f)
{
	struct bw_batch_slot *slot = bw_batch_add(u->batch, f);
	uint16_t port;

	if (!slot)
		return false;
	memcpy(&port, f->to.bytes + 4, 2);
	slot->to.sin_family = AF_INET;
	slot->to.sin_port = htons(port);
	memcpy(&slot->to.sin_addr, f->to.bytes, 4);
	u->count.tx_frames++;
	u->count.tx_bytes += f->len;
	u->count.tx_payload += bw_batch_payload_bytes(f);
	return true;
}
