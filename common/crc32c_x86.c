/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CRC32C on x86-64 in two ways. "sse42": the crc32 instruction, in the streams of crc32c_streams.h.
 * "avx512": 256 bytes at once are folded, that is multiplied by a power of x modulo the polynomial
 * and added to the next 256.
 *
 * All constants are bit-reflected powers of x modulo the Castagnoli polynomial 0x11EDC6F41.
 */
#include "checksum_impl.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define SSE42  __attribute__((target("sse4.2,pclmul")))
#define AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,vpclmulqdq,pclmul,sse4.2")))

#define CRC_TARGET SSE42
#define crc_step8  _mm_crc32_u8
#define crc_step16 _mm_crc32_u16
#define crc_step32 _mm_crc32_u32
#define crc_step64 _mm_crc32_u64
#define crc_product(state, by)                                                                     \
	((uint64_t)_mm_cvtsi128_si64(_mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)(state)),     \
							  _mm_cvtsi32_si128((int)(by)), 0)))
typedef uint64_t crc_state; /* what the instruction leaves, with no need to clear its upper half */

#include "crc32c_streams.h"

/* ---- sse42 ---- */

SSE42 static uint32_t sse42_crc(uint32_t crc, const void *p, size_t n)
{
	return crc_streams(crc, NULL, p, n, false);
}

SSE42 static uint32_t sse42_copy(uint32_t crc, void *dst, const void *src, size_t n)
{
	return crc_streams(crc, dst, src, n, true);
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

AVX512 CRC_INLINE __m512i fold(__m512i x, __m512i by, __m512i next)
{
	__m512i low = _mm512_clmulepi64_epi128(x, by, 0x00);
	__m512i high = _mm512_clmulepi64_epi128(x, by, 0x11);

	return _mm512_ternarylogic_epi64(low, high, next, 0x96); /* exclusive or of all three */
}

AVX512 CRC_INLINE __m512i take(uint8_t *dst, const uint8_t *src, size_t at, bool copy)
{
	__m512i x = _mm512_loadu_si512(src + at);

	if (copy)
		_mm512_storeu_si512(dst + at, x);
	return x;
}

/* The four 128-bit lanes to one, and that to 32 bits. */
AVX512 CRC_INLINE uint32_t reduce(__m512i x)
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

AVX512 CRC_INLINE uint32_t avx512(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t n,
				  bool copy)
{
	const __m512i by512 = _mm512_broadcast_i32x4(_mm_set_epi64x(FOLD_512_HIGH, FOLD_512_LOW));
	const __m512i by2048 =
		_mm512_broadcast_i32x4(_mm_set_epi64x(FOLD_2048_HIGH, FOLD_2048_LOW));
	uint32_t state = ~crc;
	size_t at = 64;

	if (n < FOLD_MIN) {
		if (copy)
			src = memcpy(dst, src, n);
		return ~crc_serial(state, src, n);
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
	return ~crc_serial(state, (copy ? dst : src) + at, n - at);
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
