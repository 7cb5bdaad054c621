/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The slow half of the buffers: size classes, and chunks that fill the free lists. */
#include "buffer.h"
#include "wire.h"

/* Bytes of data per class. The largest holds the longest eager message. */
static const uint32_t bw_buffer_room[BW_BUFFER_CLASSES] = {128,	  2048,		  8192,
							   16384, BW_EAGER_LIMIT, BW_LONG_LIMIT};
static const uint32_t bw_buffer_count[BW_BUFFER_CLASSES] = {256, 64, 32, 16, 8, 2}; /* per chunk */

struct bw_buffer_chunk {
	struct bw_buffer_chunk *next;
	uint8_t pad[56]; /* buffers begin on a cache line */
};

unsigned int bw_buffer_class(uint64_t len)
{
	unsigned int c = 0;

	while (c < BW_BUFFER_CLASSES && bw_buffer_room[c] < len)
		c++;
	return c;
}

uint32_t bw_buffer_bytes(const struct bw_buffer *b)
{
	return bw_buffer_room[b->size_class];
}

struct bw_buffer *bw_buffer_get_slow(struct bw_buffers *pool, unsigned int size_class)
{
	size_t each = (sizeof(struct bw_buffer) + bw_buffer_room[size_class] + 63) & ~(size_t)63;
	size_t bytes = sizeof(struct bw_buffer_chunk) + each * bw_buffer_count[size_class];
	struct bw_buffer_chunk *chunk;

	if (pool->bytes + bytes > BW_BUFFER_LIMIT)
		return NULL;
	chunk = bw_area_get(pool->areas, bytes);
	if (!chunk)
		return NULL;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	pool->bytes += bytes;
	for (uint32_t i = bw_buffer_count[size_class]; i--;) {
		struct bw_buffer *b = (struct bw_buffer *)((uint8_t *)(chunk + 1) + each * i);

		b->size_class = (uint8_t)size_class;
		bw_buffer_put(pool, b);
	}
	return bw_buffer_get(pool, bw_buffer_room[size_class]);
}

void bw_buffer_free_all(struct bw_buffers *pool)
{
	while (pool->chunks) {
		struct bw_buffer_chunk *chunk = pool->chunks;

		pool->chunks = chunk->next;
		bw_area_put(pool->areas, chunk);
	}
}
