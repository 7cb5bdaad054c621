/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What packets carried whose ranges others have taken over: they were taken for lost, or moved to a
 * faster path. Copies of their records tell it, which own nothing. When such a packet is
 * acknowledged after all, its ranges are settled wherever they are now: waiting to be sent again,
 * or under way in a later packet, which then stays as one that carries nothing. Else a peer that
 * has everything, says so and takes leave would make a send fail that it has received.
 */
#include "late.h"

#include "again.h"
#include "loss.h"
#include "pull.h"
#include "reliable.h"
#include "submit.h"

static void bw_late_drop(struct bw_engine *e, struct bw_peer *p, struct bw_record *copy)
{
	bw_list_del(&copy->list);
	bw_slab_free(&e->records, copy);
	p->late--;
}

void bw_late_keep(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
		  const struct bw_record *r)
{
	struct bw_record *copy;

	if (r->kind != BW_OWNED_MESSAGE && r->kind != BW_OWNED_BULK)
		return;
	copy = bw_slab_alloc(&e->records);
	if (!copy) /* its ranges wait for the acknowledgement of their next packet */
		return;
	*copy = *r;
	bw_list_init(&copy->list);
	bw_list_add_before(&t->lost.late, &copy->list);
	p->late++;
}

/* The first copy for a packet, of those that are settled now or of all; or NULL. */
static struct bw_record *bw_late_find(const struct bw_path *t, uint64_t pn, bool now)
{
	struct bw_record *copy;
	struct bw_list *l;

	for (l = t->lost.late.next; l != &t->lost.late; l = l->next) {
		copy = bw_entry(l, struct bw_record, list);
		if (copy->pn == pn && (!now || bw_again_of(copy)->late == copy))
			return copy;
	}
	return NULL;
}

void bw_late_forget(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint64_t pn)
{
	struct bw_record *copy;

	while (p->late && (copy = bw_late_find(t, pn, false)))
		bw_late_drop(e, p, copy);
}

void bw_late_ended(struct bw_engine *e, struct bw_peer *p, const void *obj)
{
	uint8_t i;

	for (i = 0; i < p->npaths; i++) {
		struct bw_list *list = &p->path[i]->lost.late, *l, *next;

		for (l = list->next; l != list; l = next) {
			struct bw_record *copy = bw_entry(l, struct bw_record, list);

			next = l->next;
			if (!obj || copy->obj == obj)
				bw_late_drop(e, p, copy);
		}
	}
}

/* Ranges only become smaller: what owns bytes of the copy's range now owns nothing else. */
static bool bw_late_within(const struct bw_record *r, const struct bw_record *copy)
{
	return r->obj == copy->obj && r->off >= copy->off &&
	       r->off + r->len <= copy->off + copy->len;
}

/* One copy for each message or serve of the packet, the first, tells it what to settle. */
static void bw_late_mark(const struct bw_path *t, uint64_t pn)
{
	struct bw_record *copy;
	struct bw_list *l;

	for (l = t->lost.late.prev; l != &t->lost.late; l = l->prev) {
		copy = bw_entry(l, struct bw_record, list);
		if (copy->pn == pn)
			bw_again_of(copy)->late = copy;
	}
}

/* Packets that carry what is settled carry it no more. A peer decides how many are under way: they
 * are gone through once, whatever the packet held. */
static void bw_late_vacate(struct bw_engine *e, struct bw_peer *p)
{
	struct bw_record *r;
	struct bw_list *l;
	uint8_t i;

	for (i = 0; i < p->npaths; i++) {
		for (l = p->path[i]->flight.next; l != &p->path[i]->flight; l = l->next) {
			r = bw_entry(l, struct bw_record, list);
			e->steps++;
			if ((r->kind == BW_OWNED_MESSAGE || r->kind == BW_OWNED_BULK) &&
			    bw_again_of(r)->late && bw_late_within(r, bw_again_of(r)->late))
				bw_record_vacate(r);
		}
	}
}

/* The range of a copy, which is gone afterwards, and what waits of it to be sent again. */
static void bw_late_settle(struct bw_engine *e, struct bw_peer *p, struct bw_record *copy)
{
	struct bw_again *a = bw_again_of(copy);
	struct bw_list *l = a->near ? a->ranges.next : NULL, *next;
	uint8_t kind = copy->kind;
	void *obj = copy->obj;

	for (; a->near && l != &a->ranges; l = next) {
		next = l->next;
		if (bw_late_within(bw_entry(l, struct bw_record, list), copy))
			bw_record_forget(e, bw_entry(l, struct bw_record, list));
	}
	a->late = NULL;
	bw_late_drop(e, p, copy);
	if (kind == BW_OWNED_MESSAGE)
		bw_txmsg_settle(e, obj);
	else
		bw_serve_settle(e, obj);
}

void bw_late_acked(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint64_t pn)
{
	struct bw_record *copy;

	while (p->late && bw_late_find(t, pn, false)) {
		bw_late_mark(t, pn);
		bw_late_vacate(e, p);
		while (p->late && (copy = bw_late_find(t, pn, true)))
			bw_late_settle(e, p, copy);
	}
}
