/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What goes on a sheet of the board. It is gathered from what is there already: no message costs
 * anything for it. Of many peers some are looked at each time, in turn, beside those that are on
 * the sheet; the worst and the most active ones of these are told of.
 */
#include <errno.h>
#include <string.h>

#include "ep.h"
#include "stats.h"

#define BW_PUBLISH_NS	 (250 * BW_MS)
#define BW_PUBLISH_LAST	 (1 * BW_S)    /* longest pause */
#define BW_PUBLISH_SHARE 200	       /* of all time, one part at most is spent here */
#define BW_PUBLISH_LOOK	 128	       /* peers that are looked at each time */
#define BW_PUBLISH_WORST 16	       /* of those told of, for what is wrong with them */
#define BW_PUBLISH_LATE	 (100 * BW_MS) /* silence that is nothing yet */

_Static_assert(BW_DROP_REASONS <= BW_BOARD_DROPS, "room for each reason");

struct bw_ranked {
	uint32_t number;
	uint64_t rank;
};

/* The first few by rank, the highest first. */
struct bw_ranking {
	uint32_t n, room;
	struct bw_ranked at[BW_BOARD_PEERS];
};

static void bw_ranking_add(struct bw_ranking *r, uint32_t number, uint64_t rank)
{
	uint32_t i = r->n < r->room ? r->n++ : r->room;

	if (i == r->room && r->at[--i].rank >= rank)
		return;
	for (; i && r->at[i - 1].rank < rank; i--)
		r->at[i] = r->at[i - 1];
	r->at[i] = (struct bw_ranked){.number = number, .rank = rank};
}

/* What names the oldest message that the peer has not fetched. */
static uint64_t bw_publish_engine(struct bw_ep *ep, const struct bw_remote *p,
				  struct bw_board_peer *b)
{
	struct bw_peer_view v;

	if (bw_reliable_peer_view(ep->engine, p->handle, &v))
		return 0;
	b->way = BW_BOARD_ENGINE;
	b->link = v.link;
	b->flags |= (v.up ? BW_BOARD_UP : 0) | (v.pressed ? BW_BOARD_PRESSED : 0) |
		    (v.stalled ? BW_BOARD_STALLED : 0) | (v.expected ? BW_BOARD_EXPECTED : 0);
	b->mtu = v.mtu;
	b->probes = v.probes;
	b->paths = v.paths;
	b->silent = v.silent;
	b->srtt_ns = v.srtt_ns;
	b->var_ns = v.var_ns;
	b->window = v.window;
	b->inflight = v.inflight;
	b->credit = v.credit;
	b->tx_packets = v.tx_packets;
	b->rx_packets = v.rx_packets;
	b->tx_messages = v.tx_messages;
	b->rx_messages = v.rx_messages;
	b->tx_bytes = v.tx_charged;
	b->rx_bytes = v.rx_charged;
	b->retransmits = v.retransmits;
	b->losses = v.losses;
	b->heard = v.heard;
	b->proven = v.proven;
	b->waiting_since = v.waiting_since;
	b->queued = v.queued;
	b->queued_bytes = v.queued_bytes;
	b->exposed = v.exposed;
	b->exposed_bytes = v.exposed_bytes;
	b->pulls = v.pulls;
	b->pull_bytes = v.pull_bytes;
	b->serves = v.serves;
	b->arriving = v.arriving;
	return v.exposed_first;
}

static uint64_t bw_publish_local(const struct bw_remote *p, struct bw_board_peer *b)
{
	struct bw_local_view v;

	bw_local_look_at(p->local, &v);
	b->way = BW_BOARD_LOCAL;
	b->flags |= (v.answered ? BW_BOARD_UP : 0) | (v.sleeping ? BW_BOARD_SLEEPING : 0) |
		    (v.stalled ? BW_BOARD_STALLED : 0) | (v.pulls ? BW_BOARD_EXPECTED : 0);
	b->pid = v.pid;
	b->tx_bytes = v.tx_bytes;
	b->rx_bytes = v.rx_bytes;
	b->queued_bytes = v.tx_waiting;
	b->exposed = v.offered;
	b->exposed_bytes = v.offered_bytes;
	b->pulls = v.pulls;
	b->serves = v.serves;
	return v.rx_bytes; /* as long as nothing comes of it, no release does */
}

static void bw_publish_remote(struct bw_ep *ep, struct bw_remote *p, struct bw_board_peer *b)
{
	uint64_t first = 0;

	memset(b, 0, sizeof(*b));
	b->node = p->addr.node;
	b->engine = p->addr.engine;
	b->incarnation = p->addr.inc;
	b->number = p->number;
	b->status = p->status;
	b->flags = p->known ? BW_BOARD_KNOWN : 0;
	memcpy(b->host, p->name,
	       sizeof(b->host) < sizeof(p->name) ? sizeof(b->host) - 1 : sizeof(p->name));
	if (p->local)
		first = bw_publish_local(p, b);
	else if (bw_remote_by_kernel(p))
		b->way = BW_BOARD_KERNEL;
	else if (p->handle)
		first = bw_publish_engine(ep, p, b);
	if (!b->exposed)
		p->exposed_since = 0;
	else if (!p->exposed_since || p->exposed_first != first)
		p->exposed_since = ep->now;
	p->exposed_first = first;
	b->exposed_since = p->exposed_since;
}

/* How bad things are with a peer: 0 if all is well. */
static uint64_t bw_publish_badness(const struct bw_ep *ep, const struct bw_board_peer *b)
{
	uint64_t since = bw_max_u64(b->proven, b->waiting_since), bad = 0;

	if (b->status)
		return b->status == -ESHUTDOWN ? 0 : 1;
	if (b->waiting_since && ep->now > since + BW_PUBLISH_LATE)
		bad = (ep->now - since) / BW_MS;
	if (b->exposed_since && ep->now > b->exposed_since + BW_PUBLISH_LATE)
		bad = bw_max_u64(bad, (ep->now - b->exposed_since) / BW_MS);
	return bad + b->silent + ((b->flags & BW_BOARD_STALLED) != 0);
}

static void bw_publish_rank(struct bw_ep *ep, uint32_t number, struct bw_ranking *worst,
			    struct bw_ranking *active)
{
	struct bw_remote *p = bw_remote_get(&ep->remotes, number);
	struct bw_board_peer b;
	uint64_t sum, bad;

	if (!p || p->published == ep->board.at)
		return;
	p->published = ep->board.at;
	bw_publish_remote(ep, p, &b);
	sum = b.tx_packets + b.rx_packets + b.tx_bytes + b.rx_bytes + b.losses;
	bad = bw_publish_badness(ep, &b) + 16 * (b.losses - bw_min_u64(b.losses, p->told_losses));
	if (bad)
		bw_ranking_add(worst, number, bad);
	bw_ranking_add(active, number, sum - p->told_sum);
	p->told_sum = sum;
	p->told_losses = b.losses;
}

static bool bw_publish_has(const struct bw_ep_board *b, uint32_t number)
{
	for (uint32_t i = 0; i < b->told; i++) {
		if (b->number[i] == number)
			return true;
	}
	return false;
}

static void bw_publish_choose(struct bw_ep_board *b, const struct bw_ranking *r)
{
	for (uint32_t i = 0; i < r->n && b->told < BW_BOARD_PEERS; i++) {
		if (!bw_publish_has(b, r->at[i].number))
			b->number[b->told++] = r->at[i].number;
	}
}

/* Which peers to tell of: the worst first, then those with most traffic since the last look. */
static void bw_publish_peers(struct bw_ep *ep, struct bw_board_sheet *s)
{
	struct bw_ranking worst = {.room = BW_PUBLISH_WORST}, active = {.room = BW_BOARD_PEERS};
	struct bw_ep_board *b = &ep->board;
	uint32_t most = ep->remotes.count < BW_PUBLISH_LOOK ? ep->remotes.count : BW_PUBLISH_LOOK;

	for (uint32_t i = 0; i < b->told; i++)
		bw_publish_rank(ep, b->number[i], &worst, &active);
	for (uint32_t i = 0; i < most; i++) {
		b->scan = b->scan + 1 < ep->remotes.count ? b->scan + 1 : 0;
		bw_publish_rank(ep, b->scan, &worst, &active);
	}
	b->told = 0;
	bw_publish_choose(b, &worst);
	bw_publish_choose(b, &active);
	for (uint32_t i = 0; i < b->told; i++) {
		struct bw_remote *p = ep->remotes.at[b->number[i]];

		bw_publish_remote(ep, p, &s->peer[i]);
		s->peers_down += p->status != 0;
	}
	s->peers = ep->remotes.count - ep->remotes.vacant;
	s->peers_told = b->told;
}

/* Since when it has been seen there, by the sheet before. */
static uint64_t bw_publish_since(const struct bw_ep *ep, const struct bw_board_wait *w, uint64_t id)
{
	for (uint32_t i = 0; i < ep->board.waits; i++) {
		const struct bw_board_wait *o = &ep->board.wait[i];

		if (ep->board.wait_id[i] == id && o->tag == w->tag && o->ignore == w->ignore &&
		    o->bytes == w->bytes && o->node == w->node && o->engine == w->engine &&
		    o->kind == w->kind && o->incarnation == w->incarnation &&
		    o->tagged == w->tagged)
			return o->since;
	}
	return ep->now;
}

static void bw_publish_awaited(const struct bw_ep *ep, const struct bw_awaited *a,
			       struct bw_board_wait *w)
{
	const struct bw_remote *p = bw_remote_get(&ep->remotes, a->peer);

	*w = (struct bw_board_wait){
		.tag = a->tag,
		.ignore = a->ignore,
		.bytes = a->bytes,
		.kind = a->arrived ? BW_BOARD_UNEXPECTED : BW_BOARD_RECEIVE,
		.tagged = a->tagged,
	};
	if (p) {
		w->node = p->addr.node;
		w->engine = p->addr.engine;
		w->incarnation = p->addr.inc;
	}
	w->since = bw_publish_since(ep, w, a->id);
}

static void bw_publish_program(struct bw_ep *ep, struct bw_board_sheet *s)
{
	struct bw_program told = {0};
	uint32_t n;

	if (ep->handlers->awaits && !ep->dead) /* not before it has its endpoint */
		ep->handlers->awaits(ep->arg, &told);
	n = told.n < BW_BOARD_WAITS ? told.n : BW_BOARD_WAITS;
	for (uint32_t i = 0; i < n; i++)
		bw_publish_awaited(ep, &told.awaited[i], &s->wait[i]);
	s->receives = told.receives;
	s->unexpected = told.unexpected;
	s->unexpected_bytes = told.unexpected_bytes;
	s->waits_told = ep->board.waits = n;
	for (uint32_t i = 0; i < n; i++) {
		ep->board.wait[i] = s->wait[i];
		ep->board.wait_id[i] = told.awaited[i].id;
	}
}

static struct bw_board_link bw_publish_link(const struct bw_link_counters *c)
{
	return (struct bw_board_link){
		.tx_frames = c->tx_frames,
		.rx_frames = c->rx_frames,
		.tx_bytes = c->tx_bytes,
		.rx_bytes = c->rx_bytes,
		.tx_payload = c->tx_payload,
		.rx_payload = c->rx_payload,
		.rx_overruns = c->rx_overruns,
	};
}

static void bw_publish_counters(struct bw_ep *ep, struct bw_board_sheet *s)
{
	struct bw_stats_sums sums;
	const struct bw_counters *c = &sums.engine;

	bw_stats_sum(ep, &sums);
	s->link[0] = bw_publish_link(&sums.packet);
	s->link[1] = bw_publish_link(&sums.udp);
	s->link[2] = bw_publish_link(&sums.local);
	s->link[3] = bw_publish_link(&sums.kernel);
	s->overruns = sums.overruns;
	s->send_errors = sums.send_errors;
	for (int i = 1; i < BW_DROP_REASONS; i++)
		s->drops[i] = c->drop[i];
	s->retransmits = c->retransmits;
	s->losses = c->losses;
	s->probes = c->probes;
	s->spurious = c->spurious;
	s->backoffs = c->backoffs;
	s->credit_stalls = c->credit_stalls;
	s->tx_messages = c->tx_messages;
	s->rx_messages = c->rx_messages;
	s->tx_pulls = c->tx_pulls;
	s->rx_pulls = c->rx_pulls;
	if (ep->local) {
		const struct bw_local_counters *l = bw_local_counters(ep->local);

		s->tx_messages += l->tx_messages;
		s->rx_messages += l->rx_messages;
	}
	s->memory_bytes = ep->buffers.bytes + ep->grown_bytes;
	s->copied_bytes = ep->copied + ep->copies.bytes;
	s->arriving_bytes = ep->arriving;
}

static void bw_publish_sheet(struct bw_ep *ep, struct bw_board_sheet *s)
{
	struct bw_ep_board *b = &ep->board;

	if (ep->rounds != b->rounds || !b->rounds_at)
		b->rounds_at = ep->now;
	if (ep->handled != b->handled || !b->handled_at)
		b->handled_at = ep->now;
	b->rounds = ep->rounds;
	b->handled = ep->handled;
	memset((char *)s + sizeof(s->turn), 0,
	       offsetof(struct bw_board_sheet, peer) - sizeof(s->turn));
	s->at = ep->now;
	s->rounds = ep->rounds;
	s->handled = ep->handled;
	s->rounds_at = b->rounds_at;
	s->handled_at = b->handled_at;
	s->asleep = atomic_load(&ep->sleepers) + ep->armed;
	bw_publish_counters(ep, s);
	bw_publish_peers(ep, s);
	bw_publish_program(ep, s);
}

void bw_publish(struct bw_ep *ep)
{
	struct bw_ep_board *b = &ep->board;
	uint64_t began, turn, end, pause;
	struct bw_board_sheet *s;
	uint32_t next;

	if (!b->map)
		return;
	began = bw_clock_now();
	b->at = began; /* also marks the peers that have been looked at */
	next = !atomic_load_explicit(&b->map->current, memory_order_relaxed);
	s = &b->map->sheet[next];
	turn = atomic_load_explicit(&s->turn, memory_order_relaxed);
	atomic_store_explicit(&s->turn, turn + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	bw_publish_sheet(ep, s);
	atomic_store_explicit(&s->turn, turn + 2, memory_order_release);
	atomic_store_explicit(&b->map->current, next, memory_order_release);
	end = bw_clock_now();
	pause = bw_max_u64(BW_PUBLISH_NS, BW_PUBLISH_SHARE * (end - began));
	b->at = end + bw_min_u64(pause, BW_PUBLISH_LAST); /* it was perhaps interrupted */
}

uint64_t bw_publish_due(const struct bw_ep *ep)
{
	const struct bw_ep_board *b = &ep->board;

	if (!b->map || (ep->rounds == b->rounds && ep->handled == b->handled))
		return BW_NEVER;
	return bw_max_u64(b->at, ep->chores_at); /* of which it is one */
}
