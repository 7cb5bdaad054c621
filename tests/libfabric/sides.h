/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two processes, one for each side of a test, with a channel between them that knows nothing of
 * libfabric: what a launcher gives to programs. A process that finds something wrong says so and
 * ends, and the test fails; cmocka's assertions are for the process that started both.
 */
#ifndef SIDES_H
#define SIDES_H

#include <stdbool.h>
#include <stddef.h>

typedef void (*side_fn)(bool first);

/* Run both, each on its interface (pair_place()), until they have ended; both must end well. */
void sides_run(side_fn fn);

/* Give the other side n bytes, and take so many of it. */
void sides_give(const void *bytes, size_t n);
void sides_take(void *bytes, size_t n);
/* Nobody goes on before both are here. */
void sides_meet(void);

/* In a side: say what is wrong, and end. */
_Noreturn void sides_fail(const char *file, int line, const char *what, long value);
#define SIDE_TRUE(c)                                                                               \
	do {                                                                                       \
		if (!(c))                                                                          \
			sides_fail(__FILE__, __LINE__, #c, 0);                                     \
	} while (0)
/* A call that gives a number is to give this one. */
#define SIDE_IS(call, wanted)                                                                      \
	do {                                                                                       \
		long is_ = (long)(call);                                                           \
		if (is_ != (long)(wanted))                                                         \
			sides_fail(__FILE__, __LINE__, #call, is_);                                \
	} while (0)

#endif
