/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every checksum implementation that this processor can run gives the result of the engine's
 * bw_crc32c(), whatever the length, the alignment and the pieces. Seeded: prints nothing, repeats
 * exactly.
 */
#include "checksum.h"
#include "protocol.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROOM 20000

static uint8_t source[ROOM + 128];
static uint8_t target[ROOM + 128];
static uint64_t seed;

/* xorshift64*: any seed but 0. */
static uint64_t draw(uint64_t below)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (seed * 0x2545F4914F6CDD1Dull >> 16) % below;
}

static int setup(void **state)
{
	seed = 0x9E3779B97F4A7C15ull;
	for (size_t i = 0; i < sizeof(source); i++)
		source[i] = (uint8_t)draw(256);
	return 0;
}

/* Mostly short lengths, where the special cases are, but all up to ROOM. */
static size_t draw_length(void)
{
	return (size_t)draw(1 + ((uint64_t)ROOM >> draw(10)));
}

static void checksum__known_answers(void **state)
{
	const struct bw_checksum_impl *impl;
	uint8_t zeros[32] = {0}, ones[32], up[32];

	memset(ones, 0xFF, sizeof(ones));
	for (size_t i = 0; i < sizeof(up); i++)
		up[i] = (uint8_t)i;
	for (unsigned i = 0; (impl = bw_checksum_impl(i)); i++) {
		/* RFC 3720, B.4, and the check value of the catalogue of CRCs. */
		assert_int_equal(impl->crc(0, zeros, 32), 0x8A9136AA);
		assert_int_equal(impl->crc(0, ones, 32), 0x62A8AB43);
		assert_int_equal(impl->crc(0, up, 32), 0x46DD794E);
		assert_int_equal(impl->crc(0, "123456789", 9), 0xE3069283);
		assert_int_equal(impl->crc(0, zeros, 0), 0);
	}
}

static void checksum__every_short_length(void **state)
{
	const struct bw_checksum_impl *impl;

	for (unsigned i = 0; (impl = bw_checksum_impl(i)); i++)
		for (size_t n = 0; n < 1100; n++) {
			uint32_t want = bw_crc32c(0x1234567, source + 3, n);

			assert_int_equal(impl->crc(0x1234567, source + 3, n), want);
			assert_int_equal(impl->copy(0x1234567, target + 1, source + 3, n), want);
		}
}

static void checksum__random_lengths_and_alignments(void **state)
{
	const struct bw_checksum_impl *impl;

	for (unsigned i = 0; (impl = bw_checksum_impl(i)); i++)
		for (int round = 0; round < 3000; round++) {
			size_t n = draw_length(), at = draw(64), to = draw(63) + 1;
			uint32_t begin = (uint32_t)draw(UINT32_MAX);
			uint32_t want = bw_crc32c(begin, source + at, n);

			assert_int_equal(impl->crc(begin, source + at, n), want);
			memset(target, 0xA5, n + 128);
			assert_int_equal(impl->copy(begin, target + to, source + at, n), want);
			assert_memory_equal(target + to, source + at, n);
			assert_int_equal(target[to - 1], 0xA5);
			assert_int_equal(target[to + n], 0xA5);
		}
}

static void checksum__pieces_give_the_whole(void **state)
{
	const struct bw_checksum_impl *impl;

	for (unsigned i = 0; (impl = bw_checksum_impl(i)); i++)
		for (int round = 0; round < 1000; round++) {
			size_t n = draw_length(), at = 0;
			uint32_t crc = 0;

			while (at < n) {
				size_t piece = 1 + draw(n - at);

				crc = draw(2) ? impl->crc(crc, source + at, piece)
					      : impl->copy(crc, target, source + at, piece);
				at += piece;
			}
			assert_int_equal(crc, bw_crc32c(0, source, n));
		}
}

static void checksum__chosen_is_the_first(void **state)
{
	assert_string_equal(bw_checksum_name(), bw_checksum_impl(0)->name);
	assert_int_equal(bw_checksum(0, source, 9000), bw_crc32c(0, source, 9000));
	assert_int_equal(bw_checksum(7, source, 9000), bw_crc32c(7, source, 9000));
	assert_int_equal(bw_checksum_copy(0, target, source, 9000), bw_crc32c(0, source, 9000));
	assert_int_equal(bw_checksum_copy(7, target, source, 9000), bw_crc32c(7, source, 9000));
}

static void checksum__one_bit_changes_it(void **state)
{
	const struct bw_checksum_impl *impl;

	for (unsigned i = 0; (impl = bw_checksum_impl(i)); i++)
		for (size_t bit = 0; bit < 8 * 1500; bit += 7) {
			uint32_t before = impl->crc(0, source, 1500);

			source[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_int_not_equal(impl->crc(0, source, 1500), before);
			source[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(checksum__known_answers, setup),
		cmocka_unit_test_setup(checksum__every_short_length, setup),
		cmocka_unit_test_setup(checksum__random_lengths_and_alignments, setup),
		cmocka_unit_test_setup(checksum__pieces_give_the_whole, setup),
		cmocka_unit_test_setup(checksum__chosen_is_the_first, setup),
		cmocka_unit_test_setup(checksum__one_bit_changes_it, setup),
	};

	return cmocka_run_group_tests_name("checksum", tests, NULL, NULL);
}
