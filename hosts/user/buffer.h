/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Buffers: what the engine's cookies point to. A buffer either owns its bytes (copies of short
 * messages being sent, long messages being assembled) or describes the program's own memory while
 * an operation uses it. They come from free lists per size, filled in chunks and kept until close.
 */
#ifndef BW_BUFFER_H
#define BW_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "area.h"

#define BW_BUFFER_CLASSES 6
#define BW_BUFFER_LIMIT	  (1ull << 30) /* bytes of all chunks of one endpoint */

enum bw_buffer_use {
	BW_BUFFER_COPY = 1, /* eager message being sent: SENT */
	BW_BUFFER_ENDED,    /* the same, over the engine: acknowledged, one before it is not */
	BW_BUFFER_ARRIVING, /* message being assembled: buf_get/buf_put */
	BW_BUFFER_PLACED,   /* program's memory that an arriving message fills: buf_for/buf_put */
	BW_BUFFER_EXPOSED,  /* program's memory, or a copy, that a peer pulls: REGION_DONE */
	BW_BUFFER_PULLING,  /* program's memory that a pull fills: PULLED */
	BW_BUFFER_MEMORY,   /* all memory: offsets are addresses (served reads) */
};

struct bw_transport;

struct bw_buffer {
	uint8_t *data;		       /* first byte; for BW_BUFFER_MEMORY NULL */
	void *op;		       /* the program's; NULL: it wants no completion */
	struct bw_buffer *next, *prev; /* free list, the endpoint's list of what can be canceled,
					* or (`next`) the peer's of eager messages in their order */
	uint64_t len;		       /* bytes in use */
	union {
		uint64_t key; /* by the engine: of EXPOSED the region's, of PULLING the pull's id */
		int status;   /* ENDED: 0 or a negative errno */
		bool next_in_flow; /* ARRIVING: no message before it was missing as it began */
	};
	const struct bw_transport *by; /* EXPOSED, PULLING: the way that it goes */
	uint32_t peer;		       /* number of the peer */
	uint8_t use;		       /* enum bw_buffer_use */
	uint8_t size_class;
	bool notify; /* call the handler at the end */
	bool owned;  /* data is a copy of its own (copies.h) */
};

_Static_assert(sizeof(struct bw_buffer) == 64, "a buffer's bytes begin on a cache line");

struct bw_buffer_chunk;

struct bw_buffers {
	struct bw_buffer *free[BW_BUFFER_CLASSES];
	struct bw_buffer_chunk *chunks;
	struct bw_areas *areas; /* what chunks are made of */
	uint64_t bytes;		/* of all chunks */
};

/* A buffer with room for len bytes (0: only the description), NULL without memory or beyond
 * BW_BUFFER_LIMIT, or if len is above BW_LONG_LIMIT. */
struct bw_buffer *bw_buffer_get_slow(struct bw_buffers *pool, unsigned int size_class);
unsigned int bw_buffer_class(uint64_t len);
/* Bytes that it has room for. */
uint32_t bw_buffer_bytes(const struct bw_buffer *b);
void bw_buffer_free_all(struct bw_buffers *pool);

static inline struct bw_buffer *bw_buffer_get(struct bw_buffers *pool, uint64_t len)
{
	unsigned int c = len <= 128 ? 0 : bw_buffer_class(len);
	struct bw_buffer *b;

	if (c >= BW_BUFFER_CLASSES)
		return NULL;
	b = pool->free[c];
	if (!b)
		return bw_buffer_get_slow(pool, c);
	pool->free[c] = b->next;
	return b;
}

/* A description of the program's memory. */
static inline struct bw_buffer *bw_buffer_describe(struct bw_buffers *pool, void *data,
						   uint64_t len)
{
	struct bw_buffer *b = bw_buffer_get(pool, 0);

	if (b) {
		b->data = data;
		b->len = len;
		b->owned = false;
	}
	return b;
}

static inline void bw_buffer_put(struct bw_buffers *pool, struct bw_buffer *b)
{
	b->data = (uint8_t *)(b + 1);
	b->next = pool->free[b->size_class];
	pool->free[b->size_class] = b;
}

static inline void bw_buffer_link(struct bw_buffer **list, struct bw_buffer *b)
{
	b->prev = NULL;
	b->next = *list;
	if (b->next)
		b->next->prev = b;
	*list = b;
}

static inline void bw_buffer_unlink(struct bw_buffer **list, struct bw_buffer *b)
{
	if (b->prev)
		b->prev->next = b->next;
	else
		*list = b->next;
	if (b->next)
		b->next->prev = b->prev;
}

static inline struct bw_buffer *bw_buffer_of(uint64_t cookie)
{
	return (struct bw_buffer *)(uintptr_t)cookie;
}

static inline uint64_t bw_buffer_cookie(const struct bw_buffer *b)
{
	return (uint64_t)(uintptr_t)b;
}

/* Address of an offset; an integer sum, since BW_BUFFER_MEMORY begins at address 0. */
static inline void *bw_buffer_at(const struct bw_buffer *b, uint64_t off)
{
	return (void *)((uintptr_t)b->data + (uintptr_t)off);
}

#endif
