/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two versions of the wire: this engine, and one that is compiled as a later version, which offers
 * features that nobody knows here. They speak the version that both know; where there is none, each
 * is told what the other one speaks.
 */
#include "groups.h"
#include "keys.h"
#include "refuse.h"

#include <stdlib.h>

#define LATER	      (BW_VERSION + 1)
#define FEATURE_LATER (1ull << 40)

extern const struct bw_protocol bw_reliable_later;

static uint32_t seen[256]; /* frames but HELLO and REFUSE by their version */

static enum fate count_versions(const struct frame *f)
{
	if (frame_type(f) != BW_FRAME_HELLO && frame_type(f) != BW_FRAME_REFUSE)
		seen[frame_hdr(f)->version]++;
	return PASS;
}

static void open_later(int n)
{
	world.node[n].protocol = &bw_reliable_later;
	world.node[n].cfg.features |= FEATURE_LATER;
	node_open(n);
}

/* All that two do with one another, the caller first. */
static void converse(int n, int m)
{
	uint64_t key;

	memset(seen, 0, sizeof(seen));
	world.fate = count_versions;
	world.strangers = true;
	connect_to(n, m);
	run(10 * BW_MS);
	assert_int_equal(events_with("PEER_UP"), 2);
	connect_to(m, n);
	post(n, m, 1, 8);
	post(m, n, 2, 60000);
	run(BW_S);
	assert_int_equal(events_with("MESSAGE 1 len 8"), 1);
	assert_int_equal(events_with("MESSAGE 2 len 60000"), 1);
	key = expose(n, m, 3, 100000);
	pull(m, n, key, 4, 0, 100000, BW_PULL_FINAL);
	run(BW_S);
	assert_int_equal(events_with("PULLED 4 len 100000"), 1);
	disconnect(n, m);
	run(BW_S);
	assert_int_equal(events_with("ESHUTDOWN"), 1);
	assert_int_equal(count(n)->drop[BW_DROP_VERSION] + count(m)->drop[BW_DROP_VERSION], 0);
}

/* Without a key and with one, whoever calls. */
static void later__and_this_one_speak_this_version(void **state)
{
	int how;

	for (how = 0; how < 4; how++) {
		world.keyed = how % 2;
		open_later(A);
		node_open(B);
		converse(how / 2 ? A : B, how / 2 ? B : A);
		assert_true(seen[BW_VERSION] > 10);
		assert_int_equal(seen[LATER], 0);
		node_kill(A);
		node_kill(B);
		forget_logs();
	}
}

static void later__two_of_them_speak_the_later(void **state)
{
	open_later(A);
	open_later(B);
	converse(A, B);
	assert_true(seen[LATER] > 10);
	assert_int_equal(seen[BW_VERSION], 0);
}

/* One that no longer speaks this version. */
static enum fate speak_later_only(const struct frame *f)
{
	struct bw_hello *b = frame_body(f);
	struct bw_refuse *r = frame_body(f);

	if (f->from != A)
		return PASS;
	frame_hdr(f)->version = LATER;
	if (frame_type(f) == BW_FRAME_HELLO)
		b->version_min = b->version_max = LATER;
	else if (frame_type(f) == BW_FRAME_REFUSE)
		r->version_min = r->version_max = LATER;
	frame_seal((struct frame *)(uintptr_t)f);
	return PASS;
}

static void later__alone_is_refused_and_says_which_it_is(void **state)
{
	open_later(A);
	node_open(B);
	world.fate = speak_later_only;
	connect_to(A, B);
	run(BW_S);
	assert_int_equal(events_with("A PEER_DOWN B EPROTONOSUPPORT 2..2"), 1);
	assert_int_equal(events_with("PEER_UP"), 0);
	assert_int_equal(count(B)->peers, 0);
}

/* What an engine of version 1 says to A's HELLO: it echoes no token, and knows no key. */
static struct frame *refused_by_version_1(void)
{
	return refuse_frame(B, A, 1,
			    &(struct bw_refuse){.why = BW_REFUSAL_VERSION,
						.version_min = 1,
						.version_max = 1,
						.echo_type = BW_FRAME_HELLO,
						.echo_engine = world.node[B].cfg.engine,
						.echo_token = peer(A, B)->inc,
						.echo_conn = peer(A, B)->wire,
						.name = "b"});
}

/* A calls B, whose answers do not come. */
static void call(uint8_t key)
{
	world.strangers = true;
	open_keyed(A, key);
	connect_to(A, B);
	flush(A);
	drop_all();
}

/* Anybody could say so; but who does not answer meanwhile is believed to speak version 1. */
static void earlier__says_which_it_is(void **state)
{
	uint8_t key;

	for (key = 0; key < 2; key++) {
		call(key);
		assert_int_equal(receive(refused_by_version_1()),
				 key ? -BW_DROP_KEY : -BW_DROP_ECHO);
		run(BW_KEY_PATIENCE - BW_MS);
		assert_int_equal(events_with("PEER_DOWN"), 0);
		run(2 * BW_MS);
		assert_int_equal(events_with("A PEER_DOWN B EPROTONOSUPPORT 1..1"), 1);
		assert_int_equal(count(A)->peers, 0);
		node_kill(A);
		forget_logs();
	}
}

/* Nor is a peer lost of which it is said in vain. */
static void earlier__is_not_who_answers(void **state)
{
	uint8_t key;

	for (key = 0; key < 2; key++) {
		call(key);
		receive(refused_by_version_1());
		open_keyed(B, key);
		run(2 * BW_KEY_PATIENCE);
		assert_int_equal(events_with("PEER_DOWN"), 0);
		assert_int_equal(events_with("PEER_UP"), 2);
		receive(refused_by_version_1());
		run(2 * BW_KEY_PATIENCE);
		assert_int_equal(events_with("PEER_DOWN"), 0);
		node_kill(A);
		node_kill(B);
		forget_logs();
	}
}

/* What it does echo must be right, and who speaks a version that echoes the token must do so. */
static void earlier__must_echo_what_it_can(void **state)
{
	struct bw_refuse *b;
	struct frame *f;
	unsigned int what;
	uint8_t key;

	for (key = 0; key < 2; key++) {
		call(key);
		for (what = 0; what < 6; what++) {
			f = refused_by_version_1();
			b = frame_body(f);
			b->echo_conn += what == 0;
			b->echo_engine += what == 1;
			b->echo_token += what == 2;
			b->echo_hello += what == 3;
			b->version_max += what == 4;
			if (what == 5)
				b->why = BW_REFUSAL_KEY;
			frame_seal(f);
			assert_int_equal(receive(f), -BW_DROP_ECHO);
		}
		run(2 * BW_KEY_PATIENCE);
		assert_int_equal(events_with("PEER_DOWN"), 0);
		node_kill(A);
		forget_logs();
	}
}

/* With a key, who speaks a later version only, and does not have it, is believed after a while. */
static void later__is_believed_without_the_key_after_a_while(void **state)
{
	struct bw_refuse *b;
	struct frame *f;

	call(1);
	f = refused_by_version_1();
	b = frame_body(f);
	b->version_min = b->version_max = LATER;
	b->echo_hello = peer(A, B)->wire_token;
	frame_seal(f);
	assert_int_equal(receive(f), -BW_DROP_KEY);
	run(BW_KEY_PATIENCE - BW_MS);
	assert_int_equal(events_with("PEER_DOWN"), 0);
	run(2 * BW_MS);
	assert_int_equal(events_with("A PEER_DOWN B EPROTONOSUPPORT 3..3"), 1);
}

/* The dead are refused on behalf of whatever version the caller speaks. */
static void later__is_told_of_the_dead(void **state)
{
	struct bw_refuser by = {.cluster = CLUSTER, .name = "b", .crc32c = bw_crc32c};
	struct bw_refuse_frame r;
	struct frame *f;

	open_later(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	f = take(0);
	frame_hdr(f)->version = LATER;
	frame_seal(f);
	assert_true(bw_refuse_build(&r, &by, f->bytes, f->len, f->len));
	assert_int_equal(r.body.version_min, BW_VERSION);
	assert_int_equal(r.body.version_max, BW_VERSION);
	frame_hdr(f)->type = BW_FRAME_DATA; /* which cannot be read */
	assert_false(bw_refuse_build(&r, &by, f->bytes, f->len, f->len));
	frame_free(f);
}

/* HELLO has one length in all versions: what is longer is none, and keeps nobody apart. */
static void later__hello_is_no_longer(void **state)
{
	struct frame *f;
	uint8_t *longer;

	open_later(A);
	node_open(B);
	connect_to(A, B);
	flush(A);
	f = take(0);
	frame_hdr(f)->len += 16;
	longer = calloc(1, f->len + 16);
	memcpy(longer, f->bytes, f->len);
	memset(longer + f->len, 0xA5, 16);
	frame_hdr(f)->hcrc = 0;
	((struct bw_hdr *)longer)->hcrc = 0;
	((struct bw_hdr *)longer)->hcrc = bw_crc32c(0, longer, f->len);
	free(f->bytes);
	f->bytes = longer;
	f->len += 16;
	assert_int_equal(receive(f), -BW_DROP_HEADER);
	assert_int_equal(count(B)->peers, 0);
	run(BW_S);
	assert_int_equal(events_with("PEER_UP"), 2);
}

int version_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(later__and_this_one_speak_this_version),
		TEST(later__two_of_them_speak_the_later),
		TEST(later__alone_is_refused_and_says_which_it_is),
		TEST(later__is_told_of_the_dead),
		TEST(earlier__says_which_it_is),
		TEST(earlier__is_not_who_answers),
		TEST(earlier__must_echo_what_it_can),
		TEST(later__is_believed_without_the_key_after_a_while),
		TEST(later__hello_is_no_longer),
	};

	return cmocka_run_group_tests_name("version", tests, NULL, NULL);
}
