/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sleeping and spinning; see nap.h. */
#include "nap.h"

#include <linux/sched/types.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EM_NAP_SLICE 100000u /* ns of computing that a turn on the core asks for */
#define EM_NAP_FIRST 50000u  /* ns; oversleeping taken for granted before it was measured */

void em_nap_open(struct em_nap *n, bool realtime)
{
	memset(n, 0, sizeof(*n));
	bw_crowd_init(&n->crowd, em_now());
	/* a spinning real-time thread yields to nobody: both must leave cores to others */
	n->cores = bw_crowd_cores(&n->crowd) >= (realtime ? 4 : 2);
	n->late = EM_NAP_FIRST;
}

/*
 * Short slices are no priority: a thread that asks for short turns gets its share of the core in
 * smaller pieces, and sooner after waking (Documentation/scheduler/sched-eevdf.rst; Linux 6.12).
 * Older kernels ignore it.
 */
void em_nap_thread(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attributes = {0};

	prctl(PR_SET_TIMERSLACK, 1UL);
	if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) || attributes.policy)
		return;
	attributes.runtime = EM_NAP_SLICE;
	syscall(SYS_sched_setattr, 0, &attributes, 0);
}

static void em_nap_learn(struct em_nap *n, uint64_t late)
{
	uint64_t off = late > n->late ? late - n->late : n->late - late;

	/* once in a while a sleeper was just put aside: that says nothing of wake-ups */
	if (late > 4 * EM_NAP_EARLY)
		late = n->late;
	n->deviation += (off > EM_NAP_EARLY ? EM_NAP_EARLY : off) / 8;
	n->deviation -= n->deviation / 8;
	n->late += late / 8;
	n->late -= n->late / 8;
}

static bool em_nap_may_spin(struct em_nap *n, uint64_t now)
{
	bw_crowd_sample(&n->crowd, now);
	return n->cores && !n->crowd.crowded;
}

static void em_nap_sleep(struct em_nap *n, const struct em_nap_for *f, uint64_t until, uint64_t now)
{
	struct pollfd fds[2] = {{.fd = f->fd[0], .events = POLLIN},
				{.fd = f->fd[1], .events = POLLIN}};
	socklen_t bytes = sizeof(int);
	struct timespec t;
	uint64_t woken;
	int error;

	n->naps++;
	if (f->deaf) {
		t.tv_sec = (time_t)(until / 1000000000u);
		t.tv_nsec = (long)(until % 1000000000u);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	} else {
		t.tv_sec = (time_t)((until - now) / 1000000000u);
		t.tv_nsec = (long)((until - now) % 1000000000u);
		ppoll(fds, 2, &t, NULL);
		/* an interface that went down says so once, until asked; it may come up again */
		if (fds[0].revents & POLLERR)
			getsockopt(f->fd[0], SOL_SOCKET, SO_ERROR, &error, &bytes);
	}
	woken = em_now();
	if (woken >= until)
		em_nap_learn(n, woken - until);
}

static void em_nap_spin(struct em_nap *n, const struct em_nap_for *f, uint64_t until)
{
	n->spins++;
	while (em_now() < until && !f->seen(f->whom))
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#else
		__asm__ volatile("" ::: "memory");
#endif
}

void em_nap(struct em_nap *n, const struct em_nap_for *f)
{
	uint64_t now = em_now(), early, until;
	bool spin;

	if (f->due <= now)
		return;
	spin = em_nap_may_spin(n, now);
	if (f->due == EM_NAP_NEVER) {
		if (spin && f->fast && now < f->active + EM_NAP_IDLE)
			em_nap_spin(n, f, f->active + EM_NAP_IDLE);
		else
			em_nap_sleep(n, f, now + 500 * (uint64_t)EM_NAP_STEP, now);
		return;
	}
	early = spin ? n->late + 3 * n->deviation : 0;
	if (early > EM_NAP_EARLY)
		early = EM_NAP_EARLY;
	if (f->due - now <= early) {
		em_nap_spin(n, f, f->due);
		return;
	}
	until = f->due - early;
	if (f->deaf && until - now > EM_NAP_STEP)
		until = now + EM_NAP_STEP;
	em_nap_sleep(n, f, until, now);
}
