// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Looking at messages before receiving them: FI_PEEK tells what is there, FI_CLAIM takes it out of
 * the queue for a later receive with the same context, FI_DISCARD drops it.
 */
#include "bwf.h"

void bwf_rx_discard(struct bwf_ep *ep, struct bwf_unexpected *u)
{
	if (u->envelope) {
		bwf_early_drop(ep, u->peer, &u->rndv);
		bwf_todo_pull(ep, u->peer, &u->rndv, NULL, 0, NULL);
	}
	bwf_unexpected_put(ep, u);
}

static void bwf_rx_report_peek(struct bwf_ep *ep, const struct bwf_rx_args *a,
			       const struct bwf_unexpected *u, int err)
{
	struct bwf_cqe e = {
		.context = a->context,
		.flags = FI_RECV | FI_TAGGED,
		.tag = a->tag,
		.src = FI_ADDR_NOTAVAIL,
		.err = err,
	};

	if (u) {
		e.len = u->len;
		e.tag = u->arrived.tag;
		if (u->code & BWF_CODE_DATA) {
			e.data = u->imm;
			e.flags |= FI_REMOTE_CQ_DATA;
		}
		if (ep->source)
			e.src = bwf_peer_source(ep, u->peer);
	}
	bwf_cq_push(ep->rx_cq, &e);
}

/* `last`: report that there is nothing; else only return 1 then. */
static ssize_t bwf_rx_peek_locked(struct bwf_ep *ep, const struct bwf_rx_args *a, bool last)
{
	struct bwf_unexpected *u = NULL;
	struct bwf_arrived *arrived;
	uint32_t peer;
	int ret = bwf_rx_source(ep, a, &peer);

	if (ret)
		return ret;
	if (!ep->rx_cq) /* counters alone: nowhere to tell what there is */
		return -FI_EOPBADSTATE;
	bwf_held_resume(ep);
	if (bwf_cq_full(ep->rx_cq, 0))
		return -FI_EAGAIN;
	arrived = bwf_match_find(&ep->tagged, peer, a->tag, a->ignore);
	if (!arrived && !last)
		return 1;
	if (!arrived) {
		ret = -bwf_peer_hopeless(ep, peer);
		bwf_rx_report_peek(ep, a, NULL, ret ? ret : FI_ENOMSG);
		return 0;
	}
	u = BWF_OF(arrived, struct bwf_unexpected, arrived);
	bwf_rx_report_peek(ep, a, u, 0);
	if (!(a->flags & (FI_CLAIM | FI_DISCARD)))
		return 0;
	bwf_match_unstore(&ep->tagged, arrived);
	if (a->flags & FI_DISCARD) {
		bwf_rx_discard(ep, u);
	} else {
		u->claimed_by = a->context;
		u->claimed = true;
		ep->peer[u->peer].claimed++;
		u->next = ep->claimed;
		ep->claimed = u;
	}
	return 0;
}

/* A program that only peeks would never see a message come: peeking makes progress. */
ssize_t bwf_rx_peek(struct bwf_ep *ep, const struct bwf_rx_args *a)
{
	ssize_t ret;

	bw_ep_lock(ep->bw);
	ret = bwf_rx_peek_locked(ep, a, false);
	bw_ep_unlock(ep->bw);
	if (ret != 1)
		return ret;
	bwf_ep_progress(ep);
	bw_ep_lock(ep->bw);
	ret = bwf_rx_peek_locked(ep, a, true);
	bw_ep_unlock(ep->bw);
	return ret;
}

static ssize_t bwf_rx_claimed_locked(struct bwf_ep *ep, const struct bwf_rx_args *a)
{
	struct bwf_unexpected **at = &ep->claimed, *u;
	struct bw_message m;
	struct bwf_rx *rx;

	while (*at && (*at)->claimed_by != a->context)
		at = &(*at)->next;
	u = *at;
	if (!u)
		return -FI_EINVAL;
	if (!ep->rx_cq)
		return -FI_EOPBADSTATE;
	rx = bwf_cq_full(ep->rx_cq, 0) ? NULL : bwf_rx_new(ep);
	if (!rx)
		return -FI_EAGAIN;
	*at = u->next;
	if (a->flags & FI_DISCARD) {
		bwf_rx_report_peek(ep, a, u, 0);
		bwf_rx_put(ep, rx);
		bwf_rx_discard(ep, u);
		return 0;
	}
	bwf_rx_set(ep, rx, a, true);
	bwf_unexpected_message(u, &m);
	bwf_rx_deliver(ep, rx, &m);
	bwf_unexpected_put(ep, u);
	return 0;
}

ssize_t bwf_rx_claimed(struct bwf_ep *ep, const struct bwf_rx_args *a)
{
	ssize_t ret;

	if (a->n > BWF_IOV_MAX)
		return -FI_EINVAL;
	bw_ep_lock(ep->bw);
	ret = bwf_rx_claimed_locked(ep, a);
	bw_ep_unlock(ep->bw);
	return ret;
}
