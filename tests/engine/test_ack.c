/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Acknowledgements: when they are sent, what exactly they state, and what the sender concludes from
 * exactly that.
 */
#include "groups.h"
#include "peer.h"

/* A sends n packets of one message each (numbers 1..n); all lie on the wire. */
static void send_packets(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		post(A, B, i + 1, 1100);
	flush(A);
	assert_int_equal(world.wire_n, n);
}

static void ack__waits_for_more_or_a_moment(void **state)
{
	meet(A, B);
	send_packets(1);
	settle();
	expect_frames("A>B DATA 1 [MESSAGE 0 0+1100/1100]", NULL);
	run(BW_ACK_DELAY - 2 * HOP_NS);
	expect_frames(NULL, NULL);
	run(2 * HOP_NS);
	expect_frames("B>A ACK 1", NULL);
}

/* Where B waits so long for a message that takes an acknowledgement along: with credit for all that
 * follows, and A knows of that. */
static void meet_with_credit(uint64_t soon_ns)
{
	world.node[A].cfg.rx_budget = world.node[B].cfg.rx_budget = 16u << 20;
	world.node[B].cfg.ack_soon_ns = soon_ns;
	meet(A, B);
	post(A, B, 0, 8);
	run(BW_MS);
	forget_logs();
}

static void deliver_to_b(void)
{
	while (world.wire_n)
		deliver(0);
	flush(B);
}

/* B acknowledges the n-th packet at once, and none before. */
static void acknowledges_at_once(unsigned int n)
{
	send_packets(n - 1);
	deliver_to_b();
	assert_int_equal(frames_with("ACK"), 0);
	post(A, B, 99, 1000);
	flush(A);
	deliver_to_b();
	assert_int_equal(frames_with("B>A ACK"), 1);
}

static void ack__at_the_latest_after_16_packets(void **state)
{
	meet_with_credit(0);
	acknowledges_at_once(BW_ACK_PACKETS);
	assert_int_equal(frames_with("B>A ACK 17"), 1);
}

/* Where a message is expected to take it along: after a moment that begins with the 16th packet. */
static void ack__of_16_packets_waits_for_a_moment(void **state)
{
	const uint64_t soon = 5 * BW_US;

	meet_with_credit(soon);
	send_packets(BW_ACK_PACKETS);
	deliver_to_b();
	assert_int_equal(frames_with("ACK"), 0);
	run(soon - 1);
	assert_int_equal(frames_with("ACK"), 0);
	run(1);
	assert_int_equal(frames_with("B>A ACK 17"), 1);
	/* A message takes it along. */
	send_packets(BW_ACK_PACKETS);
	while (world.wire_n)
		deliver(0);
	post(B, A, 500, 8);
	flush(B);
	run(BW_MS / 2);
	assert_int_equal(frames_with("B>A DATA 1 ack 33"), 1);
	assert_int_equal(frames_with("B>A ACK"), 1);
}

static void ack__at_the_latest_after_128_packets(void **state)
{
	meet_with_credit(5 * BW_US);
	for (unsigned int i = 0; i < 20; i++) { /* the window opens */
		post(A, B, i, 60000);
		if (i % 4 == 3)
			run(BW_MS);
	}
	run(BW_MS);
	forget_logs();
	acknowledges_at_once(BW_ACK_PACKETS_MAX);
}

static void ack__rides_on_data(void **state)
{
	meet(A, B);
	send_packets(2);
	deliver_all();
	post(B, A, 50, 8);
	flush(B);
	deliver_all();
	expect_frames("A>B DATA 1 [MESSAGE 0 0+1100/1100]", "A>B DATA 2 [MESSAGE 1 0+1100/1100]",
		      "B>A DATA 1 ack 2 [MESSAGE 0 0+8/8]", NULL);
	expect_events("B MESSAGE 1 len 1100", "B MESSAGE 2 len 1100", "A SENT 1", "A SENT 2",
		      "A MESSAGE 50 len 8", NULL);
	forget_logs();
	run(BW_MS);
	assert_int_equal(frames_with("B>A ACK"), 0); /* nothing is owed any more */
}

static void ack__at_once_when_something_is_missing(void **state)
{
	meet(A, B);
	send_packets(3);
	drop(0);
	forget_logs();
	deliver(0);
	flush(B);
	expect_frames("B>A ACK 0 +[2,3)", NULL);
	deliver(0);
	flush(B);
	expect_frames(NULL, NULL); /* every second one while there is a gap */
	pass(BW_ACK_DELAY);
	flush(B);
	expect_frames("B>A ACK 0 +[2,4)", NULL);
}

static void ack__ranges_are_told_though_data_goes_the_other_way(void **state)
{
	meet(A, B);
	send_packets(3);
	drop(0);
	deliver(0);
	flush(B);
	deliver(0); /* 3 waits for its acknowledgement */
	post(B, A, 50, 8);
	forget_logs();
	flush(B);
	assert_int_equal(frames_with("B>A DATA 1"), 1);
	pass(BW_ACK_DELAY);
	forget_logs();
	flush(B);
	expect_frames("B>A ACK 0 +[2,4)", NULL);
}

static void ack__at_once_for_the_first_packet_if_it_is_not_number_1(void **state)
{
	meet(A, B);
	send_packets(2);
	drop(0);
	forget_logs();
	deliver(0);
	flush(B);
	expect_frames("B>A ACK 0 +[2,3)", NULL);
}

static void ack__ranges_are_exactly_what_came(void **state)
{
	static const unsigned int missing[] = {1, 4, 5, 9, 12};
	struct frame *late;
	unsigned int i;

	meet(A, B);
	send_packets(14);
	for (i = 5; i-- > 1;)
		drop(missing[i] - 1);
	late = take(0);
	forget_logs();
	while (world.wire_n)
		deliver(0);
	/* here: 2 3 . . 6 7 8 . 10 11 . 13 14 */
	path(B, A, 0)->rx.ack_now = true;
	bw_peer_ready(engine(B), peer(B, A));
	flush(B);
	expect_frames("B>A ACK 0 +[2,4) +[6,9) +[10,12) +[13,15)", NULL);
	drop_all();
	receive(late);
	path(B, A, 0)->rx.ack_now = true;
	bw_peer_ready(engine(B), peer(B, A));
	flush(B);
	assert_int_equal(frames_with("B>A ACK 3 +[6,9) +[10,12) +[13,15)"), 1);
}

static void ack__ranges_settle_exactly_those_packets(void **state)
{
	meet(A, B);
	send_packets(6);
	drop(3);
	drop(0);
	forget_logs();
	while (world.wire_n)
		deliver(0);
	path(B, A, 0)->rx.ack_now = true;
	bw_peer_ready(engine(B), peer(B, A));
	flush(B);
	expect_frames("B>A ACK 0 +[2,4) +[5,7)", NULL);
	deliver_all();
	/* 1 is evidently lost (6 - 1 >= 3); 4 is not (6 - 4 < 3) */
	expect_events("A SENT 2", "A SENT 3", "A SENT 5", "A SENT 6", NULL);
	flush(A);
	expect_frames("A>B DATA 7 [MESSAGE 0 0+1100/1100]", NULL);
	assert_int_equal(bw_first(&path(A, B, 0)->flight, struct bw_record, list)->pn, 4);
}

static void ack__of_packets_never_sent_is_ignored(void **state)
{
	struct bw_ackblk *b;
	struct frame *f;

	meet(A, B);
	send_packets(1);
	deliver(0);
	run(BW_ACK_DELAY); /* its acknowledgement has been taken */
	forget_logs();
	send_packets(1);
	deliver(0);
	pass(BW_ACK_DELAY);
	flush(B);
	f = take(0);
	b = frame_body(f);
	b->ack = 3;
	frame_seal(f);
	receive(frame_copy(f));
	assert_int_equal(events_with("A SENT"), 0);
	b->ack = 1;
	((struct bw_ack *)(b + 1))->largest = 2;
	frame_seal(f);
	receive(f);
	assert_int_equal(events_with("A SENT"), 0);
	run(10 * BW_MS);
	assert_int_equal(events_with("A SENT"), 1);
}

static void ack__range_beyond_what_was_sent_is_ignored(void **state)
{
	struct bw_range *r;
	struct frame *f;

	meet(A, B);
	send_packets(3);
	drop(0);
	deliver(0);
	flush(B);
	f = take(world.wire_n - 1);
	drop_all();
	r = (struct bw_range *)((uint8_t *)frame_body(f) + sizeof(struct bw_ackblk) +
				sizeof(struct bw_ack));
	r->run = 3; /* packets 2 to 4; there is no 4 */
	frame_seal(f);
	receive(f);
	assert_int_equal(events_with("A SENT"), 0);
}

static void ack__malformed_is_dropped(void **state)
{
	struct bw_ack *a;
	struct frame *f;

	meet(A, B);
	send_packets(2);
	drop(0);
	deliver(0);
	flush(B);
	f = take(0);
	a = (struct bw_ack *)((uint8_t *)frame_body(f) + sizeof(struct bw_ackblk));
	a->ranges = 2; /* one more than there is room for */
	frame_seal(f);
	assert_int_equal(receive(frame_copy(f)), -BW_DROP_MALFORMED);
	a->ranges = BW_ACK_RANGES_MAX + 1;
	frame_seal(f);
	assert_int_equal(receive(frame_copy(f)), -BW_DROP_MALFORMED);
	frame_hdr(f)->len = sizeof(struct bw_ackblk) + sizeof(struct bw_ack) - 1;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_SHORT);
}

static void gaps__more_than_can_be_stated_come_again(void **state)
{
	unsigned int i;

	world.node[B].cfg.rx_budget = 1u << 20;
	meet(A, B);
	path(A, B, 0)->cc.cwnd = 1u << 20;
	send_packets(80);
	/* every second one arrives: 40 ranges, of which 32 can be remembered */
	for (i = 0; i < 40; i++) {
		int r;

		drop(0);
		r = deliver(0);
		assert_int_equal(r, i < BW_ACK_RANGES_MAX ? 0 : -BW_DROP_RANGES);
	}
	assert_int_equal(path(B, A, 0)->rx.got.n, BW_ACK_RANGES_MAX);
	run(100 * BW_MS);
	assert_int_equal(events_with("B MESSAGE"), 80);
	assert_int_equal(events_with("A SENT"), 80);
	for (i = 0; i < 2; i++) { /* their floor settles the gaps that were left */
		post(A, B, 100 + i, 8);
		run(BW_MS);
	}
	assert_int_equal(path(B, A, 0)->rx.got.n, 0);
}

static void floor__lets_the_receiver_forget_gaps(void **state)
{
	struct frame *late;
	unsigned int i;

	meet(A, B);
	send_packets(6);
	late = take(1);
	deliver_all();
	settle(); /* 2 counts as lost, its message travels in packet 7 */
	assert_int_equal(events_with("B MESSAGE"), 6);
	assert_int_equal(path(B, A, 0)->rx.got.n, 1); /* the gap at 2 is still remembered */
	for (i = 0; i < 2; i++) { /* the first one's acknowledgement moves the floor */
		run(10 * BW_MS);
		post(A, B, 100 + i, 8);
		run(BW_MS);
	}
	assert_int_equal(path(B, A, 0)->rx.got.n, 0);
	assert_int_equal(path(B, A, 0)->rx.got.base, 10);
	/* what lies below the floor has no effect, but is acknowledged again */
	forget_logs();
	assert_int_equal(receive(late), -BW_DROP_DUPLICATE);
	flush(B);
	expect_frames("B>A ACK 9", NULL);
	expect_events(NULL, NULL);
}

/* A packet that says itself that it is of no interest: no engine sends such, but anybody may. */
static void floor__above_its_own_packet(void **state)
{
	struct frame *f;

	meet(A, B);
	post(A, B, 1, 1100);
	post(A, B, 2, 1100);
	flush(A);
	f = frame_copy(world.wire[1]);
	((struct bw_ackblk *)frame_body(f))->floor = frame_hdr(f)->pn + 3;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_DUPLICATE);
	world.quiet = true;
	drop_all();
}

static void floor__is_the_oldest_packet_of_interest(void **state)
{
	world.view[B][A][0].floor = true;
	meet(A, B);
	send_packets(2);
	expect_frames("A>B DATA 1 [MESSAGE 0 0+1100/1100] floor 1",
		      "A>B DATA 2 [MESSAGE 1 0+1100/1100] floor 1", NULL);
	run(BW_MS);
	forget_logs();
	send_packets(2);
	expect_frames("A>B DATA 3 [MESSAGE 2 0+1100/1100] floor 3",
		      "A>B DATA 4 [MESSAGE 3 0+1100/1100] floor 3", NULL);
}

static void now__is_answered_at_once(void **state)
{
	meet(A, B);
	send_packets(1);
	frame_hdr(world.wire[0])->flags |= BW_HDR_ACK_NOW;
	frame_seal(world.wire[0]);
	deliver(0);
	forget_logs();
	flush(B);
	expect_frames("B>A ACK 1", NULL);
}

static void delay__is_taken_out_of_the_round_trip(void **state)
{
	uint64_t srtt;

	meet(A, B);
	path(A, B, 0)->rtt.srtt = 0;
	send_packets(1);
	run(BW_MS); /* acknowledged after 100 us and two hops of 10 */
	assert_int_equal(path(A, B, 0)->rtt.srtt, 2 * HOP_NS);
	srtt = path(A, B, 0)->rtt.srtt;
	send_packets(1);
	deliver_all();
	pass(70 * BW_US);
	post(B, A, 7, 8); /* rides on data: no delay stated, so an upper bound only */
	flush(B);
	deliver_all();
	assert_int_equal(path(A, B, 0)->rtt.srtt, srtt);
}

/* The delay is that of the largest packet; an acknowledgement of an earlier one has none. */
static void delay__of_another_packet_is_not_taken_out(void **state)
{
	uint64_t srtt;

	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	pass(20 * BW_US);
	post(A, B, 2, 8);
	flush(A);
	pass(HOP_NS);
	deliver(1);
	flush(B);
	pass(HOP_NS);
	deliver(1); /* of the second one, at once */
	srtt = path(A, B, 0)->rtt.srtt;
	pass(200 * BW_US);
	deliver(0);
	flush(B);
	deliver(0);
	assert_int_equal(path(A, B, 0)->acked_max, 2);
	assert_true(bw_list_empty(&path(A, B, 0)->flight));
	assert_int_equal(path(A, B, 0)->rtt.srtt, srtt);
}

static void delay__states_how_long_the_packet_lay_there(void **state)
{
	const struct bw_ack *a;

	meet(A, B);
	send_packets(2);
	deliver(0);
	pass(30 * BW_US);
	deliver(0);
	pass(55 * BW_US);
	pressure(B, true); /* causes an acknowledgement now */
	flush(B);
	a = (const struct bw_ack *)((const struct bw_ackblk *)frame_body(world.wire[0]) + 1);
	assert_int_equal(a->largest, 2);
	assert_int_equal(a->delay_ns, 55 * BW_US);
}

static void rtt__smoothed_as_in_rfc_6298(void **state)
{
	struct bw_rtt r = {0};

	bw_rtt_sample(&r, 800);
	assert_int_equal(r.srtt, 800);
	assert_int_equal(r.var, 400);
	bw_rtt_sample(&r, 1600); /* var 3/4 400 + 1/4 800; srtt 7/8 800 + 1/8 1600 */
	assert_int_equal(r.var, 500);
	assert_int_equal(r.srtt, 900);
	assert_int_equal(r.min, 800);
	bw_rtt_sample(&r, 0);
	assert_int_equal(r.min, 1);
}

static void rtt__first_sample_is_the_exchange_of_hellos(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	settle();
	assert_int_equal(path(A, B, 0)->rtt.srtt, 2 * HOP_NS);
}

static void rtt__repeated_hello_gives_no_sample(void **state)
{
	node_open(A);
	connect_to(A, B);
	run(5 * BW_MS);
	node_open(B);
	run(5 * BW_MS);
	assert_int_equal(path(A, B, 0)->state, BW_PATH_UP);
	assert_int_equal(path(A, B, 0)->rtt.min, 0);
}

static void idle__nobody_speaks(void **state)
{
	meet(A, B);
	send_packets(3);
	run(100 * BW_MS);
	forget_logs();
	assert_int_equal(deadline(), BW_NEVER);
	run(1000 * BW_S);
	expect_frames(NULL, NULL);
}

static void pressure__is_told_at_once(void **state)
{
	meet(A, B);
	send_packets(1);
	run(BW_MS);
	forget_logs();
	pressure(B, true);
	settle();
	expect_frames("B>A ACK 1 pressure", NULL);
	assert_true(bw_reliable_pressed(engine(A), world.node[A].peer[B]));
	pressure(B, true);
	settle();
	expect_frames(NULL, NULL);
	pressure(B, false);
	settle();
	expect_frames("B>A ACK 1", NULL);
	assert_false(bw_reliable_pressed(engine(A), world.node[A].peer[B]));
}

/* Whoever sends an old acknowledgement again does not bring back what it said of then. */
static void pressure__of_an_old_frame_is_no_news(void **state)
{
	struct frame *f;
	uint64_t limit;
	unsigned int i;

	meet(A, B);
	send_packets(1);
	run(BW_MS);
	pressure(B, true);
	flush(B);
	f = frame_copy(world.wire[0]);
	settle();
	limit = peer(A, B)->tx_limit;
	pressure(B, false);
	for (i = 0; i < 60; i++)
		post(A, B, i, 1100);
	run(BW_S);
	assert_true(peer(A, B)->tx_limit > limit);
	assert_false(bw_reliable_pressed(engine(A), world.node[A].peer[B]));
	receive(f);
	assert_false(bw_reliable_pressed(engine(A), world.node[A].peer[B]));
}

static void pressure__told_before_anything_was_received(void **state)
{
	node_open(A);
	node_open(B);
	meet(A, B);
	pressure(A, true);
	settle();
	assert_int_equal(frames_with("pressure"), 1);
	assert_true(bw_reliable_pressed(engine(B), world.node[B].peer[A]));
	assert_int_equal(events_with("SENT"), 0);
}

int ack_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ack__waits_for_more_or_a_moment),
		TEST(ack__at_the_latest_after_16_packets),
		TEST(ack__of_16_packets_waits_for_a_moment),
		TEST(ack__at_the_latest_after_128_packets),
		TEST(ack__rides_on_data),
		TEST(ack__at_once_when_something_is_missing),
		TEST(ack__ranges_are_told_though_data_goes_the_other_way),
		TEST(ack__at_once_for_the_first_packet_if_it_is_not_number_1),
		TEST(ack__ranges_are_exactly_what_came),
		TEST(ack__ranges_settle_exactly_those_packets),
		TEST(ack__of_packets_never_sent_is_ignored),
		TEST(ack__range_beyond_what_was_sent_is_ignored),
		TEST(ack__malformed_is_dropped),
		TEST(gaps__more_than_can_be_stated_come_again),
		TEST(floor__lets_the_receiver_forget_gaps),
		TEST(floor__is_the_oldest_packet_of_interest),
		TEST(floor__above_its_own_packet),
		TEST(now__is_answered_at_once),
		TEST(delay__is_taken_out_of_the_round_trip),
		TEST(delay__of_another_packet_is_not_taken_out),
		TEST(delay__states_how_long_the_packet_lay_there),
		TEST(rtt__smoothed_as_in_rfc_6298),
		TEST(rtt__first_sample_is_the_exchange_of_hellos),
		TEST(rtt__repeated_hello_gives_no_sample),
		TEST(idle__nobody_speaks),
		TEST(pressure__is_told_at_once),
		TEST(pressure__of_an_old_frame_is_no_news),
		TEST(pressure__told_before_anything_was_received),
	};

	return cmocka_run_group_tests_name("ack", tests, NULL, NULL);
}
