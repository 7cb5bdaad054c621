/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that use io_uring(7). What a ring does with a connection goes past this library, which
 * cannot know that it is done: the connections of such a program stay on TCP, unless the user says
 * that its rings are for files. libuv (Node.js) has a ring for calls of epoll_ctl() in batches; it
 * does without where there is none, so it is told that there is none.
 */
#include "rings.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "core.h"
#include "fds.h"
#include "owned.h"
#include "real.h"

#define BWS_RINGS_SHARE 50 /* looks take one part of so many of the time */
#define BWS_RINGS_ARGS	6

static bool bws_rings_look(void)
{
	union {
		struct dirent64 first;
		char bytes[4096];
	} got;
	bool found = false;
	int dir = bws_own_open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ssize_t n;

	while (dir >= 0 && !found && (n = getdents64(dir, got.bytes, sizeof(got.bytes))) > 0) {
		for (ssize_t at = 0; at < n && !found;) {
			struct dirent64 *one = (struct dirent64 *)(got.bytes + at);

			found = bws_leads_to(dir, one->d_name, "anon_inode:[io_uring]");
			at += one->d_reclen;
		}
	}
	if (dir >= 0)
		bws_own_close(dir);
	return found;
}

static struct {
	uint64_t next; /* time of the next look: it is not looked before */
	bool here, asked;
} bws_rings;

uint64_t bws_rings_due(void)
{
	return bws_rings.asked ? bws_rings.next : UINT64_MAX;
}

/* Of this thread, in ns: that others had the processor meanwhile is no cost of a look. */
static uint64_t bws_rings_cost(void)
{
	struct timespec t = {0};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * BWS_S + (uint64_t)t.tv_nsec;
}

bool bws_rings_here(uint64_t now)
{
	uint64_t cost;

	if (bws_rings.here || bws.rings_for_files)
		return bws_rings.here;
	bws_rings.asked = now < bws_rings.next;
	if (bws_rings.asked)
		return false;
	cost = bws_rings_cost();
	bws_rings.here = bws_rings_look();
	bws_rings.next = bw_clock_now() + BWS_RINGS_SHARE * (bws_rings_cost() - cost);
	return bws_rings.here;
}

/*
 * Is the caller libuv, or a program with it? Python loads libraries for themselves alone
 * (RTLD_LOCAL): what libuv in one of them exports is seen by that library's own handle only.
 */
static bool bws_rings_of_libuv(const void *caller)
{
	Dl_info calls, has;
	void *library, *found;

	if (dlsym(RTLD_DEFAULT, "uv_loop_init"))
		return true;
	if (!dladdr(caller, &calls))
		return false;
	library = dlopen(calls.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!library)
		return false;
	found = dlsym(library, "uv_loop_init");
	dlclose(library);
	return found && dladdr(found, &has) && has.dli_fbase == calls.dli_fbase;
}

BWS_CALL long syscall(long number, ...)
{
	long args[BWS_RINGS_ARGS];
	va_list more;

	va_start(more, number);
	for (int i = 0; i < BWS_RINGS_ARGS; i++)
		args[i] = va_arg(more, long);
	va_end(more);
	if (number == SYS_io_uring_setup && bws.on &&
	    bws_rings_of_libuv(__builtin_return_address(0))) {
		errno = ENOSYS;
		return -1;
	}
	return bws_r()->syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}
