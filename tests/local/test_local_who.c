/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Each place at which the local link asks whether a process is of its user. The kernel says the
 * same at all of them, so that one hides what another one lacks: here the answer of one is the
 * test's.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "discard.h"
#include "node.h"
#include "who.h"

static int asked, stranger_at; /* questions so far; the one to which the answer is no */

int __wrap_bw_who_may(int fd, struct ucred *who);
int __real_bw_who_may(int fd, struct ucred *who);

int __wrap_bw_who_may(int fd, struct ucred *who)
{
	int error = __real_bw_who_may(fd, who);

	return ++asked == stranger_at ? -EACCES : error;
}

enum { DIAL = 1, ACCEPT, HELLO, ANSWER, QUESTIONS = ANSWER };

static struct node a, b;

/* b calls a, and the answer to this question is no. What it connected with, or why not. */
static int call(int at)
{
	int error;

	node_open(&a, 0, 0);
	node_open(&b, 0, 0);
	asked = 0;
	stranger_at = at;
	error = bw_local_connect(b.link, a.engine, a.incarnation, NULL, &b.peer);
	if (!error)
		node_settle(&a, &b);
	return error;
}

static void hang_up(void)
{
	stranger_at = 0;
	node_close(&a);
	node_close(&b);
}

static void who__is_asked_at_each_step(void **state)
{
	assert_int_equal(call(0), 0);
	assert_int_equal(asked, QUESTIONS);
	assert_int_equal(bw_local_counters(a.link)->turned_away, 0);
	hang_up();
}

static void who__is_called(void **state)
{
	assert_int_equal(call(DIAL), -EACCES);
	assert_int_equal(asked, DIAL);
	hang_up();
}

/* Neither that nor its hello: no peer is made of a stranger, who is told why. */
static void is_turned_away(int at)
{
	assert_int_equal(call(at), 0);
	assert_string_equal(node_story(&a), "");
	assert_string_equal(node_story(&b), "down EACCES | ");
	assert_int_equal(bw_local_counters(a.link)->turned_away, 1);
	hang_up();
}

static void who__calls(void **state)
{
	is_turned_away(HELLO);
}

/* Its connection is closed before it has read why: the kernel tells that first. */
static void who__is_closed_with_its_hello_unread(void **state)
{
	bw_discard_at_once(); /* from now on, in this program */
	is_turned_away(ACCEPT);
}

static void who__answers(void **state)
{
	assert_int_equal(call(ANSWER), 0);
	assert_int_equal(asked, ANSWER);
	assert_string_equal(node_story(&b), "down EACCES | ");
	hang_up();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who__is_asked_at_each_step),
		cmocka_unit_test(who__is_called),
		cmocka_unit_test(who__calls),
		cmocka_unit_test(who__answers),
		cmocka_unit_test(who__is_closed_with_its_hello_unread),
	};

	return cmocka_run_group_tests_name("local link's callers", tests, NULL, NULL);
}
