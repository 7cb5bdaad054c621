/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What must be read and changed in the bytes of a frame. Every byte is hostile: nothing is read
 * beyond `len`, and what is not understood is left as it is.
 */
#ifndef EM_HEADERS_H
#define EM_HEADERS_H

#include <stdbool.h>
#include <stdint.h>

#define EM_TYPE_IPV4  0x0800u
#define EM_TYPE_ARP   0x0806u
#define EM_TYPE_IPV6  0x86DDu
#define EM_TYPE_VLAN  0x8100u /* [IEEE 802.1Q] */
#define EM_TYPE_QINQ  0x88A8u
#define EM_VLAN_BYTES 4u
#define EM_VLAN_TAGS  4u /* so many at most are looked behind */

/* Where the packet begins: behind addresses, VLAN tags and type. */
struct em_headers {
	uint32_t network; /* offset, at most the frame's length */
	uint16_t type;	  /* EtherType of the packet; 0: the frame is too short to have one */
};

void em_headers_read(const uint8_t *frame, uint32_t len, struct em_headers *h);

static inline uint16_t em_get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static inline void em_put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline uint32_t em_get32(const uint8_t *at)
{
	return (uint32_t)em_get16(at) << 16 | em_get16(at + 2);
}

static inline void em_put32(uint8_t *at, uint32_t value)
{
	em_put16(at, value >> 16);
	em_put16(at + 2, value);
}

/* Does the frame carry an IP packet whose sender understands marks: ECT(0), ECT(1) or CE? */
bool em_ecn_capable(const uint8_t *frame, uint32_t len);

/* Write "congestion experienced" into such a frame [RFC 3168], with IPv4's header checksum put
 * right [RFC 1624]. `len` may end anywhere behind the traffic class or the IPv4 header. */
void em_ecn_mark(uint8_t *frame, uint32_t len);

/* Invert one bit behind the Ethernet header, chosen by `flip` modulo their number. */
void em_corrupt(uint8_t *frame, uint32_t len, uint64_t flip);

/* The Internet checksum [RFC 1071] of bytes: their folded sum, not inverted. `sum` goes before. */
uint16_t em_checksum_sum(const uint8_t *bytes, uint32_t n, uint32_t sum);

/*
 * Do what a sender left to its device: sum all bytes from `start` on and store the result at
 * `start + offset`, where the sum of the pseudo header is. False if that is outside the frame.
 */
bool em_checksum_finish(uint8_t *frame, uint32_t len, uint32_t start, uint32_t offset);

#endif
