/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages and envelopes over the local link: what arrives, in which order, who completes when.
 * Runs with cross-memory attach and without (BEOWIRE_LOCAL_CMA=off).
 */
#include "couple.h"
#include "link/local/impl.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- messages ---- */

static void message__arrives_with_all_its_fields(void **state)
{
	uint8_t data[8];

	pattern_fill(data, 8, 2);
	assert_int_equal(bw_local_send(a.peer, 127, 2, UINT64_MAX, data, 8, NULL), 0);
	assert_string_equal(node_story(&b), "");
	node_poll(&b);
	assert_string_equal(node_story(&b), "message 127 tag 2 imm 18446744073709551615 len 8 | ");
	assert_int_equal(b.spoilt, 0);
}

static void message__both_ways(void **state)
{
	node_send(&a, 1, 5);
	node_send(&b, 2, 6);
	node_settle(&a, &b);
	assert_string_equal(node_story(&a), "message 1 tag 2 imm 2 len 6 | ");
	assert_string_equal(node_story(&b), "message 1 tag 1 imm 1 len 5 | ");
}

static void message__of_every_length_near_an_edge(void **state)
{
	uint32_t limit = bw_local_send_limit(a.peer);

	a.quiet = b.quiet = true;
	for (uint64_t len = 0; len <= 300; len++) {
		assert_int_equal(node_send(&a, len, len), 0);
		node_poll(&b);
	}
	for (uint64_t len = limit - 70; len <= limit; len++) {
		assert_int_equal(node_send(&a, len, len), 0);
		node_poll(&b);
	}
	assert_int_equal(b.messages, 301 + 71);
	assert_int_equal(b.spoilt, 0);
	assert_int_equal(bw_local_send(a.peer, 0, 0, 0, a.region, limit + 1, NULL), -EMSGSIZE);
}

static uint64_t next_tag;

static void expect_next(struct node *n, const struct bw_local_message *m)
{
	assert_int_equal(m->tag, next_tag);
	next_tag++;
}

static void message__order_is_kept_over_many_rounds_of_the_ring(void **state)
{
	uint64_t sent = 0, full = 0;

	b.quiet = true;
	b.on_message = expect_next;
	next_tag = 0;
	while (sent < 60000) {
		int r = node_send(&a, sent, draw(4) ? draw(200) : draw(3000));

		if (r == 0)
			sent++;
		else
			assert_int_equal(r, -EAGAIN);
		full += r == -EAGAIN;
		if (r == -EAGAIN || draw(20) == 0)
			node_poll(&b);
	}
	node_settle(&a, &b);
	assert_int_equal(b.messages, sent);
	assert_int_equal(b.spoilt, 0);
	assert_true(full > 100);
}

static void message__a_full_ring_says_so_and_recovers(void **state)
{
	int sent = 0;

	b.quiet = true;
	while (node_send(&a, 1, 32) == 0)
		sent++;
	/* A sixteenth of the ring is kept for notes. */
	assert_int_equal(sent, SMALL_RING / 64 * 15 / 16);
	assert_int_equal(node_send(&a, 1, 32), -EAGAIN);
	assert_true(bw_local_counters(a.link)->ring_full >= 2);
	node_poll(&b);
	assert_int_equal(node_send(&a, 1, 32), 0);
}

static void message__room_after_a_full_ring_is_news(void **state)
{
	b.quiet = true;
	while (node_send(&a, 1, 32) == 0)
		;
	bw_local_poll(a.link, 0, true);
	assert_int_equal(bw_local_poll(a.link, 0, false), 0);
	node_settle(&b, &b);
	assert_int_equal(bw_local_poll(a.link, 0, false), 1);
	assert_int_equal(bw_local_poll(a.link, 0, false), 0);
}

static void message__with_ack_ends_when_taken(void **state)
{
	assert_int_equal(bw_local_send(a.peer, 1, 0, 3, NULL, 0, "op"), 0);
	node_poll(&a);
	assert_string_equal(node_story(&a), "");
	assert_true(bw_local_busy(a.link));
	node_poll(&b);
	node_poll(&a);
	assert_string_equal(node_story(&a), "sent op 0 | ");
	assert_false(bw_local_busy(a.link));
}

static void answer_at_once(struct node *n, const struct bw_local_message *m)
{
	assert_int_equal(node_send(n, m->tag + 1, m->len), 0);
}

static void message__may_be_answered_from_the_handler(void **state)
{
	b.on_message = answer_at_once;
	node_send(&a, 5, 100);
	node_poll(&b);
	node_poll(&a);
	assert_string_equal(node_story(&a), "message 1 tag 6 imm 6 len 100 | ");
	assert_int_equal(a.spoilt, 0);
}

/* ---- envelopes ---- */

static void envelope__is_pulled_whole(void **state)
{
	static uint8_t from[300000], to[300000];

	pattern_fill(from, sizeof(from), 9);
	assert_int_equal(bw_local_offer(a.peer, 3, 9, 1, from, sizeof(from), "long"), 0);
	node_poll(&b);
	assert_string_equal(node_story(&b), "envelope 3 tag 9 imm 1 len 300000 | ");
	node_settle(&a, &b);
	assert_string_equal(node_story(&a), "");
	assert_int_equal(bw_local_pull(b.peer, &b.envelope[0], to, sizeof(to), "it"), 0);
	assert_true(bw_local_busy(b.link));
	node_settle(&a, &b);
	assert_string_equal(node_story(&b), "pulled it 0 len 300000 | ");
	assert_string_equal(node_story(&a), "sent long 0 | ");
	assert_true(pattern_holds(to, sizeof(to), 9));
	assert_int_equal(bw_local_counters(b.link)->pulls_direct, direct() ? 1 : 0);
	assert_int_equal(bw_local_counters(b.link)->pulls_copied, direct() ? 0 : 1);
	assert_int_equal(bw_local_counters(a.link)->tx_payload, 300000);
	assert_int_equal(bw_local_counters(b.link)->rx_payload, 300000);
	assert_false(bw_local_busy(a.link) || bw_local_busy(b.link));
}

static void envelope__is_pulled_in_part(void **state)
{
	uint8_t from[1000], to[1000];

	pattern_fill(from, sizeof(from), 9);
	memset(to, 0xEE, sizeof(to));
	bw_local_offer(a.peer, 3, 9, 1, from, sizeof(from), "long");
	node_poll(&b);
	bw_local_pull(b.peer, &b.envelope[0], to, 999, "it");
	node_settle(&a, &b);
	assert_string_equal(node_story(&a), "sent long 0 | ");
	assert_true(pattern_holds(to, 999, 9));
	assert_int_equal(to[999], 0xEE);
}

/* The kernel reads up to the hole, and tells how far it came: the rest is not what was sent. */
static void envelope__with_a_hole_is_an_error(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	static uint8_t to[1 << 20];
	uint8_t *from =
		mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(from != MAP_FAILED && 3 * page <= sizeof(to));
	pattern_fill(from, 3 * page, 9);
	munmap(from + page, page);
	bw_local_offer(a.peer, 3, 9, 1, from, 3 * page, "holed");
	node_poll(&b);
	node_story(&b);
	bw_local_pull(b.peer, &b.envelope[0], to, 3 * page, "it");
	node_settle(&a, &b);
	assert_string_equal(node_story(&b), "pulled it -14 len 0 | ");
	assert_false(bw_local_busy(a.link) || bw_local_busy(b.link));
	munmap(from, page);
	munmap(from + 2 * page, page);
}

static void envelope__pulled_beyond_its_end_gives_what_there_is(void **state)
{
	uint8_t from[100], to[200];

	pattern_fill(from, sizeof(from), 9);
	bw_local_offer(a.peer, 3, 9, 1, from, sizeof(from), "long");
	node_poll(&b);
	node_story(&b);
	bw_local_pull(b.peer, &b.envelope[0], to, sizeof(to), "it");
	node_settle(&a, &b);
	assert_string_equal(node_story(&b), "pulled it 0 len 100 | ");
}

static void envelope__is_discarded(void **state)
{
	bw_local_offer(a.peer, 3, 9, 1, a.region, 1000, "long");
	bw_local_offer(a.peer, 3, 9, 1, a.region, 1000, "other");
	node_poll(&b);
	node_story(&b);
	bw_local_pull(b.peer, &b.envelope[0], NULL, 0, NULL);
	bw_local_pull(b.peer, &b.envelope[1], NULL, 0, "it");
	node_settle(&a, &b);
	assert_string_equal(node_story(&b), "pulled it 0 len 0 | ");
	assert_string_equal(node_story(&a), "sent long 0 | sent other 0 | ");
}

static void envelope__of_nothing(void **state)
{
	bw_local_offer(a.peer, 3, 9, 1, NULL, 0, "empty");
	node_poll(&b);
	assert_string_equal(node_story(&b), "envelope 3 tag 9 imm 1 len 0 | ");
	bw_local_pull(b.peer, &b.envelope[0], NULL, 0, "it");
	node_settle(&a, &b);
	assert_string_equal(node_story(&a), "sent empty 0 | ");
	assert_string_equal(node_story(&b), "pulled it 0 len 0 | ");
}

static void envelope__keeps_its_place_among_messages(void **state)
{
	node_send(&a, 1, 8);
	bw_local_offer(a.peer, 1, 2, 2, a.region, 50000, "long");
	node_send(&a, 3, 8);
	node_poll(&b);
	assert_string_equal(node_story(&b), "message 1 tag 1 imm 1 len 8 | "
					    "envelope 1 tag 2 imm 2 len 50000 | "
					    "message 1 tag 3 imm 3 len 8 | ");
}

static void envelope__is_retracted(void **state)
{
	uint8_t to[100];

	bw_local_offer(a.peer, 3, 9, 1, a.region, 100, "long");
	node_poll(&b);
	node_story(&b);
	assert_int_equal(bw_local_retract(a.peer, "long"), 0);
	assert_string_equal(node_story(&a), "");
	node_poll(&a);
	assert_string_equal(node_story(&a), "sent long -125 | ");
	assert_int_equal(bw_local_retract(a.peer, "long"), -ENOENT);
	/* Its slot is not used again before the other side knows. */
	assert_true(bw_local_busy(a.link));
	memset(to, 0xEE, sizeof(to));
	bw_local_pull(b.peer, &b.envelope[0], to, sizeof(to), "it");
	node_settle(&a, &b);
	assert_string_equal(node_story(&b), "pulled it -125 len 0 | ");
	assert_int_equal(to[0], 0xEE);
	assert_string_equal(node_story(&a), "");
	assert_false(bw_local_busy(a.link));
}

static void envelope__is_retracted_before_it_is_even_seen(void **state)
{
	bw_local_offer(a.peer, 3, 9, 1, a.region, 100, "long");
	assert_int_equal(bw_local_retract(a.peer, "long"), 0);
	node_settle(&a, &b);
	assert_string_equal(node_story(&a), "sent long -125 | ");
	assert_string_equal(node_story(&b), "envelope 3 tag 9 imm 1 len 100 | ");
	bw_local_pull(b.peer, &b.envelope[0], NULL, 0, "it");
	node_settle(&a, &b);
	assert_string_equal(node_story(&b), "pulled it -125 len 0 | ");
}

static void envelope__is_retracted_too_late(void **state)
{
	static uint8_t to[2 << 20];
	static uint8_t from[2 << 20];

	bw_local_offer(a.peer, 3, 9, 1, from, sizeof(from), "long");
	node_poll(&b);
	bw_local_pull(b.peer, &b.envelope[0], to, sizeof(to), "it");
	node_poll(&b);
	assert_int_equal(bw_local_retract(a.peer, "long"), -ENOENT);
	node_settle(&a, &b);
	assert_string_equal(node_story(&a), "sent long 0 | ");
	assert_int_equal(bw_local_retract(a.peer, "nothing"), -ENOENT);
}

static void envelope__a_hundred_thousand_wait_while_a_later_message_passes(void **state)
{
	static uint8_t from[64];
	static uint8_t to[64];

	a.quiet = b.quiet = true;
	pattern_fill(from, sizeof(from), 7);
	for (int i = 0; i < 100000; i++)
		while (bw_local_offer(a.peer, 0, 1, 0, from, sizeof(from), "op") == -EAGAIN)
			node_poll(&b);
	node_settle(&a, &b);
	assert_int_equal(b.envelopes, 100000);
	b.quiet = false;
	node_send(&a, 2, 8);
	node_poll(&b);
	assert_string_equal(node_story(&b), "message 1 tag 2 imm 2 len 8 | ");
	b.quiet = true;
	/* The last one first. */
	for (uint32_t i = b.envelopes; i-- > 0;)
		assert_int_equal(bw_local_pull(b.peer, &b.envelope[i], to, sizeof(to), "it"), 0);
	node_settle(&a, &b);
	assert_int_equal(b.pulleds, 100000);
	assert_int_equal(a.sents, 100000);
	assert_true(pattern_holds(to, sizeof(to), 7));
	assert_false(bw_local_busy(a.link) || bw_local_busy(b.link));
}

/* Nobody remembers more of what nobody wants than that its owner is to be told, however many those
 * are; and he is. */
static void envelope__discarded_ones_are_told_when_there_is_room(void **state)
{
	enum { COUNT = 20000 };

	a.quiet = b.quiet = true;
	for (int i = 0; i < COUNT; i++)
		while (bw_local_offer(a.peer, 0, 1, 0, a.region, 1000, "op") == -EAGAIN)
			node_poll(&b);
	while (b.envelopes < COUNT)
		node_poll(&b);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(bw_local_pull(b.peer, &b.envelope[i], NULL, 0, NULL), 0);
	assert_int_equal(b.peer->pulls, 0);
	assert_true(b.peer->owed.count > COUNT / 2);
	assert_in_range(b.peer->owed.words, COUNT / BW_LOCAL_OWED_EACH,
			2 * COUNT / BW_LOCAL_OWED_EACH);
	assert_int_equal(b.peer->notes, 0);
	assert_true(bw_local_busy(b.link));
	assert_int_equal(node_send(&b, 2, 8), -EAGAIN);
	node_poll(&a);
	assert_int_equal(node_send(&b, 2, 8), -EAGAIN); /* messages do not pass them */
	node_settle(&a, &b);
	assert_int_equal(a.sents, COUNT);
	assert_int_equal(bw_local_counters(a.link)->tx_payload, 0);
	assert_false(bw_local_busy(a.link) || bw_local_busy(b.link));
	assert_int_equal(node_send(&b, 2, 8), 0);
	node_settle(&a, &b);
}

/* What was fetched counts so, also if there was no room to tell of it. */
static void envelope__fetched_ones_count_when_there_is_room(void **state)
{
	enum { COUNT = 5000, BYTES = 100 };
	uint8_t to[BYTES];

	a.quiet = b.quiet = true;
	pattern_fill(a.region, BYTES, 1);
	for (int i = 0; i < COUNT; i++)
		while (bw_local_offer(a.peer, 0, 1, 0, a.region, BYTES, "op") == -EAGAIN)
			node_poll(&b);
	node_settle(&a, &b);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(bw_local_pull(b.peer, &b.envelope[i], to, BYTES, "it"), 0);
	for (int i = 0; direct() && i < 100 && b.pulleds < COUNT; i++)
		node_poll(&b);
	assert_true(!direct() || b.peer->owed.count);
	node_settle(&a, &b);
	assert_int_equal(b.pulleds, COUNT);
	assert_int_equal(a.sents, COUNT);
	assert_int_equal(bw_local_counters(a.link)->tx_payload, (uint64_t)COUNT * BYTES);
}

static void envelope__many_long_ones_at_once(void **state)
{
	enum { COUNT = 40, BYTES = 70001 };
	uint8_t *from = malloc((size_t)COUNT * BYTES), *to = malloc((size_t)COUNT * BYTES);

	a.quiet = b.quiet = true;
	for (uint64_t i = 0; i < COUNT; i++) {
		pattern_fill(from + i * BYTES, BYTES, i);
		bw_local_offer(a.peer, 0, i, 0, from + i * BYTES, BYTES, "op");
	}
	node_poll(&b);
	for (uint64_t i = 0; i < COUNT; i++)
		bw_local_pull(b.peer, &b.envelope[i], to + i * BYTES, BYTES, "it");
	node_settle(&a, &b);
	assert_int_equal(b.pulleds, COUNT);
	for (uint64_t i = 0; i < COUNT; i++)
		assert_true(pattern_holds(to + i * BYTES, BYTES, i));
	assert_memory_equal(from, to, (size_t)COUNT * BYTES);
	free(from);
	free(to);
}

static void pressure__asks_for_envelopes_only(void **state)
{
	assert_true(bw_local_eager_max(a.peer) > 0);
	bw_local_pressure(b.link, true);
	assert_int_equal(bw_local_eager_max(a.peer), 0);
	assert_true(bw_local_eager_max(b.peer) > 0);
	bw_local_pressure(b.link, false);
	assert_true(bw_local_eager_max(a.peer) > 0);
}

#define TEST(name)	 cmocka_unit_test_setup_teardown(name, couple_open, couple_close)
#define TEST_SMALL(name) cmocka_unit_test_setup_teardown(name, couple_open_small, couple_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(message__arrives_with_all_its_fields),
		TEST(message__both_ways),
		TEST(message__of_every_length_near_an_edge),
		TEST_SMALL(message__of_every_length_near_an_edge),
		TEST_SMALL(message__order_is_kept_over_many_rounds_of_the_ring),
		TEST_SMALL(message__a_full_ring_says_so_and_recovers),
		TEST_SMALL(message__room_after_a_full_ring_is_news),
		TEST(message__with_ack_ends_when_taken),
		TEST(message__may_be_answered_from_the_handler),
		TEST(envelope__is_pulled_whole),
		TEST_SMALL(envelope__is_pulled_whole),
		TEST(envelope__is_pulled_in_part),
		TEST(envelope__pulled_beyond_its_end_gives_what_there_is),
		TEST(envelope__is_discarded),
		TEST(envelope__of_nothing),
		TEST(envelope__keeps_its_place_among_messages),
		TEST(envelope__is_retracted),
		TEST(envelope__is_retracted_before_it_is_even_seen),
		TEST(envelope__is_retracted_too_late),
		TEST(envelope__a_hundred_thousand_wait_while_a_later_message_passes),
		TEST_SMALL(envelope__a_hundred_thousand_wait_while_a_later_message_passes),
		TEST_SMALL(envelope__discarded_ones_are_told_when_there_is_room),
		TEST_SMALL(envelope__fetched_ones_count_when_there_is_room),
		TEST(envelope__many_long_ones_at_once),
		TEST(pressure__asks_for_envelopes_only),
	};

	/* Without cross-memory attach the owner itself would fall into the hole. */
	const struct CMUnitTest attach_tests[] = {
		TEST(envelope__with_a_hole_is_an_error),
	};
	int failed = cmocka_run_group_tests_name("local link's messages", tests, NULL, NULL);

	if (direct())
		failed += cmocka_run_group_tests_name("attach", attach_tests, NULL, NULL);
	return failed;
}
