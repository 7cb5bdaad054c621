/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pools grow by what the host hands in and never lose an object; a stale handle is recognized.
 */
#include "groups.h"
#include "slab.h"

static uint64_t memory[4][BW_GROW_BYTES / 8];
static uint64_t first[512];

static void arena__takes_one_chunk_after_the_other(void **state)
{
	struct bw_arena a = {0};
	uint8_t *p;

	assert_true(bw_arena_low(&a));
	assert_null(bw_arena_take(&a, 8));
	bw_arena_add(&a, first, sizeof(first));
	p = bw_arena_take(&a, sizeof(first));
	assert_ptr_equal(p, first);
	assert_null(bw_arena_take(&a, 8));
	memset(memory, 0xFF, sizeof(memory));
	bw_arena_add(&a, memory[0], BW_GROW_BYTES);
	assert_false(bw_arena_low(&a));
	bw_arena_add(&a, memory[1], BW_GROW_BYTES);
	p = bw_arena_take(&a, 40000);
	assert_non_null(p);
	assert_int_equal(p[0] | p[39999], 0); /* zeroed */
	assert_false(bw_arena_low(&a));	      /* one is untouched */
	assert_non_null(bw_arena_take(&a, 40000));
	assert_true(bw_arena_low(&a));
	assert_null(bw_arena_take(&a, 40000));
	assert_null(bw_arena_take(&a, BW_GROW_BYTES + 8));
}

static void slab__objects_are_apart_and_come_again(void **state)
{
	struct bw_arena a = {0};
	struct bw_slab s;
	void *obj[64];
	unsigned int n = 0, i;

	bw_slab_init(&s, &a, 100); /* rounded up to 104 */
	assert_null(bw_slab_alloc(&s));
	assert_int_equal(s.in_use, 0);
	bw_arena_add(&a, first, sizeof(first));
	while (n < 64 && (obj[n] = bw_slab_alloc(&s)))
		memset(obj[n++], 0xAB, 100);
	assert_int_equal(n, sizeof(first) / 104);
	assert_int_equal(s.in_use, n);
	for (i = 1; i < n; i++)
		assert_int_equal((uint8_t *)obj[i] - (uint8_t *)obj[i - 1], 104);
	for (i = 0; i < n; i++)
		bw_slab_free(&s, obj[i]);
	assert_int_equal(s.in_use, 0);
	for (i = 0; i < n; i++)
		assert_non_null(bw_slab_alloc(&s));
	assert_null(bw_slab_alloc(&s));
}

static void table__stale_handles_are_recognized(void **state)
{
	struct bw_arena a = {0};
	struct bw_table t;
	uint32_t old, h, i;
	int x, y;

	bw_table_init(&t, &a);
	assert_int_equal(bw_table_add(&t, &x), 0);
	assert_null(bw_table_get(&t, 0));
	bw_arena_add(&a, memory[0], BW_GROW_BYTES);
	h = bw_table_add(&t, &x);
	assert_int_not_equal(h, 0);
	assert_ptr_equal(bw_table_get(&t, h), &x);
	assert_null(bw_table_get(&t, h + 1));
	assert_null(bw_table_get(&t, h | BW_HANDLE_INDEX));
	/* each generation of a slot has another handle, none is 0, and after all of them it begins
	 * anew */
	for (i = 0; i < 0xFFF; i++) {
		old = h;
		bw_table_remove(&t, old);
		assert_null(bw_table_get(&t, old));
		h = bw_table_add(&t, &y);
		assert_int_not_equal(h, 0);
		assert_int_not_equal(h, old);
		assert_true(h >> 20 != 0);
		assert_null(bw_table_get(&t, old));
		assert_ptr_equal(bw_table_get(&t, h), &y);
	}
	assert_int_equal(h >> 20, 1);
}

static void table__grows_page_by_page(void **state)
{
	static uint32_t handle[3 * BW_TABLE_PAGE];
	struct bw_arena a = {0};
	struct bw_table t;
	uint32_t i;

	bw_table_init(&t, &a);
	bw_arena_add(&a, memory[0], BW_GROW_BYTES);
	for (i = 0; i < 3 * BW_TABLE_PAGE; i++) {
		handle[i] = bw_table_add(&t, &handle[i]);
		assert_int_not_equal(handle[i], 0);
	}
	for (i = 0; i < 3 * BW_TABLE_PAGE; i++)
		assert_ptr_equal(bw_table_get(&t, handle[i]), &handle[i]);
	assert_int_equal(t.slots, 3 * BW_TABLE_PAGE);
}

int slab_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arena__takes_one_chunk_after_the_other),
		cmocka_unit_test(slab__objects_are_apart_and_come_again),
		cmocka_unit_test(table__stale_handles_are_recognized),
		cmocka_unit_test(table__grows_page_by_page),
	};

	return cmocka_run_group_tests_name("slab", tests, NULL, NULL);
}
