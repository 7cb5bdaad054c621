/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Long messages of strangers wait apart from what has arrived: who announces one, and sends nothing
 * of it, holds up nobody but himself. Each such peer has a line of its own: the message that is to
 * be fetched, and all that came behind it, as the messages of one sender keep their order. What
 * others send goes by. Lines take turns. A call that finds nothing else begins with the first
 * message of the first line. Straight into the program's pages it is fetched only while nothing
 * else is there, no other line either; then it is fetched ahead, one message of all lines at a
 * time, and queued when all of it is here. What is too long for that is lost, and its sender left.
 *
 * A line is in sock.apart, unless a call has its first message, or that is being fetched ahead.
 * Lines whose first message needs no fetching come first. All is under the receive queue's lock.
 *
 * What waits so is charged as what is queued, but a program that reads all it can has still not
 * read that. So lines have half of what strangers may fill, and one line half of that. Where it is
 * full, the longest of some lines makes way for who comes: its peer is left, all of it is lost.
 */
#include "sock.h"

#define BWK_APART_LOOKS 8 /* lines that are compared */

/* A message at an end of its peer's line. Lock held. */
static void bwk_apart_push(struct bwk_sock *bs, struct sk_buff *skb, bool first)
{
	struct bwk_peer *peer = bwk_cb(skb)->peer;

	if (first)
		__skb_queue_head(&peer->line, skb);
	else
		__skb_queue_tail(&peer->line, skb);
	peer->line_bytes += skb->truesize;
	bs->apart_bytes += skb->truesize;
}

bool bwk_apart_add(struct bwk_sock *bs, struct bwk_peer *peer, struct sk_buff *skb)
{
	struct sk_buff_head *queue = &bs->sk.sk_receive_queue;
	bool lined, announced = bwk_cb(skb)->event == BEOWIRE_ENVELOPE;

	spin_lock_bh(&queue->lock);
	lined = peer->lined || (announced && bwk_peer_is_stranger(peer));
	if (lined)
		bwk_apart_push(bs, skb, false);
	if (lined && !peer->lined) {
		WRITE_ONCE(peer->lined, true);
		list_add_tail(&peer->turn, &bs->apart);
	}
	spin_unlock_bh(&queue->lock);
	return lined;
}

/* The line has its first message to give, or none any more. Lock held. */
static void bwk_apart_line(struct bwk_sock *bs, struct bwk_peer *peer)
{
	const struct sk_buff *skb = skb_peek(&peer->line);

	lockdep_assert_held(&bs->sk.sk_receive_queue.lock);
	if (!skb)
		WRITE_ONCE(peer->lined, false);
	else if (((const struct bwk_cb *)skb->cb)->event == BEOWIRE_MESSAGE)
		list_add(&peer->turn, &bs->apart);
	else
		list_add_tail(&peer->turn, &bs->apart);
}

/* The first message of the first line, which is not in sock.apart until it is back, or dealt with.
 * NULL: there is no line. Lock held. */
static struct sk_buff *bwk_apart_first(struct bwk_sock *bs)
{
	struct bwk_peer *peer = list_first_entry_or_null(&bs->apart, struct bwk_peer, turn);
	struct sk_buff *skb;

	if (!peer)
		return NULL;
	list_del_init(&peer->turn);
	skb = __skb_dequeue(&peer->line);
	peer->line_bytes -= skb->truesize;
	bs->apart_bytes -= skb->truesize;
	bwk_cb(skb)->apart = true;
	return skb;
}

/* It is one of those that have arrived. Lock held. */
static void bwk_apart_queue(struct bwk_sock *bs, struct sk_buff *skb)
{
	bwk_cb(skb)->apart = false;
	__skb_queue_tail(&bs->sk.sk_receive_queue, skb);
	bwk_apart_line(bs, bwk_cb(skb)->peer);
}

/* Could the first message of the first line be given, or be fetched? While one is fetched ahead no
 * other is: a fetch that is begun and stopped again and again would leave a record in the engine
 * each time. Lock held. */
static bool bwk_apart_due(struct bwk_sock *bs)
{
	struct bwk_peer *peer = list_first_entry_or_null(&bs->apart, struct bwk_peer, turn);

	return peer && (!test_bit(BWK_AHEAD_APART, &bs->ahead) || READ_ONCE(bs->info_wanted) ||
			bwk_cb(skb_peek(&peer->line))->event == BEOWIRE_MESSAGE);
}

/* The longest of the first lines, which is in nobody's hands; NULL. Lock held. */
static struct bwk_peer *bwk_apart_longest(struct bwk_sock *bs)
{
	struct bwk_peer *peer, *longest = NULL;
	u32 looks = 0;

	list_for_each_entry(peer, &bs->apart, turn) {
		if (bwk_peer_is_stranger(peer) &&
		    (!longest || peer->line_bytes > longest->line_bytes))
			longest = peer;
		if (++looks == BWK_APART_LOOKS)
			break;
	}
	return longest;
}

/* All of a line is lost. Lock held. */
static void bwk_apart_end_line(struct bwk_sock *bs, struct bwk_peer *peer)
{
	list_del_init(&peer->turn);
	WRITE_ONCE(peer->lined, false);
	bs->apart_bytes -= peer->line_bytes;
	peer->line_bytes = 0;
	skb_queue_splice_tail_init(&peer->line, &bs->apart_lost);
}

bool bwk_apart_has_room(struct bwk_sock *bs, const struct bwk_peer *peer, u64 most)
{
	struct sk_buff_head *queue = &bs->sk.sk_receive_queue;
	struct bwk_peer *longest = NULL;
	bool roomy;

	spin_lock_bh(&queue->lock);
	roomy = peer->line_bytes <= most / 2;
	if (roomy && bs->apart_bytes > most) {
		longest = bwk_apart_longest(bs);
		roomy = longest && longest != peer;
	}
	if (roomy && longest) {
		refcount_inc(&longest->refs); /* its messages may have the last ones */
		bwk_apart_end_line(bs, longest);
	}
	spin_unlock_bh(&queue->lock);
	if (roomy && longest) {
		bwk_queue_lose(bs, longest);
		bwk_peer_put(longest);
		bwk_sock_readable(&bs->sk); /* the next call frees what was lost */
	}
	return roomy;
}

void bwk_apart_drop_lost(struct bwk_sock *bs)
{
	struct sk_buff_head *queue = &bs->sk.sk_receive_queue;
	struct sk_buff *skb;

	do {
		spin_lock_bh(&queue->lock);
		skb = __skb_dequeue(&bs->apart_lost);
		spin_unlock_bh(&queue->lock);
		if (skb)
			bwk_queue_free(skb);
		cond_resched();
	} while (skb);
}

bool bwk_apart_ready(struct bwk_sock *bs)
{
	struct sk_buff_head *queue = &bs->sk.sk_receive_queue;
	bool ready;

	spin_lock_bh(&queue->lock);
	ready = bwk_apart_due(bs);
	spin_unlock_bh(&queue->lock);
	return ready;
}

struct sk_buff *bwk_apart_take(struct bwk_sock *bs)
{
	struct sk_buff_head *queue = &bs->sk.sk_receive_queue;
	struct sk_buff *skb;

	spin_lock_bh(&queue->lock);
	skb = __skb_dequeue(queue);
	if (!skb && bwk_apart_due(bs))
		skb = bwk_apart_first(bs);
	spin_unlock_bh(&queue->lock);
	return skb;
}

void bwk_apart_show(struct bwk_sock *bs)
{
	struct sk_buff_head *queue = &bs->sk.sk_receive_queue;
	struct sk_buff *skb = NULL;

	spin_lock_bh(&queue->lock);
	if (skb_queue_empty(queue) && bwk_apart_due(bs))
		skb = bwk_apart_first(bs);
	if (skb)
		bwk_apart_queue(bs, skb);
	spin_unlock_bh(&queue->lock);
	if (skb) /* others may have seen neither the line nor the queue */
		bwk_sock_readable(&bs->sk);
}

/* The fetch of the first message of a line has ended: it is queued, with whatever came of it; if it
 * stood still it is an envelope again. Lock held. */
static void bwk_apart_ended(struct bwk_sock *bs, struct sk_buff *skb, struct bwk_buf *b)
{
	if (!b->stale) {
		bwk_apart_queue(bs, skb);
		return;
	}
	bwk_fetch_renew(skb, b);
	clear_bit(BWK_AHEAD_APART, &bs->ahead);
	bwk_buf_free(b);
	bwk_apart_push(bs, skb, true);
	bwk_apart_line(bs, bwk_cb(skb)->peer);
}

void bwk_apart_done(struct bwk_sock *bs, struct bwk_buf *b)
{
	struct sk_buff_head *queue = &bs->sk.sk_receive_queue;
	struct sk_buff *skb;

	spin_lock_bh(&queue->lock);
	skb = bs->apart_ahead;
	bs->apart_ahead = NULL;
	if (skb)
		bwk_apart_ended(bs, skb, b);
	spin_unlock_bh(&queue->lock);
}

void bwk_apart_tell(struct bwk_sock *bs)
{
	if (bwk_queue_ready(&bs->sk) || bwk_apart_ready(bs) || !list_empty(&bs->downs))
		bwk_sock_readable(&bs->sk);
}

void bwk_apart_put_back(struct bwk_sock *bs, struct sk_buff *skb)
{
	struct sk_buff_head *queue = &bs->sk.sk_receive_queue;
	struct bwk_peer *peer = bwk_cb(skb)->peer;
	struct bwk_buf *b;

	spin_lock_bh(&queue->lock);
	b = bwk_fetch_found(skb);
	if (!b) {
		bwk_apart_push(bs, skb, true);
		bwk_apart_line(bs, peer);
	} else if (smp_load_acquire(&b->done)) { /* DONE has seen no message, or will see none */
		bwk_apart_ended(bs, skb, b);
	} else {
		bs->apart_ahead = skb;
	}
	spin_unlock_bh(&queue->lock);
	bwk_apart_tell(bs);
}

void bwk_apart_leave(struct bwk_sock *bs, struct sk_buff *skb)
{
	struct sk_buff_head *queue = &bs->sk.sk_receive_queue;

	spin_lock_bh(&queue->lock);
	bwk_apart_line(bs, bwk_cb(skb)->peer);
	spin_unlock_bh(&queue->lock);
	bwk_apart_tell(bs);
}

void bwk_apart_step(struct bwk_sock *bs)
{
	struct sk_buff_head *queue = &bs->sk.sk_receive_queue;
	const struct bwk_peer *peer;
	struct sk_buff *skb;
	bool queued = false;

	spin_lock_bh(&queue->lock);
	skb = bwk_apart_due(bs) ? bwk_apart_first(bs) : NULL;
	if (skb && bwk_cb(skb)->event == BEOWIRE_MESSAGE) {
		bwk_apart_queue(bs, skb);
		queued = true;
	}
	spin_unlock_bh(&queue->lock);
	if (queued) /* others may have seen neither the line nor the queue */
		bwk_sock_readable(&bs->sk);
	if (!skb || queued)
		return;
	peer = bwk_cb(skb)->peer;
	if (bwk_fetch_ahead(bs, skb) && !READ_ONCE(peer->handle) && !READ_ONCE(peer->told)) {
		bwk_apart_leave(bs, skb); /* its sender has gone, and nobody misses it */
		bwk_queue_free(skb);
	} else {
		bwk_apart_put_back(bs, skb);
	}
}

struct bwk_buf *bwk_apart_forget(struct bwk_sock *bs)
{
	struct sk_buff *skb = bs->apart_ahead;
	struct bwk_buf *b;

	if (!skb)
		return NULL;
	bs->apart_ahead = NULL;
	b = bwk_fetch_found(skb);
	bwk_cb(skb)->event = BEOWIRE_ENVELOPE;
	bwk_apart_push(bs, skb, true);
	bwk_apart_line(bs, bwk_cb(skb)->peer);
	return b;
}

void bwk_apart_drop_all(struct bwk_sock *bs)
{
	struct sk_buff_head *queue = &bs->sk.sk_receive_queue;
	struct sk_buff *skb;

	do {
		spin_lock_bh(&queue->lock);
		skb = bwk_apart_first(bs);
		if (skb)
			bwk_apart_line(bs, bwk_cb(skb)->peer);
		spin_unlock_bh(&queue->lock);
		if (skb)
			bwk_queue_free(skb);
	} while (skb);
	bwk_apart_drop_lost(bs);
}
