/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A peer's places for paths: anybody can send HELLOs that claim to come from the peer by yet
 * another path. They may take places, but never one of a path that has answered, nor keep out one
 * that would.
 */
#include "groups.h"
#include "peer.h"

static bool second; /* frames of link 1 arrive */

static enum fate network(const struct frame *f)
{
	return f->link && !second ? LOSE : PASS;
}

/* Node A names both links of B, B only hears of A's. The second one is dead at first. */
static void meet_by_one(void)
{
	struct bw_op op;

	world.fate = network;
	second = false;
	node_open(A);
	node_open(B);
	op = op_connect(A, B);
	op.connect.paths = 2;
	op.connect.path[1] = address(B, 1);
	assert_int_equal(submit(A, &op), 0);
	world.node[A].peer[B] = op.peer;
	run(100 * BW_MS);
	assert_int_equal(peer(A, B)->state, BW_PEER_UP);
	assert_int_equal(peer(B, A)->npaths, 1);
	forget_logs();
}

/* Somebody on this link, at this place, says to B that he is A, by a path with this number. */
static int forge(uint8_t link, uint8_t place, uint8_t number)
{
	struct frame *f;

	path(A, B, 0)->hello.due = true;
	bw_peer_ready(engine(A), peer(A, B));
	flush(A);
	f = take(world.wire_n - 1);
	assert_int_equal(frame_type(f), BW_FRAME_HELLO);
	f->link = link;
	f->place = place;
	frame_hdr(f)->path = number;
	frame_seal(f);
	return receive(f);
}

/* B's path to A's link with this place; NULL. */
static struct bw_path *known(uint8_t link, uint8_t place)
{
	struct bw_link_addr at = address(A, link);
	unsigned int i;

	at.bytes[2] = place;
	for (i = 0; i < peer(B, A)->npaths; i++)
		if (bw_link_same(&path(B, A, i)->to, &at))
			return path(B, A, i);
	return NULL;
}

static void places__forged_paths_keep_out_nobody(void **state)
{
	unsigned int i;

	meet_by_one();
	for (i = 0; i < 20; i++) {
		forge((uint8_t)(2 + i % 2), (uint8_t)(50 + i), (uint8_t)(1 + i % 3));
		pass(BW_MS);
	}
	assert_int_equal(peer(B, A)->npaths, BW_PATHS_MAX);
	drop_all();
	second = true;
	run(2 * BW_HELLO_RETRY);
	assert_non_null(known(1, 0));
	assert_int_equal(known(1, 0)->state, BW_PATH_UP);
	assert_int_equal(path(A, B, 1)->state, BW_PATH_UP);
}

static void places__proven_paths_are_kept(void **state)
{
	unsigned int i;

	meet_by_one();
	second = true;
	run(2 * BW_HELLO_RETRY);
	assert_int_equal(path(B, A, 1)->state, BW_PATH_UP);
	second = false; /* proven, but silent for long */
	post(B, A, 1, 8);
	run(2 * BW_HELLO_RETRY);
	for (i = 0; i < 20; i++) {
		forge((uint8_t)(2 + i % 2), (uint8_t)(50 + i), (uint8_t)(1 + i % 3));
		pass(BW_MS);
	}
	drop_all();
	assert_non_null(known(0, 0));
	assert_non_null(known(1, 0));
	assert_int_equal(peer(B, A)->npaths, BW_PATHS_MAX);
	post(A, B, 2, 5000);
	post(B, A, 3, 5000);
	run(BW_S);
	assert_int_equal(events_with("MESSAGE"), 3);
}

static void places__the_one_not_heard_for_longest_goes(void **state)
{
	meet_by_one();
	forge(1, 50, 1);
	pass(BW_MS);
	forge(2, 51, 2);
	pass(BW_MS);
	forge(3, 52, 3);
	pass(BW_MS);
	forge(1, 50, 1); /* heard again */
	pass(BW_MS);
	forge(0, 53, 3);
	drop_all();
	assert_non_null(known(1, 50));
	assert_null(known(2, 51));
	assert_non_null(known(3, 52));
	assert_non_null(known(0, 53));
}

/* What the host has named is nobody's but the host's, though it has never answered. */
static void places__named_paths_are_kept(void **state)
{
	unsigned int i;
	struct bw_op op;

	meet_by_one();
	op = op_connect(B, A);
	op.connect.paths = 2;
	op.connect.path[1] = address(A, 2);
	assert_int_equal(submit(B, &op), 0);
	for (i = 0; i < 20; i++) {
		forge((uint8_t)(2 + i % 2), (uint8_t)(50 + i), (uint8_t)(1 + i % 3));
		pass(BW_MS);
	}
	assert_non_null(known(2, 0));
	/* And it finds a place where others have never answered. */
	op.connect.path[1] = address(A, 3);
	assert_int_equal(submit(B, &op), 0);
	assert_non_null(known(2, 0));
	assert_non_null(known(3, 0));
	assert_non_null(known(0, 0));
	drop_all();
}

int places_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(places__forged_paths_keep_out_nobody),
		TEST(places__proven_paths_are_kept),
		TEST(places__the_one_not_heard_for_longest_goes),
		TEST(places__named_paths_are_kept),
	};

	return cmocka_run_group_tests_name("places", tests, NULL, NULL);
}
