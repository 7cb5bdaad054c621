// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Closing an endpoint with something under way to a peer that does not take it: that is waited for,
 * once, and not for long.
 */
#include <time.h>

#include "beowire.h"
#include "pair.h"

#define LONG	 (1 << 20)
#define DEAD_S	 2
#define MESSAGES 50
#define NS_PER_S 1000000000.0
#define SLACK_S	 1.0 /* of a busy machine */

static struct bw_ep *bad;
static fi_addr_t bad_addr; /* as a knows it */
static char *tx;
static _Atomic unsigned int heard;

static void on_message(void *arg, const struct bw_message *m)
{
	heard++;
}

static void on_sent(void *arg, void *op, int status)
{
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
}

static int setup(void **state)
{
	setenv("BEOWIRE_DEAD_TIMEOUT", "2", 1);
	pair_setup(state);
	unsetenv("BEOWIRE_DEAD_TIMEOUT");
	tx = calloc(1, LONG);
	heard = 0;
	return 0;
}

static int teardown(void **state)
{
	bw_ep_close(bad, 0);
	/* to be closed once more */
	assert_int_equal(fi_endpoint(pair_domain, pair_info, &a.ep, NULL), 0);
	pair_teardown(state);
	free(tx);
	return 0;
}

/* A peer that is not driven by its program; the helper acknowledges what comes, and no more. */
static void meet(bool helper)
{
	static const struct bw_handlers handlers = {
		.message = on_message, .sent = on_sent, .pulled = on_pulled, .peer_down = on_down};
	struct bw_ep_attr attr = {.handlers = &handlers, .no_helper = !helper};
	struct bw_addr addr;

	assert_int_equal(bw_ep_open(&bad, &attr, NULL), 0);
	bw_ep_addr(bad, &addr);
	assert_int_equal(fi_av_insert(a.av, &addr, 1, &bad_addr, 0, NULL), 1);
	pair_retry(fi_inject(a.ep, "hello", 5, bad_addr));
	while (!heard) {
		pair_progress();
		bw_progress(bad);
	}
}

/* Seconds that closing takes. */
static double close_a(void)
{
	struct timespec began, ended;

	clock_gettime(CLOCK_MONOTONIC, &began);
	assert_int_equal(fi_close(&a.ep->fid), 0);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	return (double)(ended.tv_sec - began.tv_sec) +
	       (double)(ended.tv_nsec - began.tv_nsec) / NS_PER_S;
}

/* It acknowledges a write, but neither fetches its data nor answers. */
static void close__waits_once_for_who_does_not_answer(void **state)
{
	double s;

	meet(true);
	pair_retry(fi_write(a.ep, tx, LONG, NULL, bad_addr, 0, 42, tx));
	s = close_a();
	assert_true(s > DEAD_S / 2.0 && s < DEAD_S + SLACK_S);
}

/* The same of a long message, for which the provider itself waits for nothing. */
static void close__waits_once_for_who_does_not_fetch(void **state)
{
	double s;

	meet(true);
	pair_retry(fi_send(a.ep, tx, LONG, NULL, bad_addr, NULL));
	s = close_a();
	assert_true(s > DEAD_S / 2.0 && s < DEAD_S + SLACK_S);
}

/* It has stopped. */
static void close__waits_once_for_who_has_stopped(void **state)
{
	double s;

	meet(false);
	for (int i = 0; i < MESSAGES; i++)
		pair_retry(fi_write(a.ep, tx, LONG, NULL, bad_addr, 0, 42, tx));
	s = close_a();
	assert_true(s > DEAD_S / 2.0 && s < DEAD_S + SLACK_S);
}

/* Who takes all is waited for no longer than that takes. */
static void close__of_what_has_arrived_is_at_once(void **state)
{
	meet(true);
	assert_true(close_a() < SLACK_S);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(close__waits_once_for_who_does_not_answer),
		TEST(close__waits_once_for_who_does_not_fetch),
		TEST(close__waits_once_for_who_has_stopped),
		TEST(close__of_what_has_arrived_is_at_once),
	};

	return cmocka_run_group_tests_name("closing", tests, NULL, NULL);
}
