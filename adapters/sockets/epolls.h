/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An epoll instance of the program, and a connection in it. The lock is held. See epoll.c. */
#ifndef BWS_EPOLLS_H
#define BWS_EPOLLS_H

#include <sys/epoll.h>

#include "conn.h"
#include "wait.h"

struct bws_watch {
	struct bws_epoll *epoll; /* NULL: not in use */
	struct bws_conn *conn;
	struct bws_watch *next;	      /* of the connection */
	struct bws_watch *next_ready; /* of the instance */
	int fd;
	uint32_t events; /* that the program asked for, and its data */
	uint64_t data;
	uint32_t edge; /* EPOLLIN, EPOLLOUT: new since it was told */
	bool ours;     /* the kernel knows it under our data */
	bool disabled; /* EPOLLONESHOT, and told */
	bool queued;
	uint32_t round, slot; /* of the result that it stands in already */
};

struct bws_epoll {
	int fd;			/* one of its descriptors */
	int pid;		/* of the process that made it; in others it is inherited */
	int refs;		/* how many there are */
	int bell;		/* eventfd; its data is this structure's address */
	struct bws_epoll *next; /* of those that are not in use */
	bool rung, nested;
	uint32_t round;			      /* results that were made */
	_Atomic int sleepers;		      /* threads in epoll_wait() */
	_Atomic bool followed;		      /* the kernel has known something under our data */
	uint32_t watches;		      /* connections in it */
	_Atomic uint32_t masked;	      /* of them, those that are not by TCP alone */
	struct bws_watch *ready, *ready_last; /* to be looked at */
	struct bws_skips skips;
	bool turn; /* whose the only place of the last result was: Beowire's, or the kernel's */
};

int bws_epoll_ctl(struct bws_conn *c, int epfd, int op, int fd, struct epoll_event *event);

/* As epoll_pwait2(), until `deadline`. No lock held. */
int bws_epoll_wait(struct bws_epoll *e, int epfd, struct epoll_event *events, int max,
		   uint64_t deadline, const sigset_t *mask);

/* The watch that the kernel names by this data; NULL: it is the program's own. */
struct bws_watch *bws_watch_of(const struct bws_epoll *e, uint64_t data);
uint32_t bws_watch_events(struct bws_watch *w, uint32_t revents);
/* It is to be looked at by the next result, once. */
void bws_watch_queue(struct bws_watch *w);
void bws_epoll_ring(struct bws_epoll *e);

#endif
