/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Silent peers: given up after a bounded time when something is expected of them, with every
 * operation reported; survived when they were only stopped; watched on request; never asked without
 * a reason.
 */
#include "groups.h"
#include "host.h"
#include "peer.h"

static void silent__given_up_after_dead_ns_with_everything_reported(void **state)
{
	uint64_t key, begin;

	meet(A, B);
	key = expose(B, A, 9, 100);
	expose(A, B, 1, 100);
	pull(A, B, key, 2, 0, 100, 0);
	post(A, B, 3, 8);
	post(A, B, 4, 60000);
	node_kill(B);
	begin = world.now;
	run(59 * BW_S);
	expect_events(NULL, NULL);
	run(2 * BW_S);
	expect_events("A SENT 3 ETIMEDOUT", "A SENT 4 ETIMEDOUT", "A PULLED 2 ETIMEDOUT",
		      "A REGION_DONE 1 ETIMEDOUT", "A PEER_DOWN B ETIMEDOUT", NULL);
	assert_in_range(world.now - begin, 60 * BW_S, 62 * BW_S);
	assert_false(bw_reliable.busy(engine(A)));
	assert_int_equal(deadline(), BW_NEVER);
	assert_int_equal(count(A)->peers, 0);
	assert_int_equal(engine(A)->records.in_use, 0);
	assert_int_equal(engine(A)->txmsgs.in_use, 0);
	assert_int_equal(engine(A)->peers_slab.in_use, 0);
	assert_int_equal(engine(A)->flows.in_use, 0);
}

static void silent__time_counts_from_when_it_was_last_heard(void **state)
{
	world.node[A].cfg.dead_ns = 2 * BW_S;
	meet(A, B);
	pass(3600 * BW_S); /* idle for an hour: nothing was expected */
	post(A, B, 1, 8);
	run(BW_MS);
	assert_int_equal(events_with("A SENT 1"), 1);
	forget_logs();
	node_kill(B);
	pass(100 * BW_S);
	post(A, B, 2, 8);
	run(1900 * BW_MS);
	expect_events(NULL, NULL);
	run(200 * BW_MS);
	expect_events("A SENT 2 ETIMEDOUT", "A PEER_DOWN B ETIMEDOUT", NULL);
}

static int mute;

static enum fate while_mute(const struct frame *f)
{
	return f->from == mute ? LOSE : PASS;
}

/* All that A sends is lost, all that B sends arrives, for ever: nothing may wait for longer than
 * dead_ns, though B is heard all the time. */
static void given_up_though_heard(void)
{
	uint64_t key;
	int i;

	world.node[A].cfg.dead_ns = 5 * BW_S;
	world.node[B].cfg.dead_ns = 3600 * BW_S;
	meet(A, B);
	key = expose(B, A, 9, 100);
	mute = A;
	world.fate = while_mute;
	expose(A, B, 1, 100);
	pull(A, B, key, 2, 0, 100, 0);
	post(A, B, 3, 8);
	for (i = 0; i < 49; i++) { /* in packets of their own, and in several */
		post(B, A, 100 + (uint64_t)i, i % 8 < 7 ? 8 : 2000);
		run(100 * BW_MS);
	}
	assert_int_equal(events_with("A MESSAGE"), 49);
	assert_int_equal(events_with("ETIMEDOUT"), 0);
	forget_logs();
	run(200 * BW_MS);
	expect_events("A SENT 3 ETIMEDOUT", "A PULLED 2 ETIMEDOUT", "A REGION_DONE 1 ETIMEDOUT",
		      "A PEER_DOWN B ETIMEDOUT", NULL);
}

static void one_way__peer_is_given_up_though_it_is_heard(void **state)
{
	given_up_though_heard();
}

static void one_way__keyed_peer_is_given_up_too(void **state)
{
	world.keyed = true;
	given_up_though_heard();
}

static void one_way__peer_of_striped_paths_is_given_up_too(void **state)
{
	world.node[A].cfg.features |= BW_FEATURE_STRIPE;
	world.node[B].cfg.features |= BW_FEATURE_STRIPE;
	given_up_though_heard();
}

/* The request came through and nothing after it: the peer is asked though its messages come. */
static void one_way__pull_does_not_wait_for_ever(void **state)
{
	uint64_t key;
	int i;

	world.node[B].cfg.dead_ns = 5 * BW_S;
	world.node[A].cfg.dead_ns = 3600 * BW_S;
	meet(A, B);
	key = expose(A, B, 1, 100);
	pull(B, A, key, 2, 0, 100, 0);
	flush(B);
	deliver(0);
	bw_list_del(&bw_first(&peer(A, B)->serving, struct bw_serve, turn)->turn);
	run(100 * BW_MS);
	mute = B;
	world.fate = while_mute;
	for (i = 0; i < 55; i++) {
		post(A, B, 100 + (uint64_t)i, 8);
		run(100 * BW_MS);
	}
	assert_int_equal(events_with("B PULLED 2 ETIMEDOUT"), 1);
	assert_int_equal(events_with("B PEER_DOWN A ETIMEDOUT"), 1);
}

/* A peer sends and sends, and serves our pull in its own time: it lives, and is asked. */
static void pull__waits_for_a_peer_that_sends_other_things(void **state)
{
	uint64_t key;
	int i;

	world.node[B].cfg.dead_ns = 2 * BW_S;
	meet(A, B);
	key = expose(A, B, 1, 100);
	pull(B, A, key, 2, 0, 100, 0);
	flush(B);
	deliver(0);
	bw_list_del(&bw_first(&peer(A, B)->serving, struct bw_serve, turn)->turn);
	for (i = 0; i < 60; i++) {
		post(A, B, 100 + (uint64_t)i, 8);
		run(100 * BW_MS);
	}
	assert_int_equal(events_with("B MESSAGE"), 60);
	assert_int_equal(events_with("DOWN"), 0);
	bw_list_add_before(&peer(A, B)->serving,
			   &bw_first(&peer(A, B)->serves, struct bw_serve, all)->turn);
	bw_peer_ready(engine(A), peer(A, B));
	run(BW_S);
	assert_int_equal(events_with("B PULLED 2 len 100"), 1);
}

/* First contact in which only one side is heard. */
static void one_way__during_first_contact(void **state)
{
	world.node[A].cfg.dead_ns = 3 * BW_S;
	mute = A;
	world.fate = while_mute;
	node_open(A);
	node_open(B);
	connect_to(A, B);
	connect_to(B, A);
	post(A, B, 1, 8);
	run(2900 * BW_MS);
	assert_int_equal(events_with("DOWN"), 0);
	run(200 * BW_MS);
	assert_int_equal(events_with("A SENT 1 ETIMEDOUT"), 1);
	assert_int_equal(events_with("A PEER_DOWN B ETIMEDOUT"), 1);
}

/* What counts is how long the peer is waited for now, whenever it answered last. */
static void waiting__counts_from_when_it_began(void **state)
{
	world.node[A].cfg.dead_ns = 3 * BW_S;
	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	post(B, A, 2, 8); /* acknowledges it along with data */
	deliver(0);
	flush(B);
	deliver_all();
	drop_all();
	assert_int_equal(events_with("A SENT 1"), 1);
	pass(2900 * BW_MS);
	world.fate = while_mute;
	mute = A;
	post(A, B, 3, 8);
	run(2900 * BW_MS);
	assert_int_equal(events_with("DOWN"), 0);
	run(200 * BW_MS);
	assert_int_equal(events_with("A PEER_DOWN B ETIMEDOUT"), 1);
}

/* It has named our handle, but nothing has proved yet that it is there. */
static void silent__before_a_path_is_up(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	deliver_all();
	flush(B);
	deliver_all();
	path(A, B, 0)->hello.due = true;
	bw_peer_ready(engine(A), peer(A, B));
	flush(A);
	deliver_all();
	assert_false(peer(B, A)->confirmed);
	assert_int_equal(path(B, A, 0)->state, BW_PATH_TRYING);
	node_kill(A);
	drop_all();
	forget_logs();
	post(B, A, 1, 8);
	run(59 * BW_S);
	expect_events(NULL, NULL);
	run(2 * BW_S);
	expect_events("B SENT 1 ETIMEDOUT", "B PEER_DOWN A ETIMEDOUT", NULL);
}

static void silent__during_first_contact(void **state)
{
	world.node[A].cfg.dead_ns = 3 * BW_S;
	node_open(A);
	connect_to(A, B);
	post(A, B, 1, 8);
	run(2900 * BW_MS);
	expect_events(NULL, NULL);
	run(200 * BW_MS);
	expect_events("A SENT 1 ETIMEDOUT", "A PEER_DOWN B ETIMEDOUT", NULL);
	assert_int_equal(deadline(), BW_NEVER);
}

static bool stopped;

static enum fate while_stopped(const struct frame *f)
{
	return stopped && (f->from == B || f->to == B) ? LOSE : PASS;
}

static void stopped__for_30_s_is_survived(void **state)
{
	uint64_t key;

	meet(A, B);
	world.fate = while_stopped;
	stopped = true;
	key = expose(A, B, 1, 100000);
	pull(B, A, key, 2, 0, 100000, BW_PULL_FINAL);
	post(A, B, 3, 8);
	run(30 * BW_S);
	expect_events(NULL, NULL);
	stopped = false;
	run(10 * BW_S);
	assert_int_equal(events_with("B PULLED 2 len 100000"), 1);
	assert_int_equal(events_with("A REGION_DONE 1"), 1);
	assert_int_equal(events_with("B MESSAGE 3"), 1);
	assert_int_equal(events_with("A SENT 3"), 1);
	assert_int_equal(events_with("PEER_DOWN"), 0);
}

/* The peer lives, and acknowledges, but its host has no data for us: the pull waits as long as it
 * must. */
static void pull__waits_for_a_living_peer(void **state)
{
	uint64_t key;

	world.node[A].cfg.dead_ns = world.node[B].cfg.dead_ns = 2 * BW_S;
	meet(A, B);
	key = expose(A, B, 1, 100);
	peer(A, B)->tx_used = peer(A, B)->tx_limit; /* no credit: it cannot send */
	pull(B, A, key, 2, 0, 100, 0);
	forget_logs();
	run(20 * BW_S);
	expect_events(NULL, NULL);
	/* it is asked whether it lives, ever rarer down to a quarter of dead_ns, unless it asks
	 * itself */
	assert_in_range(frames_with("B>A DATA"), 20, 50);
	peer(A, B)->tx_used = peer(B, A)->rx_taken;
	peer(A, B)->credit_stalled = false;
	bw_peer_ready(engine(A), peer(A, B));
	run(BW_S);
	expect_events("B PULLED 2 len 100", NULL);
}

static void pull__asks_a_living_peer_ever_rarer(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 5000);
	peer(A, B)->tx_used = peer(A, B)->tx_limit;
	pull(B, A, key, 2, 0, 5000, 0);
	settle();
	pass(10 * BW_MS);
	forget_logs();
	run(BW_S); /* after 10, 20, 40 ... ms */
	assert_in_range(frames_with("B>A DATA"), 6, 8);
	assert_true(peer(B, A)->ping_at - world.now > 200 * BW_MS);
	run(9 * BW_S);
	forget_logs();
	run(10 * BW_S); /* each second, unless it asks itself */
	assert_in_range(frames_with("B>A DATA"), 4, 11);
	/* Some of the data comes: it is worth asking soon again. */
	peer(A, B)->tx_used -= 1280;
	peer(A, B)->credit_stalled = false;
	bw_peer_ready(engine(A), peer(A, B));
	flush(A);
	deliver(0);
	flush(B);
	drop_all();
	assert_in_range(peer(B, A)->ping_at - world.now, BW_MS, 20 * BW_MS);
	forget_logs();
	run(BW_S);
	expect_events("B PULLED 2 len 5000", NULL);
}

static void credit__is_asked_for_soon_though_a_pull_waits_long(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 100);
	peer(A, B)->tx_used = peer(A, B)->tx_limit;
	pull(B, A, key, 2, 0, 100, 0);
	run(10 * BW_S);
	peer(B, A)->tx_used = peer(B, A)->tx_limit;
	post(B, A, 3, 8);
	flush(B);
	assert_in_range(peer(B, A)->ping_at - world.now, BW_MS, 20 * BW_MS);
	peer(B, A)->tx_used = 0;
}

static void pull__of_a_dead_peer_is_reported(void **state)
{
	uint64_t key;

	world.node[B].cfg.dead_ns = 2 * BW_S;
	meet(A, B);
	key = expose(A, B, 1, 100);
	peer(A, B)->tx_used = peer(A, B)->tx_limit;
	pull(B, A, key, 2, 0, 100, 0);
	run(BW_S); /* the request has been acknowledged: nothing of B is under way */
	assert_true(bw_list_empty(&path(B, A, 0)->flight));
	node_kill(A);
	run(3 * BW_S);
	expect_events("B PULLED 2 ETIMEDOUT", "B PEER_DOWN A ETIMEDOUT", NULL);
}

static void credit__waited_for_from_a_dead_peer(void **state)
{
	world.node[A].cfg.dead_ns = 2 * BW_S;
	meet(A, B);
	peer(A, B)->tx_used = peer(A, B)->tx_limit;
	post(A, B, 1, 8);
	run(10 * BW_S);
	expect_events(NULL, NULL); /* B lives */
	node_kill(B);
	run(3 * BW_S);
	expect_events("A SENT 1 ETIMEDOUT", "A PEER_DOWN B ETIMEDOUT", NULL);
}

static void idle__peer_is_not_asked(void **state)
{
	meet(A, B);
	expose(A, B, 1, 100); /* waiting to be pulled is not expecting */
	node_kill(B);
	run(1000 * BW_S);
	expect_frames(NULL, NULL);
	expect_events(NULL, NULL);
}

static void watch__notices_the_death_of_an_idle_peer(void **state)
{
	meet(A, B);
	watch(A, B, true);
	run(100 * BW_S);
	assert_in_range(frames_with("A>B DATA"), 5, 8); /* each 15 s */
	assert_int_equal(frames_with("A>B DATA"), frames_with("B>A ACK"));
	forget_logs();
	node_kill(B);
	run(80 * BW_S);
	expect_events("A PEER_DOWN B ETIMEDOUT", NULL);
}

static void watch__ends_on_request(void **state)
{
	meet(A, B);
	watch(A, B, true);
	run(20 * BW_S);
	watch(A, B, false);
	run(BW_S);
	forget_logs();
	run(1000 * BW_S);
	expect_frames(NULL, NULL);
	assert_int_equal(deadline(), BW_NEVER);
}

static void watch__learns_at_once_of_a_restart(void **state)
{
	meet(A, B);
	watch(A, B, true);
	node_restart(B);
	run(16 * BW_S);
	expect_events("A PEER_DOWN B ECONNREFUSED", NULL);
}

static void down__others_live_on(void **state)
{
	world.node[A].cfg.dead_ns = 2 * BW_S;
	meet(A, B);
	meet(A, C);
	node_kill(B);
	post(A, B, 1, 8);
	post(A, C, 2, 8);
	run(3 * BW_S);
	post(A, C, 3, 8);
	run(BW_MS);
	assert_int_equal(events_with("C MESSAGE"), 2);
	assert_int_equal(events_with("A PEER_DOWN B ETIMEDOUT"), 1);
	assert_int_equal(count(A)->peers, 1);
}

static void down__messages_that_arrived_are_delivered_before(void **state)
{
	meet(A, B);
	world.node[B].ignore_events = true;
	post(A, B, 1, 2000);
	run(BW_MS);
	disconnect(B, A);
	world.node[B].ignore_events = false;
	forget_logs();
	take_events(B);
	expect_events("B MESSAGE 1 len 2000", "B PEER_DOWN A ECANCELED", NULL);
}

static unsigned int lost_but; /* so many pass */

static enum fate lose_data_of_a(const struct frame *f)
{
	if (f->from != A || frame_type(f) != BW_FRAME_DATA)
		return PASS;
	return lost_but ? (void)lost_but--, PASS : LOSE;
}

/* Who begins a message and never completes it is given up, whether he is gone or not: what was kept
 * of it is free again. */
static void incomplete__message_does_not_stay(void **state)
{
	struct frame *first;
	int alive, i;

	world.quiet = true;
	world.node[A].cfg.dead_ns = 3600 * BW_S;
	for (alive = 0; alive < 2; alive++) {
		meet(A, B);
		post(A, B, 1, 60000);
		flush(A);
		first = take(0);
		drop_all();
		assert_int_equal(receive(first), 0);
		assert_int_equal(world.node[B].buffers_out, 1);
		world.fate = alive ? lose_data_of_a : NULL;
		if (!alive)
			node_kill(A);
		for (i = 0; i < 59; i++) {
			if (alive) /* its acknowledgements are heard */
				post(B, A, 100, 8);
			run(BW_S);
		}
		assert_int_equal(world.node[B].buffers_out, 1);
		run(2 * BW_S);
		assert_int_equal(world.node[B].buffers_out, 0);
		assert_int_equal(events_with("B PEER_DOWN A ETIMEDOUT"), 1);
		assert_int_equal(engine(B)->rxmsgs.in_use, 0);
		world.fate = NULL;
		if (alive)
			node_kill(A);
		node_kill(B);
		forget_logs();
	}
}

/* As long as some of it comes it may take any time. */
static void incomplete__message_may_take_long(void **state)
{
	unsigned int i;

	world.quiet = true;
	world.node[A].cfg.dead_ns = 3600 * BW_S;
	world.node[B].cfg.dead_ns = 10 * BW_S;
	meet(A, B);
	post(A, B, 1, 20000);
	world.fate = lose_data_of_a;
	for (i = 0; i < 200 && !events_with("B MESSAGE"); i++) {
		lost_but = 2;
		run(BW_S);
	}
	assert_true(i > 10);
	assert_int_equal(events_with("B MESSAGE 1 len 20000"), 1);
	assert_int_equal(events_with("PEER_DOWN"), 0);
}

/* ---- the host's clock ---- */

#define HOUR (3600 * BW_S)

/* Something is under way both ways that only the other one can bring to its end. */
static void begin_exchange(void)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 100000);
	pull(B, A, key, 2, 0, 100000, BW_PULL_FINAL);
	post(A, B, 3, 8);
	post(B, A, 4, 8);
	flush(A);
	flush(B);
}

/* It comes to its end, and so does what begins now. */
static void assert_goes_on(void)
{
	post(A, B, 5, 60000);
	post(B, A, 6, 60000);
	run(20 * BW_S);
	assert_int_equal(events_with("PEER_DOWN"), 0);
	assert_int_equal(events_with("ETIMEDOUT"), 0);
	assert_int_equal(events_with("B PULLED 2 len 100000"), 1);
	assert_int_equal(events_with("A REGION_DONE 1"), 1);
	assert_int_equal(events_with("A SENT 3"), 1);
	assert_int_equal(events_with("B SENT 4"), 1);
	assert_int_equal(events_with("A SENT 5"), 1);
	assert_int_equal(events_with("B SENT 6"), 1);
	assert_int_equal(events_with("MESSAGE"), 4);
}

/* A machine that slept: what had arrived before is read before timers run. */
static void clock__jumps_ahead_while_frames_are_under_way(void **state)
{
	begin_exchange();
	pass(HOUR);
	deliver_all();
	assert_goes_on();
}

/* And of what was sent meanwhile nothing is left. */
static void clock__jumps_ahead_and_all_is_lost(void **state)
{
	begin_exchange();
	drop_all();
	pass(HOUR);
	assert_goes_on();
}

/* Nor is so much of the time used up as it slept. */
static void clock__jumps_ahead_by_nearly_all_of_the_time(void **state)
{
	begin_exchange();
	drop_all();
	pass(55 * BW_S);
	world.fate = while_stopped;
	stopped = true;
	run(10 * BW_S);
	stopped = false;
	assert_goes_on();
}

/* Of a message the first half has come, and what is missing does at the end of the time. */
static void clock__jumps_ahead_within_a_message(void **state)
{
	meet(A, B);
	post(A, B, 3, 60000);
	flush(A);
	deliver(0);
	drop_all();
	assert_int_not_equal(peer(B, A)->arriving, 0);
	pass(HOUR);
	run(20 * BW_S);
	assert_int_equal(events_with("B MESSAGE 3"), 1);
	assert_int_equal(events_with("A SENT 3"), 1);
	assert_int_equal(events_with("PEER_DOWN"), 0);
}

/* The half is acknowledged, and there is nothing else to do but to wait for the other one. Both
 * stand still, and this side goes on first. */
static void clock__jumps_ahead_while_only_the_rest_of_a_message_is_wanted(void **state)
{
	static const uint64_t times[] = {45 * BW_S, 61 * BW_S, 80 * BW_S, HOUR};

	for (unsigned int i = 0; i < 4; i++) {
		meet(A, B);
		post(A, B, 3, 60000);
		flush(A);
		deliver(0);
		drop_all();
		pass(50 * BW_MS);
		flush(B);
		deliver_all();
		assert_int_equal(engine(B)->ready.next == &engine(B)->ready, 1);
		pass(times[i]);
		flush(B);
		pass(BW_S);
		flush(B);
		assert_int_equal(events_with("PEER_DOWN"), 0);
		run(20 * BW_S);
		assert_int_equal(events_with("B MESSAGE 3"), 1);
		assert_int_equal(events_with("A SENT 3"), 1);
		forget_logs();
	}
	/* who sends nothing more is given up all the same */
	post(A, B, 3, 60000);
	flush(A);
	deliver(0);
	drop_all();
	node_kill(A);
	run(58 * BW_S);
	assert_int_equal(events_with("PEER_DOWN"), 0);
	run(3 * BW_S);
	assert_int_equal(events_with("B PEER_DOWN A ETIMEDOUT"), 1);
}

/* What is read first may prove nothing of the peer: that the host stood still is not forgotten over
 * it. */
static void clock__jumps_ahead_before_frames_that_prove_nothing(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 100000);
	post(A, B, 3, 8);
	flush(A);
	drop_all();
	pull(B, A, key, 2, 0, 100000, BW_PULL_FINAL);
	flush(B);
	pass(HOUR);
	deliver_all();
	run(20 * BW_S);
	assert_int_equal(events_with("PEER_DOWN"), 0);
	assert_int_equal(events_with("A SENT 3"), 1);
	assert_int_equal(events_with("B PULLED 2 len 100000"), 1);
	assert_int_equal(world.node[A].excused, 1);
}

/* A peer that has died meanwhile is given up all the same, in the usual time. */
static void clock__jumps_ahead_and_the_peer_is_dead(void **state)
{
	begin_exchange();
	drop_all();
	node_kill(B);
	pass(HOUR);
	run(50 * BW_S);
	assert_int_equal(events_with("PEER_DOWN"), 0);
	run(12 * BW_S);
	assert_int_equal(events_with("A PEER_DOWN B ETIMEDOUT"), 1);
	assert_int_equal(deadline(), BW_NEVER);
}

/* The host is told once for each time, by how much, and of one peer that was waited for, however
 * many these are. */
static void clock__that_jumps_is_told_to_the_host(void **state)
{
	meet(A, C);
	begin_exchange();
	post(A, C, 7, 8);
	flush(A);
	drop_all();
	assert_int_equal(world.node[A].excused, 0);
	pass(HOUR);
	run(BW_MS);
	assert_int_equal(world.node[A].excused, 1);
	assert_in_range(world.node[A].excused_ns, HOUR - BW_S, HOUR);
	run(BW_S);
	assert_int_equal(world.node[A].excused, 1);
	post(A, B, 8, 8);
	flush(A);
	drop_all();
	pass(16 * BW_S);
	run(BW_MS);
	assert_int_equal(world.node[A].excused, 2);
	assert_in_range(world.node[A].excused_ns, 15 * BW_S, 16 * BW_S);
	assert_int_equal(world.node[A].excused_peer, world.node[A].peer[B]);
}

/* Nor if all that was waited for is there to be read. */
static void clock__that_jumps_before_the_answer_is_read_is_not_told(void **state)
{
	meet(A, B);
	post(A, B, 9, 8);
	flush(A);
	deliver_all();
	pass(50 * BW_MS);
	flush(B);
	assert_int_equal(frames_with("B>A ACK"), 1);
	pass(HOUR);
	deliver_all();
	run(BW_S);
	assert_int_equal(events_with("A SENT 9"), 1);
	assert_int_equal(world.node[A].excused, 0);
}

/* Nor is it told of what gives nobody up: a shorter time, and one in which nobody is waited for. */
static void clock__that_jumps_without_harm_is_not_told(void **state)
{
	begin_exchange();
	drop_all();
	pass(14 * BW_S);
	run(20 * BW_S);
	assert_int_equal(events_with("A SENT 3"), 1);
	pass(HOUR);
	run(20 * BW_S);
	assert_int_equal(world.node[A].excused, 0);
	assert_int_equal(world.node[B].excused, 0);
}

static void clock__goes_back(void **state)
{
	begin_exchange();
	world.now -= BW_S;
	deliver_all();
	assert_goes_on();
	forget_logs();
	world.now -= BW_S;
	post(A, B, 7, 8);
	run(2 * BW_S);
	assert_int_equal(events_with("A SENT 7"), 1);
	assert_int_equal(events_with("PEER_DOWN"), 0);
}

static void clock__goes_back_and_all_is_lost(void **state)
{
	begin_exchange();
	drop_all();
	world.now -= BW_S;
	assert_goes_on();
}

int dead_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(silent__given_up_after_dead_ns_with_everything_reported),
		TEST(silent__time_counts_from_when_it_was_last_heard),
		TEST(one_way__peer_is_given_up_though_it_is_heard),
		TEST(one_way__keyed_peer_is_given_up_too),
		TEST(one_way__peer_of_striped_paths_is_given_up_too),
		TEST(one_way__pull_does_not_wait_for_ever),
		TEST(pull__waits_for_a_peer_that_sends_other_things),
		TEST(one_way__during_first_contact),
		TEST(waiting__counts_from_when_it_began),
		TEST(silent__before_a_path_is_up),
		TEST(silent__during_first_contact),
		TEST(stopped__for_30_s_is_survived),
		TEST(clock__jumps_ahead_while_frames_are_under_way),
		TEST(clock__jumps_ahead_and_all_is_lost),
		TEST(clock__jumps_ahead_by_nearly_all_of_the_time),
		TEST(clock__jumps_ahead_within_a_message),
		TEST(clock__jumps_ahead_while_only_the_rest_of_a_message_is_wanted),
		TEST(clock__jumps_ahead_before_frames_that_prove_nothing),
		TEST(clock__jumps_ahead_and_the_peer_is_dead),
		TEST(clock__that_jumps_is_told_to_the_host),
		TEST(clock__that_jumps_before_the_answer_is_read_is_not_told),
		TEST(clock__that_jumps_without_harm_is_not_told),
		TEST(clock__goes_back),
		TEST(clock__goes_back_and_all_is_lost),
		TEST(pull__waits_for_a_living_peer),
		TEST(pull__asks_a_living_peer_ever_rarer),
		TEST(credit__is_asked_for_soon_though_a_pull_waits_long),
		TEST(pull__of_a_dead_peer_is_reported),
		TEST(credit__waited_for_from_a_dead_peer),
		TEST(idle__peer_is_not_asked),
		TEST(watch__notices_the_death_of_an_idle_peer),
		TEST(watch__ends_on_request),
		TEST(watch__learns_at_once_of_a_restart),
		TEST(down__others_live_on),
		TEST(down__messages_that_arrived_are_delivered_before),
		TEST(incomplete__message_does_not_stay),
		TEST(incomplete__message_may_take_long),
	};

	return cmocka_run_group_tests_name("dead", tests, NULL, NULL);
}
