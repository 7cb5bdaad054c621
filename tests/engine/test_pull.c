/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pulls: long data goes from an exposed region straight into the asker's buffer, or is refused;
 * requests are served once each, data counts once each.
 */
#include "groups.h"
#include "pull.h"

#define BULK (1280 - 32 - 16 - 24) /* payload of a full frame */

/* What A was charged, B has given back: to be true once nothing is under way. */
static void expect_credit_settled(int owner, int asker)
{
	assert_int_equal(peer(owner, asker)->tx_used, peer(asker, owner)->rx_taken);
}

static void pull__fetches_a_region(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 3000);
	pull(B, A, key, 2, 0, 3000, BW_PULL_FINAL);
	settle();
	expect_frames("B>A DATA 1 [PULL 0 0+3000 final]", "A>B DATA 1 ack 1 [BULK 0+1208]",
		      "A>B DATA 2 [BULK 1208+1208]", "A>B DATA 3 now [BULK 2416+584]", "B>A ACK 3",
		      NULL);
	expect_events("B PULLED 2 len 3000", "A REGION_DONE 1", NULL);
	expect_credit_settled(A, B);
	assert_int_equal(count(A)->tx_pulls, 1);
	assert_int_equal(count(B)->rx_pulls, 1);
	assert_false(bw_reliable.busy(engine(A)));
	run(BW_S);
	assert_int_equal(deadline(), BW_NEVER);
}

static void pull__of_a_part_leaves_the_region(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 3000);
	pull(B, A, key, 2, 1000, 500, 0);
	run(BW_MS);
	expect_events("B PULLED 2 len 500", NULL);
	pull(B, A, key, 3, 2999, 1, 0);
	run(BW_MS);
	expect_events("B PULLED 3 len 1", NULL);
	pull(B, A, key, 4, 0, 3000, BW_PULL_FINAL);
	run(BW_MS);
	expect_events("B PULLED 4 len 3000", "A REGION_DONE 1", NULL);
}

static void pull__of_nothing_releases_the_region(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 3000);
	pull(B, A, key, 2, 0, 0, BW_PULL_FINAL);
	settle();
	expect_frames("B>A DATA 1 [PULL 0 0+0 final]", "A>B DATA 1 ack 1 [PULL_ERROR 0 0]", NULL);
	expect_events("A REGION_DONE 1", "B PULLED 2 len 0", NULL);
}

/* Who was given one key cannot guess another. */
static void region__key_says_nothing_of_others(void **state)
{
	uint32_t drawn[4], handle[4];
	unsigned int i, k;

	meet(A, B);
	for (i = 0; i < 4; i++) {
		uint64_t key = expose(A, B, i, 3000);

		drawn[i] = (uint32_t)(key >> 32);
		handle[i] = (uint32_t)key;
		assert_true(unrelated(drawn[i], 0));
		if (i == 1) /* another may get its place */
			assert_int_equal(retract(A, key), 0);
	}
	for (i = 0; i < 4; i++)
		for (k = 0; k < 4; k++) {
			assert_true(i == k || unrelated(drawn[i], drawn[k]));
			assert_true(unrelated(drawn[i], handle[k]));
		}
}

/* Neither the owner nor the engine says anything about it. */
static void pull__that_gives_up_is_not_answered(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 1000);
	pull(B, A, key, 2, 0, 1000, 0);
	settle();
	expect_frames("B>A DATA 1 [PULL 0 0+1000]", "A>B DATA 1 now ack 1 [BULK 0+1000]",
		      "B>A ACK 1", NULL);
	expect_events("B PULLED 2 len 1000", NULL);
	pull(B, A, key, 3, 0, 0, BW_PULL_FINAL | BW_OP_QUIET);
	settle();
	expect_frames("B>A DATA 2 [PULL 1 0+0 final]", NULL);
	expect_events("A REGION_DONE 1", NULL);
}

static void pull__of_nothing_without_final_changes_nothing(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 3000);
	pull(B, A, key, 2, 0, 0, 0);
	run(BW_MS);
	expect_events("B PULLED 2 len 0", NULL);
	pull(B, A, key, 3, 0, 3000, BW_PULL_FINAL);
	run(BW_MS);
	expect_events("B PULLED 3 len 3000", "A REGION_DONE 1", NULL);
}

static void pull__with_an_unknown_key(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 100);
	pull(B, A, key + (1ull << 32), 2, 0, 100, 0); /* right handle, wrong secret */
	settle();
	assert_int_equal(frames_with("[PULL_ERROR 0 ENOENT]"), 1);
	expect_events("B PULLED 2 ENOENT", NULL);
	pull(B, A, key + 1, 3, 0, 100, 0);
	pull(B, A, key ^ 1 << 20, 4, 0, 100, 0);
	settle();
	expect_events("B PULLED 3 ENOENT", "B PULLED 4 ENOENT", NULL);
}

static void pull__of_nothing_must_be_allowed_too(void **state)
{
	uint64_t key;

	meet(A, B);
	meet(A, C);
	key = expose(A, B, 1, 100);
	host_region(A, 0xFEED, 5, 4000);
	pull(B, A, key + (1ull << 32), 2, 0, 0, BW_PULL_FINAL);
	pull(C, A, key, 3, 0, 0, BW_PULL_FINAL);
	pull(B, A, key, 4, 101, 0, 0);
	pull(B, A, 0xFEEE, 5, 0, 0, BW_PULL_HOST_KEY);
	run(BW_MS);
	expect_events("B PULLED 2 ENOENT", "B PULLED 4 EINVAL", "B PULLED 5 EACCES",
		      "C PULLED 3 EACCES", NULL);
	pull(B, A, 0xFEED, 6, 0, 0, BW_PULL_HOST_KEY);
	pull(B, A, key, 7, 100, 0, BW_PULL_FINAL);
	run(BW_MS);
	expect_events("A REGION_DONE 1", "B PULLED 6 len 0", "B PULLED 7 len 0", NULL);
	assert_int_equal(count(A)->tx_pulls, 0);
	assert_int_equal(count(B)->rx_pulls, 0);
}

static void pull__of_nothing_waits_for_its_answer(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 100);
	pull(B, A, key, 2, 0, 0, 0);
	flush(B);
	deliver(0);
	flush(A);
	drop_all(); /* answer and acknowledgement */
	forget_logs();
	run(BW_S);
	assert_true(frames_with("[PULL_ERROR 0 0]") > 0);
	expect_events("B PULLED 2 len 0", NULL);
	assert_int_equal(engine(A)->txmsgs.in_use, 0);
	assert_int_equal(engine(B)->txmsgs.in_use, 0);
	assert_int_equal(engine(B)->pulls.in_use, 0);
}

static void pull__of_something_is_not_ended_by_a_mere_answer(void **state)
{
	struct bw_part_msg *m;
	struct frame *f;
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 100);
	pull(B, A, key + 1, 2, 0, 100, 0);
	flush(B);
	deliver(0);
	flush(A);
	f = take(0);
	m = (struct bw_part_msg *)frame_part(f, 0);
	m->status = 0;
	frame_seal(f);
	receive(f);
	expect_events("B PULLED 2 EIO", NULL);
}

/* Requests for the region, as if they had come in packets; how many were taken. */
static uint32_t request_many(uint64_t key, uint32_t many)
{
	struct bw_part_msg m = {.part.kind = BW_PART_PULL, .tag = key, .total = 1};

	for (m.imm = 1; m.imm <= many; m.imm++) {
		if (bw_pull_request(engine(A), peer(A, B), &m))
			return (uint32_t)m.imm - 1;
		if (m.imm % 128 == 0)
			assert_int_equal(retract(A, 1), -ENOENT); /* the host offers memory */
	}
	return many;
}

static void pull__too_many_at_a_time_have_to_wait(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 100);
	assert_int_equal(request_many(key, BW_ASKED_MAX - 1), BW_ASKED_MAX - 1);
	assert_int_equal(request_many(key + 1, 2), 1); /* an answer counts too */
	pull(B, A, key, 2, 0, 100, 0);
	flush(B);
	assert_int_equal(deliver(0), -BW_DROP_NO_BUFFER);
	node_kill(B);
}

static void pull__of_another_peers_region(void **state)
{
	uint64_t key;

	meet(A, B);
	meet(A, C);
	key = expose(A, B, 1, 100);
	pull(C, A, key, 2, 0, 100, BW_PULL_FINAL);
	settle();
	expect_events("C PULLED 2 EACCES", NULL);
	pull(B, A, key, 3, 0, 100, BW_PULL_FINAL);
	settle();
	expect_events("B PULLED 3 len 100", "A REGION_DONE 1", NULL);
}

static void pull__beyond_the_region(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 100);
	pull(B, A, key, 2, 0, 101, 0);
	pull(B, A, key, 3, 100, 1, 0);
	pull(B, A, key, 4, UINT64_MAX - 1, 100, 0);
	settle();
	expect_events("B PULLED 2 EINVAL", "B PULLED 3 EINVAL", "B PULLED 4 EINVAL", NULL);
}

/* What the owner's number means to our host must not be the owner's choice. */
static void pull__status_of_the_owner_is_one_of_a_few(void **state)
{
	static const int32_t others[] = {-EAGAIN, -ETIMEDOUT, -ESHUTDOWN, -1, INT32_MIN, 7, 0};
	struct bw_part_msg *m;
	unsigned int i;

	meet(A, B);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		pull(B, A, 1234, 2, 0, 100, 0); /* no such region */
		flush(B);
		deliver(0);
		flush(A);
		m = (struct bw_part_msg *)frame_part(world.wire[0], 0);
		assert_int_equal(m->part.kind, BW_PART_PULL_ERROR);
		assert_int_equal(m->status, -ENOENT);
		m->status = others[i];
		frame_seal(world.wire[0]);
		settle();
		expect_events("B PULLED 2 EIO", NULL);
		assert_int_equal(count(B)->drop[BW_DROP_MALFORMED], i + 1);
	}
	pull(B, A, 1234, 2, 0, 100, 0);
	settle();
	expect_events("B PULLED 2 ENOENT", NULL);
	assert_int_equal(count(B)->drop[BW_DROP_MALFORMED], i);
}

static void pull__of_host_memory(void **state)
{
	meet(A, B);
	host_region(A, 0xFEED, 5, 4000);
	pull(B, A, 0xFEED, 5, 0, 4000, BW_PULL_HOST_KEY);
	settle();
	expect_events("B PULLED 5 len 4000", NULL);
	pull(B, A, 0xFEED, 6, 1, 4000, BW_PULL_HOST_KEY);
	pull(B, A, 0xFEEE, 7, 0, 4, BW_PULL_HOST_KEY);
	settle();
	expect_events("B PULLED 6 EINVAL", "B PULLED 7 EACCES", NULL);
	expect_credit_settled(A, B);
}

/* However it ends, the host is told once that nothing is read any more. */
static void pull__of_host_memory_is_over_once(void **state)
{
	uint64_t key;

	meet(A, B);
	host_region(A, 0xFEED, 5, 4000);
	pull(B, A, 0xFEED, 5, 0, 4000, BW_PULL_HOST_KEY);
	flush(B);
	deliver(0);
	assert_int_equal(world.node[A].host_reads, 1);
	settle();
	assert_int_equal(world.node[A].host_reads, 0);

	pull(B, A, 0xFEED, 6, 0, 0, BW_PULL_HOST_KEY); /* of nothing */
	settle();
	assert_int_equal(world.node[A].host_reads, 0);
	expect_events("B PULLED 5 len 4000", "B PULLED 6 len 0", NULL);

	key = expose(A, B, 1, 3000); /* memory that is not the host's own */
	pull(B, A, key, 7, 0, 3000, BW_PULL_FINAL);
	pull(B, A, 0xFEED, 8, 0, 4000, BW_PULL_HOST_KEY);
	flush(B);
	deliver(0);
	assert_int_equal(world.node[A].host_reads, 1);
	retract(A, key);
	assert_int_equal(world.node[A].host_reads, 1);
	disconnect(A, B);
	assert_int_equal(world.node[A].host_reads, 0);
	world.quiet = true;
}

static void pull__data_in_any_order_and_twice(void **state)
{
	struct frame *again;
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 5 * BULK);
	pull(B, A, key, 2, 0, 5 * BULK, BW_PULL_FINAL);
	flush(B);
	deliver(0);
	flush(A);
	again = frame_copy(world.wire[1]);
	reverse();
	deliver(0);
	deliver(0);
	frame_hdr(again)->pn = 6;
	frame_seal(again);
	assert_int_equal(receive(again), 0);
	expect_events(NULL, NULL);
	deliver_all();
	expect_events("B PULLED 2 len 6040", NULL);
	assert_int_equal(count(B)->rx_payload, 5 * BULK);
}

static void pull__repeated_request_is_served_once(void **state)
{
	struct frame *again;
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 100);
	pull(B, A, key, 2, 0, 100, 0);
	flush(B);
	again = frame_copy(world.wire[0]);
	settle();
	forget_logs();
	frame_hdr(again)->pn =
		2; /* a late duplicate of a finished request, in a packet of its own */
	frame_seal(again);
	assert_int_equal(receive(again), 0);
	settle();
	assert_int_equal(frames_with("BULK"), 0);
	assert_int_equal(count(A)->tx_pulls, 1);
}

static void pull__requests_in_any_order_are_each_served_once(void **state)
{
	struct frame *again;
	uint64_t key;
	int i;

	meet(A, B);
	key = expose(A, B, 1, 100);
	for (i = 0; i < 3; i++) {
		pull(B, A, key, 10 + (uint64_t)i, 0, 100, 0);
		flush(B);
	}
	again = frame_copy(world.wire[2]);
	reverse();
	deliver(0);
	frame_hdr(again)->pn = 9;
	frame_seal(again);
	receive(again);
	settle();
	assert_int_equal(events_with("B PULLED"), 3);
	assert_int_equal(count(A)->tx_pulls, 3);
}

static void pull__payload_damaged_comes_again(void **state)
{
	struct frame *f;
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 3000);
	pull(B, A, key, 2, 0, 3000, BW_PULL_FINAL);
	flush(B);
	deliver(0);
	flush(A);
	f = take(1);
	frame_payload(f, frame_part(f, 0))[7] ^= 1;
	assert_int_equal(receive(f), -BW_DROP_DATA);
	run(10 * BW_MS);
	expect_events("B PULLED 2 len 3000", "A REGION_DONE 1", NULL);
	expect_credit_settled(A, B);
}

static void pull__data_that_comes_again_after_the_end_gives_no_credit(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 2000);
	pull(B, A, key, 2, 0, 2000, BW_PULL_FINAL);
	flush(B);
	deliver(0);
	flush(A);
	deliver_all();
	flush(B);
	drop_all(); /* the acknowledgement */
	run(10 * BW_MS);
	expect_events("B PULLED 2 len 2000", "A REGION_DONE 1", NULL);
	assert_true(count(A)->retransmits > 0);
	expect_credit_settled(A, B);
}

static void pulls__take_turns_with_messages(void **state)
{
	uint64_t key;
	int i;

	meet(A, B);
	key = expose(A, B, 1, 1000000);
	pull(B, A, key, 2, 0, 1000000, BW_PULL_FINAL);
	flush(B);
	deliver(0);
	for (i = 0; i < 40; i++)
		post(A, B, 100 + (uint64_t)i, 1000);
	flush(A);
	assert_true(frames_with("BULK") > 0);
	assert_true(frames_with("MESSAGE") > frames_with("BULK"));
	run(100 * BW_MS);
	assert_int_equal(events_with("B MESSAGE"), 40);
	assert_int_equal(events_with("B PULLED 2"), 1);
}

static void pulls__more_than_the_control_window(void **state)
{
	uint64_t key;
	int i;

	meet(A, B);
	key = expose(A, B, 1, 100);
	for (i = 0; i < 1000; i++)
		pull(B, A, key, 1000 + (uint64_t)i, 0, 100, 0);
	flush(B);
	assert_true(frames_with("PULL") <= BW_CONTROL_MAX);
	run(100 * BW_MS);
	assert_int_equal(events_with("B PULLED"), 1000);
	expect_drop(A, BW_DROP_WINDOW, 0);
	expect_credit_settled(A, B);
}

static void pulls__control_window_waits_for_the_oldest(void **state)
{
	uint64_t key;
	int i;

	meet(A, B);
	key = expose(A, B, 1, 100);
	pull(B, A, key, 999, 0, 100, 0);
	flush(B);
	drop_all();
	for (i = 0; i < 600; i++)
		pull(B, A, key, 1000 + (uint64_t)i, 0, 100, 0);
	flush(B);
	while (world.wire_n)
		deliver(0);
	/* number 0 is missing: nothing beyond 255 may have been sent */
	assert_int_equal(peer(A, B)->control_seen_base, 0);
	assert_int_equal(frames_with("[PULL 255"), 1);
	assert_int_equal(frames_with("[PULL 256"), 0);
	run(500 * BW_MS);
	assert_int_equal(events_with("B PULLED"), 601);
	expect_drop(A, BW_DROP_WINDOW, 0);
}

static void control__beyond_the_window_is_dropped(void **state)
{
	struct bw_part_msg *m;
	struct frame *f;

	meet(A, B);
	pull(B, A, 0x1234, 2, 0, 100, 0);
	flush(B);
	f = take(0);
	m = (struct bw_part_msg *)frame_part(f, 0);
	m->id = BW_CONTROL_MAX;
	frame_seal(f);
	assert_int_equal(receive(frame_copy(f)), -BW_DROP_WINDOW);
	m->id = BW_CONTROL_MAX - 1;
	frame_seal(f);
	assert_int_equal(receive(f), 0);
}

static void bulk__of_another_peers_pull_is_not_placed(void **state)
{
	struct bw_part_bulk *b;
	uint64_t key, id;
	struct frame *f;

	meet(A, B);
	meet(C, B);
	key = expose(A, B, 1, 100);
	id = pull(B, A, 0, 2, 0, 100, 0);
	key = expose(C, B, 3, 100);
	pull(B, C, key, 4, 0, 100, 0);
	flush(B);
	drop(0);
	deliver(0);
	flush(C);
	f = take(0);
	b = (struct bw_part_bulk *)frame_part(f, 0);
	b->id = id;
	frame_seal(f);
	assert_int_equal(receive(f), 0);
	expect_events(NULL, NULL);
	expect_drop(B, BW_DROP_STALE, 1);
}

static void bulk__beyond_the_pull_is_dropped(void **state)
{
	struct bw_part_bulk *b;
	struct frame *f;
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 100);
	pull(B, A, key, 2, 0, 100, 0);
	flush(B);
	deliver(0);
	flush(A);
	f = frame_copy(world.wire[0]);
	b = (struct bw_part_bulk *)frame_part(f, 0);
	b->offset = 1;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_MALFORMED);
	f = frame_copy(world.wire[0]);
	b = (struct bw_part_bulk *)frame_part(f, 0);
	b->offset = UINT64_MAX - 10;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_MALFORMED);
	settle();
	expect_events("B PULLED 2 len 100", NULL);
}

static void submit__refuses_pulls_that_make_no_sense(void **state)
{
	struct bw_op op = {.type = BW_OP_PULL};

	meet(A, B);
	op.peer = world.node[A].peer[B];
	op.pull.len = 10;
	assert_int_equal(submit(A, &op), -EINVAL); /* no buffer */
	op.pull.len = 0;
	op.pull.flags = 4;
	assert_int_equal(submit(A, &op), -EINVAL);
	op.pull.flags = BW_OP_QUIET; /* and not final */
	assert_int_equal(submit(A, &op), -EINVAL);
	op.peer++;
	op.pull.flags = 0;
	assert_int_equal(submit(A, &op), -ENOTCONN);
	op = (struct bw_op){.type = BW_OP_EXPOSE, .peer = world.node[A].peer[B]};
	op.expose.len = 10;
	assert_int_equal(submit(A, &op), -EINVAL);
}

int pull_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pull__fetches_a_region),
		TEST(pull__of_a_part_leaves_the_region),
		TEST(pull__of_nothing_releases_the_region),
		TEST(region__key_says_nothing_of_others),
		TEST(pull__that_gives_up_is_not_answered),
		TEST(pull__of_nothing_without_final_changes_nothing),
		TEST(pull__with_an_unknown_key),
		TEST(pull__of_nothing_must_be_allowed_too),
		TEST(pull__too_many_at_a_time_have_to_wait),
		TEST(pull__of_nothing_waits_for_its_answer),
		TEST(pull__of_something_is_not_ended_by_a_mere_answer),
		TEST(pull__of_another_peers_region),
		TEST(pull__beyond_the_region),
		TEST(pull__status_of_the_owner_is_one_of_a_few),
		TEST(pull__of_host_memory),
		TEST(pull__of_host_memory_is_over_once),
		TEST(pull__data_in_any_order_and_twice),
		TEST(pull__repeated_request_is_served_once),
		TEST(pull__requests_in_any_order_are_each_served_once),
		TEST(pull__payload_damaged_comes_again),
		TEST(pull__data_that_comes_again_after_the_end_gives_no_credit),
		TEST(pulls__take_turns_with_messages),
		TEST(pulls__more_than_the_control_window),
		TEST(pulls__control_window_waits_for_the_oldest),
		TEST(control__beyond_the_window_is_dropped),
		TEST(bulk__of_another_peers_pull_is_not_placed),
		TEST(bulk__beyond_the_pull_is_dropped),
		TEST(submit__refuses_pulls_that_make_no_sense),
	};

	return cmocka_run_group_tests_name("pull", tests, NULL, NULL);
}
