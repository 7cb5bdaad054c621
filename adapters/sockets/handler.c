/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* libbeowire's handlers: what peers say. Their bytes are hostile. See flow.h. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "flow.h"
#include "real.h"
#include "wait.h"

/* Who calls must know both nonces, and be the endpoint that the offer named. */
static bool bws_handler_knows(struct bws_conn *c, const struct bw_message *m,
			      const uint8_t *peer_nonce, const uint8_t *nonce)
{
	bw_peer_no named;

	/* Only who knows the nonces makes libbeowire look for the endpoint. */
	return m->len == 2 * BWS_NONCE && !memcmp(m->data, peer_nonce, BWS_NONCE) &&
	       !memcmp((const uint8_t *)m->data + BWS_NONCE, nonce, BWS_NONCE) && m->imm &&
	       m->imm <= UINT32_MAX && !bw_peer_find(atomic_load(&bws.ep), &c->peer_addr, &named) &&
	       named == m->peer;
}

/* The answer to our greeting has come after we had offered anew. The peer is paired by the nonces
 * of that time, and so takes no offer. */
static bool bws_handler_welcomes_late(struct bws_conn *c, const struct bw_message *m)
{
	if (m->code != BWS_WELCOME || !c->unwelcomed ||
	    !bws_handler_knows(c, m, c->old_peer_nonce, c->old_nonce))
		return false;
	memcpy(c->nonce, c->old_nonce, BWS_NONCE);
	memcpy(c->peer_nonce, c->old_peer_nonce, BWS_NONCE);
	c->retired = false;
	c->awaited = 0;
	return true;
}

static void bws_handler_pair(struct bws_conn *c, const struct bw_message *m)
{
	if (!(c->answered || c->unwelcomed) || c->paired || c->orphan)
		return;
	if (!bws_handler_welcomes_late(c, m) &&
	    !(c->answered && bws_handler_knows(c, m, c->peer_nonce, c->nonce))) {
		bws_offer_refuse();
		return;
	}
	c->paired = c->proven = true;
	c->answered = c->lost = c->unwelcomed = false;
	c->peer = m->peer;
	c->peer_id = (uint32_t)m->imm;
	c->rx.returned_final = false;
	c->tx.epoch = 0; /* of a READY to another conversation */
	c->parked = c->peer_parks = false;
	c->compared = c->shared->tx + c->shared->rx;
	if (!c->pinned)
		c->why = "paired";
	if (m->code == BWS_HELLO)
		c->owed |= BWS_OWE_WELCOME;
	bws_push(c);
	bws_rx_ready(c);
	bws_attend();
}

static void bws_handler_return(struct bws_conn *c, const struct bw_message *m)
{
	bool final = m->len == 1 && *(const uint8_t *)m->data;

	if (!bws_tx_returned(c, m->imm)) {
		bws_break(c, ECONNRESET, "the peer breaks the rules");
		return;
	}
	if (!final)
		return;
	/* It has left; whoever has the connection now may be asked anew. */
	bws_rx_return(c, true);
	c->paired = false;
	if (!c->orphan)
		bws_reoffer(c);
}

static void bws_handler_park(struct bws_conn *c, bool parks)
{
	c->peer_parks = parks;
	if (parks)
		bws_rx_return(c, false);
	else
		bws_rx_ready(c);
	/* What is to be asked for while it is there changes. */
	bws_attend();
}

static void bws_handler_paired(struct bws_conn *c, const struct bw_message *m)
{
	uint64_t at;

	bws_tx_taken(c, (uint32_t)m->tag);
	switch ((enum bws_code)m->code) {
	case BWS_READY:
		c->tx.epoch = (uint32_t)m->imm;
		bws_conn_settle(c);
		bws_tx_switch(c);
		break;
	case BWS_SWITCH:
		if (m->len != sizeof(at))
			break;
		memcpy(&at, m->data, sizeof(at));
		bws_rx_switch(c, m->imm, at);
		break;
	case BWS_DATA:
		bws_rx_data(c, m->imm, m->data, m->len);
		break;
	case BWS_RETURN:
		bws_handler_return(c, m);
		break;
	case BWS_BACK:
		bws_rx_return(c, false);
		break;
	case BWS_PARK:
		bws_handler_park(c, m->imm);
		break;
	case BWS_CROWDED:
		bws_crowded(bw_clock_now() + BWS_CROWDED_THERE);
		break;
	default:
		break;
	}
}

static void bws_handler_message(void *arg, const struct bw_message *m)
{
	struct bws_conn *c;

	bws_lock();
	c = bws_conn_by_id((uint32_t)(m->tag >> 32));
	/* Nobody of ours sends what has to be fetched. */
	if (m->envelope)
		bw_pull(atomic_load(&bws.ep), m->peer, &m->rndv, NULL, 0, NULL);
	else if (c && (m->code == BWS_HELLO || m->code == BWS_WELCOME))
		bws_handler_pair(c, m);
	else if (c && c->peer_id && c->peer == m->peer)
		bws_handler_paired(c, m);
	if (c && c->orphan)
		bws_attend();
	bws_unlock();
}

static void bws_handler_sent(void *arg, void *op, int status)
{
	uintptr_t value = (uintptr_t)op;
	struct bws_piece *p = op;
	struct bws_conn *c;

	bws_lock();
	if (value & 1) {
		c = bws_conn_by_id((uint32_t)(value >> 1));
		if (c && c->rx.returning)
			c->rx.returning--;
		if (c && !status)
			bws_rx_ready(c);
		if (c)
			bws_wake(c, 0);
		if (c && c->orphan)
			bws_attend();
	} else if (p) {
		p->busy = false;
		if (p->dropped)
			free(p);
	}
	bws_unlock();
}

/* Nothing is pulled. */
static void bws_handler_pulled(void *arg, void *op, int status, uint64_t len)
{
}

/* Its process is gone, as TCP tells as well, or Beowire does not reach it any more. */
static void bws_handler_down(void *arg, bw_peer_no peer, int status)
{
	bws_lock();
	for (struct bws_conn *c = bws_conn_next(NULL); c; c = bws_conn_next(c)) {
		if (c->peer_id && c->peer == peer)
			bws_lose(c);
	}
	bws_unlock();
}

const struct bw_handlers bws_flow_handlers = {.message = bws_handler_message,
					      .sent = bws_handler_sent,
					      .pulled = bws_handler_pulled,
					      .peer_down = bws_handler_down};
