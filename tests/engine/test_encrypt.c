/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Encryption: what travels says nothing of what programs say, nothing of it can be changed, and
 * nobody is talked into doing without. (Groups of other tests run encrypted as well.)
 */
#include "groups.h"
#include "host.h"
#include "keys.h"

#define SECRET 0xFACEB00C12345678u /* as a tag */

static void open_with(int n, bool keyed, bool encrypts)
{
	world.node[n].cfg.features |= encrypts ? BW_FEATURE_ENCRYPT : 0;
	open_keyed(n, keyed);
}

/* A and B, who both encrypt or only have a key, and have said something. */
static void meet_secretly(bool encrypts)
{
	world.secret = true;
	for (int n = A; encrypts && n <= B; n++)
		world.node[n].cfg.features |= BW_FEATURE_ENCRYPT;
	meet_keyed();
}

/* Every bit of a frame, changed by who sees it. */
static void bit__that_was_changed_is_noticed(void **state)
{
	unsigned int i, header = 0, sealed = 0;
	struct frame *f, *g;

	meet_secretly(true);
	post(A, B, 3, 40);
	flush(A);
	f = take(0);
	assert_true(f->sealed);
	for (i = 0; i < 8 * f->len; i++) {
		int r;

		g = frame_copy(f);
		g->bytes[i / 8] ^= (uint8_t)(1 << i % 8);
		r = receive(g);
		assert_true(r < 0);
		header += r == -BW_DROP_HEADER;
		sealed += r == -BW_DROP_SEAL;
		if (i / 8 >= BW_DATA_HEAD)
			assert_int_equal(r, -BW_DROP_SEAL);
	}
	assert_true(header > 0);
	assert_int_equal(sealed, 8 * (f->len - BW_DATA_HEAD));
	assert_int_equal(count(B)->drop[BW_DROP_SEAL], sealed);
	assert_int_equal(path(B, A, 0)->rx.max, frame_pn(f) - 1); /* none is acknowledged */
	flush(B);
	assert_int_equal(events_with("B MESSAGE"), 0);
	assert_int_equal(receive(f), 0);
	assert_int_equal(events_with("B MESSAGE 3 len 40"), 1);
}

/* Frames in which something of a program is found. */
static unsigned int betrayed, longest;

static void seek(const struct frame *f, const void *what, size_t n)
{
	betrayed += memmem(f->bytes, f->len, what, n) != NULL;
}

static enum fate search(const struct frame *f)
{
	static const uint64_t tag = SECRET;
	uint8_t bytes[3000];
	unsigned int i;

	longest = f->len > longest ? f->len : longest;
	if (frame_type(f) != BW_FRAME_DATA)
		return PASS;
	seek(f, &tag, sizeof(tag));
	pattern(SECRET, 0, bytes, sizeof(bytes));
	for (i = 0; i + 8 <= sizeof(bytes); i++)
		seek(f, bytes + i, 8);
	return PASS;
}

/* Short and long messages, and pulls, and what is sent again. */
static void run_betrayed(bool encrypts)
{
	uint64_t key;

	betrayed = longest = 0;
	meet_secretly(encrypts);
	world.fate = search;
	post(A, B, SECRET, 8);
	post(A, B, SECRET, 3000);
	run(BW_S);
	key = expose(A, B, SECRET, 3000);
	pull(B, A, key, SECRET, 0, 3000, BW_PULL_FINAL);
	run(BW_S);
	post(A, B, SECRET, 100);
	flush(A);
	drop_all();
	run(BW_S);
	world.fate = NULL;
	assert_int_equal(events_with("B MESSAGE"), 3);
	assert_int_equal(events_with("B PULLED"), 1);
	assert_true(count(A)->retransmits > 0);
	assert_int_equal(longest, BW_MTU_BASE);
	node_kill(A);
	node_kill(B);
}

static void secret__is_in_no_frame(void **state)
{
	run_betrayed(true);
	assert_int_equal(betrayed, 0);
	world_teardown(state);
	world_setup(state);
	run_betrayed(false); /* this search would have found it */
	assert_true(betrayed > 3000);
}

/* What was sealed with one number and one key is never sealed otherwise. */
static struct {
	uint64_t pn;
	uint8_t key[BW_SEAL_KEY];
} last[NODES];
static unsigned int numbered;

static enum fate lose_some(const struct frame *f)
{
	static unsigned int turn;

	if (f->trailer) {
		assert_true(f->pn > last[f->from].pn ||
			    memcmp(f->seal, last[f->from].key, BW_SEAL_KEY));
		last[f->from].pn = f->pn;
		memcpy(last[f->from].key, f->seal, BW_SEAL_KEY);
		numbered++;
	}
	return ++turn % 4 ? PASS : LOSE;
}

static void number__is_used_once(void **state)
{
	unsigned int i;

	numbered = 0;
	meet_secretly(true);
	world.fate = lose_some;
	for (i = 0; i < 20; i++) {
		post(A, B, 10 + i, 5000);
		post(B, A, 50 + i, 5000);
	}
	run(10 * BW_S);
	assert_int_equal(events_with("MESSAGE"), 40);
	assert_true(count(A)->retransmits > 0);
	node_restart(B); /* another conversation, which begins with number 1 */
	post(A, B, 99, 8);
	run(BW_S);
	connect_to(A, B);
	post(A, B, 100, 5000);
	run(10 * BW_S);
	assert_int_equal(events_with("B MESSAGE 100"), 1);
	assert_true(numbered > 200);
	assert_memory_equal(last[A].key, peer(A, B)->keys->tx.seal, BW_SEAL_KEY);
	assert_memory_not_equal(last[A].key, last[B].key, BW_SEAL_KEY);
	world.fate = NULL;
}

/* The nonce has all of the number, not what the header has of it. */
static void number__counts_whole(void **state)
{
	struct bw_path *t, *u;

	meet_secretly(true);
	t = path(A, B, 0);
	u = path(B, A, 0);
	t->pn_next += 1ull << 32;
	t->floor = t->pn_next;
	t->acked_max = t->pn_next - 1;
	u->rx.got.base += 1ull << 32;
	u->rx.max = u->rx.got.base - 1;
	post(A, B, 3, 8);
	flush(A);
	assert_true(world.wire[0]->pn >> 32 == 1);
	run(BW_S);
	assert_int_equal(events_with("B MESSAGE 3 len 8"), 1);
}

/* A packet that comes again is not even opened. */
static void replay__is_not_opened(void **state)
{
	unsigned int opened;
	struct frame *f;

	meet_secretly(true);
	post(A, B, 3, 8);
	flush(A);
	f = frame_copy(world.wire[0]);
	run(BW_S);
	opened = world.opened;
	assert_int_equal(receive(f), -BW_DROP_DUPLICATE);
	assert_int_equal(world.opened, opened);
	assert_int_equal(events_with("B MESSAGE"), 1);
}

/* Nor does a frame of one direction mean anything in the other one. */
static void reflection__means_nothing(void **state)
{
	struct frame *f;

	meet_secretly(true);
	post(A, B, 3, 8);
	flush(A);
	f = frame_copy(world.wire[0]);
	f->from = B;
	f->to = A;
	frame_hdr(f)->dst_engine = 1;
	frame_hdr(f)->src_engine = 2;
	frame_hdr(f)->conn = peer(A, B)->wire;
	assert_int_equal(receive(f), -BW_DROP_HEADER);
}

/* Who encrypts and who does not speak with each other never, whoever begins. */
static void downgrade__is_refused(void **state)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		world.strangers = true;
		open_with(A, true, i == 0);
		open_with(B, true, i == 1);
		connect_to(A, B);
		run(10 * BW_MS);
		assert_int_equal(events_with("A PEER_DOWN B EPROTOTYPE"), 1);
		assert_int_equal(frames_with("REFUSE encrypt"), 1);
		assert_int_equal(events_with("PEER_UP"), 0);
		assert_int_equal(count(B)->peers, 0);
		assert_int_equal(count(B)->drop[BW_DROP_SEAL], 1);
		world_teardown(state);
		world_setup(state);
	}
}

/* The same of one who does not know that refusal: he offers what he can, and no more. */
static void answer__of_who_cannot_ends_it(void **state)
{
	struct bw_hello *b;
	struct frame *f;

	world.strangers = true;
	open_with(A, true, true);
	open_with(B, true, true);
	connect_to(A, B);
	while (!frames_with("HELLO answer")) {
		flush(A);
		deliver_all();
		flush(B);
		if (!frames_with("HELLO answer"))
			deliver_all();
	}
	f = take(0);
	b = frame_body(f);
	b->features &= ~(uint64_t)BW_FEATURE_ENCRYPT;
	frame_hdr(f)->hcrc = 0;
	memset(b->auth, 0, sizeof(b->auth));
	bw_key_sign_hello(engine(B), frame_hdr(f));
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_SEAL);
	assert_int_equal(events_with("A PEER_DOWN B EPROTOTYPE"), 1);
	assert_int_equal(events_with("A PEER_UP"), 0);
}

/* And of who sits between the two: he takes the offer out of a HELLO. */
static void offer__is_not_taken_away(void **state)
{
	struct frame *f;

	world.strangers = true;
	open_with(A, true, true);
	open_with(B, true, true);
	connect_to(A, B);
	flush(A);
	deliver_all();
	flush(B);
	deliver_all();
	flush(A);
	f = frame_copy(world.wire[0]);
	((struct bw_hello *)frame_body(f))->features &= ~(uint64_t)BW_FEATURE_ENCRYPT;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_KEY);
	run(BW_S);
	assert_int_equal(events_with("PEER_UP"), 2);
}

/* What was opened is taken as what was never sealed: the next message within rx(), and no other. */
static void opened__message_is_taken_within_rx(void **state)
{
	struct frame *f;

	meet_secretly(true);
	engine(B)->ops = &host_ops_direct;
	post(A, B, 1, 8); /* opens the flow */
	settle();
	forget_logs();
	post(A, B, 2, 100);
	flush(A);
	f = take(0);
	post(A, B, 3, 100);
	settle();
	assert_int_equal(events_with("B MESSAGE"), 0);
	assert_int_equal(receive(f), 0);
	settle();
	assert_int_equal(events_with("B MESSAGE"), 2);
	assert_int_equal(events_with("at once"), 0);
	forget_logs();
	world.node[B].placed = 0;
	post(A, B, 4, 100);
	settle();
	expect_events("B MESSAGE 4 len 100", "(at once)", NULL);
	assert_int_equal(world.node[B].placed, 100);
}

/* There is no encryption without a key, nor by a host that cannot. */
static void encryption__needs_a_key(void **state)
{
	struct bw_host_ops ops = {.random = NULL};
	struct bw_config cfg = world.node[A].cfg;
	void *mem;

	cfg.features |= BW_FEATURE_ENCRYPT;
	mem = malloc(bw_reliable.size(&cfg));
	assert_int_equal(bw_reliable.open(mem, &cfg, &host_ops, &world.node[A], 0), -EINVAL);
	cfg.keyed = true;
	assert_int_equal(bw_reliable.open(mem, &cfg, &ops, NULL, 0), -EINVAL);
	free(mem);
}

int encrypt_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bit__that_was_changed_is_noticed),
		TEST(secret__is_in_no_frame),
		TEST(number__is_used_once),
		TEST(number__counts_whole),
		TEST(replay__is_not_opened),
		TEST(reflection__means_nothing),
		TEST(downgrade__is_refused),
		TEST(answer__of_who_cannot_ends_it),
		TEST(offer__is_not_taken_away),
		TEST(opened__message_is_taken_within_rx),
		TEST(encryption__needs_a_key),
	};

	return cmocka_run_group_tests_name("encrypt", tests, NULL, NULL);
}
