/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sockets of a link: the listener that claims the engine number, and one connection per peer,
 * which is silent but for the handshake, doorbells, and its end. All hang in one epoll descriptor,
 * which the endpoint puts into its own.
 */
#include "clock.h"
#include "discard.h"
#include "link/local/impl.h"
#include "who.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define EVENTS	      32	  /* taken from epoll at a time */
#define DOORBELLS     16	  /* read at a time */
#define ACCEPTS	      256	  /* taken at a time */
#define GREETINGS_MAX 64	  /* accepted connections that have not said hello, */
#define SILENT_NS     1000000000u /* which they have time for when others wait */

/* The address that claims an engine number; returns its length. */
uint32_t bw_local_name(uint16_t engine, struct sockaddr_un *sun)
{
	*sun = (struct sockaddr_un){.sun_family = AF_UNIX};
	int n = snprintf(sun->sun_path + 1, sizeof(sun->sun_path) - 1, "beowire.%u", engine);

	return (uint32_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Its other name: incarnations are random. */
uint32_t bw_local_name_as(uint16_t engine, uint32_t incarnation, struct sockaddr_un *sun)
{
	*sun = (struct sockaddr_un){.sun_family = AF_UNIX};
	int n = snprintf(sun->sun_path + 1, sizeof(sun->sun_path) - 1, "beowire.%u.%08x", engine,
			 incarnation);

	return (uint32_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int claim_name(const struct sockaddr_un *sun, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)sun, len) < 0) {
		int error = -errno;

		close(fd);
		return error;
	}
	return fd;
}

int bw_local_claim(uint16_t engine)
{
	struct sockaddr_un sun;
	socklen_t len = bw_local_name(engine, &sun);

	return claim_name(&sun, len);
}

int bw_local_claim_as(uint16_t engine, uint32_t incarnation)
{
	struct sockaddr_un sun;
	socklen_t len = bw_local_name_as(engine, incarnation, &sun);

	return claim_name(&sun, len);
}

/* Watch fd, which now belongs to the connection. p is NULL for one that has yet to say hello. NULL
 * without memory; fd stays the caller's then. */
struct bw_local_conn *bw_local_conn_make(struct bw_local *l, int fd, struct bw_local_peer *p)
{
	struct bw_local_conn *c = calloc(1, sizeof(*c));
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = c};

	if (!c)
		return NULL;
	c->fd = fd;
	c->peer = p;
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &event) < 0) {
		free(c);
		return NULL;
	}
	return c;
}

/* Close it; its memory stays until bw_local_conn_reap(), since an event for it may be at hand. None
 * comes later: epoll forgets a closed descriptor by itself only when no child of fork() has a copy
 * of it (epoll(7)), and a new child may for a moment. */
void bw_local_conn_close(struct bw_local *l, struct bw_local_conn *c)
{
	if (!c || c->fd < 0)
		return;
	epoll_ctl(l->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	close(c->fd);
	c->fd = -1;
	c->peer = NULL;
	c->next = l->dead;
	l->dead = c;
}

void bw_local_conn_reap(struct bw_local *l)
{
	while (l->dead) {
		struct bw_local_conn *c = l->dead;

		l->dead = c->next;
		free(c);
	}
}

static struct bw_local_conn *doorbell_conn(const struct bw_local_peer *p)
{
	return p->conn[0] ? p->conn[0] : p->conn[1];
}

/* Wake the peer. A full socket means that it has unread doorbells; an error, that its end will
 * show. */
void bw_local_ring(struct bw_local_peer *p)
{
	struct bw_local_conn *c = doorbell_conn(p);

	if (!c || p->lost)
		return;
	p->link->counters.doorbells_tx++;
	if (send(c->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN)
		p->link->look_soon = true;
}

/* Is the process that we are connected to still there? */
bool bw_local_alive(struct bw_local_peer *p)
{
	for (int i = 0; i < 2; i++) {
		char byte;

		if (p->conn[i] &&
		    recv(p->conn[i]->fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) == 0)
			return false;
	}
	return !p->lost;
}

/* Have a descriptor in reserve. */
int bw_local_spare(struct bw_local *l)
{
	if (l->spare_fd < 0)
		l->spare_fd = fcntl(l->status_fd, F_DUPFD_CLOEXEC, 0);
	return l->spare_fd < 0 ? -errno : 0;
}

static bool no_descriptors(void)
{
	return errno == EMFILE || errno == ENFILE;
}

/* Close who has called, with a reason; a stranger in the place that was reserved. */
static void send_away(struct bw_local *l, int fd, bool stranger, int status)
{
	bw_local_turn_away(l, fd, status);
	if (stranger) {
		bw_discard(fd);
		return;
	}
	bw_discard_return();
	close(fd);
}

/* A call that cannot be taken for want of descriptors would keep the listener readable, and whoever
 * sleeps on it awake, for ever: it is turned away in place of the one in reserve. True if so: the
 * place for it is taken. */
static bool accept_without(struct bw_local *l)
{
	int fd;

	if (!no_descriptors() || l->spare_fd < 0)
		return false;
	close(l->spare_fd);
	l->spare_fd = -1;
	fd = accept4(l->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0)
		send_away(l, fd, bw_who_may(fd, NULL), -EAGAIN);
	bw_local_spare(l);
	return fd >= 0;
}

/* Look at the listener from now on, or not. */
static void listener_heed(struct bw_local *l, bool on)
{
	struct epoll_event event = {.events = on ? EPOLLIN : 0, .data.ptr = &l->listener};

	if (epoll_ctl(l->epoll, EPOLL_CTL_MOD, l->listener.fd, &event) == 0)
		l->deaf = !on;
}

/* One of our user's has called. */
static void greeting_add(struct bw_local *l, int fd)
{
	struct bw_local_conn *c = bw_local_conn_make(l, fd, NULL);

	if (!c) {
		bw_local_turn_away(l, fd, -EAGAIN);
		close(fd);
		return;
	}
	c->called_at = bw_clock_now();
	c->next = l->greeting;
	l->greeting = c;
	l->greetings++;
}

/* Anybody may call: strangers are turned away before they cost anything. False if nobody has, or
 * if there is no place to put a stranger's call to, or if so many are still to say hello: then the
 * listener is not looked at for a while, and keeps who calls. Descriptors may come by all of them,
 * as a caller says hello before he can know whether he was accepted. */
static bool accept_one(struct bw_local *l)
{
	int fd, error;

	if (l->greetings == GREETINGS_MAX || !bw_discard_reserve()) {
		listener_heed(l, false);
		return false;
	}
	fd = accept4(l->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0 && accept_without(l))
		return true;
	if (fd < 0) {
		if (no_descriptors())
			listener_heed(l, false);
		bw_discard_return();
		return false;
	}
	error = bw_who_may(fd, NULL);
	if (error) {
		send_away(l, fd, error, error);
		return true;
	}
	bw_discard_return();
	greeting_add(l, fd);
	return true;
}

static void accept_all(struct bw_local *l)
{
	bw_local_spare(l);
	for (int i = 0; i < ACCEPTS; i++) {
		if (!accept_one(l))
			return;
	}
	l->look_soon = true;
}

static void greeting_remove(struct bw_local *l, struct bw_local_conn *c)
{
	struct bw_local_conn **at = &l->greeting;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->next = NULL;
	l->greetings--;
	l->look_soon |= l->deaf; /* there may be calls for which there was no room */
}

static void doorbells_read(struct bw_local *l, struct bw_local_conn *c)
{
	char byte[DOORBELLS][8];
	struct iovec part[DOORBELLS];
	struct mmsghdr m[DOORBELLS] = {0};
	int n;

	for (int i = 0; i < DOORBELLS; i++) {
		part[i] = (struct iovec){.iov_base = byte[i], .iov_len = sizeof(byte[i])};
		m[i].msg_hdr.msg_iov = &part[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	do {
		n = recvmmsg(c->fd, m, DOORBELLS, MSG_DONTWAIT, NULL);
		l->counters.doorbells_rx += n > 0 ? (uint64_t)n : 0;
	} while (n == DOORBELLS && m[0].msg_len > 0);
}

/* An accepted connection says hello, or goes away; false: neither yet. */
static bool greeting_event(struct bw_local *l, struct bw_local_conn *c)
{
	int error = bw_local_hello_read(l, c);

	if (error == -EAGAIN)
		return false;
	greeting_remove(l, c);
	if (error == 0) {
		bw_local_answer(l, c);
		return true;
	}
	bw_local_turn_away(l, c->fd, error);
	bw_local_conn_close(l, c);
	return true;
}

/* Who says nothing makes room. Who has said hello since anybody looked is answered. */
static void greetings_hasten(struct bw_local *l)
{
	uint64_t now = bw_clock_now();
	struct bw_local_conn *next;

	for (struct bw_local_conn *c = l->greeting; c; c = next) {
		next = c->next;
		if (now - c->called_at < SILENT_NS || greeting_event(l, c))
			continue;
		greeting_remove(l, c);
		bw_local_turn_away(l, c->fd, -EAGAIN);
		bw_local_conn_close(l, c);
	}
}

/* Can calls be taken again? */
static bool has_place(struct bw_local *l)
{
	if (l->greetings == GREETINGS_MAX)
		greetings_hasten(l);
	return l->greetings < GREETINGS_MAX && bw_discard_room();
}

static void conn_event(struct bw_local *l, struct bw_local_conn *c, uint32_t events)
{
	struct bw_local_peer *p = c->peer;

	if (!p) {
		greeting_event(l, c);
		return;
	}
	bw_local_peer_heat(p);
	if (!c->answered)
		bw_local_answer_read(l, c);
	else if (events & EPOLLIN)
		doorbells_read(l, c);
	if (c->fd >= 0 && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
		bw_local_peer_lost(p, -ECONNREFUSED);
}

/* Look at the sockets: contacts, answers, doorbells, deaths. Returns the number of events. */
int bw_local_look(struct bw_local *l)
{
	struct epoll_event event[EVENTS];
	int n;

	if (BW_UNLIKELY(l->deaf) && has_place(l))
		listener_heed(l, true);
	n = epoll_wait(l->epoll, event, EVENTS, 0);
	l->look_soon = n == EVENTS;
	for (int i = 0; i < n; i++) {
		struct bw_local_conn *c = event[i].data.ptr;

		if (c == &l->listener)
			accept_all(l);
		else if (c->fd >= 0)
			conn_event(l, c, event[i].events);
	}
	return n > 0 ? n : 0;
}
