// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Peers choose tags: whatever they choose, no bucket of a table of lanes gets many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lanes.h"

#define TAGS 1000

/* What the fullest bucket has. */
static size_t fullest(const struct bwf_lanes *l)
{
	size_t most = 0;

	for (size_t i = 0; i < l->buckets; i++) {
		size_t n = 0;

		for (const struct bwf_lane *lane = l->bucket[i]; lane; lane = lane->next)
			n++;
		most = n > most ? n : most;
	}
	return most;
}

/* Of 1000 tags in 1024 buckets by chance one has more than 14 in less than one of 10^7 tables. */
static void tags__in_steps_of_any_length_are_spread(void **state)
{
	static struct bwf_link link[TAGS];

	for (int shift = 0; shift < 64; shift++) {
		struct bwf_lanes l = {0};
		size_t tags = shift > 54 ? (size_t)1 << (64 - shift) : TAGS;

		for (size_t i = 0; i < tags; i++)
			assert_true(bwf_lanes_add(&l, 7, (uint64_t)i << shift, &link[i]));
		assert_int_equal(l.lanes, tags);
		assert_in_range(fullest(&l), 1, 14);
		bwf_lanes_free(&l);
	}
}

static void tags__of_many_peers_are_spread(void **state)
{
	static struct bwf_link link[TAGS];
	struct bwf_lanes l = {0};

	for (size_t i = 0; i < TAGS; i++) /* what a mere mixture of both would take for one */
		assert_true(bwf_lanes_add(&l, (uint32_t)i, (uint64_t)i << 32 | i, &link[i]));
	assert_in_range(fullest(&l), 1, 14);
	bwf_lanes_free(&l);
}

static size_t bucket_of(const struct bwf_lanes *l, uint64_t tag)
{
	for (size_t i = 0; i < l->buckets; i++)
		for (const struct bwf_lane *lane = l->bucket[i]; lane; lane = lane->next)
			if (lane->tag == tag)
				return i;
	fail();
	return 0;
}

static void tables__have_secrets_of_their_own(void **state)
{
	static struct bwf_link link[2][TAGS];
	struct bwf_lanes a = {0}, b = {0};
	int same = 0;

	for (uint64_t tag = 0; tag < TAGS; tag++) {
		assert_true(bwf_lanes_add(&a, 1, tag, &link[0][tag]));
		assert_true(bwf_lanes_add(&b, 1, tag, &link[1][tag]));
	}
	for (uint64_t tag = 0; tag < TAGS; tag++)
		same += bucket_of(&a, tag) == bucket_of(&b, tag);
	assert_true(same < TAGS / 8); /* 1 by chance */
	bwf_lanes_free(&a);
	bwf_lanes_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tags__in_steps_of_any_length_are_spread),
		cmocka_unit_test(tags__of_many_peers_are_spread),
		cmocka_unit_test(tables__have_secrets_of_their_own),
	};

	return cmocka_run_group_tests_name("lanes", tests, NULL, NULL);
}
