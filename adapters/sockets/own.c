/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptors of this library and of libbeowire. They have high numbers, as programs count on low
 * ones: the lowest free one for what they open next, and those below FD_SETSIZE for select().
 */
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "owned.h"
#include "real.h"
#include "table.h"

#define BWS_OWN_HIGH 4096 /* where they begin, if the process may have as many twice */

static int bws_own_base(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= 2 * BWS_OWN_HIGH)
		return BWS_OWN_HIGH;
	return (int)(limit.rlim_cur / 2);
}

int bws_own(int fd)
{
	int high;

	if (fd < 0)
		return fd;
	high = bws_r()->fcntl(fd, F_DUPFD_CLOEXEC, bws_own_base());
	if (high >= 0) {
		bws_r()->close(fd);
		fd = high;
	}
	bws_table_set(fd, BWS_OWN, NULL);
	return fd;
}

int bws_own_close(int fd)
{
	if (bws_table_own(fd))
		bws_table_set(fd, BWS_NOTHING, NULL);
	return bws_r()->close(fd);
}

int bws_own_socket(int domain, int type, int protocol)
{
	return bws_own(bws_r()->socket(domain, type, protocol));
}

int bws_own_accept4(int fd, struct sockaddr *name, socklen_t *len, int flags)
{
	return bws_own(bws_r()->accept4(fd, name, len, flags));
}

int bws_own_eventfd(unsigned int count, int flags)
{
	return bws_own(eventfd(count, flags));
}

int bws_own_epoll_create1(int flags)
{
	return bws_own(epoll_create1(flags));
}

int bws_own_memfd_create(const char *name, unsigned int flags)
{
	return bws_own(memfd_create(name, flags));
}

static int bws_own_opened(int dir, const char *path, int flags, va_list *more)
{
	bool made = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;

	return bws_own(openat(dir, path, flags, made ? va_arg(*more, mode_t) : 0));
}

int bws_own_open(const char *path, int flags, ...)
{
	va_list more;
	int fd;

	va_start(more, flags);
	fd = bws_own_opened(AT_FDCWD, path, flags, &more);
	va_end(more);
	return fd;
}

int bws_own_openat(int dir, const char *path, int flags, ...)
{
	va_list more;
	int fd;

	va_start(more, flags);
	fd = bws_own_opened(dir, path, flags, &more);
	va_end(more);
	return fd;
}

int bws_own_fcntl(int fd, int what, ...)
{
	va_list more;
	void *value;
	int rc;

	va_start(more, what);
	value = va_arg(more, void *);
	va_end(more);
	rc = bws_r()->fcntl(fd, what, value);
	return what == F_DUPFD || what == F_DUPFD_CLOEXEC ? bws_own(rc) : rc;
}

/* What comes along is ours as well. */
ssize_t bws_own_recvmsg(int fd, struct msghdr *m, int flags)
{
	ssize_t n = bws_r()->recvmsg(fd, m, flags);

	if (n < 0 || !m->msg_control)
		return n;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= c->cmsg_len; at += sizeof(int)) {
			int given;

			memcpy(&given, CMSG_DATA(c) + at, sizeof(given));
			given = bws_own(given);
			memcpy(CMSG_DATA(c) + at, &given, sizeof(given));
		}
	}
	return n;
}

int bws_own_bind(int fd, const struct sockaddr *name, socklen_t len)
{
	return bind(fd, name, len);
}

int bws_own_connect(int fd, const struct sockaddr *name, socklen_t len)
{
	return bws_r()->connect(fd, name, len);
}

int bws_own_getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
	return bws_r()->getsockopt(fd, level, option, value, len);
}

int bws_own_setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
	return bws_r()->setsockopt(fd, level, option, value, len);
}

int bws_own_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	return bws_r()->epoll_ctl(epfd, op, fd, event);
}

int bws_own_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *span, const sigset_t *mask)
{
	return bws_r()->ppoll(fds, n, span, mask);
}

int bws_own_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct timespec span = {.tv_sec = timeout_ms / 1000,
				.tv_nsec = timeout_ms % 1000 * 1000000L};

	return bws_r()->ppoll(fds, n, timeout_ms < 0 ? NULL : &span, NULL);
}

ssize_t bws_own_read(int fd, void *to, size_t n)
{
	return bws_r()->read(fd, to, n);
}

ssize_t bws_own_write(int fd, const void *from, size_t n)
{
	return bws_r()->write(fd, from, n);
}

ssize_t bws_own_recv(int fd, void *to, size_t n, int flags)
{
	return bws_r()->recvfrom(fd, to, n, flags, NULL, NULL);
}

int bws_own_recvmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags, struct timespec *span)
{
	return bws_r()->recvmmsg(fd, m, n, flags, span);
}

ssize_t bws_own_send(int fd, const void *from, size_t n, int flags)
{
	return bws_r()->sendto(fd, from, n, flags, NULL, 0);
}

int bws_own_sendmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags)
{
	return bws_r()->sendmmsg(fd, m, n, flags);
}

ssize_t bws_own_sendmsg(int fd, const struct msghdr *m, int flags)
{
	return bws_r()->sendmsg(fd, m, flags);
}

ssize_t bws_own_sendto(int fd, const void *from, size_t n, int flags, const struct sockaddr *to,
		       socklen_t len)
{
	return bws_r()->sendto(fd, from, n, flags, to, len);
}
