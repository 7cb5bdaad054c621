/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sleeping and waking between two processes. Whoever goes to sleep says so and then looks a last
 * time; whoever writes a record then looks whether the other sleeps. Each must have its word
 * visible before it reads the other's, or both miss the other and a wake-up is lost for ever. With
 * the argument "long" more rounds of each, with another one only the tests of that name.
 */
#include "link/local/impl.h"
#include "process.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>

#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LITMUS_ROUNDS 300000
#define LITMUS_JITTER 24 /* turns of spin() */

/* The sender is late by so many turns of spin(), or the sleeper, if negative: whoever was first the
 * last time waits a turn longer, so that the two keep meeting where it matters. */
static int64_t lag;

static void litmus_shift(uint32_t me)
{
	int64_t turns = (me == 0 ? lag : -lag) + (int64_t)draw(LITMUS_JITTER);

	if (turns > 0)
		spin((uint64_t)turns);
}

/* One message, and one going to sleep, at the same time as exactly as can be; then a look at which
 * of the two noticed the other. True: asleep without a doorbell, the wake-up is lost. */
static bool litmus_round(struct node *n, uint32_t me, bool *asleep)
{
	struct pollfd fd = {.fd = bw_local_fd(n->link), .events = POLLIN};

	meet(me);
	/* With the other's word at hand it is read long before the own one, still on its way, can
	 * be seen, unless a barrier stands between them. */
	if (me == 0)
		__atomic_load_n(&n->peer->status->sleeping, __ATOMIC_RELAXED);
	litmus_shift(me);
	if (me == 0)
		CHECK(bw_local_send(n->peer, 1, 0, 0, NULL, 0, NULL) == 0);
	else
		board->taken = bw_local_arm(n->link) == 0;
	meet(me);
	*asleep = board->taken;
	lag += *asleep ? -1 : 1;

	bool lost = me == 1 && *asleep && poll(&fd, 1, 0) == 0;

	if (me == 1)
		bw_local_poll(n->link, 0, true);
	return lost;
}

/* Each of the two on a core of its own. */
static void litmus_pin(uint32_t me)
{
	cpu_set_t granted, one;
	int cpu = 0;

	CHECK(sched_getaffinity(0, sizeof(granted), &granted) == 0);
	CPU_ZERO(&one);
	for (uint32_t left = me + 1; left > 0; cpu++)
		left -= CPU_ISSET(cpu, &granted) != 0;
	CPU_SET(cpu - 1, &one);
	CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
}

static void litmus(uint32_t me)
{
	struct node n;
	uint64_t lost = 0, slept = 0, rounds = LITMUS_ROUNDS * effort;
	bool asleep;

	litmus_pin(me);
	rendezvous(&n, me, 0);
	for (uint64_t i = 0; i < rounds_in_all(); i++) {
		if (me == 0)
			round_begins(i, rounds);
		lost += litmus_round(&n, me, &asleep);
		slept += asleep;
	}
	if (lost > 0)
		fprintf(stderr, "of %llu sleeps %llu lost their wake-up\n",
			(unsigned long long)slept, (unsigned long long)lost);
	CHECK(lost == 0);
	/* It was no test if one of the two always came first. Where cores are short there are few
	 * rounds, and chance decides. */
	if (rounds_in_all() == rounds)
		CHECK(slept > rounds / 10 && slept < rounds - rounds / 10);
	if (me == 1)
		CHECK(n.messages == rounds_in_all());
	part();
}

static void sleep__at_the_moment_of_a_message(void **state)
{
	cpu_set_t granted;

	assert_int_equal(sched_getaffinity(0, sizeof(granted), &granted), 0);
	if (CPU_COUNT(&granted) < 2)
		skip();
	two(litmus);
}

/* The sender waits, beside the link, until a message was taken, and a moment longer: the next one
 * falls into the very time in which the receiver goes to sleep. */
static void sleepless(uint32_t me)
{
	struct node n;
	uint64_t rounds = 40000 * effort;

	rendezvous(&n, me, SMALL_RING);
	for (uint64_t i = 0; i < rounds_in_all(); i++) {
		if (me == 0) {
			round_begins(i, rounds);
			for (int k = 0; __atomic_load_n(&board->taken, __ATOMIC_ACQUIRE) < i; k++)
				if (k > 1000)
					sched_yield();
			spin(draw(2000));
			CHECK(node_send(&n, i, 8) == 0);
			continue;
		}
		while (n.messages == i)
			turn(&n);
		__atomic_store_n(&board->taken, i + 1, __ATOMIC_RELEASE);
	}
	part();
}

static void sleep__between_messages(void **state)
{
	two(sleepless);
}

/* Messages of all lengths, so that the ring is full with more or less left over. */
static void fill(struct node *n, uint64_t count)
{
	for (uint64_t i = 0; i < rounds_in_all(); i++) {
		uint64_t len = draw(draw(4) ? 200 : bw_local_send_limit(n->peer) + 1);
		int r;

		round_begins(i, count);
		while ((r = node_send(n, i, len)) == -EAGAIN)
			turn(n);
		CHECK(r == 0);
		if (draw(500) == 0)
			spin(draw(3000));
	}
}

/* One side sleeps when the ring is full; the other one takes what is there, in its own way. */
static void full(uint32_t me, void (*take)(struct node *n))
{
	struct node n;
	uint64_t count = 100000 * effort;

	rendezvous(&n, me, SMALL_RING);
	if (me == 0)
		fill(&n, count);
	while (me == 1 && n.messages < rounds_in_all())
		take(&n);
	CHECK(n.spoilt == 0);
	part();
}

/* It sleeps when the ring is empty. */
static void take_and_sleep(struct node *n)
{
	turn(n);
	if (draw(10) == 0)
		spin(draw(300));
}

static void full_and_empty(uint32_t me)
{
	full(me, take_and_sleep);
}

static void sleep__for_room_in_a_full_ring(void **state)
{
	two(full_and_empty);
}

/* It never sleeps, and so never has a reason to tell how far it is. */
static void take_restlessly(struct node *n)
{
	if (bw_local_poll(n->link, 0, false) == 0)
		sched_yield();
}

static void full_and_restless(uint32_t me)
{
	full(me, take_restlessly);
}

static void sleep__for_room_that_a_restless_peer_makes(void **state)
{
	two(full_and_restless);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, board_setup, board_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(sleep__at_the_moment_of_a_message),
		TEST(sleep__between_messages),
		TEST(sleep__for_room_in_a_full_ring),
		TEST(sleep__for_room_that_a_restless_peer_makes),
	};

	if (argc > 1 && strcmp(argv[1], "long") == 0)
		effort = 50;
	else if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("local link's sleepers", tests, NULL, NULL);
}
