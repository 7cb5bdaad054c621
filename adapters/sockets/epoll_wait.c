/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* epoll_wait() and its kin: what the kernel tells, and what Beowire brought. See epoll.c. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "core.h"
#include "epolls.h"
#include "real.h"
#include "table.h"
#include "wait.h"
#include "watch.h"

/* A result that is being made. */
struct bws_result {
	struct bws_epoll *e;
	struct epoll_event *events;
	int n, max;
};

static void bws_result_add(struct bws_result *r, struct bws_watch *w, uint32_t events)
{
	if (!events)
		return;
	if (w->round == r->e->round) {
		r->events[w->slot].events |= events;
		return;
	}
	w->round = r->e->round;
	w->slot = (uint32_t)r->n;
	r->events[r->n++] = (struct epoll_event){.events = events, .data.u64 = w->data};
}

/* Those that Beowire has made ready. What is level-triggered and told stays in the list, behind the
 * others. */
static void bws_result_ready(struct bws_result *r)
{
	struct bws_epoll *e = r->e;
	struct bws_watch *w = e->ready, *next;

	e->ready = e->ready_last = NULL;
	for (; w; w = next) {
		uint32_t events = 0;

		next = w->next_ready;
		w->queued = false;
		if (r->n < r->max && w->ours)
			events = bws_watch_events(w, 0);
		if (r->n == r->max || (events && !(w->events & EPOLLET))) {
			bws_watch_queue(w);
		}
		bws_result_add(r, w, events);
	}
}

/* What the kernel told, from `from` on. True: the bell was among it, in some other's place. */
static bool bws_result_kernel(struct bws_result *r, const struct epoll_event *from, int n)
{
	struct bws_epoll *e = r->e;
	bool bell = false;
	uint64_t count;

	for (int i = 0; i < n; i++) {
		struct epoll_event event = from[i];
		struct bws_watch *w = bws_watch_of(e, event.data.u64);

		if (event.data.u64 == (uintptr_t)e) {
			bell = true;
			if (bws_r()->read(e->bell, &count, sizeof(count)) > 0)
				e->rung = false;
		} else if (w && w->epoll == e) {
			bws_result_add(r, w, bws_watch_events(w, event.events));
		} else if (!w) {
			r->events[r->n++] = event;
		}
	}
	return bell;
}

/* How many places of a result those get that Beowire has made ready, if the kernel is asked as
 * well: it may have as many to tell of. Of a single place each has the next one. */
static int bws_epoll_share(struct bws_epoll *e, int max)
{
	if (max > 1)
		return max - (max + 3) / 4;
	e->turn = !e->turn;
	return e->turn;
}

/* If `quiet` the kernel has nothing, or is asked later. */
static int bws_epoll_look(struct bws_epoll *e, int epfd, struct epoll_event *events, int max,
			  bool quiet)
{
	struct bws_result r = {.e = e, .events = events, .max = max};
	bool ask = !quiet, bell = false;
	int n = 0;

	e->round++;
	if (e->ready) {
		ask = !bws_skip(&e->skips, bw_clock_now());
		if (ask)
			r.max = bws_epoll_share(e, max);
		bws_result_ready(&r);
		if (!r.n && r.max)
			ask = !quiet;
		r.max = max;
	}
	do {
		if (r.n < max && ask)
			n = bws_r()->epoll_pwait(epfd, events + r.n, max - r.n, 0, NULL);
		bell = bws_result_kernel(&r, events + r.n, n);
	} while (bell && !r.n);
	if (!r.n && e->ready) /* the only place was the kernel's */
		bws_result_ready(&r);
	if (e->nested && e->ready)
		bws_epoll_ring(e);
	return r.n || n >= 0 ? r.n : -1;
}

static int bws_epoll_sleep(int epfd, struct epoll_event *events, int max, uint64_t span,
			   const sigset_t *mask)
{
	uint64_t ms = span / BWS_MS + !!(span % BWS_MS);
	struct timespec t;
	int n = -1;

	/* Since glibc 2.35 and Linux 5.11. */
	errno = ENOSYS;
	if (bws_r()->epoll_pwait2)
		n = bws_r()->epoll_pwait2(epfd, events, max, bw_clock_span(span, &t), mask);
	if (n >= 0 || errno != ENOSYS)
		return n;
	return bws_r()->epoll_pwait(epfd, events, max, ms > INT_MAX ? -1 : (int)ms, mask);
}

/* Nothing goes by Beowire: the kernel knows all of them, and its sleep is enough. What changes that
 * rings the bell; then this ends, with nothing to tell. */
static int bws_epoll_kernel(struct bws_epoll *e, int epfd, struct epoll_event *events, int max,
			    uint64_t deadline, const sigset_t *mask, bool *again)
{
	struct bws_result r = {.e = e, .events = events, .max = max};
	uint64_t now = bw_clock_now(), span = UINT64_MAX;
	int n = 0;

	if (deadline != UINT64_MAX)
		span = deadline > now ? deadline - now : 0;
	atomic_fetch_add(&e->sleepers, 1);
	if (!atomic_load(&e->masked))
		n = bws_epoll_sleep(epfd, events, max, span, mask);
	atomic_fetch_sub(&e->sleepers, 1);
	if (n <= 0 || !atomic_load(&e->followed))
		return n;
	bws_lock();
	e->round++;
	*again = bws_result_kernel(&r, events, n);
	bws_unlock();
	return r.n;
}

int bws_epoll_wait(struct bws_epoll *e, int epfd, struct epoll_event *events, int max,
		   uint64_t deadline, const sigset_t *mask)
{
	const struct bws_reason why = {.asleep = &e->sleepers};
	uint64_t began = bw_clock_now(), now;
	struct pollfd fds[1 + BWS_WAIT_MORE];
	bool quiet;
	int n, rc;

	while (!atomic_load(&e->masked) && !atomic_load(&bws.pairing)) {
		bool again = false;

		n = bws_epoll_kernel(e, epfd, events, max, deadline, mask, &again);
		if (n || (!again && bw_clock_now() >= deadline))
			return n;
	}
	bws_progress();
	bws_lock();
	/* Who is about to sleep asks the kernel by that. */
	quiet = e->masked;
	while (true) {
		now = bw_clock_now();
		n = bws_epoll_look(e, epfd, events, max, quiet && now < deadline);
		quiet = false;
		if (n || now >= deadline)
			break;
		if (e->masked && deadline) {
			bws_unlock();
			rc = bws_spin();
			bws_lock();
			/* Another thread may have taken what came, and rung for nobody. */
			if (rc || e->ready)
				continue;
		}
		fds[0] = (struct pollfd){.fd = epfd, .events = POLLIN};
		rc = bws_sleep(&why, fds, 1, deadline, mask);
		quiet = !fds[0].revents;
		if (quiet)
			e->skips = (struct bws_skips){.asked = bw_clock_now()};
		if (e->masked)
			bws_spin_learn(bw_clock_now() - began);
		if (rc < 0) {
			n = -1;
			break;
		}
	}
	bws_unlock();
	return n;
}
