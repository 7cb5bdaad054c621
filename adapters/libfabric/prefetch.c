// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Long messages of peers that are in no address vector. Whoever says that he has one may never send
 * it, or die: so it is fetched into memory of ours first, and a receive may take it only when its
 * data are there, as if it were a short one. What he sends later waits behind it, in the order in
 * which it came, also if he is inserted meanwhile. If a fetch fails its message stays in the way of
 * these until its sender is given up, or gone; then all of them are dropped.
 */
#include "bwf.h"
#include "count.h"

#include <stdlib.h>

/* Fetches from one peer that are under way at a time: enough for the way to be busy, and no more
 * than its share of what libbeowire has room for. */
#define BWF_PREFETCH_EACH 8

struct bwf_prefetch {
	struct bwf_done done;
	struct bwf_prefetch *before, *after; /* in bwf_ep.prefetches */
	struct bwf_unexpected *of;	     /* the message; NULL: it was dropped meanwhile */
	bool under_way;			     /* `done` will be called */
	char data[];
};

size_t bwf_prefetch_bytes(uint64_t len)
{
	return sizeof(struct bwf_prefetch) + len;
}

const void *bwf_prefetch_data(const struct bwf_prefetch *f)
{
	return f->data;
}

static void bwf_prefetch_free(struct bwf_ep *ep, struct bwf_prefetch *f)
{
	*(f->before ? &f->before->after : &ep->prefetches) = f->after;
	if (f->after)
		f->after->before = f->before;
	free(f);
}

void bwf_prefetch_put(struct bwf_ep *ep, struct bwf_unexpected *u)
{
	struct bwf_prefetch *f = u->prefetch;

	u->prefetch = NULL;
	if (!f->under_way) {
		bwf_prefetch_free(ep, f);
		return;
	}
	ep->peer[u->peer].prefetches--;
	f->of = NULL;
	bw_pull_cancel(ep->bw, u->peer, &f->done); /* it may have ended when this returns */
}

void bwf_prefetch_forget(struct bwf_ep *ep, struct bwf_unexpected *u)
{
	struct bwf_peer *peer = &ep->peer[u->peer];

	if (peer->waiting == u)
		peer->waiting = u->newer;
	if (peer->unasked == u)
		peer->unasked = u->newer;
}

static void bwf_prefetch_go_on(struct bwf_ep *ep, bw_peer_no number);

/* Does a fetch end so with its peer (beowire.h), of whose end the provider is told next? */
static bool bwf_prefetch_of_the_dead(int status)
{
	switch (status) {
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -EKEYREJECTED:
	case -ENOBUFS:
	case -EPROTONOSUPPORT:
	case -EPROTOTYPE:
	case -ESHUTDOWN:
	case -ETIMEDOUT:
		return true;
	default:
		return false;
	}
}

static void bwf_prefetch_pulled(struct bwf_ep *ep, struct bwf_done *done, int status, uint64_t len)
{
	struct bwf_prefetch *f = BWF_OF(done, struct bwf_prefetch, done);
	struct bwf_unexpected *u = f->of;
	bw_peer_no number;

	f->under_way = false;
	if (!u) {
		bwf_prefetch_free(ep, f);
		return;
	}
	number = u->peer;
	ep->peer[number].prefetches--;
	if (!status && len != u->len)
		status = -FI_EIO; /* the sender has less than its envelope says */
	if (status == -ECANCELED || status == -ENOENT) {
		bwf_unread_drop(ep, u); /* the sender has taken it back */
	} else if (status) {
		if (!bwf_prefetch_of_the_dead(status))
			bwf_todo_refuse(ep, number, "does not send what it has announced");
		return;
	} else {
		u->unfetched = false;
	}
	bwf_prefetch_go_on(ep, number);
}

static void bwf_prefetch_start(struct bwf_ep *ep, struct bwf_unexpected *u)
{
	struct bwf_prefetch *f = malloc(bwf_prefetch_bytes(u->len));

	if (!f) {
		bwf_todo_refuse(ep, u->peer, "announces more than there is memory for");
		return;
	}
	*f = (struct bwf_prefetch){
		.done.call = bwf_prefetch_pulled,
		.after = ep->prefetches,
		.of = u,
		.under_way = true,
	};
	if (f->after)
		f->after->before = f;
	ep->prefetches = f;
	u->prefetch = f;
	ep->peer[u->peer].prefetches++;
	bwf_todo_prefetch(ep, u->peer, &u->rndv, f->data, u->len, &f->done);
}

/* Whatever waits for nothing any more arrives, and more is asked for. */
static void bwf_prefetch_go_on(struct bwf_ep *ep, bw_peer_no number)
{
	struct bwf_unexpected *u;

	while ((u = ep->peer[number].waiting) && !u->unfetched) {
		bwf_prefetch_forget(ep, u);
		u->waits = false;
		bwf_rx_arrive(ep, u);
	}
	while (ep->peer[number].prefetches < BWF_PREFETCH_EACH && (u = ep->peer[number].unasked)) {
		ep->peer[number].unasked = u->newer;
		if (u->unfetched)
			bwf_prefetch_start(ep, u);
	}
}

/* Who may have been inserted since is looked for. */
bool bwf_prefetch_due(struct bwf_ep *ep, const struct bw_message *m)
{
	return bwf_peer_source(ep, m->peer) == FI_ADDR_NOTAVAIL;
}

void bwf_prefetch_wait(struct bwf_ep *ep, struct bwf_unexpected *u)
{
	struct bwf_peer *peer = &ep->peer[u->peer];

	u->waits = true;
	if (!peer->waiting)
		peer->waiting = u;
	if (!peer->unasked)
		peer->unasked = u;
	bwf_prefetch_go_on(ep, u->peer);
}

void bwf_prefetch_fail_peer(struct bwf_ep *ep, bw_peer_no number)
{
	while (ep->peer[number].waiting)
		bwf_unread_drop(ep, ep->peer[number].waiting);
}

void bwf_prefetch_free_all(struct bwf_ep *ep)
{
	while (ep->prefetches)
		bwf_prefetch_free(ep, ep->prefetches);
}
