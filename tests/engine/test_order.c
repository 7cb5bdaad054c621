/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of a flow are delivered in order and exactly once, whatever the network does; flows do
 * not wait for each other; several messages share a frame.
 */
#include "groups.h"

static void order__kept_when_frames_are_reversed(void **state)
{
	int i;

	meet(A, B);
	for (i = 0; i < 4; i++)
		post(A, B, (uint64_t)i, 1000);
	flush(A);
	assert_int_equal(world.wire_n, 4);
	reverse();
	forget_logs();
	deliver(0);
	deliver(0);
	deliver(0);
	expect_events(NULL, NULL);
	deliver(0);
	expect_events("B MESSAGE 0 len 1000", "B MESSAGE 1 len 1000", "B MESSAGE 2 len 1000",
		      "B MESSAGE 3 len 1000", NULL);
}

static void order__waits_for_the_missing_one_only(void **state)
{
	meet(A, B);
	post(A, B, 0, 1000);
	flush(A);
	drop(0);
	post(A, B, 1, 1000);
	flush(A);
	deliver(0);
	expect_events(NULL, NULL);
	run(10 * BW_MS);
	expect_events("A SENT 1", "B MESSAGE 0 len 1000", "B MESSAGE 1 len 1000", "A SENT 0", NULL);
}

static void flow__does_not_wait_for_another(void **state)
{
	struct bw_op op;

	meet(A, B);
	post(A, B, 1, 1000);
	flush(A);
	drop(0);
	op = op_send(A, B, 2, 1000);
	op.send.src_ep = 3;
	op.send.dst_ep = 4;
	op.send.code = 9;
	assert_int_equal(submit(A, &op), 0);
	flush(A);
	expect_frames("A>B DATA 1 [MESSAGE 0 0+1000/1000]",
		      "A>B DATA 2 [MESSAGE 0 0+1000/1000 ep 3>4]", NULL);
	deliver(0);
	expect_events("B MESSAGE 2 len 1000 ep 3>4 code 9", NULL);
	run(10 * BW_MS);
	assert_int_equal(events_with("B MESSAGE 1"), 1);
}

static void flow__is_a_pair_of_endpoints(void **state)
{
	static const uint16_t ends[][2] = {{1, 2}, {1, 3}, {4, 2}};
	unsigned int i;

	meet(A, B);
	for (i = 0; i < 3; i++) {
		struct bw_op op = op_send(A, B, i, 300);

		op.send.src_ep = ends[i][0];
		op.send.dst_ep = ends[i][1];
		assert_int_equal(submit(A, &op), 0);
	}
	settle();
	assert_int_equal(frames_with("[MESSAGE 0 0+300/300 ep 1>2]"), 1);
	assert_int_equal(frames_with("[MESSAGE 0 0+300/300 ep 1>3]"), 1);
	assert_int_equal(frames_with("[MESSAGE 0 0+300/300 ep 4>2]"), 1);
	assert_int_equal(events_with("B MESSAGE"), 3);
}

static void flow__directions_are_numbered_apart(void **state)
{
	meet(A, B);
	post(A, B, 1, 8);
	post(A, B, 2, 8);
	post(B, A, 3, 8);
	run(BW_MS);
	assert_int_equal(events_with("MESSAGE"), 3);
	assert_int_equal(peer(A, B)->app.tx_next, 2);
	assert_int_equal(peer(B, A)->app.tx_next, 1);
	assert_int_equal(peer(B, A)->app.rx_next, 2);
}

static void bundle__messages_share_a_frame(void **state)
{
	meet(A, B);
	post(A, B, 10, 8);
	post(A, B, 11, 0);
	post(A, B, 12, 13);
	flush(A);
	expect_frames("A>B DATA 1 [MESSAGE 0 0+8/8] [MESSAGE 1 0+0/0] [MESSAGE 2 0+13/13]", NULL);
	deliver_all();
	expect_events("B MESSAGE 10 len 8", "B MESSAGE 11 len 0", "B MESSAGE 12 len 13", NULL);
}

static void bundle__parts_begin_at_multiples_of_8(void **state)
{
	unsigned int i;

	meet(A, B);
	post(A, B, 1, 1);
	post(A, B, 2, 15);
	post(A, B, 3, 3);
	flush(A);
	for (i = 0; i < 3; i++) {
		const uint8_t *part = (const uint8_t *)frame_part(world.wire[0], i);

		assert_non_null(part);
		assert_int_equal((part - world.wire[0]->bytes) % 8, 0);
	}
	/* hdr, ackblk, three parts; payloads of 1 and 15 are padded, the last is not */
	assert_int_equal(world.wire[0]->len - world.wire[0]->trailer,
			 32 + 16 + 3 * 56 + 8 + 16 + 3);
	assert_int_equal(frame_hdr(world.wire[0])->len, world.wire[0]->len - 32);
	settle();
	assert_int_equal(events_with("MESSAGE"), 3);
}

static void bundle__a_frame_has_at_most_14_parts(void **state)
{
	int i;

	meet(A, B);
	for (i = 0; i < 20; i++)
		post(A, B, (uint64_t)i, 0);
	run(BW_MS);
	assert_int_equal(events_with("B MESSAGE"), 20);
	assert_int_equal(events_with("A SENT"), 20);
	assert_true(frames_with("A>B DATA") >= 2);
}

static void bundle__all_parts_lie_where_hosts_must_not_scatter(void **state)
{
	unsigned int i, n, lens[] = {1, 100, 200, 1000, 3, 70, 500};

	for (i = 0; i < 4; i++)
		world.node[A].cfg.link_mtu[i] = world.node[B].cfg.link_mtu[i] = 9000;
	meet(A, B);
	run(10 * BW_MS);
	assert_int_equal(path(A, B, 0)->pmtu.mtu, 9000);
	for (i = 0; i < 40; i++)
		post(A, B, i, lens[i % 7]);
	flush(A);
	for (n = 0; n < world.wire_n; n++) {
		const struct frame *f = world.wire[n];
		const struct bw_part *part;

		for (i = 0; (part = frame_part(f, i)); i++)
			assert_true((const uint8_t *)part + sizeof(struct bw_part_msg) - f->bytes <=
				    BW_HEAD_MAX);
	}
	settle();
	assert_int_equal(events_with("B MESSAGE"), 40);
}

static void duplicate__frame_is_acknowledged_and_dropped(void **state)
{
	struct frame *again;

	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	again = frame_copy(world.wire[0]);
	deliver_all();
	assert_int_equal(receive(again), -BW_DROP_DUPLICATE);
	flush(B);
	expect_frames("A>B DATA 1 [MESSAGE 0 0+8/8]", "B>A ACK 1", NULL);
	expect_events("B MESSAGE 1 len 8", NULL);
}

static void duplicate__message_in_another_packet_is_delivered_once(void **state)
{
	struct frame *again;

	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	again = frame_copy(world.wire[0]);
	settle();
	post(A, B, 2, 8);
	settle();
	frame_hdr(again)->pn = 3; /* as if it had been sent again */
	frame_seal(again);
	assert_int_equal(receive(again), 0);
	run(BW_MS);
	assert_int_equal(events_with("B MESSAGE 1"), 1);
	assert_int_equal(events_with("B MESSAGE 2"), 1);
}

static void duplicate__segment_counts_once(void **state)
{
	struct frame *again;

	meet(A, B);
	post(A, B, 1, 3000);
	flush(A);
	again = frame_copy(world.wire[0]);
	frame_hdr(again)->pn = 4;
	frame_seal(again);
	deliver(0);
	assert_int_equal(receive(again), 0);
	assert_int_equal(peer(B, A)->path[0]->rx.max, 4);
	expect_events(NULL, NULL);
	deliver(0);
	deliver(0);
	expect_events("B MESSAGE 1 len 3000", NULL);
	assert_int_equal(count(B)->rx_payload, 3000);
}

static void window__messages_too_far_ahead_come_again(void **state)
{
	struct bw_part_msg *m;
	struct frame *far;

	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	far = frame_copy(world.wire[0]);
	m = (struct bw_part_msg *)frame_part(far, 0);
	m->id = BW_FLOW_WINDOW;
	frame_seal(far);
	assert_int_equal(receive(frame_copy(far)), -BW_DROP_WINDOW);
	m->id = BW_FLOW_WINDOW - 1;
	frame_hdr(far)->pn = 2;
	frame_seal(far);
	assert_int_equal(receive(far), 0);
	assert_int_equal(path(B, A, 0)->rx.got.base, 1); /* packet 1 is not acknowledged */
}

static void submit__refuses_what_cannot_be_sent(void **state)
{
	struct bw_op op;

	meet(A, B);
	op = op_send(A, B, 1, 8);
	op.send.len = BW_EAGER_LIMIT + 1;
	assert_int_equal(submit(A, &op), -EMSGSIZE);
	op.send.len = 8;
	op.send.buf = 0;
	assert_int_equal(submit(A, &op), -EINVAL);
	op = op_send(A, B, 2, 8);
	op.send.dst_ep = BW_EP_CONTROL;
	assert_int_equal(submit(A, &op), -EINVAL);
	op.send.dst_ep = 0;
	op.send.src_ep = BW_EP_CONTROL;
	assert_int_equal(submit(A, &op), -EINVAL);
	op.peer = 0;
	op.send.src_ep = 0;
	assert_int_equal(submit(A, &op), -ENOTCONN);
	settle();
	expect_frames(NULL, NULL);
}

static void busy__until_everything_is_acknowledged(void **state)
{
	meet(A, B);
	assert_false(bw_reliable.busy(engine(A)));
	post(A, B, 1, 8);
	assert_true(bw_reliable.busy(engine(A)));
	flush(A);
	deliver_all();
	assert_true(bw_reliable.busy(engine(A)));
	run(BW_MS);
	assert_false(bw_reliable.busy(engine(A)));
	assert_int_equal(deadline(), BW_NEVER);
}

static void urgent__asks_for_an_acknowledgement_at_once(void **state)
{
	struct bw_op op;

	meet(A, B);
	op = op_send(A, B, 1, 8);
	op.send.urgent = true;
	assert_int_equal(submit(A, &op), 0);
	settle();
	expect_frames("A>B DATA 1 now [MESSAGE 0 0+8/8]", "B>A ACK 1", NULL);
	expect_events("B MESSAGE 1 len 8", "A SENT 1", NULL);
}

int order_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(order__kept_when_frames_are_reversed),
		TEST(order__waits_for_the_missing_one_only),
		TEST(flow__does_not_wait_for_another),
		TEST(flow__is_a_pair_of_endpoints),
		TEST(flow__directions_are_numbered_apart),
		TEST(bundle__messages_share_a_frame),
		TEST(bundle__parts_begin_at_multiples_of_8),
		TEST(bundle__a_frame_has_at_most_14_parts),
		TEST(bundle__all_parts_lie_where_hosts_must_not_scatter),
		TEST(duplicate__frame_is_acknowledged_and_dropped),
		TEST(duplicate__message_in_another_packet_is_delivered_once),
		TEST(duplicate__segment_counts_once),
		TEST(window__messages_too_far_ahead_come_again),
		TEST(submit__refuses_what_cannot_be_sent),
		TEST(busy__until_everything_is_acknowledged),
		TEST(urgent__asks_for_an_acknowledgement_at_once),
	};

	return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
