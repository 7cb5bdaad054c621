/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sets of numbers as spans, against a plain table of bits: by hand at the edges, then at random.
 */
#include "groups.h"
#include "spans.h"

#define MAX	8
#define NUMBERS 64

static void add__joins_and_counts(void **state)
{
	struct bw_span s[MAX] = {0};
	uint32_t n = 0;

	assert_int_equal(bw_spans_add(s, &n, 10, 20), 10);
	assert_int_equal(bw_spans_add(s, &n, 30, 40), 10);
	assert_int_equal(n, 2);
	assert_int_equal(bw_spans_add(s, &n, 20, 30), 10); /* touches both */
	assert_int_equal(n, 1);
	assert_int_equal(s[0].lo, 10);
	assert_int_equal(s[0].hi, 40);
	assert_int_equal(bw_spans_add(s, &n, 10, 40), 0);
	assert_int_equal(bw_spans_add(s, &n, 5, 45), 10);
	assert_int_equal(bw_spans_add(s, &n, 0, 4), 4);
	assert_int_equal(n, 2);
	assert_int_equal(bw_spans_add(s, &n, 4, 5), 1);
	assert_int_equal(n, 1);
}

static void fit__only_if_there_is_room_or_a_neighbour(void **state)
{
	struct bw_span s[MAX] = {0};
	uint32_t n = 0;
	uint64_t i;

	for (i = 0; i < MAX; i++)
		bw_spans_add(s, &n, 10 * i + 1, 10 * i + 5);
	assert_int_equal(n, MAX);
	assert_false(bw_spans_fit(s, n, MAX, 100, 101));
	assert_false(bw_spans_fit(s, n, MAX, 16, 20));
	assert_false(bw_spans_fit(s, n, MAX, 6, 10));
	assert_true(bw_spans_fit(s, n, MAX, 5, 10)); /* touches the one before */
	assert_true(bw_spans_fit(s, n, MAX, 6, 11)); /* touches the one behind */
	assert_true(bw_spans_fit(s, n, MAX, 0, 1));
	assert_true(bw_spans_fit(s, n, MAX, 2, 3));
	assert_true(bw_spans_fit(s, n, MAX, 0, 100));
	assert_true(bw_spans_fit(s, n, MAX + 1, 100, 101));
}

/* Room is kept for the beginning, so that the lowest range that is missing always fits. */
static void fit_whole__the_beginning_always_does(void **state)
{
	struct bw_span s[MAX] = {0};
	uint32_t n = 0;
	uint64_t i;

	for (i = 1; i < MAX; i++)
		bw_spans_add(s, &n, 10 * i, 10 * i + 5);
	assert_int_equal(n, MAX - 1);
	assert_false(bw_spans_fit_whole(s, n, MAX, 7, 8));
	assert_false(bw_spans_fit_whole(s, n, MAX, 100, 101));
	assert_true(bw_spans_fit_whole(s, n, MAX, 5, 10)); /* touches */
	assert_true(bw_spans_fit_whole(s, n, MAX, 0, 1));
	bw_spans_add(s, &n, 0, 1);
	assert_int_equal(n, MAX);
	assert_true(bw_spans_fit_whole(s, n, MAX, 1, 2));
	assert_false(bw_spans_fit_whole(s, n, MAX, 2, 3));
	bw_spans_add(s, &n, 1, 10);
	assert_int_equal(n, MAX - 1);
	assert_true(bw_spans_fit_whole(s, n, MAX, 100, 101)); /* the beginning is there */
}

static void cover__all_or_nothing(void **state)
{
	struct bw_span s[MAX] = {0};
	uint32_t n = 0;

	assert_false(bw_spans_cover(s, n, 0, 1));
	bw_spans_add(s, &n, 10, 20);
	bw_spans_add(s, &n, 22, 30);
	assert_true(bw_spans_cover(s, n, 10, 20));
	assert_true(bw_spans_cover(s, n, 12, 13));
	assert_false(bw_spans_cover(s, n, 9, 11));
	assert_false(bw_spans_cover(s, n, 19, 21));
	assert_false(bw_spans_cover(s, n, 20, 21));
	assert_false(bw_spans_cover(s, n, 12, 25));
	assert_true(bw_spans_cover(s, n, 22, 30));
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static void random__like_a_table_of_bits(void **state)
{
	uint32_t seed, round;

	for (seed = 1; seed <= 200; seed++) {
		struct bw_span s[MAX] = {0};
		bool bits[NUMBERS] = {0};
		uint32_t n = 0, r = seed, i;

		for (round = 0; round < 60; round++) {
			uint32_t lo = next_random(&r) % NUMBERS;
			uint32_t hi = lo + 1 + next_random(&r) % 6, fresh = 0;

			hi = hi > NUMBERS ? NUMBERS : hi;
			if (!bw_spans_fit(s, n, MAX, lo, hi))
				continue;
			for (i = lo; i < hi; i++) {
				fresh += !bits[i];
				bits[i] = true;
			}
			assert_int_equal(bw_spans_add(s, &n, lo, hi), fresh);
			assert_true(n <= MAX);
			for (i = 0; i < NUMBERS; i++)
				assert_int_equal(bw_spans_cover(s, n, i, i + 1), bits[i]);
			for (i = 1; i < n; i++)
				assert_true(s[i].lo > s[i - 1].hi);
		}
	}
}

/* Numbers added, and what the set then says of the numbers 0 to 12. */
static void pnset__table(void **state)
{
	static const struct {
		uint64_t add[8], floor;
		uint64_t base;
		uint32_t n;
		const char *has;
	} rows[] = {
		{{0}, 0, 1, 0, "1000000000000"},
		{{1}, 0, 2, 0, "1100000000000"},
		{{2}, 0, 1, 1, "1010000000000"},
		{{2, 1}, 0, 3, 0, "1110000000000"},
		{{1, 3, 5}, 0, 2, 2, "1101010000000"},
		{{1, 3, 5, 4}, 0, 2, 1, "1101110000000"},
		{{1, 3, 5, 4, 2}, 0, 6, 0, "1111110000000"},
		{{3, 5}, 3, 4, 1, "1111010000000"},
		{{3, 5}, 4, 4, 1, "1111010000000"},
		{{3, 5}, 5, 6, 0, "1111110000000"},
		{{3, 5}, 9, 9, 0, "1111111110000"},
		{{12, 11, 10}, 0, 1, 1, "1000000000111"},
		{{12, 11, 10}, 10, 13, 0, "1111111111111"},
		{{1, 2, 3}, 2, 4, 0, "1111000000000"}, /* a floor below the base */
	};
	unsigned int i, j;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bw_pnset s = {.base = 1};

		for (j = 0; j < 8 && rows[i].add[j]; j++)
			assert_true(bw_pnset_add(&s, rows[i].add[j]));
		bw_pnset_floor(&s, rows[i].floor);
		assert_int_equal(s.base, rows[i].base);
		assert_int_equal(s.n, rows[i].n);
		for (j = 0; j <= 12; j++)
			assert_int_equal(bw_pnset_has(&s, j), rows[i].has[j] == '1');
	}
}

static void pnset__full(void **state)
{
	struct bw_pnset s = {.base = 1};
	uint64_t i;

	for (i = 0; i < BW_PNSET_SPANS; i++)
		assert_true(bw_pnset_add(&s, 3 + 2 * i));
	assert_false(bw_pnset_add(&s, 3 + 2 * i));
	assert_false(bw_pnset_has(&s, 3 + 2 * i));
	assert_true(bw_pnset_add(&s, 4)); /* joins two */
	assert_int_equal(s.n, BW_PNSET_SPANS - 1);
	assert_true(bw_pnset_add(&s, 3 + 2 * i));
	assert_true(bw_pnset_add(&s, 1));
	assert_true(bw_pnset_add(&s, 2));
	assert_int_equal(s.base, 6);
}

int spans_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add__joins_and_counts),
		cmocka_unit_test(fit__only_if_there_is_room_or_a_neighbour),
		cmocka_unit_test(fit_whole__the_beginning_always_does),
		cmocka_unit_test(cover__all_or_nothing),
		cmocka_unit_test(random__like_a_table_of_bits),
		cmocka_unit_test(pnset__table),
		cmocka_unit_test(pnset__full),
	};

	return cmocka_run_group_tests_name("spans", tests, NULL, NULL);
}
