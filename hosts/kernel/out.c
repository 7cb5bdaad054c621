/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who sends a port's frames. See out.h. */
#include "port.h"

#include <linux/delay.h>

#define BWK_OUT_TURNS                                                                              \
	8 /* lists that one sender sends, and others meanwhile fill, before softirq does */

void bwk_out_add(struct bwk_out *out, struct sk_buff *skb)
{
	skb->next = NULL;
	if (unlikely(out->closed)) {
		bwk_tx_drop(skb);
		return;
	}
	if (out->first)
		out->last->next = skb;
	else
		out->first = skb;
	out->last = skb;
	out->bytes += skb->truesize;
}

/* All that waits. Lock held. */
static struct sk_buff *bwk_out_take(struct bwk_out *out)
{
	struct sk_buff *list = out->first;

	out->first = NULL;
	out->bytes = 0;
	return list;
}

/* What found no room goes before what was added since. Lock held. */
static void bwk_out_put_back(struct bwk_port *port, struct sk_buff *rest)
{
	struct bwk_out *out = &port->out;
	struct sk_buff *since = bwk_out_take(out), *next;

	for (; rest; rest = next) {
		next = rest->next;
		bwk_out_add(out, rest);
		if (!next) {
			next = since;
			since = NULL;
		}
	}
	port->tx_busy++;
	if (out->closed)
		return;
	out->stuck = out->more = true;
	bwk_port_timer_set(port, port->now + BWK_RETRY_NS);
}

/* Is there another list for this sender? Lock held. */
static bool bwk_out_again(struct bwk_port *port, struct sk_buff *rest, bool run)
{
	if (unlikely(rest)) {
		bwk_out_put_back(port, rest);
		return false;
	}
	if (run && !port->dead)
		bwk_port_run(port);
	return port->out.first;
}

/* Is there no sender? Then the caller is it. Only who sends takes itself out, without the lock. */
static bool bwk_out_begin(struct bwk_out *out)
{
	if (likely(atomic_read_acquire(&out->sender) == BWK_SENDER_NONE))
		return true;
	return atomic_xchg(&out->sender, BWK_SENDER_WANTED) == BWK_SENDER_NONE;
}

/* Nobody has added anything since the list was taken: there is no sender any more. */
static bool bwk_out_end(struct bwk_out *out)
{
	return likely(atomic_cmpxchg(&out->sender, BWK_SENDER_BUSY, BWK_SENDER_NONE) ==
		      BWK_SENDER_BUSY);
}

/* Gives the lock back and sends all that waits. What found no room is returned. */
static inline struct sk_buff *bwk_out_turn(struct bwk_port *port) __releases(&port->lock)
{
	struct bwk_out *out = &port->out;
	struct sk_buff *list = bwk_out_take(out);

	atomic_set(&out->sender, BWK_SENDER_BUSY);
	spin_unlock(&port->lock);
	lockdep_assert_not_held(&port->lock);
	return bwk_leave(port->node, list);
}

/* Is the engine to be asked again? Then it was not for all it has. Lock held. */
static inline bool bwk_out_asks(struct bwk_out *out)
{
	bool more = out->more;

	if (unlikely(more))
		out->stuck = out->more = false;
	return more;
}

/* After the first turn of a sender that is not done. */
static noinline void bwk_out_go_on(struct bwk_port *port, struct sk_buff *rest, bool run)
{
	struct bwk_out *out = &port->out;
	int turns = BWK_OUT_TURNS;

	for (;;) {
		spin_lock(&port->lock);
		port->now = ktime_get_ns();
		if (!bwk_out_again(port, rest, run))
			break;
		if (!--turns) {
			bwk_port_timer_set(port, port->now); /* softirq is the next sender */
			break;
		}
		run = bwk_out_asks(out);
		rest = bwk_out_turn(port);
		if (!rest && !run && bwk_out_end(out))
			return;
	}
	atomic_set(&out->sender, BWK_SENDER_NONE);
	spin_unlock(&port->lock);
}

/* A sender that is done finds out without the lock, mostly. */
static __always_inline void bwk_out_go(struct bwk_port *port) __releases(&port->lock)
{
	struct sk_buff *rest;
	bool run;

	if (unlikely(!bwk_out_begin(&port->out))) {
		spin_unlock(&port->lock);
		return;
	}
	run = bwk_out_asks(&port->out);
	rest = bwk_out_turn(port);
	if (unlikely(rest || run) || !bwk_out_end(&port->out))
		bwk_out_go_on(port, rest, run);
}

void bwk_out_send(struct bwk_port *port) __releases(&port->lock)
{
	bwk_out_go(port);
}

void bwk_out_send_bh(struct bwk_port *port) __releases(&port->lock)
{
	bwk_out_go(port);
	local_bh_enable();
}

/* A sender has softirqs off and a bounded number of turns, and nobody adds frames to a port that is
 * dead. */
static void bwk_out_await(struct bwk_out *out)
{
	while (atomic_read_acquire(&out->sender) != BWK_SENDER_NONE)
		usleep_range(10, 50);
}

void bwk_out_close(struct bwk_port *port)
{
	bwk_out_await(&port->out);
	bwk_port_lock(port);
	port->out.closed = true;
	bwk_tx_drop(bwk_out_take(&port->out));
	bwk_port_unlock(port);
	bwk_out_await(&port->out);
}
