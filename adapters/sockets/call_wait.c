/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls that wait for descriptors, as programs make them. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "core.h"
#include "epolls.h"
#include "fds.h"
#include "polls.h"
#include "real.h"
#include "table.h"
#include "watch.h"

static uint64_t bws_call_until(const struct timespec *span)
{
	return span ? bw_clock_now() + (uint64_t)span->tv_sec * BWS_S + (uint64_t)span->tv_nsec
		    : UINT64_MAX;
}

static const struct timespec *bws_call_span(int timeout_ms, struct timespec *span)
{
	if (timeout_ms < 0)
		return NULL;
	*span = (struct timespec){.tv_sec = timeout_ms / 1000,
				  .tv_nsec = timeout_ms % 1000 * 1000000L};
	return span;
}

BWS_CALL int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *span, const sigset_t *mask)
{
	if (!bws.on || !bws_poll_concerns(fds, n))
		return bws_r()->ppoll(fds, n, span, mask);
	return bws_poll(fds, n, bws_call_until(span), span, mask);
}

BWS_CALL int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct timespec span;

	return ppoll(fds, n, bws_call_span(timeout_ms, &span), NULL);
}

BWS_CALL int __poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms, size_t room)
{
	if (room / sizeof(*fds) < n)
		abort();
	return poll(fds, n, timeout_ms);
}

BWS_CALL int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *span,
			 const sigset_t *mask, size_t room)
{
	if (room / sizeof(*fds) < n)
		abort();
	return ppoll(fds, n, span, mask);
}

BWS_CALL int select(int top, fd_set *restrict r, fd_set *restrict w, fd_set *restrict x,
		    struct timeval *restrict timeout)
{
	struct timespec span;
	uint64_t until, now;
	int rc;

	if (!bws.on || !bws_select_concerns(top, r, w, x))
		return bws_r()->select(top, r, w, x, timeout);
	if (timeout)
		span = (struct timespec){.tv_sec = timeout->tv_sec,
					 .tv_nsec = timeout->tv_usec * 1000};
	until = bws_call_until(timeout ? &span : NULL);
	rc = bws_select(top, r, w, x, until, timeout ? &span : NULL, NULL);
	/* Linux tells what is left. */
	now = bw_clock_now();
	if (timeout) {
		uint64_t left = until > now ? until - now : 0;

		timeout->tv_sec = (time_t)(left / BWS_S);
		timeout->tv_usec = (suseconds_t)(left % BWS_S / 1000);
	}
	return rc;
}

BWS_CALL int pselect(int top, fd_set *restrict r, fd_set *restrict w, fd_set *restrict x,
		     const struct timespec *restrict span, const sigset_t *restrict mask)
{
	if (!bws.on || !bws_select_concerns(top, r, w, x))
		return bws_r()->pselect(top, r, w, x, span, mask);
	return bws_select(top, r, w, x, bws_call_until(span), span, mask);
}

BWS_CALL int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct bws_epoll *inner = bws_table_epoll(fd);
	struct bws_conn *c = bws_table_conn(fd);
	int rc;

	if (inner) {
		bws_lock();
		bws_epoll_nested(inner);
		bws_unlock();
	}
	/* Programs watch a socket before they connect it, too. */
	if (!c && !inner && op == EPOLL_CTL_ADD) {
		bws_expect(fd);
		c = bws_table_conn(fd);
	}
	if (!c)
		return bws_r()->epoll_ctl(epfd, op, fd, event);
	rc = bws_epoll_ctl(c, epfd, op, fd, event);
	bws_conn_put(c);
	return rc;
}

static int bws_call_epoll(struct bws_epoll *e, int epfd, struct epoll_event *events, int max,
			  const struct timespec *span, const sigset_t *mask)
{
	if (max <= 0) {
		errno = EINVAL;
		return -1;
	}
	return bws_epoll_wait(e, epfd, events, max, bws_call_until(span), mask);
}

BWS_CALL int epoll_pwait2(int epfd, struct epoll_event *events, int max,
			  const struct timespec *span, const sigset_t *mask)
{
	struct bws_epoll *e = bws_table_epoll(epfd);

	if (!e)
		return bws_r()->epoll_pwait2(epfd, events, max, span, mask);
	return bws_call_epoll(e, epfd, events, max, span, mask);
}

BWS_CALL int epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout_ms,
			 const sigset_t *mask)
{
	struct bws_epoll *e = bws_table_epoll(epfd);
	struct timespec span;

	if (!e)
		return bws_r()->epoll_pwait(epfd, events, max, timeout_ms, mask);
	return bws_call_epoll(e, epfd, events, max, bws_call_span(timeout_ms, &span), mask);
}

BWS_CALL int epoll_wait(int epfd, struct epoll_event *events, int max, int timeout_ms)
{
	return epoll_pwait(epfd, events, max, timeout_ms, NULL);
}
