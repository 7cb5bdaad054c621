/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages of several frames that arrive where the program wants them, and long ones that do not
 * wait for that: two endpoints of one process, over udp. */
#include "endpoint.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "place.h"

#define LONG  60000  /* bytes; more frames than a row has */
#define SHORT 400    /* one frame */
#define AHEAD 150000 /* longer than what is copied; its credit is given to one peer */

static struct bw_ep *a, *b;
static struct told at_a, at_b;
static bw_peer_no to_b;
static uint8_t from[BW_LONG_LIMIT + 1], to[AHEAD];

static int open_both(void **state)
{
	setenv("BEOWIRE_MTU", "1500", 1);
	a = endpoint_open("udp", &at_a);
	b = endpoint_open("udp", &at_b);
	to_b = endpoint_find(a, b);
	assert_int_equal(bw_send(a, to_b, 1, 1, 1, "word", 4, BW_SEND_ACKED, &to_b), 0);
	endpoint_await(a, b, &at_a.sents, 1);
	at_b = (struct told){.place = to};
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 7 + i / 251);
	memset(to, 0, sizeof(to));
	return 0;
}

static int close_both(void **state)
{
	if (a)
		bw_ep_close(a, 0);
	if (b)
		bw_ep_close(b, 0);
	return 0;
}

static void place__is_where_a_message_goes(void **state)
{
	assert_int_equal(bw_send(a, to_b, 1, 2, 3, from, LONG, BW_SEND_EAGER, NULL), 1);
	memset(from, 0, LONG); /* it was the program's again */
	endpoint_await(a, b, &at_b.pulleds, 1);
	for (int i = 0; i < LONG; i++)
		assert_int_equal(to[i], (uint8_t)(i * 7 + i / 251));
	assert_int_equal(at_b.status, 0);
	assert_int_equal(at_b.len, LONG);
	assert_int_equal(at_b.asked, 1);
	assert_int_equal(at_b.messages, 0);
	assert_int_equal(b->placed, 1);
	assert_null(b->placing);
}

static void place__is_not_asked_for_what_fits_a_frame(void **state)
{
	assert_int_equal(bw_send(a, to_b, 1, 2, 3, from, SHORT, 0, NULL), 1);
	endpoint_await(a, b, &at_b.messages, 1);
	assert_int_equal(at_b.asked, 0);
}

static void place__none_is_an_answer(void **state)
{
	at_b.place = NULL;
	assert_int_equal(bw_send(a, to_b, 1, 2, 3, from, LONG, BW_SEND_EAGER, NULL), 1);
	endpoint_await(a, b, &at_b.messages, 1);
	assert_int_equal(at_b.asked, 1);
	assert_int_equal(at_b.pulleds, 0);
	assert_null(b->placing);
}

/* Of a message that never becomes whole the program is told when its peer is gone, before that. */
static void place__is_given_back_with_the_peer(void **state)
{
	int least = 1;

	/* Room for the first row of frames, as for anything if nothing else is there. */
	assert_int_equal(
		setsockopt(b->udp.socket[0].fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)), 0);
	assert_int_equal(bw_send(a, to_b, 1, 2, 3, from, LONG, BW_SEND_EAGER, NULL), 1);
	bw_progress(b);
	assert_int_equal(at_b.asked, 1);
	assert_int_equal(at_b.pulleds, 0);
	assert_non_null(b->placing);
	bw_ep_close(a, 0);
	a = NULL;
	endpoint_await(b, b, &at_b.pulleds, 1);
	assert_int_equal(at_b.status, -ESHUTDOWN);
	assert_int_equal(at_b.len, 0);
	assert_int_equal(at_b.messages, 0);
	assert_null(b->placing);
}

/* The message leaves before it is copied; if it has to be sent again, the copy is. */
static void late__copy_is_made(void **state)
{
	a->has_udp = false; /* all that leaves now is lost */
	assert_int_equal(bw_send(a, to_b, 1, 2, 3, from, LONG, BW_SEND_EAGER, NULL), 1);
	a->has_udp = true;
	memset(from, 0, LONG);
	endpoint_await(a, b, &at_b.pulleds, 1);
	for (int i = 0; i < LONG; i++)
		assert_int_equal(to[i], (uint8_t)(i * 7 + i / 251));
}

static struct bw_remote *remote(void)
{
	return bw_remote_get(&a->remotes, to_b);
}

/* Its receiver is not asked, and it is the program's until it is acknowledged. */
static void ahead__goes_a_long_message(void **state)
{
	assert_int_equal(bw_send(a, to_b, 1, 2, 3, from, AHEAD, 0, &to_b), 0);
	assert_true(remote()->ahead);
	endpoint_await(a, b, &at_a.sents, 2);
	assert_int_equal(at_a.status, 0);
	assert_int_equal(at_b.pulleds, 1);
	assert_int_equal(at_b.len, AHEAD);
	assert_int_equal(at_b.messages, 0);
	assert_memory_equal(to, from, AHEAD);
	assert_false(remote()->ahead);
	assert_int_equal(a->copied, 0);
	assert_int_equal(bw_reliable.counters(a->engine)->tx_pulls, 0);
}

/* Without a place it is put together elsewhere. */
static void ahead__goes_what_nobody_waits_for(void **state)
{
	at_b.place = NULL;
	assert_int_equal(bw_send(a, to_b, 1, 2, 3, from, AHEAD, 0, &to_b), 0);
	endpoint_await(a, b, &at_b.messages, 1);
	assert_int_equal(at_b.len, AHEAD);
	assert_int_equal(at_b.rndv.word[BW_RNDV_KIND], 0);
}

/* Another one waits for its receiver meanwhile, as do longer ones. */
static void ahead__goes_one_at_a_time(void **state)
{
	assert_int_equal(bw_send(a, to_b, 1, 2, 3, from, AHEAD, 0, &to_b), 0);
	endpoint_await(a, b, &at_a.sents, 2);
	assert_false(remote()->ahead);
	remote()->ahead = true;
	remote()->taken_cost = 0; /* however busy the machine is */
	assert_int_equal(bw_send(a, to_b, 1, 2, 3, from, AHEAD, 0, &to_b), 0);
	endpoint_await(a, b, &at_b.messages, 1);
	assert_int_equal(at_b.pulleds, 1);
	assert_int_equal(at_b.rndv.word[BW_RNDV_KIND], BW_RNDV_ENGINE);
	at_b.rndv.word[BW_RNDV_KIND] = 0;
	remote()->ahead = false;
	remote()->taken_cost = 0;
	assert_int_equal(bw_send(a, to_b, 1, 2, 3, from, BW_LONG_LIMIT + 1, 0, &to_b), 0);
	assert_false(remote()->ahead);
	endpoint_await(a, b, &at_b.messages, 2);
	assert_int_equal(at_b.rndv.word[BW_RNDV_KIND], BW_RNDV_ENGINE);
}

/* Who is to know that the receiver has taken it waits for that, and who sets the longest message
 * that is sent unasked has it. */
static void ahead__goes_nothing_that_must_be_fetched(void **state)
{
	assert_int_equal(bw_send(a, to_b, 1, 2, 3, from, AHEAD, BW_SEND_SYNC, &to_b), 0);
	endpoint_await(a, b, &at_b.messages, 1);
	a->ahead_max = 0;
	assert_int_equal(bw_send(a, to_b, 1, 2, 3, from, AHEAD, 0, &to_b), 0);
	endpoint_await(a, b, &at_b.messages, 2);
	assert_int_equal(at_b.asked, 0);
}

/* Where receivers are slow a copy is kept, and slow ones are known by these messages, too. */
static void ahead__goes_nothing_where_copies_pay(void **state)
{
	remote()->taken_cost = 0;
	assert_int_equal(bw_send(a, to_b, 1, 2, 3, from, AHEAD, 0, &to_b), 0);
	endpoint_await(a, b, &at_a.sents, 2);
	assert_int_not_equal(remote()->taken_cost, 0);
	remote()->taken_cost = 2 * BW_COST_SLOW;
	assert_int_equal(bw_send(a, to_b, 1, 2, 3, from, AHEAD, 0, &to_b), 1);
	assert_false(remote()->ahead);
}

static void ahead__ends_with_the_peer(void **state)
{
	assert_int_equal(bw_send(a, to_b, 1, 2, 3, from, AHEAD, 0, &to_b), 0);
	bw_ep_close(b, 0);
	b = NULL;
	endpoint_await(a, a, &at_a.sents, 2);
	assert_int_not_equal(at_a.status, 0);
	assert_int_equal(a->copied, 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_both, close_both)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(place__is_where_a_message_goes),
		TEST(place__is_not_asked_for_what_fits_a_frame),
		TEST(place__none_is_an_answer),
		TEST(place__is_given_back_with_the_peer),
		TEST(late__copy_is_made),
		TEST(ahead__goes_a_long_message),
		TEST(ahead__goes_what_nobody_waits_for),
		TEST(ahead__goes_one_at_a_time),
		TEST(ahead__goes_nothing_that_must_be_fetched),
		TEST(ahead__goes_nothing_where_copies_pay),
		TEST(ahead__ends_with_the_peer),
	};

	return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
