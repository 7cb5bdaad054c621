/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The way of long messages within a node: see way.h. */
#include "link/local/way.h"

#define BW_LOCAL_WAY_FIRST 32	/* pulls from one trial to the next, at first ... */
#define BW_LOCAL_WAY_MOST  2048 /* ... and when trials change nothing */
/* Pulls in a trial: the first ones through a ring touch its pages for the first time. It ends with
 * one that takes so many times what the other way does. */
#define BW_LOCAL_WAY_TRIAL 4
#define BW_LOCAL_WAY_WORST 16
#define BW_LOCAL_WAY_PAUSE 16 /* pulls from a trial to one that the peer invites to */
/* A single value counts as so many means at most: one that waited for a processor tells little,
 * several do. For the same reason means fall faster than they rise. */
#define BW_LOCAL_WAY_JUMP 4

/* Copying takes time of both processes: it has to be faster by a quarter. */
static bool copies(const struct bw_local_way *w)
{
	uint64_t direct = w->cost[BW_LOCAL_WAY_DIRECT];

	return w->cost[BW_LOCAL_WAY_COPIED] < direct - direct / 4;
}

static enum bw_local_way_kind way_of(bool copied)
{
	return copied ? BW_LOCAL_WAY_COPIED : BW_LOCAL_WAY_DIRECT;
}

enum bw_local_way_kind bw_local_way_choose(struct bw_local_way *w, uint64_t len)
{
	bool copied = w->cost[BW_LOCAL_WAY_COPIED] && copies(w);

	if (!w->cost[BW_LOCAL_WAY_DIRECT] || len < BW_LOCAL_WAY_LEAST)
		return way_of(copied);
	if (copied != w->copied) {
		w->left = w->interval = BW_LOCAL_WAY_FIRST;
		w->trial = 0;
	}
	w->copied = copied;
	if (!w->trial && w->left) {
		w->left--;
		return way_of(copied);
	}
	if (!w->trial) {
		w->interval = (uint32_t)bw_min_u64(bw_max_u64(2 * w->interval, BW_LOCAL_WAY_FIRST),
						   BW_LOCAL_WAY_MOST);
		w->left = w->interval;
		w->trial = BW_LOCAL_WAY_TRIAL;
	}
	w->trial--;
	return way_of(!copied);
}

/* One pull of the other way than the one in use took `fresh`. */
static void tried(struct bw_local_way *w, enum bw_local_way_kind kind, uint64_t fresh)
{
	uint64_t used = w->cost[way_of(w->copied)];

	if (used && fresh > BW_LOCAL_WAY_WORST * used)
		w->trial = 0;
	/* Far off so far: it is tried again soon. */
	if (fresh < w->cost[kind] / 2)
		w->left = w->interval = 0;
}

void bw_local_way_learn(struct bw_local_way *w, enum bw_local_way_kind kind, uint64_t began,
			uint64_t now, uint64_t len)
{
	uint64_t took = now - bw_max_u64(began, w->since), cost = w->cost[kind], fresh;

	w->since = now;
	if (len < BW_LOCAL_WAY_LEAST)
		return;
	fresh = bw_max_u64(took * BW_LOCAL_WAY_SCALE / len, 1);
	if (kind != way_of(w->copied))
		tried(w, kind, fresh);
	if (cost) {
		fresh = bw_min_u64(fresh, BW_LOCAL_WAY_JUMP * cost);
		fresh = fresh < cost ? (cost + fresh) / 2 : (3 * cost + fresh + 3) / 4;
	}
	w->cost[kind] = fresh;
}

void bw_local_way_invited(struct bw_local_way *w)
{
	/* Not again soon after a trial: the two would invite each other for ever. */
	if (!w->copied && !w->trial && w->interval - w->left >= BW_LOCAL_WAY_PAUSE)
		w->left = 0;
}
