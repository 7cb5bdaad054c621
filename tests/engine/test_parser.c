/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a received frame must be before anything of it has an effect; every reason to drop one is
 * counted apart. The last test changes every single byte of real frames.
 */
#include "groups.h"

static void frame__short(void **state)
{
	struct frame *f;
	uint32_t len;

	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	for (len = 0; len < world.wire[0]->len; len++) {
		f = frame_copy(world.wire[0]);
		f->bytes = realloc(f->bytes, len ? len : 1);
		f->len = len;
		assert_int_equal(receive(f), -BW_DROP_SHORT);
	}
	expect_drop(B, BW_DROP_SHORT, world.wire[0]->len);
	expect_events(NULL, NULL);
	settle();
	expect_events("B MESSAGE 1 len 8", NULL);
}

static struct frame *data_frame(void)
{
	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	return take(0);
}

static void frame__foreign(void **state)
{
	struct frame *f = data_frame();

	frame_hdr(f)->magic ^= 1;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_FOREIGN);
	expect_drop(B, BW_DROP_FOREIGN, 1);
}

static void frame__of_another_cluster(void **state)
{
	struct frame *f = data_frame();

	frame_hdr(f)->cluster++;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_CLUSTER);
	flush(B);
	assert_int_equal(frames_with("B>A"), 0); /* not even refused */
}

static void frame__for_another_engine(void **state)
{
	struct frame *f = data_frame();

	frame_hdr(f)->dst_engine++;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_ENGINE);
	flush(B);
	assert_int_equal(frames_with("B>A"), 0);
}

static void frame__of_unknown_type(void **state)
{
	static const uint8_t types[] = {0, BW_FRAME_DGRAM, 8, 255};
	struct frame *f = data_frame();
	unsigned int i;

	for (i = 0; i < sizeof(types); i++) {
		struct frame *g = frame_copy(f);

		frame_hdr(g)->type = types[i];
		frame_seal(g);
		assert_int_equal(receive(g), -BW_DROP_TYPE);
	}
	frame_free(f);
}

static void frame__with_padding_behind_it(void **state)
{
	struct frame *f = data_frame();

	f->bytes = realloc(f->bytes, f->len + 100);
	memset(f->bytes + f->len, 0xEE, 100);
	f->len += 100;
	assert_int_equal(receive(f), 0);
	expect_events("B MESSAGE 1 len 8", NULL);
}

static void frame__every_type_may_be_padded(void **state)
{
	int i;

	node_open(A);
	node_open(B);
	connect_to(A, B);
	post(A, B, 1, 8);
	for (i = 0; i < 6; i++) {
		unsigned int n;

		flush(A);
		flush(B);
		for (n = 0; n < world.wire_n; n++) {
			struct frame *f = world.wire[n];

			f->bytes = realloc(f->bytes, f->len + 60);
			memset(f->bytes + f->len, 0x77, 60);
			f->len += 60;
		}
		deliver_all();
		pass(BW_ACK_DELAY);
	}
	assert_int_equal(events_with("B MESSAGE 1 len 8"), 1);
	assert_int_equal(events_with("A SENT 1"), 1);
}

static void data__longer_than_its_parts(void **state)
{
	struct frame *f = data_frame();

	/* up to 7 zero bytes behind the last part belong to the body */
	f->bytes = realloc(f->bytes, f->len + 7);
	memset(f->bytes + f->len, 0, 7);
	f->len += 7;
	frame_hdr(f)->len += 7;
	frame_hdr(f)->flags = BW_HDR_ACK_NOW;
	frame_payload(f, frame_part(f, 0));
	frame_seal(f);
	/* the payload is 8 bytes, so these 7 would be the start of another part: too short for one
	 */
	assert_int_equal(receive(f), -BW_DROP_MALFORMED);
	expect_events(NULL, NULL);
}

static void part__of_unknown_kind(void **state)
{
	static const uint8_t kinds[] = {0, 6, 255};
	struct frame *f = data_frame();
	unsigned int i;

	for (i = 0; i < sizeof(kinds); i++) {
		struct frame *g = frame_copy(f);

		frame_part(g, 0)->kind = kinds[i];
		frame_hdr(g)->hcrc = 0;
		assert_int_equal(receive(g), -BW_DROP_MALFORMED);
	}
	frame_free(f);
}

static void part__longer_than_the_frame(void **state)
{
	struct frame *f = data_frame();

	frame_part(f, 0)->plen = 9;
	assert_int_equal(receive(frame_copy(f)), -BW_DROP_MALFORMED);
	frame_part(f, 0)->plen = 65535;
	assert_int_equal(receive(f), -BW_DROP_MALFORMED);
}

static void part__more_than_64(void **state)
{
	struct frame *f = data_frame();
	uint32_t head = sizeof(struct bw_hdr) + sizeof(struct bw_ackblk), i, n;

	for (n = 64; n <= 65; n++) {
		struct frame *g = frame_copy(f);
		struct bw_part_bulk pad = {.part.kind = BW_PART_PAD};

		g->len = head + n * (uint32_t)sizeof(pad);
		g->bytes = realloc(g->bytes, g->len);
		for (i = 0; i < n; i++)
			memcpy(g->bytes + head + i * sizeof(pad), &pad, sizeof(pad));
		frame_hdr(g)->len = (uint16_t)(g->len - sizeof(struct bw_hdr));
		frame_hdr(g)->pn = n;
		frame_seal(g);
		assert_int_equal(receive(g), n == 64 ? 0 : -BW_DROP_MALFORMED);
	}
	frame_free(f);
}

static void data__without_parts_asks_for_life(void **state)
{
	struct frame *f = data_frame();

	frame_hdr(f)->len = sizeof(struct bw_ackblk);
	frame_hdr(f)->flags = BW_HDR_ACK_NOW;
	frame_seal(f);
	assert_int_equal(receive(f), 0);
	forget_logs();
	flush(B);
	expect_frames("B>A ACK 1", NULL);
}

static void data__on_an_unknown_path(void **state)
{
	struct frame *f = data_frame();

	frame_hdr(f)->path = 1;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_EARLY);
}

static void message__empty_segment_of_a_message_with_content(void **state)
{
	struct frame *f = data_frame();
	struct bw_part_msg *m = (struct bw_part_msg *)frame_part(f, 0);

	m->part.plen = 0;
	frame_hdr(f)->len -= 8;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_MALFORMED);
}

static void numbers__far_away_do_no_harm(void **state)
{
	static const uint32_t numbers[] = {0, 0xFFFFFFFF, 0x80000000, 0x80000002, 0x7FFFFFFF};
	struct frame *f = data_frame();
	unsigned int i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct frame *g = frame_copy(f);
		struct bw_ackblk *b = frame_body(g);

		frame_hdr(g)->pn = numbers[i];
		b->ack = numbers[4 - i];
		frame_seal(g);
		receive(g);
	}
	frame_free(f);
	assert_int_equal(events_with("MESSAGE"), 1);
}

/* Does the frame, with one byte changed, leave B as it was? Padding beyond the stated end, and
 * payload without a checksum, do not exist here. */
static void every_byte_matters(const struct frame *f)
{
	uint32_t i;

	for (i = 0; i < f->len; i++) {
		struct frame *g = frame_copy(f);
		int r;

		g->bytes[i] ^= 0x10;
		r = receive(g);
		if (r >= 0)
			fail_msg("accepted with byte %u of %u changed (type %u)", i, f->len,
				 frame_type(f));
		assert_int_equal(events_with("B "), 0);
	}
}

static void damage__to_any_byte_is_noticed(void **state)
{
	struct bw_peer *b;
	uint64_t key;

	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	every_byte_matters(world.wire[0]);
	assert_int_equal(count(B)->peers, 0);
	run(10 * BW_MS);
	forget_logs();
	b = peer(B, A);
	post(A, B, 1, 77);
	key = expose(A, B, 3, 500);
	pull(A, B, 0x99, 4, 0, 10, 0);
	flush(A);
	every_byte_matters(world.wire[0]);
	assert_false(b->path[0]->rx.any);
	assert_int_equal(count(B)->peers, 1);
	run(10 * BW_MS);
	forget_logs();
	pull(B, A, key, 5, 0, 500, 0);
	flush(B);
	deliver(0);
	flush(A);
	assert_int_equal(world.wire_n, 1);
	every_byte_matters(world.wire[0]); /* BULK */
	run(10 * BW_MS);
	post(B, A, 6, 8);
	flush(B);
	deliver_all();
	pass(BW_ACK_DELAY);
	flush(A);
	forget_logs();
	every_byte_matters(world.wire[world.wire_n - 1]); /* ACK */
	settle();
	node_close(A);
	forget_logs();
	every_byte_matters(world.wire[world.wire_n - 1]); /* BYE */
	assert_int_equal(b->state, BW_PEER_UP);
}

static void drops__have_names(void **state)
{
	int i;

	for (i = 0; i < BW_DROP_REASONS; i++) {
		int j;

		assert_true(strlen(bw_drop_name((enum bw_drop)i)) > 2);
		for (j = 0; j < i; j++)
			assert_string_not_equal(bw_drop_name((enum bw_drop)i),
						bw_drop_name((enum bw_drop)j));
	}
	assert_string_equal(bw_drop_name(BW_DROP_NO_BUFFER), "no_buffer");
	assert_string_equal(bw_drop_name((enum bw_drop)BW_DROP_REASONS), "unknown");
}

static void crc32c__known_values(void **state)
{
	uint8_t zeroes[32] = {0}, ones[32], up[32];
	int i;

	for (i = 0; i < 32; i++) {
		ones[i] = 0xFF;
		up[i] = (uint8_t)i;
	}
	/* RFC 3720, B.4 */
	assert_int_equal(bw_crc32c(0, zeroes, 32), 0x8A9136AA);
	assert_int_equal(bw_crc32c(0, ones, 32), 0x62A8AB43);
	assert_int_equal(bw_crc32c(0, up, 32), 0x46DD794E);
	assert_int_equal(bw_crc32c(0, "123456789", 9), 0xE3069283);
	assert_int_equal(bw_crc32c(0, NULL, 0), 0);
	for (i = 0; i <= 9; i++) /* in pieces, at any alignment */
		assert_int_equal(bw_crc32c(bw_crc32c(0, "123456789", (size_t)i), "123456789" + i,
					   (size_t)(9 - i)),
				 0xE3069283);
}

int parser_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(frame__short),
		TEST(frame__foreign),
		TEST(frame__of_another_cluster),
		TEST(frame__for_another_engine),
		TEST(frame__of_unknown_type),
		TEST(frame__with_padding_behind_it),
		TEST(frame__every_type_may_be_padded),
		TEST(data__longer_than_its_parts),
		TEST(data__without_parts_asks_for_life),
		TEST(data__on_an_unknown_path),
		TEST(part__of_unknown_kind),
		TEST(part__longer_than_the_frame),
		TEST(part__more_than_64),
		TEST(message__empty_segment_of_a_message_with_content),
		TEST(numbers__far_away_do_no_harm),
		TEST(damage__to_any_byte_is_noticed),
		TEST(drops__have_names),
		TEST(crc32c__known_values),
	};

	return cmocka_run_group_tests_name("parser", tests, NULL, NULL);
}
