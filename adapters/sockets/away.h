/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Is a thread back soon that has been woken as the driver? Learned from how long it was away the
 * last times.
 */
#ifndef BWS_AWAY_H
#define BWS_AWAY_H

#include <stdbool.h>
#include <stdint.h>

#define BWS_AWAY_NS (200 * 1000ull) /* longer is long */

/* All zero: nothing is known, and it is taken to be away for long. */
struct bws_away {
	uint64_t since; /* 0: it was not the driver when it woke last */
	int score;	/* low: it is back soon */
};

/* The driver is awake, and the thread sleeps again. */
void bws_away_leave(struct bws_away *a, uint64_t now);
void bws_away_back(struct bws_away *a, uint64_t now);

bool bws_away_is_short(const struct bws_away *a);

#endif
