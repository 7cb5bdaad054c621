/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The packet filters (classic BPF) that decide in the kernel which frames reach an endpoint. */
#ifndef BW_FILTER_H
#define BW_FILTER_H

#include <stdint.h>

#define BW_FILTER_ALIVE 64  /* engines that a watching filter can leave out */
#define BW_FILTER_CUT	160 /* bytes from the inner header on that are kept of frames not for us */

/* What a load of 16 bits gives for this value: the wire is little-endian, such loads are
 * big-endian. */
static inline uint32_t bw_filter_swap(uint16_t value)
{
	return (uint32_t)(value & 0xFF) << 8 | (uint32_t)value >> 8;
}

/* Pass only whole frames with our magic, for this engine, sent to the interface's own address. 0 or
 * a negative errno. */
int bw_filter_own(int fd, uint16_t engine);

/* The same for a UDP socket: pass only datagrams with our magic, for this engine. What does not
 * pass takes no room in the socket's buffer; the kernel counts it among what it dropped. 0 or a
 * negative errno. */
int bw_filter_udp(int fd, uint16_t engine);

/* Pass these, and cut short: frames without our magic, and frames for other engines whose senders
 * wait for an answer, except for the n engines that are known to live. */
int bw_filter_watch(int fd, uint16_t engine, const uint16_t *alive, unsigned int n);

#endif
