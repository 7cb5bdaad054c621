/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The smallest whole program on libbeowire. One side waits and prints its address; the other is
 * given that address (by copying it: any way will do) and sends a greeting and a megabyte. Run on
 * two nodes, or twice on one:
 *
 *	node1$ beowire-example
 *	bead0107e8608d6d...
 *	node2$ beowire-example bead0107e8608d6d...
 *
 * Compile your own with: cc program.c $(pkg-config --cflags --libs beowire)
 */
#include "beowire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND	   1000000000ull
#define LONG_BYTES (1u << 20)

/* The code of a message is ours to choose (0 to BW_CODE_MAX): here it says what the message is. */
enum { GREETING = 1, PICTURE = 2 };

/* Whatever handlers need is reached through their first argument. Handlers run with the endpoint's
 * lock held, maybe in its helper thread; the flags are volatile since the main loop reads them
 * without the lock. */
struct program {
	struct bw_ep *ep;
	char *picture;
	volatile int status;	/* negative errno once something went wrong */
	volatile bool finished; /* all is sent, or all has arrived */
};

/* A message arrived. A short one lies there in full, but only until we return. Of a long one only
 * the envelope came: fetch it with bw_pull() into memory of our own, now or later. */
static void on_message(void *arg, const struct bw_message *m)
{
	struct program *p = arg;

	if (m->code == GREETING && !m->envelope)
		printf("\"%.*s\" from %s\n", (int)m->len, (const char *)m->data,
		       bw_peer_describe(p->ep, m->peer));
	else if (m->envelope && m->len <= LONG_BYTES)
		p->status = bw_pull(p->ep, m->peer, &m->rndv, p->picture, m->len, p);
	else if (m->envelope)
		bw_pull(p->ep, m->peer, &m->rndv, NULL, 0,
			NULL); /* discard what we did not expect */
}

/* A bw_pull() ended. */
static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
	struct program *p = arg;

	printf("and %llu bytes: %s\n", (unsigned long long)len, status ? strerror(-status) : "ok");
	p->status = status;
	p->finished = true;
}

/* A bw_send() that returned 0 ended: its buffer is ours again. */
static void on_sent(void *arg, void *op, int status)
{
	struct program *p = arg;

	p->status = status;
	p->finished = true;
}

/* A peer died, closed, or was silent for too long. */
static void on_down(void *arg, bw_peer_no peer, int status)
{
	struct program *p = arg;

	if (!p->finished)
		p->status = status;
}

static const struct bw_handlers handlers = {
	.message = on_message,
	.sent = on_sent,
	.pulled = on_pulled,
	.peer_down = on_down,
};

static bool address_read(const char *text, struct bw_addr *addr)
{
	unsigned int byte;

	for (size_t i = 0; i < sizeof(addr->bytes); i++) {
		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			return false;
		addr->bytes[i] = (uint8_t)byte;
	}
	return strlen(text) == 2 * sizeof(addr->bytes);
}

static void address_print(struct bw_ep *ep)
{
	struct bw_addr addr;

	bw_ep_addr(ep, &addr);
	for (size_t i = 0; i < sizeof(addr.bytes); i++)
		printf("%02x", addr.bytes[i]);
	printf("\n");
	fflush(stdout);
}

/* Send, and make progress while there is no room. 1: done; 0: on_sent() follows; else an error. */
static int send_message(struct program *p, bw_peer_no peer, uint8_t code, const void *data,
			uint64_t len)
{
	int r;

	while ((r = bw_send(p->ep, peer, code, 0, 0, data, len, 0, p)) == -EAGAIN)
		bw_wait(p->ep, SECOND);
	return r;
}

/* Greet the endpoint with this address and send it the picture. */
static int greet(struct program *p, const char *address)
{
	static const char text[] = "Hello over the wire";
	struct bw_addr addr;
	bw_peer_no peer;
	int r;

	if (!address_read(address, &addr))
		return -EINVAL;
	r = bw_peer_find(p->ep, &addr, &peer);
	if (r < 0)
		return r;
	/* Messages to one peer arrive in the order in which they are sent. The short one is copied
	 * on its way: done at once. Of the long one only an envelope goes out, the buffer stays in
	 * use until on_sent(), unless the library has kept a copy of it as well. */
	r = send_message(p, peer, GREETING, text, strlen(text));
	if (r >= 0)
		r = send_message(p, peer, PICTURE, p->picture, LONG_BYTES);
	if (r > 0)
		p->finished = true;
	return r < 0 ? r : 0;
}

int main(int argc, char **argv)
{
	struct program p = {.picture = calloc(1, LONG_BYTES)};
	struct bw_ep_attr attr = {.handlers = &handlers, .arg = &p};
	const char *why = "out of memory";

	/* Interface, links and limits come from the environment, see beowire(7); without any
	 * setting the best that there is. If that fails, `why` says what fixes it. */
	if (!p.picture || bw_ep_open(&p.ep, &attr, &why) < 0) {
		fprintf(stderr, "beowire-example: %s\n", why);
		return 1;
	}
	if (argc > 1)
		p.status = greet(&p, argv[1]);
	else
		address_print(p.ep);
	/* bw_wait() handles what arrives and sleeps when nothing does, without the lock. Held
	 * otherwise, the lock keeps handlers from running between our look and the sleep. */
	bw_ep_lock(p.ep);
	while (!p.finished && p.status == 0)
		bw_wait(p.ep, SECOND);
	bw_ep_unlock(p.ep);
	if (p.status < 0)
		fprintf(stderr, "beowire-example: %s\n", strerror(-p.status));
	/* What is still under way gets a second to arrive. */
	bw_ep_close(p.ep, SECOND);
	free(p.picture);
	return p.status == 0 ? 0 : 1;
}
