/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cluster's key: who has it takes part; who has not, though he sees every frame and can send
 * from any address, ends nothing and says nothing. (Most other tests run with a key as well.)
 */
#include "farewell.h"
#include "groups.h"
#include "keys.h"
#include "refuse.h"

#include <stdlib.h>

static void key__is_used_by_both(void **state)
{
	struct frame *f;

	meet_keyed();
	post(A, B, 3, 8);
	flush(A);
	f = frame_copy(world.wire[0]);
	assert_int_not_equal(frame_hdr(f)->token, peer(A, B)->conn_token);
	frame_seal(f);
	assert_int_not_equal(frame_hdr(f)->hcrc, frame_hdr(world.wire[0])->hcrc);
	frame_free(f);
	post(B, A, 4, 60000);
	run(BW_S);
	assert_int_equal(events_with("A MESSAGE 4 len 60000"), 1);
	assert_int_equal(count(A)->drop[BW_DROP_HEADER] + count(B)->drop[BW_DROP_HEADER], 0);
	assert_memory_equal(peer(A, B)->keys->tx.tag, peer(B, A)->keys->rx.tag, 16);
	assert_memory_equal(peer(A, B)->keys->rx.seal, peer(B, A)->keys->tx.seal, 32);
	assert_memory_not_equal(peer(A, B)->keys->rx.tag, peer(A, B)->keys->tx.tag, 16);
}

/* The next conversation of the same two has other keys, and so has each with another peer: both
 * sides draw 64 bits for it. */
static void key__of_each_conversation_is_its_own(void **state)
{
	struct bw_key_pair first;
	uint64_t drawn, others;

	meet_keyed();
	first = peer(A, B)->keys->tx;
	drawn = peer(A, B)->keys->random;
	others = peer(B, A)->keys->random;
	assert_true(drawn >> 32 && others >> 32);
	assert_true(drawn != others);
	open_keyed(C, 1);
	connect_to(C, A);
	run(BW_S);
	assert_memory_not_equal(peer(C, A)->keys->tx.tag, first.tag, 16);
	assert_true(peer(A, C)->keys->random != drawn);
	disconnect(A, B);
	settle();
	connect_to(A, B);
	connect_to(B, A);
	run(BW_S);
	assert_memory_not_equal(peer(A, B)->keys->tx.tag, first.tag, 16);
	assert_true(peer(A, B)->keys->random != drawn);
	assert_true(peer(B, A)->keys->random != others);
}

/* Keys of A and B (0: none), and who is told that they differ, after a while where it could be a
 * lie. */
static void key__that_differs_keeps_them_apart(void **state)
{
	static const struct {
		uint8_t a, b;
		uint64_t after;
	} with[] = {{1, 2, BW_KEY_PATIENCE}, {1, 0, BW_KEY_PATIENCE}, {0, 1, 0}};
	unsigned int i;

	for (i = 0; i < 3; i++) {
		world.strangers = true;
		open_keyed(A, with[i].a);
		open_keyed(B, with[i].b);
		connect_to(A, B);
		if (with[i].after) {
			run(with[i].after - BW_MS);
			assert_int_equal(events_with("PEER_DOWN"), 0);
		}
		run(2 * BW_MS);
		assert_int_equal(events_with("A PEER_DOWN B EKEYREJECTED"), 1);
		assert_int_equal(events_with("PEER_UP"), 0);
		assert_int_equal(count(B)->peers, 0);
		assert_true(count(B)->drop[BW_DROP_KEY] > 0);
		node_kill(A);
		node_kill(B);
		forget_logs();
	}
}

static void key__said_to_be_wrong_is_not_believed(void **state)
{
	struct frame *hello, *f;
	struct bw_refuse *b;

	world.strangers = true;
	open_keyed(A, 1);
	open_keyed(B, 1);
	connect_to(A, B);
	flush(A);
	hello = take(0);
	f = frame_copy(hello); /* by who has seen it, from where B is */
	f->from = B;
	f->to = A;
	f->len = FRAME_PING;
	*frame_hdr(f) = (struct bw_hdr){.magic = BW_MAGIC,
					.version = BW_VERSION,
					.type = BW_FRAME_REFUSE,
					.cluster = CLUSTER,
					.dst_engine = 1,
					.src_engine = 2,
					.len = sizeof(*b)};
	b = frame_body(f);
	*b = (struct bw_refuse){.why = BW_REFUSAL_KEY,
				.echo_type = BW_FRAME_HELLO,
				.echo_engine = 2,
				.echo_token = frame_hdr(hello)->token,
				.echo_conn = ((struct bw_hello *)frame_body(hello))->conn,
				.echo_hello = ((struct bw_hello *)frame_body(hello))->token};
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_KEY);
	give(hello);
	run(4 * BW_S);
	assert_int_equal(events_with("PEER_DOWN"), 0);
	assert_int_equal(events_with("PEER_UP"), 2);
}

/* Every byte of a frame's head, changed, and sealed as who has no key can. */
static void sniffer__changes_nothing(void **state)
{
	struct frame *f, *g;
	uint32_t i;

	meet_keyed();
	post(A, B, 3, 8);
	flush(A);
	f = take(0);
	for (i = 0; i < f->len - 8; i++) {
		g = frame_copy(f);
		g->bytes[i] ^= 0x10;
		assert_true(receive(g) < 0);
	}
	for (i = 2 + BW_VERSION; i < f->len - 8; i++) {
		g = frame_copy(f);
		g->bytes[i] ^= 0x10;
		if (frame_hdr(g)->len == frame_hdr(f)->len && frame_part(g, 0) &&
		    frame_part(g, 0)->plen == 8 && frame_part(g, 0)->kind == BW_PART_MESSAGE)
			frame_seal(g);
		assert_true(receive(g) < 0);
	}
	flush(B);
	assert_int_equal(events_with("B MESSAGE"), 0);
	assert_int_equal(receive(f), 0);
	assert_int_equal(events_with("B MESSAGE 3 len 8"), 1);
}

/* A frame of B's to A in what the sniffer has seen, sealed without the key. */
static struct frame *forged(uint8_t type, uint32_t body)
{
	struct frame *f = calloc(1, sizeof(*f));
	struct bw_hdr *h;

	f->from = B;
	f->to = A;
	f->len = sizeof(*h) + body;
	f->bytes = calloc(1, f->len);
	h = frame_hdr(f);
	h->magic = BW_MAGIC;
	h->version = BW_VERSION;
	h->type = type;
	h->cluster = CLUSTER;
	h->dst_engine = 1;
	h->src_engine = 2;
	h->conn = peer(A, B)->wire;
	h->token = peer(A, B)->wire_token; /* of the HELLO, which he has seen */
	h->len = (uint16_t)body;
	return f;
}

static void sniffer__ends_nothing(void **state)
{
	struct bw_refuse *b;
	struct frame *f;
	unsigned int why;

	meet_keyed();
	f = forged(BW_FRAME_BYE, 0);
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_HEADER);
	for (why = BW_REFUSAL_INCARNATION; why <= BW_REFUSAL_KEY; why++) {
		f = forged(BW_FRAME_REFUSE, sizeof(*b));
		frame_hdr(f)->conn = frame_hdr(f)->token = 0;
		b = frame_body(f);
		b->why = (uint8_t)why;
		b->echo_type = why % 2 ? BW_FRAME_DATA : BW_FRAME_HELLO;
		b->echo_engine = 2;
		b->echo_conn = why % 2 ? peer(A, B)->conn : peer(A, B)->wire;
		b->echo_token = why % 2 ? peer(A, B)->conn_token : peer(A, B)->inc;
		b->echo_hello = why % 2 ? 0 : peer(A, B)->wire_token;
		b->inc = peer(A, B)->inc;
		frame_seal(f);
		assert_int_equal(receive(f), -BW_DROP_KEY);
	}
	run(5 * BW_S);
	assert_int_equal(events_with("PEER_DOWN"), 0);
	post(A, B, 5, 8);
	post(B, A, 6, 8);
	run(BW_S);
	assert_int_equal(events_with("MESSAGE"), 2);
}

/* Nor does he keep two from meeting, though HELLO shows the token. */
static void sniffer__ends_no_first_contact(void **state)
{
	struct frame *f;

	world.strangers = true;
	open_keyed(A, 1);
	open_keyed(B, 1);
	connect_to(A, B);
	flush(A);
	f = forged(BW_FRAME_BYE, 0);
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_EARLY);
	run(BW_S);
	assert_int_equal(events_with("PEER_DOWN"), 0);
	assert_int_equal(events_with("PEER_UP"), 2);
}

/* A's first HELLO, and what B challenges it by. */
static struct frame *keyed_challenge(struct frame **hello)
{
	world.strangers = true;
	open_keyed(A, 1);
	open_keyed(B, 1);
	connect_to(A, B);
	flush(A);
	*hello = frame_copy(world.wire[0]);
	deliver(0);
	flush(B);
	return take(0);
}

/* Every byte of it, changed, and sealed as who has no key can. */
static void challenge__of_who_has_no_key_has_no_effect(void **state)
{
	struct frame *hello, *f = keyed_challenge(&hello), *g;
	const struct bw_cookies *known = &path(A, B, 0)->hello.cookies;
	uint32_t i;

	assert_int_equal(f->len, 56);
	assert_int_equal(receive(frame_copy(f)), 0);
	assert_int_equal(known->known, 1);
	for (i = 0; i < f->len; i++) {
		g = frame_copy(f);
		g->bytes[i] ^= 0x10;
		if (frame_hdr(g)->len == frame_hdr(f)->len)
			frame_seal(g);
		assert_true(receive(g) < 0 || i - 28 < 4); /* hcrc was sealed again */
	}
	/* of pn, path, flags, cookie, reserved0 and auth */
	assert_int_equal(count(A)->drop[BW_DROP_KEY], 4 + 1 + 1 + 8 + 4 + 8);
	assert_int_equal(known->known, 1);
	frame_free(hello);
	frame_free(f);
	run(BW_S);
	assert_int_equal(events_with("PEER_UP"), 2);
}

/* What is forged before B's counts until that comes, as B might have another key. */
static void challenge__with_the_key_takes_the_place_of_others(void **state)
{
	struct frame *hello, *f = keyed_challenge(&hello), *g;
	const struct bw_cookies *known = &path(A, B, 0)->hello.cookies;
	uint64_t i;

	for (i = 0; i < 2 * BW_COOKIES; i++) {
		g = frame_copy(f);
		((struct bw_challenge *)frame_body(g))->cookie += 1 + i;
		frame_seal(g);
		assert_int_equal(receive(g), 0);
	}
	assert_int_equal(known->known, BW_COOKIES);
	assert_int_equal(receive(f), 0);
	assert_int_equal(known->known, 1);
	flush(A);
	assert_int_equal(world.wire_n, 1);
	deliver(0);
	assert_int_equal(count(B)->peers, 1);
	frame_free(hello);
}

/* The sniffer has B challenge A's HELLO where he is, and leads that to A: it is genuine, with the
 * cookie of his address. A shows it, and B's own. */
static void challenge__of_another_address_keeps_nobody_apart(void **state)
{
	struct frame *hello, *f = keyed_challenge(&hello), *g;
	unsigned int i;

	receive(f);
	for (i = 1; i < BW_COOKIES; i++) {
		world.node[A].place = hello->place = (uint8_t)i;
		receive(frame_copy(hello));
		flush(B);
		world.node[A].place = 0;
		g = take(0);
		assert_int_equal(frame_type(g), BW_FRAME_CHALLENGE);
		assert_int_equal(receive(g), 0);
	}
	assert_int_equal(path(A, B, 0)->hello.cookies.known, BW_COOKIES);
	frame_free(hello);
	flush(A);
	while (world.wire_n)
		deliver(0);
	assert_int_equal(count(B)->peers, 1);
}

/* A challenge of one HELLO is none of another one's. */
static void challenge__of_another_hello_has_no_effect(void **state)
{
	struct frame *hello, *f = keyed_challenge(&hello), *g;
	struct bw_hello *b;

	frame_free(hello);
	disconnect(A, B);
	flush(A);
	drop_all();
	connect_to(A, B);
	flush(A);
	hello = take(0);
	b = frame_body(hello);
	g = frame_copy(f);
	frame_hdr(g)->conn = b->conn;
	frame_hdr(g)->token = b->token;
	((struct bw_challenge *)frame_body(g))->nonce = b->nonce;
	frame_seal(g);
	assert_int_equal(receive(f), -BW_DROP_HANDLE);
	give(hello);
	run(BW_MS);
	assert_int_equal(events_with("A PEER_UP"), 1);
	assert_int_equal(receive(g), -BW_DROP_ECHO);
}

/* He makes us ask, but no oftener than we would anyway. */
static void sniffer__draws_few_questions(void **state)
{
	struct bw_refuse *b;
	struct frame *f;
	unsigned int i;

	meet_keyed();
	f = forged(BW_FRAME_REFUSE, sizeof(*b));
	frame_hdr(f)->conn = frame_hdr(f)->token = 0;
	b = frame_body(f);
	b->why = BW_REFUSAL_HANDLE;
	b->echo_type = BW_FRAME_DATA;
	b->echo_engine = 2;
	b->echo_conn = peer(A, B)->conn;
	frame_seal(f);
	for (i = 0; i < 1000; i++) {
		receive(frame_copy(f));
		run(100 * BW_US);
	}
	frame_free(f);
	assert_in_range(frames_with("A>B HELLO"), 1, 1000 / 100 + 1);
}

/* Frames that a node has dropped, for whatever reason. */
static uint64_t dropped(int n)
{
	uint64_t sum = 0;
	int why;

	for (why = 0; why < BW_DROP_REASONS; why++)
		sum += count(n)->drop[why];
	return sum;
}

/* Whatever was recorded of an earlier conversation says nothing in this one. */
static void replay__of_another_conversation_has_no_effect(void **state)
{
	struct frame *kept[64];
	unsigned int n = 0, refused = 0, spoken = 0, i;
	uint64_t before;

	world.strangers = true;
	open_keyed(A, 1);
	open_keyed(B, 1);
	connect_to(A, B);
	post(A, B, 1, 8);
	for (i = 0; i < 200 && n < 60; i++) {
		flush(A);
		flush(B);
		if (!world.wire_n) {
			pass(BW_MS);
			if (i == 100)
				disconnect(A, B);
			continue;
		}
		if (world.wire[0]->to == B)
			kept[n++] = frame_copy(world.wire[0]);
		deliver(0);
	}
	assert_true(n >= 4);
	node_kill(A);
	world.node[A].cfg.incarnation++;
	open_keyed(A, 1);
	world.node[A].cfg.keyed = true;
	connect_to(A, B);
	post(A, B, 2, 8);
	run(BW_S);
	forget_logs();
	before = dropped(B);
	for (i = 0; i < n; i++) {
		bool hello = frame_type(kept[i]) == BW_FRAME_HELLO;
		int r = receive(kept[i]);

		assert_true(r < 0 || hello);
		refused += r < 0;
		spoken += !hello;
	}
	assert_true(spoken >= 2);
	assert_int_equal(dropped(B) - before, refused);
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE"), 0);
	assert_int_equal(events_with("A PEER_DOWN"), 0);
	post(A, B, 3, 8);
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE 3 len 8"), 1);
}

/* What was recorded of the same one has packet numbers that have come before. */
static void replay__within_the_conversation_has_no_effect(void **state)
{
	struct frame *kept[4];
	unsigned int i;

	meet_keyed();
	for (i = 0; i < 4; i++) {
		post(A, B, 3 + i, 8);
		flush(A);
		kept[i] = frame_copy(world.wire[0]);
		assert_int_equal(frame_type(kept[i]), BW_FRAME_DATA);
		run(i % 2 ? BW_S : BW_MS);
	}
	forget_logs();
	for (i = 0; i < 4; i++)
		assert_int_equal(receive(kept[i]), -BW_DROP_DUPLICATE);
	expect_drop(B, BW_DROP_DUPLICATE, 4);
	run(BW_S);
	assert_int_equal(events_with("MESSAGE"), 0);
}

/* So many packets of A later. */
static void go_on(uint64_t packets)
{
	struct bw_path *t = path(A, B, 0), *u = path(B, A, 0);

	t->pn_next += packets;
	t->floor = t->pn_next;
	t->acked_max = t->pn_next - 1;
	u->rx.got.base += packets;
	u->rx.max = u->rx.got.base - 1;
}

/* The next packet of A has the number on the wire that the last one had. */
static void pass_packets(void)
{
	go_on((1ull << 32) - 1);
}

/* What was sent long ago has not the number that it would need to count now. */
static void replay__after_2_to_the_32_packets_is_noticed(void **state)
{
	struct frame *f;

	meet_keyed();
	post(A, B, 3, 8);
	flush(A);
	f = frame_copy(world.wire[0]);
	run(BW_S);
	pass_packets();
	forget_logs();
	assert_int_equal(receive(f), -BW_DROP_HEADER);
	post(A, B, 4, 8);
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE 4 len 8"), 1);
}

/* Data acknowledge nothing for the second time: the numbers that they named mean other packets. */
static void replay__of_data_acknowledges_nothing(void **state)
{
	struct frame *f;

	meet_keyed();
	post(A, B, 3, 8);
	flush(A);
	deliver(0);
	post(B, A, 4, 8);
	flush(B);
	f = frame_copy(world.wire[0]);
	run(BW_S);
	pass_packets();
	post(A, B, 5, 8);
	flush(A);
	drop_all();
	forget_logs();
	assert_int_equal(receive(f), -BW_DROP_DUPLICATE);
	assert_int_equal(events_with("A SENT 5"), 0);
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE 5 len 8"), 1);
}

/* The ACK by which `from` answers a message. */
static struct frame *acknowledgement(int from)
{
	int to = from == A ? B : A;
	struct frame *f;

	meet_keyed();
	post(to, from, 3, 8);
	flush(to);
	deliver_all();
	while (!world.wire_n) {
		world.now = deadline();
		flush(from);
	}
	f = frame_copy(world.wire[0]);
	assert_int_equal(frame_type(f), BW_FRAME_ACK);
	run(BW_S);
	return f;
}

/* The number that it acknowledges was another packet's. */
static void replay__of_an_acknowledgement_settles_nothing(void **state)
{
	struct frame *f = acknowledgement(B);

	pass_packets();
	post(A, B, 5, 8);
	flush(A);
	drop_all();
	forget_logs();
	assert_int_equal(receive(f), -BW_DROP_HEADER);
	assert_int_equal(events_with("A SENT 5"), 0);
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE 5 len 8"), 1);
	assert_int_equal(events_with("A SENT 5"), 1);
}

/* What it wants no more lies far behind, and seems to lie far ahead. */
static void replay__of_an_acknowledgement_forgets_no_gap(void **state)
{
	struct frame *f = acknowledgement(A);
	uint64_t base;

	go_on((1ull << 31) + 10);
	base = path(B, A, 0)->rx.got.base;
	assert_int_equal(receive(f), -BW_DROP_HEADER);
	assert_int_equal(path(B, A, 0)->rx.got.base, base);
	post(A, B, 5, 8);
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE 5 len 8"), 1);
}

/* A has sent B so many units of credit more, and was given as many. */
static void take_credit(uint64_t units)
{
	const uint64_t more = units * BW_CREDIT_UNIT;
	struct bw_peer *a = peer(A, B), *b = peer(B, A);

	a->tx_used += more;
	a->tx_limit += more;
	b->rx_limit += more;
	b->rx_told += more;
	b->rx_used += more;
	b->rx_taken += more;
}

/* So does its limit. */
static void replay__of_an_acknowledgement_gives_no_credit(void **state)
{
	struct frame *f = acknowledgement(B);
	struct bw_peer *a = peer(A, B);
	uint64_t limit;

	take_credit((1ull << 31) + 10);
	limit = a->tx_limit;
	assert_int_equal(receive(f), -BW_DROP_HEADER);
	assert_int_equal(a->tx_limit, limit);
	post(A, B, 5, 8);
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE 5 len 8"), 1);
	assert_int_equal(events_with("A SENT 5"), 1);
}

/* Nor does a frame with so many messages that somebody kept back, while so much went by another
 * path. They come when they are sent again. */
static void keep_back(unsigned int messages)
{
	struct frame *f;
	uint64_t limit;
	unsigned int i;

	meet_keyed();
	for (i = 0; i < messages; i++)
		post(B, A, 3 + i, 8);
	flush(B);
	f = take(0);
	assert_int_equal(world.wire_n, 0);
	take_credit((1ull << 31) + 10);
	limit = peer(A, B)->tx_limit;
	forget_logs();
	assert_int_equal(receive(f), -BW_DROP_HEADER);
	assert_int_equal(peer(A, B)->tx_limit, limit);
	run(BW_S);
	assert_int_equal(events_with("A MESSAGE"), messages);
	assert_int_equal(events_with("B SENT"), messages);
	post(A, B, 5, 8);
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE 5 len 8"), 1);
}

static void replay__of_data_kept_back_gives_no_credit(void **state)
{
	keep_back(1);
}

static void replay__of_several_messages_kept_back_gives_no_credit(void **state)
{
	keep_back(2);
}

/* Credit whose upper half has changed is stated and believed, by data and by acknowledgements. */
static void credit__passes_2_to_the_32_units(void **state)
{
	uint64_t limit;

	meet_keyed();
	take_credit((1ull << 32) - peer(A, B)->tx_limit / BW_CREDIT_UNIT - 1);
	limit = peer(A, B)->tx_limit;
	assert_int_equal(limit / BW_CREDIT_UNIT, UINT32_MAX);
	peer(B, A)->rx_limit += BW_CREDIT_UNIT;
	post(B, A, 3, 8);
	flush(B);
	deliver(0);
	assert_int_equal(events_with("A MESSAGE 3 len 8"), 1);
	assert_int_equal(peer(A, B)->tx_limit, limit + BW_CREDIT_UNIT);
	peer(B, A)->rx_limit += BW_CREDIT_UNIT;
	post(A, B, 4, 8);
	run(BW_S);
	assert_int_equal(events_with("A SENT 4"), 1);
	assert_int_equal(peer(A, B)->tx_limit, limit + 2 * BW_CREDIT_UNIT);
}

/* An engine that knows nothing of us any more says so when asked afresh; one that was restarted
 * refuses, and with the key is believed. */
static void restart__is_noticed(void **state)
{
	meet_keyed();
	node_kill(B);
	world.node[B].cfg.incarnation++;
	open_keyed(B, 1);
	post(A, B, 3, 8);
	run(BW_S);
	assert_int_equal(events_with("A SENT 3 ECONNREFUSED"), 1);
	assert_int_equal(events_with("A PEER_DOWN B ECONNREFUSED"), 1);
}

static enum fate lose_all(const struct frame *f)
{
	return LOSE;
}

static void forgotten__is_noticed(void **state)
{
	world.node[B].cfg.dead_ns = 2 * BW_S;
	meet_keyed();
	world.fate = lose_all;
	post(B, A, 7, 8);
	run(3 * BW_S);
	assert_int_equal(events_with("B PEER_DOWN A ETIMEDOUT"), 1);
	world.fate = NULL;
	forget_logs();
	post(A, B, 3, 8);
	run(BW_S);
	assert_int_equal(events_with("A SENT 3 ECONNRESET"), 1);
	assert_int_equal(events_with("A PEER_DOWN B ECONNRESET"), 1);
}

/* The host of who is gone says so of each frame, in words that anybody could say (as libbeowire
 * makes them of ICMP messages). */
static bool host_speaks; /* what is sent to B is refused so */

static enum fate refuse_by_host(const struct frame *f)
{
	struct bw_refuser by = {.cluster = CLUSTER, .name = "B", .crc32c = bw_crc32c};
	struct bw_refuse_frame r;
	struct frame *g;

	if (f->to != B)
		return PASS;
	if (host_speaks && bw_refuse_build(&r, &by, f->bytes, f->len, UINT32_MAX)) {
		g = calloc(1, sizeof(*g));
		g->from = B;
		g->to = A;
		g->len = sizeof(r);
		g->bytes = calloc(1, g->len);
		memcpy(g->bytes, &r, g->len);
		give(g);
	}
	return world.node[B].mem ? PASS : LOSE;
}

/* Nobody answers but its host: soon it is taken at its word. */
static void killed__is_believed_of_its_host_after_a_while(void **state)
{
	int watched;

	for (watched = 0; watched < 2; watched++) {
		meet_keyed();
		node_kill(B);
		host_speaks = true;
		world.fate = refuse_by_host;
		if (watched) {
			watch(A, B, true);
			run(15 * BW_S + BW_MS); /* the first question */
		} else {
			post(A, B, 3, 8);
		}
		run(BW_DOUBT - 20 * BW_MS);
		assert_int_equal(events_with("PEER_DOWN"), 0);
		run(BW_PTO_MAX + 2 * BW_DOUBT_PAUSE); /* till it is asked once more */
		assert_int_equal(events_with("A PEER_DOWN B ECONNREFUSED"), 1);
		world.fate = NULL;
		node_kill(A);
		forget_logs();
	}
}

/* The peer lives, whatever is said of it. */
static void killed__is_not_believed_of_who_answers(void **state)
{
	meet_keyed();
	host_speaks = true;
	world.fate = refuse_by_host;
	watch(A, B, true);
	for (int i = 0; i < 100; i++) {
		post(A, B, 100 + (uint64_t)i, 8);
		run(100 * BW_MS);
	}
	assert_int_equal(events_with("PEER_DOWN"), 0);
	assert_int_equal(events_with("B MESSAGE"), 100);
	assert_true(count(A)->drop[BW_DROP_KEY] > 100);
	assert_true(frames_with("A>B HELLO") < 1200);
}

/* Said once and never again, it is no reason to give up who is silent for a while. */
static void killed__said_once_is_forgotten(void **state)
{
	meet_keyed();
	node_kill(B);
	host_speaks = true;
	world.fate = refuse_by_host;
	post(A, B, 3, 8);
	run(BW_MS);
	host_speaks = false;
	run(11 * BW_S);
	assert_int_equal(events_with("PEER_DOWN"), 0);
	host_speaks = true; /* that begins anew */
	run(BW_DOUBT - BW_S);
	assert_int_equal(events_with("PEER_DOWN"), 0);
	run(2 * BW_S);
	assert_int_equal(events_with("A PEER_DOWN B ECONNREFUSED"), 1);
}

/* What a failing engine says of a conversation is said with its key. */
static void failed__is_told_at_once(void **state)
{
	meet_keyed();
	bw_reliable_failed(engine(B));
	node_close(B);
	deliver_all();
	run(BW_BYE_GRACE);
	assert_int_equal(events_with("A PEER_DOWN B ECONNREFUSED"), 1);
}

/* A BYE that was lost is said again, with its tag, which knows how many packets there were. */
static void bye__is_said_again(void **state)
{
	meet_keyed();
	post(A, B, 2, 8);
	run(BW_S);
	pass_packets();
	disconnect(B, A);
	flush(B);
	drop_all();
	post(A, B, 3, 8);
	run(BW_S);
	assert_int_equal(events_with("A PEER_DOWN B ESHUTDOWN"), 1);
}

int key_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(key__is_used_by_both),
		TEST(key__of_each_conversation_is_its_own),
		TEST(key__that_differs_keeps_them_apart),
		TEST(key__said_to_be_wrong_is_not_believed),
		TEST(sniffer__changes_nothing),
		TEST(sniffer__ends_nothing),
		TEST(sniffer__ends_no_first_contact),
		TEST(sniffer__draws_few_questions),
		TEST(challenge__of_who_has_no_key_has_no_effect),
		TEST(challenge__with_the_key_takes_the_place_of_others),
		TEST(challenge__of_another_address_keeps_nobody_apart),
		TEST(challenge__of_another_hello_has_no_effect),
		TEST(replay__of_another_conversation_has_no_effect),
		TEST(replay__within_the_conversation_has_no_effect),
		TEST(replay__after_2_to_the_32_packets_is_noticed),
		TEST(replay__of_data_acknowledges_nothing),
		TEST(replay__of_an_acknowledgement_settles_nothing),
		TEST(replay__of_an_acknowledgement_forgets_no_gap),
		TEST(replay__of_an_acknowledgement_gives_no_credit),
		TEST(replay__of_data_kept_back_gives_no_credit),
		TEST(replay__of_several_messages_kept_back_gives_no_credit),
		TEST(credit__passes_2_to_the_32_units),
		TEST(restart__is_noticed),
		TEST(forgotten__is_noticed),
		TEST(killed__is_believed_of_its_host_after_a_while),
		TEST(killed__is_not_believed_of_who_answers),
		TEST(killed__said_once_is_forgotten),
		TEST(failed__is_told_at_once),
		TEST(bye__is_said_again),
	};

	return cmocka_run_group_tests_name("key", tests, NULL, NULL);
}
