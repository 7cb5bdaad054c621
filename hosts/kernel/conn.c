/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections: SOCK_SEQPACKET and SOCK_STREAM. A connection is the conversation of two ports, begun
 * by a REQUEST that a listening socket's port ACCEPTs or REFUSEs, and finished by an END each way.
 * The sockets that accept() makes share the listener's port, or one of its shards, each with a peer
 * of its own.
 *
 * All of a connection's state (sk_state, sk_shutdown, peer, connected, untold) is written with its
 * port's lock held; sk_state is as TCP's: CLOSE, SYN_SENT, LISTEN, ESTABLISHED. A socket has one
 * connection in its life: attempts may fail and be made again, each with a peer of its own, but
 * once ESTABLISHED was reached `connected` stays, and with it the peer and the receive queue, until
 * the socket is closed. Hence who has seen ESTABLISHED once may use `peer` without the lock, over
 * any wait; all others hold it. sock->state is not used: nothing guards it.
 *
 * Here is what comes from the port, always with its lock held; conn_call.c and conn_data.c have the
 * calls of programs.
 */
#include <net/tcp_states.h>

#include "conn.h"

u64 bwk_conn_kind(const struct sock *sk)
{
	return sk->sk_type == SOCK_SEQPACKET ? 1 : 2;
}

int bwk_conn_say(struct bwk_port *port, const struct bwk_peer *peer, u8 code, u64 tag,
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
		hlist_add_head(&b->held, &port->bufs);
	return error;
}

void bwk_conn_fail(struct bwk_sock *bs, int error)
{
	struct sock *sk = &bs->sk;

	if (sk->sk_state == TCP_CLOSE)
		return;
	smp_wmb(); /* whoever sees why sees what came before, too */
	WRITE_ONCE(sk->sk_err, error);
	/* Whoever sees the end sees why, and whoever sees the state sees both. */
	bwk_sock_shut(sk, SHUTDOWN_MASK);
	bwk_conn_set_state(sk, TCP_CLOSE);
	sk->sk_state_change(sk);
	sk_error_report(sk);
}

static struct bwk_sock *bwk_conn_child(const struct bwk_sock *listener, struct bwk_peer *peer)
{
	struct sock *sk = sk_alloc(sock_net(&listener->sk), listener->sk.sk_family, GFP_ATOMIC,
				   &bwk_proto, 0);
	struct bwk_sock *bs = bwk_sk(sk);

	if (!sk)
		return NULL;
	sock_init_data(NULL, sk);
	if (!bwk_sock_begin(bs, listener->protocol, bwk_account_hold(listener->account))) {
		sock_put(sk);
		return NULL;
	}
	sk->sk_family = listener->sk.sk_family;
	sk->sk_type = listener->sk.sk_type;
	sk->sk_uid = listener->sk.sk_uid;
	sk->sk_rcvbuf = READ_ONCE(listener->sk.sk_rcvbuf);
	sk->sk_sndbuf = READ_ONCE(listener->sk.sk_sndbuf);
	sk->sk_state = TCP_ESTABLISHED;
	bs->busy_us = READ_ONCE(listener->busy_us);
	bs->adaptive = READ_ONCE(listener->adaptive);
	bs->copy_max = READ_ONCE(listener->copy_max);
	bs->eager_max = READ_ONCE(listener->eager_max);
	bs->port = peer->port;
	bwk_port_join(bs->port);
	refcount_inc(&peer->refs);
	bs->peer = peer;
	bwk_sock_direct(bs, &peer->addr);
	bs->connected = true;
	peer->conn = bs;
	bwk_sock_show(bs);
	return bs;
}

/* Each attempt is of a peer of its own: who asks again is left, as else it could make us keep as
 * many answers as it likes. So is who cannot be answered for want of memory: it would wait. */
void bwk_conn_refuse(struct bwk_port *port, struct bwk_peer *peer)
{
	if (peer->answered || bwk_conn_say(port, peer, BW_CONN_REFUSE, 0, NULL))
		bwk_peer_leave(port, peer);
	peer->answered = true;
}

/* The listener's own port may be another shard, whose lock is not held. */
static bool bwk_conn_listens(const struct sock *listener)
{
	return bwk_conn_state(listener) == TCP_LISTEN &&
	       !(READ_ONCE(listener->sk_shutdown) & RCV_SHUTDOWN);
}

/* One more waits to be accepted, if it may. */
static bool bwk_conn_reserve(struct bwk_sock *listener)
{
	bool room;

	spin_lock(&listener->accept_lock);
	room = !sk_acceptq_is_full(&listener->sk);
	if (room)
		sk_acceptq_added(&listener->sk);
	spin_unlock(&listener->accept_lock);
	return room;
}

/* The same with its socket, or if there is none after all. */
static void bwk_conn_wait_for_accept(struct bwk_sock *listener, struct bwk_sock *bs)
{
	spin_lock(&listener->accept_lock);
	if (bs)
		list_add_tail(&bs->accept, &listener->accept);
	else
		sk_acceptq_removed(&listener->sk);
	spin_unlock(&listener->accept_lock);
}

static void bwk_conn_request(struct bwk_port *port, struct bwk_sock *listener,
			     struct bwk_peer *peer, u64 kind)
{
	struct bwk_sock *bs = NULL;

	if (listener && bwk_conn_listens(&listener->sk) && !peer->conn && !peer->ended &&
	    kind == bwk_conn_kind(&listener->sk) && bwk_conn_reserve(listener)) {
		bs = bwk_conn_child(listener, peer);
		if (!bs) {
			bwk_conn_wait_for_accept(listener, NULL);
			this_cpu_inc(port->node->count->connections_refused);
		}
	}
	if (!bs) {
		bwk_conn_refuse(port, peer);
		return;
	}
	if (bwk_conn_say(port, peer, BW_CONN_ACCEPT, kind, NULL)) {
		bwk_conn_fail(bs, ENOBUFS);
		bwk_peer_leave(port, peer);
	}
	bwk_conn_wait_for_accept(listener, bs);
	bwk_sock_readable(&listener->sk);
}

static void bwk_conn_accepted(struct bwk_sock *bs)
{
	if (!bs || bs->sk.sk_state != TCP_SYN_SENT)
		return;
	WRITE_ONCE(bs->connected, true);
	bwk_conn_set_state(&bs->sk, TCP_ESTABLISHED);
	bs->sk.sk_state_change(&bs->sk);
	bs->sk.sk_write_space(&bs->sk);
}

void bwk_conn_part(struct bwk_port *port, const struct bwk_peer *peer)
{
	if (!peer->conn && peer->ended && peer->end_acked && !peer->unfetched)
		bwk_peer_leave(port, peer);
}

/* The other side sends nothing more. */
static void bwk_conn_ended(struct bwk_port *port, struct bwk_peer *peer)
{
	struct bwk_sock *bs = peer->conn;

	peer->ended = true;
	if (!bs) {
		bwk_conn_part(port, peer);
		return;
	}
	if (!bs->connected) { /* that is no answer to a request */
		bwk_conn_fail(bs, ECONNREFUSED);
		return;
	}
	bwk_sock_shut(&bs->sk, RCV_SHUTDOWN);
	bs->sk.sk_state_change(&bs->sk);
	bwk_sock_readable(&bs->sk);
}

/* Data come that nobody takes; once said is enough. */
static void bwk_conn_reset(struct bwk_port *port, struct bwk_peer *peer)
{
	if (!peer->answered)
		peer->answered = bwk_conn_say(port, peer, BW_CONN_RESET, 0, NULL) == 0;
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
		if (!bs || !bs->connected || bs->sk.sk_shutdown & RCV_SHUTDOWN)
			bwk_conn_reset(port, peer);
		else if (!bwk_queue_message(bs, peer, ev, skb, off, whole))
			bwk_peer_leave(port, peer); /* what follows would close the gap */
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
	struct bwk_sock *bs = b->owner;

	if (bs) {
		bwk_sock_done(bs, b);
		return;
	}
	if (peer && b->use == BWK_BUF_EXPOSED)
		peer->unfetched--;
	else if (peer)
		peer->end_acked = true;
	if (peer)
		bwk_conn_part(peer->port, peer);
	bwk_buf_free(b);
}

static void bwk_conn_peer_down(void *owner, struct bwk_peer *peer)
{
	struct bwk_sock *bs = peer->conn;
	int error = -peer->status;

	if (!bs)
		return;
	if (bs->sk.sk_state == TCP_SYN_SENT) {
		bwk_conn_fail(bs, error == ESHUTDOWN || error == ECONNRESET ? ECONNREFUSED : error);
	} else if (!peer->ended) {
		bwk_conn_fail(bs, error == ETIMEDOUT ? ETIMEDOUT : ECONNRESET);
	} else {
		bwk_sock_shut(&bs->sk, SHUTDOWN_MASK);
		bs->sk.sk_state_change(&bs->sk);
	}
}

const struct bwk_port_ops bwk_conn_port_ops = {
	.message = bwk_conn_message,
	.done = bwk_conn_done,
	.peer_down = bwk_conn_peer_down,
};
