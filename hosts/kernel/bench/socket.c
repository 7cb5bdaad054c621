/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What all transports do with their sockets: move a whole message, and wait for it as the case
 * says.
 */
#include <errno.h>
#include <sched.h>

#include "bench.h"

int bench_socket(int family, int type, int protocol)
{
	int fd = socket(family, type | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		bench_fail("cannot open a socket of family %d, type %d", family, type);
	return fd;
}

void bench_option(int fd, int level, int name, int value)
{
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		bench_fail("cannot set option %d of level %d to %d", name, level, value);
}

void bench_send_all(struct bench_end *end, size_t bytes)
{
	for (size_t sent = 0; sent < bytes;) {
		ssize_t n = send(end->fd, end->buffer + sent, bytes - sent, 0);

		if (n < 0)
			bench_fail("%s: cannot send", end->c->transport->name);
		sent += (size_t)n;
	}
}

size_t bench_receive_some(struct bench_end *end, size_t offset, size_t bytes)
{
	int flags = end->c->wait == BENCH_POLL ? MSG_DONTWAIT : 0;

	for (;;) {
		ssize_t n = recv(end->fd, end->buffer + offset, bytes, flags);

		if (n > 0)
			return (size_t)n;
		if (n == 0)
			errno = EPIPE;
		if (errno != EAGAIN || !flags)
			bench_fail("%s: cannot receive", end->c->transport->name);
		if (end->yield)
			sched_yield();
	}
}

/* As many bytes as that, in any pieces. */
void bench_receive_all(struct bench_end *end, size_t bytes)
{
	for (size_t received = 0; received < bytes;)
		received += bench_receive_some(end, received, bytes - received);
}

/* One message, of just as many bytes. */
void bench_receive_whole(struct bench_end *end, size_t bytes)
{
	if (bench_receive_some(end, 0, bytes) == bytes)
		return;
	errno = EBADMSG;
	bench_fail("%s: a message of another length came", end->c->transport->name);
}
