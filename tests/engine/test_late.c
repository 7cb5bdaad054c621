/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Late acknowledgements: what a packet carried that was taken for lost is settled when it turns out
 * to have arrived, whether it waits to be sent again or is under way again, and nothing else is.
 */
#include "groups.h"
#include "late.h"
#include "loss.h"
#include "peer.h"

static struct bw_path *sender(void)
{
	return path(A, B, 0);
}

/* B acknowledges now, and A hears it. */
static void acknowledge(void)
{
	path(B, A, 0)->rx.ack_now = true;
	bw_peer_ready(engine(B), peer(B, A));
	flush(B);
	while (world.wire_n && world.wire[world.wire_n - 1]->from == B)
		deliver(world.wire_n - 1);
}

/* A sends messages 1 to n, one in each packet; packet 1 is kept back, and taken for lost. */
static struct frame *first_is_late(unsigned int n, uint32_t len)
{
	struct frame *late;
	unsigned int i;

	for (i = 1; i <= n; i++) {
		post(A, B, i, len);
		flush(A);
	}
	assert_int_equal(world.wire_n, n);
	late = take(0);
	while (world.wire_n)
		deliver(0);
	acknowledge();
	assert_int_equal(count(A)->losses, 1);
	forget_logs();
	return late;
}

/* The tail probe is due: A sends what is under way for longest once more. */
static void probe(void)
{
	uint64_t probes = count(A)->probes;

	while (count(A)->probes == probes) {
		world.now = deadline();
		flush(A);
	}
}

static void late__what_waits_to_be_sent_again_is_settled(void **state)
{
	struct frame *late;

	meet(A, B);
	late = first_is_late(4, 1100);
	assert_false(bw_list_empty(&peer(A, B)->again));
	receive(late);
	acknowledge();
	expect_events("B MESSAGE 1 len 1100", "B MESSAGE 2 len 1100", "B MESSAGE 3 len 1100",
		      "B MESSAGE 4 len 1100", "A SENT 1", NULL);
	forget_logs();
	settle();
	expect_frames(NULL, NULL);
	assert_int_equal(count(A)->retransmits, 0);
	assert_int_equal(count(A)->spurious, 1);
}

static void late__what_is_under_way_again_is_settled(void **state)
{
	uint64_t answered;
	struct frame *late;

	meet(A, B);
	late = first_is_late(4, 1100);
	flush(A);
	expect_frames("A>B DATA 5 [MESSAGE 0 0+1100/1100]", NULL);
	receive(late);
	acknowledge();
	assert_int_equal(events_with("A SENT 1"), 1);
	/* The second packet still tells of the path. */
	assert_int_equal(sender()->inflight, world.wire[0]->len);
	answered = sender()->answered;
	deliver_all();
	acknowledge();
	assert_int_equal(sender()->inflight, 0);
	assert_true(sender()->answered > answered);
	assert_int_equal(sender()->acked_max, 5);
	assert_int_equal(events_with("A SENT 1"), 1);
	assert_int_equal(events_with("B MESSAGE"), 4);
}

/* The second packet gets lost: nothing of it is sent once more. */
static void late__a_lost_second_packet_is_not_missed(void **state)
{
	struct frame *late;

	meet(A, B);
	late = first_is_late(4, 1100);
	flush(A);
	drop_all();
	receive(late);
	acknowledge();
	assert_int_equal(events_with("A SENT 1"), 1);
	forget_logs();
	run(10 * BW_MS);
	assert_int_equal(frames_with("MESSAGE"), 0);
	assert_int_equal(sender()->inflight, 0);
	assert_false(bw_reliable.busy(engine(A)));
}

/* What a late packet was remembered by comes back, and is what another peer waits for. */
static void late__what_comes_back_wakes_who_found_no_record(void **state)
{
	struct frame *late;

	world.node[A].grow_max = 0;
	meet(A, B);
	meet(A, C);
	late = first_is_late(4, 1100);
	flush(A); /* it is under way again */
	post(A, C, 9, 8);
	while (bw_slab_alloc(&engine(A)->records)) /* somebody else took it all */
		;
	flush(A);
	assert_int_equal(frames_with("A>C"), 0);
	assert_true(bw_reliable_starved(engine(A)));
	receive(late);
	acknowledge();
	assert_int_equal(sender()->inflight, world.wire[0]->len);
	flush(A);
	assert_int_equal(frames_with("A>C DATA"), 1);
	run(BW_MS);
	assert_int_equal(events_with("A SENT 1"), 1);
	assert_int_equal(events_with("A SENT 9"), 1);
}

/* A busy peer: several probes lie unread when it reads the first packet, and takes leave. */
static void late__a_peer_that_leaves_at_once_fails_nothing(void **state)
{
	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	probe();
	probe();
	probe();
	probe();
	assert_true(world.wire_n > 4);
	forget_logs();
	deliver(0);
	drop_all();
	node_close(B);
	deliver_all();
	expect_events("B MESSAGE 1 len 8", "A SENT 1", "A PEER_DOWN B ESHUTDOWN", NULL);
}

/* However long it stood still: what is taken for lost is remembered as long as the path is silent,
 * and for some round trips after it has answered. */
static void late__packets_before_a_silence_are_told_one_by_one(void **state)
{
	unsigned int i;

	meet(A, B);
	for (i = 1; i <= 3; i++) {
		post(A, B, i, 1100);
		flush(A);
	}
	for (i = 0; i < 7; i++)
		probe();
	assert_true(world.now > BW_S + 5 * BW_MS);
	forget_logs();
	deliver(0);
	acknowledge();
	assert_int_equal(events_with("A SENT 1"), 1);
	flush(A);
	deliver(0);
	acknowledge();
	assert_int_equal(events_with("A SENT 2"), 1);
	deliver(0);
	acknowledge();
	assert_int_equal(events_with("A SENT 3"), 1);
	assert_false(bw_reliable.busy(engine(A)));
}

static void late__all_parts_of_a_packet_are_settled(void **state)
{
	struct frame *late;
	unsigned int i;

	meet(A, B);
	for (i = 1; i <= 3; i++)
		post(A, B, i, 300);
	flush(A);
	assert_int_equal(world.wire_n, 1);
	late = take(0);
	for (i = 4; i <= 6; i++) {
		post(A, B, i, 1100);
		flush(A);
	}
	while (world.wire_n)
		deliver(0);
	acknowledge();
	assert_int_equal(count(A)->losses, 1);
	receive(late);
	acknowledge();
	assert_int_equal(events_with("A SENT"), 6);
	settle();
	assert_int_equal(count(A)->retransmits, 0);
}

/* Pieces of a range that travels again in smaller packets. */
static void late__pieces_under_way_and_waiting_are_settled(void **state)
{
	struct frame *late;

	world.node[A].cfg.link_mtu[0] = world.node[B].cfg.link_mtu[0] = 4000;
	meet(A, B);
	late = first_is_late(4, 3800);
	sender()->pmtu.mtu = 1280;
	sender()->cc.cwnd = 2000;
	flush(A);
	assert_int_equal(world.wire_n, 2);
	assert_false(bw_list_empty(&peer(A, B)->again));
	receive(late);
	acknowledge();
	assert_int_equal(events_with("A SENT 1"), 1);
	assert_true(bw_list_empty(&peer(A, B)->again));
	settle();
	assert_int_equal(count(A)->retransmits, 2);
	assert_int_equal(events_with("B MESSAGE"), 4);
}

/* Two packets of a message were lost, and travelled again in one, which is late. */
static void late__all_ranges_of_a_message_in_a_packet_are_settled(void **state)
{
	struct frame *late;

	meet(A, B);
	sender()->pmtu.mtu = 700;
	post(A, B, 1, 1100);
	flush(A);
	assert_int_equal(world.wire_n, 2);
	drop_all();
	bw_loss_requeue_path(engine(A), peer(A, B), sender());
	sender()->pmtu.mtu = 1280;
	flush(A);
	assert_int_equal(world.wire_n, 1);
	late = take(0);
	bw_loss_requeue_path(engine(A), peer(A, B), sender());
	assert_false(bw_list_empty(&peer(A, B)->again));
	receive(late);
	acknowledge();
	assert_int_equal(events_with("A SENT 1"), 1);
	assert_true(bw_list_empty(&peer(A, B)->again));
	settle();
	assert_int_equal(count(A)->retransmits, 2);
}

/* However many messages a late packet held: what is under way is gone through once. */
static void late__many_messages_of_a_packet_in_few_steps(void **state)
{
	const unsigned int parts = 12, others = 64;
	struct frame *late;
	unsigned int i;
	uint64_t before;

	meet(A, B);
	sender()->cc.cwnd = 4u << 20;
	for (i = 1; i <= parts; i++)
		post(A, B, i, 8);
	flush(A);
	assert_int_equal(world.wire_n, 1);
	late = take(0);
	bw_loss_requeue_path(engine(A), peer(A, B), sender());
	flush(A);
	for (; i <= parts + others; i++) {
		post(A, B, i, 1100);
		flush(A);
	}
	assert_int_equal(world.wire_n, 1 + others);
	drop_all();
	receive(late);
	before = engine(A)->steps;
	acknowledge();
	assert_in_range(engine(A)->steps - before, others, 2 * others);
	assert_int_equal(events_with("A SENT"), parts);
}

/* The peer can remember no more gaps, and drops all that is under way, which lies behind the last
 * one: that one before them might have been late only must not keep them all for as long as the
 * path is silent. */
static void late__is_forgotten_where_the_peer_is_full_of_gaps(void **state)
{
	const unsigned int n = 2 * BW_PNSET_SPANS + 2;
	struct bw_path *t;
	unsigned int i;

	meet(A, B);
	t = sender();
	t->cc.cwnd = 4u << 20;
	for (i = 1; i <= n; i++) {
		post(A, B, i, 1100);
		flush(A);
		if (i % 2)
			drop(0);
		else
			deliver(0);
	}
	acknowledge();
	assert_int_equal(path(B, A, 0)->rx.got.n, BW_PNSET_SPANS);
	for (i = 0; i < BW_LOST_RING; i++) { /* all but one were settled meanwhile */
		bw_late_forget(engine(A), peer(A, B), t, t->lost.ring[i].pn);
		t->lost.ring[i].pn = 0;
	}
	t->lost.ring[0].pn = t->floor = path(B, A, 0)->rx.got.base;
	t->lost.ring[0].since_ns = world.now + BW_S;
	t->lost.n = 1;
	run(200 * BW_MS);
	assert_int_equal(events_with("B MESSAGE"), n);
	assert_int_equal(events_with("A SENT"), n);
}

/* Of a message of several packets one is late and another one lost: only the former is settled. */
static void late__nothing_else_of_the_message_is_settled(void **state)
{
	struct frame *late;

	meet(A, B);
	post(A, B, 1, 6 * 1176);
	flush(A);
	assert_int_equal(world.wire_n, 6);
	late = take(0);
	drop(0);
	while (world.wire_n)
		deliver(0);
	acknowledge();
	assert_int_equal(count(A)->losses, 2);
	receive(late);
	acknowledge();
	assert_int_equal(events_with("A SENT 1"), 0);
	run(10 * BW_MS);
	expect_events("B MESSAGE 1 len 7056", "A SENT 1", NULL);
	assert_int_equal(frames_with("[MESSAGE 0 1176+1176/7056]"), 2);
	assert_int_equal(frames_with("[MESSAGE 0 0+1176/7056]"), 1);
}

static void late__pulled_data_too(void **state)
{
	struct frame *late;
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 5 * 1208);
	pull(B, A, key, 2, 0, 5 * 1208, BW_PULL_FINAL);
	flush(B);
	deliver(0);
	flush(A);
	assert_int_equal(world.wire_n, 5);
	late = take(0);
	while (world.wire_n)
		deliver(0);
	acknowledge();
	flush(A); /* under way again */
	assert_int_equal(world.wire_n, 1);
	drop_all();
	receive(late);
	acknowledge();
	expect_events("B PULLED 2 len 6040", "A REGION_DONE 1", NULL);
}

/* The second packet was acknowledged first, and what has taken the message's place since is another
 * one. */
static void late__a_message_that_has_ended_is_forgotten(void **state)
{
	struct bw_txmsg *m;
	struct frame *late;

	meet(A, B);
	late = first_is_late(4, 1100);
	m = bw_first(&peer(A, B)->txmsgs, struct bw_txmsg, all);
	flush(A);
	deliver_all();
	acknowledge();
	assert_int_equal(events_with("A SENT 1"), 1);
	assert_int_equal(count(A)->spurious, 0);
	post(A, B, 5, 1100);
	assert_ptr_equal(bw_first(&peer(A, B)->txmsgs, struct bw_txmsg, all), m);
	flush(A);
	receive(late);
	acknowledge();
	assert_int_equal(count(A)->spurious, 1);
	assert_int_equal(events_with("A SENT 5"), 0);
	drop_all();
	run(10 * BW_MS);
	assert_int_equal(events_with("B MESSAGE 5"), 1);
	assert_int_equal(events_with("A SENT 5"), 1);
}

/* One that never left was under way with no number. */
static void late__a_packet_that_never_left_changes_nothing(void **state)
{
	struct bw_tx_frame t;
	struct frame *late;

	meet(A, B);
	late = first_is_late(4, 1100);
	assert_true(bw_reliable.next_frame(engine(A), &t, world.now));
	bw_reliable.unsent(engine(A), world.now);
	assert_null(bw_reliable_check(engine(A)));
	receive(late);
	acknowledge();
	assert_int_equal(events_with("A SENT 1"), 1);
	settle();
	assert_int_equal(frames_with("MESSAGE"), 0);
}

/* Is it remembered that this packet was taken for lost? */
static bool remembered(uint64_t pn)
{
	unsigned int i;

	for (i = 0; i < BW_LOST_RING; i++)
		if (sender()->lost.ring[i].pn == pn)
			return true;
	return false;
}

/* What is known of a packet goes when so many later ones were taken for lost. */
static void late__remembered_are_the_latest(void **state)
{
	struct frame *late;
	unsigned int probes;

	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	late = take(0);
	for (probes = 0; !probes || remembered(1); probes++) {
		assert_true(probes <= BW_LOST_RING);
		probe();
		drop_all();
	}
	assert_int_equal(probes, BW_LOST_RING + 1);
	receive(late);
	acknowledge();
	assert_int_equal(count(A)->spurious, 0);
	assert_int_equal(events_with("A SENT 1"), 0);
	run(2 * BW_S);
	assert_int_equal(events_with("A SENT 1"), 1);
}

static void late__without_memory_it_waits_for_the_second_packet(void **state)
{
	struct frame *late;

	meet(A, B);
	for (unsigned int i = 1; i <= 4; i++) {
		post(A, B, i, 1100);
		flush(A);
	}
	late = take(0);
	while (world.wire_n)
		deliver(0);
	world.node[A].grow_max = 0;
	while (bw_slab_alloc(&engine(A)->records))
		;
	acknowledge();
	assert_int_equal(count(A)->losses, 1);
	receive(late);
	acknowledge();
	flush(A);
	deliver_all();
	acknowledge();
	assert_int_equal(events_with("A SENT 1"), 1);
	assert_int_equal(events_with("B MESSAGE"), 4);
}

static void late__a_lost_peer_leaves_nothing_behind(void **state)
{
	struct frame *late;
	uint64_t used;

	meet(A, B);
	used = engine(A)->records.in_use;
	late = first_is_late(4, 1100);
	flush(A);
	assert_true(engine(A)->records.in_use > used + 1);
	disconnect(A, B);
	assert_int_equal(engine(A)->records.in_use, used);
	frame_free(late);
}

int late_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(late__what_waits_to_be_sent_again_is_settled),
		TEST(late__what_is_under_way_again_is_settled),
		TEST(late__a_lost_second_packet_is_not_missed),
		TEST(late__what_comes_back_wakes_who_found_no_record),
		TEST(late__a_peer_that_leaves_at_once_fails_nothing),
		TEST(late__packets_before_a_silence_are_told_one_by_one),
		TEST(late__all_parts_of_a_packet_are_settled),
		TEST(late__pieces_under_way_and_waiting_are_settled),
		TEST(late__all_ranges_of_a_message_in_a_packet_are_settled),
		TEST(late__many_messages_of_a_packet_in_few_steps),
		TEST(late__is_forgotten_where_the_peer_is_full_of_gaps),
		TEST(late__nothing_else_of_the_message_is_settled),
		TEST(late__pulled_data_too),
		TEST(late__a_message_that_has_ended_is_forgotten),
		TEST(late__a_packet_that_never_left_changes_nothing),
		TEST(late__remembered_are_the_latest),
		TEST(late__without_memory_it_waits_for_the_second_packet),
		TEST(late__a_lost_peer_leaves_nothing_behind),
	};

	return cmocka_run_group_tests_name("late", tests, NULL, NULL);
}
