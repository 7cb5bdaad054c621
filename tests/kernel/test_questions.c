/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Questions of peers about a program's memory: no peer takes the room for those of others, and
 * those that are not waited for any more go, with all that they were charged.
 */
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "kframe.h"
#include "kuser.h"

#define GREEDY	  4
#define NODE	  "/proc/net/beowire/node"
#define QUESTIONS 20

/* One peer that asks for whatever there is leaves room for another's question. */
static void test_one_peers_questions(void **state)
{
	int fd = kt_watching("a"), many = kt_watching("b"), one = kt_watching("b"), n = 0;
	struct sockaddr_beowire at = kt_at(fd);
	struct beowire_info asked = {0};
	uint64_t before = kt_number("a", NODE, "questions-refused");
	uint32_t first = 0;
	char byte;

	at.sbw_ifindex = 0;
	kt_want(many, &at, 1, 300);
	do {
		assert_int_equal(kt_recv_info(fd, &byte, 1, &asked, 0), 0);
		assert_int_equal(asked.event, BEOWIRE_REGION);
		if (n++ == 0)
			first = asked.peer;
		if (n == 128)
			kt_want(one, &at, 1, 1);
	} while (asked.peer == first && n < 300);
	assert_int_equal(n, 129);
	kt_becomes(kt_number("a", NODE, "questions-refused"), before + 1, UINT64_MAX);
}

/* Several that fill it together give way to one that has asked for less. */
static void test_many_peers_questions(void **state)
{
	const struct timeval patience = {.tv_sec = 2};
	int fd = kt_watching("a"), greedy[GREEDY], one = kt_watching("b");
	struct sockaddr_beowire at = kt_at(fd);
	struct beowire_info asked = {0};
	unsigned count[16] = {0}, new = 0;
	uint64_t before;
	char byte;

	at.sbw_ifindex = 0;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	for (int i = 0; i < GREEDY; i++) {
		greedy[i] = kt_watching("b");
		kt_want(greedy[i], &at, 1, 100);
	}
	while (kt_recv_info(fd, &byte, 1, &asked, 0) == 0)
		count[asked.peer % 16] = UINT16_MAX;
	before = kt_number("a", NODE, "questions-refused");
	kt_want(one, &at, 1, 20);
	for (int n = 0; n < 1000 && count[new] != 20; n++) {
		if (kt_recv_info(fd, &byte, 1, &asked, 0))
			break;
		new = ++count[asked.peer % 16] < UINT16_MAX ? asked.peer % 16 : new;
	}
	assert_int_equal(count[new], 20);
	assert_true(kt_number("a", NODE, "questions-refused") >= before + 20);
	for (int i = 0; i < GREEDY; i++)
		close(greedy[i]);
	close(one);
	close(fd);
}

/* Questions of a peer that has gone are not there any more, and nobody is woken for them. */
static void test_questions_of_who_has_gone(void **state)
{
	int fd = kt_watching("a"), other = kt_watching("b");
	struct pollfd poller = {.fd = fd, .events = POLLIN};
	struct sockaddr_beowire at = kt_at(fd);
	struct beowire_info told;
	char byte;
	int n = 0;

	at.sbw_ifindex = 0;
	kt_want(other, &at, 1, QUESTIONS);
	assert_int_equal(kt_recv_info(fd, &byte, 1, &told, 0), 0);
	assert_int_equal(told.event, BEOWIRE_REGION);
	assert_int_equal(poll(&poller, 1, KT_SOON_MS), 1); /* another one */
	close(other);
	kt_becomes(kt_counters(fd).peers, 0, 0);
	while (kt_recv_info(fd, &byte, 1, &told, MSG_DONTWAIT) == 0)
		n += told.event == BEOWIRE_REGION;
	assert_int_equal(n, 0);
	assert_int_equal(poll(&poller, 1, 0), 0);
	close(fd);
}

#define EXPIRE_NS 10000000000 /* region.c */
#define HALF	  128	      /* of the questions that a port may have, for one peer */

/* With a wanted number no frame arrives. */
static void silence(struct kt_frame *f, long wanted)
{
	if (wanted)
		f->len = 0;
}

/* The next question of a's program; false: there is none. */
static bool told(int fd, struct beowire_info *info)
{
	char byte;

	while (kt_recv_info(fd, &byte, 1, info, MSG_DONTWAIT) == 0)
		if (info->event == BEOWIRE_REGION)
			return true;
	return false;
}

static int answer_with(int fd, uint64_t id, const void *bytes)
{
	struct beowire_region answer = {.id = id, .buf = (uintptr_t)bytes, .len = 1};

	return ioctl(fd, BEOWIRE_IOC_REGION, &answer);
}

/* Questions that nobody asks again go after their time, though nothing else goes on at their port:
 * those that the program was told of, and one that it was not. So there is room for others, and
 * for the same peers once they ask again. */
static void test_questions_that_nobody_asks_again(void **state)
{
	uint64_t held = kt_parameter("held_bytes"), begun, refused, expired;
	int fd = kt_watching("b"), silent[2], one, n = 0;
	struct pollfd poller = {.fd = fd, .events = POLLIN};
	struct sockaddr_beowire at = kt_at(fd), to;
	struct beowire_info first, next;
	struct kt_relay r;

	kt_relay_begin(&r, silence);
	to = kt_relayed(&at);
	refused = kt_number("b", NODE, "questions-refused");
	expired = kt_number("b", NODE, "questions-expired");
	begun = kt_now_ns();
	for (int i = 0; i < 2; i++) {
		silent[i] = kt_watching("a");
		kt_want(silent[i], &to, 1, HALF);
	}
	kt_until(told(fd, &first));
	for (n = 1; n < 2 * HALF - 1; n++)
		kt_until(told(fd, &next));
	assert_int_equal(poll(&poller, 1, KT_SOON_MS), 1); /* the last one */
	r.wanted = 1;
	kt_becomes(kt_number("b", NODE, "questions-expired"), expired + 2 * HALF, UINT64_MAX);
	assert_int_equal(kt_number("b", NODE, "questions-expired"), expired + 2 * HALF);
	assert_true(kt_now_ns() - begun >= EXPIRE_NS);
	kt_refused(answer_with(fd, first.cookie, &n), ENOENT);
	kt_refused(answer_with(fd, next.cookie, &n), ENOENT);
	assert_int_equal(poll(&poller, 1, 0), 0);
	assert_false(told(fd, &next));

	one = kt_watching("a");
	at.sbw_ifindex = 0;
	kt_want(one, &at, 1, 1);
	kt_until(told(fd, &next));
	assert_int_equal(answer_with(fd, next.cookie, &n), 0);
	kt_until(kt_recv_info(one, &next, 0, &next, MSG_DONTWAIT) == 0);
	assert_int_equal(next.event, BEOWIRE_PULLED);
	assert_int_equal(next.status, 0);
	r.wanted = 0;
	for (n = 0; n < 2 * HALF; n++)
		kt_until(told(fd, &next));
	assert_int_equal(kt_number("b", NODE, "questions-refused"), refused);
	close(one);
	close(silent[0]);
	close(silent[1]);
	close(fd);
	kt_relay_end(&r);
	kt_becomes(kt_parameter("held_bytes"), held, held);
}

#define STALE_US 3000000 /* more than region.c has */

/* A question that nobody asks again makes way for others, but not for who has its share. */
static void test_a_peer_has_no_more_than_its_share(void **state)
{
	int fd = kt_watching("b"), silent = kt_watching("a"), greedy = kt_watching("a");
	struct sockaddr_beowire at = kt_at(fd), to;
	struct beowire_info first, got = {0};
	struct kt_relay r;
	uint64_t last, refused;

	kt_relay_begin(&r, silence);
	to = kt_relayed(&at);
	at.sbw_ifindex = 0;
	kt_want(silent, &to, 1, 1);
	kt_until(told(fd, &first));
	r.wanted = 1;
	kt_want(greedy, &at, 1, HALF + 1);
	last = first.cookie + HALF;
	kt_until(told(fd, &got) && got.cookie == last);
	usleep(STALE_US);
	refused = kt_number("b", NODE, "questions-refused");
	kt_becomes(kt_number("b", NODE, "questions-refused"), refused + 1, UINT64_MAX);
	while (told(fd, &got))
		assert_true(got.cookie <= last);
	close(greedy);
	close(silent);
	close(fd);
	kt_relay_end(&r);
}

#define AGAIN_NS 5000000000 /* region.c */

/* A question that its peer still asks waits for its answer, however long that takes. Whom the
 * program's process that was told of it may have left is told of it again; one answer is enough. */
static void test_questions_that_are_asked_again(void **state)
{
	uint64_t expired = kt_number("a", NODE, "questions-expired"), begun = kt_now_ns();
	int fd = kt_watching("a"), other = kt_watching("b");
	struct pollfd poller = {.fd = fd, .events = POLLIN};
	struct sockaddr_beowire at = kt_at(fd);
	struct beowire_info asked, got;

	kt_want(other, &at, 1, 1);
	kt_until(told(fd, &asked));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(poll(&poller, 1, KT_SOON_MS), 1);
		kt_until(told(fd, &got));
		assert_int_equal(got.cookie, asked.cookie);
	}
	assert_true(kt_now_ns() - begun >= 2 * AGAIN_NS);
	assert_int_equal(kt_number("a", NODE, "questions-expired"), expired);
	assert_int_equal(answer_with(fd, asked.cookie, &asked), 0);
	kt_refused(answer_with(fd, asked.cookie, &asked), ENOENT);
	kt_until(kt_recv_info(other, &got, 0, &got, MSG_DONTWAIT) == 0);
	assert_int_equal(got.event, BEOWIRE_PULLED);
	assert_int_equal(got.status, 0);
	close(other);
	close(fd);
}

#define PEERS 256 /* questions that a port may have */

/* The next one that was asked later than this: older ones may be told again on a slow machine. */
static bool told_after(int fd, uint64_t id, struct beowire_info *info)
{
	return told(fd, info) && info->cookie > id;
}

/* Many peers with one question each fill a port, and ask no more. The one that was asked least
 * lately makes way after 2 s; a refusal that nobody fetches does at once. */
static void test_questions_left_over(void **state)
{
	const struct rlimit files = {2048, 2048};
	uint64_t held = kt_parameter("held_bytes"), expired;
	int fd = kt_watching("b"), peer[PEERS], more[2], left = 0, gone = 0;
	struct beowire_info asked[PEERS], first, got;
	struct sockaddr_beowire at = kt_at(fd), to;
	struct kt_relay r;

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	kt_relay_begin(&r, silence);
	to = kt_relayed(&at);
	at.sbw_ifindex = 0;
	for (int i = 0; i < PEERS; i++) {
		peer[i] = kt_watching("a");
		kt_want(peer[i], &to, 1, 1);
		kt_until(told_after(fd, i ? asked[i - 1].cookie : 0, &asked[i]));
		r.wanted = i == PEERS - 1;
	}
	expired = kt_number("b", NODE, "questions-expired");
	more[0] = kt_watching("a");
	kt_want(more[0], &at, 1, 1);
	kt_until(told_after(fd, asked[PEERS - 1].cookie, &first));
	while (answer_with(fd, asked[left].cookie, NULL)) /* but for the one that made way */
		left++;
	assert_in_range(left, 0, 1);
	more[1] = kt_watching("a");
	kt_want(more[1], &at, 1, 1);
	kt_until(told_after(fd, first.cookie, &got));
	for (int i = 0; i < PEERS; i++)
		gone += !!answer_with(fd, asked[i].cookie, &got);
	assert_int_equal(gone, 2);
	assert_int_equal(kt_number("b", NODE, "questions-expired"), expired);
	for (int i = 0; i < PEERS; i++)
		close(peer[i]);
	close(more[0]);
	close(more[1]);
	close(fd);
	kt_relay_end(&r);
	kt_becomes(kt_parameter("held_bytes"), held, held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_counting_test(test_questions_that_nobody_asks_again),
		kt_counting_test(test_a_peer_has_no_more_than_its_share),
		kt_test(test_one_peers_questions),
		kt_test(test_many_peers_questions),
		kt_test(test_questions_of_who_has_gone),
		kt_test(test_questions_that_are_asked_again),
		kt_counting_test(test_questions_left_over),
	};

	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
