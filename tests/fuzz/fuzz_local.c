/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What another process of the node may put into the memory that the local link shares with it:
 * records of any content, committed as they should be, and any word of the control page and the
 * slot states. The victim has operations of its own under way.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fuzz.h"
#include "link/local/impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RING	   (16u << 10)
#define OPERATIONS 64

#define REGION	   8192
#define REGION_KEY 77

struct node {
	struct bw_local *link;
	struct bw_local_peer *peer; /* NULL: gone */
	uint16_t engine;
};

static struct node victim, enemy;
static uint8_t region[REGION]; /* memory that either may read of the other */
/* What the victim's operations were given, each of its own length. */
static uint8_t *buffer[OPERATIONS];
static uint32_t buffers;
static uint32_t under_way; /* of the victim's */

static uint8_t *buffer_new(size_t n)
{
	if (buffers == OPERATIONS)
		return NULL;
	buffer[buffers] = calloc(1, n + !n);
	return buffer[buffers++];
}

static int on_new(void *arg, struct bw_local_peer *p, const struct bw_local_id *id, void **ctx)
{
	struct node *n = arg;

	if (strnlen(id->name, sizeof(id->name)) == sizeof(id->name))
		fuzz_bad("a name without an end");
	n->peer = p;
	return 0;
}

/* The victim takes whatever it is offered. */
static void on_message(void *arg, void *ctx, const struct bw_local_message *m)
{
	static volatile uint8_t sink;
	uint64_t len = m->len < 5000 ? m->len : 5000;
	struct node *n = arg;
	uint8_t *to;

	if (!m->is_envelope && m->len > bw_local_record_limit(RING))
		fuzz_bad("a message longer than a record may be");
	if (n != &victim)
		return;
	for (uint64_t i = 0; !m->is_envelope && i < m->len; i++)
		sink = ((const uint8_t *)m->data)[i];
	to = m->is_envelope && n->peer ? buffer_new(len) : NULL;
	if (to && bw_local_pull(n->peer, &m->envelope, to, len, "pull") == 0)
		under_way++;
}

static void on_sent(void *arg, void *ctx, void *op, int status)
{
	if (arg == &victim && !under_way--)
		fuzz_bad("an operation that ends twice");
}

static void on_pulled(void *arg, void *ctx, void *op, int status, uint64_t len)
{
	on_sent(arg, ctx, op, status);
}

static void on_down(void *arg, void *ctx, int status)
{
	struct node *n = arg;

	n->peer = NULL;
}

static void *on_region(void *arg, void *ctx, uint64_t key, uint64_t off, uint64_t len)
{
	if (key != REGION_KEY || off > REGION || len > REGION - off)
		return NULL;
	return region + off;
}

static const struct bw_local_handlers handlers = {
	.peer_new = on_new,
	.message = on_message,
	.sent = on_sent,
	.pulled = on_pulled,
	.peer_down = on_down,
	.region = on_region,
};

static void node_open(struct node *n, uint32_t incarnation)
{
	struct bw_local_attr attr = {
		.self = {.node = 1, .cluster = FUZZ_CLUSTER, .incarnation = incarnation},
		.ring_bytes = RING,
		.handlers = &handlers,
		.arg = n,
	};
	static uint16_t number;

	if (!number)
		number = (uint16_t)(getpid() * 16);
	n->peer = NULL;
	do {
		number += !(number + 1) ? 2 : 1;
		attr.claim = bw_local_claim(number);
	} while (attr.claim < 0);
	n->engine = attr.self.engine = number;
	snprintf(attr.self.name, sizeof(attr.self.name), "host");
	if (bw_local_open(&n->link, &attr) < 0)
		fuzz_bad("a link cannot be opened");
}

static void node_poll(struct node *n)
{
	static uint64_t now;

	bw_local_poll(n->link, now += BW_MS, true);
}

static void node_pair(struct node *n, struct node *m, uint32_t incarnation)
{
	if (bw_local_connect(n->link, m->engine, incarnation, NULL, &n->peer) < 0)
		fuzz_bad("no contact");
	for (int i = 0; i < 3; i++) {
		node_poll(m);
		node_poll(n);
	}
}

/* An address that the enemy names: of its own memory, or anything. */
static uint64_t address(struct fuzz_input *in)
{
	uint64_t x = fuzz_number(in);

	return x & 1 ? (uintptr_t)region + x % REGION : x;
}

static void step_record(struct fuzz_input *in)
{
	/* one lie ends the pair: most records have none */
	uint8_t how = fuzz_u8(in), odd = how >= 0xC0 ? fuzz_u8(in) : 0;
	uint8_t kind = odd & 8 ? odd >> 4 : 1 + how % BW_LOCAL_DATA;
	uint32_t len = 0, given;
	uint64_t pair[2], a, b;
	struct bw_local_record *r;
	const uint8_t *bytes;

	if (!enemy.peer)
		return;
	a = kind == BW_LOCAL_GRANT ? address(in) : fuzz_number(in);
	b = fuzz_number(in);
	if (kind == BW_LOCAL_ENVELOPE || kind == BW_LOCAL_READ)
		len = sizeof(pair);
	else if (kind == BW_LOCAL_MESSAGE || kind == BW_LOCAL_DATA)
		len = fuzz_u16(in) % bw_local_record_limit(RING);
	if (kind == BW_LOCAL_READ && !(odd & 0x40))
		a = REGION_KEY;
	r = bw_local_reserve(enemy.peer, len, 0);
	if (!r)
		return;
	given = len;
	if (len == sizeof(pair)) {
		pair[0] = kind == BW_LOCAL_READ ? fuzz_number(in) : address(in);
		pair[1] = fuzz_number(in);
		bytes = (const uint8_t *)pair;
	} else {
		bytes = fuzz_bytes(in, &given);
	}
	memcpy(r->data, bytes, given);
	r->len = odd & 1 ? (uint32_t)fuzz_number(in) : len;
	r->what = BW_LOCAL_WHAT(kind, fuzz_u8(in) & 3,
				odd & 2 ? (uint32_t)fuzz_number(in) : fuzz_u8(in) % 4u);
	r->a = a;
	r->b = b;
	bw_local_commit(enemy.peer, r,
			odd & 4 ? fuzz_number(in) % bw_local_record_limit(RING) : len);
}

/* A word of the control page, or a slot's state. */
static void step_scribble(struct fuzz_input *in)
{
	uint8_t where = fuzz_u8(in);
	struct bw_local_segment *s;
	uint64_t x;

	if (!enemy.peer)
		return;
	s = &enemy.peer->segment[enemy.peer->segment[0].control ? 0 : 1];
	x = fuzz_number(in);
	switch (where % 5) {
	case 0:
		s->control[where >> 7].head = x;
		break;
	case 1:
		s->control[where >> 7].want_room = (uint32_t)x;
		break;
	case 2:
		s->control[where >> 7].closed = (uint32_t)x;
		break;
	case 3:
		s->states[where >> 7][fuzz_u8(in) % 8] = (uint8_t)x;
		break;
	default:
		memset(s->ring[where >> 7], (int)x, fuzz_u16(in) % RING);
	}
}

static void step_victim(struct fuzz_input *in)
{
	uint8_t how = fuzz_u8(in);
	uint64_t n = fuzz_u16(in) % 20000;
	uint8_t *to;
	int begun = -1;

	if (!victim.peer)
		return;
	to = buffer_new(n);
	if (!to)
		return;
	switch (how & 7) {
	case 0:
		bw_local_send(victim.peer, 1, 2, 3, to, n % 4000, NULL);
		break;
	case 1:
		begun = bw_local_send(victim.peer, 1, 2, 3, to, n % 4000, "acked");
		break;
	case 2:
	case 3:
		begun = bw_local_offer(victim.peer, 1, 2, 3, to, n, "offer");
		break;
	case 4:
	case 5:
		begun = bw_local_read(victim.peer, REGION_KEY, 0, to, n, "read");
		break;
	case 6:
		bw_local_retract(victim.peer, how & 8 ? "offer" : "acked");
		break;
	default:
		if (bw_local_arm(victim.link) == 0)
			bw_local_disarm(victim.link);
	}
	under_way += begun == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	uint8_t first = fuzz_u8(&in);
	int steps = 0;

	setenv("BEOWIRE_LOCAL_CMA", first & 1 ? "off" : "on", 1);
	node_open(&victim, 5);
	node_open(&enemy, 6);
	if (first & 2)
		node_pair(&enemy, &victim, 5);
	else
		node_pair(&victim, &enemy, 6);
	while (in.at < in.end && steps++ < 400) {
		uint8_t what = fuzz_u8(&in);

		if (what % 8 < 4)
			step_record(&in);
		else if (what % 8 == 4)
			step_scribble(&in);
		else if (what % 8 == 5)
			step_victim(&in);
		else if (what % 8 == 6)
			node_poll(&victim);
		else if (what > 0xC0)
			node_poll(&enemy);
	}
	if (victim.peer)
		bw_local_disconnect(victim.peer);
	for (int i = 0; i < 4; i++)
		node_poll(&victim);
	if (bw_local_busy(victim.link))
		fuzz_bad("the victim is busy with a peer that it has forgotten");
	if (under_way)
		fuzz_bad("an operation that never ended");
	bw_local_close(enemy.link);
	bw_local_close(victim.link);
	while (buffers)
		free(buffer[--buffers]);
	return 0;
}
