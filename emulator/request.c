/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The requests of the control socket as text; see control.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "control.h"

#define EM_BLANKS " \t\r\n"

static int em_request_set(char *rest, struct em_settings set[EM_DIRECTIONS], char *why)
{
	struct em_settings wanted[EM_DIRECTIONS];
	char *word, *at = NULL;
	int n = 0, i;

	memcpy(wanted, set, sizeof(wanted));
	for (word = strtok_r(rest, EM_BLANKS, &at); word; word = strtok_r(NULL, EM_BLANKS, &at)) {
		if (em_settings_take(wanted, word, why))
			return -EINVAL;
		n++;
	}
	if (!n) {
		snprintf(why, EM_WHY_MAX, "nothing to set; write: set [ab.|ba.]KEY=VALUE...");
		return -EINVAL;
	}
	for (i = 0; i < EM_DIRECTIONS; i++)
		if (em_settings_check(&wanted[i], why))
			return -EINVAL;
	memcpy(set, wanted, sizeof(wanted));
	return EM_REQUEST_SET;
}

int em_request_read(char *line, struct em_settings set[EM_DIRECTIONS], char why[EM_WHY_MAX])
{
	static const struct {
		const char *name;
		int request;
	} plain[] = {{"stats", EM_REQUEST_STATS},
		     {"reset", EM_REQUEST_RESET},
		     {"stop", EM_REQUEST_STOP}};
	char *at = NULL, *word = strtok_r(line, EM_BLANKS, &at);
	size_t i;

	if (word && !strcmp(word, "set"))
		return em_request_set(at, set, why);
	for (i = 0; word && i < sizeof(plain) / sizeof(plain[0]); i++) {
		if (strcmp(word, plain[i].name))
			continue;
		if (!strtok_r(NULL, EM_BLANKS, &at))
			return plain[i].request;
		snprintf(why, EM_WHY_MAX, "%s takes no arguments; leave them out", word);
		return -EINVAL;
	}
	snprintf(why, EM_WHY_MAX,
		 "%.40s: no such request; there are: set [ab.|ba.]KEY=VALUE..., stats, reset, stop",
		 word ? word : "(nothing)");
	return -EINVAL;
}
