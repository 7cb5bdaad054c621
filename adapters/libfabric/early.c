// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Long messages that are fetched before their receive is posted, where the way from their sender is
 * so slow that a copy more costs little (libbeowire decides). A program that receives from several
 * slow peers, one after another, then waits for all of them at once, as it would with what sockets
 * have in their buffers [D3]. The sender is released when a receive takes the message, so that a
 * synchronous send tells the truth. All with the endpoint's lock held.
 */
#include "bwf.h"

#include <stdlib.h>

struct bwf_early {
	struct bwf_done done;
	struct bwf_early *next;
	struct bwf_rx *rx;   /* the receive that waits for the end; or NULL */
	struct bw_rndv rndv; /* names the message */
	uint32_t peer;
	bool over;    /* data are there */
	bool dropped; /* nobody wants it any more */
	int status;
	size_t len;
	char data[];
};

static void bwf_early_free(struct bwf_ep *ep, struct bwf_early *early)
{
	struct bwf_early **at = &ep->early;

	while (*at != early)
		at = &(*at)->next;
	*at = early->next;
	if (!early->next)
		ep->early_end = at;
	ep->peer[early->peer].early--;
	bwf_unexpected_release(ep, sizeof(*early) + early->len);
	free(early);
}

/* The receive gets the data, the sender its buffer. */
static void bwf_early_hand_over(struct bwf_ep *ep, struct bwf_early *early)
{
	struct bwf_rx *rx = early->rx;

	bwf_todo_pull(ep, early->peer, &early->rndv, NULL, 0, NULL);
	bwf_rx_fill(ep, rx, early->data, early->len, early->status);
	bwf_early_free(ep, early);
}

static void bwf_early_pulled(struct bwf_ep *ep, struct bwf_done *done, int status, uint64_t len)
{
	struct bwf_early *early = BWF_OF(done, struct bwf_early, done);

	early->over = true;
	early->status = !status && len != early->len ? -FI_EIO : status;
	if (early->dropped || (early->status && !early->rx)) /* who takes it then fails by itself */
		bwf_early_free(ep, early);
	else if (early->rx)
		bwf_early_hand_over(ep, early);
}

void bwf_early_begin(struct bwf_ep *ep, const struct bw_message *m)
{
	struct bwf_early *early;

	if (!m->envelope || !m->len || m->len > BWF_MESSAGE_MAX ||
	    bw_pull_early(ep->bw, m->peer, &m->rndv, NULL, m->len, NULL) ||
	    !bwf_unexpected_reserve(ep, sizeof(*early) + m->len))
		return;
	early = malloc(sizeof(*early) + m->len);
	if (early) {
		*early = (struct bwf_early){
			.done.call = bwf_early_pulled,
			.rndv = m->rndv,
			.peer = m->peer,
			.len = m->len,
		};
		if (!bw_pull_early(ep->bw, m->peer, &m->rndv, early->data, m->len, &early->done)) {
			*ep->early_end = early;
			ep->early_end = &early->next;
			ep->peer[early->peer].early++;
			return;
		}
		free(early);
	}
	bwf_unexpected_release(ep, sizeof(*early) + m->len);
}

static struct bwf_early *bwf_early_find(struct bwf_ep *ep, uint32_t peer,
					const struct bw_rndv *rndv)
{
	struct bwf_early *early = ep->early;

	while (early && (early->peer != peer || early->dropped || early->rx ||
			 memcmp(&early->rndv, rndv, sizeof(*rndv)) != 0))
		early = early->next;
	return early;
}

bool bwf_early_take(struct bwf_ep *ep, struct bwf_rx *rx, const struct bw_message *m)
{
	struct bwf_early *early = bwf_early_find(ep, m->peer, &m->rndv);

	if (!early)
		return false;
	early->rx = rx;
	if (early->over)
		bwf_early_hand_over(ep, early);
	return true;
}

void bwf_early_drop(struct bwf_ep *ep, uint32_t peer, const struct bw_rndv *rndv)
{
	struct bwf_early *early = bwf_early_find(ep, peer, rndv);

	if (!early)
		return;
	early->dropped = true;
	if (early->over)
		bwf_early_free(ep, early);
}

void bwf_early_free_all(struct bwf_ep *ep)
{
	while (ep->early) {
		struct bwf_early *early = ep->early;

		ep->early = early->next;
		free(early);
	}
}
