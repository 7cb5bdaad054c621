// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The provider and a peer that does not keep to its protocol: messages that no provider sends, told
 * by an endpoint of libbeowire. Whatever it says ends with an error at most, and the next honest
 * operation works. Most of this is to be run under AddressSanitizer, too.
 */
#include "stranger.h"

/* A request for a write of `len` bytes at the memory's start, by `segments` equal pieces. */
static size_t request(char *to, uint64_t token, uint64_t len, uint32_t segments)
{
	struct bwf_write_request req = {.token = token, .len = len, .segments = segments};
	size_t at = sizeof(req);

	memcpy(to, &req, at);
	for (uint32_t i = 0; i < segments && i < 4; i++) {
		struct bwf_segment seg = {.len = len / segments, .key = KEY};

		memcpy(to + at, &seg, sizeof(seg));
		at += sizeof(seg);
	}
	return at;
}

static void ask_long(uint64_t token, uint64_t len)
{
	char buf[256];

	stranger_say(BWF_CODE_WRITE_LONG, 0, 0, buf, request(buf, token, len, 1));
}

/* The data of a long write, which b fetches out of `from`. */
static void offer(uint64_t token, const char *from, uint64_t len)
{
	while (bw_send(bad, victim, BWF_CODE_WRITE_DATA, token, 0, from, len, BW_SEND_SYNC,
		       &sent_count))
		stranger_progress();
}

/* Until b has answered so often in all, or said what else. The last message. */
static const struct seen *answers(size_t count)
{
	while (seen_count < count)
		stranger_progress();
	assert_int_equal(seen_count, count);
	return &seen[count - 1];
}

static void write__a_token_is_used_once_at_a_time(void **state)
{
	const struct seen *last;

	pair_fill(mine, LONG, 1);
	ask_long(5, LONG);
	ask_long(5, LONG);
	last = answers(1);
	assert_int_equal(last->m.code, BWF_CODE_WRITE_DONE);
	assert_int_equal(last->m.imm, FI_EALREADY);
	stranger_counts("writes_refused", 1);
	offer(5, mine, LONG);
	offer(5, mine, LONG);
	assert_int_equal(answers(2)->m.imm, 0);
	while (sent_count < 2)
		stranger_progress();
	assert_true(pair_filled(theirs, LONG, 1));
	ask_long(5, LONG);
	offer(5, mine, LONG);
	assert_int_equal(answers(3)->m.imm, 0);
}

/* While data are on their way the token is not free, either; and whatever the order in which
 * fetching ends, each request is forgotten once. */
static void write__a_token_is_used_once_while_data_come(void **state)
{
	for (uint64_t i = 0; i < 20; i++) {
		ask_long(5, LONG);
		offer(5, mine, LONG);
		ask_long(5, 20000);
		offer(5, mine, 20000);
		ask_long(6, 20000);
		offer(6, mine, 20000);
	}
	answers(60);
	while (sent_count < 60)
		stranger_progress();
	for (size_t i = 0; i < 60; i++)
		assert_true(seen[i].m.imm == 0 || (seen[i].m.imm == FI_EALREADY));
}

static void write__no_more_wait_than_may(void **state)
{
	for (uint64_t i = 0; i < BWF_WRITES_MAX; i++)
		ask_long(i, LONG);
	stranger_say(BWF_CODE_WRITE_DATA, 0, 0, mine,
		     100); /* the wrong length ends the first one */
	assert_int_equal(answers(1)->m.imm, FI_EINVAL);
	ask_long(BWF_WRITES_MAX, LONG);
	ask_long(BWF_WRITES_MAX + 1, LONG);
	assert_int_equal(answers(2)->m.imm, FI_ENOBUFS);
	assert_int_equal(seen[1].m.tag, BWF_WRITES_MAX + 1);
	stranger_counts("writes_refused", 2);
}

/* The stranger lives, but does not send what b fetches into memory that the program closes. That
 * ends soon, and what the stranger sends afterwards goes nowhere. Locally b needs no help. */
static void write__a_silent_writer_does_not_keep_memory(void **state)
{
	bool local = !strcmp(getenv("BEOWIRE_LINKS"), "local");
	struct timespec began, ended;

	pair_fill(mine, LONG, 5);
	ask_long(0, 10);
	stranger_say(BWF_CODE_WRITE_DATA, 0, 0, mine, 10);
	answers(1); /* they have met: what is said from now on needs no progress of the stranger */
	ask_long(1, LONG);
	offer(1, mine, LONG);
	for (int i = 0; i < 1000; i++)
		pair_progress();
	clock_gettime(CLOCK_MONOTONIC, &began);
	assert_int_equal(fi_close(&mr->fid), 0);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	memset(theirs, 0, LONG);
	assert_int_equal(fi_mr_reg(pair_domain, theirs, LONG, FI_REMOTE_WRITE | FI_REMOTE_READ, 0,
				   KEY, 0, &mr, NULL),
			 0);
	assert_in_range(ended.tv_sec - began.tv_sec, 0, 20);
	assert_int_equal(answers(2)->m.imm, local ? 0 : FI_ECANCELED);
	while (!sent_count)
		stranger_progress();
	for (int i = 0; i < LONG; i++)
		assert_int_equal(theirs[i], 0);
}

/* Lengths and counts that contradict each other or the memory. */
static void write__every_number_is_checked(void **state)
{
	static const struct {
		uint64_t len, seg_len, addr, key;
		uint32_t segments;
		int error; /* of the answer; 0: too broken to be answered */
	} asked[] = {
		{8, 8, 0, KEY, 0, 0},
		{8, 8, 0, KEY, 5, 0},
		{8, 8, 0, KEY, UINT32_MAX, 0},
		{8, 8, 0, KEY + 1, 1, FI_EACCES},
		{8, 8, LONG - 7, KEY, 1, FI_EACCES},
		{8, 8, UINT64_MAX - 3, KEY, 1, FI_EACCES},
		{8, 9, 0, KEY, 1, FI_EINVAL},
		{9, 9, 0, KEY, 1, FI_EINVAL},
		{8, UINT64_MAX, 0, KEY, 1, FI_EINVAL},
		{8, 1ULL << 62, 0, KEY, 4, FI_EINVAL}, /* together 0, modulo 2^64 */
	};
	size_t count = 0;

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		struct bwf_write_request req = {
			.token = i, .len = asked[i].len, .segments = asked[i].segments};
		char buf[sizeof(req) + 4 * sizeof(struct bwf_segment) + 8] = {0};
		size_t n = asked[i].segments < 4 ? asked[i].segments : 4, at = sizeof(req);

		memcpy(buf, &req, sizeof(req));
		for (size_t k = 0; k < n; k++) {
			struct bwf_segment seg = {asked[i].addr, asked[i].seg_len, asked[i].key};

			memcpy(buf + at, &seg, sizeof(seg));
			at += sizeof(seg);
		}
		stranger_say(BWF_CODE_WRITE, 0, 0, buf, at + 8);
		if (!asked[i].error)
			continue;
		assert_int_equal(answers(++count)->m.imm, asked[i].error);
		assert_int_equal(seen[count - 1].m.tag, i);
	}
	for (size_t i = 0; i < LONG; i++)
		assert_int_equal(theirs[i], 0);
	stranger_counts("malformed", 3);
}

static void write_nothing(uint64_t key)
{
	struct bwf_write_request req = {.data = 4711, .flags = BWF_WRITE_HAS_DATA, .segments = 1};
	struct bwf_segment seg = {.key = key};
	char buf[sizeof(req) + sizeof(seg)];

	memcpy(buf, &req, sizeof(req));
	memcpy(buf + sizeof(req), &seg, sizeof(seg));
	stranger_say(BWF_CODE_WRITE, 0, 0, buf, sizeof(buf));
}

static void add_with_data(uint64_t key)
{
	struct bwf_atomic_request req = {.data = 4711,
					 .flags = BWF_WRITE_HAS_DATA,
					 .type = FI_UINT64,
					 .op = FI_SUM,
					 .segments = 1};
	struct bwf_segment seg = {.key = key};
	char buf[sizeof(req) + sizeof(seg)];

	memcpy(buf, &req, sizeof(req));
	memcpy(buf + sizeof(req), &seg, sizeof(seg));
	stranger_say(BWF_CODE_ATOMIC, 0, 0, buf, sizeof(buf));
}

/* Who is in no vector puts nothing into the completion queue unless it has a key; nor are remote
 * writes counted. Whom the program has named needs none for a write of no bytes. */
static void write__of_no_bytes_needs_a_key_of_a_stranger(void **state)
{
	uint64_t before = fi_cntr_read(b.remote_written);

	assert_int_equal(fi_av_remove(b.av, &bad_addr, 1, 0), 0);
	write_nothing(KEY + 1);
	assert_int_equal(answers(1)->m.imm, FI_EACCES);
	add_with_data(KEY + 1);
	assert_int_not_equal(answers(2)->m.imm, 0);
	pair_nothing(b.rx);
	assert_int_equal(fi_cntr_read(b.remote_written), before);
	write_nothing(KEY);
	assert_int_equal(answers(3)->m.imm, 0);
	assert_int_equal(pair_completion(b.rx).data, 4711);
	pair_nothing(b.rx);
}

static void write__of_no_bytes_needs_no_key_of_a_named_one(void **state)
{
	write_nothing(KEY + 1);
	assert_int_equal(answers(1)->m.imm, 0);
	assert_int_equal(pair_completion(b.rx).data, 4711);
	add_with_data(KEY + 1);
	assert_int_not_equal(answers(2)->m.imm, 0);
	pair_nothing(b.rx);
}

/* b writes to the hostile endpoint. The token of its request; the data can be fetched. */
static uint64_t write_begin(void)
{
	struct iovec local[2] = {{theirs, LONG / 2}, {theirs + LONG / 2, LONG / 2}};
	struct fi_rma_iov remote = {.len = LONG, .key = 1};
	struct fi_msg_rma m = {.msg_iov = local,
			       .iov_count = 2,
			       .addr = bad_addr,
			       .rma_iov = &remote,
			       .rma_iov_count = 1,
			       .context = mine};
	struct bwf_write_request req;

	pair_fill(theirs, LONG, 3);
	pair_retry(fi_writemsg(b.ep, &m, FI_COMPLETION));
	answers(2);
	assert_int_equal(seen[0].m.code, BWF_CODE_WRITE_LONG);
	assert_int_equal(seen[1].m.code, BWF_CODE_WRITE_DATA);
	memcpy(&req, seen[0].data, sizeof(req));
	assert_int_equal(req.token, seen[1].m.tag);
	return req.token;
}

/* The data of the write are where they were, and are fetched whole. */
static void write_fetch(void)
{
	assert_int_equal(bw_pull(bad, victim, &seen[1].m.rndv, mine, LONG, mine), 0);
	while (!pulled_count)
		stranger_progress();
	assert_true(pair_filled(mine, LONG, 3));
}

static void write_goes_on(void)
{
	struct fi_cq_tagged_entry e;

	for (int i = 0; i < 200; i++) {
		stranger_progress();
		assert_int_equal(fi_cq_read(b.tx, &e, 1), -FI_EAGAIN);
	}
}

/* "Done" is said several times before the data are fetched: no more than the answer was. */
static void answer__counts_once(void **state)
{
	uint64_t token = write_begin();

	for (int i = 0; i < 3; i++)
		stranger_say(BWF_CODE_WRITE_DONE, token, 0, NULL, 0);
	write_goes_on();
	write_fetch();
	assert_ptr_equal(pair_completion(b.tx).op_context, mine);
	pair_nothing(b.tx);
}

/* Neither another peer answers, nor does an answer count for a later operation. */
static void answer__is_of_the_peer_that_was_asked(void **state)
{
	struct bw_ep *asked = bad, *another;
	bw_peer_no b_there, b_here = victim;
	uint64_t before, token;
	struct bw_addr addr;
	size_t n = sizeof(addr);

	assert_int_equal(
		bw_ep_open(&another,
			   &(struct bw_ep_attr){.handlers = &stranger_handlers, .no_helper = true},
			   NULL),
		0);
	assert_int_equal(fi_getname(&b.ep->fid, &addr, &n), 0);
	assert_int_equal(bw_peer_find(another, &addr, &b_there), 0);
	before = write_begin();
	write_fetch();
	stranger_say(BWF_CODE_WRITE_DONE, before, 0, NULL, 0);
	pair_completion(b.tx);
	seen_count = 0;
	pulled_count = 0;
	token = write_begin();
	write_fetch();
	assert_int_equal((uint32_t)token, (uint32_t)before); /* else this shows nothing */
	stranger_say(BWF_CODE_WRITE_DONE, before, 0, NULL, 0);
	write_goes_on();
	bad = another;
	victim = b_there;
	stranger_say(BWF_CODE_WRITE_DONE, token, 0, NULL, 0);
	write_goes_on();
	bad = asked;
	victim = b_here;
	stranger_say(BWF_CODE_WRITE_DONE, token, 0, NULL, 0);
	pair_completion(b.tx);
	bw_ep_close(another, 0);
}

static void answer__is_of_the_operations_kind(void **state)
{
	uint64_t token = write_begin();

	stranger_say(BWF_CODE_ATOMIC_DONE, token, 0, NULL, 0);
	write_fetch();
	write_goes_on();
	stranger_say(BWF_CODE_WRITE_DONE, token, FI_EACCES, NULL, 0);
	assert_int_equal(pair_error(b.tx).err, FI_EACCES);
}

/* An answer says what targets say, whatever number the peer puts there. */
static void answer__is_an_error_that_targets_answer_with(void **state)
{
	static const struct {
		uint64_t said;
		int told;
	} answer[] = {
		{FI_EACCES, FI_EACCES},
		{FI_EALREADY, FI_EALREADY},
		{FI_ECANCELED, FI_ECANCELED},
		{FI_EINVAL, FI_EINVAL},
		{FI_EIO, FI_EIO},
		{FI_ENOBUFS, FI_ENOBUFS},
		{FI_ENOMEM, FI_ENOMEM},
		{FI_EAGAIN, FI_EIO},
		{FI_EINTR, FI_EIO},
		{FI_ECONNABORTED, FI_EIO},
		{FI_ETRUNC, FI_EIO},
		{4095, FI_EIO},
		{4096, FI_EIO},
		{UINT64_MAX, FI_EIO},
		{1ULL << 32, FI_EIO},
		{(1ULL << 32) + FI_EACCES, FI_EIO},
	};

	for (size_t i = 0; i < sizeof(answer) / sizeof(answer[0]); i++) {
		struct bwf_write_request req;

		pair_retry(fi_write(b.ep, mine, 8, NULL, bad_addr, 0, 1, NULL));
		memcpy(&req, answers(i + 1)->data, sizeof(req));
		stranger_say(BWF_CODE_WRITE_DONE, req.token, answer[i].said, NULL, 0);
		assert_int_equal(pair_error(b.tx).err, answer[i].told);
	}
}

/* The answer to an atomic has to bring all that was asked for. */
static void answer__of_another_length_is_an_error(void **state)
{
	uint64_t operand = 1, result = 42;
	struct bwf_atomic_request req;

	for (size_t i = 0; i < 3; i++) {
		static const size_t lengths[] = {0, 7, 9};

		pair_retry(fi_fetch_atomic(b.ep, &operand, 1, NULL, &result, NULL, bad_addr, 0, 1,
					   FI_UINT64, FI_SUM, mine));
		answers(i + 1);
		assert_int_equal(seen[i].m.code, BWF_CODE_ATOMIC);
		memcpy(&req, seen[i].data, sizeof(req));
		stranger_say(BWF_CODE_ATOMIC_DONE, req.token, 0, mine, lengths[i]);
		assert_int_equal(pair_error(b.tx).err, FI_EIO);
		assert_int_equal(result, 42);
	}
}

/* Bytes without sense under every code that is no program's message. */
static void message__noise_does_no_harm(void **state)
{
	uint64_t x = 88172645463325252; /* Marsaglia's xorshift */
	uint64_t noise[64];

	for (int i = 0; i < 4000; i++) {
		uint8_t code = (uint8_t)(i % (BW_CODE_MAX + 1));

		for (size_t k = 0; k < 64; k++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			/* small numbers often: they pass more checks */
			noise[k] = x % 3 ? x % 9 : x;
		}
		if ((code & BWF_CODE_MASK) == BWF_CODE_MSG ||
		    (code & BWF_CODE_MASK) == BWF_CODE_TAGGED)
			continue;
		stranger_say(code, noise[0], noise[1], noise, (size_t)(x % sizeof(noise)));
		seen_count = 0;
		stranger_progress();
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, stranger_setup, stranger_teardown)
	const struct CMUnitTest tests[] = {
		TEST(write__a_token_is_used_once_at_a_time),
		TEST(write__a_token_is_used_once_while_data_come),
		TEST(write__no_more_wait_than_may),
		TEST(write__a_silent_writer_does_not_keep_memory),
		TEST(write__every_number_is_checked),
		TEST(write__of_no_bytes_needs_a_key_of_a_stranger),
		TEST(write__of_no_bytes_needs_no_key_of_a_named_one),
		TEST(answer__counts_once),
		TEST(answer__is_of_the_peer_that_was_asked),
		TEST(answer__is_of_the_operations_kind),
		TEST(answer__is_an_error_that_targets_answer_with),
		TEST(answer__of_another_length_is_an_error),
		TEST(message__noise_does_no_harm),
	};

	return cmocka_run_group_tests_name("hostile", tests, NULL, NULL);
}
