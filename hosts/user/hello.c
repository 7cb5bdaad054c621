/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The smallest useful program of libbeowire. Without arguments it prints its address and answers
 * every greeting; with such an address as its argument it sends a short and a long greeting there
 *and prints the answers. See beowire.h for every function used here.
 *
 *	cc hello.c $(pkg-config --cflags --libs beowire) -o hello
 */
#include <beowire.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_BYTES   1000000
#define TIMEOUT_NS   5000000000u
#define CODE_REQUEST 1
#define CODE_ANSWER  2

static struct bw_ep *ep;
static char long_greeting[LONG_BYTES]; /* unchanged until `sent` is called for it */
static char arrived[LONG_BYTES];
static int answers, failed;

static void answer(bw_peer peer, const char *what, uint64_t len)
{
	char text[100];
	int n = snprintf(text, sizeof(text), "thank you for %" PRIu64 " bytes of %s", len, what);

	printf("%" PRIu64 " bytes of %s from %s\n", len, what, bw_peer_describe(ep, peer));
	fflush(stdout);
	/* Short messages are copied: the buffer is ours again at once. */
	if (bw_send(ep, peer, CODE_ANSWER, 0, 0, text, (uint64_t)n + 1, 0, NULL) < 0)
		fprintf(stderr, "the answer could not be sent\n");
}

static void on_message(void *arg, const struct bw_message *m)
{
	if (m->code == CODE_ANSWER) {
		printf("answer: %.*s\n", (int)m->len, (const char *)m->data);
		answers++;
	} else if (!m->envelope) {
		answer(m->peer, "eager data", m->len);
	} else {
		/* Only an envelope came: fetch the data. The peer's number is the operation. */
		bw_pull(ep, m->peer, &m->rndv, arrived, sizeof(arrived),
			(void *)(uintptr_t)(m->peer + 1));
	}
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
	if (status == 0)
		answer((bw_peer)((uintptr_t)op - 1), "pulled data", len);
}

static void on_sent(void *arg, void *op, int status)
{
	if (status)
		fprintf(stderr, "the long greeting failed: %s\n", strerror(-status));
}

static void on_peer_down(void *arg, bw_peer peer, int status)
{
	fprintf(stderr, "%s: %s\n", bw_peer_describe(ep, peer), strerror(-status));
	failed = 1;
}

static void serve(void)
{
	struct bw_addr self;

	bw_ep_addr(ep, &self);
	for (size_t i = 0; i < sizeof(self.bytes); i++)
		printf("%02x", self.bytes[i]);
	printf("\n");
	fflush(stdout);
	while (bw_wait(ep, UINT64_MAX) >= 0)
		;
}

static int greet(const char *hex)
{
	struct bw_addr addr;
	unsigned int byte;
	bw_peer peer;

	for (size_t i = 0; i < sizeof(addr.bytes); i++) {
		if (strlen(hex) != 2 * sizeof(addr.bytes) ||
		    sscanf(hex + 2 * i, "%2x", &byte) != 1) {
			fprintf(stderr, "that is no address: %s\n", hex);
			return 1;
		}
		addr.bytes[i] = (unsigned char)byte;
	}
	int error = bw_peer_find(ep, &addr, &peer);

	if (error) {
		fprintf(stderr, "cannot reach that address: %s\n", strerror(-error));
		return 1;
	}
	bw_send(ep, peer, CODE_REQUEST, 0, 0, "hello", 6, 0, NULL);
	bw_send(ep, peer, CODE_REQUEST, 0, 0, long_greeting, sizeof(long_greeting), 0, NULL);
	while (answers < 2 && !failed && bw_wait(ep, TIMEOUT_NS) > 0)
		;
	return answers == 2 ? 0 : 1;
}

int main(int argc, char **argv)
{
	static const struct bw_handlers handlers = {
		.message = on_message,
		.sent = on_sent,
		.pulled = on_pulled,
		.peer_down = on_peer_down,
	};
	const struct bw_ep_attr attr = {.handlers = &handlers};
	const char *why;
	int status = 0;

	if (bw_ep_open(&ep, &attr, &why)) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	if (argc == 1)
		serve();
	else
		status = greet(argv[1]);
	bw_ep_close(ep, TIMEOUT_NS);
	return status;
}
