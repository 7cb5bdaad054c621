/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CRC32C at the speed of the machine: the fastest implementation that the processor offers is
 * chosen on the first call. All results are those of the engine's bw_crc32c(): `crc` is 0 to begin
 * and the previous result to continue, so that a checksum may be taken in pieces of any length.
 *
 * Every function may be called from any thread. None fails.
 */
#ifndef BW_CHECKSUM_H
#define BW_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* CRC32C of n bytes; fits bw_host_ops.crc32c. */
uint32_t bw_checksum(uint32_t crc, const void *p, size_t n);

/* Copy n bytes from src to dst (they must not overlap) and return the CRC32C of what was copied:
 * each byte of src is read from memory once, so the result describes dst even if src is shared
 * memory that somebody else changes meanwhile. */
uint32_t bw_checksum_copy(uint32_t crc, void *dst, const void *src, size_t n);

/* One way to compute the checksum. */
struct bw_checksum_impl {
	const char *name; /* "avx512", "sse42", "arm64", "table" */
	uint32_t (*crc)(uint32_t crc, const void *p, size_t n);
	uint32_t (*copy)(uint32_t crc, void *dst, const void *src, size_t n);
};

/* The implementations that this processor can run, the fastest (the one in use) first; NULL beyond
 * the last one. For tests, benchmarks and reports. */
const struct bw_checksum_impl *bw_checksum_impl(unsigned index);

/* Name of the implementation in use. */
const char *bw_checksum_name(void);

#endif
