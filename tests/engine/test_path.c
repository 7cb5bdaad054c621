/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Paths: finding the frame size that passes, falling back when it no longer does, several paths of
 * one peer, and going over to another one and back.
 */
#include "groups.h"

#define PATHS 2

static uint32_t passes; /* longest frame that the network between the nodes carries */
static uint8_t dead;	/* links that carry nothing, one bit each */

static enum fate network(const struct frame *f)
{
	return f->len > passes || dead >> f->link & 1 ? LOSE : PASS;
}

static void links(uint32_t mtu, uint32_t carried)
{
	int n, l;

	passes = carried;
	dead = 0;
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
	assert_int_equal(path(A, B, 0)->mtu, 4000);
	assert_int_equal(path(B, A, 0)->mtu, 4000);
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
	assert_in_range(path(A, B, 0)->mtu, 4321 - BW_PROBE_GRAIN, 4321);
	assert_int_equal(path(A, B, 0)->probe_size, 0);
	assert_int_equal(count(A)->backoffs, 0); /* lost probes are no congestion */
	assert_int_equal(path(A, B, 0)->cwnd, BW_CWND_INITIAL);
	assert_true(path(A, B, 0)->mtu_fail > path(A, B, 0)->mtu);
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
	assert_int_equal(frames_with("of 2000 lost"), 6); /* three by each side */
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
	assert_int_equal(path(A, B, 0)->mtu, 1280);
}

static void size__links_below_the_base(void **state)
{
	links(576, 576);
	meet(A, B);
	assert_int_equal(path(A, B, 0)->mtu, 576);
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
	assert_int_equal(path(A, B, 0)->mtu, 9000);
	passes = 3000;
	for (i = 0; i < 30; i++)
		post(A, B, (uint64_t)i, 8000);
	post(A, B, 99, 8);
	run(5 * BW_S);
	assert_int_equal(events_with("B MESSAGE"), 31);
	assert_int_equal(events_with("A SENT"), 31);
	assert_in_range(path(A, B, 0)->mtu, 3000 - BW_PROBE_GRAIN, 3000);
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
	assert_in_range(path(A, B, 0)->mtu, 576, 700);
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
	assert_int_equal(path(A, B, 0)->mtu, 9000);
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
	dead = 1;
	run(2 * BW_S);
	dead = 0;
	run(5 * BW_S);
	assert_int_equal(path(A, B, 0)->mtu, 9000);
	assert_int_equal(events_with("B MESSAGE"), 30);
}

/* Two nodes with two links between them. */
static void meet_twice(void)
{
	struct bw_op op;

	links(1280, 9000);
	node_open(A);
	node_open(B);
	op = op_connect(A, B);
	op.connect.paths = PATHS;
	op.connect.path[1] = address(B, 1);
	assert_int_equal(submit(A, &op), 0);
	world.node[A].peer[B] = op.peer;
	run(100 * BW_MS);
	assert_int_equal(peer(A, B)->npaths, 2);
	assert_int_equal(peer(B, A)->npaths, 2);
	assert_int_equal(path(A, B, 0)->state, BW_PATH_UP);
	assert_int_equal(path(A, B, 1)->state, BW_PATH_UP);
	forget_logs();
}

static void paths__lower_link_number_is_preferred(void **state)
{
	uint32_t mtu;
	uint8_t link;
	uint64_t srtt;

	meet_twice();
	post(A, B, 1, 8);
	settle();
	expect_frames("A>B DATA 1 [MESSAGE 0 0+8/8]", NULL);
	assert_int_equal(bw_reliable_path(engine(A), world.node[A].peer[B], &srtt, &mtu, &link), 0);
	assert_int_equal(link, 0);
	assert_int_equal(mtu, 1280);
	assert_true(srtt > 0);
	assert_int_equal(bw_reliable_path(engine(A), 0, &srtt, &mtu, &link), -ENOTCONN);
}

static void paths__a_dead_one_is_left(void **state)
{
	meet_twice();
	post(A, B, 1, 5000);
	flush(A);
	deliver(0);
	drop_all();
	dead = 1;
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE 1 len 5000"), 1);
	assert_int_equal(events_with("A SENT 1"), 1);
	assert_int_equal(events_with("A PATH B link 0 lost"), 1);
	assert_int_equal(peer(A, B)->best, 1);
	assert_true(frames_with("A>B/1 DATA") > 0);
	forget_logs();
	post(A, B, 2, 8);
	post(B, A, 3, 8);
	run(BW_S);
	assert_int_equal(events_with("MESSAGE"), 2);
}

static void paths__a_returning_one_is_used_again(void **state)
{
	meet_twice();
	dead = 1;
	post(A, B, 1, 8);
	run(BW_S);
	assert_int_equal(peer(A, B)->best, 1);
	dead = 0;
	run(BW_HELLO_RETRY + BW_S);
	assert_int_equal(peer(A, B)->best, 0);
	assert_int_equal(events_with("A PATH B link 0 mtu 1280"), 1);
	forget_logs();
	post(A, B, 2, 8);
	run(BW_MS);
	assert_int_equal(frames_with("A>B DATA"), 1);
	assert_int_equal(events_with("B MESSAGE 2"), 1);
}

static void paths__a_busy_peer_is_no_dead_path(void **state)
{
	meet_twice();
	dead = 3; /* nothing answers on any link */
	post(A, B, 1, 8);
	run(2 * BW_S);
	assert_int_equal(events_with("lost"), 0);
	assert_int_equal(peer(A, B)->best, 0);
	dead = 0;
	run(3 * BW_S);
	assert_int_equal(events_with("B MESSAGE 1"), 1);
	assert_int_equal(events_with("lost"), 0);
}

static void paths__first_contact_by_the_one_that_works(void **state)
{
	struct bw_op op;

	links(1280, 9000);
	dead = 1;
	node_open(A);
	node_open(B);
	op = op_connect(A, B);
	op.connect.paths = PATHS;
	op.connect.path[1] = address(B, 1);
	assert_int_equal(submit(A, &op), 0);
	world.node[A].peer[B] = op.peer;
	post(A, B, 1, 8);
	run(100 * BW_MS);
	assert_int_equal(events_with("B MESSAGE 1"), 1);
	assert_int_equal(peer(A, B)->best, 1);
}

static void paths__acknowledged_where_the_packet_came(void **state)
{
	meet_twice();
	post(A, B, 1, 8);
	settle();
	peer(A, B)->best = 1;
	post(A, B, 2, 8);
	run(BW_MS);
	/* numbers and acknowledgements of the two paths are apart */
	assert_int_equal(frames_with("A>B DATA 1 [MESSAGE 0 0+8/8]"), 1);
	assert_int_equal(frames_with("A>B/1 DATA 1 [MESSAGE 1 0+8/8]"), 1);
	assert_int_equal(frames_with("B>A ACK 1"), 1);
	assert_int_equal(frames_with("B>A/1 ACK 1"), 1);
	assert_int_equal(events_with("A SENT"), 2);
}

static void paths__order_is_kept_across_them(void **state)
{
	meet_twice();
	post(A, B, 1, 8);
	flush(A);
	peer(A, B)->best = 1;
	post(A, B, 2, 8);
	flush(A);
	deliver(1);
	expect_events(NULL, NULL);
	deliver(0);
	expect_events("B MESSAGE 1 len 8", "B MESSAGE 2 len 8", NULL);
}

static void paths__refused_by_a_strangers_host_leaves_the_other(void **state)
{
	struct bw_refuse *b;
	struct bw_op op;
	struct frame *f;

	links(1280, 9000);
	node_open(A);
	node_open(B);
	op = op_connect(A, B);
	op.connect.inc++; /* makes B refuse, a frame to be changed */
	op.connect.paths = PATHS;
	op.connect.path[1] = address(B, 1);
	assert_int_equal(submit(A, &op), 0);
	world.node[A].peer[B] = op.peer;
	flush(A);
	deliver(0);
	flush(B);
	f = take(world.wire_n - 1);
	drop_all();
	b = frame_body(f);
	b->why = BW_REFUSAL_NO_ENGINE;
	frame_seal(f);
	receive(frame_copy(f));
	assert_int_equal(events_with("PEER_DOWN"), 0);
	assert_int_equal(path(A, B, 0)->state, BW_PATH_NONE);
	f->link = 1;
	receive(f); /* on the last path: the peer is not there */
	assert_int_equal(events_with("A PEER_DOWN B ECONNREFUSED"), 1);
}

static void paths__at_most_four(void **state)
{
	struct frame *f;
	int i;

	meet(A, B);
	connect_to(A, B);
	for (i = 1; i < 6; i++) {
		peer(A, B)->path[0].hello_due = true;
		bw_peer_ready(engine(A), peer(A, B));
		flush(A);
		f = take(0);
		drop_all();
		f->link = (uint8_t)i;
		frame_hdr(f)->path = (uint8_t)(i % BW_PATHS_MAX);
		frame_seal(f);
		assert_int_equal(receive(f), i < BW_PATHS_MAX ? 0 : -BW_DROP_EARLY);
	}
	assert_int_equal(peer(B, A)->npaths, BW_PATHS_MAX);
	drop_all();
}

int path_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(size__common_maximum_is_tried_first),
		TEST(size__search_ends_near_what_passes),
		TEST(size__three_lost_probes_are_needed),
		TEST(size__messages_travel_while_it_is_searched),
		TEST(size__links_below_the_base),
		TEST(size__a_link_too_small_is_refused),
		TEST(black_hole__falls_back_and_searches_again),
		TEST(black_hole__path_that_passes_only_small_frames),
		TEST(black_hole__is_not_seen_in_random_loss),
		TEST(black_hole__silence_is_none),
		TEST(paths__lower_link_number_is_preferred),
		TEST(paths__a_dead_one_is_left),
		TEST(paths__a_returning_one_is_used_again),
		TEST(paths__a_busy_peer_is_no_dead_path),
		TEST(paths__first_contact_by_the_one_that_works),
		TEST(paths__acknowledged_where_the_packet_came),
		TEST(paths__order_is_kept_across_them),
		TEST(paths__refused_by_a_strangers_host_leaves_the_other),
		TEST(paths__at_most_four),
	};

	return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
