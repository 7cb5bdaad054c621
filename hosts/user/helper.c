/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The helper thread: serves peers (acknowledgements, pulls, deadlines) while the program computes.
 * As long as the program makes rounds itself the helper only looks up now and then, and stays off
 * the sockets: a sleeper there would make every frame cost a wake-up. While the program sleeps, the
 * helper sleeps as well, until the program's next round or until the program is late for something.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ep.h"
#include "thread.h"

#define BW_HELPER_PAUSE_MIN (1 * BW_MS) /* between two looks at a program that makes rounds */
#define BW_HELPER_PAUSE_MAX (2 * BW_MS)
#define BW_HELPER_BRISK	    (200 * BW_US) /* between two looks while messages may wait */
#define BW_HELPER_LOOKS	    50		  /* such looks after the last message that waited */

/* How the program treats the endpoint. */
enum bw_helper_program {
	BW_HELPER_ROUNDS, /* makes rounds, or will soon */
	BW_HELPER_SLEEPS, /* in bw_wait() or on bw_ep_fd(), where it wakes itself */
	BW_HELPER_COMPUTES,
};

static uint32_t bw_helper_looks(const struct bw_helper *h)
{
	return atomic_load_explicit(&h->brisk, memory_order_relaxed);
}

static void bw_helper_set_looks(struct bw_helper *h, uint32_t looks)
{
	atomic_store_explicit(&h->brisk, looks, memory_order_relaxed);
}

/* True if somebody kicked. */
static bool bw_helper_sleep(struct bw_helper *h, struct pollfd *fds, int n, uint64_t timeout_ns)
{
	struct timespec span;
	uint64_t count;

	fds[n] = (struct pollfd){.fd = h->fd, .events = POLLIN};
	return ppoll(fds, (nfds_t)n + 1, bw_clock_span(timeout_ns, &span), NULL) > 0 &&
	       (fds[n].revents & POLLIN) && read(h->fd, &count, sizeof(count)) > 0;
}

static enum bw_helper_program bw_helper_look(struct bw_ep *ep)
{
	struct bw_helper *h = &ep->helper;
	bool rounds = ep->rounds != h->rounds;

	h->rounds = ep->rounds;
	if (rounds)
		return BW_HELPER_ROUNDS;
	if (!ep->armed && !atomic_load(&ep->sleepers))
		return BW_HELPER_COMPUTES;
	if (!bw_helper_looks(h))
		return BW_HELPER_SLEEPS;
	/* One thread sleeps, but another one sends. */
	return bw_clock_now() < ep->deadline ? BW_HELPER_ROUNDS : BW_HELPER_COMPUTES;
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
		bw_wait_rouse(ep);
	if (n || bw_wait_arm(ep))
		return;
	ep->now = bw_clock_now();
	limit = bw_wait_limit(ep, ep->now);
	h->until = limit == BW_NEVER ? BW_NEVER : ep->now + limit;
	h->serving = h->asleep = true;
	n = bw_wait_fds(ep, fds);
	/* The first one is for sleepers of the program. */
	bw_lock_release(&ep->lock);
	bw_helper_sleep(h, fds + 1, n - 1, limit);
	bw_lock_take(&ep->lock);
	h->serving = h->asleep = false;
	bw_wait_seen(ep, fds, n);
	/* A sleeper of the program, come meanwhile, still counts on the local link's doorbell. */
	if (ep->local && !ep->armed && !atomic_load(&ep->sleepers))
		bw_local_disarm(ep->local);
}

/* Sleep while the program sleeps. What wakes the program wakes us too; a pause later it has made a
 * round, or it is late, since it armed the endpoint and then went to do something else: then it is
 * served. Lock held before and after. */
static void bw_helper_watch(struct bw_ep *ep)
{
	struct bw_helper *h = &ep->helper;
	struct pollfd fds[BW_WAIT_FDS + 1];
	uint64_t now = bw_clock_now(), limit = bw_wait_limit(ep, now);
	bool kicked;
	int n;

	/* A round of another thread may have ended what the sleeper armed: peers would not ring. */
	if (ep->local && !bw_local_armed(ep->local) && bw_local_arm(ep->local)) {
		bw_wait_rouse(ep);
		ep->armed = false;
		bw_helper_serve(ep);
		return;
	}
	h->until = limit == BW_NEVER ? BW_NEVER : now + limit;
	h->asleep = true;
	n = bw_wait_fds(ep, fds);
	bw_lock_release(&ep->lock);
	/* The first one is for sleepers of the program. */
	kicked = bw_helper_sleep(h, fds + 1, n - 1, limit) ||
		 bw_helper_sleep(h, fds, 0, BW_HELPER_PAUSE_MAX);
	bw_lock_take(&ep->lock);
	h->asleep = false;
	if (kicked || h->stop || ep->dead || ep->rounds != h->rounds)
		return;
	/* Late. Should it sleep after all, it has to arm again. */
	bw_wait_rouse(ep);
	ep->armed = false;
	bw_wait_seen(ep, fds, n);
	bw_helper_serve(ep);
}

static void *bw_helper_main(void *arg)
{
	struct bw_ep *ep = arg;
	struct bw_helper *h = &ep->helper;
	struct pollfd fds[1];
	uint64_t pause = BW_HELPER_PAUSE_MIN;
	enum bw_helper_program program;
	uint32_t looks;

	while (true) {
		bool held = bw_lock_try(&ep->lock);

		if (held && (h->stop || ep->dead))
			break;
		program = held ? bw_helper_look(ep) : BW_HELPER_ROUNDS;
		if (program != BW_HELPER_ROUNDS) {
			pause = BW_HELPER_PAUSE_MIN;
			if (program == BW_HELPER_SLEEPS)
				bw_helper_watch(ep);
			else
				bw_helper_serve(ep);
			bw_lock_release(&ep->lock);
			continue;
		}
		looks = bw_helper_looks(h);
		if (held && looks)
			bw_helper_set_looks(h, looks - 1);
		if (held)
			bw_lock_release(&ep->lock);
		bw_helper_sleep(h, fds, 0, looks ? BW_HELPER_BRISK : pause);
		pause = bw_min_u64(pause + pause / 4, BW_HELPER_PAUSE_MAX);
	}
	bw_lock_release(&ep->lock);
	return NULL;
}

int bw_helper_start(struct bw_ep *ep)
{
	struct bw_helper *h = &ep->helper;
	int error;

	h->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->fd < 0)
		return -errno;
	error = bw_thread_create(&h->thread, true, bw_helper_main, ep);
	if (error) {
		close(h->fd);
		h->fd = -1;
		return error;
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
	if (!bw_helper_looks(h))
		bw_helper_kick(h);
	bw_helper_set_looks(h, BW_HELPER_LOOKS);
	return true;
}

void bw_helper_at(struct bw_ep *ep, uint64_t at)
{
	struct bw_helper *h = &ep->helper;

	if (!h->asleep || at >= h->until)
		return;
	h->until = at;
	bw_helper_kick(h);
}

void bw_helper_deadline(struct bw_ep *ep)
{
	bw_helper_at(ep, ep->deadline);
}

void bw_helper_rouse(struct bw_ep *ep)
{
	ep->helper.asleep = false;
	bw_helper_kick(&ep->helper);
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
	/* With the lock: fork() copies the descriptors before the memory, and a child would not
	 * know of one that is closed between. */
	bw_lock_take(&ep->lock);
	close(h->fd);
	h->fd = -1;
	h->running = false;
	bw_lock_release(&ep->lock);
}
