/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Peers by the numbers that the kernel module has told: found, forgotten and renumbered, in a table
 * that grows. No module is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "link/kernel/impl.h"
#include "remote.h"

#define PEERS 1000
#define APART 32 /* numbers between two peers: with few buckets many share one */

static struct bw_kernel k;
static struct bw_remote *peer;

static uint32_t number(uint32_t i)
{
	return 1 + i * APART;
}

static int set_up(void **state)
{
	memset(&k, 0, sizeof(k));
	peer = calloc(PEERS, sizeof(*peer));
	return bw_kernel_table_init(&k);
}

static int tear_down(void **state)
{
	free(k.by_number);
	free(peer);
	return 0;
}

static void are_found(uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		assert_ptr_equal(bw_kernel_find(&k, number(i)), &peer[i]);
}

static void table__finds_all_when_it_has_grown(void **state)
{
	uint32_t first = k.buckets;

	for (uint32_t i = 0; i < PEERS; i++) {
		assert_null(bw_kernel_find(&k, number(i)));
		bw_kernel_note(&k, number(i), &peer[i]);
		are_found(i, i + 1);
	}
	assert_int_equal(k.noted, PEERS);
	assert_true(k.buckets >= PEERS && k.buckets > first);
	assert_int_equal(k.buckets & (k.buckets - 1), 0);
	are_found(0, PEERS);
}

static void table__forgets_one_and_no_other(void **state)
{
	for (uint32_t i = 0; i < PEERS; i++)
		bw_kernel_note(&k, number(i), &peer[i]);
	for (uint32_t i = 0; i < PEERS; i += 3) {
		bw_kernel_unnote(&k, &peer[i]);
		assert_int_equal(peer[i].kernel, 0);
	}
	for (uint32_t i = 0; i < PEERS; i++)
		assert_ptr_equal(bw_kernel_find(&k, number(i)), i % 3 ? &peer[i] : NULL);
	assert_int_equal(k.noted, PEERS - (PEERS + 2) / 3);
}

/* A peer that begins anew: by its old number nobody is found. */
static void table__has_each_peer_by_one_number(void **state)
{
	peer[0].unneeded = true;
	bw_kernel_note(&k, number(0), &peer[0]);
	assert_false(peer[0].unneeded);
	assert_ptr_equal(peer[0].by, &bw_by_kernel);
	bw_kernel_note(&k, number(1), &peer[0]);
	assert_int_equal(peer[0].kernel, number(1));
	assert_null(bw_kernel_find(&k, number(0)));
	assert_ptr_equal(bw_kernel_find(&k, number(1)), &peer[0]);
	assert_int_equal(k.noted, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(table__finds_all_when_it_has_grown),
		TEST(table__forgets_one_and_no_other),
		TEST(table__has_each_peer_by_one_number),
	};

	return cmocka_run_group_tests_name("kernel table", tests, NULL, NULL);
}
