/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Engines that all speak with all others, in one process: what a message costs as their number
 * grows, and what an idle peer holds. Frames are handed over at once; nothing is lost. Cost here is
 * that of engines alone: their instructions, and the cache that their state takes.
 *
 *	peers NODES MESSAGES	-> one line of JSON
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "protocol.h"

#define FRAME_MAX 1500 /* bytes */
#define STEP_NS	  (10 * BW_US)
#define CLUSTER	  1u

struct frame {
	struct frame *next;
	struct bw_link_addr from;
	uint32_t to, len;
	uint64_t bytes[(FRAME_MAX + 7) / 8];
};

struct node {
	void *engine;
	uint32_t *peer; /* handle of each other node, 0: none yet */
	uint64_t grown; /* bytes handed in */
	uint64_t got;	/* messages */
	uint64_t down;	/* peers lost: must stay 0 */
};

static struct node *nodes;
static uint32_t count;
static struct frame *first, **last = &first, *spare;
static uint64_t now = 1;
static const uint64_t payload = 0x1122334455667788;

static struct bw_link_addr address(uint32_t number)
{
	struct bw_link_addr a = {.len = 6};

	a.bytes[0] = 2;
	memcpy(&a.bytes[2], &number, sizeof(number));
	return a;
}

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static uint32_t payload_crc(void *host, uint64_t buf, uint64_t off, uint32_t n)
{
	(void)host;
	return bw_crc32c(0, (const uint8_t *)(uintptr_t)buf + off, n);
}

static int place(void *host, uint64_t buf, uint64_t off, const struct bw_rx_frame *f, uint32_t at,
		 uint32_t n, bool check, uint32_t crc)
{
	(void)host, (void)buf, (void)off;
	return check && bw_crc32c(0, (const uint8_t *)f->head + at, n) != crc ? -74 : 0;
}

static uint64_t buf_get(void *host, uint32_t peer, uint64_t n, bool next)
{
	(void)host, (void)n, (void)next;
	return 0;
}

static void buf_put(void *host, uint64_t buf)
{
	(void)host, (void)buf;
}

static int region_find(void *host, uint32_t peer, uint64_t key, uint64_t off, uint64_t n,
		       uint64_t *buf, uint64_t *buf_off)
{
	(void)host, (void)peer, (void)key, (void)off, (void)n, (void)buf, (void)buf_off;
	return -13;
}

static void sent(void *host, uint64_t cookie)
{
	(void)host, (void)cookie;
}

static void message(void *host, const struct bw_event *ev)
{
	struct node *n = host;

	n->got++;
	(void)ev;
}

static uint64_t draw(void *host)
{
	static uint64_t drawn;

	return ++drawn * 0x9E3779B97F4A7C15ull >> 7;
}

/* Every engine's cookie is 1. */
static uint64_t siphash(const uint8_t key[16], const void *p, size_t n)
{
	return 1;
}

static const struct bw_host_ops ops = {
	.crc32c = bw_crc32c,
	.payload_crc = payload_crc,
	.place = place,
	.buf_get = buf_get,
	.buf_put = buf_put,
	.region_find = region_find,
	.random = draw,
	.siphash = siphash,
	.sent = sent,
	.message = message,
};

static void grow(struct node *n)
{
	bw_reliable.grow(n->engine, must(aligned_alloc(64, BW_GROW_BYTES)));
	n->grown += BW_GROW_BYTES;
}

/* All frames that a node has to send now go into the queue. */
static void flush(struct node *n)
{
	static struct bw_tx_frame f;

	while (bw_reliable.next_frame(n->engine, &f, now)) {
		struct frame *q = spare;
		uint8_t *at;
		uint32_t i, from = 0;

		if (q)
			spare = q->next;
		else
			q = must(malloc(sizeof(*q)));
		at = (uint8_t *)q->bytes;
		for (i = 0; i < f.segments; i++) {
			const struct bw_tx_segment *g = &f.segment[i];

			memcpy(at, (const uint8_t *)f.head + from, g->head_end - from);
			at += g->head_end - from;
			from = g->head_end;
			if (g->buf)
				memcpy(at, (const uint8_t *)(uintptr_t)g->buf + g->off, g->len);
			else
				memset(at, 0, g->len);
			at += g->len;
		}
		memcpy(at, (const uint8_t *)f.head + from, f.head_len - from);
		q->len = f.len;
		q->from = address((uint32_t)(n - nodes));
		memcpy(&q->to, &f.to.bytes[2], sizeof(q->to));
		q->next = NULL;
		*last = q;
		last = &q->next;
	}
	if (bw_reliable.hungry(n->engine))
		grow(n);
}

static void take_events(struct node *n)
{
	static struct bw_event ev;

	while (bw_reliable.next_event(n->engine, &ev)) {
		n->got += ev.type == BW_EV_MESSAGE;
		n->down += ev.type == BW_EV_PEER_DOWN;
	}
}

static void deliver_all(void)
{
	while (first) {
		struct frame *q = first;
		struct node *n = &nodes[q->to];
		struct bw_rx_frame f = {.head = q->bytes, .head_len = q->len, .len = q->len};

		first = q->next;
		if (!first)
			last = &first;
		f.from = q->from;
		bw_reliable.rx(n->engine, &f, now);
		take_events(n);
		q->next = spare;
		spare = q;
		flush(n);
	}
}

/* Time passes, and whoever has something to do then does it. */
static void pass(uint64_t ns)
{
	uint32_t i;

	now += ns;
	for (i = 0; i < count; i++)
		if (bw_reliable.next_deadline(nodes[i].engine) <= now)
			flush(&nodes[i]);
	deliver_all();
}

static void submit(struct node *n, struct bw_op *op)
{
	int error = bw_reliable.submit(n->engine, op, now);

	if (error == -11) {
		grow(n);
		error = bw_reliable.submit(n->engine, op, now);
	}
	if (error) {
		fprintf(stderr, "peers: operation %d gives %d\n", op->type, error);
		exit(1);
	}
}

static void send_to(struct node *n, uint32_t to)
{
	struct bw_op op = {.type = BW_OP_SEND};

	if (!n->peer[to]) {
		struct bw_op meet = {.type = BW_OP_CONNECT};

		meet.connect.node = to + 1;
		meet.connect.engine = 1;
		meet.connect.paths = 1;
		meet.connect.path[0] = address(to);
		submit(n, &meet);
		n->peer[to] = meet.peer;
	}
	op.peer = n->peer[to];
	op.send.buf = (uint64_t)(uintptr_t)&payload;
	op.send.len = sizeof(payload);
	op.send.quiet = true;
	submit(n, &op);
	flush(n);
}

/* Every node sends a message to the one so far behind it. */
static void turn(uint32_t distance)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		send_to(&nodes[i], (i + distance) % count);
	deliver_all();
	pass(STEP_NS);
}

static uint64_t turns(uint64_t many)
{
	uint64_t i;

	for (i = 0; i < many; i++)
		turn(1 + (uint32_t)(i % (count - 1)));
	return many * count;
}

static void open_node(uint32_t number)
{
	struct node *n = &nodes[number];
	struct bw_config cfg = {
		.node = number + 1,
		.incarnation = number + 1,
		.cluster = CLUSTER,
		.engine = 1,
		.rx_budget = 1u << 30,
		.features = BW_FEATURE_CHECKSUM,
		.dead_ns = 60 * BW_S,
	};

	cfg.link_mtu[0] = FRAME_MAX;
	n->engine = must(aligned_alloc(64, (bw_reliable.size(&cfg) + 63) & ~(size_t)63));
	n->peer = must(calloc(count, sizeof(*n->peer)));
	if (bw_reliable.open(n->engine, &cfg, &ops, n, now))
		abort();
	grow(n);
}

static uint64_t processor_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * BW_S + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv)
{
	uint64_t wanted, messages, begun, got = 0, down = 0, grown = 0, frames = 0;
	uint32_t i;

	count = argc == 3 ? (uint32_t)atoi(argv[1]) : 0;
	wanted = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
	if (count < 2 || count > 4096 || !wanted) {
		fprintf(stderr, "usage: peers NODES MESSAGES\n");
		return 2;
	}
	nodes = must(calloc(count, sizeof(*nodes)));
	for (i = 0; i < count; i++)
		open_node(i);
	/* First contact, and what follows it: all have met twice before anything is counted. */
	messages = turns(2 * (uint64_t)(count - 1));
	pass(BW_S);
	begun = processor_ns();
	for (i = 0; i < count; i++)
		frames += bw_reliable.counters(nodes[i].engine)->tx_frames;
	wanted = turns((wanted + count - 1) / count);
	begun = processor_ns() - begun;
	for (i = 0; i < count; i++) {
		frames -= bw_reliable.counters(nodes[i].engine)->tx_frames;
		got += nodes[i].got;
		down += nodes[i].down;
		grown += nodes[i].grown;
	}
	if (got != messages + wanted || down) {
		fprintf(stderr, "peers: %llu of %llu messages came, %llu peers were lost\n",
			(unsigned long long)got, (unsigned long long)(messages + wanted),
			(unsigned long long)down);
		return 1;
	}
	printf("{\"nodes\": %u, \"messages\": %llu, \"ns\": %.1f, \"frames\": %.3f, "
	       "\"peer_bytes\": %zu, \"grown_bytes_per_peer\": %.0f}\n",
	       count, (unsigned long long)wanted, (double)begun / (double)wanted,
	       (double)(0 - frames) / (double)wanted, bw_reliable_peer_bytes(1),
	       (double)grown / count / (count - 1));
	return 0;
}
