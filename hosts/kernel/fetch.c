/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The bytes of a long message are fetched: pulled straight into the program's pages where pinning
 * them pays [B2 B6], else into pages of ours and copied from there.
 *
 * Who waits for them may be interrupted, and then the message has to be there for the next call:
 * the sender keeps it until it is told that all has arrived, and a call that may not wait any
 * longer leaves the bytes to be fetched *ahead* into pages of ours, for a call that comes later:
 * one message of the receive queue, and one of those that wait apart from it (apart.c).
 */
#include "sock.h"

#define BWK_FETCH_PIECE (4u << 20) /* bytes pinned, or copied, at a time */

int bwk_fetch(struct bwk_port *port, const struct bwk_source *from, struct bwk_buf *b, u64 *id)
{
	struct bw_op op = {.type = BW_OP_PULL, .peer = from->handle, .cookie = bwk_buf_cookie(b)};
	int error;

	op.pull.key = from->key;
	op.pull.off = from->off;
	op.pull.len = b->len;
	op.pull.buf = b->len ? bwk_buf_cookie(b) : 0;
	op.pull.buf_off = 0;
	op.pull.flags = (from->last ? BW_PULL_FINAL : 0) | (from->memory ? BW_PULL_HOST_KEY : 0);
	b->use = BWK_BUF_PULL;
	do {
		bwk_port_lock(port);
		error = bwk_port_submit(port, &op);
		if (!error) {
			*id = b->key = op.pull.id;
			b->handle = from->handle;
			bwk_sock_lent(port, b);
			if (b->notify) /* nobody waits for it */
				bwk_sock_name_buf(b->owner, b);
			if (b->ahead)
				bwk_sk(b->owner)->fetching[b->slot] = b;
			bwk_port_run(port);
		}
		bwk_port_unlock(port);
	} while (error == -EAGAIN && bwk_port_feed(port) == 0);
	return error == -EAGAIN ? -ENOBUFS : error;
}

/* How a fetch ended: -ECANCELED if the sender has taken the message back. */
static int bwk_fetch_status(const struct bwk_buf *b)
{
	return b->status == -ENOENT ? -ECANCELED : b->status;
}

/* Memory of the program to be pulled into, or else of ours. */
static struct bwk_buf *bwk_fetch_room(struct bwk_sock *bs, struct iov_iter *to, size_t len)
{
	struct bwk_buf *b = ERR_PTR(-EAGAIN);

	if (len > READ_ONCE(bs->copy_max))
		b = bwk_buf_pin(bs->account, to, len, BWK_PIN_WRITE);
	if (b == ERR_PTR(-EDQUOT))
		atomic_long_inc(&bs->port->memlock_limited);
	if (b == ERR_PTR(-EDQUOT) || b == ERR_PTR(-EAGAIN)) {
		if (fault_in_iov_iter_writeable(to, len))
			return ERR_PTR(-EFAULT); /* before its sender gives the bytes away */
		return bwk_buf_held(bs->account, len);
	}
	return b;
}

/* The sender's buffer is free. A sender that is gone need not be told. */
static void bwk_fetch_give_up(struct bwk_port *port, u32 handle, u64 key)
{
	int error;

	do {
		bwk_port_lock(port);
		error = bwk_port_give_up(port, handle, key);
		bwk_port_run(port);
		bwk_port_unlock(port);
	} while (error == -EAGAIN && bwk_port_feed(port) == 0);
}

/* What became of a pull that has ended; what it has fetched is copied to the program, if it is not
 * there yet. */
static int bwk_fetch_end(struct bwk_sock *bs, struct bwk_buf *b, struct iov_iter *to)
{
	int error = bwk_fetch_status(b);

	if (!error && b->region)
		bwk_fetch_give_up(bs->port, b->handle, b->region);
	if (!error && b->kind != BWK_BUF_USER)
		error = bwk_buf_to_iter(b, 0, b->len, to);
	bwk_buf_free_now(b);
	return error;
}

static int bwk_fetch_piece(struct bwk_sock *bs, const struct bwk_source *from, struct iov_iter *to,
			   size_t len, long *timeout)
{
	struct bw_op cancel = {.type = BW_OP_CANCEL_PULL, .peer = from->handle};
	struct bwk_source piece = *from;
	struct bwk_buf *b = bwk_fetch_room(bs, to, len);
	int error;

	if (IS_ERR(b))
		return PTR_ERR(b);
	b->owner = bs;
	b->awaited = true;
	b->yields = from->yields;
	b->region = from->last ? from->key : 0;
	piece.last = false;
	error = bwk_fetch(bs->port, &piece, b, &cancel.pull_id);
	if (error) {
		bwk_buf_free_now(b);
		return error;
	}
	error = bwk_sock_await(bs, b, timeout);
	if (error && !bwk_sock_stop(bs->port, b, &cancel))
		return error;
	if (!error || b->status != -ECANCELED)
		return bwk_fetch_end(bs, b, to);
	bwk_buf_free_now(b);
	return error;
}

int bwk_fetch_now(struct bwk_sock *bs, const struct bwk_source *from, struct iov_iter *to,
		  size_t len, long *timeout)
{
	const struct iov_iter begin = *to;
	struct bwk_source at = *from;
	int error = 0;
	size_t n;

	if (!len && from->last)
		bwk_fetch_give_up(bs->port, from->handle, from->key);
	for (; len && !error; len -= n, at.off += n) {
		n = min_t(size_t, len, BWK_FETCH_PIECE);
		at.last = from->last && n == len;
		error = bwk_fetch_piece(bs, &at, to, n, timeout);
	}
	if (error)
		*to = begin;
	return error;
}

/* ---- ahead ----
 *
 * A peer that answers, and sends nothing of what it has announced, is waited for as long as the
 * program likes. Ahead of the program's next call it holds no more memory than it has sent bytes,
 * and not even that once nothing more has come for BEOWIRE_DEAD_MS: the fetch is given up, and the
 * socket becomes readable, so that a program that still wants the message begins anew. The message
 * is the sender's until all of it is here.
 */

static unsigned long bwk_fetch_patience(const struct bwk_sock *bs)
{
	return msecs_to_jiffies(bs->port->dead_ms) + 1;
}

/* Jiffies until it is to be looked at again; 0: not at all. What it held goes to `grown` if it has
 * stood still. Port's lock held. */
static unsigned long bwk_fetch_judge(struct bwk_sock *bs, struct bwk_buf *b,
				     struct bwk_grown *grown)
{
	struct bw_op cancel = {.type = BW_OP_CANCEL_PULL};
	unsigned long patience = bwk_fetch_patience(bs), idle;

	if (!b || b->kind != BWK_BUF_GROWING)
		return 0;
	idle = (u32)jiffies - b->moved;
	if (idle < patience)
		return patience - idle;
	cancel.peer = b->handle;
	cancel.pull_id = b->key;
	if (bwk_port_submit(bs->port, &cancel))
		return 0; /* it has ended */
	b->stale = true;
	bwk_buf_strip(b, grown);
	bwk_port_run(bs->port);
	return 0;
}

static void bwk_fetch_look(struct work_struct *work)
{
	struct bwk_sock *bs = container_of(to_delayed_work(work), struct bwk_sock, look);
	struct bwk_grown grown[BWK_AHEADS] = {{.pages = NULL}};
	unsigned long again = 0, soon;

	bwk_port_lock(bs->port);
	for (u32 i = 0; i < BWK_AHEADS; i++) {
		soon = bwk_fetch_judge(bs, bs->fetching[i], &grown[i]);
		again = min_not_zero(again, soon);
	}
	bwk_port_unlock(bs->port);
	for (u32 i = 0; i < BWK_AHEADS; i++)
		bwk_grown_free(&grown[i]);
	if (again)
		schedule_delayed_work(&bs->look, again);
}

void bwk_fetch_init(struct bwk_sock *bs)
{
	INIT_DELAYED_WORK(&bs->look, bwk_fetch_look);
}

struct bwk_buf *bwk_fetch_found(const struct sk_buff *skb)
{
	const struct bwk_cb *cb = (const struct bwk_cb *)skb->cb;

	return READ_ONCE(cb->event) == BWK_EVENT_AHEAD ? bwk_buf_of(cb->key) : NULL;
}

int bwk_fetch_ahead(struct bwk_sock *bs, struct sk_buff *skb)
{
	struct bwk_cb *cb = bwk_cb(skb);
	struct bwk_source from = {
		.handle = READ_ONCE(cb->peer->handle), .key = cb->key, .off = cb->off};
	u8 slot = cb->apart ? BWK_AHEAD_APART : BWK_AHEAD_QUEUE;
	struct bwk_buf *b;
	u64 id;
	int error;

	if (!cb->len && bs->sk.sk_type == SOCK_RDM) { /* no answer is worth waiting for */
		bwk_fetch_give_up(bs->port, from.handle, from.key);
		WRITE_ONCE(cb->event, BEOWIRE_MESSAGE);
		return 0;
	}
	if (cb->len > READ_ONCE(bs->port->node->set.memory_max))
		return -ENOBUFS;
	if (test_and_set_bit(slot, &bs->ahead))
		return -EAGAIN; /* one at a time */
	b = cb->len ? bwk_buf_growing(bs->account, cb->len) : bwk_buf_held(bs->account, 0);
	error = PTR_ERR_OR_ZERO(b);
	if (!error) {
		b->owner = bs;
		b->awaited = b->ahead = true;
		b->yields = cb->apart;
		b->slot = slot;
		b->region = from.key; /* all may have been sent, and not be here, when we give up */
		b->source = from.off;
		error = bwk_fetch(bs->port, &from, b, &id);
	}
	if (error) {
		if (!IS_ERR(b))
			bwk_buf_free_now(b);
		clear_bit(slot, &bs->ahead);
		return error;
	}
	spin_lock_bh(&bs->sk.sk_receive_queue.lock); /* others may look at it there */
	cb->key = bwk_buf_cookie(b);
	cb->off = 0;
	WRITE_ONCE(cb->event, BWK_EVENT_AHEAD); /* and by peeks without its lock */
	spin_unlock_bh(&bs->sk.sk_receive_queue.lock);
	schedule_delayed_work(&bs->look, bwk_fetch_patience(bs));
	return 0;
}

void bwk_fetch_taken(struct bwk_sock *bs, struct bwk_buf *b)
{
	if (b->region && !b->status)
		bwk_fetch_give_up(bs->port, b->handle, b->region);
	clear_bit(b->slot, &bs->ahead);
	bwk_buf_free_now(b);
}

void bwk_fetch_renew(struct sk_buff *skb, const struct bwk_buf *b)
{
	struct bwk_cb *cb = bwk_cb(skb);

	cb->key = b->region;
	cb->off = (u32)b->source;
	WRITE_ONCE(cb->event, BEOWIRE_ENVELOPE);
}

int bwk_fetch_await(struct bwk_sock *bs, struct sk_buff *skb, long *timeout)
{
	struct bwk_buf *b = bwk_fetch_found(skb);
	int error = bwk_sock_await(bs, b, timeout);

	if (error)
		return error;
	if (!b->stale)
		return bwk_fetch_status(b);
	spin_lock_bh(&bs->sk.sk_receive_queue.lock);
	bwk_fetch_renew(skb, b);
	spin_unlock_bh(&bs->sk.sk_receive_queue.lock);
	bwk_fetch_taken(bs, b);
	return -ESTALE;
}

/* One of those that are fetched ahead, or were; NULL: there is none. */
static struct bwk_buf *bwk_fetch_find_ahead(struct bwk_sock *bs)
{
	struct sk_buff_head *queue = &bs->sk.sk_receive_queue;
	struct bwk_buf *b = NULL;
	struct sk_buff *skb;

	spin_lock_bh(&queue->lock);
	skb_queue_walk(queue, skb)
	{
		b = bwk_fetch_found(skb);
		if (!b)
			continue;
		bwk_cb(skb)->event = BEOWIRE_ENVELOPE;
		break;
	}
	if (!b)
		b = bwk_apart_forget(bs);
	spin_unlock_bh(&queue->lock);
	return b;
}

void bwk_fetch_forget(struct bwk_sock *bs)
{
	struct bw_op cancel = {.type = BW_OP_CANCEL_PULL};
	struct bwk_buf *b;

	cancel_delayed_work_sync(&bs->look);
	while (READ_ONCE(bs->ahead) && (b = bwk_fetch_find_ahead(bs))) {
		cancel.peer = b->handle;
		cancel.pull_id = b->key;
		if (bwk_sock_stop(bs->port, b, &cancel))
			bwk_buf_free_now(b);
	}
}
