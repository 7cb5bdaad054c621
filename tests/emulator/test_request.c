/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The lines of the control protocol. */
#include "control.h"
#include "groups.h"

static char why[EM_WHY_MAX];
static struct em_settings set[EM_DIRECTIONS];

static int request(const char *line)
{
	char copy[EM_LINE_MAX];

	why[0] = 0;
	snprintf(copy, sizeof(copy), "%s", line);
	return em_request_read(copy, set, why);
}

static void read__every_request(void **state)
{
	assert_int_equal(request("stats"), EM_REQUEST_STATS);
	assert_int_equal(request(" reset \r"), EM_REQUEST_RESET);
	assert_int_equal(request("stop"), EM_REQUEST_STOP);
	memset(set, 0, sizeof(set));
	assert_int_equal(request("set rate=1M ba.delay=1ms\tab.loss=1%"), EM_REQUEST_SET);
	assert_int_equal(set[0].rate, 1000000);
	assert_int_equal(set[1].rate, 1000000);
	assert_int_equal(set[0].loss, EM_SHARE_ONE / 100);
	assert_int_equal(set[1].delay, 1000000);
}

static void read__all_of_a_set_or_nothing(void **state)
{
	static const char *const bad[] = {"set",
					  "set rate=1M delay=soon",
					  "set jitter=1ms",
					  "set ab.delay=1ms jitter=1ms",
					  "set rate=1M burst=0.5",
					  "set rate = 1M"};
	static const struct em_settings none[EM_DIRECTIONS];
	size_t i;

	memset(set, 0, sizeof(set));
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(request(bad[i]), -EINVAL);
		assert_true(strlen(why) > 10);
		assert_memory_equal(set, none, sizeof(set));
	}
}

static void read__what_is_no_request(void **state)
{
	static const char *const bad[] = {"",	      "  ",	   "start",   "STOP",
					  "stop now", "stats all", "reset 1", "setrate=1M"};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(request(bad[i]), -EINVAL);
		assert_true(strlen(why) > 10);
	}
}

int request_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read__every_request),
		cmocka_unit_test(read__all_of_a_set_or_nothing),
		cmocka_unit_test(read__what_is_no_request),
	};

	return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
