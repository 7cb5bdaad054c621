/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Speed of the checksum on data in cache: GB/s and nanoseconds per call for each implementation
 * that this processor has, with and without the copy. Prints figures; it cannot fail and is no
 * test.
 */
#include "checksum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUND_BYTES (64ull << 20) /* bytes checksummed per figure */
#define ROUNDS	    7		  /* the best of so many is printed */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static double round_ns(const struct bw_checksum_impl *impl, uint8_t *dst, const uint8_t *src,
		       size_t n)
{
	size_t calls = ROUND_BYTES / (n + 64);
	uint32_t crc = 0;
	uint64_t begin = now_ns();

	for (size_t i = 0; i < calls; i++)
		crc = dst ? impl->copy(crc, dst, src, n) : impl->crc(crc, src, n);

	double spent = (double)(now_ns() - begin) / (double)calls;
	volatile uint32_t keep = crc;

	(void)keep;
	return spent;
}

static void figure(const struct bw_checksum_impl *impl, uint8_t *dst, const uint8_t *src, size_t n)
{
	double best = 1e18;

	for (int i = 0; i < ROUNDS; i++) {
		double ns = round_ns(impl, dst, src, n);

		best = ns < best ? ns : best;
	}
	printf("%-8s %-10s %6zu bytes %9.1f ns %7.2f GB/s\n", impl->name, dst ? "copy+crc" : "crc",
	       n, best, (double)n / best);
}

int main(void)
{
	static const size_t sizes[] = {32, 64, 100, 256, 1460, 4096, 8968, 65536};
	uint8_t *src = aligned_alloc(64, 1 << 17), *dst = aligned_alloc(64, 1 << 17);
	const struct bw_checksum_impl *impl;

	if (!src || !dst)
		return 1;
	for (size_t i = 0; i < 1 << 17; i++)
		src[i] = (uint8_t)(i * 31);
	memset(dst, 0, 1 << 17);
	for (unsigned i = 0; (impl = bw_checksum_impl(i)); i++)
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			/* Payload follows a header: 8-aligned, but on no cache line's start. */
			figure(impl, NULL, src + 104, sizes[s]);
			figure(impl, dst + 40, src + 104, sizes[s]);
		}
	free(src);
	free(dst);
	return 0;
}
