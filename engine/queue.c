/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of a flow that wait for others before them, by number. Most flows have few, which are
 * looked at one after another, from the latest back. A peer may leave thousands half sent and then
 * send parts of the first ones only: where many wait, an index has the last one of each block of
 * numbers, so that no part costs more than a walk through one block.
 */
#include "queue.h"
#include "reliable.h"

static struct bw_rxmsg **bw_queue_block(struct bw_flow_index *index, uint64_t id)
{
	return &index->last[id / BW_QUEUE_BLOCK % BW_QUEUE_BLOCKS];
}

static void bw_queue_note(struct bw_flow_index *index, struct bw_rxmsg *m)
{
	struct bw_rxmsg **last = bw_queue_block(index, m->id);

	if (!*last || (*last)->id < m->id)
		*last = m;
}

bool bw_queue_room(struct bw_engine *e, struct bw_flow *flow)
{
	struct bw_rxmsg *first = bw_first(&flow->rx, struct bw_rxmsg, queue);
	struct bw_list *l;

	if (flow->waiting < BW_QUEUE_LISTED || first->index)
		return true;
	first->index = bw_slab_alloc(&e->indexes);
	if (!first->index)
		return false;
	memset(first->index, 0, sizeof(*first->index));
	for (l = flow->rx.next; l != &flow->rx; l = l->next, e->steps++)
		bw_queue_note(first->index, bw_entry(l, struct bw_rxmsg, queue));
	return true;
}

void bw_queue_add(struct bw_flow *flow, struct bw_rxmsg *m, struct bw_list *before)
{
	struct bw_rxmsg *first = bw_first(&flow->rx, struct bw_rxmsg, queue);
	struct bw_flow_index *index = flow->waiting ? first->index : NULL;

	bw_list_add_before(before, &m->queue);
	flow->waiting++;
	m->index = NULL;
	if (!index)
		return;
	bw_queue_note(index, m);
	first->index = NULL;
	bw_first(&flow->rx, struct bw_rxmsg, queue)->index = index;
}

struct bw_rxmsg *bw_queue_take(struct bw_engine *e, struct bw_flow *flow)
{
	struct bw_rxmsg *m = bw_first(&flow->rx, struct bw_rxmsg, queue);

	bw_list_del(&m->queue);
	flow->waiting--;
	m->peer->arriving--;
	if (BW_LIKELY(!m->index))
		return m;
	if (*bw_queue_block(m->index, m->id) == m)
		*bw_queue_block(m->index, m->id) = NULL;
	if (flow->waiting)
		bw_first(&flow->rx, struct bw_rxmsg, queue)->index = m->index;
	else
		bw_slab_free(&e->indexes, m->index);
	return m;
}

/* The last message of the block that this number is of, or of the next block before it that has
 * any: there is one, since the first message of all has a lower number. */
static struct bw_list *bw_queue_from(struct bw_engine *e, struct bw_flow_index *index, uint64_t id)
{
	struct bw_rxmsg *m = *bw_queue_block(index, id);

	for (; !m; e->steps++) {
		id -= BW_QUEUE_BLOCK;
		m = *bw_queue_block(index, id);
	}
	return &m->queue;
}

struct bw_rxmsg *bw_queue_find(struct bw_engine *e, struct bw_flow *flow, uint64_t id,
			       struct bw_list **before)
{
	struct bw_rxmsg *m = bw_first(&flow->rx, struct bw_rxmsg, queue);
	struct bw_list *l;

	*before = flow->rx.next;
	if (id <= m->id) /* the one that all others wait for, mostly */
		return id == m->id ? m : NULL;
	l = m->index ? bw_queue_from(e, m->index, id) : flow->rx.prev;
	for (; bw_entry(l, struct bw_rxmsg, queue)->id > id; l = l->prev)
		e->steps++;
	*before = l->next;
	m = bw_entry(l, struct bw_rxmsg, queue);
	return m->id == id ? m : NULL;
}
