/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A peer as people are told of it. Nothing here changes anything. */
#include "peer.h"
#include "reliable.h"

static bool bw_view_more(uint64_t *n)
{
	return ++*n < BW_VIEW_MOST;
}

static void bw_view_path(const struct bw_path *t, struct bw_peer_view *v)
{
	v->losses += t->losses;
	v->retransmits += t->lost.retransmits;
	v->inflight += t->inflight;
	if (t->pn_next)
		v->tx_packets += t->pn_next - 1;
	if (t->rx.any) {
		v->rx_packets += t->rx.max;
		v->heard = bw_max_u64(v->heard, t->rx.max_ns);
	}
	if (t->state != BW_PATH_UP)
		return;
	v->paths++;
	v->silent += t->pto_count != 0;
}

static void bw_view_flow(const struct bw_flow *f, struct bw_peer_view *v)
{
	const struct bw_list *l;

	v->tx_messages += f->tx_next;
	v->rx_messages += f->rx_next;
	for (l = f->tx.next; l != &f->tx; l = l->next) {
		const struct bw_txmsg *m = bw_entry(l, struct bw_txmsg, queue);

		v->queued_bytes += m->len - m->next_off;
		if (!bw_view_more(&v->queued))
			break;
	}
}

static void bw_view_waiting(const struct bw_peer *p, struct bw_peer_view *v)
{
	const struct bw_list *l;

	if (!bw_list_empty(&p->regions))
		v->exposed_first = bw_first(&p->regions, struct bw_region, all)->key;
	for (l = p->regions.next; l != &p->regions; l = l->next) {
		v->exposed_bytes += bw_entry(l, struct bw_region, all)->len;
		if (!bw_view_more(&v->exposed))
			break;
	}
	for (l = p->pulls.next; l != &p->pulls; l = l->next) {
		const struct bw_pull *u = bw_entry(l, struct bw_pull, all);

		v->pull_bytes += u->len - bw_min_u64(u->len, u->received);
		if (!bw_view_more(&v->pulls))
			break;
	}
	for (l = p->serves.next; l != &p->serves && bw_view_more(&v->serves); l = l->next)
		;
}

int bw_reliable_peer_view(void *mem, uint32_t peer, struct bw_peer_view *v)
{
	const struct bw_peer *p = bw_peer_get(mem, peer);
	const struct bw_flow *f;
	const struct bw_path *t;
	uint8_t i;

	if (!p)
		return -ENOTCONN;
	t = p->path[p->best];
	*v = (struct bw_peer_view){
		.up = p->state == BW_PEER_UP,
		.pressed = p->pressed,
		.stalled = p->credit_stalled,
		.expected = bw_peer_waits(p),
		.link = t->to.link,
		.mtu = t->pmtu.mtu,
		.probes = t->pto_count,
		.srtt_ns = t->rtt.srtt,
		.var_ns = t->rtt.var,
		.window = t->cc.cwnd,
		.credit = p->tx_limit - p->tx_used,
		.tx_charged = p->tx_used,
		.rx_charged = p->rx_used,
		.heard = p->confirmed ? p->proven : 0, /* before, it is when it was made */
		.proven = p->proven,
		.waiting_since = p->waiting_since,
		.arriving = p->arriving,
	};
	for (i = 0; i < p->npaths; i++)
		bw_view_path(p->path[i], v);
	for (f = &p->app; f; f = f->next)
		bw_view_flow(f, v);
	bw_view_waiting(p, v);
	return 0;
}
