/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CRC32C on 64-bit ARM with the crc32c instructions, in the streams of crc32c_streams.h.
 */
#include "checksum_impl.h"

#if defined(__aarch64__)

#include <arm_acle.h>
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>

#define CRC_TARGET	       __attribute__((target("+crc+crypto")))
#define crc_step8	       __crc32cb
#define crc_step16	       __crc32ch
#define crc_step32	       __crc32cw
#define crc_step64	       __crc32cd
#define crc_product(state, by) ((uint64_t)vmull_p64((poly64_t)(state), (poly64_t)(by)))
typedef uint32_t crc_state;

#include "crc32c_streams.h"

CRC_TARGET static uint32_t arm64_crc(uint32_t crc, const void *p, size_t n)
{
	return crc_streams(crc, NULL, p, n, false);
}

CRC_TARGET static uint32_t arm64_copy(uint32_t crc, void *dst, const void *src, size_t n)
{
	return crc_streams(crc, dst, src, n, true);
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
