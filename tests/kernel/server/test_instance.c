/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An instance of beowire-server between a socket, whose program is this file, and callers, which
 * are engines of this file's: rings, time and memory are the test's. What callers do ends no call
 * of a program that has not sent to them, and takes no more memory than there is for it.
 */
#include "instance.h"
#include "plain.h"

#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB	(1ull << 20)
#define MTU	1500
#define PORT	7
#define ID	3
#define LONG	60000 /* bytes of a message of many frames */
#define WAITING 256   /* frames to callers, at most */

/* ---- time and memory ---- */

static uint64_t now;

static struct {
	uint64_t held, peak; /* bytes that the instance has */
	bool none;	     /* there is no more */
} memory;

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

struct caller {
	void *engine, *grown;
	uint64_t node;
	uint32_t inc;
	uint16_t port;
	uint8_t mac[6];
	uint32_t peer;
	uint32_t taken; /* messages */
	int down;	/* why it lost us */
	uint32_t mute;	/* so many frames of its pass, and the others are lost; 0: all pass */
};

static struct instance *in;
static struct rings rings;

/* What the program was told. */
static struct {
	uint32_t arrived, done, failed;
	uint32_t bytes; /* of the message that arrived last, */
	struct sockaddr_beowire from;
	int error; /* the last one; 0: none */
} told;

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
	r->link[0] = (struct beowire_server_iface){.ifindex = 1, .mtu = MTU};
	return 0;
}

static struct bw_link_addr ours(void)
{
	return (struct bw_link_addr){.len = 6, .bytes = {2, 1}};
}

/* With nothing of what it may have been before. */
static void caller_begin(struct caller *c, uint32_t number)
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

/* Without a word. */
static void caller_free(struct caller *c)
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

/* All that is said at this time between the instance and this caller. What is for others is
 * lost. */
static void settle(struct caller *c)
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

/* So much time passes. */
static void pass(struct caller *c, uint64_t ns)
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

static void caller_meets(struct caller *c)
{
	struct bw_op op = {.type = BW_OP_CONNECT};

	op.connect.engine = PORT;
	op.connect.paths = 1;
	op.connect.path[0] = ours();
	assert_int_equal(bw_reliable.submit(c->engine, &op, now), 0);
	c->peer = op.peer;
}

/* All messages have the same bytes. */
static void caller_posts(struct caller *c, uint32_t bytes)
{
	static _Alignas(8) uint8_t message[sizeof(struct plain_buffer) + LONG];
	struct bw_op op = {.type = BW_OP_SEND, .peer = c->peer};

	op.send.buf = (uintptr_t)message;
	op.send.len = bytes;
	assert_int_equal(bw_reliable.submit(c->engine, &op, now), 0);
}

static void caller_sends(struct caller *c, uint32_t bytes)
{
	caller_posts(c, bytes);
	settle(c);
}

/* A caller whose one message has arrived. */
static void caller_calls(struct caller *c, uint32_t number)
{
	uint32_t before = told.arrived;

	caller_begin(c, number);
	caller_meets(c);
	caller_sends(c, 1);
	assert_int_equal(told.arrived, before + 1);
}

/* It has forgotten the instance, and calls anew: its conversation is reset. */
static void caller_resets(struct caller *c, uint32_t number)
{
	uint32_t before = told.arrived;

	caller_begin(c, number);
	caller_meets(c);
	caller_posts(c, 1);
	pass(c, 5 * BW_S);
	assert_int_equal(told.arrived, before + 1);
	assert_int_equal(bw_reliable.counters(in->engine)->peers, 1);
}

/* ---- the program ---- */

static void program_sends(const struct sockaddr_beowire *to, uint32_t bytes)
{
	static _Alignas(16) uint8_t request[sizeof(struct beowire_record) + LONG];
	struct beowire_record *record = (void *)request;

	*record = (struct beowire_record){.type = BEOWIRE_SEND, .socket = ID, .bytes = bytes};
	record->addr = *to;
	instance_send(in, record);
}

static struct sockaddr_beowire address(const struct caller *c)
{
	struct sockaddr_beowire a = {.sbw_port = c->port, .sbw_ifindex = 1};

	memcpy(a.sbw_mac, c->mac, 6);
	return a;
}

static int begin(void **state)
{
	const struct beowire_record open = {
		.type = BEOWIRE_OPEN,
		.socket = ID,
		.addr = {.sbw_port = PORT, .sbw_inc = 9},
	};

	now = BW_S;
	waiting_n = 0;
	memset(&memory, 0, sizeof(memory));
	memset(&told, 0, sizeof(told));
	rings = (struct rings){.node = 1, .cluster = 1};
	in = instance_open(&rings, &bw_reliable, &open);
	assert_non_null(in);
	instance_run(in);
	return 0;
}

static int end(void **state)
{
	waiting_n = 0;
	instance_end(in);
	assert_int_equal(memory.held, 0);
	return 0;
}

/* ---- whose end is told ---- */

static void end__of_a_stranger_is_not_told(void **state)
{
	struct caller c = {0};

	caller_calls(&c, 1);
	caller_resets(&c, 1);
	assert_int_equal(told.failed, 0);
	caller_free(&c);
}

static void end__of_whom_the_program_has_answered_is_told(void **state)
{
	struct caller c = {0};

	caller_calls(&c, 1);
	program_sends(&told.from, 1);
	settle(&c);
	assert_int_equal(c.taken, 1);
	caller_resets(&c, 1);
	assert_int_equal(told.error, ECONNRESET);
	caller_free(&c);
}

/* First contact was not made yet when the program sent. */
static void end__of_whom_the_program_has_called_is_told(void **state)
{
	struct sockaddr_beowire to;
	struct caller c = {0};

	caller_begin(&c, 1);
	to = address(&c);
	program_sends(&to, 1);
	pass(&c, 10 * BW_MS);
	assert_int_equal(c.taken, 1);
	caller_resets(&c, 1);
	assert_int_equal(told.error, ECONNRESET);
	caller_free(&c);
}

static void end__of_whom_nobody_has_heard_is_told(void **state)
{
	struct caller nobody = {0};
	struct sockaddr_beowire to;

	caller_begin(&nobody, 1);
	nobody.mute = 1;
	to = address(&nobody);
	to.sbw_mac[1] = 1;
	program_sends(&to, 1);
	pass(&nobody, 70 * BW_S);
	assert_int_equal(told.done, 1);
	assert_int_equal(told.error, ETIMEDOUT);
	caller_free(&nobody);
}

/* A message that was begun, of which no more comes. */
static void caller_begins(struct caller *c, uint32_t number)
{
	caller_calls(c, number);
	c->mute = 2;
	caller_sends(c, LONG);
}

static void end__of_half_a_message_is_not_told(void **state)
{
	uint32_t peers;
	struct caller c = {0};

	caller_begins(&c, 1);
	peers = (uint32_t)bw_reliable.counters(in->engine)->peers;
	assert_int_equal(peers, 1);
	pass(&c, 200 * BW_S);
	assert_int_equal(bw_reliable.counters(in->engine)->peers, 0);
	assert_int_equal(told.failed, 0);
	assert_int_equal(told.arrived, 1);
	caller_free(&c);
}

/* ---- what callers take ---- */

/* More of them come, and stay, than there is memory for. */
static void memory__of_callers_is_bounded(void **state)
{
	enum { CALLERS = 40000, MORE = 100 };
	struct caller friend = {0}, c = {0};
	struct sockaddr_beowire to;
	uint32_t i, taken;

	caller_calls(&friend, CALLERS);
	program_sends(&told.from, 1);
	settle(&friend);
	for (i = 0; i < CALLERS; i++) {
		caller_begin(&c, i);
		caller_meets(&c);
		caller_sends(&c, 1);
		now += BW_MS;
	}
	assert_in_range(memory.peak, 40 * MIB, 60 * MIB);
	assert_true(bw_reliable.counters(in->engine)->evicted > 0);
	assert_int_equal(told.failed, 0);

	/* Others that come then find room, */
	now += 2 * BW_S;
	for (i = 0; i < MORE; i++) {
		caller_begin(&c, CALLERS + 1 + i);
		caller_meets(&c);
		taken = told.arrived;
		caller_sends(&c, 1);
		pass(&c, 5 * BW_S);
		assert_int_equal(told.arrived, taken + 1);
	}
	/* and so does the program, whose peer is still there. */
	caller_begin(&c, 2 * CALLERS);
	to = address(&c);
	program_sends(&to, 1);
	pass(&c, 5 * BW_S);
	assert_int_equal(c.taken, 1);
	taken = told.arrived;
	caller_sends(&friend, 1);
	assert_int_equal(told.arrived, taken + 1);
	assert_int_equal(friend.down, 0);
	assert_int_equal(told.failed, 0);
	assert_in_range(memory.peak, 40 * MIB, 60 * MIB);
	caller_free(&friend);
	caller_free(&c);
}

/* What is left to the program is no more than that. */
static void memory__of_the_programs_peers_is_bounded(void **state)
{
	struct sockaddr_beowire to = {.sbw_port = 1, .sbw_ifindex = 1, .sbw_mac = {2, 3}};
	uint32_t i;

	for (i = 0; i < 40000 && !told.failed; i++) {
		memcpy(to.sbw_mac + 2, &i, sizeof(i));
		program_sends(&to, 1);
		waiting_n = 0;
	}
	assert_in_range(i, 10000, 39999);
	assert_int_equal(told.error, ENOBUFS);
	assert_in_range(memory.peak, 60 * MIB, 80 * MIB);
}

/* Messages that many have begun leave room for one that is whole, once it is known that they stand
 * still. */
static void memory__of_messages_that_begin_is_bounded(void **state)
{
	enum { CALLERS = 1500 };
	struct caller c = {0};
	uint32_t i, taken;

	for (i = 0; i < CALLERS; i++)
		caller_begins(&c, i);
	assert_in_range(memory.peak, 40 * MIB, 56 * MIB);
	taken = told.arrived;
	caller_calls(&c, CALLERS);
	caller_sends(&c, LONG);
	pass(&c, 10 * BW_S);
	assert_int_equal(told.arrived, taken + 2);
	assert_int_equal(told.bytes, LONG);
	assert_int_equal(told.failed, 0);
	assert_int_equal(c.down, 0);
	assert_in_range(memory.peak, 40 * MIB, 56 * MIB);
	caller_free(&c);
}

/* The instance's handle of a caller that has called. */
static uint32_t handle(const struct caller *c)
{
	const struct peer *peer;

	for (uint32_t i = 0; i < in->peers.buckets; i++)
		for (peer = in->peers.bucket[i]; peer; peer = peer->next)
			if (peer->addr.sbw_port == c->port)
				return peer->handle;
	return 0;
}

/* Whose messages wait for one that there was no room for does not keep anybody out. A program that
 * has sent to who does is told that he was given up. */
static void memory__is_left_to_whom_it_holds_up(void **state)
{
	static uint64_t taken[(MEMORY_ARRIVING_MAX + MEMORY_ARRIVING_NEXT) / LONG];
	struct caller held = {0}, holder = {0};
	uint32_t who[2], n = 0;

	caller_calls(&held, 1);
	caller_calls(&holder, 2);
	program_sends(&told.from, 1);
	settle(&holder);
	who[0] = handle(&held);
	who[1] = handle(&holder);
	taken[n++] = in->ops.buf_get(in, who[0], LONG, false);
	while ((taken[n] = in->ops.buf_get(in, who[1], LONG, true)))
		n++;
	now += MEMORY_ARRIVING_STALE - BW_MS;
	assert_int_equal(in->ops.buf_get(in, who[0], LONG, true), 0);
	now += BW_MS;
	instance_run(in);
	instance_run(in);
	assert_non_null(peers_find(&in->peers, who[0]));
	assert_null(peers_find(&in->peers, who[1]));
	assert_int_equal(told.failed, 1);
	assert_int_equal(told.error, ETIMEDOUT);
	while (n)
		in->ops.buf_put(in, taken[--n]);
	caller_free(&held);
	caller_free(&holder);
}

/* Nothing ends for want of memory: a send fails, and what comes comes later. */
static void memory__that_is_not_there_ends_nothing(void **state)
{
	struct caller c = {0}, other = {0};

	caller_calls(&c, 1);
	memory.none = true;
	program_sends(&told.from, 100);
	assert_int_equal(told.done, 1);
	assert_int_equal(told.error, ENOMEM);
	caller_posts(&c, LONG);
	pass(&c, 100 * BW_MS);
	assert_int_equal(told.arrived, 1);
	memory.none = false;
	pass(&c, 5 * BW_S);
	assert_int_equal(told.arrived, 2);
	assert_int_equal(told.bytes, LONG);

	/* Who cannot be noted down is given up, and does not take what it said for taken. */
	caller_begin(&other, 2);
	caller_meets(&other);
	memory.none = true;
	pass(&other, 10 * BW_MS);
	assert_int_not_equal(other.down, 0);
	memory.none = false;
	caller_free(&other);
	caller_free(&c);
}

#define test(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(end__of_a_stranger_is_not_told),
		test(end__of_whom_the_program_has_answered_is_told),
		test(end__of_whom_the_program_has_called_is_told),
		test(end__of_whom_nobody_has_heard_is_told),
		test(end__of_half_a_message_is_not_told),
		test(memory__of_callers_is_bounded),
		test(memory__of_the_programs_peers_is_bounded),
		test(memory__of_messages_that_begin_is_bounded),
		test(memory__is_left_to_whom_it_holds_up),
		test(memory__that_is_not_there_ends_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
