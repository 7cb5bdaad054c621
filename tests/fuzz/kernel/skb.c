/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See skb.h. */
#include "kernel.h"

u64 fake_skbs;

static struct sk_buff *new_skb(gfp_t gfp)
{
	struct sk_buff *skb = fake_alloc(sizeof(*skb), gfp, true);

	if (!skb)
		return NULL;
	fake_skbs++;
	refcount_set(&skb->users, 1);
	skb->mac_header = skb->network_header = skb->transport_header = 0xFFFF;
	return skb;
}

/* Its memory is these bytes, which it frees. */
static bool own_data(struct sk_buff *skb, u8 *bytes, u32 size, gfp_t gfp)
{
	struct fake_data *block = fake_alloc(sizeof(*block), gfp, true);

	if (!block)
		return false;
	block->refs = 1;
	block->bytes = bytes;
	block->size = size;
	skb->block = block;
	return true;
}

static u8 *new_bytes(u32 size)
{
	u8 *bytes = malloc(size + !size);

	if (!bytes)
		abort();
	memset(bytes, 0x6B, size);
	return bytes;
}

static void at_head(struct sk_buff *skb)
{
	skb->head = skb->data = skb->tail = skb->block->bytes;
	skb->end = skb->head + skb->block->size;
}

static void free_bare(struct sk_buff *skb)
{
	fake_skbs--;
	fake_free(skb);
}

struct sk_buff *alloc_skb(u32 size, gfp_t gfp)
{
	struct sk_buff *skb = new_skb(gfp);
	u8 *bytes = new_bytes(size);

	if (skb && own_data(skb, bytes, size, gfp)) {
		at_head(skb);
		skb->truesize = SKB_TRUESIZE(size);
		return skb;
	}
	free(bytes);
	if (skb)
		free_bare(skb);
	return NULL;
}

struct sk_buff *alloc_skb_with_frags(unsigned long head, unsigned long data, int order, int *error,
				     gfp_t gfp)
{
	unsigned long most = MAX_SKB_FRAGS * (PAGE_SIZE << order), part;
	struct sk_buff *skb;

	*error = data > most ? -EMSGSIZE : -ENOBUFS;
	skb = data > most ? NULL : alloc_skb((u32)head, gfp);
	for (int i = 0; skb && data; i++, data -= part) {
		struct page *page;

		part = data > PAGE_SIZE << order ? PAGE_SIZE << order : data;
		page = fake_page((u32)part, gfp);
		if (!page) {
			kfree_skb(skb);
			return NULL;
		}
		skb_fill_page_desc(skb, i, page, 0, (u32)part);
		skb->truesize += (u32)PAGE_ALIGN(part);
	}
	return skb;
}

void *napi_alloc_frag(u32 size)
{
	void *probe = fake_alloc(1, GFP_ATOMIC, false);

	if (!fake_bh)
		fuzz_bad("a cache of the processor with softirqs enabled");
	fake_free(probe);
	return probe ? new_bytes(size) : NULL;
}

/* Its last bytes are for what describes it. */
struct sk_buff *napi_build_skb(void *data, u32 size)
{
	u32 room = size - (u32)SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	struct sk_buff *skb = new_skb(GFP_ATOMIC);

	if (skb && own_data(skb, data, room, GFP_ATOMIC)) {
		at_head(skb);
		skb->truesize = SKB_TRUESIZE(room);
		return skb;
	}
	if (skb)
		free_bare(skb);
	return NULL;
}

/* ---- references ---- */

static void free_data(struct fake_data *block)
{
	if (block->refs <= 0)
		fuzz_bad("data of a socket buffer is freed twice");
	if (--block->refs)
		return;
	if (block->info.lent)
		fuzz_bad("lent pages are not given back");
	for (int i = 0; i < block->info.nr_frags; i++)
		put_page(block->info.frags[i].page);
	kfree_skb_list(block->info.frag_list);
	free(block->bytes);
	fake_free(block);
}

void skb_orphan(struct sk_buff *skb)
{
	if (skb->destructor)
		skb->destructor(skb);
	else if (skb->sk)
		fuzz_bad("a socket buffer of a socket that is not charged");
	skb->destructor = NULL;
	skb->sk = NULL;
}

void kfree_skb(struct sk_buff *skb)
{
	if (!skb || !refcount_dec_and_test(&skb->users))
		return;
	skb_orphan(skb);
	if (skb->block->refs == 1)
		skb_zcopy_clear(skb, true);
	free_data(skb->block);
	free_bare(skb);
}

void kfree_skb_list(struct sk_buff *list)
{
	struct sk_buff *next;

	for (; list; list = next) {
		next = list->next;
		kfree_skb(list);
	}
}

static void copy_header(struct sk_buff *to, const struct sk_buff *from)
{
	memcpy(to->cb, from->cb, sizeof(to->cb));
	to->dev = from->dev;
	to->len = from->len;
	to->data_len = from->data_len;
	to->priority = from->priority;
	to->mark = from->mark;
	to->hash = from->hash;
	to->mac_len = from->mac_len;
	to->queue_mapping = from->queue_mapping;
	to->protocol = from->protocol;
	to->mac_header = from->mac_header;
	to->network_header = from->network_header;
	to->transport_header = from->transport_header;
	to->pkt_type = from->pkt_type;
	to->ip_summed = from->ip_summed;
}

struct sk_buff *skb_clone(struct sk_buff *skb, gfp_t gfp)
{
	struct sk_buff *n = new_skb(gfp);

	if (!n)
		return NULL;
	copy_header(n, skb);
	n->truesize = skb->truesize;
	n->head = skb->head;
	n->data = skb->data;
	n->tail = skb->tail;
	n->end = skb->end;
	n->block = skb->block;
	n->block->refs++;
	n->cloned = skb->cloned = true;
	return n;
}

/* One more refers to the same pages, and to the same list. */
static void share_info(struct fake_data *to, const struct fake_data *from)
{
	to->info = from->info;
	for (int i = 0; i < to->info.nr_frags; i++)
		get_page(to->info.frags[i].page);
	for (struct sk_buff *each = to->info.frag_list; each; each = each->next)
		skb_get(each);
	if (to->info.lent)
		refcount_inc(&to->info.lent->refcnt);
}

struct sk_buff *pskb_copy(struct sk_buff *skb, gfp_t gfp)
{
	u32 room = skb_headroom(skb), n = skb_headlen(skb);
	struct sk_buff *copy = alloc_skb(room + n, gfp);

	if (!copy)
		return NULL;
	skb_reserve(copy, room);
	memcpy(copy->data, skb->data, n);
	copy->tail += n;
	copy->truesize += skb->data_len;
	share_info(copy->block, skb->block);
	copy_header(copy, skb);
	return copy;
}

int pskb_expand_head(struct sk_buff *skb, u32 before, u32 behind, gfp_t gfp)
{
	u32 size = (u32)(skb->tail - skb->head), more = before + behind;
	u32 room = skb_headroom(skb) + before, n = skb_headlen(skb);
	struct fake_data *old = skb->block;
	u8 *bytes;

	if (skb_shared(skb))
		fuzz_bad("a shared socket buffer is changed");
	bytes = new_bytes(size + more);
	memcpy(bytes + before, skb->head, size);
	if (!own_data(skb, bytes, size + more, gfp)) {
		free(bytes);
		return -ENOMEM;
	}
	if (old->refs > 1) {
		share_info(skb->block, old);
	} else {
		skb->block->info = old->info;
		memset(&old->info, 0, sizeof(old->info));
	}
	free_data(old);
	at_head(skb);
	skb->data += room;
	skb->tail = skb->data + n;
	skb->cloned = false;
	skb->mac_header += skb_mac_header_was_set(skb) ? before : 0;
	skb->network_header += before;
	skb->transport_header += before;
	return 0;
}

/* ---- bytes ---- */

void *skb_put(struct sk_buff *skb, u32 n)
{
	u8 *at = skb->tail;

	if (skb_is_nonlinear(skb) || n > (u32)(skb->end - skb->tail))
		fuzz_bad("a socket buffer is filled beyond its end");
	skb->tail += n;
	skb->len += n;
	return at;
}

void *skb_push(struct sk_buff *skb, u32 n)
{
	if (n > skb_headroom(skb))
		fuzz_bad("a socket buffer is filled before its beginning");
	skb->data -= n;
	skb->len += n;
	return skb->data;
}

void *__skb_pull(struct sk_buff *skb, u32 n)
{
	if (n > skb_headlen(skb))
		fuzz_bad("more is pulled than lies in one piece");
	skb->len -= n;
	return skb->data += n;
}

void skb_trim(struct sk_buff *skb, u32 len)
{
	if (skb->len <= len)
		return;
	if (skb_is_nonlinear(skb))
		fuzz_bad("what lies in pages is cut");
	skb->len = len;
	skb->tail = skb->data + len;
}

/* The rest of the piece of memory that the byte at `off` lies in. */
static u8 *piece_at(const struct sk_buff *skb, u32 off, u32 *n)
{
	const struct skb_shared_info *info = skb_shinfo(skb);

	if (off < skb_headlen(skb)) {
		*n = skb_headlen(skb) - off;
		return skb->data + off;
	}
	off -= skb_headlen(skb);
	for (int i = 0; i < info->nr_frags; off -= info->frags[i++].len) {
		if (off >= info->frags[i].len)
			continue;
		*n = info->frags[i].len - off;
		return (u8 *)skb_frag_address(&info->frags[i]) + off;
	}
	for (const struct sk_buff *each = info->frag_list; each; each = each->next) {
		if (off < each->len)
			return piece_at(each, off, n);
		off -= each->len;
	}
	return NULL;
}

static int move_bits(const struct sk_buff *skb, u32 off, void *at, u32 n, bool in)
{
	u32 part;

	if (off > skb->len || n > skb->len - off)
		return -EFAULT;
	for (; n; n -= part, off += part, at = (u8 *)at + part) {
		u8 *piece = piece_at(skb, off, &part);

		if (!piece)
			return -EFAULT;
		part = min(part, n);
		if (in)
			memcpy(piece, at, part);
		else
			memcpy(at, piece, part);
	}
	return 0;
}

int skb_copy_bits(const struct sk_buff *skb, u32 off, void *to, u32 n)
{
	return move_bits(skb, off, to, n, false);
}

int skb_store_bits(struct sk_buff *skb, u32 off, const void *from, u32 n)
{
	return move_bits(skb, off, (void *)from, n, true);
}

void skb_prepare_seq_read(struct sk_buff *skb, u32 from, u32 to, struct skb_seq_state *walk)
{
	*walk = (struct skb_seq_state){skb, from, to};
}

u32 skb_seq_read(u32 done, const u8 **piece, struct skb_seq_state *walk)
{
	u32 n;

	if (walk->from + done >= walk->to)
		return 0;
	*piece = piece_at(walk->skb, walk->from + done, &n);
	return *piece ? n : 0;
}

/* The first n bytes behind the linear part are in it by now. */
static void eat_frags(struct sk_buff *skb, u32 *n)
{
	struct skb_shared_info *info = skb_shinfo(skb);
	u8 left = 0;

	for (u8 i = 0; i < info->nr_frags; i++) {
		skb_frag_t *frag = &info->frags[i];
		u32 part = min(*n, frag->len);

		*n -= part;
		if (part == frag->len) {
			put_page(frag->page);
			continue;
		}
		info->frags[left] = *frag;
		info->frags[left].off += part;
		info->frags[left++].len -= part;
	}
	info->nr_frags = left;
}

static bool eat_list(struct sk_buff *skb, u32 n)
{
	struct skb_shared_info *info = skb_shinfo(skb);
	struct sk_buff *first;

	while (n && (first = info->frag_list)) {
		struct sk_buff *rest = first->next;

		if (n >= first->len) {
			n -= first->len;
			info->frag_list = rest;
			kfree_skb(first);
			continue;
		}
		if (skb_shared(first)) { /* who else has it keeps it as it is */
			struct sk_buff *own = skb_clone(first, GFP_ATOMIC);

			if (!own)
				return false;
			own->next = rest;
			info->frag_list = own;
			kfree_skb(first);
			first = own;
		}
		if (!pskb_may_pull(first, n))
			return false;
		__skb_pull(first, n);
		n = 0;
	}
	return true;
}

u8 *__pskb_pull_tail(struct sk_buff *skb, u32 n)
{
	u32 left = n, at = skb_headlen(skb);

	if (pskb_expand_head(skb, 0, n, GFP_ATOMIC))
		return NULL;
	if (skb_copy_bits(skb, at, skb->tail, n))
		fuzz_bad("more is pulled than there is");
	eat_frags(skb, &left);
	if (!eat_list(skb, left))
		return NULL;
	skb->tail += n;
	skb->data_len -= n;
	return skb->tail;
}

/* ---- pages that are lent ---- */

void skb_zcopy_set(struct sk_buff *skb, struct ubuf_info *lent, bool *have)
{
	if (skb_zcopy(skb) || !lent)
		return;
	refcount_inc(&lent->refcnt);
	skb_shinfo(skb)->lent = lent;
}

void skb_zcopy_clear(struct sk_buff *skb, bool success)
{
	struct ubuf_info *lent = skb_zcopy(skb);

	if (!lent)
		return;
	skb_shinfo(skb)->lent = NULL;
	lent->ops->complete(skb, lent, success);
}
