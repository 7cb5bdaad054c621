/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections end: by shutdown() each way, by close() with and without bytes that nobody has read,
 * by the death of a program or of a node. What was sent before arrives, and what went wrong is
 * told.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ktest.h"

#define MIB   (1u << 20)
#define PAIRS 4
#define SENDS 300

static uint8_t bytes[MIB];

static void test_shutdown_of_sending(void **state)
{
	char byte = 0;

	kt_each_connection_type(type) {
		struct kt_pair p = kt_connection(*type);

		assert_int_equal(send(p.a, "x", 1, 0), 1);
		assert_int_equal(shutdown(p.a, SHUT_WR), 0);
		assert_int_equal(shutdown(p.a, SHUT_WR), 0);
		kt_count_signal(SIGPIPE, 0);
		kt_refused(send(p.a, "x", 1, 0), EPIPE);
		assert_int_equal(kt_signals, 1);
		kt_refused(send(p.a, "x", 1, MSG_NOSIGNAL), EPIPE);
		assert_int_equal(kt_signals, 1);
		assert_int_equal(recv(p.b, &byte, 1, 0), 1); /* what came before */
		assert_int_equal(recv(p.b, &byte, 1, 0), 0);
		assert_int_equal(recv(p.b, &byte, 1, 0), 0);
		assert_int_equal(kt_events(p.b, POLLIN | POLLRDHUP | POLLOUT),
				 POLLIN | POLLRDHUP | POLLOUT);
		assert_int_equal(send(p.b, "y", 1, 0), 1); /* the other way is open */
		assert_int_equal(recv(p.a, &byte, 1, 0), 1);
		assert_int_equal(byte, 'y');
		assert_int_equal(shutdown(p.b, SHUT_WR), 0);
		assert_int_equal(recv(p.a, &byte, 1, 0), 0);
		assert_int_equal(kt_events(p.a, POLLIN | POLLRDHUP), POLLIN | POLLRDHUP | POLLHUP);
		kt_close(&p);
	}
}

static long receive_one(void *arg)
{
	char byte;
	ssize_t n = recv(*(int *)arg, &byte, 1, 0);

	return n < 0 ? -errno : n;
}

static void test_shutdown_of_receiving(void **state)
{
	char byte = 0;

	kt_each_connection_type(type) {
		struct kt_pair p = kt_connection(*type);
		struct kt_thread t;

		kt_start(&t, receive_one, &p.a);
		usleep(30000);
		assert_int_equal(shutdown(p.a, SHUT_RD), 0);
		assert_int_equal(kt_join(&t), 0);
		assert_int_equal(send(p.a, "x", 1, 0), 1);
		assert_int_equal(recv(p.b, &byte, 1, 0), 1);
		assert_int_equal(send(p.b, "y", 1, 0), 1); /* nobody reads it: reset */
		kt_refused(recv(p.b, &byte, 1, 0), ECONNRESET);
		kt_close(&p);
	}
}

static long send_until_refused(void *arg)
{
	ssize_t n;

	do
		n = send(*(int *)arg, bytes, 1000, MSG_NOSIGNAL);
	while (n == 1000);
	return n < 0 ? -errno : n;
}

/* A thread that waits for room is told, and nothing is sent behind the end. */
static void test_shutdown_under_a_sender(void **state)
{
	kt_each_connection_type(type) {
		struct kt_pair p = kt_connection(*type);
		int room = 4096;
		struct kt_thread t;
		ssize_t n;

		setsockopt(p.a, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
		kt_link_of_b("down");
		kt_start(&t, send_until_refused, &p.a);
		usleep(100000);
		assert_int_equal(shutdown(p.a, SHUT_WR), 0);
		assert_int_equal(-kt_join(&t), EPIPE);
		kt_link_of_b("up");
		do
			n = recv(p.b, bytes, 1000, 0);
		while (n > 0);
		assert_int_equal(n, 0);
		usleep(50000);
		assert_int_equal(kt_error(p.a), 0);
		kt_close(&p);
	}
}

static void test_close_with_bytes_unread(void **state)
{
	char byte;

	kt_each_connection_type(type) {
		for (int half = 0; half < 2; half++) {
			struct kt_pair p = kt_connection(*type);

			assert_int_equal(send(p.b, "ab", 2, 0), 2);
			assert_true(kt_events(p.a, POLLIN) & POLLIN);
			if (half)
				assert_int_equal(shutdown(p.a, SHUT_WR), 0);
			close(p.a);
			kt_until(kt_events(p.b, POLLIN) & POLLERR);
			kt_refused(recv(p.b, &byte, 1, 0), ECONNRESET);
			assert_int_equal(recv(p.b, &byte, 1, 0), 0);
			kt_count_signal(SIGPIPE, 0);
			kt_refused(send(p.b, "x", 1, 0), EPIPE);
			assert_int_equal(kt_signals, 1);
			close(p.b);
		}
	}
}

/* What was received before the reset is given first; the error is told once, not lost. */
static void test_bytes_before_a_reset(void **state)
{
	const struct linger none = {.l_onoff = 1};
	char got[10];

	kt_each_connection_type(type) {
		struct kt_pair p = kt_connection(*type);

		assert_int_equal(setsockopt(p.a, SOL_SOCKET, SO_LINGER, &none, sizeof(none)), 0);
		assert_int_equal(send(p.a, "abc", 3, 0), 3);
		close(p.a); /* SO_LINGER of 0 s: a reset */
		while (!(kt_events(p.b, POLLIN) & POLLERR))
			usleep(1000);
		assert_int_equal(recv(p.b, got, sizeof(got), 0), 3);
		kt_refused(recv(p.b, got, sizeof(got), 0), ECONNRESET);
		assert_int_equal(recv(p.b, got, sizeof(got), 0), 0);
		close(p.b);
	}
}

static long take_all_late(void *arg)
{
	long sum = 0;
	ssize_t n;

	usleep(200000);
	while ((n = recv(*(int *)arg, bytes, sizeof(bytes), 0)) > 0)
		sum += n;
	return n < 0 ? -errno : sum;
}

/* close() waits for what is under way, but no longer than it is told to. */
static void test_linger(void **state)
{
	const struct linger some = {.l_onoff = 1, .l_linger = 1};
	struct kt_pair p = kt_connection(SOCK_STREAM);
	int room = 4 * MIB;
	struct kt_thread t;
	uint64_t begin;

	setsockopt(p.a, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	setsockopt(p.a, SOL_SOCKET, SO_LINGER, &some, sizeof(some));
	assert_int_equal(send(p.a, bytes, 100000, MSG_DONTWAIT), 100000);
	kt_start(&t, take_all_late, &p.b);
	close(p.a);
	assert_int_equal(kt_join(&t), 100000);
	close(p.b);

	p = kt_connection(SOCK_STREAM);
	setsockopt(p.a, SOL_SOCKET, SO_LINGER, &some, sizeof(some));
	kt_link_of_b("down");
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	begin = kt_now_ns();
	close(p.a);
	assert_in_range(kt_now_ns() - begin, 900000000, KT_SOON_NS);
	kt_link_of_b("up");
	assert_int_equal(recv(p.b, bytes, 2, 0), 1); /* which does not keep it from arriving */
	assert_int_equal(recv(p.b, bytes, 2, 0), 0);
	close(p.b);
}

/* A long message that was sent before the end arrives, though both sides have said their end and
 * the sender is closed: its bytes are fetched afterwards. */
static void test_close_before_the_bytes_are_fetched(void **state)
{
	kt_each_connection_type(type) {
		int listener = kt_listener(*type, 1), a = kt_open("a", *type), b;
		struct sockaddr_beowire at = kt_at(listener);
		int room = 4 * MIB;
		size_t sum = 0;
		ssize_t n;

		assert_int_equal(kt_connect(a, &at), 0);
		b = accept(listener, NULL, NULL);
		setsockopt(b, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
		kt_option(b, BEOWIRE_EAGER_MAX, 1000);
		kt_option(b, BEOWIRE_COPY_MAX, (int)MIB);
		assert_int_equal(shutdown(a, SHUT_WR), 0);
		assert_int_equal(recv(b, bytes, 1, 0), 0);
		kt_fill(bytes, 300000, 5);
		assert_int_equal(send(b, bytes, 300000, 0), 300000);
		assert_int_equal(shutdown(b, SHUT_WR), 0);
		usleep(100000); /* the end is acknowledged */
		close(b);
		usleep(100000);
		memset(bytes, 0, 300000);
		while ((n = recv(a, bytes + sum, 300000 - sum, 0)) > 0)
			sum += (size_t)n;
		assert_int_equal(n, 0);
		assert_int_equal(sum, 300000);
		assert_true(kt_filled(bytes, 300000, 5));
		close(a);
		close(listener);
	}
}

static void test_peer_is_killed(void **state)
{
	char byte;

	kt_each_connection_type(type) {
		struct kt_pair p = kt_connection(*type);
		pid_t pid = fork();

		if (pid == 0)
			pause();
		assert_int_equal(send(p.a, "x", 1, 0), 1); /* which it has not read */
		assert_int_equal(kt_events(p.b, POLLIN), POLLIN);
		close(p.b);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		kt_refused(recv(p.a, &byte, 1, 0), ECONNRESET);
		kt_refused(send(p.a, "x", 1, MSG_NOSIGNAL), EPIPE);
		close(p.a);

		p = kt_connection(*type);
		pid = fork();
		if (pid == 0)
			pause();
		close(p.b);
		kill(pid, SIGKILL); /* with nothing unread it is an end like others */
		waitpid(pid, NULL, 0);
		assert_int_equal(recv(p.a, &byte, 1, 0), 0);
		close(p.a);
	}
}

static void test_peer_vanishes(void **state)
{
	int listener = kt_listener(SOCK_STREAM, 1), a = kt_open("a", SOCK_STREAM), b;
	struct sockaddr_beowire at = kt_at(listener);
	struct kt_thread t;

	kt_option(a, BEOWIRE_DEAD_MS, 3000); /* a busy machine stands still for less */
	assert_int_equal(kt_connect(a, &at), 0);
	b = accept(listener, NULL, NULL);
	kt_link_of_b("down");
	kt_start(&t, receive_one, &a);
	assert_int_equal(send(a, "x", 1, 0), 1);
	assert_int_equal(-kt_join(&t), ETIMEDOUT);
	kt_refused(send(a, "x", 1, MSG_NOSIGNAL), EPIPE);
	kt_link_of_b("up");
	close(a);
	close(b);
	close(listener);
}

/* Also to a thread that wakes up while the sends end, one after another, before the connection. */
static void test_that_a_peer_vanished_is_told_once(void **state)
{
	int listener = kt_listener(SOCK_STREAM, PAIRS), a[PAIRS], b[PAIRS];
	struct sockaddr_beowire at = kt_at(listener);
	struct kt_thread t[PAIRS];
	char byte;

	for (int i = 0; i < PAIRS; i++) {
		a[i] = kt_open("a", SOCK_STREAM);
		kt_option(a[i], BEOWIRE_DEAD_MS, 10000); /* all sends begin before */
		assert_int_equal(kt_connect(a[i], &at), 0);
		b[i] = accept(listener, NULL, NULL);
	}
	kt_link_of_b("down");
	for (int i = 0; i < PAIRS; i++)
		kt_start(&t[i], receive_one, &a[i]);
	for (int i = 0; i < PAIRS * SENDS; i++)
		assert_int_equal(send(a[i % PAIRS], "x", 1, MSG_DONTWAIT), 1);
	for (int i = 0; i < PAIRS; i++) {
		assert_int_equal(-kt_join(&t[i]), ETIMEDOUT);
		assert_int_equal(recv(a[i], &byte, 1, 0), 0);
		close(a[i]);
		close(b[i]);
	}
	kt_link_of_b("up");
	close(listener);
}

static void test_a_waiting_send_is_told_once_that_its_peer_vanished(void **state)
{
	int listener = kt_listener(SOCK_STREAM, 1), a = kt_open("a", SOCK_STREAM), b;
	struct sockaddr_beowire at = kt_at(listener);
	char byte;

	kt_option(a, BEOWIRE_DEAD_MS, 3000);
	assert_int_equal(kt_connect(a, &at), 0);
	b = accept(listener, NULL, NULL);
	kt_link_of_b("down");
	kt_refused(send(a, bytes, MIB, 0), ETIMEDOUT);
	assert_int_equal(recv(a, &byte, 1, 0), 0);
	assert_int_equal(kt_error(a), 0);
	kt_link_of_b("up");
	close(a);
	close(b);
	close(listener);
}

static void test_shared_by_processes(void **state)
{
	struct kt_pair p = kt_connection(SOCK_STREAM);
	char byte = 0;
	int status;

	if (fork() == 0)
		_exit(send(p.a, "c", 1, 0) != 1); /* its end is not the connection's */
	wait(&status);
	assert_int_equal(status, 0);
	assert_int_equal(recv(p.b, &byte, 1, 0), 1);
	kt_refused(recv(p.b, &byte, 1, MSG_DONTWAIT), EAGAIN);
	assert_int_equal(send(p.b, "d", 1, 0), 1);
	assert_int_equal(recv(p.a, &byte, 1, 0), 1);
	kt_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_shutdown_of_sending),
		kt_test(test_shutdown_of_receiving),
		kt_test(test_shutdown_under_a_sender),
		kt_test(test_close_with_bytes_unread),
		kt_test(test_bytes_before_a_reset),
		kt_test(test_linger),
		kt_test(test_close_before_the_bytes_are_fetched),
		kt_test(test_peer_is_killed),
		kt_test(test_peer_vanishes),
		kt_test(test_that_a_peer_vanished_is_told_once),
		kt_test(test_a_waiting_send_is_told_once_that_its_peer_vanished),
		kt_test(test_shared_by_processes),
	};

	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
