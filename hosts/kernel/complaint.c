/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is malformed gets its errno, is counted by kind, and is told in the log at the rate that
 * net.core.message_burst and message_cost allow; nothing else comes of it. At the same rate the log
 * is told why a peer does not talk to this node, if people have to mend it.
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

bool bwk_is_news(atomic64_t *last, const struct sockaddr_beowire *peer)
{
	s64 address = ether_addr_to_u64(peer->sbw_mac), told = atomic64_read(last);

	return told != address && net_ratelimit() && atomic64_cmpxchg(last, told, address) == told;
}

void bwk_tell_version(struct bwk_node *node, const struct bwk_peer *peer,
		      const struct bw_event *down)
{
	const struct sockaddr_beowire *at = &peer->addr;

	if (bwk_is_news(&node->other_version, at)) /* its name may be any bytes */
		pr_info("beowire: node %016llx at %pM (engine %u%s%*pE) speaks versions %u to %u "
			"of the wire protocol, this node %016llx speaks %u, so they do not talk "
			"to each other; mend: install the same Beowire on both\n",
			at->sbw_node, at->sbw_mac, at->sbw_port, peer->name[0] ? " of " : "",
			(int)strnlen(peer->name, BW_NAME_MAX), peer->name, down->version_min,
			down->version_max, node->id, BW_VERSION);
}
