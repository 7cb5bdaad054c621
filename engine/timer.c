/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Peers by deadline, in a leftist heap (Crane 1972; Knuth, The Art of Computer Programming, vol. 3,
 * 5.2.3): the way to the right is the shortest one to a missing child, and so of log2(n + 1) peers
 * at most. Every operation follows such ways alone, so that none takes long because of what others
 * before it left undone. Deadlines mostly move later, with every frame; the heap then keeps the
 * earlier key and is set right only when that key comes up.
 */
#include "reliable.h"
#include "timer.h"

static inline uint8_t bw_heap_rank(const struct bw_peer *p)
{
	return p ? p->heap_rank : 0;
}

/* Of the children of `p` and of those above it one has changed. A rank that stays as it was changes
 * nothing above; `all`: it may have been wrong before, so that this proves nothing. */
static void bw_heap_restore(struct bw_peer *p, bool all)
{
	uint8_t rank;

	for (; p; p = p->heap_up) {
		if (bw_heap_rank(p->heap_left) < bw_heap_rank(p->heap_right)) {
			struct bw_peer *t = p->heap_left;

			p->heap_left = p->heap_right;
			p->heap_right = t;
		}
		rank = bw_heap_rank(p->heap_right) + 1;
		if (rank == p->heap_rank && !all)
			return;
		p->heap_rank = rank;
	}
}

/* Both ways to the right become one, ordered by key. */
static struct bw_peer *bw_heap_merge(struct bw_peer *a, struct bw_peer *b)
{
	struct bw_peer *first = NULL, **at = &first, *up = NULL, *t;

	while (a && b) {
		if (b->heap_key < a->heap_key) {
			t = a;
			a = b;
			b = t;
		}
		*at = a;
		a->heap_up = up;
		up = a;
		at = &a->heap_right;
		a = *at;
	}
	*at = a ? a : b;
	if (*at)
		(*at)->heap_up = up;
	bw_heap_restore(up, true);
	return first;
}

static void bw_heap_insert(struct bw_engine *e, struct bw_peer *p, uint64_t key)
{
	p->heap_key = key;
	p->heap_left = p->heap_right = p->heap_up = NULL;
	p->heap_rank = 1;
	e->heap = bw_heap_merge(e->heap, p);
}

void bw_timer_remove(struct bw_engine *e, struct bw_peer *p)
{
	struct bw_peer *up = p->heap_up, *rest;

	if (!p->heap_rank)
		return;
	p->heap_rank = 0;
	rest = bw_heap_merge(p->heap_left, p->heap_right);
	if (rest)
		rest->heap_up = up;
	if (!up)
		e->heap = rest;
	else if (up->heap_left == p)
		up->heap_left = rest;
	else
		up->heap_right = rest;
	bw_heap_restore(up, false);
}

void bw_timer_set(struct bw_engine *e, struct bw_peer *p, uint64_t deadline)
{
	p->deadline = deadline;
	if (p->heap_rank && p->heap_key <= deadline)
		return;
	if (deadline == BW_NEVER)
		return;
	bw_timer_remove(e, p);
	bw_heap_insert(e, p, deadline);
}

uint64_t bw_timer_next(struct bw_engine *e)
{
	uint32_t left = e->cfg.piece;
	struct bw_peer *p;

	while ((p = e->heap) && p->heap_key < p->deadline && left--) {
		e->looks++;
		bw_timer_remove(e, p);
		if (p->deadline != BW_NEVER)
			bw_heap_insert(e, p, p->deadline);
	}
	return p ? p->heap_key : BW_NEVER;
}

struct bw_peer *bw_timer_due(struct bw_engine *e, uint64_t now)
{
	struct bw_peer *p;

	if (BW_LIKELY(!e->heap || e->heap->heap_key > now) || bw_timer_next(e) > now)
		return NULL;
	p = e->heap;
	if (p->deadline > now)
		return NULL; /* those before it have not all been looked at */
	bw_timer_remove(e, p);
	return p;
}
