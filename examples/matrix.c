/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The matrix benchmark: several figures at several message sizes in one job, each for about the
 * same time. Of each, a few messages are checked first; then batches of units are timed without
 * a pause, as many as fit into the time; then what was received is checked once more.
 */
#include "common.h"
#include "matrix_figure.h"
#include "samples.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"usage: mpirun -n RANKS matrix --measure FIGURE:SIZES [--measure ...] [options]\n"
	"Measures several figures at several sizes; prints a line of JSON for each.\n"
	"  --measure F:L  two ranks: latency, bandwidth, bidirectional (bandwidth), rate\n"
	"                 (of messages, in windows); an even number: pairs (bandwidth of all\n"
	"                 pairs at once); two or more: allreduce, alltoall, broadcast.\n"
	"                 Sizes with commas, k m g allowed: latency:8,4k,1m\n"
	"  --cell-ms N    about so long is measured for each (default 50)\n"
	"  --json FILE    write to FILE (default '-', stdout)\n"
	"  --help         print this\n"
	"Exits with 0, with 1 if data came damaged, with 2 on bad arguments.\n";

#define CELLS_MAX      512
#define SIZES_MAX      64
#define SIZE_MAX_BYTES (256ull << 20)
#define SAMPLES_MIN    3 /* below that a single disturbed one would be the median */
#define SAMPLES_MAX    40

struct cell {
	enum figure figure;
	uint64_t bytes;
};

struct options {
	struct cell cells[CELLS_MAX];
	size_t cell_count;
	uint64_t cell_ns;
	const char *json;
};

static enum figure figure_read(const char *name, size_t length)
{
	for (int i = 0; i < FIGURES; i++)
		if (strlen(figure_names[i]) == length &&
		    strncmp(name, figure_names[i], length) == 0)
			return (enum figure)i;
	ex_quit(EX_EXIT_USAGE, "--measure: '%.*s' is no figure; see --help", (int)length, name);
}

static void cells_read(struct options *options, const char *text)
{
	size_t length = strcspn(text, ":"), count;
	enum figure figure = figure_read(text, length);
	uint64_t sizes[SIZES_MAX];

	if (text[length] == '\0')
		ex_quit(EX_EXIT_USAGE, "--measure: '%s' has no sizes; write %s:8,1k", text, text);
	count = ex_parse_integers("--measure", text + length + 1, 1, SIZE_MAX_BYTES, sizes,
				  SIZES_MAX);
	if (options->cell_count + count > CELLS_MAX)
		ex_quit(EX_EXIT_USAGE, "--measure: more than %d in all", CELLS_MAX);
	for (size_t i = 0; i < count; i++)
		options->cells[options->cell_count++] = (struct cell){figure, sizes[i]};
}

static void options_check(const struct options *options, int ranks)
{
	if (options->cell_count == 0)
		ex_quit(EX_EXIT_USAGE, "nothing to measure; give --measure, see --help");
	for (size_t i = 0; i < options->cell_count; i++) {
		const struct cell *cell = &options->cells[i];
		const char *lacks = figure_lacks(cell->figure, ranks, cell->bytes);

		if (lacks)
			ex_quit(EX_EXIT_USAGE, "%s of %llu bytes with %d ranks: needs %s",
				figure_names[cell->figure], (unsigned long long)cell->bytes, ranks,
				lacks);
	}
}

static void options_read(struct options *options, int argc, char **argv, int ranks)
{
	static const struct option table[] = {
		{"measure", required_argument, NULL, 'm'},
		{"cell-ms", required_argument, NULL, 'c'},
		{"json", required_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const uint64_t ms_max = 600000, ns_per_ms = 1000000;
	int option;

	*options = (struct options){.cell_ns = 50 * ns_per_ms, .json = "-"};
	while ((option = ex_option(argc, argv, table, help)) != EX_OPTIONS_END) {
		switch (option) {
		case 'm':
			cells_read(options, optarg);
			break;
		case 'c':
			options->cell_ns =
				ns_per_ms * ex_parse_integer("--cell-ms", optarg, 1, ms_max);
			break;
		case 'j':
			options->json = optarg;
			break;
		}
	}
	options_check(options, ranks);
}

/* How many batches of how many units. */
struct course {
	uint64_t batch, samples;
};

static uint64_t timed(struct figure_run *run, uint64_t units)
{
	uint64_t start_ns = ex_now_ns();

	figure_run(run, units);
	return ex_now_ns() - start_ns;
}

/* Of two runs the shorter: one that was disturbed would end the search too early. */
static uint64_t timed_twice(struct figure_run *run, uint64_t units)
{
	uint64_t first_ns = timed(run, units), second_ns = timed(run, units);

	return (first_ns < second_ns ? first_ns : second_ns) | 1;
}

/*
 * Doubles the units until they take a part of the cell's time, which warms up as well, and derives
 * the course. What rank 0 finds holds for all. @units counts what was run.
 */
static struct course course_find(struct figure_run *run, uint64_t cell_ns, uint64_t *units)
{
	const uint64_t part = 16, units_max = 1u << 24;
	struct course course = {0};
	const uint64_t least = figure_least_units(run);
	uint64_t count = least;

	for (;;) {
		uint64_t took_ns = timed_twice(run, count), fit;

		*units += 2 * count;
		if (took_ns >= cell_ns / part || count >= units_max) {
			fit = (uint64_t)((double)count * (double)cell_ns / (double)took_ns);
			course.samples = fit / least > SAMPLES_MAX ? SAMPLES_MAX : fit / least;
			if (course.samples < SAMPLES_MIN)
				course.samples = SAMPLES_MIN;
			course.batch = fit / course.samples > least ? fit / course.samples : least;
		}
		MPI_Bcast(&course, sizeof(course), MPI_BYTE, 0, MPI_COMM_WORLD);
		if (course.samples)
			return course;
		count *= 2;
	}
}

static struct samples course_run(struct figure_run *run, struct course course)
{
	struct samples samples = {.count = course.samples, .divisor = course.batch};
	uint64_t start_ns, end_ns;

	samples.batch_ns = ex_alloc(samples.count * sizeof(*samples.batch_ns));
	MPI_Barrier(MPI_COMM_WORLD);
	start_ns = ex_now_ns();
	for (size_t i = 0; i < samples.count; i++) {
		figure_run(run, course.batch);
		end_ns = ex_now_ns();
		samples.batch_ns[i] = end_ns - start_ns;
		start_ns = end_ns;
	}
	return samples;
}

/* So many messages at first, and fewer than a round of the ring: a slow transport takes long. */
static uint64_t first_units(const struct figure_run *run)
{
	const uint64_t messages = 4, unit = figure_unit_messages(run);

	return unit < messages ? messages / unit : 1;
}

static void cell_measure(const struct options *options, const struct cell *cell, int rank,
			 int ranks, FILE *out)
{
	struct figure_run run = {
		.figure = cell->figure,
		.rank = rank,
		.ranks = ranks,
		.bytes = (size_t)cell->bytes,
	};
	struct samples samples;
	struct course course;
	uint64_t units;

	figure_open(&run);
	units = first_units(&run);
	figure_run(&run, units);
	figure_check(&run);
	course = course_find(&run, options->cell_ns, &units);
	samples = course_run(&run, course);
	units += course.batch * course.samples;
	figure_check(&run);
	if (rank == 0) {
		struct summary summary = samples_summarize(&samples);

		fprintf(out,
			"{\"figure\": \"%s\", \"bytes\": %zu, \"ranks\": %d, \"window\": %d, "
			"\"units\": %llu, \"samples\": %zu, \"batch\": %llu, \"p50_ns\": %.1f, "
			"\"min_ns\": %.1f, \"max_ns\": %.1f}\n",
			figure_names[run.figure], run.bytes, ranks, run.slots,
			(unsigned long long)units, samples.count, (unsigned long long)course.batch,
			summary.p50_ns, summary.min_ns, summary.max_ns);
		fflush(out);
	}
	free(samples.batch_ns);
	figure_close(&run);
}

int main(int argc, char **argv)
{
	static struct options options;
	int rank, ranks;
	FILE *out;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	options_read(&options, argc, argv, ranks);
	out = ex_report_open(options.json);
	for (size_t i = 0; i < options.cell_count; i++)
		cell_measure(&options, &options.cells[i], rank, ranks, out);
	if (rank == 0)
		ex_report_close(out);
	MPI_Finalize();
	return 0;
}
