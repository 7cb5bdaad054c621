/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The local link beside messages: reads of registered memory, an endpoint that speaks to itself,
 * and going to sleep. Runs with cross-memory attach and without (BEOWIRE_LOCAL_CMA=off).
 */
#include "couple.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- reads ---- */

static void read__of_registered_memory(void **state)
{
	static uint8_t to[NODE_REGION];

	assert_int_equal(bw_local_read(b.peer, NODE_REGION_KEY, 0, to, NODE_REGION, "all"), 0);
	node_settle(&a, &b);
	assert_string_equal(node_story(&b), "pulled all 0 len 1048576 | ");
	assert_memory_equal(to, a.region, NODE_REGION);
	bw_local_read(b.peer, NODE_REGION_KEY, NODE_REGION - 1, to, 1, "last");
	bw_local_read(b.peer, NODE_REGION_KEY, 5, to, 0, "none");
	node_settle(&a, &b);
	assert_non_null(strstr(node_story(&b), "pulled last 0 len 1 | "));
	assert_int_equal(b.pulleds, 3);
	assert_int_equal(to[0], a.region[NODE_REGION - 1]);
}

static void read__that_is_not_allowed(void **state)
{
	uint8_t to[16];

	bw_local_read(b.peer, NODE_REGION_KEY + 1, 0, to, 16, "key");
	bw_local_read(b.peer, NODE_REGION_KEY, NODE_REGION - 15, to, 16, "end");
	bw_local_read(b.peer, NODE_REGION_KEY, UINT64_MAX - 7, to, 16, "wrap");
	node_settle(&a, &b);
	assert_string_equal(node_story(&b), "pulled key -13 len 0 | pulled end -13 len 0 | "
					    "pulled wrap -13 len 0 | ");
}

static void read__more_at_once_than_the_window(void **state)
{
	static uint8_t to[200][1000];

	b.quiet = true;
	for (uint64_t i = 0; i < 200; i++)
		bw_local_read(b.peer, NODE_REGION_KEY, i * 1000, to[i], 1000, "one");
	node_settle(&a, &b);
	assert_int_equal(b.pulleds, 200);
	assert_memory_equal(to, a.region, sizeof(to));
}

static void read__more_than_may_wait(void **state)
{
	static uint8_t to[8];
	uint64_t n = 0;
	int error = 0;

	b.quiet = true;
	for (int round = 1; round <= 2; round++) {
		while (n < 100000) {
			error = bw_local_read(b.peer, NODE_REGION_KEY, 0, to, sizeof(to), "one");
			if (error)
				break;
			n++;
		}
		assert_int_equal(error, -EAGAIN);
		node_settle(&a, &b);
		assert_int_equal(b.pulleds, n);
	}
}

static int canceled;

static void cancel_the_other(struct node *n, void *op)
{
	if (strcmp(op, "one") == 0)
		canceled = bw_local_cancel(n->peer, "other");
}

/* It ends with its peer, and is told once: nothing refers to the peer then. */
static void cancel__while_the_peer_ends_is_too_late(void **state)
{
	uint8_t to[2][100];

	b.on_pulled = cancel_the_other;
	bw_local_read(b.peer, NODE_REGION_KEY, 0, to[0], 100, "one");
	bw_local_read(b.peer, NODE_REGION_KEY, 0, to[1], 100, "other");
	bw_local_disconnect(b.peer);
	node_poll(&b);
	assert_int_equal(canceled, -ENOENT);
	assert_string_equal(node_story(&b), "pulled one -125 len 0 | pulled other -125 len 0 | "
					    "down ECANCELED | ");
	node_poll(&b);
	assert_string_equal(node_story(&b), "");
}

static void pulls__finish_though_both_rings_are_full(void **state)
{
	static uint8_t from[500000], to_a[500000], to_b[500000];

	a.quiet = b.quiet = true;
	pattern_fill(from, sizeof(from), 3);
	bw_local_offer(a.peer, 0, 3, 0, from, sizeof(from), "op");
	bw_local_offer(b.peer, 0, 3, 0, from, sizeof(from), "op");
	node_settle(&a, &b);
	while (node_send(&a, 1, 100) == 0)
		;
	while (node_send(&b, 1, 100) == 0)
		;
	bw_local_pull(a.peer, &a.envelope[0], to_a, sizeof(to_a), "it");
	bw_local_pull(b.peer, &b.envelope[0], to_b, sizeof(to_b), "it");
	node_settle(&a, &b);
	assert_int_equal(a.pulleds + b.pulleds, 2);
	assert_int_equal(a.sents + b.sents, 2);
	assert_memory_equal(to_a, from, sizeof(from));
	assert_memory_equal(to_b, from, sizeof(from));
}

/* Notes that find no room wait, some of them leave, and more come than there was room to remember:
 * each is sent once. */
static void notes__that_wait_are_all_sent(void **state)
{
	uint64_t sent = 0;

	a.quiet = b.quiet = true;
	while (node_send(&b, 1, 32) == 0)
		;
	for (int round = 0; round < 30; round++) {
		/* b says of each that it took it. */
		for (int i = 0; i < 50; i++, sent++)
			assert_int_equal(bw_local_send(a.peer, 1, 1, 1, NULL, 0, "op"), 0);
		node_poll(&b);
		if (round % 3 == 2) {
			node_poll(&a);
			assert_true(a.sents < sent);
		}
	}
	node_settle(&a, &b);
	assert_int_equal(a.downs + b.downs, 0);
	assert_int_equal(a.sents, sent);
	assert_false(bw_local_busy(a.link) || bw_local_busy(b.link));
}

/* ---- the endpoint to itself ---- */

static void self__messages_envelopes_and_reads(void **state)
{
	static uint8_t from[100000], to[100000];

	pattern_fill(from, sizeof(from), 4);
	assert_int_equal(bw_local_connect(a.link, a.engine, a.incarnation, NULL, &a.peer), 0);
	node_send(&a, 1, 100);
	bw_local_offer(a.peer, 0, 4, 0, from, sizeof(from), "mine");
	node_poll(&a);
	assert_string_equal(node_story(&a), "message 1 tag 1 imm 1 len 100 | "
					    "envelope 0 tag 4 imm 0 len 100000 | ");
	bw_local_pull(a.peer, &a.envelope[0], to, sizeof(to), "it");
	node_settle(&a, &b);
	assert_string_equal(node_story(&a), "pulled it 0 len 100000 | sent mine 0 | ");
	assert_memory_equal(from, to, sizeof(to));
	bw_local_read(a.peer, NODE_REGION_KEY, 10, to, 1000, "read");
	bw_local_offer(a.peer, 0, 4, 0, from, sizeof(from), "back");
	assert_int_equal(bw_local_retract(a.peer, "back"), 0);
	node_settle(&a, &b);
	assert_memory_equal(to, a.region + 10, 1000);
	assert_int_equal(a.spoilt, 0);
	assert_int_equal(bw_local_connect(a.link, a.engine, a.incarnation, NULL, &a.peer), -EEXIST);
}

static void self__a_full_ring_says_so(void **state)
{
	uint64_t sent = 0;

	a.quiet = true;
	bw_local_connect(a.link, a.engine, a.incarnation, NULL, &a.peer);
	while (node_send(&a, sent, 1000) == 0)
		sent++;
	assert_true(sent > 10);
	node_settle(&a, &b);
	assert_int_equal(a.messages, sent);
	assert_int_equal(a.spoilt, 0);
}

/* ---- sleeping ---- */

static void arm__is_refused_while_there_is_work(void **state)
{
	node_settle(&a, &b);
	assert_int_equal(bw_local_arm(b.link), 0);
	bw_local_disarm(b.link);
	node_send(&a, 1, 8);
	assert_int_equal(bw_local_arm(b.link), -EAGAIN);
	node_poll(&b);
	assert_int_equal(bw_local_arm(b.link), 0);
	assert_int_equal(bw_local_counters(a.link)->doorbells_tx, 0);
	node_send(&a, 2, 8);
	node_send(&a, 3, 8);
	/* Rung once, however many messages come. */
	assert_int_equal(bw_local_counters(a.link)->doorbells_tx, 1);
	node_poll(&b);
	assert_int_equal(bw_local_counters(b.link)->doorbells_rx, 1);
	node_send(&a, 4, 8);
	assert_int_equal(bw_local_counters(a.link)->doorbells_tx, 1);
}

/* Nor is there work while nobody has answered who is to be read. */
static void arm__waits_for_an_answer(void **state)
{
	struct node c;
	uint8_t to[100];

	node_open(&c, 0, 0);
	assert_int_equal(bw_local_connect(c.link, a.engine, a.incarnation, NULL, &c.peer), 0);
	assert_int_equal(bw_local_read(c.peer, NODE_REGION_KEY, 0, to, 100, "read"), 0);
	for (int i = 0; i < 3; i++) {
		node_poll(&c);
		assert_int_equal(bw_local_arm(c.link), 0);
	}
	node_poll(&a);
	node_poll(&a);
	assert_true(bw_local_poll(c.link, 0, true) > 0);
	node_settle(&a, &c);
	assert_string_equal(node_story(&c), "pulled read 0 len 100 | ");
	node_close(&c);
}

static void arm__wakes_a_sender_when_there_is_room(void **state)
{
	a.quiet = b.quiet = true;
	while (node_send(&a, 1, 32) == 0)
		;
	assert_int_equal(bw_local_arm(a.link), 0);
	node_poll(&b);
	while (bw_local_counters(b.link)->doorbells_tx == 0)
		node_poll(&b);
	assert_true(bw_local_poll(a.link, 0, true) > 0);
	assert_int_equal(bw_local_counters(a.link)->doorbells_rx, 1);
	assert_int_equal(node_send(&a, 1, 32), 0);
}

#define TEST(name)	 cmocka_unit_test_setup_teardown(name, couple_open, couple_close)
#define TEST_SMALL(name) cmocka_unit_test_setup_teardown(name, couple_open_small, couple_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(read__of_registered_memory),
		TEST_SMALL(read__of_registered_memory),
		TEST(read__that_is_not_allowed),
		TEST_SMALL(read__more_at_once_than_the_window),
		TEST(read__more_than_may_wait),
		TEST(cancel__while_the_peer_ends_is_too_late),
		TEST_SMALL(pulls__finish_though_both_rings_are_full),
		TEST_SMALL(notes__that_wait_are_all_sent),
		TEST(self__messages_envelopes_and_reads),
		TEST_SMALL(self__a_full_ring_says_so),
		TEST(arm__is_refused_while_there_is_work),
		TEST(arm__waits_for_an_answer),
		TEST_SMALL(arm__wakes_a_sender_when_there_is_room),
	};

	return cmocka_run_group_tests_name("local link's reads", tests, NULL, NULL);
}
