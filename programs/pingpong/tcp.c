/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP as a program would use it at its best: one connection, TCP_NODELAY, one send() per message,
 * and recv() that blocks or, when spinning, is called again and again.
 */
#include "pingpong.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct tcp {
	int listener, fd;
	bool spin, client;
	struct sockaddr_storage there; /* the other program's host */
	socklen_t there_len;
	unsigned long receive_buffer;
};

static void tcp_close(void *state)
{
	struct tcp *t = state;

	if (t->listener >= 0)
		close(t->listener);
	if (t->fd >= 0)
		close(t->fd);
	free(t);
}

static void port_set(struct sockaddr_storage *a, uint16_t port)
{
	if (a->ss_family == AF_INET6)
		((struct sockaddr_in6 *)a)->sin6_port = port;
	else
		((struct sockaddr_in *)a)->sin_port = port;
}

static uint16_t port_of(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)a)->sin6_port
					: ((const struct sockaddr_in *)a)->sin_port;
}

/* Before the handshake, which tells the other side how far windows are scaled. The kernel doubles
 * what is asked for, for its own use (socket(7)); tcp_rmem counts that in. */
static int buffer_set(const struct tcp *t, int fd)
{
	int bytes = (int)(t->receive_buffer / 2), got = 0;
	socklen_t len = sizeof(got);

	if (t->receive_buffer == 0)
		return 0;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) < 0)
		return pp_fail("SO_RCVBUF: %s", strerror(errno));
	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &len) < 0 || got < 2 * bytes)
		return pp_fail("net.core.rmem_max allows receive buffers of %d bytes only", got);
	return 0;
}

/* The server listens where the control connection came in, on a port of its own. */
static int tcp_listen(struct tcp *t, const struct pp_place *place, struct pp_card *mine)
{
	struct sockaddr_storage here;
	socklen_t len = sizeof(here);
	uint16_t port;

	if (getsockname(place->control, (struct sockaddr *)&here, &len) < 0)
		return pp_fail("getsockname: %s", strerror(errno));
	port_set(&here, 0);
	t->listener = socket(here.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (t->listener < 0 || buffer_set(t, t->listener) < 0 ||
	    bind(t->listener, (struct sockaddr *)&here, len) < 0 || listen(t->listener, 1) < 0 ||
	    getsockname(t->listener, (struct sockaddr *)&here, &len) < 0)
		return pp_fail("cannot listen for TCP: %s", strerror(errno));
	port = port_of(&here);
	memcpy(mine->bytes, &port, sizeof(port));
	return 0;
}

static void *tcp_open(const struct pp_place *place, struct pp_card *mine)
{
	struct tcp *t = calloc(1, sizeof(*t));

	if (!t) {
		pp_fail("out of memory");
		return NULL;
	}
	t->fd = t->listener = -1;
	t->spin = place->wait == PP_SPIN;
	t->client = place->client;
	t->receive_buffer = place->receive_buffer;
	t->there_len = sizeof(t->there);
	if (getpeername(place->control, (struct sockaddr *)&t->there, &t->there_len) < 0) {
		pp_fail("getpeername: %s", strerror(errno));
	} else if (t->client || tcp_listen(t, place, mine) == 0) {
		return t;
	}
	tcp_close(t);
	return NULL;
}

static int tcp_meet(void *state, const struct pp_card *theirs)
{
	const int on = 1;
	struct tcp *t = state;
	uint16_t port;

	if (t->client) {
		memcpy(&port, theirs->bytes, sizeof(port));
		port_set(&t->there, port);
		t->fd = socket(t->there.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (t->fd < 0 || buffer_set(t, t->fd) < 0 ||
		    connect(t->fd, (struct sockaddr *)&t->there, t->there_len) < 0)
			return pp_fail("cannot connect by TCP: %s", strerror(errno));
	} else {
		t->fd = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC);
		if (t->fd < 0)
			return pp_fail("accept: %s", strerror(errno));
	}
	if (setsockopt(t->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
		return pp_fail("TCP_NODELAY: %s", strerror(errno));
	return 0;
}

static int tcp_send(void *state, const void *buf, size_t n)
{
	struct tcp *t = state;
	const uint8_t *p = buf;

	while (n > 0) {
		ssize_t sent = send(t->fd, p, n, MSG_NOSIGNAL);

		if (sent < 0 && errno != EINTR)
			return pp_fail("TCP send: %s", strerror(errno));
		p += sent > 0 ? sent : 0;
		n -= sent > 0 ? (size_t)sent : 0;
	}
	return 0;
}

static int tcp_receive(void *state, void *buf, size_t n)
{
	struct tcp *t = state;
	uint8_t *p = buf;

	while (n > 0) {
		ssize_t got = recv(t->fd, p, n, t->spin ? MSG_DONTWAIT : 0);

		if (got == 0)
			return pp_fail("the other side closed the TCP connection");
		if (got < 0 && errno != EAGAIN && errno != EINTR)
			return pp_fail("TCP receive: %s", strerror(errno));
		p += got > 0 ? got : 0;
		n -= got > 0 ? (size_t)got : 0;
	}
	return 0;
}

static int tcp_flush(void *state)
{
	return 0;
}

static void tcp_describe(void *state, char text[PP_TEXT])
{
	char name[64] = "?";
	socklen_t len = sizeof(name);

	getsockopt(((struct tcp *)state)->fd, IPPROTO_TCP, TCP_CONGESTION, name, &len);
	snprintf(text, PP_TEXT, "TCP_NODELAY, %s", name);
}

const struct pp_carrier pp_tcp = {
	.name = "tcp",
	.open = tcp_open,
	.meet = tcp_meet,
	.send = tcp_send,
	.receive = tcp_receive,
	.flush = tcp_flush,
	.describe = tcp_describe,
	.close = tcp_close,
};
