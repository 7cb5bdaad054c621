/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command line of beowire-activation: how long it takes from an event to whom it wakes. */
#include "activation.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"usage: beowire-activation threads|processes [--event timer|futex|eventfd] [--count N]\n"
	"           [--warm N] [--interval US] [--work ROUNDS] [--pin SOURCE,FIRST,SECOND]\n"
	"           [--priority N]\n"
	"       beowire-activation load PROCESSORS\n";

static const struct option options[] = {
	{"event", required_argument, NULL, 'e'},    {"count", required_argument, NULL, 'c'},
	{"warm", required_argument, NULL, 'w'},	    {"interval", required_argument, NULL, 'i'},
	{"work", required_argument, NULL, 'k'},	    {"pin", required_argument, NULL, 'p'},
	{"priority", required_argument, NULL, 'r'}, {NULL, 0, NULL, 0},
};

static void __attribute__((noreturn)) refuse(void)
{
	fputs(usage, stderr);
	exit(2);
}

static long number(const char *text, long least, long most)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < least || n > most)
		act_fail("%s? Between %ld and %ld", text, least, most);
	return n;
}

static enum act_event event(const char *text)
{
	if (!strcmp(text, "timer"))
		return ACT_TIMER;
	if (!strcmp(text, "futex"))
		return ACT_FUTEX;
	if (strcmp(text, "eventfd"))
		refuse();
	return ACT_EVENTFD;
}

static void processors(struct act_settings *settings, char *text)
{
	char *rest = NULL, *word = strtok_r(text, ",", &rest);

	for (int i = 0; i < ACT_ROLES; i++, word = strtok_r(NULL, ",", &rest)) {
		if (!word)
			refuse();
		settings->cpu[i] = (int)number(word, 0, CPU_SETSIZE - 1);
	}
	if (word)
		refuse();
	settings->pinned = true;
}

static void parse(struct act_settings *settings, int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'e')
			settings->event = event(optarg);
		else if (c == 'c')
			settings->count = (uint32_t)number(optarg, 1, ACT_COUNT_MAX);
		else if (c == 'w')
			settings->warm = (uint32_t)number(optarg, 0, ACT_COUNT_MAX);
		else if (c == 'i')
			settings->interval_ns = 1000 * (uint64_t)number(optarg, 1, 10000000);
		else if (c == 'k')
			settings->work = (uint32_t)number(optarg, 0, 10000);
		else if (c == 'p')
			processors(settings, optarg);
		else if (c == 'r')
			settings->priority = (int)number(optarg, 1, 99);
		else
			refuse();
	}
	if (optind != argc)
		refuse();
}

int main(int argc, char **argv)
{
	struct act_settings settings = {
		.event = ACT_TIMER, .count = 1000, .warm = 50, .interval_ns = 1000000, .work = 1};
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "load") && argc == 3)
		act_load((int)number(argv[2], 1, CPU_SETSIZE));
	if (argc < 2)
		refuse();
	parse(&settings, argc - 1, argv + 1);
	if (!strcmp(what, "processes"))
		settings.processes = true;
	else if (strcmp(what, "threads"))
		refuse();
	act_chain(&settings);
	return 0;
}
