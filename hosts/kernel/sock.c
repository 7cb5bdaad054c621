/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The socket family, and what its types have in common: ports, names, ends. See sock.h. */
#include "sock.h"

#include <linux/etherdevice.h>
#include <linux/module.h>

#include "registry.h"
#include "server.h"
#include "shard.h"
#include "threshold.h"

#define BWK_EAGER_MAX 16384
#define BWK_DEAD_MS   60000

int bwk_family = AF_BEOWIRE;
module_param_named(family, bwk_family, int, 0444);
MODULE_PARM_DESC(family, "number of the address family (default 19)");

struct proto bwk_proto = {
	.name = "BEOWIRE",
	.owner = THIS_MODULE,
	.obj_size = sizeof(struct bwk_sock),
};

static struct bwk_port_attr bwk_sock_port_attr(struct bwk_sock *bs, u16 number,
					       const struct bwk_port_ops *ops, void *owner)
{
	return (struct bwk_port_attr){
		.protocol = bs->protocol,
		.module = bs->module,
		.ops = ops,
		.owner = owner,
		.place = &bs->port,
		.account = bs->account,
		.number = number,
		.checksum = bs->checksum,
		.dead_ms = bs->dead_ms,
		.rx_budget = max_t(u32, READ_ONCE(bs->sk.sk_rcvbuf), 65536),
	};
}

static int bwk_sock_open_port(struct bwk_sock *bs, u16 number, const struct bwk_port_ops *ops,
			      void *owner)
{
	struct bwk_port_attr attr = bwk_sock_port_attr(bs, number, ops, owner);
	int error = bwk_port_open(bwk_node_of(sock_net(&bs->sk)), &attr);

	if (error)
		return error;
	bs->module = NULL;
	if (bs->hold) { /* BEOWIRE_PRESSURE was set before */
		bwk_port_lock(bs->port);
		bwk_queue_press(bs, true);
		bwk_port_run(bs->port);
		bwk_port_unlock(bs->port);
	}
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

void bwk_sock_spread(struct bwk_sock *bs, const struct bwk_port_ops *ops, void *owner)
{
	struct bwk_port_attr attr = bwk_sock_port_attr(bs, bs->port->number, ops, owner);

	mutex_lock(&bs->lock);
	if (!bs->spread)
		bwk_shards_open(bs->port, &attr);
	bs->spread = true; /* connections would be lost if that were done again */
	mutex_unlock(&bs->lock);
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
		if (bs->port)
			bwk_port_lock(bs->port);
		*out = bs->to;
		if (bs->port)
			bwk_port_unlock(bs->port);
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

/* A connection tells itself, once, that its peer is lost, before or right behind the ends of all
 * its sends. Behind a peer's end in good order it does not, and what is to be told is that bytes
 * did not arrive; of a peer that then closes its port, the last acknowledgements may be lost
 * without harm. */
static bool bwk_sock_conn_tells(const struct bwk_sock *bs, int status)
{
	return bs->sk.sk_state == TCP_CLOSE || !bs->peer->ended || status == -ESHUTDOWN;
}

/* Is the end of a send to be told by the socket's next call? Not where something else tells it. */
static bool bwk_sock_blames(const struct bwk_sock *bs, const struct bwk_buf *b)
{
	return b->status < 0 && b->status != -ECANCELED && b->use != BWK_BUF_PULL &&
	       !READ_ONCE(bs->info_wanted) && !(bs->peer && bwk_sock_conn_tells(bs, b->status));
}

static bool bwk_sock_cookie_less(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct bwk_buf, named)->cookie <
	       rb_entry(b, struct bwk_buf, named)->cookie;
}

static int bwk_sock_cookie_compare(const void *wanted, const struct rb_node *node)
{
	u64 cookie = *(const u64 *)wanted, other = rb_entry(node, struct bwk_buf, named)->cookie;

	return cookie < other ? -1 : cookie > other;
}

void bwk_sock_name_buf(struct bwk_sock *bs, struct bwk_buf *b)
{
	if (!b->cookie)
		return;
	rb_add(&b->named, &bs->cookies, bwk_sock_cookie_less);
	b->found = true;
}

struct bwk_buf *bwk_sock_named(const struct bwk_sock *bs, u64 cookie)
{
	struct rb_node *node = rb_find_first(&cookie, &bs->cookies, bwk_sock_cookie_compare);

	return node ? rb_entry(node, struct bwk_buf, named) : NULL;
}

void bwk_sock_disown(struct bwk_sock *bs, bool (*each)(struct bwk_sock *bs, struct bwk_buf *b))
{
	struct bwk_port *port = bs->port;
	struct bwk_buf *b;
	u32 done = 0;

	while (!hlist_empty(&bs->bufs)) {
		b = hlist_entry(bs->bufs.first, struct bwk_buf, held);
		if (each(bs, b)) {
			hlist_del(&b->held);
			hlist_add_head(&b->held, &port->bufs);
		}
		bwk_port_breathe(port, &done);
	}
}

void bwk_sock_done(struct bwk_sock *bs, struct bwk_buf *b)
{
	if (unlikely(b->found)) {
		rb_erase(&b->named, &bs->cookies);
		b->found = false;
	}
	if (b->sending)
		bwk_sock_uncharge(bs, b->sending);
	if (b->awaited) {
		bool ahead = b->ahead, apart = b->slot == BWK_AHEAD_APART;

		if (ahead)
			bs->fetching[b->slot] = NULL;
		smp_store_release(&b->done, true);
		if (ahead && apart)
			bwk_apart_done(bs, b);
		if (ahead)
			bwk_sock_readable(&bs->sk);
		else
			wake_up_all(sk_sleep(&bs->sk));
	} else if (b->notify) {
		list_add_tail(&b->ended, &bs->done);
		bwk_sock_readable(&bs->sk);
	} else {
		if (unlikely(b->status) && bwk_sock_blames(bs, b)) {
			WRITE_ONCE(bs->sk.sk_err,
				   b->status == -ESHUTDOWN ? ECONNRESET : -b->status);
			sk_error_report(&bs->sk);
		}
		if (!bwk_spares_keep(&bs->spares, b))
			bwk_buf_free(b);
	}
}

/* ---- the family ---- */

static void bwk_sock_destruct(struct sock *sk)
{
	skb_queue_purge(&sk->sk_receive_queue);
	bwk_queue_uncover(bwk_sk(sk), 0);
	bwk_spares_free(&bwk_sk(sk)->spares);
	module_put(bwk_sk(sk)->module);
	if (bwk_sk(sk)->bell)
		put_page(bwk_sk(sk)->bell);
	if (bwk_sk(sk)->server)
		bwk_server_put(bwk_sk(sk)->server);
	if (bwk_sk(sk)->counted)
		bwk_account_give(bwk_sk(sk)->account, BWK_ACCOUNT_SOCKET);
	bwk_account_put(bwk_sk(sk)->account);
}

bool bwk_sock_begin(struct bwk_sock *bs, const struct bw_protocol *protocol,
		    struct bwk_account *account)
{
	bs->account = account;
	bs->counted = bwk_account_take(account, BWK_ACCOUNT_SOCKET);
	bs->covered = BWK_QUEUE_FREE;
	bs->sk.sk_destruct = bwk_sock_destruct;
	bs->protocol = protocol;
	mutex_init(&bs->lock);
	mutex_init(&bs->opening);
	mutex_init(&bs->reading);
	bs->checksum = true;
	bs->copy_max = READ_ONCE(bwk_node_of(sock_net(&bs->sk))->set.copy_max) ?: bwk_threshold;
	bs->eager_max = BWK_EAGER_MAX;
	bs->dead_ms = BWK_DEAD_MS;
	atomic_set(&bs->sending, 0);
	INIT_LIST_HEAD(&bs->done);
	INIT_LIST_HEAD(&bs->downs);
	INIT_LIST_HEAD(&bs->accept);
	spin_lock_init(&bs->accept_lock);
	INIT_LIST_HEAD(&bs->apart);
	__skb_queue_head_init(&bs->apart_lost);
	bwk_fetch_init(bs);
	return bs->counted;
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

/* A module whose start fails is gone at once, whoever refers to it. */
static bool bwk_sock_is_ready;

void bwk_sock_ready(void)
{
	smp_store_release(&bwk_sock_is_ready, true);
}

static int bwk_sock_create(struct net *net, struct socket *sock, int protocol, int kern)
{
	struct bwk_node *node = bwk_node_of(net);
	struct bwk_account *account;
	struct bwk_sock *bs;
	struct sock *sk;
	int error;

	if (!smp_load_acquire(&bwk_sock_is_ready))
		return -EAFNOSUPPORT;
	if (!kern && !bwk_sysctl_allows(node))
		return -EACCES;
	account = bwk_account_new(net);
	if (!account)
		return -ENOMEM;
	sk = sk_alloc(net, bwk_family, GFP_KERNEL, &bwk_proto, kern);
	if (!sk) {
		bwk_account_put(account);
		return -ENOMEM;
	}
	bs = bwk_sk(sk);
	sock_init_data(sock, sk);
	sk->sk_family = bwk_family;
	error = bwk_sock_begin(bs, NULL, account) ? bwk_sock_choose(sock, protocol, bs) : -ENOBUFS;
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
		pr_err("beowire: the number %d of the address family is %s; fix: another one by "
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
