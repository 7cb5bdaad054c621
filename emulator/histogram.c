/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Values below 2^EM_BOX_BITS have boxes of their own; from there on the leading EM_BOX_BITS + 1
 * bits of a value and their place say which box. */
#include "histogram.h"

static uint32_t em_box(uint64_t value)
{
	uint32_t shift;

	if (value >> EM_BOX_BITS == 0)
		return (uint32_t)value;
	shift = 63u - (uint32_t)__builtin_clzll(value) - EM_BOX_BITS;
	return ((shift + 1) << EM_BOX_BITS) +
	       (uint32_t)((value >> shift) & ((1u << EM_BOX_BITS) - 1));
}

uint64_t em_histogram_bound(uint32_t box)
{
	uint32_t shift = box >> EM_BOX_BITS;
	uint64_t low = box & ((1u << EM_BOX_BITS) - 1);

	if (!shift)
		return low;
	low += 1u << EM_BOX_BITS;
	return ((low + 1) << (shift - 1)) - 1;
}

void em_histogram_add(struct em_histogram *h, uint64_t value)
{
	h->n++;
	h->box[em_box(value)]++;
	if (value > h->max)
		h->max = value;
}

uint64_t em_histogram_quantile(const struct em_histogram *h, uint32_t per_mille)
{
	/* the rank, counted from 1, rounded up */
	uint64_t rank = (uint64_t)(((unsigned __int128)h->n * per_mille + 999) / 1000), seen = 0;
	uint32_t i;

	for (i = 0; i < EM_BOXES; i++) {
		seen += h->box[i];
		if (seen >= rank && seen) {
			uint64_t bound = em_histogram_bound(i);

			return bound < h->max ? bound : h->max;
		}
	}
	return 0;
}
