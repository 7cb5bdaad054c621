/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The list of checksum implementations, private to checksum.c and the crc32c_*.c files. Each
 * processor family adds its own here; usable() asks the processor at hand.
 */
#ifndef BW_CHECKSUM_IMPL_H
#define BW_CHECKSUM_IMPL_H

#include "checksum.h"

#include <stdbool.h>

struct bw_checksum_candidate {
	bool (*usable)(void);
	struct bw_checksum_impl impl;
};

#if defined(__x86_64__)
extern const struct bw_checksum_candidate bw_crc32c_avx512;
extern const struct bw_checksum_candidate bw_crc32c_sse42;
#elif defined(__aarch64__)
extern const struct bw_checksum_candidate bw_crc32c_arm64;
#endif

#endif
