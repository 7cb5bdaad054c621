/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is fetched ahead of the program's next call, and what of it strangers have announced: who
 * sends nothing of it holds no memory, and holds up nobody else.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hosts.h"
#include "kheld.h"
#include "kuser.h"

#define NODE "/proc/net/beowire/node"

#define LONG	(12 * MIB)
#define SHORTER (100 * KIB)
#define PLACES	(LONG / 4096 * sizeof(void *)) /* what tells which pages there are */
#define COSTS	512			       /* bytes that describe a buffer, at most */
#define FRAME	(3 * 4096)		       /* in whole pages, at most */

static uint8_t announced[LONG], had[LONG];
/* It stays open: what a closed one was charged would stay charged to the account that it shares
 * with the sockets it has accepted, and pages would be taken from that first. -1: there is none. */
static int listener;

/* Sockets of this type that speak by the relay; b's hears of a peer's death, or stillness, after a
 * while in which frames that were lost have come again, in slow guests as well. */
static struct kt_pair announcing_pair(struct kt_relay *r, int type)
{
	int bytes = LONG + 4096, server = kt_open("b", type);
	struct timeval patience = {.tv_sec = kt_patience_s()};
	struct kt_pair p = {.a = kt_open("a", type)};
	struct sockaddr_beowire any = {.sbw_family = AF_BEOWIRE}, to;

	kt_relay_begin(r, kt_hurt);
	kt_option(server, BEOWIRE_DEAD_MS, 4000);
	assert_int_equal(bind(server, (struct sockaddr *)&any, sizeof(any)), 0);
	p.at_b = kt_at(server);
	to = kt_relayed(&p.at_b);
	if (type != SOCK_RDM)
		assert_int_equal(listen(server, 1), 0);
	assert_int_equal(kt_connect(p.a, &to), 0);
	p.b = type == SOCK_RDM ? server : accept(server, NULL, NULL);
	assert_true(p.b >= 0);
	listener = type == SOCK_RDM ? -1 : server;
	assert_int_equal(setsockopt(p.b, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	assert_int_equal(setsockopt(p.a, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)), 0);
	return p;
}

/* Both take leave of one another while they can: nothing lingers. */
static void end_announcing(struct kt_relay *r, struct kt_pair *p)
{
	if (listener >= 0)
		close(listener);
	kt_close(p);
	kt_becomes(kt_held(), 0, 0);
	kt_relay_end(r);
}

/* A long message is announced, and nothing of it comes yet. A byte behind it that has been
 * acknowledged says that the announcement has: its sender holds nothing for it any more. */
static struct kt_pair announcement(struct kt_relay *r, int type, uint32_t seed)
{
	struct kt_pair p = announcing_pair(r, type);
	uint64_t sending;

	kt_fill(announced, LONG, seed);
	r->wanted = HURT_PULLED;
	assert_int_equal(send(p.a, announced, LONG, MSG_DONTWAIT), LONG);
	sending = kt_listed("a", p.a, true);
	assert_in_range(sending, LONG, LONG + 1024);
	assert_int_equal(send(p.a, "", 1, MSG_DONTWAIT), 1);
	kt_becomes(kt_listed("a", p.a, true), sending, sending);
	assert_int_equal(kt_events(p.b, POLLIN), POLLIN);
	return p;
}

/* Is so much held, of a message that has come in part? Where a guest is slow the rest may stay away
 * for so long that the fetch is given up: it is begun anew. */
static bool is_held_in_part(int fd, uint64_t least, uint64_t most)
{
	struct pollfd poller = {.fd = fd, .events = POLLIN};
	bool readable = poll(&poller, 1, 0);
	uint64_t now = kt_held();

	if (now >= least && now <= most)
		return !readable;
	if (readable)
		kt_refused(recv(fd, had, LONG, MSG_DONTWAIT), EAGAIN);
	return false;
}

/* Who announces many bytes and sends none has no memory held for them; who sends some, for those,
 * until nothing more comes for BEOWIRE_DEAD_MS, though he answers. Nothing is lost by that: the
 * program is told to begin anew. */
static void test_what_is_announced(void **state)
{
	uint64_t base;

	kt_each_type_(type, SOCK_RDM, SOCK_SEQPACKET)
	{
		struct kt_relay r;
		struct kt_pair p = announcement(&r, *type, 3);
		struct pollfd poller = {.fd = p.b, .events = POLLIN};

		base = kt_held();
		kt_refused(recv(p.b, had, LONG, MSG_DONTWAIT), EAGAIN);
		assert_in_range(kt_held(), base + PLACES, base + PLACES + COSTS);
		r.wanted = HURT_BEHIND;
		kt_until(is_held_in_part(p.b, base + PLACES + KT_ARRIVED,
					 base + PLACES + COSTS + KT_ARRIVED + FRAME));
		kt_becomes(kt_held(), base, base + COSTS);
		assert_int_equal(poll(&poller, 1, KT_SOON_MS), 1);
		kt_refused(recv(p.b, had, LONG, MSG_DONTWAIT), EAGAIN);
		r.wanted = HURT_NOTHING;
		assert_int_equal(poll(&poller, 1, KT_SOON_MS), 1);
		memset(had, 0, LONG);
		assert_int_equal(recv(p.b, had, LONG, MSG_DONTWAIT), LONG);
		assert_true(kt_filled(had, LONG, 3));
		end_announcing(&r, &p);
	}
}

/* ---- what strangers have announced ---- */

/* A socket of a's that reaches b's without the relay. */
static int other_of(const struct kt_pair *p)
{
	int fd = kt_bound("a", SOCK_RDM, 0);

	assert_int_equal(kt_connect(fd, &p->at_b), 0);
	return fd;
}

static void expect_byte(int fd, int flags, char byte)
{
	char got = 0;

	assert_int_equal(recv(fd, &got, 1, flags), 1);
	assert_int_equal(got, byte);
}

static void expect_long(const struct kt_pair *p, int flags, uint32_t seed)
{
	memset(had, 0, LONG);
	assert_int_equal(recv(p->b, had, LONG, flags), LONG);
	assert_true(kt_filled(had, LONG, seed));
}

/* Its sender is heard no more: what it had announced is in nobody's way, if the program has not
 * spoken to it, nor is its end told. */
static void test_what_a_stranger_announced(void **state)
{
	for (int stranger = 1; stranger >= 0; stranger--) {
		struct kt_relay r;
		struct kt_pair p = announcement(&r, SOCK_RDM, 6);
		int other = other_of(&p);
		char byte;

		if (!stranger)
			kt_answer(&p);
		assert_int_equal(send(other, "m", 1, 0), 1);
		kt_relay_end(&r);
		if (!stranger)
			kt_refused(recv(p.b, had, LONG, 0), ETIMEDOUT);
		expect_byte(p.b, 0, 'm');
		expect_byte(p.b, 0, 0); /* what came behind it */
		kt_refused(recv(p.b, &byte, 1, MSG_DONTWAIT), stranger ? EAGAIN : ETIMEDOUT);
		close(other);
		kt_close(&p);
	}
}

static long receive_long(void *arg)
{
	return recv(*(int *)arg, had, LONG, MSG_WAITALL);
}

/* A stranger answers, and sends nothing of what he has announced: a call that has begun to fetch it
 * takes what others send, as calls that do not wait do. It is fetched meanwhile; nothing is lost,
 * and what came behind it stays there. */
static void test_others_go_by(void **state)
{
	struct kt_relay r;
	struct kt_pair p = announcement(&r, SOCK_RDM, 8);
	int other = other_of(&p);
	struct pollfd poller = {.fd = p.b, .events = POLLIN};
	uint64_t pinned = kt_parameter("pinned_pages");
	struct kt_thread t;
	char byte;

	kt_start(&t, receive_long, &p.b);
	kt_until(kt_parameter("pinned_pages") > pinned); /* it has begun */
	assert_int_equal(send(other, "m", 1, 0), 1);
	assert_int_equal(kt_join(&t), 1);
	assert_int_equal(had[0], 'm');
	kt_until(poll(&poller, 1, 0) == 0); /* it is fetched ahead, as long as it may */
	kt_refused(recv(p.b, &byte, 1, MSG_DONTWAIT), EAGAIN);
	assert_int_equal(send(other, "n", 1, 0), 1);
	kt_until(kt_events(p.b, POLLIN));
	expect_byte(p.b, MSG_DONTWAIT, 'n');
	r.wanted = HURT_NOTHING;
	expect_long(&p, 0, 8);
	expect_byte(p.b, 0, 0);
	close(other);
	end_announcing(&r, &p);
}

/* Lines of strangers take turns: of another one all is given meanwhile, however long. */
static void test_strangers_take_turns(void **state)
{
	struct kt_relay r;
	struct kt_pair p = announcement(&r, SOCK_RDM, 9);
	int other = other_of(&p), bytes = LONG + 4096;
	char byte;

	kt_refused(recv(p.b, &byte, 1, MSG_DONTWAIT), EAGAIN);
	assert_int_equal(setsockopt(other, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)), 0);
	kt_fill(announced, LONG, 10);
	assert_int_equal(send(other, announced, LONG, MSG_DONTWAIT), LONG);
	assert_int_equal(send(other, "m", 1, 0), 1);
	expect_long(&p, 0, 10);
	expect_byte(p.b, 0, 'm');
	close(other);
	end_announcing(&r, &p);
}

/* However much others send, and though no call finds nothing of theirs, a stranger's message is
 * fetched, and given in its turn. */
static void test_strangers_beside_others(void **state)
{
	struct kt_relay r;
	struct kt_pair p = announcement(&r, SOCK_RDM, 11);
	uint64_t until = kt_now_ns() + kt_patience_s() * 1000000000ull;
	int other = other_of(&p), flow = 0;
	ssize_t n;

	r.wanted = HURT_NOTHING;
	assert_int_equal(send(other, "m", 1, 0), 1);
	do {
		assert_int_equal(send(other, "m", 1, 0), 1);
		kt_until(kt_counters(p.b).rx_messages >= (uint64_t)flow + 3);
		n = recv(p.b, had, LONG, MSG_DONTWAIT);
		assert_true(n == 1 || n == LONG);
		flow++;
	} while (n == 1 && kt_now_ns() < until);
	assert_int_equal(n, LONG);
	assert_true(kt_filled(had, LONG, 11));
	close(other);
	end_announcing(&r, &p);
}

/* What was looked at comes next, whatever has come since. */
static void test_what_was_looked_at_comes_next(void **state)
{
	struct kt_relay r;
	struct kt_pair p = announcement(&r, SOCK_RDM, 12);
	int other = other_of(&p);

	r.wanted = HURT_NOTHING;
	assert_int_equal(recv(p.b, had, 1, MSG_PEEK | MSG_TRUNC), LONG);
	assert_int_equal(send(other, "m", 1, 0), 1);
	kt_until(kt_counters(p.b).rx_messages >= 3);
	assert_int_equal(recv(p.b, had, 1, MSG_PEEK | MSG_TRUNC), LONG);
	expect_long(&p, 0, 12);
	close(other);
	end_announcing(&r, &p);
}

/* Another stranger of a's, heard over the relay. */
static int stranger_of(const struct kt_pair *p)
{
	struct sockaddr_beowire to = kt_relayed(&p->at_b);
	int fd = kt_bound("a", SOCK_RDM, 0);

	assert_int_equal(kt_connect(fd, &to), 0);
	return fd;
}

static void announce(int fd, uint32_t seed)
{
	kt_fill(announced, SHORTER, seed);
	assert_int_equal(send(fd, announced, SHORTER, MSG_DONTWAIT), SHORTER);
}

static void expect_shorter(int fd, int flags, uint32_t seed)
{
	memset(had, 0, SHORTER);
	assert_int_equal(recv(fd, had, SHORTER, flags), SHORTER);
	assert_true(kt_filled(had, SHORTER, seed));
}

/* A call that has begun to fetch what one stranger has announced, straight into the program's
 * pages, makes way for another's line as for what is queued. */
static void test_silent_strangers_hold_up_no_others(void **state)
{
	struct kt_relay r;
	struct kt_pair p = announcement(&r, SOCK_RDM, 13);
	int other = other_of(&p);
	uint64_t pinned = kt_parameter("pinned_pages");
	struct kt_thread t;

	kt_start(&t, receive_long, &p.b);
	kt_until(kt_parameter("pinned_pages") > pinned);
	announce(other, 14);
	assert_int_equal(kt_join(&t), SHORTER);
	assert_true(kt_filled(had, SHORTER, 14));
	r.wanted = HURT_NOTHING;
	expect_long(&p, 0, 13);
	close(other);
	end_announcing(&r, &p);
}

/* The end of a peer is told, and no call waits for it in vain, though one stranger's message is
 * being fetched and another's waits. */
static void test_an_end_beside_what_was_announced(void **state)
{
	struct kt_relay r;
	struct kt_pair p = announcement(&r, SOCK_RDM, 15);
	int silent = stranger_of(&p), friend = kt_bound("a", SOCK_RDM, 0);
	struct sockaddr_beowire to = kt_at(friend);
	struct beowire_info info;
	char name[64], byte;

	kt_refused(recv(p.b, &byte, 1, MSG_DONTWAIT), EAGAIN);
	announce(silent, 16);
	kt_until(kt_counters(p.b).rx_messages >= 3);
	assert_int_equal(kt_send_to(p.b, "m", 1, &to), 1);
	expect_byte(friend, 0, 'm');
	kt_option(p.b, BEOWIRE_INFO_WANTED, 1);
	close(friend);
	assert_int_equal(kt_recv_info(p.b, name, sizeof(name), &info, MSG_DONTWAIT), 0);
	assert_int_equal(info.event, BEOWIRE_ENVELOPE);
	assert_true(info.key);
	assert_int_equal(kt_recv_info(p.b, name, sizeof(name), &info, 0), 0);
	assert_int_equal(info.event, BEOWIRE_DOWN);
	r.wanted = HURT_NOTHING;
	close(silent);
	end_announcing(&r, &p);
}

/* Of a message that was fetched ahead nothing is told that is the kernel's own. */
static void test_nothing_is_told_of_the_buffer(void **state)
{
	struct kt_relay r;
	struct kt_pair p = announcement(&r, SOCK_RDM, 17);
	struct beowire_info info;
	char byte;

	kt_refused(recv(p.b, &byte, 1, MSG_DONTWAIT), EAGAIN);
	r.wanted = HURT_NOTHING;
	kt_until(kt_events(p.b, POLLIN));
	kt_option(p.b, BEOWIRE_INFO_WANTED, 1);
	assert_int_equal(kt_recv_info(p.b, had, LONG, &info, 0), 0);
	assert_int_equal(info.event, BEOWIRE_MESSAGE);
	assert_int_equal(info.len, LONG);
	assert_int_equal(info.key, 0);
	end_announcing(&r, &p);
}

/* What is announced has no bytes, and no answer comes to a question for them. */
static void make_empty(struct kt_frame *f, long wanted)
{
	uint8_t *part = kt_part(f, BW_PART_MESSAGE, BW_CODE_ENVELOPE);
	const uint64_t len = 0;

	if (part && wanted)
		memcpy(part + sizeof(struct bw_part_msg) + offsetof(struct bw_envelope, len), &len,
		       sizeof(len));
	if (wanted && kt_part(f, BW_PART_PULL_ERROR, 0))
		f->len = 0;
}

static void test_nothing_is_announced(void **state)
{
	struct sockaddr_beowire to;
	struct kt_relay r;
	struct kt_pair p;

	kt_relay_begin(&r, make_empty);
	p.a = kt_open("a", SOCK_RDM);
	p.b = kt_bound("b", SOCK_RDM, 0);
	p.at_b = kt_at(p.b);
	to = kt_relayed(&p.at_b);
	kt_option(p.a, BEOWIRE_CHECKSUM, 0); /* so that payloads may be changed */
	r.wanted = true;
	assert_int_equal(kt_connect(p.a, &to), 0);
	announce(p.a, 18);
	kt_until(kt_events(p.b, POLLIN));
	assert_int_equal(recv(p.b, had, SHORTER, MSG_DONTWAIT), 0);
	kt_close(&p);
	kt_relay_end(&r);
}

/* Its sender may still have as many bytes as it had. */
static void announce_too_long(const struct kt_pair *p)
{
	kt_settings("memory_max", "67108864");
	kt_fill(announced, LONG, 19);
	assert_int_equal(send(p->a, announced, LONG, MSG_DONTWAIT), LONG);
	kt_settings("memory_max", "1048576");
}

/* One that is too long to be fetched ahead is there for a call that waits, while nobody else has
 * anything. Others do not wait for it, and calls that do not wait are not kept busy by it. */
static void test_too_long_to_be_fetched_ahead(void **state)
{
	for (int flags = 0; flags <= MSG_DONTWAIT; flags += MSG_DONTWAIT) {
		struct kt_relay r;
		struct kt_pair p = announcing_pair(&r, SOCK_RDM);
		int other = other_of(&p);
		struct pollfd poller = {.fd = p.b, .events = POLLIN};
		uint64_t lost;
		char byte;

		announce_too_long(&p);
		expect_long(&p, 0, 19);
		lost = kt_number("b", NODE, "unqueued");
		announce_too_long(&p);
		kt_until(kt_events(p.b, POLLIN));
		if (!flags) {
			announce(other, 20);
			kt_until(kt_counters(p.b).rx_messages >= 3);
			expect_shorter(p.b, 0, 20);
		}
		kt_refused(recv(p.b, &byte, 1, MSG_DONTWAIT), EAGAIN);
		assert_int_equal(poll(&poller, 1, 0), 0);
		assert_int_equal(kt_number("b", NODE, "unqueued"), lost + 1);
		kt_until(kt_events(p.a, POLLERR) & POLLERR);
		assert_int_equal(kt_error(p.a), ECONNRESET);
		kt_settings("memory_max", "67108864");
		close(other);
		end_announcing(&r, &p);
	}
}

/* Of a peer that the socket is connected to it is kept. */
static void test_too_long_of_whom_it_is_connected_to(void **state)
{
	struct kt_relay r;
	struct kt_pair p = announcing_pair(&r, SOCK_RDM), q = p;
	struct sockaddr_beowire to;
	int bytes = LONG + 4096;
	char byte;

	q.a = other_of(&p);
	to = kt_at(q.a);
	assert_int_equal(kt_connect(p.b, &to), 0);
	assert_int_equal(setsockopt(q.a, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)), 0);
	announce_too_long(&q);
	kt_until(kt_events(p.b, POLLIN));
	kt_refused(recv(p.b, &byte, 1, MSG_DONTWAIT), ENOBUFS);
	expect_long(&p, 0, 19);
	kt_settings("memory_max", "67108864");
	close(q.a);
	end_announcing(&r, &p);
}

static bool was_left(int fd)
{
	struct pollfd poller = {.fd = fd};

	return poll(&poller, 1, 0) == 1 && poller.revents & POLLERR;
}

/* The stranger's line becomes so much longer; false: it was left. */
static bool lengthen(const struct kt_pair *p, int fd, uint64_t bytes)
{
	enum { SOME = 8 };
	uint64_t begin = kt_charged(p->b), before;

	for (int i = 0; i < 1000 && kt_charged(p->b) < begin + bytes; i++) {
		before = kt_counters(p->b).rx_messages;
		for (int k = 0; k < SOME && !was_left(fd); k++)
			assert_int_equal(send(fd, "x", 1, 0), 1);
		kt_until(kt_counters(p->b).rx_messages >= before + SOME || was_left(fd));
		if (was_left(fd))
			return false;
	}
	return true;
}

/* What is behind it is bounded for each stranger, */
static void test_what_is_behind_an_announcement(void **state)
{
	struct kt_relay r;
	struct kt_pair p = announcing_pair(&r, SOCK_RDM);
	int other = other_of(&p);
	char byte;

	kt_settings("memory_max", "1048576");
	r.wanted = HURT_PULLED;
	announce(p.a, 21);
	assert_false(lengthen(&p, p.a, MIB / 2));
	assert_in_range(kt_charged(p.b), MIB / 16, MIB / 8 + 64 * KIB);
	assert_int_equal(send(other, "m", 1, 0), 1);
	expect_byte(p.b, 0, 'm');
	while (recv(p.b, &byte, 1, MSG_DONTWAIT) == 1)
		assert_int_equal(byte, 'x');
	kt_settings("memory_max", "67108864");
	close(other);
	end_announcing(&r, &p);
}

/* and for all: another one finds room. */
static void test_lines_make_way(void **state)
{
	enum { SILENT = 4 };
	struct kt_relay r;
	struct kt_pair p = announcing_pair(&r, SOCK_RDM);
	uint64_t lost = kt_number("b", NODE, "unqueued");
	int other = other_of(&p), silent[SILENT], left = 0;

	kt_settings("memory_max", "1048576");
	r.wanted = HURT_PULLED;
	for (int i = 0; i < SILENT; i++) {
		silent[i] = stranger_of(&p);
		announce(silent[i], 22);
		assert_true(lengthen(&p, silent[i], 80 * KIB));
	}
	announce(other, 23);
	do {
		memset(had, 0, SHORTER);
	} while (recv(p.b, had, SHORTER, 0) == 1);
	assert_true(kt_filled(had, SHORTER, 23));
	for (int i = 0; i < SILENT; i++) {
		left += was_left(silent[i]);
		close(silent[i]);
	}
	assert_in_range(left, 1, SILENT - 1);
	assert_int_equal(kt_number("b", NODE, "unqueued"), lost + (uint64_t)left);
	kt_settings("memory_max", "67108864");
	close(other);
	end_announcing(&r, &p);
}

/* ---- what is given up, and begun anew ---- */

/* Who waits meanwhile has the message all the same, when it comes. */
static void test_waiting_for_what_was_given_up(void **state)
{
	kt_each_type_(type, SOCK_RDM, SOCK_SEQPACKET)
	{
		struct kt_relay r;
		struct kt_pair p = announcement(&r, *type, 4);
		uint64_t base = kt_held();
		struct kt_thread t;

		r.wanted = HURT_BEHIND;
		kt_refused(recv(p.b, had, LONG, MSG_DONTWAIT), EAGAIN);
		kt_until(is_held_in_part(p.b, base + PLACES + KT_ARRIVED,
					 base + PLACES + COSTS + KT_ARRIVED + FRAME));
		kt_start(&t, receive_long, &p.b);
		kt_until(kt_held() < base + KT_ARRIVED);
		r.wanted = HURT_NOTHING;
		assert_int_equal(kt_join(&t), LONG);
		assert_true(kt_filled(had, LONG, 4));
		end_announcing(&r, &p);
	}
}

static long send_long(void *arg)
{
	return send(*(int *)arg, announced, LONG / 2, 0);
}

/* Of a stream what was had before stays had. */
static void test_the_rest_of_a_stream_that_was_given_up(void **state)
{
	struct kt_relay r;
	struct kt_pair p = announcing_pair(&r, SOCK_STREAM);
	const size_t part = MIB + 4321, rest = LONG / 2 - part; /* the bytes repeat themselves */
	struct kt_thread t;

	kt_fill(announced, LONG / 2, 5);
	kt_start(&t, send_long, &p.a);
	assert_int_equal(recv(p.b, had, part, MSG_WAITALL), part);
	r.wanted = HURT_PULLED;
	kt_refused(recv(p.b, had + part, part, MSG_DONTWAIT), EAGAIN);
	assert_int_equal(kt_events(p.b, POLLIN), POLLIN);
	kt_refused(recv(p.b, had + part, part, MSG_DONTWAIT), EAGAIN);
	r.wanted = HURT_NOTHING;
	assert_int_equal(recv(p.b, had + part, rest, MSG_WAITALL), rest);
	assert_true(kt_filled(had, LONG / 2, 5));
	assert_int_equal(kt_join(&t), LONG / 2);
	end_announcing(&r, &p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_counting_test(test_what_is_announced),
		kt_counting_test(test_others_go_by),
		kt_counting_test(test_strangers_take_turns),
		kt_counting_test(test_strangers_beside_others),
		kt_counting_test(test_what_was_looked_at_comes_next),
		kt_counting_test(test_silent_strangers_hold_up_no_others),
		kt_counting_test(test_an_end_beside_what_was_announced),
		kt_counting_test(test_nothing_is_told_of_the_buffer),
		kt_counting_test(test_nothing_is_announced),
		kt_counting_test(test_too_long_to_be_fetched_ahead),
		kt_counting_test(test_too_long_of_whom_it_is_connected_to),
		kt_counting_test(test_what_is_behind_an_announcement),
		kt_counting_test(test_lines_make_way),
		kt_counting_test(test_waiting_for_what_was_given_up),
		kt_counting_test(test_the_rest_of_a_stream_that_was_given_up),
		kt_counting_test(test_what_a_stranger_announced), /* ports linger after it */
	};

	return cmocka_run_group_tests(tests, kt_open_to_all, NULL);
}
