// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Messages for a multi-receive buffer while the completion queue is full. Such a buffer takes any
 * number of messages, those of no bytes without end, and each makes an entry that nobody reads: so
 * they wait among the unexpected ones, whose bounds hold for them, though a receive is posted. Once
 * the program has read entries the buffer gets them, before anything that comes later.
 */
#include "bwf.h"

bool bwf_held_keep(struct bwf_ep *ep, const struct bwf_rx *rx)
{
	if (!rx->multi || !rx->report || !bwf_cq_full(ep->rx_cq, ep->parts))
		return false;
	atomic_store_explicit(&ep->held, true, memory_order_relaxed);
	return true;
}

/* What waits for one buffer; false: the queue is full again. */
static bool bwf_held_give(struct bwf_ep *ep, struct bwf_match *queue, struct bwf_rx *rx)
{
	struct bwf_arrived *arrived;

	while (rx->state == BWF_RX_POSTED &&
	       (arrived = bwf_match_find(queue, rx->posted.peer, rx->posted.tag,
					 rx->posted.ignore))) {
		if (bwf_held_keep(ep, rx))
			return false;
		bwf_rx_take_stored(ep, rx, arrived);
	}
	return true;
}

static bool bwf_held_give_all(struct bwf_ep *ep, struct bwf_match *queue)
{
	struct bwf_posted *p = queue->posted_head;

	while (p) {
		struct bwf_rx *rx = BWF_OF(p, struct bwf_rx, posted);

		p = p->next;
		if (rx->multi && !bwf_held_give(ep, queue, rx))
			return false;
	}
	return true;
}

void bwf_held_resume(struct bwf_ep *ep)
{
	if (!atomic_load_explicit(&ep->held, memory_order_relaxed) ||
	    bwf_cq_full(ep->rx_cq, ep->parts))
		return;
	atomic_store_explicit(&ep->held, false, memory_order_relaxed);
	if (bwf_held_give_all(ep, &ep->msg))
		bwf_held_give_all(ep, &ep->tagged);
}

bool bwf_held_due(struct bwf_ep *ep)
{
	bool due;

	if (!atomic_load_explicit(&ep->held, memory_order_relaxed))
		return false;
	bw_ep_lock(ep->bw);
	due = ep->held && !bwf_cq_full(ep->rx_cq, ep->parts);
	bw_ep_unlock(ep->bw);
	return due;
}
