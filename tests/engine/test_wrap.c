/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packet numbers are 64 bits wide, the wire carries 32: nothing happens when these wrap.
 */
#include "groups.h"
#include "peer.h"
#include "recv.h"

/* Both ends of the path from A to B go on at this number. */
static void start_at(uint64_t pn)
{
	struct bw_path *a = path(A, B, 0), *b = path(B, A, 0);

	a->pn_next = a->floor = pn;
	a->acked_max = pn - 1;
	b->rx.got.base = pn;
	b->rx.max = pn - 1;
	b->rx.any = true;
}

static void unwrap__nearest(void **state)
{
	const uint64_t k = 1ull << 32;

	assert_int_equal(bw_unwrap(1, 1), 1);
	assert_int_equal(bw_unwrap(1, 0), 0);
	assert_int_equal(bw_unwrap(1, 0xFFFFFFFF), 0); /* would be below 0 */
	assert_int_equal(bw_unwrap(k, 0xFFFFFFFF), k - 1);
	assert_int_equal(bw_unwrap(k - 1, 0), k);
	assert_int_equal(bw_unwrap(k + 5, 3), k + 3);
	assert_int_equal(bw_unwrap(7 * k + 5, 0x7FFFFFFF), 7 * k + 0x7FFFFFFF);
	assert_int_equal(bw_unwrap(7 * k, 0x80000001), 6 * k + 0x80000001);
}

static void numbers__wrap_without_loss(void **state)
{
	const uint64_t k = 1ull << 32;
	int i;

	meet(A, B);
	start_at(k - 5);
	for (i = 0; i < 20; i++) {
		post(A, B, (uint64_t)i, 1100);
		run(BW_MS);
	}
	assert_int_equal(events_with("B MESSAGE"), 20);
	assert_int_equal(events_with("A SENT"), 20);
	assert_int_equal(count(A)->retransmits, 0);
	assert_int_equal(path(A, B, 0)->pn_next, k + 15);
	assert_int_equal(path(B, A, 0)->rx.got.base, k + 15);
}

static void numbers__wrap_with_loss_and_reordering(void **state)
{
	const uint64_t k = 1ull << 32;
	int i;

	meet(A, B);
	start_at(k - 5);
	for (i = 0; i < 12; i++)
		post(A, B, (uint64_t)i, 1100);
	flush(A);
	assert_int_equal(world.wire_n, 12);
	drop(7);
	drop(5); /* the one with the number 0 on the wire */
	drop(2);
	reverse();
	run(50 * BW_MS);
	assert_int_equal(events_with("B MESSAGE"), 12);
	assert_int_equal(events_with("A SENT"), 12);
	assert_int_equal(count(A)->losses, 3);
	assert_true(path(A, B, 0)->pn_next > k + 9);
	post(A, B, 50, 8);
	run(BW_MS);
	post(A, B, 51, 8);
	run(BW_MS);
	assert_int_equal(path(B, A, 0)->rx.got.base, path(A, B, 0)->pn_next);
	assert_int_equal(path(A, B, 0)->floor, path(A, B, 0)->pn_next);
}

static void ranges__across_the_wrap(void **state)
{
	const uint64_t k = 1ull << 32;
	int i;

	meet(A, B);
	start_at(k - 2);
	for (i = 0; i < 6; i++)
		post(A, B, (uint64_t)i, 1100);
	flush(A);
	drop(0);
	forget_logs();
	while (world.wire_n)
		deliver(0);
	path(B, A, 0)->rx.ack_now = true;
	bw_peer_ready(engine(B), peer(B, A));
	flush(B);
	expect_frames("B>A ACK 4294967293 +[4294967295,4)", NULL);
	deliver_all();
	assert_int_equal(path(A, B, 0)->acked_max, k + 3);
	assert_int_equal(count(A)->losses, 1);
	settle();
	assert_int_equal(events_with("B MESSAGE"), 6);
}

int wrap_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unwrap__nearest),
		TEST(numbers__wrap_without_loss),
		TEST(numbers__wrap_with_loss_and_reordering),
		TEST(ranges__across_the_wrap),
	};

	return cmocka_run_group_tests_name("wrap", tests, NULL, NULL);
}
