/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See arrive.h. */
#include "arrive.h"

#include "overflow.h"

/* Bytes beyond its own length that a message costs: what describes it and a socket buffer. */
#define BWK_ARRIVE_COST (sizeof(struct bwk_buf) + SKB_TRUESIZE(0))

/* Longer ones lie in pages of their own. */
#define BWK_ARRIVE_LINEAR 2048

/* The account is charged in steps, and what is free of two is given back: most messages find room
 * that is paid for. */
#define BWK_ARRIVE_STEP 16384

/* So much room beyond memory_max is for messages that are next. Without it those that wait for them
 * could take all. */
#define BWK_ARRIVE_NEXT(most) ((most) / 4)

static u64 bwk_arrive_price(u64 n)
{
	return (n > BWK_ARRIVE_LINEAR ? PAGE_ALIGN(n) : n) + BWK_ARRIVE_COST;
}

/* One step more is paid for. */
static bool bwk_arrive_step(struct bwk_port *port, u32 bytes)
{
	struct bwk_user *user = port->account->user;

	if (!bwk_overflow_admits(user) || !bwk_account_take(port->account, bytes))
		return false;
	bwk_overflow_add(user, bytes);
	port->arriving_paid += bytes;
	return true;
}

static void bwk_arrive_unstep(struct bwk_port *port, u64 bytes)
{
	for (; bytes; bytes -= BWK_ARRIVE_STEP) {
		bwk_overflow_sub(port->account->user, BWK_ARRIVE_STEP);
		bwk_account_give(port->account, BWK_ARRIVE_STEP);
		port->arriving_paid -= BWK_ARRIVE_STEP;
	}
}

static bool bwk_arrive_pay(struct bwk_port *port, struct bwk_buf *b, u64 bytes, u64 most)
{
	u64 sum = port->arriving_bytes + bytes;

	if (sum > most)
		return false;
	while (sum > port->arriving_paid)
		if (!bwk_arrive_step(port, BWK_ARRIVE_STEP))
			return false;
	port->arriving_bytes = sum;
	b->paid += bytes;
	return true;
}

static u64 bwk_arrive_most(const struct bwk_port *port, bool next)
{
	u64 most = READ_ONCE(port->node->set.memory_max);

	return next ? most + BWK_ARRIVE_NEXT(most) : most;
}

/* Does a silent peer let this one stand still for too long? */
static u64 bwk_arrive_expires(const struct bwk_port *port, const struct bwk_buf *b)
{
	return b->moved + port->dead_ns;
}

u64 bwk_arrive_begin(struct bwk_port *port, u32 handle, u64 n, bool next)
{
	struct bwk_buf *b = bwk_buf_new(BWK_BUF_CHAIN, n, 0, GFP_ATOMIC);

	if (!b)
		return 0;
	if (!bwk_arrive_pay(port, b, bwk_arrive_price(n), bwk_arrive_most(port, next))) {
		this_cpu_inc(port->node->count->arriving_refused);
		kfree(b);
		return 0;
	}
	b->handle = handle;
	b->moved = port->now;
	list_add_tail(&b->ended, &port->arriving);
	bwk_port_wake_at(port, bwk_arrive_expires(port, b));
	return bwk_buf_cookie(b);
}

/* The copy that the price is for can be had whenever a frame is not taken as it is. */
bool bwk_arrive_chain(struct bwk_port *port, struct bwk_buf *b, u64 off, struct sk_buff *skb,
		      u32 at, u32 n)
{
	u64 held = BWK_ARRIVE_COST + skb->truesize + (b->skb ? b->skb->truesize : 0);

	if (!bwk_buf_chains(b, off, skb, at, n) ||
	    (held > b->paid &&
	     !bwk_arrive_pay(port, b, held - b->paid, bwk_arrive_most(port, false))))
		return false;
	bwk_buf_chain(b, skb, at, n);
	return true;
}

void bwk_arrive_moved(struct bwk_port *port, struct bwk_buf *b)
{
	b->moved = port->now;
	list_move_tail(&b->ended, &port->arriving);
}

void bwk_arrive_end(struct bwk_port *port, struct bwk_buf *b)
{
	u64 spare;

	list_del_init(&b->ended);
	port->arriving_bytes -= b->paid;
	b->paid = 0;
	spare = port->arriving_paid - port->arriving_bytes;
	if (spare >= 2 * BWK_ARRIVE_STEP)
		bwk_arrive_unstep(port, round_down(spare - BWK_ARRIVE_STEP, BWK_ARRIVE_STEP));
}

void bwk_arrive_expire(struct bwk_port *port)
{
	struct bwk_peer *peer;
	struct bwk_buf *b;

	while ((b = list_first_entry_or_null(&port->arriving, struct bwk_buf, ended)) &&
	       bwk_arrive_expires(port, b) <= port->now) {
		list_del_init(&b->ended); /* its peer's end gives it back */
		peer = bwk_peer_by_handle(port, b->handle);
		if (!peer || !peer->handle)
			continue;
		this_cpu_inc(port->node->count->arriving_expired);
		peer->status = BW_DOWN_TIMEOUT;
		bwk_peer_leave(port, peer);
	}
	if (b)
		bwk_port_wake_at(port, bwk_arrive_expires(port, b));
}

void bwk_arrive_close(struct bwk_port *port)
{
	bwk_arrive_unstep(port, port->arriving_paid);
}
