/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Most of what is checked are headers of some dozen bytes, where the way through the kernel's
 * crypto interface costs more than the work: they go straight to the processor's instruction, which
 * needs no vector registers. Long stretches are left to the kernel's library.
 */
#include "crc.h"

#include <linux/crc32c.h>

#define BWK_CRC_SHORT 512 /* bytes; from here on the library's interleaved code is faster */

#ifdef CONFIG_X86_64
#include <asm/cpufeature.h>

static u32 bwk_crc_short(u32 crc, const u8 *p, size_t n)
{
	const u64 *q = (const u64 *)p;
	u64 c = crc;

#define BWK_CRC_WORD(i) asm("crc32q %1, %0" : "+r"(c) : "m"(q[i]))
	for (; n >= 32; n -= 32, q += 4) {
		BWK_CRC_WORD(0);
		BWK_CRC_WORD(1);
		BWK_CRC_WORD(2);
		BWK_CRC_WORD(3);
	}
	for (; n >= 8; n -= 8, q++)
		BWK_CRC_WORD(0);
	p = (const u8 *)q;
#undef BWK_CRC_WORD
	crc = (u32)c;
	for (; n; n--, p++)
		asm("crc32b %1, %0" : "+r"(crc) : "m"(*p));
	return crc;
}
#endif

u32 bwk_crc(u32 crc, const void *p, size_t n)
{
#ifdef CONFIG_X86_64
	if (n < BWK_CRC_SHORT && boot_cpu_has(X86_FEATURE_XMM4_2))
		return ~bwk_crc_short(~crc, p, n);
#endif
	return ~crc32c(~crc, p, n);
}
