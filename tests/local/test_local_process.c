/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The local link between real processes: everything at once among four of them, and kill -9 in the
 * middle. With the argument "long" more rounds of each.
 */
#include "process.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

/* ---- everything at once ---- */

struct link_state {
	struct bw_local_peer *peer;
	uint64_t sent, received; /* messages */
	bool last;		 /* its farewell came */
};

struct pending {
	uint8_t *buf;
	uint64_t tag, len;
	bool read;
};

static struct {
	struct node node;
	struct link_state link[PROCESSES];
	uint64_t open; /* offers and pulls that have not ended */
} mine;

static int stress_new(void *arg, struct bw_local_peer *p, const struct bw_local_id *id, void **ctx)
{
	for (uint32_t i = 0; i < PROCESSES; i++)
		if (board->engine[i] == id->engine) {
			CHECK(!mine.link[i].peer);
			mine.link[i].peer = p;
			*ctx = &mine.link[i];
			return 0;
		}
	return -ENOENT;
}

static struct pending *pending(uint64_t len, uint64_t tag)
{
	struct pending *x = calloc(1, sizeof(*x));

	CHECK(x);
	x->buf = malloc(len + 1);
	CHECK(x->buf);
	x->len = len;
	x->tag = tag;
	mine.open++;
	return x;
}

static void pending_end(struct pending *x)
{
	free(x->buf);
	free(x);
	mine.open--;
}

#define FAREWELL 100 /* code of the last message */

static void stress_message(void *arg, void *ctx, const struct bw_local_message *m)
{
	struct link_state *s = ctx;

	/* In order, none missing. */
	CHECK(m->imm == s->received++);
	s->last |= m->code == FAREWELL;
	if (!m->is_envelope) {
		CHECK(pattern_holds(m->data, m->len, m->tag));
		return;
	}
	uint64_t len = draw(4) == 0 ? draw(m->len + 1) : m->len;
	struct pending *x = pending(len, m->tag);

	CHECK(bw_local_pull(s->peer, &m->envelope, x->buf, len, x) == 0);
}

static void stress_sent(void *arg, void *ctx, void *op, int status)
{
	CHECK(status == 0);
	pending_end(op);
}

static void stress_pulled(void *arg, void *ctx, void *op, int status, uint64_t len)
{
	struct pending *x = op;

	/* A farewell may be retracted before it is pulled; nothing else is. */
	CHECK(status == 0 && len == x->len);
	if (x->read)
		CHECK(memcmp(x->buf, mine.node.region + x->tag, x->len) == 0);
	else
		CHECK(pattern_holds(x->buf, x->len, x->tag));
	pending_end(x);
}

static void stress_down(void *arg, void *ctx, int status)
{
	struct link_state *s = ctx;

	CHECK(status == -ESHUTDOWN && s->last);
	s->peer = NULL;
}

static void *stress_region(void *arg, void *ctx, uint64_t key, uint64_t off, uint64_t n)
{
	return node_handlers.region(&mine.node, ctx, key, off, n);
}

static const struct bw_local_handlers stress_handlers = {
	.peer_new = stress_new,
	.message = stress_message,
	.sent = stress_sent,
	.pulled = stress_pulled,
	.peer_down = stress_down,
	.region = stress_region,
};

static void stress_message_send(struct link_state *s, uint8_t code)
{
	static uint8_t buf[65536];
	uint64_t tag = draw(1000), len = draw(draw(2) ? 64 : bw_local_send_limit(s->peer));
	int r;

	pattern_fill(buf, len, tag);
	while ((r = bw_local_send(s->peer, code, tag, s->sent, buf, len, NULL)) == -EAGAIN)
		turn(&mine.node);
	CHECK(r == 0);
	s->sent++;
}

static void stress_offer(struct link_state *s)
{
	struct pending *x = pending(draw(draw(2) ? 5000 : LONGEST), draw(1000));
	int r;

	pattern_fill(x->buf, x->len, x->tag);
	while ((r = bw_local_offer(s->peer, 1, x->tag, s->sent, x->buf, x->len, x)) == -EAGAIN)
		turn(&mine.node);
	CHECK(r == 0);
	s->sent++;
}

static void stress_read(struct link_state *s)
{
	uint64_t off = draw(NODE_REGION), len = draw(NODE_REGION - off);
	struct pending *x = pending(len, off);

	x->read = true;
	CHECK(bw_local_read(s->peer, NODE_REGION_KEY, off, x->buf, len, x) == 0);
}

static void stress_step(uint32_t me)
{
	uint32_t to = (uint32_t)draw(PROCESSES);
	struct link_state *s = &mine.link[to];

	if (!s->peer) {
		int r = bw_local_connect(mine.node.link, board->engine[to],
					 1000u + board->engine[to], s, &s->peer);

		CHECK(r == 0);
	}
	switch (draw(8)) {
	case 0:
		stress_read(s);
		break;
	case 1:
	case 2:
		stress_offer(s);
		break;
	default:
		stress_message_send(s, 1);
	}
	if (draw(3) == 0)
		bw_local_poll(mine.node.link, now_ns(), false);
	while (mine.open > 50)
		turn(&mine.node);
}

static bool all_said_farewell(void)
{
	for (int i = 0; i < PROCESSES; i++)
		if (!mine.link[i].last)
			return false;
	return true;
}

static void stress_open(uint32_t me)
{
	struct bw_local_attr attr = {
		.self = {.node = NODE_NUMBER, .cluster = CLUSTER_NUMBER},
		.ring_bytes = me % 2 ? SMALL_RING : 0,
		.handlers = &stress_handlers,
	};

	attr.self.engine = node_number(&attr.claim);
	attr.self.incarnation = 1000u + attr.self.engine;
	CHECK(bw_local_open(&mine.node.link, &attr) == 0);
	mine.node.region = malloc(NODE_REGION);
	pattern_fill(mine.node.region, NODE_REGION, NODE_REGION_KEY);
	board->engine[me] = attr.self.engine;
	__atomic_fetch_add(&board->ready, 1, __ATOMIC_ACQ_REL);
	reach(&board->ready, PROCESSES);
}

static void stress_body(uint32_t me)
{
	seed_set(me + 77);
	stress_open(me);
	for (uint64_t i = 0; i < 3000 * effort; i++)
		stress_step(me);
	for (uint32_t i = 0; i < PROCESSES; i++)
		if (mine.link[i].peer)
			stress_message_send(&mine.link[i], FAREWELL);
	while (mine.open > 0 || !all_said_farewell() || bw_local_busy(mine.node.link))
		turn(&mine.node);
	__atomic_fetch_add(&board->done, 1, __ATOMIC_ACQ_REL);
	/* Serve the others until all have what they want. */
	while (__atomic_load_n(&board->done, __ATOMIC_ACQUIRE) < PROCESSES)
		bw_local_poll(mine.node.link, now_ns(), false);
	bw_local_close(mine.node.link);
}

static void processes__everything_at_once(void **state)
{
	pid_t pid[PROCESSES];

	for (uint32_t i = 0; i < PROCESSES; i++)
		pid[i] = start(stress_body, i);
	for (uint32_t i = 0; i < PROCESSES; i++)
		assert_int_equal(status_of(pid[i]), 0);
}

/* ---- kill -9 ---- */

static uint64_t offered, pulls_begun;
static uint8_t scratch[LONGEST];

static void pull_it(struct node *n, const struct bw_local_message *m)
{
	if (m->is_envelope) {
		n->envelopes = 0;
		pulls_begun++;
		bw_local_pull(n->peer, &m->envelope, scratch, m->len, "it");
	}
}

/* Send, offer, read and poll as fast as possible, for ever or for so many steps. */
static void storm(struct node *n, uint64_t steps)
{
	static uint8_t data[LONGEST];

	for (uint64_t i = 0; i < steps && n->downs == 0; i++) {
		if (n->peer && draw(2) && node_send(n, draw(100), draw(4000)) == 0)
			continue;
		if (n->peer && draw(2) &&
		    bw_local_offer(n->peer, 1, 1, 1, data, draw(LONGEST), "op") == 0)
			offered++;
		if (n->peer && draw(4) == 0 &&
		    bw_local_read(n->peer, NODE_REGION_KEY, 0, scratch, draw(LONGEST), "it") == 0)
			pulls_begun++;
		bw_local_poll(n->link, now_ns(), draw(100) == 0);
	}
}

static void victim(uint32_t seed)
{
	struct node n;

	seed_set(seed + 1000);
	node_open(&n, draw(2) ? SMALL_RING : 0, 0);
	n.quiet = true;
	n.on_message = pull_it;
	CHECK(bw_local_connect(n.link, board->engine[0], 5, NULL, &n.peer) == 0);
	__atomic_store_n(&board->ready, seed + 1, __ATOMIC_RELEASE);
	storm(&n, UINT64_MAX);
}

static void processes__kill_9_in_the_middle(void **state)
{
	for (uint32_t seed = 0; seed < 30 * effort; seed++) {
		int fds = entries("/proc/self/fd");
		struct node n;

		seed_set(seed);
		offered = pulls_begun = 0;
		node_open(&n, 0, 5);
		n.quiet = true;
		n.on_message = pull_it;
		board->engine[0] = n.engine;

		pid_t pid = start(victim, seed);

		while (__atomic_load_n(&board->ready, __ATOMIC_ACQUIRE) <= seed || !n.peer)
			node_poll(&n);
		storm(&n, draw(20000));
		kill(pid, SIGKILL);

		uint64_t begin = now_ns();

		while (n.downs == 0) {
			storm(&n, 100);
			assert_true(now_ns() - begin < STUCK_MS * 1000000ull);
		}
		/* Nothing is waited for any more, and nothing arrived spoilt. */
		assert_int_equal(n.sents, offered);
		assert_int_equal(n.pulleds, pulls_begun);
		assert_int_equal(n.spoilt, 0);
		assert_int_equal(bw_local_counters(n.link)->broken, 0);
		assert_false(bw_local_busy(n.link));
		node_close(&n);
		assert_int_equal(WTERMSIG(status_of(pid)), SIGKILL);
		assert_int_equal(entries("/proc/self/fd"), fds);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, board_setup, board_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(processes__everything_at_once),
		TEST(processes__kill_9_in_the_middle),
	};

	if (argc > 1 && strcmp(argv[1], "long") == 0)
		effort = 50;
	return cmocka_run_group_tests_name("local between processes", tests, NULL, NULL);
}
