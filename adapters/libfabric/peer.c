// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Peers of an endpoint: translation between fi_addr_t (an index into the address vector) and
 * libbeowire's bw_peer_no numbers, made at first use, and what happens when a peer is gone: every
 * operation with it ends with an error, and so do receives from anybody once nobody is left.
 */
#include "bwf.h"
#include "count.h"

#include <stdlib.h>

struct bwf_peer *bwf_peer_get(struct bwf_ep *ep, bw_peer_no peer)
{
	if (peer >= ep->peer_count) {
		size_t count = ep->peer_count ? ep->peer_count : 64;
		struct bwf_peer *grown;

		while (count <= peer)
			count *= 2;
		grown = realloc(ep->peer, count * sizeof(*grown));
		if (!grown)
			return NULL;
		for (size_t i = ep->peer_count; i < count; i++)
			grown[i] = (struct bwf_peer){.addr = FI_ADDR_NOTAVAIL};
		ep->peer = grown;
		ep->peer_count = count;
	}
	return &ep->peer[peer];
}

/* Room for the translation of addr. */
static bool bwf_peer_reserve(struct bwf_ep *ep, fi_addr_t addr)
{
	size_t count = ep->peer_of_count ? ep->peer_of_count : 64;
	bw_peer_no *grown;

	if (addr < ep->peer_of_count)
		return true;
	while (count <= addr)
		count *= 2;
	grown = realloc(ep->peer_of, count * sizeof(*grown));
	if (!grown)
		return false;
	for (size_t i = ep->peer_of_count; i < count; i++)
		grown[i] = BW_PEER_NONE;
	ep->peer_of = grown;
	ep->peer_of_count = count;
	return true;
}

static uint64_t bwf_peer_hash(const struct bw_addr *addr)
{
	uint64_t h = 0xCBF29CE484222325u; /* FNV-1a */

	for (size_t i = 0; i < sizeof(addr->bytes); i++)
		h = (h ^ addr->bytes[i]) * 0x100000001B3u;
	return h;
}

static void bwf_peer_mourn(struct bwf_ep *ep, bw_peer_no number, int status)
{
	struct bw_addr self, addr;

	if (bw_peer_addr(ep->bw, number, &addr) || !bwf_log_first(bwf_peer_hash(&addr)))
		return;
	bw_ep_addr(ep->bw, &self);
	bwf_log_loss(bwf_peer_hash(&self), bwf_peer_hash(&addr), bw_peer_describe(ep->bw, number),
		     "gone (%s): operations with it end with an error", strerror(-status));
}

/* The program names a peer. If that one did not say goodbye, only now is its end the program's
 * affair; who still waits for anybody is seen to with the next progress. */
static void bwf_peer_named_late(struct bwf_ep *ep, bw_peer_no number)
{
	int status = bwf_peer_gone(&ep->peer[number]);

	if (!status || status == -ESHUTDOWN)
		return;
	if (!ep->peer[number].refused)
		bwf_peer_mourn(ep, number, status);
	ep->crashed = status;
	ep->bereaved = true;
	ep->unsought = true;
}

/* The peer that an address names; no traffic comes of it. */
static int bwf_peer_lookup(struct bwf_ep *ep, fi_addr_t addr, bw_peer_no *out)
{
	struct bwf_peer *peer;
	struct bw_addr bytes;
	int ret;

	if (!ep->av || !bwf_av_get(ep->av, addr, &bytes))
		return -FI_EINVAL;
	ret = bw_peer_find(ep->bw, &bytes, out);
	if (ret)
		return ret;
	peer = bwf_peer_get(ep, *out);
	if (!peer)
		return -FI_ENOMEM;
	if (peer->addr == FI_ADDR_NOTAVAIL) {
		bwf_stranger_named(ep, *out);
		peer->addr = addr;
		bwf_peer_named_late(ep, *out);
	}
	return 0;
}

int bwf_peer_resolve(struct bwf_ep *ep, fi_addr_t addr, bw_peer_no *out)
{
	int ret = bwf_peer_lookup(ep, addr, out);

	if (ret)
		return ret;
	if (!bwf_peer_reserve(ep, addr))
		return -FI_ENOMEM;
	ep->peer_of[addr] = *out;
	if (!ep->peer[*out].known) {
		ep->peer[*out].known = true;
		bw_peer_watch(ep->bw, *out, true);
	}
	return 0;
}

static void bwf_peer_look_up_all(struct bwf_ep *ep)
{
	uint64_t inserted = ep->av ? atomic_load(&ep->av->inserted) : 0;
	bw_peer_no ignored;

	if (ep->av_seen == inserted)
		return;
	for (fi_addr_t i = 0; i < ep->av->count; i++)
		bwf_peer_lookup(ep, i, &ignored);
	ep->av_seen = inserted;
}

/* Peers may speak before their address is inserted, so the question is put again when more are. */
fi_addr_t bwf_peer_source(struct bwf_ep *ep, bw_peer_no number)
{
	if (number >= ep->peer_count || !ep->av)
		return FI_ADDR_NOTAVAIL;
	if (ep->peer[number].addr == FI_ADDR_NOTAVAIL)
		bwf_peer_look_up_all(ep);
	return ep->peer[number].addr;
}

/* Within libbeowire nothing can be looked up: that is done with the next progress. */
bool bwf_peer_needed(void *arg, bw_peer_no number)
{
	struct bwf_ep *ep = arg;
	const struct bwf_peer *p;

	if (number >= ep->peer_count)
		return false;
	p = &ep->peer[number];
	if (p->addr != FI_ADDR_NOTAVAIL || p->busy || p->requests_out || p->writes_in || p->calls ||
	    p->early || p->row_head)
		return true;
	if (p->unexpected && !bwf_stranger_overdue(ep, number))
		return true;
	if (!ep->av || ep->av_seen == atomic_load(&ep->av->inserted))
		return false;
	ep->unsought = true;
	return true;
}

/* The peer that was found to have this address, also if nothing was ever sent to it. */
static bw_peer_no bwf_peer_with(const struct bwf_ep *ep, fi_addr_t addr)
{
	bw_peer_no number = 0;

	while (number < ep->peer_count && ep->peer[number].addr != addr)
		number++;
	return number < ep->peer_count ? number : BW_PEER_NONE;
}

void bwf_peer_forget_addr(struct bwf_ep *ep, fi_addr_t addr)
{
	bw_peer_no number = BW_PEER_NONE;

	if (addr == FI_ADDR_NOTAVAIL)
		return;
	ep->av_seen = UINT64_MAX; /* the vector may have the same address once more */
	if (addr < ep->peer_of_count) {
		number = ep->peer_of[addr];
		ep->peer_of[addr] = BW_PEER_NONE;
	}
	if (number == BW_PEER_NONE || ep->peer[number].addr != addr)
		number = bwf_peer_with(ep, addr);
	if (number == BW_PEER_NONE)
		return;
	ep->peer[number].addr = FI_ADDR_NOTAVAIL;
	bwf_stranger_unnamed(ep, number);
}

/* Is there anybody else from whom a message could come? Peers not talked to so far are looked up
 * and watched, so that their death is noticed, too. */
static bool bwf_peer_any_alive(struct bwf_ep *ep)
{
	bw_peer_no self = BW_PEER_NONE, number;
	struct bw_addr addr;
	bool alive = false;

	bw_ep_addr(ep->bw, &addr);
	bw_peer_find(ep->bw, &addr, &self);
	for (fi_addr_t i = 0; ep->av && i < ep->av->count; i++)
		bwf_peer_of(ep, i, &number);
	for (size_t i = 0; i < ep->peer_count && !alive; i++)
		alive = i != self && ep->peer[i].known && !bwf_peer_gone(&ep->peer[i]);
	return alive;
}

int bwf_peer_hopeless(struct bwf_ep *ep, bw_peer_no peer)
{
	if (peer != BWF_MATCH_ANY)
		return peer < ep->peer_count ? bwf_peer_gone(&ep->peer[peer]) : 0;
	if (!ep->crashed || bwf_peer_any_alive(ep))
		return 0;
	return ep->crashed;
}

/* Has the program named this one, which is gone? Whoever makes contact and is in no address vector
 * is nobody whose end says anything of the program's job, unless he is inserted later. */
static bool bwf_peer_named(struct bwf_ep *ep, bw_peer_no number)
{
	/* First this: an insertion at the same time sees it, or is seen. */
	if (ep->peer[number].addr == FI_ADDR_NOTAVAIL)
		atomic_store(&ep->nameless, true);
	return bwf_peer_source(ep, number) != FI_ADDR_NOTAVAIL;
}

/* A peer is gone that did not say goodbye: is anybody left? */
static void bwf_peer_bereaved(struct bwf_ep *ep)
{
	int status = bwf_peer_hopeless(ep, BWF_MATCH_ANY);

	ep->bereaved = false;
	if (status)
		bwf_rx_fail(ep, BWF_MATCH_ANY, -status);
}

void bwf_peer_seek(struct bwf_ep *ep)
{
	ep->unsought = false;
	bwf_peer_look_up_all(ep);
	if (ep->bereaved)
		bwf_peer_bereaved(ep);
}

void bwf_peer_refuse(struct bwf_ep *ep, bw_peer_no number, const char *why)
{
	struct bwf_peer *peer = &ep->peer[number];
	bool named;

	if (bwf_peer_gone(peer))
		return;
	named = bwf_peer_named(ep, number);
	bw_count_event(ep->bw, BW_COUNT_PEERS_GIVEN_UP);
	bwf_stranger_refused(ep, number);
	ep->peer[number].refused = true;
	ep->unexpected.left = true;
	bwf_log(named ? BWF_LOG_WARN : BWF_LOG_INFO, "%s is given up, since it %s",
		bw_peer_describe(ep->bw, number), why);
	bwf_op_refuse_peer(ep, number, -FI_ECONNABORTED);
	bwf_target_fail_peer(ep, number);
	bwf_rx_fail(ep, number, FI_ECONNABORTED);
	if (!named)
		return;
	ep->crashed = -FI_ECONNABORTED;
	bwf_peer_bereaved(ep);
}

/* It was not needed; its number may be another one's soon. */
static void bwf_peer_void(struct bwf_ep *ep, bw_peer_no number)
{
	struct bwf_peer *peer = &ep->peer[number];

	bwf_stranger_evicted(ep, number);
	*peer = (struct bwf_peer){
		.addr = FI_ADDR_NOTAVAIL,
		/* what the program has claimed since it was asked */
		.unexpected = peer->unexpected,
		.unexpected_bytes = peer->unexpected_bytes,
		.unread = peer->unread,
		.oldest = peer->oldest,
		.newest = peer->newest,
		.claimed = peer->claimed,
	};
}

void bwf_peer_down(void *arg, bw_peer_no number, int status)
{
	struct bwf_ep *ep = arg;
	struct bwf_peer *peer = bwf_peer_get(ep, number);

	if (!peer)
		return;
	if (status == -ENOBUFS) {
		bwf_peer_void(ep, number);
		return;
	}
	if (peer->down)
		return;
	peer->down = status;
	ep->unexpected.left = true;
	bwf_todo_fail_peer(ep, number, status);
	bwf_op_fail_peer(ep, number, status);
	bwf_target_fail_peer(ep, number);
	bwf_rx_fail(ep, number, -status);
	if (status == -ESHUTDOWN)
		return;
	if (!bwf_peer_named(ep, number)) {
		bwf_stranger_died(ep, number);
		return;
	}
	bwf_peer_mourn(ep, number, status);
	ep->crashed = status;
	bwf_peer_bereaved(ep);
}
