// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The provider and a peer that asks without taking answers, or sends without listening: it costs a
 * bounded amount of memory, and is given up; everybody else goes on.
 */
#include <stdio.h>
#include <time.h>

#include "stranger.h"

#define EACH	1000
#define PATIENT 2000 /* rounds without room after which there will be none */

static uint64_t before[512]; /* operands of atomic operations, each 1 */

static int setup(void **state)
{
	char each[16];

	snprintf(each, sizeof(each), "%d", EACH);
	setenv("BEOWIRE_UNEXPECTED_EACH", each, 1);
	setenv("BEOWIRE_UNEXPECTED_MAX", "1000000", 1);
	stranger_setup(state);
	unsetenv("BEOWIRE_UNEXPECTED_EACH");
	unsetenv("BEOWIRE_UNEXPECTED_MAX");
	return 0;
}

/* b gives the stranger up: its receive from there ends, and so does what comes next. */
static void given_up(void)
{
	assert_int_equal(pair_error(b.rx).err, FI_ECONNABORTED);
	pair_retry(fi_trecv(b.ep, mine, 8, NULL, bad_addr, 78, 0, NULL));
	assert_int_equal(pair_error(b.rx).err, FI_ECONNABORTED);
	assert_int_equal(fi_tsend(b.ep, mine, 8, NULL, bad_addr, 1, NULL), -FI_ECONNABORTED);
	assert_int_equal(fi_tinject(b.ep, mine, 8, bad_addr, 1), -FI_ECONNABORTED);
	assert_int_equal(fi_write(b.ep, mine, 8, NULL, bad_addr, 0, 1, NULL), -FI_ECONNABORTED);
	assert_int_equal(fi_atomic(b.ep, mine, 1, NULL, bad_addr, 0, 1, FI_UINT64, FI_SUM, NULL),
			 -FI_ECONNABORTED);
}

/* A receive of b's that nothing fits. */
static void watch(void)
{
	pair_retry(fi_trecv(b.ep, mine, 8, NULL, bad_addr, 77, 0, NULL));
}

/* Messages of the stranger until b gives it up: how many. */
static int flood(size_t len, int enough)
{
	struct fi_cq_tagged_entry e;
	int n = 0;

	watch();
	while (n < enough && fi_cq_read(b.rx, &e, 1) == -FI_EAGAIN) {
		stranger_say(BWF_CODE_TAGGED, 1, 0, mine, len);
		n++;
		stranger_progress();
	}
	return n;
}

/* What came before is still there for a receive. */
static void can_be_received(int n, size_t len)
{
	for (int i = 0; i < n; i++) {
		pair_retry(fi_trecv(b.ep, mine, LONG, NULL, bad_addr, 1, 0, mine));
		assert_int_equal(pair_completion(b.rx).len, len);
	}
	pair_retry(fi_trecv(b.ep, mine, LONG, NULL, bad_addr, 1, 0, mine));
	assert_int_equal(pair_error(b.rx).err, FI_ECONNABORTED);
}

static void unexpected__messages_of_one_peer_are_counted(void **state)
{
	assert_in_range(flood(8, 5 * EACH), EACH + 1, 4 * EACH);
	given_up();
	can_be_received(EACH, 8);
	/* nothing of it is taken any more, by whomever a message may come from */
	pair_retry(fi_trecv(b.ep, mine, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	stranger_say(BWF_CODE_TAGGED, 1, 0, mine, 8);
	for (int i = 0; i < 1000; i++)
		stranger_progress();
	pair_nothing(b.rx);
}

static bool one_is_received(void)
{
	struct fi_cq_tagged_entry e;
	ssize_t n = fi_cq_read(b.rx, &e, 1);

	assert_true(n == 1 || n == -FI_EAGAIN);
	return n == 1;
}

/* A message that was received counts no more. */
static void unexpected__what_is_received_makes_room(void **state)
{
	for (int i = 0; i < 3 * EACH; i++) {
		stranger_say(BWF_CODE_TAGGED, 1, 0, mine, 8);
		if (i < EACH / 2)
			continue;
		pair_retry(fi_trecv(b.ep, mine, 8, NULL, bad_addr, 1, 0, mine));
		while (!one_is_received())
			stranger_progress();
	}
	pair_nothing(b.rx);
}

/* Long messages in spite of pressure: 1 MB is allowed, 32 MiB may be on their way by then. */
static void unexpected__pressure_has_to_be_obeyed(void **state)
{
	enum { BYTES = 60000, MOST = (1000000 + (32 << 20)) / BYTES };
	int n;

	pair_fill(mine, BYTES, 1);
	n = flood(BYTES, 2 * MOST);
	assert_in_range(n, MOST, MOST + MOST / 2);
	given_up();
	can_be_received(MOST, BYTES);
	stranger_counts("peers_given_up", 1);
}

enum { CROWD = 20, CROWD_BYTES = 60000, CROWD_EACH = 500 };

/* Endpoints that b's program knows nothing of. */
static struct bw_ep *crowd[CROWD];
static bw_peer_no crowd_victim[CROWD];

static void crowd_open(void)
{
	struct bw_ep_attr attr = {.handlers = &stranger_handlers, .no_helper = true};
	struct bw_addr addr;
	size_t len = sizeof(addr);

	assert_int_equal(fi_getname(&b.ep->fid, &addr, &len), 0);
	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(bw_ep_open(&crowd[i], &attr, NULL), 0);
		assert_int_equal(bw_peer_find(crowd[i], &addr, &crowd_victim[i]), 0);
	}
}

static void crowd_close(void)
{
	for (int i = 0; i < CROWD; i++)
		bw_ep_close(crowd[i], 0);
}

static void crowd_progress(void)
{
	pair_progress();
	for (int i = 0; i < CROWD; i++)
		bw_progress(crowd[i]);
}

static void crowd_say(int i, uint64_t tag, size_t len)
{
	while (bw_send(crowd[i], crowd_victim[i], BWF_CODE_TAGGED, tag, 0, mine, len, BW_SEND_EAGER,
		       NULL) == -EAGAIN) {
		crowd_progress();
	}
}

/* What arrived with this tag and can be received by who takes anybody's, in bytes. */
static uint64_t take_all(uint64_t tag)
{
	struct fi_cq_tagged_entry e;
	uint64_t bytes = 0;

	for (int idle = 0; idle < PATIENT;) {
		pair_retry(fi_trecv(b.ep, mine, LONG, NULL, FI_ADDR_UNSPEC, tag, 0, mine));
		for (idle = 0; idle < PATIENT && fi_cq_read(b.rx, &e, 1) != 1; idle++)
			crowd_progress();
		bytes += idle < PATIENT ? e.len : 0;
	}
	return bytes;
}

/* Each keeps to the bounds of a peer, but nobody has named any: 1 MB and 128 MiB is for all. Who
 * has left little is spared. */
static void unexpected__of_strangers_is_bounded_for_all_together(void **state)
{
	uint64_t taken;

	crowd_open();
	crowd_say(0, 2, 8);
	for (int i = 1; i < CROWD; i++) {
		for (int n = 0; n < CROWD_EACH; n++)
			crowd_say(i, 1, CROWD_BYTES);
	}
	taken = take_all(1);
	assert_in_range(taken, 60 << 20, 160 << 20);
	assert_int_equal(take_all(2), 8);
	crowd_close();
}

/* The same from those that are in the vector has room. */
static void unexpected__of_named_peers_is_not_strangers(void **state)
{
	struct bw_addr addr;
	fi_addr_t there;

	crowd_open();
	for (int i = 0; i < 6; i++) {
		bw_ep_addr(crowd[i], &addr);
		for (int n = 0; n < CROWD_EACH / 2; n++)
			crowd_say(i, 1, CROWD_BYTES);
		assert_int_equal(fi_av_insert(b.av, &addr, 1, &there, 0, NULL), 1);
		for (int n = 0; n < CROWD_EACH / 2; n++)
			crowd_say(i, 1, CROWD_BYTES);
	}
	assert_int_equal(take_all(1), 6 * CROWD_EACH * CROWD_BYTES);
	crowd_close();
}

/* Requests of the stranger, which takes no answer, until it may not send either. */
static void ask(const void *buf, size_t len, int enough)
{
	for (int n = 0, idle = 0; n < enough && idle < PATIENT;) {
		int ret =
			bw_send(bad, victim, BWF_CODE_ATOMIC, 0, 0, buf, len, BW_SEND_EAGER, NULL);

		if (ret == 1) {
			n++;
			idle = 0;
		} else {
			assert_int_equal(ret, -EAGAIN);
			pair_progress();
			idle++;
		}
	}
}

/* b adds 1 to each of `count` words and answers with what they were; how often it may do that for
 * who does not listen is `most`, beside what the link holds. */
static void ask_without_listening(uint32_t count, uint16_t kind, int enough, uint64_t most)
{
	struct bwf_atomic_request req = {
		.count = count, .type = FI_UINT64, .op = FI_SUM, .kind = kind, .segments = 1};
	struct bwf_segment seg = {.len = count, .key = KEY};
	char buf[sizeof(req) + sizeof(seg) + sizeof(before)];
	uint64_t done;

	for (size_t i = 0; i < 512; i++)
		before[i] = 1;
	memcpy(buf, &req, sizeof(req));
	memcpy(buf + sizeof(req), &seg, sizeof(seg));
	memcpy(buf + sizeof(req) + sizeof(seg), before, count * 8);
	watch();
	ask(buf, sizeof(req) + sizeof(seg) + count * 8, enough);
	memcpy(&done, theirs, sizeof(done));
	assert_in_range(done, 1, most);
	given_up();
}

static void answers__that_nobody_takes_are_counted(void **state)
{
	ask_without_listening(1, BWF_ATOMIC_BASE, 60000, 30000);
}

static void answers__that_nobody_takes_are_weighed(void **state)
{
	ask_without_listening(512, BWF_ATOMIC_FETCH, 6000, 3000);
}

/* Requests of b, until no more are allowed, though the stranger takes them all: how many. `token`:
 * of one that is not answered. */
static int requests(ssize_t (*start)(void), size_t at, uint64_t *token)
{
	int n = 0;

	for (int idle = 0; idle < PATIENT && n <= BWF_REQUESTS_MAX; idle++) {
		ssize_t ret = start();

		if (ret == 0) {
			n++;
			idle = 0;
		}
		stranger_progress();
		if (seen_count)
			memcpy(token, seen[0].data + at, sizeof(*token));
		seen_count = 0;
	}
	return n;
}

static ssize_t start_write(void)
{
	return fi_inject_write(b.ep, mine, 1, bad_addr, 0, 1);
}

static ssize_t start_fetch(void)
{
	return fi_fetch_atomic(b.ep, before, 512, NULL, theirs, NULL, bad_addr, 0, 1, FI_UINT64,
			       FI_SUM, NULL);
}

/* Who does not answer is asked no more; an answer makes room for one request. */
static void requests__wait_for_their_answers(void **state)
{
	uint64_t token = 0;

	assert_int_equal(requests(start_write, offsetof(struct bwf_write_request, token), &token),
			 BWF_REQUESTS_MAX);
	stranger_say(BWF_CODE_WRITE_DONE, token, 0, NULL, 0);
	assert_int_equal(requests(start_write, offsetof(struct bwf_write_request, token), &token),
			 1);
}

static void requests__wait_for_what_answers_bring(void **state)
{
	uint64_t token = 0;

	assert_int_equal(requests(start_fetch, offsetof(struct bwf_atomic_request, token), &token),
			 BWF_ANSWERS_MAX / 4096);
	stranger_say(BWF_CODE_ATOMIC_DONE, token, FI_EACCES, NULL, 0);
	assert_int_equal(requests(start_fetch, offsetof(struct bwf_atomic_request, token), &token),
			 1);
}

/* One request for memory: the answer's error, 0 if it is carried out. */
static void ask_to_write(uint64_t key, uint64_t addr)
{
	struct bwf_write_request req = {.len = 8, .segments = 1};
	struct bwf_segment seg = {.addr = addr, .len = 8, .key = key};
	char buf[sizeof(req) + sizeof(seg) + 8] = {0};

	memcpy(buf, &req, sizeof(req));
	memcpy(buf + sizeof(req), &seg, sizeof(seg));
	stranger_say(BWF_CODE_WRITE, 0, 0, buf, sizeof(buf));
}

static int write_by(uint64_t key, uint64_t addr)
{
	ask_to_write(key, addr);
	while (!seen_count)
		stranger_progress();
	seen_count = 0;
	return (int)seen[0].m.imm;
}

static int add_by(uint64_t key, uint64_t addr)
{
	struct bwf_atomic_request req = {
		.count = 1, .type = FI_UINT64, .op = FI_SUM, .segments = 1};
	struct bwf_segment seg = {.addr = addr, .len = 1, .key = key};
	char buf[sizeof(req) + sizeof(seg) + 8] = {0};

	memcpy(buf, &req, sizeof(req));
	memcpy(buf + sizeof(req), &seg, sizeof(seg));
	stranger_say(BWF_CODE_ATOMIC, 0, 0, buf, sizeof(buf));
	while (!seen_count)
		stranger_progress();
	seen_count = 0;
	return (int)seen[0].m.imm;
}

static int read_by(uint64_t key, uint64_t addr)
{
	pulled_count = 0;
	while (bw_read(bad, victim, key, addr, mine, 8, mine))
		stranger_progress();
	while (!pulled_count)
		stranger_progress();
	return -pulled_status;
}

/* Keys that nobody has may be named so often; then b gives up who does. */
static void guess(int (*by)(uint64_t key, uint64_t addr))
{
	char text[8] = "secret";

	watch();
	for (int i = 0; i < BWF_GUESSES_MAX - 1; i++)
		assert_int_equal(by(KEY + 1 + (uint64_t)i, 0), FI_EACCES);
	pair_nothing(b.rx);
	assert_int_equal(by(KEY, 0), 0);
	/* who knows a key and errs otherwise guesses nothing */
	for (int i = 0; i < 2 * BWF_GUESSES_MAX; i++)
		assert_int_equal(by(KEY, LONG), FI_EACCES);
	pair_nothing(b.rx);
	assert_int_equal(by(KEY + BWF_GUESSES_MAX, 0), FI_EACCES);
	stranger_counts("key_guesses", BWF_GUESSES_MAX);
	given_up();
	memcpy(theirs, text, sizeof(text));
	memset(mine, 0, sizeof(text));
}

static void keys__cannot_be_guessed_by_writes(void **state)
{
	guess(write_by);
	for (int i = 0; i < 100; i++) {
		ask_to_write(KEY, 0);
		stranger_progress();
	}
	assert_string_equal(theirs, "secret");
}

static void keys__cannot_be_guessed_by_atomics(void **state)
{
	guess(add_by);
}

static void keys__cannot_be_guessed_by_reads(void **state)
{
	guess(read_by);
	assert_int_equal(read_by(KEY, 0), FI_EACCES);
	assert_string_equal(mine, "");
}

/* Requests of b's are answered to who of the crowd asked. */
static void crowd_is(int i)
{
	bad = crowd[i];
	victim = crowd_victim[i];
}

/* Each keeps to the bounds of a peer, but there could be any number of them. Who has a key goes on,
 * and so does who is in the vector. */
static void keys__cannot_be_guessed_by_many(void **state)
{
	enum { EACH_TRIES = BWF_GUESSES_MAX - 4 };
	struct bw_ep *named = bad;
	bw_peer_no named_victim = victim;
	int tried = 0;

	crowd_open();
	crowd_is(0);
	assert_int_equal(write_by(KEY, 0), 0);
	for (int i = 1; i < CROWD - 1; i++) {
		crowd_is(i);
		for (int n = 0; n < EACH_TRIES; n++, tried++)
			assert_int_equal(write_by(KEY + 1 + (uint64_t)n, 0), FI_EACCES);
	}
	assert_true(tried > BWF_GUESSES_STRANGERS);
	crowd_is(CROWD - 1);
	assert_int_equal(write_by(KEY, 0), FI_EACCES);
	crowd_is(0);
	assert_int_equal(write_by(KEY, 0), 0);
	bad = named;
	victim = named_victim;
	assert_int_equal(write_by(KEY, 0), 0);
	crowd_is(CROWD - 1);
	for (time_t end = time(NULL) + 2; time(NULL) < end;)
		crowd_progress();
	assert_int_equal(write_by(KEY, 0), 0);
	bad = named;
	victim = named_victim;
	crowd_close();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, stranger_teardown)
	const struct CMUnitTest tests[] = {
		TEST(unexpected__messages_of_one_peer_are_counted),
		TEST(unexpected__what_is_received_makes_room),
		TEST(unexpected__pressure_has_to_be_obeyed),
		TEST(unexpected__of_strangers_is_bounded_for_all_together),
		TEST(unexpected__of_named_peers_is_not_strangers),
		TEST(requests__wait_for_their_answers),
		TEST(requests__wait_for_what_answers_bring),
		TEST(keys__cannot_be_guessed_by_writes),
		TEST(keys__cannot_be_guessed_by_atomics),
		TEST(keys__cannot_be_guessed_by_reads),
		TEST(keys__cannot_be_guessed_by_many),
	};
	/* Elsewhere libbeowire itself takes what its program does not. */
	const struct CMUnitTest local_tests[] = {
		TEST(answers__that_nobody_takes_are_counted),
		TEST(answers__that_nobody_takes_are_weighed),
	};
	const char *links = getenv("BEOWIRE_LINKS");
	int failed = cmocka_run_group_tests_name("bounds", tests, NULL, NULL);

	if (links && strcmp(links, "local") == 0)
		failed += cmocka_run_group_tests_name("answers", local_tests, NULL, NULL);
	return failed;
}
