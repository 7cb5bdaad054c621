/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The counters of an endpoint as JSON, for people's tools and for BEOWIRE_STATS. */
#ifndef BW_STATS_H
#define BW_STATS_H

#include <stdio.h>

#include "link/link.h"
#include "protocol.h"

struct bw_ep;

/* What an endpoint's engine and links have counted. */
struct bw_stats_sums {
	struct bw_counters engine;	/* and the kernel module's, if it has one there */
	struct bw_link_counters packet; /* all interfaces together */
	struct bw_link_counters udp, local, kernel;
	uint64_t packet_rx_rows, packet_rx_row_frames;
	uint64_t overruns, send_errors;
	uint64_t turned_away, broken; /* of the local link */
};

/* Bring the counters up to date, with a few system calls, and add them up; the lock is held. */
void bw_stats_sum(struct bw_ep *ep, struct bw_stats_sums *s);

/* Write one JSON object; the lock is held. */
void bw_stats_print(struct bw_ep *ep, FILE *f);

/* Write the file that BEOWIRE_STATS asks for; failure is reported, not returned. */
void bw_stats_write(struct bw_ep *ep);

#endif
