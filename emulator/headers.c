/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading and changing frames; see headers.h. */
#include "headers.h"

#include <string.h>

#include "ethernet.h"

#define EM_IPV4_BYTES 20u /* at least */
#define EM_IPV6_BYTES 40u
#define EM_IPV4_CHECK 10u /* offset of the checksum */
#define EM_ECN_CE     3u

void em_headers_read(const uint8_t *frame, uint32_t len, struct em_headers *h)
{
	uint32_t tags;

	h->network = len < EM_WIRE_HEADER ? len : EM_WIRE_HEADER;
	h->type = len < EM_WIRE_HEADER ? 0 : em_get16(frame + EM_WIRE_HEADER - 2);
	for (tags = 0; tags < EM_VLAN_TAGS; tags++) {
		if (h->type != EM_TYPE_VLAN && h->type != EM_TYPE_QINQ)
			return;
		if (len - h->network < EM_VLAN_BYTES)
			return;
		h->network += EM_VLAN_BYTES;
		h->type = em_get16(frame + h->network - 2);
	}
}

/* The byte with the two bits of ECN, and their place in it; NULL if there is none. */
static const uint8_t *em_ecn_find(const uint8_t *frame, uint32_t len, uint32_t *shift,
				  struct em_headers *h)
{
	const uint8_t *packet;

	em_headers_read(frame, len, h);
	packet = frame + h->network;
	if (h->type == EM_TYPE_IPV4 && len - h->network >= EM_IPV4_BYTES && packet[0] >> 4 == 4) {
		*shift = 0;
		return packet + 1;
	}
	if (h->type == EM_TYPE_IPV6 && len - h->network >= EM_IPV6_BYTES && packet[0] >> 4 == 6) {
		*shift = 4;
		return packet + 1;
	}
	return NULL;
}

bool em_ecn_capable(const uint8_t *frame, uint32_t len)
{
	struct em_headers h;
	uint32_t shift;
	const uint8_t *at = em_ecn_find(frame, len, &shift, &h);

	return at && (*at >> shift & EM_ECN_CE);
}

void em_ecn_mark(uint8_t *frame, uint32_t len)
{
	struct em_headers h;
	uint32_t shift, sum;
	uint8_t *packet;

	if (!em_ecn_capable(frame, len) || !em_ecn_find(frame, len, &shift, &h))
		return;
	packet = frame + h.network;
	if (h.type == EM_TYPE_IPV6) {
		packet[1] |= (uint8_t)(EM_ECN_CE << shift);
		return;
	}
	/* HC' = ~(~HC + ~m + m'), equation 3 of RFC 1624, with m the header's first two bytes */
	sum = (uint16_t)~em_get16(packet + EM_IPV4_CHECK);
	sum += (uint16_t)~em_get16(packet);
	packet[1] |= EM_ECN_CE;
	sum += em_get16(packet);
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = (sum & 0xFFFF) + (sum >> 16);
	em_put16(packet + EM_IPV4_CHECK, ~sum);
}

void em_corrupt(uint8_t *frame, uint32_t len, uint64_t flip)
{
	struct em_headers h;

	em_headers_read(frame, len, &h);
	if (h.network >= len)
		return;
	flip %= (uint64_t)(len - h.network) * 8;
	frame[h.network + flip / 8] ^= (uint8_t)(1u << flip % 8);
}

uint16_t em_checksum_sum(const uint8_t *bytes, uint32_t n, uint32_t before)
{
	uint64_t sum = 0, word;
	uint8_t tail[8] = {0};

	/* the sum may be taken in the machine's own byte order and turned at the end [RFC 1071] */
	for (; n >= sizeof(word); n -= sizeof(word), bytes += sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		sum += word;
		sum += sum < word;
	}
	memcpy(tail, bytes, n);
	memcpy(&word, tail, sizeof(word));
	sum += word;
	sum += sum < word;
	sum = (sum & 0xFFFFFFFF) + (sum >> 32);
	sum = (sum & 0xFFFFFFFF) + (sum >> 32);
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = (sum & 0xFFFF) + (sum >> 16);
	tail[0] = tail[1] = 0;
	memcpy(tail, &(uint16_t){(uint16_t)sum}, 2);
	sum = em_get16(tail) + (uint64_t)before;
	while (sum >> 16)
		sum = (sum & 0xFFFF) + (sum >> 16);
	return (uint16_t)sum;
}

bool em_checksum_finish(uint8_t *frame, uint32_t len, uint32_t start, uint32_t offset)
{
	uint16_t check;

	if (start >= len || offset > len - start || len - start - offset < 2)
		return false;
	check = (uint16_t)~em_checksum_sum(frame + start, len - start, 0);
	/* 0 means "none" in UDP; both stand for the same sum */
	em_put16(frame + start + offset, check ? check : 0xFFFF);
	return true;
}
