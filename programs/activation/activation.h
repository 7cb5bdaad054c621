/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the parts of beowire-activation share: settings, the clock, the work, and samples. */
#ifndef ACTIVATION_H
#define ACTIVATION_H

#include "clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define ACT_COUNT_MAX 1000000 /* events of a run */
#define ACT_PATIENCE  20      /* seconds for one event, on a busy machine */

enum act_event { ACT_TIMER, ACT_FUTEX, ACT_EVENTFD };

/* Who runs on which processor, in the order of --pin. */
enum act_role { ACT_SOURCE, ACT_FIRST, ACT_SECOND, ACT_ROLES };

struct act_settings {
	enum act_event event;
	bool processes;	      /* the two that wake are processes, not threads of one */
	uint32_t count;	      /* events that are measured */
	uint32_t warm;	      /* events before them, which are not */
	uint64_t interval_ns; /* between events, on average */
	uint32_t work;	      /* rounds through the hot code, of each that woke */
	int priority;	      /* of SCHED_FIFO; 0: the ordinary class */
	bool pinned;
	int cpu[ACT_ROLES];
};

/* One figure of every event, in nanoseconds, none left out. */
struct act_samples {
	const char *name;
	uint32_t count;
	uint64_t *ns;
};

/* The kernel's account of a thread, which tells how long it stood in a processor's queue. */
struct act_account {
	int fd; /* -1: the kernel keeps none */
};

/* Prints why, and ends the process. */
void act_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

void act_samples_make(struct act_samples *samples, const char *name, uint32_t room);
/* Adds to - from; a clock that went back is a failure. */
void act_samples_add(struct act_samples *samples, uint64_t from, uint64_t to);
/* Adds what is such a figure already. */
void act_samples_put(struct act_samples *samples, uint64_t ns);
void act_samples_print(const struct act_samples *samples);

/* Opens the account of the calling thread. */
void act_account_open(struct act_account *account);
/* How long it has been ready to run without a processor since it began, in nanoseconds; 0 without
 * an account. Of the thread that opened it. */
uint64_t act_account_queued(const struct act_account *account);

/* What a reading of the clock costs, and its smallest step: printed as members of a JSON object. */
void act_clock_print(void);

/* The calling thread gets its processor and its priority, as the settings say. */
void act_take_place(const struct act_settings *settings, enum act_role role);

/* Goes through code that fills as many pages as the hot code of a program. */
uint64_t act_work(uint32_t rounds);

/* The chain of an event, a thread, and a second one; prints a JSON object. */
void act_chain(const struct act_settings *settings);

/* Keeps processors busy until it is killed or its parent ends. */
void act_load(int processors) __attribute__((noreturn));

#endif
