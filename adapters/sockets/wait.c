/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sleeping and waking. See wait.h. */
#include "wait.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "away.h"
#include "clock.h"
#include "core.h"
#include "crowd.h"
#include "fds.h"
#include "flow.h"
#include "life.h"
#include "owned.h"
#include "real.h"
#include "watch.h"

#define BWS_SPIN_MIN 2000   /* ns */
#define BWS_SPIN_MAX 50000  /* about what sleeping and waking costs both sides */
#define BWS_SPINS    200000 /* ns, all of one wait */
#define BWS_PAUSE_NS 50000
#define BWS_WRITABLE (BWS_WINDOW / 3) /* bytes of room with which a connection is writable */
#define BWS_FEW	     64		      /* connections among which one is looked for */
#define BWS_SKIPS    8		      /* in a row, of asking the kernel */
#define BWS_SKIP_NS  BWS_MS	      /* between two such questions */

static struct bws_sleeper *bws_sleepers;
static struct bws_sleeper *bws_sleepers_with_fd; /* of all threads, asleep or not */
static pthread_key_t bws_sleeper_key;		 /* of each thread's own, for its end */
static bool bws_sleeper_keyed;
static bool bws_driven; /* one of them sleeps on libbeowire's descriptor */
static __thread struct bws_away bws_away;
static _Atomic uint64_t bws_spin_ns = 20000;
static __thread struct bws_sleeper bws_self = {.fd = -1};
static __thread struct bw_crowd bws_crowd; /* each thread has a core of its own */
static struct bw_crowd bws_crowd_first;	   /* as each thread's begins: the quota is the same */
static pthread_once_t bws_crowd_once = PTHREAD_ONCE_INIT;

short bws_ready(struct bws_conn *c)
{
	short ready = 0;

	if (c->error)
		return POLLIN | POLLOUT | POLLERR | POLLHUP;
	if (c->rx.way == BWS_BW && (c->rx.queue.first || c->rx.ended || c->rx.shut))
		ready |= POLLIN;
	if (c->tx.way == BWS_BW && (bws_tx_room(c) >= BWS_WRITABLE || c->tx.shut))
		ready |= POLLOUT;
	if (c->tx.way == BWS_DRAIN && c->tx.shut)
		ready |= POLLOUT;
	return ready;
}

short bws_asked(struct bws_conn *c, short events)
{
	short asked = events & ~(POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM);

	if (c->rx.way != BWS_BW)
		asked |= events & (POLLIN | POLLRDNORM);
	else if (!c->rx.ended && !c->rx.shut)
		asked |= POLLRDHUP;
	if (c->tx.way == BWS_TCP)
		asked |= events & (POLLOUT | POLLWRNORM);
	if (c->tx.way == BWS_DRAIN)
		asked |= POLLOUT;
	return asked;
}

short bws_told(struct bws_conn *c, short events, short revents)
{
	if (c->rx.way == BWS_BW && !c->rx.ended && !c->rx.shut &&
	    revents & (POLLRDHUP | POLLHUP | POLLERR)) {
		c->rx.ended = true;
		bws_watch_changed(c);
	}
	if (c->tx.way == BWS_DRAIN && revents & (POLLOUT | POLLHUP | POLLERR))
		bws_tx_drain(c);
	else if (c->tx.way != BWS_TCP)
		revents &= ~(POLLOUT | POLLWRNORM);
	if (c->rx.way == BWS_BW)
		revents &= ~(POLLIN | POLLRDNORM);
	if (c->tx.way == BWS_DRAIN)
		revents &= ~(POLLOUT | POLLWRNORM);
	revents |= bws_ready(c);
	if (revents & POLLIN)
		revents |= POLLRDNORM;
	if (revents & POLLOUT)
		revents |= POLLWRNORM;
	return revents & (events | POLLERR | POLLHUP | POLLNVAL);
}

static void bws_ring(struct bws_sleeper *s)
{
	const uint64_t one = 1;

	if (s->rung)
		return;
	s->rung = true;
	bws_r()->write(s->fd, &one, sizeof(one));
}

/* Who waits for an epoll instance hears its bell. */
static bool bws_sleeps_for(const struct bws_sleeper *s, const struct bws_conn *c)
{
	if (s->why->n > BWS_FEW)
		return true;
	for (uint32_t i = 0; i < s->why->n; i++) {
		if (s->why->conn[i] == c)
			return true;
	}
	return false;
}

void bws_wake(struct bws_conn *c, uint32_t what)
{
	for (struct bws_sleeper *s = bws_sleepers; s; s = s->next) {
		if (bws_sleeps_for(s, c))
			bws_ring(s);
	}
	if (what && c->watches)
		bws_watch_wake(c, what);
}

static void bws_sleeper_close(struct bws_sleeper *s)
{
	struct bws_sleeper **at = &bws_sleepers_with_fd;

	if (s->fd < 0)
		return;
	while (*at != s)
		at = &(*at)->next_with_fd;
	*at = s->next_with_fd;
	bws_own_close(s->fd);
	s->fd = -1;
}

/* At the end of a thread that has slept. */
static void bws_sleeper_end(void *sleeper)
{
	bws_lock();
	bws_sleeper_close(sleeper);
	bws_unlock();
}

static void bws_sleeper_begin(void)
{
	bws_sleeper_keyed = !pthread_key_create(&bws_sleeper_key, bws_sleeper_end);
}

/* Lock held. False: it cannot be woken. */
static bool bws_sleeper_ready(struct bws_sleeper *s)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (s->fd >= 0)
		return true;
	pthread_once(&once, bws_sleeper_begin);
	if (!bws_sleeper_keyed || pthread_setspecific(bws_sleeper_key, s))
		return false;
	s->fd = bws_own_eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->fd < 0)
		return false;
	s->next_with_fd = bws_sleepers_with_fd;
	bws_sleepers_with_fd = s;
	return true;
}

void bws_sleepers_forget(void)
{
	bws_sleepers = NULL;
	bws_driven = false;
	while (bws_sleepers_with_fd)
		bws_sleeper_close(bws_sleepers_with_fd);
}

static void bws_sleeper_leave(struct bws_sleeper *s)
{
	struct bws_sleeper **at = &bws_sleepers;
	uint64_t count;

	while (*at && *at != s)
		at = &(*at)->next;
	if (*at)
		*at = s->next;
	if (s->rung)
		bws_r()->read(s->fd, &count, sizeof(count));
	s->rung = false;
}

/* The driver is awake. Whoever it has woken drives when it sleeps again; is there nobody, and is
 * this one away for long, another one has to. Should it be away for long against all expectation,
 * libbeowire's helper thread makes progress, if there is one. */
static void bws_hand_over(struct bw_ep *ep)
{
	struct bws_sleeper *s = bws_sleepers;

	bws_away_leave(&bws_away, bw_clock_now());
	if (!s)
		return;
	while (s && !s->rung)
		s = s->next;
	if (!s && !(bws_away_is_short(&bws_away) && bw_ep_has_helper(ep)))
		bws_ring(bws_sleepers);
}

void bws_sleepers_rouse(void)
{
	bws_lock();
	if (bws_sleepers && !bws_driven)
		bws_ring(bws_sleepers);
	bws_unlock();
}

/* A sleep that is under way. */
struct bws_sleep {
	const struct bws_reason *why;
	bool listed; /* among those that are rung */
	bool drives;
};

/* It is over. Lock held. */
static void bws_sleep_end(const struct bws_sleep *s)
{
	if (s->why->asleep)
		atomic_fetch_sub(s->why->asleep, 1);
	if (s->listed)
		bws_sleeper_leave(&bws_self);
	if (s->drives)
		bws_driven = false;
}

/* The thread was cancelled (pthread_cancel(3)). */
static void bws_sleep_cancelled(void *sleep)
{
	const struct bws_sleep *s = sleep;

	bws_lock();
	bws_sleep_end(s);
	if (s->drives && bws_sleepers)
		bws_ring(bws_sleepers);
	bws_unlock();
}

/* As ppoll(); the lock is not held meanwhile. */
static int bws_sleep_in_kernel(struct bws_sleep *s, struct pollfd *fds, int n,
			       const struct timespec *span, const sigset_t *mask)
{
	volatile int rc, error;

	pthread_cleanup_push(bws_sleep_cancelled, s);
	bws_unlock();
	rc = bws_r()->ppoll(fds, (nfds_t)n, span, mask);
	error = errno;
	bws_lock();
	pthread_cleanup_pop(false);
	errno = error;
	return rc;
}

int bws_sleep(const struct bws_reason *why, struct pollfd *fds, int n, uint64_t deadline,
	      const sigset_t *mask)
{
	struct bw_ep *ep = atomic_load(&bws.ep);
	struct bws_sleeper *s = &bws_self;
	uint64_t now = bw_clock_now(), span = UINT64_MAX, limit;
	bool drive = false, ready = bws_sleeper_ready(s);
	struct bws_sleep sleep;
	struct timespec t;
	int rc, error;

	bws_away_back(&bws_away, now);
	if (deadline != UINT64_MAX)
		span = deadline > now ? deadline - now : 0;
	/* Without descriptors left it looks again and again. */
	if (!ready && span > BWS_MS)
		span = BWS_MS;
	if (ep && span && !bws_driven) {
		rc = bw_ep_arm(ep, &limit);
		drive = !rc;
		/* Something has come meanwhile: look at it, and come back. */
		if (rc == -EAGAIN)
			span = 0;
		else if (drive && limit < span)
			span = limit;
	}
	if (ready) {
		s->next = bws_sleepers;
		s->why = why;
		s->rung = false;
		bws_sleepers = s;
		fds[n++] = (struct pollfd){.fd = s->fd, .events = POLLIN};
	}
	if (drive) {
		bws_driven = true;
		fds[n++] = (struct pollfd){.fd = bw_ep_fd(ep), .events = POLLIN};
	}
	if (why->asleep)
		atomic_fetch_add(why->asleep, 1);
	sleep = (struct bws_sleep){.why = why, .listed = ready, .drives = drive};
	rc = bws_sleep_in_kernel(&sleep, fds, n, bw_clock_span(span, &t), mask);
	error = errno;
	/* Before any handler runs: it would ring for whoever is awake. */
	bws_sleep_end(&sleep);
	/* With an endpoint that was there before the lock was taken. */
	if (ep) {
		bw_progress(ep);
		bws_push_all();
	}
	if (drive)
		bws_hand_over(ep);
	errno = error;
	return rc;
}

bool bws_skip(struct bws_skips *s, uint64_t now)
{
	if (s->n < BWS_SKIPS && now - s->asked < BWS_SKIP_NS) {
		s->n++;
		return true;
	}
	*s = (struct bws_skips){.asked = now};
	return false;
}

static void bws_crowd_begin(void)
{
	bw_crowd_init(&bws_crowd_first, bw_clock_now());
	bws_crowd_first.spread = true;
}

bool bws_spin(void)
{
	struct bw_ep *ep = atomic_load(&bws.ep);
	uint64_t began = bw_clock_now();

	if (!ep)
		return false;
	if (!bws_crowd.hold_ns) {
		pthread_once(&bws_crowd_once, bws_crowd_begin);
		bws_crowd = bws_crowd_first;
	}
	bw_crowd_sample(&bws_crowd, began);
	if (bws_crowd.crowded) {
		bws_crowded(began + BWS_CROWDED_HERE);
		return bws_progress() > 0;
	}
	do {
		if (bws_progress() > 0)
			return true;
	} while (bw_clock_now() - began < atomic_load(&bws_spin_ns));
	return false;
}

void bws_spin_learn(uint64_t took_ns)
{
	uint64_t spin = atomic_load(&bws_spin_ns);

	if (took_ns < 2 * BWS_SPIN_MAX)
		spin = spin + 1000 < BWS_SPIN_MAX ? spin + 1000 : BWS_SPIN_MAX;
	else
		spin = spin - spin / 4 > BWS_SPIN_MIN ? spin - spin / 4 : BWS_SPIN_MIN;
	atomic_store(&bws_spin_ns, spin);
}

int bws_await(struct bws_conn *c, int fd, short events, uint64_t deadline)
{
	const struct bws_reason why = {.conn = &c, .n = 1};
	struct pollfd fds[1 + BWS_WAIT_MORE];
	uint64_t began = bw_clock_now();
	short told = 0;
	int rc;

	/* What comes may be for others all the time. */
	do {
		bws_unlock();
		rc = bws_spin();
		bws_lock();
		/* Another thread may have closed it meanwhile, which wakes only who sleeps. */
		if (bws_ready(c) & events || !bws_fds_is(fd, c))
			return 0;
		fds[0] = (struct pollfd){.fd = c->fd, .events = bws_asked(c, events)};
	} while (rc && !(fds[0].events & events) && bw_clock_now() - began < BWS_SPINS);
	rc = bws_sleep(&why, fds, 1, deadline, NULL);
	bws_spin_learn(bw_clock_now() - began);
	if (rc < 0 && errno == EINTR)
		return -EINTR;
	if (rc > 0)
		told = bws_told(c, events, fds[0].revents);
	/* What has come counts, however late this thread is. */
	if ((told | bws_ready(c)) & events)
		return 0;
	return bw_clock_now() >= deadline ? -EAGAIN : 0;
}

void bws_pause(void)
{
	struct timespec t = {.tv_nsec = BWS_PAUSE_NS};

	nanosleep(&t, NULL);
}
