/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs of 32 bits: what they see of the kernel module has one layout in both, and every ioctl
 * does for them what it does for others. program32.c is such a program.
 */
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ktest.h"

#define MIB (1u << 20)

static uint8_t bytes[MIB];
static char path[PATH_MAX];

static int run(int fd)
{
	char number[16];
	int status;
	pid_t pid;

	snprintf(number, sizeof(number), "%d", fd);
	pid = fork();
	if (pid == 0) {
		execl(path, path, number, NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void test_every_ioctl(void **state)
{
	const struct beowire_info info = {.flags = BEOWIRE_SEND_ASYNC};
	struct kt_pair p = kt_pair(SOCK_RDM);

	memset(bytes, 5, sizeof(bytes));
	assert_int_equal(kt_send_info(p.a, bytes, MIB, &p.at_b, &info, 0), 0);
	kt_enter("b");
	assert_int_equal(run(p.b), 0); /* else the number of its check that failed */
	kt_close(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_every_ioctl),
	};

	snprintf(path, sizeof(path), "%s/program32", dirname(strdup(argv[0])));
	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
