/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Marks, corruption and checksums in real frames; checksums against a sum byte by byte. */
#include "groups.h"
#include "headers.h"

/* A frame with an IPv4 packet of 20 + 8 bytes; ECT(0); the header checksum is right. */
static const uint8_t ipv4[42] = {
	2, 0,  0,  0, 0, 1,  2, 0, 0, 0,  0, 2, 8, 0,	 0x45, 0x02, 0,	   28, 0x12, 0x34, 0x40,
	0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x30, 0x39, 0x30, 0x3A, 0,  8,    0,	   0};

static uint8_t frame[2000];

static uint16_t plain_sum(const uint8_t *bytes, uint32_t n)
{
	uint32_t sum = 0, i;

	for (i = 0; i < n; i++) {
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
		sum = (sum & 0xFFFF) + (sum >> 16);
	}
	return (uint16_t)sum;
}

/* The frame above, in `tags` VLAN tags, its IPv4 checksum filled in; its length. */
static uint32_t make(uint32_t tags)
{
	uint32_t i, at = 14 + 4 * tags;

	memcpy(frame, ipv4, 12);
	for (i = 0; i < tags; i++)
		memcpy(frame + 12 + 4 * i, (uint8_t[]){i ? 0x81 : 0x88, i ? 0x00 : 0xA8, 0, 5}, 4);
	memcpy(frame + at - 2, ipv4 + 12, sizeof(ipv4) - 12);
	em_put16(frame + at + 10, (uint16_t)~plain_sum(frame + at, 20));
	return (uint32_t)sizeof(ipv4) + 4 * tags;
}

static void read__finds_the_packet(void **state)
{
	struct em_headers h;
	uint32_t len, tags;

	for (tags = 0; tags <= 2; tags++) {
		len = make(tags);
		em_headers_read(frame, len, &h);
		assert_int_equal(h.network, 14 + 4 * tags);
		assert_int_equal(h.type, EM_TYPE_IPV4);
	}
	for (len = 0; len < 14; len++) {
		em_headers_read(frame, len, &h);
		assert_int_equal(h.type, 0);
		assert_int_equal(h.network, len);
	}
}

static void ecn__marks_ipv4_with_a_right_checksum(void **state)
{
	uint32_t tags, ect, id;

	for (tags = 0; tags <= 2; tags++)
		for (ect = 1; ect <= 3; ect++)
			for (id = 0; id < 0x10000; id += 257) {
				uint32_t len = make(tags), at = 14 + 4 * tags;

				frame[at + 1] = (uint8_t)(0xB8 | ect);
				em_put16(frame + at + 4, id);
				em_put16(frame + at + 10, 0);
				em_put16(frame + at + 10, (uint16_t)~plain_sum(frame + at, 20));
				assert_true(em_ecn_capable(frame, len));
				em_ecn_mark(frame, len);
				assert_int_equal(frame[at + 1], 0xBB);
				assert_int_equal(plain_sum(frame + at, 20), 0xFFFF);
			}
}

static void ecn__leaves_others_alone(void **state)
{
	uint32_t len = make(0), n;
	uint8_t before[sizeof(frame)];

	frame[15] = 0xB8;
	memcpy(before, frame, sizeof(frame));
	assert_false(em_ecn_capable(frame, len));
	em_ecn_mark(frame, len);
	assert_memory_equal(frame, before, sizeof(frame));
	/* cut off within the header */
	make(0);
	for (n = 0; n < 34; n++)
		assert_false(em_ecn_capable(frame, n));
	assert_true(em_ecn_capable(frame, 34));
	em_put16(frame + 12, EM_TYPE_ARP);
	assert_false(em_ecn_capable(frame, len));
	make(0);
	frame[14] = 0x65; /* another version than the type says */
	assert_false(em_ecn_capable(frame, len));
}

static void ecn__marks_ipv6(void **state)
{
	uint32_t n;

	memset(frame, 0, sizeof(frame));
	em_put16(frame + 12, EM_TYPE_IPV6);
	frame[14] = 0x6A; /* version 6, traffic class 0xA5: DSCP 41, ECT(1); flow label 0x5... */
	frame[15] = 0x5C;
	for (n = 0; n < 54; n++)
		assert_false(em_ecn_capable(frame, n));
	assert_true(em_ecn_capable(frame, 54));
	em_ecn_mark(frame, 54);
	assert_int_equal(frame[14], 0x6A);
	assert_int_equal(frame[15], 0x7C);
	frame[15] = 0x4C;
	assert_false(em_ecn_capable(frame, 54));
}

static void corrupt__one_bit_behind_the_header(void **state)
{
	uint8_t before[sizeof(frame)], seen[28] = {0};
	uint32_t len = make(1), i, k;

	memcpy(before, frame, sizeof(frame));
	for (i = 0; i < 28 * 8; i++) {
		uint32_t bits = 0;

		em_corrupt(frame, len, i + 28ull * 8 * 1000000007);
		for (k = 0; k < sizeof(frame); k++) {
			uint8_t changed = frame[k] ^ before[k];

			bits += (uint32_t)__builtin_popcount(changed);
			if (changed)
				assert_in_range(k, 18, len - 1);
			if (k >= 18 && k < len)
				seen[k - 18] |= changed;
		}
		assert_int_equal(bits, 1);
		memcpy(frame, before, sizeof(frame));
	}
	for (i = 0; i < 28; i++)
		assert_int_equal(seen[i], 0xFF);
	/* nothing behind the header: nothing to change */
	em_corrupt(frame, 18, 5);
	em_corrupt(frame, 3, 5);
	assert_memory_equal(frame, before, sizeof(frame));
}

static void checksum__any_length_and_alignment(void **state)
{
	uint32_t i, from, n;

	for (i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)(i * 151 + i / 7);
	for (from = 0; from < 9; from++)
		for (n = 0; n < 1900; n += n < 40 ? 1 : 97)
			assert_int_equal(em_checksum_sum(frame + from, n, 0),
					 plain_sum(frame + from, n));
	memset(frame, 0xFF, sizeof(frame));
	assert_int_equal(em_checksum_sum(frame, 1900, 0xFFFF), 0xFFFF);
	memset(frame, 0, sizeof(frame));
	assert_int_equal(em_checksum_sum(frame, 1900, 0x12345), 0x2346);
}

static void checksum__finish(void **state)
{
	uint32_t len = make(0);

	/* a UDP header with the sum of its pseudo header where the checksum goes [RFC 768] */
	em_put16(frame + 40, em_checksum_sum(frame + 26, 8, 17 + 8));
	assert_true(em_checksum_finish(frame, len, 34, 6));
	assert_int_equal(em_checksum_sum(frame + 34, 8, em_checksum_sum(frame + 26, 8, 17 + 8)),
			 0xFFFF);
	assert_false(em_checksum_finish(frame, len, 42, 0));
	assert_false(em_checksum_finish(frame, len, 34, 7));
	assert_false(em_checksum_finish(frame, len, 34, 9));
	assert_true(em_checksum_finish(frame, len, 34, 6));
}

int headers_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read__finds_the_packet),
		cmocka_unit_test(ecn__marks_ipv4_with_a_right_checksum),
		cmocka_unit_test(ecn__leaves_others_alone),
		cmocka_unit_test(ecn__marks_ipv6),
		cmocka_unit_test(corrupt__one_bit_behind_the_header),
		cmocka_unit_test(checksum__any_length_and_alignment),
		cmocka_unit_test(checksum__finish),
	};

	return cmocka_run_group_tests_name("headers", tests, NULL, NULL);
}
