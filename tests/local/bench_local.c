/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Speed of the local link between two processes, on a core each: "latency" one way, spinning or
 * "sleeping", and a "stream" in one direction, with messages sent eagerly or offered and pulled.
 *
 *	bench_local latency|sleeping|stream eager|pull BYTES ...
 *
 * Prints a line per length: what, how, bytes, and nanoseconds per message (of many short batches
 * the best, the median and the 90th percentile). It is no test.
 */
#include "link/local/local.h"
#include "platform.h"

#include <errno.h>
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
#define ROUNDS	   50 /* round trips in a batch */
#define WINDOW	   64 /* messages of a stream in a batch */
#define BATCHES	   200

struct how {
	uint64_t len;
	bool pull, sleeping;
};

struct node {
	struct bw_local *link;
	struct bw_local_peer *peer;
	uint64_t got;	      /* messages received */
	uint64_t begun, done; /* offers and pulls */
	uint8_t *buf;
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
	n->begun += m->is_envelope;
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

		if (r != -EAGAIN) {
			n->begun += offer;
			return;
		}
		bw_local_poll(n->link, 0, false);
	}
}

static void pingpong(struct node *n, bool first, const struct how *how)
{
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t want = n->got + 1;

		if (first)
			put(n, n->buf, how->len, how->pull);
		while ((n->got < want || n->done < n->begun) && !n->down)
			turn(n, how->sleeping);
		if (!first)
			put(n, n->buf, how->len, how->pull);
	}
}

/* In one direction, with a word back at the end of each batch. */
static void stream(struct node *n, bool first, const struct how *how)
{
	uint64_t end = n->got + (first ? 1 : WINDOW);

	for (uint64_t i = 0; first && i < WINDOW; i++)
		put(n, n->buf, how->len, how->pull);
	while ((n->got < end || n->done < n->begun) && !n->down)
		turn(n, false);
	if (!first)
		put(n, n->buf, 0, false);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Batches, so that what other processes of the machine do shows in few of them. */
static void measure(struct node *n, bool first, const char *what, const struct how *how)
{
	bool streams = strcmp(what, "stream") == 0;
	double per_batch = streams ? WINDOW : 2 * ROUNDS;
	uint64_t spent[BATCHES];

	for (int i = 0; i < BATCHES; i++) {
		uint64_t t = now_ns();

		if (streams)
			stream(n, first, how);
		else
			pingpong(n, first, how);
		spent[i] = now_ns() - t;
	}
	qsort(spent, BATCHES, sizeof(spent[0]), by_value);
	if (first)
		printf("%s %s %lu %.1f %.1f %.1f\n", what, how->pull ? "pull" : "eager",
		       (unsigned long)how->len, (double)spent[0] / per_batch,
		       (double)spent[BATCHES / 2] / per_batch,
		       (double)spent[BATCHES * 9 / 10] / per_batch);
}

static void run(struct node *n, bool first, char **argv)
{
	struct how how = {
		.pull = strcmp(argv[2], "pull") == 0,
		.sleeping = strcmp(argv[1], "sleeping") == 0,
	};

	for (char **length = argv + 3; *length; length++) {
		how.len = bw_min_u64(strtoull(*length, NULL, 10), LONG_BYTES);
		measure(n, first, argv[1], &how);
	}
}

int main(int argc, char **argv)
{
	uint16_t engine = (uint16_t)(60000 + getpid() % 5000);
	struct node n;
	cpu_set_t cpu;
	pid_t child;

	if (argc < 4) {
		fprintf(stderr,
			"usage: bench_local latency|sleeping|stream eager|pull BYTES ...\n");
		return 2;
	}
	child = fork();
	CPU_ZERO(&cpu);
	CPU_SET(child ? 0 : 1, &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	node_open(&n, child ? engine : (uint16_t)(engine + 1));
	/* The child calls, once the parent listens. */
	while (!child && !n.peer)
		bw_local_connect(n.link, (uint16_t)(engine), engine, NULL, &n.peer);
	while (child && !n.peer)
		bw_local_poll(n.link, now_ns(), false);
	run(&n, child != 0, argv);
	if (!child)
		while (!n.down)
			bw_local_poll(n.link, now_ns(), false);
	bw_local_close(n.link);
	free(n.buf);
	if (child)
		wait(NULL);
	return 0;
}
