/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads that handle no signals; see thread.h. */
#include <signal.h>

#include "thread.h"

#define BW_THREAD_STACK (1 << 20) /* bytes; a program's handlers may run on it */

int bw_thread_create(pthread_t *thread, bool joined, void *(*main)(void *), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int error;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, BW_THREAD_STACK);
	pthread_attr_setdetachstate(&attr,
				    joined ? PTHREAD_CREATE_JOINABLE : PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(thread, &attr, main, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -error;
}

int bw_thread_spawn(void *(*main)(void *), void *arg)
{
	pthread_t thread;

	return bw_thread_create(&thread, false, main, arg);
}
