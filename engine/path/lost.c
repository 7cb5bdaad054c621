/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "path/lost.h"

uint64_t bw_lost_add(struct bw_lost *l, uint64_t pn, uint64_t sent_ns, uint64_t now)
{
	uint32_t i = l->n++ % BW_LOST_RING;
	uint64_t forgotten = l->ring[i].pn;

	l->ring[i].pn = pn;
	l->ring[i].sent_ns = sent_ns;
	l->ring[i].since_ns = now;
	if (!l->n)
		l->n = BW_LOST_RING;
	return forgotten;
}

void bw_lost_heard(struct bw_lost *l, uint64_t since, uint64_t now)
{
	uint32_t i;

	for (i = 0; l->n && i < BW_LOST_RING; i++)
		if (l->ring[i].since_ns >= since)
			l->ring[i].since_ns = now;
}
