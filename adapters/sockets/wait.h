/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waiting for connections, by whichever way their bytes go. One thread at a time, the driver,
 * sleeps on libbeowire's descriptor as well and makes progress when it wakes; others are woken
 * by handlers. A driver that wakes while others sleep lets one of them drive, unless it sleeps
 * again soon, as a rule: to wake one costs both threads more than what they wait for.
 */
#ifndef BWS_WAIT_H
#define BWS_WAIT_H

#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <time.h>

#include "clock.h"
#include "conn.h"
#include "core.h"

#define BWS_WAIT_MORE 2 /* descriptors that bws_sleep() adds */

/* What a thread sleeps for. */
struct bws_reason {
	struct bws_conn *const *conn; /* any of these; NULLs in it stand for other descriptors */
	uint32_t n;
	_Atomic int *asleep; /* or an epoll instance, which has a bell: its threads that sleep */
};

/* A thread that sleeps, or has slept. */
struct bws_sleeper {
	struct bws_sleeper *next;	  /* that sleeps */
	struct bws_sleeper *next_with_fd; /* that has a descriptor */
	const struct bws_reason *why;
	int fd; /* eventfd, from its first sleep to the end of the thread; -1: none */
	bool rung;
};

/* What a connection is ready for by Beowire alone: POLLIN and so on. Lock held. */
short bws_ready(struct bws_conn *c);
/* What the kernel is to be asked of it, if the program asks `events`. Lock held. */
short bws_asked(struct bws_conn *c, short events);
/* What the program is to be told of the kernel's answer. Lock held. */
short bws_told(struct bws_conn *c, short events, short revents);

/* Something has changed that somebody may wait for: EPOLLIN, EPOLLOUT. Lock held. */
void bws_wake(struct bws_conn *c, uint32_t what);
/* The way of a direction has changed: what epoll instances ask the kernel. Lock held. */
void bws_watch_changed(struct bws_conn *c);

/* More has come behind what TCP has and the program has not read: news for who waits for edges.
 * Lock held. */
void bws_watch_more(struct bws_conn *c);

/* Sleep until one of the n descriptors (with room for BWS_WAIT_MORE behind them) is ready, or some
 * handler rings; deadline as bw_clock_now(), UINT64_MAX: none. The lock is held once before and
 * after, not while asleep, and progress is made. As ppoll(), but for ringing: 0. */
int bws_sleep(const struct bws_reason *why, struct pollfd *fds, int n, uint64_t deadline,
	      const sigset_t *mask);

/* Calls that find something by Beowire again and again ask the kernel for the rest only now and
 * then. */
struct bws_skips {
	uint32_t n; /* in a row that did not */
	uint64_t asked;
};

bool bws_skip(struct bws_skips *s, uint64_t now);

/* An endpoint has been opened: of those that sleep since before, one is to drive. Lock not held. */
void bws_sleepers_rouse(void);

/* Spin for a little, if that pays: true if something came. Lock not held. */
bool bws_spin(void);
void bws_spin_learn(uint64_t took_ns);

/* Wait for `events` of one connection. 0, or a negative errno: -EAGAIN, -EINTR. Lock held. */
int bws_await(struct bws_conn *c, int fd, short events, uint64_t deadline);

/* A moment's rest of who polls. */
void bws_pause(void);

/* The time for which a loop looks again and again. A process that stood still has not looked, so
 * that no more than a moment is taken for what lies between two looks. */
#define BWS_PATIENCE_LOOK BWS_S

struct bws_patience {
	uint64_t left; /* ns */
	uint64_t at;   /* of the last look, by bw_clock_now() */
};

static inline struct bws_patience bws_patience(uint64_t ns)
{
	return (struct bws_patience){.left = ns, .at = bw_clock_now()};
}

/* At each look: is there time left? */
static inline bool bws_patient(struct bws_patience *p)
{
	uint64_t now = bw_clock_now(), taken = now - p->at;

	if (taken > BWS_PATIENCE_LOOK)
		taken = BWS_PATIENCE_LOOK;
	p->at = now;
	p->left -= taken < p->left ? taken : p->left;
	return p->left;
}

/* The control thread is to look at this connection: it drains, or something is to be told. Lock
 * held. */
void bws_attend(void);

/* The same for one that waits for room, in libbeowire or its socket. Lock held. */
void bws_attend_room(void);

#define BWS_CROWDED_HERE  (50 * BWS_MS) /* ns for which it holds that cores are short, as a */
#define BWS_CROWDED_THERE (20 * BWS_S) /* thread here or a peer says; it says it again after 16 s */

/* Cores are taken to be short until then, here or at a peer, by bw_clock_now(): whether TCP moves
 * more is to be found out. Lock held or not. */
void bws_crowded(uint64_t until);

#endif
