/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls on sockets without connections and what they promise: the table of
 * docs/kernel-module.md, row by row. What is sent and whether it arrives is in test_messages.c.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ktest.h"

static const int types[] = {SOCK_RDM, SOCK_DGRAM};
#define for_each_type(t) for (const int *t = types; t < types + 2; t++)

static int connect_to(int fd, const struct sockaddr_beowire *to)
{
	return connect(fd, (const struct sockaddr *)to, sizeof(*to));
}

/* ---- socket, bind, names ---- */

static void test_socket_types(void **state)
{
	kt_enter("a");
	for_each_type(type) close(kt_open("a", *type));
	close(socket(AF_BEOWIRE, SOCK_DGRAM, 1));
	kt_refused(socket(AF_BEOWIRE, SOCK_RAW, 0), ESOCKTNOSUPPORT);
	kt_refused(socket(AF_BEOWIRE, SOCK_RDM, 1), EPROTONOSUPPORT);
	kt_refused(socket(AF_BEOWIRE, SOCK_DGRAM, 2), EPROTONOSUPPORT);
	kt_refused(socket(AF_BEOWIRE, SOCK_DGRAM, 1000000), EPROTONOSUPPORT);
	kt_refused(socket(AF_BEOWIRE, SOCK_DGRAM, -1), EPROTONOSUPPORT);
	kt_refused(socketpair(AF_BEOWIRE, SOCK_RDM, 0, (int[2]){0}), EOPNOTSUPP);
}

static void test_socket_flags(void **state)
{
	char byte;
	int fd;

	kt_enter("a");
	fd = socket(AF_BEOWIRE, SOCK_RDM | SOCK_NONBLOCK, 0);
	assert_true(fd >= 0);
	kt_refused(recv(fd, &byte, 1, 0), EAGAIN);
	close(fd);
}

static void test_bind(void **state)
{
	struct sockaddr_beowire addr = {.sbw_family = AF_BEOWIRE, .sbw_port = 77};
	const struct sockaddr *p = (struct sockaddr *)&addr;
	int fd, other;

	for_each_type(type)
	{
		fd = kt_bound("a", *type, 77);
		other = kt_open("a", *type);
		kt_refused(bind(fd, p, sizeof(addr)), EINVAL); /* bound already */
		kt_refused(bind(other, p, sizeof(addr)), EADDRINUSE);
		close(fd);
		assert_int_equal(bind(other, p, sizeof(addr)), 0);
		close(other);
	}
}

static void test_ports_of_nodes_are_apart(void **state)
{
	int fd = kt_bound("a", SOCK_RDM, 77);

	close(kt_bound("b", SOCK_RDM, 77));
	close(fd);
}

static void test_bind_bad_address(void **state)
{
	struct sockaddr_beowire good = {.sbw_family = AF_BEOWIRE, .sbw_port = 77}, addr = good;
	int fd = kt_open("a", SOCK_RDM);
	const struct sockaddr *p = (struct sockaddr *)&addr;

	kt_refused(bind(fd, p, sizeof(addr) - 1), EINVAL);
	kt_refused(bind(fd, p, 0), EINVAL);
	kt_refused(bind(fd, NULL, sizeof(addr)), EFAULT);
	addr.sbw_family = AF_INET;
	kt_refused(bind(fd, p, sizeof(addr)), EAFNOSUPPORT);
	addr = good;
	addr.sbw_zero[1] = 1;
	kt_refused(bind(fd, p, sizeof(addr)), EINVAL);
	addr = good;
	addr.sbw_port = BEOWIRE_PORTS + 1;
	kt_refused(bind(fd, p, sizeof(addr)), EADDRNOTAVAIL);
	addr = good;
	addr.sbw_mac[0] = 2; /* nobody's */
	kt_refused(bind(fd, p, sizeof(addr)), EADDRNOTAVAIL);
	addr = good;
	addr.sbw_port = BEOWIRE_PORTS;
	assert_int_equal(bind(fd, p, sizeof(addr)), 0);
	close(fd);
}

static void test_bind_without_interface(void **state)
{
	struct sockaddr_beowire addr = {.sbw_family = AF_BEOWIRE, .sbw_port = 77};
	int fd;

	kt_shell("ip netns add bare");
	fd = kt_open("bare", SOCK_RDM);
	kt_refused(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), EADDRNOTAVAIL);
	close(fd);
	kt_shell("ip netns del bare");
}

static void test_names(void **state)
{
	struct sockaddr_beowire name,
		to = {.sbw_family = AF_BEOWIRE, .sbw_port = 5, .sbw_mac = {2}};
	struct sockaddr *p = (struct sockaddr *)&name;
	socklen_t len = sizeof(name), few = 4;
	int fd = kt_open("a", SOCK_RDM);

	assert_int_equal(getsockname(fd, p, &len), 0);
	assert_int_equal(name.sbw_family, AF_BEOWIRE);
	assert_int_equal(name.sbw_port, 0);
	kt_refused(getpeername(fd, p, &len), ENOTCONN);
	assert_int_equal(connect_to(fd, &to), 0);
	assert_int_equal(getpeername(fd, p, &len), 0);
	assert_memory_equal(&name, &to, sizeof(to));
	memset(&name, 0xee, sizeof(name));
	assert_int_equal(getpeername(fd, p, &few), 0); /* cut, and the whole length told */
	assert_int_equal(few, sizeof(name));
	assert_int_equal(name.sbw_node, 0xeeeeeeeeeeeeeeee);
	kt_refused(getsockname(fd, p, NULL), EFAULT);
	close(fd);

	fd = kt_bound("a", SOCK_RDM, 0);
	name = kt_at(fd);
	assert_in_range(name.sbw_port, 1, BEOWIRE_PORTS);
	assert_true(name.sbw_inc && name.sbw_node && !(name.sbw_mac[0] & 1));
	close(fd);
}

static void test_sending_binds(void **state)
{
	struct kt_pair p = kt_pair(SOCK_RDM);
	int fd = kt_open("a", SOCK_RDM);

	assert_int_equal(kt_send_to(fd, "x", 1, &p.at_b), 1);
	assert_in_range(kt_at(fd).sbw_port, 1024, BEOWIRE_PORTS);
	close(fd);
	kt_close(&p);
}

/* ---- connect, destinations, shutdown ---- */

static void test_connect(void **state)
{
	struct sockaddr none = {.sa_family = AF_UNSPEC};
	char byte;

	for_each_type(type)
	{
		struct kt_pair p = kt_pair(*type);

		kt_refused(send(p.a, "x", 1, 0), EDESTADDRREQ);
		assert_int_equal(connect_to(p.a, &p.at_b), 0);
		assert_int_equal(send(p.a, "x", 1, 0), 1);
		assert_int_equal(recv(p.b, &byte, 1, 0), 1);
		assert_int_equal(connect(p.a, &none, sizeof(none)), 0);
		kt_refused(send(p.a, "x", 1, 0), EDESTADDRREQ);
		kt_close(&p);
	}
}

static void test_bad_destination(void **state)
{
	for_each_type(type)
	{
		struct kt_pair p = kt_pair(*type);
		struct sockaddr_beowire to = p.at_b;

		to.sbw_port = 0;
		kt_refused(kt_send_to(p.a, "x", 1, &to), EADDRNOTAVAIL);
		kt_refused(connect_to(p.a, &to), EADDRNOTAVAIL);
		to = p.at_b;
		memset(to.sbw_mac, 0, 6);
		kt_refused(kt_send_to(p.a, "x", 1, &to), EADDRNOTAVAIL);
		kt_refused(connect_to(p.a, &to), EADDRNOTAVAIL);
		memset(to.sbw_mac, 0xff, 6);
		kt_refused(kt_send_to(p.a, "x", 1, &to), EADDRNOTAVAIL);
		to = p.at_b;
		to.sbw_ifindex = 12345;
		kt_refused(kt_send_to(p.a, "x", 1, &to), EHOSTUNREACH);
		to = p.at_b;
		to.sbw_family = AF_UNIX;
		kt_refused(kt_send_to(p.a, "x", 1, &to), EAFNOSUPPORT);
		kt_refused(sendto(p.a, "x", 1, 0, (struct sockaddr *)&p.at_b, 20), EINVAL);
		kt_close(&p);
	}
}

/* POSIX: connect() of a datagram socket limits the remote sender for subsequent recv(). */
static void test_connected_datagrams_come_from_the_peer(void **state)
{
	struct kt_pair p = kt_couple(SOCK_DGRAM);
	int other = kt_bound("b", SOCK_DGRAM, 0);
	char byte = 0;

	assert_int_equal(kt_send_to(other, "o", 1, &p.at_a), 1);
	assert_int_equal(send(p.b, "p", 1, 0), 1);
	assert_int_equal(recv(p.a, &byte, 1, 0), 1);
	assert_int_equal(byte, 'p');
	kt_refused(recv(p.a, &byte, 1, MSG_DONTWAIT), EAGAIN);
	close(other);
	kt_close(&p);
}

static void test_not_for_these_types(void **state)
{
	for_each_type(type)
	{
		struct kt_pair p = kt_couple(*type);
		char byte;

		kt_refused(listen(p.a, 1), EOPNOTSUPP);
		kt_refused(accept(p.a, NULL, NULL), EOPNOTSUPP);
		kt_refused(send(p.a, "x", 1, MSG_OOB), EOPNOTSUPP);
		kt_refused(recv(p.a, &byte, 1, MSG_OOB), EOPNOTSUPP);
		kt_close(&p);
	}
}

static void test_shutdown(void **state)
{
	struct pollfd poller = {.events = POLLIN | POLLRDHUP};
	char byte;

	for_each_type(type)
	{
		struct kt_pair p = kt_pair(*type);

		kt_refused(shutdown(p.a, SHUT_WR), ENOTCONN);
		kt_refused(shutdown(p.a, 17), EINVAL);
		kt_close(&p);
		p = kt_couple(*type);
		assert_int_equal(shutdown(p.a, SHUT_WR), 0);
		kt_refused(send(p.a, "x", 1, MSG_NOSIGNAL), EPIPE);
		assert_int_equal(send(p.b, "y", 1, 0), 1); /* still received */
		assert_int_equal(recv(p.a, &byte, 1, 0), 1);
		assert_int_equal(shutdown(p.a, SHUT_RD), 0);
		assert_int_equal(recv(p.a, &byte, 1, 0), 0);
		poller.fd = p.a;
		assert_int_equal(poll(&poller, 1, 0), 1);
		assert_int_equal(poller.revents, POLLIN | POLLRDHUP | POLLHUP);
		kt_close(&p);
	}
}

static long receive_one(void *arg)
{
	char byte;
	ssize_t n = recv(*(int *)arg, &byte, 1, 0);

	return n < 0 ? -errno : n;
}

static void test_shutdown_wakes_a_receiver(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct kt_thread t;

	kt_start(&t, receive_one, &p.a);
	usleep(50000);
	assert_int_equal(shutdown(p.a, SHUT_RD), 0);
	assert_int_equal(kt_join(&t), 0);
	kt_close(&p);
}

/* ---- waiting ---- */

static void test_dontwait_and_timeouts(void **state)
{
	const struct timeval patience = {.tv_usec = 100000};
	uint64_t begin;
	char byte;

	for_each_type(type)
	{
		struct kt_pair p = kt_couple(*type);

		kt_refused(recv(p.a, &byte, 1, MSG_DONTWAIT), EAGAIN);
		setsockopt(p.a, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		begin = kt_now_ns();
		kt_refused(recv(p.a, &byte, 1, 0), EAGAIN);
		assert_in_range(kt_now_ns() - begin, 80000000, 5000000000);
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
	assert_int_equal(connect_to(fd, &nobody), 0);
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
	assert_in_range(kt_now_ns() - begin, 80000000, 5000000000);
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

/* A call that ends by its time limit, and what it takes: never less than that limit, and once in a
 * few tries hardly more, however busy the machine is. */
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
		assert_true(begin >= (uint64_t)limit_ms * 900000);
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

	for_each_type(type)
	{
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
	uint64_t fixed = 0, adaptive = UINT64_MAX;
	int value = 2;

	kt_refused(setsockopt(p.a, SOL_BEOWIRE, BEOWIRE_WAIT, &value, sizeof(value)), EINVAL);
	kt_option(p.a, BEOWIRE_BUSY_US, 50000);
	for (int i = 0; i < 3 && adaptive >= fixed / 2; i++) {
		kt_option(p.a, BEOWIRE_WAIT, BEOWIRE_WAIT_FIXED);
		fixed = spent_waiting(&p, 4, 200);
		kt_option(p.a, BEOWIRE_WAIT, BEOWIRE_WAIT_ADAPTIVE);
		spent_waiting(&p, 8, 200); /* until it knows */
		adaptive = spent_waiting(&p, 4, 200);
	}
	assert_true(fixed > 4 * 15000000);
	assert_true(adaptive < fixed / 2);
	for (value = 0; value < 3 && spent_waiting(&p, 4, 15) <= adaptive; value++)
		spent_waiting(&p, 24, 2); /* it forgets, and looks again */
	assert_in_range(value, 0, 2);
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

	for_each_type(type)
	{
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

/* ---- fork, dup, close ---- */

static void test_fork_and_dup(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	char said[2] = "";
	int twin = dup(p.a), status;

	close(p.a);
	if (fork() == 0)
		_exit(send(twin, "c", 1, 0) != 1);
	wait(&status);
	assert_int_equal(status, 0);
	assert_int_equal(send(twin, "p", 1, 0), 1);
	assert_int_equal(recv(p.b, &said[0], 1, 0), 1);
	assert_int_equal(recv(p.b, &said[1], 1, 0), 1);
	assert_memory_equal(said, "cp", 2);
	close(twin);
	close(p.b);
}

/* What was sent arrives although the sender closes at once. */
static void test_close_after_send(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	char byte = 0;

	assert_int_equal(send(p.a, "x", 1, 0), 1);
	close(p.a);
	assert_int_equal(recv(p.b, &byte, 1, 0), 1);
	assert_int_equal(byte, 'x');
	close(p.b);
}

/* ---- options ---- */

static void check_option(int fd, int name, int least, int most)
{
	const int bad[] = {least - 1, most + 1};
	int value = -1, before;
	socklen_t len = sizeof(value);

	assert_int_equal(getsockopt(fd, SOL_BEOWIRE, name, &before, &len), 0);
	for (int i = 0; i < 2; i++) {
		if (i == 1 && most == INT32_MAX)
			continue;
		kt_refused(setsockopt(fd, SOL_BEOWIRE, name, &bad[i], sizeof(int)), EINVAL);
		assert_int_equal(getsockopt(fd, SOL_BEOWIRE, name, &value, &len), 0);
		assert_int_equal(value, before); /* a refused value changes nothing */
	}
	kt_option(fd, name, least);
	assert_int_equal(getsockopt(fd, SOL_BEOWIRE, name, &value, &len), 0);
	assert_int_equal(value, least);
	kt_option(fd, name, most);
	kt_refused(setsockopt(fd, SOL_BEOWIRE, name, &value, sizeof(int) - 1), EINVAL);
	kt_refused(setsockopt(fd, SOL_BEOWIRE, name, NULL, sizeof(int)), EFAULT);
	assert_int_equal(getsockopt(fd, SOL_BEOWIRE, name, &value, &len), 0);
	assert_int_equal(value, most);
	assert_int_equal(len, sizeof(value));
}

static void test_options(void **state)
{
	const int early[] = {BEOWIRE_CHECKSUM, BEOWIRE_DEAD_MS};
	int fd = kt_open("a", SOCK_RDM), value = 1;
	socklen_t len = 2;

	check_option(fd, BEOWIRE_BUSY_US, 0, 1000000);
	check_option(fd, BEOWIRE_CHECKSUM, 0, 1);
	check_option(fd, BEOWIRE_COPY_MAX, 0, INT32_MAX);
	check_option(fd, BEOWIRE_EAGER_MAX, 0, 65536);
	check_option(fd, BEOWIRE_DEAD_MS, 1, INT32_MAX);
	check_option(fd, BEOWIRE_INFO_WANTED, 0, 1);
	kt_refused(setsockopt(fd, SOL_BEOWIRE, 99, &value, sizeof(value)), ENOPROTOOPT);
	kt_refused(getsockopt(fd, SOL_BEOWIRE, 99, &value, &len), ENOPROTOOPT);
	kt_refused(setsockopt(fd, 12345, BEOWIRE_BUSY_US, &value, sizeof(value)), ENOPROTOOPT);
	assert_int_equal(getsockopt(fd, SOL_BEOWIRE, BEOWIRE_BUSY_US, &value, &len), 0);
	assert_int_equal(len, 2); /* cut */
	len = (socklen_t)-1;
	kt_refused(getsockopt(fd, SOL_BEOWIRE, BEOWIRE_BUSY_US, &value, &len), EINVAL);
	close(fd);

	fd = kt_bound("a", SOCK_DGRAM, 0); /* too late, or for SOCK_RDM */
	for (int i = 0; i < 2; i++)
		kt_refused(setsockopt(fd, SOL_BEOWIRE, early[i], &value, sizeof(value)), EISCONN);
	kt_refused(setsockopt(fd, SOL_BEOWIRE, BEOWIRE_INFO_WANTED, &value, sizeof(value)), EINVAL);
	close(fd);
}

static int copy_max(void)
{
	int fd = kt_open("a", SOCK_RDM), value = -1;
	socklen_t len = sizeof(value);

	assert_int_equal(getsockopt(fd, SOL_BEOWIRE, BEOWIRE_COPY_MAX, &value, &len), 0);
	close(fd);
	assert_int_equal(kt_number("a", "/proc/net/beowire/node", "copy-max"), value);
	return value;
}

/* The length that pinning begins at is measured, unless a number is set. */
static void test_measured_threshold(void **state)
{
	const int measured = copy_max();

	assert_in_range(measured, 4096, 65536);
	assert_int_equal(measured & (measured - 1), 0);
	kt_shell("ip netns exec a sh -c 'echo 5000 >/proc/sys/net/beowire/copy_max'");
	assert_int_equal(copy_max(), 5000);
	kt_shell("ip netns exec a sh -c 'echo 0 >/proc/sys/net/beowire/copy_max'");
	assert_int_equal(copy_max(), measured);
}

static void test_option_counters(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct beowire_counters c;
	socklen_t len = sizeof(c);
	int fd = kt_open("a", SOCK_RDM);
	char byte;

	kt_refused(getsockopt(fd, SOL_BEOWIRE, BEOWIRE_COUNTERS, &c, &len), ENOTCONN);
	kt_refused(setsockopt(p.a, SOL_BEOWIRE, BEOWIRE_COUNTERS, &c, sizeof(c)), ENOPROTOOPT);
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	assert_int_equal(recv(p.b, &byte, 1, 0), 1);
	c = kt_counters(p.a);
	assert_int_equal(c.tx_messages, 1);
	assert_int_equal(c.peers, 1);
	assert_int_equal(kt_counters(p.b).rx_messages, 1);
	len = 8;
	memset(&c, 0xee, sizeof(c));
	assert_int_equal(getsockopt(p.a, SOL_BEOWIRE, BEOWIRE_COUNTERS, &c, &len), 0);
	assert_int_equal(len, 8);
	assert_int_equal(c.rx_frames, 0xeeeeeeeeeeeeeeee);
	kt_close(&p);
}

static void test_option_peer_number(void **state)
{
	struct kt_pair p = kt_pair(SOCK_RDM);
	union {
		struct sockaddr_beowire addr;
		int number;
	} u = {.addr = p.at_b};
	socklen_t len = sizeof(u), few = sizeof(u) - 1;
	struct beowire_info info = {.peer = 1};
	int fd = kt_open("a", SOCK_RDM);
	char byte;

	kt_refused(getsockopt(fd, SOL_BEOWIRE, BEOWIRE_PEER_NUMBER, &u, &len), ENOTCONN);
	kt_refused(getsockopt(p.a, SOL_BEOWIRE, BEOWIRE_PEER_NUMBER, &u, &few), EINVAL);
	u.addr.sbw_port = 0; /* nobody has it */
	kt_refused(getsockopt(p.a, SOL_BEOWIRE, BEOWIRE_PEER_NUMBER, &u, &len), EINVAL);
	u.addr = p.at_b;
	u.addr.sbw_mac[0] |= 1; /* of many */
	kt_refused(getsockopt(p.a, SOL_BEOWIRE, BEOWIRE_PEER_NUMBER, &u, &len), EINVAL);
	u.addr = p.at_b;
	assert_int_equal(getsockopt(p.a, SOL_BEOWIRE, BEOWIRE_PEER_NUMBER, &u, &len), 0);
	assert_int_equal(u.number, 1);
	assert_int_equal(kt_send_info(p.a, "n", 1, NULL, &info, 0), 0);
	assert_int_equal(recv(p.b, &byte, 1, 0), 1);
	info.peer = 2;
	assert_int_equal(kt_send_info(p.a, "n", 1, NULL, &info, 0), -ENOTCONN);
	kt_close(&p);
}

static void test_options_of_sockets(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	int value = 0;
	socklen_t len = sizeof(value);

	assert_int_equal(getsockopt(p.a, SOL_SOCKET, SO_TYPE, &value, &len), 0);
	assert_int_equal(value, SOCK_RDM);
	assert_int_equal(getsockopt(p.a, SOL_SOCKET, SO_DOMAIN, &value, &len), 0);
	assert_int_equal(value, AF_BEOWIRE);
	assert_int_equal(getsockopt(p.a, SOL_SOCKET, SO_ERROR, &value, &len), 0);
	assert_int_equal(value, 0);
	kt_close(&p);
}

/* ---- ioctls, control messages ---- */

static void test_ioctl(void **state)
{
	struct beowire_iface iface = {.name = "eth0"};
	struct beowire_pull pull = {.peer = 1};
	int fd = kt_open("a", SOCK_RDM), dgram = kt_bound("a", SOCK_DGRAM, 0);

	kt_refused(ioctl(fd, BEOWIRE_IOC_ATTACH, &iface), EEXIST);
	kt_refused(ioctl(fd, BEOWIRE_IOC_ATTACH, NULL), EFAULT);
	memset(iface.name, 'x', sizeof(iface.name)); /* does not end */
	kt_refused(ioctl(fd, BEOWIRE_IOC_ATTACH, &iface), ENODEV);
	strcpy(iface.name, "lo");
	kt_refused(ioctl(fd, BEOWIRE_IOC_ATTACH, &iface), EINVAL);
	kt_refused(ioctl(fd, BEOWIRE_IOC_DETACH, &iface), ENODEV);
	kt_refused(ioctl(fd, BEOWIRE_IOC_PULL, &pull), ENOTCONN);
	kt_refused(ioctl(dgram, BEOWIRE_IOC_PULL, &pull), EOPNOTSUPP);
	kt_refused(ioctl(fd, BEOWIRE_IOC_PULL, (void *)8), EFAULT);
	kt_refused(ioctl(fd, SIOCPROTOPRIVATE + 9, &pull), ENOTTY);
	close(fd);
	fd = kt_bound("a", SOCK_RDM, 0);
	kt_refused(ioctl(fd, BEOWIRE_IOC_PULL, &pull), ENOTCONN); /* no such peer */
	pull.flags = 2;
	kt_refused(ioctl(fd, BEOWIRE_IOC_PULL, &pull), EINVAL);
	pull = (struct beowire_pull){.len = BEOWIRE_MSG_MAX + 1};
	kt_refused(ioctl(fd, BEOWIRE_IOC_PULL, &pull), EINVAL);
	close(fd);
	close(dgram);
}

static void test_attach_again(void **state)
{
	struct beowire_iface iface = {.name = "eth0"};
	int fd = kt_open("a", SOCK_RDM);

	assert_int_equal(ioctl(fd, BEOWIRE_IOC_DETACH, &iface), 0);
	kt_refused(ioctl(fd, BEOWIRE_IOC_DETACH, &iface), ENODEV);
	assert_int_equal(ioctl(fd, BEOWIRE_IOC_ATTACH, &iface), 0);
	assert_int_equal(iface.mtu, 9000);
	assert_true(iface.ifindex > 0);
	close(fd);
}

static void test_control_messages(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct beowire_info info = {.code = 0x80};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(info))];
	} control = {.head = {CMSG_LEN(sizeof(info)), SOL_BEOWIRE, BEOWIRE_INFO}};
	struct iovec part = {.iov_base = "x", .iov_len = 1};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};

	assert_int_equal(kt_send_info(p.a, "x", 1, NULL, &info, 0), -EINVAL); /* the code */
	info = (struct beowire_info){.flags = 0x100};
	assert_int_equal(kt_send_info(p.a, "x", 1, NULL, &info, 0), -EINVAL);
	control.head.cmsg_len -= 1;
	kt_refused(sendmsg(p.a, &m, 0), EINVAL);
	control.head.cmsg_len = 5; /* shorter than its own head */
	kt_refused(sendmsg(p.a, &m, 0), EINVAL);
	control.head.cmsg_len = 10000;
	kt_refused(sendmsg(p.a, &m, 0), EINVAL);
	control.head = (struct cmsghdr){CMSG_LEN(sizeof(info)), SOL_BEOWIRE, 99};
	kt_refused(sendmsg(p.a, &m, 0), EINVAL);
	kt_close(&p);
	p = kt_couple(SOCK_DGRAM);
	info.flags = 0;
	assert_int_equal(kt_send_info(p.a, "x", 1, NULL, &info, 0), -EINVAL);
	kt_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_socket_types),
		kt_test(test_socket_flags),
		kt_test(test_bind),
		kt_test(test_ports_of_nodes_are_apart),
		kt_test(test_bind_bad_address),
		kt_test(test_bind_without_interface),
		kt_test(test_names),
		kt_test(test_sending_binds),
		kt_test(test_connect),
		kt_test(test_bad_destination),
		kt_test(test_connected_datagrams_come_from_the_peer),
		kt_test(test_not_for_these_types),
		kt_test(test_shutdown),
		kt_test(test_shutdown_wakes_a_receiver),
		kt_test(test_dontwait_and_timeouts),
		kt_test(test_send_waits_for_room),
		kt_test(test_signals),
		kt_test(test_busy_waiting_has_bounds),
		kt_test(test_adaptive_waiting),
		kt_test(test_restart_after_a_signal),
		kt_test(test_poll),
		kt_test(test_epoll),
		kt_test(test_epoll_of_errors),
		kt_test(test_fork_and_dup),
		kt_test(test_close_after_send),
		kt_test(test_options),
		kt_test(test_measured_threshold),
		kt_test(test_option_counters),
		kt_test(test_option_peer_number),
		kt_test(test_options_of_sockets),
		kt_test(test_ioctl),
		kt_test(test_attach_again),
		kt_test(test_control_messages),
	};

	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
