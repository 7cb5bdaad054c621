/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sets of 64-bit numbers kept as few sorted, disjoint, non-touching half-open spans: the bytes of a
 * message that have arrived, the packets of a path that have been received.
 */
#ifndef BW_SPANS_H
#define BW_SPANS_H

#include "platform.h"

struct bw_span {
	uint64_t lo, hi; /* [lo, hi), lo < hi */
};

/* Could [lo, hi) be added with room for at most max spans? */
bool bw_spans_fit(const struct bw_span *s, uint32_t n, uint32_t max, uint64_t lo, uint64_t hi);
/* The same where all from 0 on is to come in the end: room is kept for what begins there, so that
 * the lowest that is missing always fits. */
bool bw_spans_fit_whole(const struct bw_span *s, uint32_t n, uint32_t max, uint64_t lo,
			uint64_t hi);
/* Add [lo, hi), which must fit; returns how many numbers are new. */
uint64_t bw_spans_add(struct bw_span *s, uint32_t *n, uint64_t lo, uint64_t hi);
/* Is all of [lo, hi) in the set? */
bool bw_spans_cover(const struct bw_span *s, uint32_t n, uint64_t lo, uint64_t hi);

/* Packet numbers received on a path: everything below base is settled, spans lie above it. */
#define BW_PNSET_SPANS 32 /* equals BW_ACK_RANGES_MAX: an ACK frame can state the whole set */
struct bw_pnset {
	uint64_t base;
	uint32_t n;
	struct bw_span span[BW_PNSET_SPANS];
};

bool bw_pnset_has(const struct bw_pnset *s, uint64_t pn);
/* Add pn, not yet in the set; false (and no change) when there are too many gaps to remember. */
bool bw_pnset_add(struct bw_pnset *s, uint64_t pn);
/* The sender no longer cares for numbers below floor. */
void bw_pnset_floor(struct bw_pnset *s, uint64_t floor);

#endif
