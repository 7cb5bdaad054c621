/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The short way of short messages over the engine: taken in their frame, within its rx(). */
#include "endpoint.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reliable.h"

#define MANY	200
#define CREDITS 5000   /* messages whose credit is far beyond what is granted at once */
#define FEW	5      /* of them may be probed for, and come along with others */
#define BURST	20     /* messages on their way at a time */
#define LONG	20000  /* bytes: several frames */
#define FETCHED 300000 /* bytes: too long for that */

/* Of n messages; a few come along with others, after a probe. */
#define MOST(n) ((n) / 10 * 9)

struct side {
	struct bw_ep *ep;
	bw_peer_no other;
	uint64_t messages, sents, downs;
	uint64_t within;       /* messages taken within rx() */
	uint64_t last;	       /* imm of the last message */
	int status;	       /* of the last end of a send */
	uint64_t sents_before; /* `sents` at that message */
	uint32_t inside;       /* handlers of messages that have not returned */
	bool nested, disorder, progressed;
	void (*more)(struct side *s, const struct bw_message *m);
};

static struct side a, b;
static uint8_t bytes[FETCHED];

static void on_message(void *arg, const struct bw_message *m)
{
	struct side *s = arg;
	const struct bw_engine *e = s->ep->engine;

	s->nested |= s->inside++ != 0;
	s->messages++;
	s->within += m->imm && e->told.imm == m->imm;
	s->disorder |= m->imm && m->imm != s->last + 1;
	s->last = m->imm;
	s->sents_before = s->sents;
	if (s->more)
		s->more(s, m);
	s->inside--;
}

static void on_sent(void *arg, void *op, int status)
{
	struct side *s = arg;

	s->sents++;
	s->status = status;
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
	struct side *s = arg;

	s->downs++;
}

static const struct bw_handlers handlers = {on_message, on_sent, on_pulled, on_down, NULL};

static void open_side(struct side *s)
{
	struct bw_ep_attr attr = {.handlers = &handlers, .arg = s, .no_helper = true};
	const char *why;

	*s = (struct side){0};
	if (bw_ep_open(&s->ep, &attr, &why))
		fail_msg("%s", why);
}

static int open_both(void **state)
{
	setenv("BEOWIRE_LINKS", "udp", 1);
	setenv("BEOWIRE_UDP_ADDRESS", "127.0.0.1", 1);
	open_side(&a);
	open_side(&b);
	a.other = endpoint_find(a.ep, b.ep);
	b.other = endpoint_find(b.ep, a.ep);
	/* First contact, and the flow of messages, are made before anything is counted. */
	assert_int_equal(bw_send(a.ep, a.other, 1, 1, 0, "word", 4, BW_SEND_ACKED, &a), 0);
	endpoint_await(a.ep, b.ep, &a.sents, 1);
	assert_int_equal(bw_send(b.ep, b.other, 1, 1, 0, "word", 4, BW_SEND_ACKED, &b), 0);
	endpoint_await(a.ep, b.ep, &b.sents, 1);
	return 0;
}

static int close_both(void **state)
{
	bw_ep_close(a.ep, BW_S);
	if (b.ep)
		bw_ep_close(b.ep, BW_S);
	return 0;
}

static void say(struct side *s, uint64_t imm, uint64_t len)
{
	assert_int_equal(bw_send(s->ep, s->other, 1, imm, imm, bytes, len, 0, NULL), 1);
}

static void message__is_taken_in_its_frame(void **state)
{
	for (uint64_t i = 1; i <= MANY; i++) {
		say(&a, i, i % 64);
		endpoint_await(a.ep, b.ep, &b.messages, i + 1);
	}
	assert_in_range(b.within, MOST(MANY), MANY);
	assert_false(b.disorder);
}

/* Those that need several frames come between, by events. */
static void message__of_several_frames_keeps_its_place(void **state)
{
	uint64_t next = 1;

	for (int i = 0; i < BURST; i++) {
		say(&a, next++, 8);
		assert_int_equal(
			bw_send(a.ep, a.other, 1, next, next, bytes, LONG, BW_SEND_EAGER, NULL), 1);
		next++;
	}
	endpoint_await(a.ep, b.ep, &b.messages, next);
	assert_false(b.disorder);
	assert_false(b.nested);
	assert_in_range(b.within, 1, BURST);
}

/* A handler may do all but make progress. */
static void answer(struct side *s, const struct bw_message *m)
{
	s->progressed |= bw_progress(s->ep) != 0 || bw_wait(s->ep, 0) != -EINVAL;
	say(s, m->imm, 8);
}

static void handler__answers_and_makes_no_progress(void **state)
{
	b.more = answer;
	for (uint64_t i = 1; i <= MANY; i++) {
		say(&a, i, 8);
		if (i % BURST == 0)
			endpoint_await(a.ep, b.ep, &a.messages, i + 1);
	}
	assert_false(b.progressed);
	assert_false(b.nested);
	assert_false(a.disorder);
	assert_false(b.disorder);
	assert_in_range(b.within, MANY / BURST, MANY);
}

/* That a send was taken is told before the answer that brings the news. */
static void end_of_a_send__comes_before_the_answer(void **state)
{
	b.more = answer;
	for (uint64_t i = 1; i <= MANY; i++) {
		assert_int_equal(bw_send(a.ep, a.other, 1, i, i, bytes, 8, BW_SEND_ACKED, &a), 0);
		endpoint_await(a.ep, b.ep, &a.messages, i + 1);
		assert_int_equal(a.sents_before, i + 1);
	}
}

/* Who takes messages grants their credit again, even if it never says a word itself. */
static void credit__is_granted_again(void **state)
{
	const struct bw_counters *c = bw_reliable.counters(a.ep->engine);

	for (uint64_t i = 1; i <= CREDITS; i++) {
		say(&a, i, 8);
		endpoint_await(a.ep, b.ep, &b.messages, i + 1);
	}
	assert_in_range(b.within, MOST(CREDITS), CREDITS);
	assert_int_equal(c->credit_stalls, 0);
}

/* What a frame asks for leaves in the round that took it. */
static void answer__is_not_put_off(void **state)
{
	for (uint64_t i = 1; i <= MANY; i++) {
		assert_int_equal(bw_send(a.ep, a.other, 1, i, i, bytes, 8, BW_SEND_ACKED, &a), 0);
		endpoint_await(b.ep, b.ep, &b.messages, i + 1);
		bw_progress(a.ep);
		assert_int_equal(a.sents, i + 1);
	}
	assert_int_equal(a.status, 0);
}

/* What a call ended is told in the next round, though no frame comes. */
static void end_of_a_send__is_told_in_the_next_round(void **state)
{
	uint64_t sents = a.sents;

	assert_int_equal(bw_send(a.ep, a.other, 1, 1, 1, bytes, FETCHED, 0, &a), 0);
	assert_int_equal(bw_send_cancel(a.ep, &a), 0);
	assert_int_equal(a.sents, sents);
	bw_progress(a.ep);
	assert_int_equal(a.sents, sents + 1);
	assert_int_equal(a.status, -ECANCELED);
}

static void farewell__is_sent(void **state)
{
	bw_ep_close(b.ep, BW_S);
	b.ep = NULL;
	for (int i = 0; i < MANY && !a.downs; i++)
		bw_progress(a.ep);
	assert_int_equal(a.downs, 1);
}

/* An endpoint that closes has something in doubt: its acknowledgements may be lost, with BYE. */
static void farewell__is_said_again_where_it_matters(void **state)
{
	const struct bw_engine *e = a.ep->engine;
	uint64_t began = bw_clock_now(), took;

	say(&a, 1, 8);
	endpoint_await(a.ep, b.ep, &b.messages, 2);
	began = bw_clock_now();
	bw_ep_close(b.ep, BW_S);
	took = bw_clock_now() - began;
	b.ep = NULL;
	assert_true(took >= (BW_BYES - 1) * BW_BYE_PAUSE);
	for (int i = 0; i < MANY && e->count.drop[BW_DROP_HANDLE] < BW_BYES - 1; i++)
		bw_progress(a.ep);
	assert_int_equal(a.downs, 1);
	assert_in_range(e->count.drop[BW_DROP_HANDLE], BW_BYES - 1, 2 * (BW_BYES - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(message__is_taken_in_its_frame, open_both,
						close_both),
		cmocka_unit_test_setup_teardown(message__of_several_frames_keeps_its_place,
						open_both, close_both),
		cmocka_unit_test_setup_teardown(handler__answers_and_makes_no_progress, open_both,
						close_both),
		cmocka_unit_test_setup_teardown(end_of_a_send__comes_before_the_answer, open_both,
						close_both),
		cmocka_unit_test_setup_teardown(answer__is_not_put_off, open_both, close_both),
		cmocka_unit_test_setup_teardown(end_of_a_send__is_told_in_the_next_round, open_both,
						close_both),
		cmocka_unit_test_setup_teardown(farewell__is_sent, open_both, close_both),
		cmocka_unit_test_setup_teardown(farewell__is_said_again_where_it_matters, open_both,
						close_both),
		cmocka_unit_test_setup_teardown(credit__is_granted_again, open_both, close_both),
	};

	return cmocka_run_group_tests_name("short", tests, NULL, NULL);
}
