/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is malformed gets its errno, is counted by kind, and is told in the log at the rate that
 * net.core.message_burst and message_cost allow; nothing else comes of it. At the same rate the log
 * is told why a peer does not talk to this node, if people have to fix it, and that this node
 * stood still.
 */
#include <linux/etherdevice.h>
#include <linux/math64.h>
#include <linux/net.h>
#include <linux/sched.h>

#include "port.h"

#define BWK_STILL_NS NSEC_PER_SEC /* in which what several ports say of one time is one line */

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

/* One line of what people have to know of a peer. Its name may be any bytes. */
static __printf(2, 3) void bwk_say_of(const struct bwk_peer *peer, const char *format, ...)
{
	const struct sockaddr_beowire *at = &peer->addr;
	struct va_format what = {.fmt = format};
	va_list args;

	va_start(args, format);
	what.va = &args;
	pr_info("beowire: node %016llx at %pM (engine %u%s%*pE) %pV\n", at->sbw_node, at->sbw_mac,
		at->sbw_port, peer->name[0] ? " of " : "", (int)strnlen(peer->name, BW_NAME_MAX),
		peer->name, &what);
	va_end(args);
}

void bwk_tell_version(struct bwk_node *node, const struct bwk_peer *peer,
		      const struct bw_event *down)
{
	if (bwk_is_news(&node->other_version, &peer->addr))
		bwk_say_of(peer,
			   "speaks versions %u to %u of the wire protocol, this node %016llx "
			   "speaks %u, so they do not talk to each other; fix: install the same "
			   "Beowire on both",
			   down->version_min, down->version_max, node->id, BW_VERSION);
}

void bwk_tell_key(struct bwk_node *node, const struct bwk_peer *peer)
{
	if (bwk_is_news(&node->set.key.differs, &peer->addr))
		bwk_say_of(peer,
			   "and this node %016llx have different keys, so they do not talk to each "
			   "other; fix: the same key in net.beowire.key of both, or none on "
			   "either",
			   node->id);
}

void bwk_tell_encrypts(struct bwk_node *node, const struct bwk_peer *peer)
{
	if (bwk_is_news(&node->set.key.open, &peer->addr))
		bwk_say_of(peer,
			   "or this node %016llx encrypts, the other does not, so they do not talk "
			   "to each other; fix: net.beowire.encrypt = 1 on both, or 0 on both",
			   node->id);
}

void bwk_tell_still(struct bwk_node *node, const struct bwk_peer *peer, u64 now, u64 late_ns)
{
	s64 told = atomic64_read(&node->still);

	if ((s64)now - told < BWK_STILL_NS || !net_ratelimit() ||
	    atomic64_cmpxchg(&node->still, told, (s64)now) != told)
		return;
	if (peer)
		bwk_say_of(peer,
			   "was waited for while this node %016llx stood still, or its clock "
			   "jumped, by %llu ms at least; no peer is given up for that",
			   node->id, div_u64(late_ns, NSEC_PER_MSEC));
	else
		pr_info("beowire: this node %016llx stood still, or its clock jumped, by %llu ms "
			"at least; no peer is given up for that\n",
			node->id, div_u64(late_ns, NSEC_PER_MSEC));
}
