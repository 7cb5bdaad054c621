/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections: SOCK_SEQPACKET and SOCK_STREAM. A connection is the conversation of two ports, begun
 * by a REQUEST that a listening socket's port ACCEPTs or REFUSEs, and finished by an END each way.
 * The sockets that accept() makes share the listener's port, each with a peer of its own.
 *
 * All of a connection's state is guarded by its port's lock; sk_state is as TCP's: CLOSE, SYN_SENT,
 * LISTEN, ESTABLISHED.
 */
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <net/tcp_states.h>

#include "sock.h"

#define BWK_CONN_CHUNK (8u << 20) /* bytes of a stream that make one message */

static const struct bwk_port_ops bwk_conn_port_ops;

static u64 bwk_conn_kind(const struct sock *sk)
{
	return sk->sk_type == SOCK_SEQPACKET ? 1 : 2;
}

/* A word about the connection, without bytes. `b`: its acknowledgement is wanted. Lock held. */
static int bwk_conn_say(struct bwk_port *port, const struct bwk_peer *peer, u8 code, u64 tag,
			struct bwk_buf *b)
{
	struct bw_op op = {.type = BW_OP_SEND, .peer = peer->handle, .cookie = bwk_buf_cookie(b)};
	int error;

	if (!peer->handle)
		return -ENOTCONN;
	op.send.dst_ep = op.send.src_ep = BW_EP_CONNECTIONS;
	op.send.buf = op.send.buf_off = op.send.imm = 0;
	op.send.len = 0;
	op.send.tag = tag;
	op.send.code = code;
	op.send.urgent = false;
	error = bwk_port_submit(port, &op);
	if (!error && b)
		list_add(&b->all, &port->bufs);
	return error;
}

/* ---- what comes from the port, its lock held ---- */

static void bwk_conn_fail(struct bwk_sock *bs, int error)
{
	struct sock *sk = &bs->sk;

	sk->sk_err = error;
	sk->sk_state = TCP_CLOSE;
	sk->sk_shutdown = SHUTDOWN_MASK;
	sk->sk_state_change(sk);
	sk_error_report(sk);
}

static struct bwk_sock *bwk_conn_child(struct bwk_sock *listener, struct bwk_peer *peer)
{
	struct sock *sk = sk_alloc(sock_net(&listener->sk), listener->sk.sk_family, GFP_ATOMIC,
				   &bwk_proto, 0);
	struct bwk_sock *bs = bwk_sk(sk);

	if (!sk)
		return NULL;
	sock_init_data(NULL, sk);
	bwk_sock_begin(bs, listener->protocol);
	sk->sk_family = listener->sk.sk_family;
	sk->sk_type = listener->sk.sk_type;
	sk->sk_uid = listener->sk.sk_uid;
	sk->sk_rcvbuf = listener->sk.sk_rcvbuf;
	sk->sk_sndbuf = listener->sk.sk_sndbuf;
	sk->sk_state = TCP_ESTABLISHED;
	bs->busy_us = listener->busy_us;
	bs->copy_max = listener->copy_max;
	bs->eager_max = listener->eager_max;
	bs->port = listener->port;
	bwk_port_join(bs->port);
	refcount_inc(&peer->refs);
	bs->peer = peer;
	bs->to = peer->addr;
	peer->conn = bs;
	sock_prot_inuse_add(sock_net(sk), &bwk_proto, 1);
	return bs;
}

static void bwk_conn_request(struct bwk_port *port, struct bwk_sock *listener,
			     struct bwk_peer *peer, u64 kind)
{
	struct bwk_sock *bs = NULL;

	if (listener && listener->sk.sk_state == TCP_LISTEN && !peer->conn && !peer->ended &&
	    kind == bwk_conn_kind(&listener->sk) && !sk_acceptq_is_full(&listener->sk))
		bs = bwk_conn_child(listener, peer);
	if (!bs) {
		bwk_conn_say(port, peer, BW_CONN_REFUSE, 0, NULL);
		return;
	}
	if (bwk_conn_say(port, peer, BW_CONN_ACCEPT, kind, NULL))
		bwk_conn_fail(bs, ENOBUFS);
	list_add_tail(&bs->accept, &listener->accept);
	sk_acceptq_added(&listener->sk);
	listener->sk.sk_data_ready(&listener->sk);
}

static void bwk_conn_accepted(struct bwk_sock *bs)
{
	if (!bs || bs->sk.sk_state != TCP_SYN_SENT)
		return;
	bs->sk.sk_state = TCP_ESTABLISHED;
	bs->sk.sk_state_change(&bs->sk);
	bs->sk.sk_write_space(&bs->sk);
}

/* The other side sends nothing more. */
static void bwk_conn_ended(struct bwk_port *port, struct bwk_peer *peer)
{
	struct bwk_sock *bs = peer->conn;

	peer->ended = true;
	if (!bs) {
		if (peer->end_acked)
			bwk_peer_leave(port, peer);
		return;
	}
	bs->sk.sk_shutdown |= RCV_SHUTDOWN;
	bs->sk.sk_state_change(&bs->sk);
	bs->sk.sk_data_ready(&bs->sk);
}

static void bwk_conn_message(void *owner, struct bwk_peer *peer, const struct bw_event *ev,
			     struct sk_buff *skb, u32 off, bool whole)
{
	struct bwk_port *port = peer->port;
	struct bwk_sock *bs = peer->conn;

	if (ev->dst_ep != BW_EP_CONNECTIONS) {
		bwk_peer_leave(port, peer); /* it takes us for something else */
		return;
	}
	switch (ev->code & ~BW_CODE_ENVELOPE) {
	case BW_CONN_REQUEST:
		bwk_conn_request(port, owner, peer, ev->tag);
		break;
	case BW_CONN_ACCEPT:
		bwk_conn_accepted(bs);
		break;
	case BW_CONN_REFUSE:
		if (bs && bs->sk.sk_state == TCP_SYN_SENT)
			bwk_conn_fail(bs, ECONNREFUSED);
		break;
	case BW_CONN_DATA:
		if (bs && !(bs->sk.sk_shutdown & RCV_SHUTDOWN))
			bwk_queue_message(bs, peer, ev, skb, off, whole);
		else
			bwk_conn_say(port, peer, BW_CONN_RESET, 0, NULL);
		break;
	case BW_CONN_END:
		bwk_conn_ended(port, peer);
		break;
	case BW_CONN_RESET:
		if (bs)
			bwk_conn_fail(bs, ECONNRESET);
		break;
	}
}

static void bwk_conn_done(void *owner, struct bwk_buf *b)
{
	struct bwk_peer *peer = b->end_of;

	if (b->owner) {
		bwk_sock_done(b->owner, b);
		return;
	}
	if (peer) {
		peer->end_acked = true;
		if (peer->ended && !peer->conn)
			bwk_peer_leave(peer->port, peer);
	}
	bwk_buf_free(b);
}

static void bwk_conn_peer_up(void *owner, struct bwk_peer *peer)
{
}

static void bwk_conn_peer_down(void *owner, struct bwk_peer *peer)
{
	struct bwk_sock *bs = peer->conn;
	int error = -peer->status;

	if (!bs)
		return;
	if (bs->sk.sk_state == TCP_SYN_SENT) {
		bwk_conn_fail(bs, error == ESHUTDOWN ? ECONNREFUSED : error);
	} else if (!peer->ended) {
		bwk_conn_fail(bs, error == ETIMEDOUT ? ETIMEDOUT : ECONNRESET);
	} else {
		bs->sk.sk_shutdown = SHUTDOWN_MASK;
		bs->sk.sk_state_change(&bs->sk);
	}
}

static const struct bwk_port_ops bwk_conn_port_ops = {
	.message = bwk_conn_message,
	.done = bwk_conn_done,
	.peer_up = bwk_conn_peer_up,
	.peer_down = bwk_conn_peer_down,
};

/* ---- connecting ---- */

static int bwk_conn_bind(struct socket *sock, bwk_sockaddr *addr, int len)
{
	struct bwk_sock *bs = bwk_sk(sock->sk);
	struct sockaddr_beowire self;
	int error = bwk_sock_addr(addr, len, &self);

	return error ? error : bwk_sock_bind_to(bs, &self, &bwk_conn_port_ops, bs);
}

static int bwk_conn_listen(struct socket *sock, int backlog)
{
	struct sock *sk = sock->sk;
	struct bwk_sock *bs = bwk_sk(sk);
	struct bwk_port *port;
	int error = 0;

	if (sock->state != SS_UNCONNECTED)
		return -EINVAL;
	port = bwk_sock_port(bs, &bwk_conn_port_ops, bs);
	if (IS_ERR(port))
		return PTR_ERR(port);
	bwk_port_lock(port);
	if (sk->sk_state == TCP_CLOSE || sk->sk_state == TCP_LISTEN) {
		sk->sk_max_ack_backlog = min_t(unsigned int, backlog, SOMAXCONN);
		sk->sk_state = TCP_LISTEN;
	} else {
		error = -EINVAL;
	}
	bwk_port_unlock(port);
	return error;
}

static bool bwk_conn_acceptable(const struct sock *sk)
{
	return !list_empty_careful(&bwk_sk(sk)->accept) ||
	       (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN);
}

/* The next connection that waits, or NULL. */
static struct bwk_sock *bwk_conn_next(struct bwk_sock *listener)
{
	struct bwk_sock *bs;

	bwk_port_lock(listener->port);
	bs = list_first_entry_or_null(&listener->accept, struct bwk_sock, accept);
	if (bs) {
		list_del_init(&bs->accept);
		sk_acceptq_removed(&listener->sk);
	}
	bwk_port_unlock(listener->port);
	return bs;
}

static int bwk_conn_accept(struct socket *sock, struct socket *new, BWK_ACCEPT_PARAMETERS)
{
	struct sock *sk = sock->sk;
	struct bwk_sock *bs;
	int error;

	if (READ_ONCE(sk->sk_state) != TCP_LISTEN)
		return -EINVAL;
	while (!(bs = bwk_conn_next(bwk_sk(sk)))) {
		error = bwk_sock_wait(sk, bwk_conn_acceptable,
				      sock_rcvtimeo(sk, BWK_ACCEPT_FLAGS & O_NONBLOCK));
		if (error)
			return error;
		if (sk->sk_shutdown & RCV_SHUTDOWN)
			return -EINVAL;
	}
	sock_graft(&bs->sk, new);
	new->state = SS_CONNECTED;
	return 0;
}

/* Lock held. */
static int bwk_conn_begin(struct bwk_sock *bs, struct bwk_port *port,
			  const struct sockaddr_beowire *to)
{
	struct bwk_peer *peer;
	int error;

	if (bs->sk.sk_state != TCP_CLOSE || bs->peer)
		return -EISCONN;
	peer = bwk_peer_find(port, to);
	if (IS_ERR(peer))
		return PTR_ERR(peer);
	if (peer->conn)
		return -EADDRINUSE;
	error = bwk_conn_say(port, peer, BW_CONN_REQUEST, bwk_conn_kind(&bs->sk), NULL);
	if (error)
		return error;
	refcount_inc(&peer->refs);
	peer->conn = bs;
	bs->peer = peer;
	bs->to = *to;
	bs->sk.sk_state = TCP_SYN_SENT;
	bwk_port_run(port);
	return 0;
}

static bool bwk_conn_settled(const struct sock *sk)
{
	return READ_ONCE(sk->sk_state) != TCP_SYN_SENT;
}

static int bwk_conn_start(struct socket *sock, const struct sockaddr_beowire *to)
{
	struct bwk_sock *bs = bwk_sk(sock->sk);
	struct bwk_port *port = bwk_sock_port(bs, &bwk_conn_port_ops, bs);
	int error;

	if (IS_ERR(port))
		return PTR_ERR(port);
	do {
		bwk_port_lock(port);
		error = bwk_conn_begin(bs, port, to);
		bwk_port_unlock(port);
	} while (error == -EAGAIN && bwk_port_feed(port) == 0);
	if (!error)
		sock->state = SS_CONNECTING;
	return error == -EAGAIN ? -ENOBUFS : error;
}

static int bwk_conn_connect(struct socket *sock, bwk_sockaddr *addr, int len, int flags)
{
	struct sock *sk = sock->sk;
	struct sockaddr_beowire to;
	int error = bwk_sock_addr(addr, len, &to);

	if (error)
		return error;
	if (!to.sbw_port || to.sbw_port > BEOWIRE_PORTS)
		return -EADDRNOTAVAIL;
	if (sock->state == SS_CONNECTED)
		return -EISCONN;
	if (sock->state == SS_CONNECTING) {
		if (flags & O_NONBLOCK && !bwk_conn_settled(sk))
			return -EALREADY;
	} else {
		error = bwk_conn_start(sock, &to);
		if (error)
			return error;
		if (flags & O_NONBLOCK && !bwk_conn_settled(sk))
			return -EINPROGRESS;
	}
	if (!bwk_conn_settled(sk)) {
		error = bwk_sock_wait(sk, bwk_conn_settled, sock_sndtimeo(sk, 0));
		if (error == -EAGAIN)
			return -EINPROGRESS; /* SO_SNDTIMEO */
		if (error && !bwk_conn_settled(sk))
			return error;
	}
	error = sock_error(sk);
	if (!error && sk->sk_state != TCP_ESTABLISHED)
		error = -ECONNREFUSED;
	sock->state = error ? SS_UNCONNECTED : SS_CONNECTED;
	return error;
}

/* ---- data ---- */

static int bwk_conn_usable(const struct sock *sk)
{
	if (READ_ONCE(sk->sk_err))
		return sock_error((struct sock *)sk);
	if (sk->sk_shutdown & SEND_SHUTDOWN)
		return -EPIPE;
	return READ_ONCE(sk->sk_state) == TCP_ESTABLISHED ? 0 : -ENOTCONN;
}

static int bwk_conn_sendmsg(struct socket *sock, struct msghdr *m, size_t len)
{
	struct sock *sk = sock->sk;
	struct bwk_sock *bs = bwk_sk(sk);
	bool stream = sk->sk_type == SOCK_STREAM;
	size_t done = 0, n;
	int error;

	if (m->msg_flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (m->msg_namelen)
		return sk->sk_state == TCP_ESTABLISHED ? -EISCONN : -EOPNOTSUPP;
	if (!stream && len > BEOWIRE_MSG_MAX)
		return -EMSGSIZE;
	error = bwk_conn_usable(sk);
	while (!error && (done < len || (!stream && !done))) {
		struct bwk_send s = {
			.peer = bs->peer,
			.info = {.code = BW_CONN_DATA},
			.nonblock = m->msg_flags & MSG_DONTWAIT,
			.more = m->msg_flags & (MSG_BATCH | MSG_MORE),
			.ep = BW_EP_CONNECTIONS,
		};

		n = len - done;
		if (stream)
			n = min_t(size_t, n, s.nonblock ? bs->eager_max + 1 : BWK_CONN_CHUNK);
		error = bwk_send(bs, bs->port, &m->msg_iter, n, &s);
		if (error)
			break;
		done += n;
		error = bwk_conn_usable(sk);
		if (!done)
			return error;
	}
	if (done)
		return (int)done;
	if (error == -ENOTCONN && (sk->sk_err || sk->sk_shutdown & SEND_SHUTDOWN))
		error = -EPIPE;
	if (error == -EPIPE && stream && !(m->msg_flags & MSG_NOSIGNAL))
		send_sig(SIGPIPE, current, 0);
	return error;
}

static bool bwk_conn_readable(const struct sock *sk)
{
	return !skb_queue_empty_lockless(&sk->sk_receive_queue);
}

/* Or nothing more comes. */
static bool bwk_conn_decided(const struct sock *sk)
{
	return bwk_conn_readable(sk) || (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN);
}

/* The first message, which stays in the queue; NULL: nothing more comes, or an error in *error. */
static struct sk_buff *bwk_conn_first(struct sock *sk, int flags, int *error)
{
	struct sk_buff *skb;

	for (;;) {
		skb = skb_peek(&sk->sk_receive_queue);
		if (skb)
			return skb;
		*error = sock_error(sk);
		if (*error || (sk->sk_shutdown & RCV_SHUTDOWN))
			return NULL;
		if (sk->sk_state != TCP_ESTABLISHED) {
			*error = -ENOTCONN;
			return NULL;
		}
		*error = bwk_sock_wait(sk, bwk_conn_decided,
				       sock_rcvtimeo(sk, flags & MSG_DONTWAIT));
		if (*error)
			return NULL;
	}
}

/* Bytes of the first message, from where the last call left off. */
static int bwk_conn_take(struct bwk_sock *bs, struct sk_buff *skb, struct msghdr *m, size_t n,
			 bool last, int flags)
{
	struct bwk_cb *cb = bwk_cb(skb);
	struct bwk_source from = {.handle = cb->peer->handle, .key = cb->key, .last = last};

	if (cb->event == BEOWIRE_MESSAGE)
		return skb_copy_datagram_msg(skb, cb->off, m, (int)n);
	if (flags & MSG_PEEK)
		return -EOPNOTSUPP; /* its bytes are still the sender's */
	if (!from.handle)
		return -ECONNRESET;
	from.off = cb->off;
	return bwk_fetch_now(bs, &from, &m->msg_iter, n);
}

static void bwk_conn_drop(struct bwk_sock *bs, struct sk_buff *skb)
{
	skb_unlink(skb, &bs->sk.sk_receive_queue);
	bwk_queue_free(skb);
	bwk_queue_relieve(bs);
}

static int bwk_conn_recv_packet(struct bwk_sock *bs, struct sk_buff *skb, struct msghdr *m,
				size_t len, int flags)
{
	u32 whole = bwk_cb(skb)->len;
	size_t n = min_t(size_t, len, whole);
	int error = bwk_conn_take(bs, skb, m, n, true, flags);

	if (error)
		return error;
	if (n < whole)
		m->msg_flags |= MSG_TRUNC;
	if (!(flags & MSG_PEEK))
		bwk_conn_drop(bs, skb);
	return flags & MSG_TRUNC ? (int)whole : (int)n;
}

static int bwk_conn_recv_bytes(struct bwk_sock *bs, struct sk_buff *skb, struct msghdr *m,
			       size_t len, int flags)
{
	struct bwk_cb *cb = bwk_cb(skb);
	size_t n = min_t(size_t, len, cb->len);
	bool last = n == cb->len;
	int error = bwk_conn_take(bs, skb, m, n, last, flags);

	if (error)
		return error;
	if (!(flags & MSG_PEEK)) {
		cb->off += n;
		cb->len -= n;
		if (last)
			bwk_conn_drop(bs, skb);
	}
	return (int)n;
}

static int bwk_conn_recvmsg(struct socket *sock, struct msghdr *m, size_t len, int flags)
{
	struct sock *sk = sock->sk;
	struct bwk_sock *bs = bwk_sk(sk);
	bool stream = sk->sk_type == SOCK_STREAM;
	struct sk_buff *skb;
	size_t done = 0;
	int got, error = 0;

	if (flags & (MSG_OOB | MSG_ERRQUEUE))
		return -EOPNOTSUPP;
	m->msg_namelen = 0;
	error = mutex_lock_interruptible(&bs->reading);
	if (error)
		return error;
	do {
		skb = bwk_conn_first(sk, done && !(flags & MSG_WAITALL) ? MSG_DONTWAIT : flags,
				     &error);
		if (!skb)
			break;
		got = stream ? bwk_conn_recv_bytes(bs, skb, m, len - done, flags)
			     : bwk_conn_recv_packet(bs, skb, m, len, flags);
		if (got < 0)
			error = got;
		else
			done += got;
	} while (stream && !error && done < len && !(flags & MSG_PEEK));
	mutex_unlock(&bs->reading);
	return done ? (int)done : error;
}

/* ---- the end ---- */

/* Say that nothing more is sent. Process context. */
static int bwk_conn_end(struct bwk_sock *bs, bool reset)
{
	struct bwk_port *port = bs->port;
	struct bwk_buf *b = bwk_buf_room(0);
	int error;

	if (!b)
		return -ENOMEM;
	b->use = BWK_BUF_SEND;
	b->end_of = bs->peer;
	refcount_inc(&bs->peer->refs);
	do {
		bwk_port_lock(port);
		error = bwk_conn_say(port, bs->peer, reset ? BW_CONN_RESET : BW_CONN_END, 0, b);
		if (!error)
			bwk_port_run(port);
		bwk_port_unlock(port);
	} while (error == -EAGAIN && bwk_port_feed(port) == 0);
	if (error)
		bwk_buf_free_now(b);
	return error;
}

static int bwk_conn_shutdown(struct socket *sock, int how)
{
	struct sock *sk = sock->sk;
	struct bwk_sock *bs = bwk_sk(sk);
	bool ends;

	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	if (sk->sk_state == TCP_LISTEN && how != SHUT_WR) {
		sk->sk_shutdown |= RCV_SHUTDOWN;
		sk->sk_state_change(sk);
		return 0;
	}
	if (sk->sk_state != TCP_ESTABLISHED)
		return -ENOTCONN;
	bwk_port_lock(bs->port);
	ends = how != SHUT_RD && !(sk->sk_shutdown & SEND_SHUTDOWN);
	sk->sk_shutdown |= how + 1;
	bwk_port_unlock(bs->port);
	if (ends)
		bwk_conn_end(bs, false);
	sk->sk_state_change(sk);
	return 0;
}

static __poll_t bwk_conn_poll(struct file *file, struct socket *sock, poll_table *wait)
{
	struct sock *sk = sock->sk;
	__poll_t events = 0;

	sock_poll_wait(file, sock, wait);
	if (sk->sk_state == TCP_LISTEN)
		return bwk_conn_acceptable(sk) ? EPOLLIN | EPOLLRDNORM : 0;
	if (sk->sk_err)
		events |= EPOLLERR;
	if (sk->sk_shutdown & RCV_SHUTDOWN)
		events |= EPOLLRDHUP | EPOLLIN | EPOLLRDNORM;
	if (sk->sk_shutdown == SHUTDOWN_MASK || sk->sk_state == TCP_CLOSE)
		events |= EPOLLHUP;
	if (bwk_conn_readable(sk))
		events |= EPOLLIN | EPOLLRDNORM;
	if (sk->sk_state != TCP_SYN_SENT &&
	    atomic_read(&bwk_sk(sk)->sending) < READ_ONCE(sk->sk_sndbuf))
		events |= EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND;
	return events;
}

/* A socket leaves its peer; what it sent still arrives. */
static void bwk_conn_detach(struct bwk_sock *bs)
{
	struct bwk_port *port = bs->port;
	struct bwk_peer *peer = bs->peer;
	struct bwk_buf *b;
	bool unread = bwk_conn_readable(&bs->sk);

	if (peer && bs->sk.sk_state == TCP_ESTABLISHED && !(bs->sk.sk_shutdown & SEND_SHUTDOWN))
		bwk_conn_end(bs, unread);
	bwk_port_lock(port);
	bwk_queue_press(bs, false);
	list_for_each_entry(b, &port->bufs, all) if (b->owner == bs) b->owner = NULL;
	if (peer) {
		peer->conn = NULL;
		if (bs->sk.sk_state != TCP_ESTABLISHED || (peer->ended && peer->end_acked))
			bwk_peer_leave(port, peer);
	}
	bwk_port_run(port);
	bwk_port_unlock(port);
	bwk_queue_drop_all(bs);
	if (peer)
		bwk_peer_put(peer);
}

static void bwk_conn_free(struct bwk_sock *bs)
{
	sock_prot_inuse_add(sock_net(&bs->sk), &bwk_proto, -1);
	if (bs->port) {
		bwk_conn_detach(bs);
		bwk_port_release(bs->port, bs);
	}
	sock_orphan(&bs->sk);
	sock_put(&bs->sk);
}

static int bwk_conn_release(struct socket *sock)
{
	struct sock *sk = sock->sk;
	struct bwk_sock *bs, *child;

	if (!sk)
		return 0;
	bs = bwk_sk(sk);
	if (bs->port) {
		bwk_port_lock(bs->port);
		sk->sk_state = sk->sk_state == TCP_LISTEN ? TCP_CLOSE : sk->sk_state;
		bwk_port_unlock(bs->port);
		while ((child = bwk_conn_next(bs)))
			bwk_conn_free(child);
	}
	sock->sk = NULL;
	bwk_conn_free(bs);
	return 0;
}

const struct proto_ops bwk_conn_ops = {
	.family = AF_BEOWIRE,
	.owner = THIS_MODULE,
	.release = bwk_conn_release,
	.bind = bwk_conn_bind,
	.connect = bwk_conn_connect,
	.socketpair = sock_no_socketpair,
	.accept = bwk_conn_accept,
	.getname = bwk_sock_getname,
	.poll = bwk_conn_poll,
	.ioctl = bwk_sock_ioctl,
	.listen = bwk_conn_listen,
	.shutdown = bwk_conn_shutdown,
	.setsockopt = bwk_sock_setsockopt,
	.getsockopt = bwk_sock_getsockopt,
	.sendmsg = bwk_conn_sendmsg,
	.recvmsg = bwk_conn_recvmsg,
	.mmap = sock_no_mmap,
};
