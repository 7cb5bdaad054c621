/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * First contact: HELLO and its answer, both at once, what they exchange, refusals, incarnations,
 * versions, and farewells. Nothing that merely went astray may end or begin anything.
 */
#include "groups.h"

static void connect__hello_is_answered(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	settle();
	expect_frames("A>B HELLO", "B>A HELLO answer", NULL);
	expect_events("B PEER_UP A", "A PEER_UP B", "A PATH B link 0 mtu 1280", NULL);
}

/* An old HELLO may have come: whoever answers sends no data before it knows that A is there. */
static void connect__answerer_asks_too_when_nothing_follows(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	settle();
	forget_logs();
	run(10 * BW_MS);
	expect_frames("B>A HELLO", "A>B HELLO answer", NULL);
	expect_events("B PATH A link 0 mtu 1280", NULL);
	assert_int_equal(deadline(), BW_NEVER);
}

static void connect__data_confirms_the_contact(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	post(A, B, 1, 8);
	settle();
	post(B, A, 2, 8);
	run(10 * BW_MS);
	assert_int_equal(frames_with("HELLO"), 2);
	assert_int_equal(events_with("MESSAGE"), 2);
}

static void connect__hello_is_repeated_until_answered(void **state)
{
	node_open(A);
	connect_to(A, B);
	run(100 * BW_MS);
	/* at 0, 1, 3, 7, 15, 31 and 63 ms */
	assert_int_equal(frames_with("A>B HELLO"), 7);
	node_open(B);
	run(100 * BW_MS);
	assert_int_equal(events_with("A PEER_UP B"), 1);
	assert_int_equal(frames_with("B>A HELLO answer"), 1);
}

static void connect__lost_answer_is_given_again(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	deliver(0);
	flush(B);
	drop(0);
	run(10 * BW_MS);
	/* B asks in turn, at the same time */
	expect_frames("A>B HELLO", "B>A HELLO answer", "A>B HELLO", "B>A HELLO", "A>B HELLO answer",
		      "B>A HELLO answer", NULL);
	assert_int_equal(events_with("PEER_UP"), 2);
	assert_int_equal(events_with("PATH"), 2);
}

static void connect__both_at_once(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	connect_to(B, A);
	flush(A);
	flush(B);
	deliver_all();
	run(BW_MS);
	expect_frames("A>B HELLO", "B>A HELLO", "A>B HELLO answer", "B>A HELLO answer", NULL);
	assert_int_equal(events_with("PEER_UP"), 2);
	assert_int_equal(count(A)->peers, 1);
	assert_int_equal(count(B)->peers, 1);
}

static void connect__both_at_once_without_knowing_the_node(void **state)
{
	struct bw_op a, b;

	node_open(A);
	node_open(B);
	a = op_connect(A, B);
	b = op_connect(B, A);
	a.connect.node = b.connect.node = 0;
	a.connect.inc = b.connect.inc = 0;
	assert_int_equal(submit(A, &a), 0);
	assert_int_equal(submit(B, &b), 0);
	flush(A);
	flush(B);
	deliver_all();
	run(10 * BW_MS);
	assert_int_equal(events_with("PEER_UP"), 2);
	assert_int_equal(events_with("PEER_DOWN"), 0);
	assert_int_equal(count(A)->peers, 1);
	assert_int_equal(count(B)->peers, 1);
	assert_int_equal(world.node[A].peer[B], a.peer);
	assert_int_equal(world.node[B].peer[A], b.peer);
}

static void connect__again_finds_the_same_peer(void **state)
{
	struct bw_op op;

	meet(A, B);
	op = op_connect(A, B);
	assert_int_equal(submit(A, &op), 0);
	assert_int_equal(op.peer, world.node[A].peer[B]);
	op = op_connect(B, A);
	assert_int_equal(submit(B, &op), 0);
	assert_int_equal(op.peer, world.node[B].peer[A]);
	settle();
	expect_frames(NULL, NULL);
}

static void connect__needs_a_path(void **state)
{
	struct bw_op op = op_connect(A, B);

	node_open(A);
	op.connect.paths = 0;
	assert_int_equal(submit(A, &op), -EINVAL);
	op.connect.paths = BW_PATHS_MAX + 1;
	assert_int_equal(submit(A, &op), -EINVAL);
	assert_int_equal(count(A)->peers, 0);
}

static void connect__operations_wait_for_first_contact(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	post(A, B, 5, 8);
	settle();
	expect_frames("A>B HELLO", "B>A HELLO answer", "A>B DATA 1 [MESSAGE 0 0+8/8]", NULL);
	run(BW_MS);
	expect_frames("B>A ACK 1", NULL);
	assert_int_equal(events_with("B MESSAGE 5 len 8"), 1);
	assert_int_equal(events_with("A SENT 5"), 1);
}

static void hello__repeated_by_the_network_changes_nothing(void **state)
{
	struct frame *again;

	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	again = frame_copy(world.wire[0]);
	settle();
	forget_logs();
	post(A, B, 1, 8);
	settle();
	give(again);
	run(BW_MS);
	assert_int_equal(frames_with("HELLO answer"), 1);
	assert_int_equal(events_with("PEER"), 0);
	assert_int_equal(count(B)->peers, 1);
}

static void checksum__used_when_both_offer_it(void **state)
{
	int a, b;

	for (a = 0; a < 2; a++)
		for (b = 0; b < 2; b++) {
			const struct bw_part *part;

			world.node[A].cfg.features = a ? BW_FEATURE_CHECKSUM : 0;
			world.node[B].cfg.features = b ? BW_FEATURE_CHECKSUM : 0;
			node_open(A);
			node_open(B);
			meet(A, B);
			post(A, B, 1, 8);
			flush(A);
			part = frame_part(world.wire[0], 0);
			if (a && b)
				assert_int_equal(part->crc, bw_crc32c(0, frame_payload(world.wire[0], part), 8));
			else
				assert_int_equal(part->crc, 0);
			run(BW_MS);
			node_kill(A);
			node_kill(B);
		}
}

static void hello__tells_what_the_engine_is(void **state)
{
	const struct bw_hello *b;
	const struct bw_hdr *h;

	world.node[A].cfg.charge_min = 2048;
	world.node[A].cfg.link_mtu[0] = 4000;
	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	h = frame_hdr(world.wire[0]);
	b = frame_body(world.wire[0]);
	assert_int_equal(world.wire[0]->len, 160);
	assert_int_equal(h->magic, BW_MAGIC);
	assert_int_equal(h->version, BW_VERSION);
	assert_int_equal(h->cluster, CLUSTER);
	assert_int_equal(h->dst_engine, 2);
	assert_int_equal(h->src_engine, 1);
	assert_int_equal(h->dst_inc, world.node[B].cfg.incarnation);
	assert_int_equal(h->conn, 0);
	assert_int_equal(b->node, 0xA0);
	assert_int_equal(b->inc, world.node[A].cfg.incarnation);
	assert_int_equal(b->conn, world.node[A].peer[B]);
	assert_int_equal(b->version_min, BW_VERSION);
	assert_int_equal(b->version_max, BW_VERSION);
	assert_int_equal(b->engine, 1);
	assert_int_equal(b->credit * BW_CREDIT_UNIT, BW_SHARE_MIN);
	assert_int_equal(b->charge_min, 2048);
	assert_int_equal(b->frame_max, 4000);
	assert_int_equal(b->target_node, 0xA1);
	assert_int_equal(b->target_inc, world.node[B].cfg.incarnation);
	assert_string_equal((const char *)b->name, "A");
	settle();
	assert_int_equal(peer(B, A)->charge_min, 2048);
}

static void hello__for_another_incarnation_is_refused(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	node_restart(B);
	post(A, B, 3, 8);
	settle();
	expect_frames("A>B HELLO", "B>A REFUSE incarnation", NULL);
	expect_events("A SENT 3 ECONNREFUSED", "A PEER_DOWN B ECONNREFUSED", NULL);
	expect_drop(B, BW_DROP_INCARNATION, 1);
	assert_int_equal(count(B)->refusals_tx, 1);
	assert_int_equal(count(A)->refusals_rx, 1);
	assert_int_equal(count(B)->peers, 0);
}

static void hello__for_another_node_is_refused(void **state)
{
	struct bw_op op = op_connect(A, B);

	node_open(A);
	node_open(B);
	op.connect.node = 0x77;
	op.connect.inc = 0;
	assert_int_equal(submit(A, &op), 0);
	world.node[A].peer[B] = op.peer;
	settle();
	expect_frames("A>B HELLO", "B>A REFUSE incarnation", NULL);
	expect_events("A PEER_DOWN B ECONNREFUSED", NULL);
}

static void data__for_another_incarnation_is_refused(void **state)
{
	meet(A, B);
	node_restart(B);
	post(A, B, 1, 8);
	run(BW_MS);
	expect_frames("A>B DATA 1 [MESSAGE 0 0+8/8]", "B>A REFUSE incarnation", NULL);
	expect_events("A SENT 1 ECONNREFUSED", "A PEER_DOWN B ECONNREFUSED", NULL);
}

static void data__of_a_forgotten_peer_is_refused(void **state)
{
	meet(A, B);
	disconnect(B, A);
	flush(B);
	drop_all(); /* the BYE gets lost */
	forget_logs();
	post(A, B, 1, 8);
	run(BW_MS);
	expect_frames("A>B DATA 1 [MESSAGE 0 0+8/8]", "B>A REFUSE handle", NULL);
	expect_events("A SENT 1 ECONNRESET", "A PEER_DOWN B ECONNRESET", NULL);
	expect_drop(B, BW_DROP_HANDLE, 1);
	/* and a new first contact may follow */
	meet(A, B);
}

static void data__with_the_handle_of_another_engine_is_refused(void **state)
{
	struct frame *f;

	meet(A, B);
	meet(C, B);
	post(A, B, 1, 8);
	flush(A);
	f = take(0);
	frame_hdr(f)->conn = world.node[B].peer[C];
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_HANDLE);
	run(BW_MS);
	assert_int_equal(frames_with("REFUSE handle"), 1);
	assert_int_equal(events_with("PEER_DOWN"), 0); /* the echo is not A's handle */
	assert_int_equal(events_with("B MESSAGE 1"), 1);
}

static void data__before_the_answer_waits(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	deliver(0);
	post(B, A, 1, 8);
	flush(B);
	assert_int_equal(frames_with("DATA"), 0);
	run(100 * BW_MS);
	assert_int_equal(events_with("A MESSAGE 1 len 8"), 1);
}

static void refuse__echoes_the_frame(void **state)
{
	const struct bw_refuse *b;
	const struct bw_hdr *h;
	uint32_t inc = world.node[B].cfg.incarnation;

	node_open(A);
	node_open(B);
	connect_to(A, B);
	node_restart(B);
	flush(A);
	deliver(0);
	flush(B);
	h = frame_hdr(world.wire[0]);
	b = frame_body(world.wire[0]);
	assert_int_equal(world.wire[0]->len, 96);
	assert_int_equal(h->dst_engine, 1);
	assert_int_equal(h->dst_inc, 0);
	assert_int_equal(h->conn, 0);
	assert_int_equal(b->echo_type, BW_FRAME_HELLO);
	assert_int_equal(b->echo_engine, 2);
	assert_int_equal(b->echo_inc, inc);
	assert_int_equal(b->echo_conn, world.node[A].peer[B]);
	assert_string_equal((const char *)b->name, "B");
}

/* A refusal made by somebody who has not seen our frames. */
static struct frame *refusal(uint8_t echo_type, uint16_t engine, uint32_t inc, uint32_t conn)
{
	struct frame *f = calloc(1, sizeof(*f));
	struct bw_refuse *b;

	f->from = B;
	f->to = A;
	f->len = sizeof(struct bw_hdr) + sizeof(struct bw_refuse);
	f->bytes = calloc(1, f->len);
	*frame_hdr(f) = (struct bw_hdr){.magic = BW_MAGIC,
					.version = BW_VERSION,
					.type = BW_FRAME_REFUSE,
					.cluster = CLUSTER,
					.dst_engine = 1,
					.src_engine = 2,
					.len = sizeof(*b)};
	b = frame_body(f);
	b->why = BW_REFUSAL_INCARNATION;
	b->echo_type = echo_type;
	b->echo_engine = engine;
	b->echo_inc = inc;
	b->echo_conn = conn;
	frame_seal(f);
	return f;
}

static void refuse__without_a_right_echo_is_ignored(void **state)
{
	uint32_t inc = world.node[B].cfg.incarnation;
	uint32_t conn;

	meet(A, B);
	conn = peer(A, B)->conn;
	assert_int_equal(receive(refusal(BW_FRAME_DATA, 2, inc, conn + 1)), -BW_DROP_ECHO);
	assert_int_equal(receive(refusal(BW_FRAME_DATA, 2, inc + 1, conn)), -BW_DROP_ECHO);
	assert_int_equal(receive(refusal(BW_FRAME_DATA, 3, inc, conn)), -BW_DROP_ECHO);
	conn = world.node[A].peer[B];
	assert_int_equal(receive(refusal(BW_FRAME_HELLO, 2, inc + 1, conn)), -BW_DROP_ECHO);
	assert_int_equal(receive(refusal(BW_FRAME_HELLO, 2, inc, conn + 1)), -BW_DROP_ECHO);
	assert_int_equal(receive(refusal(BW_FRAME_HELLO, 3, inc, conn)), -BW_DROP_ECHO);
	expect_drop(A, BW_DROP_ECHO, 6);
	expect_events(NULL, NULL);
	assert_int_equal(receive(refusal(BW_FRAME_DATA, 2, inc, peer(A, B)->conn)), 0);
	expect_events("A PEER_DOWN B ECONNREFUSED", NULL);
}

static void restart__new_incarnation_is_a_new_peer(void **state)
{
	meet(A, B);
	post(A, B, 1, 8);
	run(BW_MS);
	forget_logs();
	node_restart(B);
	connect_to(B, A);
	run(BW_MS);
	/* the old one is asked whether it lives, and refused */
	expect_frames("B>A HELLO", "A>B DATA 2 now", "A>B HELLO answer", "B>A REFUSE incarnation",
		      NULL);
	expect_events("A PEER_UP B", "B PEER_UP A", "B PATH A link 0 mtu 1280",
		      "A PEER_DOWN ? ECONNREFUSED", NULL);
	post(B, A, 2, 8);
	run(BW_MS);
	assert_int_equal(events_with("A MESSAGE 2"), 1);
}

static void restart__same_incarnation_with_a_new_handle(void **state)
{
	meet(A, B);
	disconnect(A, B);
	flush(A);
	drop_all();
	forget_logs();
	connect_to(A, B);
	run(BW_MS);
	assert_int_equal(events_with("B PEER_DOWN A ECONNRESET"), 1);
	assert_int_equal(events_with("PEER_UP"), 2);
	assert_int_equal(count(B)->peers, 1);
}

static void restart__stale_hello_cannot_end_a_living_peer(void **state)
{
	struct frame *old;
	uint32_t living;

	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	old = take(0);
	node_restart(A);
	meet(A, B);
	living = world.node[B].peer[A];
	give(old);
	run(100 * BW_MS); /* its sender is asked, and refused */
	assert_int_equal(events_with("B PEER_DOWN A ECONNREFUSED"), 1);
	world.node[B].peer[A] = living;
	forget_logs();
	post(A, B, 1, 8);
	post(B, A, 2, 8);
	run(BW_MS);
	assert_int_equal(events_with("MESSAGE"), 2);
	assert_int_equal(events_with("PEER_DOWN"), 0);
	assert_int_equal(count(B)->peers, 1);
}

static void restart__stale_hello_of_the_same_incarnation(void **state)
{
	struct frame *old;

	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	old = take(0);
	disconnect(A, B);
	meet(A, B);
	give(old);
	run(100 * BW_MS);
	assert_int_equal(events_with("PEER_DOWN"), 0);
	forget_logs();
	post(A, B, 1, 8);
	post(B, A, 2, 8);
	run(100 * BW_MS);
	assert_int_equal(events_with("MESSAGE"), 2);
	assert_int_equal(events_with("PEER_DOWN"), 0);
}

static void version__none_in_common_names_both(void **state)
{
	struct bw_hello *b;
	struct frame *f;

	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	f = take(0);
	b = frame_body(f);
	b->version_min = 2;
	b->version_max = 3;
	frame_hdr(f)->version = 3;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_VERSION);
	flush(B);
	expect_frames("A>B HELLO", "B>A REFUSE version", NULL);
	deliver_all();
	expect_events("A PEER_DOWN B EPROTONOSUPPORT 1..1", NULL);
	assert_int_equal(count(B)->peers, 0);
}

static void version__other_versions_of_data_are_not_parsed(void **state)
{
	struct frame *f;

	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	f = frame_copy(world.wire[0]);
	frame_hdr(f)->version = 2;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_VERSION);
	expect_events(NULL, NULL);
	run(BW_MS);
	assert_int_equal(events_with("B MESSAGE 1"), 1);
}

static void version__a_range_that_contains_ours_is_spoken_to(void **state)
{
	struct bw_hello *b;
	struct frame *f;

	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	f = take(0);
	b = frame_body(f);
	b->version_max = 9;
	frame_seal(f);
	assert_int_equal(receive(f), 0);
	settle();
	assert_int_equal(events_with("PEER_UP"), 2);
}

static void hello__contradicting_itself_is_dropped(void **state)
{
	int i;

	node_open(A);
	node_open(B);
	connect_to(A, B);
	for (i = 0; i < 6; i++) {
		struct bw_hello *b;
		struct frame *f;

		run(i ? (uint64_t)BW_MS << i : 0);
		connect_to(A, B);
		peer(A, B)->path[0].hello_due = true;
		bw_peer_ready(engine(A), peer(A, B));
		node_kill(B);
		node_open(B);
		flush(A);
		f = take(0);
		drop_all();
		b = frame_body(f);
		b->node = i == 0 ? 0 : b->node;
		b->inc = i == 1 ? 0 : b->inc;
		b->conn = i == 2 ? 0 : b->conn;
		b->engine += i == 3;
		frame_hdr(f)->path = i == 4 ? BW_PATHS_MAX : 0;
		b->frame_max = i == 5 ? BW_FRAME_MIN_MTU - 1 : b->frame_max;
		frame_seal(f);
		assert_int_equal(receive(f), -BW_DROP_MALFORMED);
		assert_int_equal(count(B)->peers, 0);
	}
}

static void answer__must_come_from_whom_it_was_asked(void **state)
{
	struct bw_hello *b;
	struct frame *f;

	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	deliver(0);
	flush(B);
	f = frame_copy(world.wire[0]);
	frame_hdr(f)->conn++;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_HANDLE);
	f = frame_copy(world.wire[0]);
	b = frame_body(f);
	b->inc++;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_HANDLE);
	f = frame_copy(world.wire[0]);
	b = frame_body(f);
	b->node++;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_HANDLE);
	f = frame_copy(world.wire[0]);
	frame_hdr(f)->dst_inc++;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_INCARNATION);
	assert_int_equal(peer(A, B)->state, BW_PEER_HELLO);
	settle();
	assert_int_equal(frames_with("REFUSE"), 0); /* answers are never refused */
	assert_int_equal(peer(A, B)->state, BW_PEER_UP);
}

static void close__says_bye(void **state)
{
	meet(A, B);
	meet(A, C);
	node_close(A);
	expect_frames("A>B BYE", "A>C BYE", NULL);
	deliver_all();
	expect_events("B PEER_DOWN A ESHUTDOWN", "C PEER_DOWN A ESHUTDOWN", NULL);
}

static void close__acknowledges_what_it_got(void **state)
{
	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	deliver_all();
	node_close(B);
	expect_frames("A>B DATA 1 [MESSAGE 0 0+8/8]", "B>A ACK 1", "B>A BYE", NULL);
	deliver_all();
	expect_events("B MESSAGE 1 len 8", "A SENT 1", "A PEER_DOWN B ESHUTDOWN", NULL);
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

static void bye__for_another_incarnation_is_dropped(void **state)
{
	struct frame *f;

	meet(A, B);
	node_close(B);
	f = take(0);
	frame_hdr(f)->dst_inc++;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_INCARNATION);
	assert_int_equal(events_with("PEER_DOWN"), 0);
}

int contact_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(connect__hello_is_answered),
		TEST(connect__answerer_asks_too_when_nothing_follows),
		TEST(connect__data_confirms_the_contact),
		TEST(connect__hello_is_repeated_until_answered),
		TEST(connect__lost_answer_is_given_again),
		TEST(connect__both_at_once),
		TEST(connect__both_at_once_without_knowing_the_node),
		TEST(connect__again_finds_the_same_peer),
		TEST(connect__needs_a_path),
		TEST(connect__operations_wait_for_first_contact),
		TEST(hello__repeated_by_the_network_changes_nothing),
		TEST(hello__tells_what_the_engine_is),
		TEST(hello__for_another_incarnation_is_refused),
		TEST(hello__for_another_node_is_refused),
		TEST(hello__contradicting_itself_is_dropped),
		TEST(checksum__used_when_both_offer_it),
		TEST(answer__must_come_from_whom_it_was_asked),
		TEST(data__for_another_incarnation_is_refused),
		TEST(data__of_a_forgotten_peer_is_refused),
		TEST(data__with_the_handle_of_another_engine_is_refused),
		TEST(data__before_the_answer_waits),
		TEST(refuse__echoes_the_frame),
		TEST(refuse__without_a_right_echo_is_ignored),
		TEST(restart__new_incarnation_is_a_new_peer),
		TEST(restart__same_incarnation_with_a_new_handle),
		TEST(restart__stale_hello_cannot_end_a_living_peer),
		TEST(restart__stale_hello_of_the_same_incarnation),
		TEST(version__none_in_common_names_both),
		TEST(version__other_versions_of_data_are_not_parsed),
		TEST(version__a_range_that_contains_ours_is_spoken_to),
		TEST(close__says_bye),
		TEST(close__acknowledges_what_it_got),
		TEST(close__says_bye_behind_refusals_not_yet_sent),
		TEST(close__gives_buffers_back),
		TEST(disconnect__ends_everything_with_ecanceled),
		TEST(handle__of_a_peer_that_is_down_is_stale),
		TEST(bye__for_another_incarnation_is_dropped),
	};

	return cmocka_run_group_tests_name("contact", tests, NULL, NULL);
}
