/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Callers prove their address before anything is kept of them: what a stranger draws is one short
 * frame for each of his, and no memory.
 */
#include "groups.h"
#include "peer.h"

#include <stdlib.h>

static void open_strangers(void)
{
	world.strangers = true;
	node_open(A);
	node_open(B);
}

/* A's first HELLO to B, as anybody could make it up. */
static struct frame *first_hello(void)
{
	open_strangers();
	connect_to(A, B);
	flush(A);
	return take(0);
}

static void caller__is_asked_for_a_cookie(void **state)
{
	open_strangers();
	connect_to(A, B);
	flush(A);
	deliver(0);
	assert_int_equal(count(B)->peers, 0);
	settle();
	expect_frames("A>B HELLO", "B>A CHALLENGE", "A>B HELLO", "B>A HELLO answer", NULL);
	expect_events("B PEER_UP A", "A PEER_UP B", "A PATH B link 0 mtu 1280", NULL);
	assert_int_equal(count(B)->challenges_tx, 1);
	assert_int_equal(count(A)->challenges_rx, 1);
	assert_int_equal(path(A, B, 0)->rtt.srtt, 2 * HOP_NS);
}

static void caller__that_is_called_needs_none(void **state)
{
	open_strangers();
	connect_to(A, B);
	connect_to(B, A);
	flush(A);
	flush(B);
	deliver_all();
	settle();
	assert_int_equal(frames_with("CHALLENGE"), 0);
	assert_int_equal(events_with("PEER_UP"), 2);
}

static void caller__that_is_lost_on_the_way_asks_again(void **state)
{
	unsigned int lost;

	for (lost = 0; lost < 3; lost++) {
		unsigned int i;

		open_strangers();
		connect_to(A, B);
		for (i = 0; i <= lost; i++) {
			flush(i % 2 ? B : A);
			if (i < lost)
				deliver(0);
		}
		drop(0);
		run(10 * BW_MS);
		assert_int_equal(events_with("A PEER_UP B"), 1);
		assert_int_equal(count(B)->peers, 1);
		node_kill(A);
		node_kill(B);
		forget_logs();
	}
}

static void stranger__draws_no_more_than_he_sends(void **state)
{
	struct frame *f = first_hello();
	uint32_t i, bytes = 0;

	node_kill(A);
	for (i = 0; i < 1000; i++) {
		struct frame *g = frame_copy(f);
		struct bw_hello *b = frame_body(g);

		g->place = (uint8_t)(i % 200 + 1);
		b->node += i;
		b->inc += i;
		frame_hdr(g)->src_engine = b->engine = (uint16_t)i;
		frame_seal(g);
		assert_int_equal(receive(g), 0);
		flush(B);
		while (world.wire_n) {
			assert_int_equal(frame_type(world.wire[0]), BW_FRAME_CHALLENGE);
			bytes += world.wire[0]->len;
			drop(0);
		}
	}
	assert_int_equal(count(B)->challenges_tx, 1000);
	assert_true(bytes <= 1000 * f->len);
	forget_logs();
	run(120 * BW_S);
	assert_int_equal(frames_with("B>"), 0);
	assert_int_equal(events_with("PEER"), 0);
	assert_int_equal(count(B)->peers, 0);
	assert_int_equal(world.node[B].grown_n, 0);
	frame_free(f);
}

/* Frames to strangers wait in a bounded place. */
static void stranger__in_a_hurry_is_not_answered(void **state)
{
	struct frame *f = first_hello();
	int i;

	for (i = 0; i < BW_STRAYS; i++)
		assert_int_equal(receive(frame_copy(f)), 0);
	assert_int_equal(receive(frame_copy(f)), -BW_DROP_NO_BUFFER);
	frame_free(f);
	run(10 * BW_MS);
	assert_int_equal(events_with("A PEER_UP B"), 1);
}

/* A's HELLO with the cookie that B gave it, not delivered yet. */
static struct frame *cookie_hello(void)
{
	struct frame *f;

	open_strangers();
	connect_to(A, B);
	flush(A);
	deliver(0);
	flush(B);
	deliver(0);
	flush(A);
	f = take(0);
	assert_int_not_equal(((struct bw_hello *)frame_body(f))->cookie, 0);
	return f;
}

static void cookie__is_good_at_one_address_for_one_caller(void **state)
{
	struct frame *f = cookie_hello(), *g;
	struct bw_hello *b;
	int i;

	for (i = 0; i < 6; i++) {
		g = frame_copy(f);
		b = frame_body(g);
		g->place += i == 0;
		b->node += i == 1;
		b->inc += i == 2;
		b->engine += i == 3;
		frame_hdr(g)->src_engine = b->engine;
		b->cookie += i == 4;
		b->cookie = i == 5 ? 0 : b->cookie;
		frame_seal(g);
		assert_int_equal(receive(g), 0);
		assert_int_equal(count(B)->peers, 0);
		assert_int_equal(count(B)->challenges_tx, 2 + i);
	}
	assert_int_equal(receive(f), 0);
	assert_int_equal(count(B)->peers, 1);
}

static void cookie__is_good_for_two_periods(void **state)
{
	struct frame *f = cookie_hello();
	uint64_t period = 1ull << 35, challenges = count(B)->challenges_tx;

	node_kill(A);
	pass(period - world.now % period + period - 1);
	assert_int_equal(receive(frame_copy(f)), 0);
	assert_int_equal(count(B)->challenges_tx, challenges);
	pass(1);
	assert_int_equal(receive(f), 0);
	assert_int_equal(count(B)->challenges_tx, challenges + 1);
}

static void cookie__is_good_with_one_incarnation(void **state)
{
	struct frame *f = cookie_hello();

	node_kill(B);
	node_open(B);
	assert_int_equal(receive(f), 0);
	assert_int_equal(count(B)->peers, 0);
	assert_int_equal(count(B)->challenges_tx, 1);
}

static void challenge__of_a_stranger_is_dropped(void **state)
{
	struct bw_challenge *c;
	struct frame *f, *g;

	open_strangers();
	connect_to(A, B);
	flush(A);
	deliver(0);
	flush(B);
	f = take(0);
	assert_int_equal(f->len, 56);
	g = frame_copy(f);
	frame_hdr(g)->conn++;
	frame_seal(g);
	assert_int_equal(receive(g), -BW_DROP_HANDLE);
	g = frame_copy(f);
	frame_hdr(g)->token++;
	frame_seal(g);
	assert_int_equal(receive(g), -BW_DROP_HANDLE);
	g = frame_copy(f);
	g->place++;
	assert_int_equal(receive(g), -BW_DROP_ADDRESS);
	g = frame_copy(f);
	c = frame_body(g);
	c->nonce++;
	frame_seal(g);
	assert_int_equal(receive(g), -BW_DROP_ECHO);
	g = frame_copy(f);
	g->bytes[40]++;
	assert_int_equal(receive(g), -BW_DROP_HEADER);
	g = frame_copy(f);
	g->len -= 8;
	frame_hdr(g)->len -= 8;
	frame_seal(g);
	assert_int_equal(receive(g), -BW_DROP_SHORT);
	assert_int_equal(count(A)->challenges_rx, 0);
	assert_int_equal(path(A, B, 0)->hello.cookies.known, 0);
	assert_int_equal(receive(f), 0);
	assert_int_equal(path(A, B, 0)->hello.cookies.known, 1);
}

static enum fate spoil_cookies(const struct frame *f)
{
	struct bw_hello *b = frame_body(f);

	if (frame_type(f) == BW_FRAME_HELLO && b->cookie) {
		b->cookie ^= 1;
		frame_seal((struct frame *)(uintptr_t)f);
	}
	return PASS;
}

/* Two that never agree, as one sees other addresses than the other has: each repetition is answered
 * once more, and not without end. */
static void challenge__that_comes_again_and_again_is_answered_rarely(void **state)
{
	open_strangers();
	world.fate = spoil_cookies;
	connect_to(A, B);
	run(100 * BW_MS);
	assert_int_equal(frames_with("A>B HELLO"), 8); /* 7, the first of them said again at once */
	assert_int_equal(count(B)->peers, 0);
}

/* Who knows no number that the engine has drawn does not know the handles by which it is found. */
static void caller__does_not_know_the_handles_of_others(void **state)
{
	uint32_t first, second;

	open_strangers();
	connect_to(A, B);
	first = peer(A, B)->wire;
	node_kill(A);
	node_open(A);
	connect_to(A, B);
	second = peer(A, B)->wire;
	/* page, slot and generation of the first handle are other ones in each engine */
	assert_int_not_equal(first / BW_TABLE_PAGE % BW_TABLE_PAGES,
			     second / BW_TABLE_PAGE % BW_TABLE_PAGES);
	assert_int_not_equal(first % BW_TABLE_PAGE, second % BW_TABLE_PAGE);
	assert_int_not_equal(first >> BW_HANDLE_BITS, second >> BW_HANDLE_BITS);
}

/* A's host knows B by its address alone. A HELLO from there that anybody may have sent, or that B
 * said in a former life, does not make A look for another B than the one that answers. */
static void caller__does_not_say_which_life_the_host_means(void **state)
{
	struct frame *hello, *forged;
	struct bw_op op;

	open_strangers();
	connect_to(B, A);
	flush(B);
	forged = take(0);
	op = op_connect(A, B);
	op.connect.node = 0;
	op.connect.inc = 0;
	assert_int_equal(submit(A, &op), 0);
	world.node[A].peer[B] = op.peer;
	flush(A);
	hello = take(0);
	drop_all();
	((struct bw_hello *)frame_body(forged))->inc += 9;
	frame_seal(forged);
	receive(forged);
	flush(A);
	receive(hello);
	run(BW_S);
	assert_int_equal(events_with("PEER_DOWN"), 0);
	assert_int_equal(peer(A, B)->inc, world.node[B].cfg.incarnation);
	assert_true(peer(A, B)->confirmed);
	assert_int_equal(count(A)->peers, 1);
}

/* A handle may become known. Who says HELLO from B's address, in its name and with a handle and
 * token of his own, does not keep A from the real B. */
static void caller__that_guesses_a_handle_is_not_the_peer(void **state)
{
	struct frame *f;
	struct bw_hello *b;

	f = first_hello(); /* A's, of which nobody else sees anything */
	node_kill(B);
	post(A, B, 5, 8);
	b = frame_body(f);
	f->from = B;
	f->to = A;
	frame_hdr(f)->dst_engine = world.node[A].cfg.engine;
	frame_hdr(f)->src_engine = b->engine = world.node[B].cfg.engine;
	frame_hdr(f)->token = 0;
	frame_hdr(f)->conn = peer(A, B)->wire; /* as guessed */
	b->node = world.node[B].cfg.node;
	b->inc = world.node[B].cfg.incarnation;
	b->conn = 0x77777;
	b->token = 0x1234;
	b->nonce = 99;
	b->echo = 0;
	b->target_node = 0;
	b->target_inc = 0;
	memset(b->name, 0, sizeof(b->name));
	b->name[0] = 'B';
	frame_seal(f);
	assert_int_equal(receive(f), world.keyed ? -BW_DROP_KEY : 0);
	assert_int_equal(peer(A, B)->conn, world.keyed ? 0 : 0x77777);
	assert_false(peer(A, B)->confirmed);
	flush(A);
	drop_all();
	node_open(B);
	run(5 * BW_S);
	assert_int_equal(events_with("B MESSAGE 5 len 8"), 1);
	assert_int_equal(events_with("A SENT 5"), 1);
	assert_int_equal(events_with("PEER_DOWN"), 0);
	assert_true(peer(A, B)->confirmed);
}

/* A CHALLENGE of this HELLO of A's, said by who has seen it and no key. */
static struct frame *forged_challenge(const struct frame *hello, uint64_t cookie)
{
	const struct bw_hello *b = frame_body(hello);
	struct frame *f = calloc(1, sizeof(*f));
	struct bw_challenge *c;

	f->from = B;
	f->to = A;
	f->len = sizeof(struct bw_hdr) + sizeof(*c);
	f->bytes = calloc(1, f->len);
	*frame_hdr(f) = (struct bw_hdr){.magic = BW_MAGIC,
					.version = BW_VERSION,
					.type = BW_FRAME_CHALLENGE,
					.cluster = CLUSTER,
					.dst_engine = 1,
					.src_engine = 2,
					.token = b->token,
					.conn = b->conn,
					.len = sizeof(*c)};
	c = frame_body(f);
	c->cookie = cookie;
	c->nonce = b->nonce;
	frame_seal(f);
	return f;
}

/* B's answer to A's first HELLO, before and behind `n` forged ones each. What A then says at once
 * is delivered; is A a peer of B's? */
static bool meets_among_forged(unsigned int n, int order)
{
	struct frame *hello = first_hello();
	unsigned int i;

	give(frame_copy(hello));
	deliver(0);
	for (i = 0; i < n && order; i++)
		receive(forged_challenge(hello, 100 + i));
	flush(B);
	deliver(0);
	for (i = 0; i < n && !order; i++)
		receive(forged_challenge(hello, 100 + i));
	frame_free(hello);
	flush(A);
	while (world.wire_n) {
		assert_int_equal(world.wire[0]->to, B);
		deliver(0);
	}
	return count(B)->peers == 1;
}

/* Wrong cookies, told by who has seen HELLO: A shows the right one as well, at once. */
static void challenge__that_is_wrong_keeps_nobody_apart(void **state)
{
	int order;

	for (order = 0; order < 2; order++) {
		assert_true(meets_among_forged(BW_COOKIES - 1, order));
		run(10 * BW_MS);
		assert_int_equal(events_with("PEER_UP"), 2);
		node_kill(A);
		node_kill(B);
		forget_logs();
	}
}

/* He makes A say no more than that. */
static void challenge__that_is_wrong_draws_few_hellos(void **state)
{
	struct frame *hello = first_hello();
	unsigned int i;

	node_kill(B);
	forget_logs();
	for (i = 0; i < 1000; i++) {
		receive(forged_challenge(hello, 100 + i));
		flush(A);
	}
	assert_int_equal(frames_with("A>B HELLO"), BW_COOKIES_AT_ONCE);
	assert_int_equal(path(A, B, 0)->hello.cookies.known, BW_COOKIES);
	frame_free(hello);
}

/* Both that are remembered take turns in what is repeated. */
static void cookies__take_turns(void **state)
{
	struct bw_cookies c = {0};
	uint64_t i;

	assert_int_equal(bw_cookies_next(&c), 0);
	for (i = 1; i <= 3; i++) {
		assert_true(bw_cookies_add(&c, i));
		assert_true(bw_cookies_add(&c, i)); /* it still waits */
		assert_int_equal(c.at_once, i == 1 ? 1 : 2);
	}
	for (i = 0; i < 2; i++) { /* the first one made room for the third */
		assert_int_equal(bw_cookies_next(&c), 2);
		assert_int_equal(bw_cookies_next(&c), 3);
	}
	bw_cookies_again(&c);
	for (i = 3; i >= 2; i--) {
		assert_true(bw_cookies_add(&c, i));
		assert_int_equal(bw_cookies_next(&c), i); /* before the other one */
		assert_false(bw_cookies_add(&c, i));
	}
	bw_cookies_unshown(&c);
	assert_int_equal(bw_cookies_next(&c), 2);
}

/* A cookie whose HELLO did not leave is shown by the next. */
static void cookie__that_did_not_leave_is_shown_again(void **state)
{
	struct frame *hello = first_hello();
	struct bw_tx_frame f;

	receive(forged_challenge(hello, 100));
	receive(forged_challenge(hello, 101));
	assert_true(bw_reliable.next_frame(world.node[A].mem, &f, world.now));
	bw_reliable.unsent(world.node[A].mem, world.now);
	flush(A);
	assert_int_equal(world.wire_n, 2);
	assert_int_equal(((struct bw_hello *)frame_body(world.wire[0]))->cookie ^
				 ((struct bw_hello *)frame_body(world.wire[1]))->cookie,
			 100 ^ 101);
	frame_free(hello);
}

/* The peer's interface was exchanged: its new address is to be proven before anybody asks there. */
static void move__needs_a_cookie_first(void **state)
{
	open_strangers();
	connect_to(A, B);
	connect_to(B, A);
	post(A, B, 1, 8);
	run(BW_S);
	forget_logs();
	world.node[B].place = 9;
	path(B, A, 0)->hello.due = true;
	bw_peer_ready(engine(B), peer(B, A));
	flush(B);
	deliver(0);
	assert_int_equal(path(A, B, 0)->hello.move.nonce, 0);
	run(10 * BW_MS);
	assert_int_equal(frames_with("A>B CHALLENGE"), 1);
	assert_int_equal(path(A, B, 0)->to.bytes[2], 9);
}

/* Another incarnation of a peer is said to live: the peer is asked only if somebody proves to be
 * there. */
static void stranger__does_not_make_us_ask_others(void **state)
{
	struct bw_hello *b;
	struct frame *f;

	world.strangers = true;
	node_open(A);
	node_open(B);
	connect_to(B, A);
	connect_to(A, B);
	run(BW_S);
	forget_logs();
	path(A, B, 0)->hello.due = true;
	bw_peer_ready(engine(A), peer(A, B));
	flush(A);
	f = take(0);
	b = frame_body(f);
	b->inc++;
	f->place++;
	frame_seal(f);
	forget_logs();
	assert_int_equal(receive(f), 0);
	flush(B);
	expect_frames("B>A CHALLENGE lost", NULL);
}

static void ping__is_as_long_as_its_refusal(void **state)
{
	struct frame *f, *g;

	meet(A, B);
	watch(A, B, true);
	run(16 * BW_S);
	node_restart(B);
	forget_logs();
	while (!world.wire_n) {
		pass(deadline() - world.now);
		flush(A);
	}
	f = take(0);
	assert_int_equal(f->len, FRAME_PING);
	g = frame_copy(f); /* what is shorter is not refused */
	g->len = frame_hdr(g)->len = sizeof(struct bw_hdr) + sizeof(struct bw_ackblk);
	frame_hdr(g)->len -= sizeof(struct bw_hdr);
	frame_seal(g);
	assert_int_equal(receive(g), -BW_DROP_HANDLE);
	flush(B);
	assert_int_equal(world.wire_n, 0);
	assert_int_equal(receive(f), -BW_DROP_HANDLE);
	flush(B);
	assert_int_equal(world.wire_n, 1);
	assert_int_equal(world.wire[0]->len, FRAME_PING);
}

int cookie_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(caller__is_asked_for_a_cookie),
		TEST(caller__that_is_called_needs_none),
		TEST(caller__that_is_lost_on_the_way_asks_again),
		TEST(stranger__draws_no_more_than_he_sends),
		TEST(stranger__in_a_hurry_is_not_answered),
		TEST(cookie__is_good_at_one_address_for_one_caller),
		TEST(cookie__is_good_for_two_periods),
		TEST(cookie__is_good_with_one_incarnation),
		TEST(challenge__of_a_stranger_is_dropped),
		TEST(challenge__that_comes_again_and_again_is_answered_rarely),
		TEST(caller__does_not_know_the_handles_of_others),
		TEST(caller__that_guesses_a_handle_is_not_the_peer),
		TEST(caller__does_not_say_which_life_the_host_means),
		TEST(challenge__that_is_wrong_keeps_nobody_apart),
		TEST(challenge__that_is_wrong_draws_few_hellos),
		TEST(cookies__take_turns),
		TEST(cookie__that_did_not_leave_is_shown_again),
		TEST(move__needs_a_cookie_first),
		TEST(stranger__does_not_make_us_ask_others),
		TEST(ping__is_as_long_as_its_refusal),
	};

	return cmocka_run_group_tests_name("cookie", tests, NULL, NULL);
}
