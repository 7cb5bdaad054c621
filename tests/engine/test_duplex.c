/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is received while own data are under way is told from what comes before and after them. */
#include "groups.h"
#include "host.h"

#define SIZE 20000

static void at_once__both_counted(void **state)
{
	meet(A, B);
	post(A, B, 1, SIZE);
	post(B, A, 2, SIZE);
	run(BW_S);
	assert_int_equal(count(A)->duplex_messages, 1);
	assert_int_equal(count(B)->duplex_messages, 1);
	assert_true(count(A)->duplex_payload > SIZE / 2);
	assert_true(count(B)->duplex_payload > SIZE / 2);
}

static void in_turn__nothing_counted(void **state)
{
	meet(A, B);
	for (int i = 0; i < 10; i++) {
		post(A, B, 1, SIZE);
		run(BW_S);
		post(B, A, 2, SIZE);
		run(BW_S);
	}
	assert_int_equal(count(A)->rx_messages, 10);
	assert_int_equal(count(A)->duplex_messages + count(B)->duplex_messages, 0);
	assert_int_equal(count(A)->duplex_payload + count(B)->duplex_payload, 0);
}

/* The answer leaves before the acknowledgement of what it answers, and carries it. */
static void answer__not_at_once(void **state)
{
	meet(A, B);
	for (int i = 0; i < 10; i++) {
		post(A, B, 1, 8);
		flush(A);
		deliver(0);
		post(B, A, 2, 8);
		flush(B);
		deliver(0);
	}
	assert_int_equal(count(A)->rx_messages, 10);
	assert_int_equal(count(A)->duplex_messages, 0);
}

/* Eight bytes under way do not make a long message one that came at once. */
static void little_sent__counts_little(void **state)
{
	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	post(B, A, 2, SIZE);
	run(BW_S);
	assert_int_equal(count(A)->rx_payload, SIZE);
	assert_true(count(A)->duplex_payload <= 8);
}

/* What was under way to a dead peer is under way no more. */
static void dead_peer__leaves_nothing(void **state)
{
	meet(A, B);
	meet(A, C);
	post(A, B, 1, SIZE);
	flush(A);
	assert_true(engine(A)->duplex.inflight > 0);
	node_kill(B);
	run(62 * BW_S);
	assert_int_equal(engine(A)->duplex.inflight, 0);
	post(C, A, 2, SIZE);
	run(BW_S);
	assert_int_equal(count(A)->rx_payload, SIZE);
	assert_int_equal(count(A)->duplex_payload, 0);
}

int duplex_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(at_once__both_counted),	 TEST(in_turn__nothing_counted),
		TEST(answer__not_at_once),	 TEST(little_sent__counts_little),
		TEST(dead_peer__leaves_nothing),
	};

	return cmocka_run_group_tests_name("duplex", tests, NULL, NULL);
}
