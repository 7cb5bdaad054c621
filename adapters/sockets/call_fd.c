/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls that make, copy and close descriptors, and that ask and set what they are, as programs make
 * them. Our own descriptors are not there for programs.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core.h"
#include "data.h"
#include "fds.h"
#include "flow.h"
#include "real.h"
#include "table.h"

BWS_CALL int socket(int domain, int type, int protocol)
{
	int fd = bws_r()->socket(domain, type, protocol);

	if (fd >= 0)
		bws_forget(fd);
	return fd;
}

BWS_CALL int connect(int fd, const struct sockaddr *name, socklen_t len)
{
	int rc, error;

	if (!bws.on || (name && name->sa_family != AF_INET && name->sa_family != AF_INET6))
		return bws_r()->connect(fd, name, len);
	rc = bws_r()->connect(fd, name, len);
	error = errno;
	if (!rc || error == EINPROGRESS || error == EINTR)
		bws_follow(fd, true);
	errno = error;
	return rc;
}

/* It was expected to be connected. */
BWS_CALL int listen(int fd, int backlog)
{
	int rc = bws_r()->listen(fd, backlog), error = errno;

	if (!rc && bws.on && bws.pid == getpid())
		bws_unfollow(fd);
	errno = error;
	return rc;
}

BWS_CALL int accept4(int fd, struct sockaddr *restrict name, socklen_t *restrict len, int flags)
{
	int made = bws_r()->accept4(fd, name, len, flags);

	if (made >= 0 && bws.on)
		bws_follow(made, false);
	return made;
}

BWS_CALL int accept(int fd, struct sockaddr *restrict name, socklen_t *restrict len)
{
	return accept4(fd, name, len, 0);
}

BWS_CALL int close(int fd)
{
	if (bws_table_own(fd)) {
		errno = EBADF;
		return -1;
	}
	return bws_close(fd);
}

/* What is neither ours nor a connection goes in rows. */
BWS_CALL int close_range(unsigned int first, unsigned int last, int flags)
{
	unsigned int from = first;
	int rc = 0;

	if (first > last || !bws.on)
		return bws_r()->close_range(first, last, flags);
	for (int fd = bws_table_next(first <= INT_MAX ? (int)first : INT_MAX);
	     fd >= 0 && (unsigned int)fd <= last && !rc; fd = bws_table_next(fd + 1)) {
		if ((unsigned int)fd > from)
			rc = bws_r()->close_range(from, (unsigned int)fd - 1, flags);
		from = (unsigned int)fd + 1;
		if (bws_table_own(fd))
			continue;
		if (flags & CLOSE_RANGE_CLOEXEC)
			bws_r()->fcntl(fd, F_SETFD, FD_CLOEXEC);
		else
			bws_close(fd);
	}
	if (!rc && from <= last)
		rc = bws_r()->close_range(from, last, flags);
	return rc;
}

BWS_CALL void closefrom(int first)
{
	close_range(first < 0 ? 0 : (unsigned int)first, UINT_MAX, 0);
}

static int bws_call_copied(int from, int to)
{
	if (to >= 0)
		bws_copied(from, to);
	return to;
}

BWS_CALL int dup(int fd)
{
	return bws_call_copied(fd, bws_r()->dup(fd));
}

/* Room under this number, if it is one of ours: we move. */
static int bws_call_over(int from, int to, int flags, bool three)
{
	int rc;

	if (bws_table_own(to)) {
		errno = EBUSY;
		return -1;
	}
	if (from == to)
		return three ? bws_r()->dup3(from, to, flags) : bws_r()->dup2(from, to);
	if (bws_r()->fcntl(from, F_GETFD) >= 0)
		bws_replaced(to);
	rc = three ? bws_r()->dup3(from, to, flags) : bws_r()->dup2(from, to);
	return bws_call_copied(from, rc);
}

BWS_CALL int dup2(int from, int to)
{
	return bws_call_over(from, to, 0, false);
}

BWS_CALL int dup3(int from, int to, int flags)
{
	return bws_call_over(from, to, flags, true);
}

BWS_CALL int fcntl(int fd, int what, ...)
{
	va_list more;
	void *value;
	int rc;

	va_start(more, what);
	value = va_arg(more, void *);
	va_end(more);
	if (what == F_SETFL && (intptr_t)value & O_ASYNC && !bws_pin_fd(fd, "SIGIO"))
		return -1;
	rc = bws_r()->fcntl(fd, what, value);
	if (what == F_DUPFD || what == F_DUPFD_CLOEXEC)
		return bws_call_copied(fd, rc);
	return rc;
}

BWS_CALL int fcntl64(int fd, int what, ...)
{
	va_list more;
	void *value;

	va_start(more, what);
	value = va_arg(more, void *);
	va_end(more);
	return fcntl(fd, what, value);
}

BWS_CALL int ioctl(int fd, unsigned long what, ...)
{
	struct bws_conn *c;
	va_list more;
	void *value;
	int rc;

	va_start(more, what);
	value = va_arg(more, void *);
	va_end(more);
	if (what == FIOASYNC && value && *(int *)value && !bws_pin_fd(fd, "SIGIO"))
		return -1;
	c = what == FIONREAD || what == TIOCOUTQ ? bws_table_conn(fd) : NULL;
	rc = bws_r()->ioctl(fd, what, value);
	if (!c)
		return rc;
	if (!rc && what == FIONREAD) {
		bws_progress();
		bws_lock();
		*(int *)value = bws_readable(c);
		bws_unlock();
	} else if (!rc) {
		bws_lock();
		if (c->tx.way != BWS_TCP)
			*(int *)value += (int)(BWS_WINDOW - bws_tx_room(c));
		bws_unlock();
	}
	bws_conn_put(c);
	return rc;
}

BWS_CALL int shutdown(int fd, int how)
{
	struct bws_conn *c = bws_table_conn(fd);
	int rc;

	if (!c)
		return bws_r()->shutdown(fd, how);
	rc = bws_shutdown(c, fd, how);
	bws_conn_put(c);
	return rc;
}

BWS_CALL int getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
	bool error = level == SOL_SOCKET && option == SO_ERROR;
	struct bws_conn *c = error ? bws_table_conn(fd) : NULL;
	int rc = bws_r()->getsockopt(fd, level, option, value, len);

	if (!c)
		return rc;
	if (!rc && *len == sizeof(int))
		*(int *)value = bws_error_take(c, *(int *)value);
	bws_conn_put(c);
	return rc;
}

BWS_CALL int setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
	struct bws_conn *c = bws_table_conn(fd);

	if (c && level == SOL_SOCKET && option == SO_ZEROCOPY)
		bws_pin(c, "SO_ZEROCOPY");
	if (c && level == SOL_SOCKET && option == SO_OOBINLINE)
		bws_pin(c, "urgent data");
	if (c && level == IPPROTO_TCP && (option == TCP_ULP || option == TCP_REPAIR))
		bws_pin(c, "an option of TCP that changes the stream");
	if (c && level == SOL_SOCKET && option == SO_RCVLOWAT)
		bws_pin(c, "SO_RCVLOWAT");
	if (c)
		bws_conn_put(c);
	return bws_r()->setsockopt(fd, level, option, value, len);
}

/* The C library's own streams read and write past us. */
BWS_CALL FILE *fdopen(int fd, const char *mode)
{
	struct bws_conn *c = bws_table_conn(fd);

	if (c) {
		bws_pin(c, "stdio");
		bws_conn_put(c);
		bws_unfollow(fd);
	}
	return bws_r()->fdopen(fd, mode);
}
