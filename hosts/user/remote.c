/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Peers: their table, the choice of the way to each of them, and what becomes of them. Processes of
 * one node use the local link, or udp where that is not possible: a raw frame to the own address
 * never comes back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ep.h"
#include "place.h"
#include "text.h"

#define BW_REMOTE_ASKED	   16	      /* ghosts that may make room for one call */
#define BW_REMOTE_BUCKETS  64	      /* at first; doubled when as many peers are known */
#define BW_REMOTE_CHECK_NS (3 * BW_S) /* probing of links and frame sizes has ended by then */

int bw_remote_init(struct bw_remotes *r, struct bw_secret *secret)
{
	uint64_t half;

	memset(r, 0, sizeof(*r));
	for (size_t i = 0; i < sizeof(r->key); i += sizeof(half)) {
		half = bw_secret_draw(secret);
		memcpy(r->key + i, &half, sizeof(half));
	}
	r->buckets = BW_REMOTE_BUCKETS;
	r->by_id = calloc(r->buckets, sizeof(*r->by_id));
	r->by_handle = calloc(r->buckets, sizeof(*r->by_handle));
	return r->by_id && r->by_handle ? 0 : -ENOMEM;
}

void bw_remote_free_all(struct bw_remotes *r)
{
	for (uint32_t i = 0; i < r->count; i++)
		free(r->at[i]);
	free(r->at);
	free(r->by_id);
	free(r->by_handle);
	memset(r, 0, sizeof(*r));
}

static struct bw_remote **bw_remote_id_bucket(const struct bw_remotes *r, uint64_t node,
					      uint16_t engine, uint32_t inc)
{
	uint64_t who[2] = {node, (uint64_t)inc << 16 | engine};

	return &r->by_id[bw_siphash(r->key, who, sizeof(who)) & (r->buckets - 1)];
}

static struct bw_remote **bw_remote_handle_bucket(const struct bw_remotes *r, uint32_t handle)
{
	return &r->by_handle[handle & (r->buckets - 1)];
}

struct bw_remote *bw_remote_find(const struct bw_remotes *r, uint64_t node, uint16_t engine,
				 uint32_t inc)
{
	struct bw_remote *p = *bw_remote_id_bucket(r, node, engine, inc);

	while (p && (p->addr.node != node || p->addr.engine != engine || p->addr.inc != inc))
		p = p->next_id;
	return p;
}

struct bw_remote *bw_remote_by_handle(const struct bw_remotes *r, uint32_t handle)
{
	struct bw_remote *p = *bw_remote_handle_bucket(r, handle);

	while (p && p->handle != handle)
		p = p->next_handle;
	return p;
}

static void bw_remote_link(struct bw_remotes *r, struct bw_remote *p)
{
	struct bw_remote **id = bw_remote_id_bucket(r, p->addr.node, p->addr.engine, p->addr.inc);

	p->next_id = *id;
	*id = p;
	if (p->handle) {
		struct bw_remote **handle = bw_remote_handle_bucket(r, p->handle);

		p->next_handle = *handle;
		*handle = p;
	}
}

void bw_remote_set_handle(struct bw_remotes *r, struct bw_remote *p, uint32_t handle)
{
	struct bw_remote **at;

	if (p->handle == handle)
		return;
	if (p->handle) {
		at = bw_remote_handle_bucket(r, p->handle);
		while (*at != p)
			at = &(*at)->next_handle;
		*at = p->next_handle;
	}
	p->handle = handle;
	if (handle) {
		at = bw_remote_handle_bucket(r, handle);
		p->next_handle = *at;
		*at = p;
	}
}

static int bw_remote_grow(struct bw_remotes *r)
{
	uint32_t room = r->room ? 2 * r->room : BW_REMOTE_BUCKETS;
	struct bw_remote **at = realloc(r->at, room * sizeof(*at));
	struct bw_remote **by_id, **by_handle;

	if (!at)
		return -ENOMEM;
	r->at = at;
	r->room = room;
	by_id = calloc(room, sizeof(*by_id));
	by_handle = calloc(room, sizeof(*by_handle));
	if (!by_id || !by_handle) { /* longer chains, then */
		free(by_id);
		free(by_handle);
		return 0;
	}
	free(r->by_id);
	free(r->by_handle);
	r->by_id = by_id;
	r->by_handle = by_handle;
	r->buckets = room;
	for (uint32_t i = 0; i < r->count; i++) {
		if (r->at[i])
			bw_remote_link(r, r->at[i]);
	}
	return 0;
}

/* The number of a new peer; the table has room. */
static uint32_t bw_remote_number(struct bw_remotes *r)
{
	uint32_t number = r->count;

	if (r->count < r->room || !r->vacant)
		return r->count++;
	while (r->at[--number])
		;
	r->vacant--;
	return number;
}

struct bw_remote *bw_remote_make(struct bw_remotes *r, uint64_t node, uint16_t engine, uint32_t inc)
{
	struct bw_remote *p = bw_remote_find(r, node, engine, inc);

	if (p || (r->count == r->room && !r->vacant && bw_remote_grow(r)))
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->addr.node = node;
	p->addr.engine = engine;
	p->addr.inc = inc;
	p->check_at = BW_NEVER;
	p->number = bw_remote_number(r);
	r->at[p->number] = p;
	bw_remote_link(r, p);
	return p;
}

void bw_remote_ghost(struct bw_remotes *r, struct bw_remote *p, bool is)
{
	if (p->ghost == is)
		return;
	p->ghost = is;
	if (is) {
		r->ghosts++;
		p->newer = NULL;
		p->older = r->ghost_newest;
		*(p->older ? &p->older->newer : &r->ghost_oldest) = p;
		r->ghost_newest = p;
		return;
	}
	r->ghosts--;
	*(p->older ? &p->older->newer : &r->ghost_oldest) = p->newer;
	*(p->newer ? &p->newer->older : &r->ghost_newest) = p->older;
}

/* May this ghost's number become void? */
static bool bw_remote_needless(struct bw_ep *ep, const struct bw_remote *p)
{
	return !bw_remote_in_use(p) && ep->handlers->peer_needed &&
	       !ep->handlers->peer_needed(ep->arg, p->number);
}

/* The oldest ghost that the program does not need goes. Those that it needs count as new, so that
 * few are asked about for each call. */
static bool bw_remote_lay_ghost(struct bw_ep *ep)
{
	struct bw_remotes *r = &ep->remotes;

	for (int i = 0; i < BW_REMOTE_ASKED && r->ghost_oldest; i++) {
		struct bw_remote *p = r->ghost_oldest;
		bool goes = bw_remote_needless(ep, p);

		bw_remote_ghost(r, p, false);
		if (!goes) {
			bw_remote_ghost(r, p, true);
			continue;
		}
		r->ghosts_gone++;
		p->known = false;
		ep->handlers->peer_down(ep->arg, p->number, BW_DOWN_EVICTED);
		bw_remote_forget(r, p);
		return true;
	}
	return false;
}

struct bw_remote *bw_remote_meet(struct bw_ep *ep, uint64_t node, uint16_t engine, uint32_t inc)
{
	struct bw_remote *p = bw_remote_find(&ep->remotes, node, engine, inc);

	if (p)
		return p;
	if (ep->remotes.ghosts < BW_REMOTE_GHOSTS || bw_remote_lay_ghost(ep)) {
		p = bw_remote_make(&ep->remotes, node, engine, inc);
		ep->remotes.callers_refused += !p;
		return p;
	}
	ep->remotes.callers_refused++;
	bw_log_once(
		BW_LOG_WARN, "ghosts",
		"%d peers that the program has not named have come and gone at %s, and it needs "
		"them: no more such are taken meanwhile",
		BW_REMOTE_GHOSTS, ep->host);
	return NULL;
}

void bw_remote_forget(struct bw_remotes *r, struct bw_remote *p)
{
	struct bw_remote **at = bw_remote_id_bucket(r, p->addr.node, p->addr.engine, p->addr.inc);

	while (*at != p)
		at = &(*at)->next_id;
	*at = p->next_id;
	bw_remote_set_handle(r, p, 0);
	r->at[p->number] = NULL;
	r->vacant++;
	free(p);
}

void bw_remote_name(struct bw_remote *p, const void *name, size_t n)
{
	bw_text_printable(p->name, sizeof(p->name), name, n);
}

/* The interfaces of both ends in pairs, in the order in which they are named; where one end has
 * more, they share those of the other. */
static uint16_t bw_remote_pairs(const struct bw_ep *ep, const struct bw_addr_fields *a,
				struct bw_link_addr *path)
{
	int theirs = 1 + a->more_macs, n = ep->packets > theirs ? ep->packets : theirs;

	for (int i = 0; i < n; i++) {
		int j = i % theirs;

		memset(&path[i], 0, sizeof(path[i]));
		path[i].link = ep->packet[i % ep->packets].link;
		path[i].len = 6;
		memcpy(path[i].bytes, j ? a->more_mac[j - 1] : a->mac, 6);
	}
	return (uint16_t)n;
}

_Static_assert(BW_PACKET_LINKS < BW_PATHS_MAX && BW_ADDR_MACS == BW_PACKET_LINKS,
	       "a path for each interface, and one for udp");

/* Links through the engine that both ends have. */
static uint16_t bw_remote_paths(const struct bw_ep *ep, const struct bw_addr_fields *a,
				struct bw_link_addr *path)
{
	uint16_t n = 0;

	/* A frame to the own address would leave the node and not come back. */
	if (ep->has_packet && (a->links & BW_LINK_PACKET) && a->ethertype == ep->self.ethertype &&
	    a->node != ep->self.node && memcmp(a->mac, ep->self.mac, 6))
		n = bw_remote_pairs(ep, a, path);
	if (ep->has_udp && bw_addr_udp(a, ep->self.links, &path[n]))
		n++;
	return n;
}

bool bw_remote_engine_reaches(const struct bw_ep *ep, const struct bw_addr_fields *a)
{
	struct bw_link_addr path[BW_PATHS_MAX];

	return bw_remote_paths(ep, a, path) != 0;
}

static int bw_remote_connect_local(struct bw_ep *ep, struct bw_remote *p)
{
	struct bw_local_peer *local;
	int error = bw_local_connect(ep->local, p->addr.engine, p->addr.inc, p, &local);

	if (error && error != -EEXIST)
		return error;
	p->local = local;
	p->by = &bw_by_local;
	return 0;
}

int bw_remote_connect_engine(struct bw_ep *ep, struct bw_remote *p)
{
	struct bw_op op = {.type = BW_OP_CONNECT};
	int error;

	op.connect.node = p->addr.node;
	op.connect.engine = p->addr.engine;
	op.connect.inc = p->addr.inc;
	op.connect.paths = bw_remote_paths(ep, &p->addr, op.connect.path);
	if (!op.connect.paths)
		return -EHOSTUNREACH;
	for (uint16_t i = 0; i < op.connect.paths; i++)
		p->offered |= (uint8_t)(1u << op.connect.path[i].link);
	error = bw_host_submit(ep, &op);
	if (error)
		return error;
	bw_remote_set_handle(&ep->remotes, p, op.peer);
	if (!p->by)
		p->by = &bw_by_engine;
	if (p->watch) {
		struct bw_op watch = {.type = BW_OP_WATCH, .peer = p->handle, .on = true};

		bw_host_submit(ep, &watch);
	}
	return 0;
}

/* To another node. */
static int bw_remote_connect_far(struct bw_ep *ep, struct bw_remote *p)
{
	if (!bw_kernel_reaches(ep, &p->addr))
		return bw_remote_connect_engine(ep, p);
	return bw_remote_engine_reaches(ep, &p->addr) ? bw_kernel_meet(ep, p)
						      : bw_kernel_connect(ep, p);
}

static bool bw_remote_may_local(const struct bw_ep *ep, const struct bw_addr_fields *a)
{
	return ep->local && a->node == ep->self.node && (a->links & BW_LINK_LOCAL);
}

/* There is no way to it but one at which nobody answers any more. Handlers are called by rounds. */
static int bw_remote_refused(struct bw_ep *ep, struct bw_remote *p)
{
	ep->remotes.gone += !p->gone;
	p->gone = true;
	ep->chores_at = ep->deadline = ep->now;
	bw_helper_deadline(ep);
	return -ECONNREFUSED;
}

void bw_remote_bury(struct bw_ep *ep)
{
	for (uint32_t i = 0; i < ep->remotes.count && ep->remotes.gone; i++) {
		struct bw_remote *p = ep->remotes.at[i];

		if (!p || !p->gone)
			continue;
		p->gone = false;
		ep->remotes.gone--;
		if (!p->by) /* else it has called meanwhile */
			bw_remote_down(ep, p, -ECONNREFUSED);
	}
}

int bw_remote_connect(struct bw_ep *ep, struct bw_remote *p)
{
	int error;

	if (p->meeting)
		return bw_kernel_meet(ep, p);
	if (p->handle || p->kernel) {
		p->by = p->kernel ? &bw_by_kernel : &bw_by_engine;
		return 0;
	}
	if (!bw_remote_may_local(ep, &p->addr))
		return bw_remote_connect_far(ep, p);
	error = bw_remote_connect_local(ep, p);
	if (!error || error == -EAGAIN)
		return error;
	error = bw_remote_connect_far(ep, p) == -EAGAIN ? -EAGAIN : error;
	if (p->by) {
		bw_log_once(BW_LOG_INFO, "local",
			    "no shared memory with engine %u of this node (%s): using %s",
			    p->addr.engine, strerror(-error),
			    p->by == &bw_by_kernel ? "kernel" : "udp");
		return 0;
	}
	if (error == -ECONNREFUSED)
		return bw_remote_refused(ep, p);
	return error == -EAGAIN ? error : -EHOSTUNREACH;
}

int bw_peer_find(struct bw_ep *ep, const struct bw_addr *addr, bw_peer_no *peer)
{
	struct bw_addr_fields a;
	struct bw_remote *p;
	int error = bw_addr_unpack(addr, &a);

	if (error)
		return error;
	if (a.cluster != ep->self.cluster)
		return -EPROTONOSUPPORT;
	if (!bw_remote_may_local(ep, &a) && !bw_kernel_reaches(ep, &a) &&
	    !bw_remote_engine_reaches(ep, &a))
		return -EHOSTUNREACH;
	bw_lock_take(&ep->lock);
	p = bw_remote_make(&ep->remotes, a.node, a.engine, a.inc);
	if (!p) {
		bw_lock_release(&ep->lock);
		return -ENOMEM;
	}
	*peer = p->number;
	p->known = true;
	if (!p->complete) {
		p->addr = a;
		p->complete = true;
		ep->remotes.named++;
		bw_remote_ghost(&ep->remotes, p, false);
		if (p->unneeded)
			bw_kernel_need(ep, p, true);
		/* It made contact before: now all its links are known. */
		if (p->handle && !p->status && !bw_remote_by_kernel(p)) {
			bw_host_tick(ep);
			error = bw_remote_connect_engine(ep, p);
			bw_host_transmit(ep);
		}
	}
	bw_lock_release(&ep->lock);
	return error;
}

int bw_peer_addr(struct bw_ep *ep, bw_peer_no peer, struct bw_addr *addr)
{
	struct bw_remote *p;

	bw_lock_take(&ep->lock);
	p = bw_remote_get(&ep->remotes, peer);
	if (p) {
		struct bw_addr_fields a = p->addr;

		a.cluster = ep->self.cluster;
		bw_addr_pack(&a, addr);
	}
	bw_lock_release(&ep->lock);
	return p ? 0 : -EINVAL;
}

int bw_peer_status(struct bw_ep *ep, bw_peer_no peer)
{
	struct bw_remote *p;
	int status;

	bw_lock_take(&ep->lock);
	p = bw_remote_get(&ep->remotes, peer);
	status = p ? p->status : -EINVAL;
	bw_lock_release(&ep->lock);
	return status;
}

void bw_peer_watch(struct bw_ep *ep, bw_peer_no peer, bool on)
{
	struct bw_remote *p;

	bw_lock_take(&ep->lock);
	p = bw_remote_get(&ep->remotes, peer);
	if (p && p->watch != on && !p->status) {
		struct bw_op op = {.type = BW_OP_WATCH, .on = on};

		p->watch = on;
		bw_host_tick(ep);
		if (!p->by)
			bw_remote_connect(ep, p); /* without a way it is not connected yet */
		if (p->by == &bw_by_kernel)
			bw_kernel_watch(ep, p, on);
		op.peer = p->handle;
		if (p->handle)
			bw_host_submit(ep, &op);
		bw_host_transmit(ep);
	}
	bw_lock_release(&ep->lock);
}

/* Of a peer in shared memory the kernel has told who it is. Is somebody else calling in its name? A
 * conversation that we began goes on, and so may one that it began when it could not attach to us:
 * from its own address, from which nothing of other nodes comes. With a key nobody else can. */
static bool bw_remote_impostor(const struct bw_ep *ep, const struct bw_remote *p,
			       const struct bw_event *ev)
{
	struct bw_link_addr udp;

	if (!p->local || p->handle == ev->peer || ep->keyed)
		return false;
	return !bw_addr_udp(&p->addr, ep->self.links, &udp) || ev->from.link != udp.link ||
	       ev->from.len != udp.len || memcmp(ev->from.bytes, udp.bytes, udp.len);
}

static void bw_remote_up(struct bw_ep *ep, const struct bw_event *ev)
{
	struct bw_remote *p = bw_remote_meet(ep, ev->node, ev->engine, ev->inc);

	if (!p || p->status || bw_remote_impostor(ep, p, ev)) {
		/* No memory for it, or it was given up before and is not taken back, or it is
		 * somebody else. */
		struct bw_op op = {.type = BW_OP_DISCONNECT, .peer = ev->peer};

		bw_host_submit(ep, &op);
		return;
	}
	bw_remote_set_handle(&ep->remotes, p, ev->peer);
	bw_remote_name(p, ev->name, sizeof(ev->name));
	p->up = true;
	BW_PROBE3(first_contact, ev->node, ev->engine, ev->from.link);
	if (!p->complete && ev->from.link < BW_LINK_NO_UDP) {
		p->addr.links |= BW_LINK_PACKET;
		p->addr.ethertype = ep->self.ethertype;
		memcpy(p->addr.mac, ev->from.bytes, 6);
	} else if (!p->complete) {
		bw_addr_set_udp(&p->addr, &ev->from);
	}
	p->check_at = ep->now + BW_REMOTE_CHECK_NS;
	ep->links_at = bw_min_u64(ep->links_at, p->check_at);
	/* It came first, by one link: try the others that its address names. */
	if (p->complete && !p->offered && !bw_remote_by_kernel(p))
		bw_remote_connect_engine(ep, p);
}

static void bw_remote_path(struct bw_ep *ep, const struct bw_event *ev)
{
	struct bw_remote *p = bw_remote_by_handle(&ep->remotes, ev->peer);
	uint8_t link = ev->from.link;

	if (!p || link >= BW_LINK_NUMBERS)
		return;
	if (!ev->usable) {
		BW_PROBE2(path_lost, p->addr.engine, link);
		return;
	}
	p->passed |= (uint8_t)(1u << link);
	if (ev->mtu > p->mtu[link])
		p->mtu[link] = ev->mtu;
}

void bw_remote_down(struct bw_ep *ep, struct bw_remote *p, int status)
{
	if (!p->status) {
		BW_PROBE3(peer_lost, p->addr.node, p->addr.engine, status);
		p->status = status;
		p->check_at = BW_NEVER;
		if (p->known && !p->complete && status != BW_DOWN_EVICTED)
			bw_remote_ghost(&ep->remotes, p, true);
		bw_log(BW_LOG_INFO, "peer %s engine %u is down: %s",
		       p->name[0] ? p->name : "(unknown)", p->addr.engine, strerror(-status));
		if (p->known)
			ep->handlers->peer_down(ep->arg, p->number, status);
		if (status == BW_DOWN_EVICTED) /* the program does not need it */
			p->known = false;
	}
	if (!p->known && !p->handle && !p->local && !p->kernel)
		bw_remote_forget(&ep->remotes, p);
}

/* Both sides tell what keeps them apart, by the same line: which of them is named first? */
static bool bw_remote_we_first(const struct bw_ep *ep, const struct bw_remote *p)
{
	return !p->name[0] || strcmp(ep->host, p->name) <= 0;
}

static void bw_remote_other_key(const struct bw_ep *ep, const struct bw_remote *p)
{
	const char *them = p->name[0] ? p->name : "a peer";
	bool us_first = bw_remote_we_first(ep, p);

	bw_log_both(BW_LOG_ERROR, "key",
		    "%s and %s do not have the same cluster key, so they do not talk to each "
		    "other; fix: the same key on both, of BEOWIRE_KEY (`beowire key check "
		    "--hosts ...` compares them) or of beowired, or none on either",
		    us_first ? ep->host : them, us_first ? them : ep->host);
}

/* The same. */
static void bw_remote_encrypts_not(const struct bw_ep *ep, const struct bw_remote *p)
{
	const char *them = p->name[0] ? p->name : "a peer";

	bw_log_both(BW_LOG_ERROR, "encrypt",
		    "%s encrypts, and %s does not, so they do not talk to each other; fix: set "
		    "BEOWIRE_ENCRYPT=1 on both, or on neither",
		    ep->env.encrypt ? ep->host : them, ep->env.encrypt ? them : ep->host);
}

static void bw_remote_other_version(const struct bw_ep *ep, const struct bw_remote *p,
				    unsigned int min, unsigned int max)
{
	struct {
		const char *name;
		unsigned int min, max;
	} who[2] = {{ep->host, BW_VERSION_MIN, BW_VERSION_MAX},
		    {p->name[0] ? p->name : "a peer", min, max}};
	unsigned int first = bw_remote_we_first(ep, p) ? 0 : 1, last = 1 - first;

	bw_log_both(BW_LOG_ERROR, "version",
		    "%s speaks versions %u to %u of the wire protocol and %s versions %u to %u, so "
		    "they do not talk to each other; fix: install the same Beowire on both",
		    who[first].name, who[first].min, who[first].max, who[last].name, who[last].min,
		    who[last].max);
}

void bw_remote_kept_apart(const struct bw_ep *ep, const struct bw_remote *p, int status,
			  unsigned int version_min, unsigned int version_max)
{
	if (!p->known)
		return;
	if (status == BW_DOWN_VERSION)
		bw_remote_other_version(ep, p, version_min, version_max);
	if (status == BW_DOWN_KEY)
		bw_remote_other_key(ep, p);
	if (status == BW_DOWN_ENCRYPT)
		bw_remote_encrypts_not(ep, p);
}

static void bw_remote_gone(struct bw_ep *ep, const struct bw_event *ev)
{
	struct bw_remote *p = bw_remote_by_handle(&ep->remotes, ev->peer);
	struct bw_link_addr udp;

	if (!p)
		return;
	bw_remote_set_handle(&ep->remotes, p, 0);
	if (ep->has_udp && bw_addr_udp(&p->addr, ep->self.links, &udp))
		bw_udp_forget(&ep->udp, &udp);
	bw_place_down(ep, p, ev->status);
	if (p->local) /* of whose end the kernel tells */
		return;
	if (ev->name[0])
		bw_remote_name(p, ev->name, sizeof(ev->name));
	bw_remote_kept_apart(ep, p, ev->status, ev->version_min, ev->version_max);
	bw_remote_down(ep, p, ev->status);
}

void bw_remote_event(struct bw_ep *ep, const struct bw_event *ev)
{
	if (ev->type == BW_EV_PEER_UP)
		bw_remote_up(ep, ev);
	else if (ev->type == BW_EV_PEER_DOWN)
		bw_remote_gone(ep, ev);
	else
		bw_remote_path(ep, ev);
}

/* One of several interfaces reaches nobody there. */
static void bw_remote_check_interface(struct bw_ep *ep, const struct bw_remote *p,
				      const struct bw_packet *link)
{
	if (!(p->offered & ~p->passed & 1u << link->link))
		return;
	bw_log_once(BW_LOG_WARN, link->name,
		    "raw Ethernet frames do not pass from %s on %s to %s: other interfaces carry "
		    "all. Name the networks of BEOWIRE_INTERFACES in the same order on all nodes",
		    ep->host, link->name, p->name);
}

/* The lower node of a pair speaks, so that one warning comes for both. */
static void bw_remote_check(struct bw_ep *ep, struct bw_remote *p)
{
	const uint8_t first = 1u << BW_LINK_NO_PACKET, packet = (1u << BW_LINK_NO_UDP) - first;
	uint32_t mtu = ep->packet[0].mtu;
	uint32_t expected = mtu < p->addr.packet_mtu ? mtu : p->addr.packet_mtu;

	if (ep->self.node > p->addr.node)
		return;
	if ((p->offered & packet) && !(p->passed & packet) && p->passed)
		bw_log_once(
			BW_LOG_WARN, "raw",
			"raw Ethernet frames (EtherType 0x%04X) do not pass from %s on %s to %s: "
			"using udp. If a switch or hypervisor filters them, set BEOWIRE_LINKS="
			"local,udp to skip the attempt",
			ep->env.ethertype, ep->host, ep->iface.name, p->name);
	for (int i = 0; i < ep->packets && p->passed & packet; i++)
		bw_remote_check_interface(ep, p, &ep->packet[i]);
	/* The search for the size ends below this grain. */
	if ((p->passed & first) && p->complete && p->mtu[BW_LINK_NO_PACKET] + 128 < expected)
		bw_log_once(
			BW_LOG_WARN, "jumbo",
			"frames of %u bytes do not pass from %s on %s to %s: using %u. Give every "
			"switch on the way the same MTU, or set BEOWIRE_MTU",
			expected, ep->host, ep->iface.name, p->name, p->mtu[BW_LINK_NO_PACKET]);
}

void bw_remote_check_links(struct bw_ep *ep)
{
	if (ep->now < ep->links_at)
		return;
	ep->links_at = BW_NEVER;
	for (uint32_t i = 0; i < ep->remotes.count; i++) {
		struct bw_remote *p = ep->remotes.at[i];

		if (!p)
			continue;
		if (p->check_at > ep->now) {
			ep->links_at = bw_min_u64(ep->links_at, p->check_at);
			continue;
		}
		p->check_at = BW_NEVER;
		if (p->known)
			bw_remote_check(ep, p);
	}
}
