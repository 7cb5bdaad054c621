/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* When a judgement that cores are short ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "crowd.h"

/* Judged to be crowded, with all the evidence there is, by the thread that asks. */
static struct bw_crowd crowded(uint64_t now)
{
	return (struct bw_crowd){.crowded = true,
				 .until = now + BW_CROWD_SAMPLE_NS / 2,
				 .hold_ns = BW_CROWD_SAMPLE_NS,
				 .sampled_at = now - BW_CROWD_SAMPLE_NS,
				 .evidence = 9,
				 .thread = (int)syscall(SYS_gettid)};
}

static void crowd__stays_for_its_time(void **state)
{
	uint64_t now = bw_clock_now();
	struct bw_crowd c = crowded(now);

	bw_crowd_sample(&c, now);
	assert_true(c.crowded);
	assert_int_equal(c.sampled_at, now);
}

/* A thread that naps waits for its core with each wake-up, whoever else is there: that it did so
 * meanwhile does not prolong the judgement. */
static void crowd__is_not_judged_by_naps(void **state)
{
	uint64_t now = bw_clock_now();
	struct bw_crowd c = crowded(now);

	c.until = now;
	c.delay_ns = UINT64_MAX / 2; /* so that what it has waited for since is much */
	bw_crowd_sample(&c, now);
	assert_false(c.crowded);
	assert_int_equal(c.evidence, 0);
	assert_int_equal(c.hold_ns, BW_CROWD_SAMPLE_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crowd__stays_for_its_time),
		cmocka_unit_test(crowd__is_not_judged_by_naps),
	};

	return cmocka_run_group_tests_name("crowd", tests, NULL, NULL);
}
