/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What waits for the wire: how much of it, when the queue is full, and when frames are marked. */
#include "groups.h"
#include "model.h"

#define S 1000000000ull

static struct em_fate fate[EM_FATES];

static int offer(struct em_model *m, uint64_t arrival, uint32_t bytes, bool capable)
{
	struct em_frame f = {
		.arrival = arrival, .bytes = bytes, .packet = bytes - 14, .capable = capable};

	return em_model_offer(m, &f, fate);
}

/* 976 bytes are 1000 on the wire, at 8 Mbit/s one of them a microsecond each. */
#define BYTES 976
#define RATE  8000000

static void queue__drops_what_does_not_fit(void **state)
{
	struct em_settings s = {.rate = RATE, .queue = 4 * BYTES};
	struct em_model m;
	int i;

	em_model_open(&m, &s, 1);
	for (i = 0; i < 4; i++)
		assert_int_equal(offer(&m, S, BYTES, false), 1);
	assert_int_equal(em_model_backlog(&m, S), 4 * BYTES);
	assert_int_equal(offer(&m, S, 60, false), 0);
	assert_int_equal(m.count.dropped_queue, 1);
	/* one frame is sent after a millisecond, and there is room for one again */
	assert_int_equal(offer(&m, S + 999999, BYTES, false), 0);
	assert_int_equal(offer(&m, S + 1000000, BYTES, false), 1);
	assert_int_equal(fate[0].sent, S + 5000000);
	assert_int_equal(offer(&m, S + 1000000, 60, false), 0);
	em_model_close(&m);
}

static void queue__empties(void **state)
{
	struct em_settings s = {.rate = RATE};
	struct em_model m;
	uint64_t i;

	em_model_open(&m, &s, 1);
	for (i = 0; i < 50; i++)
		assert_int_equal(offer(&m, S, BYTES, false), 1);
	for (i = 0; i <= 50; i++)
		assert_int_equal(em_model_backlog(&m, S + i * 1000000), (50 - i) * BYTES);
	em_model_close(&m);
}

static void queue__one_frame_always_fits(void **state)
{
	struct em_settings s = {.rate = RATE, .queue = 1};
	struct em_model m;

	em_model_open(&m, &s, 1);
	assert_int_equal(offer(&m, S, 9014, false), 1);
	assert_int_equal(offer(&m, S, 60, false), 0);
	em_model_close(&m);
}

/* The ring of waiting frames grows while it is in use and has wrapped. */
static void queue__many_small_frames(void **state)
{
	struct em_settings s = {.rate = RATE, .queue = 1 << 20};
	struct em_model m;
	uint64_t i, accepted = 0;

	em_model_open(&m, &s, 1);
	for (i = 0; i < 200; i++)
		offer(&m, S + i * 1000000, BYTES, false);
	for (i = 0; i < 2000; i++)
		accepted += (uint64_t)offer(&m, S + 200 * 1000000, 60, false);
	assert_int_equal(accepted, 2000);
	assert_int_equal(em_model_backlog(&m, S + 200 * 1000000), 2000 * 60);
	/* 84 bytes each are 84 us */
	assert_int_equal(em_model_backlog(&m, S + 200 * 1000000 + 1000 * 84000), 1000 * 60);
	em_model_close(&m);
}

static void queue__mass_is_conserved(void **state)
{
	struct em_settings s = {.rate = RATE,
				.queue = 20000,
				.loss = EM_SHARE_ONE / 5,
				.mtu = 1000,
				.duplicate = EM_SHARE_ONE / 7};
	const struct em_counts *c;
	struct em_model m;
	uint64_t left = 0;
	uint32_t i;

	em_model_open(&m, &s, 5);
	for (i = 0; i < 20000; i++)
		left += (uint64_t)offer(&m, S + i * 700000ull, 100 + i * 7 % 1000, false);
	c = &m.count;
	assert_int_equal(c->frames, 20000);
	assert_int_equal(c->passed, left);
	assert_true(c->dropped_queue && c->lost && c->too_long && c->duplicated);
	assert_int_equal(c->frames,
			 c->passed - c->duplicated + c->lost + c->too_long + c->dropped_queue);
	em_model_close(&m);
}

static void mark__above_its_threshold(void **state)
{
	struct em_settings s = {.rate = RATE, .mark = 2 * BYTES};
	struct em_model m;
	int i;

	em_model_open(&m, &s, 1);
	/* 0, 1 and 2 frames wait: not above */
	for (i = 0; i < 3; i++) {
		assert_int_equal(offer(&m, S, BYTES, true), 1);
		assert_false(fate[0].mark);
	}
	assert_int_equal(offer(&m, S, BYTES, true), 1);
	assert_true(fate[0].mark);
	/* who does not understand marks gets none */
	assert_int_equal(offer(&m, S, BYTES, false), 1);
	assert_false(fate[0].mark);
	assert_int_equal(m.count.marked, 1);
	assert_int_equal(offer(&m, 2 * S, BYTES, true), 1);
	assert_false(fate[0].mark);
	em_model_close(&m);
}

int queue_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue__drops_what_does_not_fit),
		cmocka_unit_test(queue__empties),
		cmocka_unit_test(queue__one_frame_always_fits),
		cmocka_unit_test(queue__many_small_frames),
		cmocka_unit_test(queue__mass_is_conserved),
		cmocka_unit_test(mark__above_its_threshold),
	};

	return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
