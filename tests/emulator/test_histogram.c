/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Quantiles against sorted values, and every box against its neighbours. */
#include "groups.h"
#include "histogram.h"

static struct em_histogram h;

static void add__every_value_is_in_its_box(void **state)
{
	uint32_t shift, i;

	for (shift = 0; shift < 64; shift++) {
		uint64_t values[] = {1ull << shift, (1ull << shift) - 1, 3ull << shift >> 1};

		for (i = 0; i < 3; i++) {
			uint64_t v = values[i], bound;

			memset(&h, 0, sizeof(h));
			em_histogram_add(&h, v);
			em_histogram_add(&h, UINT64_MAX);
			bound = em_histogram_quantile(&h, 500);
			assert_true(bound >= v);
			assert_true(bound - v <= v / 32);
		}
	}
}

static void bound__boxes_follow_each_other(void **state)
{
	uint32_t i;

	for (i = 1; i < EM_BOXES; i++)
		assert_true(em_histogram_bound(i) > em_histogram_bound(i - 1));
	assert_true(em_histogram_bound(EM_BOXES - 1) == UINT64_MAX);
}

static void quantile__of_a_row(void **state)
{
	uint64_t i;

	memset(&h, 0, sizeof(h));
	for (i = 1; i <= 1000; i++)
		em_histogram_add(&h, i * 1000);
	assert_in_range(em_histogram_quantile(&h, 500), 500000, 500000 * 33 / 32);
	assert_in_range(em_histogram_quantile(&h, 990), 990000, 1000000);
	assert_int_equal(em_histogram_quantile(&h, 1000), 1000000);
	assert_in_range(em_histogram_quantile(&h, 1), 1000, 1032);
	assert_int_equal(h.max, 1000000);
	assert_int_equal(h.n, 1000);
}

/* 1 % of 100 values is one: the 99 others are below. */
static void quantile__counts_from_one(void **state)
{
	int i;

	memset(&h, 0, sizeof(h));
	for (i = 0; i < 99; i++)
		em_histogram_add(&h, 5);
	em_histogram_add(&h, 1000);
	assert_int_equal(em_histogram_quantile(&h, 990), 5);
	em_histogram_add(&h, 1000);
	assert_int_equal(em_histogram_quantile(&h, 990), 1000);
}

static void quantile__of_nothing(void **state)
{
	memset(&h, 0, sizeof(h));
	assert_int_equal(em_histogram_quantile(&h, 990), 0);
}

int histogram_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add__every_value_is_in_its_box),
		cmocka_unit_test(bound__boxes_follow_each_other),
		cmocka_unit_test(quantile__of_a_row),
		cmocka_unit_test(quantile__counts_from_one),
		cmocka_unit_test(quantile__of_nothing),
	};

	return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
