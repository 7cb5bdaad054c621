/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Paths that carry pulled data together: which share each gets, what becomes of a path that
 * degrades, dies or returns, and that short messages stay on one path.
 */
#include "groups.h"
#include "path.h"
#include "stripe.h"

#define BULK  (1280 - 32 - 16 - 24) /* payload of a full frame */
#define STALL (10 * BW_MS)	    /* nothing may wait longer for a path that is dead */

static uint8_t dead; /* links that carry nothing, one bit each */
static bool slow;    /* frames of link 1 stay on the wire */

static enum fate network(const struct frame *f)
{
	return dead >> f->link & 1 ? LOSE : PASS;
}

/* Two nodes with two links, in a group of node A's unless `group` is 0. */
static void meet_striped(uint8_t group, uint64_t features)
{
	struct bw_op op;
	int n, l;

	dead = 0;
	slow = false;
	world.fate = network;
	for (n = 0; n < NODES; n++) {
		world.node[n].cfg.rx_budget = 4u << 20;
		world.node[n].cfg.features |= BW_FEATURE_STRIPE;
		for (l = 0; l < 2; l++)
			world.node[n].cfg.link_group[l] = 1;
	}
	world.node[A].cfg.link_group[1] = group;
	world.node[B].cfg.features = features;
	node_open(A);
	node_open(B);
	op = op_connect(A, B);
	op.connect.paths = 2;
	op.connect.path[1] = address(B, 1);
	assert_int_equal(submit(A, &op), 0);
	world.node[A].peer[B] = op.peer;
	run(100 * BW_MS);
	assert_int_equal(path(A, B, 0)->state, BW_PATH_UP);
	assert_int_equal(path(A, B, 1)->state, BW_PATH_UP);
	assert_int_equal(peer(A, B)->npaths, 2);
	forget_logs();
}

static void meet_both(void)
{
	meet_striped(1, BW_FEATURE_CHECKSUM | BW_FEATURE_STRIPE);
	assert_true(peer(A, B)->striped);
	assert_true(peer(B, A)->striped);
}

/* What the scheduler is to believe of a path. */
static void believe(unsigned int no, uint64_t rate, uint64_t rtt)
{
	path(A, B, no)->rate = rate;
	path(A, B, no)->rtt.min = rtt;
}

static unsigned int bulk_by(uint8_t link)
{
	return frames_with(link ? "A>B/1 DATA" : "A>B DATA");
}

/* B has asked for so many bytes, and A has heard of it. */
static uint64_t begin(uint64_t len)
{
	uint64_t key = expose(A, B, 1, len);

	pull(B, A, key, 2, 0, len, BW_PULL_FINAL);
	flush(B);
	deliver_all();
	return key;
}

/* Frames travel, those of link 1 only if it is not slow; each hop is HOP_NS. */
static void travel(unsigned int hops)
{
	unsigned int i, n;

	while (hops--) {
		flush(A);
		flush(B);
		world.now += HOP_NS;
		for (i = 0, n = world.wire_n; n--;) {
			if (slow && world.wire[i]->link)
				i++;
			else
				deliver(i);
		}
	}
}

static void ended(void)
{
	assert_int_equal(events_with("B PULLED 2"), 1);
	assert_int_equal(events_with("A REGION_DONE 1"), 1);
	assert_int_equal(peer(A, B)->aside, 0);
	assert_int_equal(peer(A, B)->tx_used, peer(B, A)->rx_taken);
	assert_false(bw_reliable.busy(engine(A)));
}

static void stripe__both_paths_carry_a_pull(void **state)
{
	meet_both();
	begin(400000);
	run(BW_S);
	ended();
	assert_in_range(bulk_by(0), 100, 240);
	assert_in_range(bulk_by(1), 100, 240);
	assert_int_equal(count(A)->retransmits, 0);
	assert_int_equal(count(B)->drop[BW_DROP_RANGES], 0);
}

static void stripe__both_must_offer_it(void **state)
{
	meet_striped(1, BW_FEATURE_CHECKSUM);
	begin(400000);
	run(BW_S);
	ended();
	assert_int_equal(bulk_by(1), 0);
}

static void stripe__links_without_a_common_group_do_not(void **state)
{
	meet_striped(2, BW_FEATURE_CHECKSUM | BW_FEATURE_STRIPE);
	begin(400000);
	run(BW_S);
	ended();
	assert_int_equal(bulk_by(1), 0);
}

static void stripe__messages_stay_on_one_path(void **state)
{
	int i;

	meet_both();
	for (i = 0; i < 20; i++)
		post(A, B, (uint64_t)i, 3000);
	run(BW_MS);
	assert_int_equal(events_with("B MESSAGE"), 20);
	assert_int_equal(frames_with("A>B/1 DATA"), 0);
}

static void stripe__shares_follow_the_rates(void **state)
{
	meet_both();
	believe(0, 100000, 20 * BW_US);
	believe(1, 10000, 20 * BW_US);
	begin(2000000);
	flush(A);
	assert_true(bulk_by(1) > 0);
	/* what is under way takes the two paths about the same time */
	assert_in_range(path(A, B, 1)->inflight * 10, path(A, B, 0)->inflight,
			path(A, B, 0)->inflight + 400000);
	run(BW_S);
	ended();
}

static void stripe__a_slow_path_is_no_use_for_little(void **state)
{
	meet_both();
	believe(0, 100000, 20 * BW_US);
	believe(1, 100, 20 * BW_US);
	path(A, B, 0)->cc.cwnd = 4 * 1280; /* the fast one has no room for all at once */
	begin(20 * BULK);
	flush(A);
	assert_in_range(bulk_by(0), 1, 5);
	assert_int_equal(bulk_by(1), 0);
	run(BW_S);
	ended();
	assert_int_equal(bulk_by(1), 0);
}

static void stripe__the_better_path_carries_messages(void **state)
{
	meet_both();
	assert_int_equal(peer(A, B)->best, 0);
	believe(0, 10000, 2000 * BW_US);
	believe(1, 10000, 20 * BW_US);
	bw_path_choose(engine(A), peer(A, B));
	assert_int_equal(peer(A, B)->best, 1);
	believe(0, 10000, 18 * BW_US); /* not clearly better */
	bw_path_choose(engine(A), peer(A, B));
	assert_int_equal(peer(A, B)->best, 1);
}

static void stripe__the_end_moves_to_the_faster_path(void **state)
{
	meet_both();
	slow = true;
	begin(200 * BULK);
	travel(1);
	assert_true(path(A, B, 1)->inflight > 0);
	believe(0, 1000000, 2 * HOP_NS);
	believe(1, 1, 2 * HOP_NS);
	travel(6); /* far less than the pause before a tail probe */
	assert_int_equal(events_with("B PULLED 2 len"), 1);
	assert_int_equal(count(A)->probes, 0);
	assert_true(count(A)->retransmits > 0);
	slow = false;
	run(BW_S);
	ended();
	assert_int_equal(count(A)->losses, 0); /* the packets arrived, if late */
	assert_int_equal(path(A, B, 1)->inflight, 0);
}

/* What moved arrives by the slow path after all, and is acknowledged there before the faster one's
 * copy is. */
static void stripe__what_moved_is_settled_by_either_packet(void **state)
{
	unsigned int i;

	meet_both();
	slow = true;
	begin(200 * BULK);
	travel(1);
	believe(0, 1000000, 2 * HOP_NS);
	believe(1, 1, 2 * HOP_NS);
	for (i = 0; i < 6 && !count(A)->retransmits; i++)
		travel(1);
	assert_true(count(A)->retransmits > 0);
	assert_true(peer(A, B)->late > 0);
	assert_int_equal(events_with("A REGION_DONE"), 0);
	for (i = 0; i < world.wire_n;) { /* the copies by the faster path get lost */
		if (!world.wire[i]->link)
			drop(i);
		else
			i++;
	}
	while (world.wire_n)
		deliver(0);
	flush(B);
	deliver_all();
	assert_int_equal(events_with("B PULLED 2 len"), 1);
	assert_int_equal(events_with("A REGION_DONE 1"), 1);
	assert_int_equal(count(A)->probes + count(A)->losses, 0);
	run(BW_S);
	ended();
}

static void stripe__what_one_has_set_aside_another_takes_over(void **state)
{
	meet_both();
	slow = true;
	begin(400000);
	travel(2);
	assert_true(peer(A, B)->aside > 0);
	path(A, B, 1)->cc.cwnd = 2 * 1280; /* no room: it keeps its share */
	believe(0, 1000000, 2 * HOP_NS);
	travel(20);
	assert_int_equal(peer(A, B)->aside, 0);
	slow = false;
	run(BW_S);
	ended();
}

static void stripe__a_dead_path_is_left_at_once(void **state)
{
	uint64_t start;

	meet_both();
	begin(600000);
	travel(1);
	dead = 2;
	start = world.now;
	while (!events_with("B PULLED 2") && world.now < start + 10 * BW_S)
		run(BW_MS);
	assert_true(world.now < start + STALL);
	run(BW_S);
	ended();
	assert_int_equal(path(A, B, 1)->state, BW_PATH_TRYING);
	assert_false(peer(A, B)->striped);
}

static void stripe__the_best_path_dies(void **state)
{
	uint64_t start;

	meet_both();
	begin(600000);
	travel(1);
	post(A, B, 7, 3000);
	dead = 1;
	start = world.now;
	while ((!events_with("B PULLED 2") || !events_with("B MESSAGE 7")) &&
	       world.now < start + 10 * BW_S)
		run(BW_MS);
	assert_true(world.now < start + STALL);
	run(BW_S);
	ended();
	assert_int_equal(peer(A, B)->best, 1);
}

static void stripe__a_silent_path_gets_nothing_but_probes(void **state)
{
	meet_both();
	path(A, B, 1)->pto_count = 1;
	path(A, B, 1)->ask = true;
	begin(600000);
	flush(A);
	assert_true(bulk_by(0) > 0);
	assert_int_equal(bulk_by(1), 1);
	assert_int_equal(frames_with("BULK"), bulk_by(0));
	run(BW_S);
	assert_true(bulk_by(1) > 50); /* it answered */
	ended();
}

static void stripe__a_returning_path_is_used_again(void **state)
{
	meet_both();
	begin(600000);
	travel(1);
	dead = 2;
	run(BW_S);
	ended();
	dead = 0;
	forget_logs();
	run(BW_HELLO_RETRY + BW_S);
	assert_true(peer(A, B)->striped);
	forget_logs();
	begin(600000);
	run(BW_S);
	ended();
	assert_true(bulk_by(1) > 50);
}

/* Acknowledgements of what had arrived before a path was cut come when it is back, and look like
 * long ways. It is tried by data nonetheless, and measured. */
static void stripe__a_returning_path_is_measured_anew(void **state)
{
	meet_both();
	believe(0, 100000, 2 * HOP_NS);
	believe(1, 0, 2 * HOP_NS);
	path(A, B, 1)->rtt.srtt = BW_S;
	begin(600000);
	run(BW_S);
	ended();
	assert_true(bulk_by(1) > 50);
}

static void stripe__data_brings_a_path_back_soon(void **state)
{
	meet_both();
	begin(600000);
	travel(1);
	dead = 2;
	run(60 * BW_S); /* HELLOs have become rare */
	dead = 0;
	forget_logs();
	begin(100000);
	run(2 * BW_S);
	assert_true(peer(A, B)->striped);
}

static void stripe__a_busy_peer_is_no_dead_path(void **state)
{
	meet_both();
	begin(600000);
	travel(1);
	dead = 3;
	run(2 * BW_S);
	assert_int_equal(events_with("lost"), 0);
	dead = 0;
	run(3 * BW_S);
	ended();
	assert_true(peer(A, B)->striped);
}

static void stripe__a_region_is_taken_back_meanwhile(void **state)
{
	uint64_t key;

	meet_both();
	key = begin(800000);
	travel(2);
	assert_true(peer(A, B)->aside > 0);
	assert_int_equal(retract(A, key), 0);
	run(BW_S);
	assert_int_equal(events_with("B PULLED 2"), 1);
	assert_int_equal(events_with("A REGION_DONE 1"), 1);
	assert_int_equal(peer(A, B)->aside, 0);
	assert_int_equal(peer(A, B)->tx_used, peer(B, A)->rx_taken);
}

static void stripe__a_peer_is_left_meanwhile(void **state)
{
	meet_both();
	begin(800000);
	travel(2);
	assert_true(peer(A, B)->aside > 0);
	disconnect(A, B);
	run(BW_S);
	assert_int_equal(events_with("A REGION_DONE 1"), 1);
	assert_false(bw_reliable.busy(engine(A)));
}

static void stripe__several_pulls_take_turns(void **state)
{
	uint64_t key[3], i;

	meet_both();
	for (i = 0; i < 3; i++)
		key[i] = expose(A, B, 10 + i, 300000);
	for (i = 0; i < 3; i++)
		pull(B, A, key[i], 20 + i, 0, 300000, BW_PULL_FINAL);
	post(A, B, 7, 8);
	run(BW_S);
	assert_int_equal(events_with("B PULLED"), 3);
	assert_int_equal(events_with("A REGION_DONE"), 3);
	assert_int_equal(events_with("B MESSAGE 7"), 1);
	assert_int_equal(count(B)->drop[BW_DROP_RANGES], 0);
}

static void stripe__rate_is_what_arrives(void **state)
{
	struct bw_path *t;

	meet_both();
	t = path(A, B, 1);
	t->rate = 0;
	t->rate_since = world.now;
	t->rate_pn = t->acked_max;
	t->inflight = 1; /* never idle */
	t->lax = false;
	world.now += 2 * BW_MS;
	engine(A)->now = world.now;
	bw_stripe_acked(engine(A), peer(A, B), t, 50000);
	assert_int_equal(t->rate, 25000);
	world.now += BW_MS;
	engine(A)->now = world.now;
	t->rate_pn = t->acked_max;
	bw_stripe_acked(engine(A), peer(A, B), t, 5000); /* less: it has become slower */
	assert_in_range(t->rate, 19000, 21000);
	t->lax = true; /* less, but no more was to be sent */
	world.now += BW_MS;
	engine(A)->now = world.now;
	t->rate_pn = t->acked_max;
	bw_stripe_acked(engine(A), peer(A, B), t, 5000);
	assert_in_range(t->rate, 18500, 21000);
	t->inflight = 0;
}

static void stripe__gaps_are_told_by_either_path(void **state)
{
	meet_both();
	begin(400000);
	flush(A);
	while (world.wire_n > 30)
		drop(10); /* of both paths */
	run(BW_S);
	ended();
}

int stripe_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(stripe__both_paths_carry_a_pull),
		TEST(stripe__both_must_offer_it),
		TEST(stripe__links_without_a_common_group_do_not),
		TEST(stripe__messages_stay_on_one_path),
		TEST(stripe__shares_follow_the_rates),
		TEST(stripe__a_slow_path_is_no_use_for_little),
		TEST(stripe__the_better_path_carries_messages),
		TEST(stripe__the_end_moves_to_the_faster_path),
		TEST(stripe__what_moved_is_settled_by_either_packet),
		TEST(stripe__what_one_has_set_aside_another_takes_over),
		TEST(stripe__a_dead_path_is_left_at_once),
		TEST(stripe__the_best_path_dies),
		TEST(stripe__a_silent_path_gets_nothing_but_probes),
		TEST(stripe__a_returning_path_is_used_again),
		TEST(stripe__a_returning_path_is_measured_anew),
		TEST(stripe__data_brings_a_path_back_soon),
		TEST(stripe__a_busy_peer_is_no_dead_path),
		TEST(stripe__a_region_is_taken_back_meanwhile),
		TEST(stripe__a_peer_is_left_meanwhile),
		TEST(stripe__several_pulls_take_turns),
		TEST(stripe__rate_is_what_arrives),
		TEST(stripe__gaps_are_told_by_either_path),
	};

	return cmocka_run_group_tests_name("stripe", tests, NULL, NULL);
}
