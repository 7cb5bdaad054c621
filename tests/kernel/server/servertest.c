/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "servertest.h"

const char *st_program;

void st_enter(const char *node)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/var/run/netns/%s", node);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(setns(fd, CLONE_NEWNET), 0);
	close(fd);
}

/* A server of this node that has said that it serves this protocol. */
pid_t st_serve_protocol(const char *node, const char *number, const char *protocol,
			const char *extra)
{
	int out[2];
	char word[16] = "";
	pid_t pid;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	st_enter(node);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(out[1], 1);
		execl(st_program, st_program, "-n", number, "-i", "eth0", protocol, extra, NULL);
		_exit(127);
	}
	close(out[1]);
	assert_true(read(out[0], word, sizeof(word) - 1) > 0);
	assert_memory_equal(word, "serving", 7);
	close(out[0]);
	return pid;
}

pid_t st_serve(const char *node, const char *number, const char *extra)
{
	return st_serve_protocol(node, number, "datagram", extra);
}

void st_end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

void st_stop(pid_t pid)
{
	int status;

	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
}

int st_open_socket(const char *node, int number)
{
	st_enter(node);
	return socket(AF_BEOWIRE, SOCK_DGRAM | SOCK_CLOEXEC, number);
}

int st_bind_to(int fd, uint16_t port)
{
	struct sockaddr_beowire a = {.sbw_family = AF_BEOWIRE, .sbw_port = port};

	return bind(fd, (struct sockaddr *)&a, sizeof(a));
}

int st_bound(const char *node, uint16_t port)
{
	int fd = st_open_socket(node, NUMBER);

	assert_true(fd >= 0);
	assert_int_equal(st_bind_to(fd, port), 0);
	return fd;
}

/* Where others reach it. */
struct sockaddr_beowire st_at(int fd)
{
	struct sockaddr_beowire a;
	socklen_t len = sizeof(a);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	assert_int_equal(len, sizeof(a));
	a.sbw_ifindex = 0;
	return a;
}

ssize_t st_send_to(int fd, const void *p, size_t n, const struct sockaddr_beowire *to)
{
	return sendto(fd, p, n, 0, (const struct sockaddr *)to, sizeof(*to));
}

/* What /proc/net/beowire/servers tells of this namespace's server of the highest number. */
uint64_t st_listed(int column)
{
	char line[256];
	uint64_t v[9] = {0};
	char name[32];
	FILE *f = fopen("/proc/thread-self/net/beowire/servers", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
	}
	assert_int_equal(sscanf(line, "%lu %31s %lu %lu %lu %lu %lu %lu", &v[0], name, &v[2], &v[3],
				&v[4], &v[5], &v[6], &v[7]),
			 8);
	fclose(f);
	return v[column];
}
