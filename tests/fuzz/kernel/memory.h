/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory and pages. Each piece is as long as was asked for, and no longer, so that sanitizers see
 * what goes beyond it. It runs out when fake_memory says so, and all of it is counted.
 */
#ifndef FUZZ_KERNEL_MEMORY_H
#define FUZZ_KERNEL_MEMORY_H

#define GFP_ATOMIC	   1u
#define GFP_KERNEL	   2u
#define GFP_KERNEL_ACCOUNT GFP_KERNEL
#define __GFP_NOWARN	   0u

#define PAGE_SHIFT		12
#define PAGE_SIZE		4096ul
#define PAGE_MASK		(~(PAGE_SIZE - 1))
#define PAGE_ALIGN(x)		(((x) + PAGE_SIZE - 1) & PAGE_MASK)
#define offset_in_page(p)	((unsigned long)(p) & (PAGE_SIZE - 1))
#define PAGE_ALLOC_COSTLY_ORDER 3

/* When memory is wanted, and what is not given back. */
struct fake_memory {
	u32 pass, fail; /* so many pieces are had from now on, then so many are not */
	u64 pieces;	/* that there are, pages included */
};
extern struct fake_memory fake_memory;

/* NULL: there is none. What may sleep must not be asked for with a spinlock held. */
void *fake_alloc(size_t n, gfp_t gfp, bool zero);
void fake_free(const void *p);

#define kmalloc(n, gfp)		     fake_alloc(n, gfp, false)
#define kzalloc(n, gfp)		     fake_alloc(n, gfp, true)
#define kzalloc_node(n, gfp, at)     fake_alloc(n, gfp, true)
#define kcalloc(n, size, gfp)	     fake_alloc((n) * (size), gfp, true)
#define kvmalloc(n, gfp)	     fake_alloc(n, gfp, false)
#define kvzalloc(n, gfp)	     fake_alloc(n, gfp, true)
#define kvmalloc_array(n, size, gfp) fake_alloc((n) * (size), gfp, false)
#define kfree(p)		     fake_free(p)
#define kvfree(p)		     fake_free(p)
#define kvfree_sensitive(p, n)	     fake_free(p)
#define kfree_rcu(p, field)	     fake_free(p)
#define memzero_explicit(p, n)	     memset(p, 0, n)

struct page {
	int refs;
	u8 *bytes;
};

/* A page of `n` bytes alone: what a driver has filled of it. */
struct page *fake_page(u32 n, gfp_t gfp);
#define alloc_page(gfp) fake_page(PAGE_SIZE, gfp)
void get_page(struct page *page);
void put_page(struct page *page);

struct page_frag {
	struct page *page;
	u32 offset, size;
};
/* Single pages only. */
bool skb_page_frag_refill(u32 n, struct page_frag *frag, gfp_t gfp);

#define kmap_local_page(page) ((void *)(page)->bytes)
#define kunmap_local(at)      ((void)(at))
#define totalram_pages()      65536ul

static inline void memcpy_to_page(struct page *page, size_t at, const void *from, size_t n)
{
	memcpy(page->bytes + at, from, n);
}

/* Memory of a program in one piece; fake_user() is not asked. */
struct iov_iter {
	u8 *ubuf;
	size_t iov_offset, count;
};
#define iter_is_ubuf(iter)	  true
#define iter_is_iovec(iter)	  false
#define iov_iter_count(iter)	  ((iter)->count)
#define iov_iter_advance(iter, n) ((void)((iter)->iov_offset += (n), (iter)->count -= (n)))

#define module_param_named(name, word, type, mode)
#define MODULE_PARM_DESC(name, text)

/* What lies ahead of an iterator: so many bytes of it, and it goes on behind them. */
size_t copy_to_iter(const void *from, size_t n, struct iov_iter *to);
size_t copy_from_iter(void *to, size_t n, struct iov_iter *from);
#define _copy_to_iter(from, n, to)		copy_to_iter(from, n, to)
#define _copy_from_iter(to, n, from)		copy_from_iter(to, n, from)
#define copy_from_iter_full(to, n, from)	(copy_from_iter(to, n, from) == (n))
#define copy_page_to_iter(page, off, n, to)	copy_to_iter((page)->bytes + (off), n, to)
#define copy_page_from_iter(page, off, n, from) copy_from_iter((page)->bytes + (off), n, from)

#define get_unaligned(p)                                                                           \
	({                                                                                         \
		typeof(*(p)) fake_value;                                                           \
		memcpy((void *)&fake_value, p, sizeof(fake_value));                                \
		fake_value;                                                                        \
	})

static inline void memcpy_and_pad(void *to, size_t room, const void *from, size_t n, int pad)
{
	memset(to, pad, room);
	memcpy(to, from, n < room ? n : room);
}

#endif
