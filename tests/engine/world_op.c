/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Operations of the test world, and the comparison of its logs; see world.h. */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>

struct bw_op op_connect(int n, int to)
{
	struct bw_op op = {.type = BW_OP_CONNECT};

	op.connect.node = world.node[to].cfg.node;
	op.connect.engine = world.node[to].cfg.engine;
	op.connect.inc = world.node[to].cfg.incarnation;
	op.connect.paths = 1;
	op.connect.path[0] = address(to, 0);
	return op;
}

void connect_to(int n, int to)
{
	struct bw_op op = op_connect(n, to);

	assert_int_equal(submit(n, &op), 0);
	world.node[n].peer[to] = op.peer;
}

/* A buffer of an operation of node n that ends with an event. */
static struct buffer *operand(int n, enum bw_op_type use, uint64_t tag, uint64_t len)
{
	struct buffer *b = buffer_new(n, len);

	b->use = use;
	b->cookie = b->seed = tag;
	if (use != BW_OP_PULL)
		pattern(tag, 0, b->bytes, len);
	return b;
}

struct bw_op op_send(int n, int to, uint64_t tag, uint32_t len)
{
	struct bw_op op = {.type = BW_OP_SEND, .peer = world.node[n].peer[to], .cookie = tag};
	struct buffer *b = operand(n, BW_OP_SEND, tag, len);

	op.send.buf = len ? (uint64_t)(uintptr_t)b : 0;
	op.send.tag = tag;
	op.send.len = len;
	return op;
}

void post(int n, int to, uint64_t tag, uint32_t len)
{
	struct bw_op op = op_send(n, to, tag, len);

	assert_int_equal(submit(n, &op), 0);
}

uint64_t expose(int n, int to, uint64_t tag, uint64_t len)
{
	struct bw_op op = {.type = BW_OP_EXPOSE, .peer = world.node[n].peer[to], .cookie = tag};
	struct buffer *b = operand(n, BW_OP_EXPOSE, tag, len);

	op.expose.buf = (uint64_t)(uintptr_t)b;
	op.expose.len = len;
	assert_int_equal(submit(n, &op), 0);
	assert_int_not_equal(op.expose.key, 0);
	b->key = op.expose.key;
	return op.expose.key;
}

uint64_t pull(int n, int to, uint64_t key, uint64_t tag, uint64_t off, uint64_t len, uint32_t flags)
{
	struct bw_op op = {.type = BW_OP_PULL, .peer = world.node[n].peer[to], .cookie = tag};
	struct buffer *b = operand(n, BW_OP_PULL, tag, len), *region;

	for (region = world.buffers; region; region = region->next)
		if (region->key == key)
			b->seed = region->seed;
	b->seed_off = off;
	op.pull.key = key;
	op.pull.off = off;
	op.pull.len = len;
	op.pull.buf = len ? (uint64_t)(uintptr_t)b : 0;
	op.pull.flags = flags;
	assert_int_equal(submit(n, &op), 0);
	return op.pull.id;
}

int retract(int n, uint64_t key)
{
	struct bw_op op = {.type = BW_OP_RETRACT};

	op.expose.key = key;
	return submit(n, &op);
}

int forbid(int n, uint64_t key)
{
	struct bw_op op = {.type = BW_OP_FORBID, .forbid.key = key};

	return submit(n, &op);
}

int cancel(int n, uint64_t pull_id)
{
	struct bw_op op = {.type = BW_OP_CANCEL_PULL, .pull_id = pull_id};

	return submit(n, &op);
}

struct frame *hello_of_the_dead(void)
{
	struct frame *hello;

	node_open(C);
	connect_to(C, B);
	flush(C);
	hello = take(0);
	node_kill(C);
	return hello;
}

int stranger_call(const struct frame *hello, uint32_t n)
{
	struct frame *f = frame_copy(hello);
	struct bw_hello *b = frame_body(f);
	int r;

	b->node = 0x10000 + n;
	b->inc = n + 1;
	f->place = (uint8_t)(n % 200 + 1);
	frame_seal(f);
	r = receive(f);
	flush(B);
	drop_all();
	return r;
}

void disconnect(int n, int to)
{
	struct bw_op op = {.type = BW_OP_DISCONNECT, .peer = world.node[n].peer[to], .on = true};

	assert_int_equal(submit(n, &op), 0);
}

void watch(int n, int to, bool on)
{
	struct bw_op op = {.type = BW_OP_WATCH, .peer = world.node[n].peer[to], .on = on};

	assert_int_equal(submit(n, &op), 0);
}

void pressure(int n, bool on)
{
	struct bw_op op = {.type = BW_OP_PRESSURE, .on = on};

	assert_int_equal(submit(n, &op), 0);
}

void host_region(int n, uint64_t key, uint64_t tag, uint64_t len)
{
	struct buffer *b = operand(n, BW_OP_EXPOSE, tag, len);

	b->key = key;
	world.node[n].host_key = key;
	world.node[n].host_len = len;
	world.node[n].host_buf = (uint64_t)(uintptr_t)b;
}

void open_keyed(int n, uint8_t key)
{
	world.node[n].cfg.keyed = key != 0;
	memset(world.node[n].cfg.key, key, sizeof(world.node[n].cfg.key));
	node_open(n);
}

void meet_keyed(void)
{
	world.strangers = true;
	open_keyed(A, 1);
	open_keyed(B, 1);
	connect_to(A, B);
	connect_to(B, A);
	post(A, B, 1, 8);
	post(B, A, 2, 8);
	run(BW_S);
	assert_int_equal(events_with("MESSAGE"), 2);
	forget_logs();
}

void meet(int n, int m)
{
	if (!world.node[n].mem)
		node_open(n);
	if (!world.node[m].mem)
		node_open(m);
	connect_to(n, m);
	run(10 * BW_MS);
	assert_int_equal(path(n, m, 0)->state, BW_PATH_UP);
	assert_int_equal(path(m, n, 0)->state, BW_PATH_UP);
	forget_logs();
}

static void expect_log(char *log, const char *line, va_list args)
{
	size_t room = 1;
	va_list again;
	const char *l;
	char *want;

	va_copy(again, args);
	for (l = line; l; l = va_arg(again, const char *))
		room += strlen(l) + 1;
	va_end(again);
	want = calloc(1, room);
	for (l = line; l; l = va_arg(args, const char *)) {
		strcat(want, l);
		strcat(want, "\n");
	}
	if (strcmp(want, log)) {
		print_error("expected:\n%sgot:\n%s", want, log);
		free(want);
		fail_msg("the log differs");
	}
	free(want);
	log[0] = 0;
}

void expect_frames(const char *line, ...)
{
	va_list args;

	va_start(args, line);
	expect_log(world.frames, line, args);
	va_end(args);
}

void expect_events(const char *line, ...)
{
	va_list args;

	va_start(args, line);
	expect_log(world.events, line, args);
	va_end(args);
}

void expect_drop(int n, enum bw_drop why, uint64_t times)
{
	if (count(n)->drop[why] != times)
		fail_msg("%c dropped %llu frames for \"%s\", expected %llu", 'A' + n,
			 (unsigned long long)count(n)->drop[why], bw_drop_name(why),
			 (unsigned long long)times);
}

void forget_logs(void)
{
	world.frames[0] = world.events[0] = 0;
}

static unsigned int lines_with(const char *log, const char *text)
{
	unsigned int n = 0;

	while (*log) {
		const char *end = strchr(log, '\n');
		const char *hit = strstr(log, text);

		n += hit && hit < end;
		log = end + 1;
	}
	return n;
}

unsigned int frames_with(const char *text)
{
	return lines_with(world.frames, text);
}

unsigned int events_with(const char *text)
{
	return lines_with(world.events, text);
}
