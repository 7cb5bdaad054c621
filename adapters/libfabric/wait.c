// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ports: how a completion queue or counter drives the endpoints behind it and waits for them. With
 * one endpoint a thread sleeps inside bw_wait(), which spins first; with none or several, and for
 * programs that poll a descriptor themselves, on an epoll descriptor over all of them. A producer
 * (often the endpoint's helper thread) wakes whoever sleeps.
 */
#include "bwf.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define BWF_NS_PER_MS	   1000000ULL
#define BWF_SLEEP_SLICE_NS (100 * BWF_NS_PER_MS) /* longest sleep before looking again */
#define BWF_SECOND_SLEEPER 10 /* ms that a thread sleeps while another one drives the endpoints */

/* The port whose endpoint this thread drives from bwf_port_sleep(): it needs no waking. */
static _Thread_local const struct bwf_port *bwf_port_mine;

uint64_t bwf_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

uint64_t bwf_deadline_ns(int timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX : bwf_now_ns() + (uint64_t)timeout_ms * BWF_NS_PER_MS;
}

void bwf_port_init(struct bwf_port *port, enum fi_wait_obj wait_obj)
{
	port->wait_obj = wait_obj;
	port->event_fd = -1;
	port->epoll_fd = -1;
}

void bwf_port_close(struct bwf_port *port)
{
	if (port->event_fd >= 0)
		close(port->event_fd);
	if (port->epoll_fd >= 0)
		close(port->epoll_fd);
}

static int bwf_port_watch(int epoll_fd, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* Keep others from driving the endpoints; who sleeps on one is woken for it, and lets us go first.
 */
static void bwf_port_enter(struct bwf_port *port)
{
	atomic_fetch_add(&port->entering, 1);
	while (!bwf_lock_try(&port->busy)) {
		bwf_port_wake(port);
		sched_yield();
	}
	atomic_fetch_sub(&port->entering, 1);
}

/* The same for who can as well do without. */
static bool bwf_port_try(struct bwf_port *port)
{
	return !atomic_load_explicit(&port->entering, memory_order_relaxed) &&
	       bwf_lock_try(&port->busy);
}

int bwf_port_add(struct bwf_port *port, struct bwf_ep *ep)
{
	struct bwf_ep **eps;
	int ret = 0;

	bwf_port_enter(port);
	for (unsigned i = 0; i < port->count; i++) {
		if (port->eps[i] == ep)
			goto out;
	}
	eps = realloc(port->eps, (port->count + 1) * sizeof(struct bwf_ep *));
	if (!eps) {
		ret = -FI_ENOMEM;
		goto out;
	}
	port->eps = eps;
	if (port->epoll_fd >= 0)
		ret = bwf_port_watch(port->epoll_fd, bw_ep_fd(ep->bw));
	if (!ret)
		port->eps[port->count++] = ep;
out:
	bwf_lock_drop(&port->busy);
	return ret;
}

void bwf_port_del(struct bwf_port *port, struct bwf_ep *ep)
{
	bwf_port_enter(port);
	for (unsigned i = 0; i < port->count; i++) {
		if (port->eps[i] != ep)
			continue;
		port->eps[i] = port->eps[--port->count];
		if (port->epoll_fd >= 0)
			epoll_ctl(port->epoll_fd, EPOLL_CTL_DEL, bw_ep_fd(ep->bw), NULL);
		break;
	}
	if (!port->count) {
		free(port->eps);
		port->eps = NULL;
	}
	bwf_lock_drop(&port->busy);
}

static void bwf_port_drive(struct bwf_port *port)
{
	for (unsigned i = 0; i < port->count; i++)
		bwf_ep_progress(port->eps[i]);
}

void bwf_port_progress(struct bwf_port *port)
{
	if (!bwf_port_try(port))
		return;
	bwf_port_drive(port);
	bwf_lock_drop(&port->busy);
}

void bwf_port_wake(struct bwf_port *port)
{
	atomic_fetch_add(&port->wakes, 1);
	if (bwf_port_mine == port && atomic_load(&port->sleepers) == 1 &&
	    !atomic_load(&port->armed))
		return;
	atomic_store(&port->armed, false); /* not later: who hears of it may arm it again */
	bwf_lock_take(&port->fd_lock);
	if (port->waiting && bwf_port_mine != port)
		bw_ep_wake(port->waiting);
	if (port->event_fd >= 0)
		eventfd_write(port->event_fd, 1);
	bwf_lock_drop(&port->fd_lock);
}

void bwf_port_pass_on(struct bwf_port *port)
{
	bwf_lock_take(&port->fd_lock);
	if (port->event_fd >= 0)
		eventfd_write(port->event_fd, 1);
	bwf_lock_drop(&port->fd_lock);
}

/* Make the descriptors. Called with `busy`. The endpoints' locks are taken, which who wakes the
 * port may hold: so not with `fd_lock`. */
static int bwf_port_make_fd(struct bwf_port *port)
{
	int event_fd, epoll_fd, ret = 0;

	if (port->epoll_fd >= 0)
		return 0;
	event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (event_fd < 0 || epoll_fd < 0)
		ret = -errno;
	else
		ret = bwf_port_watch(epoll_fd, event_fd);
	for (unsigned i = 0; i < port->count && !ret; i++)
		ret = bwf_port_watch(epoll_fd, bw_ep_fd(port->eps[i]->bw));
	if (ret) {
		if (event_fd >= 0)
			close(event_fd);
		if (epoll_fd >= 0)
			close(epoll_fd);
		return ret;
	}
	bwf_lock_take(&port->fd_lock);
	port->event_fd = event_fd;
	port->epoll_fd = epoll_fd;
	bwf_lock_drop(&port->fd_lock);
	return 0;
}

int bwf_port_fd(struct bwf_port *port)
{
	int ret;

	bwf_port_enter(port);
	ret = bwf_port_make_fd(port);
	bwf_lock_drop(&port->busy);
	return ret ? ret : port->epoll_fd;
}

/* Prepare all endpoints for a sleep on their descriptors. Called with `busy`. */
static int bwf_port_arm_all(struct bwf_port *port, uint64_t *timeout_ns)
{
	int ret = bwf_port_make_fd(port);
	eventfd_t ignored;

	if (ret)
		return ret;
	eventfd_read(port->event_fd, &ignored);
	for (unsigned i = 0; i < port->count; i++) {
		uint64_t left_ns = UINT64_MAX;

		if (bwf_held_due(port->eps[i]) || bw_ep_arm(port->eps[i]->bw, &left_ns)) {
			bwf_port_drive(port);
			return -FI_EAGAIN;
		}
		if (left_ns < *timeout_ns)
			*timeout_ns = left_ns;
	}
	return 0;
}

int bwf_port_arm(struct bwf_port *port)
{
	uint64_t timeout_ns = UINT64_MAX;
	int ret;

	if (!bwf_port_try(port))
		return -FI_EAGAIN;
	ret = bwf_port_arm_all(port, &timeout_ns);
	bwf_lock_drop(&port->busy);
	return ret;
}

/* Sleep inside the only endpoint. Called with `busy`. Handlers cannot run between the last look at
 * `wakes` and the sleep, since bw_wait() gives the endpoint's lock away only then; for what other
 * threads add in between (a signal, a counter set by hand) the sleep has a limit. */
static int bwf_port_wait_one(struct bwf_port *port, uint32_t wakes, uint64_t timeout_ns)
{
	struct bwf_ep *ep = port->eps[0];
	int n = 0;

	bwf_lock_take(&port->fd_lock);
	port->waiting = ep->bw;
	bwf_lock_drop(&port->fd_lock);
	bwf_port_mine = port;
	bw_ep_lock(ep->bw);
	if (atomic_load(&port->wakes) == wakes)
		n = bw_wait(ep->bw,
			    timeout_ns < BWF_SLEEP_SLICE_NS ? timeout_ns : BWF_SLEEP_SLICE_NS);
	if (ep->todo)
		bwf_todo_retry(ep);
	bw_ep_unlock(ep->bw);
	bwf_port_mine = NULL;
	bwf_lock_take(&port->fd_lock);
	port->waiting = NULL;
	bwf_lock_drop(&port->fd_lock);
	return n == -EINTR ? -FI_EINTR : 0;
}

static int bwf_port_poll(int fd, uint64_t timeout_ns)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t ms = timeout_ns / BWF_NS_PER_MS + (timeout_ns % BWF_NS_PER_MS != 0);

	return poll(&p, 1, ms > INT32_MAX ? -1 : (int)ms) < 0 ? -errno : 0;
}

int bwf_port_sleep(struct bwf_port *port, uint32_t wakes, uint64_t deadline_ns)
{
	uint64_t now_ns = bwf_now_ns();
	uint64_t timeout_ns = UINT64_MAX;
	int ret;

	if (deadline_ns != UINT64_MAX)
		timeout_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
	if (!bwf_port_try(port)) {
		if (timeout_ns > BWF_SECOND_SLEEPER * BWF_NS_PER_MS)
			timeout_ns = BWF_SECOND_SLEEPER * BWF_NS_PER_MS;
		return bwf_port_poll(-1, timeout_ns);
	}
	if (port->count == 1) {
		ret = bwf_port_wait_one(port, wakes, timeout_ns);
		bwf_lock_drop(&port->busy);
		return ret;
	}
	ret = bwf_port_arm_all(port, &timeout_ns);
	bwf_lock_drop(&port->busy);
	if (atomic_load(&port->wakes) != wakes)
		bwf_port_pass_on(port);
	else if (!ret)
		ret = bwf_port_poll(port->epoll_fd, timeout_ns);
	if (ret == -FI_EAGAIN)
		return 0;
	bwf_port_progress(port);
	return ret;
}

int bwf_port_getwait(struct bwf_port *port, int command, void *arg)
{
	int fd;

	switch (command) {
	case FI_GETWAIT:
		if (port->wait_obj != FI_WAIT_FD)
			return -FI_ENODATA;
		fd = bwf_port_fd(port);
		if (fd < 0)
			return fd;
		atomic_store(&port->armed, true);
		*(int *)arg = fd;
		return 0;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = port->wait_obj;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}
