/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waiting. First spin, since what is waited for is often only a round trip away; then sleep on all
 * descriptors at once. How long to spin is learned from how long the last waits took, and nobody
 * spins where cores are short.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ep.h"

#define BW_WAIT_SPIN_MIN (2 * BW_US)
#define BW_WAIT_SPIN_MAX (50 * BW_US) /* about what sleeping and waking costs both sides */
#define BW_WAIT_ROW	 256	      /* empty bw_progress() calls in a row that are timed */
#define BW_WAIT_DENSE_NS (2 * BW_US)  /* per call: a program that does nothing but poll */
#define BW_WAIT_END_US	 50	      /* between two looks whether all waits have ended */
#define BW_WAIT_YIELD_NS (1 * BW_MS)  /* longest sleep inside bw_progress() */

uint64_t bw_wait_limit(const struct bw_ep *ep, uint64_t now)
{
	uint64_t at = bw_min_u64(ep->deadline, bw_publish_due(ep));

	if (BW_UNLIKELY(ep->remotes.gone))
		return 0;
	if (BW_UNLIKELY(ep->shrinking))
		at = bw_min_u64(at, ep->chores_at);
	if (ep->has_packet && ep->watch.claim < 0)
		at = bw_min_u64(at, bw_min_u64(ep->watch.claim_at, ep->links_at));
	else if (ep->has_packet)
		at = bw_min_u64(at, ep->watch.drain_at);
	for (int i = 0; i < ep->packets; i++) {
		if (ep->packet[i].fanout.connection < 0 || ep->packet[i].asks)
			at = bw_min_u64(at, bw_max_u64(ep->packet[i].fanout.try_at, ep->chores_at));
	}
	if (ep->kernel)
		at = bw_min_u64(at, bw_kernel_due(ep->kernel));
	if (ep->local)
		at = bw_min_u64(at, bw_local_due(ep->local, now));
	if (ep->watch.n)
		at = bw_min_u64(at, ep->watch.forget_at);
	if (at == BW_NEVER)
		return BW_NEVER;
	return at > now ? at - now : 0;
}

int bw_wait_fds(const struct bw_ep *ep, struct pollfd *fds)
{
	int n = 0;

	fds[n++] = (struct pollfd){.fd = ep->wake_fd, .events = POLLIN};
	for (int i = 0; i < ep->packets; i++)
		fds[n++] = (struct pollfd){.fd = ep->packet[i].fd, .events = POLLIN};
	for (int i = 0; i < ep->udp.sockets; i++)
		fds[n++] = (struct pollfd){.fd = ep->udp.socket[i].fd, .events = POLLIN};
	if (ep->kernel)
		fds[n++] = (struct pollfd){.fd = bw_kernel_fd(ep->kernel),
					   .events = bw_kernel_awaits(ep->kernel)};
	if (ep->local)
		fds[n++] = (struct pollfd){.fd = bw_local_fd(ep->local), .events = POLLIN};
	for (int i = 0; i < ep->packets; i++) {
		if (ep->packet[i].fanout.connection >= 0)
			fds[n++] = (struct pollfd){.fd = ep->packet[i].fanout.connection,
						   .events = POLLIN};
	}
	return n;
}

void bw_wait_seen(struct bw_ep *ep, const struct pollfd *fds, int n)
{
	for (int i = 0; i < n; i++) {
		if (!fds[i].revents)
			continue;
		if (ep->has_udp && bw_udp_seen(&ep->udp, fds[i].fd, fds[i].revents))
			ep->udp_pause = 0;
		if (ep->local && fds[i].fd == bw_local_fd(ep->local))
			bw_local_expect(ep->local);
		for (int k = 0; k < ep->packets; k++) {
			if (fds[i].fd == ep->packet[k].fanout.connection)
				ep->chores_at = 0;
		}
	}
}

int bw_wait_arm(struct bw_ep *ep)
{
	if (ep->given || ep->dirty)
		return -EAGAIN;
	for (int i = 0; i < ep->packets; i++) {
		if (bw_packet_ready(&ep->packet[i]))
			return -EAGAIN;
	}
	return ep->local ? bw_local_arm(ep->local) : 0;
}

/* Take the wake-ups out of one of the two descriptors that have them: how many. */
static uint64_t bw_wait_drain(int fd)
{
	uint64_t count;

	return read(fd, &count, sizeof(count)) > 0 ? count : 0;
}

/* Has who sleeps on bw_ep_fd() been woken since? What is counted and not yet written is written
 * soon, and seen then. */
static bool bw_wait_rung(struct bw_ep *ep)
{
	uint64_t count;

	if (ep->epoll_fd < 0 || ep->rings_seen == atomic_load(&ep->rings))
		return false;
	count = bw_wait_drain(ep->poll_fd);
	ep->rings_seen += count;
	return count != 0;
}

/* Sleep, lock held once before and after. 0, or -EINTR. */
static int bw_wait_sleep(struct bw_ep *ep, uint64_t timeout_ns)
{
	struct pollfd fds[BW_WAIT_FDS];
	struct timespec span;
	uint32_t depth = ep->lock.depth;
	int n, rc;

	if (bw_wait_arm(ep))
		return 0;
	n = bw_wait_fds(ep, fds);
	timeout_ns = bw_min_u64(timeout_ns, bw_wait_limit(ep, ep->now));
	atomic_fetch_add(&ep->sleepers, 1);
	ep->lock.depth = 1;
	bw_lock_release(&ep->lock);
	BW_PROBE2(wait_begin, ep, timeout_ns);
	rc = ppoll(fds, (nfds_t)n, bw_clock_span(timeout_ns, &span), NULL);
	rc = rc < 0 && errno == EINTR ? -EINTR : 0;
	BW_PROBE2(wait_end, ep, rc);
	bw_lock_take(&ep->lock);
	ep->lock.depth = depth;
	/* The last one to leave takes the wake-up along: the others must still find it. */
	if (atomic_fetch_sub(&ep->sleepers, 1) == 1 && (fds[0].revents & POLLIN))
		bw_wait_drain(ep->wake_fd);
	if (ep->local)
		bw_local_disarm(ep->local);
	bw_ep_slept(ep);
	bw_wait_seen(ep, fds, n);
	/* After a signal no round may follow. */
	if (rc && ep->helper.asleep)
		bw_helper_rouse(ep);
	return rc;
}

/* A wait of `took` has ended, asleep or not: spin longer if that would have saved a sleep. */
static void bw_wait_learn(struct bw_ep *ep, uint64_t took, bool slept)
{
	if (took < 2 * BW_WAIT_SPIN_MAX)
		ep->spin_ns =
			bw_min_u64(slept ? 2 * ep->spin_ns : ep->spin_ns + BW_US, BW_WAIT_SPIN_MAX);
	else
		ep->spin_ns = bw_max_u64(ep->spin_ns - ep->spin_ns / 4, BW_WAIT_SPIN_MIN);
}

static uint64_t bw_wait_spin(struct bw_ep *ep)
{
	if (ep->env.wait == BW_WAIT_SPIN)
		return BW_NEVER;
	if (ep->env.wait == BW_WAIT_BLOCK)
		return 0;
	bw_crowd_sample(&ep->crowd, ep->now);
	return ep->crowd.crowded ? 0 : ep->spin_ns;
}

/* Let other threads have the lock for a moment. */
static void bw_wait_breathe(struct bw_ep *ep)
{
	uint32_t depth = ep->lock.depth;

	ep->lock.depth = 1;
	bw_lock_release(&ep->lock);
	bw_lock_take(&ep->lock);
	ep->lock.depth = depth;
}

static int bw_wait_locked(struct bw_ep *ep, uint64_t timeout_ns)
{
	uint64_t handled = ep->handled, began = bw_clock_now();
	uint32_t wakes = atomic_load(&ep->wakes);
	bool slept = false;
	uint64_t spin;
	int n, rc;

	ep->now = began;
	spin = bw_wait_spin(ep);
	while (!ep->dead) {
		ep->rounds++;
		n = bw_ep_round(ep);
		if (n || ep->handled != handled) {
			bw_wait_learn(ep, ep->now - began, slept);
			return n ? n : 1;
		}
		if (atomic_load(&ep->wakes) != wakes)
			return 0;
		ep->now = bw_clock_now();
		if (ep->now - began >= timeout_ns)
			return 0;
		if (ep->now - began < spin) {
			bw_wait_breathe(ep);
			continue;
		}
		slept = true;
		rc = bw_wait_sleep(ep, timeout_ns - (ep->now - began));
		if (rc)
			return rc;
		ep->now = bw_clock_now();
	}
	return -EINVAL;
}

/* Peers on this node knew of a sleep that goes on, until this thread made a round. A helper would
 * tell them again. */
static void bw_wait_tell_again(struct bw_ep *ep)
{
	if (!ep->local || ep->helper.running || bw_local_armed(ep->local))
		return;
	if (bw_local_arm(ep->local))
		bw_wait_rouse(ep);
}

void bw_wait_leave(struct bw_ep *ep, bool found, bool armed)
{
	bool sleepers = atomic_load_explicit(&ep->sleepers, memory_order_relaxed);

	/* Who has armed it himself is here, and not asleep. */
	armed &= ep->armed_by != (uintptr_t)pthread_self();
	if (ep->dead || ep->dispatching || !(sleepers || armed))
		return;
	if (found && sleepers) {
		bw_wait_rouse(ep);
		return;
	}
	ep->armed |= armed && !ep->helper.running;
	bw_wait_tell_again(ep);
}

int bw_wait(struct bw_ep *ep, uint64_t timeout_ns)
{
	int n;

	bw_lock_take(&ep->lock);
	ep->waits++;
	n = ep->dispatching ? -EINVAL : bw_wait_locked(ep, timeout_ns);
	ep->waits--;
	if (BW_UNLIKELY(ep->armed || atomic_load_explicit(&ep->sleepers, memory_order_relaxed)))
		bw_wait_leave(ep, false, ep->armed);
	bw_lock_release(&ep->lock);
	return n;
}

void bw_wait_end_all(struct bw_ep *ep)
{
	/* Of those who waited when a child was made by fork() none is in the child. */
	while (ep->waits && !ep->inherited) {
		bw_ep_wake(ep);
		bw_lock_release(&ep->lock);
		usleep(BW_WAIT_END_US);
		bw_lock_take(&ep->lock);
	}
}

/* Does the program do nothing but poll, and nobody else run? Told by the time that a row of empty
 * calls took. */
static bool bw_wait_dense(struct bw_ep *ep)
{
	uint64_t now = bw_clock_now(), since = ep->idle_since;

	ep->now = now;
	ep->idle_since = now;
	return now - since < BW_WAIT_ROW * BW_WAIT_DENSE_NS;
}

static void bw_wait_step_aside(struct bw_ep *ep)
{
	ep->yields++;
	bw_lock_release(&ep->lock);
	sched_yield();
	bw_lock_take(&ep->lock);
}

bool bw_wait_yield(struct bw_ep *ep)
{
	if (ep->idle < BW_WAIT_ROW || ep->env.wait == BW_WAIT_SPIN)
		return false;
	ep->idle = ep->idle_timed = 0;
	bool dense = bw_wait_dense(ep);

	bw_crowd_sample(&ep->crowd, ep->now);
	if (ep->lock.depth > 1)
		return false;
	if (!dense || (!ep->crowd.crowded && ep->env.wait != BW_WAIT_BLOCK)) {
		/* Somebody may wait for this core, perhaps the peer that is waited for here, and
		 * whoever has the core sees no sign of it. */
		bw_wait_step_aside(ep);
		return false;
	}
	ep->naps++;
	bw_wait_sleep(ep, BW_WAIT_YIELD_NS);
	/* The next row is not timed from before this sleep. */
	ep->idle_since = bw_clock_now();
	return true;
}

/* Fails only when the counter is full, which wakes as well. */
static bool bw_wait_notify(int fd)
{
	const uint64_t one = 1;

	return write(fd, &one, sizeof(one)) > 0;
}

bool bw_ep_has_helper(const struct bw_ep *ep)
{
	return ep->helper.running;
}

void bw_ep_wake(struct bw_ep *ep)
{
	atomic_fetch_add(&ep->wakes, 1);
	bw_wait_rouse(ep);
}

void bw_wait_rouse(struct bw_ep *ep)
{
	int poll_fd = atomic_load(&ep->poll_fd);

	bw_wait_notify(ep->wake_fd);
	if (poll_fd < 0)
		return;
	atomic_fetch_add(&ep->rings, 1);
	bw_wait_notify(poll_fd);
}

static void bw_wait_epoll(struct bw_ep *ep, int what, int fd, short events)
{
	struct epoll_event event = {.events = (uint32_t)events};

	epoll_ctl(ep->epoll_fd, what, fd, &event);
}

void bw_wait_udp(struct bw_ep *ep)
{
	/* Those that are there already stay as they are. */
	for (int i = 1; i < ep->udp.sockets && ep->epoll_fd >= 0; i++)
		bw_wait_epoll(ep, EPOLL_CTL_ADD, ep->udp.socket[i].fd, POLLIN);
	if (atomic_load(&ep->sleepers))
		bw_wait_rouse(ep);
}

void bw_wait_listen(struct bw_ep *ep, int fd)
{
	if (ep->epoll_fd >= 0)
		bw_wait_epoll(ep, EPOLL_CTL_ADD, fd, POLLIN);
}

void bw_wait_unlisten(struct bw_ep *ep, int fd)
{
	if (ep->epoll_fd >= 0)
		bw_wait_epoll(ep, EPOLL_CTL_DEL, fd, 0);
}

/* What is awaited of the kernel link changes. */
static void bw_wait_epoll_kernel(struct bw_ep *ep)
{
	short events = bw_kernel_awaits(ep->kernel);

	if (ep->epoll_fd >= 0 && ep->epoll_kernel != events)
		bw_wait_epoll(ep, EPOLL_CTL_MOD, bw_kernel_fd(ep->kernel), events);
	ep->epoll_kernel = events;
}

/* Of wake-ups from before nobody knows whether they were seen: one is there from the start. */
static void bw_wait_make_fd(struct bw_ep *ep)
{
	int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK), n;
	struct pollfd fds[BW_WAIT_FDS];

	if (fd < 0)
		return;
	ep->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (ep->epoll_fd < 0) {
		close(fd);
		return;
	}
	ep->rings_seen = 0;
	atomic_store(&ep->rings, 1);
	atomic_store(&ep->poll_fd, fd);
	n = bw_wait_fds(ep, fds);
	fds[0].fd = fd; /* the other one is for sleepers in bw_wait() */
	for (int i = 0; i < n; i++)
		bw_wait_epoll(ep, EPOLL_CTL_ADD, fds[i].fd, fds[i].events);
	ep->epoll_kernel = ep->kernel ? bw_kernel_awaits(ep->kernel) : 0;
}

int bw_ep_fd(struct bw_ep *ep)
{
	int fd;

	bw_lock_take(&ep->lock);
	if (ep->epoll_fd < 0 && !ep->dead)
		bw_wait_make_fd(ep);
	fd = ep->epoll_fd;
	bw_lock_release(&ep->lock);
	return fd;
}

int bw_ep_arm(struct bw_ep *ep, uint64_t *timeout_ns)
{
	int error;

	bw_lock_take(&ep->lock);
	ep->now = bw_clock_now();
	*timeout_ns = bw_wait_limit(ep, ep->now);
	if (ep->kernel)
		bw_wait_epoll_kernel(ep);
	error = ep->dead ? -EINVAL : bw_wait_arm(ep);
	if (!error && !*timeout_ns)
		error = -EAGAIN;
	/* Woken since it was armed last? */
	if (!error && bw_wait_rung(ep))
		error = -EAGAIN;
	if (!error) {
		ep->armed = true;
		ep->armed_by = (uintptr_t)pthread_self();
	}
	bw_lock_release(&ep->lock);
	return error;
}
