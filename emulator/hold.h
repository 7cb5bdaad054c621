/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parcels in the order in which they leave. Nearly all come in that order already and stand in a
 * queue; those that are held back stand in a heap beside it.
 */
#ifndef EM_HOLD_H
#define EM_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "parcel.h"

struct em_hold {
	struct em_parcel *row; /* a ring of 2^n, each due not before the one in front of it */
	uint32_t first, n, size;
	struct em_parcel *heap; /* binary, the next one at its top */
	uint32_t heap_n, heap_size;
	uint64_t order;
};

void em_hold_open(struct em_hold *h);
/* What is still held is lost: the caller puts the buffers back first, by em_hold_take(). */
void em_hold_close(struct em_hold *h);

/* False without memory, and then nothing was added. */
bool em_hold_add(struct em_hold *h, const struct em_parcel *p);

/* The parcel that leaves next, NULL if there is none. Valid until the next call. */
const struct em_parcel *em_hold_next(const struct em_hold *h);

/* Take that one out. */
void em_hold_take(struct em_hold *h);

/* Can what arrives from now on leave before what is held? Only past frames that are held back. */
static inline bool em_hold_in_order(const struct em_hold *h)
{
	return h->n > 0;
}

#endif
