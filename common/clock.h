/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The one clock of the user host: CLOCK_MONOTONIC in nanoseconds, read without a system call. */
#ifndef BW_CLOCK_H
#define BW_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t bw_clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Until that time, or less if a signal comes. */
static inline void bw_clock_sleep(uint64_t until)
{
	struct timespec t = {.tv_sec = (time_t)(until / 1000000000u),
			     .tv_nsec = (long)(until % 1000000000u)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* For ppoll(): the relative time `ns` in t, or NULL for "no limit". */
static inline const struct timespec *bw_clock_span(uint64_t ns, struct timespec *t)
{
	if (ns == UINT64_MAX)
		return NULL;
	t->tv_sec = (time_t)(ns / 1000000000u);
	t->tv_nsec = (long)(ns % 1000000000u);
	return t;
}

#endif
