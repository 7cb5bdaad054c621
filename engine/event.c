/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The queue of events. Its nodes lie in the objects that the events are about, so that queueing
 * never fails; an object is freed when its last event is taken. A peer's PEER_DOWN comes after all
 * its other events.
 */
#include "credit.h"
#include "duplex.h"
#include "event.h"
#include "peer.h"
#include "pull.h"
#include "reliable.h"

void bw_event_push(struct bw_engine *e, struct bw_evnode *n, enum bw_event_type type)
{
	if (n->type)
		return; /* PATH: one event tells the latest state */
	n->type = (uint8_t)type;
	n->next = NULL;
	if (e->ev_last)
		e->ev_last->next = n;
	else
		e->ev_first = n;
	e->ev_last = n;
}

static void bw_event_message(struct bw_engine *e, struct bw_rxmsg *m, struct bw_event *out)
{
	out->peer = m->peer_handle;
	out->len = m->total;
	out->tag = m->tag;
	out->imm = m->imm;
	out->buf = m->buf;
	out->frame_off = m->frame_off;
	out->dst_ep = m->dst_ep;
	out->src_ep = m->src_ep;
	out->code = m->code;
	bw_duplex_received_message(e);
	if (m->peer->state == BW_PEER_UP)
		bw_credit_taken(e, m->peer, bw_credit_charge(m->total, e->cfg.charge_min));
	bw_slab_free(&e->rxmsgs, m);
}

static void bw_event_peer(struct bw_peer *p, struct bw_event *out)
{
	out->peer = p->handle;
	out->node = p->node;
	out->inc = p->inc;
	out->engine = p->engine;
	out->version_min = p->version_min;
	out->version_max = p->version_max;
	memcpy(out->name, p->name, sizeof(out->name));
}

static void bw_event_path(struct bw_path *t, struct bw_peer *p, struct bw_event *out)
{
	out->peer = p->handle;
	out->path = t->no;
	out->usable = t->state == BW_PATH_UP;
	out->mtu = t->pmtu.mtu;
	out->from = t->to;
}

/* The next event to be told, or NULL. What a lost peer leaves behind ends when its own end would be
 * the next: all of which an event tells goes before that. NULL with events left: not all of it has
 * ended yet. */
static struct bw_evnode *bw_event_first(struct bw_engine *e)
{
	struct bw_evnode *n = e->ev_first, *last = e->ev_last;
	bool over;

	if (!n || n->type != BW_EV_PEER_DOWN)
		return n;
	e->ev_first = e->ev_last = NULL;
	over = bw_peer_shed(e, bw_entry(n, struct bw_peer, ev_down));
	if (e->ev_first)
		e->ev_last->next = n;
	else
		e->ev_first = n;
	e->ev_last = last;
	return over || e->ev_first != n ? e->ev_first : NULL;
}

/* Take the next event. 1: it is to be told, 0: it is not, negative: there is none. */
static int bw_event_take(struct bw_engine *e, struct bw_event *out)
{
	struct bw_evnode *n = bw_event_first(e);
	struct bw_txmsg *tx;
	bool told = true;
	struct bw_pull *u;
	struct bw_region *g;
	struct bw_peer *p;

	if (!n)
		return -1;
	e->row.peer = NULL; /* its peer, or what it was of, may go */
	e->ev_first = n->next;
	if (!e->ev_first)
		e->ev_last = NULL;
	out->type = n->type;
	out->status = 0;
	n->type = 0;
	switch (out->type) {
	case BW_EV_MESSAGE:
		bw_event_message(e, bw_entry(n, struct bw_rxmsg, ev), out);
		break;
	case BW_EV_SENT:
		tx = bw_entry(n, struct bw_txmsg, ev);
		out->status = tx->status;
		out->peer = tx->peer_handle;
		out->cookie = tx->cookie;
		bw_slab_free(&e->txmsgs, tx);
		break;
	case BW_EV_PULLED:
		u = bw_entry(n, struct bw_pull, ev);
		out->status = u->status;
		out->peer = u->peer_handle;
		out->cookie = u->cookie;
		out->len = u->received;
		bw_pull_told(e, u);
		break;
	case BW_EV_REGION_DONE:
		g = bw_entry(n, struct bw_region, ev);
		out->status = g->status;
		out->peer = g->peer_handle;
		out->cookie = g->cookie;
		bw_slab_free(&e->regions, g);
		break;
	case BW_EV_PEER_UP:
		p = bw_entry(n, struct bw_peer, ev_up);
		bw_event_peer(p, out);
		out->from = p->path[p->best]->to;
		told = !p->hidden;
		break;
	case BW_EV_PEER_DOWN:
		p = bw_entry(n, struct bw_peer, ev_down);
		bw_event_peer(p, out);
		out->status = p->down_status;
		told = !p->hidden;
		bw_peer_free(e, p);
		break;
	case BW_EV_PATH: {
		struct bw_path *t = bw_entry(n, struct bw_path, ev);

		bw_event_path(t, t->owner, out);
		told = !t->owner->hidden;
		break;
	}
	}
	return told;
}

BW_APART bool bw_event_next(struct bw_engine *e, struct bw_event *out)
{
	int told;

	do
		told = bw_event_take(e, out);
	while (!told);
	return told > 0;
}
