/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A peer by the kernel link begins anew, before its old end was taken: two endpoints of one node.
 * The one gives the other up while the interface is down, forgets it and speaks again. The other
 * has not noticed, and takes both at once, the new words first. It learns of the old one's end,
 * forgets it in its turn, and from then on hears it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "beowire.h"

#define LIMIT_NS 30000000000ull

struct side {
	struct bw_ep *ep;
	int messages, sent, downs, status;
	char last;
};

static void on_message(void *arg, const struct bw_message *m)
{
	struct side *s = arg;

	s->messages++;
	s->last = *(const char *)m->data;
}

static void on_sent(void *arg, void *op, int status)
{
	struct side *s = arg;

	s->sent++;
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
	struct side *s = arg;

	s->downs++;
	s->status = status;
}

static const struct bw_handlers handlers = {on_message, on_sent, on_pulled, on_down, NULL};

static void open_one(struct side *s, const char *patience)
{
	struct bw_ep_attr attr = {.handlers = &handlers, .arg = s, .no_helper = true};
	const char *why;

	setenv("BEOWIRE_DEAD_TIMEOUT", patience, 1);
	if (bw_ep_open(&s->ep, &attr, &why) == 0)
		return;
	printf("%s\n", why);
	exit(1);
}

/* Until a count of its own is as high. False: it does not become so. */
static bool await(struct side *s, const int *count, int least)
{
	while (*count < least)
		if (bw_wait(s->ep, LIMIT_NS) < 1)
			return false;
	return true;
}

/* The peer's endpoint has it afterwards. */
static int say(struct side *from, const struct bw_addr *to, char word)
{
	int before = from->sent;
	bw_peer_no peer;

	if (bw_peer_find(from->ep, to, &peer) ||
	    bw_send(from->ep, peer, 1, 0, 0, &word, 1, BW_SEND_EAGER | BW_SEND_ACKED, from))
		return 1;
	return !await(from, &from->sent, before + 1);
}

static int run(struct side *a, struct side *b)
{
	struct bw_addr to_a, to_b;
	bw_peer_no peer;

	bw_ep_addr(a->ep, &to_a);
	bw_ep_addr(b->ep, &to_b);
	if (say(a, &to_b, '1') || !await(b, &b->messages, 1) || b->last != '1')
		return 1;
	/* Whom it has named is told of. */
	if (bw_peer_find(b->ep, &to_a, &peer))
		return 2;
	if (system("ip link set eth0 down"))
		return 3;
	if (bw_peer_find(a->ep, &to_b, &peer) ||
	    bw_send(a->ep, peer, 1, 0, 0, "2", 1, BW_SEND_EAGER, NULL) != 1)
		return 4;
	if (!await(a, &a->downs, 1) || bw_peer_forget(a->ep, &to_b))
		return 5;
	if (system("ip link set eth0 up"))
		return 6;
	if (say(a, &to_b, '3'))
		return 7;
	/* A lost peer stays lost until it is forgotten. */
	if (!await(b, &b->downs, 1) || b->messages != 1 || b->status != -ECONNRESET)
		return 8;
	if (bw_peer_forget(b->ep, &to_a))
		return 9;
	if (say(a, &to_b, '4') || !await(b, &b->messages, 2) || b->last != '4')
		return 10;
	if (say(b, &to_a, '5') || !await(a, &a->messages, 1) || a->last != '5')
		return 11;
	return a->downs != 1 || b->downs != 1 ? 12 : 0;
}

int main(void)
{
	struct side a = {0}, b = {0};
	int status;

	open_one(&a, "1");
	open_one(&b, "60");
	status = run(&a, &b);
	printf("%s %d\n", status ? "failed" : "ok", status);
	bw_ep_close(a.ep, 0);
	bw_ep_close(b.ep, 0);
	return status;
}
