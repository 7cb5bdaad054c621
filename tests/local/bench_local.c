/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Speed of the local link between two processes: latency of short messages (spinning and sleeping),
 * rate, and bandwidth of eager messages, of pulls by cross-memory attach and of pulls through the
 * ring. Prints figures; it is no test.
 */
#include "local.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LONG_BYTES (1u << 20)
#define ROUNDS	   100 /* round trips in a batch */
#define BATCHES	   400

struct node {
	struct bw_local *link;
	struct bw_local_peer *peer;
	uint64_t got;  /* messages received */
	uint64_t done; /* pulls or sends ended */
	uint8_t *buf;
	bool pull; /* pull envelopes at once */
	bool down;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int on_new(void *arg, struct bw_local_peer *p, const struct bw_local_id *id, void **ctx)
{
	struct node *n = arg;

	n->peer = p;
	return 0;
}

static void on_message(void *arg, void *ctx, const struct bw_local_message *m)
{
	struct node *n = arg;

	n->got++;
	if (m->is_envelope)
		bw_local_pull(n->peer, &m->envelope, n->buf, m->len, n);
	else if (m->len > 0)
		memcpy(n->buf, m->data, m->len);
}

static void on_sent(void *arg, void *ctx, void *op, int status)
{
	((struct node *)arg)->done++;
}

static void on_pulled(void *arg, void *ctx, void *op, int status, uint64_t len)
{
	((struct node *)arg)->done++;
}

static void on_down(void *arg, void *ctx, int status)
{
	((struct node *)arg)->down = true;
}

static const struct bw_local_handlers handlers = {
	.peer_new = on_new,
	.message = on_message,
	.sent = on_sent,
	.pulled = on_pulled,
	.peer_down = on_down,
};

static void node_open(struct node *n, uint16_t engine)
{
	struct bw_local_attr attr = {
		.self = {.node = 1, .cluster = 1, .incarnation = engine, .engine = engine},
		.claim = bw_local_claim(engine),
		.handlers = &handlers,
		.arg = n,
	};

	memset(n, 0, sizeof(*n));
	n->buf = aligned_alloc(4096, LONG_BYTES);
	memset(n->buf, 1, LONG_BYTES);
	if (bw_local_open(&n->link, &attr) < 0) {
		fprintf(stderr, "cannot open the local link\n");
		exit(1);
	}
}

static void turn(struct node *n, bool sleeping)
{
	struct pollfd fd = {.fd = bw_local_fd(n->link), .events = POLLIN};

	if (bw_local_poll(n->link, 0, false) > 0 || !sleeping)
		return;
	if (bw_local_arm(n->link) == 0)
		poll(&fd, 1, -1);
	bw_local_poll(n->link, 0, true);
}

static void put(struct node *n, const void *buf, uint64_t len, bool offer)
{
	for (;;) {
		int r = offer ? bw_local_offer(n->peer, 0, 0, 0, buf, len, n)
			      : bw_local_send(n->peer, 0, 0, 0, buf, len, NULL);

		if (r != -11)
			return;
		bw_local_poll(n->link, 0, false);
	}
}

static void pingpong(struct node *n, bool first, uint64_t rounds, uint64_t len, bool sleeping)
{
	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t want = n->got + 1;

		if (first)
			put(n, n->buf, len, false);
		while (n->got < want && !n->down)
			turn(n, sleeping);
		if (!first)
			put(n, n->buf, len, false);
	}
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Batches of round trips, so that what other processes of the machine do shows in few of them. */
static void latency(struct node *n, bool first, uint64_t len, bool sleeping)
{
	uint64_t spent[BATCHES];

	for (int i = 0; i < BATCHES; i++) {
		uint64_t t = now_ns();

		pingpong(n, first, ROUNDS, len, sleeping);
		spent[i] = now_ns() - t;
	}
	qsort(spent, BATCHES, sizeof(spent[0]), by_value);
	if (first)
		printf("%s %6lu bytes, one way: best %8.1f ns, median %8.1f, p90 %8.1f\n",
		       sleeping ? "sleeping" : "latency", (unsigned long)len,
		       (double)spent[0] / ROUNDS / 2, (double)spent[BATCHES / 2] / ROUNDS / 2,
		       (double)spent[BATCHES * 9 / 10] / ROUNDS / 2);
}

static void stream(struct node *n, bool first, uint64_t count, uint64_t len, bool offer)
{
	uint64_t end = n->got + count, done = n->done;

	if (!first) {
		while ((n->got < end || (offer && n->done - done < count)) && !n->down)
			turn(n, false);
		put(n, NULL, 0, false);
		return;
	}
	for (uint64_t i = 0; i < count; i++) {
		put(n, n->buf, len, offer);
		while (offer && i + 1 - (n->done - done) >= 16)
			turn(n, false);
	}
	for (end = n->got + 1; n->got < end && !n->down;)
		turn(n, false);
}

static void run(struct node *n, bool first)
{
	static const uint64_t sizes[] = {8, 32, 64, 256, 1024, 4096, 16384};
	uint64_t t;

	pingpong(n, first, 1000, 8, false);
	for (int i = 0; i < 7; i++)
		latency(n, first, sizes[i], false);
	latency(n, first, 8, true);
	for (int i = 0; i < 7; i++) {
		t = now_ns();
		stream(n, first, 500000 / (1 + sizes[i] / 512), sizes[i], false);
		t = now_ns() - t;
		if (first)
			printf("eager  %6lu bytes %7.2f million/s %7.2f GB/s\n",
			       (unsigned long)sizes[i],
			       1e3 * (500000 / (1 + sizes[i] / 512)) / (double)t,
			       (double)sizes[i] * (500000 / (1 + sizes[i] / 512)) / (double)t);
	}
	for (uint64_t len = 4096; len <= LONG_BYTES; len *= 4) {
		uint64_t count = 2000 + 200000000 / len;

		t = now_ns();
		stream(n, first, count, len, true);
		t = now_ns() - t;
		if (first)
			printf("pull  %7lu bytes %7.2f GB/s %8.1f us\n", (unsigned long)len,
			       (double)len * (double)count / (double)t,
			       (double)t / (double)count / 1e3);
	}
}

int main(void)
{
	uint16_t engine = (uint16_t)(60000 + getpid() % 5000);
	struct node n;
	cpu_set_t cpu;
	pid_t child = fork();

	CPU_ZERO(&cpu);
	CPU_SET(child ? 0 : 1, &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	node_open(&n, child ? engine : (uint16_t)(engine + 1));
	/* The child calls, once the parent listens. */
	while (!child && !n.peer)
		bw_local_connect(n.link, (uint16_t)(engine), engine, NULL, &n.peer);
	while (child && !n.peer)
		bw_local_poll(n.link, now_ns(), false);
	run(&n, child != 0);
	if (!child)
		while (!n.down)
			bw_local_poll(n.link, now_ns(), false);
	bw_local_close(n.link);
	free(n.buf);
	if (child)
		wait(NULL);
	return 0;
}
