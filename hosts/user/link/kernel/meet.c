/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * First contact of an endpoint with the kernel link: which way leads to a peer? Its port is who the
 * endpoint is, and beside it the endpoint's own engine bears the same name over UDP. A peer must
 * not speak with both at a time, so that each waits until the port has had time to meet it by raw
 * frames; only then is UDP tried, or let in. A choice is never changed, for the order of messages.
 */
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "ep.h"
#include "link/kernel/impl.h"

#define BW_MEET_NS	    BW_S	  /* raw frames that have not passed by then do not pass */
#define BW_MEET_LATE	    (100 * BW_MS) /* a look that comes so late was held up */
#define BW_MEET_PAUSE_FIRST (100 * BW_US) /* between two looks; doubles */
#define BW_MEET_PAUSE_LAST  (5 * BW_MS)

/* Has the port met it? */
static bool bw_kernel_is_up(const struct bw_kernel *k, uint64_t node, uint16_t engine, uint32_t inc)
{
	union {
		struct sockaddr_beowire who;
		int up;
	} x = {.who = {.sbw_family = (uint16_t)k->family,
		       .sbw_port = engine,
		       .sbw_node = node,
		       .sbw_inc = inc}};
	socklen_t n = sizeof(x);

	return getsockopt(k->fd, SOL_BEOWIRE, BEOWIRE_PEER_UP, &x, &n) == 0 && x.up > 0;
}

/* The lower node of a pair speaks, so that one warning comes for both. */
static void bw_kernel_warn(const struct bw_ep *ep, const struct bw_remote *p)
{
	if (ep->self.node < p->addr.node)
		bw_log_once(BW_LOG_WARN, "raw",
			    "raw Ethernet frames (EtherType 0x%04X) do not pass from %s on %s to "
			    "node %016llx: using udp. If a switch or hypervisor filters them, set "
			    "BEOWIRE_LINKS=local,udp to skip the attempt",
			    ep->self.ethertype, ep->host, ep->kernel->interface,
			    (unsigned long long)p->addr.node);
}

/* True once it is decided, or cannot be any more. */
static bool bw_kernel_decide(struct bw_ep *ep, struct bw_remote *p)
{
	const struct bw_addr_fields *a = &p->addr;

	if (p->status)
		return true;
	if (p->handle && p->up) { /* it came by UDP, after having waited as we do */
		bw_remote_connect_engine(ep, p);
		return true;
	}
	if (bw_kernel_is_up(ep->kernel, a->node, a->engine, a->inc)) {
		p->met = true;
		if (!p->by)
			p->by = &bw_by_kernel;
		if (p->watch)
			bw_kernel_watch(ep, p, true);
		return true;
	}
	if (ep->now < p->meet_until || bw_remote_connect_engine(ep, p))
		return false;
	bw_kernel_warn(ep, p);
	return true;
}

/* Some look again after others have begun to meet. */
static void bw_kernel_meet_soon(struct bw_ep *ep, uint64_t pause)
{
	struct bw_kernel *k = ep->kernel;

	k->meet_pause = pause;
	k->meet_at = ep->now + pause;
	bw_helper_at(ep, k->meet_at);
}

int bw_kernel_meet(struct bw_ep *ep, struct bw_remote *p)
{
	struct bw_kernel *k = ep->kernel;
	int error;

	if (p->meeting)
		return -EAGAIN;
	error = bw_kernel_connect(ep, p);
	if (error)
		return error;
	p->by = NULL;
	p->meeting = true;
	p->meet_until = ep->now + BW_MEET_NS;
	/* A look at others that is overdue stays so: how late it is tells of a machine that stood
	 * still. */
	if (!k->meetings++ || k->meet_at > ep->now + BW_MEET_PAUSE_FIRST)
		bw_kernel_meet_soon(ep, BW_MEET_PAUSE_FIRST);
	return -EAGAIN;
}

int bw_kernel_meetings(struct bw_ep *ep)
{
	struct bw_kernel *k = ep->kernel;
	uint64_t late = ep->now > k->meet_at ? ep->now - k->meet_at : 0;
	int decided = 0;

	for (uint32_t i = 0; i < k->buckets && k->meetings; i++) {
		for (struct bw_remote *p = k->by_number[i]; p; p = p->next_kernel) {
			/* Where the machine stood still, nobody could have answered meanwhile. */
			if (p->meeting && late > BW_MEET_LATE)
				p->meet_until = bw_min_u64(p->meet_until + late - BW_MEET_LATE,
							   ep->now + BW_MEET_NS);
			if (!p->meeting || !bw_kernel_decide(ep, p))
				continue;
			p->meeting = false;
			k->meetings--;
			decided++;
		}
	}
	if (k->meetings)
		bw_kernel_meet_soon(ep, bw_min_u64(2 * k->meet_pause, BW_MEET_PAUSE_LAST));
	return decided;
}

/* When somebody unknown was first heard by UDP. Who shares a place with another waits longer. */
static uint64_t bw_kernel_first_heard(struct bw_ep *ep, const struct bw_hello *h)
{
	uint64_t who = (h->node ^ (uint64_t)h->inc << 16 ^ h->engine) * 0x9E3779B97F4A7C15u;
	struct bw_kernel_caller *c = &ep->kernel->caller[(who >> 32) % BW_KERNEL_CALLERS];

	if (c->who != who) {
		c->who = who;
		c->since = ep->now;
	}
	return c->since;
}

bool bw_kernel_admits(struct bw_ep *ep, const struct bw_rx_frame *f)
{
	const struct bw_hdr *hdr = f->head;
	const struct bw_remote *p;
	struct bw_hello h;

	if (f->head_len < sizeof(*hdr) + sizeof(h) || hdr->type != BW_FRAME_HELLO)
		return true;
	memcpy(&h, hdr + 1, sizeof(h));
	p = bw_remote_find(&ep->remotes, h.node, h.engine, h.inc);
	if (p && (p->handle || p->by == &bw_by_engine))
		return true;
	if (p && p->complete && !bw_kernel_reaches(ep, &p->addr))
		return true;
	if ((p && p->by) || bw_kernel_is_up(ep->kernel, h.node, h.engine, h.inc))
		return false;
	return ep->now - bw_kernel_first_heard(ep, &h) >= BW_MEET_NS;
}
