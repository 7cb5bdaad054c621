/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Parcels leave in the order in which they are due, those due at once in the order they came. */
#include "groups.h"
#include "hold.h"
#include "rng.h"

static struct em_hold h;

static void add(uint64_t due, uint32_t number, bool held_back)
{
	struct em_parcel p = {.fate = {.due = due, .held_back = held_back}, .segment = number};

	assert_true(em_hold_add(&h, &p));
}

static uint32_t next(void)
{
	const struct em_parcel *p = em_hold_next(&h);
	uint32_t number;

	assert_non_null(p);
	number = p->segment;
	em_hold_take(&h);
	return number;
}

static void next__in_order(void **state)
{
	em_hold_open(&h);
	assert_null(em_hold_next(&h));
	add(10, 1, false);
	add(30, 2, true);
	add(20, 3, false);
	add(30, 4, false);
	add(15, 5, false); /* earlier than one that is in the row */
	assert_int_equal(next(), 1);
	assert_int_equal(next(), 5);
	assert_int_equal(next(), 3);
	assert_int_equal(next(), 2);
	assert_int_equal(next(), 4);
	assert_null(em_hold_next(&h));
	em_hold_close(&h);
}

static void in_order__only_with_a_row(void **state)
{
	em_hold_open(&h);
	assert_false(em_hold_in_order(&h));
	add(30, 1, true);
	assert_false(em_hold_in_order(&h));
	add(20, 2, false);
	assert_true(em_hold_in_order(&h));
	next();
	next();
	em_hold_close(&h);
}

/* Thousands of parcels at random, some taken in between: always the least of all that are held. */
static void random__as_a_sorted_list(void **state)
{
	static uint64_t due[5000];
	struct sim_rng rng = {5};
	uint32_t n = 0, i, taken = 0;
	uint64_t row = 0;

	em_hold_open(&h);
	for (i = 0; i < 20000; i++) {
		if (n < 5000 && sim_below(&rng, 3)) {
			bool held_back = !sim_below(&rng, 10);

			row += sim_below(&rng, 10);
			due[n] = row + (held_back ? sim_below(&rng, 1000) : 0);
			add(due[n], n, held_back);
			n++;
		} else if (em_hold_next(&h)) {
			const struct em_parcel *p = em_hold_next(&h);
			uint32_t k;

			for (k = 0; k < n; k++)
				assert_true(due[k] >= p->fate.due);
			due[p->segment] = UINT64_MAX;
			em_hold_take(&h);
			taken++;
		}
	}
	while (em_hold_next(&h)) {
		em_hold_take(&h);
		taken++;
	}
	assert_int_equal(taken, n);
	em_hold_close(&h);
}

static void pool__buffers_are_shared_and_bounded(void **state)
{
	struct em_pool p;
	struct em_buffer *a, *b;

	em_pool_open(&p);
	a = em_buffer_get(&p, 1514);
	assert_int_equal(a->refs, 1);
	a->refs++;
	em_buffer_put(&p, a);
	b = em_buffer_get(&p, 1514);
	assert_ptr_not_equal(a, b);
	em_buffer_put(&p, a);
	assert_ptr_equal(em_buffer_get(&p, 1400), a);
	em_buffer_put(&p, a);
	em_buffer_put(&p, b);
	assert_int_equal(p.used, 0);
	assert_null(em_buffer_get(&p, EM_POOL_LEAST << (EM_POOL_CLASSES - 1)));
	p.limit = 4096;
	assert_null(em_buffer_get(&p, 9000));
	a = em_buffer_get(&p, 3000);
	assert_non_null(a);
	assert_null(em_buffer_get(&p, 60));
	em_buffer_put(&p, a);
	em_pool_close(&p);
}

int hold_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(next__in_order),
		cmocka_unit_test(in_order__only_with_a_row),
		cmocka_unit_test(random__as_a_sorted_list),
		cmocka_unit_test(pool__buffers_are_shared_and_bounded),
	};

	return cmocka_run_group_tests_name("hold", tests, NULL, NULL);
}
