/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Samples, the clock they are made with, and where a thread runs (see activation.h). */
#include "activation.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READINGS 10000

void act_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, format, args);
	fputs("\n", stderr);
	va_end(args);
	exit(1);
}

void act_samples_make(struct act_samples *samples, const char *name, uint32_t room)
{
	size_t bytes = room * sizeof(*samples->ns);

	*samples = (struct act_samples){.name = name, .ns = malloc(bytes)};
	if (!samples->ns)
		act_fail("no memory");
	memset(samples->ns, 0, bytes); /* no page is missing later */
}

void act_samples_put(struct act_samples *samples, uint64_t ns)
{
	samples->ns[samples->count++] = ns;
}

void act_samples_add(struct act_samples *samples, uint64_t from, uint64_t to)
{
	if (to < from)
		act_fail("the clock went back by %" PRIu64 " ns", from - to);
	act_samples_put(samples, to - from);
}

void act_samples_print(const struct act_samples *samples)
{
	printf(", \"%s\": [", samples->name);
	for (uint32_t i = 0; i < samples->count; i++)
		printf("%s%" PRIu64, i ? "," : "", samples->ns[i]);
	printf("]");
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void act_clock_print(void)
{
	static uint64_t took[READINGS];
	uint64_t step = UINT64_MAX, before = bw_clock_now();

	for (int i = 0; i < READINGS; i++) {
		uint64_t now = bw_clock_now();

		took[i] = now - before;
		if (now != before && now - before < step)
			step = now - before;
		before = now;
	}
	qsort(took, READINGS, sizeof(took[0]), by_size);
	printf("\"clock\": {\"reading_ns\": %" PRIu64 ", \"step_ns\": %" PRIu64 "}",
	       took[READINGS / 2], step);
}

void act_account_open(struct act_account *account)
{
	account->fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

/* "RAN QUEUED TURNS": Documentation/scheduler/sched-stats.rst of the kernel. */
uint64_t act_account_queued(const struct act_account *account)
{
	char text[128];
	ssize_t n = account->fd < 0 ? 0 : pread(account->fd, text, sizeof(text) - 1, 0);
	uint64_t queued;

	text[n > 0 ? n : 0] = 0;
	return sscanf(text, "%*u %" SCNu64, &queued) == 1 ? queued : 0;
}

void act_take_place(const struct act_settings *settings, enum act_role role)
{
	struct sched_param param = {.sched_priority = settings->priority};
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(settings->cpu[role], &one);
	if (settings->pinned && sched_setaffinity(0, sizeof(one), &one))
		act_fail("processor %d: %s", settings->cpu[role], strerror(errno));
	if (settings->priority && sched_setscheduler(0, SCHED_FIFO, &param))
		act_fail("real-time priority %d: %s", settings->priority, strerror(errno));
}
