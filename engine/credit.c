/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Credit: the receiver divides what it can take at once (its budget, mostly the receive ring) among
 * the peers that sent lately, and tells each a limit for all it may ever have charged. Every peer
 * always has BW_SHARE_MIN.
 */
#include "credit.h"
#include "peer.h"
#include "reliable.h"

#define BW_EPOCH_SHIFT 22 /* an epoch lasts 2^22 ns, about 4 ms */

uint64_t bw_credit_charge(uint64_t total, uint32_t charge_min)
{
	uint64_t bytes = bw_max_u64(bw_max_u64(total, charge_min), 1);

	return (bytes + BW_CREDIT_UNIT - 1) & ~(uint64_t)(BW_CREDIT_UNIT - 1);
}

static uint64_t bw_credit_share(struct bw_engine *e, struct bw_peer *p)
{
	uint64_t epoch = e->now >> BW_EPOCH_SHIFT;
	uint32_t active;

	if (epoch != e->epoch) {
		e->active_before = epoch == e->epoch + 1 ? e->active : 0;
		e->active = 0;
		e->epoch = epoch;
	}
	if (p->rx_epoch != epoch) {
		p->rx_epoch = epoch;
		e->active++;
	}
	active = e->active > e->active_before ? e->active : e->active_before;
	return bw_max_u64(e->cfg.rx_budget / active, BW_SHARE_MIN);
}

void bw_credit_start(struct bw_engine *e, struct bw_peer *p)
{
	p->rx_limit = BW_SHARE_MIN;
	p->rx_told = BW_SHARE_MIN;
	p->rx_epoch = BW_NEVER;
}

bool bw_credit_covers(const struct bw_peer *p, uint64_t bytes)
{
	return bytes <= p->rx_limit - p->rx_used;
}

void bw_credit_taken(struct bw_engine *e, struct bw_peer *p, uint64_t bytes)
{
	uint64_t share = bw_credit_share(e, p);

	p->rx_taken += bytes;
	p->rx_limit = bw_max_u64(p->rx_limit, p->rx_taken + share);
	/* The sender needs news of its limit before it has used what it knows of. */
	if (p->rx_told < p->rx_taken + share / 2 && !p->path[p->best]->rx.ack_now) {
		p->path[p->best]->rx.ack_now = true;
		bw_peer_ready(e, p);
	}
}

void bw_credit_told(struct bw_peer *p)
{
	p->rx_told = p->rx_limit;
}

bool bw_credit_limit(struct bw_peer *p, uint32_t wire)
{
	int32_t more = (int32_t)(wire - (uint32_t)(p->tx_limit / BW_CREDIT_UNIT));

	if (more <= 0)
		return false;
	p->tx_limit += (uint64_t)more * BW_CREDIT_UNIT;
	p->credit_stalled = false;
	bw_peer_progress(p);
	return true;
}
