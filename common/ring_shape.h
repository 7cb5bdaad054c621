/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The receive ring of a packet socket: slots of one frame each, in blocks that are allocated. */
#ifndef BW_RING_SHAPE_H
#define BW_RING_SHAPE_H

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdint.h>

#define BW_RING_MIN	 (256u << 10) /* bytes; a smaller ring is not worth having */
#define BW_RING_DEFAULT	 (8u << 20)   /* bytes; BEOWIRE_RING says otherwise */
#define BW_RING_BLOCK	 (64u << 10)  /* bytes; at least one slot */
#define BW_RING_OVERHEAD 128	      /* bytes of a slot before the frame: header, padding */

/* Bytes of a slot for frames of an interface with this MTU. */
static inline uint64_t bw_ring_slot(uint32_t mtu)
{
	return ((uint64_t)mtu + ETH_HLEN + BW_RING_OVERHEAD + 63) & ~63ull;
}

/* The shape of a ring of at most `bytes` for frames of an interface with this MTU. */
static inline struct tpacket_req bw_ring_shape(uint32_t mtu, uint32_t bytes)
{
	struct tpacket_req r = {
		.tp_block_size = BW_RING_BLOCK,
		.tp_frame_size = (uint32_t)bw_ring_slot(mtu),
	};

	while (r.tp_block_size < r.tp_frame_size)
		r.tp_block_size *= 2;
	r.tp_block_nr = bytes / r.tp_block_size;
	r.tp_frame_nr = r.tp_block_nr * (r.tp_block_size / r.tp_frame_size);
	return r;
}

#endif
