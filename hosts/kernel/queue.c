/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What has arrived for a socket: its receive queue of socket buffers, which are the frames
 * themselves. A queue beyond SO_RCVBUF puts the port's peers under pressure, so that they send
 * envelopes only; a peer that fills it further, up to the sysctl memory_max, or all sockets up to
 * the module's overflow_max, is left, and so is one whose messages the user cannot hold any more.
 * Datagrams are dropped beyond SO_RCVBUF.
 *
 * What waits is charged to the socket's account in steps, so that a message that is read soon costs
 * a look only.
 */
#include "overflow.h"
#include "sock.h"

#define BWK_QUEUE_STEP 16384	     /* bytes */
#define BWK_QUEUE_MOST (INT_MAX / 2) /* the same of one socket, however large SO_RCVBUF is */

void bwk_queue_press(struct bwk_sock *bs, bool on)
{
	struct bwk_port *port = bs->port;
	struct bw_op op = {.type = BW_OP_PRESSURE, .on = on};
	bool before = port->pressing;

	if (bs->pressed == on)
		return;
	WRITE_ONCE(bs->pressed, on);
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

static void bwk_queue_overflow_free(struct sk_buff *skb)
{
	bwk_overflow_sub(bwk_sk(skb->sk)->account->user, skb->truesize);
	sock_rfree(skb);
}

bool bwk_queue_has_room(const struct sock *sk, u64 most, bool stranger)
{
	int used = atomic_read(&sk->sk_rmem_alloc);

	return likely(used <= READ_ONCE(sk->sk_rcvbuf)) ||
	       ((u64)used <= most && bwk_overflow_admits(bwk_sk(sk)->account->user, stranger));
}

/* So many bytes are charged; as bwk_queue_own(). A socket asks for less once it has as much as its
 * user may still have. */
static noinline int bwk_queue_cover(struct bwk_sock *bs, u32 bytes)
{
	struct sk_buff_head *queue = &bs->sk.sk_receive_queue;
	int more, result;

	if (bytes > BWK_QUEUE_MOST)
		return -ENOBUFS;
	spin_lock_bh(&queue->lock);
	more = round_up(max((int)bytes - bs->covered, 0), BWK_QUEUE_STEP);
	if (more && !bwk_account_take(bs->account, more)) {
		result = -ENOBUFS;
	} else {
		WRITE_ONCE(bs->covered, bs->covered + more);
		result = (u64)bs->covered > bwk_user_room(bs->account->user);
	}
	spin_unlock_bh(&queue->lock);
	return result;
}

void bwk_queue_uncover(struct bwk_sock *bs, int bytes)
{
	struct sk_buff_head *queue = &bs->sk.sk_receive_queue;
	int less;

	spin_lock_bh(&queue->lock);
	less = round_down(bs->covered - BWK_QUEUE_FREE - bytes, BWK_QUEUE_STEP);
	if (less > 0) {
		WRITE_ONCE(bs->covered, bs->covered - less);
		bwk_account_give(bs->account, less);
	}
	spin_unlock_bh(&queue->lock);
}

int bwk_queue_own(struct sock *sk, struct sk_buff *skb)
{
	u32 used = (u32)atomic_read(&sk->sk_rmem_alloc) + skb->truesize;
	int result = 0;

	if (unlikely(used > (u32)READ_ONCE(bwk_sk(sk)->covered))) {
		result = bwk_queue_cover(bwk_sk(sk), used);
		if (result < 0)
			return result;
	}
	skb_set_owner_r(skb, sk);
	if (likely(used <= (u32)READ_ONCE(sk->sk_rcvbuf)))
		return result;
	bwk_overflow_add(bwk_sk(sk)->account->user, skb->truesize);
	skb->destructor = bwk_queue_overflow_free;
	return 1;
}

bool bwk_queue_lose(struct bwk_sock *bs, const struct bwk_peer *peer)
{
	atomic_inc(&bs->sk.sk_drops);
	this_cpu_inc(bs->port->node->count->unqueued);
	if (!bwk_reliable(bs->protocol))
		return false;
	/* Nobody reads, and the senders neither stop nor wait: they have to go. */
	bwk_peer_leave(bs->port, peer);
	return false;
}

/* May this message be queued? If not, it is lost. Strangers may fill half of what is beyond
 * SO_RCVBUF, so that it is they who have to go. */
static bool bwk_queue_admits(struct bwk_sock *bs, const struct bwk_peer *peer, bool announced)
{
	u64 most = bwk_reliable(bs->protocol) ? READ_ONCE(bs->port->node->set.memory_max) : 0;
	bool stranger = bwk_peer_is_stranger(peer);

	if (!bwk_queue_has_room(&bs->sk, stranger ? most / 2 : most, stranger)) {
		if (most)
			bwk_user_limited();
		return bwk_queue_lose(bs, peer);
	}
	return !stranger || !bwk_apart_may(bs, peer, announced) ||
	       bwk_apart_has_room(bs, peer, most / 4) || bwk_queue_lose(bs, peer);
}

bool bwk_queue_message(struct bwk_sock *bs, struct bwk_peer *peer, const struct bw_event *ev,
		       struct sk_buff *skb, u32 off, bool whole)
{
	struct sock *sk = &bs->sk;
	struct bwk_cb *cb;
	int press;

	if (unlikely(ev->code & BW_CODE_ENVELOPE) && bs->to.sbw_port &&
	    bwk_peer_was_at(peer, &bs->to))
		bwk_peer_tell(peer); /* the socket is connected to it: it is no stranger */
	if (!bwk_queue_admits(bs, peer, ev->code & BW_CODE_ENVELOPE))
		return false;
	/* A frame with several messages is queued several times. */
	skb = whole ? skb_get(skb) : skb_clone(skb, GFP_ATOMIC);
	if (!skb) {
		atomic_inc(&sk->sk_drops);
		this_cpu_inc(bs->port->node->count->unqueued);
		WRITE_ONCE(sk->sk_err, ENOBUFS);
		bwk_sock_readable(sk);
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
	cb->apart = false;
	if ((ev->code & BW_CODE_ENVELOPE) && bwk_reliable(bs->protocol) &&
	    !bwk_queue_open_envelope(skb, cb)) {
		this_cpu_inc(bs->port->node->count->bad_words);
		bwk_peer_leave(bs->port, peer); /* else it would wait for ever */
		kfree_skb(skb);
		return false;
	}
	skb_orphan(skb);
	press = bwk_queue_own(sk, skb);
	if (unlikely(press)) {
		bwk_queue_press(bs, true);
		if (press < 0) {
			kfree_skb(skb);
			return bwk_queue_lose(bs, peer);
		}
	}
	refcount_inc(&peer->refs);
	cb->peer = peer;
	smp_wmb(); /* pairs with bwk_conn_first(), which does not take the queue's lock */
	if (!bwk_apart_may(bs, peer, cb->event == BEOWIRE_ENVELOPE) ||
	    !bwk_apart_add(bs, peer, skb))
		skb_queue_tail(&sk->sk_receive_queue, skb);
	bwk_sock_readable(sk);
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
		bwk_sock_readable(&bs->sk);
}

void bwk_queue_free(struct sk_buff *skb)
{
	bwk_peer_put(bwk_cb(skb)->peer);
	local_bh_disable(); /* so that it can go where the next frame is taken from */
	napi_consume_skb(skb, 1);
	local_bh_enable();
}

void bwk_queue_spare(struct bwk_sock *bs, int used)
{
	if (unlikely(READ_ONCE(bs->covered) > used + 2 * BWK_QUEUE_STEP))
		bwk_queue_uncover(bs, used);
}

void bwk_queue_relieve(struct bwk_sock *bs)
{
	struct bwk_port *port = bs->port;
	int used = atomic_read(&bs->sk.sk_rmem_alloc);

	bwk_queue_spare(bs, used);
	if (!READ_ONCE(bs->pressed) || READ_ONCE(bs->hold) ||
	    used > READ_ONCE(bs->sk.sk_rcvbuf) / 2)
		return;
	bwk_port_lock(port);
	if (!READ_ONCE(bs->hold))
		bwk_queue_press(bs, false);
	bwk_port_run(port);
	bwk_port_unlock(port);
}

void bwk_queue_drop_all(struct bwk_sock *bs)
{
	struct sk_buff *skb;

	while ((skb = skb_dequeue(&bs->sk.sk_receive_queue)))
		bwk_queue_free(skb);
	bwk_apart_drop_all(bs);
}
