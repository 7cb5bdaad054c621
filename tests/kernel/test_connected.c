/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Data of connections: what send and receive calls on SOCK_SEQPACKET and SOCK_STREAM promise,
 * their flags, waiting and time limits, and that every byte arrives once and in order.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ktest.h"

#define MIB (1u << 20)

static uint8_t bytes[4 * MIB], got[4 * MIB];

static void patience_ms(int fd, int name, int ms)
{
	const struct timeval t = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	assert_int_equal(setsockopt(fd, SOL_SOCKET, name, &t, sizeof(t)), 0);
}

/* recvmsg() into got: its result, and the flags that it sets. */
static ssize_t receive(int fd, size_t n, int flags, int *set)
{
	struct iovec part = {got, n};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t length = recvmsg(fd, &m, flags);

	*set = m.msg_flags;
	return length;
}

/* ---- bytes and records ---- */

/* Of a stream the pieces that are taken need not be those that were sent. */
static void test_parts_of_a_stream(void **state)
{
	static const uint32_t sent[] = {1, 5, 1000, 1, 16384, 16385, 60000, 3, 200000};
	struct kt_pair p = kt_connection(SOCK_STREAM);
	size_t put = 0, taken = 0;
	uint64_t random = 4;
	int room = 4 * MIB;

	setsockopt(p.a, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	kt_fill(bytes, MIB, 1);
	for (int i = 0; i < 9; put += sent[i++])
		assert_int_equal(send(p.a, bytes + put, sent[i], MSG_DONTWAIT), sent[i]);
	assert_int_equal(shutdown(p.a, SHUT_WR), 0);
	while (taken < put) {
		size_t most = 1 + kt_random(&random) % 30000;
		ssize_t n = recv(p.b, got + taken, most, 0);

		assert_in_range(n, 1, most);
		taken += (size_t)n;
	}
	assert_int_equal(taken, put);
	assert_true(kt_filled(got, put, 1));
	assert_int_equal(recv(p.b, got, 1, 0), 0);
	kt_close(&p);
}

static void test_records(void **state)
{
	static const uint32_t sizes[] = {1, 0, 5000, 0, 70000, 7};
	struct kt_pair p = kt_connection(SOCK_SEQPACKET);
	int set, room = MIB;

	setsockopt(p.a, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	for (int i = 0; i < 6; i++) {
		kt_fill(bytes, sizes[i], (uint32_t)i);
		assert_int_equal(send(p.a, bytes, sizes[i], MSG_DONTWAIT), sizes[i]);
	}
	for (int i = 0; i < 6; i++) {
		assert_int_equal(receive(p.b, MIB, 0, &set), sizes[i]);
		assert_int_equal(set & (MSG_EOR | MSG_TRUNC), MSG_EOR);
		assert_true(kt_filled(got, sizes[i], (uint32_t)i));
	}
	kt_close(&p);
}

static void test_cut_records(void **state)
{
	struct kt_pair p = kt_connection(SOCK_SEQPACKET);
	const uint32_t sizes[] = {100, 50000};
	int set;

	for (int i = 0; i < 2; i++) { /* short, and one whose bytes are fetched */
		kt_fill(bytes, sizes[i], 3);
		for (int k = 0; k < 2; k++)
			assert_int_equal(send(p.a, bytes, sizes[i], MSG_DONTWAIT), sizes[i]);
		assert_int_equal(receive(p.b, 10, 0, &set), 10);
		assert_int_equal(set & (MSG_EOR | MSG_TRUNC), MSG_EOR | MSG_TRUNC);
		assert_true(kt_filled(got, 10, 3));
		assert_int_equal(receive(p.b, 10, MSG_TRUNC, &set), sizes[i]);
		assert_true(set & MSG_TRUNC);
	}
	kt_refused(recv(p.b, got, 10, MSG_DONTWAIT), EAGAIN); /* the rest is lost */
	kt_close(&p);
}

static void test_peek(void **state)
{
	const uint32_t sizes[] = {100, 50000};

	kt_each_connection_type(type) {
		struct kt_pair p = kt_connection(*type);

		for (int i = 0; i < 2; i++) {
			kt_fill(bytes, sizes[i], 4);
			assert_int_equal(send(p.a, bytes, sizes[i], MSG_DONTWAIT), sizes[i]);
			for (int k = 0; k < 3; k++) {
				memset(got, 0, 20);
				assert_int_equal(recv(p.b, got, 20, MSG_PEEK), 20);
				assert_true(kt_filled(got, 20, 4));
			}
			assert_int_equal(recv(p.b, got, sizes[i], MSG_WAITALL), sizes[i]);
			assert_true(kt_filled(got, sizes[i], 4));
		}
		kt_refused(recv(p.b, got, 1, MSG_PEEK | MSG_DONTWAIT), EAGAIN);
		kt_close(&p);
	}
}

static void test_rows(void **state)
{
	struct kt_pair p = kt_connection(SOCK_SEQPACKET);
	struct mmsghdr out[8] = {0}, in[8] = {0};
	struct iovec from[8], to[8];
	int taken = 0, n;

	for (int i = 0; i < 8; i++) {
		from[i] = (struct iovec){bytes + i * 1000, (size_t)(i + 1) * 100};
		to[i] = (struct iovec){got + i * 1000, 1000};
		kt_fill(from[i].iov_base, from[i].iov_len, (uint32_t)i);
		out[i].msg_hdr = (struct msghdr){.msg_iov = &from[i], .msg_iovlen = 1};
		in[i].msg_hdr = (struct msghdr){.msg_iov = &to[i], .msg_iovlen = 1};
	}
	assert_int_equal(sendmmsg(p.a, out, 8, 0), 8);
	while (taken < 8) {
		n = recvmmsg(p.b, in + taken, (unsigned)(8 - taken), MSG_WAITFORONE, NULL);
		assert_in_range(n, 1, 8 - taken);
		taken += n;
	}
	for (int i = 0; i < 8; i++) {
		assert_int_equal(in[i].msg_len, from[i].iov_len);
		assert_true(kt_filled(to[i].iov_base, from[i].iov_len, (uint32_t)i));
	}
	assert_int_equal(shutdown(p.a, SHUT_WR), 0);
	kt_refused(sendmmsg(p.a, out, 8, MSG_NOSIGNAL), EPIPE);
	kt_close(&p);
}

/* Every way to hand bytes over: scattered, read() and write(), from a file. */
static void test_every_way(void **state)
{
	struct kt_pair p = kt_connection(SOCK_STREAM);
	struct iovec parts[3] = {{bytes, 10}, {bytes + 10, 0}, {bytes + 10, 90000}};
	struct iovec places[2] = {{got, 7}, {got + 7, 89}};
	int file = memfd_create("file", 0), pipes[2], room = MIB;
	off_t at = 0;

	setsockopt(p.a, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	kt_fill(bytes, 90010, 6);
	assert_int_equal(fcntl(p.a, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(writev(p.a, parts, 3), 90010);
	assert_int_equal(readv(p.b, places, 2), 96);
	assert_int_equal(read(p.b, got + 96, 4), 4);
	assert_int_equal(recv(p.b, got + 100, 89910, MSG_WAITALL), 89910);
	assert_true(kt_filled(got, 90010, 6));
	assert_int_equal(write(p.a, bytes, 3), 3);
	assert_int_equal(send(p.a, bytes + 3, 3, MSG_MORE), 3);
	assert_int_equal(recv(p.b, got, 6, MSG_WAITALL), 6); /* though nothing follows */
	assert_true(kt_filled(got, 6, 6));
	assert_int_equal(write(file, bytes, 30000), 30000);
	assert_int_equal(sendfile(p.a, file, &at, 30000), 30000);
	assert_int_equal(recv(p.b, got, 30000, MSG_WAITALL), 30000);
	assert_true(kt_filled(got, 30000, 6));
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(send(p.a, bytes, 500, 0), 500);
	assert_int_equal(splice(p.b, NULL, pipes[1], NULL, 500, 0), 500);
	assert_int_equal(read(pipes[0], got, 500), 500);
	assert_true(kt_filled(got, 500, 6));
	kt_close(&p);
}

static void test_bad_memory(void **state)
{
	kt_each_connection_type(type) {
		struct kt_pair p = kt_connection(*type);

		kt_refused(send(p.a, (void *)8, 10, 0), EFAULT);
		kt_refused(send(p.a, (void *)8, 50000, 0), EFAULT);
		for (int i = 0; i < 2; i++) {
			uint32_t n = i ? 50000 : 10;

			kt_fill(bytes, n, 2);
			assert_int_equal(send(p.a, bytes, n, MSG_DONTWAIT), n);
			kt_refused(recv(p.b, (void *)8, n, 0), EFAULT);
			assert_int_equal(recv(p.b, got, n, MSG_WAITALL), n); /* not lost */
			assert_true(kt_filled(got, n, 2));
		}
		kt_close(&p);
	}
}

/* ---- both ways at once, all lengths ---- */

struct side {
	int fd, type;
	uint32_t seed;
};

static uint32_t length(uint32_t seed, uint32_t i)
{
	return 1 + (seed + i) * 2654435761u % (i % 20 ? 6000 : 300000);
}

#define EXCHANGED 150

static long send_all(void *arg)
{
	const struct side *s = arg;
	uint8_t *from = malloc(300001);
	uint32_t i;

	for (i = 0; i < EXCHANGED; i++) {
		uint32_t n = length(s->seed, i);

		kt_fill(from, n, s->seed + i);
		if (send(s->fd, from, n, 0) != n)
			break;
	}
	free(from);
	return i;
}

static long receive_all(void *arg)
{
	const struct side *s = arg;
	uint8_t *to = malloc(300001);
	uint32_t i;

	for (i = 0; i < EXCHANGED; i++) {
		uint32_t n = length(s->seed, i);

		if (recv(s->fd, to, s->type == SOCK_STREAM ? n : 300001, MSG_WAITALL) != n ||
		    !kt_filled(to, n, s->seed + i))
			break;
	}
	free(to);
	return i;
}

static void test_both_ways_at_once(void **state)
{
	kt_each_connection_type(type) {
		struct kt_pair p = kt_connection(*type);
		struct side one = {p.a, *type, 1000}, back = {p.b, *type, 2000};
		struct side other = {p.b, *type, 1000}, home = {p.a, *type, 2000};
		struct kt_thread t[4];

		kt_start(&t[0], send_all, &one);
		kt_start(&t[1], send_all, &back);
		kt_start(&t[2], receive_all, &other);
		kt_start(&t[3], receive_all, &home);
		for (int i = 0; i < 4; i++)
			assert_int_equal(kt_join(&t[i]), EXCHANGED);
		kt_close(&p);
		kt_becomes(kt_pinned(), 0, 0);
	}
}

/* A reader that is slower than its peer: bytes stay with the sender meanwhile, and none is lost. */
static void test_slow_reader(void **state)
{
	struct kt_pair p = kt_connection(SOCK_STREAM);
	struct side one = {p.a, SOCK_STREAM, 7}, other = {p.b, SOCK_STREAM, 7};
	struct kt_thread t;
	int room = 4096;

	setsockopt(p.b, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	kt_start(&t, send_all, &one);
	usleep(200000);
	assert_int_equal(receive_all(&other), EXCHANGED);
	assert_int_equal(kt_join(&t), EXCHANGED);
	kt_close(&p);
}

/* ---- waiting ---- */

static void test_waitall(void **state)
{
	struct kt_pair p = kt_connection(SOCK_STREAM);

	if (fork() == 0) {
		for (int i = 0; i < 5; i++) {
			usleep(30000);
			send(p.a, "abcd", 4, 0);
		}
		_exit(0);
	}
	assert_int_equal(recv(p.b, got, 20, MSG_WAITALL), 20);
	wait(NULL);
	assert_int_equal(send(p.a, "abc", 3, 0), 3);
	assert_int_equal(kt_events(p.b, POLLIN), POLLIN); /* it has come */
	kt_interrupt_in_ms(100, 0);
	assert_int_equal(recv(p.b, got, 20, MSG_WAITALL), 3); /* what there is, at a signal */
	assert_int_equal(send(p.a, "abc", 3, 0), 3);
	assert_int_equal(kt_events(p.b, POLLIN), POLLIN);
	patience_ms(p.b, SO_RCVTIMEO, 100);
	assert_int_equal(recv(p.b, got, 20, MSG_WAITALL), 3); /* at the time limit */
	patience_ms(p.b, SO_RCVTIMEO, 0);
	assert_int_equal(send(p.a, "abc", 3, 0), 3);
	assert_int_equal(shutdown(p.a, SHUT_WR), 0);
	assert_int_equal(recv(p.b, got, 20, MSG_WAITALL), 3); /* at the end */
	assert_int_equal(recv(p.b, got, 20, MSG_WAITALL), 0);
	kt_close(&p);
}

/* A time limit is one for the call, whatever drops in meanwhile. */
static void test_receiving_has_a_time_limit(void **state)
{
	kt_each_connection_type(type) {
		struct kt_pair p = kt_connection(*type);
		uint64_t begin = kt_now_ns();

		patience_ms(p.b, SO_RCVTIMEO, 100);
		kt_refused(recv(p.b, got, 1, 0), EAGAIN);
		assert_in_range(kt_now_ns() - begin, 50000000, KT_SOON_NS);
		kt_refused(recv(p.b, got, 1, MSG_DONTWAIT), EAGAIN);
		if (*type == SOCK_STREAM) {
			pid_t pid = fork();

			if (pid == 0)
				while (send(p.a, "x", 1, 0) == 1)
					usleep(20000);
			assert_true(kt_events(p.b, POLLIN) & POLLIN);
			begin = kt_now_ns();
			assert_in_range(recv(p.b, got, 1000, MSG_WAITALL), 1, 999);
			assert_in_range(kt_now_ns() - begin, 50000000, KT_SOON_NS);
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
		}
		kt_close(&p);
	}
}

static void test_sending_waits_for_room(void **state)
{
	kt_each_connection_type(type) {
		struct kt_pair p = kt_connection(*type);
		struct pollfd poller = {.fd = p.a, .events = POLLOUT};
		struct epoll_event event = {.events = EPOLLOUT | EPOLLET};
		int room = 4096, set = epoll_create1(0), status;
		uint64_t begin;
		size_t sum = 0;
		ssize_t n;

		setsockopt(p.a, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
		kt_link_of_b("down");
		while ((n = send(p.a, bytes, 1000, MSG_DONTWAIT)) > 0)
			sum += (size_t)n;
		assert_int_equal(errno, EAGAIN);
		assert_int_equal(poll(&poller, 1, 0), 0);
		assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, p.a, &event), 0);
		assert_int_equal(epoll_wait(set, &event, 1, 0), 0);
		patience_ms(p.a, SO_SNDTIMEO, 100);
		begin = kt_now_ns();
		kt_refused(send(p.a, "x", 1, 0), EAGAIN);
		assert_in_range(kt_now_ns() - begin, 50000000, KT_SOON_NS);
		patience_ms(p.a, SO_SNDTIMEO, 0);
		kt_interrupt_in_ms(50, 0);
		kt_refused(send(p.a, "x", 1, 0), EINTR);
		if (fork() == 0)
			_exit(send(p.a, "y", 1, 0) != 1); /* once there is room */
		usleep(50000);
		kt_link_of_b("up");
		assert_int_equal(epoll_wait(set, &event, 1, KT_SOON_MS), 1);
		assert_int_equal(event.events, EPOLLOUT);
		wait(&status);
		assert_int_equal(status, 0);
		for (size_t taken = 0; taken < sum + 1; taken += (size_t)n) {
			n = recv(p.b, got, 2000, 0);
			assert_true(n > 0);
		}
		assert_int_equal(got[0], *type == SOCK_STREAM ? got[0] : 'y');
		kt_close(&p);
		close(set);
	}
}

/* Of a long non-blocking send a stream takes as much as there is room for. */
static void test_part_is_sent(void **state)
{
	struct kt_pair p = kt_connection(SOCK_STREAM);
	int room = 100000;
	ssize_t n;

	setsockopt(p.a, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	kt_link_of_b("down");
	kt_fill(bytes, sizeof(bytes), 8);
	n = send(p.a, bytes, sizeof(bytes), MSG_DONTWAIT);
	assert_in_range(n, 100000, MIB);
	kt_refused(send(p.a, bytes, 1, MSG_DONTWAIT), EAGAIN);
	kt_link_of_b("up");
	assert_int_equal(recv(p.b, got, (size_t)n, MSG_WAITALL), n);
	assert_true(kt_filled(got, (size_t)n, 8));
	kt_close(&p);
}

static long receive_one(void *arg)
{
	char byte;
	ssize_t n = recv(*(int *)arg, &byte, 1, 0);

	return n < 0 ? -errno : byte;
}

/* A reader that sleeps keeps no other one waiting who does not want to wait. */
static void test_readers_do_not_hinder_each_other(void **state)
{
	kt_each_connection_type(type) {
		struct kt_pair p = kt_connection(*type);
		struct kt_thread t[2];

		kt_start(&t[0], receive_one, &p.b);
		usleep(50000);
		kt_refused(recv(p.b, got, 1, MSG_DONTWAIT), EAGAIN);
		kt_interrupt_in_ms(50, 0); /* of this thread or of that one */
		kt_until(kt_signals);
		patience_ms(p.b, SO_RCVTIMEO, 100);
		kt_refused(recv(p.b, got, 1, 0), EAGAIN);
		patience_ms(p.b, SO_RCVTIMEO, 0);
		kt_start(&t[1], receive_one, &p.b);
		usleep(50000);
		assert_int_equal(send(p.a, "x", 1, 0), 1);
		assert_int_equal(send(p.a, "y", 1, 0), 1);
		assert_int_equal(kt_join(&t[1]) == -EINTR || kt_join(&t[0]) > 0, 1);
		kt_close(&p);
	}
}

static void test_signals(void **state)
{
	kt_each_connection_type(type) {
		struct kt_pair p = kt_connection(*type);

		kt_interrupt_in_ms(50, 0);
		kt_refused(recv(p.b, got, 1, 0), EINTR);
		kt_interrupt_in_ms(50, SA_RESTART);
		if (fork() == 0) {
			usleep(150000);
			_exit(send(p.a, "r", 1, 0) != 1);
		}
		assert_int_equal(recv(p.b, got, 1, 0), 1);
		assert_int_equal(kt_signals, 1);
		wait(NULL);
		kt_close(&p);
	}
}

static void test_poll_and_epoll(void **state)
{
	kt_each_connection_type(type) {
		struct kt_pair p = kt_connection(*type);
		struct pollfd poller = {.fd = p.b, .events = POLLIN | POLLOUT | POLLRDHUP};
		struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET};
		int set = epoll_create1(0);

		assert_int_equal(poll(&poller, 1, 0), 1);
		assert_int_equal(poller.revents, POLLOUT);
		assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, p.b, &event), 0);
		assert_int_equal(epoll_wait(set, &event, 1, 0), 0);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(send(p.a, "x", 1, 0), 1);
			assert_int_equal(epoll_wait(set, &event, 1, KT_SOON_MS), 1);
			assert_int_equal(event.events, EPOLLIN);
			assert_int_equal(epoll_wait(set, &event, 1, 0), 0);
		}
		assert_int_equal(poll(&poller, 1, 0), 1);
		assert_int_equal(poller.revents, POLLIN | POLLOUT);
		close(p.a);
		assert_int_equal(epoll_wait(set, &event, 1, KT_SOON_MS), 1);
		assert_int_equal(event.events & ~EPOLLHUP, EPOLLIN | EPOLLRDHUP);
		assert_int_equal(recv(p.b, got, 1, 0), 1);
		assert_int_equal(recv(p.b, got, 1, 0), 1);
		assert_int_equal(recv(p.b, got, 1, 0), 0);
		close(set);
		close(p.b);
	}
}

/* ---- what goes wrong in the midst ---- */

/* A call that was killed has sent nothing: what follows it on the connection arrives. */
static void test_sender_is_killed_in_a_long_send(void **state)
{
	kt_each_connection_type(type) {
		struct kt_pair p = kt_connection(*type);
		pid_t pid = fork();

		if (pid == 0) {
			memset(bytes, 1, MIB);
			send(p.a, bytes, MIB, 0); /* nobody fetches it */
			_exit(0);
		}
		while (poll(&(struct pollfd){p.b, POLLIN, 0}, 1, KT_SOON_MS) != 1)
			;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		assert_int_equal(send(p.a, "after", 5, 0), 5);
		memset(got, 0, 6);
		assert_int_equal(recv(p.b, got, 5, 0), 5);
		assert_string_equal((char *)got, "after");
		kt_close(&p);
		kt_becomes(kt_pinned(), 0, 0);
	}
}

static long send_long(void *arg)
{
	ssize_t n = send(*(int *)arg, bytes, 2 * MIB, MSG_NOSIGNAL);

	return n < 0 ? -errno : n;
}

static void test_receiver_goes_in_a_long_send(void **state)
{
	kt_each_connection_type(type) {
		struct kt_pair p = kt_connection(*type);
		struct kt_thread t;

		memset(bytes, 1, 2 * MIB);
		kt_start(&t, send_long, &p.a);
		while (poll(&(struct pollfd){p.b, POLLIN, 0}, 1, KT_SOON_MS) != 1)
			;
		close(p.b); /* with bytes unread */
		assert_int_equal(-kt_join(&t), ECONNRESET);
		kt_refused(send(p.a, "x", 1, MSG_NOSIGNAL), EPIPE);
		close(p.a);
		kt_becomes(kt_pinned(), 0, 0);
	}
}

/* A stream of which a part was read cannot go on without the rest. */
static void test_sender_is_killed_while_it_is_read(void **state)
{
	struct kt_pair p = kt_connection(SOCK_STREAM);
	pid_t pid = fork();

	if (pid == 0) {
		memset(bytes, 1, MIB);
		send(p.a, bytes, MIB, 0);
		_exit(0);
	}
	assert_int_equal(recv(p.b, got, 1000, 0), 1000);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	kt_refused(recv(p.b, got, 1000, 0), ECONNRESET);
	assert_int_equal(recv(p.b, got, 1000, 0), 0);
	kt_refused(send(p.b, "x", 1, MSG_NOSIGNAL), EPIPE);
	while (!kt_error(p.a))
		usleep(1000);
	kt_close(&p);
}

#define TRIES  10
#define BEHIND 100 /* messages */

/* The same while others send on behind it: nothing of that is given, not even what comes in the
 * very moment. */
static void test_sender_is_killed_while_others_go_on(void **state)
{
	for (int i = 0; i < TRIES; i++) {
		struct kt_pair p = kt_connection(SOCK_STREAM);
		const int room = 4 * MIB;
		pid_t pid, other;

		setsockopt(p.a, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
		pid = fork();
		if (pid == 0) {
			send(p.a, bytes, MIB, 0);
			_exit(0);
		}
		assert_int_equal(recv(p.b, got, 1000, 0), 1000);
		other = fork();
		if (other == 0) {
			while (send(p.a, "x", 1, MSG_NOSIGNAL) == 1)
				;
			_exit(0);
		}
		kt_becomes(kt_counters(p.b).rx_messages, BEHIND, UINT64_MAX);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		kt_refused(recv(p.b, got, 1000, 0), ECONNRESET);
		assert_int_equal(recv(p.b, got, 1000, 0), 0);
		waitpid(other, NULL, 0);
		kt_close(&p);
	}
}

/* ---- holes: bytes of which the rest cannot be had ---- */

#define SHORT	1000u
#define LONG	20000u /* longer than what is sent at once: it is fetched */
#define GIVE_UP 3000   /* ms */

/* A stream whose sides give the other up after so long, to which a has sent a short message and a
 * long one, and, if `more`, another short one: all that waits in b's queue. */
static struct kt_pair with_a_long_one(int dead_ms_of_a, int dead_ms_of_b, bool more)
{
	struct sockaddr_beowire any = {.sbw_family = AF_BEOWIRE};
	int listener = kt_open("b", SOCK_STREAM);
	struct kt_pair p = {.a = kt_open("a", SOCK_STREAM)};
	uint64_t before;

	kt_option(p.a, BEOWIRE_DEAD_MS, dead_ms_of_a);
	kt_option(p.a, BEOWIRE_EAGER_MAX, LONG - 1);
	kt_option(listener, BEOWIRE_DEAD_MS, dead_ms_of_b);
	assert_int_equal(bind(listener, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(listener, 1), 0);
	p.at_b = kt_at(listener);
	assert_int_equal(kt_connect(p.a, &p.at_b), 0);
	p.b = accept(listener, NULL, NULL);
	assert_true(p.b >= 0);
	p.at_a = kt_at(p.a);
	close(listener);
	before = kt_counters(p.b).rx_messages;
	kt_fill(bytes, SHORT, 1);
	assert_int_equal(send(p.a, bytes, SHORT, 0), SHORT);
	assert_int_equal(send(p.a, bytes, LONG, MSG_DONTWAIT), LONG);
	if (more)
		assert_int_equal(send(p.a, bytes, SHORT, 0), SHORT);
	kt_becomes(kt_counters(p.b).rx_messages, before + 2 + more, before + 2 + more);
	return p;
}

/* What came before the hole, why nothing follows, and then the end. */
static void check_hole(int fd, int error)
{
	memset(got, 0, SHORT);
	assert_int_equal(recv(fd, got, sizeof(got), 0), SHORT);
	assert_true(kt_filled(got, SHORT, 1));
	kt_refused(recv(fd, got, sizeof(got), 0), error);
	assert_int_equal(recv(fd, got, sizeof(got), 0), 0);
	assert_int_equal(kt_error(fd), 0);
}

/* A stream whose sender's node is gone, or of which the sender died and could not say so: nothing
 * is given from behind what cannot be had any more, and the next call tells of it. */
static void test_nothing_from_behind_a_hole(void **state)
{
	struct kt_pair dead[2], cut[2];

	for (int i = 0; i < 2; i++) {
		dead[i] = with_a_long_one(GIVE_UP, KT_SOON_MS, i);
		cut[i] = with_a_long_one(KT_SOON_MS, GIVE_UP, i);
	}
	kt_link_of_b("down");
	for (int i = 0; i < 2; i++)
		close(dead[i].a);
	for (int i = 0; i < 2; i++)
		check_hole(cut[i].b, ETIMEDOUT);
	for (int i = 0; i < 2; i++)
		kt_until(!kt_port_is_there("a", dead[i].at_a.sbw_port));
	kt_link_of_b("up");
	for (int i = 0; i < 2; i++) {
		check_hole(dead[i].b, ECONNRESET);
		close(dead[i].b);
		kt_close(&cut[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_parts_of_a_stream),
		kt_test(test_records),
		kt_test(test_cut_records),
		kt_test(test_peek),
		kt_test(test_rows),
		kt_test(test_every_way),
		kt_test(test_bad_memory),
		kt_test(test_both_ways_at_once),
		kt_test(test_slow_reader),
		kt_test(test_waitall),
		kt_test(test_receiving_has_a_time_limit),
		kt_test(test_sending_waits_for_room),
		kt_test(test_part_is_sent),
		kt_test(test_readers_do_not_hinder_each_other),
		kt_test(test_signals),
		kt_test(test_poll_and_epoll),
		kt_test(test_sender_is_killed_in_a_long_send),
		kt_test(test_receiver_goes_in_a_long_send),
		kt_test(test_sender_is_killed_while_it_is_read),
		kt_test(test_sender_is_killed_while_others_go_on),
		kt_test(test_nothing_from_behind_a_hole),
	};

	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
