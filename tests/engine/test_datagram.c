/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The minimal datagram protocol behind the same interface: a send is a frame, a frame is a message,
 * nothing comes again.
 */
#include "groups.h"
#include "host.h"
#include "simple_peers.h"

static void open_both(void)
{
	world.node[A].protocol = world.node[B].protocol = &bw_datagram;
	node_open(A);
	node_open(B);
	connect_to(A, B);
}

/* DGRAM carries no tag: all payloads are the pattern of 0. */
static void send_one(uint64_t cookie, uint32_t len)
{
	struct bw_op op = op_send(A, B, 0, len);

	world.buffers->cookie = op.cookie = cookie;
	assert_int_equal(submit(A, &op), 0);
}

static void send__makes_one_frame_and_one_message(void **state)
{
	open_both();
	send_one(1, 8);
	send_one(2, 0);
	settle();
	expect_frames("A>B DGRAM 8", "A>B DGRAM 0", NULL);
	expect_events("A SENT 1", "A SENT 2", "B PEER_UP A", "B MESSAGE 0 len 8",
		      "B MESSAGE 0 len 0", NULL);
	assert_int_equal(deadline(), BW_NEVER);
}

static void send__lost_is_lost(void **state)
{
	open_both();
	send_one(1, 8);
	flush(A);
	drop_all();
	run(10 * BW_S);
	expect_frames("A>B DGRAM 8", NULL);
	expect_events("A SENT 1", NULL);
}

static void send__fits_a_frame_or_is_refused(void **state)
{
	struct bw_op op;

	open_both();
	op = op_send(A, B, 0, 1280 - 48 + 1);
	assert_int_equal(submit(A, &op), -EMSGSIZE);
	send_one(1, 1280 - 48);
	settle();
	assert_int_equal(events_with("B MESSAGE 0 len 1232"), 1);
	op.peer = 77;
	op.send.len = 8;
	assert_int_equal(submit(A, &op), -ENOTCONN);
	op.type = BW_OP_PULL;
	assert_int_equal(submit(A, &op), -EINVAL);
}

static void unsent__goes_again(void **state)
{
	struct bw_tx_frame t;

	open_both();
	send_one(1, 8);
	assert_true(bw_datagram.next_frame(world.node[A].mem, &t, world.now));
	bw_datagram.unsent(world.node[A].mem, world.now);
	settle();
	expect_frames("A>B DGRAM 8", NULL);
	assert_int_equal(events_with("B MESSAGE"), 1);
	assert_int_equal(events_with("A SENT"), 1);
}

static void ring__full_says_again(void **state)
{
	unsigned int i;
	struct bw_op op;

	open_both();
	for (i = 0; i < 256; i++)
		send_one(i, 0);
	op = op_send(A, B, 0, 0);
	assert_int_equal(submit(A, &op), -EAGAIN);
	settle();
	assert_int_equal(events_with("B MESSAGE"), 256);
	assert_int_equal(submit(A, &op), 0);
	settle();
	assert_int_equal(events_with("B MESSAGE"), 257);
}

static void receive__damaged_foreign_or_short_is_dropped(void **state)
{
	struct frame *f, *g;

	open_both();
	send_one(1, 8);
	flush(A);
	f = take(0);
	g = frame_copy(f);
	frame_hdr(g)->magic++;
	assert_int_equal(receive(g), -BW_DROP_FOREIGN);
	g = frame_copy(f);
	frame_hdr(g)->version++;
	assert_int_equal(receive(g), -BW_DROP_VERSION);
	g = frame_copy(f);
	frame_hdr(g)->cluster++;
	assert_int_equal(receive(g), -BW_DROP_CLUSTER);
	g = frame_copy(f);
	frame_hdr(g)->dst_engine++;
	assert_int_equal(receive(g), -BW_DROP_ENGINE);
	g = frame_copy(f);
	frame_hdr(g)->type = BW_FRAME_DATA;
	assert_int_equal(receive(g), -BW_DROP_TYPE);
	g = frame_copy(f);
	g->bytes[33] ^= 1;
	assert_int_equal(receive(g), -BW_DROP_HEADER);
	g = frame_copy(f);
	g->bytes[48] ^= 1;
	assert_int_equal(receive(g), -BW_DROP_DATA);
	g = frame_copy(f);
	frame_hdr(g)->len--;
	assert_true(receive(g) < 0);
	g = frame_copy(f);
	g->len = 31;
	assert_int_equal(receive(g), -BW_DROP_SHORT);
	assert_int_equal(events_with("B"), 0);
	assert_int_equal(receive(f), 0);
	assert_int_equal(events_with("B MESSAGE"), 1);
}

static void disconnect__forgets_the_peer_in_its_turn(void **state)
{
	struct bw_op op;

	open_both();
	send_one(1, 8);
	disconnect(A, B);
	op = op_send(A, B, 0, 8);
	assert_int_equal(submit(A, &op), -ENOTCONN);
	settle();
	expect_events("A SENT 1", "A PEER_DOWN B ECANCELED", "B PEER_UP A", "B MESSAGE 0 len 8",
		      NULL);
	assert_int_equal(count(A)->peers, 0);
}

static void connect__same_address_same_handle(void **state)
{
	struct bw_op op;

	open_both();
	op = op_connect(A, B);
	assert_int_equal(submit(A, &op), 0);
	assert_int_equal(op.peer, world.node[A].peer[B]);
	op = op_connect(A, C);
	assert_int_equal(submit(A, &op), 0);
	assert_int_not_equal(op.peer, world.node[A].peer[B]);
	assert_int_equal(count(A)->peers, 2);
}

/* One of very many peers, which are no nodes. */
static struct bw_op op_connect_many(uint32_t i)
{
	struct bw_op op = op_connect(A, B);

	memcpy(op.connect.path[0].bytes, &i, sizeof(i));
	op.connect.path[0].bytes[5] = 77;
	return op;
}

static uint32_t connect_many(uint32_t i)
{
	struct bw_op op = op_connect_many(i);

	assert_int_equal(submit(A, &op), 0);
	return op.peer;
}

static void connect__the_idlest_gives_way(void **state)
{
	uint32_t first, second, third;
	struct bw_op op;

	open_both(); /* A has met B */
	first = connect_many(0);
	second = connect_many(1);
	third = connect_many(2);
	for (uint32_t i = 3; i < 1023; i++)
		connect_many(i);
	assert_int_equal(count(A)->peers, 1024);
	send_one(1, 8);
	settle();
	assert_int_equal(connect_many(0), first); /* both were spoken with */
	assert_int_equal(events_with("PEER_DOWN"), 0);
	assert_int_not_equal(connect_many(2000), second);
	settle();
	assert_int_equal(events_with("A PEER_DOWN ? ESHUTDOWN"), 1);
	connect_many(2001);
	settle();
	assert_int_equal(events_with("A PEER_DOWN ? ESHUTDOWN"), 2);
	assert_int_equal(count(A)->peers, 1024);
	op = op_send(A, B, 0, 8);
	op.peer = second;
	assert_int_equal(submit(A, &op), -ENOTCONN);
	op.peer = third;
	assert_int_equal(submit(A, &op), -ENOTCONN);
	assert_int_equal(connect_many(0), first);
}

static void receive__the_idlest_gives_way(void **state)
{
	struct bw_op op;

	open_both();
	for (uint32_t i = 0; i < 1024; i++) {
		connect_many(i); /* the last one instead of B */
		settle();
	}
	assert_int_equal(events_with("A PEER_DOWN B ESHUTDOWN"), 1);
	connect_to(B, A);
	op = op_send(B, A, 0, 8);
	assert_int_equal(submit(B, &op), 0);
	settle();
	assert_int_equal(events_with("A PEER_DOWN ? ESHUTDOWN"), 1);
	assert_int_equal(events_with("A PEER_UP B"), 1);
	assert_int_equal(events_with("A MESSAGE 0 len 8"), 1);
	assert_int_equal(count(A)->peers, 1024);
	assert_int_equal(count(A)->evicted, 2);
}

/* 0 is nobody's, also when the numbers of peers begin again. */
static void handle__is_never_nobodys(void **state)
{
	static struct bw_simple_peers s;
	const struct bw_link_addr first = address(A, 0), other = address(B, 0);
	struct bw_simple_peer *p;
	struct bw_event down;
	struct bw_counters count = {0};
	uint32_t before;

	bw_simple_peers_init(&s, &count, &host_ops, NULL);
	s.serial = BW_SIMPLE_SERIALS - 2; /* the last place is taken first */
	p = bw_simple_peer_meet(&s, &first, 1, &down);
	before = p->handle;
	assert_int_not_equal(before, 0);
	assert_ptr_equal(bw_simple_peer(&s, before), p);
	assert_ptr_equal(bw_simple_peer_find(&s, &first, 1), p);
	assert_int_equal(count.peers, 1);
	bw_simple_peer_forget(&s, p);
	assert_ptr_equal(bw_simple_peer_meet(&s, &other, 1, &down), p);
	assert_null(bw_simple_peer(&s, before));
	assert_ptr_equal(bw_simple_peer(&s, p->handle), p);
	assert_int_equal(count.peers, 1);
}

/* Of node A, which has these behind what all simple protocols begin with. */
static struct bw_simple_peers *peers_of_a(void)
{
	return (struct bw_simple_peers *)((struct bw_simple *)world.node[A].mem + 1);
}

/* Each forged frame may name another address: none costs a look at all peers, also after many have
 * given way to others. */
static void peers__are_found_in_few_steps(void **state)
{
	struct bw_simple_peers *s;
	uint64_t before;
	uint32_t i;

	world.strangers = true; /* a hash that spreads */
	open_both();
	s = peers_of_a();
	assert_ptr_equal(s->ops, &host_ops);
	for (i = 0; i < 3 * BW_SIMPLE_PEERS; i++) {
		connect_many(i);
		settle();
	}
	assert_int_equal(count(A)->peers, BW_SIMPLE_PEERS);
	assert_int_equal(events_with("PEER_DOWN"), 2 * BW_SIMPLE_PEERS + 1); /* and B */
	before = s->steps;
	for (i = 2 * BW_SIMPLE_PEERS; i < 3 * BW_SIMPLE_PEERS; i++) {
		connect_many(i);
		settle();
	}
	assert_in_range(s->steps - before, BW_SIMPLE_PEERS / 2, 4 * BW_SIMPLE_PEERS);
	assert_int_equal(events_with("PEER_DOWN"), 2 * BW_SIMPLE_PEERS + 1);
	while (s->peer[0].handle) /* all of them can be forgotten, in any order */
		for (i = 0; i < BW_SIMPLE_PEERS; i++)
			if (s->peer[i].handle &&
			    (i % 2 || !s->peer[(i + 1) % BW_SIMPLE_PEERS].handle))
				bw_simple_peer_forget(s, &s->peer[i]);
	assert_int_equal(count(A)->peers, 0);
	for (i = 0; i < BW_SIMPLE_BUCKETS; i++)
		assert_int_equal(s->bucket[i], 0);
}

int datagram_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(send__makes_one_frame_and_one_message),
		TEST(send__lost_is_lost),
		TEST(send__fits_a_frame_or_is_refused),
		TEST(unsent__goes_again),
		TEST(ring__full_says_again),
		TEST(receive__damaged_foreign_or_short_is_dropped),
		TEST(disconnect__forgets_the_peer_in_its_turn),
		TEST(connect__same_address_same_handle),
		TEST(connect__the_idlest_gives_way),
		TEST(receive__the_idlest_gives_way),
		TEST(handle__is_never_nobodys),
		TEST(peers__are_found_in_few_steps),
	};

	return cmocka_run_group_tests_name("datagram", tests, NULL, NULL);
}
