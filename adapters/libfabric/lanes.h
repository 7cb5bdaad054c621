/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A hash table of first-in-first-out lists ("lanes"), one for each key (peer, tag) that has
 * members. Members embed a bwf_link; adding, removing and finding the oldest member of a key cost
 * O(1), whatever keys there are: peers choose tags, and do not know the secret of the hash.
 */
#ifndef BWF_LANES_H
#define BWF_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bwf_link {
	struct bwf_link *prev, *next; /* neighbours in the lane; NULL at its ends */
	struct bwf_lane *lane;	      /* NULL while in no lane */
};

struct bwf_lane {
	struct bwf_lane *next; /* in its bucket, or in the list of spares */
	struct bwf_link *head, *tail;
	uint64_t tag;
	uint32_t peer;
};

struct bwf_lanes {
	struct bwf_lane **bucket;
	size_t buckets; /* a power of two, 0 before the first use */
	size_t lanes;	/* lanes that have members */
	struct bwf_lane *spare;
	uint64_t secret[2]; /* of the hash, drawn with the first table */
};

/* Append a link to the lane of (peer, tag). False without memory: nothing was changed. */
bool bwf_lanes_add(struct bwf_lanes *l, uint32_t peer, uint64_t tag, struct bwf_link *link);
void bwf_lanes_del(struct bwf_lanes *l, struct bwf_link *link);
/* The oldest link of (peer, tag), or NULL. */
struct bwf_link *bwf_lanes_first(const struct bwf_lanes *l, uint32_t peer, uint64_t tag);
/* Free the table's memory. Links that are still members are forgotten. */
void bwf_lanes_free(struct bwf_lanes *l);

#endif
