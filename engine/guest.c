/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Guests: peers that called, and that our host has not named. As long as the host gives memory, at
 * once or later, they stay. Once it has said that it has none each new one needs the place of
 * another: first of one of whom nothing has come, the oldest first, then of one that has been idle
 * for long and that the host says nobody needs.
 */
#include "farewell.h"
#include "guest.h"
#include "named.h"
#include "peer.h"
#include "reliable.h"

#define BW_GUEST_IDLE  BW_S /* who was heard of more recently is not idle */
#define BW_GUEST_LOOKS 8    /* at idle ones, for each caller that there is no room for */

/* Has the host never meant this peer, and never got anything of it? Who has several flows has sent
 * something: each is made by a message. */
static bool bw_guest_useless(const struct bw_peer *p)
{
	if (p->watch || p->control.tx_next || p->control_seen_base || p->control_seen[0] ||
	    !bw_list_empty(&p->regions) || !bw_list_empty(&p->serves))
		return false;
	return !p->app.tx_next && !p->app.rx_next && !p->app.next && !bw_named(p);
}

void bw_guest_dismiss(struct bw_engine *e, struct bw_peer *p)
{
	bw_farewell_bid_bye(e, p, false);
	bw_peer_down(e, p, BW_DOWN_EVICTED);
	e->count.evicted++;
}

bool bw_guest_gives_way(struct bw_engine *e, struct bw_peer *p)
{
	if (p->state == BW_PEER_DOWN || !bw_guest_useless(p))
		return false;
	bw_guest_dismiss(e, p);
	return true;
}

/* Is nothing of the host's under way between us, and all that came taken? */
static bool bw_guest_quiet(const struct bw_peer *p)
{
	return !p->arriving && !p->asked && p->rx_used == p->rx_taken && !p->gone_at &&
	       bw_list_empty(&p->pulls) && bw_list_empty(&p->txmsgs) &&
	       bw_list_empty(&p->controls) && bw_list_empty(&p->given_up) &&
	       bw_list_empty(&p->regions) && bw_list_empty(&p->serves) && !bw_named(p);
}

/* When something of it came last. */
static uint64_t bw_guest_heard(const struct bw_peer *p)
{
	uint64_t at = 0;
	uint8_t i;

	for (i = 0; i < p->npaths; i++)
		at = bw_max_u64(at, bw_max_u64(p->path[i]->rx.max_ns, p->path[i]->hello.heard));
	return at;
}

struct bw_peer *bw_guest_idler(struct bw_engine *e, struct bw_peer *p, struct bw_peer *than)
{
	if (!bw_ops(e)->needed || p->state == BW_PEER_DOWN || !bw_guest_quiet(p) ||
	    (than && bw_guest_heard(than) <= bw_guest_heard(p)))
		return than;
	return bw_ops(e)->needed(e->host, p->handle) ? than : p;
}

/* The idlest of some that nobody needs makes room. They take turns in being looked at: a caller
 * costs no more if there are many. */
static void bw_guest_dismiss_idle(struct bw_engine *e)
{
	struct bw_peer *idlest = NULL, *p;
	struct bw_list *last = e->guests.prev;
	uint32_t n;

	for (n = 0; n < BW_GUEST_LOOKS && !bw_list_empty(&e->guests); n++) {
		p = bw_first(&e->guests, struct bw_peer, caller);
		bw_list_del(&p->caller);
		bw_list_add_before(&e->guests, &p->caller);
		if (e->now >= bw_guest_heard(p) + BW_GUEST_IDLE && !bw_peer_waits(p))
			idlest = bw_guest_idler(e, p, idlest);
		if (&p->caller == last)
			break;
	}
	if (idlest)
		bw_guest_dismiss(e, idlest);
}

void bw_guest_make_room(struct bw_engine *e)
{
	uint32_t left;

	if (!e->crowded)
		return;
	for (left = e->cfg.piece; left && !bw_list_empty(&e->callers); left--) {
		struct bw_peer *p = bw_first(&e->callers, struct bw_peer, caller);

		if (bw_guest_gives_way(e, p))
			return;
		bw_list_del(&p->caller); /* for good: something has come of it */
		bw_list_add_before(&e->guests, &p->caller);
	}
	bw_guest_dismiss_idle(e);
}

struct bw_peer *bw_guest_new(struct bw_engine *e)
{
	struct bw_peer *p = bw_peer_new(e);

	if (p)
		bw_list_add_before(&e->callers, &p->caller);
	else
		bw_guest_make_room(e);
	return p;
}
