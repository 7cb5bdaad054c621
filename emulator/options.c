/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading the command line; see options.h. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char em_usage[] =
	"usage: beowire-link [OPTIONS] IFACE_A IFACE_B [[ab.|ba.]KEY=VALUE ...]\n"
	"Joins two interfaces of this network namespace by an emulated link: what comes in at A\n"
	"leaves at B, and back. ab. or ba. before a key: for that direction only.\n\n"
	"  --control PATH      take requests (set, stats, reset, stop) at this unix socket\n"
	"  --seed N            of all that is left to chance (default 1)\n"
	"  --cpu LIST          run the two directions on these processors, such as 2 or 2,3 or "
	"4-7\n"
	"  --realtime          run them before all other threads (SCHED_FIFO)\n"
	"  --late TIME         lateness that 99 % of the frames may have (default 100us), or\n"
	"  --late-share SHARE  that share of the delay, if it is more (default 5%)\n"
	"  --json              the report for machines only\n"
	"  --help, --version\n\n"
	"  rate=BIT/S    with the Ethernet's overhead: 100M, 1G; 0: no limit\n"
	"  delay=TIME    10us, 5ms, 1s         jitter=TIME     more or less, in order\n"
	"  loss=SHARE    0.1% or 0.001         burst=FRAMES    mean length of a burst of losses\n"
	"  duplicate=SHARE, reorder=SHARE, corrupt=SHARE\n"
	"  queue=BYTES   0: 10 ms of the rate  mark=BYTES      waiting, above which ECN marks\n"
	"  mtu=BYTES     drop longer packets   coalesce=TIME   hand frames on in groups\n";

static int em_number(const char *text, uint64_t *n)
{
	char *end;

	errno = 0;
	*n = strtoull(text, &end, 0);
	return *text < '0' || *text > '9' || *end || errno ? -EINVAL : 0;
}

/* "2", "2,3" or "4-7" into l->cpu. */
static int em_cpus(struct em_link *l, const char *text)
{
	char *end = (char *)text;
	unsigned long first, last;

	for (;;) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		first = last = strtoul(text, &end, 10);
		if (*end == '-') {
			if (end[1] < '0' || end[1] > '9')
				return -EINVAL;
			last = strtoul(end + 1, &end, 10);
		}
		for (; first <= last; first++) {
			if (first >= CPU_SETSIZE || l->cpus == EM_CPUS)
				return -EINVAL;
			l->cpu[l->cpus++] = (int)first;
		}
		if (!*end)
			return l->cpus ? 0 : -EINVAL;
		if (*end != ',')
			return -EINVAL;
		text = end + 1;
	}
}

/* Processors that this process may not use would be ignored silently by the kernel. */
static int em_cpus_check(const struct em_link *l, char *why)
{
	cpu_set_t set;
	uint32_t i;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 0;
	for (i = 0; i < l->cpus; i++) {
		if (CPU_ISSET(l->cpu[i], &set))
			continue;
		snprintf(
			why, EM_WHY_MAX,
			"--cpu: processor %d is not there, or not allowed; nproc says how many are",
			l->cpu[i]);
		return -EINVAL;
	}
	return 0;
}

static enum em_options em_wrong(char *why, const char *option, const char *like)
{
	snprintf(why, EM_WHY_MAX, "--%s: not a value it takes; give %s", option, like);
	return EM_OPTIONS_WRONG;
}

static enum em_options em_operands(struct em_link *l, int argc, char **argv, char *why)
{
	int i;

	if (argc < 2 || strchr(argv[0], '=') || strchr(argv[1], '=')) {
		snprintf(why, EM_WHY_MAX,
			 "two interfaces are needed, before the settings; --help "
			 "shows how");
		return EM_OPTIONS_WRONG;
	}
	l->interface[0] = argv[0];
	l->interface[1] = argv[1];
	for (i = 2; i < argc; i++)
		if (em_settings_take(l->set, argv[i], why))
			return EM_OPTIONS_WRONG;
	for (i = 0; i < EM_DIRECTIONS; i++)
		if (em_settings_check(&l->set[i], why))
			return EM_OPTIONS_WRONG;
	return em_cpus_check(l, why) ? EM_OPTIONS_WRONG : EM_OPTIONS_RUN;
}

enum em_options em_options_read(struct em_link *l, int argc, char **argv, char why[EM_WHY_MAX])
{
	static const struct option options[] = {{"control", required_argument, NULL, 'c'},
						{"seed", required_argument, NULL, 's'},
						{"cpu", required_argument, NULL, 'p'},
						{"realtime", no_argument, NULL, 'r'},
						{"late", required_argument, NULL, 'l'},
						{"late-share", required_argument, NULL, 'L'},
						{"json", no_argument, NULL, 'j'},
						{"help", no_argument, NULL, 'h'},
						{"version", no_argument, NULL, 'v'},
						{NULL, 0, NULL, 0}};
	int c;

	memset(l, 0, sizeof(*l));
	l->seed = 1;
	l->bound = (struct em_bound){EM_LATE_NS, EM_LATE_SHARE};
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			l->control = optarg;
			break;
		case 's':
			if (em_number(optarg, &l->seed))
				return em_wrong(why, "seed", "a number");
			break;
		case 'p':
			if (em_cpus(l, optarg))
				return em_wrong(why, "cpu", "processors, such as 2 or 2,3 or 4-7");
			break;
		case 'r':
			l->realtime = true;
			break;
		case 'l':
			if (em_settings_time(optarg, &l->bound.late_ns))
				return em_wrong(why, "late", "a time, such as 100us");
			break;
		case 'L':
			if (em_settings_share(optarg, &l->bound.late_share))
				return em_wrong(why, "late-share", "a share, such as 5%");
			break;
		case 'j':
			l->json = true;
			break;
		case 'h':
			fputs(em_usage, stdout);
			return EM_OPTIONS_DONE;
		case 'v':
			puts("beowire-link " EM_VERSION);
			return EM_OPTIONS_DONE;
		case ':':
			snprintf(why, EM_WHY_MAX, "%.40s needs a value; --help shows which",
				 argv[optind - 1]);
			return EM_OPTIONS_WRONG;
		default:
			snprintf(why, EM_WHY_MAX, "%.40s: no such option; --help shows all",
				 argv[optind - 1]);
			return EM_OPTIONS_WRONG;
		}
	}
	return em_operands(l, argc - optind, argv + optind, why);
}
