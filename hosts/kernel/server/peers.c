/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The peers of an instance; see peers.h. */
#include "peers.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_BUCKETS 64 /* at first; doubled when as many peers are known */

void peers_init(struct peers *p, const struct bw_host_ops *ops, void *host)
{
	uint64_t half[2] = {ops->random(host), ops->random(host)};

	_Static_assert(sizeof(half) == sizeof(p->key), "all of the key is drawn");
	*p = (struct peers){.ops = ops};
	memcpy(p->key, half, sizeof(half));
}

void peers_free(struct peers *p)
{
	for (uint32_t i = 0; i < p->buckets; i++) {
		while (p->bucket[i]) {
			struct peer *next = p->bucket[i]->next;

			free(p->bucket[i]);
			p->bucket[i] = next;
		}
	}
	free(p->bucket);
	p->bucket = NULL;
	p->buckets = p->count = 0;
}

/* Of a table that there is. */
static struct peer **peers_bucket(const struct peers *p, uint32_t handle)
{
	return &p->bucket[p->ops->siphash(p->key, &handle, sizeof(handle)) & (p->buckets - 1)];
}

/* Twice as many buckets. Without memory for them chains are longer. */
static void peers_spread(struct peers *p)
{
	struct peers wider = *p;
	uint32_t i;

	wider.buckets = p->buckets ? 2 * p->buckets : FIRST_BUCKETS;
	wider.bucket = calloc(wider.buckets, sizeof(*wider.bucket));
	if (!wider.bucket)
		return;
	for (i = 0; i < p->buckets; i++) {
		while (p->bucket[i]) {
			struct peer *peer = p->bucket[i], **to;

			p->bucket[i] = peer->next;
			to = peers_bucket(&wider, peer->handle);
			peer->next = *to;
			*to = peer;
		}
	}
	free(p->bucket);
	*p = wider;
}

struct peer *peers_find(struct peers *p, uint32_t handle)
{
	struct peer *peer = p->buckets ? *peers_bucket(p, handle) : NULL;

	for (; peer && peer->handle != handle; peer = peer->next)
		p->steps++;
	return peer;
}

struct peer *peers_make(struct peers *p, uint32_t handle)
{
	struct peer *peer = peers_find(p, handle), **to;

	if (peer)
		return peer;
	if (p->count >= p->buckets)
		peers_spread(p);
	peer = p->buckets ? calloc(1, sizeof(*peer)) : NULL;
	if (!peer)
		return NULL;
	peer->handle = handle;
	to = peers_bucket(p, handle);
	peer->next = *to;
	*to = peer;
	p->count++;
	return peer;
}

void peers_drop(struct peers *p, struct peer *peer)
{
	struct peer **at = peers_bucket(p, peer->handle);

	while (*at != peer)
		at = &(*at)->next;
	*at = peer->next;
	free(peer);
	p->count--;
}
