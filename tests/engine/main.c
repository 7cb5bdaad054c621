/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs the groups of unit tests named on the command line, all of them without one. Before them:
 * with --keyed all engines have a cluster key, with --encrypted they seal with it as well, and with
 * --first a group in which a test fails is the last. */
#include "groups.h"

#include <stdio.h>

static const struct {
	const char *name;
	int (*run)(void);
} groups[] = {
	{"contact", contact_tests},   {"order", order_tests},
	{"segments", segments_tests}, {"pull", pull_tests},
	{"ack", ack_tests},	      {"loss", loss_tests},
	{"credit", credit_tests},     {"congestion", congestion_tests},
	{"path", path_tests},	      {"parser", parser_tests},
	{"dead", dead_tests},	      {"spans", spans_tests},
	{"slab", slab_tests},	      {"timer", timer_tests},
	{"wrap", wrap_tests},	      {"memory", memory_tests},
	{"pieces", pieces_tests},     {"datagram", datagram_tests},
	{"refusal", refusal_tests},   {"farewell", farewell_tests},
	{"pull_end", pull_end_tests}, {"single", single_tests},
	{"stripe", stripe_tests},     {"row", row_tests},
	{"distance", distance_tests}, {"duplex", duplex_tests},
	{"view", view_tests},	      {"late", late_tests},
	{"places", places_tests},     {"size", size_tests},
	{"carry", carry_tests},	      {"cookie", cookie_tests},
	{"hkdf", hkdf_tests},	      {"key", key_tests},
	{"encrypt", encrypt_tests},   {"version", version_tests},
	{"shrink", shrink_tests},     {"named", named_tests},
};

#define GROUPS (sizeof(groups) / sizeof(groups[0]))

static int run_group(const char *name)
{
	size_t i;

	for (i = 0; i < GROUPS; i++)
		if (!strcmp(groups[i].name, name))
			return groups[i].run();
	fprintf(stderr, "no group of tests is called \"%s\"; there are:", name);
	for (i = 0; i < GROUPS; i++)
		fprintf(stderr, " %s", groups[i].name);
	fprintf(stderr, "\n");
	return 1;
}

int main(int argc, char **argv)
{
	bool first = false;
	int failed = 0, i;

	for (argv++; *argv && !strncmp(*argv, "--", 2); argv++) {
		first |= !strcmp(*argv, "--first");
		world_encrypted |= !strcmp(*argv, "--encrypted");
		world_keyed |= world_encrypted || !strcmp(*argv, "--keyed");
	}
	for (i = 0; argv[i]; i++)
		failed += run_group(argv[i]);
	for (; !argv[0] && i < (int)GROUPS && !(first && failed); i++)
		failed += groups[i].run();
	return failed ? 1 : 0;
}
