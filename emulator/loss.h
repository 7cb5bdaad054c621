/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which frames are lost: each on its own, or in bursts by a chain of two states of which the good
 * one loses nothing and the bad one everything [Gilbert 1960; Elliott 1963].
 */
#ifndef EM_LOSS_H
#define EM_LOSS_H

#include <stdbool.h>
#include <stdint.h>

#include "rng.h"
#include "settings.h"

struct em_loss {
	bool bad; /* the state of the chain: the last frame was lost */
};

/* Is the next frame lost? Draws a number only where it decides something. */
bool em_loss_next(struct em_loss *l, const struct em_settings *s, struct sim_rng *rng);

/* True in `share` of EM_SHARE_ONE cases. */
bool em_chance(struct sim_rng *rng, uint32_t share);

#endif
