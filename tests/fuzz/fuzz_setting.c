/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any text as a file of settings. What is set is a line of the text, found here by other means: a
 * name of the list, an equals sign, a value without blanks around it or control characters in it.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"
#include "setting.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

/* Does this line of the text set this name to this value? */
static bool says(const uint8_t *data, size_t size, unsigned int line, const char *name,
		 const char *value)
{
	const uint8_t *at = data, *end = data + size, *stop;

	while (--line) {
		at = memchr(at, '\n', (size_t)(end - at));
		if (!at++)
			return false;
	}
	stop = memchr(at, '\n', (size_t)(end - at));
	stop = stop ? stop : end;
	while (at < stop && blank(*at))
		at++;
	while (at < stop && blank(stop[-1]))
		stop--;
	if ((size_t)(stop - at) < strlen(name) || memcmp(at, name, strlen(name)))
		return false;
	at += strlen(name);
	while (at < stop && blank(*at))
		at++;
	if (at == stop || *at++ != '=')
		return false;
	while (at < stop && blank(*at))
		at++;
	return (size_t)(stop - at) == strlen(value) && !memcmp(at, value, strlen(value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct bw_settings s;
	/* exactly as long as promised, so that a byte too far is seen */
	char *text = malloc(size + 1);
	size_t lines = 1;

	memset(&s, 0, sizeof(s));
	memcpy(text, data, size);
	bw_settings_parse(&s, text, size, "f");
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	if (s.troubles > lines)
		fuzz_bad("more troubles than lines");
	for (int i = 0; bw_settings_names[i]; i++) {
		const struct bw_setting *x = &s.of[i];

		if (!x->value)
			continue;
		if (!says(data, size, x->line, bw_settings_names[i], x->value))
			fuzz_bad("a setting that no line has");
		for (const char *c = x->value; *c; c++)
			if ((iscntrl((unsigned char)*c) && *c != '\t'))
				fuzz_bad("a control character in a value");
	}
	for (unsigned int i = 0; i < s.troubles && i < BW_SETTINGS_TROUBLES; i++) {
		if (s.trouble[i][0] != 'f' || s.trouble[i][1] != ':')
			fuzz_bad("a trouble without its file");
		for (const char *c = s.trouble[i]; *c; c++)
			if (!isprint((unsigned char)*c))
				fuzz_bad("a trouble that is no text");
	}
	free(text);
	return 0;
}
