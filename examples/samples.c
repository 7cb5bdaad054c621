/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Percentiles of measured times (see samples.h): a sorted copy, then the nearest rank.
 */
#include "samples.h"

#include "common.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

/* The smallest sample that at least @percent of all do not exceed. */
static double nearest_rank(const uint64_t *sorted, size_t count, unsigned int percent)
{
	size_t rank = (count * percent + 99) / 100;

	return (double)sorted[rank > 0 ? rank - 1 : 0];
}

struct summary samples_summarize(const struct samples *samples)
{
	size_t count = samples->count;
	double divisor = (double)samples->divisor;
	uint64_t *sorted = ex_alloc(count * sizeof(*sorted));
	struct summary summary;
	double sum = 0;

	memcpy(sorted, samples->batch_ns, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare);
	for (size_t i = 0; i < count; i++)
		sum += (double)sorted[i];
	summary = (struct summary){
		.min_ns = (double)sorted[0] / divisor,
		.p50_ns = nearest_rank(sorted, count, 50) / divisor,
		.p90_ns = nearest_rank(sorted, count, 90) / divisor,
		.p99_ns = nearest_rank(sorted, count, 99) / divisor,
		.max_ns = (double)sorted[count - 1] / divisor,
		.mean_ns = sum / (double)count / divisor,
	};
	free(sorted);
	return summary;
}

void samples_json(FILE *out, const struct samples *samples)
{
	fputc('[', out);
	for (size_t i = 0; i < samples->count; i++)
		fprintf(out, "%s%.1f", i > 0 ? ", " : "",
			(double)samples->batch_ns[i] / (double)samples->divisor);
	fputc(']', out);
}
