/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Peers that found no memory for a record of what they send (starve.c). */
#ifndef BW_STARVE_H
#define BW_STARVE_H

#include "reliable.h"

/* There was no record for it. */
void bw_starve_enter(struct bw_engine *e, struct bw_peer *p);
/* It waits for none any more, or is about to leave engine.peers. */
void bw_starve_leave(struct bw_engine *e, struct bw_peer *p);
/* Puts the next one that waits first among those that are ready. NULL: it is not found yet, and
 * nobody gets a record before it is; go on soon. */
struct bw_peer *bw_starve_turn(struct bw_engine *e);

/* Somebody waits for a record, and there is one. */
static inline bool bw_starve_ends(const struct bw_engine *e)
{
	return BW_UNLIKELY(e->starve.peers) && bw_slab_roomy(&e->records);
}

#endif
