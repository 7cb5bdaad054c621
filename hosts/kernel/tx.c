/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames out: how they are built. A frame's heads and short payloads lie in its linear part, a long
 * payload stays in the pages it was sent from. Frames belong to no socket: what they cost is
 * charged to the buffers.
 *
 * They are built under the port's lock, and finished by who sends them, without it: checksums and
 * copies of long payloads. Frames that are to be sealed have copies of all, and are then, too.
 */
#include <linux/etherdevice.h>
#include <linux/highmem.h>

#include "crc.h"
#include "keyed.h"
#include "port.h"

#define BWK_TX_CACHED	1024  /* bytes of memory; longer linear parts are allocated one by one */
#define BWK_TX_FRAGMENT 16384 /* bytes of memory; the same of frames that nobody keeps */
#define BWK_TX_LATER	2048  /* bytes; to check fewer takes no longer than to put it off */
#define BWK_TX_FLAT	256   /* bytes; longer payloads are referred to, if they lie in pages */

/* By what a frame is to be sealed: behind its end, where no device looks, until it is. */
struct bwk_tx_seal {
	u8 key[BW_SEAL_KEY];
	u64 pn;
};

/* The payload that a frame may refer to instead of having a copy: the last one, if it is long and
 * lies in pages; else NULL. */
static const struct bw_tx_segment *bwk_tx_far(const struct bw_tx_frame *f)
{
	const struct bw_tx_segment *s;

	if (!f->segments)
		return NULL;
	s = &f->segment[f->segments - 1];
	return s->head_end == f->head_len && s->len > BWK_TX_FLAT && s->buf &&
			       bwk_buf_of(s->buf)->kind != BWK_BUF_IN
		       ? s
		       : NULL;
}

/* Is this frame to have a copy of a program's own pages? The kernel makes one anyway for a receiver
 * on the same machine, to which this device leads; made here, the frame can travel in a row. */
static bool bwk_tx_copies(const struct bw_tx_segment *far, const struct net_device *dev)
{
	return bwk_buf_of(far->buf)->kind == BWK_BUF_USER && dev->netdev_ops->ndo_get_peer_dev &&
	       bwk_row_taken(dev);
}

/* Heads and the payloads that are not attached, into the linear part. */
static void bwk_tx_fill(const struct bw_tx_frame *f, u8 *to, bool attached)
{
	u32 done = 0, i;

	for (i = 0; i < f->segments; i++) {
		const struct bw_tx_segment *s = &f->segment[i];

		memcpy(to, (const u8 *)f->head + done, s->head_end - done);
		to += s->head_end - done;
		done = s->head_end;
		if (attached && i + 1 == f->segments)
			break;
		if (s->buf)
			bwk_buf_read(bwk_buf_of(s->buf), s->off, to, s->len);
		else
			memset(to, 0, s->len);
		to += s->len;
	}
	memcpy(to, (const u8 *)f->head + done, f->head_len - done);
}

/* Softirqs are off: frames come from the per-CPU caches that drivers receive with, but for long
 * ones that a receiver may keep (`kept`), where they would hold more memory than they need. */
static struct sk_buff *bwk_tx_alloc(u32 bytes, bool kept)
{
	u32 size = SKB_DATA_ALIGN(bytes) + SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	struct sk_buff *skb;
	void *data;

	if (size > (kept ? BWK_TX_CACHED : BWK_TX_FRAGMENT))
		return alloc_skb(bytes, GFP_ATOMIC);
	data = napi_alloc_frag(size);
	if (!data)
		return NULL;
	skb = napi_build_skb(data, size);
	if (!skb)
		skb_free_frag(data);
	return skb;
}

struct sk_buff *bwk_tx_new(const struct net_device *dev, u32 bytes, bool kept)
{
	/* The receiver's engine reads the bytes behind the Ethernet header in words. */
	u32 room = ALIGN(LL_RESERVED_SPACE(dev), 8);
	struct sk_buff *skb = bwk_tx_alloc(room + bytes + dev->needed_tailroom, kept);

	if (!skb)
		return NULL;
	skb_reserve(skb, room);
	skb_reset_network_header(skb);
	return skb;
}

/* Does this frame have one part, whose payload is the far one? Then who finishes it knows where its
 * checksum belongs. */
static bool bwk_tx_is_single(const struct bw_tx_frame *f)
{
	const struct bw_part *part = (const void *)((const u8 *)f->head + BW_DATA_HEAD);

	return f->segments == 1 && f->head_len > BW_DATA_HEAD &&
	       f->head_len == BW_DATA_HEAD + bw_part_bytes(part->kind);
}

/* The checksum of a frame's only payload, which was 0 so far, is set, and the header's checksum,
 * which covers it, follows: a CRC is linear, so that it changes by what the bits that change give
 * alone. */
static void bwk_tx_seal(struct bw_hdr *h, struct bw_part *part, u32 crc)
{
	const u64 change[sizeof(struct bw_part_msg) / 8] = {(u64)crc << 32};

	BUILD_BUG_ON(offsetof(struct bw_part, crc) != 4);
	part->crc = crc;
	h->hcrc ^= ~bwk_crc(~0u, change, bw_part_bytes(part->kind));
}

bool bwk_tx_puts_off(const struct bwk_buf *b, u32 n)
{
	return n >= BWK_TX_LATER && b->kind != BWK_BUF_IN;
}

/* Checksums that were put off, of a frame of several parts. */
static noinline void bwk_tx_check(struct bw_tx_frame *f)
{
	struct bw_hdr *h = (struct bw_hdr *)f->head;
	u8 *head = (u8 *)f->head;
	u32 at = BW_DATA_HEAD, paid = 0, from = sizeof(*h), i, crc;
	const struct bw_tx_segment *s;
	struct bw_part *part;

	for (i = 0; i < f->segments; at = ALIGN(at + part->plen, 8)) {
		part = (struct bw_part *)(head + at - paid);
		at += bw_part_bytes(part->kind);
		if (!part->plen)
			continue;
		s = &f->segment[i++];
		if (s->buf && bwk_tx_puts_off(bwk_buf_of(s->buf), s->len))
			part->crc = bwk_buf_crc(bwk_buf_of(s->buf), s->off, s->len);
		paid += part->plen;
	}
	h->hcrc = 0;
	crc = bwk_crc(0, h, from);
	h->hcrc = bwk_crc(crc, head + from, f->head_len - from);
}

/* A frame that has room for a copy of its far payload. Of a program's own pages it is made later:
 * the frame has a reference until then. */
static struct sk_buff *bwk_tx_build_copy(struct bwk_port *port, const struct bw_tx_frame *f,
					 const struct bw_tx_segment *far,
					 const struct net_device *dev)
{
	struct bwk_buf *b = bwk_buf_of(far->buf);
	bool user = b->kind == BWK_BUF_USER; /* then its receiver copies it */
	bool later = user && far->len >= BWK_TX_LATER;
	u32 behind = f->seal.key ? sizeof(struct bwk_tx_seal) : 0;
	struct sk_buff *skb = bwk_tx_new(dev, f->len + behind, !user);

	if (!skb)
		return NULL;
	bwk_tx_fill(f, skb_put(skb, f->len), later);
	if (later) {
		bwk_tx_cb(skb)->copy = true;
		bwk_tx_cb(skb)->buf = b;
		bwk_tx_cb(skb)->off = far->off;
		bwk_tx_cb(skb)->len = far->len;
		skb_zcopy_set(skb, &b->lent, NULL);
	}
	port->copied_tx += far->len;
	return skb;
}

static struct sk_buff *bwk_tx_build(struct bwk_port *port, const struct bw_tx_frame *f,
				    const struct net_device *dev)
{
	const struct bw_tx_segment *far = bwk_tx_far(f);
	u32 behind = f->seal.key ? sizeof(struct bwk_tx_seal) : 0;
	u32 flat = f->len - (far ? far->len : 0);
	struct sk_buff *skb;

	if (far && bwk_buf_of(far->buf)->kind == BWK_BUF_USER)
		port->pinned += far->len;
	if (far && (behind || bwk_tx_copies(far, dev)))
		return bwk_tx_build_copy(port, f, far, dev);
	skb = bwk_tx_new(dev, flat + behind, true);
	if (!skb)
		return NULL;
	bwk_tx_fill(f, skb_put(skb, flat), far);
	if (!far || bwk_buf_attach(bwk_buf_of(far->buf), far->off, far->len, skb) == 0)
		return skb;
	kfree_skb(skb); /* it lies in more places than a frame can refer to */
	return bwk_tx_build_copy(port, f, far, dev);
}

/* The number of a path: from one port to one port of a node. It goes along with each frame: queues
 * of the device are chosen by it, and the receiver of a veth spreads by it (RPS). Of a product the
 * high bits, by which the kernel chooses, depend on all of both factors. */
static u32 bwk_tx_path(const struct sk_buff *skb, const u8 *to, u32 port)
{
	u32 peer = get_unaligned((const u32 *)(to + 2)) +
		   ((const struct bw_hdr *)skb->data)->dst_engine;

	return (port ^ peer) * GOLDEN_RATIO_32;
}

void bwk_tx_address(struct sk_buff *skb, struct net_device *dev, const u8 *to, u32 port)
{
	struct ethhdr *eth;

	skb->dev = dev;
	skb->protocol = htons(BW_ETHERTYPE);
	skb_set_mac_header(skb, -ETH_HLEN); /* only Ethernet is attached: iface.c */
	eth = eth_hdr(skb);
	ether_addr_copy(eth->h_dest, to);
	ether_addr_copy(eth->h_source, dev->dev_addr);
	eth->h_proto = htons(BW_ETHERTYPE);
	__skb_set_sw_hash(skb, bwk_tx_path(skb, to, port), true);
}

/* The peer may be gone when the frame is sealed: its key goes along. */
static void bwk_tx_seal_later(struct sk_buff *skb, const struct bw_tx_frame *f)
{
	struct bwk_tx_seal seal = {.pn = f->seal.pn};

	memcpy(seal.key, f->seal.key, sizeof(seal.key));
	memcpy(skb_tail_pointer(skb), &seal, sizeof(seal));
	memzero_explicit(&seal, sizeof(seal));
	bwk_tx_cb(skb)->seal = true;
	bwk_tx_cb(skb)->head = BW_DATA_HEAD;
}

/* It lies in one piece. */
static noinline void bwk_tx_encipher(struct sk_buff *skb)
{
	struct bwk_tx_seal seal;
	struct bw_seal_by by = {.key = seal.key};

	memcpy(&seal, skb_tail_pointer(skb), sizeof(seal));
	memzero_explicit(skb_tail_pointer(skb), sizeof(seal));
	by.pn = seal.pn;
	bw_seal_frame(skb->data, skb->len - BW_SEAL_TAG, &by);
	memzero_explicit(&seal, sizeof(seal));
}

void bwk_tx_drop(struct sk_buff *list)
{
	struct sk_buff *skb;

	for (skb = list; skb; skb = skb->next)
		if (bwk_tx_cb(skb)->seal)
			memzero_explicit(skb_tail_pointer(skb), sizeof(struct bwk_tx_seal));
	kfree_skb_list(list);
}

/* Softirqs are off, which stands for a section of RCU. */
void bwk_transmit(struct bwk_port *port, struct bw_tx_frame *f)
{
	u8 link = f->to.link % BWK_IFACES;
	struct bwk_iface *iface = rcu_dereference_bh(port->node->iface[link]);
	struct sk_buff *skb;
	bool later = false;

	if (unlikely(!iface || f->len > bwk_iface_mtu(iface->dev))) {
		port->checks = 0; /* those of this frame */
		return;
	}
	if (unlikely(port->checks)) {
		port->checks = 0;
		later = bwk_tx_is_single(f) && bwk_tx_far(f);
		if (!later)
			bwk_tx_check(f);
	}
	skb = bwk_tx_build(port, f, iface->dev);
	if (!skb)
		return;
	skb->priority = port->priority;
	if (unlikely(later))
		bwk_tx_cb(skb)->head = (u16)f->head_len;
	if (unlikely(f->seal.key))
		bwk_tx_seal_later(skb, f);
	bwk_tx_cb(skb)->link = link;
	bwk_tx_address(skb, iface->dev, f->to.bytes, port->inc);
	bwk_out_add(&port->out, skb);
}

/* The far payload, to which the frame has a reference, as a program's pages. */
static void bwk_tx_copy(struct sk_buff *skb, struct bwk_tx_cb *cb)
{
	u32 head = skb->len - cb->len - (cb->seal ? BW_SEAL_TAG : 0);

	bwk_buf_read(cb->buf, cb->off, skb->data + head, cb->len);
	cb->copy = false;
	skb_zcopy_clear(skb, true);
}

/* Nothing else of a payload lies in the linear part then. */
static u32 bwk_tx_crc_frags(const struct sk_buff *skb)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	u32 crc = 0, i;

	for (i = 0; i < info->nr_frags; i++) {
		const skb_frag_t *frag = &info->frags[i];
		u32 done, part;

		/* One that was joined of neighbours may be of several pages. */
		for (done = 0; done < skb_frag_size(frag); done += part) {
			u32 at = skb_frag_off(frag) + done;
			void *page = kmap_local_page(skb_frag_page(frag) + (at >> PAGE_SHIFT));

			part = IS_ENABLED(CONFIG_HIGHMEM) ? min_t(u32, skb_frag_size(frag) - done,
								  PAGE_SIZE - offset_in_page(at))
							  : skb_frag_size(frag);
			crc = bwk_crc(crc, page + offset_in_page(at), part);
			kunmap_local(page);
		}
	}
	return crc;
}

noinline void bwk_tx_finish_long(struct sk_buff *skb)
{
	struct bwk_tx_cb *cb = bwk_tx_cb(skb);
	u32 crc;

	if (cb->copy)
		bwk_tx_copy(skb, cb);
	if (!cb->head)
		return;
	if (cb->seal) {
		bwk_tx_encipher(skb);
		cb->seal = false;
		cb->head = 0;
		return;
	}
	if (!skb_is_nonlinear(skb))
		crc = bwk_crc(0, skb->data + cb->head, skb->len - cb->head);
	else
		crc = bwk_tx_crc_frags(skb);
	bwk_tx_seal((struct bw_hdr *)skb->data, (struct bw_part *)(skb->data + BW_DATA_HEAD), crc);
	cb->head = 0;
}
