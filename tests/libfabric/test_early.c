// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Long messages that are fetched before their receive is posted. Here every way is slow enough for
 * that (bw_pull_early()), and the test says when a fetch ends, and how.
 */
#include "inside.h"

#define LONG	  (1 << 20)
#define FETCH_MAX 16

static char *tx, *rx;

/* Fetches under way, in the order of their messages. */
static struct {
	struct bw_ep *ep;
	struct bwf_done *done;
	void *to;
	uint64_t len;
} fetch[FETCH_MAX];
static size_t fetches;
static size_t late; /* messages that were fetched for their receive */

static int pull(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *buf,
		uint64_t len, void *op)
{
	late += len != 0;
	return __real_bw_pull(ep, peer, rndv, buf, len, op);
}

static int pull_early(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *buf,
		      uint64_t len, void *op)
{
	if (!buf)
		return 0;
	assert_true(fetches < FETCH_MAX);
	fetch[fetches].ep = ep;
	fetch[fetches].done = op;
	fetch[fetches].to = buf;
	fetch[fetches].len = len;
	fetches++;
	return 0;
}

static int setup(void **state)
{
	tx = malloc(2 * LONG);
	rx = malloc(2 * LONG);
	fetches = late = 0;
	inside_calls = (struct inside_calls){.pull = pull, .pull_early = pull_early};
	pair_setup(state);
	pair_fill(tx, LONG, 1);
	memset(rx, 0, LONG);
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(inside(&b)->unexpected.early, 0);
	pair_teardown(state);
	free(tx);
	free(rx);
	return 0;
}

/* A long message, of whose data b has asked for the first. */
static void send_long(uint64_t tag, const char *from)
{
	size_t before = fetches;

	pair_retry(fi_tsend(a.ep, from, LONG, NULL, a.peer, tag, NULL));
	while (fetches == before)
		pair_progress();
}

/* The fetch ends: with `from`, or an error; `missing` bytes do not come. */
static void fetched(size_t i, const char *from, int status, uint64_t missing)
{
	bw_ep_lock(fetch[i].ep);
	if (!status)
		memcpy(fetch[i].to, from, fetch[i].len - missing);
	fetch[i].done->call(inside(&b), fetch[i].done, status, status ? 0 : LONG - missing);
	bw_ep_unlock(fetch[i].ep);
}

static void receive(uint64_t tag)
{
	pair_retry(fi_trecv(b.ep, rx, LONG, NULL, b.peer, tag, 0, rx));
}

static void received(uint32_t seed)
{
	struct fi_cq_tagged_entry e = pair_completion(b.rx);

	assert_int_equal(e.len, LONG);
	assert_true(pair_filled(rx, LONG, seed));
	pair_completion(a.tx);
}

/* The data are there first. Their sender is released by the receive. */
static void early__data_wait_for_their_receive(void **state)
{
	send_long(1, tx);
	assert_true(inside(&b)->unexpected.early >= LONG);
	fetched(0, tx, 0, 0);
	pair_nothing(a.tx);
	receive(1);
	received(1);
	assert_int_equal(late, 0);
}

static void early__a_receive_waits_for_its_data(void **state)
{
	send_long(1, tx);
	receive(1);
	pair_nothing(b.rx);
	fetched(0, tx, 0, 0);
	received(1);
	assert_int_equal(late, 0);
}

/* Receives take the messages in another order than they came, fetches end in a third one. */
static void early__each_receive_gets_its_own(void **state)
{
	pair_fill(tx + LONG, LONG, 2);
	send_long(1, tx);
	send_long(2, tx + LONG);
	receive(2);
	fetched(0, tx, 0, 0);
	pair_nothing(b.rx);
	fetched(1, tx + LONG, 0, 0);
	received(2);
	receive(1);
	received(1);
}

/* A fetch that failed with nobody waiting is made again by the receive. */
static void early__what_failed_is_fetched_again(void **state)
{
	send_long(1, tx);
	fetched(0, NULL, -EIO, 0);
	assert_int_equal(inside(&b)->unexpected.early, 0);
	receive(1);
	received(1);
	assert_int_equal(late, 1);
}

static void early__a_receive_is_told_of_the_failure(void **state)
{
	for (int shorter = 0; shorter < 2; shorter++) {
		send_long(1, tx);
		receive(1);
		fetched((size_t)shorter, tx, shorter ? 0 : -EIO, 1);
		assert_int_equal(pair_error(b.rx).err, FI_EIO);
		pair_completion(a.tx);
	}
}

/* Discarded while it is fetched, and afterwards: its memory is free, its sender released. */
static void early__what_is_discarded_leaves_nothing(void **state)
{
	struct iovec iov = {rx, LONG};
	struct fi_msg_tagged m = {.msg_iov = &iov, .iov_count = 1, .addr = b.peer, .tag = 1};

	for (int over = 0; over < 2; over++) {
		send_long(1, tx);
		if (over)
			fetched(1, tx, 0, 0);
		pair_retry(fi_trecvmsg(b.ep, &m, FI_PEEK | FI_DISCARD));
		assert_int_equal(pair_completion(b.rx).len, LONG);
		pair_completion(a.tx);
		if (!over) {
			assert_true(inside(&b)->unexpected.early >= LONG);
			fetched(0, tx, 0, 0);
		}
		assert_int_equal(inside(&b)->unexpected.early, 0);
		assert_null(inside(&b)->early);
	}
}

/* Half of what unexpected messages may take; what finds no room is fetched for its receive. */
static void early__memory_is_bounded(void **state)
{
	pair_close();
	setenv("BEOWIRE_UNEXPECTED_MAX", "5000000", 1);
	pair_open(&(struct pair_options){0});
	unsetenv("BEOWIRE_UNEXPECTED_MAX");
	for (uint64_t i = 0; i < 5; i++)
		pair_retry(fi_tsend(a.ep, tx, LONG, NULL, a.peer, i, NULL));
	pair_nothing(b.rx);
	assert_int_equal(fetches, 2);
	for (size_t i = 0; i < 2; i++)
		fetched(i, tx, 0, 0);
	for (uint64_t i = 5; i-- > 0;) {
		receive(i);
		received(1);
	}
	assert_int_equal(late, 3);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(early__data_wait_for_their_receive),
		TEST(early__a_receive_waits_for_its_data),
		TEST(early__each_receive_gets_its_own),
		TEST(early__what_failed_is_fetched_again),
		TEST(early__a_receive_is_told_of_the_failure),
		TEST(early__what_is_discarded_leaves_nothing),
		TEST(early__memory_is_bounded),
	};

	return cmocka_run_group_tests_name("early", tests, NULL, NULL);
}
