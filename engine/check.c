/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The invariants of the reliable protocol, written down once: every range has one owner, counts
 * agree with lists, packet numbers ascend, credit is never exceeded. Slow; tests call it between
 * steps.
 */
#include "reliable.h"
#include "timer.h"

static const char *bw_check_spans(const struct bw_span *s, uint32_t n, uint32_t max)
{
	uint32_t i;

	if (n > max)
		return "more spans than their array holds";
	for (i = 0; i < n; i++) {
		if (s[i].lo >= s[i].hi)
			return "empty span";
		if (i && s[i].lo <= s[i - 1].hi)
			return "spans out of order, overlapping or touching";
	}
	return NULL;
}

static const char *bw_check_path(const struct bw_path *t)
{
	uint64_t bytes = 0, pn = 0;
	struct bw_list *l;

	for (l = t->flight.next; l != &t->flight; l = l->next) {
		const struct bw_record *r = bw_entry(l, struct bw_record, list);

		if (r->pn < pn || r->pn >= t->pn_next)
			return "records in flight out of order";
		if (r->pn != pn && !r->frame_len)
			return "packet in flight without its length";
		if (r->pn < t->floor)
			return "packet in flight below the floor";
		pn = r->pn;
		bytes += r->frame_len;
	}
	if (bytes != t->inflight)
		return "bytes in flight miscounted";
	if (t->acked_max >= t->pn_next)
		return "acknowledged a packet never sent";
	if (t->rx.got.n && t->rx.got.span[0].lo <= t->rx.got.base)
		return "received packets not settled";
	return bw_check_spans(t->rx.got.span, t->rx.got.n, BW_PNSET_SPANS);
}

/* What of a message or serve has an owner. */
struct bw_check_owned {
	uint32_t records;
	uint64_t bytes;
};

static void bw_check_owners(const struct bw_list *l, const void *obj, struct bw_check_owned *sum)
{
	const struct bw_list *at;

	for (at = l->next; at != l; at = at->next) {
		const struct bw_record *r = bw_entry(at, struct bw_record, list);

		sum->records += r->obj == obj;
		sum->bytes += r->obj == obj ? r->len : 0;
	}
}

static struct bw_check_owned bw_check_owned(const struct bw_peer *p, const void *obj,
					    const struct bw_again *again)
{
	struct bw_check_owned sum = {0};
	uint8_t i;

	if (again->near)
		bw_check_owners(&again->ranges, obj, &sum);
	bw_check_owners(&p->spare, obj, &sum);
	for (i = 0; i < p->npaths; i++) {
		bw_check_owners(&p->path[i]->flight, obj, &sum);
		bw_check_owners(&p->path[i]->share, obj, &sum);
	}
	return sum;
}

static bool bw_check_among(const struct bw_list *list, const struct bw_list *hook)
{
	const struct bw_list *l = list->next;

	while (l != list && l != hook)
		l = l->next;
	return l == hook;
}

/* Is what the copy names alive, and was it sent so far? */
static bool bw_check_named(const struct bw_peer *p, const struct bw_record *copy)
{
	const struct bw_txmsg *m = copy->obj;
	const struct bw_serve *s = copy->obj;

	if (copy->kind == BW_OWNED_MESSAGE)
		return (bw_check_among(&p->txmsgs, &m->all) ||
			bw_check_among(&p->controls, &m->all)) &&
		       copy->off + copy->len <= m->next_off;
	return copy->kind == BW_OWNED_BULK && bw_check_among(&p->serves, &s->all) &&
	       copy->off + copy->len <= s->next_off;
}

/* Would an acknowledgement of this packet be noticed, though it owns nothing? */
static bool bw_check_noticed(const struct bw_path *t, uint64_t pn)
{
	const struct bw_list *l;
	uint32_t i;

	for (i = 0; i < BW_LOST_RING; i++)
		if (t->lost.ring[i].pn == pn)
			return t->lost.n != 0;
	for (l = t->flight.next; l != &t->flight; l = l->next)
		if (bw_entry(l, struct bw_record, list)->pn == pn)
			return bw_entry(l, struct bw_record, list)->kind == BW_OWNED_MOVED;
	return false;
}

/* What packets carried whose ranges have other owners now. */
static const char *bw_check_late(const struct bw_peer *p)
{
	const struct bw_list *l;
	uint32_t n = 0;
	uint8_t i;

	for (i = 0; i < p->npaths; i++) {
		const struct bw_path *t = p->path[i];

		for (l = t->lost.late.next; l != &t->lost.late; l = l->next) {
			const struct bw_record *r = bw_entry(l, struct bw_record, list);

			if (!bw_check_named(p, r))
				return "what a lost packet carried has ended, or was never sent";
			if (!bw_check_noticed(t, r->pn))
				return "what a forgotten packet carried is remembered";
			n++;
		}
	}
	return n == p->late ? NULL : "what lost packets carried miscounted";
}

/* *queued: how many of them are to be sent. */
static const char *bw_check_sends(const struct bw_peer *p, const struct bw_list *list,
				  uint32_t *queued)
{
	const struct bw_list *l;

	*queued = 0;

	for (l = list->next; l != list; l = l->next) {
		const struct bw_txmsg *m = bw_entry(l, struct bw_txmsg, all);
		struct bw_check_owned owned = bw_check_owned(p, m, &m->again);

		if (m->refs != owned.records)
			return "message's ranges miscounted";
		if (m->again.late)
			return "message settled by a copy that is gone";
		if (owned.bytes > m->next_off)
			return "bytes of a message with two owners";
		if (m->sent != bw_list_empty(&m->queue))
			return "message sent and queued, or neither";
		if (m->sent && (!m->refs || m->next_off != m->len))
			return "message sent completely, but not settled";
		*queued += !m->sent;
	}
	return NULL;
}

static const char *bw_check_serves(const struct bw_peer *p)
{
	const struct bw_list *l;

	for (l = p->serves.next; l != &p->serves; l = l->next) {
		const struct bw_serve *s = bw_entry(l, struct bw_serve, all);
		struct bw_check_owned owned = bw_check_owned(p, s, &s->again);

		if (s->refs != owned.records)
			return "serve's ranges miscounted";
		if (s->again.late)
			return "serve settled by a copy that is gone";
		if (owned.bytes > s->next_off)
			return "bytes of a serve with two owners";
		if (!s->refs && (s->aborted || s->next_off == s->len))
			return "serve ended, but not settled";
		if (s->next_off > s->len)
			return "served beyond the end";
	}
	return NULL;
}

/* What is set aside for paths: bytes of serves, none of them sent. */
static const char *bw_check_aside(const struct bw_peer *p)
{
	const struct bw_list *list = &p->spare, *l;
	uint32_t n = 0;
	uint8_t i;

	for (i = 0; i <= p->npaths; i++) {
		for (l = list->next; l != list; l = l->next) {
			const struct bw_record *r = bw_entry(l, struct bw_record, list);
			const struct bw_serve *s = r->obj;

			if (r->kind != BW_OWNED_BULK || !r->len || s->aborted ||
			    r->off + r->len > s->next_off)
				return "something else set aside than bytes of a serve";
			n++;
		}
		if (i < p->npaths)
			list = &p->path[i]->share;
	}
	return n == p->aside ? NULL : "what is set aside for paths miscounted";
}

static const char *bw_check_asked(const struct bw_peer *p)
{
	const struct bw_list *l;
	uint32_t n = 0;

	for (l = p->serves.next; l != &p->serves; l = l->next)
		n++;
	for (l = p->controls.next; l != &p->controls; l = l->next)
		n += bw_entry(l, struct bw_txmsg, all)->kind == BW_PART_PULL_ERROR;
	if (n != p->asked)
		return "pulls of the peer miscounted";
	for (l = p->given_up.next, n = 0; l != &p->given_up; l = l->next)
		n++;
	return n == p->owed ? NULL : "pulls given up miscounted";
}

/* Has it the last waiting message of each block, and nothing else? */
static bool bw_check_index(const struct bw_flow *flow, const struct bw_flow_index *index)
{
	const struct bw_list *l;
	uint32_t blocks = 0, i;

	for (l = flow->rx.next; l != &flow->rx; l = l->next) {
		const struct bw_rxmsg *m = bw_entry(l, struct bw_rxmsg, queue);
		const struct bw_rxmsg *next = bw_entry(l->next, struct bw_rxmsg, queue);

		if (l->next != &flow->rx && next->id / BW_QUEUE_BLOCK == m->id / BW_QUEUE_BLOCK)
			continue;
		if (index->last[m->id / BW_QUEUE_BLOCK % BW_QUEUE_BLOCKS] != m)
			return false;
		blocks++;
	}
	for (i = 0; i < BW_QUEUE_BLOCKS; i++)
		if (index->last[i])
			blocks--;
	return !blocks;
}

static const char *bw_check_flow(const struct bw_flow *flow, uint32_t *arriving)
{
	const struct bw_list *l;
	uint64_t next = flow->rx_next;
	const struct bw_rxmsg *first = bw_first(&flow->rx, struct bw_rxmsg, queue);
	uint32_t waiting = 0;
	const char *bad;

	for (l = flow->rx.next; l != &flow->rx; l = l->next) {
		const struct bw_rxmsg *m = bw_entry(l, struct bw_rxmsg, queue);

		if (m != first && m->index)
			return "index of a flow at another message than the first";
		if (m->id < next)
			return "arriving messages out of order";
		if (m->id == flow->rx_next && m->received == m->total)
			return "complete message not delivered";
		if (m->received > m->total)
			return "more received than sent";
		bad = bw_check_spans(m->span, m->nspans, BW_MSG_SPANS);
		if (bad)
			return bad;
		next = m->id + 1;
		++*arriving;
		waiting++;
	}
	if (waiting && first->index && !bw_check_index(flow, first->index))
		return "index of a flow differs from what waits";
	return waiting == flow->waiting ? NULL : "waiting messages of a flow miscounted";
}

/* Would its messages be looked for, if it has some to be sent? */
static bool bw_check_sends_of(const struct bw_peer *p, const struct bw_flow *flow)
{
	return flow == &p->app || !p->flow_table || bw_list_empty(&flow->tx) ||
	       (p->flow_table->sends[flow->bucket / 64] >> flow->bucket % 64 & 1);
}

static const char *bw_check_peer(const struct bw_peer *p)
{
	const struct bw_flow *flow;
	const struct bw_list *l;
	const char *bad = NULL;
	uint32_t arriving = 0, unsent;
	uint8_t i;

	for (i = 0; i < p->npaths && !bad; i++)
		bad = bw_check_path(p->path[i]);
	for (flow = &p->app; flow && !bad; flow = flow->next) {
		bad = bw_check_flow(flow, &arriving);
		if (!bw_check_sends_of(p, flow))
			bad = "a flow's messages would not be found";
	}
	if (!bad && arriving != p->arriving)
		bad = "arriving messages miscounted";
	if (!bad)
		bad = bw_check_sends(p, &p->controls, &unsent);
	if (!bad)
		bad = bw_check_sends(p, &p->txmsgs, &unsent);
	if (!bad && unsent != p->unsent)
		bad = "messages to be sent miscounted";
	if (!bad)
		bad = bw_check_serves(p);
	if (!bad)
		bad = bw_check_asked(p);
	if (!bad)
		bad = bw_check_aside(p);
	if (!bad)
		bad = bw_check_late(p);
	for (l = p->pulls.next; l != &p->pulls && !bad; l = l->next) {
		const struct bw_pull *u = bw_entry(l, struct bw_pull, all);

		bad = bw_check_spans(u->span, u->nspans, BW_MSG_SPANS);
		if (!bad && u->len && u->received >= u->len)
			bad = "pull complete, but not ended";
	}
	if (!bad && p->tx_used > p->tx_limit)
		bad = "more charged than credited";
	if (!bad && p->rx_limit < p->rx_used)
		bad = "more arrived than was credited";
	if (!bad && p->confirmed && p->state != BW_PEER_DOWN &&
	    p->path[p->best]->state != BW_PATH_UP)
		bad = "answered, but no path is up"; /* bw_peer_waits() waits for none */
	if (!bad && p->rx_used < p->rx_taken)
		bad = "more taken than arrived";
	return bad;
}

static uint64_t bw_check_inflight(const struct bw_peer *p)
{
	uint64_t bytes = 0;

	for (uint8_t i = 0; i < p->npaths; i++)
		bytes += p->path[i]->inflight;
	return bytes;
}

static uint8_t bw_check_rank(const struct bw_peer *p)
{
	return p ? p->heap_rank : 0;
}

static const char *bw_check_heap_peer(const struct bw_peer *p)
{
	const struct bw_peer *left = p->heap_left, *right = p->heap_right;

	if (bw_check_rank(left) < bw_check_rank(right))
		return "shortest way down in the heap of deadlines not to the right";
	if (p->heap_rank != bw_check_rank(right) + 1)
		return "wrong rank in the heap of deadlines";
	if ((left && left->heap_up != p) || (right && right->heap_up != p))
		return "peer in the heap of deadlines does not know who is above";
	if ((left && left->heap_key < p->heap_key) || (right && right->heap_key < p->heap_key))
		return "heap of deadlines out of order";
	if (p->deadline < p->heap_key)
		return "deadline before its key in the heap";
	return NULL;
}

/* The next one of the heap: below, or right of it or of who is above. */
static const struct bw_peer *bw_check_heap_next(const struct bw_peer *p)
{
	if (p->heap_left)
		return p->heap_left; /* the right one is there only if this one is */
	while (p->heap_up && (p->heap_up->heap_right == p || !p->heap_up->heap_right))
		p = p->heap_up;
	return p->heap_up ? p->heap_up->heap_right : NULL;
}

const char *bw_timer_check(const struct bw_engine *e)
{
	const struct bw_peer *p;
	const char *bad = NULL;

	if (e->heap && e->heap->heap_up)
		return "somebody above the first one in the heap of deadlines";
	for (p = e->heap; p && !bad; p = bw_check_heap_next(p))
		bad = bw_check_heap_peer(p);
	return bad;
}

const char *bw_reliable_check(void *mem)
{
	struct bw_engine *e = mem;
	const char *bad = NULL;
	struct bw_list *l;
	uint64_t peers = 0, inflight = 0;

	for (l = e->peers.next; l != &e->peers && !bad; l = l->next) {
		bad = bw_check_peer(bw_entry(l, struct bw_peer, all));
		inflight += bw_check_inflight(bw_entry(l, struct bw_peer, all));
		peers++;
	}
	if (!bad)
		bad = bw_timer_check(e);
	if (!bad && !e->closed && peers != e->count.peers)
		bad = "peers miscounted";
	if (!bad && !e->closed && inflight != e->duplex.inflight)
		bad = "bytes in flight to all peers miscounted";
	return bad;
}
