/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What of pulled data is set aside for which path. Each path that has room sets aside a share of
 * what is to be sent, in proportion to the rate at which it delivers, and sends it piece by piece:
 * so the receiver sees few gaps however unequal the paths are. Shares shrink towards the end
 * (guided self-scheduling, Polychronopoulos and Kuck 1987), a path that is done takes over from the
 * one that would end last, and none takes what the others together would have delivered earlier.
 */
#include "loss.h"
#include "reliable.h"
#include "send.h"
#include "stripe.h"

#define BW_STRIPE_LOOK	4	   /* serves looked at for how much there is to send */
#define BW_STRIPE_TURN	32	   /* frames of a share where several serves take turns */
#define BW_STRIPE_LEAST 4	   /* frames of a share, if there is so much */
#define BW_STRIPE_MOST	UINT32_MAX /* bytes to send beyond which it makes no difference */

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
		const struct bw_path *other = p->path[i];

		if (other == t || !bw_stripe_carries(e, p, other))
			continue;
		o.rate += bw_stripe_rate(other);
		o.bytes += other->inflight + bw_stripe_bytes(&other->share);
		o.eta = bw_min_u64(o.eta, bw_stripe_eta(other, other->pmtu.mtu));
		o.rtt = bw_min_u64(o.rtt, bw_stripe_rtt(other));
	}
	return o;
}

/* Would the others have delivered all that waits before a frame by this path were there? Then it is
 * better left to them, though they may have no room at this moment. */
static bool bw_stripe_late(const struct bw_path *t, const struct bw_stripe_others *o,
			   uint64_t waiting)
{
	uint64_t eta = bw_stripe_eta(t, t->pmtu.mtu);

	return o->rate && o->eta < eta && (o->bytes + waiting) * BW_MS / o->rate + o->rtt / 2 < eta;
}

/* Set aside the next bytes of the serve whose turn it is. */
static struct bw_record *bw_stripe_assign(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
					  uint32_t room, uint64_t waiting,
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
	r = bw_record_new(e, p, BW_OWNED_BULK, s, s->next_off, (uint32_t)len);
	if (!r)
		return NULL;
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
		const struct bw_path *o = p->path[i];
		uint64_t at;

		if (o == t || bw_list_empty(&o->share))
			continue;
		at = bw_stripe_carries(e, p, o) ? bw_stripe_eta(o, bw_stripe_bytes(&o->share))
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
		part = bw_record_new(e, p, BW_OWNED_BULK, r->obj, r->off + r->len - take,
				     (uint32_t)take);
		if (!part)
			return NULL;
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

void bw_stripe_leave(struct bw_peer *p, struct bw_path *t)
{
	while (!bw_list_empty(&t->share)) {
		struct bw_list *l = t->share.next;

		bw_list_del(l);
		bw_list_add_before(&p->spare, l);
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
		if (i < p->npaths)
			list = &p->path[i]->share;
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
		if (i < p->npaths)
			list = &p->path[i]->share;
	}
}
