/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whom the host names by addresses. Without a cluster key anybody can call in anybody's name; but
 * only who is at an address receives what is sent there. So a peer that the host has named is who
 * answers at one of the named addresses. While nobody has, nobody else becomes that peer, for some
 * time: the peer may have moved.
 *
 * A guest may have called in the peer's name before, and from another address: it may be the peer,
 * which has several, or somebody else. It is in doubt until who is at a named address is asked by
 * HELLO with the guest's handle and token: the peer answers with its own of this conversation, and
 * all goes on by all paths. Meanwhile what comes of the guest is taken as before, and nothing but
 * HELLO is sent. Another handle in the answer means that who is there knows nothing of the guest.
 */
#include "contact.h"
#include "farewell.h"
#include "guest.h"
#include "named.h"
#include "path.h"
#include "peer.h"
#include "pull.h"
#include "reliable.h"

bool bw_named(const struct bw_peer *p)
{
	uint8_t i;

	for (i = 0; i < p->npaths; i++)
		if (p->path[i]->hello.named)
			return true;
	return false;
}

bool bw_named_elsewhere(const struct bw_engine *e, struct bw_peer *p, const struct bw_op *op)
{
	const struct bw_path *t;
	uint8_t known = 0;
	uint16_t i;

	if (e->cfg.keyed || !p->conn || bw_named(p))
		return false;
	for (i = 0; i < op->connect.paths; i++) {
		t = bw_contact_known_path(p, &op->connect.path[i]);
		if (t && (t->answered || t->state == BW_PATH_UP))
			return false;
		known |= (uint8_t)(t ? 1u << t->no : 0);
	}
	/* What nobody elsewhere was told shows that it is the peer, see bw_recv_peer(). */
	return known != (1u << p->npaths) - 1;
}

/* What the host has given for the guest so far ends with it: its status is known. */
static void bw_named_mark(struct bw_peer *p)
{
	struct bw_list *l;

	for (l = p->txmsgs.next; l != &p->txmsgs; l = l->next)
		bw_entry(l, struct bw_txmsg, all)->status = BW_DOWN_RESET;
	for (l = p->pulls.next; l != &p->pulls; l = l->next)
		bw_entry(l, struct bw_pull, all)->status = BW_DOWN_RESET;
	for (l = p->regions.next; l != &p->regions; l = l->next)
		bw_entry(l, struct bw_region, all)->status = BW_DOWN_RESET;
}

/* A peer at these addresses, with a flow for each message that goes there; NULL: no memory. */
static struct bw_peer *bw_named_other(struct bw_engine *e, const struct bw_peer *p,
				      const struct bw_link_addr *to, uint16_t n)
{
	struct bw_peer *other = bw_peer_new(e);
	const struct bw_list *l;
	struct bw_path *t;
	bool short_of = !other;
	uint16_t i;

	if (other) {
		other->node = p->node;
		other->engine = p->engine;
		other->inc = p->inc;
	}
	for (i = 0; !short_of && i < n; i++) {
		t = bw_contact_path(e, other, &to[i]);
		short_of = !t;
		if (t)
			t->hello.named = true;
	}
	for (l = p->txmsgs.next; !short_of && l != &p->txmsgs; l = l->next) {
		const struct bw_txmsg *m = bw_entry(l, struct bw_txmsg, all);

		short_of = !m->status &&
			   !bw_peer_flow(e, other, m->flow->local_ep, m->flow->remote_ep);
	}
	if (!short_of)
		return other;
	if (other) {
		other->hidden = true;
		bw_peer_down(e, other, BW_DOWN_CANCELED);
	}
	bw_guest_make_room(e);
	return NULL;
}

static void bw_named_move(struct bw_txmsg *m, struct bw_peer *to, struct bw_flow *flow,
			  struct bw_list *all)
{
	bw_list_del(&m->all);
	bw_list_del(&m->queue);
	m->peer = to;
	m->flow = flow;
	m->id = flow->tx_next++;
	bw_list_add_before(&flow->tx, &m->queue);
	bw_list_add_before(all, &m->all);
}

static void bw_named_move_messages(struct bw_engine *e, struct bw_peer *from, struct bw_peer *to)
{
	struct bw_list *l, *next;

	for (l = from->txmsgs.next; l != &from->txmsgs; l = next) {
		struct bw_txmsg *m = bw_entry(l, struct bw_txmsg, all);

		next = l->next;
		if (m->status)
			continue;
		bw_named_move(m, to, bw_peer_flow(e, to, m->flow->local_ep, m->flow->remote_ep),
			      &to->txmsgs);
		bw_flow_sends(to, m->flow);
		from->unsent--;
		to->unsent++;
	}
}

/* What the host has given since it named the peer: nothing of it was sent. */
static void bw_named_hand_over(struct bw_engine *e, struct bw_peer *from, struct bw_peer *to)
{
	struct bw_list *l, *next;

	bw_named_move_messages(e, from, to);
	for (l = from->pulls.next; l != &from->pulls; l = next) {
		struct bw_pull *u = bw_entry(l, struct bw_pull, all);

		next = l->next;
		if (u->status || !u->request)
			continue;
		bw_list_del(&u->all);
		u->peer = to;
		bw_list_add_before(&to->pulls, &u->all);
		bw_named_move(u->request, to, &to->control, &to->controls);
	}
	for (l = from->regions.next; l != &from->regions; l = next) {
		struct bw_region *g = bw_entry(l, struct bw_region, all);

		next = l->next;
		if (g->status || !bw_list_empty(&g->serves))
			continue;
		bw_list_del(&g->all);
		g->peer = to;
		bw_list_add_before(&to->regions, &g->all);
	}
}

/* The guest goes, and somebody at these addresses is the peer that the host calls by its handle.
 * False: there is no memory, and nothing has changed. */
static bool bw_named_part(struct bw_engine *e, struct bw_peer *p, const struct bw_link_addr *to,
			  uint16_t n)
{
	struct bw_peer *other = bw_named_other(e, p, to, n);
	uint32_t unknown = other ? bw_table_add(&e->peer_table, p, bw_nonce(e)) : 0;

	if (!unknown) {
		if (other) {
			other->hidden = true;
			bw_peer_down(e, other, BW_DOWN_CANCELED);
		}
		return false;
	}
	bw_named_hand_over(e, p, other);
	other->watch = p->watch;
	other->patience = BW_NEVER;
	bw_farewell_bid_bye(e, p, false);
	bw_table_give(&e->peer_table, p->handle, other);
	other->handle = p->handle; /* but not its `wire`: the guest was told that */
	if (p->wire == p->handle)
		p->wire = unknown;
	p->handle = unknown;
	p->hidden = true;
	bw_peer_down(e, p, BW_DOWN_RESET);
	if (other->node)
		bw_contact_register(e, other);
	bw_peer_ready(e, other);
	bw_peer_schedule(e, other);
	return true;
}

/* Until when who is at the named addresses may answer, before the silent are given up. */
static uint64_t bw_named_patience(const struct bw_engine *e)
{
	return e->now + bw_min_u64(BW_NAMED_PATIENCE, e->cfg.dead_ns / 4);
}

int bw_named_begin(struct bw_engine *e, struct bw_peer *p, const struct bw_op *op, bool doubt)
{
	if (e->cfg.keyed || p->doubted)
		return 0;
	if (!doubt) {
		if (!p->confirmed && !p->patience)
			p->patience = bw_named_patience(e);
		return 0;
	}
	bw_named_mark(p);
	p->inc = op->connect.inc; /* of the guest's it is not known whether it was meant */
	if (!bw_named(p) && p->npaths == BW_PATHS_MAX) /* it has taken all places */
		return bw_named_part(e, p, op->connect.path, op->connect.paths) ? 0 : -EAGAIN;
	p->patience = bw_named_patience(e);
	p->doubted = true;
	p->confirmed = false;
	p->doubted_longs = p->longs;
	p->longs = false; /* how much credit there is shows only then */
	return 0;
}

bool bw_named_awaited(const struct bw_engine *e, struct bw_peer *p, const struct bw_link_addr *from)
{
	const struct bw_path *t;

	if (p->confirmed || p->doubted || e->now >= p->patience || e->cfg.keyed || !bw_named(p))
		return false;
	t = bw_contact_known_path(p, from);
	return !t || !t->hello.named;
}

bool bw_named_only_guest(struct bw_peer *p, const struct bw_link_addr *from)
{
	const struct bw_path *t = p->doubted ? bw_contact_known_path(p, from) : NULL;

	return t && !t->hello.named;
}

bool bw_named_confirms(struct bw_peer *p, const struct bw_path *t)
{
	if (!p->doubted)
		return true;
	if (!t->hello.named)
		return false;
	p->doubted = false;
	p->longs = p->doubted_longs;
	return true;
}

int bw_named_contradicted(struct bw_engine *e, struct bw_peer *p)
{
	struct bw_link_addr to[BW_PATHS_MAX];
	uint16_t n = 0;
	uint8_t i;

	for (i = 0; i < p->npaths; i++)
		if (p->path[i]->hello.named)
			to[n++] = p->path[i]->to;
	return bw_named_part(e, p, to, n) ? -BW_DROP_EARLY : -BW_DROP_NO_BUFFER;
}

void bw_named_trust(struct bw_engine *e, struct bw_peer *p)
{
	p->doubted = false;
	p->longs = p->doubted_longs;
	p->confirmed = p->path[p->best]->state == BW_PATH_UP;
	bw_peer_ready(e, p);
}
