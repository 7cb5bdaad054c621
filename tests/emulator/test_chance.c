/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is left to chance, with fixed seeds and bounds of five standard deviations. */
#include <math.h>

#include "groups.h"
#include "model.h"

#define S      1000000000ull
#define FRAMES 200000

static struct em_fate fate[EM_FATES];

static int offer(struct em_model *m, uint64_t arrival)
{
	struct em_frame f = {.arrival = arrival, .bytes = 1000, .packet = 986};

	return em_model_offer(m, &f, fate);
}

/* The variance of a share of n frames is that of independent ones times `correlation`. */
static void assert_share(uint64_t n, double share, double of, double correlation)
{
	double off = fabs((double)n - share * of);

	if (off > 5 * sqrt(share * (1 - share) * of * correlation))
		fail_msg("%g instead of %g", (double)n / of, share);
}

static void loss__independent(void **state)
{
	struct em_settings s = {.loss = EM_SHARE_ONE / 100};
	struct em_model m;
	uint32_t i, bursts = 0, last = 0;

	em_model_open(&m, &s, 11);
	for (i = 0; i < FRAMES; i++) {
		bool lost = !offer(&m, i);

		bursts += lost && !last;
		last = lost;
	}
	assert_share(m.count.lost, 0.01, FRAMES, 1);
	/* a loss follows a loss as seldom as it follows anything: 1 % of them */
	assert_share(m.count.lost - bursts, 0.01, (double)m.count.lost, 1);
	em_model_close(&m);
}

/* In bursts of mean length L the losses of a chain of two states are correlated: r = 1 / L + p_gb,
 * and the variance grows by (2 - r) / r. */
static void loss__in_bursts(void **state)
{
	struct em_settings s = {.loss = EM_SHARE_ONE / 50, .burst = 4000};
	double p = 0.02, length = 4, r = 1 / length + p / (length * (1 - p));
	struct em_model m;
	uint32_t i, bursts = 0, last = 0;

	em_model_open(&m, &s, 12);
	for (i = 0; i < FRAMES; i++) {
		bool lost = !offer(&m, i);

		bursts += lost && !last;
		last = lost;
	}
	assert_share(m.count.lost, p, FRAMES, (2 - r) / r);
	/* of all frames of bursts one in four is the last of its burst */
	assert_share(bursts, 1 / length, (double)m.count.lost, 1);
	em_model_close(&m);
}

static void loss__all_and_nothing(void **state)
{
	struct em_settings s = {.loss = EM_SHARE_ONE, .burst = 5000};
	struct em_model m;
	uint32_t i;

	em_model_open(&m, &s, 1);
	for (i = 0; i < 1000; i++)
		assert_int_equal(offer(&m, i), 0);
	s.loss = 0;
	em_model_set(&m, &s);
	for (i = 0; i < 1000; i++)
		assert_int_equal(offer(&m, 1000 + i), 1);
	em_model_close(&m);
}

/* A lost frame has been on the wire: the next one waits for it. */
static void loss__takes_the_wire(void **state)
{
	struct em_settings s = {.rate = 8192000, .loss = EM_SHARE_ONE};
	struct em_model m;

	em_model_open(&m, &s, 1);
	assert_int_equal(offer(&m, S), 0);
	s.loss = 0;
	em_model_set(&m, &s);
	assert_int_equal(offer(&m, S), 1);
	assert_int_equal(fate[0].due, S + 2 * 1000000);
	em_model_close(&m);
}

static void duplicate__behind_the_original(void **state)
{
	struct em_settings s = {.rate = 8192000, .delay = 10, .duplicate = EM_SHARE_ONE};
	struct em_model m;

	em_model_open(&m, &s, 1);
	assert_int_equal(offer(&m, S), 2);
	assert_int_equal(fate[0].due, S + 1000000 + 10);
	assert_int_equal(fate[1].due, S + 2000000 + 10);
	assert_false(fate[0].copy);
	assert_true(fate[1].copy);
	assert_int_equal(m.count.duplicated, 1);
	assert_int_equal(m.count.frames, 1);
	assert_int_equal(m.count.passed, 2);
	em_model_close(&m);
}

static void shares__of_everything(void **state)
{
	struct em_settings s = {.duplicate = EM_SHARE_ONE / 10,
				.reorder = EM_SHARE_ONE / 20,
				.corrupt = EM_SHARE_ONE / 40};
	struct em_model m;
	uint32_t i;

	em_model_open(&m, &s, 13);
	for (i = 0; i < FRAMES; i++)
		offer(&m, i);
	assert_share(m.count.duplicated, 0.1, FRAMES, 1);
	assert_share(m.count.reordered, 0.05, (double)m.count.passed, 1);
	assert_share(m.count.corrupted, 0.025, (double)m.count.passed, 1);
	em_model_close(&m);
}

static void reorder__later_frames_overtake(void **state)
{
	struct em_settings s = {.rate = 8192000, .delay = 5000000, .reorder = EM_SHARE_ONE};
	struct em_model m;
	uint64_t held;

	em_model_open(&m, &s, 1);
	assert_int_equal(offer(&m, S), 1);
	assert_true(fate[0].held_back);
	held = fate[0].due;
	/* by four times its own time on the wire, which is more than half of the delay */
	assert_int_equal(held, S + 1000000 + 5000000 + 4000000);
	s.reorder = 0;
	em_model_set(&m, &s);
	assert_int_equal(offer(&m, S), 1);
	assert_int_equal(fate[0].due, S + 2000000 + 5000000);
	assert_true(fate[0].due < held);
	em_model_close(&m);
}

static void corrupt__spares_some(void **state)
{
	struct em_settings s = {.corrupt = EM_SHARE_ONE};
	struct em_frame f = {.arrival = 1, .bytes = 60, .packet = 46, .spared = true};
	struct em_model m;
	uint64_t first;

	em_model_open(&m, &s, 1);
	assert_int_equal(em_model_offer(&m, &f, fate), 1);
	assert_false(fate[0].corrupt);
	f.spared = false;
	assert_int_equal(em_model_offer(&m, &f, fate), 1);
	assert_true(fate[0].corrupt);
	first = fate[0].flip;
	assert_int_equal(em_model_offer(&m, &f, fate), 1);
	assert_true(fate[0].flip != first);
	assert_int_equal(m.count.corrupted, 2);
	em_model_close(&m);
}

int chance_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loss__independent),
		cmocka_unit_test(loss__in_bursts),
		cmocka_unit_test(loss__all_and_nothing),
		cmocka_unit_test(loss__takes_the_wire),
		cmocka_unit_test(duplicate__behind_the_original),
		cmocka_unit_test(shares__of_everything),
		cmocka_unit_test(reorder__later_frames_overtake),
		cmocka_unit_test(corrupt__spares_some),
	};

	return cmocka_run_group_tests_name("chance", tests, NULL, NULL);
}
