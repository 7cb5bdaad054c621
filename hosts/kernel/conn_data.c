/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Data of connections. Of a stream one call may make several messages, and take several or a part
 * of one; the bytes of a long message are fetched as they are asked for.
 */
#include <linux/sched/signal.h>
#include <net/tcp_states.h>

#include "conn.h"

#define BWK_CONN_CHUNK (8u << 20) /* bytes of a stream that make one message */

/* 0: the connection was seen to be there. Another thread may take the error meanwhile, which is
 * none of this call then. */
static int bwk_conn_usable(struct sock *sk)
{
	int error = sock_error(sk);

	if (error)
		return error;
	if (READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN)
		return -EPIPE;
	return bwk_conn_state(sk) == TCP_ESTABLISHED ? 0 : -ENOTCONN;
}

/* Why nothing was sent, to be told to the program; an error of the connection goes first, and is
 * not told again. */
static int bwk_conn_unsent(struct sock *sk, int error, int flags)
{
	struct bwk_sock *bs = bwk_sk(sk);
	bool lost = error == -ESHUTDOWN || error == -ETIMEDOUT || error == -ECONNRESET ||
		    error == -ECONNREFUSED || error == -EKEYREJECTED || error == -EPROTOTYPE;
	int told;

	if (!lost && error != -EPIPE)
		return error;
	if (lost) { /* the connection's end lies right behind that of the send */
		bwk_port_lock(bs->port);
		bwk_port_unlock(bs->port);
	}
	told = sock_error(sk);
	if (told)
		return told;
	if (error != -EPIPE && error != -ESHUTDOWN)
		return error;
	if (!(flags & MSG_NOSIGNAL))
		send_sig(SIGPIPE, current, 0);
	return -EPIPE;
}

/* Bytes of a stream that make one message: as many as may be copied at once. */
static size_t bwk_conn_chunk(const struct bwk_sock *bs, bool copied)
{
	if (copied)
		return min_t(size_t, READ_ONCE(bs->eager_max) + 1, READ_ONCE(bs->sk.sk_sndbuf));
	return min_t(size_t, BWK_CONN_CHUNK, READ_ONCE(bs->port->node->set.memory_max));
}

int bwk_conn_sendmsg(struct socket *sock, struct msghdr *m, size_t len)
{
	struct sock *sk = sock->sk;
	struct bwk_sock *bs = bwk_sk(sk);
	bool stream = sk->sk_type == SOCK_STREAM;
	struct bwk_send s;
	size_t done = 0, n;
	int error;

	if (m->msg_flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (m->msg_namelen)
		return bwk_conn_state(sk) == TCP_ESTABLISHED ? -EISCONN : -EOPNOTSUPP;
	if (!stream && len > BEOWIRE_MSG_MAX)
		return -EMSGSIZE;
	error = bwk_conn_usable(sk);
	if (error || (stream && !len))
		goto end;
	bwk_send_begin(&s, sk, m, BW_EP_CONNECTIONS);
	s.peer = bs->peer; /* it stays: conn.c */
	s.info.code = BW_CONN_DATA;
	s.more |= (m->msg_flags & MSG_MORE) != 0;
	/* Of a message that its receiver has read a part of nothing can be taken back. */
	s.copied = stream && s.timeout != MAX_SCHEDULE_TIMEOUT;
	do {
		n = len - done;
		if (stream)
			n = min_t(size_t, n, bwk_conn_chunk(bs, s.nonblock || s.copied));
		error = bwk_send(bs, bs->port, &m->msg_iter, n, &s);
		if (!error)
			done += n;
	} while (!error && done < len && bwk_conn_state(sk) == TCP_ESTABLISHED &&
		 !(READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN));
	/* What went wrong meanwhile is told by the next call: part of it is sent. */
	if (done && (error == -ECONNRESET || error == -ETIMEDOUT))
		WRITE_ONCE(sk->sk_err, -error);
end:
	return done || !error ? (int)done : bwk_conn_unsent(sk, error, m->msg_flags);
}

bool bwk_conn_readable(const struct sock *sk)
{
	return bwk_queue_ready(sk);
}

/* Or nothing more comes. */
static bool bwk_conn_decided(const struct sock *sk)
{
	return bwk_conn_readable(sk) || (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN) ||
	       READ_ONCE(sk->sk_err);
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

/* The first message, for the only reader: it stays until that takes it, and others add behind it.
 * Who adds it has written it before: bwk_queue_message(). */
static struct sk_buff *bwk_conn_first(const struct sock *sk)
{
	const struct sk_buff_head *queue = &sk->sk_receive_queue;
	struct sk_buff *skb = smp_load_acquire(&queue->next);

	return skb == (const struct sk_buff *)queue ? NULL : skb;
}

/* Its sender cannot give the first message any more. -ECANCELED: nobody has missed it, the next one
 * is to be taken instead. */
static int bwk_conn_lost(struct bwk_sock *bs, struct sk_buff *skb, int error)
{
	bool begun = bwk_cb(skb)->imm;

	bwk_conn_drop(bs, skb);
	if (error == -ECANCELED && !begun)
		return -ECANCELED; /* taken back: that call sent nothing */
	bwk_port_lock(bs->port);
	if (bs->sk.sk_state == TCP_ESTABLISHED) {
		bwk_conn_say(bs->port, bs->peer, BW_CONN_RESET, 0, NULL);
		bwk_conn_fail(bs, ECONNRESET);
		bwk_port_run(bs->port);
	}
	bwk_port_unlock(bs->port);
	/* Nothing is given from behind the hole, and now nothing more comes. */
	while ((skb = bwk_conn_first(&bs->sk)))
		bwk_conn_drop(bs, skb);
	error = sock_error(&bs->sk);
	return error ? error : -ECONNRESET;
}

/* Bytes of a long message. A call that may not wait any longer leaves it to be fetched ahead. */
static int bwk_conn_fetch(struct bwk_sock *bs, struct sk_buff *skb, struct msghdr *m, size_t n,
			  bool last, long *timeout)
{
	const struct bwk_cb *cb = bwk_cb(skb);
	const struct bwk_source from = {.handle = READ_ONCE(cb->peer->handle),
					.key = cb->key,
					.off = cb->off,
					.last = last};
	int error;

	if (!from.handle)
		return -ESHUTDOWN;
	if (!*timeout)
		return bwk_fetch_ahead(bs, skb);
	error = bwk_fetch_now(bs, &from, &m->msg_iter, n, timeout);
	if (error == -EAGAIN || error == -EINTR || error == -ERESTARTSYS)
		bwk_fetch_ahead(bs, skb);
	return error;
}

/* Bytes of the first message, from where the last call left off; `last`: of what is left all. */
static int bwk_conn_take(struct bwk_sock *bs, struct sk_buff *skb, struct msghdr *m, size_t n,
			 bool last, long *timeout)
{
	struct bwk_cb *cb = bwk_cb(skb);
	int error;

	if (cb->event == BEOWIRE_MESSAGE)
		return skb_copy_datagram_msg(skb, cb->off, m, (int)n);
	do {
		if (cb->event == BEOWIRE_ENVELOPE) {
			error = bwk_conn_fetch(bs, skb, m, n, last, timeout);
			if (error || cb->event == BEOWIRE_ENVELOPE)
				return error;
		}
		error = bwk_fetch_await(bs, skb, timeout);
	} while (error == -ESTALE);
	return error ? error : bwk_buf_to_iter(bwk_fetch_found(skb), cb->off, n, &m->msg_iter);
}

/* Does a message whose bytes could not be had for this reason stay for the next call? */
static bool bwk_conn_stays(int error)
{
	return error == -EFAULT || error == -ENOMEM || error == -ENOBUFS || error == -EAGAIN ||
	       error == -EINTR || error == -ERESTARTSYS;
}

/* The next bytes: how many, or an error; -ECANCELED: nothing is to be had of this message. */
static int bwk_conn_give(struct bwk_sock *bs, struct sk_buff *skb, struct msghdr *m, size_t len,
			 int flags, long *timeout)
{
	bool stream = bs->sk.sk_type == SOCK_STREAM, peek = flags & MSG_PEEK;
	struct bwk_cb *cb = bwk_cb(skb);
	u32 whole = cb->len;
	size_t n = min_t(size_t, len, whole);
	bool over = !stream || n == whole;
	int error = bwk_conn_take(bs, skb, m, n, over && !peek, timeout);

	/* All may have come and its sender let go of it, before the program's memory was gone. */
	if (error == -EFAULT && over && !peek && cb->event == BEOWIRE_ENVELOPE)
		cb->imm = 1;
	if (error)
		return bwk_conn_stays(error) ? error : bwk_conn_lost(bs, skb, error);
	if (!stream)
		m->msg_flags |= MSG_EOR | (n < whole ? MSG_TRUNC : 0);
	if (!peek) {
		cb->off += n;
		cb->len -= n;
		cb->imm = 1; /* a part of it was given: it cannot be taken back any more */
		if (over)
			bwk_conn_drop(bs, skb);
	}
	return !stream && (flags & MSG_TRUNC) ? (int)whole : (int)n;
}

/* The next bytes of what has come: how many, -ENOMSG: there are none, or an error. Who may not wait
 * does not wait for another reader either. */
static int bwk_conn_step(struct bwk_sock *bs, struct msghdr *m, size_t len, int flags,
			 long *timeout)
{
	struct sk_buff *skb;
	int got;

	if (!*timeout && !mutex_trylock(&bs->reading))
		return -EAGAIN;
	if (*timeout && mutex_lock_interruptible(&bs->reading))
		return sock_intr_errno(*timeout);
	do {
		skb = bwk_conn_first(&bs->sk);
		got = skb ? bwk_conn_give(bs, skb, m, len, flags, timeout) : -ENOMSG;
	} while (got == -ECANCELED);
	mutex_unlock(&bs->reading);
	return got;
}

/* Wait for more. 0: look again, 1: nothing more comes, or an error. What was given already (`done`)
 * is to be told first: an error then stays for the next call. */
static int bwk_conn_await(struct sock *sk, bool done, int flags, long *timeout)
{
	bool over = READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN, failed = READ_ONCE(sk->sk_err);
	int error;

	if (done && !(flags & MSG_WAITALL))
		return 1;
	smp_rmb(); /* what came before the end is in the queue now */
	if (!skb_queue_empty_lockless(&sk->sk_receive_queue))
		return 0;
	if (done && (over || failed))
		return 1;
	error = sock_error(sk);
	if (error)
		return error;
	if (over)
		return 1;
	if (READ_ONCE(sk->sk_state) != TCP_ESTABLISHED && !bwk_conn_decided(sk))
		return -ENOTCONN;
	return bwk_sock_wait_busy(sk, bwk_conn_decided, timeout);
}

int bwk_conn_recvmsg(struct socket *sock, struct msghdr *m, size_t len, int flags)
{
	struct sock *sk = sock->sk;
	bool stream = sk->sk_type == SOCK_STREAM;
	long timeout = bwk_sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	size_t done = 0;
	int got, error;

	if (flags & (MSG_OOB | MSG_ERRQUEUE))
		return -EOPNOTSUPP;
	m->msg_namelen = 0;
	do {
		got = bwk_conn_step(bwk_sk(sk), m, len - done, flags, &timeout);
		error = got < 0 ? got : 0;
		if (got > 0)
			done += got;
		if (!error && (!stream || done == len || (flags & MSG_PEEK)))
			break;
		if (error == -ENOMSG)
			error = bwk_conn_await(sk, done, flags, &timeout);
	} while (!error);
	if (done && error < 0 && !bwk_conn_stays(error))
		WRITE_ONCE(sk->sk_err, -error); /* for the next call */
	return done || error > 0 ? (int)done : error;
}
