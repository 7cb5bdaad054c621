/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See kuser.h. */
#include "kuser.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PARAMETERS "/sys/module/beowire/parameters/"

int kt_set(const char *name, const char *text)
{
	char path[64];
	int fd, error = 0;

	snprintf(path, sizeof(path), "/proc/sys/net/beowire/%s", name);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		error = -errno;
	close(fd);
	return error;
}

void kt_settings(const char *name, const char *value)
{
	const char *const nodes[] = {"a", "b"};
	int before = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	assert_true(before >= 0);
	for (int i = 0; i < 2; i++) {
		kt_enter(nodes[i]);
		assert_int_equal(kt_set(name, value), 0);
	}
	assert_int_equal(setns(before, CLONE_NEWNET), 0);
	close(before);
}

int kt_set_without_admin(const char *name, const char *text)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		return 200;
	data[0].effective &= ~(1u << CAP_NET_ADMIN);
	data[0].permitted &= ~(1u << CAP_NET_ADMIN);
	if (syscall(SYS_capset, &head, data))
		return 201;
	return -kt_set(name, text);
}

uint64_t kt_parameter(const char *name)
{
	char path[96];
	uint64_t value;
	FILE *f;

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%" SCNu64, &value), 1);
	fclose(f);
	return value;
}

/* Those that the running test has changed, as they were. */
static struct {
	const char *name;
	uint64_t before;
} changed[8];
static unsigned changes;

static void set_parameter(const char *name, uint64_t value)
{
	kt_shell("echo %" PRIu64 " >" PARAMETERS "%s", value, name);
}

void kt_set_parameter(const char *name, uint64_t value)
{
	unsigned i = 0;

	while (i < changes && strcmp(changed[i].name, name))
		i++;
	if (i == changes) {
		assert_in_range(changes, 0, sizeof(changed) / sizeof(*changed) - 1);
		changed[i].name = name;
		changed[i].before = kt_parameter(name);
		changes++;
	}
	set_parameter(name, value);
}

void kt_restore_parameters(void)
{
	for (; changes; changes--)
		if (kt_parameter(changed[changes - 1].name) != changed[changes - 1].before)
			set_parameter(changed[changes - 1].name, changed[changes - 1].before);
}

int kt_open_to_all(void **state)
{
	kt_settings("group_range", "1000 2000");
	return kt_attach(state);
}

/* Closed sockets hold memory until their peers have everything: what is held must not shrink while
 * a test counts because those of an earlier one are done. */
int kt_begin_counting(void **state)
{
	kt_becomes(kt_parameter("held_bytes"), 0, 0);
	return 0;
}

/* Processes of the running test that have not ended. */
static pid_t begun[16];

static pid_t *begun_at(pid_t pid)
{
	unsigned i = 0;

	while (i < sizeof(begun) / sizeof(*begun) && begun[i] != pid)
		i++;
	assert_in_range(i, 0, sizeof(begun) / sizeof(*begun) - 1);
	return &begun[i];
}

pid_t kt_begin_as(uid_t user, gid_t group, gid_t other, int (*f)(void *), void *arg)
{
	pid_t *place = begun_at(0), pid = fork();

	if (pid == 0) {
		if (setgroups(1, &other) || setgid(group) || setuid(user))
			_exit(99);
		_exit(f(arg));
	}
	assert_true(pid > 0);
	*place = pid;
	return pid;
}

int kt_end_of(pid_t pid)
{
	int status = 0;

	waitpid(pid, &status, 0);
	*begun_at(pid) = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void kt_end_begun(void)
{
	for (unsigned i = 0; i < sizeof(begun) / sizeof(*begun); i++) {
		if (begun[i] == 0)
			continue;
		kill(begun[i], SIGKILL);
		waitpid(begun[i], NULL, 0);
		begun[i] = 0;
	}
}

int kt_as(uid_t user, int (*f)(void *), void *arg)
{
	return kt_end_of(kt_begin_as(user, user, user, f, arg));
}
