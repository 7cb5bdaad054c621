/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The program that steers frames in a fan-out group, run by an interpreter (bpf.h), and by the
 * kernel's rule: the result modulo the number of members.
 */
#include "link/packet/steer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../bpf.h"
#include "wire.h"

#include <cmocka.h>

#define ELSE 7u

static struct sock_filter code[BW_STEER_CODE];
static struct bw_steer of[BW_STEER_MOST];

/* What the program says to a frame. */
static uint32_t run(unsigned int n, const struct bw_hdr *h)
{
	int64_t to = bpf_run(code, n, (const uint8_t *)h, sizeof(*h), PACKET_HOST);

	assert_true(to >= 0);
	return (uint32_t)to;
}

static uint32_t steered(unsigned int n, uint16_t engine)
{
	struct bw_hdr h = {.magic = BW_MAGIC, .dst_engine = engine};

	return run(n, &h);
}

/* Numbers whose order differs from that of their bytes on the wire. */
static uint16_t engine_of(unsigned int i)
{
	return (uint16_t)(32768 + 163 * i);
}

static unsigned int program(unsigned int members)
{
	unsigned int n;

	for (unsigned int i = 0; i < members; i++)
		of[i] = (struct bw_steer){engine_of(i), i};
	n = bw_steer_program(code, of, members, ELSE);
	assert_true(n <= BW_STEER_CODE);
	return n;
}

static void each_engine_finds_its_member__whatever_their_number(void **state)
{
	for (unsigned int members = 0; members <= BW_STEER_MOST; members++) {
		unsigned int n = program(members);

		for (unsigned int i = 0; i < members; i++)
			assert_int_equal(steered(n, engine_of(i)), i);
		assert_int_equal(steered(n, engine_of(members)), ELSE);
		assert_int_equal(steered(n, 1), ELSE);
		assert_int_equal(steered(n, 65535), ELSE);
	}
}

static void other_engines_go_elsewhere__every_number(void **state)
{
	unsigned int n = program(BW_STEER_MOST), found = 0;

	for (unsigned int engine = 0; engine <= UINT16_MAX; engine++)
		found += steered(n, (uint16_t)engine) != ELSE;
	/* The member whose number is that of `otherwise` is one of them. */
	assert_int_equal(found, BW_STEER_MOST - 1);
}

static void frames_without_our_magic_go_elsewhere(void **state)
{
	unsigned int n = program(64);
	struct bw_hdr h = {.magic = BW_MAGIC ^ 1, .dst_engine = engine_of(3)};

	assert_int_equal(run(n, &h), ELSE);
	h.magic = BW_MAGIC;
	assert_int_equal(run(n, &h), 3);
}

static void the_last_is_found_before_and_after_it_moves(void **state)
{
	for (uint32_t n = 2; n <= BW_STEER_MOST; n++) {
		for (uint32_t leaving = 0; leaving < n - 1; leaving++) {
			uint32_t to = bw_steer_moving(n, leaving);

			assert_int_equal(to % n, n - 1);
			assert_int_equal(to % (n - 1), leaving);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_engine_finds_its_member__whatever_their_number),
		cmocka_unit_test(other_engines_go_elsewhere__every_number),
		cmocka_unit_test(frames_without_our_magic_go_elsewhere),
		cmocka_unit_test(the_last_is_found_before_and_after_it_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
