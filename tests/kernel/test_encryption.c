/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Nodes that encrypt: what travels between their ports says nothing of what programs say, what was
 * changed on its way does not arrive, and who does not encrypt is not spoken with.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kframe.h"
#include "kuser.h"

#define KEY    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define SAID   "these words are for nobody else" /* in each short message */
#define WINDOW 16				 /* bytes of a long one that are looked for */

static int set_on(void *arg)
{
	return -kt_set("encrypt", "1");
}

static int set_without_capability(void *arg)
{
	return kt_set_without_admin("encrypt", "1");
}

static void nodes(const char *key, const char *of_a, const char *of_b)
{
	kt_enter("a");
	assert_int_equal(kt_set("key", key), 0);
	assert_int_equal(kt_set("encrypt", of_a), 0);
	kt_enter("b");
	assert_int_equal(kt_set("key", key), 0);
	assert_int_equal(kt_set("encrypt", of_b), 0);
}

static uint64_t encrypts(const char *node)
{
	char text[8] = "";
	int fd;

	kt_enter(node);
	fd = open("/proc/sys/net/beowire/encrypt", O_RDONLY);
	assert_true(read(fd, text, sizeof(text)) > 0);
	close(fd);
	return text[0] == '1';
}

static void test_who_decides(void **state)
{
	assert_false(encrypts("a"));
	assert_int_equal(kt_as(KT_ALICE, set_on, NULL), EACCES);
	assert_int_equal(kt_as(0, set_without_capability, NULL), EPERM);
	assert_int_equal(kt_set("encrypt", "2"), -EINVAL);
	assert_false(encrypts("a"));
	assert_int_equal(kt_set("encrypt", "1"), 0);
	assert_true(encrypts("a"));
	assert_false(encrypts("b"));
	kt_enter("a");
	assert_int_equal(kt_set("encrypt", "0"), 0);
}

/* Nobody is to think that it protects him. */
static void test_there_is_none_without_a_key(void **state)
{
	static const int types[] = {SOCK_RDM, SOCK_DGRAM, SOCK_STREAM};
	struct sockaddr_beowire any = {.sbw_family = AF_BEOWIRE};

	nodes("none", "1", "0");
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		int fd = kt_open("a", types[i]);

		kt_refused(bind(fd, (struct sockaddr *)&any, sizeof(any)), EKEYREJECTED);
		close(fd);
	}
	nodes("none", "0", "0");
}

/* ---- who sees the frames ---- */

static uint8_t sent[1 << 20], got[1 << 20];

static long send_all(void *arg)
{
	return send(*(const int *)arg, sent, sizeof(sent), 0);
}

static void say(int from, int to)
{
	char words[sizeof(SAID)] = "";

	assert_int_equal(send(from, SAID, sizeof(SAID), 0), sizeof(SAID));
	assert_int_equal(recv(to, words, sizeof(words), MSG_WAITALL), sizeof(SAID));
	assert_string_equal(words, SAID);
}

/* Both ways: a short message, and one that is fetched out of the sender's pages. */
static void talk(const struct kt_pair *p)
{
	struct kt_thread t;

	for (int i = 0; i < 2; i++) {
		int from = i ? p->b : p->a, to = i ? p->a : p->b;

		say(from, to);
		memset(got, 0, sizeof(got));
		kt_start(&t, send_all, &from);
		assert_int_equal(recv(to, got, sizeof(got), MSG_WAITALL), sizeof(got));
		assert_int_equal(kt_join(&t), sizeof(sent));
		assert_true(kt_filled(got, sizeof(got), 3));
	}
}

/* How many of the frames that somebody sees at b have some of it. */
static unsigned int betrayed(int raw, unsigned int *frames)
{
	static const size_t from[] = {0, 1000, 70000, 500000, sizeof(sent) - WINDOW};
	static uint8_t bytes[70000];
	unsigned int n = 0;
	ssize_t len;

	while ((len = recv(raw, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
		bool found = memmem(bytes, (size_t)len, SAID, sizeof(SAID));

		for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++)
			found |= memmem(bytes, (size_t)len, sent + from[i], WINDOW) != NULL;
		n += found;
		(*frames)++;
	}
	return n;
}

static unsigned int talk_betrayed(int type)
{
	struct kt_pair p = type == SOCK_RDM ? kt_couple(type) : kt_connection(type);
	int raw = kt_raw("b", "eth0", ETH_P_ALL), room = 16 << 20;
	unsigned int found, frames = 0;

	setsockopt(raw, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	talk(&p);
	found = betrayed(raw, &frames);
	assert_true(frames > 10);
	assert_int_equal(kt_counters(p.a).drop[BW_DROP_SEAL], 0);
	assert_int_equal(kt_counters(p.b).drop[BW_DROP_SEAL], 0);
	close(raw);
	kt_close(&p);
	return found;
}

static void test_what_is_said_is_in_no_frame(void **state)
{
	static const int types[] = {SOCK_RDM, SOCK_SEQPACKET, SOCK_STREAM};

	kt_fill(sent, sizeof(sent), 3);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		nodes(KEY, "1", "1");
		assert_int_equal(talk_betrayed(types[i]), 0);
		nodes(KEY, "0", "0");
		assert_true(talk_betrayed(types[i]) > 0); /* it would have been found */
	}
	nodes("none", "0", "0");
}

struct some {
	int fd;
	size_t n;
};

static long send_some(void *arg)
{
	const struct some *s = arg;

	return send(s->fd, sent, s->n, 0);
}

/* Messages of all lengths, at the ends of frames and pages. */
static void test_messages_of_all_lengths(void **state)
{
	static const size_t lengths[] = {1,	15,    16,     17,    100,   256,   257,
					 1000,	1024,  1025,   2047,  2048,  4096,  8800,
					 8880,	8896,  9000,   16384, 16385, 40000, 65535,
					 65536, 65537, 200000, 262144};
	struct kt_pair p;

	nodes(KEY, "1", "1");
	p = kt_couple(SOCK_RDM);
	kt_fill(sent, sizeof(sent), 3);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t n = lengths[i];
		struct kt_thread t;

		memset(got, 0, n);
		kt_start(&t, send_some, &(struct some){p.a, n});
		assert_int_equal(recv(p.b, got, sizeof(got), 0), n);
		assert_int_equal(kt_join(&t), n);
		assert_true(kt_filled(got, n, 3));
	}
	kt_close(&p);
	nodes("none", "0", "0");
}

/* ---- who changes them ---- */

static void change_sealed(struct kt_frame *f, long wanted)
{
	if (!wanted || kt_header(f)->type != BW_FRAME_DATA)
		return;
	f->bytes[KT_ETHERNET + sizeof(struct bw_hdr) + sizeof(struct bw_ackblk) + 3] ^= 8;
}

/* It does not arrive, is not acknowledged, and comes again. */
static void test_what_was_changed_does_not_arrive(void **state)
{
	struct kt_pair p = {0};
	struct sockaddr_beowire any = {.sbw_family = AF_BEOWIRE}, to;
	struct kt_relay r;
	uint64_t begin;

	nodes(KEY, "1", "1");
	p.a = kt_open("a", SOCK_RDM);
	p.b = kt_open("b", SOCK_RDM);
	kt_relay_begin(&r, change_sealed);
	r.as_it_is = true;
	assert_int_equal(bind(p.b, (struct sockaddr *)&any, sizeof(any)), 0);
	p.at_b = kt_at(p.b);
	to = kt_relayed(&p.at_b);
	assert_int_equal(kt_connect(p.a, &to), 0);
	say(p.a, p.b);
	r.wanted = 1;
	assert_int_equal(send(p.a, SAID, sizeof(SAID), MSG_DONTWAIT), sizeof(SAID));
	begin = kt_now_ns();
	while (kt_counters(p.b).drop[BW_DROP_SEAL] < 3)
		assert_in_range(kt_now_ns() - begin, 0, KT_SOON_NS);
	kt_refused(recv(p.b, got, sizeof(got), MSG_DONTWAIT), EAGAIN);
	r.wanted = 0;
	assert_int_equal(recv(p.b, got, sizeof(got), 0), sizeof(SAID));
	assert_string_equal(got, SAID);
	kt_relay_end(&r);
	kt_close(&p);
	nodes("none", "0", "0");
}

/* ---- who does not encrypt ---- */

static void test_who_does_not_encrypt_is_rejected(void **state)
{
	for (int i = 0; i < 2; i++) {
		uint64_t begin = kt_now_ns();
		struct kt_pair p;
		int before, fd, listener;
		char of_b[32];

		nodes(KEY, i ? "0" : "1", i ? "1" : "0");
		p = kt_couple(SOCK_RDM);
		snprintf(of_b, sizeof(of_b), "(engine %u of ", p.at_b.sbw_port);
		before = kt_logged_of(&p, "encrypts");
		assert_int_equal(send(p.a, "x", 1, MSG_DONTWAIT), 1);
		while (!(kt_events(p.a, POLLERR) & POLLERR))
			assert_in_range(kt_now_ns() - begin, 0, KT_SOON_NS);
		assert_int_equal(kt_error(p.a), EPROTOTYPE);
		kt_refused(recv(p.b, got, 1, MSG_DONTWAIT), EAGAIN);
		fd = kt_open("a", SOCK_RDM); /* who waits for a long message is told as well */
		assert_int_equal(kt_connect(fd, &p.at_b), 0);
		kt_refused(send(fd, sent, sizeof(sent), 0), EPROTOTYPE);
		close(fd);
		listener = kt_listener(SOCK_STREAM, 1);
		p.at_b = kt_at(listener);
		fd = kt_open("a", SOCK_STREAM);
		assert_int_equal(kt_connect(fd, &p.at_b), -EPROTOTYPE);
		assert_int_equal(kt_logged_of(&p, "encrypts"), before + 1);
		assert_true(kt_logged(of_b, "; fix: net.beowire.encrypt = 1 on both, or 0 on"));
		close(fd);
		close(listener);
		kt_close(&p);
	}
	nodes("none", "0", "0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_who_decides),
		kt_test(test_there_is_none_without_a_key),
		kt_test(test_what_is_said_is_in_no_frame),
		kt_test(test_messages_of_all_lengths),
		kt_test(test_what_was_changed_does_not_arrive),
		kt_test(test_who_does_not_encrypt_is_rejected),
	};

	return cmocka_run_group_tests(tests, kt_open_to_all, NULL);
}
