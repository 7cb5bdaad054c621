/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A hash table that grows with what is in it. Whoever uses it has a lock, and gives hashes of 32
 * bits: keyed ones where strangers choose what is hashed, so that they cannot choose where it lies.
 *
 * It quadruples at once when there are twice as many entries as slots: that is rare, and some ten
 * microseconds for a thousand of them. What it grows by is charged, and stays so until it is freed.
 */
#ifndef BWK_TABLE_H
#define BWK_TABLE_H

#include <linux/list.h>
#include <linux/types.h>

struct bwk_account;

struct bwk_table {
	struct hlist_head *slot;
	u32 bits, count;
	u32 charged; /* bytes */
	struct bwk_account *account;
};

/* 0 or -ENOMEM. Sleeps. The account outlives the table. */
int bwk_table_init(struct bwk_table *t, struct bwk_account *account);
void bwk_table_free(struct bwk_table *t);
/* Makes the table larger for one more, if that is due; hash_of() tells the hash of what is there
 * already, and what `arg` is to it. Without memory the table stays as it is. False: the account
 * takes no more. Any context, as for all that follow. */
bool bwk_table_ready(struct bwk_table *t,
		     u32 (*hash_of)(const struct hlist_node *node, const void *arg),
		     const void *arg);
void bwk_table_add(struct bwk_table *t, struct hlist_node *node, u32 hash);
/* Nothing if it is in no table. */
void bwk_table_del(struct bwk_table *t, struct hlist_node *node);

/* Where all with this hash are, and others. */
static inline struct hlist_head *bwk_table_slot(const struct bwk_table *t, u32 hash)
{
	return &t->slot[hash >> (32 - t->bits)];
}

#endif
