/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rows of messages, in one call for all or in one call for each. A stream takes its row by writev()
 * and is read in as large pieces as come; messages go by sendmmsg() and recvmmsg().
 */
#include <errno.h>
#include <sys/uio.h>

#include "bench.h"

static void prepare(struct bench_end *end, size_t bytes, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		end->iov[i] = (struct iovec){end->buffer + i * bytes, bytes};
		end->row[i] = (struct mmsghdr){
			.msg_hdr = {.msg_iov = &end->iov[i], .msg_iovlen = 1},
		};
	}
}

static void send_bytes(struct bench_end *end, size_t bytes, unsigned count)
{
	prepare(end, bytes, count);
	if (writev(end->fd, end->iov, (int)count) != (ssize_t)(bytes * count))
		bench_fail("%s: cannot write a row", end->c->transport->name);
}

static void send_messages(struct bench_end *end, size_t bytes, unsigned count)
{
	prepare(end, bytes, count);
	for (unsigned sent = 0; sent < count;) {
		int n = sendmmsg(end->fd, end->row + sent, count - sent, 0);

		if (n <= 0)
			bench_fail("%s: cannot send a row", end->c->transport->name);
		sent += (unsigned)n;
	}
}

static void receive_messages(struct bench_end *end, size_t bytes, unsigned count)
{
	prepare(end, bytes, count);
	for (unsigned received = 0; received < count;) {
		int n = recvmmsg(end->fd, end->row + received, count - received, MSG_WAITFORONE,
				 NULL);

		if (n <= 0)
			bench_fail("%s: cannot receive a row", end->c->transport->name);
		for (int i = 0; i < n; i++, received++) {
			if (end->row[received].msg_len == bytes)
				continue;
			errno = EBADMSG;
			bench_fail("%s: a message of another length came", end->c->transport->name);
		}
	}
}

void bench_row_send(struct bench_end *end, size_t bytes, unsigned count)
{
	const struct bench_transport *t = end->c->transport;

	if (end->c->together && t->stream)
		send_bytes(end, bytes, count);
	else if (end->c->together)
		send_messages(end, bytes, count);
	else
		while (count--)
			t->send(end, bytes);
}

void bench_row_receive(struct bench_end *end, size_t bytes, unsigned count)
{
	const struct bench_transport *t = end->c->transport;

	if (t->stream)
		t->receive(end, bytes * count);
	else if (end->c->together)
		receive_messages(end, bytes, count);
	else
		while (count--)
			t->receive(end, bytes);
}
