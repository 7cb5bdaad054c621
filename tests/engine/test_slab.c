/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pools grow by what the host hands in and never lose an object; a stale handle is recognized.
 */
#include "groups.h"
#include "slab.h"

static uint64_t memory[2][BW_GROW_BYTES / 8];
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

static struct {
	struct bw_grown head;
	uint8_t mem[BW_GROW_BYTES];
} grown[3];
static struct bw_grown *const pieces[] = {&grown[0].head, &grown[1].head, &grown[2].head};

#define OBJECT	  1000
#define EACH	  (BW_GROW_BYTES / OBJECT) /* objects in a piece */
#define OBJECTS	  (3 * EACH)
#define LEFT_OVER (BW_GROW_BYTES % OBJECT) /* bytes at its end */

/* A pool that has used up three pieces, from the last one on; how many objects it gave. */
static uint32_t use_all(struct bw_arena *a, struct bw_slab *s, void **obj)
{
	uint32_t n = 0, i;

	memset(grown, 0, sizeof(grown));
	for (i = 0; i < 3; i++)
		bw_arena_add(a, grown[i].mem, BW_GROW_BYTES);
	while (n < OBJECTS + 1 && (obj[n] = bw_slab_alloc(s)))
		n++;
	return n;
}

static void free_all(struct bw_slab *s, void **obj, uint32_t from, uint32_t to)
{
	while (from < to)
		bw_slab_free(s, obj[from++]);
}

/* Sort all that is free, or so many of the first n pieces: how many. */
static uint32_t sort(struct bw_slab *s, uint32_t n, uint32_t most)
{
	struct bw_grown *piece;
	uint32_t i = 0;

	if (!s->unsorted)
		bw_slab_unsort(s);
	while (i < most && bw_slab_sort(s, pieces, n, &piece))
		i++;
	return i;
}

/* A piece of which one object is in use stays; what was left at its end counts as free. */
static void slab__pieces_go_when_all_of_them_is_free(void **state)
{
	struct bw_arena a = {0};
	struct bw_slab s, other;
	void *obj[OBJECTS + 1], *last;
	struct bw_grown *piece;
	uint32_t i;

	bw_slab_init(&s, &a, OBJECT);
	bw_slab_init(&other, &a, 64);
	assert_int_equal(use_all(&a, &s, obj), OBJECTS);
	last = bw_slab_alloc(&other); /* in what is left of the last one */
	assert_true((uint8_t *)last > grown[0].mem && (uint8_t *)last < grown[1].mem);
	free_all(&s, obj, 0, OBJECTS / 2);
	free_all(&s, obj, OBJECTS / 2 + 1, OBJECTS); /* one of the second stays */
	assert_int_equal(sort(&s, 3, UINT32_MAX), OBJECTS - 1);
	assert_int_equal(sort(&other, 3, UINT32_MAX), 0);
	assert_false(bw_grown_empty(pieces[2]));
	assert_true(bw_arena_sort(&a, pieces, 3, &piece));
	assert_true(bw_arena_sort(&a, pieces, 3, &piece));
	assert_false(bw_arena_sort(&a, pieces, 3, &piece));
	assert_int_equal(pieces[0]->free, BW_GROW_BYTES - LEFT_OVER);
	assert_int_equal(pieces[1]->free, BW_GROW_BYTES - OBJECT);
	assert_int_equal(pieces[2]->free, BW_GROW_BYTES);
	assert_false(bw_grown_empty(pieces[0]));
	assert_false(bw_grown_empty(pieces[1]));
	assert_true(bw_grown_empty(pieces[2]));
	bw_grown_leave(pieces[2]);
	memset(&grown[2], 0xFF, sizeof(grown[2])); /* is another one's */
	for (i = 0; i < 2 * EACH - 1; i++) {
		obj[i] = bw_slab_alloc(&s);
		assert_true((uint8_t *)obj[i] < grown[1].mem + BW_GROW_BYTES);
	}
	assert_null(bw_slab_alloc(&s));
	bw_slab_free(&other, last);
	free_all(&s, obj, 0, 2 * EACH - 1);
	assert_int_equal(sort(&s, 2, UINT32_MAX), 2 * EACH - 1);
	assert_int_equal(sort(&other, 2, UINT32_MAX), 1);
	assert_int_equal(pieces[0]->free, EACH * OBJECT + 64);
	assert_int_equal(pieces[1]->free, BW_GROW_BYTES - OBJECT);
}

/* What is free can be had however far sorting has come, and then does not count as free. */
static void slab__what_is_sorted_can_be_had(void **state)
{
	struct bw_arena a = {0};
	struct bw_slab s;
	void *obj[OBJECTS + 1];
	uint32_t step, i;

	bw_slab_init(&s, &a, OBJECT);
	assert_int_equal(use_all(&a, &s, obj), OBJECTS);
	assert_false(bw_slab_roomy(&s));
	for (step = 0; step <= OBJECTS; step += EACH / 2) {
		free_all(&s, obj, 0, OBJECTS);
		assert_int_equal(sort(&s, 3, step), step);
		for (i = 0; i < OBJECTS; i++) {
			assert_true(bw_slab_roomy(&s));
			obj[i] = bw_slab_alloc(&s);
			assert_non_null(obj[i]);
			memset(obj[i], 0xAB, OBJECT);
		}
		assert_false(bw_slab_roomy(&s));
		assert_null(bw_slab_alloc(&s));
		assert_int_equal(s.in_use, OBJECTS);
		for (i = 0; i < 3; i++)
			assert_int_equal(pieces[i]->free, 0);
	}
}

/* What lies behind a piece, or before the first one, is of none; it stays where it is. */
static void slab__what_is_of_no_piece_stays(void **state)
{
	struct bw_arena a = {0};
	void *obj[OBJECTS + 1];
	struct bw_slab s;

	bw_slab_init(&s, &a, OBJECT);
	assert_int_equal(use_all(&a, &s, obj), OBJECTS);
	free_all(&s, obj, 0, OBJECTS);
	bw_slab_unsort(&s);
	for (uint32_t i = 0; i < OBJECTS; i++) {
		struct bw_grown *const second[] = {pieces[1]}, *piece;

		assert_true(bw_slab_sort(&s, second, 1, &piece));
		assert_true(!piece || piece == pieces[1]);
	}
	assert_int_equal(pieces[0]->free + pieces[2]->free, 0);
	assert_int_equal(pieces[1]->free, EACH * OBJECT);
	for (uint32_t i = 0; i < OBJECTS; i++)
		assert_non_null(bw_slab_alloc(&s));
}

static void table__stale_handles_are_recognized(void **state)
{
	struct bw_arena a = {0};
	struct bw_table t;
	uint32_t old, h, i;
	int x, y;

	bw_table_init(&t, &a, 0);
	assert_int_equal(bw_table_add(&t, &x, 0), 0);
	assert_null(bw_table_get(&t, 0));
	bw_arena_add(&a, memory[0], BW_GROW_BYTES);
	h = bw_table_add(&t, &x, 0);
	assert_int_not_equal(h, 0);
	assert_ptr_equal(bw_table_get(&t, h), &x);
	assert_null(bw_table_get(&t, h + 1));
	assert_null(bw_table_get(&t, h | BW_HANDLE_INDEX));
	/* no handle of those that follow is that of before, or 0 */
	for (i = 0; i < 2 * (1u << (32 - BW_HANDLE_BITS)); i++) {
		old = h;
		bw_table_remove(&t, old);
		assert_null(bw_table_get(&t, old));
		h = bw_table_add(&t, &y, 0);
		assert_int_not_equal(h, 0);
		assert_int_not_equal(h, old);
		assert_true(h >> BW_HANDLE_BITS != 0);
		assert_null(bw_table_get(&t, old));
		assert_ptr_equal(bw_table_get(&t, h), &y);
	}
}

static void table__grows_page_by_page(void **state)
{
	static uint32_t handle[3 * BW_TABLE_PAGE];
	struct bw_arena a = {0};
	struct bw_table t;
	uint32_t i;

	bw_table_init(&t, &a, 0);
	bw_arena_add(&a, memory[0], BW_GROW_BYTES);
	for (i = 0; i < 3 * BW_TABLE_PAGE; i++) {
		handle[i] = bw_table_add(&t, &handle[i], 0);
		assert_int_not_equal(handle[i], 0);
	}
	for (i = 0; i < 3 * BW_TABLE_PAGE; i++)
		assert_ptr_equal(bw_table_get(&t, handle[i]), &handle[i]);
	assert_int_equal(t.slots, 3 * BW_TABLE_PAGE);
}

/* A number of 32 bits, other ones for each seed. */
static uint32_t drawn(uint32_t *seed)
{
	uint32_t x = *seed += 0x9E3779B9u;

	x = (x ^ x >> 16) * 0x85EBCA6Bu;
	x = (x ^ x >> 13) * 0xC2B2AE35u;
	return x ^ x >> 16;
}

/* Bits that some of n numbers have and others have not. */
static uint32_t bits_that_differ(const uint32_t *of, uint32_t n)
{
	uint32_t all = UINT32_MAX, any = 0, i;

	for (i = 0; i < n; i++) {
		all &= of[i];
		any |= of[i];
	}
	return any & ~all;
}

/* Nobody who has not seen them knows a bit of them: the first handles of tables. */
static void table__first_handles_have_32_bits_to_guess(void **state)
{
	uint32_t handle[64], seed = 1, i, j;

	for (i = 0; i < 64; i++) {
		struct bw_arena a = {0};
		struct bw_table t;

		bw_table_init(&t, &a, drawn(&seed));
		bw_arena_add(&a, memory[0], BW_GROW_BYTES);
		handle[i] = bw_table_add(&t, &t, drawn(&seed));
		assert_ptr_equal(bw_table_get(&t, handle[i]), &t);
		for (j = 0; j < i; j++)
			assert_int_not_equal(handle[i], handle[j]);
	}
	assert_int_equal(bits_that_differ(handle, 64), UINT32_MAX);
}

/* Who was given one, keeps it, and knows that the next handle is given now: neither its slot nor
 * its generation is near. */
static void table__handles_of_others_are_not_near(void **state)
{
	uint32_t slot[64], gen[64], seed = 2, i;
	struct bw_arena a = {0};
	struct bw_table t;

	bw_table_init(&t, &a, drawn(&seed));
	bw_arena_add(&a, memory[0], BW_GROW_BYTES);
	for (i = 0; i < 64; i++) {
		uint32_t mine = bw_table_add(&t, &slot, drawn(&seed));
		uint32_t other = bw_table_add(&t, &gen, drawn(&seed));

		slot[i] = (other - mine) % BW_TABLE_PAGE;
		gen[i] = (other >> BW_HANDLE_BITS) - (mine >> BW_HANDLE_BITS);
	}
	assert_int_equal(bits_that_differ(slot, 64), BW_TABLE_PAGE - 1);
	assert_int_equal(bits_that_differ(gen, 64) << BW_HANDLE_BITS >> BW_HANDLE_BITS,
			 (1u << (32 - BW_HANDLE_BITS)) - 1);
}

/* Who gives his handle back does not know that of the next one by it: where one slot is free, its
 * generation has grown by any of 128. But the slot has no handle twice among 64. */
static void table__a_slot_has_other_handles_for_long(void **state)
{
	uint32_t handle[64], step[64], seed = 3, mine = 0, turn, i, j;
	struct bw_arena a = {0};
	struct bw_table t;

	bw_table_init(&t, &a, drawn(&seed));
	bw_arena_add(&a, memory[0], BW_GROW_BYTES);
	for (i = 0; i < BW_TABLE_PAGE; i++)
		mine = bw_table_add(&t, &t, drawn(&seed));
	for (turn = 0; turn < 256; turn++) {
		for (i = 0; i < 64; i++) {
			bw_table_remove(&t, mine);
			handle[i] = bw_table_add(&t, &t, drawn(&seed));
			assert_int_equal((handle[i] ^ mine) & BW_HANDLE_INDEX, 0);
			for (j = 0; j < i; j++)
				assert_int_not_equal(handle[i], handle[j]);
			step[i] = (handle[i] >> BW_HANDLE_BITS) - (mine >> BW_HANDLE_BITS);
			mine = handle[i];
		}
		assert_int_equal(bits_that_differ(step, 64) & (BW_HANDLE_STEP - 1),
				 BW_HANDLE_STEP - 1);
	}
}

/* All slots are given once before the table grows, whichever are given back meanwhile. */
static void table__all_slots_are_used(void **state)
{
	static uint32_t handle[2 * BW_TABLE_PAGE];
	uint32_t seed = 4, i, j;
	struct bw_arena a = {0};
	struct bw_table t;

	bw_table_init(&t, &a, drawn(&seed));
	bw_arena_add(&a, memory[0], BW_GROW_BYTES);
	for (i = 0; i < 2 * BW_TABLE_PAGE; i++)
		handle[i] = bw_table_add(&t, &handle[i], drawn(&seed));
	for (i = 0; i < 10000; i++) {
		j = drawn(&seed) % (2 * BW_TABLE_PAGE);
		assert_ptr_equal(bw_table_get(&t, handle[j]), &handle[j]);
		bw_table_remove(&t, handle[j]);
		if (i % 2) {
			uint32_t k = drawn(&seed) % (2 * BW_TABLE_PAGE);

			if (k != j) {
				bw_table_remove(&t, handle[k]);
				handle[k] = bw_table_add(&t, &handle[k], drawn(&seed));
			}
		}
		handle[j] = bw_table_add(&t, &handle[j], drawn(&seed));
	}
	assert_int_equal(t.slots, 2 * BW_TABLE_PAGE);
	for (i = 0; i < 2 * BW_TABLE_PAGE; i++)
		assert_ptr_equal(bw_table_get(&t, handle[i]), &handle[i]);
}

int slab_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arena__takes_one_chunk_after_the_other),
		cmocka_unit_test(slab__objects_are_apart_and_come_again),
		cmocka_unit_test(slab__pieces_go_when_all_of_them_is_free),
		cmocka_unit_test(slab__what_is_sorted_can_be_had),
		cmocka_unit_test(slab__what_is_of_no_piece_stays),
		cmocka_unit_test(table__stale_handles_are_recognized),
		cmocka_unit_test(table__grows_page_by_page),
		cmocka_unit_test(table__first_handles_have_32_bits_to_guess),
		cmocka_unit_test(table__handles_of_others_are_not_near),
		cmocka_unit_test(table__a_slot_has_other_handles_for_long),
		cmocka_unit_test(table__all_slots_are_used),
	};

	return cmocka_run_group_tests_name("slab", tests, NULL, NULL);
}
