/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The chain's two numbers follow from the two that are set. Bursts of mean length L end with
 * probability 1 / L after each frame; that the share p of all frames is lost in the long run needs
 * a good frame to be followed by a lost one with probability p / (L (1 - p)).
 */
#include "loss.h"

bool em_chance(struct sim_rng *rng, uint32_t share)
{
	return share && sim_below(rng, EM_SHARE_ONE) < share;
}

/* Share of lost frames that are followed by a good one: 1 / L. */
static uint32_t em_loss_recover(const struct em_settings *s)
{
	return (uint32_t)((uint64_t)EM_SHARE_ONE * EM_BURST_ONE / s->burst);
}

/* Share of good frames that are followed by a lost one: p / (L (1 - p)). */
static uint32_t em_loss_fail(const struct em_settings *s)
{
	unsigned __int128 up = (unsigned __int128)s->loss * EM_SHARE_ONE * EM_BURST_ONE;
	uint64_t share = (uint64_t)(up / s->burst / (EM_SHARE_ONE - s->loss));

	return share < EM_SHARE_ONE ? (uint32_t)share : EM_SHARE_ONE;
}

bool em_loss_next(struct em_loss *l, const struct em_settings *s, struct sim_rng *rng)
{
	if (!s->loss || s->loss == EM_SHARE_ONE || !s->burst) {
		l->bad = em_chance(rng, s->loss);
		return l->bad;
	}
	if (l->bad)
		l->bad = !em_chance(rng, em_loss_recover(s));
	else
		l->bad = em_chance(rng, em_loss_fail(s));
	return l->bad;
}
