/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the library reads of files of settings, for a comparison with what the tools read: without
 * arguments the names there are; else for each pair of a user's file and a system's file the
 * settings as NAME, NUMBER OF THE FILE, LINE and VALUE, each ended by a zero byte, troubles as "!"
 * and a text, and their number behind "=".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "setting.h"

static void part(const char *text)
{
	fwrite(text, 1, strlen(text) + 1, stdout);
}

int main(int argc, char **argv)
{
	static struct bw_settings *all; /* what was read stays in memory, and in sight */
	char number[16];

	for (int i = 0; argc == 1 && bw_settings_names[i]; i++)
		part(bw_settings_names[i]);
	all = calloc((size_t)argc, sizeof(*all));
	for (int k = 1; all && k + 1 < argc; k += 2) {
		struct bw_settings *s = &all[k];

		bw_settings_read(s, argv[k], true, false);
		bw_settings_read(s, argv[k + 1], false, false);
		for (int i = 0; bw_settings_names[i]; i++) {
			if (!s->of[i].value)
				continue;
			part(bw_settings_names[i]);
			part(strcmp(s->of[i].path, argv[k]) ? "2" : "1");
			snprintf(number, sizeof(number), "%u", s->of[i].line);
			part(number);
			part(s->of[i].value);
		}
		for (unsigned int i = 0; i < s->troubles && i < BW_SETTINGS_TROUBLES; i++) {
			part("!");
			part(s->trouble[i]);
		}
		snprintf(number, sizeof(number), "%u", s->troubles);
		part("=");
		part(number);
	}
	return 0;
}
