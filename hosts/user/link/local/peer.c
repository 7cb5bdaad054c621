/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The set of peers of a link. Those with recent traffic stand first in the array and are looked at
 * in every poll, of the others a few in turn, so that many idle peers cost little.
 */
#include "link/local/impl.h"

#include <stdlib.h>

static bool peers_grow(struct bw_local *l)
{
	uint32_t room = l->peers_room ? 2 * l->peers_room : 8;
	struct bw_local_peer **peer = realloc(l->peer, room * sizeof(*peer));

	if (!peer)
		return false;
	l->peer = peer;
	l->peers_room = room;
	return true;
}

static void put_at(struct bw_local *l, struct bw_local_peer *p, uint32_t index)
{
	l->peer[index] = p;
	p->index = index;
}

static void swap(struct bw_local *l, uint32_t i, uint32_t j)
{
	struct bw_local_peer *p = l->peer[i];

	put_at(l, l->peer[j], i);
	put_at(l, p, j);
}

/* Look at p in every poll. */
void bw_local_peer_heat(struct bw_local_peer *p)
{
	p->quiet = 0;
	if (p->index >= p->link->hot)
		swap(p->link, p->index, p->link->hot++);
}

/* Look at p now and then only. */
void bw_local_peer_cool(struct bw_local_peer *p)
{
	if (p->index < p->link->hot)
		swap(p->link, p->index, --p->link->hot);
}

/* A new peer without rings or connection. NULL without memory. */
struct bw_local_peer *bw_local_peer_make(struct bw_local *l, const struct bw_local_id *id,
					 void *ctx)
{
	struct bw_local_peer *p;

	if (l->peers == l->peers_room && !peers_grow(l))
		return NULL;
	p = aligned_alloc(BW_LOCAL_LINE,
			  (sizeof(*p) + BW_LOCAL_LINE - 1) & ~(size_t)(BW_LOCAL_LINE - 1));
	if (!p)
		return NULL;
	memset(p, 0, sizeof(*p));
	p->link = l;
	p->id = *id;
	p->ctx = ctx;
	p->slot_free = BW_LOCAL_NO_SLOT;
	p->queued.last = &p->queued.first;
	p->direct.last = &p->direct.first;
	put_at(l, p, l->peers++);
	bw_local_peer_heat(p);
	l->counters.peers = l->peers;
	return p;
}

struct bw_local_peer *bw_local_peer_of(struct bw_local *l, uint16_t engine, uint32_t incarnation)
{
	for (uint32_t i = 0; i < l->peers; i++)
		if (l->peer[i]->id.engine == engine && l->peer[i]->id.incarnation == incarnation)
			return l->peer[i];
	return NULL;
}

void bw_local_peer_id(const struct bw_local_peer *p, struct bw_local_id *id)
{
	*id = p->id;
}

/* Send through this ring from now on. */
void bw_local_peer_tx(struct bw_local_peer *p, const struct bw_local_segment *s, int ring)
{
	p->tx = (struct bw_local_tx){
		.base = s->ring[ring],
		.key = s->key[ring],
		.bytes = s->ring_bytes,
		.control = &s->control[ring],
		.states = s->states[ring],
	};
}

/* Take from this ring from now on. */
void bw_local_peer_rx(struct bw_local_peer *p, const struct bw_local_segment *s, int ring)
{
	p->rx = (struct bw_local_rx){
		.base = s->ring[ring],
		.key = s->key[ring],
		.bytes = s->ring_bytes,
		.control = &s->control[ring],
		.states = s->states[ring],
	};
}

/* The other side is gone. What it put into the ring before is still taken, but not more than fits.
 */
void bw_local_peer_lost(struct bw_local_peer *p, int status)
{
	if (p->lost || p->down || p->self)
		return;
	p->lost = true;
	p->lost_status = status;
	p->lost_end = p->rx.pos + p->rx.bytes;
	p->work = true;
	bw_local_peer_heat(p);
	for (int i = 0; i < 2; i++) {
		bw_local_conn_close(p->link, p->conn[i]);
		p->conn[i] = NULL;
	}
}

/* The peer is down from now on; the end of the poll reports it. */
void bw_local_peer_fail(struct bw_local_peer *p, int status)
{
	if (p->down)
		return;
	p->down = status;
	p->link->downs++;
	if (status == -EPROTO)
		p->link->counters.broken++;
}

void bw_local_disconnect(struct bw_local_peer *p)
{
	bw_local_peer_fail(p, -ECANCELED);
}

/* Operations that ended before, but were not reported yet. */
static void ended_report(struct bw_local_peer *p)
{
	struct bw_local *l = p->link;

	for (uint32_t i = 0; i < l->endeds; i++)
		if (l->ended[i].peer == p)
			bw_local_end_now(l, &l->ended[i]);
}

/* End all operations of p with this status. */
void bw_local_peer_end(struct bw_local_peer *p, int status)
{
	ended_report(p);
	bw_local_slots_end(p, status);
	bw_local_pulls_end(p, status);
}

void bw_local_peer_free(struct bw_local_peer *p)
{
	struct bw_local *l = p->link;

	/* Peers see at once that this is no accident. */
	if (p->tx.control && !p->lost)
		__atomic_store_n(&p->tx.control->closed, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++) {
		bw_local_conn_close(l, p->conn[i]);
		bw_local_segment_unmap(l, &p->segment[i]);
	}
	bw_local_status_unmap(p->status);
	if (p->down)
		l->downs--;
	bw_local_peer_cool(p);
	swap(l, p->index, --l->peers);
	l->counters.peers = l->peers;
	free(p->slot);
	free(p->note);
	free(p->owed.bits);
	free(p);
}
