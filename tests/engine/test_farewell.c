/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ends in good order: BYE behind what is owed, everything given back and reported, stale handles.
 */
#include "groups.h"

static void close__says_bye(void **state)
{
	meet(A, B);
	meet(A, C);
	node_close(A);
	expect_frames("A>B BYE", "A>C BYE", NULL);
	deliver_all();
	expect_events("B PEER_DOWN A ESHUTDOWN", "C PEER_DOWN A ESHUTDOWN", NULL);
}

/* B got a message, and closes: what it says lies on the wire. */
static void got_and_closed(void)
{
	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	deliver_all();
	node_close(B);
	expect_frames("A>B DATA 1 [MESSAGE 0 0+8/8]", "B>A ACK 1", "B>A BYE", NULL);
}

static void close__acknowledges_what_it_got(void **state)
{
	got_and_closed();
	deliver_all();
	expect_events("B MESSAGE 1 len 8", "A SENT 1", "A PEER_DOWN B ESHUTDOWN", NULL);
}

/* The acknowledgement before it may be lost, or overtaken. */
static void bye__acknowledges_what_was_got(void **state)
{
	got_and_closed();
	drop(0);
	deliver_all();
	expect_events("B MESSAGE 1 len 8", "A SENT 1", "A PEER_DOWN B ESHUTDOWN", NULL);
}

/* What a closed engine has to say some time later. */
static void speak_again(int n)
{
	uint64_t at = bw_reliable.next_deadline(engine(n));

	assert_in_range(at, world.now + 1, world.now + BW_BYE_PAUSE);
	pass(at - world.now);
	flush(n);
}

/* B got a message and is closed: all that it said is lost. */
static void got_and_closed_unheard(void)
{
	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	deliver_all();
	bw_reliable.close(engine(B), world.now);
	flush(B);
	expect_frames("A>B DATA 1 [MESSAGE 0 0+8/8]", "B>A ACK 1", "B>A BYE", NULL);
	drop_all();
}

static void close__says_all_again_after_a_while(void **state)
{
	got_and_closed_unheard();
	speak_again(B);
	expect_frames("B>A ACK 1", "B>A BYE", NULL);
	deliver_all();
	expect_events("B MESSAGE 1 len 8", "A SENT 1", "A PEER_DOWN B ESHUTDOWN", NULL);
	node_kill(B);
}

static void close__says_it_so_often_and_no_more(void **state)
{
	unsigned int i;

	got_and_closed_unheard();
	for (i = 1; i < BW_BYES; i++)
		speak_again(B);
	assert_int_equal(frames_with("BYE"), BW_BYES - 1);
	assert_true(bw_reliable.next_deadline(engine(B)) == BW_NEVER);
	pass(BW_S);
	flush(B);
	assert_int_equal(frames_with("BYE"), BW_BYES - 1);
	deliver_all();
	expect_events("B MESSAGE 1 len 8", "A SENT 1", "A PEER_DOWN B ESHUTDOWN", NULL);
	expect_drop(A, BW_DROP_HANDLE, 2 * (BW_BYES - 1) - 2);
	node_kill(B);
}

/* A peer that knows all would else be told by a refusal, as if the engine had crashed. */
static void close__says_bye_again_where_all_is_known(void **state)
{
	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	deliver_all();
	run(BW_MS); /* the acknowledgement comes by itself */
	post(B, A, 2, 8);
	flush(B);
	deliver_all();
	run(BW_MS);
	expect_events("B MESSAGE 1 len 8", "A SENT 1", "A MESSAGE 2 len 8", "B SENT 2", NULL);
	forget_logs();
	bw_reliable.close(engine(B), world.now);
	flush(B);
	expect_frames("B>A BYE", NULL);
	drop_all();
	speak_again(B);
	expect_frames("B>A ACK 1", "B>A BYE", NULL);
	deliver_all();
	expect_events("A PEER_DOWN B ESHUTDOWN", NULL);
	node_kill(B);
}

/* What is unconfirmed may be an old HELLO's tale: it is not spoken to so often. */
static void close__says_it_once_to_the_unconfirmed(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	deliver_all(); /* B answers HELLO, and A has not used B's handle yet */
	bw_reliable.close(engine(B), world.now);
	flush(B);
	assert_true(bw_reliable.next_deadline(engine(B)) == BW_NEVER);
	node_kill(B);
}

/* Nothing but BYE gets through, and the message before is missing. */
static void bye__acknowledges_beyond_gaps(void **state)
{
	meet(A, B);
	post(A, B, 1, 600);
	flush(A);
	post(A, B, 2, 600);
	flush(A);
	drop(0);
	deliver_all();
	node_close(B);
	assert_int_equal(frames_with("B>A ACK"), 1);
	drop(0);
	deliver_all();
	expect_events("A SENT 2", "A SENT 1 ESHUTDOWN", "A PEER_DOWN B ESHUTDOWN", NULL);
}

static void bye__said_again_acknowledges_what_was_got_before(void **state)
{
	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	deliver_all();
	disconnect(B, A);
	flush(B);
	drop_all(); /* the acknowledgement, and BYE */
	forget_logs();
	post(A, B, 2, 8);
	run(BW_S);
	expect_events("A SENT 1", "A SENT 2 ESHUTDOWN", "A PEER_DOWN B ESHUTDOWN", NULL);
}

static void bye__that_is_not_whole_is_dropped(void **state)
{
	struct frame *f;
	struct bw_ack *a;

	got_and_closed();
	drop(0);
	f = take(0);
	a = (struct bw_ack *)((struct bw_ackblk *)(frame_hdr(f) + 1) + 1);
	a->ranges = 1; /* which is not there */
	frame_seal(f);
	assert_int_equal(receive(frame_copy(f)), -BW_DROP_MALFORMED);
	a->ranges = 0;
	frame_hdr(f)->len = sizeof(struct bw_ackblk);
	frame_seal(f);
	assert_int_equal(receive(frame_copy(f)), -BW_DROP_SHORT);
	assert_int_equal(events_with("A SENT"), 0);
	assert_int_equal(events_with("A PEER_DOWN"), 0);
	frame_free(f);
}

static void close__says_bye_behind_refusals_not_yet_sent(void **state)
{
	struct frame *f;

	meet(A, B);
	post(B, A, 1, 8);
	flush(B);
	f = frame_copy(world.wire[0]);
	drop_all();
	frame_hdr(f)->conn++;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_HANDLE);
	forget_logs();
	node_close(A);
	expect_frames("A>B REFUSE handle", "A>B BYE", NULL);
}

static void close__gives_buffers_back(void **state)
{
	meet(A, B);
	world.node[B].ignore_events = true;
	post(A, B, 1, 5000);
	post(A, B, 2, 5000);
	flush(A);
	drop(0); /* a segment of the first message */
	deliver_all();
	assert_int_equal(world.node[B].buffers_out, 2);
	world.node[B].protocol->close(world.node[B].mem, world.now);
	assert_int_equal(world.node[B].buffers_out, 0);
	node_kill(B);
}

static void close__gives_back_buffers_of_messages_not_taken(void **state)
{
	meet(A, B);
	world.node[B].ignore_events = true;
	post(A, B, 1, 5000);
	flush(A);
	while (world.wire_n) /* complete: its event waits for the host */
		deliver(0);
	assert_int_equal(world.node[B].buffers_out, 1);
	world.node[B].protocol->close(world.node[B].mem, world.now);
	assert_int_equal(world.node[B].buffers_out, 0);
	node_kill(B);
}

static void disconnect__ends_everything_with_ecanceled(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(B, A, 9, 100);
	expose(A, B, 1, 100);
	post(A, B, 2, 8);
	pull(A, B, key, 3, 0, 100, 0);
	disconnect(A, B);
	expect_events("A SENT 2 ECANCELED", "A PULLED 3 ECANCELED", "A REGION_DONE 1 ECANCELED",
		      "A PEER_DOWN B ECANCELED", NULL);
	settle();
	expect_frames("A>B BYE", NULL);
	expect_events("B REGION_DONE 9 ESHUTDOWN", "B PEER_DOWN A ESHUTDOWN", NULL);
	assert_int_equal(count(A)->peers + count(B)->peers, 0);
}

static void disconnect__acknowledges_what_it_got(void **state)
{
	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	deliver_all();
	disconnect(B, A);
	settle();
	expect_frames("A>B DATA 1 [MESSAGE 0 0+8/8]", "B>A ACK 1", "B>A BYE", NULL);
	expect_events("B MESSAGE 1 len 8", "B PEER_DOWN A ECANCELED", "A SENT 1",
		      "A PEER_DOWN B ESHUTDOWN", NULL);
}

/* A host that cannot keep a message leaves its sender, who must not believe that it was taken. */
static void disconnect__does_not_acknowledge_what_was_not_taken(void **state)
{
	struct bw_op op = {.type = BW_OP_DISCONNECT};

	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	deliver_all();
	op.peer = world.node[B].peer[A];
	assert_int_equal(submit(B, &op), 0);
	settle();
	expect_frames("A>B DATA 1 [MESSAGE 0 0+8/8]", "B>A BYE", NULL);
	expect_events("B MESSAGE 1 len 8", "B PEER_DOWN A ECANCELED", "A SENT 1 ESHUTDOWN",
		      "A PEER_DOWN B ESHUTDOWN", NULL);
}

/* As many gaps as can be told. */
static void disconnect__acknowledges_beyond_gaps(void **state)
{
	unsigned int i;

	meet(A, B);
	for (i = 0; i < 2 * BW_ACK_RANGES_MAX; i++) {
		post(A, B, i, 600);
		flush(A);
	}
	assert_int_equal(world.wire_n, 2 * BW_ACK_RANGES_MAX);
	for (i = 0; i < BW_ACK_RANGES_MAX; i++)
		drop(i);
	while (world.wire_n)
		deliver(0);
	disconnect(B, A);
	flush(B);
	deliver_all();
	assert_int_equal(events_with("A SENT"), 2 * BW_ACK_RANGES_MAX);
	assert_int_equal(events_with("ESHUTDOWN"), BW_ACK_RANGES_MAX + 1); /* and PEER_DOWN */
}

/* Leaves are worth more than acknowledgements where little room is left. */
static void disconnect__leaves_room_for_leaves(void **state)
{
	struct frame *f;
	unsigned int i;

	meet(A, B);
	post(B, A, 1, 8);
	flush(B);
	f = frame_copy(world.wire[0]);
	deliver_all();
	frame_hdr(f)->conn++;
	frame_seal(f);
	for (i = 0; i < BW_STRAYS / 2; i++)
		assert_int_equal(receive(frame_copy(f)), -BW_DROP_HANDLE);
	frame_free(f);
	disconnect(A, B);
	flush(A);
	assert_int_equal(frames_with("REFUSE"), BW_STRAYS / 2);
	assert_int_equal(frames_with("ACK"), 0);
	assert_int_equal(frames_with("A>B BYE"), 1);
}

/* The host has no room for the next frame of node n: it comes again. */
static void send_back(int n)
{
	struct bw_tx_frame t;

	assert_true(bw_reliable.next_frame(engine(n), &t, world.now));
	bw_reliable.unsent(engine(n), world.now);
}

static void unsent__leave_goes_again(void **state)
{
	struct bw_tx_frame t;

	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	deliver_all();
	forget_logs();
	disconnect(B, A);
	send_back(B);
	flush(B);
	expect_frames("B>A ACK 1", "B>A BYE", NULL);
	deliver_all();
	expect_events("B PEER_DOWN A ECANCELED", "A SENT 1", "A PEER_DOWN B ESHUTDOWN", NULL);
	meet(A, B);
	disconnect(B, A);
	send_back(B);
	send_back(B);
	flush(B);
	expect_frames("B>A BYE", NULL);
	assert_false(bw_reliable.next_frame(engine(B), &t, world.now));
}

static void unsent__last_words_go_again(void **state)
{
	struct bw_tx_frame t;

	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	deliver_all();
	forget_logs();
	world.node[B].protocol->close(world.node[B].mem, world.now);
	send_back(B);
	assert_true(bw_reliable.next_frame(engine(B), &t, world.now));
	assert_int_equal(((struct bw_hdr *)t.head)->type, BW_FRAME_ACK);
	send_back(B);
	node_close(B);
	expect_frames("B>A BYE", NULL);
}

static void unsent__refusal_goes_again(void **state)
{
	struct frame *f;

	meet(A, B);
	post(B, A, 1, 8);
	flush(B);
	f = take(0);
	frame_hdr(f)->conn++;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_HANDLE);
	forget_logs();
	send_back(A);
	flush(A);
	expect_frames("A>B REFUSE handle", NULL);
}

static void handle__of_a_peer_that_is_down_is_stale(void **state)
{
	struct bw_op op;
	uint32_t old;

	meet(A, B);
	old = world.node[A].peer[B];
	disconnect(A, B);
	settle();
	op = op_send(A, B, 1, 8);
	op.peer = old;
	assert_int_equal(submit(A, &op), -ENOTCONN);
	meet(A, B);
	assert_int_not_equal(world.node[A].peer[B], old);
	assert_int_equal(submit(A, &op), -ENOTCONN);
}

static void failed__is_told_as_gone_to_those_who_know_us(void **state)
{
	uint64_t key;

	meet(A, B);
	connect_to(A, C);
	key = expose(A, B, 1, 100);
	pull(B, A, key, 3, 0, 100, 0);
	drop_all();
	forget_logs();
	bw_reliable_failed(world.node[A].mem);
	node_close(A);
	expect_frames("A>B REFUSE incarnation", NULL);
	deliver_all();
	run(BW_BYE_GRACE);
	expect_events("B PULLED 3 ECONNREFUSED", "B PEER_DOWN A ECONNREFUSED", NULL);
}

static void bye__without_the_token_is_dropped(void **state)
{
	struct frame *f;

	meet(A, B);
	node_close(B);
	f = take(0);
	frame_hdr(f)->token++;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_HANDLE);
	assert_int_equal(events_with("PEER_DOWN"), 0);
}

int farewell_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(close__says_bye),
		TEST(close__acknowledges_what_it_got),
		TEST(bye__acknowledges_what_was_got),
		TEST(close__says_all_again_after_a_while),
		TEST(close__says_it_so_often_and_no_more),
		TEST(close__says_bye_again_where_all_is_known),
		TEST(close__says_it_once_to_the_unconfirmed),
		TEST(bye__acknowledges_beyond_gaps),
		TEST(bye__said_again_acknowledges_what_was_got_before),
		TEST(bye__that_is_not_whole_is_dropped),
		TEST(close__says_bye_behind_refusals_not_yet_sent),
		TEST(close__gives_buffers_back),
		TEST(close__gives_back_buffers_of_messages_not_taken),
		TEST(disconnect__ends_everything_with_ecanceled),
		TEST(disconnect__acknowledges_what_it_got),
		TEST(disconnect__does_not_acknowledge_what_was_not_taken),
		TEST(disconnect__acknowledges_beyond_gaps),
		TEST(disconnect__leaves_room_for_leaves),
		TEST(unsent__leave_goes_again),
		TEST(unsent__last_words_go_again),
		TEST(unsent__refusal_goes_again),
		TEST(handle__of_a_peer_that_is_down_is_stale),
		TEST(failed__is_told_as_gone_to_those_who_know_us),
		TEST(bye__without_the_token_is_dropped),
	};

	return cmocka_run_group_tests_name("farewell", tests, NULL, NULL);
}
