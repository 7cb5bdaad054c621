/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames that the engine handles in a straight line (engine/single.c): whatever is wrong with one
 * must not get past it, and what it tells its host at once must be the same as by events.
 */
#include "groups.h"
#include "host.h"

static void open_direct(void)
{
	meet(A, B);
	engine(B)->ops = &host_ops_direct;
	post(A, B, 1, 8); /* opens the flow */
	settle();
	forget_logs();
}

/* The frame of A's next message to B, of `len` bytes: on its way. */
static struct frame *direct_frame(uint32_t len)
{
	open_direct();
	post(A, B, 2, len);
	flush(A);
	return take(0);
}

static void direct__message_is_taken_within_rx(void **state)
{
	open_direct();
	post(A, B, 2, 100);
	settle();
	expect_events("B MESSAGE 2 len 100", "(at once)", NULL);
}

static void direct__not_before_what_waits(void **state)
{
	struct bw_op op;

	open_direct();
	world.node[B].ignore_events = true;
	op = op_send(A, B, 2, 0);
	assert_int_equal(world.node[A].protocol->submit(world.node[A].mem, &op, world.now), 0);
	op = op_send(A, B, 3, 0);
	assert_int_equal(world.node[A].protocol->submit(world.node[A].mem, &op, world.now), 0);
	flush(A); /* both in one frame: told by events */
	settle();
	post(A, B, 4, 0);
	settle();
	assert_int_equal(events_with("B MESSAGE"), 0);
	world.node[B].ignore_events = false;
	settle();
	assert_int_equal(events_with("B MESSAGE"), 3);
	assert_int_equal(events_with("at once"), 0);
}

static void direct__damaged_payload_is_not(void **state)
{
	struct frame *f = direct_frame(100), *copy = frame_copy(f);

	*frame_payload(f, frame_part(f, 0)) ^= 1;
	assert_int_equal(receive(f), -BW_DROP_DATA);
	expect_drop(B, BW_DROP_DATA, 1);
	assert_int_equal(events_with("B MESSAGE"), 0);
	assert_int_equal(receive(copy), 0);
	expect_events("B MESSAGE 2 len 100", "(at once)", NULL);
}

static void head__of_a_later_message(void **state)
{
	struct frame *first = direct_frame(8), *second;

	post(A, B, 3, 8);
	flush(A);
	second = take(0);
	frame_hdr(second)->pn = frame_hdr(first)->pn++;
	frame_seal(first);
	frame_seal(second);
	assert_int_equal(receive(second), 0);
	assert_int_equal(events_with("B MESSAGE"), 0); /* not before its turn */
	assert_int_equal(receive(first), 0);
	settle();
	assert_int_equal(events_with("B MESSAGE"), 2);
}

static void head__without_the_token(void **state)
{
	struct frame *f = direct_frame(8);

	frame_hdr(f)->token ^= 1;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_HANDLE);
	expect_drop(B, BW_DROP_HANDLE, 1);
}

static void head__of_another_engine(void **state)
{
	struct frame *f = direct_frame(8);

	frame_hdr(f)->src_engine ^= 1;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_HANDLE);
	expect_drop(B, BW_DROP_HANDLE, 1);
}

static void head__damaged(void **state)
{
	struct frame *f = direct_frame(8);

	((struct bw_part_msg *)frame_part(f, 0))->tag ^= 1;
	assert_int_equal(receive(f), -BW_DROP_HEADER);
	expect_drop(B, BW_DROP_HEADER, 1);
}

static void head__of_a_message_that_begins_late(void **state)
{
	struct frame *f = direct_frame(8);

	((struct bw_part_msg *)frame_part(f, 0))->offset = 1;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_MALFORMED);
	expect_drop(B, BW_DROP_MALFORMED, 1);
}

static void twice__is_delivered_once(void **state)
{
	struct frame *f = direct_frame(8), *copy = frame_copy(f);

	assert_int_equal(receive(f), 0);
	assert_int_equal(receive(copy), -BW_DROP_DUPLICATE);
	expect_drop(B, BW_DROP_DUPLICATE, 1);
	assert_int_equal(events_with("B MESSAGE"), 1);
}

static void quiet__send_is_told_within_rx(void **state)
{
	struct bw_op op;

	meet(A, B);
	op = op_send(A, B, 1, 8);
	op.send.quiet = op.send.urgent = true;
	assert_int_equal(submit(A, &op), 0);
	settle();
	expect_events("B MESSAGE 1 len 8", "A SENT 1", "(quietly)", NULL);
}

static void quiet__failure_is_an_event(void **state)
{
	struct bw_op op;

	meet(A, B);
	op = op_send(A, B, 1, 8);
	op.send.quiet = true;
	assert_int_equal(submit(A, &op), 0);
	flush(A);
	drop_all();
	disconnect(A, B);
	assert_int_equal(events_with("A SENT 1 ECANCELED"), 1);
	assert_int_equal(events_with("quietly"), 0);
}

static void event__brings_the_deadline(void **state)
{
	meet(A, B);
	world.node[B].ignore_events = true;
	post(A, B, 1, 8);
	flush(A);
	deliver(0);
	assert_true(world.node[B].protocol->next_deadline(world.node[B].mem) <= world.now);
	world.node[B].ignore_events = false;
	settle();
}

static void credit__of_two_in_one_frame_may_be_used_up(void **state)
{
	struct bw_op op;

	meet(A, B);
	peer(A, B)->tx_used = peer(A, B)->tx_limit - 128;
	op = op_send(A, B, 1, 64);
	assert_int_equal(world.node[A].protocol->submit(world.node[A].mem, &op, world.now), 0);
	op = op_send(A, B, 2, 64);
	assert_int_equal(world.node[A].protocol->submit(world.node[A].mem, &op, world.now), 0);
	flush(A);
	assert_int_equal(count(A)->credit_stalls, 0);
	assert_int_equal(count(A)->tx_messages, 2);
	drop_all();
}

int single_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(direct__message_is_taken_within_rx),
		TEST(direct__not_before_what_waits),
		TEST(direct__damaged_payload_is_not),
		TEST(head__of_a_later_message),
		TEST(head__without_the_token),
		TEST(head__of_another_engine),
		TEST(head__damaged),
		TEST(head__of_a_message_that_begins_late),
		TEST(twice__is_delivered_once),
		TEST(quiet__send_is_told_within_rx),
		TEST(quiet__failure_is_an_event),
		TEST(event__brings_the_deadline),
		TEST(credit__of_two_in_one_frame_may_be_used_up),
	};

	return cmocka_run_group_tests_name("single", tests, NULL, NULL);
}
