/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of an instance's peers. */
#include "peers.h"
#include "plain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MANY 5000

static struct peers table;

static int begin(void **state)
{
	peers_init(&table, &plain_host_ops, NULL);
	return 0;
}

static int end(void **state)
{
	peers_free(&table);
	return 0;
}

/* Handles that are the same in their low bits, as a table may have them that some have left. */
static uint32_t handle(uint32_t i)
{
	return (i + 1) << 12;
}

static void peers__are_found_until_they_go(void **state)
{
	struct peer *one;
	uint32_t i;

	assert_null(peers_find(&table, handle(0)));
	for (i = 0; i < MANY; i++) {
		one = peers_make(&table, handle(i));
		assert_int_equal(one->handle, handle(i));
		assert_ptr_equal(peers_make(&table, handle(i)), one);
	}
	assert_int_equal(table.count, MANY);
	for (i = 0; i < MANY; i += 2)
		peers_drop(&table, peers_find(&table, handle(i)));
	assert_int_equal(table.count, MANY / 2);
	for (i = 0; i < MANY; i++) {
		one = peers_find(&table, handle(i));
		assert_int_equal(!!one, i % 2);
		if (one)
			assert_int_equal(one->handle, handle(i));
	}
}

static void peers__are_found_in_few_steps(void **state)
{
	uint32_t i;

	for (i = 0; i < MANY; i++)
		peers_make(&table, handle(i));
	table.steps = 0;
	for (i = 0; i < MANY; i++)
		assert_non_null(peers_find(&table, handle(i)));
	assert_in_range(table.steps, 1, 2 * MANY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(peers__are_found_until_they_go, begin, end),
		cmocka_unit_test_setup_teardown(peers__are_found_in_few_steps, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
