/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets whose protocol a server speaks: what their callers ask for goes to the server as records,
 * what it delivers waits here. When the server is gone, every call fails at once.
 */
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/random.h>

#include "port.h"
#include "server.h"

static bool bwk_server_sock_gone(const struct bwk_sock *bs)
{
	return READ_ONCE(bs->server->dead);
}

/* ---- ports ---- */

void bwk_server_port_put(struct bwk_server_port *port)
{
	struct bwk_server *server = port->server;

	if (!refcount_dec_and_test(&port->refs))
		return;
	bwk_user_free_port(port->account->user);
	bwk_account_put(port->account);
	kfree_rcu(port, rcu);
	bwk_server_put(server);
}

void bwk_server_port_forget(struct bwk_server_port *port)
{
	struct bwk_server *server = port->server;

	port->sk = NULL;
	list_del_init(&port->closing);
	xa_erase(&server->ports, port->id);
	WRITE_ONCE(server->count, server->count - 1);
	spin_lock(&server->node->ports_lock);
	hash_del_rcu(&port->hash);
	bwk_port_drop(server->node, port->number);
	spin_unlock(&server->node->ports_lock);
	bwk_server_port_put(port);
}

/* A record with its particulars, and n bytes behind it. */
static int bwk_server_tell(struct bwk_server *server, u16 type, u32 id,
			   const struct beowire_record *particulars, const void *bytes, u32 n)
{
	struct bwk_ring *ring = &server->ring[BEOWIRE_REQUESTS];
	struct beowire_record *record = NULL;
	int error = -EPIPE;

	spin_lock_bh(&ring->lock);
	if (ring->shared) {
		error = -EAGAIN;
		record = bwk_ring_reserve(ring, type, id, n);
	}
	if (record) {
		record->addr = particulars->addr; /* the longest of what there is */
		memcpy(record + 1, bytes, n);
		bwk_ring_commit(ring, n);
		error = 0;
	}
	spin_unlock_bh(&ring->lock);
	if (!error)
		bwk_server_wake(server);
	return error;
}

int bwk_server_request(struct bwk_server *server, u16 type, u32 id,
		       const struct sockaddr_beowire *addr, const void *bytes, u32 n)
{
	struct beowire_record particulars = {0};

	if (addr)
		particulars.addr = *addr;
	return bwk_server_tell(server, type, id, &particulars, bytes, n);
}

/* The same with a status. */
static int bwk_server_request_result(struct bwk_server *server, u16 type, u32 id, int status)
{
	const struct beowire_record particulars = {.result = {.status = status}};

	return bwk_server_tell(server, type, id, &particulars, NULL, 0);
}

/* The socket has no more to do with the port; the server says when the number is free. */
static void bwk_server_port_close(struct bwk_server_port *port)
{
	struct bwk_server *server = port->server;

	spin_lock_bh(&server->lock);
	port->sk = NULL;
	port->closed = true;
	if (!server->dead &&
	    bwk_server_request(server, BEOWIRE_CLOSE, port->id, NULL, NULL, 0) == -EAGAIN)
		list_add_tail(&port->closing, &server->closing);
	spin_unlock_bh(&server->lock);
	bwk_server_port_put(port);
}

/* Into the tables, with a number of its own. The tables' reference is the second one. */
static int bwk_server_port_add(struct bwk_server *server, struct bwk_server_port *port, u16 number)
{
	struct bwk_node *node = server->node;
	int error = -EPIPE;

	spin_lock_bh(&server->lock);
	if (!server->dead)
		error = xa_alloc_cyclic(&server->ports, &port->id, port, xa_limit_32b,
					&server->next_id, GFP_ATOMIC | __GFP_ACCOUNT);
	if (error < 0)
		goto out;
	spin_lock(&node->ports_lock);
	port->number = bwk_port_pick(node, number);
	if (port->number)
		hash_add_rcu(node->server_ports, &port->hash, port->number);
	spin_unlock(&node->ports_lock);
	error = port->number ? 0 : -EADDRINUSE;
	if (error)
		xa_erase(&server->ports, port->id);
	else
		WRITE_ONCE(server->count, server->count + 1);
out:
	spin_unlock_bh(&server->lock);
	return error;
}

static bool bwk_server_port_ready(const struct bwk_server_port *port)
{
	return smp_load_acquire(&port->status) <= 0 || READ_ONCE(port->server->dead);
}

/* Ask the server, and wait for its word. */
static int bwk_server_port_open(struct bwk_sock *bs, struct bwk_server_port *port)
{
	struct sockaddr_beowire self = {
		.sbw_family = bwk_family,
		.sbw_port = port->number,
		.sbw_inc = port->inc,
		.sbw_node = port->server->node->id,
	};
	int error = bwk_server_request(port->server, BEOWIRE_OPEN, port->id, &self, NULL, 0);

	if (error)
		return error == -EAGAIN ? -ENOBUFS : -ECONNRESET;
	error = wait_event_interruptible(*sk_sleep(&bs->sk), bwk_server_port_ready(port));
	if (error)
		return error;
	return port->status <= 0 ? port->status : -ECONNRESET;
}

/* bs->opening is held: who waits for it meanwhile can be interrupted. */
static int bwk_server_port_new(struct bwk_sock *bs, u16 number)
{
	struct bwk_server_port *port;
	int error;

	if (bwk_key_is_set(&bs->server->node->set.key)) /* which was set after CLAIM */
		return -EKEYREJECTED;
	port = kzalloc(sizeof(*port), GFP_KERNEL_ACCOUNT);
	if (!port)
		return -ENOMEM;
	if (!bwk_user_take_port(bs->account->user)) {
		kfree(port);
		return -ENOBUFS;
	}
	port->account = bwk_account_hold(bs->account);
	refcount_set(&port->refs, 2);
	refcount_inc(&bs->server->refs);
	port->server = bs->server;
	port->sk = &bs->sk;
	port->inc = get_random_u32() | 1;
	port->status = BWK_SERVER_OPENING;
	INIT_LIST_HEAD(&port->closing);
	error = bwk_server_port_add(bs->server, port, number);
	if (error) {
		bwk_user_free_port(port->account->user);
		bwk_account_put(port->account);
		kfree_rcu(port, rcu);
		bwk_server_put(bs->server);
		return error == -EPIPE ? -ECONNRESET : error;
	}
	error = bwk_server_port_open(bs, port);
	if (error)
		bwk_server_port_close(port);
	else
		smp_store_release(&bs->remote, port);
	return error;
}

/* The socket's port, made now if there is none. */
static struct bwk_server_port *bwk_server_sock_port(struct bwk_sock *bs)
{
	struct bwk_server_port *port = smp_load_acquire(&bs->remote);
	int error = 0;

	if (port)
		return port;
	if (mutex_lock_interruptible(&bs->opening))
		return ERR_PTR(-ERESTARTSYS);
	if (!bs->remote)
		error = bwk_server_port_new(bs, 0);
	port = bs->remote;
	mutex_unlock(&bs->opening);
	return error ? ERR_PTR(error) : port;
}

/* ---- what comes from the server ---- */

void bwk_server_port_tell(struct bwk_server_port *port)
{
	struct bwk_server *server = port->server;
	int error;

	if (port->pressed == port->told || port->closed || server->dead)
		return;
	error = bwk_server_request_result(server, BEOWIRE_PRESSED, port->id, port->pressed);
	if (!error)
		port->told = port->pressed;
	else if (error == -EAGAIN)
		WRITE_ONCE(server->untold, true);
}

/* After messages were queued, or taken: does the server have to know? */
static void bwk_server_port_press(struct bwk_server_port *port, const struct sock *sk)
{
	int full = READ_ONCE(sk->sk_rcvbuf), used;

	spin_lock_bh(&port->server->lock);
	used = atomic_read(&sk->sk_rmem_alloc);
	if (used > full)
		WRITE_ONCE(port->pressed, true);
	smp_mb(); /* a reader that takes the last one sees it, or is seen here */
	if (atomic_read(&sk->sk_rmem_alloc) <= full / 2)
		WRITE_ONCE(port->pressed, false);
	bwk_server_port_tell(port);
	spin_unlock_bh(&port->server->lock);
}

static struct sk_buff *bwk_server_sock_skb(const void *bytes, u32 n)
{
	u32 flat = min_t(u32, n, SKB_MAX_ALLOC);
	int error;
	struct sk_buff *skb =
		alloc_skb_with_frags(flat, n - flat, PAGE_ALLOC_COSTLY_ORDER, &error, GFP_KERNEL);

	if (!skb)
		return NULL;
	skb_put(skb, flat);
	skb->data_len = n - flat;
	skb->len = n;
	if (!skb_store_bits(skb, 0, bytes, (int)n))
		return skb;
	kfree_skb(skb);
	return NULL;
}

void bwk_server_sock_deliver(struct bwk_server_port *port, struct sock *sk,
			     const struct sockaddr_beowire *from, const void *bytes, u32 n)
{
	struct sockaddr_beowire *addr;
	struct sk_buff *skb = NULL;
	u64 most = port->keep ? READ_ONCE(port->server->node->set.memory_max) : 0;
	int beyond = 0;

	if (bwk_queue_has_room(sk, most, false))
		skb = bwk_server_sock_skb(bytes, n);
	if (skb)
		beyond = bwk_queue_own(sk, skb);
	if (!skb || beyond < 0) {
		kfree_skb(skb);
		atomic_inc(&sk->sk_drops);
		this_cpu_inc(port->server->node->count->unqueued);
		if (port->keep) {
			bwk_user_limited();
			WRITE_ONCE(sk->sk_err, ENOBUFS);
			sk_error_report(sk);
		}
		return;
	}
	BUILD_BUG_ON(sizeof(*addr) > sizeof(skb->cb));
	addr = (struct sockaddr_beowire *)skb->cb;
	*addr = *from;
	addr->sbw_family = bwk_family;
	memset(addr->sbw_zero, 0, sizeof(addr->sbw_zero));
	skb_queue_tail(&sk->sk_receive_queue, skb);
	if (beyond)
		bwk_server_port_press(port, sk);
	bwk_sock_readable(sk);
}

void bwk_server_sock_reset(struct sock *sk)
{
	spin_lock_bh(&sk->sk_lock.slock);
	WRITE_ONCE(sk->sk_err, ECONNRESET);
	bwk_sock_shut(sk, SHUTDOWN_MASK);
	spin_unlock_bh(&sk->sk_lock.slock);
	sk->sk_state_change(sk);
	sk_error_report(sk);
}

/* ---- calls ---- */

static int bwk_server_sock_bind(struct socket *sock, bwk_sockaddr *addr, int len)
{
	struct bwk_sock *bs = bwk_sk(sock->sk);
	struct sockaddr_beowire self;
	int error = bwk_given_addr(sock->sk, addr, len, &self);

	if (error)
		return error;
	if (self.sbw_port > BEOWIRE_PORTS || !is_zero_ether_addr(self.sbw_mac))
		return -EADDRNOTAVAIL;
	if (mutex_lock_interruptible(&bs->opening))
		return -ERESTARTSYS;
	error = bs->remote ? -EINVAL : bwk_server_port_new(bs, self.sbw_port);
	mutex_unlock(&bs->opening);
	return error;
}

static int bwk_server_sock_connect(struct socket *sock, bwk_sockaddr *addr, int len, int flags)
{
	return bwk_server_sock_gone(bwk_sk(sock->sk)) ? -ECONNRESET
						      : bwk_msg_connect(sock, addr, len, flags);
}

static int bwk_server_sock_getname(struct socket *sock, struct sockaddr *addr, int peer)
{
	struct bwk_sock *bs = bwk_sk(sock->sk);
	struct bwk_server_port *port = smp_load_acquire(&bs->remote);

	if (peer || !port)
		return bwk_sock_getname(sock, addr, peer);
	return bwk_sock_name(port->server->node, port->number, port->inc,
			     (struct sockaddr_beowire *)addr);
}

static bool bwk_server_sock_roomy(const struct sock *sk)
{
	struct bwk_server *server = bwk_sk(sk)->server;

	if (bwk_ring_roomy(&server->ring[BEOWIRE_REQUESTS]))
		return true;
	WRITE_ONCE(server->starved, true);
	smp_mb(); /* now somebody looks after us, if not yet now */
	return bwk_ring_roomy(&server->ring[BEOWIRE_REQUESTS]);
}

static int bwk_server_sock_send(struct bwk_sock *bs, struct bwk_server_port *port,
				const struct sockaddr_beowire *to, const void *bytes, u32 n,
				long *timeout)
{
	const u32 charge = n + BWK_SEND_COST;
	int error;

	for (;;) {
		atomic_add((int)charge, &bs->told);
		error = bwk_server_request(port->server, BEOWIRE_SEND, port->id, to, bytes, n);
		if (!error)
			return 0;
		/* The server was told nothing. One that says all the same that it is done has given
		 * back what the caller of this gives back, too. */
		if (unlikely(!bwk_server_untell(bs, charge)))
			atomic_add((int)charge, &bs->sending);
		if (error == -EAGAIN)
			error = bwk_sock_wait(&bs->sk, bwk_server_sock_roomy, timeout);
		if (error)
			return error;
	}
}

static int bwk_server_sock_target(struct bwk_sock *bs, const struct msghdr *m,
				  struct sockaddr_beowire *to)
{
	if (m->msg_name)
		return bwk_given_addr(&bs->sk, m->msg_name, m->msg_namelen, to);
	mutex_lock(&bs->lock);
	*to = bs->to;
	mutex_unlock(&bs->lock);
	return to->sbw_port ? 0 : -EDESTADDRREQ;
}

static int bwk_server_sock_sendmsg(struct socket *sock, struct msghdr *m, size_t len)
{
	struct bwk_sock *bs = bwk_sk(sock->sk);
	long timeout = bwk_sock_sndtimeo(&bs->sk, m->msg_flags & MSG_DONTWAIT);
	struct bwk_server_port *port;
	struct sockaddr_beowire to;
	void *bytes;
	int error;

	if (m->msg_flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (bwk_server_sock_gone(bs) || (READ_ONCE(bs->sk.sk_shutdown) & SEND_SHUTDOWN))
		return -EPIPE;
	error = bwk_server_sock_target(bs, m, &to);
	if (error)
		return error;
	port = bwk_server_sock_port(bs);
	if (IS_ERR(port))
		return PTR_ERR(port);
	if (len > port->limit)
		return -EMSGSIZE;
	error = bwk_sock_charge(bs, len, &timeout);
	if (error)
		return error;
	/* Not straight into the ring: a page that is slow to come must not hold up others. */
	bytes = kvmalloc(max_t(size_t, len, 1), GFP_KERNEL_ACCOUNT);
	error = bytes ? 0 : -ENOMEM;
	if (!error && !copy_from_iter_full(bytes, len, &m->msg_iter))
		error = -EFAULT;
	if (!error)
		error = bwk_server_sock_send(bs, port, &to, bytes, (u32)len, &timeout);
	kvfree(bytes);
	if (!error)
		return (int)len;
	bwk_sock_uncharge(bs, (u32)(len + BWK_SEND_COST));
	return error;
}

static bool bwk_server_sock_ready(const struct sock *sk)
{
	return !skb_queue_empty_lockless(&sk->sk_receive_queue) || bwk_server_sock_gone(bwk_sk(sk));
}

static struct sk_buff *bwk_server_sock_take(struct sock *sk, int flags)
{
	struct sk_buff *skb;

	if (!(flags & MSG_PEEK))
		return skb_dequeue(&sk->sk_receive_queue);
	spin_lock_bh(&sk->sk_receive_queue.lock);
	skb = skb_peek(&sk->sk_receive_queue);
	if (skb)
		skb_get(skb);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	return skb;
}

static int bwk_server_sock_recvmsg(struct socket *sock, struct msghdr *m, size_t len, int flags)
{
	struct sock *sk = sock->sk;
	long timeout = bwk_sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	struct bwk_server_port *port;
	struct sk_buff *skb;
	int error = 0, whole;
	size_t n;

	if (flags & (MSG_OOB | MSG_ERRQUEUE))
		return -EOPNOTSUPP;
	while (!(skb = bwk_server_sock_take(sk, flags))) {
		error = error ? error : sock_error(sk);
		if (error)
			return error;
		if (bwk_server_sock_gone(bwk_sk(sk)))
			return -ECONNRESET;
		if (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN)
			return 0;
		error = bwk_sock_wait_busy(sk, bwk_server_sock_ready, &timeout);
	}
	whole = (int)skb->len;
	n = min_t(size_t, len, skb->len);
	error = skb_copy_datagram_msg(skb, 0, m, (int)n);
	if (!error && m->msg_name) {
		memcpy(m->msg_name, skb->cb, sizeof(struct sockaddr_beowire));
		m->msg_namelen = sizeof(struct sockaddr_beowire);
	}
	consume_skb(skb);
	bwk_queue_spare(bwk_sk(sk), sk_rmem_alloc_get(sk));
	smp_mb(); /* as in bwk_server_port_press() */
	port = smp_load_acquire(&bwk_sk(sk)->remote);
	if (port && READ_ONCE(port->pressed))
		bwk_server_port_press(port, sk);
	if (error)
		return error;
	if ((int)n < whole)
		m->msg_flags |= MSG_TRUNC;
	return flags & MSG_TRUNC ? whole : (int)n;
}

static __poll_t bwk_server_sock_poll(struct file *file, struct socket *sock, poll_table *wait)
{
	struct sock *sk = sock->sk;
	struct bwk_sock *bs = bwk_sk(sk);
	__poll_t events = 0;

	sock_poll_wait(file, sock, wait);
	if (READ_ONCE(sk->sk_err))
		events |= EPOLLERR;
	if (bwk_server_sock_gone(bs))
		events |= EPOLLERR | EPOLLHUP;
	if (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN)
		events |= EPOLLRDHUP | EPOLLIN | EPOLLRDNORM;
	if (bwk_server_sock_ready(sk))
		events |= EPOLLIN | EPOLLRDNORM;
	if (bwk_sock_roomy(sk, atomic_read(&bs->sending)) && bwk_server_sock_roomy(sk))
		events |= EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND;
	return events;
}

static int bwk_server_sock_release(struct socket *sock)
{
	struct sock *sk = sock->sk;
	struct bwk_sock *bs;

	if (!sk)
		return 0;
	bs = bwk_sk(sk);
	bwk_sock_hide(bs);
	if (bs->remote)
		bwk_server_port_close(bs->remote);
	skb_queue_purge(&sk->sk_receive_queue);
	sock->sk = NULL;
	bwk_sock_end(sk);
	return 0;
}

const struct proto_ops bwk_server_sock_ops = {
	.family = AF_BEOWIRE,
	.owner = THIS_MODULE,
	.release = bwk_server_sock_release,
	.bind = bwk_server_sock_bind,
	.connect = bwk_server_sock_connect,
	.socketpair = sock_no_socketpair,
	.accept = sock_no_accept,
	.getname = bwk_server_sock_getname,
	.poll = bwk_server_sock_poll,
	.ioctl = bwk_sock_ioctl,
#ifdef CONFIG_COMPAT
	.compat_ioctl = bwk_sock_compat_ioctl,
#endif
	.listen = sock_no_listen,
	.shutdown = bwk_msg_shutdown,
	.setsockopt = bwk_sock_setsockopt,
	.getsockopt = bwk_sock_getsockopt,
	.sendmsg = bwk_server_sock_sendmsg,
	.recvmsg = bwk_server_sock_recvmsg,
	.mmap = sock_no_mmap,
};
