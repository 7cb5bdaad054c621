/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The counters of an endpoint as JSON, for people's tools and for BEOWIRE_STATS. */
#ifndef BW_STATS_H
#define BW_STATS_H

#include <stdio.h>

struct bw_ep;

/* Write one JSON object; the lock is held. */
void bw_stats_print(struct bw_ep *ep, FILE *f);

/* Write the file that BEOWIRE_STATS asks for; failure is reported, not returned. */
void bw_stats_write(struct bw_ep *ep);

#endif
