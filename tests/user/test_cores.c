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
	assert_int_equal(found((uint32_t[]){0, 80, 80, 0}, all, 0), -1); /* not idle enough */
	assert_int_equal(found((uint32_t[]){100, 0, 0, 0}, all, 0), -1); /* one's own */
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

/* Two cores' worth of affinity at least, else there is nothing to move to. */
static struct bw_crowd waiting(uint64_t now, uint32_t idle_ms)
{
	struct bw_crowd c = {
		.sampled_at = now - BW_CROWD_SAMPLE_NS, .hold_ns = 1000 * MS, .evidence = 1};

	/* So that it has waited for its core all the time. */
	bw_crowd_sample(&c, now);
	c.evidence = 1;
	c.hold_ns = 1000 * MS;
	c.delay_ns -= 100 * MS;
	bw_crowd_sample(&c, now += BW_CROWD_SAMPLE_NS);
	assert_true(c.crowded);
	assert_true(c.look_at > now && c.look_at < c.until);
	/* Each core has been idle for so long since. */
	bw_cores_read(&c.cores, now);
	for (int i = 0; i < c.cores.n; i++)
		c.cores.idle[i] -= idle_ms;
	return c;
}

static void crowd__leaves_for_an_idle_core(void **state)
{
	uint64_t now = bw_clock_now();
	struct bw_crowd c = waiting(now, 400);
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	c.cores.at = now;
	assert_in_range(c.look_at, now + 300 * MS, now + 910 * MS);
	bw_crowd_sample(&c, now + 290 * MS);
	assert_true(c.crowded);
	c.look_at = now + 400 * MS;
	bw_crowd_sample(&c, now + 400 * MS);
	assert_int_equal(c.moves, CPU_COUNT(&set) > 1);
	assert_int_equal(c.crowded, CPU_COUNT(&set) == 1);
	/* Should that not have helped, the next judgement holds for longer. */
	assert_int_equal(c.hold_ns, 2000 * MS);
}

static void crowd__stays_without_one(void **state)
{
	uint64_t now = bw_clock_now();
	struct bw_crowd c = waiting(now, 0);

	c.cores.at = now - 100000 * MS;
	c.look_at = now + 200 * MS;
	bw_crowd_sample(&c, now + 200 * MS);
	assert_int_equal(c.moves, 0);
	assert_true(c.crowded);
	assert_int_equal(c.look_at, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cores__are_read),
		cmocka_unit_test(cores__one_that_was_idle),
		cmocka_unit_test(cores__moving_leaves_the_affinity),
		cmocka_unit_test(crowd__leaves_for_an_idle_core),
		cmocka_unit_test(crowd__stays_without_one),
	};

	return cmocka_run_group_tests_name("cores", tests, NULL, NULL);
}
