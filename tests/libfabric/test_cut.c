// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The provider where the interface eth0 goes down in the middle of a transfer, which its peer
 * survives: for the links that use interfaces, in a namespace of its own.
 */
#include <time.h>

#include "inside.h"

#define LONG 100000
#define KEY  42

static char *tx, *rx;
static bool cut;

/* From now on nothing comes. */
static int pull(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *buf,
		uint64_t len, void *op)
{
	if (!cut && system("ip link set eth0 down"))
		return -EIO;
	cut = true;
	return __real_bw_pull(ep, peer, rndv, buf, len, op);
}

static int setup(void **state)
{
	tx = malloc(LONG);
	rx = malloc(LONG);
	pair_fill(tx, LONG, 1);
	memset(rx, 0, LONG);
	cut = false;
	inside_calls = (struct inside_calls){.pull = pull};
	return pair_setup(state);
}

static int teardown(void **state)
{
	pair_teardown(state);
	free(tx);
	free(rx);
	return 0;
}

/* A region is closed a second and a little after its data stopped to come, long before their writer
 * counts as dead, which it is not: it is told, and nothing reaches the memory afterwards. */
static void close__of_a_region_does_not_wait_for_its_writer(void **state)
{
	struct timespec began, ended;
	struct fid_mr *mr;

	assert_int_equal(fi_mr_reg(pair_domain, rx, LONG, FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL),
			 0);
	pair_retry(fi_write(a.ep, tx, LONG, NULL, a.peer, 0, KEY, tx));
	while (!cut)
		pair_progress();
	clock_gettime(CLOCK_MONOTONIC, &began);
	assert_int_equal(fi_close(&mr->fid), 0);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	assert_int_equal(system("ip link set eth0 up"), 0);
	assert_in_range(ended.tv_sec - began.tv_sec, 1, 20);
	assert_int_equal(pair_error(a.tx).err, FI_ECANCELED);
	for (int i = 0; i < LONG; i++)
		assert_int_equal(rx[i], 0);
	pair_retry(fi_tinject(a.ep, "alive", 6, a.peer, 1));
	pair_retry(fi_trecv(b.ep, rx, 6, NULL, b.peer, 1, 0, NULL));
	assert_string_equal(pair_completion(b.rx).len == 6 ? rx : "", "alive");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(close__of_a_region_does_not_wait_for_its_writer,
						setup, teardown),
	};

	return cmocka_run_group_tests_name("cut", tests, NULL, NULL);
}
