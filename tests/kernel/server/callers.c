/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Callers of an instance; see callers.h. */
#include "callers.h"

#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MTU	1500
#define PORT	7
#define ID	3
#define WAITING 256 /* frames to callers, at most */

/* ---- time and memory ---- */

uint64_t now;
struct memory memory;
struct told told;
struct instance *in;
struct beowire_server_iface interface[BEOWIRE_SERVER_IFACES];
uint32_t left_by;

int __wrap_clock_gettime(clockid_t which, struct timespec *t);
void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__real_calloc(size_t count, size_t n);
void *__wrap_calloc(size_t count, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
void __real_free(void *at);
void __wrap_free(void *at);

int __wrap_clock_gettime(clockid_t which, struct timespec *t)
{
	*t = (struct timespec){(time_t)(now / BW_S), (long)(now % BW_S)};
	return 0;
}

static void *counted(void *at)
{
	memory.held += malloc_usable_size(at);
	memory.peak = memory.held > memory.peak ? memory.held : memory.peak;
	return at;
}

void *__wrap_malloc(size_t n)
{
	return memory.none ? NULL : counted(__real_malloc(n));
}

void *__wrap_calloc(size_t count, size_t n)
{
	return memory.none ? NULL : counted(__real_calloc(count, n));
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
	return memory.none ? NULL : counted(__real_aligned_alloc(align, n));
}

void __wrap_free(void *at)
{
	memory.held -= malloc_usable_size(at);
	__real_free(at);
}

/* ---- callers ---- */

static struct rings rings;

static struct {
	uint8_t mac[6];
	uint32_t len;
	_Alignas(8) uint8_t bytes[MTU];
} waiting[WAITING]; /* frames to callers */
static uint32_t waiting_n;

static _Alignas(16) uint8_t answer[sizeof(struct beowire_record) + BEOWIRE_SERVER_BYTES];

struct beowire_record *rings_reserve(struct rings *r, enum beowire_ring_number number,
				     uint16_t type, uint32_t socket, uint32_t bytes)
{
	struct beowire_record *record = (void *)answer;

	assert_int_equal(socket, ID);
	if (number == BEOWIRE_FRAMES_OUT && waiting_n == WAITING)
		return NULL;
	*record = (struct beowire_record){.type = type, .socket = socket, .bytes = bytes};
	return record;
}

void rings_commit(struct rings *r, enum beowire_ring_number number,
		  const struct beowire_record *record)
{
	if (number == BEOWIRE_FRAMES_OUT) {
		assert_in_range(record->bytes, 1, MTU);
		left_by = record->frame.ifindex;
		memcpy(waiting[waiting_n].mac, record->frame.mac, 6);
		waiting[waiting_n].len = record->bytes;
		memcpy(waiting[waiting_n++].bytes, record + 1, record->bytes);
	} else if (record->type == BEOWIRE_ARRIVED) {
		told.arrived++;
		told.bytes = record->bytes;
		told.from = record->addr;
	} else if (record->type == BEOWIRE_DONE) {
		told.done++;
	} else if (record->type == BEOWIRE_FAILED) {
		told.failed++;
		told.error = -record->result.status;
	}
}

int rings_turn(struct rings *r, int64_t timeout_ns)
{
	return 0;
}

int rings_read_links(struct rings *r)
{
	memcpy(r->link, interface, sizeof(interface));
	return 0;
}

static struct bw_link_addr ours(void)
{
	return (struct bw_link_addr){.len = 6, .bytes = {2, 1}};
}

void caller_begin(struct caller *c, uint32_t number)
{
	struct bw_config cfg = {
		.node = 100 + number,
		.incarnation = 1 + number,
		.cluster = rings.cluster,
		.engine = (uint16_t)(1000 + number % 60000),
		.rx_budget = 1 << 20,
		.features = BW_FEATURE_CHECKSUM,
		.dead_ns = 60 * BW_S,
		.link_mtu = {MTU, MTU, MTU, MTU, MTU, MTU, MTU, MTU},
	};

	*c = (struct caller){.engine = c->engine, .grown = c->grown};
	c->node = cfg.node;
	c->inc = cfg.incarnation;
	c->port = cfg.engine;
	c->mac[0] = 2;
	memcpy(c->mac + 2, &number, 4);
	if (!c->engine)
		c->engine = __real_aligned_alloc(64, (bw_reliable.size(&cfg) + 63) & ~63ull);
	if (!c->grown)
		c->grown = __real_aligned_alloc(64, BW_GROW_BYTES);
	assert_int_equal(bw_reliable.open(c->engine, &cfg, &plain_host_ops, c, now), 0);
	bw_reliable.grow(c->engine, c->grown);
}

void caller_free(struct caller *c)
{
	__real_free(c->engine);
	__real_free(c->grown);
	c->engine = c->grown = NULL;
}

static void caller_events(struct caller *c)
{
	struct bw_event e = {0};

	for (; bw_reliable.next_event(c->engine, &e); e = (struct bw_event){0}) {
		if (e.type == BW_EV_PEER_DOWN)
			c->down = e.status;
		if (e.type != BW_EV_MESSAGE)
			continue;
		c->taken++;
		assert_int_equal(e.buf, 0); /* it was one frame */
	}
}

static void caller_frame(const struct caller *c, const struct bw_tx_frame *f)
{
	static _Alignas(16) uint8_t bytes[sizeof(struct beowire_record) + MTU];
	struct beowire_record *record = (void *)bytes;
	uint8_t *to = bytes + sizeof(*record);
	uint32_t at = 0;

	*record = (struct beowire_record){.type = BEOWIRE_FRAME, .socket = ID, .bytes = f->len};
	record->frame.ifindex = 1;
	memcpy(record->frame.mac, c->mac, 6);
	for (uint32_t i = 0; i < f->segments; i++) {
		const struct bw_tx_segment *s = &f->segment[i];

		memcpy(to, (const uint8_t *)f->head + at, s->head_end - at);
		to += s->head_end - at;
		at = s->head_end;
		if (s->buf)
			memcpy(to, plain_buffer_of(s->buf)->bytes + s->off, s->len);
		else
			memset(to, 0, s->len);
		to += s->len;
	}
	memcpy(to, (const uint8_t *)f->head + at, f->head_len - at);
	instance_frame(in, record);
}

void lose(void)
{
	waiting_n = 0;
}

void settle(struct caller *c)
{
	struct bw_tx_frame f;
	bool more;

	do {
		more = waiting_n;
		for (uint32_t i = 0; i < waiting_n; i++) {
			const struct bw_rx_frame r = {.head = waiting[i].bytes,
						      .head_len = waiting[i].len,
						      .len = waiting[i].len,
						      .from = ours()};

			if (!memcmp(waiting[i].mac, c->mac, 6))
				bw_reliable.rx(c->engine, &r, now);
			caller_events(c);
		}
		waiting_n = 0;
		while (bw_reliable.next_frame(c->engine, &f, now)) {
			more = true;
			if (c->mute != 1)
				caller_frame(c, &f);
			c->mute -= c->mute > 1;
		}
		caller_events(c);
		instance_run(in);
	} while (more);
}

void pass(struct caller *c, uint64_t ns)
{
	uint64_t end = now + ns, at;

	while (now < end) {
		settle(c);
		at = bw_reliable.next_deadline(c->engine);
		at = at < in->deadline ? at : in->deadline;
		now = at <= now ? now + BW_US : at < end ? at : end;
	}
	settle(c);
}

void caller_meets(struct caller *c)
{
	struct bw_op op = {.type = BW_OP_CONNECT};

	op.connect.engine = PORT;
	op.connect.paths = 1;
	op.connect.path[0] = ours();
	assert_int_equal(bw_reliable.submit(c->engine, &op, now), 0);
	c->peer = op.peer;
}

void caller_posts(struct caller *c, uint32_t bytes)
{
	static _Alignas(8) uint8_t message[sizeof(struct plain_buffer) + LONG];
	struct bw_op op = {.type = BW_OP_SEND, .peer = c->peer};

	op.send.buf = (uintptr_t)message;
	op.send.len = bytes;
	assert_int_equal(bw_reliable.submit(c->engine, &op, now), 0);
}

void caller_sends(struct caller *c, uint32_t bytes)
{
	caller_posts(c, bytes);
	settle(c);
}

void caller_calls(struct caller *c, uint32_t number)
{
	uint32_t before = told.arrived;

	caller_begin(c, number);
	caller_meets(c);
	caller_sends(c, 1);
	assert_int_equal(told.arrived, before + 1);
}

/* ---- the program ---- */

void program_sends(const struct sockaddr_beowire *to, uint32_t bytes)
{
	static _Alignas(16) uint8_t request[sizeof(struct beowire_record) + LONG];
	struct beowire_record *record = (void *)request;

	*record = (struct beowire_record){.type = BEOWIRE_SEND, .socket = ID, .bytes = bytes};
	record->addr = *to;
	instance_send(in, record);
}

struct sockaddr_beowire address(const struct caller *c)
{
	struct sockaddr_beowire a = {.sbw_port = c->port, .sbw_ifindex = 1};

	memcpy(a.sbw_mac, c->mac, 6);
	return a;
}

static const struct beowire_record open = {
	.type = BEOWIRE_OPEN,
	.socket = ID,
	.addr = {.sbw_port = PORT, .sbw_inc = 9},
};

void program_opens_another(void)
{
	struct instance *other = instance_open(&rings, &bw_reliable, &open);

	assert_non_null(other);
	instance_end(other);
}

int callers_begin(void **state)
{
	now = BW_S;
	memset(interface, 0, sizeof(interface));
	interface[0] = (struct beowire_server_iface){.ifindex = 1, .mtu = MTU};
	waiting_n = 0;
	memset(&memory, 0, sizeof(memory));
	memset(&told, 0, sizeof(told));
	rings = (struct rings){.node = 1, .cluster = 1};
	in = instance_open(&rings, &bw_reliable, &open);
	assert_non_null(in);
	instance_run(in);
	return 0;
}

int callers_end(void **state)
{
	waiting_n = 0;
	instance_end(in);
	assert_int_equal(memory.held, 0);
	return 0;
}
