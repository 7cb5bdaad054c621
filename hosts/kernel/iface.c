/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Interfaces in use, and the frames that come in by them. The handler is registered for one device
 * each, so that others do not pay for it. Frames for larger engine numbers belong to endpoints in
 * user space, which see them on their own sockets: they are neither handled nor refused here.
 */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/utsname.h>

#include "port.h"
#include "server.h"
#include "shard.h"

/* The number of the port that a frame is for; -1: it is none of ours, and gone. */
static int bwk_iface_admit(struct bwk_iface *iface, struct sk_buff *skb)
{
	struct bwk_node *node = iface->node;
	struct bw_hdr room BWK_FILLED;
	const struct bw_hdr *h;

	if (skb->pkt_type != PACKET_HOST)
		goto drop;
	h = skb_header_pointer(skb, 0, sizeof(room), &room); /* others may look at skb as well */
	if (!h) {
		this_cpu_inc(node->count->malformed);
		bwk_bad_frame(iface, skb, -BW_DROP_SHORT);
		goto drop;
	}
	if (h->magic != BW_MAGIC) {
		this_cpu_inc(node->count->foreign);
		goto drop;
	}
	if (h->dst_engine <= BW_ENGINE_KERNEL)
		return h->dst_engine;
drop:
	kfree_skb(skb);
	return -1;
}

/* A frame for a number that no port of the kernel has. */
static noinline void bwk_iface_unclaimed(struct bwk_iface *iface, struct sk_buff *skb, u16 number)
{
	struct bwk_node *node = iface->node;

	if (bwk_server_frame(iface, skb, number))
		return;
	this_cpu_inc(node->count->unclaimed);
	if (pskb_may_pull(skb,
			  min_t(u32, skb->len, sizeof(struct bw_hdr) + sizeof(struct bw_hello))) &&
	    __ratelimit(&node->refusals))
		bwk_transmit_refusal(iface, skb);
	kfree_skb(skb);
}

static void bwk_iface_unclaimed_all(struct bwk_iface *iface, struct sk_buff *frames, u16 number)
{
	struct sk_buff *next;

	for (; frames; frames = next) {
		next = frames->next;
		skb_mark_not_on_list(frames);
		bwk_iface_unclaimed(iface, frames, number);
	}
}

/* Frames of a number that no port has alone. If several shards have it, each sender's go to one of
 * them. */
static noinline void bwk_iface_deal(struct bwk_iface *iface, struct sk_buff *frames, u16 number)
{
	const struct bwk_shards *shards = bwk_shards_find(iface->node, number);
	struct bwk_port *port, *other;
	struct sk_buff *last, *next;

	if (!shards) {
		bwk_iface_unclaimed_all(iface, frames, number);
		return;
	}
	port = other = bwk_shards_choose(shards, frames);
	for (; frames; frames = next, port = other) {
		for (last = frames; (next = last->next); last = next) {
			other = bwk_shards_choose(shards, next);
			if (other != port)
				break;
		}
		skb_mark_not_on_list(last);
		if (port)
			bwk_port_receive(port, frames, iface);
		else
			bwk_iface_unclaimed_all(iface, frames, number);
	}
}

/* Frames, chained by `next`, that are all for this number. */
static void bwk_iface_give(struct bwk_iface *iface, struct sk_buff *frames, u16 number)
{
	struct bwk_port *port = bwk_port_find(iface->node, number);

	if (likely(port))
		bwk_port_receive(port, frames, iface);
	else
		bwk_iface_deal(iface, frames, number);
}

/* Frames that came together: those of one port are given to it together. */
struct bwk_arrivals {
	struct bwk_iface *iface;
	struct sk_buff *first, **end; /* chained by `next` */
	int number;		      /* of their port */
};

static void bwk_arrivals_give(struct bwk_arrivals *a)
{
	*a->end = NULL;
	if (a->first)
		bwk_iface_give(a->iface, a->first, (u16)a->number);
	a->end = &a->first;
}

/* One more frame, which nobody else may change. */
static void bwk_arrivals_add(struct bwk_arrivals *a, struct sk_buff *skb)
{
	int number = bwk_iface_admit(a->iface, skb);

	if (number < 0)
		return;
	if (number != a->number)
		bwk_arrivals_give(a);
	a->number = number;
	*a->end = skb;
	a->end = &skb->next;
}

/* The same of what the network gives: perhaps a super-frame, or shared. */
static void bwk_arrivals_take(struct bwk_arrivals *a, struct sk_buff *skb)
{
	struct sk_buff *next;
	u32 lost = 0;

	skb = skb_share_check(skb, GFP_ATOMIC);
	if (unlikely(!skb))
		lost = 1;
	else if (skb_is_gso(skb))
		skb = bwk_row_split(skb, &lost);
	if (unlikely(lost))
		this_cpu_add(a->iface->node->count->uncopied, lost);
	for (; skb; skb = next) {
		next = skb->next;
		skb_mark_not_on_list(skb);
		bwk_arrivals_add(a, skb);
	}
}

static noinline void bwk_iface_row(struct bwk_iface *iface, struct sk_buff *skb)
{
	struct bwk_arrivals a = {.iface = iface, .end = &a.first};

	bwk_arrivals_take(&a, skb);
	bwk_arrivals_give(&a);
}

static int bwk_iface_frame(struct sk_buff *skb, struct net_device *dev, struct packet_type *type,
			   struct net_device *orig)
{
	struct bwk_iface *iface = container_of(type, struct bwk_iface, type);
	int number;

	if (skb_is_gso(skb)) {
		bwk_iface_row(iface, skb);
		return NET_RX_SUCCESS;
	}
	number = bwk_iface_admit(iface, skb);
	if (number < 0)
		return NET_RX_DROP;
	skb = skb_share_check(skb, GFP_ATOMIC);
	if (!skb) {
		this_cpu_inc(iface->node->count->uncopied);
		return NET_RX_DROP;
	}
	skb_mark_not_on_list(skb);
	bwk_iface_give(iface, skb, (u16)number);
	return NET_RX_SUCCESS;
}

/* All that a driver has found at once. */
static void bwk_iface_frames(struct list_head *frames, struct packet_type *type,
			     struct net_device *orig)
{
	struct bwk_arrivals a = {.iface = container_of(type, struct bwk_iface, type),
				 .end = &a.first};
	struct sk_buff *skb, *next;

	list_for_each_entry_safe(skb, next, frames, list) {
		skb_list_del_init(skb);
		bwk_arrivals_take(&a, skb);
	}
	bwk_arrivals_give(&a);
}

struct bwk_iface *bwk_iface_find(struct bwk_node *node, u32 ifindex)
{
	int i;

	for (i = 0; i < BWK_IFACES; i++) {
		struct bwk_iface *iface = rcu_dereference(node->iface[i]);

		if (iface && (!ifindex || (u32)iface->dev->ifindex == ifindex))
			return iface;
	}
	return NULL;
}

static struct bwk_iface *bwk_iface_slot(struct bwk_node *node, int i)
{
	return rcu_dereference_protected(node->iface[i], lockdep_is_held(&node->lock));
}

static int bwk_iface_add(struct bwk_node *node, struct net_device *dev)
{
	struct bwk_iface *iface;
	int i, at = -1;

	for (i = BWK_IFACES - 1; i >= 0; i--) {
		if (!bwk_iface_slot(node, i))
			at = i;
		else if (bwk_iface_slot(node, i)->dev == dev)
			return -EEXIST;
	}
	if (at < 0)
		return -ENOSPC;
	/* Each frame of the device reads it, where its interrupts come. */
	iface = kzalloc_node(sizeof(*iface), GFP_KERNEL, dev_to_node(&dev->dev));
	if (!iface)
		return -ENOMEM;
	iface->type.type = htons(BW_ETHERTYPE);
	iface->type.dev = dev;
	iface->type.func = bwk_iface_frame;
	iface->type.list_func = bwk_iface_frames;
	iface->dev = dev;
	iface->node = node;
	iface->link = (u8)at;
	strscpy(iface->name, utsname()->nodename, sizeof(iface->name));
	dev_hold(dev);
	rcu_assign_pointer(node->iface[at], iface);
	dev_add_pack(&iface->type);
	return 0;
}

int bwk_iface_attach(struct bwk_node *node, struct net_device *dev)
{
	int error;

	if (dev->type != ARPHRD_ETHER || dev->mtu < BW_FRAME_MIN_MTU)
		return -EINVAL;
	mutex_lock(&node->lock);
	error = bwk_iface_add(node, dev);
	mutex_unlock(&node->lock);
	return error;
}

static void bwk_iface_remove(struct bwk_node *node, int i)
{
	struct bwk_iface *iface = bwk_iface_slot(node, i);

	RCU_INIT_POINTER(node->iface[i], NULL);
	dev_remove_pack(&iface->type); /* waits for handlers */
	dev_put(iface->dev);
	kfree_rcu(iface, rcu);
}

int bwk_iface_detach(struct bwk_node *node, const struct net_device *dev)
{
	int i, error = -ENODEV;

	mutex_lock(&node->lock);
	for (i = 0; i < BWK_IFACES; i++) {
		if (!bwk_iface_slot(node, i) || bwk_iface_slot(node, i)->dev != dev)
			continue;
		bwk_iface_remove(node, i);
		error = 0;
	}
	mutex_unlock(&node->lock);
	return error;
}

void bwk_iface_detach_all(struct bwk_node *node)
{
	int i;

	mutex_lock(&node->lock);
	for (i = 0; i < BWK_IFACES; i++)
		if (bwk_iface_slot(node, i))
			bwk_iface_remove(node, i);
	mutex_unlock(&node->lock);
}

/* A device that goes away, or becomes one of another type, takes its attachment along. */
static int bwk_iface_event(struct notifier_block *block, unsigned long event, void *info)
{
	struct net_device *dev = netdev_notifier_info_to_dev(info);
	struct bwk_node *node = bwk_node_of(dev_net(dev)); /* NULL if its start has failed */

	if (node && (event == NETDEV_UNREGISTER || event == NETDEV_PRE_TYPE_CHANGE))
		bwk_iface_detach(node, dev);
	return NOTIFY_DONE;
}

static struct notifier_block bwk_iface_notifier = {.notifier_call = bwk_iface_event};

int bwk_iface_init(void)
{
	return register_netdevice_notifier(&bwk_iface_notifier);
}

void bwk_iface_exit(void)
{
	unregister_netdevice_notifier(&bwk_iface_notifier);
}
