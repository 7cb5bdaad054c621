/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Data of connections. Of a stream one call may make several messages, and take several or a part
 * of one; the bytes of a long message are fetched as they are asked for.
 */
#include <linux/sched/signal.h>
#include <net/tcp_states.h>

#include "conn.h"

#define BWK_CONN_CHUNK (8u << 20) /* bytes of a stream that make one message */

static int bwk_conn_usable(const struct sock *sk)
{
	if (READ_ONCE(sk->sk_err))
		return sock_error((struct sock *)sk);
	if (sk->sk_shutdown & SEND_SHUTDOWN)
		return -EPIPE;
	return READ_ONCE(sk->sk_state) == TCP_ESTABLISHED ? 0 : -ENOTCONN;
}

int bwk_conn_sendmsg(struct socket *sock, struct msghdr *m, size_t len)
{
	struct sock *sk = sock->sk;
	struct bwk_sock *bs = bwk_sk(sk);
	bool stream = sk->sk_type == SOCK_STREAM;
	long timeout = sock_sndtimeo(sk, m->msg_flags & MSG_DONTWAIT);
	size_t done = 0, n;
	int error;

	if (m->msg_flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (m->msg_namelen)
		return sk->sk_state == TCP_ESTABLISHED ? -EISCONN : -EOPNOTSUPP;
	if (!stream && len > BEOWIRE_MSG_MAX)
		return -EMSGSIZE;
	error = bwk_conn_usable(sk);
	if (error || (stream && !len))
		goto end;
	do {
		struct bwk_send s = {
			.peer = bs->peer,
			.info = {.code = BW_CONN_DATA},
			.nonblock = m->msg_flags & MSG_DONTWAIT,
			.timeout = timeout,
			.more = m->msg_flags & (MSG_BATCH | MSG_MORE),
			.ep = BW_EP_CONNECTIONS,
		};

		n = len - done;
		if (stream)
			n = min_t(size_t, n, s.nonblock ? bs->eager_max + 1 : BWK_CONN_CHUNK);
		error = bwk_send(bs, bs->port, &m->msg_iter, n, &s);
		timeout = s.timeout;
		if (!error)
			done += n;
		/* What goes wrong meanwhile is told by the next call: part of it is sent. */
	} while (!error && done < len && sk->sk_state == TCP_ESTABLISHED &&
		 !(sk->sk_shutdown & SEND_SHUTDOWN));
end:
	if (done || !error)
		return (int)done;
	if (error == -ENOTCONN && (sk->sk_err || sk->sk_shutdown & SEND_SHUTDOWN))
		error = -EPIPE;
	if (error == -EPIPE && stream && !(m->msg_flags & MSG_NOSIGNAL))
		send_sig(SIGPIPE, current, 0);
	return error;
}

bool bwk_conn_readable(const struct sock *sk)
{
	return bwk_queue_ready(sk);
}

/* Or nothing more comes. */
static bool bwk_conn_decided(const struct sock *sk)
{
	return bwk_conn_readable(sk) || (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN);
}

/* The first message, which stays in the queue; NULL: nothing more comes, or an error in *error. */
static struct sk_buff *bwk_conn_first(struct sock *sk, long *timeout, int *error)
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
		*error = bwk_sock_wait(sk, bwk_conn_decided, timeout);
		if (*error)
			return NULL;
	}
}

/* Bytes of a long message. A call that may not wait any longer leaves it to be fetched ahead. */
static int bwk_conn_fetch(struct bwk_sock *bs, struct sk_buff *skb, struct msghdr *m, size_t n,
			  bool last, int flags, long *timeout)
{
	const struct bwk_cb *cb = bwk_cb(skb);
	const struct bwk_source from = {
		.handle = cb->peer->handle, .key = cb->key, .off = cb->off, .last = last};
	int error;

	if (flags & MSG_DONTWAIT)
		return bwk_fetch_ahead(bs, skb);
	error = bwk_fetch_now(bs, &from, &m->msg_iter, n, timeout);
	if (error == -EAGAIN || error == -EINTR || error == -ERESTARTSYS)
		bwk_fetch_ahead(bs, skb);
	return error;
}

/* Bytes of the first message, from where the last call left off. */
static int bwk_conn_take(struct bwk_sock *bs, struct sk_buff *skb, struct msghdr *m, size_t n,
			 bool last, int flags, long *timeout)
{
	struct bwk_cb *cb = bwk_cb(skb);
	int error;

	if (cb->event == BEOWIRE_MESSAGE)
		return skb_copy_datagram_msg(skb, cb->off, m, (int)n);
	if (cb->event == BEOWIRE_ENVELOPE) {
		if (flags & MSG_PEEK)
			return -EOPNOTSUPP; /* its bytes are still the sender's */
		if (!cb->peer->handle)
			return -ECONNRESET;
		error = bwk_conn_fetch(bs, skb, m, n, last, flags, timeout);
		if (error || cb->event == BEOWIRE_ENVELOPE)
			return error;
	}
	error = bwk_fetch_await(bs, skb, timeout);
	return error ? error : bwk_buf_to_iter(bwk_fetch_found(skb), cb->off, n, &m->msg_iter);
}

static void bwk_conn_drop(struct bwk_sock *bs, struct sk_buff *skb)
{
	struct bwk_buf *b = bwk_fetch_found(skb);

	skb_unlink(skb, &bs->sk.sk_receive_queue);
	if (b)
		bwk_fetch_taken(bs, b);
	bwk_queue_free(skb);
	bwk_queue_relieve(bs);
}

static int bwk_conn_recv_packet(struct bwk_sock *bs, struct sk_buff *skb, struct msghdr *m,
				size_t len, int flags, long *timeout)
{
	u32 whole = bwk_cb(skb)->len;
	size_t n = min_t(size_t, len, whole);
	int error = bwk_conn_take(bs, skb, m, n, true, flags, timeout);

	if (error)
		return error;
	if (n < whole)
		m->msg_flags |= MSG_TRUNC;
	if (!(flags & MSG_PEEK))
		bwk_conn_drop(bs, skb);
	return flags & MSG_TRUNC ? (int)whole : (int)n;
}

static int bwk_conn_recv_bytes(struct bwk_sock *bs, struct sk_buff *skb, struct msghdr *m,
			       size_t len, int flags, long *timeout)
{
	struct bwk_cb *cb = bwk_cb(skb);
	size_t n = min_t(size_t, len, cb->len);
	bool last = n == cb->len;
	int error = bwk_conn_take(bs, skb, m, n, last, flags, timeout);

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

/* One reader at a time; who may not wait does not wait for another one either. */
static int bwk_conn_begin_reading(struct bwk_sock *bs, int flags)
{
	if (flags & MSG_DONTWAIT)
		return mutex_trylock(&bs->reading) ? 0 : -EAGAIN;
	return mutex_lock_interruptible(&bs->reading);
}

int bwk_conn_recvmsg(struct socket *sock, struct msghdr *m, size_t len, int flags)
{
	struct sock *sk = sock->sk;
	struct bwk_sock *bs = bwk_sk(sk);
	long timeout = sock_rcvtimeo(sk, flags & MSG_DONTWAIT), none = 0;
	bool stream = sk->sk_type == SOCK_STREAM, again;
	struct sk_buff *skb;
	size_t done = 0;
	int got, error = 0;

	if (flags & (MSG_OOB | MSG_ERRQUEUE))
		return -EOPNOTSUPP;
	m->msg_namelen = 0;
	error = bwk_conn_begin_reading(bs, flags);
	if (error)
		return error;
	do {
		skb = bwk_conn_first(sk, done && !(flags & MSG_WAITALL) ? &none : &timeout, &error);
		if (!skb)
			break;
		got = stream ? bwk_conn_recv_bytes(bs, skb, m, len - done, flags, &timeout)
			     : bwk_conn_recv_packet(bs, skb, m, len, flags, &timeout);
		again = got == -ECANCELED;
		if (again)
			bwk_conn_drop(bs, skb); /* its sender has taken it back */
		else if (got < 0)
			error = got;
		else
			done += got;
	} while (again || (stream && !error && done < len && !(flags & MSG_PEEK)));
	mutex_unlock(&bs->reading);
	return done ? (int)done : error;
}
