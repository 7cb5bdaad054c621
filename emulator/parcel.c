/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Buffers by size: a freed one is kept for the next frame of its class. */
#include "parcel.h"

#include <stdlib.h>
#include <string.h>

void em_pool_open(struct em_pool *p)
{
	memset(p, 0, sizeof(*p));
	p->limit = EM_POOL_BYTES;
}

void em_pool_close(struct em_pool *p)
{
	uint32_t i;

	for (i = 0; i < EM_POOL_CLASSES; i++) {
		while (p->free[i]) {
			struct em_buffer *b = p->free[i];

			p->free[i] = b->next;
			free(b);
		}
	}
}

struct em_buffer *em_buffer_get(struct em_pool *p, uint32_t len)
{
	uint64_t need = sizeof(struct em_buffer) + (uint64_t)len;
	struct em_buffer *b;
	uint32_t class = 0;

	while (class < EM_POOL_CLASSES && (uint64_t)EM_POOL_LEAST << class < need)
		class ++;
	if (class == EM_POOL_CLASSES || p->used + (EM_POOL_LEAST << class) > p->limit)
		return NULL;
	b = p->free[class];
	if (b)
		p->free[class] = b->next;
	else
		b = malloc((size_t)EM_POOL_LEAST << class);
	if (!b)
		return NULL;
	p->used += EM_POOL_LEAST << class;
	b->class = class;
	b->refs = 1;
	b->len = len;
	return b;
}

void em_buffer_put(struct em_pool *p, struct em_buffer *b)
{
	if (--b->refs)
		return;
	p->used -= EM_POOL_LEAST << b->class;
	b->next = p->free[b->class];
	p->free[b->class] = b;
}
