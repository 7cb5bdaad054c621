/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Buffers; see buf.h. Bytes are copied, checked and attached to frames here and nowhere else. */
#include "buf.h"

#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "crc.h"
#include "port.h"

#define BWK_BUF_PIECE 32768 /* bytes; of the fragment that a task copies into */
#define BWK_SPARES    64    /* small buffers that a socket keeps */

/* Memory that the frames of a chain may take, in bytes and per byte of the message: four times is
 * more than any driver's frames of full size take, and a sender of tiny ones gets no more. */
#define BWK_CHAIN_TIMES 4
#define BWK_CHAIN_MORE	16384

static struct bwk_buf *bwk_buf_new(u8 kind, u64 len, size_t flat, gfp_t gfp)
{
	struct bwk_buf *b = kmalloc(sizeof(*b) + flat, gfp);

	if (!b)
		return NULL;
	memset(b, 0, sizeof(*b));
	b->kind = kind;
	b->len = len;
	return b;
}

static struct bwk_buf *bwk_buf_new_pages(u8 kind, u64 len, u32 npages)
{
	struct bwk_buf *b = bwk_buf_new(kind, len, 0, GFP_KERNEL);

	if (!b)
		return NULL;
	b->pages = kvmalloc_array(npages, sizeof(*b->pages), GFP_KERNEL_ACCOUNT);
	if (!b->pages) {
		kfree(b);
		return NULL;
	}
	return b;
}

struct bwk_buf *bwk_buf_room(size_t len)
{
	return bwk_buf_new(BWK_BUF_IN, len, len, GFP_KERNEL);
}

/* The same of any length. */
static struct bwk_buf *bwk_buf_space(size_t len)
{
	u32 npages = DIV_ROUND_UP(len, PAGE_SIZE);
	struct bwk_buf *b;

	if (len <= BWK_BUF_FLAT)
		return bwk_buf_room(len);
	b = bwk_buf_new_pages(BWK_BUF_PAGES, len, npages);
	for (; b && b->npages < npages; b->npages++) {
		b->pages[b->npages] = alloc_page(GFP_KERNEL_ACCOUNT);
		if (!b->pages[b->npages]) {
			bwk_buf_free(b);
			return NULL;
		}
	}
	return b;
}

/* What a buffer of this length is charged. */
static u64 bwk_buf_price(u64 len)
{
	return len + sizeof(struct bwk_buf);
}

struct bwk_buf *bwk_buf_held(struct bwk_user *user, size_t len)
{
	struct bwk_buf *b;

	if (user && !bwk_user_charge(user, bwk_buf_price(len)))
		return ERR_PTR(-ENOBUFS); /* before there is anything to be given back */
	b = bwk_buf_space(len);
	if (b) {
		b->payer = user;
		b->paid = bwk_buf_price(len);
	} else if (user) {
		bwk_user_uncharge(user, bwk_buf_price(len));
	}
	return b ? b : ERR_PTR(-ENOMEM);
}

noinline int bwk_buf_pay(struct bwk_buf *b, struct bwk_user *user)
{
	if (b->payer || b->kind == BWK_BUF_USER)
		return 0;
	if (!bwk_user_charge(user, bwk_buf_price(b->len)))
		return -ENOBUFS;
	b->payer = user;
	b->paid = bwk_buf_price(b->len);
	return 0;
}

static void bwk_buf_unpay(struct bwk_buf *b)
{
	if (unlikely(b->payer))
		bwk_user_uncharge(b->payer, b->paid);
	b->payer = NULL;
}

/* A piece of the task's own fragment, as TCP takes it: mostly without a look at the page allocator.
 * NULL: take pages. */
static struct bwk_buf *bwk_buf_piece(size_t len)
{
	struct page_frag *frag = &current->task_frag;
	u32 first, npages, i;
	struct bwk_buf *b;

	if (len > BWK_BUF_PIECE || !skb_page_frag_refill((unsigned int)len, frag, GFP_KERNEL))
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

static struct bwk_buf *bwk_buf_copy_piece(struct bwk_buf *b, struct bwk_user *user,
					  struct iov_iter *from)
{
	int error = user ? bwk_buf_pay(b, user) : 0;

	if (!error && copy_page_from_iter(b->pages[0], b->first, b->len, from) != b->len)
		error = -EFAULT;
	if (!error)
		return b;
	bwk_buf_free(b);
	return ERR_PTR(error);
}

static struct bwk_buf *bwk_spares_take(struct bwk_spares *spares, size_t len)
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
		b = bwk_buf_new(BWK_BUF_IN, len, BWK_BUF_SMALL, GFP_KERNEL);
	}
	if (b)
		b->small = true;
	return b;
}

bool bwk_spares_keep(struct bwk_spares *spares, struct bwk_buf *b)
{
	if (!b->small || b->end_of || atomic_read(&spares->count) >= BWK_SPARES)
		return false;
	bwk_buf_unpay(b);
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
static struct bwk_buf *bwk_buf_copy_small(struct bwk_spares *spares, struct iov_iter *from,
					  size_t len)
{
	struct bwk_buf *b = bwk_spares_take(spares, len);

	if (!b)
		return ERR_PTR(-ENOMEM);
	if (_copy_from_iter(b->flat, len, from) == len)
		return b;
	bwk_buf_free_now(b);
	return ERR_PTR(-EFAULT);
}

/* Apart, so that the common case stays short. */
static noinline struct bwk_buf *bwk_buf_copy_long(struct bwk_user *user, struct iov_iter *from,
						  size_t len)
{
	struct bwk_buf *b;
	size_t done = 0, n;
	bool whole = true;

	b = len > BWK_BUF_FLAT ? bwk_buf_piece(len) : NULL;
	if (b)
		return bwk_buf_copy_piece(b, user, from);
	b = bwk_buf_held(len > BWK_BUF_FLAT ? user : NULL, len);
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

struct bwk_buf *bwk_buf_copy(struct bwk_spares *spares, struct bwk_user *user,
			     struct iov_iter *from, size_t len)
{
	if (spares && len <= BWK_BUF_SMALL)
		return bwk_buf_copy_small(spares, from, len);
	return bwk_buf_copy_long(user, from, len);
}

static atomic_long_t bwk_buf_pinned; /* pages, of all users */

static int bwk_buf_pinned_show(char *to, const struct kernel_param *param)
{
	return sysfs_emit(to, "%ld\n", atomic_long_read(&bwk_buf_pinned));
}

static int bwk_buf_pinned_set(const char *value, const struct kernel_param *param)
{
	return -EPERM; /* when the module is loaded; afterwards the file's mode says so */
}

static const struct kernel_param_ops bwk_buf_pinned_ops = {
	.get = bwk_buf_pinned_show,
	.set = bwk_buf_pinned_set,
};

module_param_cb(pinned_pages, &bwk_buf_pinned_ops, NULL, 0400);
MODULE_PARM_DESC(pinned_pages, "pages of programs that are in use now (read only)");

/* Locked memory is charged to the user, as mlock() charges it; false: the limit is reached. */
static bool bwk_buf_charge(struct bwk_buf *b, u32 npages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct user_struct *user = current_user();
	long now = atomic_long_add_return(npages, &user->locked_vm);

	if (now > limit && !capable(CAP_IPC_LOCK)) {
		atomic_long_sub(npages, &user->locked_vm);
		return false;
	}
	b->user = get_uid(user);
	b->charge = npages;
	atomic_long_add(npages, &bwk_buf_pinned);
	return true;
}

static void bwk_buf_put_pages(struct bwk_buf *b)
{
	u32 i;

	for (i = 0; i < b->npages; i++)
		put_page(b->pages[i]);
}

static void bwk_buf_unpin(struct bwk_buf *b)
{
	if (!b->user)
		return;
	if (b->use == BWK_BUF_PULL)
		unpin_user_pages_dirty_lock(b->pages, b->npages, true);
	else
		bwk_buf_put_pages(b);
	atomic_long_sub(b->charge, &b->user->locked_vm);
	atomic_long_sub(b->charge, &bwk_buf_pinned);
	free_uid(b->user);
}

/* The pieces of memory that an iterator's next `len` bytes lie in, one after another. */
struct bwk_pieces {
	struct iov_iter at;
	size_t left;
};

static bool bwk_buf_next_piece(struct bwk_pieces *p, unsigned long *at, size_t *len)
{
	struct iovec piece;

	while (p->left && iov_iter_count(&p->at)) {
		if (iter_is_ubuf(&p->at)) /* of write() and read() */
			piece = (struct iovec){p->at.ubuf + p->at.iov_offset, p->left};
		else
			piece = bwk_iter_first(&p->at);
		*at = (unsigned long)piece.iov_base;
		*len = min_t(size_t, piece.iov_len, p->left);
		iov_iter_advance(&p->at, *len);
		p->left -= *len;
		if (*len)
			return true;
	}
	return false;
}

static u32 bwk_buf_pages_of(unsigned long at, size_t len)
{
	return DIV_ROUND_UP(offset_in_page(at) + len, PAGE_SIZE);
}

/* How many pieces there are, and pages that they touch. */
static u32 bwk_buf_count_pieces(struct bwk_pieces p, u32 *npages)
{
	unsigned long at;
	size_t len;
	u32 n = 0;

	for (*npages = 0; bwk_buf_next_piece(&p, &at, &len); n++)
		*npages += bwk_buf_pages_of(at, len);
	return n;
}

/* What is only read is referred to, as MSG_ZEROCOPY does; what is written to is pinned, so that its
 * file system knows (Documentation/core-api/pin_user_pages.rst). A pin that outlives its call lasts
 * as long as a peer likes, which is that document's case 2: FOLL_LONGTERM first moves the pages to
 * where they keep nobody from using memory that is to be movable, and refuses those of files that
 * cannot be held so long, which are then copied. A receive call gives its pins up whenever it ends,
 * as direct I/O does (case 1), and is spared the search for such pages. */
static bool bwk_buf_pin_piece(struct bwk_buf *b, unsigned long at, u32 npages, enum bwk_pin how)
{
	unsigned int flags = FOLL_WRITE | (how == BWK_PIN_WRITE_LONG ? FOLL_LONGTERM : 0);
	struct page **to;
	u32 done = 0;
	int n;

	for (at &= PAGE_MASK; done < npages; at += n * PAGE_SIZE, done += n, b->npages += n) {
		to = b->pages + b->npages;
		n = how == BWK_PIN_READ ? get_user_pages_fast(at, npages - done, 0, to)
					: pin_user_pages_fast(at, npages - done, flags, to);
		if (n <= 0)
			return false;
	}
	return true;
}

static bool bwk_buf_pin_pieces(struct bwk_buf *b, struct bwk_pieces p, enum bwk_pin how)
{
	unsigned long at;
	u64 off = 0;
	size_t len;
	u32 i;

	for (i = 0; bwk_buf_next_piece(&p, &at, &len); i++, off += len) {
		if (b->parts)
			b->parts[i] = (struct bwk_part){off, b->npages, offset_in_page(at)};
		else
			b->first = offset_in_page(at);
		if (!bwk_buf_pin_piece(b, at, bwk_buf_pages_of(at, len), how))
			return false;
	}
	return true;
}

/* Room for what describes so many pieces. */
static struct bwk_buf *bwk_buf_new_user(size_t len, u32 nparts, u32 npages, bool writing)
{
	struct bwk_buf *b = bwk_buf_new_pages(BWK_BUF_USER, len, npages);

	if (!b)
		return NULL;
	b->use = writing ? BWK_BUF_PULL : BWK_BUF_EXPOSED;
	b->nparts = nparts;
	if (nparts == 1)
		return b;
	b->parts = kvmalloc_array(nparts, sizeof(*b->parts), GFP_KERNEL_ACCOUNT);
	if (b->parts)
		return b;
	bwk_buf_free(b);
	return NULL;
}

struct bwk_buf *bwk_buf_pin(struct iov_iter *from, size_t len, enum bwk_pin how)
{
	struct bwk_pieces pieces = {.at = *from, .left = len};
	u32 nparts, npages;
	struct bwk_buf *b;

	if ((!iter_is_ubuf(from) && !iter_is_iovec(from)) || iov_iter_count(from) < len)
		return ERR_PTR(-EAGAIN);
	nparts = bwk_buf_count_pieces(pieces, &npages);
	if (nparts > 1 && len / nparts < PAGE_SIZE)
		return ERR_PTR(-EAGAIN);
	b = bwk_buf_new_user(len, nparts, npages, how != BWK_PIN_READ);
	if (!b)
		return ERR_PTR(-ENOMEM);
	if (!bwk_buf_charge(b, npages)) {
		bwk_buf_free(b);
		return ERR_PTR(-EDQUOT);
	}
	if (!bwk_buf_pin_pieces(b, pieces, how)) {
		bwk_buf_free(b);
		return ERR_PTR(-EAGAIN);
	}
	iov_iter_advance(from, len);
	return b;
}

struct bwk_buf *bwk_buf_arriving(u64 len)
{
	return bwk_buf_new(BWK_BUF_CHAIN, len, 0, GFP_ATOMIC);
}

bool bwk_buf_chain(struct bwk_buf *b, u64 off, struct sk_buff *skb, u32 at, u32 n)
{
	struct sk_buff *head = b->skb;

	if (b->kind != BWK_BUF_CHAIN || off != b->got || skb->len != at + n || skb_cloned(skb) ||
	    skb_has_frag_list(skb) || at > skb_headlen(skb))
		return false;
	if (head && head->truesize + skb->truesize > BWK_CHAIN_TIMES * b->len + BWK_CHAIN_MORE)
		return false;
	skb_get(skb);
	skb_orphan(skb);
	__skb_pull(skb, at);
	skb->next = NULL;
	if (!head) {
		b->skb = skb;
	} else {
		if (b->tail)
			b->tail->next = skb;
		else
			skb_shinfo(head)->frag_list = skb;
		b->tail = skb;
		head->len += n;
		head->data_len += n;
		head->truesize += skb->truesize;
	}
	b->got += n;
	return true;
}

/* The bytes of `from` at the beginning of `to`. */
static int bwk_buf_take_over(struct sk_buff *to, struct sk_buff *from)
{
	struct skb_seq_state walk;
	const u8 *piece;
	u32 part, done = 0;
	int error = 0;

	skb_prepare_seq_read(from, 0, from->len, &walk);
	while (!error && (part = skb_seq_read(done, &piece, &walk))) {
		error = skb_store_bits(to, done, piece, part);
		done += part;
	}
	skb_abort_seq_read(&walk);
	return error;
}

/* A chain becomes memory that can be filled in any order. */
static int bwk_buf_unchain(struct bwk_buf *b)
{
	struct sk_buff *chain = b->skb, *skb;
	int error;

	skb = alloc_skb_with_frags(0, b->len, PAGE_ALLOC_COSTLY_ORDER, &error, GFP_ATOMIC);
	if (!skb)
		return -ENOMEM;
	skb->len = skb->data_len = b->len;
	error = chain ? bwk_buf_take_over(skb, chain) : 0;
	if (error) {
		kfree_skb(skb);
		return error;
	}
	kfree_skb(chain);
	b->skb = skb;
	b->tail = NULL;
	b->kind = BWK_BUF_SKB;
	return 0;
}

void bwk_buf_free_now(struct bwk_buf *b)
{
	bwk_buf_unpay(b);
	switch (b->kind) {
	case BWK_BUF_IN:
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
	if (b->pages && b->kind != BWK_BUF_PIECE_OF)
		kvfree(b->pages);
	kvfree(b->parts);
	kfree(b);
}

/* Marking a page as written to sleeps. */
static LLIST_HEAD(bwk_buf_later);

static void bwk_buf_work_run(struct work_struct *work)
{
	struct llist_node *list = llist_del_all(&bwk_buf_later);
	struct bwk_buf *b, *next;

	llist_for_each_entry_safe(b, next, list, later)
		bwk_buf_free_now(b);
}

static DECLARE_WORK(bwk_buf_work, bwk_buf_work_run);

void bwk_buf_free(struct bwk_buf *b)
{
	if (b->kind == BWK_BUF_USER && b->use == BWK_BUF_PULL) {
		llist_add(&b->later, &bwk_buf_later);
		schedule_work(&bwk_buf_work);
	} else {
		bwk_buf_free_now(b);
	}
}

void bwk_buf_flush(void)
{
	flush_work(&bwk_buf_work);
}

/* bwk_buf_at() of scattered memory: the part is searched for by halves. Apart, so that the common
 * case stays short. */
static noinline struct page *bwk_buf_at_part(const struct bwk_buf *b, u64 off, u32 max,
					     u32 *in_page, u32 *n)
{
	u32 low = 0, high = b->nparts, middle;
	const struct bwk_part *part;
	u64 at, end;

	while (high - low > 1) {
		middle = low + (high - low) / 2;
		if (b->parts[middle].off <= off)
			low = middle;
		else
			high = middle;
	}
	part = &b->parts[low];
	end = high < b->nparts ? part[1].off : b->len;
	at = part->in_page + (off - part->off);
	*in_page = offset_in_page(at);
	*n = min_t(u64, min_t(u32, max, PAGE_SIZE - *in_page), end - off);
	return b->pages[part->page + (at >> PAGE_SHIFT)];
}

/* The page that byte `off` lies in, and how many bytes of it follow, at most `max`. */
static struct page *bwk_buf_at(const struct bwk_buf *b, u64 off, u32 max, u32 *in_page, u32 *n)
{
	u64 at = b->first + off;

	if (unlikely(b->parts))
		return bwk_buf_at_part(b, off, max, in_page, n);
	*in_page = offset_in_page(at);
	*n = min_t(u32, max, PAGE_SIZE - *in_page);
	return b->pages[at >> PAGE_SHIFT];
}

int bwk_buf_attach(const struct bwk_buf *b, u64 off, u32 n, struct sk_buff *skb)
{
	struct skb_shared_info *to = skb_shinfo(skb);
	u32 left = n, in_page, part;
	int i = to->nr_frags;

	for (; left; off += part, left -= part) {
		struct page *page = bwk_buf_at(b, off, left, &in_page, &part);

		if (skb_can_coalesce(skb, i, page, in_page)) {
			skb_frag_size_add(&to->frags[i - 1], part);
			continue;
		}
		if (i == MAX_SKB_FRAGS)
			return -EMSGSIZE;
		get_page(page);
		skb_fill_page_desc(skb, i++, page, in_page, part);
	}
	skb->len += n;
	skb->data_len += n;
	skb->truesize += n;
	return 0;
}

/* Bytes between a buffer and linear memory, piece by piece. */
static void bwk_buf_move(const struct bwk_buf *b, u64 off, void *linear, u32 n, bool in)
{
	while (n) {
		u32 in_page, part;
		struct page *page = bwk_buf_at(b, off, n, &in_page, &part);
		void *at = kmap_local_page(page);

		if (in)
			memcpy(at + in_page, linear, part);
		else
			memcpy(linear, at + in_page, part);
		kunmap_local(at);
		linear += part;
		off += part;
		n -= part;
	}
}

void bwk_buf_read(const struct bwk_buf *b, u64 off, void *to, u32 n)
{
	if (b->kind == BWK_BUF_IN)
		memcpy(to, b->flat + off, n);
	else
		bwk_buf_move(b, off, to, n, false);
}

static noinline u32 bwk_buf_crc_pages(const struct bwk_buf *b, u64 off, u32 n)
{
	u32 crc = 0;

	while (n) {
		u32 in_page, part;
		struct page *page = bwk_buf_at(b, off, n, &in_page, &part);
		void *at = kmap_local_page(page);

		crc = bwk_crc(crc, at + in_page, part);
		kunmap_local(at);
		off += part;
		n -= part;
	}
	return crc;
}

u32 bwk_buf_crc(const struct bwk_buf *b, u64 off, u32 n)
{
	return b->kind == BWK_BUF_IN ? bwk_crc(0, b->flat + off, n) : bwk_buf_crc_pages(b, off, n);
}

static int bwk_buf_write_arriving(struct bwk_buf *b, u64 off, void *from, u32 n)
{
	int error = b->kind == BWK_BUF_CHAIN ? bwk_buf_unchain(b) : 0;

	return error ? error : skb_store_bits(b->skb, off, from, n);
}

static inline int bwk_buf_write(struct bwk_buf *b, u64 off, void *from, u32 n)
{
	u64 at = b->first + off;

	if (b->kind == BWK_BUF_CHAIN || b->kind == BWK_BUF_SKB)
		return bwk_buf_write_arriving(b, off, from, n);
	if (b->kind == BWK_BUF_IN)
		memcpy(b->flat + off, from, n);
	else if (likely(!b->parts && offset_in_page(at) + n <= PAGE_SIZE))
		memcpy_to_page(b->pages[at >> PAGE_SHIFT], offset_in_page(at), from, n);
	else
		bwk_buf_move(b, off, from, n, true);
	return 0;
}

/* One contiguous piece of a received frame. */
static inline int bwk_buf_place_part(struct bwk_buf *b, u64 off, void *from, u32 n, u32 *crc)
{
	if (crc)
		*crc = bwk_crc(*crc, from, n);
	return b ? bwk_buf_write(b, off, from, n) : 0;
}

/* The same of a frame whose pages can be addressed: what a driver or another node's pages made. */
static int bwk_buf_place_pages(struct bwk_buf *b, u64 off, const struct sk_buff *skb, u32 at, u32 n,
			       u32 *crc)
{
	const skb_frag_t *frag = skb_shinfo(skb)->frags;
	u32 size = skb_headlen(skb), part;
	void *piece = skb->data;
	int error = 0;

	while (n && !error) {
		if (at < size) {
			part = min(n, size - at);
			error = bwk_buf_place_part(b, off, piece + at, part, crc);
			off += part;
			n -= part;
			at += part;
		}
		if (!n)
			break;
		at -= size;
		piece = skb_frag_address(frag);
		size = skb_frag_size(frag++);
	}
	return error;
}

/* The same of any frame. Apart, so that the common case stays short. */
static noinline int bwk_buf_place_walk(struct bwk_buf *b, u64 off, struct sk_buff *skb, u32 at,
				       u32 n, u32 *crc)
{
	struct skb_seq_state walk;
	const u8 *piece;
	u32 part, done = 0;
	int error = 0;

	skb_prepare_seq_read(skb, at, at + n, &walk);
	while (!error && (part = skb_seq_read(done, &piece, &walk))) {
		error = bwk_buf_place_part(b, off + done, (void *)piece, part, crc);
		done += part;
	}
	skb_abort_seq_read(&walk);
	return error;
}

int bwk_buf_place(struct bwk_buf *b, u64 off, struct sk_buff *skb, u32 at, u32 n, u32 *crc)
{
	if (at + n <= skb_headlen(skb))
		return bwk_buf_place_part(b, off, skb->data + at, n, crc);
	if (!IS_ENABLED(CONFIG_HIGHMEM) && !skb_has_frag_list(skb))
		return bwk_buf_place_pages(b, off, skb, at, n, crc);
	return bwk_buf_place_walk(b, off, skb, at, n, crc);
}

int bwk_buf_to_iter(const struct bwk_buf *b, u64 off, size_t n, struct iov_iter *to)
{
	if (b->kind == BWK_BUF_IN)
		return copy_to_iter(b->flat + off, n, to) == n ? 0 : -EFAULT;
	while (n) {
		u32 in_page, part;
		struct page *page =
			bwk_buf_at(b, off, min_t(size_t, n, PAGE_SIZE), &in_page, &part);

		if (copy_page_to_iter(page, in_page, part, to) != part)
			return -EFAULT;
		off += part;
		n -= part;
	}
	return 0;
}
