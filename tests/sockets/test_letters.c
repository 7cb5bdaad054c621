/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What peers and others tell the control thread, and what it tells them: offers, answers, and that
 * Beowire is lost. The rest of the library is the test's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "control_stage.h"

/* ---- loss ---- */

static bool astray; /* what comes by the registrar is no offer, and the other way round */

static void deliver(const struct bws_offer *o)
{
	const uint64_t one = 1;

	bws_lock();
	stage.came = *o;
	if ((stage.came.kind == BWS_OFFER) != astray)
		stage.offered = true;
	else
		assert_int_equal(write(stage.mail, &one, sizeof(one)), sizeof(one));
	bws_attend();
	bws_unlock();
}

static struct bws_offer letter(enum bws_offer_kind kind, uint8_t nonce, uint8_t to_nonce)
{
	struct bws_offer o = {.kind = kind};

	memset(o.nonce, nonce, sizeof(o.nonce));
	memset(o.to_nonce, to_nonce, sizeof(o.to_nonce));
	return o;
}

static void write_to_it(enum bws_offer_kind kind, uint8_t nonce, uint8_t to_nonce)
{
	struct bws_offer o = letter(kind, nonce, to_nonce);

	deliver(&o);
}

static void lose(bool connector, enum bws_way way)
{
	bws_lock();
	memset(stage.conn, 0, sizeof(stage.conn));
	memset(stage.tells, 0, sizeof(stage.tells));
	stage.forgotten = stage.returned = 0;
	stage.conn[1].id = 2;
	stage.conn[1].fd = -1;
	stage.conn[1].named = stage.conn[1].candidate = stage.conn[1].paired =
		stage.conn[1].proven = true;
	stage.conn[1].connector = connector;
	stage.conn[1].tx.way = way;
	stage.conn[1].peer_at.port = 1;
	stage.conn[1].shared = &stage.shared;
	memset(stage.conn[1].nonce, 1, BWS_NONCE);
	memset(stage.conn[1].peer_nonce, 2, BWS_NONCE);
	bws_lose(&stage.conn[1]);
	bws_unlock();
}

static bool says_what_it_has(void)
{
	return stage.tells[BWS_RESCUE] > 0;
}

static bool knows_what_the_peer_has(void)
{
	return stage.tells[BWS_RESCUED] > 0;
}

static bool is_over(void)
{
	return !stage.conn[1].rescue;
}

static bool is_offered_again(void)
{
	return stage.tells[BWS_OFFER] > 0;
}

/* Of one that is on TCP for good the loss is no news. */
static void lost__leaves_the_reason_for_tcp(void **state)
{
	lose(true, BWS_TCP);
	assert_string_equal(stage.conn[1].why, "Beowire was lost");
	bws_lock();
	stage.conn[1].paired = stage.conn[1].pinned = true;
	stage.conn[1].rescue = false;
	stage.conn[1].why = "a reason";
	bws_lose(&stage.conn[1]);
	assert_string_equal(stage.conn[1].why, "a reason");
	stage.conn[1].pinned = false;
	bws_unlock();
}

static void settle_it(void)
{
	write_to_it(BWS_RESCUE, 2, 1);
	assert_true(becomes(knows_what_the_peer_has));
	assert_false(is_over());
	write_to_it(BWS_RESCUED, 2, 1);
	assert_true(becomes(is_over));
	stage.tells[BWS_RESCUED] = 0;
}

/* Once each knows what the other has taken. That the peer says so once more is acknowledged, and
 * nothing more. */
static void lost__is_offered_again(void **state)
{
	lose(true, BWS_BW);
	assert_true(becomes(says_what_it_has));
	assert_int_equal(stage.tells[BWS_OFFER], 0);
	settle_it();
	assert_int_equal(stage.returned, 1);
	assert_true(becomes(is_offered_again));
	assert_false(stage.conn[1].unwelcomed);
	assert_false(stage.told[BWS_OFFER].nonce[0] == 1 && stage.told[BWS_OFFER].nonce[1] == 1);
	bws_lock();
	stage.conn[1].paired = true;
	stage.conn[1].tx.way = BWS_BW;
	bws_unlock();
	write_to_it(BWS_RESCUE, 2, 1);
	assert_true(becomes(knows_what_the_peer_has));
	assert_int_equal(stage.told[BWS_RESCUED].nonce[0], 1);
	assert_int_equal(stage.told[BWS_RESCUED].to_nonce[0], 2);
	assert_int_equal(stage.returned, 1);
	assert_int_equal(stage.conn[1].losses, 1);
	assert_true(stage.conn[1].tx.way == BWS_BW);
}

static uint32_t handled_before;

static bool is_heard(void)
{
	return stage.handled > handled_before;
}

static bool is_answered(void)
{
	return stage.tells[BWS_ACCEPT] > 0;
}

static void lost__answers_no_offer_before_that(void **state)
{
	lose(false, BWS_BW);
	assert_true(becomes(says_what_it_has));
	handled_before = stage.handled;
	write_to_it(BWS_OFFER, 3, 0);
	assert_true(becomes(is_heard));
	assert_int_equal(stage.tells[BWS_ACCEPT], 0);
	settle_it();
	write_to_it(BWS_OFFER, 3, 0);
	assert_true(becomes(is_answered));
	assert_int_equal(stage.forgotten, 1);
	assert_int_equal(stage.told[BWS_ACCEPT].to_nonce[0], 3);
	assert_int_equal(stage.conn[1].old_peer_nonce[0], 2);
}

/* Then nothing else waits for it. */
static void lost__with_nothing_by_beowire_is_not_in_doubt(void **state)
{
	lose(true, BWS_TCP);
	assert_true(stage.conn[1].rescue);
	assert_false(bws_conn_in_doubt(&stage.conn[1]));
	lose(true, BWS_BW);
	assert_true(bws_conn_in_doubt(&stage.conn[1]));
	bws_lock();
	memset(stage.conn, 0, sizeof(stage.conn));
	bws_unlock();
}

/* Each loss costs the program a stall: the next offer comes later and later. */
static void lost__again_and_again_is_offered_rarer(void **state)
{
	uint64_t span = 0, now;

	for (int i = 0; i < 8; i++) {
		bws_lock();
		memset(&stage.conn[0], 0, sizeof(stage.conn[0]));
		stage.conn[0].losses = (uint32_t)i + 1;
		stage.conn[0].rescue = true;
		now = bw_clock_now();
		bws_rescue_over(&stage.conn[0]);
		assert_true(i > 4 || stage.conn[0].offer_at - now > 4 * span);
		span = stage.conn[0].offer_at - now;
		assert_true(span < 5000 * BWS_S);
		bws_unlock();
	}
}

/* ---- who says it ---- */

static uint32_t heard_before;

static bool has_heard(void)
{
	return stage.heard > heard_before;
}

/* Have it handled: how many were refused. */
static uint64_t refusals_of(const struct bws_offer *o)
{
	uint64_t before = atomic_load(&bws.offers_refused);

	heard_before = stage.heard;
	deliver(o);
	assert_true(becomes(has_heard));
	/* Its handling is followed by a look. */
	bws_lock();
	stage.looks_before = stage.looks;
	bws_attend();
	bws_unlock();
	assert_true(becomes(has_looked));
	return atomic_load(&bws.offers_refused) - before;
}

/* The second connection, of which nothing has left TCP; nobody is to offer it for now. */
static void have_one(bool connector)
{
	bws_lock();
	memset(stage.conn, 0, sizeof(stage.conn));
	memset(stage.tells, 0, sizeof(stage.tells));
	memset(stage.sender, 0, sizeof(stage.sender));
	stage.returned = 0;
	stage.conn[1].id = 2;
	stage.conn[1].fd = -1;
	stage.conn[1].named = stage.conn[1].candidate = true;
	stage.conn[1].connector = connector;
	stage.conn[1].offers = 1;
	stage.conn[1].offer_at = bw_clock_now() + BWS_ORPHAN;
	stage.conn[1].shared = &stage.shared;
	stage.conn[1].peer_at.port = 1;
	memset(stage.conn[1].nonce, 1, BWS_NONCE);
	bws_unlock();
}

/* Its name has another address as the peer's, if only in the last byte, or the first one. */
static void letter__from_another_address_is_refused(void **state)
{
	struct bws_offer o = letter(BWS_OFFER, 2, 0);

	for (int i = 0; i < 16; i += 15) {
		have_one(false);
		stage.sender[i] = 1;
		assert_int_equal(refusals_of(&o), 1);
		assert_int_equal(stage.tells[BWS_ACCEPT], 0);
		stage.sender[i] = 0;
		assert_int_equal(refusals_of(&o), 0);
		assert_int_equal(stage.tells[BWS_ACCEPT], 1);
	}
}

static void letter__of_another_form_is_refused(void **state)
{
	struct bws_offer offer = letter(BWS_OFFER, 2, 0), answer = letter(BWS_ACCEPT, 2, 1);

	have_one(false);
	stage.malformed = true;
	assert_int_equal(refusals_of(&offer), 1);
	assert_int_equal(stage.tells[BWS_ACCEPT], 0);
	have_one(true);
	assert_int_equal(refusals_of(&answer), 1);
	assert_false(stage.conn[1].answered);
	stage.malformed = false;
	assert_int_equal(refusals_of(&answer), 0);
	assert_true(stage.conn[1].answered);
}

/* An answer that comes by the registrar, and an offer that does not, which has both nonces. */
static void letter__of_the_wrong_kind_is_refused(void **state)
{
	struct bws_offer answer = letter(BWS_ACCEPT, 2, 1), offer = letter(BWS_OFFER, 2, 1);

	astray = true;
	have_one(true);
	assert_int_equal(refusals_of(&answer), 1);
	assert_int_equal(stage.tells[BWS_ACCEPT], 0);
	have_one(false);
	bws_lock();
	stage.conn[1].paired = stage.conn[1].proven = true;
	stage.conn[1].tx.way = BWS_BW;
	memset(stage.conn[1].peer_nonce, 2, BWS_NONCE);
	bws_unlock();
	assert_int_equal(refusals_of(&offer), 1);
	assert_int_equal(stage.returned, 0);
	assert_false(stage.conn[1].rescue);
	astray = false;
}

static void answer__has_the_nonce_of_the_offer(void **state)
{
	struct bws_offer right = letter(BWS_ACCEPT, 2, 1), o;

	have_one(true);
	for (int i = 0; i < BWS_NONCE; i++) {
		o = right;
		o.to_nonce[i] ^= 1;
		assert_int_equal(refusals_of(&o), 1);
		assert_false(stage.conn[1].answered);
		assert_int_equal(stage.conn[1].owed, 0);
	}
	stage.sender[15] = 1;
	assert_int_equal(refusals_of(&right), 1);
	assert_false(stage.conn[1].answered);
	stage.sender[15] = 0;
	assert_int_equal(refusals_of(&right), 0);
	assert_true(stage.conn[1].answered);
	assert_int_equal(stage.conn[1].peer, FOUND);
	assert_int_equal(stage.conn[1].owed, BWS_OWE_HELLO);
}

static bool is_offered_anew(void)
{
	return stage.tells[BWS_OFFER] > 0;
}

/* Who was greeted and has not answered may be paired by then, and gets no other nonces. */
static void greeting__is_remembered_when_it_is_offered_anew(void **state)
{
	struct bws_offer right = letter(BWS_ACCEPT, 2, 1);

	have_one(true);
	assert_int_equal(refusals_of(&right), 0);
	assert_true(stage.conn[1].answered);
	assert_false(stage.conn[1].unwelcomed);
	bws_lock();
	stage.conn[1].offer_at = bw_clock_now();
	bws_attend();
	bws_unlock();
	assert_true(becomes(is_offered_anew));
	assert_true(stage.conn[1].unwelcomed && stage.conn[1].retired);
	assert_int_equal(stage.conn[1].old_nonce[0], 1);
	assert_int_equal(stage.conn[1].old_peer_nonce[0], 2);
}

/* The peer was paired, and has left: a WELCOME that comes yet is of no use. */
static void greeting__ends_with_the_peers_loss(void **state)
{
	struct bws_offer right = letter(BWS_ACCEPT, 2, 1), lost = letter(BWS_RESCUE, 2, 1);

	have_one(true);
	assert_int_equal(refusals_of(&right), 0);
	assert_int_equal(stage.conn[1].owed, BWS_OWE_HELLO);
	stage.conn[1].peer_at.port = 1; /* the stage's letters have none */
	assert_int_equal(refusals_of(&lost), 0);
	assert_int_equal(stage.tells[BWS_RESCUED], 1);
	assert_false(stage.conn[1].answered);
	assert_int_equal(stage.conn[1].owed, 0);
}

static void greeting__of_former_nonces_ends_with_the_peers_loss(void **state)
{
	struct bws_offer lost = letter(BWS_RESCUE, 2, 1);

	greeting__is_remembered_when_it_is_offered_anew(state);
	stage.conn[1].peer_at.port = 1;
	assert_int_equal(refusals_of(&lost), 0);
	assert_int_equal(stage.tells[BWS_RESCUED], 1);
	assert_false(stage.conn[1].unwelcomed);
}

static void greeting__is_over_with_the_next_answer(void **state)
{
	struct bws_offer next = letter(BWS_ACCEPT, 4, 0);

	greeting__is_remembered_when_it_is_offered_anew(state);
	memcpy(next.to_nonce, stage.conn[1].nonce, BWS_NONCE);
	assert_int_equal(refusals_of(&next), 0);
	assert_true(stage.conn[1].answered);
	assert_false(stage.conn[1].unwelcomed);
}

/* Each offer may have an answer, which may come when the next one is sent: it is of no use, but no
 * sign of a stranger either. */
static void answer__that_is_late_is_not_counted(void **state)
{
	struct bws_offer late = letter(BWS_ACCEPT, 2, 9), right = letter(BWS_ACCEPT, 2, 1);

	have_one(true);
	bws_lock();
	stage.conn[1].awaited = 3;
	bws_unlock();
	assert_int_equal(refusals_of(&late), 0);
	assert_int_equal(refusals_of(&late), 0);
	assert_false(stage.conn[1].answered);
	assert_int_equal(refusals_of(&late), 1);
	assert_false(stage.conn[1].answered);
	assert_int_equal(refusals_of(&right), 0);
	assert_true(stage.conn[1].answered);
}

/* The program was told that it has failed, and why: an answer that comes once more is not heard. */
static void answer__of_a_broken_one_is_not_heard(void **state)
{
	struct bws_offer right = letter(BWS_ACCEPT, 2, 1);

	have_one(true);
	bws_lock();
	stage.conn[1].error = ECONNRESET;
	stage.conn[1].why = "a reason";
	bws_unlock();
	assert_int_equal(refusals_of(&right), 0);
	assert_false(stage.conn[1].answered);
	assert_int_equal(stage.conn[1].owed, 0);
	assert_string_equal(stage.conn[1].why, "a reason");
}

static void assert_undisturbed(void)
{
	assert_true(stage.conn[1].paired);
	assert_false(stage.conn[1].rescue);
	assert_true(stage.conn[1].tx.way == BWS_BW);
	assert_int_equal(stage.returned, 0);
	assert_int_equal(stage.tells[BWS_RESCUED], 0);
}

/* By one bit of one nonce, by either one instead of both, and by what goes the other way. */
static void say_wrongly(uint8_t nonce, uint8_t to_nonce)
{
	struct bws_offer right = letter(BWS_RESCUE, nonce, to_nonce), o;

	for (int i = 0; i < 2 * BWS_NONCE; i++) {
		o = right;
		*(i < BWS_NONCE ? o.nonce + i : o.to_nonce + i - BWS_NONCE) ^= 1;
		assert_int_equal(refusals_of(&o), 1);
		assert_undisturbed();
	}
	o = letter(BWS_RESCUE, nonce, nonce);
	assert_int_equal(refusals_of(&o), 1);
	o = letter(BWS_RESCUE, to_nonce, to_nonce);
	assert_int_equal(refusals_of(&o), 1);
	o = letter(BWS_RESCUE, to_nonce, nonce);
	assert_int_equal(refusals_of(&o), 1);
	stage.sender[0] = 1;
	assert_int_equal(refusals_of(&right), 1);
	stage.sender[0] = 0;
	assert_undisturbed();
}

static void rescue__needs_both_nonces(void **state)
{
	struct bws_offer old = letter(BWS_RESCUE, 4, 3), now = letter(BWS_RESCUE, 2, 1);

	have_one(true);
	bws_lock();
	stage.conn[1].paired = stage.conn[1].proven = true;
	stage.conn[1].tx.way = BWS_BW;
	memset(stage.conn[1].peer_nonce, 2, BWS_NONCE);
	bws_unlock();
	say_wrongly(2, 1);
	/* No nonces are old ones yet, those of zeroes neither. */
	say_wrongly(4, 3);
	say_wrongly(0, 0);
	bws_lock();
	stage.conn[1].retired = true;
	memset(stage.conn[1].old_nonce, 3, BWS_NONCE);
	memset(stage.conn[1].old_peer_nonce, 4, BWS_NONCE);
	bws_unlock();
	say_wrongly(4, 3);
	say_wrongly(2, 1);
	/* An old one and a new one. */
	say_wrongly(4, 1);
	say_wrongly(2, 3);
	assert_int_equal(refusals_of(&old), 0);
	assert_int_equal(stage.tells[BWS_RESCUED], 1);
	stage.tells[BWS_RESCUED] = 0;
	assert_undisturbed();
	assert_int_equal(refusals_of(&now), 0);
	assert_int_equal(stage.tells[BWS_RESCUED], 1);
	assert_int_equal(stage.returned, 1);
	assert_true(stage.conn[1].rescue);
	bws_lock();
	memset(stage.conn, 0, sizeof(stage.conn));
	bws_unlock();
}

/* The program has closed it, and what it has sent is not all taken. */
static void rescue__is_of_closed_ones_as_well(void **state)
{
	struct bws_offer now = letter(BWS_RESCUE, 2, 1), offer = letter(BWS_OFFER, 3, 0);

	have_one(false);
	stage.settled = false;
	bws_lock();
	stage.conn[1].orphan = stage.conn[1].paired = stage.conn[1].proven = true;
	stage.conn[1].tx.way = BWS_BW;
	memset(stage.conn[1].peer_nonce, 2, BWS_NONCE);
	bws_unlock();
	assert_int_equal(refusals_of(&now), 0);
	assert_int_equal(stage.tells[BWS_RESCUED], 1);
	assert_int_equal(stage.returned, 1);
	write_to_it(BWS_RESCUED, 2, 1);
	assert_true(becomes(is_over));
	/* It is not offered any more. */
	refusals_of(&offer);
	assert_int_equal(stage.tells[BWS_ACCEPT], 0);
	assert_int_equal(stage.conn[1].id, 2);
	bws_lock();
	memset(stage.conn, 0, sizeof(stage.conn));
	bws_unlock();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost__is_offered_again),
		cmocka_unit_test(lost__leaves_the_reason_for_tcp),
		cmocka_unit_test(lost__answers_no_offer_before_that),
		cmocka_unit_test(lost__with_nothing_by_beowire_is_not_in_doubt),
		cmocka_unit_test(lost__again_and_again_is_offered_rarer),
		cmocka_unit_test(letter__from_another_address_is_refused),
		cmocka_unit_test(letter__of_another_form_is_refused),
		cmocka_unit_test(letter__of_the_wrong_kind_is_refused),
		cmocka_unit_test(answer__has_the_nonce_of_the_offer),
		cmocka_unit_test(greeting__is_remembered_when_it_is_offered_anew),
		cmocka_unit_test(greeting__ends_with_the_peers_loss),
		cmocka_unit_test(greeting__of_former_nonces_ends_with_the_peers_loss),
		cmocka_unit_test(greeting__is_over_with_the_next_answer),
		cmocka_unit_test(answer__that_is_late_is_not_counted),
		cmocka_unit_test(answer__of_a_broken_one_is_not_heard),
		cmocka_unit_test(rescue__needs_both_nonces),
		cmocka_unit_test(rescue__is_of_closed_ones_as_well),
	};

	return cmocka_run_group_tests(tests, stage_begin, NULL);
}
