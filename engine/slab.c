/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pools and handle tables; see slab.h. */
#include "slab.h"

void bw_arena_add(struct bw_arena *a, void *mem, size_t bytes)
{
	if (bytes != BW_GROW_BYTES) { /* the first, odd-sized piece becomes the current chunk */
		a->at = mem;
		a->end = a->at + bytes;
		return;
	}
	*(void **)mem = a->chunks;
	a->chunks = mem;
	a->spare++;
}

void *bw_arena_take(struct bw_arena *a, uint32_t bytes)
{
	void *mem;

	if ((size_t)(a->end - a->at) < bytes) {
		if (!a->chunks || bytes > BW_GROW_BYTES)
			return NULL;
		mem = a->chunks;
		a->chunks = *(void **)mem;
		a->spare--;
		a->at = mem;
		a->end = a->at + BW_GROW_BYTES;
	}
	mem = a->at;
	a->at += bytes;
	memset(mem, 0, bytes);
	return mem;
}

bool bw_arena_low(const struct bw_arena *a)
{
	return !a->spare && a->end - a->at < BW_GROW_BYTES / 2;
}

void bw_slab_init(struct bw_slab *s, struct bw_arena *a, uint32_t size)
{
	s->arena = a;
	s->free = NULL;
	s->size = (size + 7) & ~7u;
	s->in_use = 0;
}

void *bw_slab_alloc(struct bw_slab *s)
{
	void *obj = s->free;

	if (BW_LIKELY(obj))
		s->free = *(void **)obj;
	else
		obj = bw_arena_take(s->arena, s->size);
	if (obj)
		s->in_use++;
	return obj;
}

void bw_slab_free(struct bw_slab *s, void *obj)
{
	*(void **)obj = s->free;
	s->free = obj;
	s->in_use--;
}

void bw_table_init(struct bw_table *t, struct bw_arena *a)
{
	memset(t, 0, sizeof(*t));
	t->arena = a;
}

static struct bw_slot *bw_table_slot(const struct bw_table *t, uint32_t index)
{
	return &t->page[index / BW_TABLE_PAGE][index % BW_TABLE_PAGE];
}

static bool bw_table_extend(struct bw_table *t)
{
	struct bw_slot *page;
	uint32_t i;

	if (t->slots == BW_TABLE_PAGE * BW_TABLE_PAGES)
		return false;
	page = bw_arena_take(t->arena, BW_TABLE_PAGE * sizeof(*page));
	if (!page)
		return false;
	t->page[t->slots / BW_TABLE_PAGE] = page;
	for (i = BW_TABLE_PAGE; i-- > 0;) {
		page[i].gen = 1;
		page[i].next = t->free;
		t->free = t->slots + i + 1;
	}
	t->slots += BW_TABLE_PAGE;
	return true;
}

uint32_t bw_table_add(struct bw_table *t, void *obj)
{
	struct bw_slot *slot;
	uint32_t index;

	if (!t->free && !bw_table_extend(t))
		return 0;
	index = t->free - 1;
	slot = bw_table_slot(t, index);
	t->free = slot->next;
	slot->obj = obj;
	return slot->gen << 20 | index;
}

void *bw_table_get(const struct bw_table *t, uint32_t handle)
{
	uint32_t index = handle & BW_HANDLE_INDEX;
	struct bw_slot *slot;

	if (index >= t->slots)
		return NULL;
	slot = bw_table_slot(t, index);
	return slot->gen == handle >> 20 ? slot->obj : NULL;
}

void bw_table_remove(struct bw_table *t, uint32_t handle)
{
	uint32_t index = handle & BW_HANDLE_INDEX;
	struct bw_slot *slot = bw_table_slot(t, index);

	slot->obj = NULL;
	slot->gen = slot->gen == 0xFFF ? 1 : slot->gen + 1;
	slot->next = t->free;
	t->free = index + 1;
}
