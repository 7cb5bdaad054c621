/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Peers of a simple protocol, which are addresses and nothing else: whoever is sent to, or sends,
 * becomes one. There is room for so many; then the idlest gives way to a new one.
 */
#ifndef BW_SIMPLE_PEERS_H
#define BW_SIMPLE_PEERS_H

#include "list.h"
#include "simple.h"

#define BW_SIMPLE_PEERS	  1024
#define BW_SIMPLE_BUCKETS 512	    /* of the table by address */
#define BW_SIMPLE_SERIALS 0x400000u /* that a handle has room for */

struct bw_simple_peer {
	struct bw_list idle; /* whoever was spoken with latest is first */
	struct bw_link_addr addr;
	uint32_t handle; /* index + 1 in the low bits, above them which peer it is there; 0: none */
	uint32_t ops;	 /* that it has under way: meanwhile it stays */
	uint16_t engine;
	uint16_t chain; /* index + 1 of the next one in its bucket; 0: it is the last */
	bool leaving, heard;
};

struct bw_simple_peers {
	struct bw_simple_peer peer[BW_SIMPLE_PEERS];
	struct bw_list idle;		    /* all of them, those that are not used at the end */
	struct bw_counters *count;	    /* `peers` that are used, and those `evicted` */
	uint32_t serial;		    /* of the latest */
	uint16_t bucket[BW_SIMPLE_BUCKETS]; /* index + 1 of the first one in it; 0: it is empty */
	const struct bw_host_ops *ops;	    /* for random() and siphash() */
	uint8_t secret[16];		    /* key of the buckets, drawn when it is opened */
	uint64_t steps;			    /* along chains, ever; for tests */
};

static inline void bw_simple_peers_init(struct bw_simple_peers *s, struct bw_counters *count,
					const struct bw_host_ops *ops, void *host)
{
	uint64_t half[2] = {ops->random(host), ops->random(host)};
	int i;

	s->count = count;
	s->ops = ops;
	memcpy(s->secret, half, sizeof(s->secret));
	bw_list_init(&s->idle);
	for (i = 0; i < BW_SIMPLE_PEERS; i++)
		bw_list_add_before(&s->idle, &s->peer[i].idle);
}

/* The peer of this handle, or NULL. */
static inline struct bw_simple_peer *bw_simple_peer(struct bw_simple_peers *s, uint32_t handle)
{
	struct bw_simple_peer *p = &s->peer[(handle - 1) % BW_SIMPLE_PEERS];

	return handle && p->handle == handle ? p : NULL;
}

/* A peer is spoken with. */
static inline void bw_simple_peer_touch(struct bw_simple_peers *s, struct bw_simple_peer *p)
{
	bw_list_del(&p->idle);
	bw_list_add_before(s->idle.next, &p->idle);
}

/* Anybody can send from any address: a keyed hash keeps him from choosing the bucket. */
static inline uint16_t *bw_simple_bucket(struct bw_simple_peers *s, const struct bw_link_addr *addr,
					 uint16_t engine)
{
	struct {
		struct bw_link_addr addr;
		uint64_t engine;
	} who = {.addr = *addr, .engine = engine};

	_Static_assert(sizeof(who) == sizeof(*addr) + 8, "no padding is hashed");
	return &s->bucket[s->ops->siphash(s->secret, &who, sizeof(who)) % BW_SIMPLE_BUCKETS];
}

/* Its address is another peer's, or nobody's, from now on. */
static inline void bw_simple_peer_unchain(struct bw_simple_peers *s, struct bw_simple_peer *p)
{
	uint16_t *at = bw_simple_bucket(s, &p->addr, p->engine);

	while (*at && &s->peer[*at - 1] != p)
		at = &s->peer[*at - 1].chain;
	*at = p->chain;
}

static inline void bw_simple_peer_forget(struct bw_simple_peers *s, struct bw_simple_peer *p)
{
	bw_simple_peer_unchain(s, p);
	p->handle = 0;
	s->count->peers--;
	bw_list_del(&p->idle);
	bw_list_add_before(&s->idle, &p->idle);
}

static inline bool bw_simple_peer_is(const struct bw_simple_peer *p,
				     const struct bw_link_addr *addr, uint16_t engine)
{
	return p->engine == engine && !memcmp(&p->addr, addr, sizeof(*addr));
}

static inline struct bw_simple_peer *
bw_simple_peer_find(struct bw_simple_peers *s, const struct bw_link_addr *addr, uint16_t engine)
{
	struct bw_simple_peer *p = bw_entry(s->idle.next, struct bw_simple_peer, idle);
	uint16_t i;

	if (p->handle && bw_simple_peer_is(p, addr, engine)) /* as mostly */
		return p;
	for (i = *bw_simple_bucket(s, addr, engine); i; i = p->chain) {
		s->steps++;
		p = &s->peer[i - 1];
		if (bw_simple_peer_is(p, addr, engine))
			return p;
	}
	return NULL;
}

/* That of the next peer at this index. The greatest serial and index would give 0, for none. */
static inline uint32_t bw_simple_peers_handle(struct bw_simple_peers *s, uint32_t index)
{
	uint32_t handle;

	do {
		s->serial = (s->serial + 1) % BW_SIMPLE_SERIALS;
		handle = s->serial * BW_SIMPLE_PEERS + index + 1;
	} while (!handle);
	return handle;
}

/* The peer of this address, perhaps a new one; NULL: all have something under way. Who has given
 * way to it is told by *down, whose type is 0 otherwise. */
static inline struct bw_simple_peer *bw_simple_peer_meet(struct bw_simple_peers *s,
							 const struct bw_link_addr *addr,
							 uint16_t engine, struct bw_event *down)
{
	struct bw_simple_peer *p = bw_simple_peer_find(s, addr, engine);
	struct bw_list *l = s->idle.prev;
	uint16_t *bucket;

	*down = (struct bw_event){0};
	if (!p) {
		while (l != &s->idle && bw_entry(l, struct bw_simple_peer, idle)->ops)
			l = l->prev;
		if (l == &s->idle)
			return NULL;
		p = bw_entry(l, struct bw_simple_peer, idle);
		if (p->handle) {
			*down = (struct bw_event){.type = BW_EV_PEER_DOWN,
						  .status = BW_DOWN_CLOSED,
						  .peer = p->handle,
						  .engine = p->engine};
			bw_simple_peer_unchain(s, p);
			s->count->evicted++;
		} else {
			s->count->peers++;
		}
		p->handle = bw_simple_peers_handle(s, (uint32_t)(p - s->peer));
		p->addr = *addr;
		p->engine = engine;
		p->leaving = p->heard = false;
		bucket = bw_simple_bucket(s, addr, engine);
		p->chain = *bucket;
		*bucket = (uint16_t)(p - s->peer + 1);
	}
	bw_simple_peer_touch(s, p);
	return p;
}

#endif
