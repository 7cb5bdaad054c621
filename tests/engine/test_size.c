/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The frame size of a path: finding the one that passes, and falling back when it no longer does.
 */
#include "groups.h"

static uint32_t passes; /* longest frame that the network between the nodes carries */
static bool dead;	/* it carries none */

static enum fate network(const struct frame *f)
{
	return f->len > passes || dead ? LOSE : PASS;
}

static void links(uint32_t mtu, uint32_t carried)
{
	int n, l;

	passes = carried;
	dead = false;
	world.fate = network;
	for (n = 0; n < NODES; n++)
		for (l = 0; l < 8; l++)
			world.node[n].cfg.link_mtu[l] = mtu;
}

static void size__common_maximum_is_tried_first(void **state)
{
	links(9000, 9000);
	world.node[B].cfg.link_mtu[0] = 4000;
	node_open(A);
	node_open(B);
	connect_to(A, B);
	settle();
	assert_int_equal(frames_with("A>B DATA 1 now [PAD] of 4000"), 1);
	run(10 * BW_MS);
	assert_int_equal(path(A, B, 0)->pmtu.mtu, 4000);
	assert_int_equal(path(B, A, 0)->pmtu.mtu, 4000);
	assert_int_equal(events_with("A PATH B link 0 mtu 4000"), 1);
	forget_logs();
	post(A, B, 1, 3800);
	settle();
	assert_int_equal(frames_with("[MESSAGE 0 0+3800/3800]"), 1);
}

static void size__search_ends_near_what_passes(void **state)
{
	links(9000, 4321);
	node_open(A);
	node_open(B);
	connect_to(A, B);
	run(BW_S);
	assert_in_range(path(A, B, 0)->pmtu.mtu, 4321 - BW_PROBE_GRAIN, 4321);
	assert_int_equal(path(A, B, 0)->pmtu.probe, 0);
	assert_int_equal(count(A)->backoffs, 0); /* lost probes are no congestion */
	assert_int_equal(path(A, B, 0)->cc.cwnd, BW_CWND_INITIAL);
	assert_true(path(A, B, 0)->pmtu.fail > path(A, B, 0)->pmtu.mtu);
	assert_int_equal(deadline(), BW_NEVER);
}

static void size__three_lost_probes_are_needed(void **state)
{
	links(2000, 1999);
	node_open(A);
	node_open(B);
	connect_to(A, B);
	run(BW_S);
	assert_int_equal(frames_with("A>B DATA") > 0, 1);
	/* Three by each side, and the first one, behind which nothing told silence from size. */
	assert_int_equal(frames_with("of 2000 lost"), 8);
}

/* A peer that stands still when the size is searched is silent to frames of all sizes. */
static void size__silence_says_nothing_of_it(void **state)
{
	links(9000, 9000);
	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	deliver_all();
	flush(B);
	deliver_all();
	dead = true;
	run(200 * BW_MS);
	assert_int_equal(frames_with("[PAD] of 9000 lost"), 1); /* the next waits for an answer */
	dead = false;
	run(5 * BW_S);
	assert_int_equal(path(A, B, 0)->pmtu.mtu, 9000);
	assert_int_equal(path(B, A, 0)->pmtu.mtu, 9000);
}

static void size__messages_travel_while_it_is_searched(void **state)
{
	links(9000, 1280);
	node_open(A);
	node_open(B);
	connect_to(A, B);
	post(A, B, 1, 20000);
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE 1"), 1);
	assert_int_equal(path(A, B, 0)->pmtu.mtu, 1280);
}

static void size__links_below_the_base(void **state)
{
	links(576, 576);
	meet(A, B);
	assert_int_equal(path(A, B, 0)->pmtu.mtu, 576);
	post(A, B, 1, 2000);
	run(BW_MS);
	assert_int_equal(frames_with("[MESSAGE 0 0+472/2000]"), 1);
	assert_int_equal(events_with("B MESSAGE 1 len 2000"), 1);
}

static void size__a_link_too_small_is_refused(void **state)
{
	struct bw_op op = op_connect(A, B);

	links(575, 9000);
	node_open(A);
	assert_int_equal(submit(A, &op), -EINVAL);
}

static void black_hole__falls_back_and_searches_again(void **state)
{
	int i;

	links(9000, 9000);
	meet(A, B);
	run(BW_S);
	assert_int_equal(path(A, B, 0)->pmtu.mtu, 9000);
	passes = 3000;
	for (i = 0; i < 30; i++)
		post(A, B, (uint64_t)i, 8000);
	post(A, B, 99, 8);
	run(5 * BW_S);
	assert_int_equal(events_with("B MESSAGE"), 31);
	assert_int_equal(events_with("A SENT"), 31);
	assert_in_range(path(A, B, 0)->pmtu.mtu, 3000 - BW_PROBE_GRAIN, 3000);
	assert_true(events_with("A PATH B link 0 mtu 1280") > 0);
}

static void black_hole__path_that_passes_only_small_frames(void **state)
{
	links(9000, 700); /* HELLO passes, not even the base size does */
	node_open(A);
	node_open(B);
	connect_to(A, B);
	post(A, B, 1, 20000);
	run(20 * BW_S);
	assert_int_equal(events_with("B MESSAGE 1"), 1);
	assert_int_equal(events_with("A SENT 1"), 1);
	assert_in_range(path(A, B, 0)->pmtu.mtu, 576, 700);
}

static void black_hole__is_not_seen_in_random_loss(void **state)
{
	int i;

	links(9000, 9000);
	meet(A, B);
	run(BW_S);
	for (i = 0; i < 40;
	     i++) { /* frames between the base and half the size; each tenth is lost */
		int j;

		for (j = 0; j < 10; j++)
			post(A, B, 100 + 10 * (uint64_t)i + (uint64_t)j, 2000);
		flush(A);
		drop(0);
		run(10 * BW_MS);
		post(A, B, 5, 8);
		run(10 * BW_MS);
	}
	assert_true(count(A)->losses >= 40);
	assert_int_equal(path(A, B, 0)->pmtu.mtu, 9000);
	assert_int_equal(events_with("B MESSAGE"), 440);
}

static void black_hole__silence_is_none(void **state)
{
	int i;

	links(9000, 9000);
	meet(A, B);
	run(BW_S);
	for (i = 0; i < 30; i++)
		post(A, B, (uint64_t)i, 8000);
	dead = true;
	run(2 * BW_S);
	dead = false;
	run(5 * BW_S);
	assert_int_equal(path(A, B, 0)->pmtu.mtu, 9000);
	assert_int_equal(events_with("B MESSAGE"), 30);
}

int size_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(size__common_maximum_is_tried_first),
		TEST(size__search_ends_near_what_passes),
		TEST(size__three_lost_probes_are_needed),
		TEST(size__silence_says_nothing_of_it),
		TEST(size__messages_travel_while_it_is_searched),
		TEST(size__links_below_the_base),
		TEST(size__a_link_too_small_is_refused),
		TEST(black_hole__falls_back_and_searches_again),
		TEST(black_hole__path_that_passes_only_small_frames),
		TEST(black_hole__is_not_seen_in_random_loss),
		TEST(black_hole__silence_is_none),
	};

	return cmocka_run_group_tests_name("size", tests, NULL, NULL);
}
