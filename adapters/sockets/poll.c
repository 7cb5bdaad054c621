/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* poll(2) and select(2) over connections of both ways and other descriptors. */
#include "polls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "core.h"
#include "data.h"
#include "flow.h"
#include "real.h"
#include "table.h"
#include "wait.h"
#include "watch.h"

#define BWS_POLL_FEW 64 /* descriptors without an allocation */

static __thread struct bws_skips bws_poll_skips;

struct bws_poll {
	struct pollfd *asked; /* of the kernel, with room for BWS_WAIT_MORE */
	struct bws_conn **conn;
	struct pollfd few[BWS_POLL_FEW + BWS_WAIT_MORE];
	struct bws_conn *few_conn[BWS_POLL_FEW];
};

static bool bws_poll_begin(struct bws_poll *p, const struct pollfd *fds, nfds_t n)
{
	p->asked = p->few;
	p->conn = p->few_conn;
	if (n > BWS_POLL_FEW) {
		p->asked = malloc((n + BWS_WAIT_MORE) * sizeof(*p->asked));
		p->conn = malloc(n * sizeof(struct bws_conn *));
	}
	if (!p->asked || !p->conn)
		return false;
	for (nfds_t i = 0; i < n; i++)
		p->conn[i] = bws_table_conn(fds[i].fd);
	return true;
}

static void bws_poll_end(struct bws_poll *p, nfds_t n)
{
	for (nfds_t i = 0; p->conn && i < n; i++) {
		if (p->conn[i])
			bws_conn_put(p->conn[i]);
	}
	if (p->asked != p->few)
		free(p->asked);
	if (p->conn != p->few_conn)
		free(p->conn);
}

/* What the kernel is to be asked. */
static void bws_poll_ask(struct bws_poll *p, struct pollfd *fds, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++) {
		struct bws_conn *c = p->conn[i];

		p->asked[i] = fds[i];
		p->asked[i].revents = 0;
		if (!c)
			continue;
		p->asked[i].events = bws_asked(c, fds[i].events);
	}
}

static int bws_poll_tell(struct bws_poll *p, struct pollfd *fds, nfds_t n)
{
	int told = 0;

	for (nfds_t i = 0; i < n; i++) {
		struct bws_conn *c = p->conn[i];

		fds[i].revents = p->asked[i].revents;
		if (c)
			fds[i].revents = bws_told(c, fds[i].events, fds[i].revents);
		told += fds[i].revents != 0;
	}
	return told;
}

/* Is there one for which the kernel is asked more than whether the peer has ended? */
static bool bws_poll_needs_kernel(const struct bws_poll *p, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++) {
		if (p->asked[i].fd >= 0 && (!p->conn[i] || p->asked[i].events & ~POLLRDHUP))
			return true;
	}
	return false;
}

/* What there is without a sleep; the last look at it, or one of several? */
static int bws_poll_look(struct bws_poll *p, struct pollfd *fds, nfds_t n, uint64_t now, bool last)
{
	int rc;

	bws_poll_ask(p, fds, n);
	if (!bws_poll_needs_kernel(p, n)) {
		rc = bws_poll_tell(p, fds, n);
		/* Who is about to sleep asks the kernel by that. */
		if (rc ? bws_skip(&bws_poll_skips, now) : !last)
			return rc;
	}
	rc = bws_r()->ppoll(p->asked, n, &(struct timespec){0}, NULL);
	return rc < 0 ? rc : bws_poll_tell(p, fds, n);
}

/* Has another thread taken what came, while this one slept not yet? */
static bool bws_poll_come(const struct bws_poll *p, const struct pollfd *fds, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++) {
		if (p->conn[i] && bws_ready(p->conn[i]) & (fds[i].events | POLLERR | POLLHUP))
			return true;
	}
	return false;
}

/* Without an endpoint all is by TCP: the kernel sleeps for us, and no peer may switch meanwhile. */
static bool bws_poll_plain(struct bws_poll *p, struct pollfd *fds, nfds_t n,
			   const struct timespec *span, const sigset_t *mask, int *rc)
{
	bool entered = true;
	nfds_t i;

	for (i = 0; i < n && entered; i++)
		entered = !p->conn[i] || bws_rx_enter(p->conn[i]);
	if (entered)
		*rc = bws_r()->ppoll(fds, n, span, mask);
	else
		i--;
	while (i-- > 0) {
		if (p->conn[i])
			bws_rx_leave(p->conn[i], -1);
	}
	return entered;
}

int bws_poll(struct pollfd *fds, nfds_t n, uint64_t deadline, const struct timespec *span,
	     const sigset_t *mask)
{
	struct bws_reason why = {.n = (uint32_t)n};
	struct bws_poll p;
	uint64_t began;
	int rc = 0;

	if (!bws_poll_begin(&p, fds, n)) {
		bws_poll_end(&p, 0);
		errno = ENOMEM;
		return -1;
	}
	if (!atomic_load(&bws.ep) && bws_poll_plain(&p, fds, n, span, mask, &rc)) {
		bws_poll_end(&p, n);
		return rc;
	}
	began = bw_clock_now();
	why.conn = p.conn;
	bws_progress();
	bws_lock();
	while (true) {
		uint64_t now = bw_clock_now();
		bool come;

		rc = bws_poll_look(&p, fds, n, now, now >= deadline);
		if (rc || now >= deadline)
			break;
		bws_unlock();
		come = bws_spin();
		bws_lock();
		if (come || bws_poll_come(&p, fds, n))
			continue;
		bws_poll_ask(&p, fds, n);
		rc = bws_sleep(&why, p.asked, (int)n, deadline, mask);
		bws_spin_learn(bw_clock_now() - began);
		if (rc < 0)
			break;
		rc = bws_poll_tell(&p, fds, n);
		if (rc)
			break;
	}
	bws_unlock();
	bws_poll_end(&p, n);
	return rc;
}

bool bws_poll_concerns(struct pollfd *fds, nfds_t n)
{
	bool concerns = false;

	for (nfds_t i = 0; i < n; i++) {
		struct bws_conn *c = bws_table_conn(fds[i].fd);
		struct bws_epoll *e = bws_table_epoll(fds[i].fd);

		if (e) {
			bws_lock();
			bws_epoll_nested(e);
			bws_unlock();
		}
		if (c)
			bws_conn_put(c);
		concerns |= c || e;
	}
	return concerns;
}

static short bws_select_events(int fd, fd_set *r, fd_set *w, fd_set *x)
{
	short events = 0;

	if (r && FD_ISSET(fd, r))
		events |= POLLIN;
	if (w && FD_ISSET(fd, w))
		events |= POLLOUT;
	if (x && FD_ISSET(fd, x))
		events |= POLLPRI;
	return events;
}

/* As select(2) groups the events of poll(2). */
static int bws_select_told(struct pollfd *fds, nfds_t n, fd_set *r, fd_set *w, fd_set *x)
{
	int told = 0;

	for (nfds_t i = 0; i < n; i++) {
		int fd = fds[i].fd;
		bool in = r && fds[i].events & POLLIN &&
			  fds[i].revents & (POLLIN | POLLHUP | POLLERR);
		bool out = w && fds[i].events & POLLOUT && fds[i].revents & (POLLOUT | POLLERR);
		bool except = x && fds[i].events & POLLPRI && fds[i].revents & POLLPRI;

		if (r && !in)
			FD_CLR(fd, r);
		if (w && !out)
			FD_CLR(fd, w);
		if (x && !except)
			FD_CLR(fd, x);
		told += in + out + except;
	}
	return told;
}

int bws_select(int top, fd_set *r, fd_set *w, fd_set *x, uint64_t deadline,
	       const struct timespec *span, const sigset_t *mask)
{
	struct pollfd *fds = malloc((size_t)(top > 0 ? top : 1) * sizeof(*fds));
	nfds_t n = 0;
	int rc;

	if (!fds) {
		errno = ENOMEM;
		return -1;
	}
	for (int fd = 0; fd < top; fd++) {
		short events = bws_select_events(fd, r, w, x);

		if (events)
			fds[n++] = (struct pollfd){.fd = fd, .events = events};
	}
	rc = bws_poll(fds, n, deadline, span, mask);
	for (nfds_t i = 0; rc > 0 && i < n; i++) {
		if (fds[i].revents & POLLNVAL) {
			errno = EBADF;
			rc = -1;
		}
	}
	if (rc >= 0)
		rc = bws_select_told(fds, n, r, w, x);
	free(fds);
	return rc;
}

bool bws_select_concerns(int top, fd_set *r, fd_set *w, fd_set *x)
{
	for (int fd = bws_table_next(0); fd >= 0 && fd < top; fd = bws_table_next(fd + 1)) {
		struct pollfd one = {.fd = fd};

		if (bws_select_events(fd, r, w, x) && bws_poll_concerns(&one, 1))
			return true;
	}
	return false;
}
