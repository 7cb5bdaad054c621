/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames by UDP. Explicit congestion notification is asked for and handed on; closed ports come
 * back through a socket's error queue together with the first bytes of the datagram that met them.
 *
 * Where the kernel takes rows of frames (batch.h), it also delivers several of one sender as one
 * datagram (UDP_GRO). It is cut where its frames say that they end.
 *
 * What the kernel tells of a datagram beside its bytes costs up to a tenth of an exchange of short
 * ones. Of a connected socket the sender is known. So of those that come alone, whose senders are
 * hardly too fast, only one in eight is asked about, until one is marked.
 */
#include <errno.h>
#include <time.h> /* linux/errqueue.h needs it */
#include <linux/errqueue.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "checksum.h"
#include "link/udp/impl.h"
#include "refuse.h"

#define BW_UDP_CE	 0x03 /* congestion experienced, RFC 3168 5 */
#define BW_UDP_SAMPLE	 8    /* one in so many that come alone is asked about */
#define BW_UDP_ROWS	 32   /* neighbours of one length, before the socket is to know it */
#define BW_UDP_OVERHEAD4 28   /* bytes of IPv4 and UDP header */
#define BW_UDP_OVERHEAD6 48   /* bytes of IPv6 and UDP header */

struct bw_udp_slot {
	struct iovec iov;
	union bw_name from;
	bool mark; /* a router has marked it: congestion */
	union {
		struct cmsghdr align;
		uint8_t bytes[2 * CMSG_SPACE(sizeof(int))]; /* the mark, and a row's length */
	} control;
};

static int bw_udp_memory(struct bw_udp *u, const struct bw_env *env)
{
	u->batch = bw_batch_new(0, true);
	u->slot = calloc(BW_UDP_FRAMES, sizeof(*u->slot));
	if (!u->batch || !u->slot)
		return -ENOMEM;
	return env->encrypt ? bw_batch_make_room(u->batch, u->mtu) : 0;
}

/* Room for what a datagram may bring, which the sockets tell. */
static int bw_udp_room(struct bw_udp *u)
{
	u->stride = u->joined ? BW_UDP_ROW : (u->mtu + 63 + 64) & ~(size_t)63;
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
		const union bw_name *name, uint16_t engine, const char **why)
{
	bool four = name->any.sa_family == AF_INET;
	uint32_t mtu = iface->mtu - (four ? BW_UDP_OVERHEAD4 : BW_UDP_OVERHEAD6);
	int error;

	memset(u, 0, sizeof(*u));
	u->name = *name;
	u->interface = (uint32_t)iface->index;
	u->mtu = mtu < BW_FRAME_MAX_MTU ? mtu : BW_FRAME_MAX_MTU;
	if (env->mtu && env->mtu < u->mtu)
		u->mtu = env->mtu;
	u->mtu &= ~7u; /* each frame of a row begins aligned */
	error = bw_udp_memory(u, env);
	if (!error)
		error = bw_udp_socket_open(u, env, engine, why);
	else
		bw_fail(why, error, "out of memory");
	if (!error && bw_udp_room(u))
		error = bw_fail(why, -ENOMEM, "out of memory");
	if (error)
		bw_udp_close(u);
	return error;
}

void bw_udp_close(struct bw_udp *u)
{
	for (int i = 0; i < u->sockets; i++)
		close(u->socket[i].fd);
	u->sockets = 0;
	bw_batch_free(u->batch);
	free(u->slot);
	free(u->frames);
	u->batch = NULL;
	u->slot = NULL;
	u->frames = NULL;
}

/* One datagram, of which nothing but its bytes is asked. */
static long bw_udp_take(struct bw_udp *u, struct bw_udp_socket *s)
{
	long n = syscall(SYS_recvfrom, s->fd, u->frames, u->stride, MSG_DONTWAIT, NULL, NULL);

	if (n < 0)
		return n;
	u->rx[0].msg_len = (unsigned int)n;
	u->slot[0].mark = false;
	u->sender = s->who;
	s->told = ++s->plain % BW_UDP_SAMPLE == 0;
	return 1;
}

/* One, or as many as there are, with all that the kernel tells. */
static long bw_udp_take_told(struct bw_udp *u, struct bw_udp_socket *s)
{
	long n;

	/* The kernel writes to those that it fills. */
	for (int i = 0; i < u->got; i++) {
		u->rx[i].msg_hdr.msg_namelen = sizeof(u->slot[i].from);
		u->rx[i].msg_hdr.msg_controllen = sizeof(u->slot[i].control.bytes);
	}
	n = syscall(SYS_recvmmsg, s->fd, u->rx, s->streams ? BW_UDP_FRAMES : 1, MSG_DONTWAIT, NULL);
	if (n > 0)
		s->told -= (uint32_t)bw_min_u64(s->told, (uint64_t)n);
	return n;
}

int bw_udp_look(struct bw_udp *u, int i)
{
	struct bw_udp_socket *s = &u->socket[i];
	long n;

	u->plain = i && !s->told && !s->streams;
	n = u->plain ? bw_udp_take(u, s) : bw_udp_take_told(u, s);
	bw_udp_active_found(u, i, n > 0);
	u->rx_connected += i && n > 0 ? (uint64_t)n : 0;
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

int bw_udp_receive(struct bw_udp *u)
{
	int n = BW_UNLIKELY(u->wanted) ? bw_udp_active_settle(u) : 0, i;

	if (n)
		return n;
	i = bw_udp_active_next(u);
	n = bw_udp_look(u, i);
	return n || i == u->hot ? n : bw_udp_look(u, u->hot);
}

int bw_udp_receive_any(struct bw_udp *u)
{
	int n = bw_udp_receive(u);

	for (int i = 0; i < u->sockets && !n; i++)
		n = bw_udp_look(u, i);
	return n;
}

/* What the kernel tells of a datagram: its type of service, of IPv4 as a byte, of IPv6 as an int;
 * both begin with the byte that counts, as the machine is little-endian. */
static void bw_udp_told(struct bw_udp *u, struct bw_udp_slot *s, struct msghdr *m)
{
	s->mark = false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ||
		    (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS))
			s->mark = (*CMSG_DATA(c) & BW_UDP_CE) == BW_UDP_CE;
	}
	for (int i = 0; i < u->sockets && s->mark; i++)
		u->socket[i].told = BW_UDP_TOLD;
	bw_name_to_link(&u->sender, &s->from);
}

/* Bytes of the first of the frames in so many: up to where it says that it ends, if another one
 * follows; bytes behind a last one are its own. */
static uint32_t bw_udp_cut(const uint8_t *head, uint32_t bytes)
{
	uint16_t body, magic;
	uint32_t end;

	if (bytes < 2 * sizeof(struct bw_hdr))
		return bytes;
	memcpy(&body, head + offsetof(struct bw_hdr, len), sizeof(body));
	end = (uint32_t)sizeof(struct bw_hdr) + body;
	if (bytes < end + sizeof(struct bw_hdr))
		return bytes;
	memcpy(&magic, head + end + offsetof(struct bw_hdr, magic), sizeof(magic));
	return magic == BW_MAGIC ? end : bytes;
}

static BW_WITHIN bool bw_udp_next(struct bw_udp *u, struct bw_rx_frame *f)
{
	struct bw_udp_slot *s = &u->slot[u->next];
	struct mmsghdr *m = &u->rx[u->next];
	uint8_t *head;

	if (u->next == u->got)
		return false;
	if (!u->at && !u->plain)
		bw_udp_told(u, s, &m->msg_hdr);
	head = (uint8_t *)s->iov.iov_base + u->at;
	f->len = bw_udp_cut(head, m->msg_len - u->at);
	u->rx_rows += !u->at && f->len < m->msg_len;
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
	f->from = u->sender;
	u->count.rx_frames++;
	u->count.rx_bytes += f->len;
	return true;
}

bool bw_udp_frame(struct bw_udp *u, struct bw_rx_frame *f)
{
	return bw_udp_next(u, f);
}

/* One that lies askew would move over the end of the one before it. */
static BW_APART int bw_udp_rest(struct bw_udp *u, struct bw_rx_frame *f, int max)
{
	int n = 1;

	while (u->at && !(u->at % 8) && n < max)
		bw_udp_next(u, &f[n++]);
	return n;
}

int bw_udp_frames(struct bw_udp *u, struct bw_rx_frame *f, int max)
{
	if (!bw_udp_next(u, f))
		return 0;
	return BW_LIKELY(!u->at) ? 1 : bw_udp_rest(u, f, max);
}

/* Is this, from the error queue, what became of a datagram to a port that nobody has? */
static bool bw_udp_port_closed(struct msghdr *m)
{
	const struct sock_extended_err *error;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if ((c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_RECVERR) &&
		    (c->cmsg_level != IPPROTO_IPV6 || c->cmsg_type != IPV6_RECVERR))
			continue;
		error = (const struct sock_extended_err *)CMSG_DATA(c);
		return error->ee_errno == ECONNREFUSED;
	}
	return false;
}

/* The next one of the error queue of a socket. */
static bool bw_udp_socket_refusal(int fd, uint32_t cluster, struct bw_refuse_frame *r,
				  union bw_name *to)
{
	union {
		struct cmsghdr align;
		uint8_t bytes[256];
	} control;
	uint8_t bytes[sizeof(struct bw_hdr) + sizeof(struct bw_hello)];
	struct iovec iov = {bytes, sizeof(bytes)};
	/* Anybody can make the kernel say so: nothing is told with the cluster's key. */
	const struct bw_refuser we = {.cluster = cluster, .name = "", .crc32c = bw_checksum};
	struct msghdr m = {.msg_name = to, .msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	do {
		m.msg_namelen = sizeof(*to);
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control);
		n = recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT);
		if (n < 0)
			return false;
	} while (!bw_udp_port_closed(&m) ||
		 !bw_refuse_build(r, &we, bytes, (uint32_t)n, UINT32_MAX));
	return true;
}

bool bw_udp_refusal(struct bw_udp *u, uint32_t cluster, struct bw_refuse_frame *r,
		    struct bw_rx_frame *f)
{
	union bw_name to;
	int i = 0;

	while (i < u->sockets && !bw_udp_socket_refusal(u->socket[i].fd, cluster, r, &to))
		i++;
	if (i == u->sockets)
		return false;
	f->head = r;
	f->len = sizeof(*r);
	f->head_len = f->len;
	f->mark = false;
	f->cookie = NULL;
	bw_name_to_link(&f->from, &to);
	return true;
}

/* A frame goes by this connected socket. Of what has been a row often it need not be told any more
 * where to cut. */
static void bw_udp_row(struct bw_udp *u, int i, const struct bw_batch_slot *slot)
{
	struct bw_udp_socket *s = &u->socket[i];
	const struct bw_batch_slot *before = slot - 1;

	if (slot->len == s->cut || u->batch->count == 1 || before->fd != slot->fd ||
	    before->len != slot->len || !u->batch->join || u->whole)
		return;
	if (slot->len != s->row)
		s->rows = 0;
	s->row = slot->len;
	if (++s->rows == BW_UDP_ROWS)
		u->due = i;
}

static void bw_udp_added(struct bw_udp *u, const struct bw_tx_frame *f)
{
	u->count.tx_frames++;
	u->count.tx_bytes += f->len;
	u->count.tx_payload += bw_batch_payload_bytes(f);
}

static BW_WITHIN bool bw_udp_add_any(struct bw_udp *u, const struct bw_tx_frame *f)
{
	struct bw_batch_slot *slot;
	int i;

	if (BW_UNLIKELY(u->due || u->batch->uncut) && !u->batch->count)
		bw_udp_socket_cuts(u);
	slot = bw_batch_add(u->batch, f);
	if (!slot)
		return false;
	bw_name_from_link(&slot->to, &f->to, u->interface);
	i = bw_udp_active_for(u, f);
	u->way = i;
	if (i) {
		slot->fd = u->socket[i].fd;
		slot->cut = u->socket[i].cut;
		bw_udp_row(u, i, slot);
	}
	bw_udp_added(u, f);
	return true;
}

bool bw_udp_add(struct bw_udp *u, const struct bw_tx_frame *f)
{
	return bw_udp_add_any(u, f);
}

bool bw_udp_add_alike(struct bw_udp *u, const struct bw_tx_frame *f)
{
	struct bw_batch_slot *slot;

	if (!u->way || !u->batch->count)
		return bw_udp_add_any(u, f);
	slot = bw_batch_add(u->batch, f);
	if (!slot)
		return false;
	bw_batch_same_way(slot);
	bw_udp_active_again(u, u->way);
	bw_udp_row(u, u->way, slot);
	bw_udp_added(u, f);
	return true;
}
