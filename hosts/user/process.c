/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The endpoints of this process as a whole: a child of fork() must not speak with its parent's
 * voice, and a program that exits without closing must not lose its counters.
 */
#include <stdlib.h>
#include <unistd.h>

#include "ep.h"

#define BW_PROCESS_PATIENCE (5 * BW_S) /* to get hold of a busy endpoint */
#define BW_PROCESS_PAUSE_US 100	       /* between two tries */

static pthread_mutex_t bw_process_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct bw_ep *bw_process_first;
static _Atomic unsigned int bw_process_opened;
static bool bw_process_noted; /* on_exit() is */
static int bw_process_status; /* of exit() */

/* Take its lock; false if that takes too long: whoever holds it may wait for us. */
static bool bw_process_hold(struct bw_ep *ep)
{
	uint64_t until = bw_clock_now() + BW_PROCESS_PATIENCE;
	bool held = bw_lock_try(&ep->lock);

	while (!held && bw_clock_now() < until) {
		usleep(BW_PROCESS_PAUSE_US);
		held = bw_lock_try(&ep->lock);
	}
	return held;
}

/* The child is to find every endpoint at rest, not in the hands of a thread that it has not. */
static void bw_process_before_fork(void)
{
	pthread_mutex_lock(&bw_process_mutex);
	for (struct bw_ep *ep = bw_process_first; ep; ep = ep->next) {
		ep->fork_held = bw_process_hold(ep);
		if (ep->fork_held)
			bw_fanout_hold(ep);
	}
}

static void bw_process_in_parent(void)
{
	for (struct bw_ep *ep = bw_process_first; ep; ep = ep->next) {
		if (!ep->fork_held)
			continue;
		bw_fanout_release(ep);
		bw_lock_release(&ep->lock);
	}
	pthread_mutex_unlock(&bw_process_mutex);
}

/* The child keeps its memory, but no descriptor: names and sockets are the parent's alone. */
static void bw_process_in_child(void)
{
	for (struct bw_ep *ep = bw_process_first; ep; ep = ep->next)
		bw_ep_abandon(ep);
	bw_process_first = NULL;
	pthread_mutex_unlock(&bw_process_mutex);
}

/* When the library is loaded: handlers that are registered while a fork() is under way do not run
 * in it. Ahead of constructors without a priority: handlers of a library that this one is part of
 * run before these in a fork() if they are registered later. */
__attribute__((constructor(1000))) static void bw_process_load(void)
{
	pthread_atfork(bw_process_before_fork, bw_process_in_parent, bw_process_in_child);
}

static void bw_process_exits(int status, void *arg)
{
	bw_process_status = status & 0xFF;
}

void bw_process_add(struct bw_ep *ep)
{
	pthread_mutex_lock(&bw_process_mutex);
	if (!bw_process_noted)
		on_exit(bw_process_exits, NULL); /* the library is never unloaded before */
	bw_process_noted = true;
	ep->next = bw_process_first;
	bw_process_first = ep;
	pthread_mutex_unlock(&bw_process_mutex);
}

void bw_process_remove(struct bw_ep *ep)
{
	struct bw_ep **at;

	pthread_mutex_lock(&bw_process_mutex);
	for (at = &bw_process_first; *at; at = &(*at)->next) {
		if (*at == ep) {
			*at = ep->next;
			break;
		}
	}
	pthread_mutex_unlock(&bw_process_mutex);
}

unsigned int bw_process_serial(void)
{
	return atomic_fetch_add(&bw_process_opened, 1);
}

/* Keep others from closing endpoints meanwhile; false if that takes too long: exit() was called by
 * a signal's handler in the middle of it, say. */
static bool bw_process_lock(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (time_t)(BW_PROCESS_PATIENCE / BW_S);
	return pthread_mutex_timedlock(&bw_process_mutex, &until) == 0;
}

/* exit() or unloading of the library without a close: the counters are written, and peers are told.
 * A status other than 0 says that the program failed: a rank of an MPI job that gave up, say, and
 * others may wait for it in vain. A thread that holds the lock may have been ended in the middle;
 * then there is no touching the engine, and the counters are read as they are. One that is not open
 * yet, or closed by another thread just now, has nothing to say. */
__attribute__((destructor)) static void bw_process_exit(void)
{
	bool locked = bw_process_lock();

	for (struct bw_ep *ep = bw_process_first; ep; ep = ep->next) {
		bool held = bw_process_hold(ep);

		bool open = !ep->dead;

		if (held && open && !ep->dispatching) {
			if (bw_process_status)
				bw_reliable_failed(ep->engine);
			bw_ep_farewell(ep);
		}
		if (open) {
			bw_stats_write(ep);
			bw_board_unlink(ep);
		}
		if (held)
			bw_lock_release(&ep->lock);
	}
	if (locked)
		pthread_mutex_unlock(&bw_process_mutex);
}
