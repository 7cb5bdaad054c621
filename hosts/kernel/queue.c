/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What has arrived for a socket: its receive queue of socket buffers, which are the frames
 * themselves. A queue beyond SO_RCVBUF puts the port's peers under pressure, so that they send
 * envelopes only; a peer that fills it further, up to the sysctl memory_max, or all sockets up to
 * the module's overflow_max, is left.
 * Datagrams are dropped beyond SO_RCVBUF.
 *
 * Of overflow_max a user may have at most as much as is still free: the dynamic threshold of
 * Choudhury and Hahne, IEEE/ACM Transactions on Networking 6 (1998), with their alpha of 1. One who
 * reads nothing gets half of it at most, and however many there are, something is left for others.
 */
#include <linux/mm.h>
#include <linux/moduleparam.h>

#include "sock.h"

void bwk_queue_press(struct bwk_sock *bs, bool on)
{
	struct bwk_port *port = bs->port;
	struct bw_op op = {.type = BW_OP_PRESSURE, .on = on};
	bool before = port->pressing;

	if (bs->pressed == on)
		return;
	bs->pressed = on;
	port->pressing += on ? 1 : -1;
	if (before != !!port->pressing && bwk_reliable(bs->protocol))
		bwk_port_submit(port, &op);
}

/* The message of an envelope; false if it is none that a host makes. */
static bool bwk_queue_open_envelope(struct sk_buff *skb, struct bwk_cb *cb)
{
	struct bw_envelope envelope;

	if (cb->len != sizeof(envelope) ||
	    skb_copy_bits(skb, cb->off, &envelope, sizeof(envelope)) || envelope.len > INT_MAX)
		return false; /* calls return lengths as an int */
	cb->event = BEOWIRE_ENVELOPE;
	cb->key = envelope.key;
	cb->off = 0;
	cb->len = (u32)envelope.len;
	return true;
}

/* What waits beyond SO_RCVBUF, in all sockets together: a program can have many, each with a peer
 * that heeds no pressure. Below it a socket never depends on others. */
static atomic_long_t bwk_overflow;
static unsigned long bwk_overflow_max;

module_param_named(overflow_max, bwk_overflow_max, ulong, 0644);
MODULE_PARM_DESC(overflow_max, "bytes that may wait in all sockets together beyond SO_RCVBUF of "
			       "each; 0: an eighth of the memory");

static bool bwk_queue_may_overflow(const struct bwk_user *user)
{
	unsigned long most = READ_ONCE(bwk_overflow_max) ?: (totalram_pages() << PAGE_SHIFT) / 8;
	unsigned long used = atomic_long_read(&bwk_overflow);

	return used < most && (unsigned long)atomic_long_read(&user->waiting) < most - used;
}

static void bwk_queue_overflow_free(struct sk_buff *skb)
{
	atomic_long_sub(skb->truesize, &bwk_overflow);
	atomic_long_sub(skb->truesize, &bwk_sk(skb->sk)->user->waiting);
	sock_rfree(skb);
}

bool bwk_queue_has_room(const struct sock *sk, u64 most)
{
	int used = atomic_read(&sk->sk_rmem_alloc);

	return likely(used <= READ_ONCE(sk->sk_rcvbuf)) ||
	       ((u64)used <= most && bwk_queue_may_overflow(bwk_sk(sk)->user));
}

bool bwk_queue_own(struct sock *sk, struct sk_buff *skb)
{
	skb_set_owner_r(skb, sk);
	if (likely(atomic_read(&sk->sk_rmem_alloc) <= READ_ONCE(sk->sk_rcvbuf)))
		return false;
	atomic_long_add(skb->truesize, &bwk_overflow);
	atomic_long_add(skb->truesize, &bwk_sk(sk)->user->waiting);
	skb->destructor = bwk_queue_overflow_free;
	return true;
}

/* May this message be queued? If not, it is lost. */
static bool bwk_queue_admits(struct bwk_sock *bs, const struct bwk_peer *peer)
{
	bool keep = bwk_reliable(bs->protocol);

	if (bwk_queue_has_room(&bs->sk, keep ? bs->port->node->set.memory_max : 0))
		return true;
	atomic_inc(&bs->sk.sk_drops);
	if (keep)
		bwk_user_limited();
	/* Nobody reads, and the senders neither stop nor wait: they have to go. */
	if (keep)
		bwk_peer_leave(bs->port, peer);
	return false;
}

bool bwk_queue_message(struct bwk_sock *bs, struct bwk_peer *peer, const struct bw_event *ev,
		       struct sk_buff *skb, u32 off, bool whole)
{
	struct sock *sk = &bs->sk;
	struct bwk_cb *cb;

	if (!bwk_queue_admits(bs, peer))
		return false;
	/* A frame with several messages is queued several times. */
	skb = whole ? skb_get(skb) : skb_clone(skb, GFP_ATOMIC);
	if (!skb) {
		sk->sk_err = ENOBUFS;
		sk->sk_data_ready(sk);
		return false;
	}
	cb = bwk_cb(skb);
	cb->tag = ev->tag;
	cb->imm = ev->imm;
	cb->key = 0;
	cb->off = off;
	cb->len = (u32)ev->len;
	cb->event = BEOWIRE_MESSAGE;
	cb->code = ev->code & ~BW_CODE_ENVELOPE;
	if ((ev->code & BW_CODE_ENVELOPE) && bwk_reliable(bs->protocol) &&
	    !bwk_queue_open_envelope(skb, cb)) {
		bwk_peer_leave(bs->port, peer); /* else it would wait for ever */
		kfree_skb(skb);
		return false;
	}
	refcount_inc(&peer->refs);
	cb->peer = peer;
	skb_orphan(skb);
	if (bwk_queue_own(sk, skb))
		bwk_queue_press(bs, true);
	skb_queue_tail(&sk->sk_receive_queue, skb);
	sk->sk_data_ready(sk);
	return true;
}

bool bwk_queue_ready_ahead(const struct sock *sk)
{
	struct sk_buff_head *queue = (struct sk_buff_head *)&sk->sk_receive_queue;
	const struct bwk_buf *b;
	struct sk_buff *skb;
	bool ready;

	spin_lock_bh(&queue->lock);
	skb = skb_peek(queue);
	b = skb ? bwk_fetch_found(skb) : NULL;
	ready = skb && (!b || smp_load_acquire(&b->done));
	spin_unlock_bh(&queue->lock);
	return ready;
}

void bwk_queue_put_back(struct bwk_sock *bs, struct sk_buff *skb)
{
	skb_queue_head(&bs->sk.sk_receive_queue, skb);
	if (bwk_queue_ready(&bs->sk))
		bs->sk.sk_data_ready(&bs->sk);
}

void bwk_queue_free(struct sk_buff *skb)
{
	bwk_peer_put(bwk_cb(skb)->peer);
	local_bh_disable(); /* so that it can go where the next frame is taken from */
	napi_consume_skb(skb, 1);
	local_bh_enable();
}

void bwk_queue_relieve(struct bwk_sock *bs)
{
	struct bwk_port *port = bs->port;

	if (!READ_ONCE(bs->pressed) || READ_ONCE(bs->hold) ||
	    atomic_read(&bs->sk.sk_rmem_alloc) > READ_ONCE(bs->sk.sk_rcvbuf) / 2)
		return;
	bwk_port_lock(port);
	bwk_queue_press(bs, false);
	bwk_port_run(port);
	bwk_port_unlock(port);
}

void bwk_queue_drop_all(struct bwk_sock *bs)
{
	struct sk_buff *skb;

	while ((skb = skb_dequeue(&bs->sk.sk_receive_queue)))
		bwk_queue_free(skb);
}
