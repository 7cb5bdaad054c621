/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames that are under way. A buffer holds the bytes of a frame or super-frame as they came; a
 * parcel is one segment of it with its fate. Parcels of one buffer share it, the last one returns
 * it to its pool. A pool and all that comes from it belong to one thread.
 */
#ifndef EM_PARCEL_H
#define EM_PARCEL_H

#include <stdint.h>

#include "model.h"
#include "segment.h"

#define EM_POOL_CLASSES 10u	     /* powers of two, from EM_POOL_LEAST on */
#define EM_POOL_LEAST	512u	     /* bytes */
#define EM_POOL_BYTES	(1ull << 30) /* that frames under way may take, by default */

struct em_buffer {
	struct em_buffer *next; /* in the pool's list while free */
	uint32_t class;
	uint32_t refs;
	uint32_t len;
	struct virtio_net_hdr vnet;
	struct em_super super;
	uint8_t bytes[];
};

struct em_parcel {
	struct em_buffer *buffer;
	struct em_fate fate;
	uint64_t order;	  /* of two that are due at once the lower one leaves first */
	uint32_t segment; /* of the buffer's super-frame */
};

struct em_pool {
	struct em_buffer *free[EM_POOL_CLASSES];
	uint64_t used, limit; /* bytes of buffers that are not free */
};

void em_pool_open(struct em_pool *p);
/* All buffers must have been put back. */
void em_pool_close(struct em_pool *p);

/* A buffer for a frame of `len` bytes (set, the rest is not) with one reference; NULL beyond the
 * limit, without memory, or if it is longer than any frame. */
struct em_buffer *em_buffer_get(struct em_pool *p, uint32_t len);
void em_buffer_put(struct em_pool *p, struct em_buffer *b);

#endif
