/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs a program in a guest for so many seconds at most, and no longer than what is left of the
 * guest's own time. One that has not ended by then is named on the console, with the stacks of all
 * processes, and killed. All of its group end with it, also when it ends by itself: who runs next
 * does not find them. How many seconds it has is told it by GUEST_LEFT_S.
 *
 *	guest-limit SECONDS PROGRAM [ARG ...]
 *
 * Its status is the program's, or 128 and its signal; 124: it was killed, or there was no time for
 * it; 125: it could not be killed.
 */
#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tell.h"

#define STATUS_LATE  124
#define STATUS_STUCK 125
#define DIES_WITHIN  20 /* seconds */
#define RESERVE	     30 /* the same, for telling and killing */

/* Has it ended within so many seconds? SIGCHLD is blocked. */
static bool ends_within(pid_t pid, long seconds, int *status)
{
	struct timespec now, left;
	sigset_t child;
	long end;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	clock_gettime(CLOCK_MONOTONIC, &now);
	end = now.tv_sec + seconds;
	while (waitpid(pid, status, WNOHANG) == 0) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		left = (struct timespec){.tv_sec = end - now.tv_sec};
		if (left.tv_sec <= 0)
			return false;
		sigtimedwait(&child, NULL, &left);
	}
	return true;
}

/* What a program has left behind is killed, and waited for. */
static void end_group(pid_t group)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	struct timespec now;
	long end;

	clock_gettime(CLOCK_MONOTONIC, &now);
	end = now.tv_sec + DIES_WITHIN;
	while (kill(-group, SIGKILL) == 0 && now.tv_sec < end) {
		nanosleep(&pause, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
	}
}

/* Of `most` those that are left: the guest is to have ended BEOWIRE_LIMIT_S after its boot. */
static long left_of(long most)
{
	const char *limit = getenv("BEOWIRE_LIMIT_S");
	struct timespec now;
	long left;

	if (!limit || !*limit)
		return most;
	clock_gettime(CLOCK_MONOTONIC, &now); /* since the boot */
	left = strtol(limit, NULL, 10) - RESERVE - now.tv_sec;
	return left < most ? left : most;
}

int main(int argc, char **argv)
{
	char why[200];
	sigset_t child, before;
	int status = 0;
	long seconds;
	pid_t pid;

	if (argc < 3 || (seconds = strtol(argv[1], NULL, 10)) <= 0) {
		fprintf(stderr, "usage: guest-limit SECONDS PROGRAM [ARG ...]\n");
		return 2;
	}
	seconds = left_of(seconds);
	if (seconds <= 0) {
		fprintf(stderr, "it did not run: the guest's time was over\n");
		return STATUS_LATE;
	}
	snprintf(why, sizeof(why), "%ld", seconds);
	setenv("GUEST_LEFT_S", why, 1);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before);
	pid = fork();
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		setpgid(0, 0);
		execvp(argv[2], argv + 2);
		fprintf(stderr, "%s: %s\n", argv[2], strerror(errno));
		_exit(127);
	}
	if (ends_within(pid, seconds, &status)) {
		end_group(pid);
		return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	}
	snprintf(why, sizeof(why), "%.100s did not end within %ld s", basename(argv[2]), seconds);
	guest_tell(why);
	kill(-pid, SIGKILL);
	if (ends_within(pid, DIES_WITHIN, &status))
		return STATUS_LATE;
	snprintf(why, sizeof(why), "%.100s cannot be killed", basename(argv[2]));
	guest_tell(why);
	return STATUS_STUCK;
}
