/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The choice between cross-memory attach and copies through the ring, on a clock of the test's. */
#include "link/local/impl.h"
#include "link/local/way.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define BYTES BW_LOCAL_WAY_SCALE

static struct bw_local_way way;
static uint64_t now;

/* One pull; what it costs each way is told. How it went. */
static enum bw_local_way_kind pull(uint64_t direct, uint64_t copied)
{
	enum bw_local_way_kind kind = bw_local_way_choose(&way, BYTES);
	uint64_t began = now;

	now += kind == BW_LOCAL_WAY_COPIED ? copied : direct;
	bw_local_way_learn(&way, kind, began, now, BYTES);
	return kind;
}

/* How many of n pulls are copied. */
static unsigned int copies(unsigned int n, uint64_t direct, uint64_t copied)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < n; i++)
		sum += pull(direct, copied) == BW_LOCAL_WAY_COPIED;
	return sum;
}

static int setup(void **state)
{
	way = (struct bw_local_way){0};
	now = 1000000;
	return 0;
}

static void way__begins_direct_and_tries_both(void **state)
{
	assert_int_equal(pull(10000, 5000), BW_LOCAL_WAY_DIRECT);
	assert_int_equal(pull(10000, 5000), BW_LOCAL_WAY_COPIED);
}

/* The slower way costs some of the first pulls and few of many. */
static void way__takes_the_faster_one(void **state)
{
	assert_in_range(copies(1000, 20000, 5000), 960, 995);
	assert_in_range(copies(20000, 20000, 5000), 19900, 19995);
	setup(state);
	assert_in_range(copies(1000, 5000, 20000), 8, 40);
}

/* Copies take time of two processes. */
static void way__copies_only_for_a_quarter(void **state)
{
	assert_in_range(copies(1000, 10000, 8000), 8, 40);
	setup(state);
	assert_in_range(copies(1000, 10000, 7000), 960, 999);
}

/* A single one that waited for a processor changes nothing, not even the first. */
static void way__forgives_a_late_one(void **state)
{
	assert_int_equal(copies(1, 20000, 5000), 0);
	assert_int_equal(copies(1, 20000, 50000000), 1);
	assert_in_range(copies(300, 20000, 5000), 220, 299);
	assert_in_range(copies(1, 20000, 50000000), 0, 1);
	assert_in_range(copies(100, 20000, 5000), 90, 100);
}

/* The first pulls through a ring touch its pages. */
static void way__does_not_judge_by_the_first(void **state)
{
	pull(20000, 0);
	assert_int_equal(copies(3, 20000, 60000), 3);
	assert_in_range(copies(100, 20000, 5000), 50, 100);
}

/* A peer that computes now sends late each time. */
static void way__follows_a_change(void **state)
{
	copies(1000, 20000, 5000);
	assert_in_range(copies(100, 20000, 3000000), 1, 15);
	copies(2000, 20000, 3000000);
	assert_in_range(copies(3000, 20000, 5000), 900, 2999);
}

/* A trial of the peer's is one of ours, but not at once again. */
static void way__tries_together_with_its_peer(void **state)
{
	copies(300, 20000, 18000);
	for (int i = 0; i < 1000 && pull(20000, 18000) == BW_LOCAL_WAY_DIRECT; i++)
		;
	assert_int_equal(copies(20, 20000, 18000), 3);
	bw_local_way_invited(&way);
	assert_int_equal(copies(10, 20000, 18000), 4);
	bw_local_way_invited(&way);
	assert_int_equal(copies(10, 20000, 18000), 0);
	bw_local_way_invited(&way);
	assert_int_equal(copies(4, 20000, 5000), 4);
	assert_in_range(copies(10, 20000, 5000), 10, 10);
}

/* Of several under way each counts its own time, and short ones do not count. */
static void way__counts_the_time_since_the_one_before(void **state)
{
	bw_local_way_learn(&way, BW_LOCAL_WAY_COPIED, 1000, 6000, BYTES);
	bw_local_way_learn(&way, BW_LOCAL_WAY_COPIED, 1000, 11000, BYTES);
	assert_int_equal(way.cost[BW_LOCAL_WAY_COPIED], 5000);
	bw_local_way_learn(&way, BW_LOCAL_WAY_COPIED, 11000, 91000, BW_LOCAL_WAY_LEAST - 1);
	assert_int_equal(way.cost[BW_LOCAL_WAY_COPIED], 5000);
	assert_int_equal(way.since, 91000);
}

/* Whoever descends from the one who is appointed may read: so nobody from whom all do. */
static void tracer__is_the_launcher(void **state)
{
	assert_int_equal(bw_local_cma_tracer(1, 4711), 4711);
	assert_int_equal(bw_local_cma_tracer(1, 1), 0);
	assert_int_equal(bw_local_cma_tracer(1, 0), 0);
	for (int scope = 0; scope < 4; scope++)
		assert_true(scope == 1 || !bw_local_cma_tracer(scope, 4711));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(way__begins_direct_and_tries_both, setup),
		cmocka_unit_test_setup(way__takes_the_faster_one, setup),
		cmocka_unit_test_setup(way__copies_only_for_a_quarter, setup),
		cmocka_unit_test_setup(way__forgives_a_late_one, setup),
		cmocka_unit_test_setup(way__does_not_judge_by_the_first, setup),
		cmocka_unit_test_setup(way__follows_a_change, setup),
		cmocka_unit_test_setup(way__tries_together_with_its_peer, setup),
		cmocka_unit_test_setup(way__counts_the_time_since_the_one_before, setup),
		cmocka_unit_test(tracer__is_the_launcher),
	};

	return cmocka_run_group_tests_name("way", tests, NULL, NULL);
}
