// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Strangers: peers that are in no address vector. They are legal, as a server learns of its clients
 * by their messages, and whoever has an address can be any number of them, so that bounds for each
 * peer hold nothing. Here it is bounded how many keys of memory all of them together may try, and
 * what they leave unread: those that are gone make room first, then the live ones that have left
 * most are given up. A message that is unread keeps its sender, so that the program can answer; but
 * not for ever where there is no room for other peers.
 */
#include "bwf.h"
#include "count.h"

/* Bytes of all strangers' unread messages beyond the limit that pressure begins at, while what each
 * peer has beyond it is bounded by a quarter of that: several honest clients of a server may all
 * have sent ahead before they learn of pressure. */
#define BWF_STRANGERS_AHEAD (128U << 20)

/* ns; a message that has been unread for so long keeps its sender no more, if others need its room.
 * For as long Beowire waits for a peer that does not answer before it gives him up; a client whose
 * server takes longer to look at a request has mostly given up by itself. */
#define BWF_UNREAD_NS 60000000000ULL

/* ns; after which one guess of a key is forgotten. */
#define BWF_GUESS_NS 1000000000ULL

void bwf_stranger_init(struct bwf_ep *ep)
{
	size_t limit = ep->unexpected.limit;

	ep->unexpected.strangers_max =
		limit > SIZE_MAX - BWF_STRANGERS_AHEAD ? SIZE_MAX : limit + BWF_STRANGERS_AHEAD;
}

bool bwf_stranger_counts(const struct bwf_ep *ep, bw_peer_no number)
{
	return ep->peer[number].addr == FI_ADDR_NOTAVAIL && !ep->peer[number].refused;
}

/* What is held for it is part of the sums from now on. */
static void bwf_stranger_enter(struct bwf_ep *ep, const struct bwf_peer *p)
{
	ep->strangers.asked += p->asked;
	ep->strangers.kept += p->kept;
	ep->strangers.kept_bytes += p->kept_bytes;
}

static void bwf_stranger_leave(struct bwf_ep *ep, const struct bwf_peer *p)
{
	ep->strangers.asked -= p->asked;
	ep->strangers.kept -= p->kept;
	ep->strangers.kept_bytes -= p->kept_bytes;
}

void bwf_stranger_named(struct bwf_ep *ep, bw_peer_no number)
{
	ep->unexpected.strangers -= ep->peer[number].unread;
	if (!ep->peer[number].refused)
		bwf_stranger_leave(ep, &ep->peer[number]);
}

void bwf_stranger_unnamed(struct bwf_ep *ep, bw_peer_no number)
{
	uint64_t now = bwf_now_ns();

	ep->unexpected.strangers += ep->peer[number].unread;
	for (struct bwf_unexpected *u = ep->peer[number].oldest; u; u = u->newer)
		u->since = now;
	if (!ep->peer[number].refused)
		bwf_stranger_enter(ep, &ep->peer[number]);
}

void bwf_stranger_refused(struct bwf_ep *ep, bw_peer_no number)
{
	if (ep->peer[number].addr == FI_ADDR_NOTAVAIL)
		bwf_stranger_leave(ep, &ep->peer[number]);
}

static void bwf_stranger_drop(struct bwf_ep *ep, struct bwf_unexpected *u)
{
	bool tagged = (u->code & BWF_CODE_MASK) == BWF_CODE_TAGGED;

	bwf_match_unstore(tagged ? &ep->tagged : &ep->msg, &u->arrived);
	bwf_rx_discard(ep, u);
	bw_count_event(ep->bw, BW_COUNT_UNREAD_DROPPED);
}

/* Drop the unread messages of one peer. */
static void bwf_stranger_drop_of(struct bwf_ep *ep, bw_peer_no peer)
{
	struct bwf_unexpected *u = ep->peer[peer].oldest;

	while (u) {
		struct bwf_unexpected *next = u->newer;

		if (!u->claimed)
			bwf_stranger_drop(ep, u);
		u = next;
	}
}

/* Drop those of all strangers that are gone. */
static void bwf_stranger_drop_gone(struct bwf_ep *ep, const struct bwf_match *queue)
{
	struct bwf_arrived *a = queue->arrived_head;

	while (a) {
		struct bwf_arrived *next = a->next;
		const struct bwf_peer *peer = &ep->peer[a->peer];

		if (peer->addr == FI_ADDR_NOTAVAIL && bwf_peer_gone(peer))
			bwf_stranger_drop(ep, BWF_OF(a, struct bwf_unexpected, arrived));
		a = next;
	}
}

void bwf_stranger_died(struct bwf_ep *ep, bw_peer_no number)
{
	bwf_stranger_drop_of(ep, number);
}

bool bwf_stranger_overdue(const struct bwf_ep *ep, bw_peer_no number)
{
	const struct bwf_peer *p = &ep->peer[number];

	return p->oldest && !p->claimed && bwf_now_ns() - p->oldest->since >= BWF_UNREAD_NS;
}

void bwf_stranger_evicted(struct bwf_ep *ep, bw_peer_no number)
{
	if (!ep->peer[number].unexpected)
		return;
	bw_count_event(ep->bw, BW_COUNT_PEERS_GIVEN_UP);
	bwf_log(BWF_LOG_INFO, "%s is given up for others, since nobody reads what it said",
		bw_peer_describe(ep->bw, number));
	bwf_stranger_drop_of(ep, number);
}

/* What a stranger has left unread that is not given up yet, in bytes. */
static size_t bwf_stranger_unread(const struct bwf_ep *ep, bw_peer_no number)
{
	const struct bwf_peer *p = &ep->peer[number];

	return p->addr == FI_ADDR_NOTAVAIL && !bwf_peer_gone(p) ? p->unread : 0;
}

/* Give up strangers that have left as many bytes unread, until `excess` of them are. What is
 * missing then. */
static size_t bwf_stranger_refuse(struct bwf_ep *ep, size_t bytes, size_t excess)
{
	for (bw_peer_no i = 0; i < ep->peer_count && excess; i++) {
		size_t unread = bwf_stranger_unread(ep, i);

		if (unread < bytes)
			continue;
		bwf_peer_refuse(ep, i, "leaves most unread of those that nobody has named");
		excess -= unread < excess ? unread : excess;
	}
	return excess;
}

/* Those that have left most unread go first. One eighth is made free at a time, so that the look at
 * all peers and messages is one for many messages. */
static void bwf_stranger_refuse_largest(struct bwf_ep *ep)
{
	const struct bwf_unexpected_pool *pool = &ep->unexpected;
	size_t excess = pool->strangers - pool->strangers_max + pool->strangers_max / 8;
	size_t most = 0;

	for (bw_peer_no i = 0; i < ep->peer_count; i++) {
		size_t unread = bwf_stranger_unread(ep, i);

		if (unread > most)
			most = unread;
	}
	for (; most && excess; most /= 2)
		excess = bwf_stranger_refuse(ep, most, excess);
}

void bwf_stranger_make_room(struct bwf_ep *ep)
{
	struct bwf_unexpected_pool *pool = &ep->unexpected;

	bwf_peer_seek(ep); /* their addresses may have been inserted since */
	if (pool->strangers > pool->strangers_max && !pool->left)
		bwf_stranger_refuse_largest(ep);
	bwf_stranger_drop_gone(ep, &ep->msg);
	bwf_stranger_drop_gone(ep, &ep->tagged);
	pool->left = false;
}

/* Nothing can be looked up here: until that is done, with the next progress, whose address may have
 * been inserted is no stranger. */
static bool bwf_stranger_is(struct bwf_ep *ep, bw_peer_no number)
{
	if (ep->peer[number].addr != FI_ADDR_NOTAVAIL)
		return false;
	if (!ep->av || ep->av_seen == atomic_load(&ep->av->inserted))
		return true;
	ep->unsought = true;
	return false;
}

bool bwf_stranger_may_ask(struct bwf_ep *ep, bw_peer_no number)
{
	return ep->strangers.asked < BWF_WRITES_STRANGERS || !bwf_stranger_is(ep, number);
}

void bwf_stranger_keeps(struct bwf_ep *ep, bw_peer_no number, int calls, uint64_t bytes)
{
	struct bwf_peer *p = &ep->peer[number];

	bytes = calls < 0 ? 0 - bytes : bytes;
	p->kept += (uint32_t)calls;
	p->kept_bytes += bytes;
	if (!bwf_stranger_counts(ep, number))
		return;
	ep->strangers.kept += (uint32_t)calls;
	ep->strangers.kept_bytes += bytes;
}

/* The stranger for which most is kept, by its share of what may be kept for all. */
static bw_peer_no bwf_stranger_greediest(const struct bwf_ep *ep)
{
	bw_peer_no found = BW_PEER_NONE;
	uint64_t most = 0;

	for (bw_peer_no i = 0; i < ep->peer_count; i++) {
		const struct bwf_peer *p = &ep->peer[i];
		uint64_t share = p->kept_bytes +
				 (uint64_t)p->kept * (BWF_ANSWERS_STRANGERS / BWF_KEPT_STRANGERS);

		if (share <= most || !bwf_stranger_counts(ep, i))
			continue;
		most = share;
		found = i;
	}
	return found;
}

bool bwf_stranger_may_keep(struct bwf_ep *ep, bw_peer_no number, uint64_t bytes)
{
	bw_peer_no greediest;

	if ((ep->strangers.kept < BWF_KEPT_STRANGERS &&
	     ep->strangers.kept_bytes + bytes <= BWF_ANSWERS_STRANGERS) ||
	    !bwf_stranger_is(ep, number))
		return true;
	greediest = bwf_stranger_greediest(ep);
	if (greediest != BW_PEER_NONE)
		bwf_peer_refuse(ep, greediest, BWF_TODO_TOO_MANY);
	return greediest != number;
}

bool bwf_stranger_may_guess(struct bwf_ep *ep, bw_peer_no number)
{
	uint64_t seconds;

	if (ep->guesses < BWF_GUESSES_STRANGERS || !bwf_stranger_is(ep, number))
		return true;
	seconds = (bwf_now_ns() - ep->guesses_ns) / BWF_GUESS_NS;
	if (!seconds)
		return false;
	ep->guesses -= seconds < ep->guesses ? (uint32_t)seconds : ep->guesses;
	ep->guesses_ns += seconds * BWF_GUESS_NS;
	return true;
}

void bwf_stranger_guessed(struct bwf_ep *ep, bw_peer_no number)
{
	if (!bwf_stranger_is(ep, number))
		return;
	if (!ep->guesses)
		ep->guesses_ns = bwf_now_ns();
	ep->guesses++;
}
