/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Several paths of one peer: which is used, going over to another one and back, and addresses that
 * change.
 */
#include "contact.h"
#include "groups.h"
#include "peer.h"

#define PATHS 2

static uint8_t dead; /* links that carry nothing, one bit each */

static enum fate network(const struct frame *f)
{
	return dead >> f->link & 1 ? LOSE : PASS;
}

static void links(void)
{
	dead = 0;
	world.fate = network;
}

/* Two nodes with two links between them. */
static void meet_twice(void)
{
	struct bw_op op;

	links();
	node_open(A);
	node_open(B);
	op = op_connect(A, B);
	op.connect.paths = PATHS;
	op.connect.path[1] = address(B, 1);
	assert_int_equal(submit(A, &op), 0);
	world.node[A].peer[B] = op.peer;
	run(100 * BW_MS);
	assert_int_equal(peer(A, B)->npaths, 2);
	assert_int_equal(peer(B, A)->npaths, 2);
	assert_int_equal(path(A, B, 0)->state, BW_PATH_UP);
	assert_int_equal(path(A, B, 1)->state, BW_PATH_UP);
	forget_logs();
}

static void paths__lower_link_number_is_preferred(void **state)
{
	uint32_t mtu;
	uint8_t link;
	uint64_t srtt;

	meet_twice();
	post(A, B, 1, 8);
	settle();
	expect_frames("A>B DATA 1 [MESSAGE 0 0+8/8]", NULL);
	assert_int_equal(bw_reliable_path(engine(A), world.node[A].peer[B], &srtt, &mtu, &link), 0);
	assert_int_equal(link, 0);
	assert_int_equal(mtu, 1280);
	assert_true(srtt > 0);
	assert_int_equal(bw_reliable_path(engine(A), 0, &srtt, &mtu, &link), -ENOTCONN);
}

static void paths__a_dead_one_is_left(void **state)
{
	meet_twice();
	post(A, B, 1, 5000);
	flush(A);
	deliver(0);
	drop_all();
	dead = 1;
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE 1 len 5000"), 1);
	assert_int_equal(events_with("A SENT 1"), 1);
	assert_int_equal(events_with("A PATH B link 0 lost"), 1);
	assert_int_equal(peer(A, B)->best, 1);
	assert_true(frames_with("A>B/1 DATA") > 0);
	forget_logs();
	post(A, B, 2, 8);
	post(B, A, 3, 8);
	run(BW_S);
	assert_int_equal(events_with("MESSAGE"), 2);
}

static void paths__a_returning_one_is_used_again(void **state)
{
	meet_twice();
	dead = 1;
	post(A, B, 1, 8);
	run(BW_S);
	assert_int_equal(peer(A, B)->best, 1);
	dead = 0;
	run(BW_HELLO_RETRY + BW_S);
	assert_int_equal(peer(A, B)->best, 0);
	assert_int_equal(events_with("A PATH B link 0 mtu 1280"), 1);
	forget_logs();
	post(A, B, 2, 8);
	run(BW_MS);
	assert_int_equal(frames_with("A>B DATA"), 1);
	assert_int_equal(events_with("B MESSAGE 2"), 1);
}

/* Link 0 carries nothing until A has left that path. */
static enum fate until_left(const struct frame *f)
{
	return !f->link && path(A, B, 0)->state == BW_PATH_UP ? LOSE : PASS;
}

/* What is first answered tells nothing of its length: it may have been asked at first contact. */
static void paths__a_returning_one_is_as_long_as_before(void **state)
{
	uint64_t srtt;

	meet_twice();
	run(BW_S);
	srtt = path(A, B, 0)->rtt.srtt;
	forget_logs();
	world.fate = until_left;
	post(A, B, 1, 8);
	while (!events_with("A PATH B link 0"))
		run(HOP_NS);
	world.fate = network;
	run(BW_HELLO_FIRST / 2); /* before it is asked once more */
	assert_int_equal(path(A, B, 0)->state, BW_PATH_UP);
	assert_int_equal(path(A, B, 0)->rtt.srtt, srtt);
}

static void paths__a_busy_peer_is_no_dead_path(void **state)
{
	meet_twice();
	dead = 3; /* nothing answers on any link */
	post(A, B, 1, 8);
	run(2 * BW_S);
	assert_int_equal(events_with("lost"), 0);
	assert_int_equal(peer(A, B)->best, 0);
	dead = 0;
	run(3 * BW_S);
	assert_int_equal(events_with("B MESSAGE 1"), 1);
	assert_int_equal(events_with("lost"), 0);
}

/* Frames from this node are lost on link 0, or on all; -1: on none. */
static int mute = -1;
static bool mute_all;

static enum fate one_way(const struct frame *f)
{
	return f->from == mute && (mute_all || !f->link) ? LOSE : PASS;
}

static void cut_one_way(int from, bool all)
{
	mute = from;
	mute_all = all;
	world.fate = one_way;
}

/* What A sends on link 0 no longer arrives, what B sends does: B's frames there prove nothing. */
static void one_way__path_is_left_though_the_peer_is_heard_on_it(void **state)
{
	int i;

	meet_twice();
	cut_one_way(A, false);
	for (i = 0; i < 20; i++) {
		post(A, B, 1, 5000);
		post(B, A, 2, 5000);
		run(100 * BW_MS);
	}
	assert_int_equal(events_with("B MESSAGE"), 20);
	assert_int_equal(events_with("A MESSAGE"), 20);
	assert_int_equal(events_with("SENT"), 40);
	assert_int_equal(events_with("A PATH B link 0 lost"), 1);
	assert_int_equal(events_with("B PATH A link 0 lost"), 1);
	assert_int_equal(peer(A, B)->best, 1);
	assert_int_equal(peer(B, A)->best, 1);
}

/* The last answer before the cut comes late, to a packet that was taken for lost: the path is
 * slower than we thought. But then it is silent. */
static void one_way__path_is_left_after_a_late_answer(void **state)
{
	meet_twice();
	post(A, B, 1, 8);
	flush(A);
	cut_one_way(A, false);
	world.now = deadline();
	flush(A); /* sent again, and lost */
	post(A, B, 2, 8);
	run(5 * BW_S);
	assert_int_equal(count(A)->spurious, 1);
	assert_int_equal(events_with("A PATH B link 0 lost"), 1);
	assert_int_equal(events_with("A SENT 1"), 1);
	assert_int_equal(events_with("A SENT 2"), 1);
	assert_int_equal(events_with("B MESSAGE 1"), 1);
	assert_int_equal(events_with("B MESSAGE 2"), 1);
}

/* HELLOs of the peer come by the path that was left, answers to ours do not. */
static void one_way__path_comes_up_again_only_by_an_answer(void **state)
{
	meet_twice();
	cut_one_way(A, false);
	post(A, B, 1, 5000);
	post(B, A, 2, 5000);
	run(2 * BW_S);
	forget_logs();
	run(100 * BW_S);
	assert_true(frames_with("B>A HELLO") > 2);
	expect_events(NULL, NULL);
	mute = -1;
	run(2 * BW_HELLO_RETRY);
	assert_int_equal(events_with("A PATH B link 0 mtu"), 1);
	assert_int_equal(events_with("B PATH A link 0 mtu"), 1);
	post(A, B, 3, 8);
	run(BW_MS);
	assert_int_equal(frames_with("A>B DATA"), 1);
}

/* The peer's network interface was exchanged: its frames come from another address, and ours go
 * astray. */
static void moved__peer_is_found_at_its_new_address(void **state)
{
	int i;

	world.strangers = true; /* addresses are kept apart */
	meet_twice();
	world.node[A].place = 9;
	post(A, B, 1, 5000);
	post(B, A, 2, 5000);
	run(10 * BW_S);
	assert_int_equal(events_with("MESSAGE"), 2);
	run(2 * BW_HELLO_RETRY);
	forget_logs();
	post(A, B, 3, 5000);
	post(B, A, 4, 5000);
	run(BW_S);
	assert_int_equal(frames_with("lost"), 0);
	assert_true(frames_with("A>B DATA") > 0);
	assert_true(frames_with("B>A DATA") > 0);
	assert_int_equal(events_with("MESSAGE"), 2);
	assert_int_equal(peer(B, A)->npaths, 2);
	for (i = 0; i < 2; i++) { /* and calls from there are its own */
		struct bw_link_addr at = address(A, (uint8_t)i);

		assert_ptr_equal(bw_contact_at(engine(B), &at, peer(B, A)->engine, 0, false),
				 peer(B, A));
	}
}

static void moved__peer_with_one_path_is_found_too(void **state)
{
	meet(A, B);
	world.node[A].place = 9;
	post(A, B, 1, 5000);
	post(B, A, 2, 5000);
	run(10 * BW_S);
	assert_int_equal(events_with("MESSAGE"), 2);
	assert_int_equal(events_with("SENT"), 2);
	assert_int_equal(events_with("DOWN"), 0);
}

/* An idle peer is asked now and then whether it lives: the one that moved finds that its questions
 * are not answered, and says HELLO from where it is. */
static void moved__idle_peer_that_watches_is_found(void **state)
{
	meet(A, B);
	watch(A, B, true);
	world.node[A].place = 9;
	run(3 * world.node[A].cfg.dead_ns);
	assert_int_equal(events_with("DOWN"), 0);
	forget_logs();
	post(B, A, 1, 8);
	run(BW_MS);
	expect_events("A MESSAGE 1 len 8", "B SENT 1", NULL);
	assert_int_equal(frames_with("lost"), 0);
}

/* One that says nothing is nowhere to be found: who asks only knows where it was. */
static void moved__idle_peer_that_is_silent_is_given_up(void **state)
{
	meet(A, B);
	watch(B, A, true);
	world.node[A].place = 9;
	run(2 * world.node[B].cfg.dead_ns);
	assert_int_equal(events_with("B PEER_DOWN A ETIMEDOUT"), 1);
}

/* Both have moved, and each hears the other only from where it is not known: questions that nobody
 * may answer go back and forth, but not without pause. */
static void moved__two_that_have_both_moved_do_not_ask_without_pause(void **state)
{
	struct frame *hello;
	int i;

	links();
	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	hello = frame_copy(world.wire[0]);
	run(BW_S);
	forget_logs();
	hello->place = 66;
	for (i = 0; i < 1000; i++) {
		give(frame_copy(hello));
		settle();
		world.now += 100 * BW_US;
	}
	give(hello);
	settle();
	/* at 0, 1, 3, 7, 15, 31 and 63 ms */
	assert_int_equal(frames_with("B>A HELLO lost"), 7);
}

/* The peer is known by two addresses, and numbers the second path as it did the first: it has left
 * that address. Its acknowledgements are for the path that was answered. */
static void moved__no_two_paths_have_one_number(void **state)
{
	meet_twice();
	path(A, B, 0)->remote_no = 1;
	path(A, B, 1)->hello.due = true;
	bw_peer_ready(engine(A), peer(A, B));
	flush(A);
	deliver_all();
	flush(B);
	deliver_all();
	assert_int_equal(path(A, B, 0)->remote_no, BW_PATH_UNKNOWN);
	assert_int_equal(path(A, B, 0)->state, BW_PATH_TRYING);
	assert_int_equal(path(A, B, 1)->remote_no, 1);
	assert_int_equal(peer(A, B)->best, 1);
	post(A, B, 1, 8);
	run(BW_S);
	assert_int_equal(events_with("A SENT 1"), 1);
	assert_int_equal(path(A, B, 0)->remote_no, 0);
	assert_int_equal(path(A, B, 0)->state, BW_PATH_UP);
}

/* Whoever sends old HELLOs again, from wherever, gets a question back and nothing else. */
static void moved__old_hellos_from_elsewhere_divert_nothing(void **state)
{
	struct frame *hello, *answer;
	int i;

	links();
	node_open(A);
	node_open(B);
	connect_to(A, B);
	connect_to(B, A);
	flush(A);
	hello = frame_copy(world.wire[0]);
	flush(B);
	deliver_all();
	flush(A);
	assert_int_equal(frame_hdr(world.wire[0])->flags, BW_HDR_ANSWER);
	answer = frame_copy(world.wire[0]);
	run(BW_S);
	forget_logs();
	hello->place = answer->place = 66;
	for (i = 0; i < 3; i++) {
		give(frame_copy(hello));
		give(frame_copy(answer));
		settle();
		world.now += 10 * BW_MS;
	}
	assert_int_equal(frames_with("B>A HELLO lost"), 3); /* one for the two */
	assert_int_equal(frames_with(""), 3);
	frame_hdr(hello)->path = 3; /* a path that A does not have */
	frame_seal(hello);
	frame_hdr(answer)->path = 3;
	frame_seal(answer);
	give(hello);
	give(answer);
	run(BW_S);
	assert_int_equal(path(B, A, 1)->state, BW_PATH_TRYING);
	assert_int_equal(peer(B, A)->best, 0);
	forget_logs();
	post(B, A, 1, 5000);
	run(BW_MS);
	assert_int_equal(events_with("A MESSAGE 1"), 1);
	assert_int_equal(frames_with("lost"), 0);
}

static void paths__first_contact_by_the_one_that_works(void **state)
{
	struct bw_op op;

	links();
	dead = 1;
	node_open(A);
	node_open(B);
	op = op_connect(A, B);
	op.connect.paths = PATHS;
	op.connect.path[1] = address(B, 1);
	assert_int_equal(submit(A, &op), 0);
	world.node[A].peer[B] = op.peer;
	post(A, B, 1, 8);
	run(100 * BW_MS);
	assert_int_equal(events_with("B MESSAGE 1"), 1);
	assert_int_equal(peer(A, B)->best, 1);
}

static void paths__acknowledged_where_the_packet_came(void **state)
{
	meet_twice();
	post(A, B, 1, 8);
	settle();
	peer(A, B)->best = 1;
	post(A, B, 2, 8);
	run(BW_MS);
	/* numbers and acknowledgements of the two paths are apart */
	assert_int_equal(frames_with("A>B DATA 1 [MESSAGE 0 0+8/8]"), 1);
	assert_int_equal(frames_with("A>B/1 DATA 1 [MESSAGE 1 0+8/8]"), 1);
	assert_int_equal(frames_with("B>A ACK 1"), 1);
	assert_int_equal(frames_with("B>A/1 ACK 1"), 1);
	assert_int_equal(events_with("A SENT"), 2);
}

static void paths__order_is_kept_across_them(void **state)
{
	meet_twice();
	post(A, B, 1, 8);
	flush(A);
	peer(A, B)->best = 1;
	post(A, B, 2, 8);
	flush(A);
	deliver(1);
	expect_events(NULL, NULL);
	deliver(0);
	expect_events("B MESSAGE 1 len 8", "B MESSAGE 2 len 8", NULL);
}

/* A has sent by both paths, and B leaves: its last words lie on the wire. */
static void leave_with_two_paths(void)
{
	meet_twice();
	post(A, B, 1, 8);
	flush(A);
	deliver_all();
	peer(A, B)->best = 1;
	post(A, B, 2, 8);
	flush(A);
	deliver_all();
	forget_logs();
	disconnect(B, A);
	flush(B);
	expect_frames("B>A ACK 1", "B>A/1 ACK 1", "B>A/1 BYE", NULL);
	expect_events("B PEER_DOWN A ECANCELED", NULL);
}

static void bye__goes_by_the_path_of_the_last_packet(void **state)
{
	leave_with_two_paths();
	deliver_all();
	expect_events("A SENT 1", "A SENT 2", "A PEER_DOWN B ESHUTDOWN", NULL);
}

/* One link is read after the other, whichever frame was sent first. */
static void bye__read_before_what_another_path_brings(void **state)
{
	leave_with_two_paths();
	reverse();
	deliver_all();
	expect_events("A SENT 2", "A SENT 1", NULL);
	run(BW_BYE_GRACE);
	expect_events("A PEER_DOWN B ESHUTDOWN", NULL);
}

static void bye__waits_no_longer_than_its_grace(void **state)
{
	leave_with_two_paths();
	drop(0);
	deliver_all();
	expect_events("A SENT 2", NULL);
	assert_in_range(peer(A, B)->gone_at, world.now, world.now + BW_BYE_GRACE);
	run(BW_BYE_GRACE);
	expect_events("A SENT 1 ESHUTDOWN", "A PEER_DOWN B ESHUTDOWN", NULL);
}

static void paths__refused_by_a_strangers_host_leaves_the_other(void **state)
{
	struct bw_refuse *b;
	struct bw_op op;
	struct frame *f;

	links();
	node_open(A);
	node_open(B);
	op = op_connect(A, B);
	op.connect.inc++; /* makes B refuse, a frame to be changed */
	op.connect.paths = PATHS;
	op.connect.path[1] = address(B, 1);
	assert_int_equal(submit(A, &op), 0);
	world.node[A].peer[B] = op.peer;
	flush(A);
	deliver(0);
	flush(B);
	f = take(world.wire_n - 1);
	drop_all();
	b = frame_body(f);
	b->why = BW_REFUSAL_NO_ENGINE;
	frame_seal(f);
	receive(frame_copy(f));
	assert_int_equal(events_with("PEER_DOWN"), 0);
	assert_int_equal(path(A, B, 0)->state, BW_PATH_NONE);
	f->link = 1;
	receive(f); /* on the last path: the peer is not there */
	assert_int_equal(events_with("A PEER_DOWN B ECONNREFUSED"), 1);
}

static void paths__at_most_four(void **state)
{
	struct frame *f;
	int i;

	meet(A, B);
	connect_to(A, B);
	for (i = 1; i < 6; i++) {
		peer(A, B)->path[0]->hello.due = true;
		bw_peer_ready(engine(A), peer(A, B));
		flush(A);
		f = take(0);
		drop_all();
		f->link = (uint8_t)i;
		frame_hdr(f)->path = (uint8_t)(i % BW_PATHS_MAX);
		frame_seal(f);
		assert_int_equal(receive(f), 0);
		pass(1);
	}
	assert_int_equal(peer(B, A)->npaths, BW_PATHS_MAX);
	for (i = 0; i < BW_PATHS_MAX; i++) /* 4 and 5 took the places of 1 and 2 */
		assert_int_equal(path(B, A, (unsigned int)i)->to.link, "\0\4\5\3"[i]);
	for (i = 0; i < 6; i++) { /* and the peer is found only where its paths lead */
		struct bw_link_addr at = address(A, (uint8_t)i);

		assert_ptr_equal(bw_contact_at(engine(B), &at, peer(B, A)->engine, 0, false),
				 i == 1 || i == 2 ? NULL : peer(B, A));
	}
	drop_all();
}

int path_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(paths__lower_link_number_is_preferred),
		TEST(paths__a_dead_one_is_left),
		TEST(paths__a_returning_one_is_used_again),
		TEST(paths__a_returning_one_is_as_long_as_before),
		TEST(paths__a_busy_peer_is_no_dead_path),
		TEST(one_way__path_is_left_though_the_peer_is_heard_on_it),
		TEST(one_way__path_is_left_after_a_late_answer),
		TEST(one_way__path_comes_up_again_only_by_an_answer),
		TEST(moved__peer_is_found_at_its_new_address),
		TEST(moved__peer_with_one_path_is_found_too),
		TEST(moved__idle_peer_that_watches_is_found),
		TEST(moved__idle_peer_that_is_silent_is_given_up),
		TEST(moved__two_that_have_both_moved_do_not_ask_without_pause),
		TEST(moved__no_two_paths_have_one_number),
		TEST(moved__old_hellos_from_elsewhere_divert_nothing),
		TEST(paths__first_contact_by_the_one_that_works),
		TEST(paths__acknowledged_where_the_packet_came),
		TEST(paths__order_is_kept_across_them),
		TEST(bye__goes_by_the_path_of_the_last_packet),
		TEST(bye__read_before_what_another_path_brings),
		TEST(bye__waits_no_longer_than_its_grace),
		TEST(paths__refused_by_a_strangers_host_leaves_the_other),
		TEST(paths__at_most_four),
	};

	return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
