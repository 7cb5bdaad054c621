/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The socket family, and what its types have in common: ports, options, waiting. See sock.h. */
#include "sock.h"

#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>

#include "registry.h"
#include "server.h"
#include "threshold.h"

#define BWK_EAGER_MAX 16384
#define BWK_DEAD_MS   60000
#define BWK_BUSY_MAX  1000000

int bwk_family = AF_BEOWIRE;
module_param_named(family, bwk_family, int, 0444);
MODULE_PARM_DESC(family, "number of the address family (default 19)");

struct proto bwk_proto = {
	.name = "BEOWIRE",
	.owner = THIS_MODULE,
	.obj_size = sizeof(struct bwk_sock),
};

int bwk_sock_addr(const struct sock *sk, const void *addr, int len, struct sockaddr_beowire *out)
{
	int error = 0;

	if (len < (int)sizeof(*out))
		return bwk_sock_bad(sk, BWK_BAD_ADDRESS, -EINVAL);
	memcpy(out, addr, sizeof(*out));
	if (out->sbw_family != bwk_family)
		error = -EAFNOSUPPORT;
	else if (out->sbw_zero[0] || out->sbw_zero[1])
		error = -EINVAL;
	return unlikely(error) ? bwk_sock_bad(sk, BWK_BAD_ADDRESS, error) : 0;
}

static int bwk_sock_open_port(struct bwk_sock *bs, u16 number, const struct bwk_port_ops *ops,
			      void *owner)
{
	struct bwk_port_attr attr = {
		.protocol = bs->protocol,
		.module = bs->module,
		.ops = ops,
		.owner = owner,
		.user = bs->user,
		.number = number,
		.checksum = bs->checksum,
		.dead_ms = bs->dead_ms,
		.rx_budget = max_t(u32, READ_ONCE(bs->sk.sk_rcvbuf), 65536),
	};
	struct bwk_port *port = bwk_port_open(bwk_node_of(sock_net(&bs->sk)), &attr);

	if (IS_ERR(port))
		return PTR_ERR(port);
	bs->module = NULL;
	smp_store_release(&bs->port, port);
	return 0;
}

struct bwk_port *bwk_sock_port(struct bwk_sock *bs, const struct bwk_port_ops *ops, void *owner)
{
	struct bwk_port *port = smp_load_acquire(&bs->port);
	int error = 0;

	if (port)
		return port;
	mutex_lock(&bs->lock);
	if (!bs->port)
		error = bwk_sock_open_port(bs, 0, ops, owner);
	port = bs->port;
	mutex_unlock(&bs->lock);
	return error ? ERR_PTR(error) : port;
}

int bwk_sock_bind_to(struct bwk_sock *bs, const struct sockaddr_beowire *addr,
		     const struct bwk_port_ops *ops, void *owner)
{
	int error = -EINVAL;

	if (addr->sbw_port > BEOWIRE_PORTS || !is_zero_ether_addr(addr->sbw_mac))
		return -EADDRNOTAVAIL;
	mutex_lock(&bs->lock);
	if (!bs->port)
		error = bwk_sock_open_port(bs, addr->sbw_port, ops, owner);
	mutex_unlock(&bs->lock);
	return error;
}

int bwk_sock_getname(struct socket *sock, struct sockaddr *addr, int peer)
{
	struct bwk_sock *bs = bwk_sk(sock->sk);
	struct sockaddr_beowire *out = (struct sockaddr_beowire *)addr;
	struct bwk_port *port = smp_load_acquire(&bs->port);

	memset(out, 0, sizeof(*out));
	if (peer) {
		mutex_lock(&bs->lock);
		*out = bs->to;
		mutex_unlock(&bs->lock);
		return out->sbw_port ? (int)sizeof(*out) : -ENOTCONN;
	}
	if (port)
		return bwk_sock_name(port->node, port->number, port->inc, out);
	out->sbw_family = bwk_family;
	return sizeof(*out);
}

int bwk_sock_name(struct bwk_node *node, u16 number, u32 inc, struct sockaddr_beowire *out)
{
	struct bwk_iface *iface;

	memset(out, 0, sizeof(*out));
	out->sbw_family = bwk_family;
	out->sbw_port = number;
	out->sbw_inc = inc;
	out->sbw_node = node->id;
	rcu_read_lock();
	iface = bwk_iface_find(node, 0);
	if (iface) {
		out->sbw_ifindex = iface->dev->ifindex;
		ether_addr_copy(out->sbw_mac, iface->dev->dev_addr);
	}
	rcu_read_unlock();
	return sizeof(*out);
}

/* ---- waiting ---- */

static bool bwk_sock_has_room(const struct sock *sk)
{
	return bwk_sock_roomy(sk, atomic_read(&bwk_sk(sk)->sending));
}

/* Or nothing more is to be sent, which the send then finds. */
static bool bwk_sock_may_charge(const struct sock *sk, int sending)
{
	return bwk_sock_roomy(sk, sending) || (READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN);
}

static bool bwk_sock_may_send(const struct sock *sk)
{
	return bwk_sock_may_charge(sk, atomic_read(&bwk_sk(sk)->sending));
}

static noinline int bwk_sock_await_room(struct bwk_sock *bs, long *timeout)
{
	/* What takes the room may be a row of messages that waits for this one. */
	if (bs->port) {
		bwk_port_lock(bs->port);
		bwk_port_run(bs->port);
		bwk_port_unlock(bs->port);
	}
	return bwk_sock_wait(&bs->sk, bwk_sock_may_send, timeout);
}

int bwk_sock_charge(struct bwk_sock *bs, size_t len, long *timeout)
{
	int sending = atomic_read(&bs->sending), error;

	do { /* added to what was seen and nothing else: others charge at the same time */
		while (unlikely(!bwk_sock_may_charge(&bs->sk, sending))) {
			error = bwk_sock_await_room(bs, timeout);
			if (error)
				return error;
			sending = atomic_read(&bs->sending);
		}
	} while (!atomic_try_cmpxchg(&bs->sending, &sending, sending + (int)len + BWK_SEND_COST));
	return 0;
}

void bwk_sock_uncharge(struct bwk_sock *bs, u32 charge)
{
	struct sock *sk = &bs->sk;
	int now = atomic_sub_return(charge, &bs->sending), before = now + (int)charge;

	if ((!bwk_sock_roomy(sk, before) && bwk_sock_has_room(sk)) ||
	    (!now && sock_flag(sk, SOCK_LINGER))) /* close() may wait */
		sk->sk_write_space(sk);
}

/* The receive call looks for a while before it sleeps, and gives its core away between two looks
 * if others want it. The while begins at the second look: mostly there is none. It lasts no longer
 * than the call may wait. */
static bool bwk_sock_spin(struct sock *sk, bool (*ready)(const struct sock *sk), long *timeout)
{
	unsigned long begin = jiffies, patience = *timeout;
	u64 until = 0;
	bool again = false, found;

	for (; !(found = ready(sk)); again = true) {
		if (signal_pending(current) || sk->sk_err)
			break;
		if (until && (ktime_get_ns() >= until || jiffies - begin >= patience))
			break;
		if (again && !until)
			until = ktime_get_ns() + bwk_sk(sk)->busy_us * BW_US;
		if (need_resched() || !single_task_running())
			yield();
		else
			cpu_relax();
	}
	if (*timeout != MAX_SCHEDULE_TIMEOUT)
		*timeout -= min(jiffies - begin, patience);
	return found;
}

int bwk_sock_wait_busy(struct sock *sk, bool (*ready)(const struct sock *sk), long *timeout)
{
	if (*timeout && bwk_sk(sk)->busy_us && bwk_sock_spin(sk, ready, timeout))
		return 0;
	return bwk_sock_wait(sk, ready, timeout);
}

int bwk_sock_wait(struct sock *sk, bool (*ready)(const struct sock *sk), long *timeout)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	int error = 0;

	if (!*timeout)
		return -EAGAIN;
	add_wait_queue(sk_sleep(sk), &wait);
	while (!ready(sk)) {
		error = sock_error(sk);
		if (error)
			break;
		if (signal_pending(current)) {
			error = sock_intr_errno(*timeout);
			break;
		}
		if (!*timeout) {
			error = -EAGAIN;
			break;
		}
		*timeout = wait_woken(&wait, TASK_INTERRUPTIBLE, *timeout);
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return error;
}

int bwk_sock_await(struct bwk_sock *bs, const struct bwk_buf *b, long *timeout)
{
	long left = *timeout;

	if (smp_load_acquire(&b->done))
		return 0;
	if (!left)
		return -EAGAIN;
	left = wait_event_interruptible_timeout(*sk_sleep(&bs->sk), smp_load_acquire(&b->done),
						left);
	if (left == -ERESTARTSYS)
		return sock_intr_errno(*timeout);
	*timeout = left;
	return left ? 0 : -EAGAIN;
}

bool bwk_sock_stop_locked(struct bwk_port *port, struct bwk_buf *b, struct bw_op *op)
{
	if (!b->done) {
		bwk_port_submit(port, op);
		bwk_port_run(port);
	}
	if (b->done)
		return true;
	b->awaited = b->notify = b->ahead = false;
	return false;
}

bool bwk_sock_stop(struct bwk_port *port, struct bwk_buf *b, struct bw_op *op)
{
	bool done;

	bwk_port_lock(port);
	done = bwk_sock_stop_locked(port, b, op);
	bwk_port_unlock(port);
	return done;
}

/* Is the end of a send to be told by the socket's next call? Not where an event tells it, nor of a
 * connection whose end was told before, with which all its sends end. */
static bool bwk_sock_blames(const struct bwk_sock *bs, const struct bwk_buf *b)
{
	return b->status < 0 && b->status != -ECANCELED && b->use != BWK_BUF_PULL &&
	       !bs->info_wanted && !(bs->peer && bs->sk.sk_state == TCP_CLOSE);
}

void bwk_sock_done(struct bwk_sock *bs, struct bwk_buf *b)
{
	if (b->sending)
		bwk_sock_uncharge(bs, b->sending);
	if (b->awaited) {
		bool ahead = b->ahead;

		smp_store_release(&b->done, true);
		if (ahead)
			bs->sk.sk_data_ready(&bs->sk);
		else
			wake_up_all(sk_sleep(&bs->sk));
	} else if (b->notify) {
		list_add_tail(&b->ended, &bs->done);
		bs->sk.sk_data_ready(&bs->sk);
	} else {
		if (unlikely(b->status) && bwk_sock_blames(bs, b)) {
			bs->sk.sk_err = b->status == -ESHUTDOWN ? ECONNRESET : -b->status;
			sk_error_report(&bs->sk);
		}
		if (!bwk_spares_keep(&bs->spares, b))
			bwk_buf_free(b);
	}
}

/* ---- options ---- */

static int bwk_sock_set(struct bwk_sock *bs, int name, int value)
{
	switch (name) {
	case BEOWIRE_BUSY_US:
		if (value < 0 || value > BWK_BUSY_MAX)
			return -EINVAL;
		bs->busy_us = value;
		return 0;
	case BEOWIRE_CHECKSUM:
		if (bs->port)
			return -EISCONN;
		if (value < 0 || value > 1)
			return -EINVAL;
		bs->checksum = value;
		return 0;
	case BEOWIRE_COPY_MAX:
		if (value < 0)
			return -EINVAL;
		bs->copy_max = value;
		return 0;
	case BEOWIRE_EAGER_MAX:
		if (value < 0 || value > BW_EAGER_LIMIT)
			return -EINVAL;
		bs->eager_max = value;
		return 0;
	case BEOWIRE_DEAD_MS:
		if (bs->port)
			return -EISCONN;
		if (value < 1)
			return -EINVAL;
		bs->dead_ms = value;
		return 0;
	case BEOWIRE_INFO_WANTED:
		if (bs->sk.sk_type != SOCK_RDM || value < 0 || value > 1)
			return -EINVAL;
		bs->info_wanted = value;
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
		return bs->busy_us;
	case BEOWIRE_CHECKSUM:
		return bs->checksum;
	case BEOWIRE_COPY_MAX:
		return bs->copy_max;
	case BEOWIRE_EAGER_MAX:
		return bs->eager_max;
	case BEOWIRE_DEAD_MS:
		return bs->dead_ms;
	case BEOWIRE_INFO_WANTED:
		return bs->info_wanted;
	case BEOWIRE_PRESSURE:
		return bs->hold;
	}
	return -ENOPROTOOPT;
}

static void bwk_sock_counters(struct bwk_port *port, struct beowire_counters *out)
{
	const struct bw_counters *c;
	int i;

	BUILD_BUG_ON(BW_DROP_REASONS > BEOWIRE_DROP_REASONS);
	memset(out, 0, sizeof(*out));
	bwk_port_lock(port);
	c = port->protocol->counters(port->engine);
	out->tx_frames = c->tx_frames;
	out->rx_frames = c->rx_frames;
	out->tx_bytes = port->tx_bytes;
	out->rx_bytes = port->rx_bytes;
	out->tx_payload = c->tx_payload;
	out->rx_payload = c->rx_payload;
	out->tx_messages = c->tx_messages;
	out->rx_messages = c->rx_messages;
	out->retransmits = c->retransmits;
	out->losses = c->losses;
	out->probes = c->probes;
	out->peers = c->peers;
	for (i = 0; i < BW_DROP_REASONS; i++)
		out->drop[i] = c->drop[i];
	out->copied_tx = port->copied_tx;
	out->copied_rx = port->copied_rx;
	out->pinned = port->pinned;
	out->memlock_limited = port->memlock_limited;
	out->tx_busy = port->tx_busy;
	bwk_port_unlock(port);
}

/* BEOWIRE_PEER_NUMBER, or with `ask` BEOWIRE_PEER_UP. */
static int bwk_sock_peer_number(struct bwk_sock *bs, const void __user *from, bool ask)
{
	struct bwk_port *port = smp_load_acquire(&bs->port);
	struct sockaddr_beowire addr;
	struct bwk_peer *peer;
	int number;

	if (!port)
		return -ENOTCONN;
	if (copy_from_user(&addr, from, sizeof(addr)))
		return -EFAULT;
	number = bwk_sock_addr(&bs->sk, &addr, sizeof(addr), &addr);
	if (number)
		return number;
	if (!ask && (!addr.sbw_port || !is_valid_ether_addr(addr.sbw_mac)))
		return -EINVAL; /* no single port of a single node */
	bwk_port_lock(port);
	if (ask) {
		number = bwk_peer_is_up(port, &addr);
	} else {
		peer = bwk_peer_find(port, &addr);
		number = IS_ERR(peer) ? PTR_ERR(peer) : (int)peer->number;
		bwk_port_run(port);
	}
	bwk_port_unlock(port);
	return number;
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
		bwk_sock_counters(port, &counters);
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

/* ---- ioctl ---- */

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

/* ---- the family ---- */

static void bwk_sock_destruct(struct sock *sk)
{
	skb_queue_purge(&sk->sk_receive_queue);
	bwk_spares_free(&bwk_sk(sk)->spares);
	module_put(bwk_sk(sk)->module);
	if (bwk_sk(sk)->bell)
		put_page(bwk_sk(sk)->bell);
	if (bwk_sk(sk)->server)
		bwk_server_put(bwk_sk(sk)->server);
	if (bwk_sk(sk)->user)
		bwk_user_put(bwk_sk(sk)->user);
}

void bwk_sock_begin(struct bwk_sock *bs, const struct bw_protocol *protocol)
{
	bs->sk.sk_destruct = bwk_sock_destruct;
	bs->protocol = protocol;
	mutex_init(&bs->lock);
	mutex_init(&bs->opening);
	mutex_init(&bs->reading);
	bs->checksum = true;
	bs->copy_max = bwk_node_of(sock_net(&bs->sk))->set.copy_max ?: bwk_threshold;
	bs->eager_max = BWK_EAGER_MAX;
	bs->dead_ms = BWK_DEAD_MS;
	atomic_set(&bs->sending, 0);
	INIT_LIST_HEAD(&bs->done);
	INIT_LIST_HEAD(&bs->downs);
	INIT_LIST_HEAD(&bs->accept);
}

/* What the type of socket speaks. */
static int bwk_sock_choose(struct socket *sock, int protocol, struct bwk_sock *bs)
{
	switch (sock->type) {
	case SOCK_RDM:
	case SOCK_SEQPACKET:
	case SOCK_STREAM:
		if (protocol)
			return -EPROTONOSUPPORT;
		bs->protocol = &bw_reliable;
		sock->ops = sock->type == SOCK_RDM ? &bwk_msg_ops : &bwk_conn_ops;
		return 0;
	case SOCK_DGRAM:
		break;
	default:
		return -ESOCKTNOSUPPORT;
	}
	bs->protocol =
		bwk_registry_get(protocol ? protocol : BEOWIRE_PROTOCOL_DATAGRAM, &bs->module);
	sock->ops = &bwk_msg_ops;
	if (bs->protocol)
		return 0;
	bs->server = bwk_server_get(bwk_node_of(sock_net(&bs->sk)), protocol);
	sock->ops = &bwk_server_sock_ops;
	return bs->server ? 0 : -EPROTONOSUPPORT;
}

void bwk_sock_show(struct bwk_sock *bs)
{
	struct bwk_node *node = bwk_node_of(sock_net(&bs->sk));

	spin_lock_bh(&node->socks_lock);
	hlist_add_head(&bs->listed, &node->socks);
	spin_unlock_bh(&node->socks_lock);
	sock_prot_inuse_add(node->net, &bwk_proto, 1);
}

void bwk_sock_hide(struct bwk_sock *bs)
{
	struct bwk_node *node = bwk_node_of(sock_net(&bs->sk));

	spin_lock_bh(&node->socks_lock);
	hlist_del_init(&bs->listed);
	spin_unlock_bh(&node->socks_lock);
	sock_prot_inuse_add(node->net, &bwk_proto, -1);
}

void bwk_sock_end(struct sock *sk)
{
	sock_orphan(sk);
	sock_put(sk);
}

static int bwk_sock_create(struct net *net, struct socket *sock, int protocol, int kern)
{
	struct bwk_node *node = bwk_node_of(net);
	struct bwk_sock *bs;
	struct sock *sk;
	int error;

	if (!kern && !bwk_sysctl_allows(node))
		return -EACCES;
	sk = sk_alloc(net, bwk_family, GFP_KERNEL, &bwk_proto, kern);
	if (!sk)
		return -ENOMEM;
	bs = bwk_sk(sk);
	sock_init_data(sock, sk);
	sk->sk_family = bwk_family;
	bwk_sock_begin(bs, NULL);
	bs->user = bwk_user_of_task();
	error = bs->user ? bwk_sock_choose(sock, protocol, bs) : -ENOMEM;
	if (error) {
		sock_orphan(sk);
		sock_put(sk);
		sock->sk = NULL;
		return error;
	}
	bwk_sock_show(bs);
	return 0;
}

static struct net_proto_family bwk_sock_family = {
	.create = bwk_sock_create,
	.owner = THIS_MODULE,
};

int bwk_sock_init(void)
{
	int error = proto_register(&bwk_proto, 1);

	if (error)
		return error;
	bwk_sock_family.family = bwk_family;
	error = sock_register(&bwk_sock_family);
	if (error) {
		pr_err("beowire: the number %d of the address family is %s; mend: another one by "
		       "the parameter family, such as 13, 14 or 18\n",
		       bwk_family, error == -EEXIST ? "taken" : "not possible");
		proto_unregister(&bwk_proto);
	}
	return error;
}

void bwk_sock_exit(void)
{
	sock_unregister(bwk_family);
	proto_unregister(&bwk_proto);
}
