/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program (classic BPF) by which the kernel steers a frame to one socket of a fan-out group. */
#ifndef BW_STEER_H
#define BW_STEER_H

#include <linux/filter.h>
#include <stdint.h>

#define BW_STEER_MOST 200		      /* sockets of a group; the kernel allows 256 */
#define BW_STEER_CODE (5 + 5 * BW_STEER_MOST) /* instructions, at most */

struct bw_steer {
	uint16_t engine; /* frames for it */
	uint32_t to;	 /* go to the member of this number, modulo the number of members */
};

/* Write the program that steers by these n entries, which it sorts, and frames for other engines
 * and without our magic to `otherwise`. The number of instructions. */
unsigned int bw_steer_program(struct sock_filter *code, struct bw_steer *of, unsigned int n,
			      uint32_t otherwise);

/* When member `leaving` of n leaves, the kernel moves the last one to its place. This is where the
 * last one is found before and after, since the kernel takes the remainder by the number of
 * members: it is n - 1 modulo n, and `leaving`, which is less than n - 1, modulo n - 1. */
uint32_t bw_steer_moving(uint32_t n, uint32_t leaving);

#endif
