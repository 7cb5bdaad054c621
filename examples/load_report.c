/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Gathers what the ranks know of a phase, and prints it (see load_report.h).
 */
#include "load_report.h"

#include "common.h"
#include "samples.h"

#include <mpi.h>
#include <stdlib.h>

/* Rows of bytes of all ranks, one behind the other, at rank 0; theirs to free. */
static void *gather(const void *own, size_t bytes, int ranks, size_t *all)
{
	int count = (int)bytes, rank;
	int *counts = ex_alloc((size_t)ranks * sizeof(int));
	int *places = ex_alloc((size_t)ranks * sizeof(int));
	void *rows;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Gather(&count, 1, MPI_INT, counts, 1, MPI_INT, 0, MPI_COMM_WORLD);
	*all = 0;
	for (int i = 0; i < ranks && rank == 0; i++) {
		places[i] = (int)*all;
		*all += (size_t)counts[i];
	}
	rows = ex_alloc(*all);
	MPI_Gatherv(own, count, MPI_BYTE, rows, counts, places, MPI_BYTE, 0, MPI_COMM_WORLD);
	free(counts);
	free(places);
	return rows;
}

/* What is added up, or the worst of the ranks. */
struct sums {
	uint64_t payload_bytes, held, due_bytes, reached_bytes, bulk_end_ns;
	uint64_t end_ns;		   /* of the last rank */
	uint64_t away_parts, inside_parts; /* in a million of the time, of the worst ranks */
};

static bool within(struct span span, uint64_t ns)
{
	return ns >= span.from_ns && ns < span.to_ns;
}

static struct sums sums_find(const struct traffic *t, const struct timed *timed, size_t count,
			     struct span span)
{
	struct sums sums = {
		.payload_bytes = t->receiver.bytes,
		.held = t->sender.held,
		.bulk_end_ns = t->bulk.end_ns,
		.end_ns = t->end_ns,
		.away_parts = t->away_ns * 1000000 / (t->end_ns | 1),
		.inside_parts = t->inside_ns * 1000000 / (t->end_ns | 1),
	};
	uint64_t *added = &sums.payload_bytes, *largest = &sums.end_ns;

	for (size_t i = 0; i < count; i++) {
		if (within(span, timed[i].due_ns))
			sums.due_bytes += timed[i].bytes;
		if (within(span, timed[i].due_ns + timed[i].ns))
			sums.reached_bytes += timed[i].bytes;
	}
	MPI_Allreduce(MPI_IN_PLACE, added, 5, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(MPI_IN_PLACE, largest, 3, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
	return sums;
}

static void row_print(FILE *out, const char *name, const struct timed *timed, size_t count,
		      struct span span, size_t offset)
{
	const char *comma = "";

	fprintf(out, ", \"%s\": [", name);
	for (size_t i = 0; i < count; i++) {
		const uint64_t *word = (const void *)((const char *)&timed[i] + offset);

		if (!within(span, timed[i].due_ns))
			continue;
		fprintf(out, "%s%llu", comma, (unsigned long long)*word);
		comma = ",";
	}
	fputc(']', out);
}

static void lateness_print(FILE *out, uint64_t *late_ns, size_t count)
{
	struct samples late = {.batch_ns = late_ns, .count = count, .divisor = 1};
	struct summary summary = {0};

	if (count > 0)
		summary = samples_summarize(&late);
	fprintf(out, ", \"late_p50_ns\": %.0f, \"late_p99_ns\": %.0f, \"late_max_ns\": %.0f",
		summary.p50_ns, summary.p99_ns, summary.max_ns);
}

static void sums_print(FILE *out, const struct sums *sums, const struct bulk *bulk)
{
	fprintf(out,
		", \"payload_bytes\": %llu, \"held\": %llu, \"due_bytes\": %llu, "
		"\"reached_bytes\": %llu, \"end_ns\": %llu, \"away_share\": %.6f, "
		"\"inside_share\": %.6f",
		(unsigned long long)sums->payload_bytes, (unsigned long long)sums->held,
		(unsigned long long)sums->due_bytes, (unsigned long long)sums->reached_bytes,
		(unsigned long long)sums->end_ns, (double)sums->away_parts / 1e6,
		(double)sums->inside_parts / 1e6);
	if (bulk->count)
		fprintf(out, ", \"bulk_bytes\": %llu, \"bulk_ns\": %llu",
			(unsigned long long)(bulk->bytes * bulk->count),
			(unsigned long long)sums->bulk_end_ns);
}

void report_phase(FILE *out, const char *kind, const struct arrangement *arrangement,
		  const struct traffic *t, struct span span, const struct limits *limits)
{
	const struct timed *own = limits->answers ? t->sender.timed : t->receiver.timed;
	size_t count = limits->answers ? t->sender.timed_count : t->receiver.timed_count;
	int ranks = arrangement->ranks, rank;
	size_t timed_bytes, late_bytes;
	struct sums sums = sums_find(t, own, count, span);
	struct timed *timed = gather(own, count * sizeof(*own), ranks, &timed_bytes);
	uint64_t *late =
		gather(t->sender.late_ns, t->sender.late_count * sizeof(*late), ranks, &late_bytes);

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0) {
		count = timed_bytes / sizeof(*timed);
		fprintf(out,
			"{\"phase\": \"%s\", \"ranks\": %d, \"gap_ns\": %llu, \"span_ns\": %llu",
			kind, ranks, (unsigned long long)arrangement->gap_ns,
			(unsigned long long)(span.to_ns - span.from_ns));
		sums_print(out, &sums, &t->bulk);
		lateness_print(out, late, late_bytes / sizeof(*late));
		if (arrangement->arrivals == ARRIVALS_WAVES)
			row_print(out, "due_ns", timed, count, span,
				  offsetof(struct timed, due_ns));
		row_print(out, "bytes", timed, count, span, offsetof(struct timed, bytes));
		row_print(out, "ns", timed, count, span, offsetof(struct timed, ns));
		fputs("}\n", out);
		fflush(out);
	}
	free(timed);
	free(late);
}
