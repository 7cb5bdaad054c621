/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A thread that closes what strangers may have tied something to; see discard.h. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "discard.h"
#include "thread.h"

/* Of the process. All under the mutex, under which nobody waits for anything. */
static pthread_mutex_t bw_discard_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
	int fd[BW_DISCARD_MOST]; /* a ring of those that wait, from `first` on */
	unsigned int first, waiting;
	unsigned int reserved; /* places for those that may be to wait */
	bool runs;	       /* there is a thread */
	bool at_once;	       /* there are to be none */
} bw_discard_all;

static void *bw_discard_main(void *arg)
{
	pthread_mutex_lock(&bw_discard_mutex);
	while (bw_discard_all.waiting) {
		int fd = bw_discard_all.fd[bw_discard_all.first];

		bw_discard_all.first = (bw_discard_all.first + 1) % BW_DISCARD_MOST;
		bw_discard_all.waiting--;
		pthread_mutex_unlock(&bw_discard_mutex);
		close(fd);
		pthread_mutex_lock(&bw_discard_mutex);
	}
	bw_discard_all.runs = false;
	pthread_mutex_unlock(&bw_discard_mutex);
	return NULL;
}

/* Have a thread if something waits. One that cannot be made now may be the next time. */
static void bw_discard_start(void)
{
	if (bw_discard_all.waiting && !bw_discard_all.runs)
		bw_discard_all.runs = !bw_thread_spawn(bw_discard_main, NULL);
}

static void bw_discard_hold(void)
{
	pthread_mutex_lock(&bw_discard_mutex);
}

static void bw_discard_release(void)
{
	pthread_mutex_unlock(&bw_discard_mutex);
}

/* Other threads' places are of no use to a child, nor is the thread: it has none of them. */
static void bw_discard_in_child(void)
{
	bw_discard_all.runs = false;
	bw_discard_all.reserved = 0;
	pthread_mutex_unlock(&bw_discard_mutex);
}

/* Before handlers that take the locks under which something is discarded: of those that run before
 * a fork() the last one that is registered is the first. */
__attribute__((constructor(999))) static void bw_discard_load(void)
{
	pthread_atfork(bw_discard_hold, bw_discard_release, bw_discard_in_child);
}

void bw_discard_rights(int fd, bool may)
{
	int value = may;

	/* Older kernels do not know it. */
	if (setsockopt(fd, SOL_SOCKET, BW_PASSRIGHTS, &value, sizeof(value)))
		return;
}

/* Can nothing slow have come by this socket? */
static bool bw_discard_plain(int fd)
{
	int may = 1;
	socklen_t n = sizeof(may);

	return bw_discard_all.at_once ||
	       (!getsockopt(fd, SOL_SOCKET, BW_PASSRIGHTS, &may, &n) && !may);
}

static bool bw_discard_has_room(void)
{
	return bw_discard_all.waiting + bw_discard_all.reserved < BW_DISCARD_MOST;
}

bool bw_discard_reserve(void)
{
	bool room;

	pthread_mutex_lock(&bw_discard_mutex);
	room = bw_discard_has_room();
	bw_discard_all.reserved += room;
	bw_discard_start();
	pthread_mutex_unlock(&bw_discard_mutex);
	return room;
}

void bw_discard_return(void)
{
	pthread_mutex_lock(&bw_discard_mutex);
	bw_discard_all.reserved--;
	pthread_mutex_unlock(&bw_discard_mutex);
}

bool bw_discard_room(void)
{
	bool room = bw_discard_reserve();

	if (room)
		bw_discard_return();
	return room;
}

void bw_discard(int fd)
{
	unsigned int at;

	if (bw_discard_plain(fd)) {
		close(fd);
		bw_discard_return();
		return;
	}
	pthread_mutex_lock(&bw_discard_mutex);
	at = bw_discard_all.first + bw_discard_all.waiting++;
	bw_discard_all.fd[at % BW_DISCARD_MOST] = fd;
	bw_discard_all.reserved--;
	bw_discard_start();
	pthread_mutex_unlock(&bw_discard_mutex);
}

/* Take the calls that wait for a listener which gets no more of them; false if there may be some
 * left. */
static bool bw_discard_calls(int fd)
{
	while (bw_discard_reserve()) {
		int caller = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		bool short_of = errno == EMFILE || errno == ENFILE || errno == ENOMEM;

		if (caller >= 0) {
			bw_discard(caller);
			continue;
		}
		bw_discard_return();
		return !short_of;
	}
	return false;
}

void bw_discard_listener(int fd)
{
	if (!bw_discard_plain(fd)) {
		shutdown(fd, SHUT_RDWR);
		/* Without a thread it stays open: nobody can call it. */
		if (!bw_discard_calls(fd)) {
			bw_discard_alone(fd);
			return;
		}
	}
	close(fd);
}

static void *bw_discard_one(void *arg)
{
	close((int)(intptr_t)arg);
	return NULL;
}

bool bw_discard_alone(int fd)
{
	return !bw_thread_spawn(bw_discard_one, (void *)(intptr_t)fd);
}

void bw_discard_at_once(void)
{
	bw_discard_all.at_once = true;
}
