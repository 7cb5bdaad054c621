/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connecting, listening and ending: the calls of connections that move no data. See conn.c. */
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <net/tcp_states.h>

#include "conn.h"
#include "shard.h"

static int bwk_conn_bind(struct socket *sock, bwk_sockaddr *addr, int len)
{
	struct bwk_sock *bs = bwk_sk(sock->sk);
	struct sockaddr_beowire self;
	int error = bwk_given_addr(sock->sk, addr, len, &self);

	return error ? error : bwk_sock_bind_to(bs, &self, &bwk_conn_port_ops, bs);
}

/* What is left of an attempt to connect that failed. Lock held. */
static void bwk_conn_forget(struct bwk_sock *bs)
{
	struct bwk_peer *peer = bs->peer;

	bs->untold = false;
	if (!peer)
		return;
	peer->conn = NULL;
	bs->peer = NULL;
	WRITE_ONCE(bs->sk.sk_err, 0);
	WRITE_ONCE(bs->sk.sk_shutdown, 0);
	bwk_peer_put(peer);
}

/* May the socket begin something new? Lock held. */
static bool bwk_conn_idle(const struct bwk_sock *bs)
{
	return bs->sk.sk_state == TCP_CLOSE && !bs->connected && !bs->listens;
}

/* May it listen? From then on it does nothing else. */
static bool bwk_conn_may_listen(struct bwk_sock *bs)
{
	bool may;

	bwk_port_lock(bs->port);
	may = bs->listens |= bwk_conn_idle(bs);
	bwk_port_unlock(bs->port);
	return may;
}

static int bwk_conn_listen(struct socket *sock, int backlog)
{
	struct sock *sk = sock->sk;
	struct bwk_sock *bs = bwk_sk(sk);
	struct bwk_port *port = bwk_sock_port(bs, &bwk_conn_port_ops, bs);

	if (IS_ERR(port))
		return PTR_ERR(port);
	if (!bwk_conn_may_listen(bs))
		return -EINVAL;
	bwk_sock_spread(bs, &bwk_conn_port_ops, bs);
	bwk_port_lock(port);
	bwk_conn_forget(bs);
	WRITE_ONCE(sk->sk_max_ack_backlog, min_t(unsigned int, backlog, SOMAXCONN));
	bwk_conn_set_state(sk, TCP_LISTEN);
	bwk_port_unlock(port);
	return 0;
}

static bool bwk_conn_acceptable(const struct sock *sk)
{
	return !list_empty(&bwk_sk(sk)->accept) || (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN);
}

/* The next connection that waits, or NULL. */
static struct bwk_sock *bwk_conn_next(struct bwk_sock *listener)
{
	struct bwk_sock *bs;

	spin_lock_bh(&listener->accept_lock);
	bs = list_first_entry_or_null(&listener->accept, struct bwk_sock, accept);
	if (bs) {
		list_del_init(&bs->accept);
		sk_acceptq_removed(&listener->sk);
	}
	spin_unlock_bh(&listener->accept_lock);
	return bs;
}

static int bwk_conn_accept(struct socket *sock, struct socket *new, BWK_ACCEPT_PARAMETERS)
{
	struct sock *sk = sock->sk;
	long timeout = bwk_sock_rcvtimeo(sk, BWK_ACCEPT_FLAGS & O_NONBLOCK);
	struct bwk_sock *bs;
	int error;

	if (bwk_conn_state(sk) != TCP_LISTEN)
		return -EINVAL;
	while (!(bs = bwk_conn_next(bwk_sk(sk)))) {
		error = bwk_sock_wait(sk, bwk_conn_acceptable, &timeout);
		if (error)
			return error;
		if (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN)
			return -EINVAL;
	}
	sock_graft(&bs->sk, new);
	return 0;
}

/* Lock held. 0: it has begun; -EALREADY: how another attempt ends is to be told. */
static int bwk_conn_begin(struct bwk_sock *bs, struct bwk_port *port,
			  const struct sockaddr_beowire *to)
{
	struct bwk_peer *peer;
	int error;

	if (bs->untold)
		return -EALREADY;
	if (!bwk_conn_idle(bs))
		return -EISCONN;
	bwk_conn_forget(bs);
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
	bwk_sock_direct(bs, to);
	bs->untold = true;
	bwk_conn_set_state(&bs->sk, TCP_SYN_SENT);
	bwk_port_run(port);
	return 0;
}

static bool bwk_conn_settled(const struct sock *sk)
{
	return bwk_conn_state(sk) != TCP_SYN_SENT;
}

/* How the attempt to connect ended; `error`: the socket's, if it was taken already. */
static int bwk_conn_outcome(struct bwk_sock *bs, int error)
{
	bwk_port_lock(bs->port);
	if (!error)
		error = sock_error(&bs->sk);
	if (bs->sk.sk_state != TCP_SYN_SENT)
		bs->untold = false;
	else if (!error)
		error = -EALREADY; /* another thread was told, and has begun anew */
	if (!error && bs->sk.sk_state != TCP_ESTABLISHED)
		error = bs->connected ? -ECONNRESET : -ECONNREFUSED;
	bwk_port_unlock(bs->port);
	return error;
}

/* As bwk_conn_begin(). */
static int bwk_conn_start(struct bwk_sock *bs, const struct sockaddr_beowire *to)
{
	struct bwk_port *port = bwk_sock_port(bs, &bwk_conn_port_ops, bs);
	int error;

	if (IS_ERR(port))
		return PTR_ERR(port);
	do {
		bwk_port_lock(port);
		error = bwk_conn_begin(bs, port, to);
		bwk_port_unlock(port);
	} while (error == -EAGAIN && bwk_port_feed(port) == 0);
	return error == -EAGAIN ? -ENOBUFS : error;
}

static int bwk_conn_connect(struct socket *sock, bwk_sockaddr *addr, int len, int flags)
{
	struct sock *sk = sock->sk;
	long timeout = bwk_sock_sndtimeo(sk, 0);
	struct sockaddr_beowire to;
	int error = bwk_given_addr(sock->sk, addr, len, &to);

	if (error)
		return error;
	if (!to.sbw_port || to.sbw_port > BEOWIRE_PORTS || !is_valid_ether_addr(to.sbw_mac))
		return -EADDRNOTAVAIL;
	error = bwk_conn_start(bwk_sk(sk), &to);
	if (error && error != -EALREADY)
		return error;
	if (flags & O_NONBLOCK && !bwk_conn_settled(sk))
		return error ? error : -EINPROGRESS;
	error = bwk_conn_settled(sk) ? 0 : bwk_sock_wait(sk, bwk_conn_settled, &timeout);
	if (error == -EAGAIN)
		return -EINPROGRESS; /* SO_SNDTIMEO */
	if (error == -EINTR || error == -ERESTARTSYS)
		return error;
	return bwk_conn_outcome(bwk_sk(sk), error);
}

/* ---- the end ---- */

/* Say that nothing more is sent, if that was not said; with `reset` that all is over. 0, -ENOTCONN,
 * or it is not said. Process context. */
static int bwk_conn_end(struct bwk_sock *bs, bool reset)
{
	struct bwk_port *port = bs->port;
	struct bwk_buf *b = bwk_buf_empty();
	bool said = false;
	int error;

	if (!b)
		return -ENOMEM;
	b->use = BWK_BUF_SEND;
	do {
		bwk_port_lock(port);
		error = bs->sk.sk_state == TCP_ESTABLISHED ? 0 : -ENOTCONN;
		if (!error && (reset || !(bs->sk.sk_shutdown & SEND_SHUTDOWN))) {
			error = bwk_conn_say(port, bs->peer, reset ? BW_CONN_RESET : BW_CONN_END, 0,
					     b);
			said = !error;
		}
		if (said) {
			refcount_inc(&bs->peer->refs);
			b->end_of = bs->peer;
			bwk_sock_shut(&bs->sk, SEND_SHUTDOWN);
			bwk_port_run(port);
		}
		bwk_port_unlock(port);
	} while (error == -EAGAIN && bwk_port_feed(port) == 0);
	if (!said)
		bwk_buf_free_now(b);
	return error;
}

static int bwk_conn_shutdown(struct socket *sock, int how)
{
	struct sock *sk = sock->sk;
	struct bwk_sock *bs = bwk_sk(sk);
	struct bwk_port *port = smp_load_acquire(&bs->port);
	bool listens;
	int error = 0;

	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	if (!port)
		return -ENOTCONN;
	bwk_port_lock(port);
	listens = sk->sk_state == TCP_LISTEN && how != SHUT_WR;
	if (!listens && sk->sk_state != TCP_ESTABLISHED)
		error = -ENOTCONN;
	else if (how != SHUT_WR)
		bwk_sock_shut(sk, RCV_SHUTDOWN);
	bwk_port_unlock(port);
	if (!error && how != SHUT_WR)
		sk->sk_state_change(sk); /* whatever becomes of the other direction */
	if (!error && !listens && how != SHUT_RD) {
		error = bwk_conn_end(bs, false);
		if (!error)
			sk->sk_state_change(sk);
	}
	return error == -EAGAIN ? -ENOBUFS : error;
}

/* The peer of a connection that is not there yet, or no more, has no name. */
static int bwk_conn_getname(struct socket *sock, struct sockaddr *addr, int peer)
{
	if (peer == 1 && bwk_conn_state(sock->sk) != TCP_ESTABLISHED)
		return -ENOTCONN;
	return bwk_sock_getname(sock, addr, peer);
}

static __poll_t bwk_conn_poll(struct file *file, struct socket *sock, poll_table *wait)
{
	struct sock *sk = sock->sk;
	__poll_t events = 0;
	int state, shutdown;

	sock_poll_wait(file, sock, wait);
	/* Each once: a connection may end meanwhile. */
	state = bwk_conn_state(sk);
	shutdown = READ_ONCE(sk->sk_shutdown);
	if (state == TCP_LISTEN)
		return bwk_conn_acceptable(sk) ? EPOLLIN | EPOLLRDNORM : 0;
	if (shutdown & RCV_SHUTDOWN)
		events |= EPOLLRDHUP | EPOLLIN | EPOLLRDNORM;
	if (shutdown == SHUTDOWN_MASK || state == TCP_CLOSE)
		events |= EPOLLHUP;
	if (bwk_conn_readable(sk))
		events |= EPOLLIN | EPOLLRDNORM;
	if (shutdown & SEND_SHUTDOWN ||
	    (state != TCP_SYN_SENT && bwk_sock_roomy(sk, atomic_read(&bwk_sk(sk)->sending))))
		events |= EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND;
	smp_rmb(); /* why it ended was written before that it has */
	if (READ_ONCE(sk->sk_err))
		events |= EPOLLERR;
	return events;
}

/* Nobody will hear of this buffer; a long message is still to be fetched. Lock held. */
static bool bwk_conn_disown(struct bwk_sock *bs, struct bwk_buf *b)
{
	b->owner = NULL;
	if (b->use != BWK_BUF_EXPOSED)
		return true;
	b->end_of = bs->peer;
	refcount_inc(&bs->peer->refs);
	bs->peer->unfetched++;
	return true;
}

/* A socket leaves its peer; what it sent still arrives. The peer is told that something was left
 * unread. */
static void bwk_conn_detach(struct bwk_sock *bs, bool reset)
{
	struct bwk_port *port = bs->port;
	struct bwk_peer *peer = bs->peer;
	bool lost = false;

	reset |= !skb_queue_empty_lockless(&bs->sk.sk_receive_queue);
	bwk_fetch_forget(bs);
	if (peer && bwk_conn_state(&bs->sk) == TCP_ESTABLISHED &&
	    (reset || !(READ_ONCE(bs->sk.sk_shutdown) & SEND_SHUTDOWN)))
		lost = bwk_conn_end(bs, reset) != 0;
	bwk_port_lock(port);
	bwk_sock_disown(bs, bwk_conn_disown);
	/* What came until now may have pressed. The lock is kept until nothing more comes. */
	bwk_queue_press(bs, false);
	if (peer) {
		/* What has come since, nobody reads either. */
		if (!lost && !reset && bs->sk.sk_state == TCP_ESTABLISHED &&
		    !skb_queue_empty(&bs->sk.sk_receive_queue))
			bwk_conn_say(port, peer, BW_CONN_RESET, 0, NULL);
		peer->conn = NULL;
		if (lost || bs->sk.sk_state != TCP_ESTABLISHED)
			bwk_peer_leave(port, peer);
		else
			bwk_conn_part(port, peer);
	}
	bwk_port_run(port);
	bwk_port_unlock(port);
	bwk_queue_drop_all(bs);
	if (peer)
		bwk_peer_put(peer);
}

static void bwk_conn_free(struct bwk_sock *bs, bool reset)
{
	bwk_sock_hide(bs);
	if (bs->port) {
		bwk_conn_detach(bs, reset);
		bwk_port_release(bs->port, bs);
	}
	bwk_sock_end(&bs->sk);
}

static bool bwk_conn_drained(const struct sock *sk)
{
	return !atomic_read(&bwk_sk(sk)->sending);
}

static int bwk_conn_release(struct socket *sock)
{
	struct sock *sk = sock->sk;
	struct bwk_sock *bs, *child;
	bool lingers;
	long patience;

	if (!sk)
		return 0;
	bs = bwk_sk(sk);
	if (bs->port) {
		bwk_port_lock(bs->port);
		if (sk->sk_state == TCP_LISTEN)
			bwk_conn_set_state(sk, TCP_CLOSE);
		bwk_port_unlock(bs->port);
		if (bs->listens)
			bwk_shards_release(bs->port, bs);
		while ((child = bwk_conn_next(bs)))
			bwk_conn_free(child, true); /* nobody has accepted it */
	}
	lingers = sock_flag(sk, SOCK_LINGER);
	patience = min_t(unsigned long, sk->sk_lingertime, MAX_SCHEDULE_TIMEOUT);
	if (lingers && patience && !(current->flags & PF_EXITING))
		bwk_sock_wait(sk, bwk_conn_drained, &patience);
	sock->sk = NULL;
	bwk_conn_free(bs, lingers && !sk->sk_lingertime);
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
	.getname = bwk_conn_getname,
	.poll = bwk_conn_poll,
	.ioctl = bwk_sock_ioctl,
#ifdef CONFIG_COMPAT
	.compat_ioctl = bwk_sock_compat_ioctl,
#endif
	.listen = bwk_conn_listen,
	.shutdown = bwk_conn_shutdown,
	.setsockopt = bwk_sock_setsockopt,
	.getsockopt = bwk_sock_getsockopt,
	.sendmsg = bwk_conn_sendmsg,
	.recvmsg = bwk_conn_recvmsg,
	.mmap = sock_no_mmap,
};
