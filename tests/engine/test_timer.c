/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Peers by deadline: the heap against a plain array, at random, with deadlines that move both ways.
 */
#include "groups.h"
#include "timer.h"

#define PEERS 50

static uint64_t seed;

static uint32_t next_random(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33);
}

static uint64_t earliest(const struct bw_peer *p)
{
	uint64_t at = BW_NEVER;
	int i;

	for (i = 0; i < PEERS; i++)
		at = bw_min_u64(at, p[i].deadline);
	return at;
}

static void timer__like_a_plain_array(void **state)
{
	static struct bw_peer p[PEERS];
	static struct bw_engine e;
	uint64_t now = 1000;
	int i, round;

	for (seed = 1; seed < 20; seed++) {
		memset(&e, 0, sizeof(e));
		e.cfg.piece = UINT32_MAX;
		memset(p, 0, sizeof(p));
		for (i = 0; i < PEERS; i++)
			p[i].deadline = BW_NEVER;
		for (round = 0; round < 500; round++) {
			struct bw_peer *due, *which = &p[next_random() % PEERS];

			switch (next_random() % 4) {
			case 0:
				bw_timer_remove(&e, which);
				which->deadline = BW_NEVER;
				break;
			case 1:
				bw_timer_set(&e, which, BW_NEVER);
				break;
			default:
				bw_timer_set(&e, which, now + 1 + next_random() % 100);
			}
			assert_int_equal(bw_timer_next(&e), earliest(p));
			assert_null(bw_timer_check(&e));
			now += next_random() % 10;
			while ((due = bw_timer_due(&e, now))) {
				assert_true(due->deadline <= now);
				assert_int_equal(due->deadline, earliest(p));
				due->deadline = BW_NEVER;
			}
			assert_true(earliest(p) > now);
		}
	}
}

/* Ways that an operation follows are short, whoever came and went before, and in whatever order. */
static void timer__ways_are_short(void **state)
{
	static struct bw_peer p[1000];
	static struct bw_engine e;
	uint32_t i;
	int how;

	for (how = 0; how < 3; how++) {
		memset(&e, 0, sizeof(e));
		e.cfg.piece = UINT32_MAX;
		memset(p, 0, sizeof(p));
		for (i = 0; i < 1000; i++)
			bw_timer_set(&e, &p[i], how == 0 ? 5000 - i : 5000 + i % 7 * i);
		assert_null(bw_timer_check(&e));
		assert_in_range(e.heap->heap_rank, 1, 9); /* log2(1001) */
		for (i = 0; how == 2 && i < 1000; i += 3) {
			bw_timer_remove(&e, &p[i]);
			assert_null(bw_timer_check(&e));
		}
		for (i = 0; e.heap; i++) {
			bw_timer_remove(&e, e.heap);
			assert_null(bw_timer_check(&e));
		}
		assert_int_equal(i, how == 2 ? 666 : 1000);
	}
}

static void timer__none(void **state)
{
	static struct bw_engine e;

	memset(&e, 0, sizeof(e));
	assert_int_equal(bw_timer_next(&e), BW_NEVER);
	assert_null(bw_timer_due(&e, BW_NEVER - 1));
}

static void timer__moved_later_is_not_due_early(void **state)
{
	static struct bw_engine e;
	static struct bw_peer p;

	memset(&e, 0, sizeof(e));
	e.cfg.piece = UINT32_MAX;
	memset(&p, 0, sizeof(p));
	bw_timer_set(&e, &p, 100);
	bw_timer_set(&e, &p, 200);
	assert_null(bw_timer_due(&e, 150));
	assert_ptr_equal(bw_timer_due(&e, 200), &p);
	assert_null(bw_timer_due(&e, 200));
	assert_int_equal(bw_timer_next(&e), BW_NEVER);
}

int timer_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timer__like_a_plain_array),
		cmocka_unit_test(timer__ways_are_short),
		cmocka_unit_test(timer__none),
		cmocka_unit_test(timer__moved_later_is_not_due_early),
	};

	return cmocka_run_group_tests_name("timer", tests, NULL, NULL);
}
