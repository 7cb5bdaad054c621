/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * First contact: HELLO and its answer, both at once, and what they exchange. Nothing that merely
 * went astray may begin anything.
 */
#include "contact.h"
#include "groups.h"
#include "peer.h"

static void connect__hello_is_answered(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	settle();
	expect_frames("A>B HELLO", "B>A HELLO answer", NULL);
	expect_events("B PEER_UP A", "A PEER_UP B", "A PATH B link 0 mtu 1280", NULL);
}

/* An old HELLO may have come: whoever answers sends no data before it knows that A is there. */
static void connect__answerer_asks_too_when_nothing_follows(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	settle();
	forget_logs();
	run(10 * BW_MS);
	expect_frames("B>A HELLO", "A>B HELLO answer", NULL);
	expect_events("B PATH A link 0 mtu 1280", NULL);
	assert_int_equal(deadline(), BW_NEVER);
}

/* An ACK does not say to which of its sender's HELLOs it belongs. */
static void connect__answerer_sends_no_ack_either(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	deliver(0);
	pressure(B, true);
	flush(B);
	expect_frames("A>B HELLO", "B>A HELLO answer", NULL);
	deliver_all();
	run(10 * BW_MS);
	expect_frames("B>A HELLO", "A>B HELLO answer", "B>A ACK none pressure", NULL);
}

static void connect__answerer_that_closes_says_bye_only(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	deliver(0);
	pressure(B, true);
	flush(B);
	node_close(B);
	expect_frames("A>B HELLO", "B>A HELLO answer", "B>A BYE", NULL);
	deliver_all();
	assert_int_equal(events_with("A PEER_DOWN B ESHUTDOWN"), 1);
}

static void connect__data_confirms_the_contact(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	post(A, B, 1, 8);
	settle();
	post(B, A, 2, 8);
	run(10 * BW_MS);
	assert_int_equal(frames_with("HELLO"), 2);
	assert_int_equal(events_with("MESSAGE"), 2);
}

static void connect__hello_is_repeated_until_answered(void **state)
{
	node_open(A);
	connect_to(A, B);
	run(100 * BW_MS);
	/* at 0, 1, 3, 7, 15, 31 and 63 ms, each pause but the first longer by up to a quarter */
	assert_int_equal(frames_with("A>B HELLO"), 7);
	node_open(B);
	run(100 * BW_MS);
	assert_int_equal(events_with("A PEER_UP B"), 1);
	assert_int_equal(frames_with("B>A HELLO answer"), 1);
}

/* From the next HELLO of n to C to the one after. */
static uint64_t hello_pause(int n)
{
	uint64_t at = path(n, C, 0)->hello.next;

	run(at - world.now);
	return path(n, C, 0)->hello.next - at;
}

/* HELLOs that cross each other make both answers void; two sides in step would never meet. */
static void connect__hellos_of_two_engines_do_not_stay_in_step(void **state)
{
	uint64_t a, b;

	node_open(A);
	node_open(B);
	connect_to(A, C);
	connect_to(B, C);
	run(10 * BW_S);
	a = hello_pause(A);
	b = hello_pause(B);
	assert_in_range(a, BW_HELLO_LAST, BW_HELLO_LAST * 5 / 4);
	assert_in_range(b, BW_HELLO_LAST, BW_HELLO_LAST * 5 / 4);
	assert_true(a > b ? a - b > BW_MS : b - a > BW_MS);
}

/* B has called from an address that it no longer has, when A comes to know by another address who
 * is there: one of the two that A takes for peers is nobody. */
static void connect__one_known_by_an_address_only_is_recognized(void **state)
{
	struct bw_op op;

	node_open(A);
	node_open(B);
	connect_to(B, A);
	world.node[B].place = 9;
	flush(B);
	deliver(0);
	world.node[B].place = 0;
	settle();
	node_kill(B);
	node_open(B); /* with the same incarnation, but without what it knew */
	forget_logs();
	op = op_connect(A, B);
	op.connect.node = 0;
	assert_int_equal(submit(A, &op), 0);
	world.node[A].peer[B] = op.peer;
	run(BW_MS);
	assert_int_equal(events_with("A PEER_UP B"), 1);
	assert_int_equal(events_with("A PEER_DOWN"), 1);
	assert_int_equal(count(A)->peers, 1);
	assert_int_equal(peer(A, B)->state, BW_PEER_UP);
}

static void connect__lost_answer_is_given_again(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	deliver(0);
	flush(B);
	drop(0);
	run(10 * BW_MS);
	/* B asks in turn, at the same time */
	expect_frames("A>B HELLO", "B>A HELLO answer", "A>B HELLO", "B>A HELLO", "A>B HELLO answer",
		      "B>A HELLO answer", NULL);
	assert_int_equal(events_with("PEER_UP"), 2);
	assert_int_equal(events_with("PATH"), 2);
}

static void connect__both_at_once(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	connect_to(B, A);
	flush(A);
	flush(B);
	deliver_all();
	run(BW_MS);
	expect_frames("A>B HELLO", "B>A HELLO", "A>B HELLO answer", "B>A HELLO answer", NULL);
	assert_int_equal(events_with("PEER_UP"), 2);
	assert_int_equal(count(A)->peers, 1);
	assert_int_equal(count(B)->peers, 1);
}

static void connect__both_at_once_without_knowing_the_node(void **state)
{
	struct bw_op a, b;

	node_open(A);
	node_open(B);
	a = op_connect(A, B);
	b = op_connect(B, A);
	a.connect.node = b.connect.node = 0;
	a.connect.inc = b.connect.inc = 0;
	assert_int_equal(submit(A, &a), 0);
	assert_int_equal(submit(B, &b), 0);
	flush(A);
	flush(B);
	deliver_all();
	run(10 * BW_MS);
	assert_int_equal(events_with("PEER_UP"), 2);
	assert_int_equal(events_with("PEER_DOWN"), 0);
	assert_int_equal(count(A)->peers, 1);
	assert_int_equal(count(B)->peers, 1);
	assert_int_equal(world.node[A].peer[B], a.peer);
	assert_int_equal(world.node[B].peer[A], b.peer);
}

static void connect__again_finds_the_same_peer(void **state)
{
	struct bw_op op;

	meet(A, B);
	op = op_connect(A, B);
	assert_int_equal(submit(A, &op), 0);
	assert_int_equal(op.peer, world.node[A].peer[B]);
	op = op_connect(B, A);
	assert_int_equal(submit(B, &op), 0);
	assert_int_equal(op.peer, world.node[B].peer[A]);
	settle();
	expect_frames(NULL, NULL);
}

static void connect__needs_a_path(void **state)
{
	struct bw_op op = op_connect(A, B);

	node_open(A);
	op.connect.paths = 0;
	assert_int_equal(submit(A, &op), -EINVAL);
	op.connect.paths = BW_PATHS_MAX + 1;
	assert_int_equal(submit(A, &op), -EINVAL);
	assert_int_equal(count(A)->peers, 0);
}

static void connect__operations_wait_for_first_contact(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	post(A, B, 5, 8);
	settle();
	expect_frames("A>B HELLO", "B>A HELLO answer", "A>B DATA 1 [MESSAGE 0 0+8/8]", NULL);
	run(BW_MS);
	expect_frames("B>A ACK 1", NULL);
	assert_int_equal(events_with("B MESSAGE 5 len 8"), 1);
	assert_int_equal(events_with("A SENT 5"), 1);
}

static void hello__repeated_by_the_network_changes_nothing(void **state)
{
	struct frame *again;

	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	again = frame_copy(world.wire[0]);
	settle();
	forget_logs();
	post(A, B, 1, 8);
	settle();
	give(again);
	run(BW_MS);
	assert_int_equal(frames_with("HELLO answer"), 1);
	assert_int_equal(events_with("PEER"), 0);
	assert_int_equal(count(B)->peers, 1);
}

static void checksum__used_when_both_offer_it(void **state)
{
	int a, b;

	for (a = 0; a < 2; a++)
		for (b = 0; b < 2; b++) {
			const struct bw_part *part;

			world.node[A].cfg.features = a ? BW_FEATURE_CHECKSUM : 0;
			world.node[B].cfg.features = b ? BW_FEATURE_CHECKSUM : 0;
			node_open(A);
			node_open(B);
			meet(A, B);
			post(A, B, 1, 8);
			flush(A);
			part = frame_part(world.wire[0], 0);
			if (a && b)
				assert_int_equal(
					part->crc,
					bw_crc32c(0, frame_payload(world.wire[0], part), 8));
			else
				assert_int_equal(part->crc, 0);
			run(BW_MS);
			node_kill(A);
			node_kill(B);
		}
}

static void hello__tells_what_the_engine_is(void **state)
{
	const struct bw_hello *b;
	const struct bw_hdr *h;

	world.node[A].cfg.charge_min = 2048;
	world.node[A].cfg.link_mtu[0] = 4000;
	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	h = frame_hdr(world.wire[0]);
	b = frame_body(world.wire[0]);
	assert_int_equal(world.wire[0]->len, 160);
	assert_int_equal(h->magic, BW_MAGIC);
	assert_int_equal(h->version, BW_VERSION);
	assert_int_equal(h->cluster, CLUSTER);
	assert_int_equal(h->dst_engine, 2);
	assert_int_equal(h->src_engine, 1);
	assert_int_equal(h->token, world.node[B].cfg.incarnation);
	assert_int_equal(h->conn, 0);
	assert_int_equal(b->node, 0xA0);
	assert_int_equal(b->inc, world.node[A].cfg.incarnation);
	assert_int_equal(b->conn, world.node[A].peer[B]);
	assert_int_equal(b->token, peer(A, B)->wire_token);
	assert_int_equal(b->version_min, BW_VERSION);
	assert_int_equal(b->version_max, BW_VERSION);
	assert_int_equal(b->engine, 1);
	assert_int_equal(b->credit * BW_CREDIT_UNIT, BW_SHARE_MIN);
	assert_int_equal(b->charge_min, 2048);
	assert_int_equal(b->frame_max, 4000);
	assert_int_equal(b->target_node, 0xA1);
	assert_int_equal(b->target_inc, world.node[B].cfg.incarnation);
	assert_string_equal((const char *)b->name, "A");
	settle();
	assert_int_equal(peer(B, A)->charge_min, 2048);
}

static void data__before_the_answer_waits(void **state)
{
	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	deliver(0);
	post(B, A, 1, 8);
	flush(B);
	assert_int_equal(frames_with("DATA"), 0);
	run(100 * BW_MS);
	assert_int_equal(events_with("A MESSAGE 1 len 8"), 1);
}

static void hello__contradicting_itself_is_dropped(void **state)
{
	int i;

	node_open(A);
	node_open(B);
	connect_to(A, B);
	for (i = 0; i < 6; i++) {
		struct bw_hello *b;
		struct frame *f;

		run(i ? (uint64_t)BW_MS << i : 0);
		connect_to(A, B);
		peer(A, B)->path[0]->hello.due = true;
		bw_peer_ready(engine(A), peer(A, B));
		node_kill(B);
		node_open(B);
		flush(A);
		f = take(0);
		drop_all();
		b = frame_body(f);
		b->node = i == 0 ? 0 : b->node;
		b->inc = i == 1 ? 0 : b->inc;
		b->conn = i == 2 ? 0 : b->conn;
		b->engine += i == 3;
		frame_hdr(f)->path = i == 4 ? BW_PATHS_MAX : 0;
		b->frame_max = i == 5 ? BW_FRAME_MIN_MTU - 1 : b->frame_max;
		frame_seal(f);
		assert_int_equal(receive(f), -BW_DROP_MALFORMED);
		assert_int_equal(count(B)->peers, 0);
	}
}

static void answer__must_come_from_whom_it_was_asked(void **state)
{
	struct bw_hello *b;
	struct frame *f;

	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	deliver(0);
	flush(B);
	f = frame_copy(world.wire[0]);
	frame_hdr(f)->conn++;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_HANDLE);
	f = frame_copy(world.wire[0]);
	b = frame_body(f);
	b->inc++;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_HANDLE);
	f = frame_copy(world.wire[0]);
	b = frame_body(f);
	b->node++;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_HANDLE);
	f = frame_copy(world.wire[0]);
	frame_hdr(f)->token++;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_INCARNATION);
	f = frame_copy(world.wire[0]);
	f->place++; /* where A has not asked */
	assert_int_equal(receive(f), -BW_DROP_ADDRESS);
	assert_int_equal(peer(A, B)->npaths, 1);
	assert_int_equal(peer(A, B)->state, BW_PEER_HELLO);
	settle();
	assert_int_equal(frames_with("REFUSE"), 0); /* answers are never refused */
	assert_int_equal(peer(A, B)->state, BW_PEER_UP);
}

/* A copy of an answer that was taken changes nothing, whatever came since: whoever has kept one
 * cannot make a dead peer seem to live. */
static void answer__counts_once(void **state)
{
	struct bw_path was, *t;
	struct frame *f;
	uint64_t proven;
	unsigned int i;

	world.node[A].cfg.dead_ns = BW_S;
	node_open(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	deliver(0);
	flush(B);
	f = frame_copy(world.wire[0]);
	run(BW_S);
	t = path(A, B, 0);
	for (i = 1; i <= 4; i++) { /* so many answers have come */
		assert_int_equal(frames_with("B>A HELLO answer"), i);
		memcpy(&was, t, sizeof(was));
		was.hello.heard = world.now;
		proven = peer(A, B)->proven;
		assert_int_equal(receive(frame_copy(f)), -BW_DROP_ECHO);
		assert_memory_equal(t, &was, sizeof(was));
		assert_true(proven < world.now && peer(A, B)->proven == proven);
		t->hello.due = true;
		bw_peer_ready(engine(A), peer(A, B));
		run(BW_MS);
	}
	node_kill(B);
	post(A, B, 1, 8);
	for (i = 0; i < 21; i++) {
		run(50 * BW_MS);
		assert_true(receive(frame_copy(f)) < 0);
	}
	frame_free(f);
	assert_int_equal(events_with("A PEER_DOWN B ETIMEDOUT"), 1);
}

/* A frame of the peer's that comes from somewhere else, as sent by whoever has seen it. */
static struct frame *from_elsewhere(struct frame *f)
{
	f->place++;
	return f;
}

static void address__of_frames_is_the_peers(void **state)
{
	struct frame *ack;

	meet(A, B);
	post(A, B, 1, 8);
	flush(A);
	assert_int_equal(receive(from_elsewhere(frame_copy(world.wire[0]))), -BW_DROP_ADDRESS);
	assert_int_equal(events_with("B MESSAGE"), 0);
	deliver(0);
	pass(BW_ACK_DELAY);
	flush(B);
	ack = take(0);
	assert_int_equal(frame_hdr(ack)->type, BW_FRAME_ACK);
	assert_int_equal(receive(from_elsewhere(frame_copy(ack))), -BW_DROP_ADDRESS);
	assert_int_equal(events_with("A SENT"), 0);
	assert_int_equal(receive(ack), 0);
	node_close(B);
	assert_int_equal(frame_hdr(world.wire[0])->type, BW_FRAME_BYE);
	assert_int_equal(receive(from_elsewhere(frame_copy(world.wire[0]))), -BW_DROP_ADDRESS);
	expect_drop(A, BW_DROP_ADDRESS, 2);
	assert_int_equal(events_with("PEER_DOWN"), 0);
}

static void address__of_a_refusal_is_the_peers(void **state)
{
	meet(A, B);
	node_restart(B);
	post(A, B, 1, 8);
	flush(A);
	deliver(0);
	flush(B);
	assert_int_equal(receive(from_elsewhere(frame_copy(world.wire[0]))), -BW_DROP_ADDRESS);
	assert_int_equal(events_with("PEER_DOWN"), 0);
	deliver(0);
	run(BW_BYE_GRACE);
	assert_int_equal(events_with("A PEER_DOWN B ECONNREFUSED"), 1);
}

/* Two peers, and one after the other at the same place, get tokens that say nothing of each other;
 * nor do their handles say anything of them. */
static void token__is_each_peers_own(void **state)
{
	uint32_t first, other;

	meet(A, B);
	meet(C, B);
	first = peer(B, A)->wire_token;
	other = peer(B, C)->wire_token;
	assert_true(unrelated(first, other));
	assert_int_equal(first, peer(A, B)->conn_token);
	assert_true(unrelated(first, peer(B, A)->wire));
	assert_true(unrelated(other, peer(B, C)->wire));
	node_restart(A);
	meet(A, B);
	assert_true(unrelated(peer(B, A)->wire_token, first));
	assert_true(unrelated(peer(B, A)->wire_token, other));
	assert_true(unrelated(peer(B, A)->wire_token, peer(B, A)->wire));
}

/* One who claims to be many incarnations of one engine is kept as few. */
static void caller__with_many_incarnations_is_few_peers(void **state)
{
	struct frame *f;
	uint32_t i;

	meet(A, B);
	post(A, B, 1, 8);
	run(BW_S);
	path(A, B, 0)->hello.due = true;
	bw_peer_ready(engine(A), peer(A, B));
	flush(A);
	f = take(0);
	frame_hdr(f)->conn = 0;
	for (i = 1; i <= 100; i++) {
		struct frame *g = frame_copy(f);
		struct bw_hello *b = frame_body(g);

		b->inc += i;
		frame_seal(g);
		assert_int_equal(receive(g), 0);
		assert_true(count(B)->peers <= BW_NAMESAKES + 1);
		flush(B);
		drop_all();
	}
	frame_free(f);
	assert_int_equal(count(B)->peers, BW_NAMESAKES + 1); /* A is of use, and not counted */
	assert_int_equal(events_with("B PEER_DOWN A ECONN"), 0);
	assert_int_equal(peer(B, A)->state, BW_PEER_UP);
}

/* The same if it says something each time, so that none is without use: nor does any more of it
 * cost many steps or draw many frames. If the host needs them all the next one is not met. */
static void caller__that_speaks_as_many_incarnations_is_few_peers(void **state)
{
	struct frame *f;
	uint32_t i;
	int needs;

	for (needs = 0; needs < 2; needs++) {
		node_open(A);
		node_open(B);
		world.node[B].needs_nobody = !needs;
		connect_to(A, B);
		flush(A);
		f = take(0);
		node_kill(A); /* it would refuse what is said to others */
		for (i = 1; i <= 100; i++) {
			struct frame *g = frame_copy(f);
			struct bw_hello *b = frame_body(g);
			uint64_t before = engine(B)->steps;
			uint32_t inc = b->inc += i;
			struct bw_peer *p;
			int r;

			b->conn += i;
			frame_seal(g);
			r = receive(g);
			assert_int_equal(r,
					 needs && i > BW_NAMESAKES_MOST ? -BW_DROP_NO_BUFFER : 0);
			assert_true(count(B)->peers <= BW_NAMESAKES_MOST);
			assert_in_range(engine(B)->steps - before, 0, 3 * BW_NAMESAKES_MOST);
			forget_logs();
			flush(B);
			assert_in_range(frames_with("B>A HELLO"), 0, 2);
			assert_in_range(frames_with("B>A"), 0, BW_NAMESAKES + 3);
			drop_all();
			p = bw_contact_find(engine(B), world.node[A].cfg.node,
					    world.node[A].cfg.engine, inc,
					    &(struct bw_link_addr){0});
			if (p)
				p->app.rx_next = 1;
			run(BW_MS);
			drop_all();
		}
		frame_free(f);
		node_kill(B);
		world.quiet = true;
	}
}

/* Peers of one engine number that have given these handles and tokens: how many buckets they are
 * in. */
static unsigned int buckets_of_givers(uint32_t conn, uint32_t token)
{
	static struct bw_peer peers[200];
	unsigned int used = 0, i;

	for (i = 0; i < 200; i++) {
		bw_list_init(&peers[i].given);
		peers[i].engine = 1;
		bw_contact_given(engine(A), &peers[i], 1 + i * conn, 1 + i * token);
	}
	for (i = 0; i < BW_BUCKETS; i++)
		used += !bw_list_empty(&engine(A)->given[i]);
	for (i = 0; i < 200; i++)
		bw_contact_given(engine(A), &peers[i], 0, 0);
	return used;
}

/* Peers choose the numbers by which they are found: where they are kept depends on a secret of the
 * engine, and names that differ in little are far apart. */
static void buckets__are_not_for_peers_to_choose(void **state)
{
	static bool taken[BW_BUCKETS];
	unsigned int alike = 0, used = 0, i;

	world.strangers = true;
	node_open(A);
	node_open(B);
	memset(taken, 0, sizeof(taken));
	for (i = 1; i <= BW_BUCKETS; i++) {
		long a = bw_contact_namesakes(engine(A), i << 16, 1) - engine(A)->names;
		long b = bw_contact_namesakes(engine(B), i << 16, 1) - engine(B)->names;

		assert_in_range(a, 0, BW_BUCKETS - 1);
		alike += a == b;
		used += !taken[a];
		taken[a] = true;
	}
	/* By chance 1 of them is alike, and 324 are used. */
	assert_true(alike < 20);
	assert_in_range(used, 250, 400);
	/* Both parts of a name count. */
	for (alike = 0, i = 2; i < 100; i++)
		alike += bw_contact_namesakes(engine(A), 1, 1) ==
			 bw_contact_namesakes(engine(A), 1, (uint16_t)i);
	assert_true(alike < 20);
	/* By chance 200 are in 166; what this host's hash spreads by a handle alone are 64. */
	assert_in_range(buckets_of_givers(0, 1), 140, 190);
	assert_in_range(buckets_of_givers(1, 0), 50, 190);
}

/* ---- peers by their addresses ---- */

#define MANY 300

/* Somebody of whom A's host knows an address alone. */
static struct bw_op op_at(uint32_t i)
{
	struct bw_op op = op_connect(A, B);

	op.connect.node = 0;
	op.connect.inc = 0;
	memcpy(op.connect.path[0].bytes + 2, &i, sizeof(i));
	return op;
}

static uint32_t connect_at(const struct bw_link_addr *to)
{
	struct bw_op op = op_at(0);

	op.connect.path[0] = *to;
	assert_int_equal(submit(A, &op), 0);
	return op.peer;
}

static void at__peers_are_found_in_few_steps(void **state)
{
	static uint32_t met[MANY];
	uint64_t before;
	uint32_t i, times;

	world.strangers = true;
	node_open(A);
	node_open(B);
	before = engine(A)->steps;
	for (times = 0; times < 2; times++) {
		for (i = 0; i < MANY; i++) {
			struct bw_op op = op_at(i);

			assert_int_equal(submit(A, &op), 0);
			if (times == 0)
				met[i] = op.peer;
			assert_int_equal(op.peer, met[i]);
		}
	}
	assert_int_equal(count(A)->peers, MANY);
	assert_in_range(engine(A)->steps - before, MANY, 4 * MANY);
	connect_to(B, A);
	flush(B); /* it is none of those */
	before = engine(A)->steps;
	deliver(0);
	assert_in_range(engine(A)->steps - before, 0, MANY / 10);
	drop_all();
}

/* Whoever has proven an address can claim to be one engine after another there. */
static void at__callers_of_one_address_take_few_steps(void **state)
{
	struct frame *hello;
	uint64_t before;
	uint32_t i;

	node_open(A);
	node_open(B);
	connect_to(B, A);
	flush(B);
	hello = take(0);
	drop_all();
	for (i = 0; i < 100; i++) {
		struct frame *f = frame_copy(hello);
		struct bw_hello *b = frame_body(f);

		b->node = 0x1000 + i;
		b->inc = i + 1;
		frame_seal(f);
		before = engine(A)->steps;
		assert_int_equal(receive(f), 0);
		assert_in_range(engine(A)->steps - before, 0, 2);
	}
	assert_int_equal(count(A)->peers, 100);
	frame_free(hello);
	drop_all();
}

/* Whom the host knows by an address is recognized when it calls, whoever has called before. */
static void at__who_is_known_by_an_address_calls(void **state)
{
	struct bw_link_addr to = address(B, 0);
	uint32_t met;

	node_open(A);
	node_open(B);
	node_open(C);
	met = connect_at(&to);
	connect_to(C, A);
	flush(C);
	assert_int_equal(receive(take(0)), 0);
	drop_all();
	connect_to(B, A);
	flush(B);
	assert_int_equal(receive(take(0)), 0);
	assert_int_equal(count(A)->peers, 2);
	assert_int_equal(bw_peer_get(engine(A), met)->node, world.node[B].cfg.node);
	drop_all();
}

/* What lies behind an address says nothing. */
static void at__an_address_is_what_its_length_says(void **state)
{
	struct bw_link_addr at = op_at(7).connect.path[0];
	uint32_t met;

	world.strangers = true;
	node_open(A);
	at.len = 6;
	met = connect_at(&at);
	at.bytes[6] = 1;
	assert_int_equal(connect_at(&at), met);
	at.bytes[5] = 1;
	assert_int_not_equal(connect_at(&at), met);
	drop_all();
}

static void at__who_has_gone_is_not_found(void **state)
{
	struct bw_link_addr nowhere = op_at(7).connect.path[0];
	uint32_t first;

	world.node[A].cfg.dead_ns = BW_S;
	node_open(A);
	first = connect_at(&nowhere);
	assert_int_equal(connect_at(&nowhere), first);
	run(3 * BW_S);
	assert_int_equal(events_with("A PEER_DOWN"), 1);
	assert_int_equal(count(A)->peers, 0);
	assert_int_not_equal(connect_at(&nowhere), first);
	assert_int_equal(count(A)->peers, 1);
	drop_all();
}

static void at__who_has_moved_is_found_there(void **state)
{
	struct bw_link_addr before, after;

	meet(A, B);
	before = address(B, 0);
	world.node[B].place = 9;
	post(A, B, 1, 5000);
	post(B, A, 2, 5000);
	run(10 * BW_S);
	assert_int_equal(events_with("MESSAGE"), 2);
	after = address(B, 0);
	assert_int_equal(connect_at(&after), world.node[A].peer[B]);
	assert_int_not_equal(connect_at(&before), world.node[A].peer[B]);
	drop_all();
}

int contact_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(at__peers_are_found_in_few_steps),
		TEST(at__callers_of_one_address_take_few_steps),
		TEST(at__who_is_known_by_an_address_calls),
		TEST(at__an_address_is_what_its_length_says),
		TEST(at__who_has_gone_is_not_found),
		TEST(at__who_has_moved_is_found_there),
		TEST(buckets__are_not_for_peers_to_choose),
		TEST(address__of_frames_is_the_peers),
		TEST(address__of_a_refusal_is_the_peers),
		TEST(token__is_each_peers_own),
		TEST(connect__hello_is_answered),
		TEST(caller__with_many_incarnations_is_few_peers),
		TEST(caller__that_speaks_as_many_incarnations_is_few_peers),
		TEST(connect__answerer_asks_too_when_nothing_follows),
		TEST(connect__answerer_sends_no_ack_either),
		TEST(connect__answerer_that_closes_says_bye_only),
		TEST(connect__data_confirms_the_contact),
		TEST(connect__hello_is_repeated_until_answered),
		TEST(connect__hellos_of_two_engines_do_not_stay_in_step),
		TEST(connect__one_known_by_an_address_only_is_recognized),
		TEST(connect__lost_answer_is_given_again),
		TEST(connect__both_at_once),
		TEST(connect__both_at_once_without_knowing_the_node),
		TEST(connect__again_finds_the_same_peer),
		TEST(connect__needs_a_path),
		TEST(connect__operations_wait_for_first_contact),
		TEST(hello__repeated_by_the_network_changes_nothing),
		TEST(checksum__used_when_both_offer_it),
		TEST(hello__tells_what_the_engine_is),
		TEST(data__before_the_answer_waits),
		TEST(hello__contradicting_itself_is_dropped),
		TEST(answer__must_come_from_whom_it_was_asked),
		TEST(answer__counts_once),
	};

	return cmocka_run_group_tests_name("contact", tests, NULL, NULL);
}
