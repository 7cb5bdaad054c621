/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See kuser.h. */
#include "kuser.h"

#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

void kt_settings(const char *name, const char *value)
{
	const char *const nodes[] = {"a", "b"};

	for (int i = 0; i < 2; i++)
		kt_shell("ip netns exec %s sh -c 'echo %s >/proc/sys/net/beowire/%s'", nodes[i],
			 value, name);
}

int kt_open_to_all(void **state)
{
	kt_settings("group_range", "1000 2000");
	return kt_attach(state);
}

pid_t kt_begin_as(uid_t user, gid_t group, gid_t other, int (*f)(void *), void *arg)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (setgroups(1, &other) || setgid(group) || setuid(user))
			_exit(99);
		_exit(f(arg));
	}
	return pid;
}

int kt_end_of(pid_t pid)
{
	int status = 0;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int kt_as(uid_t user, int (*f)(void *), void *arg)
{
	return kt_end_of(kt_begin_as(user, user, user, f, arg));
}
