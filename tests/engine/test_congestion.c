/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Congestion: a window of bytes under way, which grows while it limits the sender, and answers
 * losses and marks at most once per round trip; an answer to a loss that was none is taken back.
 */
#include "groups.h"
#include "peer.h"

static void send_packets(unsigned int n, uint64_t first_tag)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		post(A, B, first_tag + i, 1168); /* frames of 1272 bytes */
	flush(A);
}

static struct bw_path *sender(void)
{
	return path(A, B, 0);
}

static void acknowledge(void)
{
	path(B, A, 0)->rx.ack_now = true;
	bw_peer_ready(engine(B), peer(B, A));
	flush(B);
	deliver_all();
}

static void big_credit(void)
{
	world.node[B].cfg.rx_budget = 64u << 20;
	meet(A, B);
	post(A, B, 9999, 8);
	run(BW_MS);
	forget_logs();
}

static void window__bounds_what_is_under_way(void **state)
{
	big_credit();
	send_packets(200, 1);
	assert_int_equal(world.wire_n, BW_CWND_INITIAL / 1272 + 1);
	assert_true(sender()->inflight >= BW_CWND_INITIAL);
	assert_true(sender()->inflight < BW_CWND_INITIAL + 1272);
	/* the packet that fills it asks for an acknowledgement */
	assert_true(frame_hdr(world.wire[world.wire_n - 1])->flags & BW_HDR_ACK_NOW);
	assert_false(frame_hdr(world.wire[world.wire_n - 2])->flags & BW_HDR_ACK_NOW);
}

static void window__doubles_per_round_trip_at_first(void **state)
{
	uint64_t sent;

	big_credit();
	send_packets(200, 1);
	sent = sender()->inflight;
	while (world.wire_n)
		deliver(0);
	pass(HOP_NS);
	acknowledge();
	assert_int_equal(sender()->inflight, 0);
	assert_int_equal(sender()->cc.cwnd, BW_CWND_INITIAL + sent);
}

static void window__does_not_grow_while_the_program_limits(void **state)
{
	int i;

	big_credit();
	for (i = 0; i < 20; i++) {
		send_packets(10, 1 + 10 * (uint64_t)i);
		run(BW_MS);
	}
	assert_int_equal(sender()->cc.cwnd, BW_CWND_INITIAL);
}

static void window__grows_by_a_frame_per_round_trip_later(void **state)
{
	uint64_t before;

	big_credit();
	sender()->cc.ssthresh = BW_CWND_INITIAL;
	send_packets(200, 1);
	before = sender()->cc.cwnd;
	while (world.wire_n)
		deliver(0);
	acknowledge();
	assert_in_range(sender()->cc.cwnd, before + 1200, before + 1300);
}

/* A round trip after a loss that shrank the window from 1000 frames, told from its start. */
static void answered_loss(uint64_t srtt)
{
	big_credit();
	sender()->cc.cwnd = 1000 * 1280;
	bw_window_respond(engine(A), sender(), sender()->pn_next);
	assert_int_equal(sender()->cc.cwnd, 700 * 1280);
	sender()->rtt.srtt = srtt;
	sender()->cc.limited_pn = UINT64_MAX;
}

static void acknowledge_windows(unsigned int round_trips)
{
	for (unsigned int i = 0; i < round_trips; i++) {
		engine(A)->now += sender()->rtt.srtt;
		bw_window_acked(engine(A), sender(), sender()->cc.cwnd, sender()->pn_next);
	}
}

/* RFC 9438 4.2: K is the cube root of 300 / 0.4, 9.09 s. */
static void window__follows_the_cubic_curve(void **state)
{
	answered_loss(100 * BW_MS);
	acknowledge_windows(45);
	/* 1000 - 0.4 * (9.09 - 4.5)^3 */
	assert_in_range(sender()->cc.cwnd, 959 * 1280, 963 * 1280);
	acknowledge_windows(45);
	assert_in_range(sender()->cc.cwnd, 999 * 1280, 1000 * 1280);
	acknowledge_windows(46);
	assert_in_range(sender()->cc.cwnd, 1034 * 1280, 1040 * 1280);
}

static void window__grows_no_slower_than_standard_tcp(void **state)
{
	answered_loss(BW_MS);
	acknowledge_windows(100);
	/* RFC 9438 4.3: 9/17 of a frame per round trip below the former window, a frame above */
	assert_in_range(sender()->cc.cwnd, 751 * 1280, 754 * 1280);
	acknowledge_windows(900);
	assert_in_range(sender()->cc.cwnd, 1420 * 1280, 1445 * 1280);
}

/* RFC 9438 5.8: time in which the program limits is no time of the curve. */
static void window__goes_on_with_its_curve_after_a_pause(void **state)
{
	answered_loss(100 * BW_MS);
	acknowledge_windows(1);
	sender()->cc.limited_pn = 0;
	acknowledge_windows(1000);
	assert_in_range(sender()->cc.cwnd, 700 * 1280, 735 * 1280);
	sender()->cc.limited_pn = UINT64_MAX;
	acknowledge_windows(44);
	/* as without the pause: 1000 - 0.4 * (9.09 - 4.5)^3 */
	assert_in_range(sender()->cc.cwnd, 958 * 1280, 963 * 1280);
}

static void loss__before_the_former_window_aims_lower(void **state)
{
	answered_loss(100 * BW_MS);
	sender()->cc.recovery_pn = 0;
	sender()->cc.cwnd = 800 * 1280;
	bw_window_respond(engine(A), sender(), sender()->pn_next);
	assert_int_equal(sender()->cc.cubic.w_max, 680 * 1280);
}

/* Round trips of two samples each, the second `rtt_ns` long, that fill the window or do not. */
static void local_rounds(unsigned int n, uint64_t rtt_ns, bool full)
{
	struct bw_path *t = sender();

	while (n--) {
		uint64_t pn = t->pn_next;

		t->pn_next += 2;
		t->cc.limited_pn = full ? UINT64_MAX : 0;
		bw_window_sample(t, 2 * rtt_ns, pn);
		bw_window_sample(t, rtt_ns, pn + 1);
	}
}

/* 20 us at least: a queue shows itself by 540 us. */
static void window__stops_doubling_when_queues_build_up(void **state)
{
	uint64_t cwnd = BW_CWND_INITIAL;

	big_credit();
	sender()->rtt.min = 20 * BW_US;
	local_rounds(2, 539 * BW_US, true);
	bw_window_acked(engine(A), sender(), 4000, sender()->pn_next);
	assert_int_equal(sender()->cc.cwnd, cwnd + 4000);
	local_rounds(1, 540 * BW_US, true);
	local_rounds(1, 540 * BW_US, true); /* which tells of the one before */
	bw_window_acked(engine(A), sender(), 4000, sender()->pn_next);
	assert_int_equal(sender()->cc.cwnd, cwnd + 5000);
	local_rounds(4, 540 * BW_US, true);
	assert_int_equal(sender()->cc.ssthresh, UINT64_MAX);
	local_rounds(1, 540 * BW_US, true);
	assert_int_equal(sender()->cc.ssthresh, cwnd + 5000);
}

/* The peer's program came late, or waited for a core. */
static void window__doubles_on_if_the_delay_was_no_queue_s(void **state)
{
	uint64_t cwnd = BW_CWND_INITIAL;

	big_credit();
	sender()->rtt.min = 20 * BW_US;
	local_rounds(5, 10 * BW_MS, true);
	local_rounds(1, 100 * BW_US, true);
	local_rounds(5, 10 * BW_MS, true);
	assert_int_equal(sender()->cc.ssthresh, UINT64_MAX);
	local_rounds(2, 100 * BW_US, true);
	bw_window_acked(engine(A), sender(), 4000, sender()->pn_next);
	assert_int_equal(sender()->cc.cwnd, cwnd + 4000);
}

/* What did not fill the window has brought no queue about. */
static void window__doubles_on_if_it_was_not_full(void **state)
{
	big_credit();
	sender()->rtt.min = 20 * BW_US;
	local_rounds(100, 10 * BW_MS, false);
	assert_int_equal(sender()->cc.ssthresh, UINT64_MAX);
	assert_int_equal(sender()->cc.delay.slow, 0);
}

static void window__has_an_upper_limit(void **state)
{
	big_credit();
	sender()->cc.cwnd = BW_CWND_MAX - 100;
	sender()->cc.limited_pn = sender()->pn_next + 1;
	bw_window_acked(engine(A), sender(), 1000, sender()->pn_next);
	assert_int_equal(sender()->cc.cwnd, BW_CWND_MAX);
}

static void loss__shrinks_the_window_once_per_round_trip(void **state)
{
	big_credit();
	send_packets(20, 1);
	drop(5);
	drop(0);
	while (world.wire_n)
		deliver(0);
	acknowledge();
	assert_int_equal(count(A)->losses, 2);
	assert_int_equal(count(A)->backoffs, 1);
	assert_int_equal(sender()->cc.cwnd, BW_CWND_INITIAL * 7 / 10);
	assert_int_equal(sender()->cc.ssthresh, BW_CWND_INITIAL * 7 / 10);
	/* a loss in the next round trip is another event */
	settle();
	send_packets(20, 100);
	drop(0);
	while (world.wire_n)
		deliver(0);
	acknowledge();
	assert_int_equal(count(A)->backoffs, 2);
	assert_int_equal(sender()->cc.cwnd, BW_CWND_INITIAL * 7 / 10 * 7 / 10);
}

static void loss__never_shrinks_it_below_two_frames(void **state)
{
	int i;

	big_credit();
	for (i = 0; i < 20; i++)
		bw_window_respond(engine(A), sender(), sender()->pn_next++);
	assert_int_equal(sender()->cc.cwnd, 2 * 1280);
}

static void loss__that_was_none_is_taken_back(void **state)
{
	struct frame *late;

	big_credit();
	send_packets(10, 1);
	late = take(0);
	while (world.wire_n)
		deliver(0);
	acknowledge();
	assert_int_equal(sender()->cc.cwnd, BW_CWND_INITIAL * 7 / 10);
	receive(late);
	acknowledge();
	assert_int_equal(count(A)->spurious, 1);
	assert_int_equal(sender()->cc.cwnd, BW_CWND_INITIAL);
	assert_int_equal(sender()->cc.ssthresh, UINT64_MAX);
}

static void loss__of_an_earlier_event_is_not_taken_back(void **state)
{
	struct frame *late;

	big_credit();
	send_packets(10, 1);
	drop(0); /* really lost */
	while (world.wire_n)
		deliver(0);
	acknowledge();
	settle();
	assert_int_equal(sender()->cc.cwnd, BW_CWND_INITIAL * 7 / 10);
	run(BW_MS);
	send_packets(1, 100);
	late = take(0);
	world.now = deadline();
	flush(A); /* a tail probe: no response to the congestion, though the packet is only late */
	assert_int_equal(count(A)->probes, 1);
	receive(late);
	settle();
	run(BW_MS);
	assert_int_equal(count(A)->spurious, 1);
	assert_int_equal(sender()->cc.cwnd, BW_CWND_INITIAL * 7 / 10);
}

static enum fate lost(const struct frame *f)
{
	return f->from == A ? LOSE : PASS;
}

static void tail__third_probe_is_a_congestion_event(void **state)
{
	big_credit();
	send_packets(1, 1);
	drop_all();
	world.fate = lost;
	world.now = deadline();
	settle();
	world.now = deadline();
	settle();
	assert_int_equal(count(A)->probes, 2);
	assert_int_equal(sender()->cc.cwnd, BW_CWND_INITIAL);
	world.now = deadline();
	settle();
	assert_int_equal(sender()->cc.cwnd, BW_CWND_INITIAL * 7 / 10);
	world.now = deadline();
	settle();
	assert_int_equal(sender()->cc.cwnd, BW_CWND_INITIAL * 7 / 10);
}

static enum fate marked(const struct frame *f)
{
	return f->from == A ? MARK : PASS;
}

static void marks__are_counted_and_told(void **state)
{
	big_credit();
	world.view[A][B][0].marks = true;
	world.fate = marked;
	send_packets(3, 1);
	while (world.wire_n)
		deliver(0);
	assert_int_equal(count(B)->marks_rx, 3);
	forget_logs();
	acknowledge();
	expect_frames("B>A ACK 4 marks 3", NULL);
	assert_int_equal(sender()->cc.mark.seen, 3);
}

static void marks__shrink_the_window_by_their_smoothed_share(void **state)
{
	uint64_t cwnd = BW_CWND_INITIAL;

	big_credit();
	world.fate = marked;
	send_packets(10, 1);
	while (world.wire_n)
		deliver(0);
	acknowledge();
	/* share 1024, alpha 64 - 4 = 60: cwnd loses 60/2048 */
	cwnd -= cwnd * 60 / 2048;
	assert_int_equal(sender()->cc.cwnd, cwnd);
	assert_int_equal(sender()->cc.ssthresh, cwnd);
	assert_int_equal(count(A)->backoffs, 1);
	world.fate = NULL;
	send_packets(10, 100);
	while (world.wire_n)
		deliver(0);
	acknowledge();
	assert_int_equal(sender()->cc.cwnd, cwnd); /* a round without marks does not shrink it */
	assert_true(sender()->cc.mark.alpha < 60);
}

static void marks__of_an_old_frame_are_no_news(void **state)
{
	struct frame *old;
	uint64_t cwnd;

	big_credit();
	path(B, A, 0)->rx.marks = 100;
	post(B, A, 1, 8);
	flush(B);
	drop_all();
	post(B, A, 2, 8);
	flush(B);
	old = take(0); /* states 100 marks */
	path(B, A, 0)->rx.marks = 101;
	post(B, A, 3, 8);
	flush(B);
	deliver(0);
	cwnd = sender()->cc.cwnd;
	receive(old);
	assert_int_equal(sender()->cc.mark.seen, 101);
	assert_true(sender()->cc.mark.marked <= 101);
	send_packets(5, 50);
	path(B, A, 0)->rx.marks = 101;
	run(BW_MS);
	assert_true(sender()->cc.cwnd >= cwnd - cwnd / 16);
}

/* Of 2^15 marks ago, it would seem to count as many new ones. */
static void marks__of_a_very_old_frame_are_no_news(void **state)
{
	uint64_t later = 1ull << 17;
	struct bw_path *t;
	struct frame *f;

	big_credit();
	t = sender();
	send_packets(1, 1);
	while (world.wire_n)
		deliver(0);
	world.now = deadline();
	flush(B);
	f = frame_copy(world.wire[0]);
	settle();
	t->pn_next += later;
	t->floor = t->pn_next;
	t->acked_max += later;
	path(B, A, 0)->rx.got.base += later;
	path(B, A, 0)->rx.max += later;
	t->cc.mark.seen = 40000;
	path(B, A, 0)->rx.marks = 40000;
	receive(f);
	assert_int_equal(t->cc.mark.seen, 40000);
	assert_int_equal(t->cc.mark.marked, 0);
}

static void marks__count_wraps(void **state)
{
	big_credit();
	path(B, A, 0)->rx.marks = 65535;
	sender()->cc.mark.seen = 65535;
	world.fate = marked;
	send_packets(2, 1);
	while (world.wire_n)
		deliver(0);
	acknowledge();
	assert_int_equal(sender()->cc.mark.seen, 1);
	assert_int_equal(count(A)->backoffs, 1);
}

int congestion_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(window__bounds_what_is_under_way),
		TEST(window__doubles_per_round_trip_at_first),
		TEST(window__does_not_grow_while_the_program_limits),
		TEST(window__grows_by_a_frame_per_round_trip_later),
		TEST(window__follows_the_cubic_curve),
		TEST(window__grows_no_slower_than_standard_tcp),
		TEST(window__goes_on_with_its_curve_after_a_pause),
		TEST(loss__before_the_former_window_aims_lower),
		TEST(window__stops_doubling_when_queues_build_up),
		TEST(window__doubles_on_if_the_delay_was_no_queue_s),
		TEST(window__doubles_on_if_it_was_not_full),
		TEST(window__has_an_upper_limit),
		TEST(loss__shrinks_the_window_once_per_round_trip),
		TEST(loss__never_shrinks_it_below_two_frames),
		TEST(loss__that_was_none_is_taken_back),
		TEST(loss__of_an_earlier_event_is_not_taken_back),
		TEST(tail__third_probe_is_a_congestion_event),
		TEST(marks__are_counted_and_told),
		TEST(marks__shrink_the_window_by_their_smoothed_share),
		TEST(marks__of_an_old_frame_are_no_news),
		TEST(marks__of_a_very_old_frame_are_no_news),
		TEST(marks__count_wraps),
	};

	return cmocka_run_group_tests_name("congestion", tests, NULL, NULL);
}
