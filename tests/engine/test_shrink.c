/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that an engine has grown by goes back to its host, in steps of any length; nothing that is
 * in use does, and what is free can be had all the time.
 */
#include "groups.h"

/* Strangers make the engine grow, and are gone: most of the memory goes back, and who is left goes
 * on with what stays. */
static void shrink__gives_back_what_strangers_have_left(void **state)
{
	struct frame *hello;
	unsigned int turn, grown;
	uint32_t n = 0, i;

	world.quiet = true;
	world.node[B].cfg.rx_budget = 64u << 20;
	meet(A, B);
	assert_int_equal(shrink(B), 0);
	for (turn = 0; turn < 2; turn++) {
		hello = hello_of_the_dead();
		for (i = 0; i < 300; i++)
			assert_int_equal(stranger_call(hello, n++), 0);
		frame_free(hello);
		post(A, B, 1 + turn, 100); /* with what lies in the last piece */
		run(BW_S);
		grown = world.node[B].grown_n;
		assert_in_range(grown, 8, 20);
		assert_true(bw_reliable_used(world.node[B].mem) > 150 * bw_reliable_peer_bytes(1));
		assert_in_range(shrink(B), 0, 2);
		run(61 * BW_S);
		assert_int_equal(count(B)->peers, 1);
		assert_true(bw_reliable_used(world.node[B].mem) < 16384);
		assert_in_range(shrink(B), grown * 2 / 3, grown);
		assert_int_equal(shrink(B), 0);
		post(B, A, 10 + turn, 60000);
		post(A, B, 20 + turn, 60000);
		run(BW_S);
	}
	assert_int_equal(events_with("B MESSAGE"), 4);
	assert_int_equal(events_with("A MESSAGE"), 2);
}

/* The host gave none, and has room again. */
static void shrink__ends_the_want_of_memory(void **state)
{
	struct frame *hello;
	uint32_t n = 0;
	uint64_t gone;

	world.quiet = true;
	world.node[B].grow_max = 4;
	node_open(B);
	hello = hello_of_the_dead();
	while (!stranger_call(hello, n))
		n++;
	assert_true(engine(B)->crowded);
	run(61 * BW_S);
	gone = count(B)->evicted;
	assert_in_range(shrink(B), 2, 4);
	assert_false(engine(B)->crowded);
	for (n = 0; n < 100; n++)
		assert_int_equal(stranger_call(hello, n), 0);
	assert_int_equal(count(B)->evicted, gone);
	frame_free(hello);
}

/* A look is made in steps that look at no more than they may, and bring the same together. */
static void shrink__goes_in_steps(void **state)
{
	struct frame *hello;
	uint32_t n = 0, steps = 0;
	unsigned int grown, gone = 0;
	uint64_t before;
	bool ended;

	world.quiet = true;
	meet(A, B);
	hello = hello_of_the_dead();
	for (; n < 300; n++)
		assert_int_equal(stranger_call(hello, n), 0);
	frame_free(hello);
	run(61 * BW_S);
	grown = world.node[B].grown_n;
	do {
		before = engine(B)->looks;
		gone += shrink_step(B, 16, &ended);
		assert_in_range(engine(B)->looks - before, ended ? 0 : 16, 16);
		steps++;
		if (steps == 20) /* what is used between two steps is not in the way */
			post(A, B, 1, 60000);
		run(BW_MS);
	} while (!ended);
	assert_int_equal(events_with("B MESSAGE 1 "), 1);
	assert_in_range(steps, 30, 300);
	assert_in_range(gone, grown * 2 / 3, grown);
	before = engine(B)->looks;
	assert_in_range(shrink(B), 0, 1);
	/* what lies in its place is not looked at again, but for what the engine began with */
	assert_in_range(engine(B)->looks - before, 0, 131072 / 64);
}

int shrink_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(shrink__gives_back_what_strangers_have_left),
		TEST(shrink__ends_the_want_of_memory),
		TEST(shrink__goes_in_steps),
	};

	return cmocka_run_group_tests_name("shrink", tests, NULL, NULL);
}
