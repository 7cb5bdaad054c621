/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who may speak for whom over the local link: other users, processes that may not read each other's
 * memory, and children of fork().
 */
#include "process.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include <cmocka.h>

static void stranger(uint32_t me)
{
	struct node n;

	CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
	node_open(&n, 0, 0);
	CHECK(bw_local_connect(n.link, board->engine[0], 5, NULL, &n.peer) == -EACCES);
	node_close(&n);
}

static void rights__another_user_is_turned_away(void **state)
{
	struct node n;

	if (geteuid() != 0)
		skip();
	node_open(&n, 0, 5);
	board->engine[0] = n.engine;

	pid_t pid = start(stranger, 0);

	assert_int_equal(status_of(pid), 0);
	node_settle(&n, &n);
	assert_string_equal(node_story(&n), "");
	node_close(&n);
}

/* A process that cannot be dumped cannot be read by its like either. */
static void unreadable(uint32_t me)
{
	static uint8_t from[100000], to[100000];
	struct node n;

	if (geteuid() == 0)
		CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
	CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
	rendezvous(&n, me, 0);
	if (me == 0) {
		pattern_fill(from, sizeof(from), 3);
		CHECK(bw_local_offer(n.peer, 1, 3, 0, from, sizeof(from), "op") == 0);
		while (n.sents == 0)
			turn(&n);
		CHECK(n.last_status == 0);
	} else {
		while (n.messages == 0)
			turn(&n);
		CHECK(bw_local_pull(n.peer, n.envelope, to, sizeof(to), "it") == 0);
		while (n.pulleds == 0)
			turn(&n);
		CHECK(n.last_status == 0 && pattern_holds(to, sizeof(to), 3));
		CHECK(bw_local_counters(n.link)->pulls_direct == 0);
		CHECK(bw_local_counters(n.link)->pulls_copied == 1);
		while (bw_local_busy(n.link))
			turn(&n);
	}
	part();
}

static void rights__who_may_not_read_the_other_copies(void **state)
{
	two(unreadable);
}

static struct node parent;

static void fork_child(uint32_t me)
{
	/* What a program does that forks and then ends in the ordinary way. */
	bw_local_close(parent.link);
}

static void rights__a_forked_child_closes_only_its_own(void **state)
{
	struct node b;
	uint8_t to[100];

	node_open(&parent, 0, 0);
	node_open(&b, 0, 0);
	node_pair(&parent, &b);
	bw_local_offer(parent.peer, 1, 1, 1, parent.region, 100, "op");
	node_poll(&b);
	node_story(&b);
	assert_int_equal(status_of(start(fork_child, 0)), 0);
	/* What the parent has offered is still to be had. */
	bw_local_pull(b.peer, &b.envelope[0], to, 100, "it");
	node_settle(&parent, &b);
	assert_string_equal(node_story(&b), "pulled it 0 len 100 | ");
	node_send(&parent, 1, 8);
	node_settle(&parent, &b);
	assert_string_equal(node_story(&b), "message 1 tag 1 imm 1 len 8 | ");
	node_close(&parent);
	node_close(&b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, board_setup, board_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rights__another_user_is_turned_away),
		TEST(rights__who_may_not_read_the_other_copies),
		TEST(rights__a_forked_child_closes_only_its_own),
	};

	return cmocka_run_group_tests_name("local link's rights", tests, NULL, NULL);
}
