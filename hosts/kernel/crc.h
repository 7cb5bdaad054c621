/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CRC32C of the bytes of frames, as struct bw_host_ops asks for it. */
#ifndef BWK_CRC_H
#define BWK_CRC_H

#include <linux/types.h>

/* Continue `crc` (0 to begin) over n bytes. Any context. */
u32 bwk_crc(u32 crc, const void *p, size_t n);

#endif
