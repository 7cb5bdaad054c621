/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A row of measured times and what is said of it. A sample is the time of one batch in whole
 * nanoseconds; the divisor turns it into the time of one thing (a one-way message, a window).
 */
#ifndef EXAMPLES_SAMPLES_H
#define EXAMPLES_SAMPLES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct samples {
	uint64_t *batch_ns; /* in the order of measurement */
	size_t count;
	uint64_t divisor; /* things in a batch, at least 1 */
};

/* Times of one thing, in nanoseconds. Percentiles are samples (nearest rank), not interpolated. */
struct summary {
	double min_ns, p50_ns, p90_ns, p99_ns, max_ns, mean_ns;
};

/* @samples needs at least one sample. The order of the samples is kept. */
struct summary samples_summarize(const struct samples *samples);

/* Writes the times of one thing as a JSON array, in the order of measurement. */
void samples_json(FILE *out, const struct samples *samples);

#endif
