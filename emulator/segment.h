/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Super-frames: what a sender with segmentation offload hands to its device as one frame of up to
 * 64 KiB, and what goes over a wire as many. Each of these segments has a fate of its own, so the
 * emulator takes a super-frame apart; segments that are due at the same time may be sent together
 * again. A frame of which nothing is to be cut is a super-frame of one segment.
 */
#ifndef EM_SEGMENT_H
#define EM_SEGMENT_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>

#define EM_HEAD_MAX 256u   /* bytes of headers that are understood */
#define EM_RUN_MAX  65535u /* bytes of a packet that is sent as one super-frame */

/* UDP by UDP_SEGMENT [VIRTIO 1.3, 5.1.6]; headers before Linux 6.2 do not name it. */
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

/* Offsets from the frame's first byte, in bytes. */
struct em_super {
	uint32_t network, transport, payload;
	uint32_t size;	/* payload of a segment; the last one may have less */
	uint32_t count; /* segments; 1: the frame is sent as it came */
	bool tcp;	/* else UDP */
	bool ipv6;
};

/*
 * How to take the frame apart, by what the kernel said of it in `vnet`. The result is always
 * usable: a frame that is called a super-frame and cannot be understood stays whole, and false is
 * returned.
 */
bool em_super_read(struct em_super *s, const uint8_t *frame, uint32_t len,
		   const struct virtio_net_hdr *vnet);

/* Payload bytes of `n` segments from number `first` on; first + n <= s->count. */
uint32_t em_super_piece(const struct em_super *s, uint32_t len, uint32_t first, uint32_t n);

/* Bytes of a segment as a frame, without check sequence. */
uint32_t em_super_bytes(const struct em_super *s, uint32_t len, uint32_t index);

/*
 * The headers of `n` segments from number `first` on, s->payload bytes of them, into `head`, and
 * what the kernel must know to send them behind each other into `vnet`: checksums are left to the
 * device. Only for super-frames (s->count > 1).
 */
void em_super_head(const struct em_super *s, const uint8_t *frame, uint32_t len, uint32_t first,
		   uint32_t n, uint8_t head[EM_HEAD_MAX], struct virtio_net_hdr *vnet);

#endif
