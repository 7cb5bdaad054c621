/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The queue and the heap of parcels; see hold.h. */
#include "hold.h"

#include <stdlib.h>
#include <string.h>

#define EM_HOLD_LEAST 256u

void em_hold_open(struct em_hold *h)
{
	memset(h, 0, sizeof(*h));
}

void em_hold_close(struct em_hold *h)
{
	free(h->row);
	free(h->heap);
	em_hold_open(h);
}

static bool em_before(const struct em_parcel *a, const struct em_parcel *b)
{
	if (a->fate.due != b->fate.due)
		return a->fate.due < b->fate.due;
	return a->order < b->order;
}

static bool em_hold_grow(struct em_hold *h)
{
	uint32_t size = h->size ? 2 * h->size : EM_HOLD_LEAST, i;
	struct em_parcel *row = malloc(size * sizeof(*row));

	if (!row)
		return false;
	for (i = 0; i < h->n; i++)
		row[i] = h->row[(h->first + i) & (h->size - 1)];
	free(h->row);
	h->row = row;
	h->size = size;
	h->first = 0;
	return true;
}

static bool em_heap_add(struct em_hold *h, const struct em_parcel *p)
{
	uint32_t at = h->heap_n;

	if (at == h->heap_size) {
		uint32_t size = at ? 2 * at : EM_HOLD_LEAST;
		struct em_parcel *heap = realloc(h->heap, size * sizeof(*heap));

		if (!heap)
			return false;
		h->heap = heap;
		h->heap_size = size;
	}
	h->heap_n++;
	for (; at && em_before(p, &h->heap[(at - 1) / 2]); at = (at - 1) / 2)
		h->heap[at] = h->heap[(at - 1) / 2];
	h->heap[at] = *p;
	return true;
}

static void em_heap_take(struct em_hold *h)
{
	const struct em_parcel *last = &h->heap[--h->heap_n];
	uint32_t at = 0, child;

	for (; (child = 2 * at + 1) < h->heap_n; at = child) {
		if (child + 1 < h->heap_n && em_before(&h->heap[child + 1], &h->heap[child]))
			child++;
		if (!em_before(&h->heap[child], last))
			break;
		h->heap[at] = h->heap[child];
	}
	h->heap[at] = *last;
}

bool em_hold_add(struct em_hold *h, const struct em_parcel *p)
{
	struct em_parcel one = *p;
	uint64_t last = h->n ? h->row[(h->first + h->n - 1) & (h->size - 1)].fate.due : 0;

	one.order = h->order++;
	if (one.fate.held_back || one.fate.due < last)
		return em_heap_add(h, &one);
	if (h->n == h->size && !em_hold_grow(h))
		return false;
	h->row[(h->first + h->n++) & (h->size - 1)] = one;
	return true;
}

static bool em_hold_from_heap(const struct em_hold *h)
{
	return h->heap_n && (!h->n || em_before(&h->heap[0], &h->row[h->first]));
}

const struct em_parcel *em_hold_next(const struct em_hold *h)
{
	if (em_hold_from_heap(h))
		return &h->heap[0];
	return h->n ? &h->row[h->first] : NULL;
}

void em_hold_take(struct em_hold *h)
{
	if (em_hold_from_heap(h)) {
		em_heap_take(h);
		return;
	}
	h->first = (h->first + 1) & (h->size - 1);
	h->n--;
}
