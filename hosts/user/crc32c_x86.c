/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CRC32C on x86-64 in two ways. "sse42": the crc32 instruction takes 3 cycles but can start every
 * cycle, so three streams run interleaved and are joined by a carry-less multiplication. "avx512":
 * 256 bytes at once are folded, that is multiplied by a power of x modulo the polynomial and added
 * to the next 256.
 *
 * All constants are bit-reflected powers of x modulo the Castagnoli polynomial 0x11EDC6F41.
 */
#include "checksum_impl.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define SSE42  __attribute__((target("sse4.2,pclmul")))
#define AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,vpclmulqdq,pclmul,sse4.2")))
#define INLINE static inline __attribute__((always_inline))

INLINE uint64_t load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* One stream, on the inverted checksum: the shortest way for headers and for what the others leave.
 */
SSE42 INLINE uint32_t serial(uint32_t state, const uint8_t *p, size_t n)
{
	uint64_t wide = state;

	for (; n >= 8; p += 8, n -= 8)
		wide = _mm_crc32_u64(wide, load64(p));
	state = (uint32_t)wide;
	if (n & 4) {
		uint32_t v;

		memcpy(&v, p, sizeof(v));
		state = _mm_crc32_u32(state, v);
		p += 4;
	}
	if (n & 2) {
		uint16_t v;

		memcpy(&v, p, sizeof(v));
		state = _mm_crc32_u16(state, v);
		p += 2;
	}
	if (n & 1)
		state = _mm_crc32_u8(state, *p);
	return state;
}

/* ---- sse42 ---- */

/* Bytes of each of the three streams, and x^(8*bytes - 33), x^(16*bytes - 33): the missing 33 come
 * from the reflected product and from the crc32 instruction that reduces it. */
#define LONG_STREAM  1024
#define LONG_BY_ONE  0x170076fa
#define LONG_BY_TWO  0xa51b6135
#define SHORT_STREAM 128
#define SHORT_BY_ONE 0xd3b6092
#define SHORT_BY_TWO 0xb9e02b86

SSE42 INLINE uint64_t advance(uint64_t state, uint32_t by)
{
	__m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)(uint32_t)state),
					       _mm_cvtsi32_si128((int)by), 0);

	return (uint64_t)_mm_cvtsi128_si64(product);
}

/* Three streams of `stream` bytes each. */
SSE42 INLINE uint32_t triple(uint32_t state, const uint8_t *p, size_t stream, uint32_t by_one,
			     uint32_t by_two)
{
	uint64_t a = state, b = 0, c = 0;

	for (size_t i = 0; i < stream; i += 8) {
		a = _mm_crc32_u64(a, load64(p + i));
		b = _mm_crc32_u64(b, load64(p + stream + i));
		c = _mm_crc32_u64(c, load64(p + 2 * stream + i));
	}
	return (uint32_t)(c ^ _mm_crc32_u64(0, advance(a, by_two) ^ advance(b, by_one)));
}

SSE42 INLINE uint32_t sse42(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t n, bool copy)
{
	uint32_t state = ~crc;

	/* A copied piece is checksummed where it went, while it is in the first-level cache. */
	while (n >= 3 * LONG_STREAM) {
		const uint8_t *p = copy ? memcpy(dst, src, 3 * LONG_STREAM) : src;

		state = triple(state, p, LONG_STREAM, LONG_BY_ONE, LONG_BY_TWO);
		dst += copy ? 3 * LONG_STREAM : 0;
		src += 3 * LONG_STREAM;
		n -= 3 * LONG_STREAM;
	}
	if (copy)
		src = memcpy(dst, src, n);
	for (; n >= 3 * SHORT_STREAM; src += 3 * SHORT_STREAM, n -= 3 * SHORT_STREAM)
		state = triple(state, src, SHORT_STREAM, SHORT_BY_ONE, SHORT_BY_TWO);
	return ~serial(state, src, n);
}

SSE42 static uint32_t sse42_crc(uint32_t crc, const void *p, size_t n)
{
	return sse42(crc, NULL, p, n, false);
}

SSE42 static uint32_t sse42_copy(uint32_t crc, void *dst, const void *src, size_t n)
{
	return sse42(crc, dst, src, n, true);
}

static bool sse42_usable(void)
{
	return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

const struct bw_checksum_candidate bw_crc32c_sse42 = {
	.usable = sse42_usable,
	.impl = {.name = "sse42", .crc = sse42_crc, .copy = sse42_copy},
};

/* ---- avx512 ---- */

#define FOLD_MIN 128 /* bytes; below, one stream of crc32 instructions is as fast */

/* To fold 128 bits over a distance of d bits: the low half times x^(d+32), the high half times
 * x^(d-32), reflected and shifted left by one since a product of reflected numbers is one bit
 * short. */
#define FOLD_2048_LOW  0xdcb17aa4
#define FOLD_2048_HIGH 0xb9e02b86
#define FOLD_512_LOW   0x740eef02
#define FOLD_512_HIGH  0x9e4addf8
#define FOLD_384_LOW   0x1c291d04
#define FOLD_384_HIGH  0x1d82c63da
#define FOLD_256_LOW   0x1384aa63a
#define FOLD_256_HIGH  0xba4fc28e
#define FOLD_128_LOW   0xf20c0dfe
#define FOLD_128_HIGH  0x14cd00bd6

AVX512 INLINE __m512i fold(__m512i x, __m512i by, __m512i next)
{
	__m512i low = _mm512_clmulepi64_epi128(x, by, 0x00);
	__m512i high = _mm512_clmulepi64_epi128(x, by, 0x11);

	return _mm512_ternarylogic_epi64(low, high, next, 0x96); /* exclusive or of all three */
}

AVX512 INLINE __m512i take(uint8_t *dst, const uint8_t *src, size_t at, bool copy)
{
	__m512i x = _mm512_loadu_si512(src + at);

	if (copy)
		_mm512_storeu_si512(dst + at, x);
	return x;
}

/* The four 128-bit lanes to one, and that to 32 bits. */
AVX512 INLINE uint32_t reduce(__m512i x)
{
	const __m512i by = _mm512_set_epi64(0, 0, FOLD_128_HIGH, FOLD_128_LOW, FOLD_256_HIGH,
					    FOLD_256_LOW, FOLD_384_HIGH, FOLD_384_LOW);
	__m512i last = _mm512_maskz_mov_epi64(0xC0, x); /* the last lane stays as it is */
	__m512i sum = fold(x, by, last);
	__m256i half =
		_mm256_xor_si256(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
	__m128i one =
		_mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
	uint64_t state = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(one));

	return (uint32_t)_mm_crc32_u64(state, (uint64_t)_mm_extract_epi64(one, 1));
}

AVX512 INLINE uint32_t avx512(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t n, bool copy)
{
	const __m512i by512 = _mm512_broadcast_i32x4(_mm_set_epi64x(FOLD_512_HIGH, FOLD_512_LOW));
	const __m512i by2048 =
		_mm512_broadcast_i32x4(_mm_set_epi64x(FOLD_2048_HIGH, FOLD_2048_LOW));
	uint32_t state = ~crc;
	size_t at = 64;

	if (n < FOLD_MIN) {
		if (copy)
			src = memcpy(dst, src, n);
		return ~serial(state, src, n);
	}

	__m512i a = take(dst, src, 0, copy);

	a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)state)));
	if (n >= 512) {
		__m512i b = take(dst, src, 64, copy);
		__m512i c = take(dst, src, 128, copy);
		__m512i d = take(dst, src, 192, copy);

		for (at = 256; at + 256 <= n; at += 256) {
			a = fold(a, by2048, take(dst, src, at, copy));
			b = fold(b, by2048, take(dst, src, at + 64, copy));
			c = fold(c, by2048, take(dst, src, at + 128, copy));
			d = fold(d, by2048, take(dst, src, at + 192, copy));
		}
		a = fold(fold(fold(a, by512, b), by512, c), by512, d);
	}
	for (; at + 64 <= n; at += 64)
		a = fold(a, by512, take(dst, src, at, copy));
	state = reduce(a);
	if (copy)
		memcpy(dst + at, src + at, n - at);
	return ~serial(state, (copy ? dst : src) + at, n - at);
}

AVX512 static uint32_t avx512_crc(uint32_t crc, const void *p, size_t n)
{
	return avx512(crc, NULL, p, n, false);
}

AVX512 static uint32_t avx512_copy(uint32_t crc, void *dst, const void *src, size_t n)
{
	return avx512(crc, dst, src, n, true);
}

static bool avx512_usable(void)
{
	return sse42_usable() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
	       __builtin_cpu_supports("vpclmulqdq");
}

const struct bw_checksum_candidate bw_crc32c_avx512 = {
	.usable = avx512_usable,
	.impl = {.name = "avx512", .crc = avx512_crc, .copy = avx512_copy},
};

#endif
