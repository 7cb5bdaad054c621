/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls that move bytes, as programs make them. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data.h"
#include "flow.h"
#include "real.h"
#include "table.h"

#define BWS_COPY (64u << 10) /* bytes that sendfile() reads at a time */

static ssize_t bws_call_receive(struct bws_conn *c, int fd, void *to, size_t n, int flags)
{
	struct iovec iov = {to, n};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t got = bws_recvmsg(c, fd, &m, flags);

	bws_conn_put(c);
	return got;
}

static ssize_t bws_call_send(struct bws_conn *c, int fd, const void *from, size_t n, int flags)
{
	struct iovec iov = {(void *)from, n};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t sent = bws_sendmsg(c, fd, &m, flags);

	bws_conn_put(c);
	return sent;
}

BWS_CALL ssize_t read(int fd, void *to, size_t n)
{
	struct bws_conn *c = bws_table_conn(fd);

	return c && n ? bws_call_receive(c, fd, to, n, 0)
	       : c    ? (bws_conn_put(c), bws_r()->read(fd, to, n))
		      : bws_r()->read(fd, to, n);
}

BWS_CALL ssize_t recv(int fd, void *to, size_t n, int flags)
{
	struct bws_conn *c = bws_table_conn(fd);

	return c ? bws_call_receive(c, fd, to, n, flags)
		 : bws_r()->recvfrom(fd, to, n, flags, NULL, NULL);
}

BWS_CALL ssize_t recvfrom(int fd, void *restrict to, size_t n, int flags,
			  struct sockaddr *restrict name, socklen_t *restrict len)
{
	struct bws_conn *c = bws_table_conn(fd);

	if (!c)
		return bws_r()->recvfrom(fd, to, n, flags, name, len);
	if (name && len)
		*len = 0;
	return bws_call_receive(c, fd, to, n, flags);
}

BWS_CALL ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	struct bws_conn *c = bws_table_conn(fd);
	ssize_t n;

	if (!c)
		return bws_r()->recvmsg(fd, m, flags);
	n = bws_recvmsg(c, fd, m, flags);
	bws_conn_put(c);
	return n;
}

BWS_CALL int recvmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags, struct timespec *span)
{
	unsigned int done = 0;
	struct bws_conn *c = bws_table_conn(fd);

	if (!c)
		return bws_r()->recvmmsg(fd, m, n, flags, span);
	for (; done < n; done++) {
		ssize_t got = bws_recvmsg(c, fd, &m[done].msg_hdr, flags & ~MSG_WAITFORONE);

		if (got < 0)
			break;
		m[done].msg_len = (unsigned int)got;
		if (!got)
			break;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
	}
	bws_conn_put(c);
	return done ? (int)done : -1;
}

BWS_CALL ssize_t readv(int fd, const struct iovec *iov, int n)
{
	struct bws_conn *c = bws_table_conn(fd);
	struct msghdr m = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n};
	ssize_t got;

	if (!c)
		return bws_r()->readv(fd, iov, n);
	if (n < 0 || n > IOV_MAX) {
		bws_conn_put(c);
		errno = EINVAL;
		return -1;
	}
	got = bws_recvmsg(c, fd, &m, 0);
	bws_conn_put(c);
	return got;
}

BWS_CALL ssize_t write(int fd, const void *from, size_t n)
{
	struct bws_conn *c = bws_table_conn(fd);

	return c ? bws_call_send(c, fd, from, n, 0) : bws_r()->write(fd, from, n);
}

BWS_CALL ssize_t send(int fd, const void *from, size_t n, int flags)
{
	struct bws_conn *c = bws_table_conn(fd);

	return c ? bws_call_send(c, fd, from, n, flags)
		 : bws_r()->sendto(fd, from, n, flags, NULL, 0);
}

BWS_CALL ssize_t sendto(int fd, const void *from, size_t n, int flags, const struct sockaddr *name,
			socklen_t len)
{
	struct bws_conn *c = bws_table_conn(fd);

	/* The kernel ignores the name, too. */
	return c && !(flags & MSG_FASTOPEN) ? bws_call_send(c, fd, from, n, flags)
					    : (c ? bws_conn_put(c) : (void)0,
					       bws_r()->sendto(fd, from, n, flags, name, len));
}

BWS_CALL ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	struct bws_conn *c;
	ssize_t n;

	bws_pass(fd, m);
	c = bws_table_conn(fd);
	if (!c)
		return bws_r()->sendmsg(fd, m, flags);
	n = bws_sendmsg(c, fd, m, flags);
	bws_conn_put(c);
	return n;
}

BWS_CALL int sendmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags)
{
	struct bws_conn *c = bws_table_conn(fd);
	unsigned int done = 0;

	if (!c) {
		for (unsigned int i = 0; i < n; i++)
			bws_pass(fd, &m[i].msg_hdr);
		return bws_r()->sendmmsg(fd, m, n, flags);
	}
	for (; done < n; done++) {
		ssize_t sent = bws_sendmsg(c, fd, &m[done].msg_hdr, flags);

		if (sent < 0)
			break;
		m[done].msg_len = (unsigned int)sent;
	}
	bws_conn_put(c);
	return done ? (int)done : -1;
}

BWS_CALL ssize_t writev(int fd, const struct iovec *iov, int n)
{
	struct bws_conn *c = bws_table_conn(fd);
	struct msghdr m = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n};
	ssize_t sent;

	if (!c)
		return bws_r()->writev(fd, iov, n);
	if (n < 0 || n > IOV_MAX) {
		bws_conn_put(c);
		errno = EINVAL;
		return -1;
	}
	sent = bws_sendmsg(c, fd, &m, 0);
	bws_conn_put(c);
	return sent;
}

/* From a file, by a buffer. A byte that was read and not sent is read again. */
static ssize_t bws_call_sendfile(struct bws_conn *c, int to, int from, off_t *at, size_t n)
{
	off_t place = at ? *at : lseek(from, 0, SEEK_CUR);
	char *bytes = malloc(BWS_COPY);
	ssize_t got = 0, sent = 0, sum = 0;

	if (!bytes || place < 0) {
		free(bytes);
		errno = place < 0 ? ESPIPE : ENOMEM;
		return -1;
	}
	while (n) {
		got = pread(from, bytes, n < BWS_COPY ? n : BWS_COPY, place);
		if (got <= 0)
			break;
		sent = bws_sendmsg(c, to,
				   &(struct msghdr){.msg_iov = &(struct iovec){bytes, (size_t)got},
						    .msg_iovlen = 1},
				   0);
		if (sent <= 0)
			break;
		place += sent;
		sum += sent;
		n -= (size_t)sent;
		if (sent < got)
			break;
	}
	free(bytes);
	if (at)
		*at = place;
	else
		lseek(from, place, SEEK_SET);
	return sum || (got >= 0 && sent >= 0) ? sum : -1;
}

BWS_CALL ssize_t sendfile(int to, int from, off_t *at, size_t n)
{
	struct bws_conn *c = bws_table_conn(to);
	ssize_t sent;

	if (!c)
		return bws_r()->sendfile(to, from, at, n);
	if (bws_tx_enter(c)) {
		sent = bws_r()->sendfile(to, from, at, n);
		bws_tx_leave(c, sent);
	} else if (lseek(from, 0, SEEK_CUR) < 0) {
		bws_pin(c, "sendfile() of what is no file");
		sent = bws_r()->sendfile(to, from, at, n);
	} else {
		sent = bws_call_sendfile(c, to, from, at, n);
	}
	bws_conn_put(c);
	return sent;
}

BWS_CALL ssize_t sendfile64(int to, int from, off64_t *at, size_t n)
{
	return sendfile(to, from, at, n);
}

BWS_CALL ssize_t splice(int from, off64_t *from_at, int to, off64_t *to_at, size_t n,
			unsigned int flags)
{
	struct bws_conn *in = bws_table_conn(from), *out = bws_table_conn(to);
	ssize_t moved;

	if (in)
		bws_pin(in, "splice()");
	if (out)
		bws_pin(out, "splice()");
	moved = bws_r()->splice(from, from_at, to, to_at, n, flags);
	if (in)
		bws_conn_put(in);
	if (out)
		bws_conn_put(out);
	return moved;
}

/* Those of _FORTIFY_SOURCE. */
BWS_CALL ssize_t __read_chk(int fd, void *to, size_t n, size_t room)
{
	if (n > room)
		abort();
	return read(fd, to, n);
}

BWS_CALL ssize_t __recv_chk(int fd, void *to, size_t n, size_t room, int flags)
{
	if (n > room)
		abort();
	return recv(fd, to, n, flags);
}

BWS_CALL ssize_t __recvfrom_chk(int fd, void *restrict to, size_t n, size_t room, int flags,
				struct sockaddr *restrict name, socklen_t *restrict len)
{
	if (n > room)
		abort();
	return recvfrom(fd, to, n, flags, name, len);
}
