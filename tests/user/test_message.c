/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is kept of messages is given back: two endpoints of one process, looked into. */
#include "endpoint.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define CANCELED   20000
#define COPY_BYTES 300000 /* of a message that is copied */
#define COPIES	   60	  /* more than may wait at a time for one peer */

#define EAGER 8192 /* bytes of a message that is copied and sent at once */
#define MANY  900

static struct bw_ep *a, *b, *deaf;
static struct told at_a, at_b, at_deaf;
static bw_peer_no to_b, to_deaf;
static uint8_t from[COPY_BYTES], to[COPY_BYTES];

static bool clock_stands; /* so that nothing is sent again for want of an answer */

/* In place of the C library's. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
	static struct timespec last;

	if (clock == CLOCK_MONOTONIC && clock_stands) {
		*t = last;
		return 0;
	}
	if (syscall(SYS_clock_gettime, clock, t))
		return -1;
	if (clock == CLOCK_MONOTONIC)
		last = *t;
	return 0;
}

static int open_both(const char *links)
{
	a = endpoint_open(links, &at_a);
	b = endpoint_open(links, &at_b);
	to_b = endpoint_find(a, b);
	/* They know each other before anything is counted. */
	assert_int_equal(bw_send(a, to_b, 1, 1, 1, "word", 4, BW_SEND_ACKED, &to_b), 0);
	endpoint_await(a, b, &at_a.sents, 1);
	return 0;
}

static int open_local(void **state)
{
	return open_both("local");
}

/* Where a has to send what b pulls. */
static int open_local_by_ring(void **state)
{
	setenv("BEOWIRE_LOCAL_CMA", "off", 1);
	open_both("local");
	unsetenv("BEOWIRE_LOCAL_CMA");
	return 0;
}

static int open_udp(void **state)
{
	return open_both("udp");
}

static int close_both(void **state)
{
	clock_stands = false;
	bw_ep_close(a, BW_S);
	if (b)
		bw_ep_close(b, BW_S);
	return 0;
}

/* A send that is taken back leaves nothing behind, however often. */
static void cancel__gives_back_what_it_describes(void **state)
{
	uint64_t messages, bytes = 0;

	for (int i = 0; i < CANCELED; i++) {
		messages = at_b.messages;
		assert_int_equal(bw_send(a, to_b, 1, 1, 1, from, sizeof(from), 0, &from[i]), 0);
		assert_int_equal(bw_send_cancel(a, &from[i]), 0);
		endpoint_await(a, b, &at_a.sents, (uint64_t)i + 2);
		assert_int_equal(at_a.status, -ECANCELED);
		endpoint_await(a, b, &at_b.messages, messages + 1);
		/* Who pulls it hears of that, and releases it. */
		assert_int_equal(bw_pull(b, at_b.peer, &at_b.rndv, to, sizeof(to), to), 0);
		endpoint_await(a, b, &at_b.pulleds, (uint64_t)i + 1);
		assert_int_equal(at_b.status, -ECANCELED);
		if (i == 100)
			bytes = a->buffers.bytes;
	}
	assert_int_equal(a->buffers.bytes, bytes);
	assert_null(a->pending);
}

/* Copies are charged to their peer until they are pulled, and no longer. */
static void copy__leaves_the_account_when_it_is_pulled(void **state)
{
	struct bw_remote *p = bw_remote_get(&a->remotes, to_b);

	memset(from, 7, sizeof(from));
	for (uint64_t i = 0; i < COPIES; i++) {
		p->taken_cost = 2 * BW_COST_SLOW;
		assert_int_equal(bw_send(a, to_b, 1, 1, 1, from, sizeof(from), 0, from), 1);
		assert_int_equal(p->copied, sizeof(from));
		assert_int_equal(a->copies.bytes, sizeof(from));
		endpoint_await(a, b, &at_b.messages, i + 2);
		assert_int_equal(bw_pull(b, at_b.peer, &at_b.rndv, to, sizeof(to), to), 0);
		endpoint_await(a, b, &at_b.pulleds, i + 1);
		assert_int_equal(at_b.status, 0);
		for (uint64_t until = bw_clock_now() + SOON_MS * BW_MS;
		     p->copied && bw_clock_now() < until; bw_progress(a))
			bw_progress(b);
		assert_int_equal(p->copied, 0);
		assert_int_equal(a->copies.bytes, 0);
	}
	assert_int_equal(a->copies.taken, COPIES);
	assert_memory_equal(to, from, sizeof(to));
}

/* For one peer there are no more than so many. */
static void copy__is_not_made_beyond_the_account(void **state)
{
	struct bw_remote *p = bw_remote_get(&a->remotes, to_b);
	uint32_t copied = 0;

	p->taken_cost = 2 * BW_COST_SLOW;
	while (bw_send(a, to_b, 1, 1, 1, from, sizeof(from), 0, &to_b) == 1)
		copied += sizeof(from);
	assert_int_equal(p->copied, copied);
	assert_in_range(copied, (4 << 20) - sizeof(from), 4 << 20);
	/* The last one was not copied, and is the program's to take back. */
	assert_int_equal(bw_send_cancel(a, &to_b), 0);
	endpoint_await(a, b, &at_a.sents, 2);
	assert_int_equal(at_a.status, -ECANCELED);
}

/* Where pulls take no longer than copies cost, nothing is copied. */
static void copy__is_not_made_where_pulls_are_fast(void **state)
{
	struct bw_remote *p = bw_remote_get(&a->remotes, to_b);

	for (int slow = 0; slow < 2; slow++) {
		p->taken_cost = BW_COST_SLOW + (uint32_t)slow;
		assert_int_equal(bw_send(a, to_b, 1, 1, 1, from, sizeof(from), 0, &to_b), slow);
	}
	assert_int_equal(a->copies.taken, 1);
}

/* Nobody pulls them any more. */
static void copies__for_a_dead_peer_are_given_up(void **state)
{
	struct bw_remote *p = bw_remote_get(&a->remotes, to_b);

	for (int i = 0; i < 3; i++) {
		p->taken_cost = 2 * BW_COST_SLOW;
		assert_int_equal(bw_send(a, to_b, 1, 1, 1, from, sizeof(from), 0, from), 1);
	}
	assert_int_equal(a->copies.bytes, 3 * sizeof(from));
	endpoint_await(a, b, &at_b.messages, 4);
	bw_ep_close(b, 0);
	b = NULL;
	endpoint_await(a, a, &at_a.downs, 1);
	assert_int_equal(a->copies.bytes, 0);
	assert_int_equal(p->copied, 0);
	assert_null(a->pending);
	assert_int_equal(at_a.sents, 1); /* but for the first one nobody hears of their end */
}

/* A dead peer has no way any more, and says so whatever is asked of it. */
static void dead__peers_are_asked_in_vain(void **state)
{
	bw_ep_close(b, 0);
	b = NULL;
	endpoint_await(a, a, &at_a.downs, 1);
	assert_int_equal(bw_eager_max(a, to_b), a->eager_max);
	assert_int_equal(bw_send(a, to_b, 1, 1, 1, from, 1, 0, NULL), at_a.status);
	assert_int_equal(bw_read(a, to_b, 1, 0, to, 1, to), at_a.status);
	assert_int_equal(bw_pull(a, to_b, &(struct bw_rndv){{0}}, to, 1, to), at_a.status);
	assert_int_equal(bw_pull_cancel(a, to_b, to), -ENOENT);
}

/* What is no envelope of this peer, or came by a way that does not lead to it, cannot be pulled. */
static void pull__needs_the_way_that_the_envelope_came(void **state)
{
	struct bw_remote *p = bw_remote_get(&a->remotes, to_b);

	for (uint64_t kind = 0; kind < 6; kind++) {
		struct bw_rndv rndv = {{0}};

		rndv.word[BW_RNDV_KIND] = kind;
		if (kind != (p->local ? BW_RNDV_LOCAL : BW_RNDV_ENGINE))
			assert_int_equal(bw_pull(a, to_b, &rndv, to, 1, to), -EINVAL);
	}
	assert_int_equal(at_a.pulleds, 0);
}

/* b gives up a pull of what a has offered, `rounds` rounds after it began: what comes of it later
 * goes nowhere, and a is released all the same. */
static void give_up_a_pull(int rounds)
{
	memset(from, 7, sizeof(from));
	memset(to, 1, sizeof(to));
	assert_int_equal(bw_send(a, to_b, 1, 1, 1, from, sizeof(from), 0, from), 0);
	endpoint_await(b, b, &at_b.messages, 2);
	assert_int_equal(bw_pull(b, at_b.peer, &at_b.rndv, to, sizeof(to), to), 0);
	for (int i = 0; i < rounds; i++)
		bw_progress(b);
	assert_int_equal(bw_pull_cancel(b, at_b.peer, from), -ENOENT);
	assert_int_equal(bw_pull_cancel(b, at_b.peer, to), 0);
	assert_int_equal(bw_pull_cancel(b, at_b.peer, to), -ENOENT);
	endpoint_await(b, b, &at_b.pulleds, 1);
	assert_int_equal(at_b.status, -ECANCELED);
	endpoint_await(a, b, &at_a.sents, 2);
	assert_int_equal(at_a.status, 0);
	assert_int_equal(at_b.pulleds, 1);
	for (size_t i = 0; i < sizeof(to); i++)
		assert_int_equal(to[i], 1);
}

static void cancel__of_a_pull_before_it_begins(void **state)
{
	give_up_a_pull(0);
}

static void cancel__of_a_pull_under_way(void **state)
{
	give_up_a_pull(5);
}

/* What comes to b is lost until this is: a may have something else to say, to the size of frames
 * that pass, say. */
static void lose(const char *word)
{
	struct pollfd fd = {.fd = b->udp.socket[0].fd, .events = POLLIN};
	uint8_t frame[2048];
	ssize_t n;

	do {
		assert_int_equal(poll(&fd, 1, SOON_MS), 1);
		n = recv(fd.fd, frame, sizeof(frame), 0);
		assert_true(n > 0);
	} while (!memmem(frame, (size_t)n, word, strlen(word)));
}

/* One that was acknowledged is handed over only if all before it are: they are told in their order,
 * whether or not somebody wants to hear of the one that was lost. */
static void handed__is_told_behind_what_was_lost(void **state)
{
	struct bw_remote *p = bw_remote_get(&a->remotes, to_b);
	uint64_t told = at_a.sents, messages = at_b.messages, ends;
	int result;

	for (int quiet = 0; quiet < 2; quiet++) {
		clock_stands = true;
		result = bw_send(a, to_b, 1, 1, 1, "lost", 4, quiet ? 0 : BW_SEND_HANDED, &told);
		assert_int_equal(result, quiet);
		lose("lost");
		assert_int_equal(bw_send(a, to_b, 1, 1, 1, "word", 4, BW_SEND_HANDED, &told), 0);
		while (p->sent_last->use != BW_BUFFER_ENDED) {
			bw_progress(b);
			bw_progress(a);
		}
		assert_int_equal(p->sent->use, BW_BUFFER_COPY);
		assert_int_equal(at_a.sents, told);
		assert_int_equal(at_b.messages, messages);
		clock_stands = false;
		ends = quiet ? 1 : 2;
		endpoint_await(a, b, &at_a.sents, told + ends);
		assert_int_equal(at_b.messages, messages + 2);
		assert_null(p->sent);
		assert_int_equal(a->copied, 0);
		told += ends;
		messages += 2;
	}
}

/* The peer leaves with a gap: what it had acknowledged behind that was handed to nobody. */
static void handed__fails_with_what_was_lost_before_it(void **state)
{
	struct bw_remote *p = bw_remote_get(&a->remotes, to_b);
	uint64_t told = at_a.sents, messages = at_b.messages;

	clock_stands = true;
	assert_int_equal(bw_send(a, to_b, 1, 1, 1, "lost", 4, BW_SEND_HANDED, &told), 0);
	lose("lost");
	assert_int_equal(bw_send(a, to_b, 1, 1, 1, "word", 4, BW_SEND_HANDED, &told), 0);
	while (p->sent_last->use != BW_BUFFER_ENDED) {
		bw_progress(b);
		bw_progress(a);
	}
	assert_int_equal(at_b.messages, messages);
	clock_stands = false;
	bw_ep_close(b, 0);
	b = NULL;
	for (uint64_t until = bw_clock_now() + SOON_MS * BW_MS;
	     at_a.sents < told + 2 && bw_clock_now() < until;)
		bw_progress(a);
	assert_int_equal(at_a.sents, told + 2);
	assert_int_equal(at_a.failed, 2);
}

/* Beside a and b one that has made contact, and does nothing since. */
static int open_udp_with_one_deaf(void **state)
{
	open_both("udp");
	deaf = endpoint_open("udp", &at_deaf);
	to_deaf = endpoint_find(a, deaf);
	assert_int_equal(bw_send(a, to_deaf, 1, 1, 1, "word", 4, BW_SEND_ACKED, &to_deaf), 0);
	endpoint_await(a, deaf, &at_a.sents, 2);
	return 0;
}

static int close_all(void **state)
{
	bw_ep_close(a, 0);
	bw_ep_close(b, 0);
	bw_ep_close(deaf, 0);
	return 0;
}

/* Send to who takes nothing until there is no room: bytes that it took. */
static uint64_t fill_up(uint64_t len, uint64_t enough)
{
	uint64_t sent = 0;
	int result;

	while ((result = bw_send(a, to_deaf, 1, 1, 1, from, len, 0, NULL)) == 1 && sent < enough)
		sent += len + 256;
	assert_int_equal(result, -EAGAIN);
	return sent;
}

/* The share of one peer, which takes nothing, does not make others wait. */
static void eager__one_without_credit_leaves_room_for_others(void **state)
{
	struct bw_remote *p = bw_remote_get(&a->remotes, to_deaf);
	uint64_t most = fill_up(EAGER, 64 << 20), all = a->copied, messages = at_b.messages;

	assert_in_range(most, 15 << 20, 17 << 20);
	assert_in_range(p->eager, most - (1 << 20), most);
	assert_int_equal(p->eager, all);
	/* All at once, without any look at what arrives. */
	for (int i = 0; i < MANY; i++)
		assert_int_equal(bw_send(a, to_b, 1, 1, 1, from, EAGER, 0, NULL), 1);
	assert_int_equal(bw_send(a, to_deaf, 1, 1, 1, from, EAGER, 0, NULL), -EAGAIN);
	endpoint_await(a, b, &at_b.messages, messages + MANY);
	for (uint64_t until = bw_clock_now() + SOON_MS * BW_MS;
	     a->copied > all && bw_clock_now() < until; bw_progress(a))
		bw_progress(b);
	assert_int_equal(a->copied, p->eager);
	assert_int_equal(bw_remote_get(&a->remotes, to_b)->eager, 0);
}

/* What is kept about a message counts, not its bytes alone. */
static void eager__messages_of_nothing_are_counted(void **state)
{
	assert_in_range(fill_up(0, 64 << 20), 15 << 20, 17 << 20);
	assert_int_equal(bw_send(a, to_b, 1, 1, 1, NULL, 0, 0, NULL), 1);
}

/* The mean of what transfers took, in nanoseconds per KiB. */
static void cost__follows_what_transfers_take(void **state)
{
	uint32_t cost = 0;

	bw_cost_learn(&cost, 1000000, BW_COST_LEAST - 1); /* too short to tell */
	assert_int_equal(cost, 0);
	bw_cost_learn(&cost, 100000, 102400);
	assert_int_equal(cost, 1000);
	bw_cost_learn(&cost, 500000, 102400);
	assert_int_equal(cost, 1000 - 250 + 1250);
	for (int i = 0; i < 30; i++)
		bw_cost_learn(&cost, UINT32_MAX, 102400); /* late for reasons of its own */
	assert_true(bw_cost_is_high(cost) && cost <= BW_COST_LATE);
	for (int i = 0; i < 4; i++)
		bw_cost_learn(&cost, 10000, 102400);
	assert_false(bw_cost_is_high(cost));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(cancel__gives_back_what_it_describes, open_local,
						close_both),
		cmocka_unit_test_setup_teardown(copy__leaves_the_account_when_it_is_pulled,
						open_udp, close_both),
		cmocka_unit_test_setup_teardown(copy__is_not_made_beyond_the_account, open_udp,
						close_both),
		cmocka_unit_test_setup_teardown(copy__is_not_made_where_pulls_are_fast, open_udp,
						close_both),
		cmocka_unit_test_setup_teardown(copies__for_a_dead_peer_are_given_up, open_udp,
						close_both),
		cmocka_unit_test_setup_teardown(dead__peers_are_asked_in_vain, open_local,
						close_both),
		cmocka_unit_test_setup_teardown(dead__peers_are_asked_in_vain, open_udp,
						close_both),
		cmocka_unit_test_setup_teardown(pull__needs_the_way_that_the_envelope_came,
						open_local, close_both),
		cmocka_unit_test_setup_teardown(pull__needs_the_way_that_the_envelope_came,
						open_udp, close_both),
		cmocka_unit_test_setup_teardown(cancel__of_a_pull_before_it_begins, open_local,
						close_both),
		cmocka_unit_test_setup_teardown(cancel__of_a_pull_under_way, open_local_by_ring,
						close_both),
		cmocka_unit_test_setup_teardown(cancel__of_a_pull_under_way, open_udp, close_both),
		cmocka_unit_test_setup_teardown(handed__fails_with_what_was_lost_before_it,
						open_udp, close_both),
		cmocka_unit_test_setup_teardown(handed__is_told_behind_what_was_lost, open_udp,
						close_both),
		cmocka_unit_test_setup_teardown(eager__one_without_credit_leaves_room_for_others,
						open_udp_with_one_deaf, close_all),
		cmocka_unit_test_setup_teardown(eager__messages_of_nothing_are_counted,
						open_udp_with_one_deaf, close_all),
		cmocka_unit_test(cost__follows_what_transfers_take),
	};

	return cmocka_run_group_tests_name("message", tests, NULL, NULL);
}
