/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * More callers than a port has memory for: those that its program has nothing to do with make room
 * for others, and for whom the program itself wants to speak with; the program notices nothing.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kuser.h"

#define CROWD	600
#define FEW	8
#define CALLERS 250	  /* they fit into it */
#define CALLED	260	  /* beside them not all of these do */
#define IDLE_US 1100000	  /* who is silent for that long may go: guest.c of the engine */
#define MEMORY	"1048576" /* not half of the crowd fits into that */

static int crowd[CROWD];

static int open_many(void **state)
{
	const struct rlimit files = {4096, 4096};

	if (setrlimit(RLIMIT_NOFILE, &files))
		return -1;
	kt_settings("memory_max", MEMORY);
	return 0;
}

static int close_all(void **state)
{
	kt_settings("memory_max", "67108864");
	return kt_end(state);
}

static bool came[CROWD];
static uint32_t calls[CROWD];		      /* how often each has called, and */
static uint32_t number[CROWD], before[CROWD]; /* as what it is known, and was before */

static void say(uint16_t i, const struct sockaddr_beowire *at)
{
	calls[i]++;
	assert_int_equal(kt_send_to(crowd[i], &i, sizeof(i), at), sizeof(i));
}

/* How many have not been heard yet. Who was sent away before he had said anything calls again. */
static uint32_t missing(const struct sockaddr_beowire *at)
{
	uint32_t sum = 0;

	for (uint16_t i = 0; i < CROWD; i++) {
		if (!came[i] && kt_error(crowd[i]))
			say(i, at);
		sum += !came[i];
	}
	return sum;
}

static uint32_t unheard(int fd, const struct sockaddr_beowire *at)
{
	uint16_t n;

	while (recv(fd, &n, sizeof(n), MSG_DONTWAIT) == sizeof(n)) {
		assert_in_range(n, 0, CROWD - 1);
		came[n] = true;
	}
	assert_int_equal(errno, EAGAIN); /* of no stranger's end */
	return missing(at);
}

/* One socket of b's after another says its number to a's, and is silent once that was heard. */
static void say_all(int fd)
{
	struct sockaddr_beowire at = kt_at(fd);

	memset(came, 0, sizeof(came));
	for (uint16_t i = 0; i < CROWD; i++) {
		crowd[i] = kt_bound("b", SOCK_RDM, 0);
		say(i, &at);
	}
	kt_becomes(unheard(fd, &at), 0, 0);
}

static void leave_all(void)
{
	for (int i = 0; i < CROWD; i++)
		close(crowd[i]);
}

/* Both ways, between sockets that have met. */
static void talk(int a, int b)
{
	struct sockaddr_beowire at_a = kt_at(a), at_b = kt_at(b);
	char byte;

	assert_int_equal(kt_send_to(a, "x", 1, &at_b), 1);
	kt_until(recv(b, &byte, 1, MSG_DONTWAIT) == 1);
	assert_int_equal(byte, 'x');
	assert_int_equal(kt_send_to(b, "y", 1, &at_a), 1);
	kt_until(recv(a, &byte, 1, MSG_DONTWAIT) == 1);
	assert_int_equal(byte, 'y');
}

static int is_up(int fd, const struct sockaddr_beowire *who)
{
	union {
		struct sockaddr_beowire addr;
		int answer;
	} u = {.addr = *who};
	socklen_t len = sizeof(u);

	assert_int_equal(getsockopt(fd, SOL_BEOWIRE, BEOWIRE_PEER_UP, &u, &len), 0);
	return u.answer;
}

/* Strangers come and go; whom the program has answered stays, silent or not. However many
 * have called, it reaches whom it wants. */
static void test_whom_the_program_means_stays(void **state)
{
	int fd = kt_bound("a", SOCK_RDM, 0);
	int friend = kt_bound("b", SOCK_RDM, 0), other[FEW];
	struct sockaddr_beowire at = kt_at(fd), at_friend = kt_at(friend);
	char byte;

	assert_int_equal(kt_send_to(friend, "f", 1, &at), 1); /* it called first */
	assert_int_equal(recv(fd, &byte, 1, 0), 1);
	assert_int_equal(kt_send_to(fd, "g", 1, &at_friend), 1);
	assert_int_equal(recv(friend, &byte, 1, 0), 1);
	say_all(fd);
	assert_in_range(kt_counters(fd).evicted, CROWD / 4, UINT64_MAX);
	assert_int_equal(is_up(fd, &at_friend), 1);
	assert_int_equal(kt_error(friend), 0);
	assert_int_equal(kt_error(fd), 0);
	talk(fd, friend);
	for (int i = 0; i < FEW; i++) {
		other[i] = kt_bound("b", SOCK_RDM, 0);
		talk(fd, other[i]);
		close(other[i]);
	}
	leave_all();
	close(friend);
	close(fd);
}

enum known { NOT_AT_ALL, BY_AN_ANSWER, BY_CONNECT };

/* A caller whose message fd's program has taken gives fd up, as it hears nothing of it for long,
 * and calls anew, which resets what fd has of it. Is fd's program told of the end? */
static int reset(enum known known)
{
	int fd = kt_bound("a", SOCK_RDM, 0), caller = kt_open("b", SOCK_RDM), error = 0;
	struct sockaddr_beowire at = kt_at(fd), at_caller;
	char byte;

	kt_option(caller, BEOWIRE_DEAD_MS, 1000);
	assert_int_equal(kt_send_to(caller, "x", 1, &at), 1);
	assert_int_equal(recv(fd, &byte, 1, 0), 1);
	at_caller = kt_at(caller);
	if (known == BY_CONNECT)
		assert_int_equal(kt_connect(fd, &at_caller), 0);
	if (known == BY_AN_ANSWER) {
		assert_int_equal(kt_send_to(fd, "a", 1, &at_caller), 1);
		assert_int_equal(recv(caller, &byte, 1, 0), 1);
	}
	kt_shell("ip -n a link set eth0 down");
	assert_int_equal(kt_send_to(caller, "y", 1, &at), 1);
	kt_becomes(kt_error(caller), ETIMEDOUT, ETIMEDOUT);
	kt_shell("ip -n a link set eth0 up");
	assert_int_equal(kt_send_to(caller, "z", 1, &at), 1);
	while (recv(fd, &byte, 1, 0) < 0)
		error = errno;
	assert_int_equal(byte, 'z');
	kt_becomes(kt_counters(fd).peers, 1, 1); /* the one that was reset has gone */
	if (!error)
		error = kt_error(fd);
	close(caller);
	close(fd);
	return error;
}

/* Whoever calls could end the calls of a program otherwise, which has not spoken to him. */
static void test_a_strangers_end_is_not_told(void **state)
{
	assert_int_equal(reset(NOT_AT_ALL), 0);
	assert_int_equal(reset(BY_AN_ANSWER), ECONNRESET);
	assert_int_equal(reset(BY_CONNECT), ECONNRESET);
}

/* An accepted connection stays, though nothing is said on it; whom the listener refused goes. */
static void test_a_connection_stays(void **state)
{
	int listener, fd = kt_open("b", SOCK_SEQPACKET), one, last[2];
	struct sockaddr_beowire at;
	char byte;

	listener = kt_bound("a", SOCK_SEQPACKET, 0);
	assert_int_equal(listen(listener, 1), 0);
	at = kt_at(listener);
	assert_int_equal(kt_connect(fd, &at), 0);
	one = accept(listener, NULL, NULL);
	assert_true(one >= 0);
	for (int i = 0; i < 2; i++) { /* they fill the backlog */
		last[i] = kt_open("b", SOCK_SEQPACKET);
		assert_int_equal(kt_connect(last[i], &at), 0);
	}
	for (int i = 0; i < CROWD; i++) {
		crowd[i] = kt_open("b", SOCK_SEQPACKET);
		assert_int_equal(kt_connect(crowd[i], &at), -ECONNREFUSED);
	}
	assert_in_range(kt_counters(one).evicted, CROWD / 4, CROWD);
	assert_int_equal(send(one, "x", 1, 0), 1);
	assert_int_equal(recv(fd, &byte, 1, 0), 1);
	assert_int_equal(send(fd, "y", 1, 0), 1);
	assert_int_equal(recv(one, &byte, 1, 0), 1);
	leave_all();
	close(last[0]);
	close(last[1]);
	close(one);
	close(fd);
	close(listener);
}

/* The callers have the memory that is theirs, and nobody has been refused any yet: whom the program
 * calls has the rest, and then their places, though nothing has told the engine before that there
 * is no more. */
static void test_room_is_made(void **state)
{
	int fd = kt_bound("a", SOCK_SEQPACKET, 0), listener = kt_listener(SOCK_SEQPACKET, 1);
	struct sockaddr_beowire at = kt_at(fd);
	int called[CALLED];

	for (int i = 0; i < CALLERS; i++) {
		crowd[i] = kt_open("b", SOCK_SEQPACKET);
		assert_int_equal(kt_connect(crowd[i], &at), -ECONNREFUSED);
	}
	for (int i = 0; i < CALLED; i++)
		called[i] = kt_bound("b", SOCK_SEQPACKET, 0);
	usleep(IDLE_US);
	kt_hold_workers(); /* who would tell it, as soon as peers get no more */
	assert_int_equal(kt_counters(fd).evicted, 0);
	for (int i = 0; i < CALLED; i++) {
		at = kt_at(called[i]);
		assert_int_equal(kt_connect(fd, &at), -ECONNREFUSED);
	}
	assert_in_range(kt_counters(fd).evicted, 1, CALLERS);
	at = kt_at(listener);
	assert_int_equal(kt_connect(fd, &at), 0);
	kt_release_workers();
	for (int i = 0; i < CALLED; i++)
		close(called[i]);
	for (int i = 0; i < CALLERS; i++)
		close(crowd[i]);
	close(fd);
	close(listener);
}

/* 0 or a positive errno. */
static int need(int fd, uint32_t peer, bool on)
{
	struct beowire_watch watch = {.peer = peer, .on = on};

	return ioctl(fd, BEOWIRE_IOC_NEED, &watch) ? errno : 0;
}

/* A call that began before its peer was sent away may be answered, and end by that: who then calls
 * again is known anew, and the program told that he had given up what it knows him by. */
static bool has_called_again(uint32_t peer)
{
	for (int i = 0; i < CROWD; i++)
		if (number[i] == peer || before[i] == peer)
			return calls[i] > 1;
	return false;
}

/* Takes what has come: who has called is needed no more. How many were told to have gone. */
static uint32_t take_and_leave(int fd)
{
	struct beowire_info info;
	uint32_t gone = 0;
	uint16_t n;

	while (kt_recv_info(fd, &n, sizeof(n), &info, MSG_DONTWAIT) == 0) {
		if (info.event == BEOWIRE_DOWN) {
			if (info.status != -ECONNRESET || !has_called_again(info.peer))
				assert_int_equal(info.status, -ENOBUFS);
			gone++;
			continue;
		}
		assert_int_equal(info.event, BEOWIRE_MESSAGE);
		assert_in_range(n, 0, CROWD - 1);
		came[n] = true;
		before[n] = number[n] == info.peer ? before[n] : number[n];
		number[n] = info.peer;
		assert_int_equal(need(fd, info.peer, false), 0);
	}
	return gone;
}

/* A program that is told of everybody by number, and needs few: these stay, whether it has spoken
 * to them or only said so, and of all others those that are wanted make room. It is told who. */
static void test_whom_the_program_needs_stays(void **state)
{
	int fd = kt_watching("a"), friend = kt_bound("b", SOCK_RDM, 0);
	int other = kt_bound("b", SOCK_RDM, 0), last = kt_bound("b", SOCK_RDM, 0);
	struct sockaddr_beowire at = kt_at(fd), at_friend = kt_at(friend), at_other = kt_at(other);
	struct sockaddr_beowire at_last = kt_at(last);
	struct beowire_info info, told, to_friend = {0};
	uint32_t gone = 0;
	char byte;

	assert_int_equal(kt_send_to(friend, "f", 1, &at), 1);
	assert_int_equal(kt_recv_info(fd, &byte, 1, &info, 0), 0);
	assert_int_equal(need(fd, info.peer, false), 0);
	to_friend.peer = info.peer;
	assert_int_equal(kt_send_info(fd, "g", 1, NULL, &to_friend, 0), 0);
	assert_int_equal(recv(friend, &byte, 1, 0), 1);
	assert_int_equal(kt_send_to(other, "o", 1, &at), 1);
	assert_int_equal(kt_recv_info(fd, &byte, 1, &told, 0), 0);
	assert_int_equal(need(fd, told.peer, false), 0);
	assert_int_equal(need(fd, told.peer, true), 0);
	assert_int_equal(need(fd, told.peer + 1000, true), ENOTCONN);
	/* Whom it has spoken to last, it finds without looking. */
	assert_int_equal(kt_send_to(last, "l", 1, &at), 1);
	assert_int_equal(kt_recv_info(fd, &byte, 1, &told, 0), 0);
	assert_int_equal(kt_send_to(fd, "m", 1, &at_last), 1);
	assert_int_equal(need(fd, told.peer, false), 0);
	assert_int_equal(kt_send_to(fd, "n", 1, &at_last), 1);
	memset(came, 0, sizeof(came));
	memset(calls, 0, sizeof(calls));
	memset(number, 0, sizeof(number));
	memset(before, 0, sizeof(before));
	for (uint16_t i = 0; i < CROWD; i++) {
		crowd[i] = kt_bound("b", SOCK_RDM, 0);
		say(i, &at);
	}
	kt_becomes((gone += take_and_leave(fd), missing(&at)), 0, 0);
	assert_in_range(gone, CROWD / 5, UINT32_MAX);
	assert_int_equal(is_up(fd, &at_friend), 1);
	assert_int_equal(is_up(fd, &at_other), 1);
	assert_int_equal(is_up(fd, &at_last), 1);
	leave_all();
	close(friend);
	close(other);
	close(last);
	close(fd);
}

#undef kt_test
#define kt_test(f) cmocka_unit_test_setup_teardown(f, open_many, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_whom_the_program_means_stays),
		kt_test(test_whom_the_program_needs_stays),
		kt_test(test_a_strangers_end_is_not_told),
		kt_test(test_a_connection_stays),
		kt_test(test_room_is_made),
	};

	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
