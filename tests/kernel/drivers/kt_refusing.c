/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A wire with two ends, the interfaces rf0 and rf1, at first both in the network namespace of who
 * loads it. Its driver does what one may do, and no other
 * one in a guest does: it writes to what the kernel gives to who has a frame (the `cb` of a socket
 * buffer), and refuses frames after that. It refuses those of rf0 only, as its parameters say.
 * Frames of other protocols than Beowire are lost.
 */
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/version.h>
#include <net/net_namespace.h>

#define ETHERTYPE  0x88b5
#define HOLD_LOOKS 200000 /* until a frame is held no longer: 20 s */
#define HOLD_US	   100

static struct net_device *end[2];

static unsigned int one_of = 1;
module_param(one_of, uint, 0644);
MODULE_PARM_DESC(one_of, "one of so many frames is taken, the others before it are refused");

static unsigned int refuse;
module_param(refuse, uint, 0644);
MODULE_PARM_DESC(refuse, "so many frames are refused next");

static bool hold;
module_param(hold, bool, 0644);
MODULE_PARM_DESC(hold, "a program's next frame stays in the driver's hands until this is 0");

static bool held;
module_param(held, bool, 0444);
MODULE_PARM_DESC(held, "one does (read only)");

static bool unreadable;
module_param(unreadable, bool, 0644);
MODULE_PARM_DESC(unreadable, "frames arrive with bytes that no processor can read (Linux 6.12)");

static unsigned int refused;
module_param(refused, uint, 0444);
MODULE_PARM_DESC(refused, "frames refused (read only)");

static unsigned int taken;
module_param(taken, uint, 0444);
MODULE_PARM_DESC(taken, "frames taken (read only)");

static unsigned int calls; /* since one was taken */

static void hold_frame(void)
{
	int looks = HOLD_LOOKS;

	WRITE_ONCE(held, true);
	while (READ_ONCE(hold) && looks--)
		udelay(HOLD_US);
	WRITE_ONCE(held, false);
}

/* A timer, or an arriving frame, has the module answer on whatever processor that is, the one that
 * looks whether a frame is held among them: only what a program itself sends is held. */
static bool is_programs(void)
{
	return in_task() && current->mm;
}

/* The queue's lock is held. */
static bool refuses(void)
{
	if (READ_ONCE(hold) && is_programs())
		hold_frame();
	if (READ_ONCE(refuse)) {
		WRITE_ONCE(refuse, refuse - 1);
		return true;
	}
	if (++calls < READ_ONCE(one_of))
		return true;
	calls = 0;
	return false;
}

static void hide(struct sk_buff *skb)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
	skb->unreadable = READ_ONCE(unreadable) && skb_is_nonlinear(skb);
#endif
}

static netdev_tx_t xmit(struct sk_buff *skb, struct net_device *dev)
{
	if (skb->protocol != htons(ETHERTYPE)) { /* the kernel's own, of IPv6 */
		dev_kfree_skb_any(skb);
		return NETDEV_TX_OK;
	}
	memset(skb->cb, 0xa5, sizeof(skb->cb));
	if (dev == end[1]) {
		dev_forward_skb(end[0], skb);
		return NETDEV_TX_OK;
	}
	if (refuses()) {
		WRITE_ONCE(refused, refused + 1);
		return NETDEV_TX_BUSY;
	}
	WRITE_ONCE(taken, taken + 1);
	hide(skb);
	dev_forward_skb(end[1], skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops ops = {
	.ndo_start_xmit = xmit,
	.ndo_validate_addr = eth_validate_addr,
};

static int add(int i)
{
	struct net_device *dev = alloc_etherdev(0);
	int error;

	if (!dev)
		return -ENOMEM;
	snprintf(dev->name, sizeof(dev->name), "rf%d", i);
	dev_net_set(dev, current->nsproxy->net_ns);
	dev->netdev_ops = &ops;
	dev->features = dev->hw_features = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_HIGHDMA;
	dev->max_mtu = 9000;
	eth_hw_addr_random(dev);
	error = register_netdev(dev);
	if (error)
		free_netdev(dev);
	else
		end[i] = dev;
	return error;
}

static void take_away(int i)
{
	unregister_netdev(end[i]);
	free_netdev(end[i]);
}

static int __init begin(void)
{
	int error = add(0);

	if (error)
		return error;
	error = add(1);
	if (error)
		take_away(0);
	return error;
}

/* One end goes before the other; both are down by now. */
static void __exit finish(void)
{
	take_away(0);
	take_away(1);
}

module_init(begin);
module_exit(finish);
MODULE_DESCRIPTION("A wire whose driver refuses frames, for tests");
MODULE_LICENSE("Dual BSD/GPL");
