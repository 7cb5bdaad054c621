/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is to be sent again. See again.h. */
#include "again.h"

struct bw_again *bw_again_of(const struct bw_record *r)
{
	return r->kind == BW_OWNED_MESSAGE ? &((struct bw_txmsg *)r->obj)->again
					   : &((struct bw_serve *)r->obj)->again;
}

static bool bw_again_above(const struct bw_list *l, const struct bw_record *r)
{
	return bw_entry(l, struct bw_record, list)->off > r->off;
}

/* The waiting range that comes after r, or the list itself. Ranges are lost in the order in which
 * they were sent, which ascends but for where a round begins: so it is the end, or next to where
 * the last one went. */
static struct bw_list *bw_again_place(struct bw_engine *e, struct bw_again *a,
				      const struct bw_record *r)
{
	struct bw_list *at = &a->near->list;

	if (!bw_again_above(a->ranges.prev, r))
		return &a->ranges;
	for (; !bw_again_above(at, r); at = at->next)
		e->steps++;
	for (; at->prev != &a->ranges && bw_again_above(at->prev, r); at = at->prev)
		e->steps++;
	return at;
}

void bw_again_add(struct bw_engine *e, struct bw_peer *p, struct bw_record *r)
{
	struct bw_again *a = bw_again_of(r);
	struct bw_list *at;

	if (a->near) {
		at = bw_again_place(e, a, r);
		if (at != &a->ranges)
			a->near = r;
	} else {
		bw_list_init(&a->ranges);
		bw_list_init(&a->turn);
		bw_list_add_before(&p->again, &a->turn);
		at = &a->ranges;
		a->near = r;
	}
	bw_list_add_before(at, &r->list);
	r->waits = true;
}

void bw_again_leave(struct bw_record *r)
{
	struct bw_list *near = r->list.prev;
	struct bw_again *a;

	if (!r->waits)
		return;
	a = bw_again_of(r);
	if (near == &a->ranges)
		near = r->list.next;
	if (near == &a->ranges) {
		a->near = NULL;
		bw_list_del(&a->turn);
	} else if (a->near == r) {
		a->near = bw_entry(near, struct bw_record, list);
	}
	r->waits = false;
}

struct bw_record *bw_again_first(const struct bw_peer *p)
{
	const struct bw_again *a;

	if (bw_list_empty(&p->again))
		return NULL;
	a = bw_entry(p->again.next, struct bw_again, turn);
	return bw_entry(a->ranges.next, struct bw_record, list);
}
