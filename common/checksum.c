/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Chooses how CRC32C is computed on this processor. The function pointers begin at functions that
 * choose first and then do the work, so no call has to test whether a choice was made.
 */
#include "checksum_impl.h"

#include "protocol.h"

#include <stdatomic.h>
#include <string.h>

#define COPY_CHUNK 4096 /* bytes that stay in the first-level cache between copy and checksum */

static uint32_t table_copy(uint32_t crc, void *dst, const void *src, size_t n)
{
	uint8_t *to = dst;
	const uint8_t *from = src;

	while (n > 0) {
		size_t chunk = n < COPY_CHUNK ? n : COPY_CHUNK;

		memcpy(to, from, chunk);
		crc = bw_crc32c(crc, to, chunk);
		to += chunk;
		from += chunk;
		n -= chunk;
	}
	return crc;
}

static bool table_usable(void)
{
	return true;
}

static const struct bw_checksum_candidate table = {
	.usable = table_usable,
	.impl = {.name = "table", .crc = bw_crc32c, .copy = table_copy},
};

/* Fastest first. */
static const struct bw_checksum_candidate *const candidates[] = {
#if defined(__x86_64__)
	&bw_crc32c_avx512,
	&bw_crc32c_sse42,
#elif defined(__aarch64__)
	&bw_crc32c_arm64,
#endif
	&table,
};

#define CANDIDATES (sizeof(candidates) / sizeof(candidates[0]))

const struct bw_checksum_impl *bw_checksum_impl(unsigned index)
{
	for (size_t i = 0; i < CANDIDATES; i++)
		if (candidates[i]->usable() && index-- == 0)
			return &candidates[i]->impl;
	return NULL;
}

const char *bw_checksum_name(void)
{
	return bw_checksum_impl(0)->name;
}

static uint32_t choose_crc(uint32_t crc, const void *p, size_t n);
static uint32_t choose_copy(uint32_t crc, void *dst, const void *src, size_t n);

static uint32_t (*_Atomic chosen_crc)(uint32_t, const void *, size_t) = choose_crc;
static uint32_t (*_Atomic chosen_copy)(uint32_t, void *, const void *, size_t) = choose_copy;

/* Two threads may choose at once: both store the same. */
static uint32_t choose_crc(uint32_t crc, const void *p, size_t n)
{
	const struct bw_checksum_impl *impl = bw_checksum_impl(0);

	atomic_store_explicit(&chosen_crc, impl->crc, memory_order_relaxed);
	return impl->crc(crc, p, n);
}

static uint32_t choose_copy(uint32_t crc, void *dst, const void *src, size_t n)
{
	const struct bw_checksum_impl *impl = bw_checksum_impl(0);

	atomic_store_explicit(&chosen_copy, impl->copy, memory_order_relaxed);
	return impl->copy(crc, dst, src, n);
}

uint32_t bw_checksum(uint32_t crc, const void *p, size_t n)
{
	return atomic_load_explicit(&chosen_crc, memory_order_relaxed)(crc, p, n);
}

uint32_t bw_checksum_copy(uint32_t crc, void *dst, const void *src, size_t n)
{
	if (n == 0) /* then the pointers may be NULL, which memcpy() forbids */
		return crc;
	return atomic_load_explicit(&chosen_copy, memory_order_relaxed)(crc, dst, src, n);
}
