/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Options of level SOL_BEOWIRE, and ioctls. */
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/etherdevice.h>
#include <linux/rtnetlink.h>

#include "shard.h"
#include "sock.h"

#define BWK_BUSY_MAX 1000000

static int bwk_sock_set(struct bwk_sock *bs, int name, int value)
{
	switch (name) {
	case BEOWIRE_BUSY_US:
		if (value < 0 || value > BWK_BUSY_MAX)
			return -EINVAL;
		WRITE_ONCE(bs->busy_us, value);
		return 0;
	case BEOWIRE_WAIT:
		if (value != BEOWIRE_WAIT_FIXED && value != BEOWIRE_WAIT_ADAPTIVE)
			return -EINVAL;
		WRITE_ONCE(bs->adaptive, value == BEOWIRE_WAIT_ADAPTIVE);
		return 0;
	case BEOWIRE_CHECKSUM:
		if (bs->port)
			return -EISCONN;
		if (value < 0 || value > 1)
			return -EINVAL;
		WRITE_ONCE(bs->checksum, value);
		return 0;
	case BEOWIRE_COPY_MAX:
		if (value < 0)
			return -EINVAL;
		WRITE_ONCE(bs->copy_max, value);
		return 0;
	case BEOWIRE_EAGER_MAX:
		if (value < 0 || value > BW_EAGER_LIMIT)
			return -EINVAL;
		WRITE_ONCE(bs->eager_max, value);
		return 0;
	case BEOWIRE_DEAD_MS:
		if (bs->port)
			return -EISCONN;
		if (value < 1)
			return -EINVAL;
		WRITE_ONCE(bs->dead_ms, value);
		return 0;
	case BEOWIRE_INFO_WANTED:
		if (bs->sk.sk_type != SOCK_RDM || value < 0 || value > 1)
			return -EINVAL;
		WRITE_ONCE(bs->info_wanted, value);
		return 0;
	case BEOWIRE_PRESSURE:
		if (bs->sk.sk_type != SOCK_RDM || value < 0 || value > 1)
			return -EINVAL;
		bwk_msg_pressure(bs, value);
		return 0;
	}
	return -ENOPROTOOPT;
}

int bwk_sock_setsockopt(struct socket *sock, int level, int name, sockptr_t value, unsigned int len)
{
	struct bwk_sock *bs = bwk_sk(sock->sk);
	int number, error;

	if (level != SOL_BEOWIRE) {
		error = -ENOPROTOOPT;
	} else if (len < sizeof(number)) {
		error = -EINVAL;
	} else if (copy_from_sockptr(&number, value, sizeof(number))) {
		error = -EFAULT;
	} else {
		mutex_lock(&bs->lock);
		error = bwk_sock_set(bs, name, number);
		mutex_unlock(&bs->lock);
	}
	return error ? bwk_sock_bad(&bs->sk, BWK_BAD_OPTION, error) : 0;
}

static int bwk_sock_get(const struct bwk_sock *bs, int name)
{
	switch (name) {
	case BEOWIRE_BUSY_US:
		return READ_ONCE(bs->busy_us);
	case BEOWIRE_WAIT:
		return READ_ONCE(bs->adaptive) ? BEOWIRE_WAIT_ADAPTIVE : BEOWIRE_WAIT_FIXED;
	case BEOWIRE_CHECKSUM:
		return READ_ONCE(bs->checksum);
	case BEOWIRE_COPY_MAX:
		return READ_ONCE(bs->copy_max);
	case BEOWIRE_EAGER_MAX:
		return READ_ONCE(bs->eager_max);
	case BEOWIRE_DEAD_MS:
		return READ_ONCE(bs->dead_ms);
	case BEOWIRE_INFO_WANTED:
		return READ_ONCE(bs->info_wanted);
	case BEOWIRE_PRESSURE:
		return READ_ONCE(bs->hold);
	}
	return -ENOPROTOOPT;
}

/* Port's lock held. */
static void bwk_sock_sum(const struct bwk_port *port, struct beowire_counters *out)
{
	const struct bw_counters *c = port->protocol->counters(port->engine);
	int i;

	BUILD_BUG_ON(BW_DROP_REASONS > BEOWIRE_DROP_REASONS);
	out->tx_frames += c->tx_frames;
	out->rx_frames += c->rx_frames;
	out->tx_bytes += port->tx_bytes;
	out->rx_bytes += port->rx_bytes;
	out->tx_payload += c->tx_payload;
	out->rx_payload += c->rx_payload;
	out->tx_messages += c->tx_messages;
	out->rx_messages += c->rx_messages;
	out->duplex_payload += c->duplex_payload;
	out->duplex_messages += c->duplex_messages;
	out->retransmits += c->retransmits;
	out->losses += c->losses;
	out->probes += c->probes;
	out->peers += c->peers;
	out->evicted += c->evicted;
	for (i = 0; i < BW_DROP_REASONS; i++)
		out->drop[i] += c->drop[i];
	out->copied_tx += port->copied_tx;
	out->copied_rx += port->copied_rx;
	out->pinned += port->pinned;
	out->memlock_limited += (unsigned long)atomic_long_read(&port->memlock_limited);
	out->tx_busy += port->tx_busy;
}

static void bwk_sock_add_counters(struct bwk_port *port, void *sum)
{
	bwk_port_lock(port);
	bwk_sock_sum(port, sum);
	bwk_port_unlock(port);
}

/* BEOWIRE_PEER_NUMBER, or with `ask` BEOWIRE_PEER_UP. A connection has one peer, and a listener
 * speaks to nobody first: of its shards only one would hear the answer. */
static int bwk_sock_peer_number(struct bwk_sock *bs, const void __user *from, bool ask)
{
	struct bwk_port *port = smp_load_acquire(&bs->port);
	struct sockaddr_beowire addr;
	struct bwk_peer *peer;
	int number;

	if (bwk_sock_connects(&bs->sk))
		return -EOPNOTSUPP;
	if (!port)
		return -ENOTCONN;
	if (copy_from_user(&addr, from, sizeof(addr)))
		return -EFAULT;
	number = bwk_given_addr(&bs->sk, &addr, sizeof(addr), &addr);
	if (number)
		return number;
	if (!ask && (!addr.sbw_port || !is_valid_ether_addr(addr.sbw_mac)))
		return -EINVAL; /* no single port of a single node */
	do {
		bwk_port_lock(port);
		if (ask) {
			number = bwk_peer_is_up(port, &addr);
		} else {
			peer = bwk_peer_find(port, &addr);
			number = IS_ERR(peer) ? PTR_ERR(peer) : (int)peer->number;
			if (number != -EAGAIN) /* else bwk_port_feed() does */
				bwk_port_run(port);
		}
		bwk_port_unlock(port);
	} while (number == -EAGAIN && bwk_port_feed(port) == 0);
	return number == -EAGAIN ? -ENOBUFS : number;
}

/* Name of the host of the peer whose number is at `from`. Its length with the 0, or an error. */
static int bwk_sock_peer_name(struct bwk_sock *bs, const void __user *from, char *name)
{
	struct bwk_port *port = smp_load_acquire(&bs->port);
	struct bwk_peer *peer;
	u32 number;

	if (!port)
		return -ENOTCONN;
	if (copy_from_user(&number, from, sizeof(number)))
		return -EFAULT;
	bwk_port_lock(port);
	peer = bwk_peer_by_number(port, number);
	if (peer)
		strscpy(name, peer->name, BW_NAME_MAX + 1);
	bwk_port_unlock(port);
	return peer ? (int)strlen(name) + 1 : -ENOTCONN;
}

static int bwk_sock_read(struct bwk_sock *bs, int level, int name, char __user *value,
			 int __user *len)
{
	struct bwk_port *port = smp_load_acquire(&bs->port);
	struct beowire_counters counters;
	int room, number, n = sizeof(number);
	char text[BW_NAME_MAX + 1];
	const void *from = &number;

	if (level != SOL_BEOWIRE)
		return -ENOPROTOOPT;
	if (get_user(room, len))
		return -EFAULT;
	if (room < 0)
		return -EINVAL;
	if (name == BEOWIRE_COUNTERS) {
		if (!port)
			return -ENOTCONN;
		memset(&counters, 0, sizeof(counters));
		bwk_shards_visit(port, bwk_sock_add_counters, &counters);
		from = &counters;
		n = sizeof(counters);
	} else if (name == BEOWIRE_PEER_NAME) {
		n = room < (int)sizeof(u32) ? -EINVAL : bwk_sock_peer_name(bs, value, text);
		if (n < 0)
			return n;
		from = text;
	} else {
		bool ask = name == BEOWIRE_PEER_UP, peer = ask || name == BEOWIRE_PEER_NUMBER;

		if (peer && room < (int)sizeof(struct sockaddr_beowire))
			return -EINVAL;
		number = peer ? bwk_sock_peer_number(bs, value, ask) : bwk_sock_get(bs, name);
		if (number < 0)
			return number;
	}
	n = min(n, room);
	return copy_to_user(value, from, n) || put_user(n, len) ? -EFAULT : 0;
}

int bwk_sock_getsockopt(struct socket *sock, int level, int name, char __user *value,
			int __user *len)
{
	int error = bwk_sock_read(bwk_sk(sock->sk), level, name, value, len);

	return error ? bwk_sock_bad(sock->sk, BWK_BAD_OPTION, error) : 0;
}

static int bwk_sock_attach(struct net *net, struct beowire_iface *iface, bool attach)
{
	struct bwk_node *node = bwk_node_of(net);
	struct net_device *dev;
	int error = -ENODEV;

	if (!ns_capable(net->user_ns, CAP_NET_ADMIN))
		return -EPERM;
	iface->name[sizeof(iface->name) - 1] = '\0';
	rtnl_lock(); /* the device stays, or its going is heard of after it is attached */
	dev = __dev_get_by_name(net, iface->name);
	if (dev) {
		error = attach ? bwk_iface_attach(node, dev) : bwk_iface_detach(node, dev);
		iface->ifindex = dev->ifindex;
		iface->mtu = bwk_iface_mtu(dev);
	}
	rtnl_unlock();
	return error;
}

static int bwk_sock_control(struct socket *sock, unsigned int command, unsigned long arg)
{
	struct bwk_sock *bs = bwk_sk(sock->sk);
	void __user *user = (void __user *)arg;
	struct beowire_iface iface;
	struct beowire_region region;
	struct beowire_watch watch;
	struct beowire_pull pull;
	u64 cookie;
	int error;

	switch (command) {
	case BEOWIRE_IOC_ATTACH:
	case BEOWIRE_IOC_DETACH:
		if (copy_from_user(&iface, user, sizeof(iface)))
			return -EFAULT;
		error = bwk_sock_attach(sock_net(sock->sk), &iface, command == BEOWIRE_IOC_ATTACH);
		if (!error && copy_to_user(user, &iface, sizeof(iface)))
			return -EFAULT;
		return error;
	case BEOWIRE_IOC_PULL:
		if (copy_from_user(&pull, user, sizeof(pull)))
			return -EFAULT;
		return sock->type == SOCK_RDM ? bwk_msg_pull(bs, &pull) : -EOPNOTSUPP;
	case BEOWIRE_IOC_CANCEL:
		if (copy_from_user(&cookie, user, sizeof(cookie)))
			return -EFAULT;
		return sock->type == SOCK_RDM ? bwk_msg_cancel(bs, cookie) : -EOPNOTSUPP;
	case BEOWIRE_IOC_WATCH:
		if (copy_from_user(&watch, user, sizeof(watch)))
			return -EFAULT;
		return sock->type == SOCK_RDM ? bwk_msg_watch(bs, &watch) : -EOPNOTSUPP;
	case BEOWIRE_IOC_NEED:
		if (copy_from_user(&watch, user, sizeof(watch)))
			return -EFAULT;
		return sock->type == SOCK_RDM ? bwk_msg_need(bs, &watch) : -EOPNOTSUPP;
	case BEOWIRE_IOC_REGION:
	case BEOWIRE_IOC_SERVING:
		if (copy_from_user(&region, user, sizeof(region)))
			return -EFAULT;
		if (sock->type != SOCK_RDM)
			return -EOPNOTSUPP;
		return command == BEOWIRE_IOC_REGION ? bwk_region_answer(bs, &region)
						     : bwk_region_serving(bs, &region);
	}
	return -ENOIOCTLCMD;
}

int bwk_sock_ioctl(struct socket *sock, unsigned int command, unsigned long arg)
{
	int result = bwk_sock_control(sock, command, arg);

	return result < 0 ? bwk_sock_bad(sock->sk, BWK_BAD_IOCTL, result) : result;
}

#ifdef CONFIG_COMPAT
int bwk_sock_compat_ioctl(struct socket *sock, unsigned int command, unsigned long arg)
{
	return bwk_sock_ioctl(sock, command, (unsigned long)compat_ptr(arg));
}
#endif
