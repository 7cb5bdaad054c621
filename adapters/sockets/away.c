/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A score of how long a driver is away. Each time that was short takes one from it, a longer one
 * adds eight: so it stays low only where less than one in nine is long.
 */
#include "away.h"

#define BWS_AWAY_LONG  8
#define BWS_AWAY_SHORT (-8) /* or less: is back soon */
#define BWS_AWAY_LEAST (-32)

void bws_away_leave(struct bws_away *a, uint64_t now)
{
	a->since = now;
}

void bws_away_back(struct bws_away *a, uint64_t now)
{
	if (!a->since)
		return;
	a->score += now - a->since < BWS_AWAY_NS ? -1 : BWS_AWAY_LONG;
	if (a->score > 0)
		a->score = 0;
	if (a->score < BWS_AWAY_LEAST)
		a->score = BWS_AWAY_LEAST;
	a->since = 0;
}

bool bws_away_is_short(const struct bws_away *a)
{
	return a->score <= BWS_AWAY_SHORT;
}
