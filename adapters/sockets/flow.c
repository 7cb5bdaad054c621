/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages between two libraries. See flow.h. */
#include "flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "real.h"
#include "wait.h"

static struct bws_conn *bws_flow_retry;

/* 1: done; 0: done, and the bytes stay in use (`op` will be told); else a negative errno. */
static int bws_flow_send(struct bws_conn *c, enum bws_code code, uint64_t imm, const void *data,
			 uint64_t len, unsigned int flags, void *op)
{
	uint64_t tag = (uint64_t)c->peer_id << 32 | (uint32_t)c->shared->rx;
	int rc = bw_send(atomic_load(&bws.ep), c->peer, (uint8_t)code, tag, imm, data, len,
			 BW_SEND_EAGER | flags, op);

	if (rc >= 0)
		c->rx.told = c->shared->rx;
	return rc;
}

static int bws_flow_nonces(struct bws_conn *c, enum bws_code code)
{
	uint8_t both[2 * BWS_NONCE];

	memcpy(both, c->nonce, BWS_NONCE);
	memcpy(both + BWS_NONCE, c->peer_nonce, BWS_NONCE);
	return bws_flow_send(c, code, c->id, both, sizeof(both), 0, NULL);
}

static int bws_flow_return(struct bws_conn *c)
{
	uint8_t final = c->rx.returned_final;
	/* Its end is told by its connection's name: the connection may be another by then. */
	int rc = bws_flow_send(c, BWS_RETURN, c->shared->rx, &final, 1, BW_SEND_ACKED,
			       (void *)((uintptr_t)c->id << 1 | 1));

	if (rc == 0)
		c->rx.returning++;
	return rc;
}

static int bws_flow_owed(struct bws_conn *c, enum bws_owed what)
{
	uint64_t at = c->tx.switch_at;

	switch (what) {
	case BWS_OWE_HELLO:
		return bws_flow_nonces(c, BWS_HELLO);
	case BWS_OWE_WELCOME:
		return bws_flow_nonces(c, BWS_WELCOME);
	case BWS_OWE_RETURN:
		return bws_flow_return(c);
	case BWS_OWE_READY:
		return bws_flow_send(c, BWS_READY, c->rx.epoch, NULL, 0, 0, NULL);
	case BWS_OWE_CREDIT:
		return bws_flow_send(c, BWS_CREDIT, 0, NULL, 0, 0, NULL);
	case BWS_OWE_BACK:
		return bws_flow_send(c, BWS_BACK, 0, NULL, 0, 0, NULL);
	case BWS_OWE_SWITCH:
		return bws_flow_send(c, BWS_SWITCH, c->tx.epoch, &at, sizeof(at), 0, NULL);
	case BWS_OWE_PARK:
		return bws_flow_send(c, BWS_PARK, c->parked, NULL, 0, 0, NULL);
	case BWS_OWE_CROWDED:
		return bws_flow_send(c, BWS_CROWDED, 0, NULL, 0, 0, NULL);
	}
	return 1;
}

static int bws_flow_pieces(struct bws_conn *c)
{
	struct bws_piece *p;
	int rc = 1;

	while (c->peer_id && c->tx.way == BWS_BW && !c->tx.back && (p = c->tx.unsent)) {
		uint32_t from = p->given;

		/* Handlers may run meanwhile, and let go of it. */
		c->tx.unsent = p->next;
		p->given = p->len;
		p->busy = true;
		rc = bws_flow_send(c, BWS_DATA, p->off + from, p->data + from, p->len - from, 0, p);
		if (rc == 0)
			continue;
		p->busy = false;
		if (p->dropped) {
			free(p);
		} else if (rc < 0) {
			p->given = from;
			/* They may have begun the way back as well. */
			c->tx.unsent = c->peer_id && c->tx.way == BWS_BW ? p : NULL;
		}
		if (rc < 0)
			return rc;
	}
	return rc;
}

void bws_flow_link(struct bws_conn *c)
{
	const char *link = bw_peer_link(atomic_load(&bws.ep), c->peer);

	if (link)
		c->link = link;
}

void bws_push(struct bws_conn *c)
{
	int rc = 1;

	if (!atomic_load(&bws.ep) || !c->peer_id)
		return;
	/* The order matters: what is returned is returned before it is asked for anew, and bytes
	 * follow the switch. */
	for (uint32_t what = 1; what <= BWS_OWE_CROWDED && rc >= 0; what <<= 1) {
		if (!(c->owed & what))
			continue;
		/* Handlers may run meanwhile, and end the pair. */
		c->owed &= ~what;
		rc = bws_flow_owed(c, what);
		if (rc < 0 && c->peer_id)
			c->owed |= what;
	}
	if (rc >= 0)
		rc = bws_flow_pieces(c);
	if (rc >= 0)
		return;
	if (rc != -EAGAIN) {
		bws_lose(c);
		return;
	}
	if (!c->retrying) {
		c->retrying = true;
		c->next_retry = bws_flow_retry;
		__atomic_store_n(&bws_flow_retry, c, __ATOMIC_RELAXED);
		bws_attend_room();
	}
}

bool bws_push_waits(void)
{
	return __atomic_load_n(&bws_flow_retry, __ATOMIC_RELAXED);
}

void bws_push_drop(struct bws_conn *c)
{
	struct bws_conn **at = &bws_flow_retry;

	while (*at && *at != c)
		at = &(*at)->next_retry;
	if (*at)
		__atomic_store_n(at, c->next_retry, __ATOMIC_RELAXED);
	c->retrying = false;
}

void bws_push_forget(void)
{
	bws_flow_retry = NULL;
}

void bws_push_all(void)
{
	struct bws_conn *c = bws_flow_retry, *next;

	bws_flow_retry = NULL;
	for (; c; c = next) {
		next = c->next_retry;
		c->retrying = false;
		if (c->id)
			bws_push(c);
	}
}

void bws_break(struct bws_conn *c, int error, const char *why)
{
	struct linger none = {.l_onoff = 1};
	bool beowire = c->rx.way != BWS_TCP || c->tx.way == BWS_BW;

	c->paired = false;
	c->owed = 0;
	c->tx.epoch = 0;
	c->rx.open = c->rx.wanted = false;
	c->peer_id = 0;
	if (beowire && !c->error) {
		c->error = error;
		c->why = why;
		/* The peer's TCP must not take the end for a good one. */
		bws_r()->setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	}
	bws_conn_settle(c);
	bws_watch_changed(c);
	bws_wake(c, EPOLLIN | EPOLLOUT);
	if (c->orphan)
		bws_attend();
}

bool bws_settled(const struct bws_conn *c)
{
	return c->rx.way == BWS_TCP && c->tx.way == BWS_TCP &&
	       !(c->owed & (BWS_OWE_RETURN | BWS_OWE_BACK)) && !c->rx.returning &&
	       !bws_conn_in_doubt(c);
}

bool bws_is_back(struct bws_conn *c)
{
	c->overdue = c->overdue && !bws_settled(c);
	return !c->overdue;
}

void bws_park(struct bws_conn *c, bool parked)
{
	c->parked = parked;
	c->owed |= BWS_OWE_PARK;
	if (parked) {
		bws_return(c, false);
	} else {
		bws_rx_ready(c);
		bws_tx_switch(c);
	}
	bws_push(c);
}

void bws_return(struct bws_conn *c, bool final)
{
	bws_rx_return(c, final);
	bws_tx_back(c);
}

/* Those that are waited for again and again in vain would stop each fork(): once is enough. */
static bool bws_flow_all_settled(struct bws_conn *one, bool final)
{
	if (one)
		return bws_settled(one) || one->error || !one->id;
	for (struct bws_conn *c = bws_conn_next(NULL); c; c = bws_conn_next(c)) {
		if (!bws_settled(c) && !c->error && (final || !c->overdue))
			return false;
	}
	return true;
}

/* The wait is over; whatever is not settled now is overdue until it is. Lock held. */
static void bws_flow_overdue(void)
{
	for (struct bws_conn *c = bws_conn_next(NULL); c; c = bws_conn_next(c))
		c->overdue = !bws_settled(c);
}

bool bws_return_wait(struct bws_conn *one, bool final, uint64_t timeout_ns)
{
	struct bws_patience patience = bws_patience(timeout_ns);
	bool done;

	bws_lock();
	for (struct bws_conn *c = one ? one : bws_conn_next(NULL); c;
	     c = one ? NULL : bws_conn_next(c))
		bws_return(c, final);
	done = bws_flow_all_settled(one, final);
	bws_unlock();
	while (!done && bws_patient(&patience)) {
		if (!bws_progress())
			bws_pause();
		bws_lock();
		for (struct bws_conn *c = one ? one : bws_conn_next(NULL); c;
		     c = one ? NULL : bws_conn_next(c))
			bws_tx_drain(c);
		done = bws_flow_all_settled(one, final);
		bws_unlock();
	}
	if (!one) {
		bws_lock();
		bws_flow_overdue();
		bws_unlock();
	}
	return done;
}
