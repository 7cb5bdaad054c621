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

bool bwk_is_news(struct bwk_news *news, const struct sockaddr_beowire *peer)
{
	s64 address = ether_addr_to_u64(peer->sbw_mac), oldest;
	unsigned int next = READ_ONCE(news->next), i;
	atomic64_t *at = &news->of[next % BWK_NEWS];

	for (i = 0; i < BWK_NEWS; i++)
		if (atomic64_read(&news->of[i]) == address)
			return false;
	oldest = atomic64_read(at);
	if (!net_ratelimit() || atomic64_cmpxchg(at, oldest, address) != oldest)
		return false;
	WRITE_ONCE(news->next, next + 1);
	return true;
}

void bwk_news_forget(struct bwk_news *news)
{
	int i;

	for (i = 0; i < BWK_NEWS; i++)
		atomic64_set(&news->of[i], 0);
}

/* This node, as people know it: by its identity and the name of its first interface's host, which
 * may be any bytes. */
struct bwk_self {
	char text[16 + sizeof(" of ") + 4 * BW_NAME_MAX];
};

static const char *bwk_self(const struct bwk_node *node, struct bwk_self *self)
{
	const char *name = "";
	int i;

	rcu_read_lock();
	for (i = 0; i < BWK_IFACES && !name[0]; i++) {
		const struct bwk_iface *iface = rcu_dereference(node->iface[i]);

		if (iface)
			name = iface->name;
	}
	scnprintf(self->text, sizeof(self->text), "%016llx%s%*pE", node->id, name[0] ? " of " : "",
		  (int)strlen(name), name);
	rcu_read_unlock();
	return self->text;
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
	struct bwk_self self;

	if (bwk_is_news(&node->other_version, &peer->addr))
		bwk_say_of(peer,
			   "speaks versions %u to %u of the wire protocol, this node %s "
			   "speaks %u, so they do not talk to each other; fix: install the same "
			   "Beowire on both",
			   down->version_min, down->version_max, bwk_self(node, &self), BW_VERSION);
}

void bwk_tell_key(struct bwk_node *node, const struct bwk_peer *peer)
{
	struct bwk_self self;

	if (bwk_is_news(&node->set.key.differs, &peer->addr))
		bwk_say_of(peer,
			   "and this node %s have different keys, so they do not talk to each "
			   "other; fix: the same key in net.beowire.key of both, or none on "
			   "either",
			   bwk_self(node, &self));
}

void bwk_tell_encrypts(struct bwk_node *node, const struct bwk_peer *peer)
{
	struct bwk_self self;

	if (bwk_is_news(&node->set.key.open, &peer->addr))
		bwk_say_of(peer,
			   "or this node %s encrypts, the other does not, so they do not talk "
			   "to each other; fix: net.beowire.encrypt = 1 on both, or 0 on both",
			   bwk_self(node, &self));
}

void bwk_tell_still(struct bwk_node *node, const struct bwk_peer *peer, u64 now, u64 late_ns)
{
	s64 told = atomic64_read(&node->still);
	struct bwk_self self;

	if ((s64)now - told < BWK_STILL_NS || !net_ratelimit() ||
	    atomic64_cmpxchg(&node->still, told, (s64)now) != told)
		return;
	if (peer)
		bwk_say_of(peer,
			   "was waited for while this node %s stood still, or its clock "
			   "jumped, by %llu ms at least; no peer is given up for that",
			   bwk_self(node, &self), div_u64(late_ns, NSEC_PER_MSEC));
	else
		pr_info("beowire: this node %s stood still, or its clock jumped, by %llu ms "
			"at least; no peer is given up for that\n",
			bwk_self(node, &self), div_u64(late_ns, NSEC_PER_MSEC));
}
