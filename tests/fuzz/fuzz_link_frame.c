/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any frame against what the link emulator does with bytes: taking super-frames apart, marking,
 * corrupting, finishing checksums. Nothing is read or written outside of the frame; segments are
 * the whole; a mark changes two bits and keeps the header's sum; corruption changes one bit.
 */
#include <stdlib.h>

#include "fuzz.h"
#include "headers.h"
#include "segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t bits_changed(const uint8_t *a, const uint8_t *b, uint32_t len)
{
	uint32_t n = 0, i;

	for (i = 0; i < len; i++)
		n += (uint32_t)__builtin_popcount(a[i] ^ b[i]);
	return n;
}

static uint8_t *copy_of(const uint8_t *frame, uint32_t len)
{
	uint8_t *copy = malloc(len + !len);

	memcpy(copy, frame, len);
	return copy;
}

static void cut(const uint8_t *frame, uint32_t len, const struct virtio_net_hdr *vnet)
{
	uint8_t *head = malloc(EM_HEAD_MAX);
	struct virtio_net_hdr v;
	struct em_super s;
	uint32_t i, n, sum = 0;

	em_super_read(&s, frame, len, vnet);
	if (!s.count)
		fuzz_bad("a frame of no segments");
	for (i = 0; i < s.count; i++)
		sum += em_super_bytes(&s, len, i) - s.payload;
	if (sum != len - s.payload)
		fuzz_bad("segments that are not the whole");
	for (i = 0; s.count > 1 && i < s.count; i += n) {
		n = 1 + i % 3;
		n = n < s.count - i ? n : s.count - i;
		em_super_head(&s, frame, len, i, n, head, &v);
		if (v.csum_start + v.csum_offset + 2u > s.payload)
			fuzz_bad("a checksum outside of the headers");
		em_ecn_mark(head, s.payload);
	}
	free(head);
}

static void mark(const uint8_t *frame, uint32_t len)
{
	uint8_t *marked = copy_of(frame, len);
	struct em_headers h;
	uint32_t n;

	em_headers_read(frame, len, &h);
	if (h.network > len)
		fuzz_bad("a packet outside of the frame");
	em_ecn_mark(marked, len);
	n = bits_changed(frame, marked, len);
	if (!em_ecn_capable(frame, len) && n)
		fuzz_bad("a mark on a frame that cannot have one");
	if (em_ecn_capable(frame, len) && h.type == EM_TYPE_IPV4) {
		/* 0 and 0xFFFF are the same sum */
		uint32_t before = em_checksum_sum(frame + h.network, 20, 0) % 0xFFFF;

		if (em_checksum_sum(marked + h.network, 20, 0) % 0xFFFF != before)
			fuzz_bad("a mark that breaks the header's checksum");
	}
	free(marked);
}

static void corrupt(const uint8_t *frame, uint32_t len, uint64_t flip)
{
	uint8_t *wrong = copy_of(frame, len);
	struct em_headers h;

	em_headers_read(frame, len, &h);
	em_corrupt(wrong, len, flip);
	if (bits_changed(frame, wrong, len) != (h.network < len))
		fuzz_bad("another number of wrong bits than one");
	if (memcmp(frame, wrong, h.network))
		fuzz_bad("a wrong bit in the Ethernet header");
	free(wrong);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	struct virtio_net_hdr vnet = {.flags = fuzz_u8(&in) & VIRTIO_NET_HDR_F_NEEDS_CSUM,
				      .gso_type = fuzz_u8(&in)};
	uint8_t *frame;
	uint64_t flip;
	uint32_t len = UINT32_MAX;
	const uint8_t *bytes;

	vnet.gso_size = fuzz_u16(&in) % 2048;
	vnet.csum_start = fuzz_u16(&in) % 256;
	vnet.csum_offset = fuzz_u8(&in);
	flip = (uint64_t)fuzz_u16(&in) << 16 | fuzz_u16(&in);
	bytes = fuzz_bytes(&in, &len);
	frame = copy_of(bytes, len);
	cut(frame, len, &vnet);
	mark(frame, len);
	corrupt(frame, len, flip);
	em_checksum_finish(frame, len, vnet.csum_start, vnet.csum_offset);
	free(frame);
	return 0;
}
