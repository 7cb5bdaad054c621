/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Beowire does not reach a peer any more, but TCP may. Each side tells the other by UDP, until
 * it is acknowledged, what its program has taken, and the other one sends the rest by TCP. Both
 * nonces prove that it is the peer who tells. If its process has died, TCP has ended too.
 *
 * Afterwards the connection is on TCP as if it had never left it, and is offered again. That is
 * safe:
 * - A side neither offers nor answers an offer before its rescue is over: the peer knows what our
 *   program has taken, and we know what the peer's has, or need not as we do not send by Beowire.
 *   So no byte of the old time is in doubt when new nonces are drawn.
 * - The peer may not know yet that we know what it told. It tells again, by the nonces of that
 *   time, which are kept for this: that is acknowledged, and changes nothing.
 * - No message of the old time comes: libbeowire gave the peer up (each side's PEER_DOWN is the
 *   last that is heard of it), and both forget it before they speak again (bw_peer_forget()).
 *
 * Who loses the peer tells it also if nothing goes by Beowire yet: the peer, which may not have
 * noticed, would wait for a READY or SWITCH that never comes.
 */
#include <errno.h>
#include <poll.h>

#include "clock.h"
#include "flow.h"
#include "real.h"
#include "wait.h"

#define BWS_RESCUE_PATIENCE (60 * BWS_S)
#define BWS_RESCUE_IDLE	    (5 * BWS_S) /* if no byte depends on it */
#define BWS_RESCUE_AGAIN    (1 * BWS_S) /* before the first new offer; each loss costs a stall, */
#define BWS_RESCUE_RARER    3		/* so 8 times later after each further one, */
#define BWS_RESCUE_RAREST   4		/* four times at most: 68 minutes */

static bool bws_rescue_tcp_lives(struct bws_conn *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};

	return bws_r()->ppoll(&p, 1, &(struct timespec){0}, NULL) == 0;
}

void bws_lose(struct bws_conn *c)
{
	/* A RETURN that is not acknowledged may be lost, and what was sent in vain with it. */
	bool needed =
		c->rx.open || c->rx.returning || (c->owed & BWS_OWE_RETURN) || c->tx.way == BWS_BW;

	if (c->rescue)
		return;
	if (!c->paired || !bws_rescue_tcp_lives(c)) {
		bws_break(c, ECONNRESET, "the peer's endpoint is gone");
		return;
	}
	c->paired = c->answered = false;
	c->losses++;
	c->lost = true;
	if (!c->pinned)
		c->why = "Beowire was lost";
	c->peer_id = 0;
	c->owed = 0;
	c->tx.epoch = 0;
	c->tx.unsent = NULL;
	bws_rx_must(c);
	bws_queue_clear(&c->rx.queue);
	c->rx.open = c->rx.wanted = false;
	c->rx.returning = 0;
	atomic_store(&c->rx.way, BWS_TCP);
	c->rescue = true;
	c->rescue_idle = !needed;
	c->rescued = false;
	c->rescue_from = c->shared->rx;
	c->rescue_at = 0;
	c->rescue_until = bw_clock_now() + (needed ? BWS_RESCUE_PATIENCE : BWS_RESCUE_IDLE);
	bws_conn_settle(c);
	bws_watch_changed(c);
	bws_wake(c, EPOLLIN | EPOLLOUT);
	bws_attend();
}

void bws_rescue_over(struct bws_conn *c)
{
	uint32_t more = c->losses ? c->losses - 1 : 0;

	if (more > BWS_RESCUE_RAREST)
		more = BWS_RESCUE_RAREST;
	c->rescue = false;
	bws_conn_settle(c);
	if (c->orphan) /* it is not offered, and has another time to end */
		return;
	c->offer_at = bw_clock_now() + (BWS_RESCUE_AGAIN << BWS_RESCUE_RARER * more);
	c->offers = 1;
}
