/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Paths to distant peers: the first round trip is not taken for a loss, windows leave spread over a
 * round trip, growth ends when a queue shows itself, and single losses without one change nothing.
 */
#include "groups.h"
#include "path.h"

#define FAR_NS (50 * BW_MS)
#define FRAME  1272 /* bytes, of a message of 1168 */
#define FRAMES 64   /* of the window */

static struct bw_path *sender(void)
{
	return path(A, B, 0);
}

/* A knows B as a peer 50 ms away, with a window of 64 frames and no more slow start. */
static void far_apart(void)
{
	world.node[B].cfg.rx_budget = 64u << 20;
	meet(A, B);
	post(A, B, 9999, 8);
	run(BW_MS);
	forget_logs();
	sender()->rtt.min = sender()->rtt.srtt = FAR_NS;
	sender()->rtt.var = 0;
	sender()->cc.cwnd = sender()->cc.ssthresh = FRAMES * FRAME;
	sender()->cc.chance_from = sender()->pn_next;
}

static void send_packets(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		post(A, B, 1 + i, 1168);
	flush(A);
}

/* Frames that leave in so many milliseconds, the engine being asked whenever it wants to be. */
static unsigned int leaving(unsigned int ms)
{
	unsigned int before = world.wire_n;
	uint64_t until = world.now + ms * BW_MS;

	while (deadline() < until) {
		world.now = bw_max_u64(deadline(), world.now);
		flush(A);
	}
	world.now = until;
	flush(A);
	return world.wire_n - before;
}

static void guess__is_how_long_first_contact_took(void **state)
{
	node_open(A);
	connect_to(A, B);
	run(5 * BW_MS);
	node_open(B);
	run(5 * BW_MS);
	assert_int_equal(sender()->state, BW_PATH_UP);
	assert_int_equal(sender()->rtt.srtt, 0);
	assert_in_range(sender()->rtt.guess, 5 * BW_MS, 10 * BW_MS);
	assert_true(bw_path_pto(engine(A), sender()) >= 2 * sender()->rtt.guess);
}

static void guess__has_bounds(void **state)
{
	node_open(A);
	connect_to(A, B);
	run(300 * BW_MS);
	node_open(B);
	run(500 * BW_MS);
	assert_int_equal(sender()->state, BW_PATH_UP);
	assert_int_equal(sender()->rtt.guess, BW_RTT_GUESS);
	assert_true(path(B, A, 0)->rtt.guess < 2 * BW_MS); /* it was answered soon */
}

static void guess__is_none_of_a_peer_that_came_late(void **state)
{
	node_open(A);
	connect_to(A, B);
	run(5 * BW_S);
	node_open(B);
	run(2 * BW_S);
	assert_int_equal(sender()->state, BW_PATH_UP);
	assert_int_equal(sender()->rtt.guess, BW_RTT_INITIAL);
}

/* Who answers learns from the first frame after its answer how far away the other one is. */
static void guess__of_the_side_that_answers(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	deliver(0);
	flush(B);
	pass(FAR_NS);
	deliver(0); /* B's answer */
	post(A, B, 1, 8);
	flush(A);
	deliver(0);
	assert_int_equal(path(B, A, 0)->rtt.guess, FAR_NS);
}

static void pace__a_window_leaves_over_a_round_trip(void **state)
{
	far_apart();
	send_packets(FRAMES);
	/* 1.25 windows per round trip: at first what belongs to an eighth of it */
	assert_in_range(world.wire_n, 10, 11);
	assert_in_range(leaving(10), 14, 18);
	assert_in_range(leaving(10), 14, 18);
	leaving(20);
	assert_int_equal(world.wire_n, FRAMES);
	assert_true(deadline() > world.now + BW_MS); /* nothing is left to wait for */
}

static void pace__is_twice_the_window_in_slow_start(void **state)
{
	far_apart();
	sender()->cc.ssthresh = UINT64_MAX;
	send_packets(FRAMES);
	assert_in_range(leaving(10), 23, 29);
}

static void pace__keeps_to_what_the_path_has_carried(void **state)
{
	far_apart();
	sender()->cc.pace.rate = (uint64_t)FRAMES * FRAME / 100; /* half a window per round trip */
	send_packets(FRAMES);
	assert_in_range(leaving(10), 6, 9);
}

static void pace__leaves_local_paths_alone(void **state)
{
	far_apart();
	sender()->rtt.min = sender()->rtt.srtt = 100 * BW_US;
	send_packets(FRAMES);
	assert_int_equal(world.wire_n, FRAMES);
}

static void pace__does_not_hold_up_a_tail_probe(void **state)
{
	far_apart();
	send_packets(1);
	drop_all();
	sender()->cc.pace.at = world.now + BW_S;
	world.now = deadline();
	flush(A);
	assert_int_equal(count(A)->probes, 1);
	assert_int_equal(world.wire_n, 1);
}

/* So many bytes acknowledged in a round trip, whose packets filled the window or did not. */
static void carried(uint64_t bytes, bool limited)
{
	engine(A)->now += FAR_NS;
	sender()->pn_next += 10;
	sender()->cc.limited_pn = limited ? UINT64_MAX : 0;
	bw_pace_acked(engine(A), sender(), bytes, sender()->cc.pace.end);
}

static void pace__rate_is_what_was_acknowledged_in_a_round_trip(void **state)
{
	far_apart();
	carried(1, true); /* the first round only begins to count */
	carried(500000, true);
	assert_int_equal(sender()->cc.pace.rate, 10000);
	carried(1000000, true);
	assert_int_equal(sender()->cc.pace.rate, 20000);
	carried(1000, false); /* the program gave no more */
	assert_int_equal(sender()->cc.pace.rate, 20000);
	carried(500000, true);
	assert_int_equal(sender()->cc.pace.rate, 18750);
}

static void round_trips(unsigned int rounds, uint64_t rtt)
{
	for (unsigned int i = 0; i < rounds; i++) {
		uint64_t pn = sender()->pn_next;

		sender()->pn_next += 10;
		for (unsigned int k = 0; k < 8; k++)
			bw_window_sample(sender(), rtt, pn + k);
	}
}

static void slow_start__slows_down_when_a_queue_shows_itself(void **state)
{
	uint64_t cwnd;

	far_apart();
	sender()->cc.ssthresh = UINT64_MAX;
	sender()->cc.limited_pn = UINT64_MAX;
	cwnd = sender()->cc.cwnd;
	round_trips(1, FAR_NS + 6 * BW_MS); /* an eighth is 6.25 ms */
	bw_window_acked(engine(A), sender(), 4000, sender()->pn_next);
	assert_int_equal(sender()->cc.cwnd, cwnd + 4000);
	round_trips(1, FAR_NS + 7 * BW_MS);
	bw_window_acked(engine(A), sender(), 4000, sender()->pn_next);
	assert_int_equal(sender()->cc.cwnd, cwnd + 5000);
	round_trips(4, FAR_NS + 7 * BW_MS);
	assert_int_equal(sender()->cc.ssthresh, UINT64_MAX);
	round_trips(1, FAR_NS + 7 * BW_MS);
	assert_int_equal(sender()->cc.ssthresh, cwnd + 5000);
}

static void slow_start__goes_on_when_the_delay_was_no_queue_s(void **state)
{
	far_apart();
	sender()->cc.ssthresh = UINT64_MAX;
	round_trips(4, FAR_NS + 7 * BW_MS);
	round_trips(1, FAR_NS);
	round_trips(5, FAR_NS + 7 * BW_MS);
	assert_int_equal(sender()->cc.ssthresh, UINT64_MAX);
}

static void loss__by_chance_leaves_the_window(void **state)
{
	far_apart();
	for (unsigned int i = 0; i < 16; i++)
		bw_window_lost(engine(A), sender(), sender()->cc.chance_from + 30 * i);
	assert_int_equal(sender()->cc.cwnd, FRAMES * FRAME);
	assert_int_equal(count(A)->backoffs, 0);
	/* more than one of 32 is no chance */
	bw_window_lost(engine(A), sender(), sender()->cc.chance_from + 500);
	assert_int_equal(sender()->cc.cwnd, FRAMES * FRAME * 7 / 10);
}

static void loss__rare_ones_never_add_up(void **state)
{
	far_apart();
	for (uint64_t i = 0; i < 100; i++)
		bw_window_lost(engine(A), sender(), sender()->pn_next + 100 * i);
	assert_int_equal(count(A)->backoffs, 0);
}

static void loss__with_a_queue_shrinks_it(void **state)
{
	far_apart();
	sender()->rtt.srtt = FAR_NS + 7 * BW_MS;
	bw_window_lost(engine(A), sender(), sender()->pn_next);
	assert_int_equal(sender()->cc.cwnd, FRAMES * FRAME * 7 / 10);
}

static void loss__on_a_local_path_shrinks_it(void **state)
{
	far_apart();
	sender()->rtt.min = sender()->rtt.srtt = 100 * BW_US;
	bw_window_lost(engine(A), sender(), sender()->pn_next);
	assert_int_equal(sender()->cc.cwnd, FRAMES * FRAME * 7 / 10);
}

int distance_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(guess__is_how_long_first_contact_took),
		TEST(guess__has_bounds),
		TEST(guess__is_none_of_a_peer_that_came_late),
		TEST(guess__of_the_side_that_answers),
		TEST(pace__a_window_leaves_over_a_round_trip),
		TEST(pace__is_twice_the_window_in_slow_start),
		TEST(pace__keeps_to_what_the_path_has_carried),
		TEST(pace__leaves_local_paths_alone),
		TEST(pace__does_not_hold_up_a_tail_probe),
		TEST(pace__rate_is_what_was_acknowledged_in_a_round_trip),
		TEST(slow_start__slows_down_when_a_queue_shows_itself),
		TEST(slow_start__goes_on_when_the_delay_was_no_queue_s),
		TEST(loss__by_chance_leaves_the_window),
		TEST(loss__rare_ones_never_add_up),
		TEST(loss__with_a_queue_shrinks_it),
		TEST(loss__on_a_local_path_shrinks_it),
	};

	return cmocka_run_group_tests_name("distance", tests, NULL, NULL);
}
