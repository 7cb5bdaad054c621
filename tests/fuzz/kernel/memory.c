/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See memory.h. */
#include "kernel.h"

struct fake_memory fake_memory;

static bool wanting(gfp_t gfp)
{
	if (gfp & GFP_KERNEL)
		fake_sleeps();
	if (!fake_memory.fail)
		return false;
	if (fake_memory.pass) {
		fake_memory.pass--;
		return false;
	}
	fake_memory.fail--;
	return true;
}

/* What is large begins at a multiple of 64, as pages do. */
void *fake_alloc(size_t n, gfp_t gfp, bool zero)
{
	void *p;

	if (wanting(gfp))
		return NULL;
	p = n % 64 ? malloc(n) : aligned_alloc(64, n + 64 * !n);
	if (!p)
		abort();
	memset(p, zero ? 0 : 0xA5, n);
	fake_memory.pieces++;
	return p;
}

void fake_free(const void *p)
{
	if (!p)
		return;
	fake_memory.pieces--;
	free((void *)p);
}

struct page *fake_page(u32 n, gfp_t gfp)
{
	struct page *page = fake_alloc(sizeof(*page), gfp, true);

	if (!page)
		return NULL;
	page->refs = 1;
	page->bytes = malloc(n);
	if (!page->bytes)
		abort();
	memset(page->bytes, 0x5A, n);
	return page;
}

void get_page(struct page *page)
{
	if (page->refs <= 0)
		fuzz_bad("a reference to a page that has gone");
	page->refs++;
}

void put_page(struct page *page)
{
	if (page->refs <= 0)
		fuzz_bad("a page is given back twice");
	if (--page->refs)
		return;
	free(page->bytes);
	fake_free(page);
}

bool skb_page_frag_refill(u32 n, struct page_frag *frag, gfp_t gfp)
{
	if (frag->page && frag->size - frag->offset >= n)
		return true;
	if (n > PAGE_SIZE)
		return false;
	if (frag->page)
		put_page(frag->page);
	*frag = (struct page_frag){.page = alloc_page(gfp), .size = PAGE_SIZE};
	return frag->page;
}

size_t copy_to_iter(const void *from, size_t n, struct iov_iter *to)
{
	fake_sleeps();
	n = min(n, to->count);
	memcpy(to->ubuf + to->iov_offset, from, n);
	iov_iter_advance(to, n);
	return n;
}

size_t copy_from_iter(void *to, size_t n, struct iov_iter *from)
{
	fake_sleeps();
	n = min(n, from->count);
	memcpy(to, from->ubuf + from->iov_offset, n);
	iov_iter_advance(from, n);
	return n;
}

int import_ubuf(int way, void *at, size_t n, struct iov_iter *iter)
{
	*iter = (struct iov_iter){at, 0, n};
	return 0;
}
