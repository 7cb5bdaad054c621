/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers that nobody else can foresee, from the kernel's generator (getrandom(2)), many with one
 * call. Whoever learns some of them learns nothing of the others.
 */
#ifndef BW_SECRET_H
#define BW_SECRET_H

#include <stdint.h>

#define BW_SECRET_WORDS 32 /* 256 bytes: getrandom(2) gives so many whole, signals or not */

struct bw_secret {
	uint64_t word[BW_SECRET_WORDS]; /* drawn ahead; those that were given are 0 */
	uint32_t left;			/* not given yet, the first ones */
};

/* 64 random bits. `s` begins as zeroes and is the caller's, one thread at a time. The program ends
 * if the kernel has none to give: then nothing is safe. */
uint64_t bw_secret_draw(struct bw_secret *s);

#endif
