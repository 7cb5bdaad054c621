/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What libbeowire says to people: made, so that every byte of it is looked at, and dropped. */
#include <stdarg.h>
#include <stdio.h>

#include "fuzz.h"
#include "log.h"

/* An interface's name may have any bytes, and is said as it is. */
static void make(const char *format, va_list args, bool printable)
{
	char text[1024];

	vsnprintf(text, sizeof(text), format, args);
	for (const char *at = text; printable && *at; at++)
		if (*at < ' ' || *at > '~')
			fuzz_bad("a text that is not printable");
}

int bw_fail(const char **why, int error, const char *format, ...)
{
	va_list args;

	if (error >= 0)
		fuzz_bad("a failure that is none");
	va_start(args, format);
	make(format, args, true);
	va_end(args);
	*why = "it failed";
	return error;
}

void bw_log(enum bw_log_level level, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	make(format, args, false);
	va_end(args);
}

void bw_log_once(enum bw_log_level level, const char *what, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	make(format, args, false);
	va_end(args);
}
