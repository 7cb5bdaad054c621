/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CRC32C on 64-bit ARM with the crc32c instructions: three streams run interleaved, since each
 * instruction waits for its own stream's previous one only, and are joined by polynomial
 * multiplication.
 */
#include "checksum_impl.h"

#if defined(__aarch64__)

#include <arm_acle.h>
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <string.h>
#include <sys/auxv.h>

#define ARM64  __attribute__((target("+crc+crypto")))
#define INLINE static inline __attribute__((always_inline))

/* Bytes of each of the three streams, and the bit-reflected powers x^(8*bytes - 33), x^(16*bytes -
 * 33) modulo the Castagnoli polynomial: the missing 33 come from the reflected product and from the
 * crc32c instruction that reduces it. */
#define LONG_STREAM  1024
#define LONG_BY_ONE  0x170076fa
#define LONG_BY_TWO  0xa51b6135
#define SHORT_STREAM 128
#define SHORT_BY_ONE 0xd3b6092
#define SHORT_BY_TWO 0xb9e02b86

INLINE uint64_t load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

ARM64 INLINE uint32_t serial(uint32_t state, const uint8_t *p, size_t n)
{
	for (; n >= 8; p += 8, n -= 8)
		state = __crc32cd(state, load64(p));
	if (n & 4) {
		uint32_t v;

		memcpy(&v, p, sizeof(v));
		state = __crc32cw(state, v);
		p += 4;
	}
	if (n & 2) {
		uint16_t v;

		memcpy(&v, p, sizeof(v));
		state = __crc32ch(state, v);
		p += 2;
	}
	if (n & 1)
		state = __crc32cb(state, *p);
	return state;
}

ARM64 INLINE uint64_t advance(uint32_t state, uint32_t by)
{
	return (uint64_t)vmull_p64((poly64_t)state, (poly64_t)by);
}

/* Three streams of `stream` bytes each. */
ARM64 INLINE uint32_t triple(uint32_t state, const uint8_t *p, size_t stream, uint32_t by_one,
			     uint32_t by_two)
{
	uint32_t a = state, b = 0, c = 0;

	for (size_t i = 0; i < stream; i += 8) {
		a = __crc32cd(a, load64(p + i));
		b = __crc32cd(b, load64(p + stream + i));
		c = __crc32cd(c, load64(p + 2 * stream + i));
	}
	return c ^ __crc32cd(0, advance(a, by_two) ^ advance(b, by_one));
}

ARM64 static uint32_t arm64_crc(uint32_t crc, const void *data, size_t n)
{
	const uint8_t *p = data;
	uint32_t state = ~crc;

	for (; n >= 3 * LONG_STREAM; p += 3 * LONG_STREAM, n -= 3 * LONG_STREAM)
		state = triple(state, p, LONG_STREAM, LONG_BY_ONE, LONG_BY_TWO);
	for (; n >= 3 * SHORT_STREAM; p += 3 * SHORT_STREAM, n -= 3 * SHORT_STREAM)
		state = triple(state, p, SHORT_STREAM, SHORT_BY_ONE, SHORT_BY_TWO);
	return ~serial(state, p, n);
}

/* A copied piece is checksummed where it went, while it is in the first-level cache. */
ARM64 static uint32_t arm64_copy(uint32_t crc, void *dst, const void *src, size_t n)
{
	uint8_t *to = dst;
	const uint8_t *from = src;

	for (; n > 3 * LONG_STREAM; n -= 3 * LONG_STREAM) {
		crc = arm64_crc(crc, memcpy(to, from, 3 * LONG_STREAM), 3 * LONG_STREAM);
		to += 3 * LONG_STREAM;
		from += 3 * LONG_STREAM;
	}
	return arm64_crc(crc, memcpy(to, from, n), n);
}

static bool arm64_usable(void)
{
	unsigned long needed = HWCAP_CRC32 | HWCAP_PMULL;

	return (getauxval(AT_HWCAP) & needed) == needed;
}

const struct bw_checksum_candidate bw_crc32c_arm64 = {
	.usable = arm64_usable,
	.impl = {.name = "arm64", .crc = arm64_crc, .copy = arm64_copy},
};

#endif
