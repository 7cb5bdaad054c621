/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which way long messages of a peer come: read from its memory by cross-memory attach, one copy
 * without its help, or sent through the ring, two copies by both processes at the same time. Which
 * is faster depends on the machine (attach looks up and pins each page, and virtual machines look
 * up twice) and on the peer (one that computes, or waits for a processor, sends late). So it is
 * measured: both are tried, and now and then the other one again.
 */
#ifndef BW_LOCAL_WAY_H
#define BW_LOCAL_WAY_H

#include "platform.h"

#define BW_LOCAL_WAY_LEAST (16u << 10) /* bytes; what is shorter tells nothing */
#define BW_LOCAL_WAY_SCALE (64u << 10) /* a cost is for so many bytes */

enum bw_local_way_kind { BW_LOCAL_WAY_DIRECT, BW_LOCAL_WAY_COPIED, BW_LOCAL_WAYS };

/* Owned by a peer, zeroed when it is made. */
struct bw_local_way {
	/* ns per BW_LOCAL_WAY_SCALE bytes, a running mean; 0: not measured */
	uint64_t cost[BW_LOCAL_WAYS];
	uint64_t since;	   /* ns: when a pull last ended, either way */
	uint32_t interval; /* pulls from the last trial to the next */
	uint32_t left;	   /* of these still to come */
	uint32_t trial;	   /* pulls of the trial under way that are still to come */
	bool copied;	   /* the one that was chosen last, trials aside */
};

/* The way that the next pull of len bytes goes. */
enum bw_local_way_kind bw_local_way_choose(struct bw_local_way *w, uint64_t len);
/* len bytes that were begun at `began` are here now. Pulls follow one another: the time of those
 * before it is not this one's. */
void bw_local_way_learn(struct bw_local_way *w, enum bw_local_way_kind kind, uint64_t began,
			uint64_t now, uint64_t len);

/* The peer has us send a message through the ring. Two that exchange messages find that fast only
 * when both do so, since who reads the other's memory sends nothing meanwhile: time for a trial. */
void bw_local_way_invited(struct bw_local_way *w);

#endif
