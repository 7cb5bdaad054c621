/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sizes of messages as they are distributed: points of a cumulative distribution, straight lines
 * between them. Two points of one share are a jump; the first point's share is 0, the last one's 1.
 */
#ifndef EXAMPLES_LOAD_SIZES_H
#define EXAMPLES_LOAD_SIZES_H

#include <stddef.h>
#include <stdint.h>

#define SIZES_POINTS_MAX 256
#define SIZES_BYTES_MAX	 (64u << 20)

struct sizes {
	double share[SIZES_POINTS_MAX];	  /* of messages that are no longer than bytes; rises */
	uint64_t bytes[SIZES_POINTS_MAX]; /* 1 to SIZES_BYTES_MAX, rises */
	size_t count;
};

/*
 * Reads "SHARE:BYTES,SHARE:BYTES,..."; by ex_quit() if that is no distribution. @option is the
 * option's name for the message. Every rank must call it.
 */
void sizes_read(struct sizes *sizes, const char *option, const char *text);

/* The size that a share of @at messages, from 0 to 1, does not exceed. */
uint64_t sizes_quantile(const struct sizes *sizes, double at);

#endif
