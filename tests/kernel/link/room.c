/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who finds no room for a send over the kernel link is woken once there is some, although nothing
 * arrives: two endpoints of one node, whose interface is down while the one fills its socket.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "beowire.h"
#include "clock.h"

#define BYTES	 16384
#define LIMIT_NS 60000000000ull /* who is not woken looks for himself after that */

static _Atomic int arrived;

static void on_message(void *arg, const struct bw_message *m)
{
	arrived++;
}

static void on_sent(void *arg, void *op, int status)
{
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
}

static const struct bw_handlers handlers = {on_message, on_sent, on_pulled, on_down, NULL};

static struct bw_ep *open_one(void)
{
	struct bw_ep_attr attr = {.handlers = &handlers, .no_helper = true};
	struct bw_ep *ep;
	const char *why;

	if (bw_ep_open(&ep, &attr, &why) == 0)
		return ep;
	printf("%s\n", why);
	exit(1);
}

static int run(struct bw_ep *from, struct bw_ep *to)
{
	static char text[BYTES];
	struct bw_addr addr;
	bw_peer_no peer;
	uint64_t began;
	int sent = 0, r;

	bw_ep_addr(to, &addr);
	if (bw_peer_find(from, &addr, &peer))
		return 1;
	/* The first one makes contact. */
	if (bw_send(from, peer, 1, 0, 0, text, 1, 0, NULL) != 1)
		return 2;
	while (!arrived)
		bw_wait(to, LIMIT_NS);
	if (system("ip link set eth0 down"))
		return 3;
	while ((r = bw_send(from, peer, 1, 0, 0, text, BYTES, BW_SEND_EAGER, NULL)) == 1)
		sent++;
	if (r != -EAGAIN)
		return 4;
	if (system("{ sleep 0.3; ip link set eth0 up; } &"))
		return 5;
	began = bw_clock_now();
	if (bw_wait(from, LIMIT_NS) < 1)
		return 6;
	if (bw_clock_now() - began > LIMIT_NS / 2)
		return 9;
	if (bw_send(from, peer, 1, 0, 0, text, BYTES, BW_SEND_EAGER, NULL) != 1)
		return 7;
	while (arrived < sent + 2)
		if (bw_wait(to, LIMIT_NS) < 1)
			return 8;
	return 0;
}

int main(void)
{
	struct bw_ep *from = open_one(), *to = open_one();
	int status = run(from, to);

	printf("%s %d\n", status ? "failed" : "ok", status);
	bw_ep_close(from, 0);
	bw_ep_close(to, 0);
	return status;
}
