/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Several paths that carry pulled data together. Each path that has room sets aside a share of what
 * is to be sent, in proportion to the rate at which it delivers, and sends it in one piece after the
 * other: so the receiver sees few gaps however unequal the paths are. Shares shrink towards the end
 * (guided self-scheduling, Polychronopoulos and Kuck 1987), a path that is done takes over from the
 * one that would end last, and none takes what the others together would have delivered earlier. In
 * the end ranges that are under way on a slow path are sent again by a faster one.
 */
#include "reliable.h"

#define BW_STRIPE_LOOK	4  /* serves looked at for how much there is to send */
#define BW_STRIPE_TURN	32 /* frames of a share where several serves take turns */
#define BW_STRIPE_LEAST 4  /* frames of a share, if there is so much */
#define BW_STRIPE_MOST	UINT32_MAX /* bytes to send beyond which it makes no difference */

bool bw_stripe_together(const struct bw_engine *e, const struct bw_path *a,
			const struct bw_path *b)
{
	uint8_t group = e->cfg.link_group[a->to.link % 8];

	return group && group == e->cfg.link_group[b->to.link % 8];
}

/* Bytes that the path delivers in a millisecond: measured, or else what its window allows. */
static uint64_t bw_stripe_rate(const struct bw_path *t)
{
	uint64_t rate = t->rate ? t->rate : t->cwnd * BW_MS / (t->srtt ? t->srtt : BW_RTT_INITIAL);

	return bw_max_u64(rate, 1);
}

static uint64_t bw_stripe_rtt(const struct bw_path *t)
{
	return t->rtt_min ? t->rtt_min : BW_RTT_INITIAL;
}

/* Time at which the last of so many bytes under way arrives, from now: half a round trip of what
 * has not been acknowledged has arrived already. */
static uint64_t bw_stripe_arrival(const struct bw_path *t, uint64_t bytes)
{
	uint64_t ns = bytes * BW_MS / bw_stripe_rate(t), rtt = bw_stripe_rtt(t);

	return ns > rtt ? ns - rtt / 2 : rtt / 2;
}

/* The same of `len` bytes that leave now. */
static uint64_t bw_stripe_eta(const struct bw_path *t, uint64_t len)
{
	return bw_max_u64(bw_stripe_arrival(t, t->inflight + len),
			  bw_stripe_rtt(t) / 2 + len * BW_MS / bw_stripe_rate(t));
}

uint64_t bw_stripe_reach(const struct bw_path *t)
{
	if (t->pto_count >= BW_PTO_MOVE)
		return BW_NEVER;
	return bw_stripe_rtt(t) + 2ull * BW_FRAME_MIN_MTU * BW_MS / bw_stripe_rate(t);
}

/* Does data go by this path? One that does not answer gets nothing but probes. */
static bool bw_stripe_usable(const struct bw_engine *e, const struct bw_peer *p,
			     const struct bw_path *t)
{
	return t->state == BW_PATH_UP && !t->pto_count &&
	       bw_stripe_together(e, t, &p->path[p->best]);
}

/* The fastest path fills its window. On the others no longer queue than on that one is of use:
 * it would only hold up the end of messages. */
uint64_t bw_stripe_limit(const struct bw_engine *e, const struct bw_peer *p,
			 const struct bw_path *t)
{
	uint64_t rate = bw_stripe_rate(t), ns = 0;
	uint8_t i;

	for (i = 0; i < p->npaths; i++) {
		const struct bw_path *o = &p->path[i];

		if (o == t || bw_stripe_rate(o) <= rate || !bw_stripe_usable(e, p, o))
			continue;
		ns = bw_max_u64(ns, o->inflight * BW_MS / bw_stripe_rate(o));
	}
	if (!ns || !t->rate)
		return t->cwnd;
	ns += bw_stripe_rtt(t) * 3 / 2 + e->cfg.ack_delay_ns + BW_STRIPE_SLACK;
	return bw_min_u64(t->cwnd, rate * ns / BW_MS + BW_STRIPE_FRAMES * t->mtu);
}

static bool bw_stripe_room(const struct bw_engine *e, const struct bw_peer *p, struct bw_path *t)
{
	if (t->inflight >= t->cwnd) {
		t->limited_pn = t->pn_next;
		return false;
	}
	return t->inflight < bw_stripe_limit(e, p, t);
}

/* The usable path with room by which a frame would be there first, except those in `tried`. */
static struct bw_path *bw_stripe_pick(const struct bw_engine *e, struct bw_peer *p, uint32_t tried)
{
	struct bw_path *best = NULL;
	uint64_t least = 0;
	uint8_t i;

	for (i = 0; i < p->npaths; i++) {
		struct bw_path *t = &p->path[i];
		uint64_t eta;

		if (tried >> i & 1 || !bw_stripe_usable(e, p, t) || !bw_stripe_room(e, p, t))
			continue;
		eta = bw_stripe_eta(t, t->mtu);
		if (!best || eta < least) {
			best = t;
			least = eta;
		}
	}
	return best;
}

static uint64_t bw_stripe_bytes(const struct bw_list *share)
{
	const struct bw_list *l;
	uint64_t bytes = 0;

	for (l = share->next; l != share; l = l->next)
		bytes += bw_entry(l, struct bw_record, list)->len;
	return bytes;
}

/* Bytes to be sent that are set aside for no path. */
static uint64_t bw_stripe_waiting(const struct bw_peer *p)
{
	const struct bw_list *l = p->serving.next;
	uint64_t bytes = bw_stripe_bytes(&p->spare);
	uint32_t n;

	for (n = 0; n < BW_STRIPE_LOOK && l != &p->serving; n++, l = l->next) {
		const struct bw_serve *s = bw_entry(l, struct bw_serve, turn);

		bytes += bw_min_u64(s->len - s->next_off, BW_STRIPE_MOST);
	}
	return bw_min_u64(bytes, BW_STRIPE_MOST);
}

/* What the other paths can do meanwhile. */
struct bw_stripe_others {
	uint64_t rate, bytes; /* together: bytes a millisecond; bytes under way and set aside */
	uint64_t eta;	      /* when a frame would be there by the first of them */
	uint64_t rtt;	      /* the shortest */
};

static struct bw_stripe_others bw_stripe_beside(const struct bw_engine *e, const struct bw_peer *p,
						const struct bw_path *t)
{
	struct bw_stripe_others o = {.eta = BW_NEVER, .rtt = BW_NEVER};
	uint8_t i;

	for (i = 0; i < p->npaths; i++) {
		const struct bw_path *other = &p->path[i];

		if (other == t || !bw_stripe_usable(e, p, other))
			continue;
		o.rate += bw_stripe_rate(other);
		o.bytes += other->inflight + bw_stripe_bytes(&other->share);
		o.eta = bw_min_u64(o.eta, bw_stripe_eta(other, other->mtu));
		o.rtt = bw_min_u64(o.rtt, bw_stripe_rtt(other));
	}
	return o;
}

/* Would the others have delivered all that waits before a frame by this path were there? Then it is
 * better left to them, though they may have no room at this moment. */
static bool bw_stripe_late(const struct bw_path *t, const struct bw_stripe_others *o,
			   uint64_t waiting)
{
	uint64_t eta = bw_stripe_eta(t, t->mtu);

	return o->rate && o->eta < eta &&
	       (o->bytes + waiting) * BW_MS / o->rate + o->rtt / 2 < eta;
}

/* Set aside the next bytes of the serve whose turn it is. */
static struct bw_record *bw_stripe_assign(struct bw_engine *e, struct bw_peer *p,
					  struct bw_path *t, uint32_t room, uint64_t waiting,
					  const struct bw_stripe_others *o)
{
	struct bw_serve *s = bw_first(&p->serving, struct bw_serve, turn);
	bool alone = p->serving.next == p->serving.prev;
	uint64_t rate = bw_stripe_rate(t), left = s->len - s->next_off;
	uint64_t most = alone ? bw_stripe_limit(e, p, t) : BW_STRIPE_TURN * room;
	uint64_t len = waiting * rate / (2 * (rate + o->rate));
	struct bw_record *r;

	len = bw_min_u64(bw_max_u64(len, BW_STRIPE_LEAST * room), bw_max_u64(most, room));
	len = bw_min_u64(len - len % room, left);
	r = bw_record_new(e, BW_OWNED_BULK, s, s->next_off, (uint32_t)len);
	if (!r)
		return NULL;
	s->refs++;
	s->next_off += len;
	p->aside++;
	p->serve_turn = 0;
	bw_list_add_before(&t->share, &r->list);
	bw_list_del(&s->turn);
	if (s->next_off < s->len)
		bw_list_add_before(&p->serving, &s->turn);
	return r;
}

/* The share that would be delivered last, and when; of another path than t. */
static struct bw_record *bw_stripe_last(const struct bw_engine *e, const struct bw_peer *p,
					const struct bw_path *t, uint64_t *eta, uint64_t *rate)
{
	struct bw_record *last = NULL;
	uint8_t i;

	*eta = 0;
	for (i = 0; i < p->npaths; i++) {
		const struct bw_path *o = &p->path[i];
		uint64_t at;

		if (o == t || bw_list_empty(&o->share))
			continue;
		at = bw_stripe_usable(e, p, o) ? bw_stripe_eta(o, bw_stripe_bytes(&o->share))
					       : BW_NEVER;
		if (at < *eta)
			continue;
		last = bw_entry(o->share.prev, struct bw_record, list);
		*eta = at;
		*rate = at == BW_NEVER ? 0 : bw_stripe_rate(o);
	}
	return last;
}

/* Nothing waits any more: take over what another path would deliver later. */
static struct bw_record *bw_stripe_take_over(struct bw_engine *e, struct bw_peer *p,
					     struct bw_path *t, uint32_t room)
{
	uint64_t eta, rate = 0, take;
	struct bw_record *r = bw_stripe_last(e, p, t, &eta, &rate), *part;

	if (!r)
		return NULL;
	take = r->len * bw_stripe_rate(t) / (bw_stripe_rate(t) + rate);
	take = r->len - bw_min_u64((r->len - take + room - 1) / room * room, r->len);
	if (!rate || !take)
		take = r->len;
	if (bw_stripe_eta(t, take) >= eta)
		return NULL;
	if (take < r->len) {
		part = bw_record_new(e, BW_OWNED_BULK, r->obj, r->off + r->len - take,
				     (uint32_t)take);
		if (!part)
			return NULL;
		((struct bw_serve *)r->obj)->refs++;
		p->aside++;
		r->len -= (uint32_t)take;
		r = part;
	}
	bw_list_del(&r->list);
	bw_list_add_before(&t->share, &r->list);
	return r;
}

struct bw_record *bw_stripe_next(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
				 uint32_t room)
{
	uint64_t waiting = bw_stripe_waiting(p);
	struct bw_stripe_others o;
	struct bw_record *r;

	if (!bw_list_empty(&t->share))
		return bw_first(&t->share, struct bw_record, list);
	if (!waiting)
		return bw_stripe_take_over(e, p, t, room);
	o = bw_stripe_beside(e, p, t);
	if (bw_stripe_late(t, &o, waiting))
		return NULL;
	if (bw_list_empty(&p->spare))
		return bw_stripe_assign(e, p, t, room, waiting, &o);
	r = bw_first(&p->spare, struct bw_record, list);
	bw_list_del(&r->list);
	bw_list_add_before(&t->share, &r->list);
	return r;
}

/* The range last sent by this path that has not moved yet; *after: bytes sent later. */
static struct bw_record *bw_stripe_tail(const struct bw_path *t, uint64_t *after)
{
	struct bw_list *l;

	*after = 0;
	for (l = t->flight.prev; l != &t->flight; l = l->prev) {
		struct bw_record *r = bw_entry(l, struct bw_record, list);

		if (r->kind == BW_OWNED_BULK && !((struct bw_serve *)r->obj)->aborted)
			return r;
		*after += r->frame_len;
	}
	return NULL;
}

/* Everything is under way. The range that would arrive last moves to a path by which it would
 * arrive clearly earlier: it is sent again there, and only its packet stays. */
static struct bw_path *bw_stripe_hurry(struct bw_engine *e, struct bw_peer *p)
{
	struct bw_path *fast = bw_stripe_pick(e, p, 0), *slow = NULL;
	struct bw_record *r = NULL, *again;
	uint64_t eta = 0;
	uint8_t i;

	if (!fast || p->aside || !bw_list_empty(&p->serving) || !bw_list_empty(&p->again))
		return NULL;
	for (i = 0; i < p->npaths; i++) {
		struct bw_path *t = &p->path[i];
		struct bw_record *tail;
		uint64_t after, at;

		tail = t == fast ? NULL : bw_stripe_tail(t, &after);
		if (!tail)
			continue;
		at = bw_stripe_usable(e, p, t) ? bw_stripe_arrival(t, t->inflight - after)
					       : BW_NEVER;
		if (at > eta) {
			eta = at;
			slow = t;
			r = tail;
		}
	}
	if (!slow || eta - eta / 4 < bw_stripe_eta(fast, r->len) + BW_PTO_MIN)
		return NULL;
	again = bw_record_new(e, BW_OWNED_BULK, r->obj, r->off, r->len);
	if (!again)
		return NULL;
	bw_list_add_before(&p->again, &again->list); /* its reference is now the new record's */
	r->kind = BW_OWNED_MOVED;
	r->obj = NULL;
	return fast;
}

/* Questions about the frame size, and whether a path still carries anything. */
static bool bw_stripe_probe(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f)
{
	uint8_t i;

	for (i = 0; i < p->npaths; i++) {
		struct bw_path *t = &p->path[i];

		if ((t->ask || (t->probe_size && !t->probe_flying)) &&
		    bw_stripe_together(e, t, &p->path[p->best]) && bw_send_by(e, p, t, 0, f))
			return true;
	}
	return false;
}

static bool bw_stripe_data(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f)
{
	struct bw_path *t;
	uint32_t tried = 0;

	while ((t = bw_stripe_pick(e, p, tried))) {
		if (bw_send_by(e, p, t, BW_SEND_AGAIN | BW_SEND_BULK, f))
			return true;
		t->lax = true;
		tried |= 1u << (t - p->path);
	}
	t = bw_stripe_hurry(e, p);
	return t && bw_send_by(e, p, t, BW_SEND_AGAIN, f);
}

bool bw_stripe_frame(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f)
{
	struct bw_path *best = &p->path[p->best];
	bool turn = p->eager_turn >= BW_EAGER_TURN &&
		    (!bw_list_empty(&p->serving) || p->aside);
	uint8_t i;

	if (bw_stripe_probe(e, p, f))
		return true;
	for (i = 0; i < p->npaths && !bw_stripe_usable(e, p, &p->path[i]); i++)
		;
	if (i == p->npaths) /* all are silent: the peer is busy, or gone */
		return bw_send_by(e, p, best, BW_SEND_ALL, f);
	if (!bw_list_empty(&p->again) && bw_stripe_data(e, p, f))
		return true;
	if (!turn && bw_send_by(e, p, best, BW_SEND_MESSAGES, f))
		return true;
	if (bw_stripe_data(e, p, f))
		return true;
	return turn && bw_send_by(e, p, best, BW_SEND_MESSAGES, f);
}

void bw_stripe_acked(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint64_t bytes)
{
	uint64_t ns = e->now - t->rate_since, rate;

	t->delivered += bytes;
	t->lax |= !t->inflight;
	if (t->acked_max < t->rate_pn || (t->rate_since && ns < BW_STRIPE_ROUND))
		return;
	if (t->rate_since && ns) {
		rate = (t->delivered - t->rate_from) * BW_MS / ns;
		if (t->lax)
			t->rate = bw_max_u64(t->rate - t->rate / 64, rate);
		else
			t->rate = t->rate ? t->rate - t->rate / 4 + rate / 4 : rate;
	}
	t->rate_pn = t->pn_next;
	t->rate_since = e->now;
	t->rate_from = t->delivered;
	t->lax = false;
	bw_path_choose(e, p);
}

void bw_stripe_leave(struct bw_peer *p, struct bw_path *t)
{
	while (!bw_list_empty(&t->share)) {
		struct bw_list *l = t->share.next;

		bw_list_del(l);
		bw_list_add_before(&p->spare, l);
	}
}

void bw_stripe_doubt(struct bw_engine *e, struct bw_peer *p, struct bw_path *t)
{
	bool heard = false;
	uint8_t i;

	t->ask = true;
	for (i = 0; i < p->npaths; i++) {
		struct bw_path *o = &p->path[i];

		if (o == t || o->state != BW_PATH_UP || !bw_stripe_together(e, o, t))
			continue;
		heard |= o->heard > t->pto_since;
		o->ask |= o->heard <= t->pto_since && bw_list_empty(&o->flight);
	}
	if (!heard || t->pto_count < BW_PTO_MOVE)
		return;
	bw_loss_requeue_path(e, p, t);
	bw_stripe_leave(p, t);
	t->large_lost = 0; /* not for their size */
	t->ssthresh = bw_min_u64(t->ssthresh, t->cwnd);
	t->cwnd = bw_min_u64(t->cwnd, BW_CWND_INITIAL);
	t->rate = t->rate_since = 0;
	bw_path_choose(e, p);
}

void bw_stripe_retry(struct bw_engine *e, struct bw_peer *p)
{
	uint8_t i;

	for (i = 0; p->stripes && i < p->npaths; i++) {
		struct bw_path *t = &p->path[i];

		if (t->state == BW_PATH_TRYING && bw_stripe_together(e, t, &p->path[p->best]))
			t->hello_next = bw_min_u64(t->hello_next, e->now + BW_HELLO_LAST);
	}
}

static bool bw_stripe_of(const struct bw_list *l, const struct bw_serve *s)
{
	return bw_entry(l, const struct bw_record, list)->obj == s;
}

uint64_t bw_stripe_unsent(const struct bw_peer *p, const struct bw_serve *s)
{
	const struct bw_list *list = &p->spare, *l;
	uint64_t bytes = 0;
	uint8_t i;

	if (!p->aside)
		return 0;
	for (i = 0; i <= p->npaths; i++) {
		for (l = list->next; l != list; l = l->next)
			if (bw_stripe_of(l, s))
				bytes += bw_entry(l, const struct bw_record, list)->len;
		list = &p->path[i % BW_PATHS_MAX].share;
	}
	return bytes;
}

void bw_stripe_forget(struct bw_engine *e, struct bw_peer *p, const struct bw_serve *s)
{
	struct bw_list *list = &p->spare, *l, *next;
	uint8_t i;

	for (i = 0; p->aside && i <= p->npaths; i++) {
		for (l = list->next; l != list; l = next) {
			next = l->next;
			if (!bw_stripe_of(l, s))
				continue;
			bw_record_forget(e, bw_entry(l, struct bw_record, list));
			p->aside--;
		}
		list = &p->path[i % BW_PATHS_MAX].share;
	}
}
