/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Making contact over the local link and parting again: who gets to know whom, what each side is
 * told, and that nothing is left.
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
	uint16_t engine = node_number(&claim);

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

	attr.self.engine = node_number(&attr.claim);
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

/* Each time that it sends a program would be told to try again, or that the number is void. */
static void contact__ends_with_a_status_that_is_an_end(void **state)
{
	const int answers[] = {-EAGAIN, -ENOBUFS};
	struct node c;

	for (int i = 0; i < 2; i++) {
		node_open(&c, 0, 0);
		a.turn_away = answers[i];
		assert_int_equal(bw_local_connect(c.link, a.engine, a.incarnation, NULL, &c.peer),
				 0);
		node_settle(&a, &c);
		assert_string_equal(node_story(&c), "down ESHUTDOWN | ");
		node_close(&c);
	}
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
	node_region_free(&c);
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

/* So many call, and say hello, before the other side looks at its sockets. */
static void many__may_call_at_once(void **state)
{
	enum { COUNT = 80 };
	static struct node n[COUNT];

	a.quiet = true;
	for (int i = 0; i < COUNT; i++) {
		node_open(&n[i], SMALL_RING, 0);
		assert_int_equal(
			bw_local_connect(n[i].link, a.engine, a.incarnation, NULL, &n[i].peer), 0);
		assert_int_equal(node_send(&n[i], (uint64_t)i, 8), 0);
	}
	node_settle(&a, &b);
	for (int i = 0; i < COUNT; i++) {
		node_poll(&n[i]);
		assert_string_equal(node_story(&n[i]), "");
		assert_int_equal(node_send(&n[i], (uint64_t)i, 8), 0);
	}
	node_settle(&a, &b);
	assert_int_equal(a.messages, 2 * COUNT);
	assert_int_equal(bw_local_counters(a.link)->turned_away, 0);
	for (int i = 0; i < COUNT; i++)
		node_close(&n[i]);
	node_settle(&a, &b);
	assert_int_equal(a.downs, COUNT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, couple_open, couple_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(contact__from_both_sides_at_once_makes_one_peer),
		TEST(contact__tells_who_it_is),
		TEST(contact__with_nobody_is_refused_at_once),
		TEST(contact__with_a_dead_incarnation_is_refused),
		TEST(contact__from_another_cluster_is_turned_away),
		TEST(contact__the_host_does_not_want),
		TEST(contact__ends_with_a_status_that_is_an_end),
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
		TEST(many__may_call_at_once),
	};

	return cmocka_run_group_tests_name("local link's contacts", tests, NULL, NULL);
}
