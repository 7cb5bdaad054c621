/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames out. A frame's heads and short payloads lie in its linear part, a long payload stays in
 * the pages it was sent from. Frames belong to no socket: what they cost is charged to the buffers.
 */
#include <linux/etherdevice.h>

#include "crc.h"
#include "port.h"
#include "refuse.h"

#define BWK_TX_CACHED 1024 /* bytes of memory; longer linear parts are allocated one by one */
#define BWK_TX_FLAT   256  /* bytes; longer payloads are referred to, if they lie in pages */

/* Is this payload to be attached? Only the last one can be. */
static bool bwk_tx_attached(const struct bw_tx_frame *f, u32 i)
{
	const struct bw_tx_segment *s = &f->segment[i];

	return i + 1 == f->segments && s->head_end == f->head_len && s->len > BWK_TX_FLAT &&
	       s->buf && bwk_buf_of(s->buf)->kind != BWK_BUF_IN;
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

/* Softirqs are off: short frames come from the per-CPU caches that drivers receive with. */
static struct sk_buff *bwk_tx_alloc(u32 bytes)
{
	u32 size = SKB_DATA_ALIGN(bytes) + SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	struct sk_buff *skb;
	void *data;

	if (size > BWK_TX_CACHED)
		return alloc_skb(bytes, GFP_ATOMIC);
	data = napi_alloc_frag(size);
	if (!data)
		return NULL;
	skb = napi_build_skb(data, size);
	if (!skb)
		skb_free_frag(data);
	return skb;
}

/* A frame whose payload lies in more places than a frame can refer to: all of it is copied. */
static struct sk_buff *bwk_tx_build_flat(struct bwk_port *port, const struct bw_tx_frame *f,
					 u32 room, u32 tailroom)
{
	const struct bw_tx_segment *last = &f->segment[f->segments - 1];
	struct sk_buff *skb = bwk_tx_alloc(room + f->len + tailroom);

	if (!skb)
		return NULL;
	skb_reserve(skb, room);
	skb_reset_network_header(skb);
	bwk_tx_fill(f, skb_put(skb, f->len), false);
	port->copied_tx += last->len;
	return skb;
}

static struct sk_buff *bwk_tx_build(struct bwk_port *port, const struct bw_tx_frame *f,
				    const struct net_device *dev)
{
	/* The receiver's engine reads the bytes behind the Ethernet header in words. */
	u32 room = ALIGN(LL_RESERVED_SPACE(dev), 8);
	const struct bw_tx_segment *last = NULL;
	u32 flat = f->len;
	struct sk_buff *skb;

	if (f->segments && bwk_tx_attached(f, f->segments - 1)) {
		last = &f->segment[f->segments - 1];
		flat -= last->len;
	}
	skb = bwk_tx_alloc(room + flat + dev->needed_tailroom);
	if (!skb)
		return NULL;
	skb_reserve(skb, room);
	skb_reset_network_header(skb);
	bwk_tx_fill(f, skb_put(skb, flat), last);
	if (!last)
		return skb;
	if (bwk_buf_attach(bwk_buf_of(last->buf), last->off, last->len, skb) == 0) {
		if (bwk_buf_of(last->buf)->kind == BWK_BUF_USER)
			port->pinned += last->len;
		return skb;
	}
	kfree_skb(skb);
	return bwk_tx_build_flat(port, f, room, dev->needed_tailroom);
}

/* Does the driver take this frame as it is? Then there is nothing to be validated. */
static bool bwk_tx_plain(const struct sk_buff *skb, const struct net_device *dev)
{
	const struct net_device_ops *ops = dev->netdev_ops;

	return !skb_is_nonlinear(skb) ||
	       ((dev->features & NETIF_F_SG) &&
		(!ops->ndo_features_check || ops->ndo_features_check == passthru_features_check));
}

/* To the driver, past the queueing discipline [A6]: what __dev_direct_xmit() does, for frames that
 * ask nothing of the device. As there, without a carrier the frame is lost. */
static int bwk_tx_direct(struct sk_buff *skb, struct net_device *dev)
{
	struct netdev_queue *queue;
	int code = NETDEV_TX_BUSY;

	if (unlikely(!bwk_tx_plain(skb, dev) || !netif_carrier_ok(dev)))
		return __dev_direct_xmit(skb, 0);
	skb_set_queue_mapping(skb, 0);
	queue = netdev_get_tx_queue(dev, 0);
	HARD_TX_LOCK(dev, queue, smp_processor_id());
	if (!netif_xmit_frozen_or_drv_stopped(queue))
		code = netdev_start_xmit(skb, dev, queue, false);
	HARD_TX_UNLOCK(dev, queue);
	return code;
}

/* The frame leaves, or -EBUSY and it stays with the caller. */
static int bwk_tx_send(const struct bwk_node *node, struct sk_buff *skb, struct net_device *dev,
		       const u8 *to)
{
	struct ethhdr *eth;
	int code;

	skb->dev = dev;
	skb->protocol = htons(BW_ETHERTYPE);
	skb->ip_summed = CHECKSUM_NONE;
	eth = skb_push(skb, ETH_HLEN); /* only Ethernet is attached: iface.c */
	ether_addr_copy(eth->h_dest, to);
	ether_addr_copy(eth->h_source, dev->dev_addr);
	eth->h_proto = htons(BW_ETHERTYPE);
	skb_reset_mac_header(skb);
	if (ether_addr_equal(to, dev->dev_addr)) { /* no switch would send it back */
		skb->protocol = eth_type_trans(skb, dev);
		netif_rx(skb);
		return 0;
	}
	if (!node->set.qdisc_bypass) {
		/* The port's lock is held. What a filter sends back to us from there comes by the
		 * backlog (net/sched/act_mirred.c of 6.1.y and of 6.8 and later), never at once. */
		code = dev_queue_xmit(skb);
		if (net_xmit_eval(code))
			this_cpu_inc(node->count->dropped);
		return 0;
	}
	if (node->set.taps && dev_nit_active(dev))
		dev_queue_xmit_nit(skb, dev);
	code = bwk_tx_direct(skb, dev);
	if (dev_xmit_complete(code))
		return 0;
	kfree_skb(skb);
	return -EBUSY;
}

/* Softirqs are off, which stands for a section of RCU. */
int bwk_transmit(struct bwk_port *port, const struct bw_tx_frame *f)
{
	struct bwk_iface *iface = rcu_dereference_bh(port->node->iface[f->to.link % BWK_IFACES]);
	struct sk_buff *skb;

	if (!iface || !netif_running(iface->dev) || f->len > bwk_iface_mtu(iface->dev))
		return -ENETDOWN;
	skb = bwk_tx_build(port, f, iface->dev);
	if (!skb)
		return -ENETDOWN;
	skb->priority = port->priority;
	return bwk_tx_send(port->node, skb, iface->dev, f->to.bytes);
}

static int bwk_tx_bytes(struct bwk_iface *iface, const u8 *to, const struct bw_hdr *hdr,
			const void *bytes, u32 n)
{
	struct net_device *dev = iface->dev;
	u32 room = ALIGN(LL_RESERVED_SPACE(dev), 8);
	struct sk_buff *skb;

	if (!netif_running(dev))
		return -ENETDOWN;
	if (n + sizeof(*hdr) > bwk_iface_mtu(dev))
		return -EMSGSIZE;
	skb = alloc_skb(room + sizeof(*hdr) + n + dev->needed_tailroom, GFP_ATOMIC);
	if (!skb)
		return -ENETDOWN;
	skb_reserve(skb, room);
	skb_reset_network_header(skb);
	skb_put_data(skb, hdr, sizeof(*hdr));
	skb_put_data(skb, bytes, n);
	return bwk_tx_send(iface->node, skb, dev, to);
}

int bwk_transmit_bytes(struct bwk_node *node, u32 ifindex, const u8 *to, const struct bw_hdr *hdr,
		       const void *bytes, u32 n)
{
	struct bwk_iface *iface;
	int error = -ENODEV;

	local_bh_disable(); /* a send of a frame expects it, as in softirq */
	rcu_read_lock();
	iface = bwk_iface_find(node, ifindex);
	if (iface)
		error = bwk_tx_bytes(iface, to, hdr, bytes, n);
	rcu_read_unlock();
	local_bh_enable();
	return error;
}

void bwk_transmit_refusal(struct bwk_iface *iface, struct sk_buff *refused)
{
	struct bw_refuse_frame *body;
	struct net_device *dev = iface->dev;
	struct sk_buff *skb =
		alloc_skb(ALIGN(LL_RESERVED_SPACE(dev), 8) + sizeof(*body) + dev->needed_tailroom,
			  GFP_ATOMIC);

	if (!skb)
		return;
	skb_reserve(skb, ALIGN(LL_RESERVED_SPACE(dev), 8));
	skb_reset_network_header(skb);
	body = skb_put(skb, sizeof(*body));
	if (!bw_refuse_build(body, refused->data, skb_headlen(refused), iface->node->set.cluster,
			     iface->name, bwk_crc)) {
		kfree_skb(skb);
		return;
	}
	this_cpu_inc(iface->node->count->refused);
	bwk_tx_send(iface->node, skb, dev, eth_hdr(refused)->h_source);
}
