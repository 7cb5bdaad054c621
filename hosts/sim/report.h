/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the measurements have in common. */
#ifndef SIM_REPORT_H
#define SIM_REPORT_H

#include "sim.h"

#define GBIT	     1000000000ull /* bits per second */
#define REPORT_WARM  (200 * BW_MS)
#define REPORT_SEEDS SIM_REPORT_SEEDS

struct report {
	bool json;
	uint32_t rows;
	uint64_t first, last; /* seeds: of what is measured with paths that carry together */
};

/* One line: for people as it is; the same name=value pairs for machines. */
void report_row(struct report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Node 0 streams to node 1 over links of this rate, in bits per second. */
struct sim_spec report_spec(uint32_t nodes, uint64_t rate, uint32_t mtu);

/* Payload bytes that a node has received once. */
uint64_t report_bytes(const struct sim *s, uint32_t node);

/* report_distance.c: a line that is long and narrower than the nodes' own */
void report_distance(struct report *r);

/* report_stripe.c: several paths that carry data together */
void report_stripe(struct report *r);

#endif
