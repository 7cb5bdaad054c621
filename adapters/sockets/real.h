/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The C library's own functions behind those that this library takes the place of: the next ones of
 * that name in the order of loading.
 */
#ifndef BWS_REAL_H
#define BWS_REAL_H

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Seen by programs. */
#define BWS_CALL __attribute__((visibility("default")))

/* result, name, arguments */
#define BWS_REAL_ALL(X)                                                                            \
	X(int, accept4, (int, struct sockaddr *, socklen_t *, int))                                \
	X(int, close, (int))                                                                       \
	X(int, close_range, (unsigned int, unsigned int, int))                                     \
	X(void, closefrom, (int))                                                                  \
	X(int, connect, (int, const struct sockaddr *, socklen_t))                                 \
	X(int, dup, (int))                                                                         \
	X(int, dup2, (int, int))                                                                   \
	X(int, dup3, (int, int, int))                                                              \
	X(int, epoll_ctl, (int, int, int, struct epoll_event *))                                   \
	X(int, epoll_pwait, (int, struct epoll_event *, int, int, const sigset_t *))               \
	X(int, epoll_pwait2,                                                                       \
	  (int, struct epoll_event *, int, const struct timespec *, const sigset_t *))             \
	X(int, execve, (const char *, char *const *, char *const *))                               \
	X(int, execvpe, (const char *, char *const *, char *const *))                              \
	X(int, fexecve, (int, char *const *, char *const *))                                       \
	X(void, _exit, (int))                                                                      \
	X(int, fcntl, (int, int, ...))                                                             \
	X(FILE *, fdopen, (int, const char *))                                                     \
	X(int, getsockopt, (int, int, int, void *, socklen_t *))                                   \
	X(int, ioctl, (int, unsigned long, ...))                                                   \
	X(int, listen, (int, int))                                                                 \
	X(int, ppoll, (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *))        \
	X(FILE *, popen, (const char *, const char *))                                             \
	X(int, posix_spawn,                                                                        \
	  (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,   \
	   char *const *, char *const *))                                                          \
	X(int, posix_spawnp,                                                                       \
	  (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,   \
	   char *const *, char *const *))                                                          \
	X(ssize_t, preadv2, (int, const struct iovec *, int, off_t, int))                          \
	X(ssize_t, pwritev2, (int, const struct iovec *, int, off_t, int))                         \
	X(ssize_t, read, (int, void *, size_t))                                                    \
	X(ssize_t, readv, (int, const struct iovec *, int))                                        \
	X(ssize_t, recvfrom, (int, void *, size_t, int, struct sockaddr *, socklen_t *))           \
	X(int, recvmmsg, (int, struct mmsghdr *, unsigned int, int, struct timespec *))            \
	X(ssize_t, recvmsg, (int, struct msghdr *, int))                                           \
	X(int, select, (int, fd_set *, fd_set *, fd_set *, struct timeval *))                      \
	X(int, pselect,                                                                            \
	  (int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *))          \
	X(ssize_t, sendfile, (int, int, off_t *, size_t))                                          \
	X(int, sendmmsg, (int, struct mmsghdr *, unsigned int, int))                               \
	X(ssize_t, sendmsg, (int, const struct msghdr *, int))                                     \
	X(ssize_t, sendto, (int, const void *, size_t, int, const struct sockaddr *, socklen_t))   \
	X(int, setsockopt, (int, int, int, const void *, socklen_t))                               \
	X(int, shutdown, (int, int))                                                               \
	X(int, socket, (int, int, int))                                                            \
	X(int, spawn_dup2, (posix_spawn_file_actions_t *, int, int))                               \
	X(int, system, (const char *))                                                             \
	X(long, syscall, (long, ...))                                                              \
	X(ssize_t, splice, (int, off64_t *, int, off64_t *, size_t, unsigned int))                 \
	X(int, vdprintf, (int, const char *, va_list))                                             \
	X(int, vdprintf_chk, (int, int, const char *, va_list))                                    \
	X(ssize_t, write, (int, const void *, size_t))                                             \
	X(ssize_t, writev, (int, const struct iovec *, int))

struct bws_real {
	bool loaded;
#define BWS_REAL_MEMBER(result, name, arguments) result(*name) arguments;
	BWS_REAL_ALL(BWS_REAL_MEMBER)
#undef BWS_REAL_MEMBER
};

extern struct bws_real bws_real;
void bws_real_load(void);

/* Other libraries' constructors may call before ours. */
static inline const struct bws_real *bws_r(void)
{
	if (!bws_real.loaded)
		bws_real_load();
	return &bws_real;
}

#endif
