/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the scheduler of striped data (stripe.c) and the shares (share.c) have in common. */
#ifndef BW_STRIPE_H
#define BW_STRIPE_H

#include "reliable.h"

/* Bytes that the path delivers in a millisecond: measured, or else what its window allows. */
uint64_t bw_stripe_rate(const struct bw_path *t);
/* Its shortest round trip, ns. */
uint64_t bw_stripe_rtt(const struct bw_path *t);
/* Time at which `len` bytes would have arrived if they left by this path now, in ns from now. */
uint64_t bw_stripe_eta(const struct bw_path *t, uint64_t len);
/* Does data go by this path? One that does not answer gets nothing but probes. */
bool bw_stripe_usable(const struct bw_engine *e, const struct bw_peer *p, const struct bw_path *t);

/* And is it to carry pulled data now? */
bool bw_stripe_carries(const struct bw_engine *e, const struct bw_peer *p, const struct bw_path *t);

#endif
