/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How calls on sockets without connections wait: for messages and for room, by blocking, looking
 * and poll(), until a time limit or a signal.
 */
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ktest.h"

static void test_dontwait_and_timeouts(void **state)
{
	const struct timeval patience = {.tv_usec = 100000};
	uint64_t begin;
	char byte;

	kt_each_message_type(type) {
		struct kt_pair p = kt_couple(*type);

		kt_refused(recv(p.a, &byte, 1, MSG_DONTWAIT), EAGAIN);
		setsockopt(p.a, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		begin = kt_now_ns();
		kt_refused(recv(p.a, &byte, 1, 0), EAGAIN);
		assert_in_range(kt_now_ns() - begin, 50000000, 5000000000);
		kt_close(&p);
	}
}

/* A peer that answers nothing: messages to it fill the room for sends. */
static int full_socket(void)
{
	struct sockaddr_beowire nobody = {
		.sbw_family = AF_BEOWIRE, .sbw_port = 9, .sbw_mac = {2, 0, 0, 0, 0, 9}};
	int fd = kt_bound("a", SOCK_RDM, 0), room = 4096, sent = 0;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	assert_int_equal(kt_connect(fd, &nobody), 0);
	while (send(fd, "x", 1, MSG_DONTWAIT) == 1 && sent < 1000)
		sent++;
	assert_int_equal(errno, EAGAIN);
	assert_in_range(sent, 2, 100);
	return fd;
}

static void test_send_waits_for_room(void **state)
{
	const struct timeval patience = {.tv_usec = 100000};
	struct pollfd poller = {.fd = full_socket(), .events = POLLOUT};
	uint64_t begin;

	assert_int_equal(poll(&poller, 1, 0), 0);
	setsockopt(poller.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	begin = kt_now_ns();
	kt_refused(send(poller.fd, "x", 1, 0), EAGAIN);
	assert_in_range(kt_now_ns() - begin, 50000000, 5000000000);
	close(poller.fd);
}

static void test_signals(void **state)
{
	const struct timeval patience = {.tv_sec = 5};
	struct kt_pair p = kt_couple(SOCK_RDM);
	int full = full_socket(), busy = 1000000;
	char byte;

	kt_interrupt_in_ms(50, 0);
	kt_refused(recv(p.a, &byte, 1, 0), EINTR);
	kt_interrupt_in_ms(50, 0);
	kt_refused(send(full, "x", 1, 0), EINTR);
	/* With a time limit a call is never restarted, as signal(7) says. */
	setsockopt(p.a, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	kt_interrupt_in_ms(50, SA_RESTART);
	kt_refused(recv(p.a, &byte, 1, 0), EINTR);
	kt_option(p.a, BEOWIRE_BUSY_US, busy);
	kt_interrupt_in_ms(50, 0);
	kt_refused(recv(p.a, &byte, 1, 0), EINTR);
	assert_int_equal(kt_signals, 1);
	close(full);
	kt_close(&p);
}

static uint64_t spent_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A call that ends by its time limit, and what it takes: never less than half of that limit, which
 * the kernel counts in ticks that may come late, and once in a few tries hardly more, however busy
 * the machine is. */
struct wait {
	uint64_t took, spent; /* ns, by the clock and by the processor; the least of the tries */
};

static struct wait wait_in_vain(int fd, ssize_t (*call)(int), int limit_ms)
{
	const struct timeval patience = {.tv_usec = limit_ms * 1000};
	struct wait least = {UINT64_MAX, UINT64_MAX};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	for (int i = 0; i < 5; i++) {
		uint64_t begin = kt_now_ns(), spent = spent_ns();

		kt_refused(call(fd), EAGAIN);
		spent = spent_ns() - spent;
		begin = kt_now_ns() - begin;
		assert_true(begin >= (uint64_t)limit_ms * 500000);
		least.took = begin < least.took ? begin : least.took;
		least.spent = spent < least.spent ? spent : least.spent;
	}
	return least;
}

static ssize_t try_receive(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0);
}

static ssize_t try_send(int fd)
{
	return send(fd, "x", 1, 0);
}

/* Looking is a part of the wait, and only receive calls look. */
static void test_busy_waiting_has_bounds(void **state)
{
	int full = full_socket();
	struct wait wait;

	kt_each_message_type(type) {
		int fd = kt_bound("a", *type, 0);

		kt_option(fd, BEOWIRE_BUSY_US, 50000);
		wait = wait_in_vain(fd, try_receive, 300);
		assert_in_range(wait.spent, 1000000, 200000000); /* it looked, then it slept */
		kt_option(fd, BEOWIRE_BUSY_US, 1000000);
		wait = wait_in_vain(fd, try_receive, 50);
		assert_in_range(wait.took, 0, 800000000);
		close(fd);
	}
	kt_option(full, BEOWIRE_BUSY_US, 1000000);
	wait = wait_in_vain(full, try_send, 300);
	assert_in_range(wait.spent, 0, 150000000);
	close(full);
}

/* What the calling thread spends on `n` receives, each of which waits for so long; the socket looks
 * for up to 50 ms. */
static uint64_t spent_waiting(struct kt_pair *p, int n, int wait_ms)
{
	uint64_t begin = spent_ns();
	char byte;

	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			usleep((useconds_t)wait_ms * 1000);
			_exit(send(p->b, "x", 1, 0) != 1);
		}
		assert_int_equal(recv(p->a, &byte, 1, 0), 1);
		waitpid(pid, NULL, 0);
	}
	return spent_ns() - begin;
}

/* Adaptive waiting spends nothing on waits that are longer than it may look, once it knows. Once in
 * a few tries that is seen, however busy the machine is. */
static void test_adaptive_waiting(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	uint64_t fixed, adaptive, again;
	bool seen = false;
	int value = 2;

	kt_refused(setsockopt(p.a, SOL_BEOWIRE, BEOWIRE_WAIT, &value, sizeof(value)), EINVAL);
	kt_option(p.a, BEOWIRE_BUSY_US, 50000);
	for (int i = 0; i < 6 && !seen; i++) {
		kt_option(p.a, BEOWIRE_WAIT, BEOWIRE_WAIT_FIXED);
		fixed = spent_waiting(&p, 4, 200);
		kt_option(p.a, BEOWIRE_WAIT, BEOWIRE_WAIT_ADAPTIVE);
		spent_waiting(&p, 8, 200); /* until it knows */
		adaptive = spent_waiting(&p, 4, 200);
		spent_waiting(&p, 24, 2); /* it forgets, and looks again */
		again = spent_waiting(&p, 4, 15);
		seen = fixed > 4 * 15000000 && adaptive < fixed / 2 && again > adaptive;
	}
	assert_true(seen);
	kt_close(&p);
}

static void test_restart_after_a_signal(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	char byte = 0;

	kt_interrupt_in_ms(50, SA_RESTART);
	if (fork() == 0) {
		usleep(200000);
		_exit(send(p.b, "r", 1, 0) != 1);
	}
	assert_int_equal(recv(p.a, &byte, 1, 0), 1);
	assert_int_equal(byte, 'r');
	assert_int_equal(kt_signals, 1);
	wait(NULL);
	kt_close(&p);
}

static void test_poll(void **state)
{
	char byte;

	kt_each_message_type(type) {
		struct kt_pair p = kt_couple(*type);
		struct pollfd poller = {.fd = p.b, .events = POLLIN | POLLOUT};

		assert_int_equal(poll(&poller, 1, 0), 1);
		assert_int_equal(poller.revents, POLLOUT);
		assert_int_equal(send(p.a, "x", 1, 0), 1);
		poller.events = POLLIN;
		assert_int_equal(poll(&poller, 1, 5000), 1);
		assert_int_equal(poller.revents, POLLIN);
		assert_int_equal(recv(p.b, &byte, 1, 0), 1);
		assert_int_equal(poll(&poller, 1, 0), 0);
		kt_close(&p);
	}
}

static void test_epoll(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = p.b};
	int set = epoll_create1(0);
	char byte;

	assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, p.b, &event), 0);
	assert_int_equal(epoll_wait(set, &event, 1, 0), 0);
	for (int i = 0; i < 3; i++) { /* an edge for each message, though none is read */
		assert_int_equal(send(p.a, "x", 1, 0), 1);
		assert_int_equal(epoll_wait(set, &event, 1, 5000), 1);
		assert_int_equal(event.events, EPOLLIN);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(recv(p.b, &byte, 1, MSG_DONTWAIT), 1);
	assert_int_equal(epoll_wait(set, &event, 1, 0), 0);
	kt_close(&p);
}

/* Who waits for an error alone is woken by it. */
static void test_epoll_of_errors(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct epoll_event event = {.events = 0};
	int set = epoll_create1(0), fd = kt_open("a", SOCK_RDM), error = 0;
	struct sockaddr_beowire absent = p.at_b;
	socklen_t len = sizeof(error);

	absent.sbw_port = 4;
	absent.sbw_inc = 0;
	assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
	assert_int_equal(kt_send_to(fd, "x", 1, &absent), 1);
	assert_int_equal(epoll_wait(set, &event, 1, 5000), 1);
	assert_int_equal(event.events, EPOLLERR);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	assert_int_equal(error, ECONNREFUSED);
	kt_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_dontwait_and_timeouts),
		kt_test(test_send_waits_for_room),
		kt_test(test_signals),
		kt_test(test_busy_waiting_has_bounds),
		kt_test(test_adaptive_waiting),
		kt_test(test_restart_after_a_signal),
		kt_test(test_poll),
		kt_test(test_epoll),
		kt_test(test_epoll_of_errors),
	};

	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
