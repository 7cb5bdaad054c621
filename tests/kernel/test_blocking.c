/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How calls on sockets without connections wait: for messages and for room, by blocking, looking
 * and poll(), until a time limit or a signal.
 */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
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
		assert_in_range(kt_now_ns() - begin, 50000000, KT_SOON_NS);
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
	assert_in_range(kt_now_ns() - begin, 50000000, KT_SOON_NS);
	close(poller.fd);
}

static void test_signals(void **state)
{
	const struct timeval patience = {.tv_sec = 60};
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

/* A receive call that waited: what its thread spent in it, and how often it slept there. */
struct cost {
	uint64_t spent; /* ns of the processor */
	long sleeps;
};

static long sleeps(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nvcsw;
}

static struct cost wait_for_byte(struct kt_pair *p, int wait_ms)
{
	struct cost cost;
	pid_t pid = fork();
	char byte;

	if (pid == 0) {
		usleep((useconds_t)wait_ms * 1000);
		_exit(send(p->b, "x", 1, 0) != 1);
	}
	cost.sleeps = sleeps();
	cost.spent = spent_ns();
	assert_int_equal(recv(p->a, &byte, 1, 0), 1);
	cost.spent = spent_ns() - cost.spent;
	cost.sleeps = sleeps() - cost.sleeps;
	waitpid(pid, NULL, 0);
	return cost;
}

/* The least of what long waits spend is what they spend where nobody else is served meanwhile: more
 * of them only bring it nearer to that. */
static uint64_t least_spent(uint64_t before, struct kt_pair *p, int busy_us, int how)
{
	uint64_t spent;

	kt_option(p->a, BEOWIRE_BUSY_US, busy_us);
	kt_option(p->a, BEOWIRE_WAIT, how);
	spent = wait_for_byte(p, 150).spent;
	return spent < before ? spent : before;
}

/* Adaptive waiting spends next to nothing on waits that are longer than it may look, once it knows,
 * compared to those of a socket that never looks and of one that always does. */
static void test_adaptive_waiting(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	uint64_t never = UINT64_MAX, fixed = UINT64_MAX, adaptive = UINT64_MAX;
	bool apart = false;
	int value = 2, found = 0;

	kt_refused(setsockopt(p.a, SOL_BEOWIRE, BEOWIRE_WAIT, &value, sizeof(value)), EINVAL);
	for (int i = 0; i < 8; i++) /* until it knows */
		least_spent(0, &p, 50000, BEOWIRE_WAIT_ADAPTIVE);
	for (int i = 0; i < 3 || (i < 40 && !apart); i++) {
		never = least_spent(never, &p, 0, BEOWIRE_WAIT_FIXED);
		fixed = least_spent(fixed, &p, 50000, BEOWIRE_WAIT_FIXED);
		adaptive = least_spent(adaptive, &p, 50000, BEOWIRE_WAIT_ADAPTIVE);
		apart = fixed > never + 15000000 && adaptive <= never + (fixed - never) / 4;
	}
	if (!apart)
		fail_msg("spent %llu, %llu, %llu ns", (unsigned long long)never,
			 (unsigned long long)fixed, (unsigned long long)adaptive);
	/* It forgets when waits are short, and looks again: what it finds so it does not sleep for.
	 * On a busy machine short waits may be long for a while. */
	for (int i = 0; i < 20 && found < 3; i++) {
		for (int k = 0; k < 24; k++)
			wait_for_byte(&p, 2);
		found = 0;
		for (int k = 0; k < 4; k++)
			found += wait_for_byte(&p, 15).sleeps == 0;
	}
	assert_in_range(found, 3, 4);
	kt_close(&p);
}

static long send_byte(void *arg)
{
	return send(*(const int *)arg, "x", 1, 0);
}

/* Who looks gives the processor to its equals, though of a real-time class nobody takes it away:
 * the one that sends has this processor alone, and is never waited for asleep. */
static void test_looking_lets_others_run(void **state)
{
	const struct sched_param first = {.sched_priority = 1}, last = {0};
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct kt_thread t;
	cpu_set_t all, one;
	long slept;
	char byte;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	kt_option(p.a, BEOWIRE_BUSY_US, 1000000);
	assert_int_equal(send(p.b, "x", 1, 0), 1); /* contact is made */
	assert_int_equal(recv(p.a, &byte, 1, 0), 1);
	assert_int_equal(sched_setscheduler(0, SCHED_FIFO, &first), 0);
	kt_start(&t, send_byte, &p.b);
	slept = sleeps();
	assert_int_equal(recv(p.a, &byte, 1, 0), 1);
	slept = sleeps() - slept;
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &last), 0);
	assert_int_equal(kt_join(&t), 1);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	assert_int_equal(slept, 0);
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
		assert_int_equal(poll(&poller, 1, KT_SOON_MS), 1);
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
		assert_int_equal(epoll_wait(set, &event, 1, KT_SOON_MS), 1);
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
	assert_int_equal(epoll_wait(set, &event, 1, KT_SOON_MS), 1);
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
		kt_test(test_looking_lets_others_run),
		kt_test(test_restart_after_a_signal),
		kt_test(test_poll),
		kt_test(test_epoll),
		kt_test(test_epoll_of_errors),
	};

	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
