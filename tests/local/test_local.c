/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The local link's contract, told by two links in one process whose polls the test decides: what
 * arrives, in which order, who completes when. Runs with cross-memory attach and without
 * (BEOWIRE_LOCAL_CMA=off).
 */
#include "node.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SMALL_RING (16u << 10)

static struct node a, b;

static bool direct(void)
{
	const char *setting = getenv("BEOWIRE_LOCAL_CMA");

	return !setting || strcmp(setting, "off") != 0;
}

static int setup_bytes(uint32_t ring_bytes)
{
	seed_set(42);
	node_open(&a, ring_bytes, 0);
	node_open(&b, ring_bytes, 0);
	node_pair(&a, &b);
	node_story(&a);
	assert_string_equal(node_story(&b), "new | ");
	return 0;
}

static int setup(void **state)
{
	return setup_bytes(0);
}

static int setup_small(void **state)
{
	return setup_bytes(SMALL_RING);
}

static int teardown(void **state)
{
	node_close(&a);
	node_close(&b);
	return 0;
}

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

/* ---- contact ---- */

static void contact__from_both_sides_at_once_makes_one_peer(void **state)
{
	struct node c, d;

	node_open(&c, 0, 0);
	node_open(&d, SMALL_RING, 0);
	assert_int_equal(bw_local_connect(c.link, d.engine, d.incarnation, NULL, &c.peer), 0);
	assert_int_equal(bw_local_connect(d.link, c.engine, c.incarnation, NULL, &d.peer), 0);
	node_send(&c, 1, 100);
	node_send(&d, 2, 100);
	node_settle(&c, &d);
	node_send(&c, 3, 100);
	node_send(&d, 4, 100);
	node_settle(&c, &d);
	assert_string_equal(node_story(&c),
			    "message 1 tag 2 imm 2 len 100 | message 1 tag 4 imm 4 len 100 | ");
	assert_string_equal(node_story(&d),
			    "message 1 tag 1 imm 1 len 100 | message 1 tag 3 imm 3 len 100 | ");
	assert_int_equal(bw_local_counters(c.link)->peers, 1);
	assert_int_equal(bw_local_counters(d.link)->peers, 1);
	node_close(&c);
	node_settle(&d, &a);
	assert_string_equal(node_story(&d), "down ESHUTDOWN | ");
	node_close(&d);
}

static void contact__tells_who_it_is(void **state)
{
	struct bw_local_id id;

	bw_local_peer_id(b.peer, &id);
	assert_int_equal(id.engine, a.engine);
	assert_int_equal(id.incarnation, a.incarnation);
	assert_int_equal(id.node, NODE_NUMBER);
	assert_int_equal(id.pid, getpid());
	assert_string_equal(id.name, "host");
	bw_local_peer_id(a.peer, &id);
	assert_int_equal(id.cluster, CLUSTER_NUMBER);
	assert_int_equal(id.pid, getpid());
}

static void contact__with_nobody_is_refused_at_once(void **state)
{
	struct bw_local_peer *p;
	int claim;
	uint16_t engine = 1;

	while ((claim = bw_local_claim(engine)) < 0)
		engine++;
	/* Claimed, but nobody listens. */
	assert_int_equal(bw_local_connect(a.link, engine, 1, NULL, &p), -ECONNREFUSED);
	assert_int_equal(bw_local_claim(engine), -EADDRINUSE);
	close(claim);
	assert_int_equal(bw_local_connect(a.link, engine, 1, NULL, &p), -ECONNREFUSED);
	assert_null(p);
}

static void contact__with_a_dead_incarnation_is_refused(void **state)
{
	struct node c;

	node_open(&c, 0, 0);
	assert_int_equal(bw_local_connect(c.link, a.engine, a.incarnation + 1, NULL, &c.peer), 0);
	assert_int_equal(bw_local_send(c.peer, 0, 0, 0, NULL, 0, "op"), 0);
	node_settle(&a, &c);
	assert_string_equal(node_story(&c), "sent op -111 | down ECONNREFUSED | ");
	assert_string_equal(node_story(&a), "");
	assert_int_equal(bw_local_counters(a.link)->turned_away, 1);
	assert_int_equal(bw_local_connect(c.link, c.engine, c.incarnation + 1, NULL, &c.peer),
			 -ECONNREFUSED);
	node_close(&c);
}

static void contact__from_another_cluster_is_turned_away(void **state)
{
	struct bw_local_attr attr = {
		.self = {.node = NODE_NUMBER, .cluster = CLUSTER_NUMBER + 1, .incarnation = 5},
		.handlers = &node_handlers,
		.arg = &(struct node){.quiet = false},
	};
	struct node *c = attr.arg;

	attr.self.engine = 19000;
	while ((attr.claim = bw_local_claim(attr.self.engine)) < 0)
		attr.self.engine++;
	assert_int_equal(bw_local_open(&c->link, &attr), 0);
	assert_int_equal(bw_local_connect(c->link, a.engine, a.incarnation, NULL, &c->peer), 0);
	node_settle(&a, c);
	assert_string_equal(node_story(c), "down EPROTONOSUPPORT | ");
	bw_local_close(c->link);
}

static void contact__the_host_does_not_want(void **state)
{
	struct node c;

	node_open(&c, 0, 0);
	a.turn_away = -ENOSPC;
	assert_int_equal(bw_local_connect(c.link, a.engine, a.incarnation, NULL, &c.peer), 0);
	node_settle(&a, &c);
	assert_string_equal(node_story(&c), "down ENOSPC | ");
	assert_string_equal(node_story(&a), "");
	node_close(&c);
}

static void contact__again_finds_the_same_peer(void **state)
{
	struct bw_local_peer *p;

	assert_int_equal(bw_local_connect(b.link, a.engine, a.incarnation, NULL, &p), -EEXIST);
	assert_ptr_equal(p, b.peer);
}

static void contact__needs_sound_attributes(void **state)
{
	struct bw_local_attr attr = {.self.incarnation = 1, .handlers = &node_handlers};
	struct bw_local *l;

	attr.claim = -1;
	assert_int_equal(bw_local_open(&l, &attr), -EINVAL);
	attr.claim = 0;
	attr.ring_bytes = 100000;
	assert_int_equal(bw_local_open(&l, &attr), -EINVAL);
	attr.ring_bytes = 0;
	attr.self.incarnation = 0;
	assert_int_equal(bw_local_open(&l, &attr), -EINVAL);
}

/* ---- parting ---- */

static void parting__what_was_sent_before_arrives_before(void **state)
{
	struct node c;

	node_open(&c, 0, 0);
	node_pair(&c, &a);
	node_story(&a);
	node_send(&c, 1, 1000);
	node_send(&c, 2, 1000);
	node_close(&c);
	node_settle(&a, &b);
	assert_string_equal(node_story(&a), "message 1 tag 1 imm 1 len 1000 | "
					    "message 1 tag 2 imm 2 len 1000 | down ESHUTDOWN | ");
	assert_int_equal(a.spoilt, 0);
}

static void parting__however_much_it_was(void **state)
{
	struct node c;
	uint64_t sent = 0;

	node_open(&c, 0, 0);
	node_pair(&c, &a);
	a.quiet = true;
	while (node_send(&c, sent, 100) == 0)
		sent++;
	node_close(&c);
	node_settle(&a, &b);
	assert_true(sent > 1000);
	assert_int_equal(a.messages, sent);
	assert_int_equal(a.spoilt, 0);
	assert_int_equal(a.downs, 1);
}

static void parting__even_before_the_other_side_looked(void **state)
{
	struct node c;

	node_open(&c, 0, 0);
	assert_int_equal(bw_local_connect(c.link, a.engine, a.incarnation, NULL, &c.peer), 0);
	node_send(&c, 1, 1000);
	node_close(&c);
	node_settle(&a, &b);
	assert_string_equal(node_story(&a),
			    "new | message 1 tag 1 imm 1 len 1000 | down ESHUTDOWN | ");
}

static void parting__ends_all_operations(void **state)
{
	uint8_t to[100];
	struct bw_local_peer *p = b.peer;

	bw_local_offer(b.peer, 0, 0, 0, b.region, 1000, "offer");
	bw_local_send(b.peer, 0, 0, 0, NULL, 0, "ack");
	bw_local_offer(b.peer, 0, 0, 0, b.region, 1000, "retracted");
	bw_local_retract(b.peer, "retracted");
	bw_local_offer(a.peer, 0, 0, 0, a.region, 1000, "other");
	bw_local_disconnect(b.peer);
	assert_int_equal(bw_local_send(p, 0, 0, 0, NULL, 0, NULL), -ECANCELED);
	assert_int_equal(bw_local_offer(p, 0, 0, 0, NULL, 0, "late"), -ECANCELED);
	assert_int_equal(bw_local_read(p, 0, 0, to, 1, "late"), -ECANCELED);
	node_poll(&b);
	assert_string_equal(node_story(&b),
			    "sent retracted -125 | sent offer -125 | sent ack -125 | "
			    "down ECANCELED | ");
	node_settle(&a, &b);
	assert_non_null(strstr(node_story(&a), "sent other -108 | down ESHUTDOWN | "));
}

static void parting__a_close_reports_what_is_open(void **state)
{
	struct node c;

	node_open(&c, 0, 0);
	node_pair(&c, &a);
	bw_local_offer(c.peer, 0, 0, 0, c.region, 1000, "retracted");
	bw_local_retract(c.peer, "retracted");
	bw_local_offer(c.peer, 0, 0, 0, c.region, 1000, "offer");
	bw_local_read(c.peer, NODE_REGION_KEY, 0, c.region, 10, "read");
	bw_local_close(c.link);
	assert_string_equal(node_story(&c), "sent retracted -125 | sent offer -125 | "
					    "pulled read -125 len 0 | ");
	free(c.envelope);
	free(c.region);
}

static void parting__fails_a_pull_of_what_is_gone(void **state)
{
	static uint8_t to[4 << 20], from[4 << 20];

	bw_local_offer(a.peer, 0, 0, 0, from, sizeof(from), "offer");
	node_poll(&b);
	node_story(&b);
	bw_local_pull(b.peer, &b.envelope[0], to, sizeof(to), "it");
	node_poll(&b);
	/* In the middle of it. */
	bw_local_disconnect(a.peer);
	node_poll(&a);
	assert_string_equal(node_story(&a), "sent offer -125 | down ECANCELED | ");
	node_settle(&a, &b);
	assert_string_equal(node_story(&b), "pulled it -108 len 0 | down ESHUTDOWN | ");
}

static void parting__a_new_incarnation_takes_its_place(void **state)
{
	struct node old = b;

	node_close(&b);
	node_reopen(&b, &old);
	assert_int_equal(bw_local_connect(b.link, a.engine, a.incarnation, NULL, &b.peer), 0);
	node_send(&b, 1, 8);
	node_settle(&a, &b);

	const char *story = node_story(&a);

	assert_non_null(strstr(story, "down ESHUTDOWN | "));
	assert_non_null(strstr(story, "new | message 1 tag 1 imm 1 len 8 | "));
	assert_int_equal(bw_local_counters(a.link)->peers, 1);
}

/* ---- many ---- */

static int entries(const char *directory)
{
	DIR *d = opendir(directory);
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	while (fgets(line, sizeof(line), f))
		n += strstr(line, "memfd:beowire") != NULL;
	fclose(f);
	return n;
}

static void many__sixty_peers_and_nothing_is_left(void **state)
{
	enum { COUNT = 60 };
	static struct node n[COUNT];
	int fds = entries("/proc/self/fd"), maps = mappings();

	for (int i = 0; i < COUNT; i++) {
		node_open(&n[i], SMALL_RING, 0);
		node_pair(&n[i], &a);
	}
	node_story(&a);
	/* Long enough for most of them to be looked at now and then only. */
	for (int i = 0; i < 5000; i++)
		bw_local_poll(a.link, 0, false);
	for (int i = COUNT; i-- > 0;)
		assert_int_equal(node_send(&n[i], (uint64_t)i, 8), 0);
	a.quiet = true;
	for (int i = 0; i < COUNT; i++)
		bw_local_poll(a.link, 0, false);
	assert_int_equal(a.messages, COUNT);
	for (int i = 0; i < COUNT; i++)
		node_close(&n[i]);
	node_settle(&a, &b);
	assert_int_equal(a.downs, COUNT);
	assert_int_equal(bw_local_counters(a.link)->peers, 1);
	assert_int_equal(entries("/proc/self/fd"), fds);
	assert_int_equal(mappings(), maps);
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

#define TEST(name)	 cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_SMALL(name) cmocka_unit_test_setup_teardown(name, setup_small, teardown)

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
		TEST(envelope__many_long_ones_at_once),
		TEST(read__of_registered_memory),
		TEST_SMALL(read__of_registered_memory),
		TEST(read__that_is_not_allowed),
		TEST_SMALL(read__more_at_once_than_the_window),
		TEST_SMALL(pulls__finish_though_both_rings_are_full),
		TEST(self__messages_envelopes_and_reads),
		TEST_SMALL(self__a_full_ring_says_so),
		TEST(arm__is_refused_while_there_is_work),
		TEST_SMALL(arm__wakes_a_sender_when_there_is_room),
		TEST(contact__from_both_sides_at_once_makes_one_peer),
		TEST(contact__tells_who_it_is),
		TEST(contact__with_nobody_is_refused_at_once),
		TEST(contact__with_a_dead_incarnation_is_refused),
		TEST(contact__from_another_cluster_is_turned_away),
		TEST(contact__the_host_does_not_want),
		TEST(contact__again_finds_the_same_peer),
		TEST(contact__needs_sound_attributes),
		TEST(parting__what_was_sent_before_arrives_before),
		TEST(parting__however_much_it_was),
		TEST(parting__even_before_the_other_side_looked),
		TEST(parting__ends_all_operations),
		TEST(parting__a_close_reports_what_is_open),
		TEST(parting__fails_a_pull_of_what_is_gone),
		TEST(parting__a_new_incarnation_takes_its_place),
		TEST(many__sixty_peers_and_nothing_is_left),
		TEST(pressure__asks_for_envelopes_only),
	};

	return cmocka_run_group_tests_name("local", tests, NULL, NULL);
}
