/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * epoll(7). The program's connections stay in its instances. Of one that does not send and
 * receive by TCP alone the kernel is asked only what it can know (bws_asked()), under the
 * address of its watch instead of the program's data; the rest is added from what Beowire
 * brought. An instance with such connections has a bell in it, an eventfd by which handlers wake
 * who sleeps in the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "core.h"
#include "epolls.h"
#include "fds.h"
#include "flow.h"
#include "grown.h"
#include "owned.h"
#include "real.h"
#include "table.h"
#include "wait.h"
#include "watch.h"

#define BWS_WATCHES (1u << 18)

static struct bws_grown bws_watch_memory;
static struct bws_watch *bws_watch_all; /* memory of watches stays memory of watches */
static uint32_t bws_watch_top;
static struct bws_watch *bws_watch_unused;
static struct bws_epoll *bws_epoll_unused; /* memory of instances stays memory of instances */

static struct bws_watch *bws_watch_new(void)
{
	struct bws_watch *w = bws_watch_unused;

	if (w) {
		bws_watch_unused = w->next;
		return w;
	}
	if (!bws_watch_all) {
		if (!bws_grown_reserve(&bws_watch_memory, BWS_WATCHES * sizeof(*w)))
			return NULL;
		bws_watch_all = (struct bws_watch *)bws_watch_memory.base;
	}
	if (bws_watch_top == BWS_WATCHES ||
	    !bws_grown_to(&bws_watch_memory, (bws_watch_top + 1) * sizeof(*w)))
		return NULL;
	return &bws_watch_all[bws_watch_top++];
}

struct bws_watch *bws_watch_of(const struct bws_epoll *e, uint64_t data)
{
	uintptr_t first = (uintptr_t)bws_watch_all, at = (uintptr_t)data;
	struct bws_watch *w = (struct bws_watch *)at;

	if (!first || at < first || at >= first + bws_watch_top * sizeof(*w) ||
	    (at - first) % sizeof(*w))
		return NULL;
	return w;
}

void bws_watch_queue(struct bws_watch *w)
{
	struct bws_epoll *e = w->epoll;

	if (w->queued)
		return;
	w->queued = true;
	w->next_ready = NULL;
	if (e->ready_last)
		e->ready_last->next_ready = w;
	else
		e->ready = w;
	e->ready_last = w;
}

static void bws_watch_unqueue(struct bws_watch *w)
{
	struct bws_epoll *e = w->epoll;
	struct bws_watch **at = &e->ready, *last = NULL;

	if (!w->queued)
		return;
	for (; *at != w; at = &(*at)->next_ready)
		last = *at;
	*at = w->next_ready;
	if (e->ready_last == w)
		e->ready_last = last;
	w->queued = false;
}

static void bws_epoll_rouse(struct bws_epoll *e)
{
	const uint64_t one = 1;

	if (e->rung)
		return;
	e->rung = true;
	bws_r()->write(e->bell, &one, sizeof(one));
}

void bws_epoll_ring(struct bws_epoll *e)
{
	if (atomic_load(&e->sleepers) || e->nested)
		bws_epoll_rouse(e);
}

/* What the kernel is asked of this one. */
static struct epoll_event bws_watch_asked(const struct bws_watch *w, bool ours)
{
	struct epoll_event event = {.events = w->events, .data.u64 = w->data};
	uint32_t how = w->events & (EPOLLET | EPOLLONESHOT | EPOLLWAKEUP);

	if (ours) {
		event.events = w->disabled ? EPOLLET
					   : (uint32_t)bws_asked(w->conn, (short)w->events) | how;
		/* What is for us alone, or always true, is asked for once. */
		if (!(event.events & (EPOLLIN | EPOLLOUT)))
			event.events |= EPOLLET;
		event.events &= ~(uint32_t)EPOLLONESHOT;
		event.data.u64 = (uintptr_t)w;
	} else if (w->disabled) {
		event.events = EPOLLONESHOT | EPOLLET;
	}
	return event;
}

/* One line of what the kernel tells of an instance (proc(5), fdinfo): is this watch in it, and
 * nothing asked of it? Of one that has told once the kernel keeps only how it tells. */
static bool bws_watch_spent_by(const struct bws_watch *w, const char *line)
{
	const uint32_t how = EPOLLONESHOT | EPOLLET | EPOLLWAKEUP;
	unsigned long long data;
	unsigned int events;
	int fd;

	return sscanf(line, "tfd: %d events: %x data: %llx", &fd, &events, &data) == 3 &&
	       fd == w->fd && data == w->data && !(events & ~how);
}

/* Has the kernel told of this one, which it tells of once? It may have while all was by TCP. */
static bool bws_watch_spent(const struct bws_watch *w)
{
	char text[4096], *line, *end;
	bool spent = false;
	size_t have = 0;
	ssize_t n;
	int fd;

	snprintf(text, sizeof(text), "/proc/self/fdinfo/%d", w->epoll->fd);
	fd = bws_own_open(text, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && !spent &&
	       (n = bws_r()->read(fd, text + have, sizeof(text) - 1 - have)) > 0) {
		have += (size_t)n;
		text[have] = 0;
		for (line = text; (end = strchr(line, '\n')); line = end + 1) {
			*end = 0;
			spent = spent || bws_watch_spent_by(w, line);
		}
		have -= (size_t)(line - text);
		memmove(text, line, have);
	}
	if (fd >= 0)
		bws_own_close(fd);
	return spent;
}

/* Ask the kernel what it is to be asked now. */
static void bws_watch_ask(struct bws_watch *w)
{
	struct bws_conn *c = w->conn;
	struct bws_epoll *e = w->epoll;
	/* The kernel would tell of errors and ends also who is to be told of nothing. */
	bool ours =
		c->rx.way == BWS_BW || c->tx.way != BWS_TCP || c->error || (w->ours && w->disabled);
	struct epoll_event event;

	if (!ours && !w->ours)
		return;
	if (ours && !w->ours && w->events & EPOLLONESHOT && !w->disabled)
		w->disabled = bws_watch_spent(w);
	event = bws_watch_asked(w, ours);
	if (ours && !w->ours) {
		atomic_store(&e->followed, true);
		e->masked++;
	}
	if (!ours)
		e->masked--;
	w->ours = ours;
	bws_r()->epoll_ctl(e->fd, EPOLL_CTL_MOD, w->fd, &event);
}

static bool bws_epoll_bell(struct bws_epoll *e)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uintptr_t)e};

	if (e->bell >= 0)
		return true;
	e->bell = bws_own_eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (e->bell < 0)
		return false;
	if (!bws_r()->epoll_ctl(e->fd, EPOLL_CTL_ADD, e->bell, &event))
		return true;
	bws_own_close(e->bell);
	e->bell = -1;
	return false;
}

void bws_watch_changed(struct bws_conn *c)
{
	for (struct bws_watch *w = c->watches; w; w = w->next) {
		bool was = w->ours;

		bws_watch_ask(w);
		if (!w->ours)
			continue;
		w->edge |= EPOLLIN | EPOLLOUT;
		bws_watch_queue(w);
		/* Who sleeps in the kernel, or is about to, has to look here from now on. */
		if (was)
			bws_epoll_ring(w->epoll);
		else
			bws_epoll_rouse(w->epoll);
	}
}

void bws_watch_wake(struct bws_conn *c, uint32_t what)
{
	for (struct bws_watch *w = c->watches; w; w = w->next) {
		if (!w->ours)
			continue;
		w->edge |= what;
		bws_watch_queue(w);
		bws_epoll_ring(w->epoll);
	}
}

/* The kernel tells of what is there already once more, when it is asked anew. Who is told once has
 * been told. */
void bws_watch_more(struct bws_conn *c)
{
	for (struct bws_watch *w = c->watches; w; w = w->next) {
		struct epoll_event event = bws_watch_asked(w, w->ours);

		if ((w->events & (EPOLLIN | EPOLLET | EPOLLONESHOT)) == (EPOLLIN | EPOLLET))
			bws_r()->epoll_ctl(w->epoll->fd, EPOLL_CTL_MOD, w->fd, &event);
	}
}

static void bws_watch_end(struct bws_watch *w)
{
	struct bws_watch **at = &w->conn->watches;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	bws_watch_unqueue(w);
	if (w->ours)
		w->epoll->masked--;
	w->ours = false;
	w->epoll->watches--;
	w->epoll = NULL;
	w->conn = NULL;
	w->next = bws_watch_unused;
	bws_watch_unused = w;
}

/* With other descriptors left the kernel would keep it, and tell us of it. Where another process
 * has some, that is what the program has to expect; and an inherited instance is its maker's. */
static void bws_watch_leave(struct bws_watch *w)
{
	struct epoll_event event;

	if (!w->ours && !w->conn->slow)
		return;
	if (bws_conn_alone(w->conn)) {
		bws_r()->epoll_ctl(w->epoll->fd, EPOLL_CTL_DEL, w->fd, NULL);
	} else if (w->ours && w->epoll->pid == getpid()) {
		event = bws_watch_asked(w, false);
		bws_r()->epoll_ctl(w->epoll->fd, EPOLL_CTL_MOD, w->fd, &event);
	}
}

void bws_watch_closed(struct bws_conn *c, int fd)
{
	struct bws_watch *w, *next;

	for (w = c->watches; w; w = next) {
		next = w->next;
		if (fd >= 0 && w->fd != fd)
			continue;
		bws_watch_leave(w);
		bws_watch_end(w);
	}
}

static void bws_epoll_end(struct bws_epoll *e)
{
	for (struct bws_conn *c = bws_conn_next(NULL); c && e->watches; c = bws_conn_next(c)) {
		struct bws_watch *w, *next;

		for (w = c->watches; w; w = next) {
			next = w->next;
			if (w->epoll == e)
				bws_watch_end(w);
		}
	}
	if (e->bell >= 0)
		bws_own_close(e->bell);
	e->fd = e->bell = -1;
	/* Else somebody sleeps in the kernel, and looks at it afterwards. */
	if (atomic_load(&e->sleepers))
		return;
	e->next = bws_epoll_unused;
	bws_epoll_unused = e;
}

void bws_epoll_closed(struct bws_epoll *e, int fd)
{
	bws_table_set(fd, BWS_NOTHING, NULL);
	if (!--e->refs) {
		bws_epoll_end(e);
		return;
	}
	for (int i = bws_table_next(0); i >= 0 && e->fd == fd; i = bws_table_next(i + 1)) {
		if (bws_table_epoll(i) == e)
			e->fd = i;
	}
}

void bws_epoll_nested(struct bws_epoll *e)
{
	e->nested = true;
	if (e->ready)
		bws_epoll_ring(e);
}

static struct bws_watch *bws_watch_find(struct bws_conn *c, const struct bws_epoll *e, int fd)
{
	for (struct bws_watch *w = c->watches; w; w = w->next) {
		if (w->epoll == e && w->fd == fd)
			return w;
	}
	return NULL;
}

static struct bws_epoll *bws_epoll_get(int epfd)
{
	struct bws_epoll *e = bws_table_epoll(epfd);

	if (e || (unsigned int)epfd >= BWS_TABLE_FDS)
		return e;
	e = bws_epoll_unused;
	if (e)
		bws_epoll_unused = e->next;
	else
		e = malloc(sizeof(*e));
	if (!e)
		return NULL;
	*e = (struct bws_epoll){.fd = epfd, .pid = getpid(), .refs = 1, .bell = -1};
	bws_table_set(epfd, BWS_EPOLL, e);
	return e;
}

static bool bws_is_epoll(int fd)
{
	char name[32];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return bws_leads_to(AT_FDCWD, name, "anon_inode:[eventpoll]");
}

/* Programs copy an instance before there is anything in it, add by the one and wait by the other.
 * So it is known from its first copy on. */
void bws_epoll_copied(int from, int to)
{
	struct bws_epoll *e = bws_table_epoll(from);

	if (!e && bws_is_epoll(from))
		e = bws_epoll_get(from);
	if (!e)
		return;
	e->refs++;
	bws_table_set(to, BWS_EPOLL, e);
}

/* Follow what the kernel has taken. Lock held. False: it cannot be followed. */
static bool bws_watch_add(struct bws_conn *c, int epfd, int fd, const struct epoll_event *event)
{
	struct bws_epoll *e = bws_epoll_get(epfd);
	struct bws_watch *w;

	if (!e || event->events & EPOLLEXCLUSIVE || !bws_epoll_bell(e))
		return false;
	w = bws_watch_new();
	if (!w)
		return false;
	*w = (struct bws_watch){.epoll = e,
				.conn = c,
				.fd = fd,
				.events = event->events,
				.data = event->data.u64,
				.next = c->watches};
	c->watches = w;
	e->watches++;
	return true;
}

int bws_epoll_ctl(struct bws_conn *c, int epfd, int op, int fd, struct epoll_event *event)
{
	struct bws_watch *w;
	int rc;

	bws_lock();
	w = bws_watch_find(c, bws_table_epoll(epfd), fd);
	rc = bws_r()->epoll_ctl(epfd, op, fd, event);
	if (rc) {
		bws_unlock();
		return rc;
	}
	if (op == EPOLL_CTL_DEL && w) {
		bws_watch_end(w);
	} else if (op == EPOLL_CTL_MOD && w) {
		w->events = event->events;
		w->data = event->data.u64;
		w->disabled = false;
		w->edge = EPOLLIN | EPOLLOUT;
	} else if (op != EPOLL_CTL_DEL && !bws_watch_add(c, epfd, fd, event)) {
		bws_unlock();
		bws_pin(c, "epoll of a kind that is not followed");
		return 0;
	}
	bws_watch_changed(c);
	bws_unlock();
	return 0;
}

/* What the program is to be told of this one, `revents` being the kernel's word. */
uint32_t bws_watch_events(struct bws_watch *w, uint32_t revents)
{
	uint32_t events = (uint32_t)(uint16_t)bws_told(w->conn, (short)(w->events & 0xFFFF),
						       (short)(revents & 0xFFFF));

	if (w->disabled)
		return 0;
	if (w->events & EPOLLET) {
		events &= w->edge | revents |
			  ~(uint32_t)(EPOLLIN | EPOLLOUT | EPOLLRDNORM | EPOLLWRNORM);
		events &= ~(uint32_t)(EPOLLERR | EPOLLHUP) | revents |
			  (w->edge ? EPOLLERR | EPOLLHUP : 0);
		w->edge = 0;
	}
	if (events && w->events & EPOLLONESHOT) {
		w->disabled = true;
		bws_watch_ask(w);
	}
	return events;
}
