/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The checksum of a frame, for tests that make frames or change them. */
#ifndef SEAL_H
#define SEAL_H

#include "protocol.h"

/* Of DATA it leaves the payloads out. */
static inline uint32_t seal_data_crc(const uint8_t *bytes, uint32_t end)
{
	uint32_t from = 0, at = sizeof(struct bw_hdr) + sizeof(struct bw_ackblk), crc = 0;

	while (at + sizeof(struct bw_part) <= end) {
		struct bw_part part;
		uint32_t pay;

		memcpy(&part, bytes + at, sizeof(part));
		pay = at + (uint32_t)(part.kind == BW_PART_BULK || part.kind == BW_PART_PAD
					      ? sizeof(struct bw_part_bulk)
					      : sizeof(struct bw_part_msg));
		if (pay + part.plen > end)
			break;
		crc = bw_crc32c(crc, bytes + from, pay - from);
		from = pay + part.plen;
		at = (from + 7) & ~7u;
	}
	return bw_crc32c(crc, bytes + from, end - from);
}

/* The frame's hcrc becomes what a receiver computes; nothing if it says that it is longer. */
static inline void seal_frame(uint8_t *bytes, uint32_t size)
{
	const uint32_t dgram = sizeof(struct bw_hdr) + sizeof(struct bw_dgram);
	struct bw_hdr h;
	uint32_t end;

	if (size < sizeof(h))
		return;
	memcpy(&h, bytes, sizeof(h));
	end = (uint32_t)sizeof(h) + h.len;
	if (end > size)
		return;
	h.hcrc = 0;
	memcpy(bytes, &h, sizeof(h));
	if (h.type == BW_FRAME_DGRAM && end >= dgram)
		end = dgram;
	h.hcrc = h.type == BW_FRAME_DATA ? seal_data_crc(bytes, end) : bw_crc32c(0, bytes, end);
	memcpy(bytes, &h, sizeof(h));
}

#endif
