/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The bytes of buffers: copied, checked and attached to frames here and nowhere else. */
#include "buf.h"

#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>

#include "crc.h"
#include "port.h"

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

int bwk_buf_attach(struct bwk_buf *b, u64 off, u32 n, struct sk_buff *skb)
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
	if (b->kind == BWK_BUF_USER)
		skb_zcopy_set(skb, &b->lent, NULL);
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
	int error = 0;

	if (b->kind == BWK_BUF_GROWING) {
		error = bwk_buf_grow(b, off, n);
		if (!error)
			bwk_buf_move(b, off, from, n, true);
		return error;
	}
	if (b->kind == BWK_BUF_CHAIN)
		error = bwk_buf_unchain(b);
	return error ? error : skb_store_bits(b->skb, off, from, n);
}

static inline int bwk_buf_write(struct bwk_buf *b, u64 off, void *from, u32 n)
{
	u64 at = b->first + off;

	if (b->kind >= BWK_BUF_GROWING)
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
		part = min(part, n - done); /* the piece may go on behind them */
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

void bwk_buf_copy_later(struct bwk_buf *b, u64 to)
{
	mmgrab(current->mm);
	b->mm = current->mm;
	b->to = to;
}

/* Who receives need not be who asked: a descriptor goes to other programs, and through execve(). An
 * address means nothing there. */
int bwk_buf_copy_out(struct bwk_node *node, const struct bwk_buf *b)
{
	struct iov_iter to;
	struct iovec part;
	int error;

	if (current->mm != b->mm || b->got > b->len) {
		this_cpu_inc(node->count->bad_readers);
		return -EFAULT;
	}
	error = bwk_iter_user((void __user *)b->to, b->got, &part, &to);
	return error ? error : bwk_buf_to_iter(b, 0, b->got, &to);
}
