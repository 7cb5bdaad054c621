/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See table.h. */
#include "table.h"

#include <linux/slab.h>

#include "account.h"

#define BWK_TABLE_LEAST 4 /* bits */
#define BWK_TABLE_MOST	14
#define BWK_TABLE_STEP	2

int bwk_table_init(struct bwk_table *t, struct bwk_account *account)
{
	t->bits = BWK_TABLE_LEAST;
	t->count = 0;
	t->charged = 0;
	t->account = account;
	t->slot = kcalloc(1 << t->bits, sizeof(*t->slot), GFP_KERNEL_ACCOUNT);
	return t->slot ? 0 : -ENOMEM;
}

void bwk_table_free(struct bwk_table *t)
{
	kfree(t->slot);
	t->slot = NULL;
	if (t->charged)
		bwk_account_give(t->account, t->charged);
	t->charged = 0;
}

bool bwk_table_ready(struct bwk_table *t,
		     u32 (*hash_of)(const struct hlist_node *node, const void *arg),
		     const void *arg)
{
	struct bwk_table wider = *t;
	struct hlist_node *node, *next;
	u32 i;

	wider.bits += BWK_TABLE_STEP;
	wider.charged = sizeof(*t->slot) << wider.bits;
	if (t->count < 2u << t->bits || wider.bits > BWK_TABLE_MOST)
		return true;
	if (!bwk_account_take(t->account, wider.charged))
		return false;
	wider.slot = kcalloc(1 << wider.bits, sizeof(*t->slot), GFP_ATOMIC | __GFP_NOWARN);
	if (!wider.slot) {
		bwk_account_give(t->account, wider.charged);
		return true;
	}
	for (i = 0; i < 1u << t->bits; i++)
		for (node = t->slot[i].first; node; node = next) {
			next = node->next;
			hlist_add_head(node, bwk_table_slot(&wider, hash_of(node, arg)));
		}
	bwk_table_free(t);
	*t = wider;
	return true;
}

void bwk_table_add(struct bwk_table *t, struct hlist_node *node, u32 hash)
{
	t->count++;
	hlist_add_head(node, bwk_table_slot(t, hash));
}

void bwk_table_del(struct bwk_table *t, struct hlist_node *node)
{
	if (hlist_unhashed(node))
		return;
	hlist_del_init(node);
	t->count--;
}
