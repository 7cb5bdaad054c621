/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory for messages (see load_buffers.h): rings of free blocks of powers of two. New blocks are
 * not touched: a long one would stop the sender for longer than a message takes.
 */
#include "load_buffers.h"

#include "common.h"

#include <stdlib.h>

#define CLASSES 32

struct block {
	struct block *next;
};

static struct block *free_blocks[CLASSES];

/* The power of two that holds @bytes, at least a line of the cache. */
static unsigned int class_of(size_t bytes)
{
	unsigned int class = 6;

	while ((size_t)1 << class < bytes)
		class ++;
	return class;
}

void *buffer_take(size_t bytes)
{
	const size_t page_bytes = 4096;
	unsigned int class = class_of(bytes);
	size_t room = (size_t)1 << class;
	struct block *block = free_blocks[class];

	if (block) {
		free_blocks[class] = block->next;
		return block;
	}
	block = aligned_alloc(room < page_bytes ? room : page_bytes, room);
	if (!block)
		ex_abort("no memory for a message of %zu bytes", bytes);
	return block;
}

void buffer_return(void *buffer, size_t bytes)
{
	unsigned int class = class_of(bytes);
	struct block *block = buffer;

	block->next = free_blocks[class];
	free_blocks[class] = block;
}
