/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whom the host names by addresses, without a cluster key. C is an engine that calls itself B, from
 * its own address; or B itself calls from another address than the host of A names.
 */
#include "groups.h"
#include "peer.h"

#include <stdio.h>

static uint8_t dead; /* links that carry nothing, one bit each */

static enum fate network(const struct frame *f)
{
	return dead >> f->link & 1 ? LOSE : PASS;
}

/* With a key whoever has it may be anybody. */
static void without_key(void)
{
	world.keyed = world.encrypted = false;
	dead = 0;
	world.fate = network;
	node_open(A);
	world.node[C].cfg.node = world.node[B].cfg.node;
	world.node[C].cfg.engine = world.node[B].cfg.engine;
	world.node[C].cfg.incarnation = world.node[B].cfg.incarnation;
}

/* C has called A in the name of B, and A believes that it is there. */
static void called_by_c(void)
{
	without_key();
	node_open(B);
	node_open(C);
	connect_to(C, A);
	post(C, A, 1, 8);
	run(BW_MS);
	assert_int_equal(events_with("A MESSAGE 1 len 8"), 1);
	assert_true(peer(A, C)->confirmed);
	forget_logs();
}

/* B has got what A's host has given for it since it was named, from 10 on, and nobody else. */
static void expect_b_alone(unsigned int messages)
{
	char text[32];
	unsigned int i;

	for (i = 0; i < messages; i++) {
		snprintf(text, sizeof(text), "B MESSAGE %u len", 10 + i);
		assert_int_equal(events_with(text), 1);
		snprintf(text, sizeof(text), "A SENT %u", 10 + i);
		assert_int_equal(events_with(text), 1);
	}
	assert_int_equal(events_with("C MESSAGE"), 0);
	assert_int_equal(frames_with("A>C DATA"), 0);
	assert_int_equal(events_with("A PEER_DOWN"), 0);
	assert_int_equal(count(A)->peers, 1);
	assert_int_equal(peer(A, B)->conn, peer(B, A)->wire);
	assert_true(peer(A, B)->confirmed);
	assert_false(peer(A, B)->doubted);
}

static void impostor__gets_nothing(void **state)
{
	uint32_t handle;
	uint64_t key;

	called_by_c();
	handle = world.node[A].peer[C];
	connect_to(A, B);
	assert_int_equal(world.node[A].peer[B], handle);
	key = expose(A, B, 20, 9000);
	host_region(B, 0x77, 30, 500);
	pull(A, B, 0x77, 30, 0, 500, BW_PULL_HOST_KEY);
	post(A, B, 10, 8);
	post(A, B, 11, 5000);
	run(10 * BW_MS);
	expect_b_alone(2);
	assert_int_equal(events_with("C PEER_DOWN A ESHUTDOWN"), 1);
	assert_int_equal(events_with("A PULLED 30 len 500"), 1);
	assert_int_equal(peer(A, B)->npaths, 1);
	pull(B, A, key, 21, 0, 9000, BW_PULL_FINAL);
	post(B, A, 22, 8);
	run(10 * BW_MS);
	assert_int_equal(events_with("B PULLED 21 len 9000"), 1);
	assert_int_equal(events_with("A REGION_DONE 20"), 1);
	assert_int_equal(events_with("A MESSAGE 22 len 8"), 1);
	assert_int_equal(count(A)->peers, 1);
}

/* All flows keep their order. */
static void impostor__keeps_no_flow(void **state)
{
	unsigned int i;

	called_by_c();
	connect_to(A, B);
	for (i = 0; i < 40; i++) {
		struct bw_op op = op_send(A, B, 10 + i, 8);

		op.send.src_ep = (uint16_t)(i % 20);
		op.send.dst_ep = 3;
		assert_int_equal(submit(A, &op), 0);
	}
	run(10 * BW_MS);
	expect_b_alone(40);
	for (i = 40; i < 60; i++) { /* and are found afterwards */
		struct bw_op op = op_send(A, B, 10 + i, 8);

		op.send.src_ep = (uint16_t)(i % 20);
		op.send.dst_ep = 3;
		assert_int_equal(submit(A, &op), 0);
	}
	run(10 * BW_MS);
	expect_b_alone(60);
}

/* While it is in doubt it says that it ends: it ends nothing but itself. */
static void impostor__ends_itself_alone(void **state)
{
	called_by_c();
	connect_to(A, B);
	post(A, B, 10, 8);
	disconnect(C, A);
	flush(C);
	assert_true(frames_with("C>A BYE") > 0);
	run(10 * BW_MS);
	expect_b_alone(1);
}

/* Nor in the name of the named one's address. */
static void impostor__ends_itself_alone_by_any_address(void **state)
{
	struct frame *f;

	called_by_c();
	connect_to(A, B);
	post(A, B, 10, 8);
	disconnect(C, A);
	flush(C);
	while (frame_type(world.wire[0]) != BW_FRAME_BYE)
		deliver(0);
	f = frame_copy(world.wire[0]);
	drop_all();
	f->from = B;
	assert_int_equal(receive(f), -BW_DROP_EARLY);
	run(10 * BW_MS);
	expect_b_alone(1);
}

static struct frame *refusal_of_c(uint8_t version, uint32_t hello)
{
	const struct bw_peer *p = peer(A, B);

	return refuse_frame(C, A, version,
			    &(struct bw_refuse){.why = BW_REFUSAL_VERSION,
						.version_min = 1,
						.version_max = 1,
						.echo_type = BW_FRAME_HELLO,
						.echo_engine = p->engine,
						.echo_token = p->inc,
						.echo_conn = p->wire,
						.echo_hello = hello});
}

/* It refuses, with what it was told, in the name of either address. */
static void impostor__refuses_for_itself_alone(void **state)
{
	struct frame *f;
	int from;

	for (from = B; from <= C; from++) {
		called_by_c();
		connect_to(A, B);
		post(A, B, 10, 8);
		f = refusal_of_c(BW_VERSION, peer(A, B)->wire_token);
		f->from = from;
		assert_int_equal(receive(f), -BW_DROP_EARLY);
		run(10 * BW_MS);
		expect_b_alone(1);
		node_kill(A);
		node_kill(B);
		node_kill(C);
		forget_logs();
	}
}

/* It says that it knows another version only, as one does that echoes no token: that gives nobody
 * more or less time. */
static void impostor__of_another_version_is_no_news(void **state)
{
	uint64_t patience;

	called_by_c();
	connect_to(A, B);
	patience = peer(A, B)->patience;
	assert_int_equal(receive(refusal_of_c(1, 0)), -BW_DROP_ECHO);
	assert_int_equal(peer(A, B)->patience, patience);
	assert_int_equal(peer(A, B)->denied_as, 0);
}

/* It answers that it encrypts. */
static void impostor__encrypts_for_itself_alone(void **state)
{
	struct frame *f;

	called_by_c();
	connect_to(A, B);
	post(A, B, 10, 8);
	peer(A, B)->path[0]->hello.due = true;
	flush(A);
	assert_int_equal(frames_with("A>C HELLO"), 1);
	while (world.wire[0]->to != C)
		drop(0);
	deliver(0);
	drop_all();
	flush(C);
	f = frame_copy(world.wire[0]);
	drop_all();
	((struct bw_hello *)frame_body(f))->features |= BW_FEATURE_ENCRYPT;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_EARLY);
	run(2 * BW_S);
	expect_b_alone(1);
}

/* What was said to it before it was named ends with it. */
static void impostor__takes_what_was_said_to_it(void **state)
{
	called_by_c();
	node_kill(C); /* it acknowledges nothing more */
	world.node[A].peer[B] = world.node[A].peer[C];
	post(A, B, 2, 8);
	expose(A, B, 3, 100);
	pull(A, B, 0x77, 4, 0, 500, BW_PULL_HOST_KEY);
	flush(A);
	drop_all();
	forget_logs();
	connect_to(A, B);
	post(A, B, 10, 8);
	run(BW_S);
	expect_b_alone(1);
	assert_int_equal(events_with("A SENT 2 ECONNRESET"), 1);
	assert_int_equal(events_with("A REGION_DONE 3 ECONNRESET"), 1);
	assert_int_equal(events_with("A PULLED 4 ECONNRESET"), 1);
}

/* It has been told a handle and a token, and shows them at once or later. */
static void impostor__that_waits_gets_nothing(void **state)
{
	int later;

	for (later = 0; later < 2; later++) {
		without_key();
		node_open(B);
		node_open(C);
		connect_to(C, A);
		flush(C);
		deliver(0);
		flush(A);
		if (!later)
			drop_all();
		connect_to(A, B);
		post(A, B, 10, 8);
		post(C, A, 1, 8);
		run(BW_S);
		expect_b_alone(1);
		node_kill(A);
		node_kill(B);
		node_kill(C);
		forget_logs();
	}
}

/* It sends from four addresses, so that there is no place for another. */
static void impostor__takes_all_places(void **state)
{
	struct bw_op op;
	uint8_t i;

	without_key();
	node_open(B);
	node_open(C);
	op = op_connect(C, A);
	for (i = 0; i < BW_PATHS_MAX; i++)
		op.connect.path[i] = address(A, i);
	op.connect.paths = BW_PATHS_MAX;
	assert_int_equal(submit(C, &op), 0);
	world.node[C].peer[A] = op.peer;
	post(C, A, 1, 8);
	run(BW_S);
	assert_int_equal(peer(A, C)->npaths, BW_PATHS_MAX);
	forget_logs();
	connect_to(A, B);
	post(A, B, 10, 8);
	run(10 * BW_MS);
	expect_b_alone(1);
}

/* The host says nothing of the incarnation, and it has made one up. */
static void impostor__of_another_incarnation(void **state)
{
	struct bw_op op;

	without_key();
	world.node[C].cfg.incarnation += 7;
	node_open(B);
	node_open(C);
	connect_to(C, A);
	post(C, A, 1, 8);
	run(BW_MS);
	forget_logs();
	op = op_connect(A, B);
	op.connect.inc = 0;
	assert_int_equal(submit(A, &op), 0);
	world.node[A].peer[B] = op.peer;
	post(A, B, 10, 8);
	run(10 * BW_MS);
	expect_b_alone(1);
	assert_int_equal(peer(A, B)->inc, world.node[B].cfg.incarnation);
}

/* Who is named first is waited for, whoever calls. */
static void impostor__that_calls_later_is_not_heard(void **state)
{
	without_key();
	node_open(C);
	connect_to(A, B);
	post(A, B, 10, 8);
	connect_to(C, A);
	post(C, A, 1, 8);
	run(BW_S);
	assert_int_equal(events_with("A PEER_UP"), 0);
	assert_int_equal(events_with("A MESSAGE"), 0);
	node_open(B);
	run(3 * BW_S);
	expect_b_alone(1);
	assert_int_equal(events_with("A MESSAGE"), 0);
}

/* B calls as well, while the impostor is in its place. */
static void impostor__in_the_way_of_both(void **state)
{
	called_by_c();
	connect_to(B, A);
	post(B, A, 22, 8);
	run(10 * BW_MS);
	assert_int_equal(events_with("A MESSAGE"), 0);
	forget_logs(); /* the impostor was asked whether it lives */
	connect_to(A, B);
	post(A, B, 10, 8);
	run(3 * BW_S);
	expect_b_alone(1);
	assert_int_equal(events_with("A MESSAGE 22 len 8"), 1);
}

static enum fate mute_b(const struct frame *f)
{
	return f->from == B ? LOSE : network(f);
}

/* What it says while it is in doubt brings it nothing, from whatever address. */
static void impostor__is_not_confirmed_by_itself(void **state)
{
	struct frame *f;
	uint64_t i;

	called_by_c();
	world.fate = mute_b;
	path(C, A, 0)->hello.due = true;
	bw_peer_ready(engine(C), peer(C, A));
	flush(C);
	f = take(0);
	connect_to(A, B);
	post(A, B, 10, 8);
	f->from = B; /* as if it came from there: that path is known by a number now */
	frame_hdr(f)->path = 1;
	frame_seal(f);
	assert_int_equal(receive(frame_copy(f)), 0);
	f->from = C;
	f->place = 9; /* it has "moved" */
	assert_int_equal(receive(f), -BW_DROP_EARLY);
	for (i = 0; i < 4; i++) {
		post(C, A, 30 + i, 8);
		path(A, B, 0)->hello.due = true; /* it echoes */
		bw_peer_ready(engine(A), peer(A, B));
		run(500 * BW_MS);
	}
	assert_in_range(frames_with("C>A HELLO answer"), 4, 8);
	assert_true(peer(A, B)->doubted);
	assert_int_equal(frames_with("A>C DATA"), 0);
	assert_int_equal(frames_with("A>C ACK"), 0);
	world.fate = network;
	run(BW_S);
	expect_b_alone(1);
}

/* It was taken for the peer while that was silent, and has got something: the host is told. */
static void impostor__is_found_out_late(void **state)
{
	called_by_c();
	world.fate = mute_b;
	connect_to(A, B);
	post(A, B, 10, 8);
	run(2 * BW_NAMED_PATIENCE);
	assert_int_equal(events_with("C MESSAGE 10 len 8"), 1);
	world.fate = network;
	run(2 * BW_HELLO_RETRY);
	assert_int_equal(events_with("A PEER_DOWN B ECONNRESET"), 1);
	forget_logs();
	connect_to(A, B);
	post(A, B, 10, 8);
	run(BW_S);
	expect_b_alone(1);
}

/* ---- honest guests ---- */

/* B calls A from its second address, and says something. */
static void called_from_elsewhere(void)
{
	struct bw_op op;

	world.node[A].cfg.features |= BW_FEATURE_LONG;
	world.node[B].cfg.features |= BW_FEATURE_LONG;
	without_key();
	node_open(B);
	op = op_connect(B, A);
	op.connect.path[0] = address(A, 1);
	assert_int_equal(submit(B, &op), 0);
	world.node[B].peer[A] = op.peer;
	post(B, A, 1, 8);
	run(BW_MS);
	assert_int_equal(events_with("A MESSAGE 1 len 8"), 1);
	forget_logs();
}

/* What it says in the meantime comes in order, and so does what is said to it. */
static void guest__at_another_address_stays_one_peer(void **state)
{
	uint32_t handle, wire;

	called_from_elsewhere();
	handle = world.node[A].peer[B];
	wire = peer(A, B)->wire;
	post(A, B, 2, 5000);
	post(B, A, 3, 5000);
	flush(A);
	flush(B);
	connect_to(A, B);
	assert_int_equal(world.node[A].peer[B], handle);
	assert_true(peer(A, B)->doubted);
	assert_false(bw_reliable_takes(engine(A), handle, BW_EAGER_LIMIT + 1));
	post(A, B, 4, 8);
	flush(A);
	deliver_all();
	post(B, A, 5, 8);
	flush(B);
	while (world.wire_n && world.wire[0]->from == B && world.wire[0]->link)
		deliver(0); /* before the answer */
	run(10 * BW_MS);
	assert_int_equal(events_with("B MESSAGE 2 len 5000"), 1);
	assert_int_equal(events_with("A MESSAGE 3 len 5000"), 1);
	assert_int_equal(events_with("B MESSAGE 4 len 8"), 1);
	assert_int_equal(events_with("A MESSAGE 5 len 8"), 1);
	assert_int_equal(events_with("MESSAGE"), 4);
	assert_int_equal(events_with("SENT"), 4);
	assert_true(bw_reliable_takes(engine(A), handle, BW_EAGER_LIMIT + 1));
	assert_int_equal(events_with("PEER"), 0);
	assert_int_equal(count(A)->peers, 1);
	assert_int_equal(count(B)->peers, 1);
	assert_int_equal(peer(A, B)->wire, wire);
	assert_int_equal(peer(A, B)->npaths, 2);
	assert_int_equal(path(A, B, 0)->state, BW_PATH_UP);
	assert_int_equal(path(A, B, 1)->state, BW_PATH_UP);
}

/* Nothing is asked of who called from where it is named. */
static void guest__at_the_named_address_is_sent_to_at_once(void **state)
{
	struct bw_op op;
	int confirmed;

	for (confirmed = 0; confirmed < 2; confirmed++) {
		without_key();
		node_open(B);
		connect_to(B, A);
		post(B, A, 1, 8);
		if (confirmed) {
			run(BW_MS);
		} else {
			flush(B);
			deliver(0);
		}
		op = op_connect(A, B);
		op.connect.path[op.connect.paths++] = address(B, 1);
		assert_int_equal(submit(A, &op), 0);
		assert_false(peer(A, B)->doubted);
		post(A, B, 2, 8);
		flush(A);
		assert_int_equal(frames_with("A>B DATA"), confirmed);
		run(BW_MS / 2); /* no HELLO of A's on this path was due yet */
		assert_int_equal(events_with("A SENT 2") + events_with("B MESSAGE 2 len 8"), 2);
		assert_int_equal(frames_with("A>B HELLO answer"), 1);
		run(10 * BW_MS);
		assert_int_equal(events_with("DOWN"), 0);
		node_kill(A);
		node_kill(B);
		forget_logs();
	}
}

/* Nor of who has called from there as well. */
static void guest__at_one_of_its_addresses_is_known(void **state)
{
	struct bw_op op;

	without_key();
	node_open(B);
	op = op_connect(B, A);
	op.connect.path[op.connect.paths++] = address(A, 1);
	assert_int_equal(submit(B, &op), 0);
	world.node[B].peer[A] = op.peer;
	post(B, A, 1, 8);
	run(BW_MS);
	connect_to(A, B);
	assert_int_equal(peer(A, B)->npaths, 2);
	assert_false(peer(A, B)->doubted);
	post(A, B, 2, 8);
	flush(A);
	assert_int_equal(frames_with("A>B DATA"), 1);
}

/* It has left the address that the host learnt, or that one was never of use. */
static void guest__is_taken_when_nobody_else_answers(void **state)
{
	uint64_t from;

	called_from_elsewhere();
	dead = 1;
	connect_to(A, B);
	from = world.now;
	post(A, B, 4, 8);
	post(B, A, 5, 8);
	run(BW_NAMED_PATIENCE - 10 * BW_MS);
	assert_int_equal(events_with("A MESSAGE 5 len 8"), 1);
	assert_int_equal(events_with("B MESSAGE"), 0);
	run(BW_NAMED_PATIENCE);
	assert_int_equal(events_with("B MESSAGE 4 len 8"), 1);
	assert_int_equal(events_with("SENT"), 2);
	assert_int_equal(events_with("PEER"), 0);
	assert_true(world.now - from < 7 * BW_S);
	dead = 0;
	run(BW_S);
	assert_int_equal(count(A)->peers, 1);
}

/* The same of one that has not called when it is named. */
static void caller__is_taken_when_nobody_else_answers(void **state)
{
	struct bw_op op;

	without_key();
	dead = 1;
	node_open(B);
	connect_to(A, B);
	post(A, B, 4, 8);
	op = op_connect(B, A);
	op.connect.path[0] = address(A, 1);
	assert_int_equal(submit(B, &op), 0);
	world.node[B].peer[A] = op.peer;
	post(B, A, 5, 8);
	run(BW_NAMED_PATIENCE - 10 * BW_MS);
	assert_int_equal(events_with("MESSAGE"), 0);
	run(BW_NAMED_PATIENCE);
	assert_int_equal(events_with("B MESSAGE 4 len 8"), 1);
	assert_int_equal(events_with("A MESSAGE 5 len 8"), 1);
	assert_int_equal(events_with("DOWN"), 0);
}

/* While memory is short the peer stays in doubt, and nothing is lost. */
static void impostor__waits_for_memory(void **state)
{
	called_by_c();
	connect_to(A, B);
	post(A, B, 10, 8);
	world.node[A].slow = true;
	while (bw_slab_alloc(&engine(A)->peers_slab))
		;
	run(500 * BW_MS);
	assert_true(peer(A, B)->doubted);
	assert_int_equal(frames_with("A>C DATA"), 0);
	world.node[A].slow = false;
	run(3 * BW_S);
	expect_b_alone(1);
}

int named_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(impostor__gets_nothing),
		TEST(impostor__keeps_no_flow),
		TEST(impostor__ends_itself_alone),
		TEST(impostor__ends_itself_alone_by_any_address),
		TEST(impostor__refuses_for_itself_alone),
		TEST(impostor__of_another_version_is_no_news),
		TEST(impostor__encrypts_for_itself_alone),
		TEST(impostor__takes_what_was_said_to_it),
		TEST(impostor__that_waits_gets_nothing),
		TEST(impostor__takes_all_places),
		TEST(impostor__of_another_incarnation),
		TEST(impostor__that_calls_later_is_not_heard),
		TEST(impostor__in_the_way_of_both),
		TEST(impostor__is_not_confirmed_by_itself),
		TEST(impostor__waits_for_memory),
		TEST(impostor__is_found_out_late),
		TEST(guest__at_another_address_stays_one_peer),
		TEST(guest__at_the_named_address_is_sent_to_at_once),
		TEST(guest__at_one_of_its_addresses_is_known),
		TEST(guest__is_taken_when_nobody_else_answers),
		TEST(caller__is_taken_when_nobody_else_answers),
	};

	return cmocka_run_group_tests_name("named", tests, NULL, NULL);
}
