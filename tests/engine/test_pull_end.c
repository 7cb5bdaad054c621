/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The many ends of pulls and regions: final, canceled, taken back, with data lost or overtaken;
 * each is reported once, and credit is settled exactly.
 */
#include "groups.h"
#include "pull.h"

#define BULK (1280 - 32 - 16 - 24) /* payload of a full frame */

/* What A was charged, B has given back: to be true once nothing is under way. */
static void expect_credit_settled(int owner, int asker)
{
	assert_int_equal(peer(owner, asker)->tx_used, peer(asker, owner)->rx_taken);
}

static void region__done_only_when_all_data_is_acknowledged(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 100);
	pull(B, A, key, 2, 0, 100, BW_PULL_FINAL);
	flush(B);
	deliver(0);
	flush(A);
	drop(0);
	expect_events(NULL, NULL);
	run(10 * BW_MS);
	expect_events("B PULLED 2 len 100", "A REGION_DONE 1", NULL);
}

static void region__released_stays_until_its_other_pulls_are_served(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 100000);
	pull(B, A, key, 2, 0, 100000, 0);
	pull(B, A, key, 3, 0, 10, BW_PULL_FINAL);
	run(50 * BW_MS);
	assert_int_equal(events_with("B PULLED 2 len 100000"), 1);
	assert_int_equal(events_with("B PULLED 3 len 10"), 1);
	assert_int_equal(events_with("A REGION_DONE 1"), 1);
	expect_credit_settled(A, B);
}

static void region__released_is_no_longer_found(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 100000);
	pull(B, A, key, 2, 0, 100000, 0);
	flush(B);
	deliver_all();
	flush(A);
	pull(B, A, key, 3, 0, 0, BW_PULL_FINAL);
	pull(B, A, key, 4, 0, 10, 0);
	run(50 * BW_MS);
	assert_int_equal(events_with("B PULLED 4 ENOENT"), 1);
	assert_int_equal(events_with("B PULLED 2 len 100000"), 1);
	assert_int_equal(events_with("A REGION_DONE 1"), 1);
}

static void cancel__ends_a_pull_at_once(void **state)
{
	uint64_t key, id;

	meet(A, B);
	key = expose(A, B, 1, 100000);
	id = pull(B, A, key, 2, 0, 100000, BW_PULL_FINAL);
	flush(B);
	deliver(0);
	flush(A);
	deliver(0);
	assert_int_equal(cancel(B, id), 0);
	expect_events("B PULLED 2 ECANCELED", NULL);
	assert_int_equal(cancel(B, id), -ENOENT);
	run(50 * BW_MS);
	expect_events("A REGION_DONE 1", NULL); /* the rest was sent, acknowledged and dropped */
	assert_true(count(B)->drop[BW_DROP_STALE] > 0);
	expect_credit_settled(A, B);
	assert_int_equal(engine(B)->pulls.in_use, 0);
}

static void cancel__before_the_request_left(void **state)
{
	uint64_t key, id;

	meet(A, B);
	key = expose(A, B, 1, 2000);
	id = pull(B, A, key, 2, 0, 2000, BW_PULL_FINAL);
	assert_int_equal(cancel(B, id), 0);
	run(10 * BW_MS);
	expect_events("B PULLED 2 ECANCELED", "A REGION_DONE 1", NULL);
	expect_credit_settled(A, B);
	assert_int_equal(engine(B)->pulls.in_use, 0);
	id = pull(B, A, key, 3, 0, 0, 0);
	assert_int_equal(cancel(B, id), 0);
	run(10 * BW_MS);
	expect_events("B PULLED 3 ECANCELED", NULL);
	assert_int_equal(engine(B)->pulls.in_use, 0);
}

static void cancel__of_a_pull_that_is_then_refused(void **state)
{
	uint64_t id;

	meet(A, B);
	id = pull(B, A, 0x1234, 2, 0, 2000, 0);
	assert_int_equal(cancel(B, id), 0);
	run(10 * BW_MS);
	expect_events("B PULLED 2 ECANCELED", NULL);
	assert_int_equal(engine(B)->pulls.in_use, 0);
}

static void cancel__then_the_peer_goes(void **state)
{
	uint64_t key, id;

	meet(A, B);
	key = expose(A, B, 1, 100000);
	id = pull(B, A, key, 2, 0, 100000, 0);
	assert_int_equal(cancel(B, id), 0);
	disconnect(B, A);
	expect_events("B PULLED 2 ECANCELED", "B PEER_DOWN A ECANCELED", NULL);
	assert_int_equal(engine(B)->pulls.in_use, 0);
}

/* Pulls that are given up, one after the other. */
static void cancel_many(uint64_t key, uint32_t many)
{
	for (uint32_t i = 0; i < many; i++)
		assert_int_equal(cancel(B, pull(B, A, key, 2, 0, 100, 0)), 0);
}

/* A record of each stays until it is answered: who answers none is given up in the end. */
static void cancel__of_more_than_a_peer_may_leave_unanswered(void **state)
{
	const uint32_t some = 100;
	struct bw_op op, last;
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 100);
	cancel_many(key, some);
	assert_int_equal(peer(B, A)->owed, some);
	run(500 * BW_MS);
	assert_int_equal(peer(B, A)->owed, 0);
	assert_int_equal(engine(B)->pulls.in_use, 0);
	op.pull_id = pull(B, A, key, 2, 0, 100, 0);
	last.pull_id = pull(B, A, key, 3, 0, 100, 0);
	peer(B, A)->owed = BW_OWED_MAX - 1; /* for so many there is no memory here */
	assert_int_equal(bw_pull_abort(engine(B), &op), 0);
	assert_int_equal(peer(B, A)->state, BW_PEER_UP);
	assert_int_equal(bw_pull_abort(engine(B), &last), 0);
	settle();
	assert_int_equal(events_with("B PEER_DOWN A ETIMEDOUT"), 1);
	assert_int_equal(engine(B)->pulls.in_use, 0);
}

static void cancel__id_is_not_that_of_a_later_pull(void **state)
{
	uint64_t key, id, next;

	meet(A, B);
	key = expose(A, B, 1, 100);
	id = pull(B, A, key, 2, 0, 100, 0);
	settle();
	next = pull(B, A, key, 3, 0, 100, 0);
	assert_int_not_equal(next, id);
	assert_int_equal(cancel(B, id), -ENOENT);
	settle();
	expect_events("B PULLED 2 len 100", "B PULLED 3 len 100", NULL);
}

static void retract__of_an_idle_region(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 100);
	assert_int_equal(retract(A, key), 0);
	expect_events("A REGION_DONE 1 ECANCELED", NULL);
	assert_int_equal(retract(A, key), -ENOENT);
	pull(B, A, key, 2, 0, 100, 0);
	settle();
	expect_events("B PULLED 2 ENOENT", NULL);
}

static void retract__during_service(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 100000);
	pull(B, A, key, 2, 0, 100000, BW_PULL_FINAL);
	flush(B);
	deliver(0);
	flush(A);
	assert_int_equal(retract(A, key), 0);
	expect_events("A REGION_DONE 1 ECANCELED", NULL);
	run(50 * BW_MS);
	expect_events("B PULLED 2 ECANCELED", NULL);
	expect_credit_settled(A, B);
	assert_false(bw_reliable.busy(engine(A)));
}

/* As retract, of the host's own memory: by its key alone, and not of other keys. */
static void forbid__during_service(void **state)
{
	meet(A, B);
	host_region(A, 0xFEED, 5, 100000);
	pull(B, A, 0xFEED, 5, 0, 100000, BW_PULL_HOST_KEY);
	flush(B);
	deliver(0);
	flush(A);
	assert_int_equal(forbid(A, 0xFEEE), 0);
	assert_true(bw_reliable_serving(engine(A), 0xFEED));
	assert_int_equal(world.node[A].host_reads, 1);
	assert_int_equal(forbid(A, 0xFEED), 0);
	assert_false(bw_reliable_serving(engine(A), 0xFEED));
	assert_int_equal(world.node[A].host_reads, 0);
	run(50 * BW_MS);
	expect_events("B PULLED 5 ECANCELED", NULL);
	assert_int_equal(world.node[A].host_reads, 0);
	expect_credit_settled(A, B);
	assert_false(bw_reliable.busy(engine(A)));
}

/* B reads A's exposed region `key` and A's own memory, in turn. */
static void read_both(uint64_t key)
{
	for (unsigned int i = 0; i < 4; i++) {
		pull(B, A, key, 20 + i, 0, 10000, 0);
		pull(B, A, 0xFEED, 50 + i, 0, 10000, BW_PULL_HOST_KEY);
	}
	flush(B);
	deliver_all();
	assert_int_equal(world.node[A].host_reads, 4);
}

/* A host that may not work long at a time has them ended one by one. What is exposed is not
 * forbidden, whatever lies before or behind. */
static void forbid__of_all_one_by_one(void **state)
{
	struct bw_op op = {.type = BW_OP_FORBID, .one = true, .forbid.all = true};
	int before, r, calls = 0;

	meet(A, B);
	host_region(A, 0xFEED, 5, 100000);
	read_both(expose(A, B, 1, 100000));
	op.peer = world.node[A].peer[B];
	do {
		before = world.node[A].host_reads;
		r = submit(A, &op);
		assert_in_range(world.node[A].host_reads, before - 1, before);
	} while (++calls < 100 && r == -EINPROGRESS);
	assert_int_equal(r, 0);
	assert_in_range(calls, 7, 8);
	assert_int_equal(world.node[A].host_reads, 0);
	run(50 * BW_MS);
	assert_int_equal(events_with("B PULLED 5"), 4);
	assert_int_equal(events_with("ECANCELED"), 4);
	assert_int_equal(events_with("len 10000"), 4);
	expect_credit_settled(A, B);
}

/* Where there is no memory to tell of it, it goes on where it stopped once there is. */
static void forbid__of_all_goes_on_with_memory(void **state)
{
	struct bw_op op = {.type = BW_OP_FORBID, .one = true, .forbid.all = true};
	struct bw_slab *messages;
	struct bw_txmsg *left;
	int r = -EINPROGRESS;

	world.node[A].grow_max = 0;
	meet(A, B);
	host_region(A, 0xFEED, 5, 100000);
	read_both(expose(A, B, 1, 100000));
	messages = &engine(A)->txmsgs;
	left = bw_slab_alloc(messages);
	while (bw_slab_alloc(messages))
		;
	bw_slab_free(messages, left);
	op.peer = world.node[A].peer[B];
	for (int i = 0; i < 100 && r == -EINPROGRESS; i++)
		r = submit(A, &op);
	assert_int_equal(r, -EAGAIN);
	assert_int_equal(submit(A, &op), -EAGAIN);
	assert_int_equal(world.node[A].host_reads, 3); /* of 4; the one answer had room */
	world.node[A].grow_max = 64;
	assert_int_equal(retract(A, 1), -ENOENT); /* after any call the host offers memory */
	do {
		r = submit(A, &op);
	} while (r == -EINPROGRESS);
	assert_int_equal(r, 0);
	assert_int_equal(world.node[A].host_reads, 0);
	node_kill(B); /* the messages that were taken are nobody's */
}

static void retract__one_by_one(void **state)
{
	struct bw_op op = {.type = BW_OP_RETRACT, .one = true};
	int r, calls = 0;

	meet(A, B);
	op.expose.key = expose(A, B, 1, 100000);
	for (unsigned int i = 0; i < 4; i++)
		pull(B, A, op.expose.key, 20 + i, 0, 10000, 0);
	flush(B);
	deliver_all();
	do {
		r = submit(A, &op);
	} while (++calls < 100 && r == -EINPROGRESS);
	assert_int_equal(r, 0);
	assert_int_equal(calls, 5);
	run(50 * BW_MS);
	assert_int_equal(events_with("B PULLED 2"), 4);
	assert_int_equal(events_with("A REGION_DONE 1 ECANCELED"), 1);
	assert_int_equal(events_with("ECANCELED"), 5);
	expect_credit_settled(A, B);
}

/* Who asks for it again meanwhile gets nothing, so that it comes to an end, and a last fetch that
 * is complete does not make it one of all. */
static void retract__one_by_one_is_not_asked_again(void **state)
{
	struct bw_op op = {.type = BW_OP_RETRACT, .one = true};

	meet(A, B);
	op.expose.key = expose(A, B, 1, 100000);
	for (unsigned int i = 0; i < 3; i++)
		pull(B, A, op.expose.key, 20 + i, 0, 1000, i == 2 ? BW_PULL_FINAL : 0);
	flush(B);
	deliver_all();
	assert_int_equal(submit(A, &op), -EINPROGRESS);
	assert_int_equal(submit(A, &op), -EINPROGRESS);
	pull(B, A, op.expose.key, 30, 0, 1000, 0);
	run(50 * BW_MS);
	assert_int_equal(events_with("B PULLED 2"), 3);
	assert_int_equal(events_with("B PULLED 22 len 1000"), 1);
	assert_int_equal(events_with("B PULLED 30 ENOENT"), 1);
	assert_int_equal(events_with("A REGION_DONE 1 ECANCELED"), 1);
	assert_int_equal(submit(A, &op), -ENOENT);
	expect_credit_settled(A, B);
}

/* An exposed region whose key nobody was told leaves without an event. */
static void retract__untold(void **state)
{
	struct bw_op op = {.type = BW_OP_RETRACT, .expose.untold = true};

	meet(A, B);
	op.expose.key = expose(A, B, 1, 100);
	assert_int_equal(submit(A, &op), 0);
	assert_int_equal(engine(A)->regions.in_use, 0);
	settle();
	assert_string_equal(world.events, "");
	assert_int_equal(submit(A, &op), -ENOENT);
	assert_false(bw_reliable.busy(engine(A)));
	world.quiet = true; /* the buffer of the test's is still there */
}

/* Data of a region that was taken back is not sent again, whatever got lost of it: the memory is no
 * longer the engine's. Its credit must not be lost with it. */
static void retract__credit_of_lost_data_comes_back(void **state)
{
	int i;

	meet(A, B);
	for (i = 0; i < 10; i++) {
		uint64_t key = expose(A, B, 1, 60000);

		pull(B, A, key, 2, 0, 60000, BW_PULL_FINAL);
		flush(B);
		deliver(0);
		flush(A);
		drop_all();
		assert_int_equal(retract(A, key), 0);
		run(3 * BW_S);
		assert_int_equal(events_with("A REGION_DONE 1 ECANCELED"), i + 1);
		assert_int_equal(events_with("B PULLED 2 ECANCELED"), i + 1);
		expect_credit_settled(A, B);
	}
	post(A, B, 3, 60000);
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE 3 len 60000"), 1);
	assert_int_equal(events_with("A SENT 3"), 1);
}

static void retract__data_that_waits_to_be_sent_again_is_not(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 10 * BULK);
	pull(B, A, key, 2, 0, 10 * BULK, BW_PULL_FINAL);
	flush(B);
	deliver(0);
	flush(A);
	drop(2);
	deliver_all();
	flush(B);
	deliver_all(); /* A knows that a packet is lost, but has not sent anything yet */
	assert_int_equal(count(A)->losses, 1);
	assert_int_equal(retract(A, key), 0);
	forget_logs();
	run(10 * BW_MS);
	assert_int_equal(frames_with("BULK"), 0);
	assert_int_equal(events_with("B PULLED 2 ECANCELED"), 1);
	expect_credit_settled(A, B);
}

static void retract__overtaken_by_data(void **state)
{
	struct frame *f;
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 100000);
	pull(B, A, key, 2, 0, 100000, BW_PULL_FINAL);
	flush(B);
	deliver(0);
	flush(A);
	f = take(3); /* a piece that comes behind the error */
	assert_int_equal(retract(A, key), 0);
	run(50 * BW_MS);
	expect_events("A REGION_DONE 1 ECANCELED", "B PULLED 2 ECANCELED", NULL);
	receive(f);
	settle();
	expect_events(NULL, NULL);
	expect_credit_settled(A, B);
}

int pull_end_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(region__done_only_when_all_data_is_acknowledged),
		TEST(region__released_stays_until_its_other_pulls_are_served),
		TEST(region__released_is_no_longer_found),
		TEST(cancel__ends_a_pull_at_once),
		TEST(cancel__before_the_request_left),
		TEST(cancel__of_a_pull_that_is_then_refused),
		TEST(cancel__then_the_peer_goes),
		TEST(cancel__of_more_than_a_peer_may_leave_unanswered),
		TEST(cancel__id_is_not_that_of_a_later_pull),
		TEST(retract__of_an_idle_region),
		TEST(retract__during_service),
		TEST(forbid__during_service),
		TEST(forbid__of_all_one_by_one),
		TEST(forbid__of_all_goes_on_with_memory),
		TEST(retract__one_by_one),
		TEST(retract__one_by_one_is_not_asked_again),
		TEST(retract__untold),
		TEST(retract__credit_of_lost_data_comes_back),
		TEST(retract__data_that_waits_to_be_sent_again_is_not),
		TEST(retract__overtaken_by_data),
	};

	return cmocka_run_group_tests_name("pull_end", tests, NULL, NULL);
}
