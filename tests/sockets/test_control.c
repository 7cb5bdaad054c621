/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whom the control thread looks at again, where the rest of the library is the test's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "clock.h"
#include "control_stage.h"
#include "endpoint.h"

/* The first one is an orphan that has to wait for its peer; the second one is in order. */
static void begin(void (*what)(void))
{
	bws_lock();
	memset(stage.conn, 0, sizeof(stage.conn));
	stage.conn[0].id = 1;
	stage.conn[0].fd = -1;
	stage.conn[0].orphan = true;
	stage.conn[0].offer_at = bw_clock_now() + BWS_ORPHAN;
	stage.conn[1].id = 2;
	stage.conn[1].fd = -1;
	stage.conn[1].paired = stage.conn[1].rx.open = true;
	stage.conn[1].tx.way = BWS_BW;
	stage.settled = false;
	stage.drains = 0;
	stage.while_looking = what;
	bws_attend();
	bws_unlock();
}
static void orphan_settles(void)
{
	stage.settled = true;
	bws_attend();
}

static bool is_gone(void)
{
	return !stage.conn[0].id;
}

/* A message that comes while another connection is looked at changes one that was looked at
 * before. */
static void control__looks_again_at_who_changed_meanwhile(void **state)
{
	begin(orphan_settles);
	assert_true(becomes(is_gone));
}

static void begins_to_drain(void)
{
	stage.drains = 0;
	bws_attend_room();
}

static bool is_looked_at(void)
{
	return !stage.while_looking && stage.drains > 0;
}

static void control__looks_again_at_who_waits_for_room(void **state)
{
	begin(begins_to_drain);
	assert_true(becomes(is_looked_at));
}

static bool expects_a_switch(void)
{
	return atomic_load(&bws.pairing);
}

static bool expects_none(void)
{
	return !atomic_load(&bws.pairing);
}

/* The peer's end never leaves TCP. Waits in epoll_wait() are the kernel's then, after a while. */
static void control__does_not_expect_a_switch_for_ever(void **state)
{
	bws_lock();
	memset(stage.conn, 0, sizeof(stage.conn));
	stage.conn[1].id = 2;
	stage.conn[1].fd = -1;
	stage.conn[1].paired = true;
	bws_attend();
	bws_unlock();
	assert_true(becomes(expects_a_switch));
	assert_true(becomes(expects_none));
}

static bool is_offered(void)
{
	return stage.conn[0].offers > 0;
}

static bool stay_on_tcp(void)
{
	return stage.conn[0].pinned && stage.conn[1].pinned && stage.ways_back == 2 && bws.pinned;
}

/* A connection is to be offered, another one has left TCP. With rings neither is by Beowire. */
static void control__keeps_programs_with_rings_on_tcp(void **state)
{
	for (int i = 0; i < 2; i++) {
		bws_lock();
		memset(stage.conn, 0, sizeof(stage.conn));
		stage.rings = i;
		stage.ways_back = 0;
		for (int k = 0; k < 2; k++) {
			stage.conn[k].id = k + 1;
			stage.conn[k].fd = -1;
			stage.conn[k].named = stage.conn[k].connector = true;
		}
		stage.conn[0].candidate = true;
		stage.conn[1].paired = stage.conn[1].rx.open = true;
		stage.conn[1].tx.way = BWS_BW;
		bws_attend();
		bws_unlock();
		assert_true(becomes(stage.rings ? stay_on_tcp : is_offered));
		assert_int_equal(stage.conn[0].offers > 0, !stage.rings);
		assert_int_equal(stage.conn[1].pinned, stage.rings);
	}
	bws.pinned = NULL;
}

static bool has_gone_back(void)
{
	return stage.conn[1].pinned && stage.ways_back == 1;
}

/* It was offered before it had been looked, and nothing else happens. */
static void control__looks_for_rings_when_it_is_due(void **state)
{
	bws_lock();
	memset(stage.conn, 0, sizeof(stage.conn));
	stage.ways_back = 0;
	stage.conn[1].id = 2;
	stage.conn[1].fd = -1;
	stage.conn[1].paired = stage.conn[1].rx.open = true;
	stage.conn[1].tx.way = BWS_BW;
	stage.rings = true;
	stage.due = bw_clock_now() + 20000000;
	bws_attend();
	bws_unlock();
	assert_true(becomes(has_gone_back));
	stage.rings = false;
	bws.pinned = NULL;
}

/* ---- the comparison with TCP ---- */

/* Twice as fast by TCP; asked each millisecond. */
static void moves(void)
{
	atomic_fetch_add(&stage.shared.rx, stage.conn[1].parked ? 20000 : 10000);
}

static bool is_parked(void)
{
	moves();
	return stage.conn[1].parked;
}

static bool is_not_parked(void)
{
	moves();
	return !stage.conn[1].parked;
}

static bool waits_for_the_result(void)
{
	moves();
	return stage.conn[0].why && !strcmp(stage.conn[0].why, BWS_WHY_PARKED);
}

static bool is_compared_no_more(void)
{
	moves();
	if (stage.conn[1].parked)
		return false;
	bws.compare = BWS_COMPARE_NEVER;
	return true;
}

/* The second one is by Beowire, the first one is to be offered. */
static void compare(bool connector, enum bws_compare when)
{
	bws_lock();
	memset(stage.conn, 0, sizeof(stage.conn));
	for (int i = 0; i < 2; i++) {
		stage.conn[i].id = i + 1;
		stage.conn[i].fd = -1;
		stage.conn[i].shared = &stage.shared;
		stage.conn[i].named = true;
		stage.conn[i].connector = connector;
	}
	stage.conn[1].paired = stage.conn[1].rx.open = true;
	stage.conn[1].rx.way = stage.conn[1].tx.way = BWS_BW;
	stage.settled = true;
	bws.compare = when;
	bws_attend();
	bws_unlock();
}

/* Also for connections that are to be offered, which stay on TCP while it is used. */
static void compare__is_for_all_connections(void **state)
{
	compare(true, BWS_COMPARE_ALWAYS);
	assert_true(becomes(is_parked));
	bws_lock();
	stage.conn[0].candidate = true;
	bws_unlock();
	assert_true(becomes(waits_for_the_result));
	assert_true(becomes(is_not_parked));
	assert_true(becomes(is_parked));
	assert_true(becomes(is_compared_no_more));
}

/* Who accepted does not compare: two that do would measure each other. */
static bool tells_of_it(void)
{
	return stage.conn[1].owed & BWS_OWE_CROWDED && !stage.conn[1].parked;
}

static void compare__is_asked_for_by_who_accepted(void **state)
{
	compare(false, BWS_COMPARE_CROWDED);
	bws_crowded(bw_clock_now() + SOON_NS);
	assert_true(becomes(tells_of_it));
	bws.compare = BWS_COMPARE_NEVER;
}

static bool compares_the_other(void)
{
	atomic_fetch_add(&stage.shared.rx, stage.conn[0].parked ? 20000 : 10000);
	return stage.conn[0].parked;
}

static bool compares_no_more(void)
{
	if (!compares_the_other())
		bws.compare = BWS_COMPARE_NEVER;
	return bws.compare == BWS_COMPARE_NEVER;
}

/* A process that has connected and accepted. */
static void compare__is_not_for_who_accepted(void **state)
{
	compare(false, BWS_COMPARE_ALWAYS);
	bws_lock();
	stage.conn[0].connector = stage.conn[0].paired = stage.conn[0].rx.open = true;
	stage.conn[0].rx.way = stage.conn[0].tx.way = BWS_BW;
	bws_unlock();
	assert_true(becomes(compares_the_other));
	assert_false(stage.conn[1].parked);
	assert_true(becomes(compares_no_more));
}

/* ---- the endpoint ---- */

/* The service is not there, does not answer, and then does. It costs a try now and then. What is
 * meanwhile is noted by the thread that tries: this one may come too late to see it. */
static void endpoint__is_tried_until_it_is_there(void **state)
{
	bws_lock();
	memset(stage.conn, 0, sizeof(stage.conn));
	stage.conn[0].id = 1;
	stage.conn[0].fd = -1;
	stage.conn[0].named = stage.conn[0].connector = stage.conn[0].candidate = true;
	atomic_store(&bws.ep, NULL);
	stage.refused = 4;
	stage.refusals[3] = -EACCES;
	stage.refusals[2] = -ECONNREFUSED;
	stage.refusals[1] = stage.refusals[0] = -ETIMEDOUT;
	stage.tries = stage.roused = 0;
	bws_attend();
	bws_unlock();
	assert_true(becomes(is_offered));
	assert_int_equal(stage.tries, 5);
	assert_int_equal(stage.roused, 1);
	assert_string_equal(stage.why_then, "no endpoint yet");
	assert_int_equal(stage.offers_then, 0);
	assert_true(bws_endpoint_due() == UINT64_MAX);
}

/* Nothing of the program could use one: no try, and the thread sleeps. */
static void endpoint__is_not_tried_for_nobody(void **state)
{
	bws_lock();
	memset(stage.conn, 0, sizeof(stage.conn));
	stage.conn[0].id = 1;
	stage.conn[0].fd = -1;
	stage.conn[0].named = stage.conn[0].pinned = stage.conn[0].candidate = true;
	atomic_store(&bws.ep, NULL);
	stage.tries = 0;
	stage.looks_before = stage.looks;
	bws_attend();
	bws_unlock();
	assert_true(becomes(has_looked));
	bws_lock();
	stage.looks_before = stage.looks;
	bws_unlock();
	bws_control_want(&stage.conn[0]);
	assert_true(becomes(has_looked));
	assert_int_equal(stage.tries, 0);
	atomic_store(&bws.ep, (struct bw_ep *)&bws);
}

static bool is_given_up(void)
{
	return bws.ep_failed && stage.closed;
}

/* With these settings there is none, ever. Others of the user have the port then. The thread ends:
 * the last test. */
static void endpoint__is_given_up_if_settings_are_wrong(void **state)
{
	bws_lock();
	memset(stage.conn, 0, sizeof(stage.conn));
	stage.conn[0].id = 1;
	stage.conn[0].fd = -1;
	stage.conn[0].named = stage.conn[0].candidate = true;
	atomic_store(&bws.ep, NULL);
	stage.refused = 1;
	stage.refusals[0] = -EINVAL;
	bws_attend();
	bws_unlock();
	assert_true(becomes(is_given_up));
	assert_true(bws_endpoint_due() == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control__looks_again_at_who_changed_meanwhile),
		cmocka_unit_test(control__looks_again_at_who_waits_for_room),
		cmocka_unit_test(control__does_not_expect_a_switch_for_ever),
		cmocka_unit_test(control__keeps_programs_with_rings_on_tcp),
		cmocka_unit_test(control__looks_for_rings_when_it_is_due),
		cmocka_unit_test(compare__is_for_all_connections),
		cmocka_unit_test(compare__is_asked_for_by_who_accepted),
		cmocka_unit_test(compare__is_not_for_who_accepted),
		cmocka_unit_test(endpoint__is_tried_until_it_is_there),
		cmocka_unit_test(endpoint__is_not_tried_for_nobody),
		cmocka_unit_test(endpoint__is_given_up_if_settings_are_wrong),
	};

	return cmocka_run_group_tests(tests, stage_begin, NULL);
}
