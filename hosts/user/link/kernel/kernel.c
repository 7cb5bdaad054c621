/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages over a socket of the kernel module; see kernel.h. Opening it is in open.c. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ep.h"
#include "link/kernel/impl.h"

#define BW_KERNEL_ROUND	   64	 /* messages taken in one round */
#define BW_KERNEL_PRESSED  64	 /* bytes; shorter messages are welcome under pressure too */
#define BW_KERNEL_SHORT_NS BW_MS /* until the next try where the kernel lacked memory */

/* ---- peers ---- */

bool bw_kernel_reaches(const struct bw_ep *ep, const struct bw_addr_fields *a)
{
	bool here = !memcmp(a->mac, ep->self.mac, sizeof(a->mac));

	/* The module hands frames to the own address on to its own ports, but to nobody else. */
	return ep->kernel && (a->links & BW_LINK_PACKET) && a->ethertype == ep->self.ethertype &&
	       (!here || a->engine <= BW_ENGINE_KERNEL);
}

int bw_kernel_connect(struct bw_ep *ep, struct bw_remote *p)
{
	struct bw_kernel *k = ep->kernel;
	union {
		struct sockaddr_beowire addr;
		int number;
	} x = {.addr = {.sbw_family = (uint16_t)k->family,
			.sbw_port = p->addr.engine,
			.sbw_ifindex = k->ifindex,
			.sbw_node = p->addr.node,
			.sbw_inc = p->addr.inc}};
	socklen_t n = sizeof(x);

	memcpy(x.addr.sbw_mac, p->addr.mac, sizeof(x.addr.sbw_mac));
	if (getsockopt(k->fd, SOL_BEOWIRE, BEOWIRE_PEER_NUMBER, &x, &n) < 0)
		return errno == ENOBUFS ? -EAGAIN : -errno;
	bw_kernel_note(k, (uint32_t)x.number, p);
	if (p->watch)
		bw_kernel_watch(ep, p, true);
	return 0;
}

void bw_kernel_watch(struct bw_ep *ep, const struct bw_remote *p, bool on)
{
	struct beowire_watch watch = {.peer = p->kernel, .on = on};

	/* It fails only for a peer that is down, of which an event tells. */
	ioctl(ep->kernel->fd, BEOWIRE_IOC_WATCH, &watch);
}

void bw_kernel_name(const struct bw_ep *ep, struct bw_remote *p)
{
	union {
		uint32_t number;
		char name[BW_NAME_MAX + 1];
	} x = {.number = p->kernel};
	socklen_t n = sizeof(x);

	if (!p->name[0] && getsockopt(ep->kernel->fd, SOL_BEOWIRE, BEOWIRE_PEER_NAME, &x, &n) == 0)
		bw_remote_name(p, x.name, n);
}

/* The module does not speak with it any more. p may be no more afterwards. */
static void bw_kernel_end(struct bw_ep *ep, struct bw_remote *p, int status)
{
	struct bw_kernel *k = ep->kernel;

	bw_kernel_unnote(k, p);
	k->meetings -= p->meeting;
	p->meeting = false;
	if (p->by == &bw_by_engine && !p->met) /* raw frames do not reach it, as is known */
		return;
	if (status == BW_DOWN_EVICTED && p->complete) { /* it was named just then: met anew */
		p->by = NULL;
		p->up = p->met = false;
		return;
	}
	bw_remote_down(ep, p, status);
}

/* Who sent this: known by number, or met for the first time. Who speaks by another number than
 * before has begun anew, so the old conversation is over; the module tells that only once nothing
 * waits to be taken, the first words of the new one included. */
static struct bw_remote *bw_kernel_peer(struct bw_ep *ep, uint32_t number,
					const struct sockaddr_beowire *from)
{
	struct bw_kernel *k = ep->kernel;
	struct bw_remote *p = bw_kernel_find(k, number);

	if (p)
		p->unneeded = false;
	if (p || !from->sbw_port)
		return p;
	p = bw_remote_find(&ep->remotes, from->sbw_node, from->sbw_port, from->sbw_inc);
	if (p && p->by == &bw_by_kernel && p->kernel)
		bw_kernel_end(ep, p, BW_DOWN_RESET);
	p = bw_remote_meet(ep, from->sbw_node, from->sbw_port, from->sbw_inc);
	if (!p || p->status)
		return NULL;
	bw_kernel_note(k, number, p);
	p->up = p->met = true;
	if (!p->complete) {
		p->addr.links |= BW_LINK_PACKET;
		p->addr.ethertype = ep->self.ethertype;
		memcpy(p->addr.mac, from->sbw_mac, sizeof(p->addr.mac));
	}
	return p;
}

/* ---- sending ---- */

/* The peer's end, and why, may wait to be taken: that tells more than the call does. */
static int bw_kernel_ended_already(struct bw_kernel *k)
{
	struct pollfd poller = {.fd = k->fd, .events = POLLIN};

	if (poll(&poller, 1, 0) != 1 || !(poller.revents & POLLIN))
		return -ENOTCONN;
	k->more = true;
	return -EAGAIN;
}

/* What a failed call means: what there is no room for now waits for room. */
static int bw_kernel_error(struct bw_ep *ep)
{
	struct bw_kernel *k = ep->kernel;

	switch (errno) {
	case ENOTCONN:
		return bw_kernel_ended_already(k);
	case EAGAIN:
		k->full = true;
		return -EAGAIN;
	case ENOBUFS:
	case ENOMEM:
		k->short_at = ep->now + BW_KERNEL_SHORT_NS;
		bw_helper_at(ep, k->short_at);
		return -EAGAIN;
	default:
		return -errno;
	}
}

static int bw_kernel_sendmsg(struct bw_ep *ep, const struct beowire_info *info, const void *buf,
			     uint64_t len)
{
	union {
		struct cmsghdr header;
		uint8_t room[CMSG_SPACE(sizeof(struct beowire_info))];
	} control;
	struct iovec part = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};
	struct msghdr m = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	control.header.cmsg_level = SOL_BEOWIRE;
	control.header.cmsg_type = BEOWIRE_INFO;
	control.header.cmsg_len = CMSG_LEN(sizeof(*info));
	memcpy(CMSG_DATA(&control.header), info, sizeof(*info));
	if (sendmsg(ep->kernel->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	return bw_kernel_error(ep);
}

/* One whose end is told: the peer has it, or has fetched it. */
static int bw_kernel_send_told(struct bw_ep *ep, struct bw_remote *p, struct beowire_info *info,
			       const void *buf, uint64_t len, void *user_op)
{
	struct bw_buffer *b = bw_buffer_describe(&ep->buffers, (void *)(uintptr_t)buf, len);
	int error;

	if (!b)
		return -EAGAIN;
	b->use = info->flags & BEOWIRE_SEND_LONG ? BW_BUFFER_EXPOSED : BW_BUFFER_COPY;
	b->op = user_op;
	b->peer = p->number;
	b->by = &bw_by_kernel;
	b->notify = true;
	info->cookie = bw_buffer_cookie(b);
	error = bw_kernel_sendmsg(ep, info, buf, len);
	if (error) {
		bw_buffer_put(&ep->buffers, b);
		return error;
	}
	ep->kernel->under_way++;
	if (b->use == BW_BUFFER_EXPOSED)
		bw_buffer_link(&ep->pending, b);
	return 0;
}

static int bw_kernel_send_eager(struct bw_ep *ep, struct bw_remote *p, struct beowire_info *info,
				const void *buf, uint64_t len, bool acked, void *user_op)
{
	int error;

	if (acked) {
		info->flags |= BEOWIRE_SEND_ACKED;
		return bw_kernel_send_told(ep, p, info, buf, len, user_op);
	}
	error = bw_kernel_sendmsg(ep, info, buf, len);
	return error ? error : 1;
}

static int bw_kernel_send(struct bw_ep *ep, struct bw_remote *p, struct bw_op *op, const void *buf,
			  uint64_t len, unsigned int flags, void *user_op)
{
	uint32_t eager = flags & BW_SEND_EAGER ? BW_EAGER_LIMIT : ep->eager_max;
	struct beowire_info info = {
		.peer = p->kernel,
		.code = op->send.code,
		.tag = op->send.tag,
		.imm = op->send.imm,
	};
	int result = -EMSGSIZE;

	p->unneeded = false; /* what is sent to it says the same */
	bw_host_tick(ep);
	if (!(flags & (BW_SEND_SYNC | BW_SEND_HANDED)) && len <= eager) {
		info.flags = BEOWIRE_SEND_SHORT;
		result = bw_kernel_send_eager(ep, p, &info, buf, len, flags & BW_SEND_ACKED,
					      user_op);
		if (len > BW_KERNEL_PRESSED)
			p->pressed = result == -EMSGSIZE;
	}
	if (result == -EMSGSIZE && (flags & BW_SEND_EAGER)) {
		info.flags = BEOWIRE_SEND_EAGER;
		result = bw_kernel_send_eager(ep, p, &info, buf, len, flags & BW_SEND_ACKED,
					      user_op);
	} else if (result == -EMSGSIZE) {
		info.flags = BEOWIRE_SEND_LONG | BEOWIRE_SEND_ASYNC;
		result = bw_kernel_send_told(ep, p, &info, buf, len, user_op);
	}
	return result;
}

/* `pull` names what is to be fetched. */
static int bw_kernel_fetch(struct bw_ep *ep, struct bw_remote *p, struct beowire_pull *pull,
			   void *buf, uint64_t len, void *user_op)
{
	struct bw_buffer *b = bw_buffer_describe(&ep->buffers, buf, len);

	if (!b)
		return -EAGAIN;
	pull->peer = p->kernel;
	pull->buf = (uintptr_t)buf;
	pull->len = len;
	pull->cookie = bw_buffer_cookie(b);
	b->use = BW_BUFFER_PULLING;
	b->notify = user_op != NULL;
	b->op = user_op;
	b->peer = p->number;
	b->by = &bw_by_kernel;
	if (ioctl(ep->kernel->fd, BEOWIRE_IOC_PULL, pull) < 0) {
		int error = bw_kernel_error(ep);

		bw_buffer_put(&ep->buffers, b);
		return error;
	}
	ep->kernel->under_way++;
	bw_buffer_link(&ep->pulling, b);
	return 0;
}

static int bw_kernel_pull(struct bw_ep *ep, struct bw_remote *p, const struct bw_rndv *rndv,
			  void *buf, uint64_t len, void *user_op)
{
	struct beowire_pull pull = {.key = rndv->word[BW_RNDV_KEY]};

	if (!p->kernel)
		return -EINVAL;
	bw_host_tick(ep);
	len = bw_min_u64(len, rndv->word[BW_RNDV_LEN]);
	return bw_kernel_fetch(ep, p, &pull, buf, len, user_op);
}

static int bw_kernel_read(struct bw_ep *ep, struct bw_remote *p, uint64_t key, uint64_t off,
			  void *buf, uint64_t len, void *user_op)
{
	struct beowire_pull pull = {.key = key, .off = off, .flags = BEOWIRE_PULL_MEMORY};

	bw_host_tick(ep);
	return bw_kernel_fetch(ep, p, &pull, buf, len, user_op);
}

static int bw_kernel_cancel(struct bw_ep *ep, struct bw_remote *p, struct bw_buffer *b)
{
	uint64_t cookie = bw_buffer_cookie(b);

	return ioctl(ep->kernel->fd, BEOWIRE_IOC_CANCEL, &cookie) < 0 ? -ENOENT : 0;
}

static uint32_t bw_kernel_eager_max(struct bw_ep *ep, struct bw_remote *p)
{
	return p->pressed ? BW_EAGER_LEAST : ep->eager_max;
}

const struct bw_transport bw_by_kernel = {
	.send = bw_kernel_send,
	.pull = bw_kernel_pull,
	.read = bw_kernel_read,
	.cancel = bw_kernel_cancel,
	.eager_max = bw_kernel_eager_max,
};

void bw_kernel_pressure(struct bw_ep *ep, bool on)
{
	int value = on;

	setsockopt(ep->kernel->fd, SOL_BEOWIRE, BEOWIRE_PRESSURE, &value, sizeof(value));
}

/* ---- receiving ---- */

static void bw_kernel_ended(struct bw_ep *ep, const struct beowire_info *info)
{
	struct bw_buffer *b = bw_buffer_of(info->cookie);
	bool pulled = b->use == BW_BUFFER_PULLING, notify = b->notify;
	void *op = b->op;

	ep->kernel->under_way--;
	if (b->use == BW_BUFFER_EXPOSED)
		bw_buffer_unlink(&ep->pending, b);
	if (pulled)
		bw_buffer_unlink(&ep->pulling, b);
	bw_buffer_put(&ep->buffers, b);
	if (notify && pulled)
		ep->handlers->pulled(ep->arg, op, info->status, info->len);
	else if (notify)
		ep->handlers->sent(ep->arg, op, info->status);
}

static void bw_kernel_arrived(struct bw_ep *ep, const struct beowire_info *info,
			      const struct sockaddr_beowire *from, const void *data)
{
	struct bw_remote *p = bw_kernel_peer(ep, info->peer, from);
	struct bw_message m = {
		.code = info->code,
		.tag = info->tag,
		.imm = info->imm,
		.len = info->len,
		.data = data,
		.envelope = info->event == BEOWIRE_ENVELOPE,
	};

	if (!p || p->status)
		return;
	m.peer = p->number;
	if (m.envelope) {
		m.data = NULL;
		m.rndv.word[BW_RNDV_KEY] = info->key;
		m.rndv.word[BW_RNDV_LEN] = info->len;
		m.rndv.word[BW_RNDV_KIND] = BW_RNDV_KERNEL;
	}
	p->known = true;
	BW_PROBE2(message_received, ep, &m);
	ep->handlers->message(ep->arg, &m);
}

static void bw_kernel_down(struct bw_ep *ep, const struct beowire_info *info, const char *name)
{
	struct bw_remote *p = bw_kernel_find(ep->kernel, info->peer);

	if (!p)
		return;
	if (info->len)
		bw_remote_name(p, name, info->len);
	bw_remote_kept_apart(ep, p, info->status, info->imm & 0xFF, info->imm >> 8 & 0xFF);
	bw_kernel_end(ep, p, info->status);
}

/* A peer wants to read memory of ours: the module serves it once it knows where that lies. */
static void bw_kernel_region(struct bw_ep *ep, const struct beowire_info *info,
			     const struct sockaddr_beowire *from)
{
	struct bw_kernel *k = ep->kernel;
	struct bw_remote *p = bw_kernel_peer(ep, info->peer, from);
	struct beowire_region answer = {.id = info->cookie, .len = info->len};

	if (p && ep->handlers->region) {
		p->known = true;
		answer.buf = (uintptr_t)ep->handlers->region(ep->arg, p->number, info->key,
							     info->imm, info->len);
	}
	if (ioctl(k->fd, BEOWIRE_IOC_REGION, &answer) == 0 || errno == ENOENT ||
	    errno == EAGAIN) /* for want of memory: the question comes again */
		return;
	/* Memory that is not there is not to be read. */
	answer.buf = 0;
	ioctl(k->fd, BEOWIRE_IOC_REGION, &answer);
}

bool bw_kernel_serving(const struct bw_ep *ep, const void *buf, uint64_t len)
{
	struct beowire_region what = {.buf = (uintptr_t)buf, .len = len};

	return ioctl(ep->kernel->fd, BEOWIRE_IOC_SERVING, &what) > 0;
}

static void bw_kernel_event(struct bw_ep *ep, const struct mmsghdr *m)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(&m->msg_hdr);
	struct beowire_info info;

	if (!c || c->cmsg_len != CMSG_LEN(sizeof(info)))
		return;
	memcpy(&info, CMSG_DATA(c), sizeof(info));
	switch (info.event) {
	case BEOWIRE_MESSAGE:
	case BEOWIRE_ENVELOPE:
		bw_kernel_arrived(ep, &info, m->msg_hdr.msg_name, m->msg_hdr.msg_iov->iov_base);
		break;
	case BEOWIRE_SENT:
	case BEOWIRE_PULLED:
		bw_kernel_ended(ep, &info);
		break;
	case BEOWIRE_REGION:
		bw_kernel_region(ep, &info, m->msg_hdr.msg_name);
		break;
	case BEOWIRE_DOWN:
		bw_kernel_down(ep, &info, m->msg_hdr.msg_iov->iov_base);
		break;
	}
}

static int bw_kernel_take(struct bw_ep *ep)
{
	struct bw_kernel *k = ep->kernel;
	int n = recvmmsg(k->fd, k->in, BW_KERNEL_BATCH, MSG_DONTWAIT, NULL);

	/* After an error there may be more. */
	k->more = n == BW_KERNEL_BATCH || (n < 0 && errno != EAGAIN);
	for (int i = 0; i < n; i++) {
		struct msghdr *m = &k->in[i].msg_hdr;

		bw_kernel_event(ep, &k->in[i]);
		m->msg_namelen = sizeof(k->from[i]);
		m->msg_controllen = sizeof(k->control[i]);
	}
	return n < 0 ? 0 : n;
}

/* Sends that found no room may be tried again: an event for who waits for that. */
static int bw_kernel_room(struct bw_ep *ep)
{
	struct bw_kernel *k = ep->kernel;
	struct pollfd fd = {.fd = k->fd, .events = POLLOUT};
	int n = 0;

	if (k->full && poll(&fd, 1, 0) > 0 && (fd.revents & POLLOUT)) {
		k->full = false;
		n++;
	}
	if (ep->now >= k->short_at) {
		k->short_at = BW_NEVER;
		n++;
	}
	return n;
}

/* Has something arrived since the last look? That costs no system call. */
static bool bw_kernel_rung(struct bw_kernel *k)
{
	uint32_t count;

	if (!k->bell)
		return true;
	count = __atomic_load_n(k->bell, __ATOMIC_ACQUIRE);
	if (count == k->heard && !k->more)
		return false;
	k->heard = count;
	return true;
}

static int bw_kernel_take_all(struct bw_ep *ep)
{
	int n, all = 0;

	ep->dispatching = true;
	do {
		n = bw_kernel_take(ep);
		all += n;
	} while (n == BW_KERNEL_BATCH && all < BW_KERNEL_ROUND);
	ep->dispatching = false;
	if (all)
		ep->now = bw_clock_now();
	return all;
}

int bw_kernel_poll(struct bw_ep *ep)
{
	struct bw_kernel *k = ep->kernel;
	int all = bw_kernel_rung(k) ? bw_kernel_take_all(ep) : 0;

	if (k->full || k->short_at != BW_NEVER)
		all += bw_kernel_room(ep);
	if (k->meetings && ep->now >= k->meet_at)
		all += bw_kernel_meetings(ep);
	if (ep->now >= k->needs_at)
		bw_kernel_needs(ep);
	return all;
}
