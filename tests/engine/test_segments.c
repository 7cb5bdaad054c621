/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages longer than a frame travel in segments, placed by their offset in any order; damaged or
 * unplaced ones are not acknowledged and come again.
 */
#include "groups.h"
#include "host.h"

#define SEG (1280 - 32 - 16 - 56) /* payload of a full frame */

static void segments__fill_frames(void **state)
{
	meet(A, B);
	post(A, B, 7, 3000);
	settle();
	expect_frames("A>B DATA 1 [MESSAGE 0 0+1176/3000]", "A>B DATA 2 [MESSAGE 0 1176+1176/3000]",
		      "A>B DATA 3 [MESSAGE 0 2352+648/3000]", NULL);
	expect_events("B MESSAGE 7 len 3000", NULL);
}

static void segments__in_any_order(void **state)
{
	meet(A, B);
	post(A, B, 7, 5 * SEG);
	flush(A);
	reverse();
	deliver_all();
	expect_events("B MESSAGE 7 len 5880", NULL);
	assert_int_equal(count(B)->rx_payload, 5 * SEG);
}

static void segments__of_a_message_of_the_greatest_length(void **state)
{
	meet(A, B);
	post(A, B, 7, BW_EAGER_LIMIT);
	run(10 * BW_MS);
	assert_int_equal(events_with("B MESSAGE 7 len 65536"), 1);
	assert_int_equal(events_with("A SENT 7"), 1);
	assert_int_equal(count(A)->retransmits, 0);
	assert_int_equal(frames_with("A>B DATA"), (BW_EAGER_LIMIT + SEG - 1) / SEG);
}

/* A meets B, who takes long messages and has room for them, if `taken`. */
static void meet_long(bool taken)
{
	world.node[B].cfg.rx_budget = 4 * BW_LONG_LIMIT;
	if (taken)
		world.node[B].cfg.features |= BW_FEATURE_LONG;
	meet(A, B);
	assert_false(bw_reliable_takes(engine(A), world.node[A].peer[B], BW_LONG_LIMIT));
	post(A, B, 1, 8); /* more credit comes with its acknowledgement */
	run(10 * BW_MS);
	forget_logs();
}

static bool takes(uint64_t len)
{
	return bw_reliable_takes(engine(A), world.node[A].peer[B], len);
}

static void segments__of_a_message_for_who_takes_long_ones(void **state)
{
	meet_long(true);
	assert_true(takes(BW_LONG_LIMIT));
	assert_false(takes(BW_LONG_LIMIT + 1));
	post(A, B, 7, BW_LONG_LIMIT);
	run(10 * BW_MS);
	assert_int_equal(events_with("B MESSAGE 7 len 262144"), 1);
	assert_int_equal(events_with("A SENT 7"), 1);
	assert_int_equal(count(A)->retransmits, 0);
}

/* It is a host's mistake to send what is not taken, and a peer's, too. */
static void segments__of_a_long_message_are_for_nobody_else(void **state)
{
	struct bw_op op;
	struct frame *f;

	meet_long(false);
	assert_false(takes(BW_EAGER_LIMIT + 1));
	op = op_send(A, B, 7, BW_EAGER_LIMIT + 1);
	assert_int_equal(submit(A, &op), -EMSGSIZE);
	post(A, B, 2, 2000);
	flush(A);
	f = frame_copy(world.wire[0]);
	((struct bw_part_msg *)frame_part(f, 0))->total = BW_EAGER_LIMIT + 1;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_MALFORMED);
	engine(B)->cfg.features |= BW_FEATURE_LONG;
	f = frame_copy(world.wire[0]);
	((struct bw_part_msg *)frame_part(f, 0))->total = BW_LONG_LIMIT + 1;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_MALFORMED);
	settle();
	expect_events("B MESSAGE 2 len 2000", NULL);
}

/* All of it is to leave at once. */
static void segments__of_a_long_message_wait_for_nothing(void **state)
{
	struct bw_peer *p;
	uint64_t used;

	meet_long(true);
	p = peer(A, B);
	post(A, B, 2, 8);
	assert_false(takes(BW_LONG_LIMIT));
	settle();
	p->pressed = true;
	assert_false(takes(BW_LONG_LIMIT));
	p->pressed = false;
	p->lines = 2;
	assert_false(takes(BW_LONG_LIMIT));
	p->lines = 0;
	used = p->tx_used;
	p->tx_used = p->tx_limit - BW_LONG_LIMIT;
	assert_true(takes(BW_LONG_LIMIT));
	p->tx_used++;
	assert_false(takes(BW_LONG_LIMIT));
	assert_true(takes(BW_LONG_LIMIT - BW_CREDIT_UNIT));
	/* Nobody else gets that credit before it. */
	p->tx_used = used;
	post(A, B, 3, BW_LONG_LIMIT);
	assert_int_equal(p->tx_used, used + BW_LONG_LIMIT);
	run(10 * BW_MS);
	assert_int_equal(p->tx_used, used + BW_LONG_LIMIT);
	assert_int_equal(events_with("B MESSAGE 3 len 262144"), 1);
}

/* Somebody waits for the end of the message, not for that of each frame. */
static void segments__the_last_one_is_urgent(void **state)
{
	struct bw_op op;
	unsigned int i;

	meet(A, B);
	op = op_send(A, B, 7, 3 * SEG);
	op.send.urgent = true;
	assert_int_equal(submit(A, &op), 0);
	flush(A);
	assert_int_equal(world.wire_n, 3);
	for (i = 0; i < 3; i++) {
		const struct bw_hdr *h = (const struct bw_hdr *)world.wire[i]->bytes;

		assert_int_equal(h->flags, i == 2 ? BW_HDR_ACK_NOW : 0);
	}
	settle();
	expect_events("B MESSAGE 7 len 3528", "A SENT 7", NULL);
}

static void segments__next_message_begins_a_frame_of_its_own_or_fits_whole(void **state)
{
	meet(A, B);
	post(A, B, 1, SEG + 100);
	post(A, B, 2, 200);
	post(A, B, 3, 1100);
	flush(A);
	expect_frames("A>B DATA 1 [MESSAGE 0 0+1176/1276]",
		      "A>B DATA 2 [MESSAGE 0 1176+100/1276] [MESSAGE 1 0+200/200]",
		      "A>B DATA 3 [MESSAGE 2 0+1100/1100]", NULL);
}

/* A piece of message 7, cut elsewhere than the sender did: as after a change of the frame size. */
static struct frame *piece(const struct frame *like, uint32_t pn, uint64_t off)
{
	struct frame *f = frame_copy(like);
	struct bw_part_msg *m = (struct bw_part_msg *)frame_part(f, 0);

	m->offset = off;
	pattern(7, off, frame_payload(f, &m->part), m->part.plen);
	m->part.crc = bw_crc32c(0, frame_payload(f, &m->part), m->part.plen);
	frame_hdr(f)->pn = pn;
	frame_seal(f);
	return f;
}

static void segments__overlapping_are_counted_once(void **state)
{
	struct frame *f;

	meet(A, B);
	post(A, B, 7, 3000);
	flush(A);
	f = piece(world.wire[0], 9, 588);
	deliver(0);
	assert_int_equal(receive(f), 0);
	deliver(0);
	expect_events(NULL, NULL);
	deliver(0);
	expect_events("B MESSAGE 7 len 3000", NULL);
	assert_int_equal(count(B)->rx_payload, 3000);
}

static void segments__lost_one_alone_is_sent_again(void **state)
{
	meet(A, B);
	post(A, B, 7, 6 * SEG);
	flush(A);
	drop(1);
	forget_logs();
	settle();
	assert_int_equal(frames_with("MESSAGE"), 1);
	assert_int_equal(frames_with("[MESSAGE 0 1176+1176/7056]"), 1);
	assert_int_equal(count(A)->retransmits, 1);
	expect_events("B MESSAGE 7 len 7056", NULL);
}

static void payload__damaged_comes_again(void **state)
{
	struct frame *f;

	meet(A, B);
	post(A, B, 1, 100);
	flush(A);
	f = take(0);
	frame_payload(f, frame_part(f, 0))[50] ^= 4;
	assert_int_equal(receive(f), -BW_DROP_DATA);
	expect_events(NULL, NULL);
	assert_false(path(B, A, 0)->rx.any);
	run(10 * BW_MS);
	expect_events("B MESSAGE 1 len 100", "A SENT 1", NULL);
}

static void payload__damaged_segment_comes_again(void **state)
{
	struct frame *f;

	meet(A, B);
	post(A, B, 1, 3000);
	flush(A);
	f = take(1);
	frame_payload(f, frame_part(f, 0))[3] ^= 0x80;
	assert_int_equal(receive(f), -BW_DROP_DATA);
	run(10 * BW_MS);
	expect_events("B MESSAGE 1 len 3000", "A SENT 1", NULL);
	assert_int_equal(count(B)->rx_payload, 3000);
}

static void payload__damaged_in_a_bundle_spares_the_others(void **state)
{
	struct frame *f;

	meet(A, B);
	post(A, B, 1, 100);
	post(A, B, 2, 100);
	post(A, B, 3, 100);
	flush(A);
	f = take(0);
	frame_payload(f, frame_part(f, 1))[0] ^= 1;
	assert_int_equal(receive(f), -BW_DROP_DATA);
	expect_events("B MESSAGE 1 len 100", NULL);
	run(10 * BW_MS);
	assert_int_equal(events_with("B MESSAGE"), 2);
	assert_int_equal(events_with("A SENT"), 3);
}

static void payload__is_not_checked_without_the_feature(void **state)
{
	const struct bw_part *part;

	world.node[B].cfg.features = 0;
	meet(A, B);
	post(A, B, 1, 100);
	flush(A);
	part = frame_part(world.wire[0], 0);
	assert_int_equal(part->crc, 0);
	deliver_all();
	expect_events("B MESSAGE 1 len 100", NULL);
}

static void buffer__none_now_is_asked_for_again(void **state)
{
	meet(A, B);
	world.node[B].no_buffers = true;
	post(A, B, 1, 3000);
	settle();
	expect_events(NULL, NULL);
	expect_drop(B, BW_DROP_NO_BUFFER, 3);
	assert_false(path(B, A, 0)->rx.any);
	world.node[B].no_buffers = false;
	run(10 * BW_MS);
	assert_int_equal(events_with("B MESSAGE 1 len 3000"), 1);
	assert_int_equal(world.node[B].buffers_out, 0);
}

/* Once for each frame that begins one, and of which the host is told whether others wait for it. */
static void buffer__is_for_the_next_message_or_another(void **state)
{
	struct node *b = &world.node[B];

	meet(A, B);
	b->no_buffers = true;
	b->asked = b->asked_next = 0;
	post(A, B, 1, 3000);
	post(A, B, 2, 3000);
	settle();
	expect_drop(B, BW_DROP_NO_BUFFER, 6);
	assert_int_equal(b->asked, 6);
	assert_int_equal(b->asked_next, 3);
	b->no_buffers = false;
	run(10 * BW_MS);
	assert_int_equal(events_with("B MESSAGE"), 2);
}

static void buffer__not_needed_for_a_whole_message_in_turn(void **state)
{
	meet(A, B);
	world.node[B].no_buffers = true;
	post(A, B, 1, 1000);
	settle();
	expect_events("B MESSAGE 1 len 1000", NULL);
}

static void buffer__put_back_when_the_peer_goes(void **state)
{
	meet(A, B);
	post(A, B, 1, 3000);
	flush(A);
	deliver(0);
	assert_int_equal(world.node[B].buffers_out, 1);
	disconnect(B, A);
	assert_int_equal(world.node[B].buffers_out, 0);
}

static void segment__contradicting_the_message_is_dropped(void **state)
{
	struct bw_part_msg *m;
	struct frame *f;

	meet(A, B);
	post(A, B, 1, 3000);
	flush(A);
	deliver(0);
	f = frame_copy(world.wire[0]);
	m = (struct bw_part_msg *)frame_part(f, 0);
	m->total = 4000;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_MALFORMED);
	f = frame_copy(world.wire[0]);
	m = (struct bw_part_msg *)frame_part(f, 0);
	m->offset = 2000; /* 2000 + 1176 > 3000 */
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_MALFORMED);
	f = frame_copy(world.wire[0]);
	m = (struct bw_part_msg *)frame_part(f, 0);
	m->offset = UINT64_MAX - 100;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_MALFORMED);
	f = frame_copy(world.wire[0]);
	m = (struct bw_part_msg *)frame_part(f, 0);
	m->total = BW_EAGER_LIMIT + 1;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_MALFORMED);
	f = frame_copy(world.wire[0]);
	m = (struct bw_part_msg *)frame_part(f, 0);
	m->dst_ep = BW_EP_CONTROL;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_MALFORMED);
	settle();
	expect_events("B MESSAGE 1 len 3000", NULL);
}

static void segments__more_pieces_than_are_remembered_come_again(void **state)
{
	unsigned int i;

	meet(A, B);
	post(A, B, 1, 50 * SEG);
	flush(A);
	for (i = 0; i < 50; i += 2) /* every second one */
		give(take(0)), drop(0);
	deliver_all();
	assert_true(count(B)->drop[BW_DROP_RANGES] > 0);
	run(50 * BW_MS);
	expect_events("B MESSAGE 1 len 58800", "A SENT 1", NULL);
}

/* The frames of A's next message to B, which knows where it wants messages: on their way. */
static void segments_to_a_place(uint64_t tag, uint32_t len)
{
	post(A, B, tag, len);
	flush(A);
}

static void meet_with_places(void)
{
	meet(A, B);
	engine(B)->ops = &host_ops_direct;
}

static void place__is_asked_for_with_the_first_that_comes(void **state)
{
	meet_with_places();
	segments_to_a_place(7, 3000);
	reverse();
	deliver(0);
	expect_events("(a place for 7)", NULL);
	deliver_all();
	expect_events("B MESSAGE 7 len 3000", NULL);
	assert_int_equal(world.node[B].buffers_out, 0);
}

static void place__there_may_be_none(void **state)
{
	meet_with_places();
	world.node[B].no_places = true;
	segments_to_a_place(7, 3000);
	deliver_all();
	expect_events("(a place for 7)", "B MESSAGE 7 len 3000", NULL);
}

/* Who receives them in order would not know yet which receive it will be. */
static void place__is_for_the_next_message_only(void **state)
{
	meet_with_places();
	segments_to_a_place(1, 3000);
	segments_to_a_place(2, 3000);
	drop(0);
	deliver_all();
	assert_int_equal(events_with("(a place for 1)"), 1);
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE"), 2);
	assert_int_equal(events_with("(a place for 2)"), 0);
}

static void place__is_not_asked_for_while_events_wait(void **state)
{
	meet_with_places();
	world.node[B].ignore_events = true;
	segments_to_a_place(1, 3000);
	segments_to_a_place(2, 3000);
	deliver_all();
	assert_int_equal(events_with("(a place for"), 1);
	world.node[B].ignore_events = false;
	settle();
	assert_int_equal(events_with("B MESSAGE"), 2);
}

static void place__is_given_back_when_the_peer_is_gone(void **state)
{
	meet_with_places();
	segments_to_a_place(7, 3000);
	drop(1);
	deliver_all();
	assert_int_equal(world.node[B].buffers_out, 1);
	disconnect(B, A);
	assert_int_equal(world.node[B].buffers_out, 0);
}

/* Without memory for the message itself nobody is asked: the place would be lost. */
static void place__is_not_asked_for_in_vain(void **state)
{
	meet_with_places();
	world.node[B].no_places = world.node[B].no_buffers = true;
	segments_to_a_place(7, 3000);
	deliver_all();
	assert_int_equal(peer(B, A)->rx_used, 0);
	world.node[B].no_places = world.node[B].no_buffers = false;
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE 7"), 1);
}

int segments_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(segments__fill_frames),
		TEST(segments__in_any_order),
		TEST(segments__of_a_message_of_the_greatest_length),
		TEST(segments__of_a_message_for_who_takes_long_ones),
		TEST(segments__of_a_long_message_are_for_nobody_else),
		TEST(segments__of_a_long_message_wait_for_nothing),
		TEST(segments__the_last_one_is_urgent),
		TEST(segments__next_message_begins_a_frame_of_its_own_or_fits_whole),
		TEST(segments__overlapping_are_counted_once),
		TEST(segments__lost_one_alone_is_sent_again),
		TEST(segments__more_pieces_than_are_remembered_come_again),
		TEST(payload__damaged_comes_again),
		TEST(payload__damaged_segment_comes_again),
		TEST(payload__damaged_in_a_bundle_spares_the_others),
		TEST(payload__is_not_checked_without_the_feature),
		TEST(buffer__none_now_is_asked_for_again),
		TEST(buffer__is_for_the_next_message_or_another),
		TEST(buffer__not_needed_for_a_whole_message_in_turn),
		TEST(buffer__put_back_when_the_peer_goes),
		TEST(segment__contradicting_the_message_is_dropped),
		TEST(place__is_asked_for_with_the_first_that_comes),
		TEST(place__there_may_be_none),
		TEST(place__is_for_the_next_message_only),
		TEST(place__is_not_asked_for_while_events_wait),
		TEST(place__is_given_back_when_the_peer_is_gone),
		TEST(place__is_not_asked_for_in_vain),
	};

	return cmocka_run_group_tests_name("segments", tests, NULL, NULL);
}
