/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How much of an Ethernet's time a frame takes [IEEE 802.3, clause 4]: its bytes from the first
 * address to the end of the data, padded to 60; the frame check sequence; and what is on the wire
 * between frames: preamble, start of frame, gap.
 */
#ifndef EM_ETHERNET_H
#define EM_ETHERNET_H

#include <stdint.h>

#define EM_WIRE_HEADER	 14u /* bytes: two addresses and the type */
#define EM_WIRE_LEAST	 60u /* bytes of a frame without its check sequence */
#define EM_WIRE_CHECK	 4u
#define EM_WIRE_PREAMBLE 8u /* with the start of frame delimiter */
#define EM_WIRE_GAP	 12u
#define EM_WIRE_OVERHEAD (EM_WIRE_PREAMBLE + EM_WIRE_CHECK + EM_WIRE_GAP)

/* `bytes`: the frame from its first address on, without check sequence. */
static inline uint32_t em_wire_bytes(uint32_t bytes)
{
	return (bytes < EM_WIRE_LEAST ? EM_WIRE_LEAST : bytes) + EM_WIRE_OVERHEAD;
}

#endif
