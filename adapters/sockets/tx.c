/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sending direction of a connection. Bytes that go by Beowire are kept until the peer's program
 * has taken them: whatever becomes of Beowire, TCP can go on from there.
 */
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "flow.h"
#include "real.h"
#include "wait.h"

void bws_tx_switch(struct bws_conn *c)
{
	if (!c->paired || !c->tx.epoch || c->tx.way != BWS_TCP || c->tx.shut || c->pinned ||
	    c->error || c->orphan || c->parked || bws.held || !bws_is_back(c) || !bws_conn_alone(c))
		return;
	/* A call that is sending looks at the way after it has said that it is there. */
	atomic_store(&c->tx.way, BWS_BW);
	if (atomic_load(&c->tx.under_way)) {
		atomic_store(&c->tx.way, BWS_TCP);
		return;
	}
	c->tx.switch_at = c->tx.taken = c->shared->tx;
	c->tx.back = false;
	c->tx_switches++;
	bws_flow_link(c);
	c->owed |= BWS_OWE_SWITCH;
	bws_conn_settle(c);
	bws_watch_changed(c);
	bws_push(c);
}

uint64_t bws_tx_room(const struct bws_conn *c)
{
	return BWS_WINDOW - (c->shared->tx - c->tx.taken);
}

uint64_t bws_tx_add(struct bws_conn *c, const void *data, uint64_t len)
{
	uint64_t room = bws_tx_room(c), all = len < room ? len : room, left = all;
	const uint8_t *from = data;

	while (left) {
		uint32_t n = left < BWS_PIECE ? (uint32_t)left : BWS_PIECE;
		struct bws_piece *p = bws_queue_add(&c->tx.queue, c->shared->tx, from, n);

		if (!p)
			break;
		if (!c->tx.unsent)
			c->tx.unsent = p;
		c->shared->tx += n;
		c->tx_beowire += n;
		from += n;
		left -= n;
	}
	bws_push(c);
	return all - left;
}

static void bws_tx_forget(struct bws_conn *c, uint64_t taken)
{
	struct bws_piece *p;

	c->tx.taken = taken;
	while ((p = c->tx.queue.first) && p->off + p->len <= taken)
		bws_queue_pop(&c->tx.queue);
}

void bws_tx_taken(struct bws_conn *c, uint32_t low)
{
	uint32_t more = low - (uint32_t)c->tx.taken;
	const struct bws_piece *p = c->tx.unsent;
	uint64_t sent = p ? p->off + p->given : c->shared->tx;

	if (c->tx.way != BWS_BW || !more || more > sent - c->tx.taken)
		return;
	bws_tx_forget(c, c->tx.taken + more);
	bws_wake(c, EPOLLOUT);
}

void bws_tx_back(struct bws_conn *c)
{
	if (c->tx.way != BWS_BW || c->tx.back)
		return;
	if (c->owed & BWS_OWE_SWITCH) {
		/* The peer has not been told of the switch yet, and needs not be. */
		bws_tx_returned(c, c->tx.switch_at);
		return;
	}
	c->tx.back = true;
	c->owed |= BWS_OWE_BACK;
	bws_push(c);
}

bool bws_tx_returned(struct bws_conn *c, uint64_t from)
{
	c->tx.epoch = 0;
	c->tx.back = false;
	c->owed &= ~(uint32_t)(BWS_OWE_BACK | BWS_OWE_SWITCH);
	if (c->tx.way != BWS_BW) {
		bws_conn_settle(c);
		return true;
	}
	/* What went by TCP before the switch may still be on its way there. */
	if (from < c->tx.switch_at)
		from = c->tx.switch_at;
	if (from < c->tx.taken || from > c->shared->tx)
		return false;
	c->tx_returns++;
	c->tx.unsent = NULL;
	bws_tx_forget(c, from);
	if (c->tx.queue.first)
		c->tx.queue.first->done = (uint32_t)(from - c->tx.queue.first->off);
	c->tx_beowire -= c->shared->tx - from;
	atomic_store(&c->tx.way, BWS_DRAIN);
	bws_conn_settle(c);
	bws_watch_changed(c);
	bws_tx_drain(c);
	bws_attend();
	return true;
}

static void bws_tx_drained(struct bws_conn *c)
{
	c->tx.taken = c->shared->tx;
	atomic_store(&c->tx.way, BWS_TCP);
	if (c->tx.shut)
		bws_r()->shutdown(c->fd, SHUT_WR);
	bws_conn_settle(c);
	bws_watch_changed(c);
	bws_wake(c, EPOLLOUT);
}

void bws_tx_drain(struct bws_conn *c)
{
	struct bws_piece *p;
	ssize_t n;

	if (c->tx.way != BWS_DRAIN)
		return;
	while ((p = c->tx.queue.first)) {
		n = bws_r()->sendto(c->fd, p->data + p->done, p->len - p->done,
				    MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM)) {
			bws_attend_room();
			return;
		}
		/* TCP has ended, which it told us instead of the program. */
		if (n < 0) {
			if (errno != EPIPE)
				c->untold = errno;
			bws_queue_clear(&c->tx.queue);
			break;
		}
		if (c->orphan)
			c->offer_at = bw_clock_now() + BWS_ORPHAN;
		p->done += (uint32_t)n;
		if (p->done == p->len)
			bws_queue_pop(&c->tx.queue);
	}
	bws_tx_drained(c);
}
