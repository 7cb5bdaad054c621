/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Credit: how much a peer may send before we have room for more (credit.c). */
#ifndef BW_CREDIT_H
#define BW_CREDIT_H

#include "recv.h"
#include "reliable.h"

uint64_t bw_credit_charge(uint64_t total, uint32_t charge_min);
/* Was the peer granted so much beyond what has arrived of it? */
bool bw_credit_covers(const struct bw_peer *p, uint64_t bytes);
void bw_credit_taken(struct bw_engine *e, struct bw_peer *p, uint64_t bytes);
void bw_credit_start(struct bw_engine *e, struct bw_peer *p);
void bw_credit_told(struct bw_peer *p);
/* The whole of the limit, in units, that a frame of the peer's has the lower half of. */
static inline uint64_t bw_credit_whole(const struct bw_peer *p, uint32_t wire)
{
	return bw_unwrap(p->tx_limit / BW_CREDIT_UNIT, wire);
}
/* What the peer tells of its limit; true if there is more credit than before. */
bool bw_credit_limit(struct bw_peer *p, uint32_t wire);

#endif
