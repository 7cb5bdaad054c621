/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Preloaded into a program: SIGINT comes just before it goes to sleep in ppoll() without a
 * limit for the first time: what only looks at a flag misses it then.
 */
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

typedef int sleeper(struct pollfd *fds, nfds_t n, const struct timespec *span,
		    const sigset_t *mask);

__attribute__((visibility("default"))) int ppoll(struct pollfd *fds, nfds_t n,
						 const struct timespec *span, const sigset_t *mask)
{
	static atomic_flag sent = ATOMIC_FLAG_INIT;
	sleeper *real = (sleeper *)dlsym(RTLD_NEXT, "ppoll");

	if (!span && gettid() == getpid() && !atomic_flag_test_and_set(&sent))
		kill(getpid(), SIGINT);
	return real(fds, n, span, mask);
}
