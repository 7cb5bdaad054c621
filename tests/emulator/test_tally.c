/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The reached rate and the verdict, each reason for an invalid run by itself. */
#include "groups.h"
#include "tally.h"

#define MS 1000000ull

static struct em_tally t;
static struct em_last last;
static char reason[EM_REASONS][EM_WHY_MAX];
static const struct em_bound bound = {EM_LATE_NS, EM_LATE_SHARE};

static int fresh(void **state)
{
	memset(&t, 0, sizeof(t));
	memset(&last, 0, sizeof(last));
	t.set.rate = 1000000000;
	em_tally_reset(&t);
	return 0;
}

/* A frame of a busy period: sent every 100 us, 12,500 wire bytes each, given `late` ns late. */
static void given(uint32_t n, uint32_t period, uint64_t late)
{
	struct em_fate f = {.due = n * 100000ull + MS,
			    .sent = n * 100000ull,
			    .charged = n * 12500ull,
			    .period = period};

	em_tally_given(&t, &last, &f, f.due + late);
}

static void rate__while_busy_only(void **state)
{
	uint32_t n;

	for (n = 1; n <= 11; n++)
		given(n, 1, 5000);
	given(100, 2, 5000); /* after a pause, which does not count */
	assert_int_equal(t.busy.took_ns, MS);
	assert_int_equal(t.busy.planned_ns, MS);
	assert_int_equal(em_tally_rate(&t), 1000000000);
	assert_int_equal(t.given, 12);
	assert_int_equal(t.busy.periods, 1);
	/* the next frame comes 100 us late */
	given(101, 2, 105000);
	assert_int_equal(t.busy.took_ns, MS + 200000);
	assert_int_equal(em_tally_rate(&t), 1000000000ull * 11 / 12);
	assert_int_equal(t.late.max, 105000);
	assert_int_equal(t.busy.periods, 2);
}

static void rate__held_back_frames_say_nothing(void **state)
{
	struct em_fate f = {.due = 90 * MS, .sent = 150000, .charged = 1, .period = 1};

	given(1, 1, 0);
	f.held_back = true;
	em_tally_given(&t, &last, &f, f.due);
	given(2, 1, 0);
	assert_int_equal(t.busy.took_ns, 100000);
	assert_int_equal(t.given, 3);
}

static void given__early_is_not_late(void **state)
{
	struct em_fate f = {.due = 1000};

	em_tally_given(&t, &last, &f, 900);
	assert_int_equal(t.late.max, 0);
	assert_int_equal(t.late.n, 1);
}

static void loss__of_what_the_wire_carried(void **state)
{
	t.count = (struct em_counts){.frames = 300, .passed = 95, .duplicated = 5, .lost = 10};
	assert_int_equal(em_tally_loss(&t), EM_SHARE_ONE / 10);
}

static void verdict__late(void **state)
{
	uint32_t n;

	for (n = 1; n <= 990; n++)
		given(n, n, 90000);
	for (; n <= 1000; n++)
		given(n, n, 50 * MS);
	assert_int_equal(em_verdict(&t, &bound, "ab", reason), 0);
	given(n, n, 50 * MS);
	assert_int_equal(em_verdict(&t, &bound, "ab", reason), 1);
	assert_non_null(strstr(reason[0], "ab: 1 %"));
	/* 5 % of a second are 50 ms */
	t.delay_least = 1000 * MS;
	assert_int_equal(em_verdict(&t, &bound, "ab", reason), 0);
	t.delay_least = 990 * MS;
	assert_int_equal(em_verdict(&t, &bound, "ab", reason), 1);
}

static void verdict__rate(void **state)
{
	struct em_busy *y = &t.busy;

	/* 2 % of the time, and 100 us for the edges of each of three periods */
	*y = (struct em_busy){.planned_ns = 100 * MS, .wire_bytes = 1, .periods = 3};
	y->took_ns = 102 * MS + 300000;
	assert_int_equal(em_verdict(&t, &bound, "ba", reason), 0);
	y->took_ns++;
	assert_int_equal(em_verdict(&t, &bound, "ba", reason), 1);
	assert_non_null(strstr(reason[0], "ba: the busy link"));
	y->took_ns = 98 * MS - 300000;
	assert_int_equal(em_verdict(&t, &bound, "ba", reason), 0);
	y->took_ns--;
	assert_int_equal(em_verdict(&t, &bound, "ba", reason), 1);
	/* too short to judge by */
	*y = (struct em_busy){.took_ns = 9 * MS, .planned_ns = 1 * MS, .wire_bytes = 1};
	assert_int_equal(em_verdict(&t, &bound, "ba", reason), 0);
}

static void verdict__frames_that_were_lost_in_earnest(void **state)
{
	uint64_t *const counts[] = {&t.missed,	  &t.refused,	 &t.dropped_device,
				    &t.no_memory, &t.beyond_mtu, &t.odd};
	size_t i;

	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		*counts[i] = 3;
		assert_int_equal(em_verdict(&t, &bound, "ab", reason), 1);
		assert_non_null(strstr(reason[0], "ab: 3 frames"));
		*counts[i] = 0;
	}
	/* a cable that was pulled is no fault of the emulator, nor is what the model drops */
	t.down = 3;
	t.dropped_device = 3;
	t.count = (struct em_counts){.frames = 9, .lost = 3, .dropped_queue = 3, .too_long = 3};
	assert_int_equal(em_verdict(&t, &bound, "ab", reason), 0);
}

static void reset__keeps_the_settings(void **state)
{
	t.set.delay = 7;
	given(1, 1, 5);
	em_tally_reset(&t);
	assert_int_equal(t.given, 0);
	assert_int_equal(t.late.n, 0);
	assert_int_equal(t.set.delay, 7);
	assert_int_equal(t.delay_least, 7);
}

int tally_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(rate__while_busy_only, fresh),
		cmocka_unit_test_setup(rate__held_back_frames_say_nothing, fresh),
		cmocka_unit_test_setup(given__early_is_not_late, fresh),
		cmocka_unit_test_setup(loss__of_what_the_wire_carried, fresh),
		cmocka_unit_test_setup(verdict__late, fresh),
		cmocka_unit_test_setup(verdict__rate, fresh),
		cmocka_unit_test_setup(verdict__frames_that_were_lost_in_earnest, fresh),
		cmocka_unit_test_setup(reset__keeps_the_settings, fresh),
	};

	return cmocka_run_group_tests_name("tally", tests, NULL, NULL);
}
