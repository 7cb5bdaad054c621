/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waiting for a deadline or a frame. The kernel wakes a sleeper some microseconds late; how many is
 * learned from each sleep. Where a core is free the sleeper gets up that much earlier and spins the
 * rest. Whether one is free is seen by how long the thread had to wait for its own: a spinning
 * thread that is put aside takes the core from those whose frames it waits for.
 */
#ifndef EM_NAP_H
#define EM_NAP_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "crowd.h"

#define EM_NAP_STEP  2000000u /* ns; no longer asleep without a look at the ring and at orders */
#define EM_NAP_EARLY 200000u  /* ns; got up earlier than needed at most */
#define EM_NAP_IDLE  2000000u /* ns of spinning for a next frame */
#define EM_NAP_FAST  100000u  /* ns; delays below need frames to be seen without a wake-up */
#define EM_NAP_NEVER UINT64_MAX

struct em_nap {
	struct bw_crowd crowd;
	bool cores;	    /* enough are ours for spinning */
	uint64_t late;	    /* ns of oversleeping, smoothed */
	uint64_t deviation; /* of it, smoothed */
	uint64_t naps, spins;
};

static inline uint64_t em_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What is waited for. `seen` is asked while spinning: true ends it. */
struct em_nap_for {
	uint64_t due;	 /* ns; EM_NAP_NEVER: nothing but a frame */
	bool deaf;	 /* frames that come before `due` cannot be due before it: sleep on */
	bool fast;	 /* a frame should be seen at once */
	uint64_t active; /* when the last frame came or went */
	int fd[2];	 /* readable when a frame or an order has come */
	bool (*seen)(const void *);
	const void *whom;
};

void em_nap_open(struct em_nap *n, bool realtime);

/* Wait until then, or until a frame or an order has come, or until it is time to look again. */
void em_nap(struct em_nap *n, const struct em_nap_for *f);

/* The thread's own settings: wake-ups as exact as the kernel can, and short turns on the core. */
void em_nap_thread(void);

#endif
