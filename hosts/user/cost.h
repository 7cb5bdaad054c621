/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What long messages cost to and from a peer, in nanoseconds per KiB, learned from those that were
 * the only ones under way. Where that is much more than a copy in memory costs, copies pay. With
 * the endpoint's lock held.
 */
#ifndef BW_COST_H
#define BW_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "platform.h"

struct bw_buffer;

/* Memory is copied in about 200 ns per KiB: a copy of what takes twenty times that costs 5 % of it.
 * That is 250 MB/s. */
#define BW_COST_SLOW  4096
#define BW_COST_LEAST (32u << 10) /* bytes; what is shorter says nothing of a line's speed */
/* More does not count: one that was waited for does not make a peer slow, nor does the first one
 * for long. */
#define BW_COST_LATE (2 * BW_COST_SLOW)

/* Transfers in one direction. */
struct bw_lone {
	const struct bw_buffer *b; /* the only one under way since it began; or NULL */
	uint64_t since;		   /* when it began */
	uint32_t n;		   /* under way */
};

static inline void bw_lone_begin(struct bw_lone *l, const struct bw_buffer *b, uint64_t now)
{
	l->b = l->n++ ? NULL : b;
	l->since = now;
}

/* How long it took, in ns; 0 if it was not alone. */
static inline uint64_t bw_lone_end(struct bw_lone *l, const struct bw_buffer *b, uint64_t now)
{
	l->n--;
	if (l->b != b)
		return 0;
	l->b = NULL;
	return bw_max_u64(now - l->since, 1);
}

/* A running mean over some four transfers; 0: none yet. The time of short ones is latency. */
static inline void bw_cost_learn(uint32_t *cost, uint64_t took_ns, uint64_t len)
{
	uint32_t fresh;

	if (len < BW_COST_LEAST)
		return;
	fresh = (uint32_t)bw_min_u64(took_ns * 1024 / len, BW_COST_LATE);
	*cost = *cost ? *cost - *cost / 4 + fresh / 4 : (uint32_t)bw_max_u64(fresh, 1);
}

static inline bool bw_cost_is_high(uint32_t cost)
{
	return cost > BW_COST_SLOW;
}

#endif
