/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages to people. "Once per job" is a claim on an abstract unix socket named after the job and
 * the message: the first process to bind it speaks, and the name vanishes with that process.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "claim.h"
#include "log.h"
#include "text.h"

#define BW_LOG_NAMES 64 /* that a process remembers; there are some twenty */

_Atomic enum bw_log_level bw_log_limit = BW_LOG_WARN;

static const char *const bw_log_names[] = {"error", "warning", "info", "debug"};

static void bw_log_write(enum bw_log_level level, const char *who, const char *format, va_list args)
{
	char line[1024];
	int n;

	n = snprintf(line, sizeof(line), "beowire: %s%s%s: ", who, *who ? ": " : "",
		     bw_log_names[level]);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
	if ((size_t)n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	bw_text_line(line);
	line[n] = '\n';
	/* One write, so that lines of several processes do not mix. There is nobody to tell if it
	 * fails. */
	if (write(STDERR_FILENO, line, (size_t)n + 1) < 0)
		return;
}

static void bw_log_line(enum bw_log_level level, const char *format, va_list args)
{
	char host[65] = "";

	gethostname(host, sizeof(host) - 1);
	bw_log_write(level, host, format, args);
}

void bw_log(enum bw_log_level level, const char *format, ...)
{
	va_list args;

	if (level > bw_log_limit)
		return;
	va_start(args, format);
	bw_log_line(level, format, args);
	va_end(args);
}

/* What all processes of a job on this node have in common: the launcher's name for it, or else the
 * session they run in. */
static void bw_log_job(char *name, size_t n)
{
	static const char *const variables[] = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid",
						"PMI_JOBID", "SLURM_JOB_ID"};

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *value = getenv(variables[i]);

		if (value && *value) {
			snprintf(name, n, "%.60s", value);
			return;
		}
	}
	snprintf(name, n, "session-%d", (int)getsid(0));
}

/* Is the name new to this process? Who holds a claim takes no calls, and is asked once. Without a
 * lock, which a child of fork() could find held. */
static bool bw_log_note(const char *name)
{
	static _Atomic(char *) noted[BW_LOG_NAMES];
	char *copy = strdup(name);

	for (int i = 0; i < BW_LOG_NAMES && copy; i++) {
		char *there = atomic_load(&noted[i]);

		if (!there && atomic_compare_exchange_strong(&noted[i], &there, copy))
			return true;
		if (!strcmp(there, name)) {
			free(copy);
			return false;
		}
	}
	free(copy);
	return true;
}

bool bw_log_first(enum bw_log_level level, const char *what)
{
	char job[64], name[108];
	int claim;

	if (level > bw_log_limit)
		return false;
	bw_log_job(job, sizeof(job));
	snprintf(name, sizeof(name), "beowire/said/%s/%s", job, what);
	if (!bw_log_note(name))
		return false;
	/* The descriptor is kept on purpose: the claim lives as long as the process. */
	claim = bw_claim_name(name);
	return claim >= 0 || claim == -EACCES;
}

void bw_log_once(enum bw_log_level level, const char *what, const char *format, ...)
{
	va_list args;

	if (!bw_log_first(level, what))
		return;
	va_start(args, format);
	bw_log_line(level, format, args);
	va_end(args);
}

void bw_log_both(enum bw_log_level level, const char *what, const char *format, ...)
{
	va_list args;

	if (!bw_log_first(level, what))
		return;
	va_start(args, format);
	bw_log_write(level, "", format, args);
	va_end(args);
}

int bw_fail(const char **why, int error, const char *format, ...)
{
	static _Thread_local char text[1024];
	char fresh[sizeof(text)];
	va_list args;

	if (!why)
		return error;
	/* An argument may be the text itself. */
	va_start(args, format);
	vsnprintf(fresh, sizeof(fresh), format, args);
	va_end(args);
	bw_text_line(fresh);
	memcpy(text, fresh, sizeof(text));
	*why = text;
	return error;
}
