/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages of several frames that arrive where the program wants them: two endpoints of one
 * process, over udp. */
#include "endpoint.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "place.h"

#define LONG  60000 /* bytes; more frames than a row has */
#define SHORT 400   /* one frame */

static struct bw_ep *a, *b;
static struct told at_a, at_b;
static bw_peer to_b;
static uint8_t from[LONG], to[LONG];

static int open_both(void **state)
{
	setenv("BEOWIRE_MTU", "1500", 1);
	a = endpoint_open("udp", &at_a);
	b = endpoint_open("udp", &at_b);
	to_b = endpoint_find(a, b);
	assert_int_equal(bw_send(a, to_b, 1, 1, 1, "word", 4, BW_SEND_ACKED, &to_b), 0);
	endpoint_await(a, b, &at_a.sents, 1);
	at_b = (struct told){.place = to};
	for (int i = 0; i < LONG; i++)
		from[i] = (uint8_t)(i * 7 + i / 251);
	memset(to, 0, sizeof(to));
	return 0;
}

static int close_both(void **state)
{
	if (a)
		bw_ep_close(a, 0);
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
	assert_int_equal(setsockopt(b->udp.fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)), 0);
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

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_both, close_both)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(place__is_where_a_message_goes),
		TEST(place__is_not_asked_for_what_fits_a_frame),
		TEST(place__none_is_an_answer),
		TEST(place__is_given_back_with_the_peer),
		TEST(late__copy_is_made),
	};

	return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
