/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* poll(2) and select(2). See poll.c. */
#ifndef BWS_POLLS_H
#define BWS_POLLS_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/select.h>
#include <time.h>

/* Is anything of ours among them? */
bool bws_poll_concerns(struct pollfd *fds, nfds_t n);
bool bws_select_concerns(int top, fd_set *r, fd_set *w, fd_set *x);

/* As ppoll() and pselect(); `span` is the time until `deadline`. */
int bws_poll(struct pollfd *fds, nfds_t n, uint64_t deadline, const struct timespec *span,
	     const sigset_t *mask);
int bws_select(int top, fd_set *r, fd_set *w, fd_set *x, uint64_t deadline,
	       const struct timespec *span, const sigset_t *mask);

#endif
