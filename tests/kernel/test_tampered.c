/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a peer can say of its own messages: how long they are, and why they are not to be had. It
 * says so in well-formed frames, which are changed between a and b. None of it may become what a
 * call returns, or keep a receiver from what comes next.
 */
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "hosts.h"
#include "kframe.h"

#define LONG 100000
#define NODE "/proc/net/beowire/node"

static void change_status(struct kt_frame *f, long wanted)
{
	uint8_t *part = kt_part(f, BW_PART_PULL_ERROR, 0);
	int32_t status = (int32_t)wanted;

	if (part)
		memcpy(part + offsetof(struct bw_part_msg, status), &status, sizeof(status));
}

static void change_length(struct kt_frame *f, long wanted)
{
	uint8_t *part = kt_part(f, BW_PART_MESSAGE, BW_CODE_ENVELOPE);
	uint64_t len = (uint64_t)wanted;

	if (part)
		memcpy(part + sizeof(struct bw_part_msg) + offsetof(struct bw_envelope, len), &len,
		       sizeof(len));
}

/* A socket of a's that hears b's, or is connected to it, over the relay. */
static struct kt_pair changed_pair(int type)
{
	struct kt_pair p = {.a = kt_open("a", type), .b = kt_bound("b", type, 0)};
	struct sockaddr_beowire to;
	socklen_t len = sizeof(to);
	int listener = p.b;

	kt_option(p.a, BEOWIRE_CHECKSUM, 0); /* so that payloads may be changed */
	p.at_b = kt_at(p.b);
	to = kt_relayed(&p.at_b);
	if (type == SOCK_SEQPACKET)
		assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(kt_connect(p.a, &to), 0);
	if (type == SOCK_SEQPACKET) {
		p.b = accept(listener, NULL, NULL);
		assert_true(p.b >= 0);
		close(listener);
	} else {
		assert_int_equal(send(p.a, "hello", 5, 0), 5);
		assert_int_equal(recvfrom(p.b, &to, 5, 0, (struct sockaddr *)&p.at_a, &len), 5);
		assert_int_equal(kt_connect(p.b, &p.at_a), 0);
	}
	kt_option(p.b, BEOWIRE_COPY_MAX, 1000); /* long sends wait for their receiver */
	return p;
}

/* b takes its long message back; how its receiver hears of that, the relay says. */
static void receive_what_was_taken_back(struct kt_relay *r, int type, int status, int error)
{
	const struct timeval patience = {.tv_usec = 100000};
	static char bytes[LONG];
	struct kt_pair p = changed_pair(type);

	r->wanted = status;
	setsockopt(p.b, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	kt_refused(send(p.b, bytes, LONG, 0), EAGAIN);
	kt_refused(read(p.a, bytes, LONG), error);
	if (type == SOCK_RDM) {
		assert_int_equal(send(p.b, "next", 4, 0), 4);
		assert_int_equal(read(p.a, bytes, LONG), 4);
		assert_memory_equal(bytes, "next", 4);
	}
	kt_close(&p);
}

/* What the kernel itself means by these would be believed: a call that goes on, restarts, or leaves
 * the message for the next one. */
static void test_status_of_a_peer(void **state)
{
	static const int told[] = {-529 /* EIOCBQUEUED */,
				   -512 /* ERESTARTSYS */,
				   -EAGAIN,
				   -EINTR,
				   -ENOMEM,
				   -ENOBUFS,
				   -EFAULT,
				   -1,
				   INT_MIN};
	const size_t count = sizeof(told) / sizeof(*told);
	uint64_t before = kt_number("a", NODE, "bad-words");
	struct kt_relay r;

	kt_relay_begin(&r, change_status);
	for (size_t i = 0; i < count; i++)
		receive_what_was_taken_back(&r, SOCK_RDM, told[i], EIO);
	assert_int_equal(kt_number("a", NODE, "bad-words"), before + count);
	receive_what_was_taken_back(&r, SOCK_RDM, -EACCES, EACCES);
	assert_int_equal(kt_number("a", NODE, "bad-words"), before + count);
	receive_what_was_taken_back(&r, SOCK_SEQPACKET, -EFAULT, ECONNRESET);
	receive_what_was_taken_back(&r, SOCK_SEQPACKET, -EAGAIN, ECONNRESET);
	assert_int_equal(kt_number("a", NODE, "bad-words"), before + count + 2);
	kt_relay_end(&r);
}

static void receive_too_long(struct kt_relay *r, int type, long len, int at_b, int at_a)
{
	const struct timeval patience = {.tv_sec = 60};
	static char bytes[LONG];
	struct kt_pair p = changed_pair(type);

	setsockopt(p.b, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	r->wanted = len;
	kt_refused(send(p.b, bytes, LONG, 0), at_b);
	kt_refused(recv(p.a, bytes, LONG, MSG_PEEK | MSG_TRUNC), at_a);
	kt_close(&p);
}

/* A length that no call can return: its sender is left. */
static void test_length_of_a_peer(void **state)
{
	static const long told[] = {1l << 31, UINT_MAX, 1l << 32, LONG_MAX, -1};
	const size_t count = sizeof(told) / sizeof(*told);
	uint64_t before = kt_number("a", NODE, "bad-words");
	struct kt_relay r;

	kt_relay_begin(&r, change_length);
	for (size_t i = 0; i < count; i++)
		receive_too_long(&r, SOCK_RDM, told[i], ESHUTDOWN, ECANCELED);
	receive_too_long(&r, SOCK_SEQPACKET, 1l << 31, ECONNRESET, ECONNRESET);
	assert_int_equal(kt_number("a", NODE, "bad-words"), before + count + 1);
	kt_relay_end(&r);
}

/* What is sent behind the first message, which begins another flow so. */
static void ask_for_a_connection(struct kt_frame *f, long wanted)
{
	uint8_t *part = kt_part(f, BW_PART_MESSAGE, 0);
	uint16_t ep;
	uint64_t id;

	if (!part || !wanted)
		return;
	memcpy(&ep, part + offsetof(struct bw_part_msg, dst_ep), sizeof(ep));
	if (ep != BW_EP_MESSAGES)
		return;
	ep = BW_EP_CONNECTIONS;
	memcpy(part + offsetof(struct bw_part_msg, dst_ep), &ep, sizeof(ep));
	part[offsetof(struct bw_part, code)] = BW_CONN_REQUEST;
	memcpy(&id, part + offsetof(struct bw_part_msg, id), sizeof(id));
	id--;
	memcpy(part + offsetof(struct bw_part_msg, id), &id, sizeof(id));
}

/* Whoever asks for a connection where there is none is told so once; who asks again is left, and
 * makes nobody keep answers for him. */
static void test_asking_again(void **state)
{
	struct kt_relay r;
	struct kt_pair p;
	uint64_t said;

	kt_relay_begin(&r, ask_for_a_connection);
	p = changed_pair(SOCK_RDM);
	said = kt_counters(p.b).tx_messages;
	r.wanted = true;
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	kt_becomes(kt_counters(p.b).tx_messages, said + 1, said + 1);
	assert_int_equal(kt_error(p.b), 0);
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	kt_becomes(kt_error(p.b), ECANCELED, ECANCELED);
	assert_int_equal(kt_counters(p.b).tx_messages, said + 1);
	kt_close(&p);
	kt_relay_end(&r);
}

#define LATER (BW_VERSION + 1)

/* Both speak a later version of the wire, and no other; so each is for the other. */
static void change_version(struct kt_frame *f, long wanted)
{
	struct bw_hello *hello = (struct bw_hello *)(kt_header(f) + 1);
	struct bw_refuse *refusal = (struct bw_refuse *)(kt_header(f) + 1);

	if (kt_header(f)->type == BW_FRAME_HELLO)
		hello->version_min = hello->version_max = LATER;
	else if (kt_header(f)->type == BW_FRAME_REFUSE)
		refusal->version_min = refusal->version_max = LATER;
	kt_header(f)->version = LATER;
}

/* Who asks to be told of its peers' ends hears the versions. */
static void expect_versions(void)
{
	struct kt_pair p = kt_pair(SOCK_RDM);
	struct sockaddr_beowire to = kt_relayed(&p.at_b);
	struct beowire_info info;
	char name[64];

	kt_option(p.a, BEOWIRE_INFO_WANTED, 1);
	assert_int_equal(kt_send_to(p.a, "x", 1, &to), 1);
	do {
		assert_true(kt_recv_info(p.a, name, sizeof(name), &info, 0) >= 0);
	} while (info.event != BEOWIRE_DOWN);
	assert_int_equal(info.status, -EPROTONOSUPPORT);
	assert_int_equal(info.imm, LATER | LATER << 8);
	kt_close(&p);
}

/* The log names both nodes, and says what to do, once. */
static void test_version_of_a_peer(void **state)
{
	char name[64], versions[64];
	struct sockaddr_beowire to;
	struct kt_relay r;

	kt_log_every_line(true);
	kt_relay_begin(&r, change_version);
	for (int i = 0; i < 2; i++) {
		struct kt_pair p = kt_pair(SOCK_RDM);

		snprintf(name, sizeof(name), "(engine %u of ", p.at_b.sbw_port);
		snprintf(versions, sizeof(versions), "speaks versions %d to %d of", LATER, LATER);
		to = kt_relayed(&p.at_b);
		assert_int_equal(kt_connect(p.a, &to), 0);
		assert_int_equal(send(p.a, "x", 1, MSG_DONTWAIT), 1);
		kt_until(kt_events(p.a, POLLERR) & POLLERR);
		assert_int_equal(kt_error(p.a), EPROTONOSUPPORT);
		assert_int_equal(kt_logged_of(&p, "speaks 2, "), 1);
		assert_int_equal(kt_logged(name, versions), i == 0);
		assert_int_equal(kt_logged(name, "install the same Beowire on both"), i == 0);
		kt_close(&p);
	}
	expect_versions();
	kt_relay_end(&r);
	kt_log_every_line(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_version_of_a_peer),
		kt_test(test_status_of_a_peer),
		kt_test(test_length_of_a_peer),
		kt_test(test_asking_again),
	};

	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
