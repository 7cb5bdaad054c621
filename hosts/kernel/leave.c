/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames leave: cut into rows, and given to the interface, by a queue of it. Softirqs are off, no
 * lock is held.
 */
#include <linux/etherdevice.h>
#include <linux/jiffies.h>

#include "keyed.h"
#include "port.h"
#include "refuse.h"

/* No switch would send it back. */
static bool bwk_leave_is_own(const struct sk_buff *skb)
{
	return ether_addr_equal(eth_hdr(skb)->h_dest, skb->dev->dev_addr);
}

static void bwk_leave_own(struct sk_buff *skb)
{
	skb_push(skb, ETH_HLEN);
	skb->protocol = eth_type_trans(skb, skb->dev);
	netif_rx(skb);
}

/* What a filter sends back to us from there comes by the backlog (net/sched/act_mirred.c of 6.1.y
 * and of 6.8 and later), never at once. */
static void bwk_leave_queue(const struct bwk_node *node, struct sk_buff *skb)
{
	u32 frames = skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1;
	int code;

	skb_push(skb, ETH_HLEN);
	code = dev_queue_xmit(skb);
	if (net_xmit_eval(code)) /* which looks twice */
		this_cpu_add(node->count->dropped, frames);
}

/* Does the driver take this frame as it is? Then there is nothing to be validated. */
static bool bwk_leave_plain(const struct sk_buff *skb, const struct net_device *dev)
{
	const struct net_device_ops *ops = dev->netdev_ops;

	return !skb_is_nonlinear(skb) ||
	       ((dev->features & NETIF_F_SG) &&
		(!ops->ndo_features_check || ops->ndo_features_check == passthru_features_check));
}

/* The device's own choice: by the processor, where the administrator has said so (XPS), or by the
 * frame's number. */
static u16 bwk_leave_choose(struct sk_buff *skb, struct net_device *dev)
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
static inline u16 bwk_leave_pick(struct bwk_iface *iface, struct sk_buff *skb)
{
	struct net_device *dev = iface->dev;
	u32 now = (u32)jiffies, *entry, known;

	if (likely(dev->real_num_tx_queues == 1))
		return 0;
	if (unlikely(netdev_get_num_tc(dev))) /* by the frame's priority, too */
		return netdev_cap_txqueue(dev, bwk_leave_choose(skb, dev));
	entry = &iface->path_queue[skb->hash >> (32 - BWK_PATH_BITS)];
	known = READ_ONCE(*entry);
	/* The queue and a bit that says so in the upper half, the time in the lower. */
	if (!(known & BWK_PATH_KNOWN) || (u16)(now - known) > BWK_PATH_PAUSE)
		known = BWK_PATH_KNOWN | bwk_leave_choose(skb, dev) << 16;
	known = (known & 0xffff0000) | (now & 0xffff);
	if (READ_ONCE(*entry) != known)
		WRITE_ONCE(*entry, known);
	return netdev_cap_txqueue(dev, (u16)((known & ~BWK_PATH_KNOWN) >> 16));
}

/* To the driver, past the queueing discipline [A6]: what __dev_direct_xmit() does, for frames that
 * ask nothing of the device, with one lock and one look for all of the row. As there, without a
 * carrier they are lost. -EBUSY: some stay in the row. */
static int bwk_leave_direct(struct bwk_row *row, struct bwk_iface *iface)
{
	struct net_device *dev = iface->dev;
	const u16 index = bwk_leave_pick(iface, row->first);
	struct netdev_queue *queue = netdev_get_tx_queue(dev, index);
	bool plain = netif_carrier_ok(dev);
	struct sk_buff *skb;
	int code;

	for (skb = row->first; skb; skb = skb->next)
		plain = plain && bwk_leave_plain(skb, dev);
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
static bool bwk_leave_is_shown(const struct bwk_node *node, const struct net_device *dev)
{
	return READ_ONCE(node->set.taps) && dev_nit_active((struct net_device *)dev);
}

static void bwk_leave_show(struct sk_buff *skb, struct net_device *dev)
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
static int bwk_leave_row(struct bwk_row *row, struct bwk_iface *iface)
{
	const struct bwk_node *node = iface->node;
	struct net_device *dev = iface->dev;
	bool own = bwk_leave_is_own(row->first), direct = !own && row->direct;
	bool shown = direct && bwk_leave_is_shown(node, dev);
	struct sk_buff *skb;

	if (unlikely(shown && !row->shown))
		bwk_leave_show(row->first, dev);
	row->shown = true;
	if (row->joins == BWK_ROW_JOINS && row->first->next && !shown)
		bwk_row_join(row);
	row->joins = BWK_ROW_APART;
	if (likely(direct))
		return bwk_leave_direct(row, iface);
	while ((skb = row->first)) {
		row->first = skb->next;
		row->frames--;
		skb_mark_not_on_list(skb);
		if (own)
			bwk_leave_own(skb);
		else
			bwk_leave_queue(node, skb);
	}
	return 0;
}

/* May this frame travel in a super-frame? Not if it refers to a program's own pages: the kernel
 * copies those for a receiver on the same machine in single frames only. */
static enum bwk_row_joins bwk_leave_joins(const struct bwk_row *row, struct sk_buff *skb)
{
	const struct net_device *dev = skb->dev;
	bool taken;

	if (((const struct bw_hdr *)skb->data)->dst_engine > BW_ENGINE_KERNEL || skb_zcopy(skb) ||
	    skb_is_gso(skb)) /* one that has waited for room */
		return BWK_ROW_APART;
	if (bwk_leave_is_own(skb))
		taken = true;
	else if (row->direct)
		taken = bwk_row_taken(dev) &&
			dev->netdev_ops->ndo_features_check == passthru_features_check;
	else
		taken = dev->features & NETIF_F_GSO; /* taken apart behind it, if need be */
	return taken ? BWK_ROW_JOINS : BWK_ROW_APART;
}

/* Does this frame leave together with those of the row? */
static noinline bool bwk_leave_follows(struct bwk_row *row, struct sk_buff *skb)
{
	const struct bw_hdr *h = (const struct bw_hdr *)skb->data;
	const struct bw_hdr *first = (const struct bw_hdr *)row->first->data;
	const struct net_device *dev = skb->dev;

	if (row->first->dev != dev) /* which need not be there any more */
		return false;
	if (row->joins == BWK_ROW_UNKNOWN)
		row->joins = bwk_leave_joins(row, row->first);
	if (row->joins != bwk_leave_joins(row, skb) || row->shown != bwk_tx_cb(skb)->shown ||
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

/* A driver that refuses a frame may have used what the kernel gives to who has it. Of the others of
 * a row it is known again that they were shown. */
static void bwk_leave_refused(struct sk_buff *skb, u8 link, bool shown)
{
	for (; skb; skb = skb->next)
		*bwk_tx_cb(skb) = (struct bwk_tx_cb){.link = link, .shown = shown};
}

/* One frame in the straight line that most take: what bwk_leave_row() does with it, where nothing
 * is special. False: it has not left, and something may be. */
static __always_inline bool bwk_leave_one(struct sk_buff *skb, struct bwk_iface *iface)
{
	struct net_device *dev = iface->dev;
	bool shown = bwk_tx_cb(skb)->shown;
	struct netdev_queue *queue;
	int code = NETDEV_TX_BUSY;
	u16 index;

	if (unlikely(!READ_ONCE(iface->node->set.qdisc_bypass) ||
		     bwk_leave_is_shown(iface->node, dev) || bwk_leave_is_own(skb) ||
		     !bwk_leave_plain(skb, dev) || !netif_carrier_ok(dev)))
		return false;
	index = bwk_leave_pick(iface, skb);
	queue = netdev_get_tx_queue(dev, index);
	skb_set_queue_mapping(skb, index);
	skb_push(skb, ETH_HLEN);
	HARD_TX_LOCK(dev, queue, smp_processor_id());
	if (likely(!netif_xmit_frozen_or_drv_stopped(queue)))
		code = netdev_start_xmit(skb, dev, queue, false);
	HARD_TX_UNLOCK(dev, queue);
	if (likely(dev_xmit_complete(code)))
		return true;
	skb_pull(skb, ETH_HLEN);
	bwk_leave_refused(skb, iface->link, shown);
	return false;
}

/* The interface that a frame was made for, if it is still in use. */
static struct bwk_iface *bwk_leave_iface(const struct bwk_node *node, const struct sk_buff *skb)
{
	struct bwk_iface *iface = rcu_dereference_bh(node->iface[bwk_tx_cb(skb)->link]);

	return iface && iface->dev == skb->dev && netif_running(iface->dev) ? iface : NULL;
}

/* The other frames of a list that leave together with its first one, which is in the row; the
 * frames behind them. */
static noinline struct sk_buff *bwk_leave_cut(struct bwk_row *row, struct sk_buff *next)
{
	do {
		struct sk_buff *skb = next;

		bwk_tx_finish(skb);
		if (!bwk_leave_follows(row, skb))
			break;
		next = skb->next;
		bwk_row_add(row, skb);
	} while (next);
	return next;
}

/* Several frames, or one with which something is special. */
static noinline struct sk_buff *bwk_leave_rows(const struct bwk_node *node, struct sk_buff *list)
{
	struct bwk_row row BWK_FILLED;
	struct bwk_iface *iface;

	do {
		struct sk_buff *skb = list;

		list = skb->next;
		iface = bwk_leave_iface(node, skb);
		if (unlikely(!iface)) { /* not even its device need be there */
			skb_mark_not_on_list(skb);
			bwk_tx_drop(skb);
			continue;
		}
		bwk_tx_finish(skb);
		row.first = row.last = skb;
		row.frames = 1;
		row.bytes = skb->len;
		row.link = bwk_tx_cb(skb)->link;
		row.joins = BWK_ROW_UNKNOWN;
		row.direct = READ_ONCE(node->set.qdisc_bypass);
		row.shown = bwk_tx_cb(skb)->shown;
		if (list)
			list = bwk_leave_cut(&row, list);
		row.last->next = NULL;
		if (likely(bwk_leave_row(&row, iface) == 0))
			continue;
		bwk_leave_refused(row.first, row.link, row.shown);
		row.last->next = list;
		return row.first;
	} while (list);
	return NULL;
}

inline struct sk_buff *bwk_leave(const struct bwk_node *node, struct sk_buff *list)
{
	struct bwk_iface *iface;

	if (likely(!list->next)) {
		bwk_tx_finish(list);
		iface = bwk_leave_iface(node, list);
		if (likely(iface) && likely(bwk_leave_one(list, iface)))
			return NULL;
	}
	return bwk_leave_rows(node, list);
}

/* A frame of no port leaves at once. */
static int bwk_leave_alone(struct bwk_iface *iface, struct sk_buff *skb, const u8 *to)
{
	struct bwk_row row = {.direct = READ_ONCE(iface->node->set.qdisc_bypass)};

	bwk_tx_address(skb, iface->dev, to, 0);
	bwk_row_add(&row, skb);
	if (bwk_leave_row(&row, iface) == 0)
		return 0;
	bwk_row_drop(&row);
	return -EBUSY;
}

static int bwk_leave_bytes(struct bwk_iface *iface, const u8 *to, const struct bw_hdr *hdr,
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
	return bwk_leave_alone(iface, skb, to);
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
		error = bwk_leave_bytes(iface, to, hdr, bytes, n);
	rcu_read_unlock();
	local_bh_enable();
	return error;
}

void bwk_transmit_refusal(struct bwk_iface *iface, struct sk_buff *refused)
{
	u8 key[BWK_REFUSAL_KEY];
	const bool keyed = bwk_key_get_refusal(&iface->node->set.key, key);
	const struct bw_refuser we = {
		.cluster = READ_ONCE(iface->node->set.cluster),
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
	bwk_leave_alone(iface, skb, eth_hdr(refused)->h_source);
}
