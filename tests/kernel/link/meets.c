/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * First contact by the kernel link, between the nodes of nodes.sh: raw frames are used where they
 * reach the peer, and UDP where they do not, once they have had time to. Who is called by UDP, and
 * has not named its caller, answers by it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "beowire.h"
#include "clock.h"

#define LIMIT_NS 30000000000ull
#define STEP_NS	 1000000ull
#define MEET_NS	 1000000000ull /* meet.c: raw frames have so long to pass, on either side */

struct side {
	struct bw_ep *ep;
	int arrived;
	bw_peer_no from;
};

static void on_message(void *arg, const struct bw_message *m)
{
	struct side *s = arg;

	s->arrived++;
	s->from = m->peer;
}

static void on_sent(void *arg, void *op, int status)
{
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
	printf("a peer is down: %d\n", status);
	exit(1);
}

static const struct bw_handlers handlers = {on_message, on_sent, on_pulled, on_down, NULL};

/* An endpoint in this node; from now on this process is there. */
static void open_in(struct side *s, const char *node)
{
	struct bw_ep_attr attr = {.handlers = &handlers, .arg = s, .no_helper = true};
	const char *why = "cannot go there";
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", node);
	fd = open(path, O_RDONLY);
	if (fd < 0 || setns(fd, CLONE_NEWNET) || bw_ep_open(&s->ep, &attr, &why)) {
		printf("%s: %s\n", node, why);
		exit(1);
	}
	close(fd);
}

/* Both go on until a message has come to `to`. */
static int await(struct side *to, struct side *other)
{
	uint64_t end = bw_clock_now() + LIMIT_NS;

	while (!to->arrived) {
		if (bw_clock_now() > end)
			return 1;
		bw_wait(other->ep, STEP_NS);
		bw_wait(to->ep, STEP_NS);
	}
	return 0;
}

/* Each says a word to the other, and does so by this link. */
static int speak(const char *node, const char *others, const char *link, uint64_t least_ns)
{
	struct side one = {0}, two = {0};
	struct bw_addr addr;
	const char *by;
	uint64_t began;
	bw_peer_no peer;
	int r;

	open_in(&one, node);
	open_in(&two, others);
	began = bw_clock_now();
	bw_ep_addr(two.ep, &addr);
	if (bw_peer_find(one.ep, &addr, &peer))
		return 1;
	while ((r = bw_send(one.ep, peer, 1, 0, 0, "x", 1, BW_SEND_EAGER, NULL)) != 1) {
		if (r != -EAGAIN || bw_clock_now() - began > LIMIT_NS)
			return 2;
		bw_wait(one.ep, STEP_NS);
		bw_wait(two.ep, STEP_NS);
	}
	if (await(&two, &one))
		return 3;
	if (bw_clock_now() - began < least_ns)
		return 4;
	by = bw_peer_link(one.ep, peer);
	if (!by || strcmp(by, link))
		return 5;
	if (bw_send(two.ep, two.from, 1, 0, 0, "x", 1, BW_SEND_EAGER, NULL) != 1)
		return 6;
	if (await(&one, &two))
		return 7;
	by = bw_peer_link(two.ep, two.from);
	if (!by || strcmp(by, link) || one.from != peer)
		return 8;
	bw_ep_close(one.ep, LIMIT_NS);
	bw_ep_close(two.ep, 0);
	return 0;
}

int main(void)
{
	int status;

	setenv("BEOWIRE_LINKS", "kernel,udp", 1);
	status = speak("a", "b", "kernel", 0);
	if (status)
		printf("a and b: failed %d\n", status);
	else if ((status = speak("c", "d", "udp", 2 * MEET_NS)))
		printf("c and d: failed %d\n", status);
	else
		printf("ok 0\n");
	return status;
}
