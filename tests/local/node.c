/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The recording endpoint of the local link's tests. */
#include "node.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PATTERN_MAX 65536
#define REGION_SPAN (NODE_REGION + (1u << 16)) /* with a page behind it, of any size */

/* Engine numbers belong to the whole node, and programs of these tests run beside each other. Each
 * has a block of them for itself, and for the processes that it forks: the first number, held until
 * it ends. */
#define BLOCK	      512u
#define FIRST_BLOCK   1024u
#define BEYOND_BLOCKS 65024u

static uint64_t seed = 1;

void seed_set(uint64_t s)
{
	seed = s * 0x9E3779B97F4A7C15ull | 1;
}

/* xorshift64* */
uint64_t draw(uint64_t below)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (seed * 0x2545F4914F6CDD1Dull >> 16) % below;
}

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint8_t pattern_byte(uint64_t tag, uint64_t i)
{
	return (uint8_t)((tag * 31 + i * 7 + (i >> 8)) & 0xFF);
}

void pattern_fill(void *buf, uint64_t len, uint64_t tag)
{
	for (uint64_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = pattern_byte(tag, i);
}

bool pattern_holds(const void *buf, uint64_t len, uint64_t tag)
{
	for (uint64_t i = 0; i < len; i++)
		if (((const uint8_t *)buf)[i] != pattern_byte(tag, i))
			return false;
	return true;
}

__attribute__((format(printf, 2, 3))) static void tell(struct node *n, const char *format, ...)
{
	size_t used = strlen(n->log);
	va_list args;

	if (n->quiet)
		return;
	va_start(args, format);
	vsnprintf(n->log + used, sizeof(n->log) - used, format, args);
	va_end(args);
}

const char *node_story(struct node *n)
{
	static char story[NODE_LOG_BYTES];

	memcpy(story, n->log, sizeof(story));
	n->log[0] = 0;
	return story;
}

static int on_new(void *arg, struct bw_local_peer *p, const struct bw_local_id *id, void **ctx)
{
	struct node *n = arg;

	if (n->turn_away)
		return n->turn_away;
	n->peer = p;
	tell(n, "new | ");
	return 0;
}

static void on_message(void *arg, void *ctx, const struct bw_local_message *m)
{
	struct node *n = arg;

	n->messages++;
	tell(n, "%s %u tag %llu imm %llu len %llu | ", m->is_envelope ? "envelope" : "message",
	     m->code, (unsigned long long)m->tag, (unsigned long long)m->imm,
	     (unsigned long long)m->len);
	if (m->is_envelope && n->envelopes < NODE_ENVELOPES)
		n->envelope[n->envelopes++] = m->envelope;
	else if (!m->is_envelope && !pattern_holds(m->data, m->len, m->tag))
		n->spoilt++;
	if (n->on_message)
		n->on_message(n, m);
}

static void on_sent(void *arg, void *ctx, void *op, int status)
{
	struct node *n = arg;

	n->sents++;
	n->last_status = status;
	tell(n, "sent %s %d | ", (const char *)op, status);
}

static void on_pulled(void *arg, void *ctx, void *op, int status, uint64_t len)
{
	struct node *n = arg;

	n->pulleds++;
	n->last_status = status;
	tell(n, "pulled %s %d len %llu | ", (const char *)op, status, (unsigned long long)len);
	if (n->on_pulled)
		n->on_pulled(n, op);
}

static void on_down(void *arg, void *ctx, int status)
{
	struct node *n = arg;

	n->downs++;
	n->peer = NULL;
	tell(n, "down %s | ", strerrorname_np(-status));
}

static void *on_region(void *arg, void *ctx, uint64_t key, uint64_t off, uint64_t len)
{
	struct node *n = arg;

	if (key != NODE_REGION_KEY || off > NODE_REGION || len > NODE_REGION - off)
		return NULL;
	return n->region + off;
}

const struct bw_local_handlers node_handlers = {
	.peer_new = on_new,
	.message = on_message,
	.sent = on_sent,
	.pulled = on_pulled,
	.peer_down = on_down,
	.region = on_region,
};

static void fail(const char *what, int error)
{
	fprintf(stderr, "%s: %s\n", what, strerror(-error));
	abort();
}

static uint16_t block; /* the first number of this program's block */

/* Before any test, which may count descriptors. */
__attribute__((constructor)) static void block_hold(void)
{
	for (uint32_t i = FIRST_BLOCK; i < BEYOND_BLOCKS; i += BLOCK) {
		int claim = bw_local_claim((uint16_t)i);

		block = (uint16_t)i;
		if (claim >= 0)
			return;
		if (claim != -EADDRINUSE)
			fail("bw_local_claim", claim);
	}
	fail("a block of engine numbers", -EADDRINUSE);
}

uint16_t node_number(int *claim)
{
	uint32_t from = (uint32_t)getpid();

	for (uint32_t i = 0; i < BLOCK; i++) {
		uint16_t engine = (uint16_t)(block + 1 + (from + i) % (BLOCK - 1));

		*claim = bw_local_claim(engine);
		if (*claim >= 0)
			return engine;
		if (*claim != -EADDRINUSE)
			break;
	}
	fail("bw_local_claim", *claim);
	return 0;
}

static int pattern; /* memory with the pattern of a region */

/* Before any test, which may count descriptors. */
__attribute__((constructor)) static void pattern_make(void)
{
	pattern = memfd_create("pattern", MFD_CLOEXEC);
	if (pattern < 0 || ftruncate(pattern, NODE_REGION) < 0)
		fail("pattern", -errno);

	void *at = mmap(NULL, NODE_REGION, PROT_READ | PROT_WRITE, MAP_SHARED, pattern, 0);

	if (at == MAP_FAILED)
		fail("pattern", -errno);
	pattern_fill(at, NODE_REGION, NODE_REGION_KEY);
	munmap(at, NODE_REGION);
}

/* A copy of the pattern that costs memory and time only where it is touched: filling it was half of
 * the time of a test that opens hundreds of nodes. Who reads a page beyond it gets SIGBUS. */
static uint8_t *region_make(void)
{
	void *at = mmap(NULL, REGION_SPAN, PROT_READ | PROT_WRITE, MAP_PRIVATE, pattern, 0);

	if (at == MAP_FAILED)
		fail("memory", -errno);
	return at;
}

void node_region_free(struct node *n)
{
	munmap(n->region, REGION_SPAN);
}

static void open_claimed(struct node *n, uint32_t ring_bytes, int claim)
{
	struct bw_local_attr attr = {
		.self = {.node = NODE_NUMBER,
			 .cluster = CLUSTER_NUMBER,
			 .incarnation = n->incarnation,
			 .engine = n->engine,
			 .name = "host"},
		.claim = claim,
		.ring_bytes = ring_bytes,
		.handlers = &node_handlers,
		.arg = n,
	};
	int error;

	n->envelope = calloc(NODE_ENVELOPES, sizeof(*n->envelope));
	if (!n->envelope)
		fail("memory", -ENOMEM);
	n->region = region_make();
	error = bw_local_open(&n->link, &attr);
	if (error < 0)
		fail("bw_local_open", error);
}

void node_open(struct node *n, uint32_t ring_bytes, uint32_t incarnation)
{
	static uint32_t drawn;
	int claim;

	memset(n, 0, sizeof(*n));
	n->incarnation = incarnation ? incarnation : 1000 + ++drawn;
	n->engine = node_number(&claim);
	open_claimed(n, ring_bytes, claim);
}

void node_reopen(struct node *n, const struct node *old)
{
	int claim = bw_local_claim(old->engine);

	memset(n, 0, sizeof(*n));
	n->engine = old->engine;
	n->incarnation = old->incarnation + 500;
	if (claim < 0)
		fail("bw_local_claim", claim);
	open_claimed(n, 0, claim);
}

void node_close(struct node *n)
{
	bw_local_close(n->link);
	free(n->envelope);
	node_region_free(n);
}

void node_poll(struct node *n)
{
	bw_local_poll(n->link, now_ns(), true);
}

void node_settle(struct node *n, struct node *m)
{
	int idle = 0;

	while (idle < 3) {
		int k = bw_local_poll(n->link, 0, true) + bw_local_poll(m->link, 0, true);

		idle = k ? 0 : idle + 1;
	}
}

void node_pair(struct node *n, struct node *m)
{
	int error = bw_local_connect(n->link, m->engine, m->incarnation, NULL, &n->peer);

	if (error < 0)
		fail("bw_local_connect", error);
	node_settle(n, m);
}

int node_send(struct node *n, uint64_t tag, uint64_t len)
{
	static uint8_t buf[PATTERN_MAX];

	pattern_fill(buf, len, tag);
	return bw_local_send(n->peer, 1, tag, tag, buf, len, NULL);
}

int entries(const char *directory)
{
	DIR *d = opendir(directory);
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}
