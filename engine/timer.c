/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Peers by deadline, in a pairing heap (Fredman et al. 1986). Deadlines mostly move later, with
 * every frame; the heap then keeps the earlier key and is set right only when that key comes up.
 */
#include "reliable.h"
#include "timer.h"

static struct bw_peer *bw_heap_merge(struct bw_peer *a, struct bw_peer *b)
{
	struct bw_peer *t;

	if (!a)
		return b;
	if (!b)
		return a;
	if (b->heap_key < a->heap_key) {
		t = a;
		a = b;
		b = t;
	}
	b->heap_prev = a;
	b->heap_next = a->heap_child;
	if (a->heap_child)
		a->heap_child->heap_prev = b;
	a->heap_child = b;
	return a;
}

/* Merge a list of siblings: in pairs from the left, then the pairs from the right. */
static struct bw_peer *bw_heap_merge_list(struct bw_peer *list)
{
	struct bw_peer *pairs = NULL, *a, *b, *root = NULL;

	while (list) {
		a = list;
		b = a->heap_next;
		list = b ? b->heap_next : NULL;
		a->heap_next = a->heap_prev = NULL;
		if (b)
			b->heap_next = b->heap_prev = NULL;
		a = bw_heap_merge(a, b);
		a->heap_next = pairs;
		pairs = a;
	}
	while (pairs) {
		a = pairs;
		pairs = a->heap_next;
		a->heap_next = NULL;
		root = bw_heap_merge(root, a);
	}
	return root;
}

static void bw_heap_insert(struct bw_engine *e, struct bw_peer *p, uint64_t key)
{
	p->heap_key = key;
	p->heap_child = p->heap_next = p->heap_prev = NULL;
	p->in_heap = true;
	e->heap = bw_heap_merge(e->heap, p);
}

void bw_timer_remove(struct bw_engine *e, struct bw_peer *p)
{
	struct bw_peer *rest;

	if (!p->in_heap)
		return;
	p->in_heap = false;
	rest = bw_heap_merge_list(p->heap_child);
	if (e->heap == p) {
		e->heap = rest;
		return;
	}
	if (p->heap_prev->heap_child == p)
		p->heap_prev->heap_child = p->heap_next;
	else
		p->heap_prev->heap_next = p->heap_next;
	if (p->heap_next)
		p->heap_next->heap_prev = p->heap_prev;
	e->heap = bw_heap_merge(e->heap, rest);
}

void bw_timer_set(struct bw_engine *e, struct bw_peer *p, uint64_t deadline)
{
	p->deadline = deadline;
	if (p->in_heap && p->heap_key <= deadline)
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
