/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Serving a peer that cannot read our memory itself: it asks with PULL or READ, and the data goes
 * through the ring in pieces as room comes free, between messages.
 */
#include "link/local/impl.h"

#define PIECE_SHARE 8	   /* a piece takes at most 1/8 of the ring ... */
#define PIECE_MAX   32768u /* ... and so many bytes, which stay in the second-level cache */
#define SPARE_SHARE 4	   /* of the ring is left to messages */

static void refuse(struct bw_local_peer *p, uint64_t id, int status)
{
	struct bw_local_note n = {
		.what = BW_LOCAL_WHAT(BW_LOCAL_REFUSED, 0, BW_LOCAL_NO_SLOT),
		.a = (uint64_t)(int64_t)status,
		.b = id,
	};

	bw_local_note(p, &n);
}

/* An honest peer never asks for more than the window at a time. */
static void serve(struct bw_local_peer *p, const struct bw_local_serve *s)
{
	if (s->id >= BW_LOCAL_WINDOW || p->serves == BW_LOCAL_WINDOW) {
		bw_local_peer_fail(p, -EPROTO);
		return;
	}
	p->serve[(p->serve_first + p->serves++) % BW_LOCAL_WINDOW] = *s;
	p->work = true;
}

void bw_local_serve_pull(struct bw_local_peer *p, uint32_t slot, uint64_t len, uint64_t id)
{
	struct bw_local_serve s = {.id = id, .len = len, .slot = slot};

	if (slot >= p->slots || !p->slot[slot].envelope || len > p->slot[slot].len || len == 0)
		bw_local_peer_fail(p, -EPROTO);
	else
		serve(p, &s);
	bw_local_way_invited(&p->way);
}

static const void *region(struct bw_local_peer *p, uint64_t key, uint64_t off, uint64_t n)
{
	struct bw_local *l = p->link;

	return l->handlers->region ? l->handlers->region(l->arg, p->ctx, key, off, n) : NULL;
}

void bw_local_serve_read(struct bw_local_peer *p, uint64_t key, uint64_t off, uint64_t n,
			 uint64_t id, bool address)
{
	const void *at = off + n >= off && n > 0 ? region(p, key, off, n) : NULL;

	if (!at) {
		refuse(p, id, -EACCES);
	} else if (address) {
		struct bw_local_note grant = {
			.what = BW_LOCAL_WHAT(BW_LOCAL_GRANT, 0, BW_LOCAL_NO_SLOT),
			.a = (uintptr_t)at,
			.b = id,
		};

		p->link->counters.tx_payload += n;
		bw_local_note(p, &grant);
	} else {
		struct bw_local_serve s = {
			.id = id, .len = n, .slot = BW_LOCAL_NO_SLOT, .key = key, .off = off};

		serve(p, &s);
	}
}

/* Where the next n bytes for s lie now, or NULL: an envelope may have been released, and memory
 * deregistered, since the last piece. */
static const void *source(struct bw_local_peer *p, const struct bw_local_serve *s, uint64_t n)
{
	const struct bw_local_slot *slot;

	if (s->slot == BW_LOCAL_NO_SLOT)
		return region(p, s->key, s->off + s->done, n);
	slot = &p->slot[s->slot];
	if (!slot->live || !slot->envelope || s->len > slot->len)
		return NULL;
	return (const uint8_t *)slot->buf + s->done;
}

static void serve_done(struct bw_local_peer *p)
{
	p->serve_first = (p->serve_first + 1) % BW_LOCAL_WINDOW;
	p->serves--;
}

/* One piece of the first serve; false without room. */
static bool piece(struct bw_local_peer *p)
{
	struct bw_local_serve *s = &p->serve[p->serve_first];
	uint64_t most = bw_min_u64(p->tx.bytes / PIECE_SHARE, PIECE_MAX);
	uint64_t n = bw_min_u64(s->len - s->done, most);
	const void *from = source(p, s, n);

	if (!from) {
		refuse(p, s->id, -EACCES);
		serve_done(p);
		return true;
	}

	struct bw_local_record *r = bw_local_reserve(p, n, p->tx.bytes / SPARE_SHARE);

	if (!r)
		return false;
	r->len = (uint32_t)n;
	r->what = BW_LOCAL_WHAT(BW_LOCAL_DATA, 0, BW_LOCAL_NO_SLOT);
	r->a = s->done;
	r->b = s->id;
	memcpy(r->data, from, n);
	bw_local_commit(p, r, n);
	s->done += n;
	if (s->done == s->len) {
		if (s->slot == BW_LOCAL_NO_SLOT)
			p->link->counters.tx_payload += s->len;
		serve_done(p);
	}
	return true;
}

/* Send what there is room for; true when nothing is left to serve. */
bool bw_local_serves_run(struct bw_local_peer *p)
{
	while (p->serves > 0 && !p->down)
		if (!piece(p))
			return false;
	return true;
}
