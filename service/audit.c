/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lines for the administrator; see audit.h. Only the main thread writes any. */
#include "audit.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "protocol.h"

#define BS_AUDIT_LINES 10 /* a second */
#define BS_AUDIT_LINE  600

static void bs_audit_line(enum bs_level level, const char *format, va_list arguments)
{
	char line[BS_AUDIT_LINE];

	vsnprintf(line, sizeof(line), format, arguments);
	for (char *c = line; *c; c++) {
		if (iscntrl((unsigned char)*c)) /* else it would be several lines, or colours */
			*c = '?';
	}
	/* A level before a line is for the journal (sd-daemon(3)). */
	if (getenv("JOURNAL_STREAM"))
		fprintf(stderr, "<%d>%s\n", level, line);
	else
		fprintf(stderr, "beowired: %s\n", line);
}

void bs_audit(enum bs_level level, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	bs_audit_line(level, format, arguments);
	va_end(arguments);
}

void bs_audit_refused(uint64_t now, const char *format, ...)
{
	static uint64_t since, lines, left;
	va_list arguments;

	if (now - since >= BW_S) {
		if (left)
			bs_audit(BS_WARNING, "%lu more were refused in this time",
				 (unsigned long)left);
		since = now;
		lines = left = 0;
	}
	if (++lines > BS_AUDIT_LINES) {
		left++;
		return;
	}
	va_start(arguments, format);
	bs_audit_line(BS_NOTICE, format, arguments);
	va_end(arguments);
}
