/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Is a driver back soon? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "away.h"

#define SHORT (BWS_AWAY_NS / 2)
#define LONG  (BWS_AWAY_NS * 2)

static uint64_t now = 1000;

/* So many times, each of the same length. */
static void is_away(struct bws_away *a, int times, uint64_t ns)
{
	for (int i = 0; i < times; i++) {
		bws_away_leave(a, now);
		now += ns;
		bws_away_back(a, now);
		now += LONG; /* asleep: that is not away */
	}
}

static void away__is_long_until_it_was_short_some_times(void **state)
{
	struct bws_away a = {0};

	assert_false(bws_away_is_short(&a));
	is_away(&a, 1, SHORT);
	assert_false(bws_away_is_short(&a));
	is_away(&a, 20, SHORT);
	assert_true(bws_away_is_short(&a));
}

static void away__is_short_where_few_are_long(void **state)
{
	struct bws_away a = {0};

	is_away(&a, 100, SHORT);
	for (int i = 0; i < 100; i++) {
		is_away(&a, 1, LONG);
		assert_true(bws_away_is_short(&a));
		is_away(&a, 19, SHORT);
	}
}

static void away__is_long_where_many_are(void **state)
{
	struct bws_away a = {0};

	is_away(&a, 100, SHORT);
	for (int i = 0; i < 10; i++) {
		is_away(&a, 1, LONG);
		is_away(&a, 3, SHORT);
	}
	for (int i = 0; i < 100; i++) {
		is_away(&a, 1, LONG);
		assert_false(bws_away_is_short(&a));
		is_away(&a, 3, SHORT);
		assert_false(bws_away_is_short(&a));
	}
}

/* Who sleeps while another thread drives says nothing by that. */
static void away__is_of_drivers_alone(void **state)
{
	struct bws_away a = {0};

	is_away(&a, 20, SHORT);
	for (int i = 0; i < 20; i++) {
		now += LONG;
		bws_away_back(&a, now);
	}
	assert_true(bws_away_is_short(&a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(away__is_long_until_it_was_short_some_times),
		cmocka_unit_test(away__is_short_where_few_are_long),
		cmocka_unit_test(away__is_long_where_many_are),
		cmocka_unit_test(away__is_of_drivers_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
