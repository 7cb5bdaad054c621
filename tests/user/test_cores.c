/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Cores that were idle, and moving to one. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "clock.h"
#include "cores.h"
#include "crowd.h"

#define MS 1000000ull

static const char text[] = "cpu  100 0 100 900 300 0 0 0 0 0\n"
			   "cpu0 50 0 50 400 100 0 0 0 0 0\n"
			   "cpu2 50 0 50 500 200 0 0 0 0 0\n"
			   "intr 5 1 2 3\n";

static void cores__are_read(void **state)
{
	struct bw_cores c;

	bw_cores_parse(&c, text, 100);
	assert_int_equal(c.n, 3);
	assert_int_equal(c.idle[0], 5000);
	assert_int_equal(c.idle[2], 7000);
	bw_cores_parse(&c, "cpu 1 2 3\ncpu0 nonsense", 100);
	assert_int_equal(c.n, 0);
	bw_cores_parse(&c, "", 100);
	assert_int_equal(c.n, 0);
	bw_cores_read(&c, 17);
	assert_int_equal(c.at, 17);
	assert_true(c.n > 0);
}

/* Four cores, 100 ms. */
static int found(const uint32_t *idle, const bool *may, int own)
{
	struct bw_cores before = {.at = 5 * MS, .n = 4}, after = {.at = 105 * MS, .n = 4};
	bool allowed[BW_CORES_MAX] = {false};

	for (int i = 0; i < 4; i++) {
		before.idle[i] = UINT32_MAX - 3;
		after.idle[i] = before.idle[i] + idle[i];
		allowed[i] = may[i];
	}
	return bw_cores_idle(&before, &after, allowed, own);
}

static void cores__one_that_was_idle(void **state)
{
	const bool all[BW_CORES_MAX] = {true, true, true, true},
		   some[BW_CORES_MAX] = {true, false, false, true};
	struct bw_cores none = {0};

	assert_int_equal(found((uint32_t[]){0, 10, 90, 0}, all, 0), 2);
	assert_int_equal(found((uint32_t[]){0, 30, 40, 0}, all, 0), -1); /* not idle enough */
	assert_int_equal(found((uint32_t[]){0, 30, 60, 0}, all, 0), 2);	 /* they are together */
	assert_int_equal(found((uint32_t[]){100, 0, 0, 0}, all, 0), 0);	 /* one's own */
	assert_int_equal(found((uint32_t[]){100, 20, 20, 20}, all, 0), 0);
	assert_int_equal(found((uint32_t[]){80, 30, 0, 0}, all, 0), 1);
	assert_int_equal(found((uint32_t[]){0, 100, 100, 0}, some, 0), -1);
	assert_int_equal(found((uint32_t[]){0, 100, 100, 100}, some, 0), 3);
	assert_int_equal(found((uint32_t[]){0, 70000, 0, 0}, all, 0), -1); /* it cannot be */
	assert_int_equal(bw_cores_idle(&none, &none, all, 0), -1);
}

static void cores__moving_leaves_the_affinity(void **state)
{
	cpu_set_t before, after;
	int there = 0;

	sched_getaffinity(0, sizeof(before), &before);
	for (int core = 0; core < BW_CORES_MAX; core++) {
		if (!CPU_ISSET((unsigned int)core, &before)) {
			assert_false(bw_cores_move(core) && sched_getcpu() == core);
			continue;
		}
		/* A busy machine may take the thread elsewhere at once. */
		for (int i = 0; i < 100 && sched_getcpu() != core; i++)
			assert_true(bw_cores_move(core));
		there += sched_getcpu() == core;
		sched_getaffinity(0, sizeof(after), &after);
		assert_true(CPU_EQUAL(&before, &after));
	}
	assert_true(there > 0);
}

/* Waits for its core all the time, while each core was idle for so long in each 10 ms. Returns the
 * looks before it was judged to be crowded; 0: never. */
static int looks_until_crowded(struct bw_crowd *c, uint32_t idle_ms, int looks)
{
	uint64_t now = bw_clock_now();

	for (int i = 1; i <= looks; i++) {
		now += BW_CROWD_SAMPLE_NS;
		c->delay_ns -= BW_CROWD_SAMPLE_NS;
		for (int core = 0; core < c->cores.n; core++)
			c->cores.idle[core] -= idle_ms;
		bw_crowd_sample(c, now);
		if (c->crowded)
			return i;
	}
	return 0;
}

/* Whatever this machine's control groups say. */
static void begin(struct bw_crowd *c)
{
	bw_crowd_init(c, bw_clock_now());
	c->crowded = false;
	c->cpu_stat[0] = 0;
}

static void crowd__is_judged_where_no_core_is_idle(void **state)
{
	struct bw_crowd c;

	begin(&c);
	c.spread = true;
	bw_crowd_sample(&c, bw_clock_now());
	/* So that this machine's own idle cores are none. */
	c.delay_ns = bw_clock_now();
	assert_in_range(looks_until_crowded(&c, (uint32_t)-20, 20), 3, 5);
}

/* Moving may help, and does not for ever. */
static void crowd__moves_where_one_is(void **state)
{
	cpu_set_t set;
	struct bw_crowd c;
	int looks;

	sched_getaffinity(0, sizeof(set), &set);
	begin(&c);
	c.spread = true;
	bw_crowd_sample(&c, bw_clock_now());
	looks = looks_until_crowded(&c, 10, 100);
	if (CPU_COUNT(&set) > 1)
		assert_in_range(looks, 15, 30);
	else
		assert_in_range(looks, 3, 5);
}

/* Who has not asked for it is left where it is. */
static void crowd__moves_nobody_unasked(void **state)
{
	struct bw_crowd c;

	begin(&c);
	bw_crowd_sample(&c, bw_clock_now());
	assert_in_range(looks_until_crowded(&c, 10, 100), 2, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cores__are_read),
		cmocka_unit_test(cores__one_that_was_idle),
		cmocka_unit_test(cores__moving_leaves_the_affinity),
		cmocka_unit_test(crowd__is_judged_where_no_core_is_idle),
		cmocka_unit_test(crowd__moves_where_one_is),
		cmocka_unit_test(crowd__moves_nobody_unasked),
	};

	return cmocka_run_group_tests_name("cores", tests, NULL, NULL);
}
