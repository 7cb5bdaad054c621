/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rows of frames (engine/row.c): what is made or taken as a row is the same as one by one, and a
 * frame that differs from what it should be ends the row before anything of it counts.
 */
#include "groups.h"

#define BULK   (1280 - 32 - 16 - 24) /* payload of a full frame of a pull */
#define SEG    (1280 - 32 - 16 - 56) /* and of one of a message */
#define PIECES 9		     /* of what the tests move */

/* B asks for PIECES full frames of A, which are on the wire. */
static void pulled(void)
{
	uint64_t key = expose(A, B, 1, PIECES * BULK);

	pull(B, A, key, 2, 0, PIECES * BULK, BW_PULL_FINAL);
	flush(B);
	deliver(0);
	flush(A);
	assert_int_equal(world.wire_n, PIECES);
}

static void meet_and_pull(void)
{
	meet(A, B);
	pulled();
}

/* A message of so many full frames to B is on the wire. */
static void meet_and_send(void)
{
	meet(A, B);
	post(A, B, 1, PIECES * SEG);
	flush(A);
	assert_int_equal(world.wire_n, PIECES);
}

static void expect_taken(unsigned int n, int result, uint32_t frames)
{
	uint32_t taken;

	assert_int_equal(deliver_row(n, &taken), result);
	assert_int_equal(taken, frames);
}

static void made__but_for_the_first_of_sixteen(void **state)
{
	meet_and_pull();
	assert_int_equal(world.alike, PIECES - 1);
	settle();
	post(A, B, 3, 40 * SEG);
	flush(A);
	assert_int_equal(world.wire_n, 40);
	assert_int_equal(world.alike, PIECES - 1 + 40 - 3); /* BW_QUANTUM */
}

/* A frame that could not be sent is not the model of the next one. */
static void made__not_after_unsent(void **state)
{
	struct bw_tx_frame t;

	meet(A, B);
	post(A, B, 1, PIECES * SEG);
	assert_true(bw_reliable.next_frame(engine(A), &t, world.now));
	assert_true(bw_reliable.next_alike(engine(A), &t));
	assert_int_equal(((struct bw_hdr *)t.head)->pn, 2);
	bw_reliable.unsent(engine(A), world.now);
	assert_false(bw_reliable.next_alike(engine(A), &t));
	assert_true(bw_reliable.next_frame(engine(A), &t, world.now));
	assert_int_equal(((struct bw_hdr *)t.head)->pn, 3);
	assert_int_equal(((struct bw_part_msg *)((uint8_t *)t.head + BW_DATA_HEAD))->offset, SEG);
}

static void made__not_after_something_was_received(void **state)
{
	struct bw_tx_frame t;

	meet(A, B);
	post(B, A, 1, 8);
	flush(B);
	frame_hdr(world.wire[0])->hcrc ^= 1; /* which tells the host nothing */
	post(A, B, 1, PIECES * SEG);
	assert_true(bw_reliable.next_frame(engine(A), &t, world.now));
	assert_int_equal(deliver(0), -BW_DROP_HEADER);
	assert_false(bw_reliable.next_alike(engine(A), &t));
}

static void made__within_the_window_alone(void **state)
{
	struct bw_tx_frame t;

	meet(A, B);
	post(A, B, 1, PIECES * SEG);
	path(A, B, 0)->cc.cwnd = 3 * 1280;
	assert_true(bw_reliable.next_frame(engine(A), &t, world.now));
	assert_int_equal(((struct bw_hdr *)t.head)->flags, 0);
	assert_true(bw_reliable.next_alike(engine(A), &t));
	assert_int_equal(((struct bw_hdr *)t.head)->flags, 0);
	assert_true(bw_reliable.next_alike(engine(A), &t));
	assert_int_equal(((struct bw_hdr *)t.head)->flags, BW_HDR_ACK_NOW);
	assert_false(bw_reliable.next_alike(engine(A), &t));
}

static void made__within_the_credit_alone(void **state)
{
	struct bw_tx_frame t;
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, PIECES * BULK);
	pull(B, A, key, 2, 0, PIECES * BULK, BW_PULL_FINAL);
	flush(B);
	deliver(0);
	peer(A, B)->tx_limit = peer(A, B)->tx_used + 2 * BULK + BULK / 2;
	assert_true(bw_reliable.next_frame(engine(A), &t, world.now));
	assert_true(bw_reliable.next_alike(engine(A), &t));
	assert_false(bw_reliable.next_alike(engine(A), &t));
	assert_false(bw_reliable.next_frame(engine(A), &t, world.now));
	assert_true(peer(A, B)->credit_stalled);
}

/* Two pulls take turns, also in rows. */
static void made__in_turns_of_two_pulls(void **state)
{
	uint64_t len = 40 * BULK, key[2] = {0};
	unsigned int i, turns = 0;
	uint64_t before = 0;

	meet(A, B);
	for (i = 0; i < 2; i++) {
		key[i] = expose(A, B, i + 1, len);
		pull(B, A, key[i], 10 + i, 0, len, BW_PULL_FINAL);
	}
	flush(B);
	deliver_all();
	peer(B, A)->rx_limit += 1 << 20;
	peer(A, B)->tx_limit += 1 << 20;
	path(A, B, 0)->cc.cwnd = 1 << 20;
	flush(A);
	assert_int_equal(world.wire_n, 80);
	for (i = 0; i < 80; i++) {
		const struct bw_part_bulk *w = (void *)frame_part(world.wire[i], 0);

		turns += w->id != before;
		before = w->id;
	}
	assert_int_equal(turns, 4); /* 32, 32, 8, 8 */
}

static void pull__is_taken_at_once(void **state)
{
	meet_and_pull();
	expect_taken(PIECES, 0, PIECES);
	assert_int_equal(count(B)->rx_payload, PIECES * BULK);
	assert_int_equal(count(B)->rx_frames, count(A)->tx_frames);
	settle();
	assert_int_equal(events_with("B PULLED 2 len 10872"), 1);
	assert_int_equal(peer(A, B)->tx_used, peer(B, A)->rx_taken);
	assert_int_equal(frames_with("B>A ACK 9"), 1);
	run(BW_S);
	assert_false(bw_reliable.busy(engine(A)));
	assert_int_equal(count(A)->retransmits, 0);
}

static void message__is_taken_at_once(void **state)
{
	meet_and_send();
	expect_taken(PIECES, 0, PIECES);
	assert_int_equal(count(B)->rx_payload, PIECES * SEG);
	assert_int_equal(events_with("B MESSAGE 1 len 10584"), 1);
	run(BW_S);
	assert_int_equal(count(A)->retransmits, 0);
}

/* One that is whole lets those go that waited for it. */
static void message__lets_the_next_ones_go(void **state)
{
	unsigned int i;

	meet_and_send();
	post(A, B, 2, 8);
	flush(A);
	assert_int_equal(deliver(PIECES), 0);
	assert_int_equal(events_with("B MESSAGE"), 0);
	/* A packet has come that was not due: one by one until it is. */
	for (i = 0; i < PIECES; i++)
		expect_taken(world.wire_n, 0, 1);
	assert_int_equal(events_with("B MESSAGE"), 2);
}

/* Marks are counted, and what asks for an acknowledgement at once gets it. */
static void marks__are_counted(void **state)
{
	meet_and_pull();
	world.wire[2]->mark = world.wire[5]->mark = true;
	expect_taken(PIECES, 0, PIECES);
	assert_int_equal(count(B)->marks_rx, 2);
	assert_int_equal(path(B, A, 0)->rx.marks, 2);
	flush(B);
	assert_int_equal(frames_with("B>A ACK 9"), 1);
}

/* Of what may be changed in a frame, by which a row must end; `f` is behind what goes on. */
static void other_offset(struct frame *f)
{
	((struct bw_part_bulk *)frame_part(f, 0))->offset += 8;
}

static void other_pull(struct frame *f)
{
	((struct bw_part_bulk *)frame_part(f, 0))->id ^= 1ull << 40;
}

static void other_kind(struct frame *f)
{
	frame_part(f, 0)->kind = BW_PART_PAD;
}

static void other_number(struct frame *f)
{
	frame_hdr(f)->pn++;
}

static void other_token(struct frame *f)
{
	frame_hdr(f)->token++;
}

static void other_handle(struct frame *f)
{
	frame_hdr(f)->conn++;
}

static void other_path(struct frame *f)
{
	frame_hdr(f)->path++;
}

static void other_engine(struct frame *f)
{
	frame_hdr(f)->dst_engine++;
}

static void other_credit(struct frame *f)
{
	((struct bw_ackblk *)frame_body(f))->credit++;
}

static void other_type(struct frame *f)
{
	frame_hdr(f)->type = BW_FRAME_ACK;
}

static void no_payload(struct frame *f)
{
	frame_part(f, 0)->plen = 0;
	frame_part(f, 0)->crc = 0;
	frame_hdr(f)->len = BW_DATA_HEAD - sizeof(struct bw_hdr) + sizeof(struct bw_part_bulk);
	f->len = sizeof(struct bw_hdr) + frame_hdr(f)->len;
	frame_seal(f);
}

static void shorter(struct frame *f)
{
	f->len -= 8; /* than it says */
}

static void elsewhere(struct frame *f)
{
	f->link = 1;
}

/* Five frames as a row, of which `change` has been done to the last one: it is left for rx(). */
static void expect_end(void (*change)(struct frame *f))
{
	struct frame *f = take(4);
	uint32_t len = f->len;

	while (world.wire_n > 4)
		drop(4);
	change(f);
	if (f->len == len)
		frame_seal(f);
	give(f);
	expect_taken(5, 0, 4);
	assert_int_equal(path(B, A, 0)->rx.got.base, world.keyed ? 7 : 5);
}

/* Each of the changes, to what `begin` has put onto the wire, ends the row. */
static void expect_ends(void **state, void (*begin)(void), uint32_t piece, unsigned int n,
			void (*const change[])(struct frame *f))
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		begin();
		expect_end(change[i]);
		assert_int_equal(count(B)->rx_payload, 4 * piece);
		world_teardown(state);
		world_setup(state);
	}
}

static void ends__where_a_pull_does_not_go_on(void **state)
{
	void (*const changes[])(struct frame * f) = {
		other_offset, other_pull, other_kind,	other_number, other_token,
		other_handle, other_path, other_engine, other_credit, other_type,
		no_payload,   shorter,	  elsewhere,
	};

	expect_ends(state, meet_and_pull, BULK, sizeof(changes) / sizeof(changes[0]), changes);
}

static void other_message(struct frame *f)
{
	((struct bw_part_msg *)frame_part(f, 0))->id++;
}

static void other_segment(struct frame *f)
{
	((struct bw_part_msg *)frame_part(f, 0))->offset += 8;
}

static void other_total(struct frame *f)
{
	((struct bw_part_msg *)frame_part(f, 0))->total--;
}

static void other_tag(struct frame *f)
{
	((struct bw_part_msg *)frame_part(f, 0))->tag++;
}

static void other_endpoint(struct frame *f)
{
	((struct bw_part_msg *)frame_part(f, 0))->src_ep++;
}

static void other_code(struct frame *f)
{
	frame_part(f, 0)->code++;
}

static void other_part(struct frame *f)
{
	frame_part(f, 0)->kind = BW_PART_PULL; /* as long as that of a message */
}

static void ends__where_a_message_does_not_go_on(void **state)
{
	void (*const changes[])(struct frame * f) = {
		other_message,	other_segment, other_total, other_tag,
		other_endpoint, other_code,    other_part,
	};

	expect_ends(state, meet_and_send, SEG, sizeof(changes) / sizeof(changes[0]), changes);
}

/* What is damaged ends the row; rx() then says what is wrong with it, and it comes again. */
static void ends__where_a_payload_is_damaged(void **state)
{
	struct frame *f;

	meet_and_pull();
	f = world.wire[4];
	*frame_payload(f, frame_part(f, 0)) ^= 1;
	expect_taken(PIECES, 0, 4);
	expect_taken(PIECES - 4, -BW_DROP_DATA, 1);
	expect_taken(PIECES - 5, 0, 1); /* there is a gap now: one by one */
	assert_int_equal(count(B)->rx_payload, 5 * BULK);
	run(BW_S);
	assert_int_equal(events_with("B PULLED 2 len 10872"), 1);
	assert_int_equal(count(A)->retransmits, 1);
	assert_int_equal(peer(A, B)->tx_used, peer(B, A)->rx_taken);
}

static void ends__where_a_head_is_damaged(void **state)
{
	meet_and_pull();
	frame_hdr(world.wire[4])->hcrc ^= 1;
	expect_taken(PIECES, 0, 4);
	expect_taken(PIECES - 4, -BW_DROP_HEADER, 1);
}

/* With a key each frame has its own tag. */
static void ends__where_a_tag_is_wrong(void **state)
{
	world.keyed = true;
	meet_keyed();
	pulled();
	settle();
	pulled();
	frame_hdr(world.wire[4])->token ^= 1;
	world.keyed = false; /* the tag is not made anew */
	expect_taken(PIECES, 0, 4);
	expect_taken(PIECES - 4, -BW_DROP_HEADER, 1);
}

static void ends__with_the_credit(void **state)
{
	meet_and_pull();
	peer(B, A)->rx_used = peer(B, A)->rx_limit - 4 * BULK;
	expect_taken(PIECES, 0, 5); /* the first gives its own back at once */
}

/* More than the pull asked for is nobody's. */
static void ends__with_the_pull(void **state)
{
	struct frame *f;
	uint64_t key;

	meet(A, B);
	key = expose(A, B, 1, 5 * BULK);
	pull(B, A, key, 2, 0, 5 * BULK - 8, BW_PULL_FINAL);
	flush(B);
	deliver(0);
	flush(A);
	drop(4);
	f = frame_copy(world.wire[3]);
	((struct bw_part_bulk *)frame_part(f, 0))->offset += BULK;
	frame_hdr(f)->pn++;
	frame_seal(f);
	give(f);
	expect_taken(5, 0, 4);
	expect_taken(1, -BW_DROP_MALFORMED, 1);
	assert_int_equal(count(B)->rx_payload, 4 * BULK);
}

static void ends__where_the_pull_was_canceled(void **state)
{
	uint64_t key, id;

	meet(A, B);
	key = expose(A, B, 1, PIECES * BULK);
	id = pull(B, A, key, 2, 0, PIECES * BULK, BW_PULL_FINAL);
	flush(B);
	deliver(0);
	flush(A);
	assert_int_equal(deliver(0), 0);
	assert_int_equal(cancel(B, id), 0);
	expect_taken(PIECES - 1, 0, 1);
	assert_int_equal(count(B)->rx_payload, BULK);
}

/* What came before in another order is not put in its place twice. */
static void ends__where_something_is_there_already(void **state)
{
	meet_and_pull();
	assert_int_equal(deliver(3), 0);
	expect_taken(3, 0, 1);
	expect_taken(2, 0, 1);
	expect_taken(1, 0, 1);
	expect_taken(PIECES - 4, 0, PIECES - 4);
	assert_int_equal(count(B)->rx_payload, PIECES * BULK);
}

/* One piece came long ago: what goes on before it does so one by one. */
static void ends__before_what_is_there_already(void **state)
{
	struct frame *f[PIECES];
	unsigned int i;

	meet_and_pull();
	for (i = 0; i < PIECES; i++)
		f[i] = take(0);
	for (i = 0; i < PIECES; i++) {
		frame_hdr(f[i])->pn = i == 5 ? 1 : i < 5 ? i + 2 : i + 1;
		frame_seal(f[i]);
		if (i != 5)
			give(f[i]);
	}
	assert_int_equal(receive(f[5]), 0);
	expect_taken(PIECES - 1, 0, 1);
	for (i = 1; i < PIECES - 1; i++)
		assert_int_equal(deliver(0), 0);
	assert_int_equal(count(B)->rx_payload, PIECES * BULK);
}

/* Bytes that would be pieces of a pull, were the frames' type DATA. */
static void ends__with_another_type(void **state)
{
	struct frame *f[2];
	struct bw_hdr *h;
	unsigned int i;

	meet_and_pull();
	f[0] = frame_copy(world.wire[0]);
	assert_int_equal(deliver(0), 0);
	f[1] = take(0);
	drop_all();
	for (i = 0; i < 2; i++) {
		h = frame_hdr(f[i]);
		h->type = BW_FRAME_ACK;
		h->hcrc = 0;
		/* An ACK is checked as a whole, a piece without its payload. */
		h->hcrc = bw_crc32c(0, h, i ? f[i]->len - BULK : f[i]->len);
		give(f[i]);
	}
	expect_taken(2, 0, 1);
	assert_int_equal(count(B)->rx_payload, BULK);
}

int row_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(made__but_for_the_first_of_sixteen),
		TEST(made__not_after_unsent),
		TEST(made__not_after_something_was_received),
		TEST(made__within_the_window_alone),
		TEST(made__within_the_credit_alone),
		TEST(made__in_turns_of_two_pulls),
		TEST(pull__is_taken_at_once),
		TEST(message__is_taken_at_once),
		TEST(message__lets_the_next_ones_go),
		TEST(marks__are_counted),
		TEST(ends__where_a_pull_does_not_go_on),
		TEST(ends__where_a_message_does_not_go_on),
		TEST(ends__where_a_payload_is_damaged),
		TEST(ends__where_a_head_is_damaged),
		TEST(ends__where_a_tag_is_wrong),
		TEST(ends__with_the_credit),
		TEST(ends__with_the_pull),
		TEST(ends__where_the_pull_was_canceled),
		TEST(ends__where_something_is_there_already),
		TEST(ends__before_what_is_there_already),
		TEST(ends__with_another_type),
	};

	return cmocka_run_group_tests_name("row", tests, NULL, NULL);
}
