/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Refusals and restarts: frames for the dead are refused, never delivered; a refusal must echo what
 * only a receiver of ours can know; an old frame cannot end a living peer; versions.
 */
#include "groups.h"
#include "refuse.h"

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
	expect_frames("A>B DATA 1 [MESSAGE 0 0+8/8]", "B>A REFUSE handle", NULL);
	expect_events("A SENT 1 ECONNREFUSED", "A PEER_DOWN B ECONNREFUSED", NULL);
}

static bool cut;

static enum fate while_cut(const struct frame *f)
{
	return cut ? LOSE : PASS;
}

static void data__of_a_forgotten_peer_is_refused(void **state)
{
	world.node[B].cfg.dead_ns = BW_S;
	meet(A, B);
	world.fate = while_cut;
	cut = true;
	post(B, A, 7, 8);
	run(2 * BW_S);
	expect_events("B SENT 7 ETIMEDOUT", "B PEER_DOWN A ETIMEDOUT", NULL);
	cut = false;
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
	frame_hdr(f)->token = peer(B, C)->wire_token;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_HANDLE);
	run(BW_MS);
	assert_int_equal(frames_with("REFUSE handle"), 1);
	assert_int_equal(events_with("PEER_DOWN"), 0); /* the echo is not A's handle */
	assert_int_equal(events_with("B MESSAGE 1"), 1);
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
	assert_int_equal(h->token, 0);
	assert_int_equal(h->conn, 0);
	assert_int_equal(b->echo_type, BW_FRAME_HELLO);
	assert_int_equal(b->echo_engine, 2);
	assert_int_equal(b->echo_token, inc);
	assert_int_equal(b->echo_conn, world.node[A].peer[B]);
	assert_int_equal(b->echo_hello, peer(A, B)->wire_token);
	assert_int_equal(b->inc, inc + 1);
	assert_string_equal((const char *)b->name, "B");
}

/* A refusal in the name of a dead engine is no longer than what it refuses; and what is an answer
 * or a farewell itself is never refused. */
static void refuse__for_the_dead_is_no_longer_than_the_question(void **state)
{
	static const uint8_t asks[] = {BW_FRAME_DATA, BW_FRAME_ACK};
	static const uint8_t never[] = {BW_FRAME_REFUSE, BW_FRAME_BYE, BW_FRAME_CHALLENGE};
	struct bw_refuser by = {.cluster = CLUSTER, .name = "B", .crc32c = bw_crc32c};
	struct {
		struct bw_hdr h;
		struct bw_hello b;
	} f = {.h = {.magic = BW_MAGIC, .version = BW_VERSION, .cluster = CLUSTER}};
	struct bw_refuse_frame r;
	unsigned int i;

	assert_int_equal(sizeof(r), BW_REFUSE_BYTES);
	for (i = 0; i < sizeof(asks); i++) {
		f.h.type = asks[i];
		assert_false(bw_refuse_build(&r, &by, &f, sizeof(f.h), sizeof(r) - 1));
		assert_true(bw_refuse_build(&r, &by, &f, sizeof(f.h), sizeof(r)));
		assert_int_equal(r.body.echo_type, asks[i]);
		assert_false(bw_refuse_build(&r, &by, &f, sizeof(f.h) - 1, sizeof(r)));
	}
	f.h.type = BW_FRAME_HELLO;
	assert_false(bw_refuse_build(&r, &by, &f, sizeof(f) - 1, sizeof(f)));
	assert_true(bw_refuse_build(&r, &by, &f, sizeof(f), sizeof(f)));
	for (i = 0; i < sizeof(never); i++) {
		f.h.type = never[i];
		assert_false(bw_refuse_build(&r, &by, &f, sizeof(f), sizeof(f)));
	}
}

/* A refusal made by somebody who has not seen our frames. */
static struct frame *refusal(uint8_t echo_type, uint16_t engine, uint32_t token, uint32_t conn,
			     uint32_t hello)
{
	return refuse_frame(B, A, BW_VERSION,
			    &(struct bw_refuse){.why = BW_REFUSAL_INCARNATION,
						.echo_type = echo_type,
						.echo_engine = engine,
						.echo_token = token,
						.echo_conn = conn,
						.echo_hello = hello});
}

static void refuse__without_a_right_echo_is_ignored(void **state)
{
	uint32_t inc = world.node[B].cfg.incarnation, conn, token;

	meet(A, B);
	conn = peer(A, B)->conn;
	token = peer(A, B)->conn_token;
	assert_int_equal(receive(refusal(BW_FRAME_DATA, 2, token, conn + 1, 0)), -BW_DROP_ECHO);
	assert_int_equal(receive(refusal(BW_FRAME_DATA, 2, token + 1, conn, 0)), -BW_DROP_ECHO);
	assert_int_equal(receive(refusal(BW_FRAME_DATA, 3, token, conn, 0)), -BW_DROP_ECHO);
	conn = world.node[A].peer[B];
	token = peer(A, B)->wire_token;
	assert_int_equal(receive(refusal(BW_FRAME_HELLO, 2, inc + 1, conn, token)), -BW_DROP_ECHO);
	assert_int_equal(receive(refusal(BW_FRAME_HELLO, 2, inc, conn + 1, token)), -BW_DROP_ECHO);
	assert_int_equal(receive(refusal(BW_FRAME_HELLO, 2, inc, conn, token + 1)), -BW_DROP_ECHO);
	assert_int_equal(receive(refusal(BW_FRAME_HELLO, 3, inc, conn, token)), -BW_DROP_ECHO);
	expect_drop(A, BW_DROP_ECHO, 7);
	expect_events(NULL, NULL);
	conn = peer(A, B)->conn;
	token = peer(A, B)->conn_token;
	assert_int_equal(receive(refusal(BW_FRAME_DATA, 2, token, conn, 0)), 0);
	expect_events(NULL, NULL); /* but after a grace */
	run(BW_BYE_GRACE);
	expect_events("A PEER_DOWN B ECONNREFUSED", NULL);
}

/* A has sent a message that B has; what B said of it before it closed is still on its way when
 * somebody refuses a second one. */
static void refuse__may_overtake_the_last_words(void **state)
{
	struct frame *no;

	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	deliver_all();
	forget_logs();
	no = refusal(BW_FRAME_DATA, 2, peer(A, B)->conn_token, peer(A, B)->conn, 0);
	node_close(B);
	post(A, B, 2, 8);
	flush(A);
	drop(world.wire_n - 1);
	assert_false(bw_reliable.parting(engine(A)));
	assert_int_equal(receive(no), 0);
	assert_true(bw_reliable.parting(engine(A)));
	deliver_all();
	expect_events("A SENT 1", "A SENT 2 ESHUTDOWN", "A PEER_DOWN B ESHUTDOWN", NULL);
	assert_false(bw_reliable.parting(engine(A)));
}

/* Nothing more is sent there, and what is waited for in vain ends after a grace. */
static void refuse__ends_the_sending_at_once(void **state)
{
	meet(A, B);
	node_restart(B);
	post(A, B, 1, 8);
	flush(A);
	deliver_all();
	flush(B);
	deliver_all();
	forget_logs();
	post(A, B, 2, 8);
	run(BW_BYE_GRACE - 1);
	expect_frames(NULL, NULL);
	expect_events(NULL, NULL);
	run(1);
	expect_events("A SENT 1 ECONNREFUSED", "A SENT 2 ECONNREFUSED",
		      "A PEER_DOWN B ECONNREFUSED", NULL);
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
	expect_frames("B>A HELLO", "A>B DATA 2 now", "A>B HELLO answer", "B>A REFUSE handle", NULL);
	expect_events("A PEER_UP B", "B PEER_UP A", "B PATH A link 0 mtu 1280",
		      "A PEER_DOWN ? ECONNREFUSED", NULL);
	post(B, A, 2, 8);
	run(BW_MS);
	assert_int_equal(events_with("A MESSAGE 2"), 1);
}

/* Whoever took leave did so in good order, though its BYE gets lost ... */
static void leave__bye_that_got_lost_is_said_again(void **state)
{
	meet(A, B);
	disconnect(B, A);
	flush(B);
	drop_all();
	forget_logs();
	post(A, B, 1, 8);
	run(BW_MS);
	expect_frames("A>B DATA 1 [MESSAGE 0 0+8/8]", "B>A BYE", NULL);
	expect_events("A SENT 1 ESHUTDOWN", "A PEER_DOWN B ESHUTDOWN", NULL);
	expect_drop(B, BW_DROP_HANDLE, 1);
}

/* ... or comes behind the HELLO of a new conversation. */
static void leave__and_quick_return(void **state)
{
	struct frame *bye;

	meet(A, B);
	disconnect(A, B);
	flush(A);
	bye = take(0);
	forget_logs();
	connect_to(A, B);
	run(BW_MS);
	assert_int_equal(events_with("B PEER_DOWN A ESHUTDOWN"), 1);
	assert_int_equal(events_with("PEER_DOWN"), 1);
	give(bye);
	run(10 * BW_MS);
	assert_int_equal(events_with("PEER_DOWN"), 1);
	assert_int_equal(events_with("PEER_UP"), 2);
	assert_int_equal(count(B)->peers, 1);
}

/* Bytes that B says to a frame of so many bytes, by the handle and token of the peer that it left,
 * from this part of A's addresses. */
static uint32_t drawn(uint32_t wire, uint32_t token, uint32_t len, uint8_t place)
{
	struct frame *f = calloc(1, sizeof(*f));
	uint32_t bytes = 0;

	f->from = A;
	f->to = B;
	f->place = place;
	f->len = len;
	f->bytes = calloc(1, len);
	*frame_hdr(f) = (struct bw_hdr){.magic = BW_MAGIC,
					.version = BW_VERSION,
					.type = BW_FRAME_DATA,
					.cluster = CLUSTER,
					.dst_engine = world.node[B].cfg.engine,
					.src_engine = world.node[A].cfg.engine,
					.token = token,
					.conn = wire,
					.len = (uint16_t)(len - sizeof(struct bw_hdr))};
	if (len > BW_DATA_HEAD) {
		frame_part(f, 0)->kind = BW_PART_PAD;
		frame_part(f, 0)->plen =
			(uint16_t)(len - BW_DATA_HEAD - sizeof(struct bw_part_bulk));
	}
	if (len >= BW_DATA_HEAD)
		frame_seal(f);
	assert_true(receive(f) < 0);
	flush(B);
	while (world.wire_n) {
		bytes += world.wire[0]->len;
		drop(0);
	}
	return bytes;
}

/* Whatever its address, nothing that comes by the handle of a conversation that has ended draws
 * more; and BYE is for who had the conversation. With a key the token shows nothing. */
static void leave__draws_no_more_than_was_sent(void **state)
{
	uint32_t wire, token, len, keyed;

	for (keyed = 0; keyed < 2; keyed++) {
		if (keyed)
			meet_keyed();
		else
			meet(A, B);
		post(A, B, 3, 8);
		run(BW_S);
		wire = peer(B, A)->wire;
		token = peer(B, A)->wire_token;
		disconnect(B, A);
		flush(B);
		drop_all();
		forget_logs();
		for (len = sizeof(struct bw_hdr); len < 2 * FRAME_PING; len += 8) {
			if (len == BW_DATA_HEAD + 8) /* the shortest part */
				len = BW_DATA_HEAD + sizeof(struct bw_part_bulk);
			assert_in_range(drawn(wire, token, len, 0), 0, len);
			assert_in_range(drawn(wire, token, len, 77), 0, len);
			assert_in_range(drawn(wire, token + 1, len, 0), 0, len);
		}
		assert_true(frames_with("B>A BYE") > 0);
		forget_logs();
		drawn(wire, token, 2 * FRAME_PING, 77);
		assert_int_equal(frames_with("BYE"), 0);
		drawn(wire, token, 2 * FRAME_PING, 0);
		assert_int_equal(frames_with("BYE"), 1);
		node_kill(A);
		node_kill(B);
		forget_logs();
	}
}

/* By whichever of its addresses it speaks. */
static void leave__is_said_again_by_each_path(void **state)
{
	struct bw_op op = op_connect(A, B);
	uint32_t wire, token;

	node_open(A);
	node_open(B);
	op.connect.paths = 2;
	op.connect.path[1] = address(B, 1);
	assert_int_equal(submit(A, &op), 0);
	run(BW_S);
	wire = peer(B, A)->wire;
	token = peer(B, A)->wire_token;
	assert_int_equal(peer(B, A)->npaths, 2);
	disconnect(B, A);
	flush(B);
	drop_all();
	post(A, B, 1, 8);
	flush(A);
	world.wire[0]->link = 1;
	assert_int_equal(frame_hdr(world.wire[0])->conn, wire);
	assert_int_equal(frame_hdr(world.wire[0])->token, token);
	forget_logs();
	deliver(0);
	flush(B);
	assert_int_equal(world.wire_n, 1);
	assert_int_equal(world.wire[0]->link, 1);
	assert_int_equal(frame_type(world.wire[0]), BW_FRAME_BYE);
}

static void leave__is_remembered_for_a_while_only(void **state)
{
	unsigned int i;

	meet(A, B);
	disconnect(B, A);
	flush(B);
	drop_all();
	for (i = 0; i < BW_LEAVES; i++) {
		meet(B, C);
		disconnect(B, C);
		settle();
	}
	forget_logs();
	post(A, B, 1, 8);
	run(BW_MS);
	assert_int_equal(frames_with("B>A REFUSE handle"), 1);
	assert_int_equal(events_with("A PEER_DOWN B ECONNRESET"), 1);
}

static void hello__that_is_dropped_adds_no_path(void **state)
{
	struct bw_op op = op_connect(A, B);

	meet(A, B);
	disconnect(A, B);
	flush(A);
	drop_all();
	op.connect.path[0] = address(B, 1);
	assert_int_equal(submit(A, &op), 0);
	flush(A);
	assert_int_equal(deliver(0), -BW_DROP_EARLY); /* the peer is confirmed by another handle */
	assert_int_equal(peer(B, A)->npaths, 1);
	run(100 * BW_MS);
	assert_int_equal(events_with("B PEER_DOWN A ESHUTDOWN"), 1);
	assert_int_equal(events_with("B PEER_UP A"), 1);
}

static void restart__same_incarnation_with_a_new_handle(void **state)
{
	world.node[A].cfg.dead_ns = BW_S;
	meet(A, B);
	world.fate = while_cut;
	cut = true;
	post(A, B, 7, 8);
	run(2 * BW_S);
	cut = false;
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

/* A fresh peer takes an old HELLO for its partner's, while the partner learns the handle from a
 * HELLO that knew nothing of that. The handle alone, in any frame but a HELLO, would confirm the
 * wrong conversation, and nothing could end it any more. */
static void restart__handle_told_before_an_old_hello_came(void **state)
{
	struct frame *old, *first;

	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	deliver(0);
	flush(B);
	drop_all(); /* the answer */
	pass(2 * BW_MS);
	flush(B);
	old = take(0);
	disconnect(A, B);
	disconnect(B, A);
	flush(B);
	drop_all(); /* BYE for a handle that is gone anyway */
	connect_to(A, B);
	flush(A);
	first = take(0);
	assert_int_equal(receive(old), 0);
	flush(A);
	drop_all(); /* an answer to a handle that is gone */
	assert_int_equal(receive(first), 0);
	pressure(B, true);
	flush(B);
	reverse();
	run(100 * BW_MS);
	assert_int_equal(peer(A, B)->conn, peer(B, A)->wire);
	assert_int_equal(peer(B, A)->conn, peer(A, B)->wire);
	forget_logs();
	post(A, B, 1, 8);
	post(B, A, 2, 8);
	run(100 * BW_MS);
	assert_int_equal(events_with("MESSAGE"), 2);
	assert_int_equal(events_with("PEER_DOWN"), 0);
}

/* A speaks later versions than B only, or earlier ones only. */
static void version__none_in_common_names_both(void **state)
{
	static const struct {
		uint8_t min, max;
	} spoken[] = {
		{BW_VERSION + 1, BW_VERSION + 2},
		{BW_VERSION + 1, BW_VERSION + 1},
		{1, BW_VERSION - 1},
	};
	struct bw_hello *b;
	struct frame *f;
	unsigned int i;

	for (i = 0; i < sizeof(spoken) / sizeof(spoken[0]); i++) {
		node_open(A);
		node_open(B);
		connect_to(A, B);
		flush(A);
		f = take(0);
		b = frame_body(f);
		b->version_min = spoken[i].min;
		b->version_max = spoken[i].max;
		frame_hdr(f)->version = spoken[i].max;
		frame_seal(f);
		assert_int_equal(receive(f), -BW_DROP_VERSION);
		flush(B);
		expect_frames("A>B HELLO", "B>A REFUSE version", NULL);
		deliver_all();
		expect_events("A PEER_DOWN B EPROTONOSUPPORT 2..2", NULL);
		assert_int_equal(count(B)->peers, 0);
		node_kill(A);
		node_kill(B);
	}
}

static void version__other_versions_of_data_are_not_parsed(void **state)
{
	struct frame *f;

	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	f = frame_copy(world.wire[0]);
	frame_hdr(f)->version = BW_VERSION + 1;
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

int refusal_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(hello__for_another_incarnation_is_refused),
		TEST(hello__for_another_node_is_refused),
		TEST(data__for_another_incarnation_is_refused),
		TEST(data__of_a_forgotten_peer_is_refused),
		TEST(data__with_the_handle_of_another_engine_is_refused),
		TEST(refuse__echoes_the_frame),
		TEST(refuse__for_the_dead_is_no_longer_than_the_question),
		TEST(refuse__without_a_right_echo_is_ignored),
		TEST(refuse__may_overtake_the_last_words),
		TEST(refuse__ends_the_sending_at_once),
		TEST(restart__new_incarnation_is_a_new_peer),
		TEST(leave__bye_that_got_lost_is_said_again),
		TEST(leave__and_quick_return),
		TEST(leave__draws_no_more_than_was_sent),
		TEST(leave__is_said_again_by_each_path),
		TEST(leave__is_remembered_for_a_while_only),
		TEST(hello__that_is_dropped_adds_no_path),
		TEST(restart__same_incarnation_with_a_new_handle),
		TEST(restart__stale_hello_cannot_end_a_living_peer),
		TEST(restart__stale_hello_of_the_same_incarnation),
		TEST(restart__handle_told_before_an_old_hello_came),
		TEST(version__none_in_common_names_both),
		TEST(version__other_versions_of_data_are_not_parsed),
		TEST(version__a_range_that_contains_ours_is_spoken_to),
	};

	return cmocka_run_group_tests_name("refusal", tests, NULL, NULL);
}
