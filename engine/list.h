/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Doubly linked rings: a head, and hooks that lie in the objects. A hook in no list is linked to
 * itself, so that it can be taken out twice.
 */
#ifndef BW_LIST_H
#define BW_LIST_H

#include "platform.h"

struct bw_list {
	struct bw_list *next, *prev;
};

static inline void bw_list_init(struct bw_list *l)
{
	l->next = l->prev = l;
}

static inline bool bw_list_empty(const struct bw_list *l)
{
	return l->next == l;
}

static inline void bw_list_add_before(struct bw_list *at, struct bw_list *n)
{
	n->next = at;
	n->prev = at->prev;
	at->prev->next = n;
	at->prev = n;
}

static inline void bw_list_del(struct bw_list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	n->next = n->prev = n;
}

#define bw_entry(ptr, type, member)  ((type *)((char *)(ptr)-offsetof(type, member)))
#define bw_first(head, type, member) bw_entry((head)->next, type, member)

#endif
