/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An endpoint's part in a fan-out group. It connects to the keeper of its interface, or has one
 * itself where there is none, and hands over its packet socket; from then on it has nothing to do
 * for the group. When the connection ends, nobody knows any more which member the kernel finds
 * where: the endpoint takes a new socket, that receives by itself, and closes the old one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "claim.h"
#include "discard.h"
#include "ep.h"
#include "link/packet/keeper.h"
#include "link/packet/served.h"

#define BW_FANOUT_PAUSE (1 * BW_S)   /* between two tries to find a keeper */
#define BW_FANOUT_SOON	(50 * BW_MS) /* after the end of one: until others have noticed */
#define BW_FANOUT_NAME	64	     /* bytes */

void bw_fanout_init(struct bw_ep *ep, int i)
{
	struct bw_fanout *f = &ep->packet[i].fanout;
	/* A program with privileges that its user has not hands them to no other process. */
	bool may = ep->env.fanout && !getauxval(AT_SECURE);

	if (ep->packet[i].service) { /* its connection is the service's */
		f->try_at = BW_NEVER;
		return;
	}
	*f = (struct bw_fanout){.connection = -1, .try_at = may ? ep->now : BW_NEVER};
}

/* One keeper for each interface, EtherType and user. */
static void bw_fanout_name(const struct bw_packet *p, char name[BW_FANOUT_NAME])
{
	snprintf(name, BW_FANOUT_NAME, "beowire/fanout/%04x/%d", ntohs(p->ethertype), p->interface);
}

/* Have the keeper of this interface, unless another one was faster. */
static void bw_fanout_keep(struct bw_packet *p, const char *name)
{
	int fd = bw_claim_name(name);

	if (fd < 0)
		return;
	/* Sockets come with the calls. One that was faster calls again. */
	bw_discard_rights(fd, true);
	p->fanout.keeper = bw_keeper_start(fd, p->interface, p->ethertype);
}

/* Tell the keeper who we are, with our packet socket the first time. */
static bool bw_fanout_call(struct bw_ep *ep, struct bw_packet *p, bool watch, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct bw_keeper_call call = {
		.magic = BW_KEEPER_MAGIC, .engine = ep->self.engine, .watch = watch};
	struct iovec io = {&call, sizeof(call)};
	struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1};

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.header = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof(int)),
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
		};
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	p->fanout.watch = watch;
	return sendmsg(p->fanout.connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(call);
}

static bool bw_fanout_member(const struct bw_packet *p)
{
	int what = 0;
	socklen_t n = sizeof(what);

	return !getsockopt(p->fd, SOL_PACKET, PACKET_FANOUT, &what, &n) && what;
}

static void bw_fanout_hang_up(struct bw_ep *ep, int i)
{
	struct bw_fanout *f = &ep->packet[i].fanout;

	bw_wait_unlisten(ep, f->connection);
	close(f->connection);
	f->connection = -1;
	f->handed = f->handed && bw_fanout_member(&ep->packet[i]);
	f->try_at = f->handed ? ep->now : ep->now + BW_FANOUT_PAUSE;
}

static void bw_fanout_join(struct bw_ep *ep, int i, bool watch)
{
	struct bw_packet *p = &ep->packet[i];
	struct bw_fanout *f = &p->fanout;
	char name[BW_FANOUT_NAME];
	int fd;

	bw_fanout_name(p, name);
	fd = bw_claim_dial(name);
	if (fd == -ECONNREFUSED && ep->helper.wanted && !f->keeper) {
		bw_fanout_keep(p, name);
		fd = bw_claim_dial(name);
	}
	f->try_at = ep->now + BW_FANOUT_PAUSE;
	if (fd < 0)
		return;
	f->connection = fd;
	bw_wait_listen(ep, fd);
	f->handed = bw_fanout_call(ep, p, watch, p->fd);
	if (!f->handed)
		bw_fanout_hang_up(ep, i);
}

/* Closing takes two RCU grace periods of the kernel, 15 to 60 ms. */
void bw_fanout_discard(const struct bw_ep *ep, int fd)
{
	if (!ep->helper.wanted || !bw_discard_alone(fd))
		close(fd);
}

/* Receive by a new socket. Frames come by both until the old one has been emptied: none is lost,
 * and the engine knows those that came twice. */
static void bw_fanout_renew(struct bw_ep *ep, struct bw_packet *p)
{
	struct bw_packet fresh;
	const char *why = "";
	int old, error;

	p->fanout.try_at = ep->now + BW_FANOUT_PAUSE;
	bw_home_enter(&ep->home, p->name);
	error = bw_packet_renew(p, &ep->env, ep->self.engine, &fresh, &why);
	bw_home_leave(&ep->home);
	if (error) {
		bw_log(BW_LOG_DEBUG, "a group without keeper on %s is not left yet: %s", p->name,
		       why);
		return;
	}
	bw_ep_drain(ep, p);
	old = bw_packet_replace(p, &fresh, &why);
	if (old < 0) {
		bw_log(BW_LOG_DEBUG, "a group without keeper on %s is not left yet: %s", p->name,
		       why);
		return;
	}
	p->fanout.handed = false;
	p->fanout.try_at = ep->now + BW_FANOUT_SOON;
	ep->watch.changed |= ep->watch.claim >= 0;
	bw_wait_unlisten(ep, old);
	bw_wait_listen(ep, p->fd);
	/* Who sleeps does so on the old one. */
	bw_wait_rouse(ep);
	bw_fanout_discard(ep, old);
}

static void bw_fanout_visit_link(struct bw_ep *ep, int i)
{
	struct bw_packet *p = &ep->packet[i];
	struct bw_fanout *f = &p->fanout;
	bool watch = i == 0 && ep->watch.claim >= 0;
	char byte;

	if (f->keeper && bw_keeper_ended(f->keeper)) {
		bw_keeper_stop(f->keeper);
		f->keeper = NULL;
	}
	/* The keeper says nothing: whatever comes is the end. */
	if (f->connection >= 0 && (recv(f->connection, &byte, sizeof(byte), MSG_DONTWAIT) >= 0 ||
				   (errno != EAGAIN && errno != EINTR) ||
				   (watch != f->watch && !bw_fanout_call(ep, p, watch, -1))))
		bw_fanout_hang_up(ep, i);
	if (f->connection >= 0 || ep->now < f->try_at)
		return;
	if (f->handed)
		bw_fanout_renew(ep, p);
	else
		bw_fanout_join(ep, i, watch);
}

void bw_fanout_visit(struct bw_ep *ep)
{
	for (int i = 0; i < ep->packets; i++) {
		if (ep->packet[i].service)
			bw_service_visit(ep, &ep->packet[i]);
		else
			bw_fanout_visit_link(ep, i);
	}
}

unsigned int bw_fanout_joined(const struct bw_ep *ep)
{
	unsigned int n = 0;

	for (int i = 0; i < ep->packets; i++)
		n += !ep->packet[i].service && bw_fanout_member(&ep->packet[i]);
	return n;
}

static void bw_fanout_each(struct bw_ep *ep, void (*act)(struct bw_keeper *))
{
	for (int i = 0; i < ep->packets; i++) {
		if (ep->packet[i].fanout.keeper)
			act(ep->packet[i].fanout.keeper);
	}
}

void bw_fanout_end(struct bw_ep *ep)
{
	bw_fanout_each(ep, bw_keeper_stop);
}

void bw_fanout_hold(struct bw_ep *ep)
{
	bw_fanout_each(ep, bw_keeper_hold);
}

void bw_fanout_release(struct bw_ep *ep)
{
	bw_fanout_each(ep, bw_keeper_release);
}

void bw_fanout_abandon(struct bw_ep *ep)
{
	bw_fanout_each(ep, bw_keeper_abandon);
}
