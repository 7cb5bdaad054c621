/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CRC32C by an instruction of the processor: what x86-64 and 64-bit ARM have in common. Such an
 * instruction takes some cycles but can start every cycle, so three streams run interleaved and are
 * joined by a carry-less multiplication.
 *
 * Whoever includes it defines before: CRC_TARGET, the attribute that allows the instructions;
 * crc_state, the type that they work on; crc_step8() to crc_step64(), one instruction each on a
 * state and a value; crc_product(), the 64-bit carry-less product of a state and a constant.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CRC_INLINE static inline __attribute__((always_inline))

/* Bytes of each of the three streams, and the bit-reflected powers x^(8*bytes - 33), x^(16*bytes -
 * 33) modulo the Castagnoli polynomial 0x11EDC6F41: the missing 33 come from the reflected product
 * and from the instruction that reduces it. */
#define LONG_STREAM  1024
#define LONG_BY_ONE  0x170076fa
#define LONG_BY_TWO  0xa51b6135
#define SHORT_STREAM 128
#define SHORT_BY_ONE 0xd3b6092
#define SHORT_BY_TWO 0xb9e02b86

CRC_INLINE uint64_t crc_load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* One stream, on the inverted checksum: the shortest way for headers and for what the others leave.
 */
CRC_TARGET CRC_INLINE uint32_t crc_serial(uint32_t begin, const uint8_t *p, size_t n)
{
	crc_state state = begin;

	for (; n >= 32; p += 32, n -= 32) {
		state = crc_step64(state, crc_load64(p));
		state = crc_step64(state, crc_load64(p + 8));
		state = crc_step64(state, crc_load64(p + 16));
		state = crc_step64(state, crc_load64(p + 24));
	}
	for (; n >= 8; p += 8, n -= 8)
		state = crc_step64(state, crc_load64(p));
	if (n & 4) {
		uint32_t v;

		memcpy(&v, p, sizeof(v));
		state = crc_step32((uint32_t)state, v);
		p += 4;
	}
	if (n & 2) {
		uint16_t v;

		memcpy(&v, p, sizeof(v));
		state = crc_step16((uint32_t)state, v);
		p += 2;
	}
	if (n & 1)
		state = crc_step8((uint32_t)state, *p);
	return (uint32_t)state;
}

/* Three streams of `stream` bytes each. */
CRC_TARGET CRC_INLINE uint32_t crc_triple(uint32_t begin, const uint8_t *p, size_t stream,
					  uint32_t by_one, uint32_t by_two)
{
	crc_state a = begin, b = 0, c = 0;

	for (size_t i = 0; i < stream; i += 8) {
		a = crc_step64(a, crc_load64(p + i));
		b = crc_step64(b, crc_load64(p + stream + i));
		c = crc_step64(c, crc_load64(p + 2 * stream + i));
	}
	return (uint32_t)(c ^ crc_step64(0, crc_product((uint32_t)a, by_two) ^
						    crc_product((uint32_t)b, by_one)));
}

/* All of it, in the longest streams that fit. With `copy`, a piece is copied to dst first and
 * checksummed where it went, while it is in the first-level cache. */
CRC_TARGET CRC_INLINE uint32_t crc_streams(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t n,
					   bool copy)
{
	uint32_t state = ~crc;

	while (n >= 3 * LONG_STREAM) {
		const uint8_t *p = copy ? memcpy(dst, src, 3 * LONG_STREAM) : src;

		state = crc_triple(state, p, LONG_STREAM, LONG_BY_ONE, LONG_BY_TWO);
		dst += copy ? 3 * LONG_STREAM : 0;
		src += 3 * LONG_STREAM;
		n -= 3 * LONG_STREAM;
	}
	if (copy)
		src = memcpy(dst, src, n);
	for (; n >= 3 * SHORT_STREAM; src += 3 * SHORT_STREAM, n -= 3 * SHORT_STREAM)
		state = crc_triple(state, src, SHORT_STREAM, SHORT_BY_ONE, SHORT_BY_TWO);
	return ~crc_serial(state, src, n);
}
