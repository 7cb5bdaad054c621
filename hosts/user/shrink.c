/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that the engine grows by, mostly for what others send, and that goes when the engine needs
 * it no more. A look at all of it takes 0.2 us for each free object, with the endpoint's lock: half
 * a second for 256 MiB of small ones. So it is made in steps, each with the chores, and begun when
 * twice as much is free as after the last one: then it brings something, or comes later still.
 */
#include <stdlib.h>
#include <string.h>

#include "ep.h"
#include "keyed.h"
#include "slab.h"

#define BW_SHRINK_LEAST (4ull << 20) /* bytes; less is not worth it */
#define BW_SHRINK_STEP	96	     /* free objects at most: some 30 us */
#define BW_SHRINK_PIECE 32	     /* what giving back a piece counts for: some 10 us */

#define BW_GROWN_BYTES (sizeof(struct bw_grown) + BW_GROW_BYTES)

/* Where in the order of addresses a piece is, or is to be. */
static uint32_t bw_grown_place(const struct bw_ep *ep, const struct bw_grown *piece)
{
	uint32_t low = 0, high = ep->pieces;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if ((uintptr_t)ep->grown[mid] < (uintptr_t)piece)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool bw_grown_room(struct bw_ep *ep)
{
	uint32_t room = ep->pieces_room ? 2 * ep->pieces_room : 64;
	struct bw_grown **grown;

	if (ep->pieces < ep->pieces_room)
		return true;
	grown = realloc(ep->grown, room * sizeof(*grown));
	if (!grown)
		return false;
	ep->grown = grown;
	ep->pieces_room = room;
	return true;
}

void *bw_grown_add(struct bw_ep *ep)
{
	struct bw_grown *piece = NULL;
	uint32_t at;

	if (bw_grown_room(ep))
		piece = bw_area_get_alone(&ep->home.areas, BW_GROWN_BYTES);
	if (!piece)
		return NULL;
	memset(piece, 0, sizeof(*piece));
	at = bw_grown_place(ep, piece);
	memmove(&ep->grown[at + 1], &ep->grown[at], (ep->pieces - at) * sizeof(*ep->grown));
	ep->grown[at] = piece;
	ep->pieces++;
	ep->grown_bytes += BW_GROW_BYTES;
	return piece + 1;
}

static void bw_grown_free(struct bw_ep *ep, struct bw_grown *piece)
{
	if (ep->keyed)
		bw_wipe(piece, BW_GROWN_BYTES);
	bw_area_put_alone(&ep->home.areas, piece, BW_GROWN_BYTES);
}

void bw_grown_free_all(struct bw_ep *ep)
{
	while (ep->pieces)
		bw_grown_free(ep, ep->grown[--ep->pieces]);
	free(ep->grown);
}

/* The engine has given it back. */
static void bw_grown_gone(struct bw_ep *ep, struct bw_grown *piece)
{
	uint32_t at = bw_grown_place(ep, piece);

	ep->pieces--;
	memmove(&ep->grown[at], &ep->grown[at + 1], (ep->pieces - at) * sizeof(*ep->grown));
	ep->grown_bytes -= BW_GROW_BYTES;
	bw_grown_free(ep, piece);
}

static uint64_t bw_shrink_free(const struct bw_ep *ep)
{
	uint64_t used = bw_reliable_used(ep->engine);

	return ep->grown_bytes > used ? ep->grown_bytes - used : 0;
}

/* Is a look to be begun? */
static bool bw_shrink_due(struct bw_ep *ep)
{
	uint64_t unused;

	/* Of areas of our own nothing can be given back. */
	if (ep->grown_bytes < BW_SHRINK_LEAST || ep->home.areas.own)
		return false;
	unused = bw_shrink_free(ep);
	if (unused < ep->shrunk_free)
		ep->shrunk_free = unused;
	return unused >= BW_SHRINK_LEAST && unused >= ep->grown_bytes / 2 &&
	       unused >= 2 * ep->shrunk_free;
}

static void bw_shrink_step(struct bw_ep *ep)
{
	uint32_t left = BW_SHRINK_STEP;
	struct bw_grown *piece;

	while ((piece = bw_reliable_shrink(ep->engine, ep->grown, ep->pieces, &left))) {
		bw_grown_gone(ep, piece);
		left -= (uint32_t)bw_min_u64(left, BW_SHRINK_PIECE);
	}
	if (!left)
		return;
	ep->shrinking = false;
	ep->shrunk_free = bw_shrink_free(ep);
}

void bw_host_shrink(struct bw_ep *ep)
{
	if (ep->dispatching)
		return;
	if (!ep->shrinking)
		ep->shrinking = bw_shrink_due(ep);
	if (ep->shrinking)
		bw_shrink_step(ep);
}
