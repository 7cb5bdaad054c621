/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* REFUSE frames that the host makes itself, for engines that do not exist (any more). */
#ifndef BW_REFUSE_H
#define BW_REFUSE_H

#include "wire.h"

struct bw_refuse_frame {
	struct bw_hdr hdr;
	struct bw_refuse body;
};

/* The refusal of a frame of `whole` bytes whose first `len` are at `refused`, to be read by the
 * engine that sent it. False if it must not be refused: shorter than its refusal, not ours, or one
 * that ends something itself. name: host
 * name of the refusing node, at most BW_NAME_MAX bytes; crc32c as in struct bw_host_ops. */
bool bw_refuse_build(struct bw_refuse_frame *r, const void *refused, uint32_t len, uint32_t whole,
		     uint32_t cluster, const char *name,
		     uint32_t (*crc32c)(uint32_t crc, const void *p, size_t n));

#endif
