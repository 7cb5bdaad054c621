/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "path/rxset.h"

bool bw_rxset_came(struct bw_rxset *x, uint64_t pn, uint64_t now)
{
	bool gap = x->any ? pn != x->max + 1 : pn != 1;

	if (!x->any || pn > x->max) {
		x->max = pn;
		x->max_ns = now;
	}
	x->any = true;
	x->unacked++;
	return gap;
}
