/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Is the transport chosen that moves more? The connections are the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "choice.h"

#define MS    1000000ull
#define S     (1000 * MS)
#define START (100 * S)
/* Of a comparison, where connections change at once. */
#define WHOLE (BWS_CHOICE_WINDOWS * (BWS_CHOICE_MEASURE + BWS_CHOICE_SETTLE))

/* Connections that move so much. */
struct load {
	struct bws_choice choice;
	uint64_t now, bytes, changed_at;
	double rate[2];	 /* bytes per second: Beowire, TCP */
	double noise;	 /* each millisecond differs by up to so much of it */
	uint64_t change; /* ns that connections need to change */
	bool crowded;
	uint32_t changes;  /* of the transport */
	uint64_t ns[2];	   /* spent by each */
	uint32_t compared; /* comparisons begun */
};

static struct load load_of(double beowire, double tcp)
{
	return (struct load){.now = START, .rate = {beowire, tcp}, .crowded = true};
}

/* A millisecond at a time: the control thread is often late. */
static void goes_on(struct load *l, uint64_t ns)
{
	for (uint64_t end = l->now + ns; l->now < end; l->now += MS) {
		bool before = l->choice.by_tcp, idle = !l->choice.window;
		/* Until they have changed they move as before. */
		bool by_tcp = before != (l->now - l->changed_at < l->change);
		double share = 1 - l->noise + 2 * l->noise * ((double)rand() / RAND_MAX);

		l->bytes += (uint64_t)(l->rate[by_tcp] * share / 1000);
		l->ns[by_tcp] += MS;
		if (bws_choice_due(&l->choice, l->now, l->crowded)) {
			struct bws_choice_seen seen = {.bytes = l->bytes,
						       .changed = by_tcp == before};

			bws_choice_look(&l->choice, l->now, &seen);
		} else if (bws_choice_next(&l->choice, l->now) == BWS_CHOICE_NEVER) {
			assert_false(l->crowded);
		}
		l->compared += idle && l->choice.window;
		if (before == l->choice.by_tcp)
			continue;
		l->changes++;
		l->changed_at = l->now;
	}
}

static void choice__is_tcp_where_it_moves_more(void **state)
{
	struct load l = load_of(3e6, 6e6);

	goes_on(&l, WHOLE + 10 * MS);
	assert_true(l.choice.result);
	assert_true(l.choice.by_tcp);
}

static void choice__is_beowire_where_it_moves_more(void **state)
{
	struct load l = load_of(6e6, 3e6);

	goes_on(&l, WHOLE + 10 * MS);
	assert_int_equal(l.compared, 1);
	assert_false(l.choice.window);
	assert_false(l.choice.by_tcp);
}

/* Twice as much is clear after half of it: the worse one is used no longer than that. */
static void choice__is_soon_where_it_is_clear(void **state)
{
	for (int worse = 0; worse < 2; worse++) {
		struct load l = load_of(worse ? 6e6 : 3e6, worse ? 3e6 : 6e6);

		goes_on(&l, WHOLE / 2 + 10 * MS);
		assert_int_equal(l.compared, 1);
		assert_false(l.choice.window);
		assert_int_equal(l.choice.result, !worse);
	}
}

/* A little more is not worth a change. */
static void choice__is_beowire_where_both_are_alike(void **state)
{
	struct load l = load_of(6e6, 6.4e6);

	goes_on(&l, 60 * S);
	assert_true(l.compared > 3);
	assert_false(l.choice.result);
}

static void choice__needs_cores_that_are_short(void **state)
{
	struct load l = load_of(3e6, 6e6);

	l.crowded = false;
	goes_on(&l, 60 * S);
	assert_int_equal(l.compared, 0);
	assert_int_equal(l.changes, 0);
	l.crowded = true;
	goes_on(&l, WHOLE + 10 * MS);
	assert_true(l.choice.result);
}

/* TCP is not kept for ever: the load may have become another one, or the cores idle, in which case
 * nobody tells. */
static void choice__of_tcp_is_looked_at_again(void **state)
{
	struct load l = load_of(3e6, 6e6);

	goes_on(&l, 120 * S);
	assert_true(l.choice.result);
	l.crowded = false;
	l.rate[0] = 9e6;
	goes_on(&l, BWS_CHOICE_LONGEST + WHOLE + 10 * MS);
	assert_false(l.choice.result);
	assert_false(l.choice.by_tcp);
}

/* The worse one has little of the time, whichever it is. */
static void choice__costs_little(void **state)
{
	for (int worse = 0; worse < 2; worse++) {
		struct load l = load_of(worse ? 6e6 : 3e6, worse ? 3e6 : 6e6);

		goes_on(&l, 120 * S);
		assert_true(l.ns[worse] > 0);
		assert_true(l.ns[worse] < 120 * S / 50);
		/* And the first seconds are not lost either. */
		l = load_of(worse ? 6e6 : 3e6, worse ? 3e6 : 6e6);
		goes_on(&l, 5 * S);
		assert_true(l.ns[worse] < 5 * S / 8);
	}
}

/* Where each millisecond is another one by far, and connections take their time to change. */
static void choice__is_right_in_noise(void **state)
{
	uint32_t wrong[2] = {0};

	srand(1);
	for (int i = 0; i < 1000; i++) {
		bool tcp = i % 2;
		struct load l = load_of(tcp ? 4e6 : 6e6, tcp ? 6e6 : 4e6);

		l.noise = 0.9;
		l.change = (uint64_t)(rand() % 20) * MS;
		goes_on(&l, BWS_CHOICE_WINDOWS * (BWS_CHOICE_MEASURE + 25 * MS));
		assert_int_equal(l.compared, 1);
		wrong[tcp] += l.choice.result != tcp;
	}
	assert_in_range(wrong[0], 0, 5);
	assert_in_range(wrong[1], 0, 50);
}

/* A load that grows, or ends, while it is measured is nobody's merit. */
static void choice__is_fair_to_a_load_that_changes(void **state)
{
	for (int grows = 0; grows < 2; grows++) {
		struct load l = load_of(6e6, 6e6);

		for (uint64_t t = 0; t < WHOLE; t += 5 * MS) {
			double share = 1 + 4 * (double)t / (double)WHOLE;

			l.rate[0] = l.rate[1] = grows ? 6e6 * share : 30e6 / share;
			goes_on(&l, 5 * MS);
		}
		goes_on(&l, 20 * MS);
		assert_int_equal(l.compared, 1);
		assert_false(l.choice.window);
		assert_false(l.choice.result);
	}
}

/* What is measured begins when connections have changed. */
/* A process that is stopped measures that, in a window of Beowire's by chance. */
static void choice__believes_no_window_that_stood_still(void **state)
{
	struct load l = load_of(6e6, 3e6);
	uint32_t stood = 0;

	for (int i = 0; i < 2000 && !(l.compared && !l.choice.window); i++) {
		goes_on(&l, MS);
		if (!l.choice.measuring || l.choice.by_tcp || stood == l.choice.window)
			continue;
		stood = l.choice.window;
		l.now += S;
	}
	assert_int_equal(l.compared, 1);
	assert_int_equal(l.choice.window, 0);
	assert_false(l.choice.result);
}

static void choice__waits_for_connections_that_change(void **state)
{
	struct load l = load_of(3e6, 6e6);

	l.change = 30 * MS;
	goes_on(&l, BWS_CHOICE_WINDOWS * (BWS_CHOICE_MEASURE + 40 * MS));
	assert_true(l.choice.result);
	/* All of the sums is by the right one, but for the edges. */
	assert_true(l.choice.rate[1] > 1.9 * l.choice.rate[0]);
}

/* But not for ever. */
static void choice__does_without_those_that_never_change(void **state)
{
	struct load l = load_of(3e6, 6e6);

	l.change = 10 * S;
	goes_on(&l, BWS_CHOICE_WINDOWS * (BWS_CHOICE_MEASURE + BWS_CHOICE_PATIENCE + 10 * MS));
	assert_int_equal(l.compared, 1);
	assert_false(l.choice.window);
	assert_false(l.choice.result);
}

/* Nothing is compared, and TCP is left, if nothing is moved. */
static void choice__without_a_load_is_beowire(void **state)
{
	struct load l = load_of(3e6, 6e6);

	goes_on(&l, 10 * S);
	assert_true(l.choice.result);
	l.rate[0] = l.rate[1] = 0;
	goes_on(&l, BWS_CHOICE_LONGEST + WHOLE + 10 * MS);
	assert_false(l.choice.by_tcp);
	l = load_of(0, 0);
	goes_on(&l, 10 * S);
	assert_int_equal(l.changes, 0);
}

/* Little is moved for long, and then much: that is compared at once. */
static void choice__of_a_load_that_begins_is_soon(void **state)
{
	struct load l = load_of(100, 100);

	goes_on(&l, 60 * S);
	assert_int_equal(l.changes, 0);
	l.rate[0] = 3e6;
	l.rate[1] = 6e6;
	goes_on(&l, BWS_CHOICE_HOLD + BWS_CHOICE_MEASURE + WHOLE + 10 * MS);
	assert_true(l.choice.result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(choice__is_tcp_where_it_moves_more),
		cmocka_unit_test(choice__is_beowire_where_it_moves_more),
		cmocka_unit_test(choice__is_soon_where_it_is_clear),
		cmocka_unit_test(choice__is_beowire_where_both_are_alike),
		cmocka_unit_test(choice__needs_cores_that_are_short),
		cmocka_unit_test(choice__of_tcp_is_looked_at_again),
		cmocka_unit_test(choice__costs_little),
		cmocka_unit_test(choice__is_right_in_noise),
		cmocka_unit_test(choice__is_fair_to_a_load_that_changes),
		cmocka_unit_test(choice__believes_no_window_that_stood_still),
		cmocka_unit_test(choice__waits_for_connections_that_change),
		cmocka_unit_test(choice__does_without_those_that_never_change),
		cmocka_unit_test(choice__without_a_load_is_beowire),
		cmocka_unit_test(choice__of_a_load_that_begins_is_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
