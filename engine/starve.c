/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory for records, which tell what a packet carried, may be used up: by what is under way to
 * other peers. Who found none waits, and is the next to send when there is one, before the peer
 * whose acknowledgement gave it back. All that wait are served in turn, one frame or row of frames
 * each: in the order of engine.peers, from where the last one was found. They are looked for in
 * pieces; until one is found all that want a record wait, and only what needs none is sent.
 */
#include "peer.h"
#include "starve.h"

void bw_starve_enter(struct bw_engine *e, struct bw_peer *p)
{
	e->starve.peers += !p->starved;
	p->starved = true;
}

static void bw_starve_served(struct bw_engine *e, struct bw_peer *p)
{
	e->starve.peers -= p->starved;
	p->starved = false;
}

void bw_starve_leave(struct bw_engine *e, struct bw_peer *p)
{
	bw_starve_served(e, p);
	if (!e->starve.peers)
		e->starve.seeks = false;
	if (e->starve.next == &p->all)
		e->starve.next = p->all.next;
}

struct bw_peer *bw_starve_turn(struct bw_engine *e)
{
	struct bw_peer *p = NULL;
	uint32_t left;

	for (left = e->cfg.piece; left && e->starve.peers && !p; left--) {
		if (!e->starve.next || e->starve.next == &e->peers)
			e->starve.next = e->peers.next;
		p = bw_entry(e->starve.next, struct bw_peer, all);
		e->starve.next = p->all.next;
		e->looks++;
		if (!p->starved)
			p = NULL;
	}
	e->starve.seeks = !p;
	if (!p)
		return NULL;
	bw_starve_served(e, p);
	bw_peer_first(e, p);
	return p;
}
