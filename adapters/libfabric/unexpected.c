// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Memory of messages that came before their receive. Short ones live in slabs by size and are used
 * again; long ones are allocated each. When all together exceed a limit, peers are told to send
 * envelopes only, and told again when half of it is free: programs that send far ahead work in
 * bounded memory. A peer that does not listen, or sends ahead without end, is given up.
 */
#include "bwf.h"

#include "setting.h"

#include <stdlib.h>

#define BWF_UNEXPECTED_MAX (64ULL << 20) /* default limit in bytes */
#define BWF_SLAB_BYTES	   (256U << 10)

/* Messages that one peer may have waiting, by default: an MPI program that sends further ahead than
 * that of its receiver has lost control of it. */
#define BWF_UNEXPECTED_EACH (1ULL << 20)
/* Bytes of one peer beyond the limit, which pressure comes too late for: libbeowire copies 16 MiB
 * at most of what is sent ahead, and links hold a few more. */
#define BWF_UNEXPECTED_AHEAD (32U << 20)
/* Bytes of a message that is no burden: libbeowire sends those under pressure as before. */
#define BWF_UNEXPECTED_SHORT 64

/* Bytes of data, each class twice the one before, so that a peer takes little more than what it is
 * charged with. */
static const size_t bwf_unexpected_size[BWF_UNEXPECTED_CLASSES] = {16,	 64,   128,  256,     512,
								   1024, 2048, 4096, SIZE_MAX};

struct bwf_slab {
	struct bwf_slab *next;
};

static size_t bwf_unexpected_wish(const char *name, size_t otherwise)
{
	const char *wish = bw_setting(name);
	size_t value;
	char *end;

	if (!wish || !*wish)
		return otherwise;
	errno = 0;
	value = strtoull(wish, &end, 10);
	if (!errno && end != wish && !*end)
		return value;
	bwf_log(BWF_LOG_WARN, "%s=%s is not a number: ignored", name, wish);
	return otherwise;
}

void bwf_unexpected_init(struct bwf_ep *ep)
{
	ep->unexpected.limit = bwf_unexpected_wish("BEOWIRE_UNEXPECTED_MAX", BWF_UNEXPECTED_MAX);
	ep->unexpected.each = bwf_unexpected_wish("BEOWIRE_UNEXPECTED_EACH", BWF_UNEXPECTED_EACH);
	bwf_stranger_init(ep);
}

/* What its sender is charged with, of bytes that it might have kept. */
static size_t bwf_unexpected_burden(uint64_t len, bool envelope)
{
	return envelope || len <= BWF_UNEXPECTED_SHORT ? 0 : len;
}

bool bwf_unexpected_admits(const struct bwf_ep *ep, const struct bw_message *m)
{
	const struct bwf_peer *peer = &ep->peer[m->peer];
	uint64_t bytes = peer->unexpected_bytes + bwf_unexpected_burden(m->len, m->envelope);

	return peer->unexpected < ep->unexpected.each &&
	       (bytes <= BWF_UNEXPECTED_AHEAD ||
		bytes - BWF_UNEXPECTED_AHEAD <= ep->unexpected.limit);
}

static uint8_t bwf_unexpected_class(size_t len)
{
	uint8_t c = 0;

	while (len > bwf_unexpected_size[c])
		c++;
	return c;
}

static size_t bwf_unexpected_bytes(const struct bwf_unexpected *u)
{
	size_t room = bwf_unexpected_size[u->size_class];

	if (u->envelope)
		return sizeof(*u);
	return sizeof(*u) + (room == SIZE_MAX ? u->len : room);
}

/* Cut a new slab into entries of one class. */
static bool bwf_unexpected_grow(struct bwf_unexpected_pool *pool, uint8_t c)
{
	size_t step = (sizeof(struct bwf_unexpected) + bwf_unexpected_size[c] + 15) & ~(size_t)15;
	struct bwf_slab *slab = malloc(BWF_SLAB_BYTES);
	char *at = (char *)slab + 16;

	if (!slab)
		return false;
	slab->next = pool->slabs;
	pool->slabs = slab;
	for (; at + step <= (char *)slab + BWF_SLAB_BYTES; at += step) {
		struct bwf_unexpected *u = (struct bwf_unexpected *)at;

		u->next = pool->spare[c];
		pool->spare[c] = u;
	}
	return true;
}

/* Account for `size` bytes more or, modulo SIZE_MAX + 1, less of one peer's. */
static void bwf_unexpected_charge(struct bwf_ep *ep, bw_peer_no number, size_t size)
{
	struct bwf_unexpected_pool *pool = &ep->unexpected;
	struct bwf_peer *peer = &ep->peer[number];
	size_t before = pool->bytes;

	pool->bytes += size;
	peer->unread += size;
	if (peer->addr == FI_ADDR_NOTAVAIL)
		pool->strangers += size;
	if (pool->bytes > before && pool->bytes > pool->limit && !pool->pressure) {
		pool->pressure = true;
		bwf_log(BWF_LOG_INFO, "unexpected messages fill %zu bytes: peers send envelopes",
			pool->bytes);
		bw_ep_pressure(ep->bw, true);
	} else if (pool->pressure && pool->bytes <= pool->limit / 2) {
		pool->pressure = false;
		bw_ep_pressure(ep->bw, false);
	}
}

/* It is the newest of its peer's. */
static void bwf_unexpected_link(struct bwf_ep *ep, struct bwf_unexpected *u)
{
	struct bwf_peer *peer = &ep->peer[u->peer];

	u->older = peer->newest;
	u->newer = NULL;
	*(u->older ? &u->older->newer : &peer->oldest) = u;
	peer->newest = u;
	u->since = peer->addr == FI_ADDR_NOTAVAIL ? bwf_now_ns() : 0;
}

static void bwf_unexpected_unlink(struct bwf_ep *ep, const struct bwf_unexpected *u)
{
	struct bwf_peer *peer = &ep->peer[u->peer];

	*(u->older ? &u->older->newer : &peer->oldest) = u->newer;
	*(u->newer ? &u->newer->older : &peer->newest) = u->older;
	peer->claimed -= u->claimed;
}

struct bwf_unexpected *bwf_unexpected_new(struct bwf_ep *ep, const struct bw_message *m)
{
	struct bwf_unexpected_pool *pool = &ep->unexpected;
	size_t len = m->envelope ? 0 : m->len;
	uint8_t c = bwf_unexpected_class(len);
	struct bwf_unexpected *u;

	if (c == BWF_UNEXPECTED_CLASSES - 1) {
		u = malloc(sizeof(*u) + len);
	} else {
		if (!pool->spare[c] && !bwf_unexpected_grow(pool, c))
			return NULL;
		u = pool->spare[c];
		pool->spare[c] = u->next;
	}
	if (!u)
		return NULL;
	u->size_class = c;
	u->arrived.tag = (m->code & BWF_CODE_MASK) == BWF_CODE_TAGGED ? m->tag : 0;
	u->arrived.peer = m->peer;
	u->peer = m->peer;
	u->claimed = false;
	u->code = m->code;
	u->imm = m->imm;
	u->len = m->len;
	u->envelope = m->envelope;
	if (m->envelope)
		u->rndv = m->rndv;
	else
		memcpy(u->data, m->data, len);
	ep->peer[m->peer].unexpected++;
	ep->peer[m->peer].unexpected_bytes += bwf_unexpected_burden(m->len, m->envelope);
	bwf_unexpected_charge(ep, m->peer, bwf_unexpected_bytes(u));
	bwf_unexpected_link(ep, u);
	return u;
}

void bwf_unexpected_put(struct bwf_ep *ep, struct bwf_unexpected *u)
{
	struct bwf_unexpected_pool *pool = &ep->unexpected;
	size_t size = bwf_unexpected_bytes(u);
	bw_peer_no peer = u->peer;

	bwf_unexpected_unlink(ep, u);
	ep->peer[u->peer].unexpected--;
	ep->peer[u->peer].unexpected_bytes -= bwf_unexpected_burden(u->len, u->envelope);
	if (u->size_class == BWF_UNEXPECTED_CLASSES - 1) {
		free(u);
	} else {
		u->next = pool->spare[u->size_class];
		pool->spare[u->size_class] = u;
	}
	bwf_unexpected_charge(ep, peer, 0 - size);
}

void bwf_unexpected_message(const struct bwf_unexpected *u, struct bw_message *m)
{
	*m = (struct bw_message){
		.peer = u->peer,
		.code = u->code,
		.tag = u->arrived.tag,
		.imm = u->imm,
		.len = u->len,
		.data = u->envelope ? NULL : u->data,
		.envelope = u->envelope,
	};
	if (u->envelope)
		m->rndv = u->rndv;
}

/* Half of the limit, beside what peers are told of. */
bool bwf_unexpected_reserve(struct bwf_ep *ep, size_t bytes)
{
	struct bwf_unexpected_pool *pool = &ep->unexpected;

	if (bytes > pool->limit / 2 || pool->early > pool->limit / 2 - bytes)
		return false;
	pool->early += bytes;
	return true;
}

void bwf_unexpected_release(struct bwf_ep *ep, size_t bytes)
{
	ep->unexpected.early -= bytes;
}

static void bwf_unexpected_free_queue(struct bwf_match *m)
{
	while (m->arrived_head) {
		struct bwf_unexpected *u = BWF_OF(m->arrived_head, struct bwf_unexpected, arrived);

		bwf_match_unstore(m, &u->arrived);
		if (u->size_class == BWF_UNEXPECTED_CLASSES - 1)
			free(u);
	}
}

void bwf_unexpected_free_all(struct bwf_ep *ep)
{
	struct bwf_slab *slab = ep->unexpected.slabs;

	bwf_unexpected_free_queue(&ep->msg);
	bwf_unexpected_free_queue(&ep->tagged);
	while (ep->claimed) {
		struct bwf_unexpected *u = ep->claimed;

		ep->claimed = u->next;
		if (u->size_class == BWF_UNEXPECTED_CLASSES - 1)
			free(u);
	}
	while (slab) {
		struct bwf_slab *next = slab->next;

		free(slab);
		slab = next;
	}
	ep->unexpected = (struct bwf_unexpected_pool){0};
}
