/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that the engine grew by, mostly for what others sent, and needs no more. A look at all of
 * it takes 0.6 us for each free object, with the endpoint's lock: 0.3 s for 256 MiB of objects of
 * 512 bytes. So it is taken when twice as much is free as after the last one, and then it brings
 * something, or comes later still.
 */
#include <stdlib.h>

#include "ep.h"
#include "keyed.h"

#define BW_SHRINK_LEAST (4ull << 20) /* bytes; less is not worth it */

static int bw_shrink_order(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct bw_grown *)a)->mem;
	uintptr_t y = (uintptr_t)((const struct bw_grown *)b)->mem;

	return (x > y) - (x < y);
}

static uint32_t bw_shrink_pieces(const struct bw_ep *ep)
{
	const struct bw_chunk *chunk;
	uint32_t n = 0;

	for (chunk = ep->grown; chunk; chunk = chunk->next)
		n++;
	return n;
}

/* What the engine gave back of its pieces goes, the others are chained anew. */
static void bw_shrink_take(struct bw_ep *ep, const struct bw_grown *piece, uint32_t n)
{
	ep->grown = NULL;
	for (uint32_t i = 0; i < n; i++) {
		struct bw_chunk *chunk = (struct bw_chunk *)piece[i].mem - 1;

		if (!piece[i].gone) {
			chunk->next = ep->grown;
			ep->grown = chunk;
			continue;
		}
		if (ep->keyed)
			bw_wipe(chunk, sizeof(*chunk) + BW_GROW_BYTES);
		bw_area_put(&ep->home.areas, chunk);
		ep->grown_bytes -= BW_GROW_BYTES;
	}
}

static void bw_shrink(struct bw_ep *ep)
{
	uint32_t n = bw_shrink_pieces(ep);
	struct bw_grown *piece = calloc(n, sizeof(*piece));
	struct bw_chunk *chunk = ep->grown;

	if (!piece)
		return;
	for (uint32_t i = 0; i < n; i++, chunk = chunk->next)
		piece[i].mem = chunk + 1;
	qsort(piece, n, sizeof(*piece), bw_shrink_order);
	if (bw_reliable_shrink(ep->engine, piece, n))
		bw_shrink_take(ep, piece, n);
	free(piece);
}

static uint64_t bw_shrink_free(const struct bw_ep *ep)
{
	uint64_t used = bw_reliable_used(ep->engine);

	return ep->grown_bytes > used ? ep->grown_bytes - used : 0;
}

void bw_host_shrink(struct bw_ep *ep)
{
	uint64_t unused;

	/* Of areas of our own nothing can be given back. */
	if (ep->grown_bytes < BW_SHRINK_LEAST || ep->home.areas.own || ep->dispatching)
		return;
	unused = bw_shrink_free(ep);
	if (unused < ep->shrunk_free)
		ep->shrunk_free = unused;
	if (unused < BW_SHRINK_LEAST || unused < ep->grown_bytes / 2 ||
	    unused < 2 * ep->shrunk_free)
		return;
	bw_shrink(ep);
	ep->shrunk_free = bw_shrink_free(ep);
}
