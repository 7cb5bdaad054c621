/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The receiving direction of a connection. The receiver says when its peer may switch, and may
 * take that back whenever it likes, without a wait: what came by Beowire and was not taken by
 * the program is thrown away, and comes again by TCP.
 */
#include <errno.h>
#include <string.h>

#include "flow.h"
#include "wait.h"

void bws_rx_ready(struct bws_conn *c)
{
	if (!c->paired || c->rx.open || c->rx.way != BWS_TCP || c->pinned || c->error ||
	    c->orphan || c->rx.returning || c->parked || c->peer_parks || bws.held ||
	    !bws_is_back(c) || !bws_conn_alone(c))
		return;
	/* A call that may sleep in the kernel would not notice what comes by Beowire. It looks at
	 * `slow` after it has said that it is there. */
	c->rx.wanted = true;
	bws_conn_settle(c);
	if (atomic_load(&c->rx.under_way))
		return; /* the next call will not, and looks again */
	c->rx.wanted = false;
	c->rx.open = true;
	bws_conn_settle(c);
	c->forked = false;
	c->rx.epoch++;
	c->owed |= BWS_OWE_READY;
	bws_watch_changed(c);
	bws_push(c);
}

void bws_rx_by_tcp(struct bws_conn *c, uint64_t n)
{
	c->shared->rx += n;
	if (c->rx.must && c->shared->rx >= c->rx.must) {
		c->rx.must = 0;
		bws_conn_settle(c);
	}
	if (c->rx.way == BWS_UNTIL && c->shared->rx == c->rx.from) {
		atomic_store(&c->rx.way, BWS_BW);
		bws_watch_changed(c);
		if (c->rx.queue.first)
			bws_wake(c, EPOLLIN);
	}
}

void bws_rx_switch(struct bws_conn *c, uint64_t epoch, uint64_t from)
{
	if (!c->rx.open || epoch != c->rx.epoch || c->rx.way != BWS_TCP)
		return; /* it was taken back meanwhile */
	if (from < c->shared->rx) {
		bws_break(c, ECONNRESET, "the peer counts other bytes");
		return;
	}
	c->rx.from = c->rx.next = from;
	c->rx.told = c->shared->rx;
	bws_flow_link(c);
	atomic_store(&c->rx.way, BWS_UNTIL);
	bws_watch_changed(c);
	bws_rx_by_tcp(c, 0);
}

void bws_rx_data(struct bws_conn *c, uint64_t off, const void *data, uint64_t len)
{
	/* Much may still wait in TCP's buffers when the first of it comes. */
	uint64_t base = c->rx.way == BWS_UNTIL ? c->rx.from : c->shared->rx;

	if (c->rx.way == BWS_TCP || c->error)
		return; /* it comes again by TCP */
	if (off != c->rx.next || !len || len > BWS_PIECE || off + len - base > BWS_WINDOW) {
		bws_break(c, ECONNRESET, "the peer breaks the rules");
		return;
	}
	if (!bws_queue_add(&c->rx.queue, off, data, (uint32_t)len)) {
		bws_rx_return(c, false);
		return;
	}
	c->rx.next += len;
	if (c->rx.way == BWS_BW)
		bws_wake(c, EPOLLIN);
	else
		bws_watch_more(c);
}

void bws_rx_taken(struct bws_conn *c, uint64_t n)
{
	uint64_t untold;

	c->shared->rx += n;
	c->rx_beowire += n;
	untold = c->shared->rx - c->rx.told;
	if (untold < BWS_WINDOW / 4 && (c->rx.queue.first || untold < BWS_WINDOW / 16))
		return;
	c->owed |= BWS_OWE_CREDIT;
	bws_push(c);
}

void bws_rx_return(struct bws_conn *c, bool final)
{
	bool again = final && c->paired && !c->rx.returned_final;

	c->rx.wanted = false;
	if (!c->rx.open && !again) {
		bws_conn_settle(c);
		return;
	}
	bws_rx_must(c);
	bws_queue_clear(&c->rx.queue);
	c->rx.open = false;
	atomic_store(&c->rx.way, BWS_TCP);
	c->rx.returned_final |= final;
	c->owed &= ~(uint32_t)(BWS_OWE_READY | BWS_OWE_CREDIT);
	c->owed |= BWS_OWE_RETURN;
	bws_conn_settle(c);
	bws_watch_changed(c);
	bws_push(c);
	bws_attend();
}
