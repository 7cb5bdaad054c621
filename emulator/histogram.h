/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A histogram of times whose boxes grow with the value: 32 of equal width for each power of two, so
 * that every value is known to 1/32. Adding costs a few instructions and no memory.
 */
#ifndef EM_HISTOGRAM_H
#define EM_HISTOGRAM_H

#include <stdint.h>

#define EM_BOX_BITS 5u /* 2^5 boxes for each power of two */
#define EM_BOXES    ((64u - EM_BOX_BITS + 1) << EM_BOX_BITS)

struct em_histogram {
	uint64_t n;
	uint64_t max;
	uint64_t box[EM_BOXES];
};

void em_histogram_add(struct em_histogram *h, uint64_t value);

/* The upper bound of the box that holds the value above which (1 - per_mille / 1000) of all lie,
 * never more than the greatest value added; 0 if there is none. */
uint64_t em_histogram_quantile(const struct em_histogram *h, uint32_t per_mille);

/* The greatest value that falls into a box. */
uint64_t em_histogram_bound(uint32_t box);

#endif
