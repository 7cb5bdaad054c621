/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Credit: a sender never has more under way than the receiver granted; what was taken comes back;
 * the receiver's budget is divided among those who send. Beside these tests, the world checks after
 * each step that nobody knows of more credit than was granted, and nobody gives back more than was
 * charged.
 */
#include "credit.h"
#include "groups.h"
#include "peer.h"

static void charge__is_rounded_up_to_units(void **state)
{
	assert_int_equal(bw_credit_charge(0, 0),
			 64); /* nothing is free, or it would be without bound */
	assert_int_equal(bw_credit_charge(1, 0), 64);
	assert_int_equal(bw_credit_charge(64, 0), 64);
	assert_int_equal(bw_credit_charge(65, 0), 128);
	assert_int_equal(bw_credit_charge(1, 2048), 2048);
	assert_int_equal(bw_credit_charge(0, 100), 128);
	assert_int_equal(bw_credit_charge(5000, 2048), 5056);
}

static void charge__counts_the_whole_message_once(void **state)
{
	world.node[B].cfg.charge_min = 512;
	meet(A, B);
	post(A, B, 1, 3000);
	flush(A);
	drop(1);
	assert_int_equal(peer(A, B)->tx_used, 3008);
	run(10 * BW_MS);
	assert_true(count(A)->retransmits > 0);
	assert_int_equal(peer(A, B)->tx_used, 3008);
	post(A, B, 2, 8);
	run(BW_MS);
	assert_int_equal(peer(A, B)->tx_used, 3008 + 512);
	assert_int_equal(peer(B, A)->rx_taken, 3008 + 512);
}

static void limit__stops_the_sender(void **state)
{
	int i;

	meet(A, B);
	path(A, B, 0)->cc.cwnd = 4u << 20;
	world.node[B].ignore_events = true; /* the host takes nothing */
	for (i = 0; i < 5; i++)
		post(A, B, (uint64_t)i, 44000);
	run(10 * BW_MS);
	/* 131072 bytes: two messages; the third would make it 132096 */
	assert_int_equal(peer(A, B)->tx_used, 2 * 44032);
	assert_int_equal(count(A)->credit_stalls, 1);
	assert_int_equal(events_with("A SENT"), 2);
	world.node[B].ignore_events = false;
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE"), 5);
	assert_int_equal(events_with("A SENT"), 5);
	assert_int_equal(peer(A, B)->tx_used, peer(B, A)->rx_taken);
	assert_int_equal(deadline(), BW_NEVER);
}

static void limit__stops_pulled_data(void **state)
{
	uint64_t key;

	meet(A, B);
	path(A, B, 0)->cc.cwnd = 4u << 20;
	key = expose(A, B, 1, 1000000);
	pull(B, A, key, 2, 0, 1000000, BW_PULL_FINAL);
	flush(B);
	deliver(0);
	flush(A);
	assert_in_range(peer(A, B)->tx_used, BW_SHARE_MIN - 1280, BW_SHARE_MIN);
	run(100 * BW_MS);
	expect_events("B PULLED 2 len 1000000", "A REGION_DONE 1", NULL);
	assert_int_equal(peer(A, B)->tx_used, 1000000);
	assert_int_equal(peer(B, A)->rx_taken, 1000000);
}

static void limit__does_not_stop_requests(void **state)
{
	meet(A, B);
	peer(A, B)->tx_used = peer(A, B)->tx_limit;
	pull(A, B, 0x123, 1, 0, 100, 0);
	post(A, B, 2, 8);
	flush(A);
	expect_frames("A>B DATA 1 [PULL 0 0+100]", NULL);
	peer(A, B)->tx_used = 0;
}

static void limit__exactly_used_up(void **state)
{
	meet(A, B);
	path(A, B, 0)->cc.cwnd = 4u << 20;
	world.node[B].ignore_events = true;
	post(A, B, 1, 65536);
	post(A, B, 2, 65536);
	run(10 * BW_MS);
	assert_int_equal(peer(A, B)->tx_used, BW_SHARE_MIN);
	assert_int_equal(count(A)->credit_stalls, 0);
	assert_int_equal(events_with("A SENT"), 2);
	post(A, B, 3, 1);
	run(10 * BW_MS);
	assert_int_equal(count(A)->credit_stalls, 1);
	world.node[B].ignore_events = false;
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE"), 3);
}

static void news__of_credit_come_when_half_is_used(void **state)
{
	int i;

	world.view[A][B][0].credit = true;
	meet(A, B);
	peer(A, B)->tx_used = peer(B, A)->rx_used = peer(B, A)->rx_taken = BW_SHARE_MIN / 2 - 128;
	for (i = 1; i <= 3; i++) {
		post(A, B, (uint64_t)i, 64);
		flush(A);
		deliver(0);
		flush(B);
		assert_int_equal(world.wire_n, i == 3); /* no acknowledgement is due yet */
	}
	assert_int_equal(frames_with("B>A ACK 3 credit 196672"), 1); /* 65600 + 131072 */
}

static void news__lost_are_asked_for(void **state)
{
	meet(A, B);
	path(A, B, 0)->cc.cwnd = 4u << 20;
	world.node[B].ignore_events = true;
	post(A, B, 1, 65536);
	post(A, B, 2, 65536);
	post(A, B, 3, 8);
	run(10 * BW_MS);
	assert_true(peer(A, B)->credit_stalled);
	world.node[B].ignore_events = false;
	settle(); /* B's host takes the messages ... */
	flush(B);
	drop_all(); /* ... but the news get lost, if they were not sent yet */
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE 3"), 1);
}

static void share__of_one_sender_is_the_whole_budget(void **state)
{
	world.node[B].cfg.rx_budget = 1u << 20;
	meet(A, B);
	post(A, B, 1, 64);
	run(BW_MS);
	assert_int_equal(peer(B, A)->rx_limit, 64 + (1u << 20));
	assert_int_equal(peer(A, B)->tx_limit, 64 + (1u << 20));
}

static void share__is_divided_among_those_who_send(void **state)
{
	world.node[C].cfg.rx_budget = 1u << 20;
	meet(A, C);
	meet(B, C);
	world.now = 1000ull << 22; /* an epoch begins */
	post(A, C, 1, 64);
	settle();
	post(B, C, 1, 64);
	settle();
	assert_int_equal(peer(C, A)->rx_limit, 64 + (1u << 20));
	assert_int_equal(peer(C, B)->rx_limit, 64 + (1u << 19));
	/* limits never fall; A's grows by less from now on */
	post(A, C, 2, 64);
	settle();
	assert_int_equal(peer(C, A)->rx_limit, 64 + (1u << 20));
	assert_int_equal(engine(C)->active, 2);
}

static void share__grows_again_when_others_fall_silent(void **state)
{
	world.node[C].cfg.rx_budget = 1u << 20;
	meet(A, C);
	meet(B, C);
	world.now = 1000ull << 22;
	post(B, C, 1, 64);
	settle();
	post(A, C, 1, 64);
	settle();
	assert_int_equal(peer(C, A)->rx_limit, 64 + (1u << 19));
	pass(1 << 22); /* the next epoch remembers the last one */
	post(A, C, 2, 64);
	settle();
	assert_int_equal(peer(C, A)->rx_limit, 128 + (1u << 19));
	pass(1 << 22);
	post(A, C, 3, 64);
	settle();
	assert_int_equal(peer(C, A)->rx_limit, 192 + (1u << 20));
}

static void share__never_falls_below_two_messages(void **state)
{
	world.node[B].cfg.rx_budget = 1000;
	meet(A, B);
	post(A, B, 1, 64);
	run(BW_MS);
	assert_int_equal(peer(B, A)->rx_limit, 64 + BW_SHARE_MIN);
}

static void limit__an_old_frame_does_not_take_credit_back(void **state)
{
	struct frame *old;
	uint64_t limit;

	world.node[B].cfg.rx_budget = 1u << 20;
	meet(A, B);
	post(B, A, 1, 8);
	flush(B);
	old = take(0); /* states the first limit */
	post(A, B, 2, 1000);
	run(BW_MS);
	limit = peer(A, B)->tx_limit;
	assert_true(limit > BW_SHARE_MIN);
	receive(old);
	assert_int_equal(peer(A, B)->tx_limit, limit);
}

/* A sender that does not keep to its credit. */
static void overdraw(int n, int to)
{
	peer(n, to)->tx_used = 0;
	peer(n, to)->credit_stalled = false;
	bw_peer_ready(engine(n), peer(n, to));
}

static void limit__is_enforced_on_messages(void **state)
{
	int i;

	meet(A, B);
	path(A, B, 0)->cc.cwnd = 4u << 20;
	world.node[B].ignore_events = true;
	post(A, B, 0, 30000);
	flush(A);
	drop(0); /* a segment of the first message, for which all others have to wait */
	for (i = 1; i <= 6; i++)
		post(A, B, (uint64_t)i, 30000);
	flush(A);
	overdraw(A, B);
	flush(A);
	drop(world.wire_n - 1);
	while (world.wire_n)
		deliver(0);
	assert_int_equal(world.node[B].buffers_out, 4); /* 120000 of 131072 bytes */
	assert_true(count(B)->drop[BW_DROP_CREDIT] >= 25);
	assert_int_equal(peer(B, A)->rx_used, 4 * 30016);
	node_kill(A);
}

static void limit__is_enforced_on_pulled_data(void **state)
{
	uint64_t key;

	meet(A, B);
	path(A, B, 0)->cc.cwnd = 4u << 20;
	world.node[B].ignore_events = true;
	post(A, B, 1, 65536);
	post(A, B, 2, 65536);
	run(10 * BW_MS); /* all credit is used */
	key = expose(A, B, 3, 1000);
	pull(B, A, key, 4, 0, 1000, 0);
	flush(B);
	deliver(0);
	overdraw(A, B);
	flush(A);
	assert_int_equal(deliver(0), -BW_DROP_CREDIT);
	peer(A, B)->tx_used = BW_SHARE_MIN + 1000;
	world.node[B].ignore_events = false;
	run(BW_S); /* once there is credit for it, it comes again */
	assert_int_equal(events_with("B PULLED 4 len 1000"), 1);
}

static void limit__is_enforced_on_what_a_failed_pull_claims(void **state)
{
	struct bw_part_msg *m;
	struct frame *f;
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 1000000);
	peer(A, B)->tx_used = peer(A, B)->tx_limit;
	pull(B, A, key, 2, 0, 1000000, 0);
	settle();
	retract(A, key);
	flush(A);
	f = take(0);
	m = (struct bw_part_msg *)frame_part(f, 0);
	assert_int_equal(m->part.kind, BW_PART_PULL_ERROR);
	m->total = 1000000; /* "all of it was sent" */
	frame_seal(f);
	receive(f);
	expect_drop(B, BW_DROP_CREDIT, 1);
	assert_int_equal(peer(B, A)->rx_limit, BW_SHARE_MIN);
	assert_int_equal(events_with("B PULLED 2 ECANCELED"), 1);
}

static void flows__that_a_peer_opens_are_bounded(void **state)
{
	unsigned int i;

	meet(A, B);
	for (i = 0; i < BW_FLOWS_MAX + 3; i++) {
		struct bw_op op = op_send(A, B, i, 0);

		op.send.src_ep = (uint16_t)(i + 1);
		assert_int_equal(submit(A, &op), 0);
	}
	world.quiet = true;
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE"), BW_FLOWS_MAX);
	assert_true(count(B)->drop[BW_DROP_NO_BUFFER] > 0);
	assert_int_equal(peer(B, A)->flows_opened, BW_FLOWS_MAX);
	node_kill(A);
}

static void wire__counts_wrap(void **state)
{
	struct bw_peer *a, *b;
	uint64_t near = (1ull << 38) - BW_SHARE_MIN - 64000; /* 32 bits of units of 64 */
	int i;

	meet(A, B);
	a = peer(A, B);
	b = peer(B, A);
	a->tx_used = b->rx_used = b->rx_taken = near;
	a->tx_limit = b->rx_limit = b->rx_told = near + BW_SHARE_MIN;
	for (i = 0; i < 10; i++)
		post(A, B, (uint64_t)i, 60000);
	run(100 * BW_MS);
	assert_int_equal(events_with("B MESSAGE"), 10);
	assert_int_equal(a->tx_used, near + 600320);
	assert_int_equal(b->rx_taken, near + 600320);
	assert_true(a->tx_limit >= near + 600320 + BW_SHARE_MIN - 65536);
}

int credit_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(charge__is_rounded_up_to_units),
		TEST(charge__counts_the_whole_message_once),
		TEST(limit__stops_the_sender),
		TEST(limit__stops_pulled_data),
		TEST(limit__does_not_stop_requests),
		TEST(limit__exactly_used_up),
		TEST(limit__an_old_frame_does_not_take_credit_back),
		TEST(limit__is_enforced_on_messages),
		TEST(limit__is_enforced_on_pulled_data),
		TEST(limit__is_enforced_on_what_a_failed_pull_claims),
		TEST(flows__that_a_peer_opens_are_bounded),
		TEST(news__of_credit_come_when_half_is_used),
		TEST(news__lost_are_asked_for),
		TEST(share__of_one_sender_is_the_whole_budget),
		TEST(share__is_divided_among_those_who_send),
		TEST(share__grows_again_when_others_fall_silent),
		TEST(share__never_falls_below_two_messages),
		TEST(wire__counts_wrap),
	};

	return cmocka_run_group_tests_name("credit", tests, NULL, NULL);
}
