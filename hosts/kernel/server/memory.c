/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an instance holds for peers; see memory.h. */
#include "memory.h"

#include <stdlib.h>

#include "instance.h"
#include "plain.h"

#define RELIEVE_NS (100 * BW_MS) /* between two looks at all peers */

/* ---- what the engine grows by ---- */

static void memory_add(struct instance *in, uint64_t most)
{
	uint8_t *chunk = NULL;

	if (in->grown_bytes + BW_GROW_BYTES <= most)
		chunk = aligned_alloc(64, BW_GROW_BYTES + 64);
	if (!chunk) {
		in->protocol->grow(in->engine, NULL);
		return;
	}
	*(void **)chunk = in->grown;
	in->grown = chunk;
	in->grown_bytes += BW_GROW_BYTES;
	in->protocol->grow(in->engine, chunk + 64);
}

void memory_grow(struct instance *in)
{
	memory_add(in, MEMORY_GROWN_MAX);
}

void memory_feed(struct instance *in)
{
	memory_add(in, MEMORY_GROWN_MAX - MEMORY_GROWN_MAX / 4);
}

void memory_free(struct instance *in)
{
	while (in->grown) {
		void *next = *(void **)in->grown;

		free(in->grown);
		in->grown = next;
	}
}

/* ---- messages that have begun ---- */

static uint64_t memory_charge(uint64_t n)
{
	return sizeof(struct plain_buffer) + n;
}

static void memory_moves(struct peer *peer)
{
	peer->arriving_at = bw_clock_now();
	peer->arriving_refused = 0;
}

uint64_t memory_buf_get(void *host, uint32_t handle, uint64_t n, bool next)
{
	struct instance *in = host;
	struct peer *peer = peers_find(&in->peers, handle);
	uint64_t most = MEMORY_ARRIVING_MAX + (next ? MEMORY_ARRIVING_NEXT : 0);
	struct plain_buffer *b = NULL;

	if (in->arriving + memory_charge(n) <= most)
		b = plain_buffer_new(n);
	if (!b) {
		in->crowded = true;
		if (peer && next)
			peer->arriving_refused = bw_clock_now();
		return 0;
	}
	b->owner = peer ? handle : 0;
	b->first = next;
	in->arriving += memory_charge(n);
	if (peer) {
		peer->arriving += memory_charge(n);
		peer->arriving_next += next;
		memory_moves(peer);
	}
	return (uintptr_t)b;
}

void memory_buf_put(void *host, uint64_t buf)
{
	struct instance *in = host;
	struct plain_buffer *b = plain_buffer_of(buf);
	struct peer *peer = peers_find(&in->peers, b->owner);

	in->arriving -= memory_charge(b->len);
	if (peer) {
		peer->arriving -= memory_charge(b->len);
		peer->arriving_next -= b->first;
		memory_moves(peer);
	}
	free(b);
}

/* Is there no room for what its messages wait for? Whoever wants room sends again within a second:
 * who has long not done so does not want any more. */
static bool memory_holds_up(const struct peer *peer, uint64_t now)
{
	return peer->arriving_refused && now - peer->arriving_refused < MEMORY_ARRIVING_STALE;
}

/* Does it keep its messages from going on? Not if there was no room for the next one, unless it has
 * begun another that waits for none: that it could end. */
static bool memory_stands_still(const struct peer *peer, uint64_t now)
{
	return peer->arriving && now - peer->arriving_at >= MEMORY_ARRIVING_STALE &&
	       (!memory_holds_up(peer, now) || peer->arriving_next);
}

void memory_relieve(struct instance *in)
{
	uint64_t now = bw_clock_now();
	const struct peer *peer;
	uint32_t i;

	in->crowded = false;
	if (now < in->relieve_at)
		return;
	in->relieve_at = now + RELIEVE_NS;
	for (i = 0; i < in->peers.buckets; i++) {
		for (peer = in->peers.bucket[i]; peer; peer = peer->next) {
			struct bw_op op = {.type = BW_OP_DISCONNECT, .peer = peer->handle};

			if (!memory_stands_still(peer, now))
				continue;
			in->protocol->submit(in->engine, &op, now);
			in->given_up++;
		}
	}
}
