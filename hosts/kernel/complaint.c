/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is malformed gets its errno, is counted by kind, and is told in the log at the rate that
 * net.core.message_burst and message_cost allow; nothing else comes of it.
 */
#include <linux/etherdevice.h>
#include <linux/net.h>
#include <linux/sched.h>

#include "port.h"

static const char *const bwk_bad_names[] = {
	[BWK_BAD_ADDRESS] = "address",
	[BWK_BAD_OPTION] = "option",
	[BWK_BAD_IOCTL] = "ioctl",
};

noinline int bwk_bad_call(const struct bwk_node *node, enum bwk_bad kind, int error)
{
	switch (error) {
	case -EINVAL:
	case -EFAULT:
	case -EAFNOSUPPORT:
	case -EADDRNOTAVAIL:
	case -ENOPROTOOPT:
	case -ENOIOCTLCMD:
	case -ENOTTY:
		this_cpu_inc(node->count->bad[kind]);
		net_info_ratelimited("beowire: %s[%d]: malformed %s (%d)\n", current->comm,
				     task_pid_nr(current), bwk_bad_names[kind], error);
	}
	return error;
}

noinline void bwk_bad_frame(const struct bwk_iface *iface, const struct sk_buff *skb, int reason)
{
	net_info_ratelimited("beowire: %s: malformed frame from %pM (%d)\n",
			     netdev_name(iface->dev), eth_hdr(skb)->h_source, reason);
}
