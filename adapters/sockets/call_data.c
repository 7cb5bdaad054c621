/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls that move bytes, as programs make them. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
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
	struct bws_conn *c = bws_table_conn(fd);
	uint64_t began = bw_clock_now(), spent = 0;
	uint64_t most = span ? (uint64_t)span->tv_sec * BWS_S + (uint64_t)span->tv_nsec : 0;
	unsigned int done = 0;
	ssize_t got = 0;

	if (!c)
		return bws_r()->recvmmsg(fd, m, n, flags, span);
	/* As the kernel does it: the time is looked at after each message. */
	while (done < n && (!span || spent <= most)) {
		got = bws_recvmsg(c, fd, &m[done].msg_hdr, flags & ~MSG_WAITFORONE);
		if (got < 0)
			break;
		m[done++].msg_len = (unsigned int)got;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
		spent = bw_clock_now() - began;
	}
	bws_conn_put(c);
	if (span && got >= 0) {
		spent = spent < most ? most - spent : 0;
		*span = (struct timespec){.tv_sec = (time_t)(spent / BWS_S),
					  .tv_nsec = (long)(spent % BWS_S)};
	}
	return done || got >= 0 ? (int)done : -1;
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
	ssize_t sent;

	/* The kernel ignores the name, too. */
	if (c && !(flags & MSG_FASTOPEN))
		return bws_call_send(c, fd, from, n, flags);
	if (c && !bws_tx_enter(c)) { /* it is connected long since */
		bws_conn_put(c);
		errno = EISCONN;
		return -1;
	}
	sent = bws_r()->sendto(fd, from, n, flags, name, len);
	if (c) {
		bws_tx_leave(c, sent);
		bws_conn_put(c);
	}
	return sent;
}

BWS_CALL ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	struct bws_conn *c;
	ssize_t n;

	if (!bws_pass(m))
		return -1;
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
	ssize_t sent = 0;

	if (!c) {
		for (unsigned int i = 0; i < n; i++) {
			if (!bws_pass(&m[i].msg_hdr))
				return -1;
		}
		return bws_r()->sendmmsg(fd, m, n, flags);
	}
	while (done < n) {
		sent = bws_sendmsg(c, fd, &m[done].msg_hdr, flags);
		if (sent < 0)
			break;
		m[done++].msg_len = (unsigned int)sent;
	}
	bws_conn_put(c);
	return done || sent >= 0 ? (int)done : -1;
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
		sent = bws_pin_to_send(c, to, "sendfile() of what is no file", 0)
			       ? bws_r()->sendfile(to, from, at, n)
			       : -1;
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
	int wait = flags & SPLICE_F_NONBLOCK ? MSG_DONTWAIT : 0;
	ssize_t moved = -1;

	if ((!in || bws_pin_to_receive(in, "splice()")) &&
	    (!out || bws_pin_to_send(out, to, "splice()", wait)))
		moved = bws_r()->splice(from, from_at, to, to_at, n, flags);
	if (in)
		bws_conn_put(in);
	if (out)
		bws_conn_put(out);
	return moved;
}

/* Without an offset they are for sockets, too. */
BWS_CALL ssize_t preadv2(int fd, const struct iovec *iov, int n, off_t at, int flags)
{
	if (at == -1 && !flags)
		return readv(fd, iov, n);
	return bws_pin_fd(fd, "preadv2()") ? bws_r()->preadv2(fd, iov, n, at, flags) : -1;
}

BWS_CALL ssize_t preadv64v2(int fd, const struct iovec *iov, int n, off64_t at, int flags)
{
	return preadv2(fd, iov, n, at, flags);
}

BWS_CALL ssize_t pwritev2(int fd, const struct iovec *iov, int n, off_t at, int flags)
{
	if (at == -1 && !flags)
		return writev(fd, iov, n);
	return bws_pin_fd(fd, "pwritev2()") ? bws_r()->pwritev2(fd, iov, n, at, flags) : -1;
}

BWS_CALL ssize_t pwritev64v2(int fd, const struct iovec *iov, int n, off64_t at, int flags)
{
	return pwritev2(fd, iov, n, at, flags);
}

/* The C library writes past us. */
static int bws_call_print(struct bws_conn *c, int fd, const char *format, va_list more)
{
	char *text = NULL;
	int n = vasprintf(&text, format, more), done = 0;

	while (done < n) {
		struct iovec iov = {text + done, (size_t)(n - done)};
		struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
		ssize_t some = bws_sendmsg(c, fd, &m, 0);

		if (some < 0)
			break;
		done += (int)some;
	}
	free(text);
	bws_conn_put(c);
	return done < n ? -1 : n;
}

BWS_CALL int vdprintf(int fd, const char *format, va_list more)
{
	struct bws_conn *c = bws_table_conn(fd);

	return c ? bws_call_print(c, fd, format, more) : bws_r()->vdprintf(fd, format, more);
}

BWS_CALL int dprintf(int fd, const char *format, ...)
{
	va_list more;
	int n;

	va_start(more, format);
	n = vdprintf(fd, format, more);
	va_end(more);
	return n;
}

/* Those of _FORTIFY_SOURCE. */
BWS_CALL int __vdprintf_chk(int fd, int flag, const char *format, va_list more)
{
	struct bws_conn *c = bws_table_conn(fd);

	return c ? bws_call_print(c, fd, format, more)
		 : bws_r()->vdprintf_chk(fd, flag, format, more);
}

BWS_CALL int __dprintf_chk(int fd, int flag, const char *format, ...)
{
	va_list more;
	int n;

	va_start(more, format);
	n = __vdprintf_chk(fd, flag, format, more);
	va_end(more);
	return n;
}

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
