/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Buffers: how they are made, filled by a send call and freed; see buf.h. */
#include "buf.h"

#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "port.h"

#define BWK_BUF_PIECE 32768 /* bytes; of the fragment that a task copies into */
#define BWK_SPARES    64    /* small buffers that a socket keeps */
#define BWK_BUF_AT_ONCE                                                                            \
	64 /* pages that are let go where a buffer ends, under a lock or in softirq */

struct bwk_buf *bwk_buf_new(u8 kind, u64 len, size_t flat, gfp_t gfp)
{
	struct bwk_buf *b = kmalloc(sizeof(*b) + flat, gfp);

	if (!b)
		return NULL;
	memset(b, 0, sizeof(*b));
	b->kind = kind;
	b->len = len;
	return b;
}

struct bwk_buf *bwk_buf_new_pages(u8 kind, u64 len, u32 npages)
{
	struct bwk_buf *b = bwk_buf_new(kind, len, 0, GFP_KERNEL_ACCOUNT);

	if (!b)
		return NULL;
	b->pages = kvmalloc_array(npages, sizeof(*b->pages), GFP_KERNEL_ACCOUNT);
	if (!b->pages) {
		kfree(b);
		return NULL;
	}
	return b;
}

int bwk_buf_pay(struct bwk_buf *b, struct bwk_account *account, u64 bytes)
{
	bool paid = b->kind == BWK_BUF_PIECE_OF ? bwk_account_take(account, (u32)bytes)
						: bwk_account_charge(account, bytes);

	if (!paid)
		return -ENOBUFS;
	/* What frames refer to may outlive everybody else. */
	b->payer = b->kind == BWK_BUF_USER ? bwk_account_hold(account) : account;
	b->paid = bytes;
	return 0;
}

static void bwk_buf_unpay(struct bwk_buf *b)
{
	if (!b->payer)
		return;
	if (b->kind == BWK_BUF_PIECE_OF)
		bwk_account_give(b->payer, (u32)b->paid);
	else
		bwk_account_uncharge(b->payer, b->paid);
	if (b->kind == BWK_BUF_USER)
		bwk_account_put(b->payer);
	b->payer = NULL;
}

/* A buffer whose bytes lie within. NULL. */
static struct bwk_buf *bwk_buf_room(struct bwk_account *account, size_t len, size_t room)
{
	struct bwk_buf *b = bwk_buf_new(BWK_BUF_IN, len, room, GFP_KERNEL_ACCOUNT);

	if (b && !bwk_buf_pay(b, account, room + sizeof(*b)))
		return b;
	kfree(b);
	return b ? ERR_PTR(-ENOBUFS) : ERR_PTR(-ENOMEM);
}

static struct bwk_buf *bwk_buf_space(struct bwk_account *account, size_t len)
{
	u32 npages = DIV_ROUND_UP(len, PAGE_SIZE);
	struct bwk_buf *b = bwk_buf_new_pages(BWK_BUF_PAGES, len, npages);
	u64 price = (u64)npages * (PAGE_SIZE + sizeof(*b->pages)) + sizeof(*b);

	if (!b)
		return ERR_PTR(-ENOMEM);
	if (bwk_buf_pay(b, account, price)) { /* before there is anything to be given back */
		bwk_buf_free_now(b);
		return ERR_PTR(-ENOBUFS);
	}
	for (; b->npages < npages; b->npages++) {
		b->pages[b->npages] = alloc_page(GFP_KERNEL_ACCOUNT);
		if (!b->pages[b->npages]) {
			bwk_buf_free_now(b);
			return ERR_PTR(-ENOMEM);
		}
	}
	return b;
}

struct bwk_buf *bwk_buf_growing(struct bwk_account *account, size_t len)
{
	u32 npages = DIV_ROUND_UP(len, PAGE_SIZE);
	struct bwk_buf *b = bwk_buf_new_pages(BWK_BUF_GROWING, len, npages);

	if (!b)
		return ERR_PTR(-ENOMEM);
	memset(b->pages, 0, npages * sizeof(*b->pages));
	b->npages = npages;
	b->moved = (u32)jiffies;
	if (bwk_buf_pay(b, account, sizeof(*b) + npages * sizeof(*b->pages)) ||
	    !bwk_account_charge(account, (u64)npages * PAGE_SIZE)) {
		bwk_buf_free_now(b);
		return ERR_PTR(-ENOBUFS);
	}
	bwk_account_uncharge(account, (u64)npages * PAGE_SIZE);
	return b;
}

int bwk_buf_grow(struct bwk_buf *b, u64 off, u32 n)
{
	u64 end = (off + n + PAGE_SIZE - 1) >> PAGE_SHIFT, i;

	for (i = off >> PAGE_SHIFT; i < end; i++) {
		if (b->pages[i])
			continue;
		if (!bwk_account_take(b->payer, PAGE_SIZE))
			return -ENOBUFS;
		b->pages[i] = alloc_page(GFP_ATOMIC | __GFP_NOWARN);
		if (!b->pages[i]) {
			bwk_account_give(b->payer, PAGE_SIZE);
			return -ENOMEM;
		}
	}
	b->moved = (u32)jiffies;
	return 0;
}

struct bwk_buf *bwk_buf_empty(void)
{
	return bwk_buf_new(BWK_BUF_IN, 0, 0, GFP_KERNEL_ACCOUNT);
}

struct bwk_buf *bwk_buf_held(struct bwk_account *account, size_t len)
{
	return len <= BWK_BUF_FLAT ? bwk_buf_room(account, len, len) : bwk_buf_space(account, len);
}

/* A piece of the task's own fragment, as TCP takes it: mostly without a look at the page allocator,
 * and without a charge to anybody. NULL: take pages. */
static struct bwk_buf *bwk_buf_piece(size_t len)
{
	struct page_frag *frag = &current->task_frag;
	u32 first, npages, i;
	struct bwk_buf *b;

	if (len > BWK_BUF_PIECE || !skb_page_frag_refill((unsigned int)len, frag, GFP_KERNEL))
		return NULL;
	if (frag->size - frag->offset < len) /* where memory is in pieces it is a single page */
		return NULL;
	first = offset_in_page(frag->offset);
	npages = DIV_ROUND_UP(first + len, PAGE_SIZE);
	b = bwk_buf_new(BWK_BUF_PIECE_OF, len, npages * sizeof(*b->pages), GFP_KERNEL);
	if (!b)
		return NULL;
	b->pages = (struct page **)b->flat;
	b->first = first;
	b->npages = npages;
	for (i = 0; i < npages; i++)
		b->pages[i] = frag->page + (frag->offset >> PAGE_SHIFT) + i;
	b->whole = frag->page;
	get_page(b->whole);
	frag->offset += len;
	return b;
}

static struct bwk_buf *bwk_buf_copy_piece(struct bwk_buf *b, struct bwk_account *account,
					  struct iov_iter *from)
{
	int error = bwk_buf_pay(b, account, b->len + sizeof(*b) + b->npages * sizeof(*b->pages));

	if (!error && copy_page_from_iter(b->pages[0], b->first, b->len, from) != b->len)
		error = -EFAULT;
	if (!error)
		return b;
	bwk_buf_free(b);
	return ERR_PTR(error);
}

/* One that is charged stays charged as long as it is there, in the list or under way. */
static struct bwk_buf *bwk_spares_take(struct bwk_spares *spares, struct bwk_account *account,
				       size_t len)
{
	struct llist_node *node = NULL;
	struct bwk_buf *b;

	/* Only one at a time may take from such a list. */
	if (!llist_empty(&spares->list) && !test_and_set_bit_lock(0, &spares->taking)) {
		node = llist_del_first(&spares->list);
		clear_bit_unlock(0, &spares->taking);
	}
	if (node) {
		atomic_dec(&spares->count);
		b = llist_entry(node, struct bwk_buf, later);
		memset(b, 0, offsetof(struct bwk_buf, payer)); /* as if it were new */
		b->kind = BWK_BUF_IN;
		b->len = len;
	} else {
		b = bwk_buf_room(account, len, BWK_BUF_SMALL);
		if (IS_ERR(b))
			return b;
	}
	b->small = true;
	return b;
}

bool bwk_spares_keep(struct bwk_spares *spares, struct bwk_buf *b)
{
	if (!b->small || b->end_of || atomic_read(&spares->count) >= BWK_SPARES)
		return false;
	atomic_inc(&spares->count);
	llist_add(&b->later, &spares->list);
	return true;
}

void bwk_spares_free(struct bwk_spares *spares)
{
	struct bwk_buf *b, *next;

	llist_for_each_entry_safe(b, next, llist_del_all(&spares->list), later)
		bwk_buf_free_now(b);
}

/* The length is within the buffer's room, whose type says it: the slab allocator need not be asked
 * (hardened user copies), which would cost more than the copy. */
static struct bwk_buf *bwk_buf_copy_small(struct bwk_spares *spares, struct bwk_account *account,
					  struct iov_iter *from, size_t len)
{
	struct bwk_buf *b = bwk_spares_take(spares, account, len);

	if (IS_ERR(b))
		return b;
	if (_copy_from_iter(b->flat, len, from) == len)
		return b;
	bwk_buf_free_now(b);
	return ERR_PTR(-EFAULT);
}

/* Apart, so that the common case stays short. */
static noinline struct bwk_buf *bwk_buf_copy_long(struct bwk_account *account,
						  struct iov_iter *from, size_t len)
{
	struct bwk_buf *b;
	size_t done = 0, n;
	bool whole = true;

	b = len > BWK_BUF_FLAT ? bwk_buf_piece(len) : NULL;
	if (b)
		return bwk_buf_copy_piece(b, account, from);
	b = bwk_buf_held(account, len);
	if (IS_ERR(b))
		return b;
	if (b->kind == BWK_BUF_IN)
		whole = copy_from_iter_full(b->flat, len, from);
	for (; b->kind == BWK_BUF_PAGES && done < len && whole; done += n) {
		n = min_t(size_t, len - done, PAGE_SIZE);
		whole = copy_page_from_iter(b->pages[done / PAGE_SIZE], 0, n, from) == n;
	}
	if (whole)
		return b;
	bwk_buf_free(b);
	return ERR_PTR(-EFAULT);
}

struct bwk_buf *bwk_buf_copy(struct bwk_spares *spares, struct bwk_account *account,
			     struct iov_iter *from, size_t len)
{
	if (spares && len <= BWK_BUF_SMALL)
		return bwk_buf_copy_small(spares, account, from, len);
	return bwk_buf_copy_long(account, from, len);
}

void bwk_buf_put_pages(struct bwk_buf *b)
{
	u32 i;

	for (i = 0; i < b->npages; i++)
		put_page(b->pages[i]);
}

static void bwk_buf_work_run(struct work_struct *work);
static DECLARE_WORK(bwk_buf_work, bwk_buf_work_run);
static LLIST_HEAD(bwk_buf_later);

/* Those that there are, and what was charged for them. */
static void bwk_buf_put_grown(const struct bwk_grown *grown)
{
	u32 i, n = 0;

	for (i = 0; i < grown->npages; i++) {
		if (!grown->pages[i])
			continue;
		put_page(grown->pages[i]);
		n++;
	}
	if (n)
		bwk_account_give(grown->payer, n * PAGE_SIZE); /* memory_max is 1 GiB at most */
}

void bwk_buf_strip(struct bwk_buf *b, struct bwk_grown *grown)
{
	grown->payer = b->payer;
	grown->pages = b->pages;
	grown->npages = b->npages;
	b->kind = BWK_BUF_IN;
	b->paid -= b->npages * sizeof(*b->pages);
	b->pages = NULL;
	b->npages = 0;
}

void bwk_grown_free(const struct bwk_grown *grown)
{
	if (!grown->pages)
		return;
	bwk_buf_put_grown(grown);
	if (grown->payer)
		bwk_account_uncharge(grown->payer, grown->npages * sizeof(*grown->pages));
	kvfree(grown->pages);
}

static noinline void bwk_buf_free_grown(struct bwk_buf *b)
{
	struct bwk_grown grown;

	bwk_buf_strip(b, &grown);
	bwk_grown_free(&grown);
}

void bwk_buf_put_off(struct bwk_buf *b)
{
	if (b->payer)
		bwk_account_hold(b->payer); /* whose last port may be gone until then */
	llist_add(&b->later, &bwk_buf_later);
	schedule_work(&bwk_buf_work);
}

void bwk_buf_free_now(struct bwk_buf *b)
{
	if (!bwk_buf_let_go(b))
		return;
	if (unlikely(b->kind == BWK_BUF_GROWING))
		bwk_buf_free_grown(b);
	bwk_buf_unpay(b);
	switch (b->kind) {
	case BWK_BUF_IN:
	case BWK_BUF_GROWING:
		break;
	case BWK_BUF_PAGES:
		bwk_buf_put_pages(b);
		break;
	case BWK_BUF_PIECE_OF:
		put_page(b->whole);
		break;
	case BWK_BUF_USER:
		bwk_buf_unpin(b);
		break;
	case BWK_BUF_CHAIN:
	case BWK_BUF_SKB:
		kfree_skb(b->skb);
		break;
	}
	if (b->end_of)
		bwk_peer_put(b->end_of);
	if (b->mm)
		mmdrop(b->mm);
	if (b->pages && b->kind != BWK_BUF_PIECE_OF)
		kvfree(b->pages);
	kvfree(b->parts);
	kfree(b);
}

/* Marking a page as written to sleeps, and so may the end of a program; and a long buffer has many
 * pages. */
static void bwk_buf_work_run(struct work_struct *work)
{
	struct llist_node *list = llist_del_all(&bwk_buf_later);
	struct bwk_buf *b, *next;

	llist_for_each_entry_safe(b, next, list, later) {
		struct bwk_account *payer = b->payer;

		if (b->back)
			bwk_port_back(b->back, b);
		else
			bwk_buf_free_now(b);
		if (payer)
			bwk_account_put(payer);
		cond_resched();
	}
}

void bwk_buf_free(struct bwk_buf *b)
{
	if ((b->kind == BWK_BUF_USER && b->use == BWK_BUF_PULL) || b->mm ||
	    b->npages > BWK_BUF_AT_ONCE)
		bwk_buf_put_off(b);
	else
		bwk_buf_free_now(b);
}

void bwk_buf_flush(void)
{
	flush_work(&bwk_buf_work);
}
