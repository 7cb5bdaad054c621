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

/* At the end of a chunk. */
struct bw_rest {
	struct bw_rest *next;
	uint64_t bytes;
};

/* The current chunk is used up but for this. */
static void bw_arena_leave_rest(struct bw_arena *a)
{
	size_t bytes = (size_t)(a->end - a->at);
	struct bw_rest *rest = (struct bw_rest *)a->at;

	if (bytes < sizeof(*rest))
		return;
	rest->next = a->rests;
	rest->bytes = bytes;
	a->rests = rest;
}

void *bw_arena_take(struct bw_arena *a, uint32_t bytes)
{
	void *mem;

	if ((size_t)(a->end - a->at) < bytes) {
		if (!a->chunks || bytes > BW_GROW_BYTES)
			return NULL;
		bw_arena_leave_rest(a);
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
	s->no = a->slabs++;
	s->unsorted = NULL;
	bw_list_init(&s->piles);
}

static void *bw_chain_take(void **first)
{
	void *obj = *first;

	*first = *(void **)obj;
	return obj;
}

static void bw_chain_add(void **first, void *obj)
{
	*(void **)obj = *first;
	*first = obj;
}

/* One of a piece that has others free already. */
static void *bw_pile_take(struct bw_slab *s)
{
	struct bw_pile *pile = bw_first(&s->piles, struct bw_pile, list);
	struct bw_grown *piece = bw_entry(pile - s->no, struct bw_grown, pile);
	void *obj = bw_chain_take(&pile->free);

	piece->free -= s->size;
	if (!pile->free)
		bw_list_del(&pile->list);
	return obj;
}

/* Whatever was free lies in piles, or is to lie there. */
static BW_APART void *bw_slab_alloc_sorted(struct bw_slab *s)
{
	if (s->unsorted)
		return bw_chain_take(&s->unsorted);
	if (!bw_list_empty(&s->piles))
		return bw_pile_take(s);
	return bw_arena_take(s->arena, s->size);
}

void *bw_slab_alloc(struct bw_slab *s)
{
	void *obj = s->free;

	if (BW_LIKELY(obj))
		s->free = *(void **)obj;
	else
		obj = bw_slab_alloc_sorted(s);
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

/* The piece in which something lies; NULL: none of these. */
static struct bw_grown *bw_grown_with(struct bw_grown *const *pieces, uint32_t n, const void *at)
{
	uint32_t low = 0, high = n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if ((uintptr_t)pieces[mid] <= (uintptr_t)at)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || (uintptr_t)at - (uintptr_t)(pieces[low - 1] + 1) >= BW_GROW_BYTES)
		return NULL;
	return pieces[low - 1];
}

void bw_slab_unsort(struct bw_slab *s)
{
	s->unsorted = s->free;
	s->free = NULL;
}

bool bw_slab_sort(struct bw_slab *s, struct bw_grown *const *pieces, uint32_t n,
		  struct bw_grown **piece)
{
	struct bw_pile *pile;
	void *obj;

	*piece = NULL;
	if (!s->unsorted)
		return false;
	obj = bw_chain_take(&s->unsorted);
	*piece = bw_grown_with(pieces, n, obj);
	if (!*piece) { /* it lies in what the engine began with */
		bw_chain_add(&s->free, obj);
		return true;
	}
	pile = &(*piece)->pile[s->no];
	if (!pile->free)
		bw_list_add_before(&s->piles, &pile->list);
	bw_chain_add(&pile->free, obj);
	(*piece)->free += s->size;
	return true;
}

bool bw_arena_sort(struct bw_arena *a, struct bw_grown *const *pieces, uint32_t n,
		   struct bw_grown **piece)
{
	struct bw_rest *rest = a->rests;

	*piece = NULL;
	if (!rest)
		return false;
	a->rests = rest->next;
	*piece = bw_grown_with(pieces, n, rest);
	if (*piece)
		(*piece)->free += (uint32_t)rest->bytes;
	return true;
}

/* Of a piece in which nothing lies so much may be missing, as too little to be noted. */
#define BW_GROWN_LOST (sizeof(struct bw_rest) - 1)

bool bw_grown_empty(const struct bw_grown *piece)
{
	return piece->free + BW_GROWN_LOST >= BW_GROW_BYTES;
}

void bw_grown_leave(struct bw_grown *piece)
{
	uint32_t i;

	for (i = 0; i < BW_SLABS; i++) {
		if (piece->pile[i].free)
			bw_list_del(&piece->pile[i].list);
	}
}

bool bw_slab_roomy(const struct bw_slab *s)
{
	const struct bw_arena *a = s->arena;

	return s->free || s->unsorted || !bw_list_empty(&s->piles) || a->chunks ||
	       (size_t)(a->end - a->at) >= s->size;
}

_Static_assert(BW_HANDLE_INDEX + 1u == 1u << BW_HANDLE_BITS, "slots have so many bits");

void bw_table_init(struct bw_table *t, struct bw_arena *a, uint32_t random)
{
	memset(t, 0, sizeof(*t));
	t->arena = a;
	t->where = random % BW_TABLE_PAGES;
}

/* The i-th slot that was made. */
static struct bw_slot *bw_table_made(const struct bw_table *t, uint32_t i)
{
	return &t->page[i / BW_TABLE_PAGE ^ t->where][i % BW_TABLE_PAGE];
}

static struct bw_slot *bw_table_slot(const struct bw_table *t, uint32_t index)
{
	return &t->page[index / BW_TABLE_PAGE][index % BW_TABLE_PAGE];
}

/* Called when no slot is free. */
static bool bw_table_extend(struct bw_table *t)
{
	uint32_t i, at = t->slots / BW_TABLE_PAGE ^ t->where;
	struct bw_slot *page;

	if (t->slots == BW_TABLE_PAGE * BW_TABLE_PAGES)
		return false;
	page = bw_arena_take(t->arena, BW_TABLE_PAGE * sizeof(*page));
	if (!page)
		return false;
	t->page[at] = page;
	t->slots += BW_TABLE_PAGE;
	for (i = 0; i < BW_TABLE_PAGE; i++)
		bw_table_made(t, i)->free = at * BW_TABLE_PAGE + i;
	t->free = BW_TABLE_PAGE;
	return true;
}

/* Any of the free slots, by the high bits of the number; the low ones go into its generation. */
uint32_t bw_table_add(struct bw_table *t, void *obj, uint32_t random)
{
	struct bw_slot *from, *slot;
	uint32_t index, gen;

	if (!t->free && !bw_table_extend(t))
		return 0;
	from = bw_table_made(t, (uint32_t)((uint64_t)random * t->free >> 32));
	index = from->free;
	from->free = bw_table_made(t, --t->free)->free;
	slot = bw_table_slot(t, index);
	gen = slot->gen ? slot->gen + 1 + random % BW_HANDLE_STEP : random;
	gen %= 1u << (32 - BW_HANDLE_BITS);
	slot->gen = gen ? gen : 1;
	slot->obj = obj;
	return slot->gen << BW_HANDLE_BITS | index;
}

void *bw_table_get(const struct bw_table *t, uint32_t handle)
{
	const struct bw_slot *page = t->page[(handle & BW_HANDLE_INDEX) / BW_TABLE_PAGE];
	const struct bw_slot *slot;

	if (!page)
		return NULL;
	slot = &page[handle % BW_TABLE_PAGE];
	return slot->gen == handle >> BW_HANDLE_BITS ? slot->obj : NULL;
}

void bw_table_give(struct bw_table *t, uint32_t handle, void *obj)
{
	bw_table_slot(t, handle & BW_HANDLE_INDEX)->obj = obj;
}

void bw_table_remove(struct bw_table *t, uint32_t handle)
{
	uint32_t index = handle & BW_HANDLE_INDEX;

	bw_table_slot(t, index)->obj = NULL;
	bw_table_made(t, t->free++)->free = index;
}
