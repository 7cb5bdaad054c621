/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Super-frames: joined, taken apart, and made of what arrives. See row.h. */
#include "row.h"

#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <net/gro.h>

#include "compat.h"
#include "hosts.h"
#include "node.h"

#define BWK_ROW_HELD 512 /* bytes; shorter frames are not held back for others to come */

bool bwk_row_taken(const struct net_device *dev)
{
	const netdev_features_t all =
		NETIF_F_SG | NETIF_F_FRAGLIST | NETIF_F_GSO | NETIF_F_GSO_FRAGLIST;

	return (dev->features & all) == all;
}

void bwk_row_add(struct bwk_row *row, struct sk_buff *skb)
{
	skb->next = NULL;
	if (row->first)
		row->last->next = skb;
	else
		row->first = skb;
	row->last = skb;
	row->frames++;
	row->bytes += skb->len;
}

void bwk_row_drop(struct bwk_row *row)
{
	kfree_skb_list(row->first);
	*row = (struct bwk_row){0};
}

void bwk_row_join(struct bwk_row *row)
{
	struct sk_buff *skb = row->first, *other;
	struct skb_shared_info *info = skb_shinfo(skb);

	info->gso_size = (u16)skb->len;
	info->gso_segs = (u16)row->frames;
	info->gso_type = SKB_GSO_FRAGLIST;
	info->frag_list = skb->next;
	skb->ip_summed = CHECKSUM_UNNECESSARY; /* else it would be taken apart for it */
	skb_reset_transport_header(skb);       /* what each frame has anew ends here */
	for (other = skb->next; other; other = other->next) {
		skb->len += other->len;
		skb->data_len += other->len;
		skb->truesize += other->truesize;
	}
	skb->next = NULL;
	row->last = skb;
	row->frames = 1;
}

/* The other frames of a super-frame are taken out of its first one. NULL: without memory. */
static struct sk_buff *bwk_row_rest(struct sk_buff *skb)
{
	struct sk_buff *rest, *other;

	if (skb_unclone(skb, GFP_ATOMIC)) /* who looks at it as well keeps it as it is */
		return NULL;
	rest = skb_shinfo(skb)->frag_list;
	skb_shinfo(skb)->frag_list = NULL;
	for (other = rest; other; other = other->next) {
		skb->len -= other->len;
		skb->data_len -= other->len;
		skb->truesize -= other->truesize;
	}
	skb_gso_reset(skb);
	return rest;
}

/* This frame for us alone, to be changed in front of its data, and out of its chain, which may be
 * another super-frame's as well. NULL: without memory. */
static struct sk_buff *bwk_row_own(struct sk_buff *skb, u32 room)
{
	struct sk_buff *own = skb;

	if (skb_shared(skb)) {
		own = pskb_copy(skb, GFP_ATOMIC);
		/* That copies from the data on, and who sent the frame stands before. */
		if (own && skb_mac_header_was_set(skb) && skb_mac_offset(skb) < 0)
			memcpy(skb_mac_header(own), skb_mac_header(skb), -skb_mac_offset(skb));
		consume_skb(skb);
	} else {
		skb->next = NULL;
	}
	if (own && room && skb_cow_head(own, room)) {
		kfree_skb(own);
		own = NULL;
	}
	return own;
}

struct sk_buff *bwk_row_split(struct sk_buff *skb, u32 *lost)
{
	struct sk_buff *rest, *frame, **end = &skb->next;

	if (!skb_has_frag_list(skb)) { /* of no row of ours */
		kfree_skb(skb);
		return NULL;
	}
	rest = bwk_row_rest(skb);
	if (!rest) {
		*lost += max_t(u32, skb_shinfo(skb)->gso_segs, 1);
		kfree_skb(skb);
		return NULL;
	}
	while ((frame = rest)) {
		rest = frame->next;
		frame = bwk_row_own(frame, 0);
		if (!frame) {
			++*lost;
			continue;
		}
		if (unlikely(!skb_mac_header_was_set(frame))) {
			kfree_skb(frame);
			continue;
		}
		frame->dev = skb->dev;
		frame->pkt_type = skb->pkt_type;
		*end = frame;
		end = &frame->next;
	}
	*end = NULL;
	return skb;
}

/* What a frame of a super-frame needs to leave by itself. NULL: it is lost. */
static struct sk_buff *bwk_row_segment_of(const struct sk_buff *first, struct sk_buff *frame)
{
	u32 head = (u32)(first->data - skb_mac_header(first));

	frame = bwk_row_own(frame, head);
	if (!frame)
		return NULL;
	/* A bridge lets super-frames pass to interfaces that their frames are too long for. */
	if (first->dev && frame->len > READ_ONCE(first->dev->mtu)) {
		kfree_skb(frame);
		return NULL;
	}
	skb_reset_network_header(frame);
	memcpy(skb_push(frame, head), skb_mac_header(first), head);
	skb_reset_mac_header(frame);
	skb_reset_mac_len(frame);
	frame->dev = first->dev;
	frame->protocol = first->protocol;
	frame->priority = first->priority;
	frame->mark = first->mark;
	frame->pkt_type = first->pkt_type;
	frame->ip_summed = CHECKSUM_UNNECESSARY;
	frame->queue_mapping = first->queue_mapping;
	skb_copy_hash(frame, first);
	__vlan_hwaccel_copy_tag(frame, first);
	return frame;
}

/* For a device or a queueing discipline that takes single frames: as skb_segment() does, the chain
 * begins with a reference to the super-frame itself, whose first frame that is then. */
static struct sk_buff *bwk_row_segment(struct sk_buff *skb, netdev_features_t features)
{
	struct sk_buff *rest, *frame, *last = skb;

	if (!(skb_shinfo(skb)->gso_type & SKB_GSO_FRAGLIST) || !skb_has_frag_list(skb))
		return ERR_PTR(-EPROTONOSUPPORT);
	rest = bwk_row_rest(skb);
	if (!rest)
		return ERR_PTR(-ENOMEM);
	skb->next = NULL;
	skb_reset_mac_len(skb);
	while ((frame = rest)) {
		rest = frame->next;
		frame = bwk_row_segment_of(skb, frame);
		if (!frame)
			continue;
		last->next = frame;
		last = frame;
	}
	skb->prev = last;
	return skb_get(skb);
}

/* Do both come from one port to one port of the kernel? */
static bool bwk_row_follows(const struct bw_hdr *before, const struct bw_hdr *h)
{
	return h->magic == BW_MAGIC && before->cluster == h->cluster &&
	       before->dst_engine == h->dst_engine && before->src_engine == h->src_engine &&
	       before->token == h->token;
}

/* The header of a frame that can be joined or that others must not overtake; NULL: of another one.
 * Those that come without a linear part, in tunnels or in VLANs pass as they are. */
static const struct bw_hdr *bwk_row_gro_header(const struct sk_buff *skb)
{
	const struct bw_hdr *h = (const struct bw_hdr *)skb->data;

	return !skb_gro_offset(skb) && skb_headlen(skb) >= sizeof(*h) && h->magic == BW_MAGIC &&
			       h->dst_engine <= BW_ENGINE_KERNEL
		       ? h
		       : NULL;
}

/* True: another one may follow. */
static bool bwk_row_gro_join(struct sk_buff *row, struct sk_buff *skb)
{
	skb->next = NULL;
	if (NAPI_GRO_CB(row)->last == row)
		skb_shinfo(row)->frag_list = skb;
	else
		NAPI_GRO_CB(row)->last->next = skb;
	NAPI_GRO_CB(row)->last = skb;
	row->len += skb->len;
	row->data_len += skb->len;
	row->truesize += skb->truesize;
	NAPI_GRO_CB(skb)->same_flow = 1;
	return ++NAPI_GRO_CB(row)->count < BWK_ROW_FRAMES && skb->len == skb_shinfo(row)->gso_size;
}

/* A frame has come: it is held back until the driver has no more for now, or joins one that is.
 * What is held back is returned when it is to go on. */
static struct sk_buff *bwk_row_receive(struct list_head *held, struct sk_buff *skb)
{
	const struct bw_hdr *h = bwk_row_gro_header(skb);
	struct sk_buff *row, *found = NULL;

	if (!h || skb->len < BWK_ROW_HELD || skb_zcopy(skb))
		NAPI_GRO_CB(skb)->flush = 1; /* to its receiver at once */
	list_for_each_entry(row, held, list) {
		if (!NAPI_GRO_CB(row)->same_flow)
			continue;
		if (h && !found && bwk_row_follows((const struct bw_hdr *)row->data, h))
			found = row;
		else
			NAPI_GRO_CB(row)->same_flow = 0;
	}
	if (!found || NAPI_GRO_CB(skb)->flush || skb->len > skb_shinfo(found)->gso_size ||
	    found->len + skb->len + ETH_HLEN > BWK_ROW_BYTES)
		return found;
	return bwk_row_gro_join(found, skb) ? NULL : found;
}

static int bwk_row_complete(struct sk_buff *skb, int offset)
{
	struct skb_shared_info *info = skb_shinfo(skb);

	info->gso_segs = NAPI_GRO_CB(skb)->count;
	info->gso_type |= SKB_GSO_FRAGLIST;
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	skb_set_transport_header(skb, offset);
	return 0;
}

static struct packet_offload bwk_row_offload __read_mostly = {
	.type = cpu_to_be16(BW_ETHERTYPE),
	.callbacks.gso_segment = bwk_row_segment,
	.callbacks.gro_receive = bwk_row_receive,
	.callbacks.gro_complete = bwk_row_complete,
};

void bwk_row_init(void)
{
	dev_add_offload(&bwk_row_offload);
}

void bwk_row_exit(void)
{
	dev_remove_offload(&bwk_row_offload);
}
