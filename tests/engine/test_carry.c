/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Several paths over one line: one carries pulled data, the others have trials. Rates are told to
 * the engine here; how they come about is for the simulator.
 */
#include "carry.h"
#include "groups.h"
#include "path.h"
#include "peer.h"

#define MIB (1u << 20)

static uint8_t dead; /* links that carry nothing, one bit each */
static bool rows;    /* the second link sends several frames at once */

static enum fate network(const struct frame *f)
{
	return dead >> f->link & 1 ? LOSE : PASS;
}

/* Two nodes with two links over one line. */
static void meet_over_one_line(void)
{
	struct bw_op op;
	int n, l;

	dead = 0;
	world.fate = network;
	for (n = 0; n < NODES; n++) {
		world.node[n].cfg.rx_budget = 4u << 20;
		world.node[n].cfg.features |= BW_FEATURE_STRIPE;
		for (l = 0; l < 2; l++)
			world.node[n].cfg.link_group[l] = world.node[n].cfg.link_line[l] = 1;
		world.node[n].cfg.link_rows[1] = rows;
	}
	node_open(A);
	node_open(B);
	op = op_connect(A, B);
	op.connect.paths = 2;
	op.connect.path[1] = address(B, 1);
	assert_int_equal(submit(A, &op), 0);
	world.node[A].peer[B] = op.peer;
	run(100 * BW_MS);
	assert_int_equal(peer(A, B)->together, 2);
	assert_int_equal(peer(A, B)->lines, 1);
	forget_logs();
}

/* B has asked for so many bytes, and A has heard of it. */
static void begin(uint64_t tag, uint64_t len)
{
	uint64_t key = expose(A, B, tag, len);

	pull(B, A, key, tag, 0, len, BW_PULL_FINAL);
	flush(B);
	deliver_all();
}

static struct bw_path *carrier(void)
{
	struct bw_path *t = path(A, B, 0);

	assert_true(t->carry.yields != path(A, B, 1)->carry.yields);
	return t->carry.yields ? path(A, B, 1) : t;
}

/* The path that carries has carried so many bytes, each MiB in so long. */
static void carried(uint64_t bytes, uint64_t ns_per_mib)
{
	struct bw_path *t = carrier();

	t->carry.loaded = true;
	engine(A)->now += bytes * ns_per_mib / MIB;
	bw_carry_acked(engine(A), peer(A, B), t, bytes);
}

/* The first path at this pace until the second has its trial, and that one at this pace. */
static void trial(uint64_t first_ns, uint64_t second_ns)
{
	unsigned int i;

	for (i = 0; i < 256 && carrier() == path(A, B, 0); i++)
		carried(MIB / 8, first_ns);
	assert_ptr_equal(carrier(), path(A, B, 1));
	for (i = 0; i < 256 && path(A, B, 1)->carry.trial; i++)
		carried(MIB / 8, second_ns);
	assert_false(path(A, B, 1)->carry.trial);
}

static void carry__one_path_carries(void **state)
{
	meet_over_one_line();
	assert_ptr_equal(carrier(), path(A, B, 0));
	begin(1, 400000);
	run(BW_S);
	assert_int_equal(events_with("B PULLED 1"), 1);
	assert_true(frames_with("[BULK") > 300);
	assert_int_equal(frames_with("A>B/1 DATA"), frames_with("A>B/1 DATA 1 "));
}

static void carry__messages_go_by_one_path_in_a_straight_line(void **state)
{
	meet_over_one_line();
	begin(1, 400000);
	assert_false(peer(A, B)->striped); /* one carries: there is nothing to deal out */
	run(BW_S);
	path(A, B, 1)->rtt.min = 1; /* however fast the other one is */
	bw_path_choose(engine(A), peer(A, B));
	assert_int_equal(peer(A, B)->best, 0);
}

static void carry__the_faster_one_stays(void **state)
{
	meet_over_one_line();
	begin(1, 400000);
	trial(1000 * BW_US, 500 * BW_US);
	assert_ptr_equal(carrier(), path(A, B, 1));
	assert_true(path(A, B, 1)->carry.rate > path(A, B, 0)->carry.rate);
}

static void carry__the_slower_one_does_not(void **state)
{
	meet_over_one_line();
	begin(1, 400000);
	trial(1000 * BW_US, 2000 * BW_US);
	assert_ptr_equal(carrier(), path(A, B, 0));
}

/* It is not to carry much at such a pace. */
static void carry__a_trial_that_fails_is_short(void **state)
{
	unsigned int i;

	meet_over_one_line();
	begin(1, 400000);
	for (i = 0; i < 256 && carrier() == path(A, B, 0); i++)
		carried(MIB / 8, 1000 * BW_US);
	assert_true(path(A, B, 1)->carry.trial);
	for (i = 0; i < 256 && path(A, B, 1)->carry.trial; i++)
		carried(MIB / 8, 2100 * BW_US);
	assert_in_range(i, 6, 7);
	assert_ptr_equal(carrier(), path(A, B, 0));
	/* Others are measured for as long as ever. */
	assert_true(path(A, B, 0)->carry.pause > 8 * MIB);
}

/* No change for what may be chance. */
static void carry__nor_does_one_that_is_hardly_faster(void **state)
{
	meet_over_one_line();
	begin(1, 400000);
	trial(1000 * BW_US, 950 * BW_US);
	assert_ptr_equal(carrier(), path(A, B, 0));
}

static void carry__trials_become_rare(void **state)
{
	uint64_t before, pause = 0;
	unsigned int i;

	meet_over_one_line();
	begin(1, 400000);
	for (i = 0; i < 8; i++) {
		before = path(A, B, 0)->carry.pause;
		path(A, B, 0)->carry.warm = 0; /* and all that is measured */
		path(A, B, 0)->carry.measured = 8 * MIB - 1;
		path(A, B, 0)->carry.since = engine(A)->now;
		trial(1000 * BW_US, 2000 * BW_US);
		pause = path(A, B, 0)->carry.pause;
		assert_int_equal(pause, bw_min_u64(2 * before, 1u << 30));
		assert_int_equal(path(A, B, 0)->carry.warm, pause);
	}
	assert_int_equal(pause, 1u << 30);
}

/* Who carries has the fastest of 8 MiB to its credit. */
static void carry__the_usual_pace_is_of_many_pieces(void **state)
{
	unsigned int i;

	meet_over_one_line();
	begin(1, 400000);
	carrier()->carry.warm = 0;
	for (i = 0; i < 256 && carrier() == path(A, B, 0); i++)
		carried(MIB / 8, i < 8 ? 500 * BW_US : 1000 * BW_US);
	assert_int_equal(i, 64);
	assert_in_range(path(A, B, 0)->carry.rate, 2 * MIB - 1000, 2 * MIB);
}

static void carry__time_without_work_does_not_count(void **state)
{
	struct bw_path *t;

	meet_over_one_line();
	begin(1, 400000);
	t = carrier();
	t->carry.warm = 0;
	t->inflight = 0;
	bw_carry_sent(engine(A), t, true);
	carried(1000, BW_MS);
	engine(A)->now += BW_S;
	bw_carry_sent(engine(A), t, true);
	carried(1000, BW_MS);
	assert_int_equal(t->carry.bytes, 2000);
	assert_true(t->carry.ns < 3 * BW_US);
}

/* The one that carries falls silent: the other one carries at once, and the first again when it
 * answers. */
static void carry__silence_is_stepped_in_for(void **state)
{
	meet_over_one_line();
	begin(1, 4000000);
	settle();
	dead = 1 << 0;
	run(50 * BW_MS);
	assert_int_equal(path(A, B, 0)->state, BW_PATH_UP);
	assert_int_equal(events_with("B PULLED 1 len 4000000"), 1);
	run(5 * BW_S);
	dead = 0;
	run(2 * BW_HELLO_RETRY);
	assert_int_equal(path(A, B, 0)->state, BW_PATH_UP);
	carrier(); /* one of them does */
}

/* The one that stepped in leaves when the other answers, though it would be faster. */
static void carry__what_stepped_in_leaves_again(void **state)
{
	meet_over_one_line();
	begin(1, 4000000);
	path(A, B, 0)->pto_count = 1;
	flush(A);
	assert_true(frames_with("A>B/1 DATA") > 0);
	path(A, B, 0)->pto_count = 0;
	path(A, B, 0)->rate = 1000;
	path(A, B, 1)->rate = 1000000000;
	forget_logs();
	run(BW_S);
	assert_int_equal(events_with("B PULLED 1 len 4000000"), 1);
	assert_true(frames_with("A>B DATA") > 2000);
	assert_true(frames_with("A>B/1 DATA") < 100);
}

/* Two lines, on which data were dealt out, turn out to be one: what was set aside for the path that
 * yields now is not its any more, though it would be faster. */
static void carry__what_was_set_aside_is_taken_over(void **state)
{
	meet_over_one_line();
	engine(A)->cfg.link_line[1] = 2;
	bw_path_choose(engine(A), peer(A, B));
	begin(1, 400000);
	flush(A);
	assert_true(peer(A, B)->striped);
	assert_false(bw_list_empty(&path(A, B, 1)->share));
	engine(A)->cfg.link_line[1] = 1;
	path(A, B, 1)->carry.yields = true;
	path(A, B, 0)->rate = 1000;
	path(A, B, 1)->rate = 1000000000;
	run(BW_S);
	assert_int_equal(events_with("B PULLED 1 len 400000"), 1);
	assert_false(peer(A, B)->striped);
}

/* From now on the second path carries what is long. */
static void second_carries(void)
{
	path(A, B, 0)->carry.yields = true;
	path(A, B, 1)->carry.yields = false;
}

static void carry__messages_of_several_frames_go_by_it(void **state)
{
	meet_over_one_line();
	second_carries();
	post(A, B, 1, 5000);
	settle();
	post(A, B, 2, 8);
	post(A, B, 3, 5000);
	settle();
	expect_events("B MESSAGE 1 len 5000", "B MESSAGE 2 len 8", "B MESSAGE 3 len 5000", NULL);
	assert_true(frames_with("A>B/1 DATA") >= 8);
	assert_int_equal(frames_with("A>B DATA"), 1);
}

/* Pulled data leave by the path that carries, short messages beside them by the best one. */
static void carry__short_messages_do_not_wait_for_what_is_long(void **state)
{
	meet_over_one_line();
	second_carries();
	begin(1, 400000);
	path(A, B, 1)->cc.cwnd = 0;
	post(A, B, 2, 8);
	settle();
	assert_int_equal(events_with("B MESSAGE 2 len 8"), 1);
	assert_int_equal(frames_with("A>B/1 DATA"), 0);
	path(A, B, 1)->cc.cwnd = 1u << 20;
	bw_peer_ready(engine(A), peer(A, B));
	run(BW_S);
	assert_int_equal(events_with("B PULLED 1 len 400000"), 1);
	assert_true(frames_with("A>B/1 DATA") > 300);
	assert_int_equal(frames_with("[BULK"), frames_with("A>B/1 DATA"));
}

static void carry__messages_go_by_another_one_if_it_is_silent(void **state)
{
	meet_over_one_line();
	second_carries();
	path(A, B, 1)->pto_count = 1;
	post(A, B, 1, 5000);
	flush(A);
	assert_int_equal(frames_with("A>B/1 DATA"), 0);
	path(A, B, 1)->pto_count = 0;
	settle();
}

/* The path that carries lost a whole message, or answered late. It is asked, and carries the next
 * message, though nothing of what it lost is left to it. */
static void carry__messages_come_back_to_it_when_it_answers(void **state)
{
	meet_over_one_line();
	second_carries();
	dead = 1 << 1;
	post(A, B, 1, 5000);
	settle();
	while (!path(A, B, 1)->pto_count)
		run(10 * BW_US);
	settle();
	dead = 0;
	run(10 * BW_MS);
	assert_int_equal(events_with("B MESSAGE 1"), 1);
	assert_int_equal(path(A, B, 1)->pto_count, 0);
	forget_logs();
	post(A, B, 2, 5000);
	settle();
	assert_int_equal(events_with("B MESSAGE 2"), 1);
	assert_int_equal(frames_with("A>B DATA"), 0);
}

/* A short exchange says nothing of what a path carries: neither its bytes nor its time count. */
static void carry__long_messages_are_measured_and_short_ones_not(void **state)
{
	struct bw_path *t;

	meet_over_one_line();
	t = carrier();
	t->carry.warm = 0;
	post(A, B, 1, 8);
	run(BW_MS);
	assert_int_equal(t->carry.bytes + t->carry.measured, 0);
	post(A, B, 2, 60000);
	run(BW_MS);
	assert_true(t->carry.bytes + t->carry.measured >= 60000);
}

/* Does the last of these frames, which wait on the wire, ask for an acknowledgement? */
static bool asks(void)
{
	return frame_hdr(world.wire[world.wire_n - 1])->flags & BW_HDR_ACK_NOW;
}

/* Nobody waits for the acknowledgement of the last frame, unless the path is being measured. */
static void carry__measuring_asks_for_acknowledgements(void **state)
{
	meet_over_one_line();
	post(A, B, 1, 6000);
	flush(A);
	assert_false(asks());
	settle();
	carrier()->carry.warm = 0;
	post(A, B, 2, 6000);
	flush(A);
	assert_true(asks());
	settle();
}

static void carry__rows_come_first(void **state)
{
	rows = true;
	meet_over_one_line();
	rows = false;
	assert_ptr_equal(carrier(), path(A, B, 1));
	assert_int_equal(peer(A, B)->best, 0);
	/* And stay for longer before others are tried. */
	assert_int_equal(carrier()->carry.warm, 64 * MIB);
	assert_int_equal(carrier()->carry.pause, 64 * MIB);
}

/* Acknowledgements that come all at once are no measure, unless the piece began with nothing under
 * way. */
static void carry__a_burst_of_acknowledgements_is_no_measure(void **state)
{
	struct bw_path *t;

	meet_over_one_line();
	t = carrier();
	t->carry.warm = 0;
	t->carry.loaded = true;
	t->carry.since = engine(A)->now;
	t->inflight = 0;
	engine(A)->now += 1;
	bw_carry_acked(engine(A), peer(A, B), t, 64 << 10);
	engine(A)->now += BW_MS;
	bw_carry_acked(engine(A), peer(A, B), t, 32 << 10);
	assert_int_equal(t->carry.measured, 0);
	assert_int_equal(t->carry.fastest, 0);
	t->carry.whole = true;
	bw_carry_acked(engine(A), peer(A, B), t, 32 << 10);
	assert_int_equal(t->carry.measured, 128 << 10);
}

/* What follows the warming begins in the midst of a message: a piece begins with the next one. */
static void carry__the_rest_of_a_message_is_no_measure(void **state)
{
	struct bw_path *t;

	meet_over_one_line();
	begin(1, 400000);
	t = carrier();
	t->carry.warm = MIB / 2;
	t->inflight = 0;
	bw_carry_sent(engine(A), t, true);
	t->inflight = MIB;
	engine(A)->now += BW_MS;
	bw_carry_acked(engine(A), peer(A, B), t, MIB / 2);
	t->inflight = 0;
	bw_carry_acked(engine(A), peer(A, B), t, MIB / 2); /* at once: no time at all */
	assert_int_equal(t->carry.measured, 0);
	bw_carry_sent(engine(A), t, true);
	assert_int_equal(t->carry.bytes, 0);
	engine(A)->now += BW_MS;
	bw_carry_acked(engine(A), peer(A, B), t, MIB);
	assert_int_equal(t->carry.measured, MIB);
	assert_int_equal(t->carry.fastest, MIB);
}

static void carry__links_of_other_lines_are_no_rivals(void **state)
{
	meet_over_one_line();
	assert_true(bw_carry_rivals(engine(A), path(A, B, 0), path(A, B, 1)));
	assert_false(bw_carry_rivals(engine(A), path(A, B, 0), path(A, B, 0)));
	engine(A)->cfg.link_line[1] = 2;
	assert_false(bw_carry_rivals(engine(A), path(A, B, 0), path(A, B, 1)));
	engine(A)->cfg.link_line[0] = engine(A)->cfg.link_line[1] = 0;
	assert_false(bw_carry_rivals(engine(A), path(A, B, 0), path(A, B, 1)));
}

int carry_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(carry__one_path_carries),
		TEST(carry__messages_go_by_one_path_in_a_straight_line),
		TEST(carry__the_faster_one_stays),
		TEST(carry__the_slower_one_does_not),
		TEST(carry__nor_does_one_that_is_hardly_faster),
		TEST(carry__a_trial_that_fails_is_short),
		TEST(carry__trials_become_rare),
		TEST(carry__the_usual_pace_is_of_many_pieces),
		TEST(carry__time_without_work_does_not_count),
		TEST(carry__silence_is_stepped_in_for),
		TEST(carry__what_stepped_in_leaves_again),
		TEST(carry__what_was_set_aside_is_taken_over),
		TEST(carry__links_of_other_lines_are_no_rivals),
		TEST(carry__messages_of_several_frames_go_by_it),
		TEST(carry__short_messages_do_not_wait_for_what_is_long),
		TEST(carry__messages_go_by_another_one_if_it_is_silent),
		TEST(carry__messages_come_back_to_it_when_it_answers),
		TEST(carry__long_messages_are_measured_and_short_ones_not),
		TEST(carry__measuring_asks_for_acknowledgements),
		TEST(carry__rows_come_first),
		TEST(carry__a_burst_of_acknowledgements_is_no_measure),
		TEST(carry__the_rest_of_a_message_is_no_measure),
	};

	return cmocka_run_group_tests_name("carry", tests, NULL, NULL);
}
