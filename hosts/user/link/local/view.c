/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A peer of the local link as people are told of it. Nothing here changes anything. */
#include "link/local/impl.h"

static void view_offers(const struct bw_local_peer *p, struct bw_local_view *v)
{
	for (uint32_t i = 0; i < p->slots && v->offered < BW_LOCAL_VIEW_MOST; i++) {
		if (!p->slot[i].live || !p->slot[i].envelope)
			continue;
		v->offered++;
		v->offered_bytes += p->slot[i].len;
	}
}

void bw_local_look_at(const struct bw_local_peer *p, struct bw_local_view *v)
{
	*v = (struct bw_local_view){
		.pid = p->id.pid,
		.answered = p->self || p->status,
		.sleeping =
			p->status && (__atomic_load_n(&p->status->sleeping, __ATOMIC_RELAXED) & 1),
		.stalled = p->stalled,
		.tx_bytes = p->tx.pos,
		.rx_bytes = p->rx.pos,
		.pulls = (uint64_t)p->pulls + p->reads,
		.serves = p->serves,
	};
	if (p->tx.control) {
		uint64_t head = __atomic_load_n(&p->tx.control->head, __ATOMIC_RELAXED);

		/* The peer writes it: more than the ring holds is a lie. */
		v->tx_waiting = p->tx.pos - head;
		if (v->tx_waiting > p->tx.bytes)
			v->tx_waiting = p->tx.bytes;
	}
	if (p->slots_live)
		view_offers(p, v);
}
