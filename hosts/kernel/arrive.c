/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See arrive.h. */
#include "arrive.h"

#include "overflow.h"

/* Bytes beyond its own length that a message costs: what describes it and a socket buffer. */
#define BWK_ARRIVE_COST (sizeof(struct bwk_buf) + SKB_TRUESIZE(0))

/* Memory that the frames of a message may take, per byte that they have brought: four times is more
 * than any driver's frames of full size take, and a sender of tiny ones gets no more. */
#define BWK_ARRIVE_TIMES 4

/* The account is charged in steps, and of three that are free two are given back: most messages
 * find room that is paid for. */
#define BWK_ARRIVE_STEP 16384

/* So much room beyond the most that others may have is for messages that are next. Without it those
 * that wait for them could take all. */
#define BWK_ARRIVE_NEXT(most) ((most) / 4)

static u64 bwk_arrive_price(u64 n)
{
	return (n > BWK_BUF_LINEAR ? PAGE_ALIGN(n) : n) + BWK_ARRIVE_COST;
}

/* One step more is paid for. */
static bool bwk_arrive_step(struct bwk_port *port, u32 bytes, bool stranger)
{
	struct bwk_user *user = port->account->user;

	if (!bwk_overflow_admits(user, stranger) || !bwk_account_take(port->account, bytes))
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

static u64 bwk_arrive_most(const struct bwk_port *port, bool stranger, bool next)
{
	u64 most = bwk_port_memory_max(port) / (stranger ? 2 : 1);

	return next ? most + BWK_ARRIVE_NEXT(most) : most;
}

static bool bwk_arrive_pay(struct bwk_port *port, struct bwk_buf *b, u64 bytes, bool next)
{
	const struct bwk_peer *peer = bwk_peer_by_handle(port, b->handle);
	bool stranger = !peer || bwk_peer_is_stranger(peer);
	u64 sum = port->arriving_bytes + bytes;

	if (sum > bwk_arrive_most(port, stranger, next))
		return false;
	while (sum > port->arriving_paid)
		if (!bwk_arrive_step(port, BWK_ARRIVE_STEP, stranger))
			return false;
	port->arriving_bytes = sum;
	b->paid += bytes;
	return true;
}

u64 bwk_arrive_begin(struct bwk_port *port, u32 handle, u64 n, bool next)
{
	struct bwk_buf *b = bwk_buf_new(BWK_BUF_CHAIN, n, 0, GFP_ATOMIC);

	if (!b)
		return 0;
	b->handle = handle;
	if (!bwk_arrive_pay(port, b, bwk_arrive_price(n), next)) {
		this_cpu_inc(port->node->count->arriving_refused);
		kfree(b);
		return 0;
	}
	return bwk_buf_cookie(b);
}

/* Could the frame itself become the next n bytes at `off`, with which the message holds so much
 * memory: nothing but them follows its first `at` bytes, and nobody else refers to it? */
static bool bwk_arrive_fits(const struct bwk_buf *b, u64 off, const struct sk_buff *skb, u32 at,
			    u32 n, u32 held)
{
	return b->kind == BWK_BUF_CHAIN && off == b->got && skb->len == at + n &&
	       !skb_cloned(skb) && !skb_has_frag_list(skb) && at <= skb_headlen(skb) &&
	       held <= BWK_ARRIVE_TIMES * (b->got + n);
}

static void bwk_arrive_append(struct bwk_buf *b, struct sk_buff *skb, u32 at, u32 n)
{
	struct sk_buff *head = b->skb;

	skb_get(skb);
	skb_orphan(skb);
	__skb_pull(skb, at);
	skb->next = NULL;
	if (!head) {
		b->skb = skb;
	} else {
		if (b->tail)
			b->tail->next = skb;
		else
			skb_shinfo(head)->frag_list = skb;
		b->tail = skb;
		head->len += n;
		head->data_len += n;
		head->truesize += skb->truesize;
	}
	b->got += n;
}

/* The copy that the price is for can be had whenever a frame is not taken as it is. */
bool bwk_arrive_chain(struct bwk_port *port, struct bwk_buf *b, u64 off, struct sk_buff *skb,
		      u32 at, u32 n)
{
	u32 held = skb->truesize + (b->skb ? b->skb->truesize : 0);

	if (!bwk_arrive_fits(b, off, skb, at, n, held))
		return false;
	held += BWK_ARRIVE_COST;
	if (held > b->paid && !bwk_arrive_pay(port, b, held - b->paid, false))
		return false;
	bwk_arrive_append(b, skb, at, n);
	return true;
}

void bwk_arrive_end(struct bwk_port *port, struct bwk_buf *b)
{
	u64 spare;

	port->arriving_bytes -= b->paid;
	b->paid = 0;
	spare = port->arriving_paid - port->arriving_bytes;
	if (spare >= 3 * BWK_ARRIVE_STEP)
		bwk_arrive_unstep(port, round_down(spare - BWK_ARRIVE_STEP, BWK_ARRIVE_STEP));
}

void bwk_arrive_close(struct bwk_port *port)
{
	bwk_arrive_unstep(port, port->arriving_paid);
}
