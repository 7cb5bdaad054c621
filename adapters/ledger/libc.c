/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a program and its transport ask of the kernel by way of libc: calls of the program's own
 * thread and of all others, and how long the first was in calls that may sleep. What libc calls
 * itself is not seen.
 */
#include <dlfcn.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "ledger.h"

#define KERNEL_CALLS(X)                                                                            \
	X(sched_yield)                                                                             \
	X(poll)                                                                                    \
	X(ppoll)                                                                                   \
	X(epoll_wait)                                                                              \
	X(read)                                                                                    \
	X(readv)                                                                                   \
	X(write)                                                                                   \
	X(writev)                                                                                  \
	X(send)                                                                                    \
	X(sendto)                                                                                  \
	X(sendmsg)                                                                                 \
	X(sendmmsg)                                                                                \
	X(recv)                                                                                    \
	X(recvmsg)                                                                                 \
	X(recvmmsg)

#define MEMBER(name) CALL_##name,
enum kernel_call { KERNEL_CALLS(MEMBER) KERNEL_CALL_COUNT };

#define NAME(name) #name,
static const char *const kernel_names[] = {KERNEL_CALLS(NAME)};

static struct {
	_Atomic uint64_t program, others;
} kernel_counts[KERNEL_CALL_COUNT];
static uint64_t asleep_ns; /* of the program's thread */

void ledger_libc_print(FILE *file)
{
	fprintf(file, ", \"asleep_ns\": %llu, \"kernel\": {", (unsigned long long)asleep_ns);
	for (int i = 0; i < KERNEL_CALL_COUNT; i++)
		fprintf(file, "%s\"%s\": [%llu, %llu]", i ? ", " : "", kernel_names[i],
			(unsigned long long)kernel_counts[i].program,
			(unsigned long long)kernel_counts[i].others);
	fprintf(file, "}");
}

/* The function of this name that libc has. */
static void *next(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);

	if (!function)
		abort();
	return function;
}

static void asked(enum kernel_call call)
{
	if (!ledger_open)
		return;
	if (ledger_program)
		atomic_fetch_add_explicit(&kernel_counts[call].program, 1, memory_order_relaxed);
	else
		atomic_fetch_add_explicit(&kernel_counts[call].others, 1, memory_order_relaxed);
}

#define ASKED(type, name, parameters, arguments)                                                   \
	EXPORT type name parameters                                                                \
	{                                                                                          \
		static type(*_Atomic function) parameters;                                         \
		type(*known) parameters = function;                                                \
                                                                                                   \
		if (!known)                                                                        \
			function = known = (type(*) parameters)next(#name);                        \
		asked(CALL_##name);                                                                \
		return known arguments;                                                            \
	}

/* The same, which may sleep. */
#define SLEEPING(type, name, parameters, arguments)                                                \
	EXPORT type name parameters                                                                \
	{                                                                                          \
		static type(*_Atomic function) parameters;                                         \
		type(*known) parameters = function;                                                \
		uint64_t at = ledger_program ? ledger_now_ns() : 0;                                \
		type result;                                                                       \
                                                                                                   \
		if (!known)                                                                        \
			function = known = (type(*) parameters)next(#name);                        \
		asked(CALL_##name);                                                                \
		result = known arguments;                                                          \
		if (ledger_program)                                                                \
			asleep_ns += ledger_now_ns() - at;                                         \
		return result;                                                                     \
	}

ASKED(int, sched_yield, (void), ())
SLEEPING(int, poll, (struct pollfd * fds, nfds_t n, int timeout_ms), (fds, n, timeout_ms))
SLEEPING(int, ppoll,
	 (struct pollfd * fds, nfds_t n, const struct timespec *timeout, const sigset_t *signals),
	 (fds, n, timeout, signals))
SLEEPING(int, epoll_wait, (int fd, struct epoll_event *events, int n, int timeout_ms),
	 (fd, events, n, timeout_ms))
ASKED(ssize_t, read, (int fd, void *data, size_t n), (fd, data, n))
ASKED(ssize_t, readv, (int fd, const struct iovec *parts, int n), (fd, parts, n))
ASKED(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n))
ASKED(ssize_t, writev, (int fd, const struct iovec *parts, int n), (fd, parts, n))
ASKED(ssize_t, send, (int fd, const void *data, size_t n, int flags), (fd, data, n, flags))
ASKED(ssize_t, sendto,
      (int fd, const void *data, size_t n, int flags, const struct sockaddr *to, socklen_t length),
      (fd, data, n, flags, to, length))
ASKED(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
ASKED(int, sendmmsg, (int fd, struct mmsghdr *messages, unsigned int n, int flags),
      (fd, messages, n, flags))
ASKED(ssize_t, recv, (int fd, void *data, size_t n, int flags), (fd, data, n, flags))
ASKED(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
ASKED(int, recvmmsg,
      (int fd, struct mmsghdr *messages, unsigned int n, int flags, struct timespec *timeout),
      (fd, messages, n, flags, timeout))
