/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Subordinate numbers of users; see subuid.h. */
#include "subuid.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "platform.h"

#define BS_SUBUID_LINE	   256	      /* bytes of a line that has a meaning */
#define BS_SUBUID_LINES	   (1u << 17) /* that are looked at, the parts of longer ones as well */
#define BS_SUBUID_PATIENCE (5 * BW_S) /* for names, all together */

/* The name that was looked up last: ranges of one user come in a row. */
struct bs_subuid_name {
	char name[BS_SUBUID_LINE];
	bool known;
	uint32_t uid;
	uint64_t until; /* names are looked up */
};

static bool bs_subuid_number(const char *text, uint32_t *number)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	*number = (uint32_t)n;
	return isdigit((unsigned char)*text) && !*end && !errno && n && n < UINT32_MAX;
}

static void bs_subuid_look_up(struct bs_subuid_name *last, const char *name)
{
	const struct passwd *found;

	if (!strcmp(last->name, name))
		return;
	memcpy(last->name, name, strlen(name) + 1);
	last->uid = 0;
	last->known =
		!strcmp(name, "root") || !strcmp(name, "0") || bs_subuid_number(name, &last->uid);
	if (last->known || bw_clock_now() > last->until)
		return;
	found = getpwnam(name);
	last->known = found;
	if (found)
		last->uid = found->pw_uid;
}

static void bs_subuids_line(struct bs_subuids *all, struct bs_subuid_name *last, char *line)
{
	char *first = strchr(line, ':'), *count = first ? strchr(first + 1, ':') : NULL;
	struct bs_subuid r;
	uint32_t n;

	if (!count || first == line || *line == '#')
		return;
	*first++ = 0;
	*count++ = 0;
	if (!bs_subuid_number(first, &r.first) || !bs_subuid_number(count, &n) ||
	    n > UINT32_MAX - r.first)
		return;
	r.last = r.first + n - 1;
	bs_subuid_look_up(last, line);
	r.owner = last->known ? last->uid : r.first;
	if (!r.owner)
		return;
	if (all->n < BS_SUBUIDS)
		all->range[all->n++] = r;
	else
		all->more = true;
}

void bs_subuids_read(struct bs_subuids *all, const char *path)
{
	struct bs_subuid_name last = {.until = bw_clock_now() + BS_SUBUID_PATIENCE};
	bool whole = true; /* what comes is the beginning of a line */
	char line[BS_SUBUID_LINE];
	unsigned int lines = 0;
	FILE *f = fopen(path, "re");

	all->n = 0;
	all->more = false;
	while (f && !all->more && fgets(line, sizeof(line), f)) {
		bool begins = whole;
		size_t n = strcspn(line, "\n");

		whole = line[n] || feof(f);
		line[n] = 0;
		if (begins && whole)
			bs_subuids_line(all, &last, line);
		all->more |= ++lines == BS_SUBUID_LINES;
	}
	if (f)
		fclose(f);
}

uint32_t bs_subuids_owner(const struct bs_subuids *all, uint32_t uid)
{
	for (uint32_t i = 0; i < all->n; i++) {
		const struct bs_subuid *r = &all->range[i];

		if (uid >= r->first && uid <= r->last)
			return r->owner;
	}
	return uid;
}
