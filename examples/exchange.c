/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The exchange benchmark: the rate between two ranks, or between rank 0 and all the others, by
 * message size, MPI type and kind of call. A rate is the payload moved, in whichever direction,
 * divided by rank 0's time. Kinds of calls and types take turns at each size.
 */
#include "common.h"
#include "exchange_pattern.h"
#include "samples.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"usage: mpirun -n RANKS exchange [options]\n"
	"Measures rates of exchange by message size.\n"
	"  --pattern P   pair (default): two ranks, to and fro, or both ways at once\n"
	"                scatter: rank 0 sends windows of messages to all the others\n"
	"                gather: rank 0 receives them from all the others\n"
	"  --calls LIST  blocking: MPI_Send and MPI_Recv\n"
	"                nonblocking: MPI_Irecv, MPI_Isend, MPI_Waitall (default: both)\n"
	"  --types LIST  byte, double, vector (every second double), struct (double and int32,\n"
	"                with a gap) (default: all)\n"
	"  --sizes LIST  message sizes in bytes; k m g allowed (default 1k to 16m, doubling)\n"
	"  --iters N     turns for each size (default: about a fiftieth of a second)\n"
	"  --window N    messages in flight to or from each rank, scatter and gather (default 16;\n"
	"                fewer where they exceed 4 MiB)\n"
	"  --verify      fill and check every byte, gaps too; disturbs the times\n"
	"  --json FILE   write results and all samples as JSON to FILE, '-' for stdout\n"
	"  --help        print this\n"
	"Exits with 0, with 1 if a message came damaged, with 2 on bad arguments.\n";

#define SIZES_MAX	   64
#define SIZE_MAX_BYTES	   (256u << 20)
#define WINDOW_BYTES_MAX   (4u << 20)
#define BATCH_SINGLE_BYTES (64u << 10) /* from this size on a clock read per turn is nothing */

struct options {
	enum pattern pattern;
	bool calls[CALLS_KINDS], types[MESSAGE_KINDS];
	uint64_t sizes[SIZES_MAX];
	size_t size_count;
	uint64_t iters; /* 0: chosen by size */
	uint64_t window;
	bool verify;
	const char *json; /* NULL: text */
};

static size_t name_read(const char *option, const char *text, const char *const *names,
			size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(text, names[i]) == 0)
			return i;
	ex_quit(EX_EXIT_USAGE, "%s: '%s' is none of its names; see --help", option, text);
}

static void names_read(const char *option, const char *list, const char *const *names, size_t count,
		       bool *chosen)
{
	char *copy = strdup(list), *rest = copy, *item;

	memset(chosen, 0, count * sizeof(*chosen));
	while ((item = strsep(&rest, ",")))
		chosen[name_read(option, item, names, count)] = true;
	free(copy);
}

static void option_take(struct options *o, int option)
{
	switch (option) {
	case 'p':
		o->pattern = (enum pattern)name_read("--pattern", optarg, pattern_names, PATTERNS);
		break;
	case 'c':
		names_read("--calls", optarg, calls_names, CALLS_KINDS, o->calls);
		break;
	case 't':
		names_read("--types", optarg, message_kind_names, MESSAGE_KINDS, o->types);
		break;
	case 's':
		o->size_count = ex_parse_integers("--sizes", optarg, MESSAGE_MIN_BYTES,
						  SIZE_MAX_BYTES, o->sizes, SIZES_MAX);
		break;
	case 'i':
		o->iters = ex_parse_integer("--iters", optarg, 1, 1u << 30);
		break;
	case 'W':
		o->window = ex_parse_integer("--window", optarg, 1, 1u << 16);
		break;
	case 'v':
		o->verify = true;
		break;
	case 'j':
		o->json = optarg;
		break;
	}
}

static struct options options_read(int argc, char **argv)
{
	static const struct option table[] = {
		{"pattern", required_argument, NULL, 'p'}, {"calls", required_argument, NULL, 'c'},
		{"types", required_argument, NULL, 't'},   {"sizes", required_argument, NULL, 's'},
		{"iters", required_argument, NULL, 'i'},   {"window", required_argument, NULL, 'W'},
		{"json", required_argument, NULL, 'j'},	   {"verify", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},	   {0},
	};
	struct options o = {.window = 16};
	int option;

	memset(o.calls, true, sizeof(o.calls));
	memset(o.types, true, sizeof(o.types));
	for (uint64_t bytes = 1u << 10; bytes <= 16u << 20; bytes *= 2)
		o.sizes[o.size_count++] = bytes;
	while ((option = ex_option(argc, argv, table, help)) != EX_OPTIONS_END)
		option_take(&o, option);
	return o;
}

static int window_for(const struct options *options, uint64_t bytes)
{
	uint64_t most = WINDOW_BYTES_MAX / bytes;

	if (options->pattern == PATTERN_PAIR || most == 0)
		return 1;
	return (int)(most < options->window ? most : options->window);
}

/* How often to measure: --iters, else about 20 ms by a guess at 5 us a message and 1 GB/s. */
static uint64_t iters_for(const struct options *options, const struct exchange *e)
{
	const uint64_t aim_ns = 20000000, least = 5, message_ns = 5000;
	uint64_t turn_bytes = exchange_turn_bytes(e);
	uint64_t turn_ns = turn_bytes / e->message.payload_bytes * message_ns + turn_bytes;

	if (options->iters)
		return options->iters;
	return aim_ns / turn_ns > least ? aim_ns / turn_ns : least;
}

/* The samples count at rank 0 and are the caller's to free. */
static struct samples turns_measure(const struct options *options, struct exchange *e)
{
	uint64_t iters = iters_for(options, e), start_ns, end_ns;
	uint64_t batch = exchange_turn_bytes(e) < BATCH_SINGLE_BYTES && iters >= 10 ? 10 : 1;
	struct samples samples = {.count = iters / batch, .divisor = batch};

	samples.batch_ns = ex_alloc(samples.count * sizeof(*samples.batch_ns));
	for (uint64_t i = 0; i < iters / 10 + 1; i++)
		exchange_turn(e);
	start_ns = ex_now_ns();
	for (size_t i = 0; i < samples.count; i++) {
		for (uint64_t j = 0; j < batch; j++)
			exchange_turn(e);
		end_ns = ex_now_ns();
		samples.batch_ns[i] = end_ns - start_ns;
		start_ns = end_ns;
	}
	return samples;
}

static void result_text(FILE *out, const struct exchange *e, const struct samples *samples)
{
	struct summary summary = samples_summarize(samples);
	double turn_bytes = (double)exchange_turn_bytes(e);

	fprintf(out, "%10zu bytes  %-11s  %-6s  p50 %.1f MB/s  mean %.1f MB/s  (%zu samples)\n",
		e->message.payload_bytes, calls_names[e->calls],
		message_kind_names[e->message.kind], turn_bytes * 1e3 / summary.p50_ns,
		turn_bytes * 1e3 / summary.mean_ns, samples->count);
}

/* One member of "results"; times are those of a turn. */
static void result_json(FILE *out, const struct exchange *e, uint64_t size_bytes,
			const struct samples *samples)
{
	struct summary summary = samples_summarize(samples);
	uint64_t turn_bytes = exchange_turn_bytes(e);

	fprintf(out,
		"{\"calls\": \"%s\", \"type\": \"%s\", \"size_bytes\": %llu, "
		"\"payload_bytes\": %zu, \"span_bytes\": %zu, \"window\": %d, "
		"\"turn_bytes\": %llu, \"batch\": %llu, \"bytes_per_s\": %.1f, \"p50_ns\": %.1f, "
		"\"samples_ns\": ",
		calls_names[e->calls], message_kind_names[e->message.kind],
		(unsigned long long)size_bytes, e->message.payload_bytes, e->message.span_bytes,
		e->window, (unsigned long long)turn_bytes, (unsigned long long)samples->divisor,
		(double)turn_bytes * 1e9 / summary.p50_ns, summary.p50_ns);
	samples_json(out, samples);
	fputc('}', out);
}

static void result_report(FILE *out, const struct options *options, const struct exchange *e,
			  uint64_t size_bytes, const struct samples *samples)
{
	static bool another;

	if (!options->json) {
		result_text(out, e, samples);
		fflush(out);
		return;
	}
	fputs(another ? ",\n" : "\n", out);
	result_json(out, e, size_bytes, samples);
	another = true;
}

/* One size by one kind of calls and one type. */
static void measure(FILE *out, const struct options *options, struct exchange e, uint64_t bytes,
		    enum message_kind kind)
{
	struct samples samples;

	e.window = window_for(options, bytes);
	e.message = message_make(kind, bytes);
	exchange_open(&e);
	samples = turns_measure(options, &e);
	if (e.rank == 0)
		result_report(out, options, &e, bytes, &samples);
	free(samples.batch_ns);
	exchange_close(&e);
	message_free(&e.message);
}

static void measure_all(FILE *out, const struct options *options, struct exchange e)
{
	for (size_t i = 0; i < options->size_count; i++)
		for (int calls = 0; calls < CALLS_KINDS; calls++)
			for (int kind = 0; options->calls[calls] && kind < MESSAGE_KINDS; kind++) {
				e.calls = (enum calls)calls;
				if (options->types[kind])
					measure(out, options, e, options->sizes[i],
						(enum message_kind)kind);
			}
}

static void head_json(FILE *out, const struct options *options, int ranks)
{
	fprintf(out, "{\"program\": \"exchange\", \"pattern\": \"%s\", \"library\": ",
		pattern_names[options->pattern]);
	ex_json_string(out, ex_library());
	fprintf(out, ", \"ranks\": %d, \"verify\": %s, \"results\": [", ranks,
		options->verify ? "true" : "false");
}

int main(int argc, char **argv)
{
	struct exchange e = {0};
	struct options options;
	FILE *out;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &e.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &e.ranks);
	options = options_read(argc, argv);
	if (e.ranks < 2 || (options.pattern == PATTERN_PAIR && e.ranks > 2))
		ex_quit(EX_EXIT_USAGE, "%d ranks: pair needs 2, scatter and gather 2 or more",
			e.ranks);
	e.pattern = options.pattern;
	e.verify = options.verify;
	out = ex_report_open(options.json);
	if (e.rank == 0 && options.json)
		head_json(out, &options, e.ranks);
	measure_all(out, &options, e);
	if (e.rank == 0) {
		if (options.json)
			fputs("]}\n", out);
		ex_report_close(out);
	}
	MPI_Finalize();
	return 0;
}
