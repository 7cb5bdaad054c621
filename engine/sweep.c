/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All peers are told that there is no room for messages, or room again. They become ready in
 * pieces, in the order of engine.peers. A sweep that begins during another one goes on where that
 * is, once around, so that nobody waits for ever.
 */
#include "peer.h"
#include "sweep.h"

static void bw_sweep_peer(struct bw_engine *e, struct bw_peer *p)
{
	if (p->state != BW_PEER_UP)
		return;
	p->path[p->best]->rx.ack_now = true;
	bw_peer_ready(e, p);
}

void bw_sweep_piece(struct bw_engine *e)
{
	uint32_t left;

	for (left = e->cfg.piece; left && e->sweep.left; left--) {
		if (!e->sweep.next || e->sweep.next == &e->peers)
			e->sweep.next = e->peers.next;
		if (e->sweep.next == &e->peers) { /* there is nobody */
			e->sweep.left = 0;
			break;
		}
		e->looks++;
		e->sweep.left--;
		bw_sweep_peer(e, bw_entry(e->sweep.next, struct bw_peer, all));
		e->sweep.next = e->sweep.next->next;
	}
}

void bw_sweep_begin(struct bw_engine *e)
{
	if (!e->closed) /* all of them hear farewells, and nothing else */
		e->sweep.left = (uint32_t)e->count.peers;
	bw_sweep_piece(e);
}

void bw_sweep_join(struct bw_engine *e)
{
	if (e->sweep.left) /* it comes before those from whom the sweep started */
		e->sweep.left++;
}

void bw_sweep_leave(struct bw_engine *e, const struct bw_peer *p)
{
	if (e->sweep.next == &p->all)
		e->sweep.next = p->all.next;
}
