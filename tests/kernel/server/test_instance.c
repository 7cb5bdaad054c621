/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An instance of beowire-server: what callers do ends no call of a program that has not sent to
 * them, and takes no more memory than there is for it.
 */
#include "callers.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB (1ull << 20)

/* ---- whose end is told ---- */

/* It has forgotten the instance, and calls anew: its conversation is reset. */
static void caller_resets(struct caller *c, uint32_t number)
{
	uint32_t before = told.arrived;

	caller_begin(c, number);
	caller_meets(c);
	caller_posts(c, 1);
	pass(c, 5 * BW_S);
	assert_int_equal(told.arrived, before + 1);
	assert_int_equal(bw_reliable.counters(in->engine)->peers, 1);
}

static void end__of_a_stranger_is_not_told(void **state)
{
	struct caller c = {0};

	caller_calls(&c, 1);
	caller_resets(&c, 1);
	assert_int_equal(told.failed, 0);
	caller_free(&c);
}

static void end__of_whom_the_program_has_answered_is_told(void **state)
{
	struct caller c = {0};

	caller_calls(&c, 1);
	program_sends(&told.from, 1);
	settle(&c);
	assert_int_equal(c.taken, 1);
	caller_resets(&c, 1);
	assert_int_equal(told.error, ECONNRESET);
	caller_free(&c);
}

/* First contact was not made yet when the program sent. */
static void end__of_whom_the_program_has_called_is_told(void **state)
{
	struct sockaddr_beowire to;
	struct caller c = {0};

	caller_begin(&c, 1);
	to = address(&c);
	program_sends(&to, 1);
	pass(&c, 10 * BW_MS);
	assert_int_equal(c.taken, 1);
	caller_resets(&c, 1);
	assert_int_equal(told.error, ECONNRESET);
	caller_free(&c);
}

static void end__of_whom_nobody_has_heard_is_told(void **state)
{
	struct caller nobody = {0};
	struct sockaddr_beowire to;

	caller_begin(&nobody, 1);
	nobody.mute = 1;
	to = address(&nobody);
	to.sbw_mac[1] = 1;
	program_sends(&to, 1);
	pass(&nobody, 70 * BW_S);
	assert_int_equal(told.done, 1);
	assert_int_equal(told.error, ETIMEDOUT);
	caller_free(&nobody);
}

/* A message that was begun, of which no more comes. */
static void caller_begins(struct caller *c, uint32_t number)
{
	caller_calls(c, number);
	c->mute = 2;
	caller_sends(c, LONG);
}

static void end__of_half_a_message_is_not_told(void **state)
{
	uint32_t peers;
	struct caller c = {0};

	caller_begins(&c, 1);
	peers = (uint32_t)bw_reliable.counters(in->engine)->peers;
	assert_int_equal(peers, 1);
	pass(&c, 200 * BW_S);
	assert_int_equal(bw_reliable.counters(in->engine)->peers, 0);
	assert_int_equal(told.failed, 0);
	assert_int_equal(told.arrived, 1);
	caller_free(&c);
}

/* ---- what callers take ---- */

/* More of them come, and stay, than there is memory for. */
static void memory__of_callers_is_bounded(void **state)
{
	enum { CALLERS = 40000, MORE = 100 };
	struct caller friend = {0}, c = {0};
	struct sockaddr_beowire to;
	uint32_t i, taken;

	caller_calls(&friend, CALLERS);
	program_sends(&told.from, 1);
	settle(&friend);
	for (i = 0; i < CALLERS; i++) {
		caller_begin(&c, i);
		caller_meets(&c);
		caller_sends(&c, 1);
		now += BW_MS;
	}
	assert_in_range(memory.peak, 40 * MIB, 60 * MIB);
	assert_true(bw_reliable.counters(in->engine)->evicted > 0);
	assert_int_equal(told.failed, 0);

	/* Others that come then find room, */
	now += 2 * BW_S;
	for (i = 0; i < MORE; i++) {
		caller_begin(&c, CALLERS + 1 + i);
		caller_meets(&c);
		taken = told.arrived;
		caller_sends(&c, 1);
		pass(&c, 5 * BW_S);
		assert_int_equal(told.arrived, taken + 1);
	}
	/* and so does the program, whose peer is still there. */
	caller_begin(&c, 2 * CALLERS);
	to = address(&c);
	program_sends(&to, 1);
	pass(&c, 5 * BW_S);
	assert_int_equal(c.taken, 1);
	taken = told.arrived;
	caller_sends(&friend, 1);
	assert_int_equal(told.arrived, taken + 1);
	assert_int_equal(friend.down, 0);
	assert_int_equal(told.failed, 0);
	assert_in_range(memory.peak, 40 * MIB, 60 * MIB);
	caller_free(&friend);
	caller_free(&c);
}

/* What is left to the program is no more than that. */
static void memory__of_the_programs_peers_is_bounded(void **state)
{
	struct sockaddr_beowire to = {.sbw_port = 1, .sbw_ifindex = 1, .sbw_mac = {2, 3}};
	uint32_t i;

	for (i = 0; i < 40000 && !told.failed; i++) {
		memcpy(to.sbw_mac + 2, &i, sizeof(i));
		program_sends(&to, 1);
		lose();
	}
	assert_in_range(i, 10000, 39999);
	assert_int_equal(told.error, ENOBUFS);
	assert_in_range(memory.peak, 60 * MIB, 80 * MIB);
}

/* Messages that many have begun leave room for one that is whole, once it is known that they stand
 * still. */
static void memory__of_messages_that_begin_is_bounded(void **state)
{
	enum { CALLERS = 1500 };
	struct caller c = {0};
	uint32_t i, taken;

	for (i = 0; i < CALLERS; i++)
		caller_begins(&c, i);
	assert_in_range(memory.peak, 40 * MIB, 56 * MIB);
	taken = told.arrived;
	caller_calls(&c, CALLERS);
	caller_sends(&c, LONG);
	pass(&c, 10 * BW_S);
	assert_int_equal(told.arrived, taken + 2);
	assert_int_equal(told.bytes, LONG);
	assert_int_equal(told.failed, 0);
	assert_int_equal(c.down, 0);
	assert_in_range(memory.peak, 40 * MIB, 56 * MIB);
	caller_free(&c);
}

/* The instance's handle of a caller that has called. */
static uint32_t handle(const struct caller *c)
{
	const struct peer *peer;

	for (uint32_t i = 0; i < in->peers.buckets; i++)
		for (peer = in->peers.bucket[i]; peer; peer = peer->next)
			if (peer->addr.sbw_port == c->port)
				return peer->handle;
	return 0;
}

/* Whose messages wait for one that there was no room for does not keep anybody out. A program that
 * has sent to who does is told that he was given up. */
static void memory__is_left_to_whom_it_holds_up(void **state)
{
	static uint64_t taken[(MEMORY_ARRIVING_MAX + MEMORY_ARRIVING_NEXT) / LONG];
	struct caller held = {0}, holder = {0};
	uint32_t who[2], n = 0;

	caller_calls(&held, 1);
	caller_calls(&holder, 2);
	program_sends(&told.from, 1);
	settle(&holder);
	who[0] = handle(&held);
	who[1] = handle(&holder);
	taken[n++] = in->ops.buf_get(in, who[0], LONG, false);
	while ((taken[n] = in->ops.buf_get(in, who[1], LONG, true)))
		n++;
	now += MEMORY_ARRIVING_STALE - BW_MS;
	assert_int_equal(in->ops.buf_get(in, who[0], LONG, true), 0);
	now += BW_MS;
	instance_run(in);
	instance_run(in);
	assert_non_null(peers_find(&in->peers, who[0]));
	assert_null(peers_find(&in->peers, who[1]));
	assert_int_equal(told.failed, 1);
	assert_int_equal(told.error, ETIMEDOUT);
	assert_int_equal(in->given_up, 1);
	while (n)
		in->ops.buf_put(in, taken[--n]);
	caller_free(&held);
	caller_free(&holder);
}

/* Nothing ends for want of memory: a send fails, and what comes comes later. */
static void memory__that_is_not_there_ends_nothing(void **state)
{
	struct caller c = {0}, other = {0};

	caller_calls(&c, 1);
	memory.none = true;
	program_sends(&told.from, 100);
	assert_int_equal(told.done, 1);
	assert_int_equal(told.error, ENOMEM);
	caller_posts(&c, LONG);
	pass(&c, 100 * BW_MS);
	assert_int_equal(told.arrived, 1);
	memory.none = false;
	pass(&c, 5 * BW_S);
	assert_int_equal(told.arrived, 2);
	assert_int_equal(told.bytes, LONG);

	/* Who cannot be noted down is given up, and does not take what it said for taken. */
	caller_begin(&other, 2);
	caller_meets(&other);
	memory.none = true;
	pass(&other, 10 * BW_MS);
	assert_int_not_equal(other.down, 0);
	memory.none = false;
	caller_free(&other);
	caller_free(&c);
}

/* ---- interfaces ---- */

/* The kernel's list has them in another order once one has gone, and other sockets have it read. */
static void links__of_an_instance_stay_what_they_are(void **state)
{
	struct caller c = {0}, other = {0};
	struct sockaddr_beowire to;

	caller_calls(&c, 1);
	program_sends(&told.from, 1);
	lose();
	interface[0].ifindex = 2;
	interface[1] = (struct beowire_server_iface){.ifindex = 3, .mtu = 1500};
	program_opens_another();
	left_by = 0;
	pass(&c, 5 * BW_S);
	assert_int_equal(left_by, 1);
	assert_int_equal(c.taken, 1);
	caller_sends(&c, 1);
	assert_int_equal(told.arrived, 2);
	assert_int_equal(told.from.sbw_ifindex, 1);
	program_sends(&told.from, 1);
	settle(&c);
	assert_int_equal(c.taken, 2);

	/* One that came later is used as well, the first of those in use where none is named, */
	caller_begin(&other, 2);
	to = address(&other);
	to.sbw_ifindex = 3;
	program_sends(&to, 1);
	assert_int_equal(left_by, 3);
	caller_begin(&other, 3);
	to = address(&other);
	to.sbw_ifindex = 0;
	program_sends(&to, 1);
	assert_int_equal(left_by, 2);
	/* and none that is not in use. */
	caller_begin(&other, 4);
	to = address(&other);
	to.sbw_ifindex = 4;
	program_sends(&to, 1);
	assert_int_equal(told.error, EHOSTUNREACH);
	caller_free(&other);
	caller_free(&c);
}

#define test(function) cmocka_unit_test_setup_teardown(function, callers_begin, callers_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(end__of_a_stranger_is_not_told),
		test(end__of_whom_the_program_has_answered_is_told),
		test(end__of_whom_the_program_has_called_is_told),
		test(end__of_whom_nobody_has_heard_is_told),
		test(end__of_half_a_message_is_not_told),
		test(memory__of_callers_is_bounded),
		test(memory__of_the_programs_peers_is_bounded),
		test(memory__of_messages_that_begin_is_bounded),
		test(memory__is_left_to_whom_it_holds_up),
		test(memory__that_is_not_there_ends_nothing),
		test(links__of_an_instance_stay_what_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
