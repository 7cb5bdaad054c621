/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames out. A frame's heads and short payloads lie in its linear part, a long payload stays in
 * the pages it was sent from. Frames belong to no socket: what they cost is charged to the buffers.
 */
#include <linux/etherdevice.h>
#include <linux/jiffies.h>

#include "crc.h"
#include "keyed.h"
#include "port.h"
#include "refuse.h"

#define BWK_TX_CACHED	1024  /* bytes of memory; longer linear parts are allocated one by one */
#define BWK_TX_FRAGMENT 16384 /* bytes of memory; the same of frames that nobody keeps */
#define BWK_TX_FLAT	256   /* bytes; longer payloads are referred to, if they lie in pages */

/* The payload that a frame may refer to instead of having a copy: the last one, if it is long and
 * lies in pages; else NULL. */
static const struct bw_tx_segment *bwk_tx_far(const struct bw_tx_frame *f)
{
	const struct bw_tx_segment *s = &f->segment[f->segments - 1];

	return f->segments && s->head_end == f->head_len && s->len > BWK_TX_FLAT && s->buf &&
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

/* An empty frame with room for what the device puts before and behind it. */
static struct sk_buff *bwk_tx_new(const struct net_device *dev, u32 bytes, bool kept)
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

/* A frame with a copy of its far payload as well. */
static struct sk_buff *bwk_tx_build_copy(struct bwk_port *port, const struct bw_tx_frame *f,
					 const struct bw_tx_segment *far,
					 const struct net_device *dev)
{
	bool user = bwk_buf_of(far->buf)->kind == BWK_BUF_USER; /* then its receiver copies it */
	struct sk_buff *skb = bwk_tx_new(dev, f->len, !user);

	if (!skb)
		return NULL;
	bwk_tx_fill(f, skb_put(skb, f->len), false);
	port->copied_tx += far->len;
	return skb;
}

static struct sk_buff *bwk_tx_build(struct bwk_port *port, const struct bw_tx_frame *f,
				    const struct net_device *dev)
{
	const struct bw_tx_segment *far = bwk_tx_far(f);
	u32 flat = f->len - (far ? far->len : 0);
	struct sk_buff *skb;

	if (far && bwk_buf_of(far->buf)->kind == BWK_BUF_USER)
		port->pinned += far->len;
	if (far && bwk_tx_copies(far, dev))
		return bwk_tx_build_copy(port, f, far, dev);
	skb = bwk_tx_new(dev, flat, true);
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
static u32 bwk_tx_path(const struct sk_buff *skb, u32 port)
{
	const u8 *to = eth_hdr(skb)->h_dest;
	u32 peer = get_unaligned((const u32 *)(to + 2)) +
		   ((const struct bw_hdr *)skb->data)->dst_engine;

	return (port ^ peer) * GOLDEN_RATIO_32;
}

/* Its Ethernet header lies before its data from now on. */
static void bwk_tx_address(struct sk_buff *skb, struct net_device *dev, const u8 *to, u32 port)
{
	struct ethhdr *eth;

	skb->dev = dev;
	skb->protocol = htons(BW_ETHERTYPE);
	skb_set_mac_header(skb, -ETH_HLEN); /* only Ethernet is attached: iface.c */
	eth = eth_hdr(skb);
	ether_addr_copy(eth->h_dest, to);
	ether_addr_copy(eth->h_source, dev->dev_addr);
	eth->h_proto = htons(BW_ETHERTYPE);
	__skb_set_sw_hash(skb, bwk_tx_path(skb, port), true);
}

/* No switch would send it back. */
static bool bwk_tx_is_own(const struct sk_buff *skb)
{
	return ether_addr_equal(eth_hdr(skb)->h_dest, skb->dev->dev_addr);
}

static void bwk_tx_own(struct sk_buff *skb)
{
	skb_push(skb, ETH_HLEN);
	skb->protocol = eth_type_trans(skb, skb->dev);
	netif_rx(skb);
}

/* The port's lock is held. What a filter sends back to us from there comes by the backlog
 * (net/sched/act_mirred.c of 6.1.y and of 6.8 and later), never at once. */
static void bwk_tx_queue(const struct bwk_node *node, struct sk_buff *skb)
{
	u32 frames = skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1;
	int code;

	skb_push(skb, ETH_HLEN);
	code = dev_queue_xmit(skb);
	if (net_xmit_eval(code)) /* which looks twice */
		this_cpu_add(node->count->dropped, frames);
}

/* Does the driver take this frame as it is? Then there is nothing to be validated. */
static bool bwk_tx_plain(const struct sk_buff *skb, const struct net_device *dev)
{
	const struct net_device_ops *ops = dev->netdev_ops;

	return !skb_is_nonlinear(skb) ||
	       ((dev->features & NETIF_F_SG) &&
		(!ops->ndo_features_check || ops->ndo_features_check == passthru_features_check));
}

/* The device's own choice: by the processor, where the administrator has said so (XPS), or by the
 * frame's number. */
static u16 bwk_tx_choose(struct sk_buff *skb, struct net_device *dev)
{
	const struct net_device_ops *ops = dev->netdev_ops;
	u16 index;

#ifdef CONFIG_XPS
	skb->sender_cpu = raw_smp_processor_id() + 1;
#endif
	skb_push(skb, ETH_HLEN);
	index = ops->ndo_select_queue ? ops->ndo_select_queue(dev, skb, NULL)
				      : netdev_pick_tx(dev, skb, NULL);
	skb_pull(skb, ETH_HLEN);
	return index;
}

/* The queue of a path stays as long as frames of it may be in the queue, so that they are not
 * overtaken when the program moves to another processor. After a pause it is chosen anew, as by
 * flowlets: Sinha, Kandula and Katabi, *Harnessing TCP's burstiness with flowlet switching*,
 * HotNets 2004. Paths that share an entry share a queue. Others may write it meanwhile, who then
 * are as right. */
static u16 bwk_tx_pick(struct bwk_iface *iface, struct sk_buff *skb)
{
	struct net_device *dev = iface->dev;
	u32 now = (u32)jiffies, *entry, known;

	if (likely(dev->real_num_tx_queues == 1))
		return 0;
	if (unlikely(netdev_get_num_tc(dev))) /* by the frame's priority, too */
		return netdev_cap_txqueue(dev, bwk_tx_choose(skb, dev));
	entry = &iface->path_queue[skb->hash >> (32 - BWK_PATH_BITS)];
	known = READ_ONCE(*entry);
	/* The queue and a bit that says so in the upper half, the time in the lower. */
	if (!(known & BWK_PATH_KNOWN) || (u16)(now - known) > BWK_PATH_PAUSE)
		known = BWK_PATH_KNOWN | bwk_tx_choose(skb, dev) << 16;
	known = (known & 0xffff0000) | (now & 0xffff);
	if (READ_ONCE(*entry) != known)
		WRITE_ONCE(*entry, known);
	return netdev_cap_txqueue(dev, (u16)((known & ~BWK_PATH_KNOWN) >> 16));
}

/* To the driver, past the queueing discipline [A6]: what __dev_direct_xmit() does, for frames that
 * ask nothing of the device, with one lock and one look for all of the row. As there, without a
 * carrier they are lost. -EBUSY: some stay in the row. */
static int bwk_tx_direct(struct bwk_row *row, struct bwk_iface *iface)
{
	struct net_device *dev = iface->dev;
	const u16 index = bwk_tx_pick(iface, row->first);
	struct netdev_queue *queue = netdev_get_tx_queue(dev, index);
	bool plain = netif_carrier_ok(dev);
	struct sk_buff *skb;
	int code;

	for (skb = row->first; skb; skb = skb->next)
		plain = plain && bwk_tx_plain(skb, dev);
	if (likely(plain))
		HARD_TX_LOCK(dev, queue, smp_processor_id());
	while ((skb = row->first) && !netif_xmit_frozen_or_drv_stopped(queue)) {
		struct sk_buff *next = skb->next;

		skb_mark_not_on_list(skb);
		skb_set_queue_mapping(skb, index);
		skb_push(skb, ETH_HLEN);
		code = likely(plain) ? netdev_start_xmit(skb, dev, queue, next)
				     : __dev_direct_xmit(skb, index);
		if (unlikely(!dev_xmit_complete(code))) {
			skb_pull(skb, ETH_HLEN);
			skb->next = next;
			break;
		}
		row->first = next;
		row->frames--;
	}
	if (likely(plain))
		HARD_TX_UNLOCK(dev, queue);
	return row->first ? -EBUSY : 0;
}

/* Is somebody shown what leaves? Each frame by itself then. */
static bool bwk_tx_is_shown(const struct bwk_node *node, const struct net_device *dev)
{
	return node->set.taps && dev_nit_active((struct net_device *)dev);
}

static void bwk_tx_show(struct sk_buff *skb, struct net_device *dev)
{
	for (; skb; skb = skb->next) {
		struct sk_buff *next = skb->next;

		skb_push(skb, ETH_HLEN);
		skb->next = NULL;
		dev_queue_xmit_nit(skb, dev);
		skb->next = next;
		skb_pull(skb, ETH_HLEN);
	}
}

/* A row to one destination leaves. -EBUSY: what the interface has no room for stays in it. */
static int bwk_tx_row(struct bwk_row *row, struct bwk_iface *iface)
{
	const struct bwk_node *node = iface->node;
	struct net_device *dev = iface->dev;
	bool own = bwk_tx_is_own(row->first), direct = !own && node->set.qdisc_bypass;
	bool shown = direct && bwk_tx_is_shown(node, dev);
	struct sk_buff *skb;

	if (unlikely(shown && !row->shown))
		bwk_tx_show(row->first, dev);
	row->shown = true;
	if (row->joins == BWK_ROW_JOINS && row->first->next && !shown)
		bwk_row_join(row);
	row->joins = BWK_ROW_APART;
	if (likely(direct))
		return bwk_tx_direct(row, iface);
	while ((skb = row->first)) {
		row->first = skb->next;
		row->frames--;
		skb_mark_not_on_list(skb);
		if (own)
			bwk_tx_own(skb);
		else
			bwk_tx_queue(node, skb);
	}
	return 0;
}

int bwk_transmit_row(struct bwk_port *port)
{
	struct bwk_row *row = &port->row;
	struct bwk_iface *iface;

	if (!row->first)
		return 0;
	iface = rcu_dereference_bh(port->node->iface[row->link]);
	if (likely(iface && iface->dev == row->first->dev && netif_running(iface->dev)))
		return bwk_tx_row(row, iface);
	bwk_row_drop(row);
	return 0;
}

/* May this frame travel in a super-frame? Not if it refers to a program's own pages: the kernel
 * copies those for a receiver on the same machine in single frames only. */
static enum bwk_row_joins bwk_tx_joins(const struct bwk_node *node, struct sk_buff *skb)
{
	const struct net_device *dev = skb->dev;
	bool taken;

	if (((const struct bw_hdr *)skb->data)->dst_engine > BW_ENGINE_KERNEL || skb_zcopy(skb))
		return BWK_ROW_APART;
	if (bwk_tx_is_own(skb))
		taken = true;
	else if (node->set.qdisc_bypass)
		taken = bwk_row_taken(dev) &&
			dev->netdev_ops->ndo_features_check == passthru_features_check;
	else
		taken = dev->features & NETIF_F_GSO; /* taken apart behind it, if need be */
	return taken ? BWK_ROW_JOINS : BWK_ROW_APART;
}

/* Does this frame leave together with those of the row? */
static noinline bool bwk_tx_follows(const struct bwk_node *node, struct bwk_row *row,
				    struct sk_buff *skb)
{
	const struct bw_hdr *h = (const struct bw_hdr *)skb->data;
	const struct bw_hdr *first = (const struct bw_hdr *)row->first->data;
	const struct net_device *dev = skb->dev;

	if (row->joins == BWK_ROW_UNKNOWN)
		row->joins = bwk_tx_joins(node, row->first);
	if (row->joins != bwk_tx_joins(node, skb) || row->first->dev != dev ||
	    skb->hash != row->first->hash ||
	    !ether_addr_equal(eth_hdr(skb)->h_dest, eth_hdr(row->first)->h_dest))
		return false;
	if (row->joins == BWK_ROW_APART)
		return row->frames < BWK_ROW_SINGLE;
	return row->frames < min_t(u32, BWK_ROW_FRAMES, READ_ONCE(dev->gso_max_segs)) &&
	       row->bytes + skb->len + ETH_HLEN <
		       min_t(u32, BWK_ROW_BYTES, READ_ONCE(dev->gso_max_size)) &&
	       first->dst_engine == h->dst_engine && first->cluster == h->cluster;
}

/* Softirqs are off, which stands for a section of RCU. */
int bwk_transmit(struct bwk_port *port, const struct bw_tx_frame *f)
{
	u8 link = f->to.link % BWK_IFACES;
	struct bwk_iface *iface = rcu_dereference_bh(port->node->iface[link]);
	struct bwk_row *row = &port->row;
	struct sk_buff *skb;
	int error = 0;

	if (!iface || !netif_running(iface->dev) || f->len > bwk_iface_mtu(iface->dev))
		return -ENETDOWN;
	skb = bwk_tx_build(port, f, iface->dev);
	if (!skb)
		return -ENETDOWN;
	skb->priority = port->priority;
	bwk_tx_address(skb, iface->dev, f->to.bytes, port->inc);
	if (row->first && !bwk_tx_follows(port->node, row, skb))
		error = bwk_transmit_row(port);
	if (!row->first) {
		row->frames = row->bytes = 0;
		row->link = link;
		row->joins = BWK_ROW_UNKNOWN;
		row->shown = false;
	}
	bwk_row_add(row, skb); /* perhaps behind what stays */
	return error;
}

/* A frame of no port leaves at once. */
static int bwk_tx_alone(struct bwk_iface *iface, struct sk_buff *skb, const u8 *to)
{
	struct bwk_row row = {0};

	bwk_tx_address(skb, iface->dev, to, 0);
	bwk_row_add(&row, skb);
	if (bwk_tx_row(&row, iface) == 0)
		return 0;
	bwk_row_drop(&row);
	return -EBUSY;
}

static int bwk_tx_bytes(struct bwk_iface *iface, const u8 *to, const struct bw_hdr *hdr,
			const void *bytes, u32 n)
{
	struct net_device *dev = iface->dev;
	struct sk_buff *skb;

	if (!netif_running(dev))
		return -ENETDOWN;
	if (n + sizeof(*hdr) > bwk_iface_mtu(dev))
		return -EMSGSIZE;
	skb = bwk_tx_new(dev, sizeof(*hdr) + n, true);
	if (!skb)
		return -ENETDOWN;
	skb_put_data(skb, hdr, sizeof(*hdr));
	skb_put_data(skb, bytes, n);
	return bwk_tx_alone(iface, skb, to);
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
	u8 key[BWK_REFUSAL_KEY];
	const bool keyed = bwk_key_get_refusal(&iface->node->set.key, key);
	const struct bw_refuser we = {
		.cluster = iface->node->set.cluster,
		.name = iface->name,
		.key = keyed ? key : NULL,
		.crc32c = bwk_crc,
		.siphash = bwk_siphash,
	};
	struct bw_refuse_frame *body;
	struct sk_buff *skb = bwk_tx_new(iface->dev, sizeof(*body), true);
	bool built;

	if (!skb)
		return;
	body = skb_put(skb, sizeof(*body));
	built = bw_refuse_build(body, &we, refused->data, skb_headlen(refused), refused->len);
	memzero_explicit(key, sizeof(key));
	if (!built) {
		kfree_skb(skb);
		return;
	}
	this_cpu_inc(iface->node->count->refused);
	bwk_tx_alone(iface, skb, eth_hdr(refused)->h_source);
}
