/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is known of one path to a peer: whether it is up, which of several is the best, and what
 * becomes of them when a frame size turns out to pass or not. Its parts: path/.
 */
#include "carry.h"
#include "event.h"
#include "path.h"
#include "peer.h"
#include "pull.h"
#include "reliable.h"
#include "stripe.h"

struct bw_path *bw_path_new(struct bw_engine *e, struct bw_peer *p, uint8_t no)
{
	struct bw_path *t = bw_slab_alloc(&e->paths);

	if (!t)
		return NULL;
	memset(t, 0, sizeof(*t));
	t->owner = p;
	t->no = no;
	return t;
}

void bw_path_init(struct bw_engine *e, struct bw_path *t, const struct bw_link_addr *to)
{
	struct bw_peer *owner = t->owner;
	uint8_t no = t->no;

	memset(t, 0, sizeof(*t));
	t->owner = owner;
	t->no = no;
	t->to = *to;
	t->state = BW_PATH_TRYING;
	t->hello.nonce = bw_nonce(e);
	t->remote_no = BW_PATH_UNKNOWN;
	t->hello.due = true;
	bw_hellos_hasten(&t->hello, e->now);
	t->pn_next = 1;
	t->floor = 1;
	t->rx.got.base = 1;
	t->loss_at = BW_NEVER;
	t->rx.ack_at = BW_NEVER;
	t->reorder = BW_REORDER_MIN;
	t->rtt.guess = BW_RTT_INITIAL;
	t->cc.cwnd = BW_CWND_INITIAL;
	t->cc.pace.until = BW_NEVER;
	t->cc.ssthresh = UINT64_MAX;
	bw_list_init(&t->at);
	bw_list_init(&t->flight);
	bw_list_init(&t->share);
	bw_list_init(&t->lost.late);
}

/* Largest frame that both ends can handle on this path. */
static uint32_t bw_path_ceiling(const struct bw_engine *e, const struct bw_path *t)
{
	uint32_t mtu = e->cfg.link_mtu[t->to.link % 8];

	return t->pmtu.most < mtu ? t->pmtu.most : mtu;
}

void bw_path_up(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	if (t->state == BW_PATH_UP)
		return;
	t->state = BW_PATH_UP;
	t->pto_count = 0;
	bw_pmtu_begin(&t->pmtu, bw_path_ceiling(e, t));
	bw_carry_up(e, p, t);
	bw_path_choose(e, p);
	bw_event_push(e, &t->ev, BW_EV_PATH);
	bw_peer_ready(e, p);
}

void bw_path_answered(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	t->answered = e->now;
	t->ask |= t->pmtu.held;
	t->pmtu.held = false;
	bw_peer_proven(e, p);
}

/* The first link in the host's order; of those in use together, the one that a short message
 * crosses soonest. The one in use stays unless another is clearly better. */
static bool bw_path_better(const struct bw_engine *e, const struct bw_peer *p,
			   const struct bw_path *a, const struct bw_path *b)
{
	uint64_t x, y;

	if (!p->stripes || !bw_stripe_together(e, a, b) || bw_carry_rivals(e, a, b))
		return a->to.link < b->to.link;
	x = bw_stripe_reach(a);
	y = bw_stripe_reach(b);
	if (b == p->path[p->best])
		y -= y / 4;
	else if (a == p->path[p->best])
		x -= x / 4;
	return x < y;
}

/* How many paths are used together, over how many lines. */
static void bw_path_together(struct bw_engine *e, struct bw_peer *p)
{
	uint8_t i, k;

	p->together = p->lines = 0;
	for (i = 0; p->stripes && i < p->npaths; i++) {
		bool other = true; /* a line that none of those before leads over */

		if (p->path[i]->state != BW_PATH_UP ||
		    !bw_stripe_together(e, p->path[i], p->path[p->best]))
			continue;
		for (k = 0; k < i; k++)
			other &= p->path[k]->state != BW_PATH_UP ||
				 !bw_carry_rivals(e, p->path[i], p->path[k]);
		p->together++;
		p->lines += other;
	}
	bw_carry_choose(e, p);
	bw_stripe_update(p);
}

void bw_path_choose(struct bw_engine *e, struct bw_peer *p)
{
	uint8_t i, best = p->npaths;

	for (i = 0; i < p->npaths; i++) {
		if (p->path[i]->state != BW_PATH_UP)
			continue;
		if (best == p->npaths || bw_path_better(e, p, p->path[i], p->path[best]))
			best = i;
	}
	if (best != p->npaths)
		p->best = best;
	bw_path_together(e, p);
	bw_peer_ready(e, p);
}

void bw_path_guess(const struct bw_engine *e, struct bw_path *t)
{
	if (t->hello.sent)
		bw_rtt_bound(&t->rtt, e->now - t->hello.sent);
}

uint64_t bw_path_pto(const struct bw_engine *e, const struct bw_path *t)
{
	uint32_t shift = t->pto_count < 16 ? t->pto_count : 16;

	return bw_min_u64((bw_rtt_pto(&t->rtt) + e->cfg.ack_delay_ns) << shift, BW_PTO_MAX);
}

/* The search for the frame size has come further: there is another size to try, or it has ended. */
static void bw_path_searched(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	if (!t->pmtu.probe)
		bw_event_push(e, &t->ev, BW_EV_PATH);
	bw_peer_ready(e, p);
}

void bw_path_probe_acked(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint32_t size)
{
	if (bw_pmtu_probe_acked(&t->pmtu, size))
		bw_path_searched(e, p, t);
}

void bw_path_probe_lost(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint32_t size,
			bool later)
{
	bool present = size == t->pmtu.probe, further = bw_pmtu_probe_lost(&t->pmtu, size, later);

	if (present) /* a short packet behind the next try: is it the size, or silence? */
		t->ask = !further;
	bw_peer_ready(e, p);
	if (further)
		bw_path_searched(e, p, t);
}

void bw_path_size_lost(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint32_t size)
{
	if (!bw_pmtu_lost(&t->pmtu, size))
		return;
	bw_event_push(e, &t->ev, BW_EV_PATH);
	bw_path_searched(e, p, t);
}
