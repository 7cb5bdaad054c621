/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "path/rtt.h"

void bw_rtt_sample(struct bw_rtt *r, uint64_t sample)
{
	uint64_t diff;

	if (!r->min || sample < r->min)
		r->min = sample ? sample : 1;
	if (!r->srtt) {
		r->srtt = sample ? sample : 1;
		r->var = sample / 2;
		return;
	}
	diff = sample > r->srtt ? sample - r->srtt : r->srtt - sample;
	r->var = r->var - r->var / 4 + diff / 4;
	r->srtt = r->srtt - r->srtt / 8 + sample / 8;
	if (!r->srtt)
		r->srtt = 1;
}

void bw_rtt_bound(struct bw_rtt *r, uint64_t since)
{
	if (!r->srtt && since < BW_RTT_LONGEST)
		r->guess = bw_min_u64(bw_max_u64(since, BW_RTT_INITIAL), BW_RTT_GUESS);
}
