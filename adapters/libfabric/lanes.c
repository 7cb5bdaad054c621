// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Lanes: see lanes.h. A lane lives only while it has members; emptied lanes are kept as spares, so
 * that a steady flow of messages allocates nothing.
 */
#include "lanes.h"
#include "secret.h"

#include <stdlib.h>

#define BWF_LANES_BUCKETS_MIN 64

/* Two products of 128 bits with the secret in both factors: tags in steps, of which one product
 * alone often makes few different ones, are spread too (tests/libfabric/test_lanes.c). */
static size_t bwf_lanes_slot(const struct bwf_lanes *l, uint32_t peer, uint64_t tag)
{
	unsigned __int128 h = (unsigned __int128)(tag ^ l->secret[0]) * (peer ^ l->secret[1]);

	h = (unsigned __int128)((uint64_t)h ^ l->secret[0]) * ((uint64_t)(h >> 64) ^ l->secret[1]);
	return (size_t)((uint64_t)h ^ (uint64_t)(h >> 64)) & (l->buckets - 1);
}

static void bwf_lanes_draw(struct bwf_lanes *l)
{
	struct bw_secret s = {.left = 0};

	l->secret[0] = bw_secret_draw(&s);
	l->secret[1] = bw_secret_draw(&s);
}

static struct bwf_lane *bwf_lanes_find(const struct bwf_lanes *l, uint32_t peer, uint64_t tag)
{
	struct bwf_lane *lane;

	if (!l->buckets)
		return NULL;
	lane = l->bucket[bwf_lanes_slot(l, peer, tag)];
	while (lane && (lane->tag != tag || lane->peer != peer))
		lane = lane->next;
	return lane;
}

/* Double the table when lanes outnumber buckets. Failing to is harmless while there is a table. */
static bool bwf_lanes_grow(struct bwf_lanes *l)
{
	struct bwf_lanes wide = *l;

	if (l->lanes < l->buckets)
		return true;
	wide.buckets = l->buckets ? l->buckets * 2 : BWF_LANES_BUCKETS_MIN;
	wide.bucket = calloc(wide.buckets, sizeof(*wide.bucket));
	if (!wide.bucket)
		return l->buckets != 0;
	if (!l->buckets)
		bwf_lanes_draw(&wide);
	for (size_t i = 0; i < l->buckets; i++) {
		while (l->bucket[i]) {
			struct bwf_lane *lane = l->bucket[i];
			size_t slot = bwf_lanes_slot(&wide, lane->peer, lane->tag);

			l->bucket[i] = lane->next;
			lane->next = wide.bucket[slot];
			wide.bucket[slot] = lane;
		}
	}
	free(l->bucket);
	*l = wide;
	return true;
}

static struct bwf_lane *bwf_lanes_open(struct bwf_lanes *l, uint32_t peer, uint64_t tag)
{
	struct bwf_lane *lane;
	size_t slot;

	if (!bwf_lanes_grow(l))
		return NULL;
	lane = l->spare;
	if (lane)
		l->spare = lane->next;
	else
		lane = malloc(sizeof(*lane));
	if (!lane)
		return NULL;
	slot = bwf_lanes_slot(l, peer, tag);
	*lane = (struct bwf_lane){.next = l->bucket[slot], .tag = tag, .peer = peer};
	l->bucket[slot] = lane;
	l->lanes++;
	return lane;
}

static void bwf_lanes_close(struct bwf_lanes *l, struct bwf_lane *lane)
{
	struct bwf_lane **at = &l->bucket[bwf_lanes_slot(l, lane->peer, lane->tag)];

	while (*at != lane)
		at = &(*at)->next;
	*at = lane->next;
	lane->next = l->spare;
	l->spare = lane;
	l->lanes--;
}

bool bwf_lanes_add(struct bwf_lanes *l, uint32_t peer, uint64_t tag, struct bwf_link *link)
{
	struct bwf_lane *lane = bwf_lanes_find(l, peer, tag);

	if (!lane)
		lane = bwf_lanes_open(l, peer, tag);
	if (!lane)
		return false;
	link->lane = lane;
	link->next = NULL;
	link->prev = lane->tail;
	if (lane->tail)
		lane->tail->next = link;
	else
		lane->head = link;
	lane->tail = link;
	return true;
}

void bwf_lanes_del(struct bwf_lanes *l, struct bwf_link *link)
{
	struct bwf_lane *lane = link->lane;

	if (link->prev)
		link->prev->next = link->next;
	else
		lane->head = link->next;
	if (link->next)
		link->next->prev = link->prev;
	else
		lane->tail = link->prev;
	link->lane = NULL;
	if (!lane->head)
		bwf_lanes_close(l, lane);
}

struct bwf_link *bwf_lanes_first(const struct bwf_lanes *l, uint32_t peer, uint64_t tag)
{
	struct bwf_lane *lane = bwf_lanes_find(l, peer, tag);

	return lane ? lane->head : NULL;
}

static void bwf_lanes_free_list(struct bwf_lane *lane)
{
	while (lane) {
		struct bwf_lane *next = lane->next;

		free(lane);
		lane = next;
	}
}

void bwf_lanes_free(struct bwf_lanes *l)
{
	for (size_t i = 0; i < l->buckets; i++)
		bwf_lanes_free_list(l->bucket[i]);
	bwf_lanes_free_list(l->spare);
	free(l->bucket);
	*l = (struct bwf_lanes){0};
}
