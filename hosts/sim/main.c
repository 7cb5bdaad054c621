/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * beowire-sim: one run with a log of its frames, many runs over seeds, or measurements.
 */
#include "batch.h"

#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>

static const char sim_usage[] =
	"usage: beowire-sim --seed N [--scenario NAME] [--protocol NAME] [--singly] [--trace]\n"
	"       beowire-sim [--seeds A-B] [--frames N] [--jobs N] [--scenario NAME] [--json]\n"
	"       beowire-sim --report[=WHAT] [--seeds A-B] [--json]\n"
	"       beowire-sim --list\n"
	"\n"
	"Runs many protocol engines on a virtual clock, over links with seeded faults, and checks\n"
	"after every run that each message arrived once, whole and in order, and each operation\n"
	"ended. Whatever fails is repeated exactly by its seed.\n"
	"\n"
	"  --seed N         one run\n"
	"  --seeds A-B      runs with all these seeds (default 1 to the end of --frames); with\n"
	"                   --report=stripe these (default 1-3)\n"
	"  --frames N       enough runs for so many frames in total\n"
	"  --jobs N         processes (default: one per core)\n"
	"  --scenario NAME  one of --list instead of one drawn from the seed\n"
	"  --protocol NAME  reliable (default), datagram, or what else engine/protocols.c lists\n"
	"  --singly         no rows of frames: engines are asked for, and get, one at a time\n"
	"  --trace          log every frame and event\n"
	"  --report[=WHAT]  measure all, or one of loss, incast, tcp, ping, stripe, distance\n"
	"  --json           results for machines\n";

static int sim_bad(const char *what, const char *value)
{
	fprintf(stderr, "beowire-sim: %s: %s\n%s", what, value, sim_usage);
	return 2;
}

static bool sim_number(const char *text, uint64_t *out)
{
	char *end;

	*out = strtoull(text, &end, 10);
	return end != text && !*end;
}

/* "5" or "5-9" */
static bool sim_range(char *text, uint64_t *first, uint64_t *last)
{
	char *dash = strchr(text, '-');

	if (dash)
		*dash++ = 0;
	return sim_number(text, first) && sim_number(dash ? dash : text, last) && *first <= *last;
}

static int sim_list(void)
{
	const struct sim_spec *spec;

	printf("%-14s everything mixed, drawn from the seed (the default)\n", "random");
	for (spec = sim_scenarios; spec->name; spec++)
		printf("%-14s %s\n", spec->name, spec->about);
	return 0;
}

static void sim_print_drops(const struct sim *s)
{
	struct bw_counters sum = s->ended;
	uint32_t i;

	for (i = 0; i < s->spec.nodes; i++)
		if (s->nodes[i].engine)
			sim_node_tally(&s->nodes[i], &sum);
	printf("retransmits %llu, spurious %llu, drops:", (unsigned long long)sum.retransmits,
	       (unsigned long long)sum.spurious);
	for (i = 0; i < BW_DROP_REASONS; i++)
		if (sum.drop[i])
			printf(" %s %llu", bw_drop_name((enum bw_drop)i),
			       (unsigned long long)sum.drop[i]);
	printf("\n");
}

static int sim_one(const struct sim_batch *b, bool trace)
{
	struct sim_spec spec;
	char text[200];
	struct sim *s;
	bool ok;

	sim_batch_spec(b, b->first, &spec);
	sim_scenario_print(&spec, text, sizeof(text));
	printf("seed %llu: %s\n", (unsigned long long)b->first, text);
	s = sim_new(&spec, b->protocol, b->first);
	s->trace = trace ? stdout : NULL;
	ok = sim_run(s);
	printf("%llu frames (%llu lost, %llu dropped by queues, %llu by rings, %llu damaged), "
	       "%llu messages, %llu pulls, %llu peers lost, %.3f s of virtual time\n",
	       (unsigned long long)s->frames, (unsigned long long)s->fate[SIM_FATE_LOST],
	       (unsigned long long)s->fate[SIM_FATE_QUEUE],
	       (unsigned long long)s->fate[SIM_FATE_RING],
	       (unsigned long long)s->fate[SIM_FATE_DAMAGED], (unsigned long long)s->delivered,
	       (unsigned long long)s->pulled, (unsigned long long)s->downs, (double)s->now / 1e9);
	sim_print_drops(s);
	if (!ok)
		fprintf(stderr, "beowire-sim: seed %llu: %s\n", (unsigned long long)b->first,
			s->why);
	sim_free(s);
	return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"seed", required_argument, NULL, 's'},
						{"seeds", required_argument, NULL, 'S'},
						{"frames", required_argument, NULL, 'f'},
						{"jobs", required_argument, NULL, 'j'},
						{"scenario", required_argument, NULL, 'c'},
						{"protocol", required_argument, NULL, 'p'},
						{"trace", no_argument, NULL, 't'},
						{"singly", no_argument, NULL, 'y'},
						{"report", optional_argument, NULL, 'r'},
						{"json", no_argument, NULL, 'J'},
						{"list", no_argument, NULL, 'l'},
						{"help", no_argument, NULL, 'h'},
						{NULL, 0, NULL, 0}};
	struct sim_batch b = {.protocol = &bw_reliable, .first = 1, .last = UINT64_MAX};
	bool one = false, trace = false, report = false, bounded = false;
	const char *only = NULL;
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t jobs = cores > 0 ? (uint64_t)cores : 1;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 's':
			if (!sim_number(optarg, &b.first))
				return sim_bad("not a seed", optarg);
			one = true;
			break;
		case 'S':
			if (!sim_range(optarg, &b.first, &b.last))
				return sim_bad("not a range of seeds", optarg);
			bounded = true;
			break;
		case 'f':
			if (!sim_number(optarg, &b.frames) || !b.frames)
				return sim_bad("not a number of frames", optarg);
			bounded = true;
			break;
		case 'j':
			if (!sim_number(optarg, &jobs) || !jobs || jobs > 256)
				return sim_bad("not a number of processes from 1 to 256", optarg);
			break;
		case 'c':
			b.scenario = sim_scenario_find(optarg);
			if (!b.scenario && strcmp(optarg, "random"))
				return sim_bad("no such scenario (see --list)", optarg);
			break;
		case 'p':
			b.protocol = bw_protocol_find(optarg);
			if (!b.protocol)
				return sim_bad("no such protocol", optarg);
			break;
		case 't':
			trace = true;
			break;
		case 'y':
			b.singly = true;
			break;
		case 'r':
			report = true;
			only = optarg;
			if (only && !sim_report_known(only))
				return sim_bad("no such report", only);
			break;
		case 'J':
			b.json = true;
			break;
		case 'l':
			return sim_list();
		case 'h':
			fputs(sim_usage, stdout);
			return 0;
		default:
			return 2;
		}
	}
	if (optind != argc)
		return sim_bad("unexpected argument", argv[optind]);
	b.jobs = (uint32_t)jobs;
	if (report)
		return sim_report(only, b.json, b.first,
				  b.last == UINT64_MAX ? SIM_REPORT_SEEDS : b.last);
	if (one)
		return sim_one(&b, trace);
	if (!bounded)
		return sim_bad("what is to be run?",
			       "--seed, --seeds, --frames or --report is needed");
	return sim_batch_run(&b);
}
