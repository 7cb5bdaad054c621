/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads of a library in somebody's program. */
#ifndef BW_THREAD_H
#define BW_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Run `main(arg)` in a thread of its own, with a small stack, to which no signal comes: those
 * belong to the program's threads. It is to be joined, or nobody joins it. 0 or a negative errno.
 */
int bw_thread_create(pthread_t *thread, bool joined, void *(*main)(void *), void *arg);
int bw_thread_spawn(void *(*main)(void *), void *arg);

#endif
