/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The other side of the second implementation: a program on libbeowire that answers each message.
 * Code 1: the same back. Code 2: a long message of `imm` bytes back, byte i being (uint8_t)(i * 7).
 * It prints its address, then each completion and each lost peer, and ends with its standard input.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "beowire.h"

enum { ECHO = 1, LONG = 2 };

struct fetch {
	bw_peer_no peer;
	uint64_t tag, imm, len;
	uint8_t data[65536];
};

static struct bw_ep *ep;

static void message(void *arg, const struct bw_message *m)
{
	if (m->envelope) {
		struct fetch *f = malloc(sizeof(*f));

		f->peer = m->peer;
		f->tag = m->tag;
		f->imm = m->imm;
		bw_pull(ep, m->peer, &m->rndv, f->data, sizeof(f->data), f);
	} else if (m->code == LONG) {
		uint8_t *data = malloc(m->imm);

		for (uint64_t i = 0; i < m->imm; i++)
			data[i] = (uint8_t)(i * 7);
		bw_send(ep, m->peer, LONG, m->tag, 0, data, m->imm, BW_SEND_SYNC, data);
	} else {
		bw_send(ep, m->peer, m->code, m->tag, m->imm, m->data, m->len, BW_SEND_EAGER, NULL);
	}
}

static void sent(void *arg, void *op, int status)
{
	printf("sent %d\n", status);
	free(op);
}

static void pulled(void *arg, void *op, int status, uint64_t len)
{
	struct fetch *f = op;

	printf("pulled %d %llu\n", status, (unsigned long long)len);
	if (!status)
		bw_send(ep, f->peer, ECHO, f->tag, f->imm, f->data, len, BW_SEND_EAGER, NULL);
	free(f);
}

static void peer_down(void *arg, bw_peer_no peer, int status)
{
	printf("down %d\n", status);
}

int main(void)
{
	static const struct bw_handlers handlers = {
		.message = message, .sent = sent, .pulled = pulled, .peer_down = peer_down};
	struct bw_ep_attr attr = {.handlers = &handlers};
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	struct bw_addr addr;
	const char *why;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (bw_ep_open(&ep, &attr, &why)) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	bw_ep_addr(ep, &addr);
	for (size_t i = 0; i < sizeof(addr); i++)
		printf("%02x", addr.bytes[i]);
	printf("\n");
	while (!poll(&input, 1, 0))
		bw_wait(ep, 1000000);
	bw_ep_close(ep, 100000000);
	return 0;
}
