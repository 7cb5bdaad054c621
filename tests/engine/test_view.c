/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A peer as people are told of it. */
#include "groups.h"

static struct bw_peer_view seen(int n, int of)
{
	struct bw_peer_view view;

	assert_int_equal(bw_reliable_peer_view(engine(n), world.node[n].peer[of], &view), 0);
	return view;
}

static void view__counts_messages_and_packets(void **state)
{
	struct bw_peer_view v;

	meet(A, B);
	post(A, B, 1, 1000);
	post(A, B, 2, 10);
	run(BW_MS);
	v = seen(A, B);
	assert_true(v.up && v.paths == 1 && !v.silent && !v.expected);
	assert_int_equal(v.tx_messages, 2);
	assert_int_equal(v.tx_packets, path(A, B, 0)->pn_next - 1);
	assert_int_equal(v.inflight, 0);
	assert_true(v.srtt_ns);
	assert_int_equal(v.retransmits + v.losses, 0);
	assert_int_equal(seen(B, A).rx_messages, 2);
	assert_int_equal(seen(B, A).rx_packets, v.tx_packets);
	assert_true(seen(B, A).heard);
}

static enum fate narrow(const struct frame *f)
{
	return f->len > 2000 ? LOSE : PASS;
}

/* The line is as good as one can be. */
static void view__counts_no_probes_of_the_size_as_losses(void **state)
{
	world.node[A].cfg.link_mtu[0] = world.node[B].cfg.link_mtu[0] = 9000;
	world.fate = narrow;
	node_open(A);
	node_open(B);
	connect_to(A, B);
	post(A, B, 1, 50000);
	run(BW_S);
	assert_true(frames_with("lost") > 3);
	assert_int_equal(seen(A, B).losses, 0);
	assert_int_equal(count(A)->losses, 0);
}

/* That it was made is no sign of life of it, nor that it calls: who calls may be anybody. */
static void view__of_who_never_answered_is_never_heard(void **state)
{
	pass(BW_S);
	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	drop_all();
	assert_false(seen(A, B).up);
	assert_int_equal(seen(A, B).heard, 0);
	connect_to(B, A);
	flush(B);
	deliver_all();
	assert_true(seen(A, B).up);
	assert_int_equal(seen(A, B).heard, 0);
}

static void view__of_who_answers_is_heard(void **state)
{
	meet(A, B);
	post(A, B, 1, 100);
	pass(BW_S);
	settle();
	assert_int_equal(seen(A, B).rx_packets, 0);
	assert_true(seen(A, B).heard >= BW_S);
}

static void view__tells_of_silence(void **state)
{
	struct bw_peer_view v;

	meet(A, B);
	run(BW_MS);
	post(A, B, 1, 1000);
	flush(A);
	drop_all();
	v = seen(A, B);
	assert_true(v.expected);
	assert_int_equal(v.waiting_since, world.now);
	assert_true(v.inflight >= 1000);
	assert_int_equal(v.silent, 0);
	pass(20 * BW_MS);
	flush(A);
	drop_all();
	v = seen(A, B);
	assert_int_equal(v.silent, 1);
	assert_true(v.probes);
	assert_true(v.retransmits);
	assert_true(v.waiting_since < world.now && v.proven < world.now);
}

static void view__tells_of_what_is_not_fetched(void **state)
{
	struct bw_peer_view v;
	uint64_t first;

	meet(A, B);
	first = expose(A, B, 1, 5000);
	expose(A, B, 2, 7000);
	v = seen(A, B);
	assert_int_equal(v.exposed, 2);
	assert_int_equal(v.exposed_bytes, 12000);
	assert_int_equal(v.exposed_first, first);
	pull(B, A, first, 3, 0, 5000, BW_PULL_FINAL);
	assert_int_equal(seen(B, A).pulls, 1);
	assert_int_equal(seen(B, A).pull_bytes, 5000);
	run(BW_MS);
	v = seen(A, B);
	assert_int_equal(v.exposed, 1);
	assert_true(v.exposed_first != first);
	assert_int_equal(seen(B, A).pulls, 0);
}

static void view__counts_no_more_than_so_many(void **state)
{
	struct bw_peer_view v;

	meet(A, B);
	for (uint64_t i = 0; i < 2 * BW_VIEW_MOST; i++)
		expose(A, B, i, 100);
	v = seen(A, B);
	assert_int_equal(v.exposed, BW_VIEW_MOST);
	assert_int_equal(v.exposed_bytes, 100 * BW_VIEW_MOST);
}

static void view__of_nobody_is_refused(void **state)
{
	struct bw_peer_view view;

	node_open(A);
	assert_int_equal(bw_reliable_peer_view(engine(A), 77, &view), -ENOTCONN);
}

int view_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(view__counts_messages_and_packets),
		TEST(view__counts_no_probes_of_the_size_as_losses),
		TEST(view__of_who_never_answered_is_never_heard),
		TEST(view__of_who_answers_is_heard),
		TEST(view__tells_of_silence),
		TEST(view__tells_of_what_is_not_fetched),
		TEST(view__counts_no_more_than_so_many),
		TEST(view__of_nobody_is_refused),
	};

	return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
