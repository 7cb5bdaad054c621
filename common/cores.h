/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which cores were idle for a time, and moving to one of them. The scheduler wakes who receives on
 * the sender's core. If both busy-wait there, neither sleeps, and the other cores stay idle until
 * the scheduler balances the load.
 */
#ifndef BW_CORES_H
#define BW_CORES_H

#include <stdbool.h>
#include <stdint.h>

#define BW_CORES_MAX 256 /* further ones are not looked at */

struct bw_cores {
	uint64_t at;		     /* when this was read, in nanoseconds; 0: not */
	int n;			     /* cores from 0 on that `idle` tells of */
	uint32_t idle[BW_CORES_MAX]; /* milliseconds that each was idle since boot, modulo 2^32 */
};

/* Reads /proc/stat (see proc(5)). `at` stays 0 if it cannot be read. */
void bw_cores_read(struct bw_cores *c, uint64_t now);

/* The same from the file's text. */
void bw_cores_parse(struct bw_cores *c, const char *text, long ticks_per_s);

/*
 * Were those with `allowed` idle for as long as one would be, between two readings? (A tick, 10 ms
 * mostly, may be missing.) Then: the one that was idle longest, for a quarter of the time at least,
 * rather one of own's NUMA node; `own` if there is no other such, as threads that wake one another
 * wander. -1: they were not.
 */
int bw_cores_idle(const struct bw_cores *before, const struct bw_cores *after,
		  const bool allowed[BW_CORES_MAX], int own);

/* Moves the calling thread to this core. Its affinity is the same afterwards. */
bool bw_cores_move(int core);

/* All of it: were cores idle since `before` was read? If `move`, the calling thread goes there.
 * `before` is what was read now. */
bool bw_cores_other(struct bw_cores *before, uint64_t now, bool move);

#endif
