/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loss: concluded from later acknowledgements, beyond a reordering window that adapts, or from
 * time; a lost tail is found by probes with growing pauses. Exactly the lost ranges are sent again.
 */
#include "again.h"
#include "groups.h"
#include "loss.h"
#include "peer.h"

static void send_packets(unsigned int n, uint64_t first_tag)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		post(A, B, first_tag + i, 1100);
	flush(A);
}

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
	deliver_all();
}

static void evidence__three_later_packets(void **state)
{
	meet(A, B);
	send_packets(4, 1);
	drop(0);
	deliver_all();
	acknowledge(); /* 2, 3 and 4 */
	assert_int_equal(count(A)->losses, 1);
	forget_logs();
	flush(A);
	expect_frames("A>B DATA 5 [MESSAGE 0 0+1100/1100]", NULL);
	assert_int_equal(count(A)->retransmits, 1);
}

static void evidence__two_later_packets_are_not_enough(void **state)
{
	meet(A, B);
	send_packets(3, 1);
	drop(0);
	deliver_all();
	flush(B);
	deliver_all();
	forget_logs();
	flush(A);
	expect_frames(NULL, NULL);
	assert_int_equal(count(A)->losses, 0);
	send_packets(1, 4);
	deliver_all();
	acknowledge();
	assert_int_equal(count(A)->losses, 1);
	forget_logs();
	flush(A);
	expect_frames("A>B DATA 5 [MESSAGE 0 0+1100/1100]", NULL);
}

static void evidence__exactly_what_was_lost_is_sent_again(void **state)
{
	int i;

	meet(A, B);
	for (i = 0; i < 3; i++)
		post(A, B, (uint64_t)i, 300); /* packet 1: three messages */
	send_packets(5, 10);
	assert_int_equal(world.wire_n, 6);
	drop(3); /* packet 4: message 5 */
	drop(0); /* packet 1 */
	deliver_all();
	acknowledge();
	forget_logs();
	flush(A);
	/* packet 4 is only two behind 6; packet 1 counts as lost: all its parts travel again */
	expect_frames(
		"A>B DATA 7 [MESSAGE 0 0+300/300] [MESSAGE 1 0+300/300] [MESSAGE 2 0+300/300]",
		NULL);
	settle();
	run(10 * BW_MS);
	assert_int_equal(events_with("B MESSAGE"), 8);
	assert_int_equal(count(A)->losses, 2);
}

static void evidence__bulk_ranges(void **state)
{
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 12080);
	pull(B, A, key, 2, 0, 12080, BW_PULL_FINAL);
	flush(B);
	deliver(0);
	flush(A);
	assert_int_equal(world.wire_n, 10);
	drop(4);
	drop(2);
	forget_logs();
	deliver_all();
	settle();
	assert_int_equal(frames_with("A>B DATA"), 2);
	assert_int_equal(frames_with("[BULK 2416+1208]"), 1);
	assert_int_equal(frames_with("[BULK 4832+1208]"), 1);
	expect_events("B PULLED 2 len 12080", "A REGION_DONE 1", NULL);
}

/* What a receiver remembers as many ranges as it can of is only completed from its beginning on. */
static void evidence__ranges_go_again_in_their_order(void **state)
{
	const struct bw_list *again, *l;
	uint64_t key, off = 0;

	meet(A, B);
	key = expose(A, B, 1, 12080);
	pull(B, A, key, 2, 0, 12080, BW_PULL_FINAL);
	flush(B);
	deliver(0);
	flush(A);
	drop(2);
	while (world.wire_n > 3) /* those behind stay under way, and the lost one, sent again */
		deliver(0);
	flush(B);
	while (frame_hdr(world.wire[world.wire_n - 1])->type == BW_FRAME_ACK)
		deliver(world.wire_n - 1);
	flush(A);
	assert_int_equal(count(A)->retransmits, 1);
	bw_loss_requeue_path(engine(A), peer(A, B), sender());
	assert_int_equal(bw_again_first(peer(A, B))->off, 2416);
	again = &bw_again_of(bw_again_first(peer(A, B)))->ranges;
	for (l = again->next; l != again; l = l->next) {
		assert_true(bw_entry(l, const struct bw_record, list)->off > off);
		off = bw_entry(l, const struct bw_record, list)->off;
	}
	assert_int_equal(off, 10872);
	run(BW_S);
	assert_int_equal(events_with("B PULLED 2 len 12080"), 1);
}

/* Parts that are lost again come before those that still wait, of many messages or of one. */
static void again__finds_places_in_few_steps(void **state)
{
	const uint64_t part = 1208;
	uint64_t pulls, before, key;

	for (pulls = 1; pulls <= 128; pulls *= 128) {
		uint64_t parts = 256 / pulls, i;

		world_setup(state);
		world.node[B].cfg.rx_budget = 4u << 20;
		meet(A, B);
		sender()->cc.cwnd = 4u << 20;
		key = expose(A, B, 1, 256 * part);
		for (i = 0; i < pulls; i++)
			pull(B, A, key, 2 + i, i * parts * part, parts * part, 0);
		flush(B);
		deliver_all();
		flush(A);
		drop_all();
		bw_loss_requeue_path(engine(A), peer(A, B), sender());
		sender()->cc.cwnd = 128 * 1500;
		flush(A);
		drop_all();
		assert_in_range(count(A)->retransmits, 64, 192);
		before = engine(A)->steps;
		bw_loss_requeue_path(engine(A), peer(A, B), sender());
		assert_in_range(engine(A)->steps - before, 0, 256);
		flush(A);
		drop_all();
		before = engine(A)->steps;
		for (i = sender()->pn_next; i--;) /* the last one first */
			bw_loss_requeue_packet(engine(A), peer(A, B), sender(), i);
		assert_in_range(engine(A)->steps - before, 0, 256);
		run(BW_S);
		assert_int_equal(events_with("B PULLED"), pulls);
		world_teardown(state);
	}
}

static void evidence__by_time(void **state)
{
	uint64_t late;

	meet(A, B);
	send_packets(2, 1);
	drop(0);
	deliver_all();
	flush(B);
	deliver_all();
	assert_int_equal(count(A)->losses, 0);
	late = sender()->loss_at;
	assert_true(late > world.now && late != BW_NEVER);
	pass(late - world.now - 1);
	forget_logs();
	flush(A);
	expect_frames(NULL, NULL);
	pass(1);
	flush(A);
	expect_frames("A>B DATA 3 [MESSAGE 0 0+1100/1100]", NULL);
	assert_int_equal(count(A)->losses, 1);
	assert_int_equal(count(A)->probes, 0);
}

static void evidence__time_is_some_round_trips(void **state)
{
	meet(A, B);
	sender()->rtt.srtt = 800 * BW_US;
	sender()->rtt.var = 100 * BW_US;
	send_packets(2, 1);
	drop(0);
	deliver(0);
	flush(B);
	sender()->rtt.srtt = 800 * BW_US;
	deliver(0);
	/* 9/8 srtt + 4 rttvar after the lost one was sent; srtt has taken in a sample meanwhile */
	assert_int_equal(sender()->loss_at, world.now + sender()->rtt.srtt +
						    sender()->rtt.srtt / 8 + 4 * sender()->rtt.var);
}

static void tail__probe_sends_the_oldest_packet_again(void **state)
{
	meet(A, B);
	send_packets(2, 1);
	drop_all();
	forget_logs();
	world.now = deadline();
	flush(A);
	expect_frames("A>B DATA 3 [MESSAGE 0 0+1100/1100]", NULL);
	assert_int_equal(count(A)->probes, 1);
	deliver_all();
	acknowledge();
	run(10 * BW_MS);
	assert_int_equal(events_with("B MESSAGE"), 2);
	assert_int_equal(events_with("A SENT"), 2);
}

/* The engine's deadline may come too early, as it is not set anew for each packet. */
static uint64_t exact_deadline(void)
{
	bw_peer_schedule(world.node[A].mem, peer(A, B));
	return deadline();
}

static void tail__comes_after_two_round_trips_and_the_delay_of_acknowledgements(void **state)
{
	meet(A, B);
	sender()->rtt.srtt = 300 * BW_US;
	sender()->rtt.var = 0;
	send_packets(1, 1);
	drop_all();
	assert_int_equal(exact_deadline(), world.now + 2 * 300 * BW_US + BW_ACK_DELAY);
	sender()->rtt.var = 200 * BW_US;
	send_packets(1, 2);
	drop_all();
	assert_int_equal(exact_deadline(),
			 world.now + 300 * BW_US + 4 * 200 * BW_US + BW_ACK_DELAY);
	sender()->rtt.srtt = 1;
	sender()->rtt.var = 0;
	send_packets(1, 3);
	drop_all();
	assert_int_equal(exact_deadline(), world.now + BW_PTO_MIN + BW_ACK_DELAY);
}

static void tail__too_early_a_deadline_is_only_set_right(void **state)
{
	uint64_t early;

	meet(A, B);
	sender()->rtt.srtt = 300 * BW_US;
	sender()->rtt.var = 0;
	send_packets(1, 1);
	early = deadline();
	world.now += 100 * BW_US;
	send_packets(1, 2);
	drop_all();
	assert_in_range(deadline(), world.now, early); /* as of the first packet */
	world.now = deadline();
	settle();
	assert_int_equal(count(A)->probes, 0);
	assert_int_equal(deadline(), early + 100 * BW_US);
}

static enum fate all_lost(const struct frame *f)
{
	return f->from == A ? LOSE : PASS;
}

static void tail__pauses_double(void **state)
{
	uint64_t last, pause;
	int i;

	meet(A, B);
	world.fate = all_lost;
	send_packets(1, 1);
	settle();
	last = world.now;
	pause = deadline() - last;
	for (i = 1; i < 8; i++) {
		world.now = deadline();
		settle();
		assert_int_equal(count(A)->probes, i);
		assert_int_equal(deadline() - world.now, bw_min_u64(pause << i, BW_PTO_MAX));
	}
}

static void tail__pause_is_never_longer_than_a_second(void **state)
{
	uint64_t probes;

	meet(A, B);
	world.fate = all_lost;
	send_packets(1, 1);
	run(30 * BW_S);
	probes = count(A)->probes;
	run(10 * BW_S);
	assert_in_range(count(A)->probes - probes, 10, 11);
	assert_int_equal(events_with("PEER_DOWN"), 0);
	world.fate = NULL;
	run(2 * BW_S); /* the peer is found again */
	assert_int_equal(events_with("B MESSAGE 1"), 1);
	assert_int_equal(sender()->pto_count, 0);
}

static enum fate large_lost(const struct frame *f)
{
	return f->from == A && f->len > 500 ? LOSE : PASS;
}

static void tail__from_the_third_probe_on_a_small_packet_goes_along(void **state)
{
	meet(A, B);
	world.fate = large_lost;
	send_packets(1, 1);
	run(5 * BW_MS);
	assert_int_equal(frames_with("DATA 2 [MESSAGE 0 0+1100/1100] lost"), 1);
	assert_int_equal(frames_with("DATA 3 [MESSAGE 0 0+1100/1100] lost"), 1);
	assert_int_equal(frames_with("A>B DATA 4 now"), 1);
	/* alone, and with the next one */
	assert_int_equal(frames_with("B>A ACK 0 +[4,5)"), 2);
}

static void tail__is_sent_even_when_the_window_is_full(void **state)
{
	meet(A, B);
	sender()->cc.cwnd = 2000;
	send_packets(3, 1);
	assert_int_equal(world.wire_n, 2);
	drop_all();
	sender()->cc.cwnd = 1000; /* even less than what is under way */
	world.now = deadline();
	flush(A);
	assert_int_equal(world.wire_n, 1);
	assert_int_equal(frame_pn(world.wire[0]), 3);
}

static void reordering__spurious_loss_widens_the_window(void **state)
{
	struct frame *late;

	meet(A, B);
	send_packets(8, 1);
	late = take(0);
	while (world.wire_n)
		deliver(0);
	acknowledge();
	assert_int_equal(count(A)->losses, 1);
	assert_int_equal(count(A)->spurious, 0);
	assert_int_equal(sender()->reorder, BW_REORDER_MIN);
	receive(late); /* it was only late */
	acknowledge();
	assert_int_equal(count(A)->spurious, 1);
	assert_int_equal(sender()->reorder, 8); /* just beyond its distance of 7 */
	run(BW_MS);
	assert_int_equal(events_with("B MESSAGE"), 8);
	assert_int_equal(events_with("A SENT"), 8);
}

static void reordering__of_a_known_distance_is_no_loss(void **state)
{
	struct frame *late;

	meet(A, B);
	send_packets(8, 1);
	late = take(0);
	while (world.wire_n)
		deliver(0);
	acknowledge();
	receive(late);
	acknowledge();
	settle();
	assert_int_equal(count(A)->losses, 1);
	send_packets(8, 11);
	late = take(0);
	while (world.wire_n)
		deliver(0);
	acknowledge();
	assert_int_equal(count(A)->losses, 1);
	give(late);
	settle();
	assert_int_equal(events_with("B MESSAGE"), 16);
}

static void reordering__window_shrinks_slowly(void **state)
{
	unsigned int rounds = 0;

	meet(A, B);
	sender()->reorder = 10;
	while (sender()->reorder > BW_REORDER_MIN && ++rounds < 100) {
		send_packets(5, rounds * 10);
		run(BW_MS);
	}
	assert_int_equal(rounds, 7);
	sender()->reorder = BW_REORDER_MAX;
	send_packets(5, 2000);
	run(BW_MS);
	assert_int_equal(sender()->reorder, BW_REORDER_MAX - 8);
}

static void reordering__window_has_a_limit(void **state)
{
	struct frame *late;

	world.node[B].cfg.rx_budget = 4u << 20;
	meet(A, B);
	sender()->cc.cwnd = 4u << 20;
	peer(A, B)->tx_limit += 0;
	post(A, B, 0, 8);
	run(BW_MS);
	send_packets(600, 1);
	assert_int_equal(world.wire_n, 600);
	late = take(0);
	while (world.wire_n)
		deliver(0);
	acknowledge();
	receive(late);
	acknowledge();
	assert_int_equal(sender()->reorder, BW_REORDER_MAX);
}

static void lost__are_remembered_only_for_a_while(void **state)
{
	meet(A, B);
	send_packets(6, 1);
	drop(0);
	settle();
	assert_int_equal(count(A)->losses, 1);
	assert_int_equal(sender()->floor, 1);
	run(50 * BW_MS);
	send_packets(1, 10);
	run(BW_MS);
	assert_int_equal(sender()->lost.n, 0);
	assert_int_equal(sender()->floor, sender()->pn_next);
}

static void split__a_lost_range_travels_in_smaller_pieces(void **state)
{
	world.node[A].cfg.link_mtu[0] = world.node[B].cfg.link_mtu[0] = 4000;
	meet(A, B);
	assert_int_equal(sender()->pmtu.mtu, 4000);
	post(A, B, 1, 3800);
	flush(A);
	drop_all();
	sender()->pmtu.mtu = 1280;
	forget_logs();
	run(10 * BW_MS);
	assert_int_equal(frames_with("[MESSAGE 0 0+1176/3800]"), 1);
	assert_int_equal(frames_with("[MESSAGE 0 1176+1176/3800]"), 1);
	assert_int_equal(frames_with("[MESSAGE 0 2352+1176/3800]"), 1);
	assert_int_equal(frames_with("[MESSAGE 0 3528+272/3800]"), 1);
	expect_events("B MESSAGE 1 len 3800", "A SENT 1", NULL);
}

static void split__bulk_too(void **state)
{
	uint64_t key;

	world.node[A].cfg.link_mtu[0] = world.node[B].cfg.link_mtu[0] = 4000;
	meet(A, B);
	meet(B, A);
	key = expose(A, B, 1, 3900);
	pull(B, A, key, 2, 0, 3900, BW_PULL_FINAL);
	flush(B);
	deliver(0);
	flush(A);
	assert_int_equal(frames_with("[BULK 0+3900]"), 1);
	drop_all();
	sender()->pmtu.mtu = 1280;
	run(10 * BW_MS);
	expect_events("B PULLED 2 len 3900", "A REGION_DONE 1", NULL);
}

static void unsent__packet_goes_again_without_a_response(void **state)
{
	struct bw_tx_frame t;
	uint64_t cwnd, frames;

	meet(A, B);
	cwnd = sender()->cc.cwnd;
	frames = count(A)->tx_frames;
	post(A, B, 1, 8);
	post(A, B, 2, 1200);
	assert_true(bw_reliable.next_frame(engine(A), &t, world.now));
	bw_reliable.unsent(engine(A), world.now);
	assert_null(bw_reliable_check(engine(A)));
	assert_int_equal(sender()->inflight, 0);
	assert_int_equal(count(A)->tx_frames, frames);
	settle();
	/* the number is used up, as every number is used once */
	assert_int_equal(frames_with("DATA 1"), 0);
	assert_int_equal(frames_with("DATA 2 [MESSAGE 0 0+8/8]"), 1);
	assert_int_equal(sender()->cc.cwnd, cwnd);
	assert_int_equal(count(A)->losses + count(A)->backoffs, 0);
	run(BW_MS);
	assert_int_equal(events_with("B MESSAGE"), 2);
	assert_int_equal(events_with("A SENT"), 2);
}

static void unsent__acknowledgement_and_hello_go_again(void **state)
{
	struct bw_tx_frame t;

	node_open(A);
	node_open(B);
	connect_to(A, B);
	assert_true(bw_reliable.next_frame(engine(A), &t, world.now));
	bw_reliable.unsent(engine(A), world.now);
	settle();
	assert_int_equal(frames_with("A>B HELLO"), 1);
	assert_int_equal(peer(A, B)->state, BW_PEER_UP);
	meet(A, B);
	send_packets(1, 1);
	settle();
	pass(BW_ACK_DELAY);
	forget_logs();
	assert_true(bw_reliable.next_frame(engine(B), &t, world.now));
	bw_reliable.unsent(engine(B), world.now);
	flush(B);
	expect_frames("B>A ACK 1", NULL);
}

static void unsent__says_nothing_of_the_frame_size(void **state)
{
	struct bw_tx_frame t;
	int i;

	meet(A, B);
	post(A, B, 1, 1100);
	for (i = 0; i < 3 * BW_BLACK_HOLE; i++) {
		assert_true(bw_reliable.next_frame(engine(A), &t, world.now));
		bw_reliable.unsent(engine(A), world.now);
	}
	assert_int_equal(sender()->pmtu.lost, 0);
	run(BW_MS);
	assert_int_equal(events_with("B MESSAGE 1"), 1);
}

/* However long a round trip once seemed to take. */
static void tail__probes_come_at_least_once_a_second(void **state)
{
	meet(A, B);
	path(A, B, 0)->rtt.srtt = 40 * BW_S;
	path(A, B, 0)->rtt.var = 40 * BW_S;
	post(A, B, 1, 8);
	flush(A);
	drop_all();
	forget_logs();
	run(BW_S);
	assert_int_equal(frames_with("A>B DATA"), 1);
	assert_int_equal(events_with("A SENT 1"), 1);
}

int loss_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(evidence__three_later_packets),
		TEST(evidence__two_later_packets_are_not_enough),
		TEST(evidence__exactly_what_was_lost_is_sent_again),
		TEST(evidence__bulk_ranges),
		TEST(evidence__ranges_go_again_in_their_order),
		TEST(again__finds_places_in_few_steps),
		TEST(evidence__by_time),
		TEST(evidence__time_is_some_round_trips),
		TEST(tail__probe_sends_the_oldest_packet_again),
		TEST(tail__comes_after_two_round_trips_and_the_delay_of_acknowledgements),
		TEST(tail__too_early_a_deadline_is_only_set_right),
		TEST(tail__pauses_double),
		TEST(tail__pause_is_never_longer_than_a_second),
		TEST(tail__from_the_third_probe_on_a_small_packet_goes_along),
		TEST(tail__is_sent_even_when_the_window_is_full),
		TEST(reordering__spurious_loss_widens_the_window),
		TEST(reordering__of_a_known_distance_is_no_loss),
		TEST(reordering__window_shrinks_slowly),
		TEST(reordering__window_has_a_limit),
		TEST(lost__are_remembered_only_for_a_while),
		TEST(split__a_lost_range_travels_in_smaller_pieces),
		TEST(split__bulk_too),
		TEST(unsent__packet_goes_again_without_a_response),
		TEST(unsent__acknowledgement_and_hello_go_again),
		TEST(unsent__says_nothing_of_the_frame_size),
		TEST(tail__probes_come_at_least_once_a_second),
	};

	return cmocka_run_group_tests_name("loss", tests, NULL, NULL);
}
