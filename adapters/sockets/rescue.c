/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Beowire does not reach a peer any more, but TCP may. Each side tells the other by UDP, until
 * it is acknowledged, what its program has taken, and the other one sends the rest by TCP. Both
 * nonces prove that it is the peer who tells. If its process has died, TCP has ended too.
 */
#include <errno.h>
#include <poll.h>

#include "clock.h"
#include "flow.h"
#include "real.h"
#include "wait.h"

#define BWS_RESCUE_PATIENCE (60 * BWS_S)

static bool bws_rescue_tcp_lives(struct bws_conn *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};

	return bws_r()->ppoll(&p, 1, &(struct timespec){0}, NULL) == 0;
}

void bws_lose(struct bws_conn *c)
{
	bool receives = c->rx.way != BWS_TCP, sends = c->tx.way == BWS_BW;

	if (c->rescue)
		return;
	if (!c->paired || (!receives && !sends && !c->rx.open) || !bws_rescue_tcp_lives(c)) {
		bws_break(c, ECONNRESET, "the peer's endpoint is gone");
		return;
	}
	c->paired = false;
	c->pinned = true;
	c->why = "Beowire was lost";
	c->peer_id = 0;
	c->owed = 0;
	c->tx.epoch = 0;
	c->tx.unsent = NULL;
	bws_queue_clear(&c->rx.queue);
	c->rx.open = c->rx.wanted = false;
	c->rx.returning = 0;
	atomic_store(&c->rx.way, BWS_TCP);
	c->rescue = true;
	c->rescued = false;
	c->rescue_from = c->shared->rx;
	c->rescue_at = 0;
	c->rescue_until = bw_clock_now() + BWS_RESCUE_PATIENCE;
	bws_conn_settle(c);
	bws_watch_changed(c);
	bws_wake(c, EPOLLIN | EPOLLOUT);
	bws_attend();
}
