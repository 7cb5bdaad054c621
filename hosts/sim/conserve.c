/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Credit is conserved: when nothing is under way, what one side has charged is what the other side
 * has taken. Only here the simulator looks inside the reliable engine, at both ends at once.
 */
#include "sim.h"

#include "peer.h"
#include "reliable.h"

static struct bw_peer *sim_conserve_other(const struct sim *s, const struct bw_engine *e,
					  const struct bw_peer *p)
{
	uint32_t i;

	for (i = 0; i < s->spec.nodes; i++) {
		struct bw_engine *other = s->nodes[i].engine;
		struct bw_peer *q;

		if (!other || other->cfg.node != p->node || other->cfg.incarnation != p->inc)
			continue;
		q = bw_peer_get(other, p->conn);
		return q && q->state == BW_PEER_UP && q->inc == e->cfg.incarnation &&
				       q->conn == p->handle
			       ? q
			       : NULL;
	}
	return NULL;
}

void sim_conserve_check(struct sim *s)
{
	uint32_t i;

	for (i = 0; i < s->spec.nodes && !s->failed; i++) {
		struct bw_engine *e = s->nodes[i].engine;
		struct bw_list *l;

		for (l = e ? e->peers.next : NULL; e && l != &e->peers; l = l->next) {
			struct bw_peer *p = bw_entry(l, struct bw_peer, all);
			struct bw_peer *q = sim_conserve_other(s, e, p);

			/* A pull's end that has not arrived, at one that moved in silence. */
			if (p->state != BW_PEER_UP || !q || !bw_list_empty(&p->controls))
				continue;
			if (p->tx_used != q->rx_taken)
				sim_fail(s,
					 "credit is not conserved: node %u charged %llu bytes, %s "
					 "took %llu",
					 i, (unsigned long long)p->tx_used, p->name,
					 (unsigned long long)q->rx_taken);
			if (p->tx_limit > q->rx_limit)
				sim_fail(s, "node %u has more credit than it was given", i);
		}
	}
}
