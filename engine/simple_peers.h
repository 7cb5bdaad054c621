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
#define BW_SIMPLE_SERIALS 0x400000u /* that a handle has room for */

struct bw_simple_peer {
	struct bw_list idle; /* whoever was spoken with latest is first */
	struct bw_link_addr addr;
	uint32_t handle; /* index + 1 in the low bits, above them which peer it is there; 0: none */
	uint32_t ops;	 /* that it has under way: meanwhile it stays */
	uint16_t engine;
	bool leaving, heard;
};

struct bw_simple_peers {
	struct bw_simple_peer peer[BW_SIMPLE_PEERS];
	struct bw_list idle; /* all of them, those that are not used at the end */
	uint64_t *count;     /* of those that are used */
	uint32_t serial;     /* of the latest */
};

static inline void bw_simple_peers_init(struct bw_simple_peers *s, uint64_t *count)
{
	int i;

	s->count = count;
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

static inline void bw_simple_peer_forget(struct bw_simple_peers *s, struct bw_simple_peer *p)
{
	p->handle = 0;
	--*s->count;
	bw_list_del(&p->idle);
	bw_list_add_before(&s->idle, &p->idle);
}

static inline struct bw_simple_peer *
bw_simple_peer_find(struct bw_simple_peers *s, const struct bw_link_addr *addr, uint16_t engine)
{
	struct bw_simple_peer *p;
	struct bw_list *l;

	for (l = s->idle.next; l != &s->idle; l = l->next) {
		p = bw_entry(l, struct bw_simple_peer, idle);
		if (!p->handle)
			return NULL;
		if (p->engine == engine && !memcmp(&p->addr, addr, sizeof(*addr)))
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

	*down = (struct bw_event){0};
	if (!p) {
		while (l != &s->idle && bw_entry(l, struct bw_simple_peer, idle)->ops)
			l = l->prev;
		if (l == &s->idle)
			return NULL;
		p = bw_entry(l, struct bw_simple_peer, idle);
		if (p->handle)
			*down = (struct bw_event){.type = BW_EV_PEER_DOWN,
						  .status = BW_DOWN_CLOSED,
						  .peer = p->handle,
						  .engine = p->engine};
		else
			++*s->count;
		p->handle = bw_simple_peers_handle(s, (uint32_t)(p - s->peer));
		p->addr = *addr;
		p->engine = engine;
		p->leaving = p->heard = false;
	}
	bw_simple_peer_touch(s, p);
	return p;
}

#endif
