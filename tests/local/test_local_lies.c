/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One lie of a peer at a time: each must be noticed for what it is.
 */
#include "hostile.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

static uint64_t in_flight; /* reads that the victim has asked the enemy for */

static void lie(uint32_t kind, uint32_t slot, uint32_t len, uint64_t a, uint64_t b)
{
	struct bw_local_record *r = bw_local_reserve(enemy.peer, 64, 0);

	assert_non_null(r);
	r->len = len;
	r->what = BW_LOCAL_WHAT(kind, 0, slot);
	r->a = a;
	r->b = b;
	memset(r->data, 0, 64);
	bw_local_commit(enemy.peer, r, len < 64 ? len : 64);
}

static void lie_too_long(void)
{
	lie(BW_LOCAL_MESSAGE, BW_LOCAL_NO_SLOT, bw_local_record_limit(victim.peer->rx.bytes) + 1, 0,
	    0);
}

static void lie_kind_0(void)
{
	lie(0, 0, 0, 0, 0);
}

static void lie_kind_9(void)
{
	lie(9, 0, 0, 0, 0);
}

static void lie_envelope_length(void)
{
	lie(BW_LOCAL_ENVELOPE, 0, 15, 0, 0);
}

static void lie_release_of_a_free_slot(void)
{
	lie(BW_LOCAL_RELEASE, 5, 0, 0, 0);
}

static void lie_release_twice(void)
{
	lie(BW_LOCAL_RELEASE, 0, 0, 0, 0);
	lie(BW_LOCAL_RELEASE, 0, 0, 0, 0);
}

static void lie_release_of_no_slot(void)
{
	lie(BW_LOCAL_RELEASE, BW_LOCAL_NO_SLOT, 0, 0, 0);
}

static void lie_pull_of_a_free_slot(void)
{
	lie(BW_LOCAL_PULL, 5, 0, 10, 0);
}

static void lie_pull_of_a_message(void)
{
	lie(BW_LOCAL_PULL, 1, 0, 10, 0);
}

static void lie_pull_beyond_the_end(void)
{
	lie(BW_LOCAL_PULL, 0, 0, BUFFER + 1, 0);
}

static void lie_pull_of_nothing(void)
{
	lie(BW_LOCAL_PULL, 0, 0, 0, 0);
}

static void lie_pull_id(void)
{
	lie(BW_LOCAL_PULL, 0, 0, 10, BW_LOCAL_WINDOW);
}

static void lie_too_many_pulls(void)
{
	for (uint64_t i = 0; i <= BW_LOCAL_WINDOW; i++)
		lie(BW_LOCAL_PULL, 0, 0, 10, 0);
}

static void lie_grant_unasked(void)
{
	lie(BW_LOCAL_GRANT, BW_LOCAL_NO_SLOT, 0, 0, in_flight);
}

static void lie_refusal_unasked(void)
{
	lie(BW_LOCAL_REFUSED, BW_LOCAL_NO_SLOT, 0, 0, UINT64_MAX);
}

static void lie_data_unasked(void)
{
	lie(BW_LOCAL_DATA, BW_LOCAL_NO_SLOT, 8, 0, BW_LOCAL_WINDOW + 3);
}

static void lie_data_elsewhere(void)
{
	lie(BW_LOCAL_DATA, BW_LOCAL_NO_SLOT, 8, 8, 0);
}

static void lie_data_too_long(void)
{
	lie(BW_LOCAL_DATA, BW_LOCAL_NO_SLOT, 31, 0, 0);
}

/* So many records of this kind, in as many slots from the first one on, if the victim takes them,
 * and none of what it sends is read. */
static void lie_often(uint32_t kind, uint32_t len, uint32_t first, uint32_t count)
{
	const uint64_t data[2] = {(uintptr_t)buffer, 100};
	uint32_t n = 0;

	while (node_send(&victim, 1, 1000) == 0)
		;
	while (victim.peer && n < count) {
		struct bw_local_record *r = bw_local_reserve(enemy.peer, len, 0);

		if (!r) {
			node_poll(&victim);
			continue;
		}
		r->len = len;
		r->what = BW_LOCAL_WHAT(kind, 0, first + n++ % BW_LOCAL_SLOTS_USED);
		r->a = r->b = 0;
		memcpy(r->data, data, len);
		bw_local_commit(enemy.peer, r, len);
	}
}

/* The same without an end: after a while it is more than an honest peer may. */
static void lie_without_end(uint32_t kind, uint32_t len)
{
	lie_often(kind, len, 0, 2 * BW_LOCAL_SLOTS_USED);
}

/* No honest peer has so many slots. */
static void lie_slots_beyond(void)
{
	lie_often(BW_LOCAL_MESSAGE, 0, BW_LOCAL_SLOTS_USED, BW_LOCAL_SLOTS_USED / 2);
}

static void lie_messages_that_want_a_release(void)
{
	lie_without_end(BW_LOCAL_MESSAGE, 0);
}

static void lie_reads_of_what_is_not_there(void)
{
	lie_without_end(BW_LOCAL_READ, 16);
}

/* The first ones can be pulled, and the data never come: all others wait behind them. */
static void lie_envelopes_without_data(void)
{
	victim.peer->cma = BW_LOCAL_CMA_FORBIDDEN;
	memset(enemy.peer->tx.states, BW_LOCAL_OFFERED, 2 * BW_LOCAL_WINDOW);
	lie_without_end(BW_LOCAL_ENVELOPE, 16);
}

static void lie_head_beyond(void)
{
	victim.peer->tx.control->head = victim.peer->tx.pos + victim.peer->tx.bytes;
}

static void lie_head_backwards(void)
{
	victim.peer->tx.control->head = victim.peer->tx.head_seen - 64;
}

static void hostile__each_lie_is_noticed(void **state)
{
	static void (*const lies[])(void) = {
		lie_too_long,
		lie_kind_0,
		lie_kind_9,
		lie_envelope_length,
		lie_release_of_a_free_slot,
		lie_release_twice,
		lie_release_of_no_slot,
		lie_pull_of_a_free_slot,
		lie_pull_of_a_message,
		lie_pull_beyond_the_end,
		lie_pull_of_nothing,
		lie_pull_id,
		lie_too_many_pulls,
		lie_grant_unasked,
		lie_refusal_unasked,
		lie_data_unasked,
		lie_data_elsewhere,
		lie_data_too_long,
		lie_slots_beyond,
		lie_messages_that_want_a_release,
		lie_reads_of_what_is_not_there,
		lie_envelopes_without_data,
		lie_head_beyond,
		lie_head_backwards,
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		setup_seed(i + 1);
		/* An envelope in slot 0, a message to be acknowledged in slot 1, a read of 30
		 * bytes. */
		bw_local_offer(victim.peer, 1, 1, 1, buffer, BUFFER, "op");
		bw_local_send(victim.peer, 1, 1, 1, NULL, 0, "op");
		sends_open = 2;
		victim_read(30);
		in_flight = 1;
		for (int k = 0; k < 3; k++)
			node_poll(&victim);
		assert_int_equal(victim.downs, 0);
		lies[i]();
		/* A full ring makes the victim look at the enemy's head. */
		while (victim.peer && node_send(&victim, 1, 1000) == 0)
			;
		node_poll(&victim);
		if (victim.downs != 1)
			fail_msg("lie %zu was believed", i);
		assert_int_equal(bw_local_counters(victim.link)->broken, 1);
		aftermath();
	}
}

/* Records whose data has one length: no other is taken for it, and it is not a lie itself. */
static void hostile__each_wrong_length_is_noticed(void **state)
{
	const struct {
		uint32_t kind, len;
		uint64_t a;
	} fixed[] = {
		{BW_LOCAL_ENVELOPE, 16, 1},
		{BW_LOCAL_RELEASE, 0, 1},
		{BW_LOCAL_PULL, 0, 1},
		{BW_LOCAL_READ, 16, NODE_REGION_KEY},
		{BW_LOCAL_GRANT, 0, (uintptr_t)buffer},
		{BW_LOCAL_REFUSED, 0, (uint64_t)-EACCES},
	};
	static const uint32_t lengths[] = {0, 1, 8, 15, 16, 17, 24, 32, 64};

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
			setup_seed(1);
			/* What the records below refer to, were they true. */
			bw_local_offer(victim.peer, 1, 1, 1, buffer, BUFFER, "op");
			sends_open = 1;
			victim_read(30);
			node_poll(&victim);
			lie(fixed[i].kind, 0, lengths[k], fixed[i].a, 0);
			node_poll(&victim);
			if (victim.downs != (lengths[k] != fixed[i].len))
				fail_msg("kind %u, %u bytes", fixed[i].kind, lengths[k]);
			aftermath();
		}
	}
}

/* The data of an envelope is being sent when the enemy says that it does not need it any more: the
 * victim's program may free the buffer at once. */
static void hostile__a_release_ends_the_sending(void **state)
{
	uint8_t *mine = malloc(200000);
	uint64_t pos;

	setup_seed(3);
	bw_local_offer(victim.peer, 1, 1, 1, mine, 200000, "op");
	sends_open = 1;
	lie(BW_LOCAL_PULL, 0, 0, 200000, 0);
	node_poll(&victim);
	lie(BW_LOCAL_RELEASE, 0, 0, 0, 0);
	for (int i = 0; i < 2; i++) {
		if (i == 1)
			memset(mine, 0, 200000);
		node_poll(&victim);
		if (victim.sents == 1 && mine) {
			free(mine);
			mine = NULL;
			break;
		}
	}
	assert_null(mine);
	enemy.peer->rx.control->head = enemy.peer->rx.pos = pos = victim.peer->tx.pos;
	for (int i = 0; i < 5; i++)
		node_poll(&victim);
	assert_int_equal(victim.downs, 0);
	assert_in_range(victim.peer->tx.pos - pos, 0, bw_local_record_bytes(0)); /* no data */
	aftermath();
}

/* Poll the victim without a look at its sockets. */
static void victim_poll_blind(int times)
{
	for (int i = 0; i < times; i++)
		bw_local_poll(victim.link, 0, false);
}

static void say_another(struct node *n, const struct bw_local_message *m)
{
	lie(BW_LOCAL_MESSAGE, BW_LOCAL_NO_SLOT, 8, 0, 0);
}

/* Its socket is closed, and it says one message after another by the ring: no more are taken than
 * it holds. */
static void hostile__who_is_gone_is_not_heard_without_end(void **state)
{
	uint32_t most;

	setup_seed(2);
	most = victim.peer->rx.bytes / 64;
	victim.on_message = say_another;
	lie(BW_LOCAL_MESSAGE, BW_LOCAL_NO_SLOT, 8, 0, 0);
	shutdown(enemy.peer->conn[enemy.peer->conn[0] ? 0 : 1]->fd, SHUT_RDWR);
	for (uint32_t i = 0; victim.downs == 0 && i < most; i++) /* each takes some */
		node_poll(&victim);
	assert_int_equal(victim.downs, 1);
	assert_in_range(victim.messages, 1, most + 64); /* of the last poll */
	aftermath();
}

/* The two cases in which data read by cross-memory attach is not the message any more. */
static void hostile__data_that_changed_hands_while_it_was_read(void **state)
{
	enum { LONG = 5 << 20 };
	uint8_t *from = malloc(LONG), *to = malloc(LONG);

	for (int withdrawn = 0; withdrawn < 2; withdrawn++) {
		setup_seed(4);
		victim.on_message = NULL;
		bw_local_offer(enemy.peer, 1, 1, 1, from, LONG, "op");
		node_poll(&victim);
		bw_local_pull(victim.peer, victim.envelope, to, LONG, "it");
		pulls_open = 1;
		victim_poll_blind(2);
		assert_int_equal(victim.pulleds, 0);
		if (withdrawn)
			enemy.peer->tx.states[0] = BW_LOCAL_RETRACTED;
		else
			shutdown(enemy.peer->conn[enemy.peer->conn[0] ? 0 : 1]->fd, SHUT_RDWR);
		victim_poll_blind(40);
		assert_int_equal(victim.pulleds, 1);
		assert_int_equal(victim.last_status, withdrawn ? -ECANCELED : -ECONNREFUSED);
		aftermath();
	}
	free(from);
	free(to);
}

/* The process that the kernel names as the peer is not the one that made the offer (it forked, or
 * passed its socket on): its memory is not read. */
static void hostile__memory_of_another_process_is_not_read(void **state)
{
	uint8_t from[1000] = {0}, to[1000];

	setup_seed(5);
	victim.on_message = NULL;
	enemy.link->probe_value++;
	bw_local_offer(enemy.peer, 1, 1, 1, from, sizeof(from), "op");
	node_poll(&victim);
	bw_local_pull(victim.peer, victim.envelope, to, sizeof(to), "it");
	pulls_open = 1;
	node_settle(&victim, &enemy);
	assert_int_equal(victim.last_status, 0);
	assert_int_equal(bw_local_counters(victim.link)->pulls_direct, 0);
	assert_int_equal(bw_local_counters(victim.link)->pulls_copied, 1);
	aftermath();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile__each_lie_is_noticed),
		cmocka_unit_test(hostile__each_wrong_length_is_noticed),
		cmocka_unit_test(hostile__a_release_ends_the_sending),
		cmocka_unit_test(hostile__who_is_gone_is_not_heard_without_end),
		cmocka_unit_test(hostile__memory_of_another_process_is_not_read),
	};
	const struct CMUnitTest attach_tests[] = {
		cmocka_unit_test(hostile__data_that_changed_hands_while_it_was_read),
	};
	int failed = cmocka_run_group_tests_name("lies", tests, NULL, NULL);

	if (bw_local_cma_wanted())
		failed += cmocka_run_group_tests_name("attach", attach_tests, NULL, NULL);
	return failed;
}
