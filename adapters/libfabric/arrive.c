// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Messages that come: to the receive that fits, or to those that wait for one, or first to wait for
 * what has to be there before (prefetch.c).
 */
#include "bwf.h"
#include "count.h"

/* The receive that gets a message now, or NULL. */
static struct bwf_rx *bwf_rx_target(struct bwf_ep *ep, const struct bwf_match *queue, uint32_t peer,
				    uint64_t tag)
{
	struct bwf_posted *p = bwf_match_target(queue, peer, tag);
	struct bwf_rx *rx = p ? BWF_OF(p, struct bwf_rx, posted) : NULL;

	return rx && !bwf_held_keep(ep, rx) ? rx : NULL;
}

void bwf_rx_message(struct bwf_ep *ep, const struct bw_message *m)
{
	bool tagged = (m->code & BWF_CODE_MASK) == BWF_CODE_TAGGED;
	struct bwf_match *queue = bwf_rx_queue(ep, tagged);
	bool prefetched = m->envelope && bwf_prefetch_due(ep, m);
	bool waits = prefetched || ep->peer[m->peer].waiting;
	struct bwf_unexpected *u;
	struct bwf_rx *rx;

	bwf_held_resume(ep);
	rx = waits ? NULL : bwf_rx_target(ep, queue, m->peer, tagged ? m->tag : 0);
	if (rx) {
		bwf_rx_deliver(ep, rx, m);
		return;
	}
	if (!bwf_unexpected_admits(ep, m, prefetched)) {
		bw_count_event(ep->bw, BW_COUNT_MESSAGES_LOST);
		bwf_peer_refuse(ep, m->peer, "sends more than may wait for a receive");
		return;
	}
	u = bwf_unexpected_new(ep, m, prefetched);
	if (!u) {
		bwf_rx_lost(ep, m);
		return;
	}
	if (waits) {
		bwf_prefetch_wait(ep, u);
	} else {
		bwf_match_store(queue, &u->arrived);
		bwf_early_begin(ep, m);
	}
	if (ep->unexpected.strangers > ep->unexpected.strangers_max)
		bwf_stranger_make_room(ep);
}

void bwf_rx_arrive(struct bwf_ep *ep, struct bwf_unexpected *u)
{
	struct bwf_match *queue = bwf_rx_queue(ep, (u->code & BWF_CODE_MASK) == BWF_CODE_TAGGED);
	struct bw_message m;
	struct bwf_rx *rx;

	bwf_held_resume(ep);
	rx = bwf_rx_target(ep, queue, u->peer, u->arrived.tag);
	if (!rx) {
		bwf_match_store(queue, &u->arrived);
		return;
	}
	bwf_unexpected_message(u, &m);
	bwf_rx_deliver(ep, rx, &m);
	bwf_unexpected_put(ep, u);
}
