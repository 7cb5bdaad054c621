/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* execl() and its kin hand on their words and variables. Runs with the preload library. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SUM "exit $(($1 + $2 + ${3:-0}))"

/* The exit status of a child that becomes another program by `body`. */
static int status_of(void (*body)(void))
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		body();
		_exit(99);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void by_path(void)
{
	execl("/bin/sh", "sh", "-c", SUM, "sh", "3", "4", (char *)NULL);
}

static void by_name(void)
{
	execlp("sh", "sh", "-c", SUM, "sh", "10", "20", "30", (char *)NULL);
}

static void with_variables(void)
{
	char word[] = "WORD=17";
	char *const variables[] = {word, NULL};

	execle("/bin/sh", "sh", "-c", "exit $((WORD + $1))", "sh", "5", (char *)NULL, variables);
}

static void nowhere(void)
{
	if (execl("/nowhere", "nowhere", (char *)NULL) == -1)
		_exit(5);
}

static void words__arrive(void **state)
{
	assert_int_equal(status_of(by_path), 7);
	assert_int_equal(status_of(by_name), 60);
	assert_int_equal(status_of(with_variables), 22);
	assert_int_equal(status_of(nowhere), 5);
}

/* Else the C library's own functions are what was tried. */
static void library__is_there(void **state)
{
	assert_non_null(dlsym(RTLD_DEFAULT, "beowire_sockets_way"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(library__is_there),
		cmocka_unit_test(words__arrive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
