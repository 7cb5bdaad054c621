/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* KEY=VALUE: every key and unit, both directions and one, and all that is refused. */
#include "groups.h"
#include "settings.h"

static char why[EM_WHY_MAX];

static struct em_settings taken(const char *text)
{
	struct em_settings both[EM_DIRECTIONS] = {0};

	if (em_settings_take(both, text, why))
		fail_msg("%s: %s", text, why);
	assert_memory_equal(&both[0], &both[1], sizeof(both[0]));
	return both[0];
}

static void take__units_of_rates(void **state)
{
	assert_int_equal(taken("rate=100M").rate, 100000000);
	assert_int_equal(taken("rate=2.5G").rate, 2500000000);
	assert_int_equal(taken("rate=10Gbit").rate, 10000000000);
	assert_int_equal(taken("rate=64k").rate, 64000);
	assert_int_equal(taken("rate=1200").rate, 1200);
	assert_int_equal(taken("rate=0").rate, 0);
}

static void take__units_of_times(void **state)
{
	assert_int_equal(taken("delay=10us").delay, 10000);
	assert_int_equal(taken("delay=5ms").delay, 5000000);
	assert_int_equal(taken("delay=1.5s").delay, 1500000000);
	assert_int_equal(taken("jitter=7ns").jitter, 7);
	assert_int_equal(taken("coalesce=125us").coalesce, 125000);
	assert_int_equal(taken("delay=0").delay, 0);
}

static void take__shares_are_exact(void **state)
{
	assert_int_equal(taken("loss=0.1%").loss, 1000000);
	assert_int_equal(taken("loss=0.001").loss, 1000000);
	assert_int_equal(taken("duplicate=100%").duplicate, EM_SHARE_ONE);
	assert_int_equal(taken("reorder=1").reorder, EM_SHARE_ONE);
	assert_int_equal(taken("corrupt=0.000000001").corrupt, 1);
	assert_int_equal(taken("burst=3.5").burst, 3500);
}

static void take__bytes(void **state)
{
	assert_int_equal(taken("queue=64Ki").queue, 65536);
	assert_int_equal(taken("queue=1.5M").queue, 1500000);
	assert_int_equal(taken("mark=30K").mark, 30000);
	assert_int_equal(taken("mtu=1500").mtu, 1500);
}

static void take__one_direction(void **state)
{
	struct em_settings both[EM_DIRECTIONS] = {0};

	assert_int_equal(em_settings_take(both, "ab.rate=1G", why), 0);
	assert_int_equal(em_settings_take(both, "ba.delay=1ms", why), 0);
	assert_int_equal(both[0].rate, 1000000000);
	assert_int_equal(both[0].delay, 0);
	assert_int_equal(both[1].rate, 0);
	assert_int_equal(both[1].delay, 1000000);
}

static void take__refuses_and_changes_nothing(void **state)
{
	static const char *const bad[] = {
		"",
		"rate",
		"=1",
		"rate=",
		"rate=-1",
		"rate=1X",
		"rate=1 G",
		"rate=.5G",
		"rate=1.G",
		"rate=2T",
		"rate=1e9",
		"rate=0x10",
		"delay=10",
		"delay=5 ms",
		"delay=3601s",
		"delay=ms",
		"loss=101%",
		"loss=1.1",
		"loss=10us",
		"burst=2%",
		"mtu=65536",
		"queue=2000Gi",
		"ab.=1",
		"ab.speed=1",
		"ca.rate=1",
		"RATE=1G",
		"rate=1G,loss=1",
		"rates=1G",
		"rat=1G",
		"loss=+1%",
		"rate=99999999999999999999999999",
		"delay=0x",
		"queue=1000000000000000000000000Gi",
	};
	struct em_settings both[EM_DIRECTIONS], before[EM_DIRECTIONS];
	size_t i;

	memset(both, 0x5A, sizeof(both));
	memcpy(before, both, sizeof(both));
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		why[0] = 0;
		if (em_settings_take(both, bad[i], why) != -EINVAL)
			fail_msg("taken: %s", bad[i]);
		assert_true(strlen(why) > 10);
		assert_memory_equal(both, before, sizeof(both));
	}
}

static void take__says_what_would_be_right(void **state)
{
	struct em_settings both[EM_DIRECTIONS] = {0};

	em_settings_take(both, "delay=10", why);
	assert_non_null(strstr(why, "unit"));
	em_settings_take(both, "latency=1ms", why);
	assert_non_null(strstr(why, "delay"));
	assert_non_null(strstr(why, "coalesce"));
}

static void check__values_that_do_not_fit_together(void **state)
{
	struct em_settings s = {.delay = 1000, .jitter = 1000};

	assert_int_equal(em_settings_check(&s, why), 0);
	s.jitter = 1001;
	assert_int_equal(em_settings_check(&s, why), -EINVAL);
	s = (struct em_settings){.mtu = 67};
	assert_int_equal(em_settings_check(&s, why), -EINVAL);
	s.mtu = 68;
	assert_int_equal(em_settings_check(&s, why), 0);
	s = (struct em_settings){.burst = 999};
	assert_int_equal(em_settings_check(&s, why), -EINVAL);
}

/* p / (L (1 - p)) <= 1: with half of all frames lost bursts may be of one, at 60 % of 1.5. */
static void check__bursts_long_enough_for_the_loss(void **state)
{
	struct em_settings s = {.loss = EM_SHARE_ONE / 2, .burst = 1000};

	assert_int_equal(em_settings_check(&s, why), 0);
	s.loss = EM_SHARE_ONE / 10 * 6;
	assert_int_equal(em_settings_check(&s, why), -EINVAL);
	assert_non_null(strstr(why, "1.500"));
	s.burst = 1500;
	assert_int_equal(em_settings_check(&s, why), 0);
	s.loss = EM_SHARE_ONE;
	assert_int_equal(em_settings_check(&s, why), 0);
}

static void queue__default_is_ten_milliseconds(void **state)
{
	struct em_settings s = {.rate = 1000000000};

	assert_int_equal(em_settings_queue(&s), 1250000);
	s.rate = 1000000;
	assert_int_equal(em_settings_queue(&s), EM_QUEUE_LEAST);
	s.queue = 1000;
	assert_int_equal(em_settings_queue(&s), 1000);
}

static void print__is_read_back(void **state)
{
	struct em_settings s = {.rate = 2500000001,
				.delay = 10001,
				.jitter = 3,
				.coalesce = 999999999,
				.queue = EM_QUEUE_MAX,
				.mark = 1,
				.loss = 1,
				.burst = 1001,
				.duplicate = EM_SHARE_ONE,
				.reorder = 123456789,
				.corrupt = 500000000,
				.mtu = 9000};
	struct em_settings both[EM_DIRECTIONS] = {0};
	char text[EM_TEXT_MAX], *word, *at;

	em_settings_print(&s, text);
	for (word = strtok_r(text, " ", &at); word; word = strtok_r(NULL, " ", &at))
		if (em_settings_take(both, word, why))
			fail_msg("%s", why);
	assert_memory_equal(&both[0], &s, sizeof(s));
}

int settings_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(take__units_of_rates),
		cmocka_unit_test(take__units_of_times),
		cmocka_unit_test(take__shares_are_exact),
		cmocka_unit_test(take__bytes),
		cmocka_unit_test(take__one_direction),
		cmocka_unit_test(take__refuses_and_changes_nothing),
		cmocka_unit_test(take__says_what_would_be_right),
		cmocka_unit_test(check__values_that_do_not_fit_together),
		cmocka_unit_test(check__bursts_long_enough_for_the_loss),
		cmocka_unit_test(queue__default_is_ten_milliseconds),
		cmocka_unit_test(print__is_read_back),
	};

	return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
