/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A program that does not end: test_guest_limits.py looks at what is told of it. */
#include "ktest.h"

static void test_that_ends(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);

	kt_close(&p);
}

static void test_that_hangs(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	char byte;

	recv(p.b, &byte, 1, 0); /* nobody sends it anything */
	kt_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_that_ends),
		kt_test(test_that_hangs),
	};

	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
