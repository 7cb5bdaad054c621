/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Socket buffers. Their memory has exactly the bytes that were asked for; whenever it is made
 * anew it lies elsewhere, so that whoever keeps an address into it is seen by the sanitizers.
 */
#ifndef FUZZ_KERNEL_SKB_H
#define FUZZ_KERNEL_SKB_H

#define MAX_SKB_FRAGS	     17
#define SKB_DATA_ALIGN(n)    (((n) + 63) & ~63ul)
#define SKB_TRUESIZE(n)	     ((n) + 256 + 320)
#define SKB_GSO_FRAGLIST     (1 << 18)
#define CHECKSUM_UNNECESSARY 1
#define SKBFL_ZEROCOPY_FRAG  3
#define SKBFL_DONT_ORPHAN    8
#define GOLDEN_RATIO_32	     0x61C88647u

struct ubuf_info;
struct ubuf_info_ops {
	void (*complete)(struct sk_buff *skb, struct ubuf_info *lent, bool success);
};
struct ubuf_info {
	const struct ubuf_info_ops *ops;
	refcount_t refcnt;
	u8 flags;
};

typedef struct {
	struct page *page;
	u32 off, len;
} skb_frag_t;

struct skb_shared_info {
	u8 nr_frags;
	u16 gso_size, gso_segs;
	u32 gso_type;
	struct sk_buff *frag_list;
	struct ubuf_info *lent;
	skb_frag_t frags[MAX_SKB_FRAGS];
};

/* What clones share. */
struct fake_data {
	int refs;
	u8 *bytes;
	u32 size;
	struct skb_shared_info info;
};

struct sk_buff {
	union {
		struct {
			struct sk_buff *next, *prev;
		};
		struct list_head list;
	};
	struct sock *sk;
	struct net_device *dev;
	char cb[48] __attribute__((aligned(8)));
	void (*destructor)(struct sk_buff *skb);
	u32 len, data_len, truesize, priority, mark, hash;
	u16 mac_len, queue_mapping, protocol;
	u16 mac_header, network_header, transport_header; /* from head; 0xFFFF: not set */
	bool cloned;
	u8 pkt_type, ip_summed;
	struct fake_data *block;
	u8 *head, *data, *tail, *end;
	refcount_t users;
};

struct sk_buff_head {
	struct sk_buff *next, *prev;
	u32 qlen;
	spinlock_t lock;
};

extern u64 fake_skbs; /* that there are */

struct sk_buff *alloc_skb(u32 size, gfp_t gfp);
struct sk_buff *alloc_skb_with_frags(unsigned long head, unsigned long data, int order, int *error,
				     gfp_t gfp);
void *napi_alloc_frag(u32 size);
struct sk_buff *napi_build_skb(void *data, u32 size);
#define skb_free_frag(data) free(data)
void kfree_skb(struct sk_buff *skb);
#define consume_skb(skb)       kfree_skb(skb)
#define napi_consume_skb(s, n) kfree_skb(s)
void kfree_skb_list(struct sk_buff *list);
struct sk_buff *skb_clone(struct sk_buff *skb, gfp_t gfp);
struct sk_buff *pskb_copy(struct sk_buff *skb, gfp_t gfp);
int pskb_expand_head(struct sk_buff *skb, u32 before, u32 behind, gfp_t gfp);
u8 *__pskb_pull_tail(struct sk_buff *skb, u32 n);
int skb_copy_bits(const struct sk_buff *skb, u32 off, void *to, u32 n);
int skb_store_bits(struct sk_buff *skb, u32 off, const void *from, u32 n);
void skb_zcopy_set(struct sk_buff *skb, struct ubuf_info *lent, bool *have);
void skb_zcopy_clear(struct sk_buff *skb, bool success);
void skb_orphan(struct sk_buff *skb);
void *skb_put(struct sk_buff *skb, u32 n);
void *skb_push(struct sk_buff *skb, u32 n);
void *__skb_pull(struct sk_buff *skb, u32 n);
void skb_trim(struct sk_buff *skb, u32 len);

static inline struct skb_shared_info *skb_shinfo(const struct sk_buff *skb)
{
	return &skb->block->info;
}

static inline u32 skb_headlen(const struct sk_buff *skb)
{
	return skb->len - skb->data_len;
}

#define skb_is_nonlinear(skb)		  ((skb)->data_len != 0)
#define skb_has_frag_list(skb)		  (skb_shinfo(skb)->frag_list != NULL)
#define skb_is_gso(skb)			  (skb_shinfo(skb)->gso_size != 0)
#define skb_cloned(skb)			  ((skb)->cloned && (skb)->block->refs != 1)
#define skb_shared(skb)			  (refcount_read(&(skb)->users) != 1)
#define skb_zcopy(skb)			  (skb_shinfo(skb)->lent)
#define skb_frags_readable(skb)		  true
#define skb_headroom(skb)		  ((u32)((skb)->data - (skb)->head))
#define skb_tail_pointer(skb)		  ((skb)->tail)
#define skb_reserve(skb, n)		  ((void)((skb)->data += (n), (skb)->tail += (n)))
#define skb_mark_not_on_list(skb)	  ((void)((skb)->next = NULL))
#define skb_list_del_init(skb)		  (list_del(&(skb)->list), (void)((skb)->next = NULL))
#define skb_copy_hash(to, from)		  ((void)((to)->hash = (from)->hash))
#define __skb_set_sw_hash(s, h, l)	  ((void)((s)->hash = (h)))
#define __vlan_hwaccel_copy_tag(to, from) ((void)0)

#define skb_mac_header(skb)	  ((skb)->head + (skb)->mac_header)
#define skb_mac_header_was_set(s) ((s)->mac_header != 0xFFFF)
#define skb_mac_offset(skb)	  ((int)(skb_mac_header(skb) - (skb)->data))
#define eth_hdr(skb)		  ((struct ethhdr *)skb_mac_header(skb))
#define skb_reset_mac_header(skb) ((void)((skb)->mac_header = (u16)((skb)->data - (skb)->head)))
#define skb_set_mac_header(skb, n)                                                                 \
	((void)((skb)->mac_header = (u16)((skb)->data - (skb)->head + (n))))
#define skb_reset_network_header(s)   ((void)((s)->network_header = (u16)((s)->data - (s)->head)))
#define skb_reset_transport_header(s) ((void)((s)->transport_header = (u16)((s)->data - (s)->head)))
#define skb_set_transport_header(s, n)                                                             \
	((void)((s)->transport_header = (u16)((s)->data - (s)->head + (n))))
#define skb_reset_mac_len(s) ((void)((s)->mac_len = (u16)((s)->network_header - (s)->mac_header)))

#define skb_frag_size(frag)	   ((frag)->len)
#define skb_frag_off(frag)	   ((frag)->off)
#define skb_frag_page(frag)	   ((frag)->page)
#define skb_frag_address(frag)	   ((void *)((frag)->page->bytes + (frag)->off))
#define skb_frag_size_add(frag, n) ((void)((frag)->len += (n)))

static inline void skb_fill_page_desc(struct sk_buff *skb, int i, struct page *page, u32 off, u32 n)
{
	skb_shinfo(skb)->frags[i] = (skb_frag_t){page, off, n};
	skb_shinfo(skb)->nr_frags = (u8)(i + 1);
}

static inline bool skb_can_coalesce(struct sk_buff *skb, int i, const struct page *page, u32 off)
{
	const skb_frag_t *last = &skb_shinfo(skb)->frags[i - !!i];

	return i && page == last->page && off == last->off + last->len;
}

static inline struct sk_buff *skb_get(struct sk_buff *skb)
{
	refcount_inc(&skb->users);
	return skb;
}

static inline bool pskb_may_pull(struct sk_buff *skb, u32 n)
{
	if (n <= skb_headlen(skb))
		return true;
	return n <= skb->len && __pskb_pull_tail(skb, n - skb_headlen(skb));
}

static inline int skb_linearize_cow(struct sk_buff *skb)
{
	if (!skb_is_nonlinear(skb) && !skb_cloned(skb))
		return 0;
	return __pskb_pull_tail(skb, skb->data_len) ? 0 : -ENOMEM;
}

static inline int skb_unclone(struct sk_buff *skb, gfp_t gfp)
{
	return skb_cloned(skb) ? pskb_expand_head(skb, 0, 0, gfp) : 0;
}

static inline int skb_cow_head(struct sk_buff *skb, u32 room)
{
	u32 more = room > skb_headroom(skb) ? room - skb_headroom(skb) : 0;

	return more || skb_cloned(skb) ? pskb_expand_head(skb, more, 0, GFP_ATOMIC) : 0;
}

static inline struct sk_buff *skb_share_check(struct sk_buff *skb, gfp_t gfp)
{
	struct sk_buff *own = skb;

	if (skb_shared(skb)) {
		own = skb_clone(skb, gfp);
		kfree_skb(skb);
	}
	return own;
}

static inline const void *skb_header_pointer(const struct sk_buff *skb, u32 off, u32 n, void *room)
{
	if (off + n <= skb_headlen(skb))
		return skb->data + off;
	return skb_copy_bits(skb, off, room, n) ? NULL : room;
}

static inline void skb_gso_reset(struct sk_buff *skb)
{
	skb_shinfo(skb)->gso_size = 0;
	skb_shinfo(skb)->gso_segs = 0;
	skb_shinfo(skb)->gso_type = 0;
}

/* As the kernel's: a piece may go on behind the end of what is asked for. */
struct skb_seq_state {
	struct sk_buff *skb;
	u32 from, to;
};
void skb_prepare_seq_read(struct sk_buff *skb, u32 from, u32 to, struct skb_seq_state *walk);
u32 skb_seq_read(u32 done, const u8 **piece, struct skb_seq_state *walk);
#define skb_abort_seq_read(walk) ((void)(walk))

struct napi_gro_cb {
	struct sk_buff *last;
	u16 count;
	u8 flush, same_flow;
};
#define NAPI_GRO_CB(skb)    ((struct napi_gro_cb *)(skb)->cb)
#define skb_gro_offset(skb) 0

/* ---- queues ---- */

#define skb_peek(queue)		    ((queue)->qlen ? (queue)->next : NULL)
#define skb_queue_empty_lockless(q) ((q)->next == (const struct sk_buff *)(q) || !(q)->next)
#define skb_queue_walk(queue, skb)                                                                 \
	for (skb = (queue)->next; skb != (struct sk_buff *)(queue); skb = skb->next)

static inline void skb_queue_head_init(struct sk_buff_head *queue)
{
	queue->next = queue->prev = (struct sk_buff *)queue;
	queue->qlen = 0;
	queue->lock.held = false;
}

void skb_queue_head(struct sk_buff_head *queue, struct sk_buff *skb);
void skb_queue_tail(struct sk_buff_head *queue, struct sk_buff *skb);
void skb_unlink(struct sk_buff *skb, struct sk_buff_head *queue);
struct sk_buff *skb_dequeue(struct sk_buff_head *queue);
void skb_queue_purge(struct sk_buff_head *queue);

/* The same with the lock held, or without one. */
#define skb_queue_empty(queue)	     (!(queue)->qlen)
#define __skb_queue_head_init(queue) skb_queue_head_init(queue)
void __skb_queue_head(struct sk_buff_head *queue, struct sk_buff *skb);
void __skb_queue_tail(struct sk_buff_head *queue, struct sk_buff *skb);
struct sk_buff *__skb_dequeue(struct sk_buff_head *queue);
void skb_queue_splice_tail_init(struct sk_buff_head *from, struct sk_buff_head *to);

#endif
