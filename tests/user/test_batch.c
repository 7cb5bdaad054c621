/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Batches of frames on a socket whose other end is the test: what is collected arrives once, in
 * order and as it was, however often the kernel has no room.
 */
#include "link/batch.h"
#include "buffer.h"
#include "sealing.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define PREFIX	14
#define HEAD	40   /* bytes */
#define PAYLOAD 6000 /* bytes, beyond what is made contiguous */
#define MANY	(3 * BW_BATCH_FRAMES)

static struct bw_batch *batch;
static int ours, theirs;

static int setup(void **state)
{
	int both[2], small = 20000;

	/* Keeps the bounds of frames, and has room for a few of them only. */
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, both), 0);
	ours = both[0];
	theirs = both[1];
	assert_int_equal(setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	batch = bw_batch_new(PREFIX, false);
	assert_non_null(batch);
	return 0;
}

static int teardown(void **state)
{
	bw_batch_free(batch);
	close(ours);
	close(theirs);
	return 0;
}

/* A frame of which every byte is its number; its payload lies in b. */
static bool add(struct bw_buffer *b, uint8_t number, uint32_t payload)
{
	struct bw_tx_frame f = {.head_len = HEAD, .len = HEAD + payload, .segments = 1};
	struct bw_batch_slot *slot;

	memset(f.head, number, HEAD);
	if (batch->placed != b->data)
		memset(b->data, number, payload);
	f.segment[0].head_end = HEAD;
	f.segment[0].len = payload;
	f.segment[0].buf = bw_buffer_cookie(b);
	slot = bw_batch_add(batch, &f);
	if (slot)
		memset(bw_batch_header(batch, slot), number, PREFIX);
	return slot;
}

/* Take what has arrived; the next number to come. */
static uint8_t take(uint8_t number, uint32_t payload)
{
	static uint8_t frame[PREFIX + HEAD + PAYLOAD + 1];
	ssize_t n;

	while ((n = recv(theirs, frame, sizeof(frame), 0)) > 0) {
		assert_int_equal(n, PREFIX + HEAD + payload);
		for (ssize_t i = 0; i < n; i++)
			assert_int_equal(frame[i], number);
		number++;
	}
	assert_int_equal(errno, EAGAIN);
	return number;
}

static void batch__takes_no_more_than_it_holds(void **state)
{
	uint8_t bytes[100];
	struct bw_buffer b = {.data = bytes};

	for (uint8_t i = 0; i < BW_BATCH_FRAMES; i++) {
		assert_false(bw_batch_full(batch));
		assert_true(add(&b, i, sizeof(bytes)));
	}
	assert_true(bw_batch_full(batch));
	for (int i = 0; i < 3; i++)
		assert_false(add(&b, 99, sizeof(bytes)));
	assert_int_equal(batch->count, BW_BATCH_FRAMES);
	for (uint8_t next = 0; next < BW_BATCH_FRAMES; next = take(next, sizeof(bytes)))
		bw_batch_flush(batch, ours, 1);
	assert_int_equal(batch->errors, 0);
}

/* Pieces of all frames together are those of one message at most. */
static void batch__is_full_when_its_pieces_are(void **state)
{
	static uint8_t bytes[BW_BATCH_FLAT], frame[2 * BW_BATCH_FLAT];
	struct bw_buffer b = {.data = bytes};
	struct bw_tx_frame f = {.head_len = BW_TX_SEGMENTS, .segments = BW_TX_SEGMENTS};
	unsigned int most = 1 + (BW_BATCH_ALL - BW_BATCH_PIECES) / (2 * BW_TX_SEGMENTS), come = 0;

	for (uint32_t i = 0; i < BW_TX_SEGMENTS; i++) {
		f.segment[i].head_end = i + 1;
		f.segment[i].len = 200;
		f.segment[i].buf = bw_buffer_cookie(&b);
	}
	f.len = BW_TX_SEGMENTS * 201;
	while (bw_batch_add(batch, &f))
		;
	assert_int_equal(batch->count, most);
	assert_true(batch->count < BW_BATCH_FRAMES && batch->pieces <= BW_BATCH_ALL);
	while (!bw_batch_flush(batch, ours, 1)) {
		while (recv(theirs, frame, sizeof(frame), 0) == PREFIX + (ssize_t)f.len)
			come++;
	}
	while (recv(theirs, frame, sizeof(frame), 0) == PREFIX + (ssize_t)f.len)
		come++;
	assert_int_equal(come, most);
}

/* The memory that frames refer to is the program's again after a flush, whether it succeeds or not:
 * what the kernel did not take is sent as it was. */
static void nothing_is_lost(uint32_t payload)
{
	uint8_t *bytes = malloc(BW_BATCH_FRAMES * (size_t)payload), next = 0;
	int refused = 0;

	for (uint8_t number = 0; number < MANY;) {
		for (uint8_t i = 0; i < BW_BATCH_FRAMES; i++) {
			struct bw_buffer b = {.data = bytes + (size_t)i * payload};

			assert_true(add(&b, number++, payload));
		}
		while (!bw_batch_flush(batch, ours, 1)) {
			refused++;
			memset(bytes, 0xEE, BW_BATCH_FRAMES * (size_t)payload);
			next = take(next, payload);
		}
		assert_int_equal(batch->count, 0);
		memset(bytes, 0xEE, BW_BATCH_FRAMES * (size_t)payload);
	}
	assert_int_equal(take(next, payload), MANY);
	assert_true(refused > 0);
	assert_int_equal(batch->errors, 0);
	free(bytes);
}

static void batch__loses_nothing_without_room(void **state)
{
	nothing_is_lost(PAYLOAD);
}

static void batch__loses_no_short_frame_without_room(void **state)
{
	nothing_is_lost(1500);
}

/* A frame that can never be sent does not hold up those behind it. */
static void batch__goes_on_after_an_error(void **state)
{
	uint8_t bytes[100];
	struct bw_buffer b = {.data = bytes};

	for (uint8_t i = 0; i < 4; i++)
		assert_true(add(&b, i, sizeof(bytes)));
	batch->piece[0].iov_base = NULL;
	assert_true(bw_batch_flush(batch, ours, 1));
	assert_int_equal(batch->errors, 1);
	assert_int_equal(take(1, sizeof(bytes)), 4);
}

/* The other end takes nothing any more: what is left is given up once, after its time, and the room
 * is there again. */
static void batch__is_given_up_in_time(void **state)
{
	static uint8_t bytes[PAYLOAD];
	struct bw_buffer b = {.data = bytes};
	uint64_t now = BW_S, sent;

	while (bw_batch_flush(batch, ours, now) && add(&b, 1, PAYLOAD))
		;
	while (add(&b, 2, PAYLOAD))
		;
	assert_false(bw_batch_flush(batch, ours, now + BW_BATCH_PATIENCE));
	sent = batch->done;
	assert_true(bw_batch_flush(batch, ours, now + BW_BATCH_PATIENCE + 1));
	assert_int_equal(batch->errors, BW_BATCH_FRAMES - sent);
	assert_int_equal(batch->count, 0);
	/* The next one has as much time. */
	assert_true(add(&b, 3, PAYLOAD));
	assert_false(bw_batch_flush(batch, ours, now + 10 * BW_S));
	assert_false(bw_batch_flush(batch, ours, now + 10 * BW_S + BW_BATCH_PATIENCE));
}

/* As long as some frames leave, none is given up. */
static void batch__that_goes_on_slowly_is_kept(void **state)
{
	static uint8_t bytes[PAYLOAD];
	struct bw_buffer b = {.data = bytes};
	static uint8_t frame[PREFIX + HEAD + PAYLOAD + 1];
	uint64_t now = BW_S;
	int got = 0;

	for (uint8_t i = 0; i < BW_BATCH_FRAMES; i++)
		assert_true(add(&b, i, PAYLOAD));
	for (; !bw_batch_flush(batch, ours, now); now += BW_BATCH_PATIENCE)
		got += recv(theirs, frame, sizeof(frame), 0) > 0;
	while (recv(theirs, frame, sizeof(frame), 0) > 0)
		got++;
	assert_int_equal(got, BW_BATCH_FRAMES);
	assert_int_equal(batch->errors, 0);
}

/* What was put there while it was read is not copied once more. */
static void placed__payload_is_sent_as_it_lies_there(void **state)
{
	uint8_t bytes[100] = {0}, other[100];
	struct bw_buffer b = {.data = bytes}, o = {.data = other};
	void *to = bw_batch_place(batch, HEAD, bytes, sizeof(bytes));

	assert_non_null(to);
	memset(to, 7, sizeof(bytes));
	assert_true(add(&b, 7, sizeof(bytes)));
	bytes[5] = 99; /* it is not referred to */
	bw_batch_flush(batch, ours, 1);
	assert_int_equal(take(7, sizeof(bytes)), 8);
	/* The next frame is copied, and one with another payload than was placed. */
	assert_true(add(&b, 8, sizeof(bytes)));
	memset(bw_batch_place(batch, HEAD, bytes, sizeof(bytes)), 99, sizeof(bytes));
	assert_true(add(&o, 9, sizeof(other)));
	assert_true(add(&b, 10, sizeof(bytes)));
	bw_batch_flush(batch, ours, 1);
	assert_int_equal(take(8, sizeof(bytes)), 11);
}

static void placed__is_nothing_for_another_flush(void **state)
{
	uint8_t bytes[100] = {0};
	struct bw_buffer b = {.data = bytes};

	assert_true(add(&b, 1, sizeof(bytes)));
	memset(bw_batch_place(batch, HEAD, bytes, sizeof(bytes)), 99, sizeof(bytes));
	bw_batch_flush(batch, ours, 1);
	assert_int_equal(take(1, sizeof(bytes)), 2);
	assert_true(add(&b, 2, sizeof(bytes)));
	bw_batch_flush(batch, ours, 1);
	assert_int_equal(take(2, sizeof(bytes)), 3);
}

static void placed__nowhere_if_long_or_full(void **state)
{
	static uint8_t bytes[BW_BATCH_FLAT];
	struct bw_buffer b = {.data = bytes};

	assert_non_null(bw_batch_place(batch, HEAD, bytes, BW_BATCH_FLAT - HEAD));
	assert_null(bw_batch_place(batch, HEAD, bytes, BW_BATCH_FLAT - HEAD + 1));
	for (uint8_t i = 0; i < BW_BATCH_FRAMES; i++)
		assert_true(add(&b, i, 100));
	assert_null(bw_batch_place(batch, HEAD, bytes, 100));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const uint8_t key[BW_SEAL_KEY] = "a key that nobody has to guess";

/* As add(), sealed, in two payloads of which the first is short. */
static void add_sealed(struct bw_buffer *b, uint8_t number, uint32_t payload)
{
	const uint32_t head = BW_DATA_HEAD + 24;
	struct bw_tx_frame f = {
		.head_len = head,
		.len = head + payload + BW_SEAL_TAG,
		.seal = {key, number},
		.segments = 2,
	};
	struct bw_batch_slot *slot;

	memset(f.head, number, head);
	memset(b->data, number, payload);
	f.segment[0] = (struct bw_tx_segment){BW_DATA_HEAD + 8, 3, bw_buffer_cookie(b), 0};
	f.segment[1] = (struct bw_tx_segment){head, payload - 3, bw_buffer_cookie(b), 3};
	assert_int_equal(bw_batch_payload_bytes(&f), payload);
	slot = bw_batch_add(batch, &f);
	assert_non_null(slot);
	memset(bw_batch_header(batch, slot), number, PREFIX);
	memset(b->data, 0xEE, payload); /* nothing of it is referred to */
}

/* What has arrived is enciphered, and opens; the next number to come. */
static uint8_t take_sealed(uint8_t number, uint32_t payload)
{
	static uint8_t frame[PREFIX + BW_DATA_HEAD + 24 + PAYLOAD + BW_SEAL_TAG + 1];
	const uint32_t end = BW_DATA_HEAD + 24 + payload;
	uint8_t *at = frame + PREFIX;
	ssize_t n;

	while ((n = recv(theirs, frame, sizeof(frame), 0)) > 0) {
		struct bw_seal_by by = {key, number};
		unsigned int same = 0;

		assert_int_equal(n, PREFIX + end + BW_SEAL_TAG);
		for (uint32_t i = BW_DATA_HEAD; i < end; i++)
			same += at[i] == number;
		assert_true(same < payload / 10);
		assert_int_equal(bw_open_frame(at, end, &by), 0);
		for (uint32_t i = 0; i < PREFIX + end; i++)
			assert_int_equal(frame[i], number);
		number++;
	}
	return number;
}

static void sealed__frames_are_no_ones_memory(void **state)
{
	static const uint32_t lengths[] = {100, 1500, PAYLOAD};
	uint8_t bytes[PAYLOAD];
	struct bw_buffer b = {.data = bytes};

	assert_int_equal(bw_batch_make_room(batch, BW_DATA_HEAD + 24 + PAYLOAD + BW_SEAL_TAG), 0);
	for (unsigned int k = 0; k < 3; k++) {
		uint8_t next = 0;

		for (uint8_t i = 0; i < BW_BATCH_FRAMES; i++)
			add_sealed(&b, i, lengths[k]);
		while (batch->count) {
			bw_batch_flush(batch, ours, 1);
			next = take_sealed(next, lengths[k]);
		}
		assert_int_equal(take_sealed(next, lengths[k]), BW_BATCH_FRAMES);
	}
	/* Others in the same batch are as without. */
	add_sealed(&b, 0, 100);
	assert_true(add(&b, 9, 200));
	assert_true(bw_batch_flush(batch, ours, 1));
	assert_int_equal(batch->errors, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(batch__takes_no_more_than_it_holds),
		TEST(batch__is_full_when_its_pieces_are),
		TEST(batch__loses_nothing_without_room),
		TEST(batch__loses_no_short_frame_without_room),
		TEST(batch__goes_on_after_an_error),
		TEST(batch__is_given_up_in_time),
		TEST(batch__that_goes_on_slowly_is_kept),
		TEST(sealed__frames_are_no_ones_memory),
		TEST(placed__payload_is_sent_as_it_lies_there),
		TEST(placed__is_nothing_for_another_flush),
		TEST(placed__nowhere_if_long_or_full),
	};

	return cmocka_run_group_tests_name("batch", tests, NULL, NULL);
}
