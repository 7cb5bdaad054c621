// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Two processes for a test: see sides.h. */
#include "sides.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

static int channel = -1;

_Noreturn void sides_fail(const char *file, int line, const char *what, long value)
{
	fprintf(stderr, "%s:%d: %s: %ld\n", file, line, what, value);
	_exit(1);
}

static pid_t side_start(side_fn fn, bool first, const int pair[2])
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(pair[!first]);
	channel = pair[first];
	pair_place(first ? PAIR_A : PAIR_B);
	fn(first);
	fflush(NULL);
	_exit(0);
}

void sides_run(side_fn fn)
{
	int pair[2], status[2];
	pid_t pid[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	fflush(NULL);
	for (int i = 0; i < 2; i++) {
		pid[i] = side_start(fn, i == 1, pair);
		assert_true(pid[i] > 0);
	}
	close(pair[0]);
	close(pair[1]);
	for (int i = 0; i < 2; i++)
		assert_int_equal(waitpid(pid[i], &status[i], 0), pid[i]);
	assert_int_equal(status[0], 0);
	assert_int_equal(status[1], 0);
}

void sides_give(const void *bytes, size_t n)
{
	SIDE_IS(send(channel, bytes, n, MSG_NOSIGNAL), n);
}

void sides_take(void *bytes, size_t n)
{
	SIDE_IS(recv(channel, bytes, n, MSG_WAITALL), n);
}

void sides_meet(void)
{
	char byte = 0;

	sides_give(&byte, 1);
	sides_take(&byte, 1);
}
