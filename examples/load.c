/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The load benchmark: how long messages take that several ranks send by schedules of their own, an
 * open loop. First sizes are measured one message at a time, with nothing else moving; then come
 * phases of load, each with its own gap between a sender's messages. Times begin when a message
 * was due, not when it could be sent.
 */
#include "common.h"
#include "load_report.h"
#include "load_traffic.h"

#include <getopt.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

static const char help[] =
	"usage: mpirun -n RANKS load --sizes POINTS --gaps LIST [options]\n"
	"Sends messages by a schedule, whatever becomes of them, and times each; prints a line of\n"
	"JSON for each phase.\n"
	"  --sizes POINTS    of messages, cumulative: SHARE:BYTES,... with shares from 0 to 1\n"
	"  --gaps LIST       mean time between the messages of a sender in ns, a phase for each\n"
	"  --to T            one (default): all ranks send to rank 0; all: to random others\n"
	"  --waves           all senders send at once, each gap after the last\n"
	"  --ms N            for so long messages are told (default 1000), in each phase; a tenth\n"
	"                    of that goes before, and another one follows\n"
	"  --bulk BYTES:N    rank 1 also sends rank 0 N such messages, four of them at a time\n"
	"  --idle LIST       measure BYTES:GAP_NS,... alone first, one message each gap\n"
	"  --idle-copies N   of each of these (default 20)\n"
	"  --answers         times are round trips of a message and a short answer; else one way,\n"
	"                    by the clock of one machine that all ranks must run on\n"
	"  --outstanding N   messages of a sender; beyond that they are held (default 256)\n"
	"  --nap-us N        a rank with nothing to do sleeps for so long (default 0: it looks "
	"on)\n"
	"  --seed N          of all that is drawn (default 1)\n"
	"  --json FILE       write to FILE (default '-', stdout)\n"
	"  --help            print this\n"
	"Exits with 0, with 1 if data came damaged, with 2 on bad arguments.\n";

#define GAPS_MAX  16
#define IDLES_MAX 64

struct options {
	struct arrangement arrangement;
	struct limits limits;
	struct bulk bulk;
	uint64_t gaps_ns[GAPS_MAX];
	size_t gap_count;
	uint64_t idle_bytes[IDLES_MAX], idle_gaps_ns[IDLES_MAX];
	uint64_t span_ns, seed;
	const char *json;
};

static const uint64_t ns_per_ms = 1000000, ns_per_us = 1000, gap_max_ns = 60000000000u;

/* Two integers with a colon between them. */
static void pair_read(const char *option, const char *text, uint64_t first_max, uint64_t *first,
		      uint64_t second_max, uint64_t *second)
{
	char *copy = strdup(text), *colon = strchr(copy, ':');

	if (!colon)
		ex_quit(EX_EXIT_USAGE, "%s: '%s' has no colon", option, text);
	*colon = '\0';
	*first = ex_parse_integer(option, copy, 1, first_max);
	*second = ex_parse_integer(option, colon + 1, 1, second_max);
	free(copy);
}

static void idles_read(struct options *o, const char *text)
{
	char *copy = strdup(text), *rest = copy, *item;
	size_t count = 0;

	while ((item = strsep(&rest, ","))) {
		if (count == IDLES_MAX)
			ex_quit(EX_EXIT_USAGE, "--idle: more than %d sizes", IDLES_MAX);
		pair_read("--idle", item, SIZES_BYTES_MAX, &o->idle_bytes[count], gap_max_ns,
			  &o->idle_gaps_ns[count]);
		count++;
	}
	free(copy);
	o->arrangement.idle_sizes = count;
}

static void flow_take(struct options *o, int option)
{
	switch (option) {
	case 's':
		sizes_read(&o->arrangement.sizes, "--sizes", optarg);
		break;
	case 'g':
		o->gap_count =
			ex_parse_integers("--gaps", optarg, 1, gap_max_ns, o->gaps_ns, GAPS_MAX);
		break;
	case 't':
		if (strcmp(optarg, "one") != 0 && strcmp(optarg, "all") != 0)
			ex_quit(EX_EXIT_USAGE, "--to: '%s' is neither one nor all", optarg);
		o->arrangement.to_all = strcmp(optarg, "all") == 0;
		break;
	case 'w':
		o->arrangement.arrivals = ARRIVALS_WAVES;
		break;
	case 'b':
		pair_read("--bulk", optarg, SIZES_BYTES_MAX, &o->bulk.bytes, 1u << 30,
			  &o->bulk.count);
		break;
	}
}

static void option_take(struct options *o, int option)
{
	switch (option) {
	case 'm':
		o->span_ns = ns_per_ms * ex_parse_integer("--ms", optarg, 1, 3600000);
		break;
	case 'i':
		idles_read(o, optarg);
		break;
	case 'c':
		o->arrangement.idle_copies = ex_parse_integer("--idle-copies", optarg, 1, 10000);
		break;
	case 'a':
		o->limits.answers = true;
		break;
	case 'o':
		o->limits.outstanding = (int)ex_parse_integer("--outstanding", optarg, 1, 4096);
		break;
	case 'n':
		o->limits.nap_ns = ns_per_us * ex_parse_integer("--nap-us", optarg, 0, 1000000);
		break;
	case 'e':
		o->seed = ex_parse_integer("--seed", optarg, 0, UINT64_MAX);
		break;
	case 'j':
		o->json = optarg;
		break;
	default:
		flow_take(o, option);
	}
}

static void options_read(struct options *o, int argc, char **argv)
{
	static const struct option table[] = {
		{"sizes", required_argument, NULL, 's'},
		{"gaps", required_argument, NULL, 'g'},
		{"to", required_argument, NULL, 't'},
		{"waves", no_argument, NULL, 'w'},
		{"ms", required_argument, NULL, 'm'},
		{"bulk", required_argument, NULL, 'b'},
		{"idle", required_argument, NULL, 'i'},
		{"idle-copies", required_argument, NULL, 'c'},
		{"answers", no_argument, NULL, 'a'},
		{"outstanding", required_argument, NULL, 'o'},
		{"nap-us", required_argument, NULL, 'n'},
		{"seed", required_argument, NULL, 'e'},
		{"json", required_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int option;

	o->span_ns = 1000 * ns_per_ms;
	o->limits = (struct limits){.outstanding = 256, .outstanding_bytes = 128u << 20};
	o->arrangement.idle_copies = 20;
	o->seed = 1;
	o->json = "-";
	while ((option = ex_option(argc, argv, table, help)) != EX_OPTIONS_END)
		option_take(o, option);
	if (o->gap_count == 0 || o->arrangement.sizes.count == 0)
		ex_quit(EX_EXIT_USAGE, "--sizes and --gaps are needed; see --help");
}

/* One phase. All of its time is told if nothing else moves in it. */
static void phase_run(const struct options *o, const char *kind,
		      const struct arrangement *arrangement, const struct bulk *bulk, int rank,
		      FILE *out)
{
	struct span span = {.to_ns = arrangement->horizon_ns};
	struct traffic traffic;

	if (arrangement->arrivals != ARRIVALS_IDLE) {
		span.from_ns = o->span_ns / 10;
		span.to_ns = span.from_ns + o->span_ns;
	}
	traffic_run(&traffic, arrangement, &o->limits, bulk, rank);
	report_phase(out, kind, arrangement, &traffic, span, &o->limits);
	traffic_close(&traffic);
}

static void idle_run(const struct options *o, int rank, FILE *out)
{
	struct arrangement arrangement = o->arrangement;
	struct bulk none = {0};

	arrangement.arrivals = ARRIVALS_IDLE;
	arrangement.idle_bytes = o->idle_bytes;
	arrangement.idle_gaps_ns = o->idle_gaps_ns;
	arrangement.gap_ns = 1;
	arrangement.seed = o->seed;
	for (size_t i = 0; i < arrangement.idle_sizes; i++)
		arrangement.horizon_ns += arrangement.idle_copies * o->idle_gaps_ns[i];
	phase_run(o, "idle", &arrangement, &none, rank, out);
}

int main(int argc, char **argv)
{
	static struct options options;
	struct arrangement arrangement;
	int rank, ranks;
	FILE *out;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	options_read(&options, argc, argv);
	if (ranks < 2)
		ex_quit(EX_EXIT_USAGE, "two ranks or more are needed");
	prctl(PR_SET_TIMERSLACK, 1ul); /* naps are to be as short as was asked for */
	out = ex_report_open(options.json);
	options.arrangement.ranks = ranks;
	if (options.arrangement.idle_sizes)
		idle_run(&options, rank, out);
	for (size_t i = 0; i < options.gap_count; i++) {
		struct bulk bulk = options.bulk;

		arrangement = options.arrangement;
		arrangement.gap_ns = options.gaps_ns[i];
		arrangement.horizon_ns = options.span_ns / 10 * 12;
		arrangement.seed = ex_mix(options.seed) + i;
		bulk.seed = ex_mix(arrangement.seed);
		phase_run(&options, "load", &arrangement, &bulk, rank, out);
	}
	if (rank == 0)
		ex_report_close(out);
	MPI_Finalize();
	return 0;
}
