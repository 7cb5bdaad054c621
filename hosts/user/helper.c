/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The helper thread: serves peers (acknowledgements, pulls, deadlines) while the program computes.
 * As long as the program makes rounds itself, or sleeps in bw_wait() where it wakes itself, the
 * helper only looks up now and then, and stays off the sockets: a sleeper there would make every
 * frame cost a wake-up.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ep.h"

#define BW_HELPER_PAUSE_MIN (1 * BW_MS) /* between two looks at a program that makes rounds */
#define BW_HELPER_PAUSE_MAX (2 * BW_MS)
#define BW_HELPER_BRISK	    (200 * BW_US) /* between two looks while messages may wait */
#define BW_HELPER_LOOKS	    50		  /* such looks after the last message that waited */
#define BW_HELPER_STACK	    (1 << 20)	  /* bytes; the program's handlers run on it */

static void bw_helper_sleep(struct bw_helper *h, struct pollfd *fds, int n, uint64_t timeout_ns)
{
	struct timespec span;
	uint64_t count;

	fds[n] = (struct pollfd){.fd = h->fd, .events = POLLIN};
	if (ppoll(fds, (nfds_t)n + 1, bw_clock_span(timeout_ns, &span), NULL) > 0 &&
	    (fds[n].revents & POLLIN) && read(h->fd, &count, sizeof(count)) < 0)
		return;
}

/* Does the program look after the endpoint itself? */
static bool bw_helper_attended(struct bw_ep *ep)
{
	struct bw_helper *h = &ep->helper;
	bool rounds = ep->rounds != h->rounds;

	h->rounds = ep->rounds;
	/* Who sleeps on bw_ep_fd() may be late: frames that waited for a whole pause are served. */
	return rounds || atomic_load(&ep->sleepers) ||
	       (ep->armed && !(ep->has_packet && bw_packet_ready(&ep->packet)));
}

/* Serve until there is nothing more to do, then sleep on everything. Lock held before and after. */
static void bw_helper_serve(struct bw_ep *ep)
{
	struct bw_helper *h = &ep->helper;
	struct pollfd fds[BW_WAIT_FDS + 1];
	uint64_t handled = ep->handled, limit;
	int n;

	ep->now = bw_clock_now();
	n = bw_ep_round(ep);
	if (ep->handled != handled && (ep->armed || atomic_load(&ep->sleepers)))
		bw_ep_wake(ep);
	if (n || bw_wait_arm(ep))
		return;
	ep->now = bw_clock_now();
	limit = bw_wait_limit(ep, ep->now);
	h->until = limit == BW_NEVER ? BW_NEVER : ep->now + limit;
	h->serving = true;
	n = bw_wait_fds(ep, fds);
	/* The first one is for sleepers of the program. */
	bw_lock_release(&ep->lock);
	bw_helper_sleep(h, fds + 1, n - 1, limit);
	bw_lock_take(&ep->lock);
	h->serving = false;
	bw_wait_seen(ep, fds, n);
	/* A sleeper of the program, come meanwhile, still counts on the local link's doorbell. */
	if (ep->local && !ep->armed && !atomic_load(&ep->sleepers))
		bw_local_disarm(ep->local);
}

static void *bw_helper_main(void *arg)
{
	struct bw_ep *ep = arg;
	struct bw_helper *h = &ep->helper;
	struct pollfd fds[1];
	uint64_t pause = BW_HELPER_PAUSE_MIN;
	bool brisk;

	while (true) {
		bool held = bw_lock_try(&ep->lock);

		if (held && (h->stop || ep->dead))
			break;
		if (held && !bw_helper_attended(ep)) {
			pause = BW_HELPER_PAUSE_MIN;
			bw_helper_serve(ep);
			bw_lock_release(&ep->lock);
			continue;
		}
		brisk = h->brisk != 0;
		if (held && brisk)
			h->brisk--;
		if (held)
			bw_lock_release(&ep->lock);
		bw_helper_sleep(h, fds, 0, brisk ? BW_HELPER_BRISK : pause);
		pause = bw_min_u64(pause + pause / 4, BW_HELPER_PAUSE_MAX);
	}
	bw_lock_release(&ep->lock);
	return NULL;
}

int bw_helper_start(struct bw_ep *ep)
{
	struct bw_helper *h = &ep->helper;
	pthread_attr_t attr;
	sigset_t all, old;
	int error;

	h->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->fd < 0)
		return -errno;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, BW_HELPER_STACK);
	/* Signals belong to the program's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&h->thread, &attr, bw_helper_main, ep);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (error) {
		close(h->fd);
		h->fd = -1;
		return -error;
	}
	pthread_setname_np(h->thread, "beowire");
	h->running = true;
	return 0;
}

static void bw_helper_kick(struct bw_helper *h)
{
	const uint64_t one = 1;

	/* Fails only when the counter is full, which wakes as well. */
	if (write(h->fd, &one, sizeof(one)) < 0)
		return;
}

bool bw_helper_brisk(struct bw_ep *ep)
{
	struct bw_helper *h = &ep->helper;

	if (!h->running || h->serving)
		return false;
	if (!h->brisk)
		bw_helper_kick(h);
	h->brisk = BW_HELPER_LOOKS;
	return true;
}

void bw_helper_deadline(struct bw_ep *ep)
{
	struct bw_helper *h = &ep->helper;

	if (!h->serving || ep->deadline >= h->until)
		return;
	h->until = ep->deadline;
	bw_helper_kick(h);
}

void bw_helper_stop(struct bw_ep *ep)
{
	struct bw_helper *h = &ep->helper;

	if (!h->running)
		return;
	bw_lock_take(&ep->lock);
	h->stop = true;
	bw_lock_release(&ep->lock);
	bw_helper_kick(h);
	pthread_join(h->thread, NULL);
	close(h->fd);
	h->fd = -1;
	h->running = false;
}
