/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections come about: the calls of SOCK_SEQPACKET and SOCK_STREAM by which they do, and what
 * POSIX promises for each; the table in docs/kernel-module.md, row by row. Clients are node a's,
 * listeners node b's.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ktest.h"

static void nonblocking(int fd, bool on)
{
	assert_int_equal(fcntl(fd, F_SETFL, on ? O_NONBLOCK : 0), 0);
}

static int number(int fd, int name)
{
	socklen_t len = sizeof(int);
	int value = -1;

	assert_int_equal(getsockopt(fd, SOL_SOCKET, name, &value, &len), 0);
	return value;
}

static struct sockaddr_beowire absent_node(void)
{
	return (struct sockaddr_beowire){
		.sbw_family = AF_BEOWIRE, .sbw_port = 9, .sbw_mac = {2, 0, 0, 0, 0, 9}};
}

/* ---- they come about ---- */

static void test_connect_and_accept(void **state)
{
	char byte = 0;

	kt_each_connection_type(type) {
		int listener = kt_listener(*type, 5), a = kt_open("a", *type), b;
		struct sockaddr_beowire at = kt_at(listener), from, name;
		socklen_t len = sizeof(from);

		assert_int_equal(number(listener, SO_ACCEPTCONN), 1);
		assert_int_equal(kt_connect(a, &at), 0);
		b = accept(listener, (struct sockaddr *)&from, &len);
		assert_true(b >= 0);
		assert_int_equal(len, sizeof(from));
		name = kt_at(a);
		assert_int_equal(from.sbw_port, name.sbw_port);
		assert_memory_equal(from.sbw_mac, name.sbw_mac, 6);
		assert_int_equal(kt_at(b).sbw_port, at.sbw_port); /* the listener's */
		assert_int_equal(getpeername(a, (struct sockaddr *)&name, &len), 0);
		assert_int_equal(name.sbw_port, at.sbw_port);
		assert_int_equal(getpeername(b, (struct sockaddr *)&name, &len), 0);
		assert_int_equal(name.sbw_port, from.sbw_port);
		assert_int_equal(number(b, SO_TYPE), *type);
		assert_int_equal(number(b, SO_ACCEPTCONN), 0);
		assert_int_equal(kt_error(a) | kt_error(b), 0);
		assert_int_equal(send(a, "1", 1, 0), 1);
		assert_int_equal(recv(b, &byte, 1, 0), 1);
		assert_int_equal(byte, '1');
		assert_int_equal(send(b, "2", 1, 0), 1);
		assert_int_equal(recv(a, &byte, 1, 0), 1);
		assert_int_equal(byte, '2');
		assert_int_equal(-kt_connect(a, &at), EISCONN);
		assert_int_equal(-kt_connect(b, &at), EISCONN);
		close(a);
		close(b);
		close(listener);
	}
}

static void test_data_before_accept(void **state)
{
	int listener = kt_listener(SOCK_STREAM, 5), a = kt_open("a", SOCK_STREAM), b;
	struct sockaddr_beowire at = kt_at(listener);
	char said[6] = "";

	assert_int_equal(kt_connect(a, &at), 0);
	assert_int_equal(send(a, "early", 5, 0), 5);
	close(a);
	b = accept(listener, NULL, NULL);
	assert_int_equal(recv(b, said, 5, MSG_WAITALL), 5);
	assert_string_equal(said, "early");
	assert_int_equal(recv(b, said, 5, 0), 0);
	close(b);
	close(listener);
}

static void test_bad_addresses(void **state)
{
	struct sockaddr_beowire to = absent_node(), bad;
	int fd = kt_open("a", SOCK_STREAM);

	bad = to;
	bad.sbw_family = AF_INET;
	assert_int_equal(-kt_connect(fd, &bad), EAFNOSUPPORT);
	bad = to;
	bad.sbw_port = 0;
	assert_int_equal(-kt_connect(fd, &bad), EADDRNOTAVAIL);
	bad.sbw_port = BEOWIRE_PORTS + 1;
	assert_int_equal(-kt_connect(fd, &bad), EADDRNOTAVAIL);
	bad = to;
	memset(bad.sbw_mac, 0xff, 6);
	assert_int_equal(-kt_connect(fd, &bad), EADDRNOTAVAIL);
	memset(bad.sbw_mac, 0, 6);
	assert_int_equal(-kt_connect(fd, &bad), EADDRNOTAVAIL);
	bad = to;
	bad.sbw_ifindex = 12345;
	assert_int_equal(-kt_connect(fd, &bad), EHOSTUNREACH);
	kt_refused(connect(fd, (struct sockaddr *)&to, sizeof(to) - 1), EINVAL);
	kt_refused(connect(fd, NULL, sizeof(to)), EFAULT);
	close(fd);
}

/* What one may not do with a socket in its state. */
static void test_wrong_state(void **state)
{
	kt_each_connection_type(type) {
		struct sockaddr_beowire self = {.sbw_family = AF_BEOWIRE}, name;
		struct kt_pair p = kt_connection(*type);
		int fresh = kt_open("b", *type), listener = kt_listener(*type, 1);
		struct sockaddr_beowire at = kt_at(listener);
		socklen_t len = sizeof(name);
		char byte;

		kt_refused(accept(fresh, NULL, NULL), EINVAL);
		kt_refused(accept(p.a, NULL, NULL), EINVAL);
		kt_refused(listen(p.a, 1), EINVAL);
		kt_refused(listen(p.b, 1), EINVAL);
		kt_refused(bind(p.a, (struct sockaddr *)&self, sizeof(self)), EINVAL);
		kt_refused(getpeername(fresh, (struct sockaddr *)&name, &len), ENOTCONN);
		kt_refused(getpeername(listener, (struct sockaddr *)&name, &len), ENOTCONN);
		kt_refused(shutdown(fresh, SHUT_RDWR), ENOTCONN);
		kt_refused(shutdown(p.a, 17), EINVAL);
		kt_refused(send(fresh, "x", 1, MSG_NOSIGNAL), ENOTCONN);
		kt_refused(recv(fresh, &byte, 1, 0), ENOTCONN);
		kt_refused(send(listener, "x", 1, MSG_NOSIGNAL), ENOTCONN);
		kt_refused(recv(listener, &byte, 1, 0), ENOTCONN);
		kt_refused(kt_send_to(p.a, "x", 1, &at), EISCONN);
		kt_refused(kt_send_to(fresh, "x", 1, &at), EOPNOTSUPP);
		kt_refused(send(p.a, "x", 1, MSG_OOB), EOPNOTSUPP);
		kt_refused(recv(p.a, &byte, 1, MSG_OOB), EOPNOTSUPP);
		assert_int_equal(-kt_connect(listener, &p.at_b), EISCONN);
		assert_int_equal(kt_events(fresh, POLLOUT), POLLOUT | POLLHUP);
		close(fresh);
		close(listener);
		kt_close(&p);
	}
}

static void test_refused(void **state)
{
	kt_each_connection_type(type) {
		const int other = *type == SOCK_STREAM ? SOCK_SEQPACKET : SOCK_STREAM;
		const int deaf[] = {kt_bound("b", *type, 0), kt_listener(other, 1),
				    kt_bound("b", SOCK_RDM, 0)};
		struct sockaddr_beowire at;
		int fd;

		for (int i = 0; i < 4; i++) {
			at = kt_at(deaf[i % 3]);
			if (i == 3) { /* nobody */
				at.sbw_port = 3;
				at.sbw_inc = 0;
			}
			fd = kt_open("a", *type);
			assert_int_equal(-kt_connect(fd, &at), ECONNREFUSED);
			assert_int_equal(kt_error(fd), 0); /* it was told */
			kt_refused(send(fd, "x", 1, MSG_NOSIGNAL), EPIPE);
			close(fd);
		}
		for (int i = 0; i < 3; i++)
			close(deaf[i]);
	}
}

/* As Linux has it for TCP: POSIX leaves open what such a socket is good for. */
static void test_again_after_a_refusal(void **state)
{
	kt_each_connection_type(type) {
		int deaf = kt_bound("b", *type, 0), fd = kt_open("a", *type);
		struct sockaddr_beowire at = kt_at(deaf);
		char byte;
		int b;

		assert_int_equal(-kt_connect(fd, &at), ECONNREFUSED);
		assert_int_equal(-kt_connect(fd, &at), ECONNREFUSED);
		assert_int_equal(listen(deaf, 1), 0);
		assert_int_equal(kt_connect(fd, &at), 0);
		b = accept(deaf, NULL, NULL);
		assert_int_equal(send(fd, "x", 1, 0), 1);
		assert_int_equal(recv(b, &byte, 1, 0), 1);
		close(fd);
		close(b);
		fd = kt_open("a", *type);
		close(deaf);
		assert_int_equal(-kt_connect(fd, &at), ECONNREFUSED);
		assert_int_equal(listen(fd, 1), 0); /* it can do something else instead */
		nonblocking(fd, true);
		kt_refused(accept(fd, NULL, NULL), EAGAIN);
		close(fd);
	}
}

static void test_connect_without_waiting(void **state)
{
	struct sockaddr_beowire at, name;
	socklen_t len = sizeof(name);
	int listener, a, b;
	char byte;

	kt_each_connection_type(type) {
		listener = kt_listener(*type, 1);
		at = kt_at(listener);
		a = kt_open("a", *type);
		nonblocking(a, true);
		kt_link_of_b("down");
		assert_int_equal(-kt_connect(a, &at), EINPROGRESS);
		assert_int_equal(-kt_connect(a, &at), EALREADY);
		kt_refused(getpeername(a, (struct sockaddr *)&name, &len), ENOTCONN);
		kt_refused(send(a, "x", 1, MSG_NOSIGNAL), ENOTCONN);
		kt_refused(listen(a, 1), EINVAL);
		assert_int_equal(poll(&(struct pollfd){a, POLLOUT | POLLIN, 0}, 1, 0), 0);
		kt_link_of_b("up");
		assert_int_equal(kt_events(a, POLLOUT), POLLOUT);
		assert_int_equal(kt_error(a), 0);
		assert_int_equal(getpeername(a, (struct sockaddr *)&name, &len), 0);
		assert_int_equal(kt_connect(a, &at), 0); /* as Linux: once */
		assert_int_equal(-kt_connect(a, &at), EISCONN);
		b = accept(listener, NULL, NULL);
		assert_int_equal(send(a, "x", 1, 0), 1);
		assert_int_equal(recv(b, &byte, 1, 0), 1);
		close(a);
		close(b);
		close(listener);
		a = kt_open("a", *type); /* and nobody listens */
		nonblocking(a, true);
		at.sbw_inc = 0;
		kt_link_of_b("down");
		assert_int_equal(-kt_connect(a, &at), EINPROGRESS);
		kt_link_of_b("up");
		assert_true(kt_events(a, POLLOUT) & (POLLERR | POLLHUP));
		assert_int_equal(kt_error(a), ECONNREFUSED);
		assert_int_equal(-kt_connect(a, &at), ECONNREFUSED);
		close(a);
	}
}

static void test_connect_to_nobody(void **state)
{
	const struct timeval patience = {.tv_usec = 100000};
	struct sockaddr_beowire at = absent_node();
	int fd = kt_open("a", SOCK_STREAM);

	kt_option(fd, BEOWIRE_DEAD_MS, 1000);
	assert_int_equal(-kt_connect(fd, &at), ETIMEDOUT);
	assert_int_equal(kt_error(fd), 0);
	nonblocking(fd, true);
	assert_int_equal(-kt_connect(fd, &at), EINPROGRESS);
	assert_true(kt_events(fd, POLLOUT) & POLLERR);
	assert_int_equal(kt_error(fd), ETIMEDOUT);
	close(fd);
	fd = kt_open("a", SOCK_STREAM); /* SO_SNDTIMEO ends the call only */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	assert_int_equal(-kt_connect(fd, &at), EINPROGRESS);
	close(fd);
}

static void test_connect_interrupted(void **state)
{
	int listener = kt_listener(SOCK_STREAM, 1), fd = kt_open("a", SOCK_STREAM);
	struct sockaddr_beowire at = kt_at(listener);

	kt_link_of_b("down");
	kt_interrupt_in_ms(50, 0);
	assert_int_equal(-kt_connect(fd, &at), EINTR);
	nonblocking(fd, true);
	assert_int_equal(-kt_connect(fd, &at), EALREADY); /* it goes on nevertheless */
	kt_link_of_b("up");
	assert_int_equal(kt_events(fd, POLLOUT), POLLOUT);
	close(accept(listener, NULL, NULL));
	close(fd);
	fd = kt_open("a", SOCK_STREAM);
	kt_link_of_b("down");
	kt_interrupt_in_ms(50, SA_RESTART);
	if (fork() == 0) {
		usleep(200000);
		kt_link_of_b("up");
		_exit(0);
	}
	assert_int_equal(kt_connect(fd, &at), 0);
	assert_int_equal(kt_signals, 1);
	wait(NULL);
	close(fd);
	close(listener);
}

/* ---- one connection in a socket's life ---- */

/* A page that is not there: who touches it sleeps until come() gives it. */
struct late_page {
	int fd;
	void *page;
};

static struct late_page late_page(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	struct late_page late = {.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC)};

	late.page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(late.fd >= 0 && late.page != MAP_FAILED);
	range.range = (struct uffdio_range){(uintptr_t)late.page, 4096};
	assert_int_equal(ioctl(late.fd, UFFDIO_API, &api), 0);
	assert_int_equal(ioctl(late.fd, UFFDIO_REGISTER, &range), 0);
	return late;
}

static void come(struct late_page *late)
{
	struct uffdio_zeropage zero = {.range = {(uintptr_t)late->page, 4096}};

	assert_int_equal(ioctl(late->fd, UFFDIO_ZEROPAGE, &zero), 0);
}

struct late_send {
	int fd;
	struct late_page late;
};

static long send_late(void *arg)
{
	struct late_send *s = arg;

	return send(s->fd, s->late.page, 8, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* What was connected stays what it was, whatever a thread that is asleep in a call finds. */
static void test_never_connected_anew(void **state)
{
	kt_each_connection_type(type) {
		int listener = kt_listener(*type, 1), b;
		struct late_send s = {.fd = kt_open("a", *type), .late = late_page()};
		struct sockaddr_beowire at = kt_at(listener);
		struct uffd_msg touched;
		struct kt_thread t;

		nonblocking(s.fd, true);
		kt_link_of_b("down");
		assert_int_equal(-kt_connect(s.fd, &at), EINPROGRESS);
		kt_link_of_b("up");
		assert_int_equal(kt_events(s.fd, POLLOUT), POLLOUT); /* and nobody asks connect() */
		b = accept(listener, NULL, NULL);
		assert_int_equal(send(s.fd, "unread", 6, 0), 6);
		kt_start(&t, send_late, &s);
		assert_int_equal(read(s.late.fd, &touched, sizeof(touched)), sizeof(touched));
		assert_true(kt_events(b, POLLIN) & POLLIN);
		close(b);
		assert_true(kt_events(s.fd, POLLIN) & POLLERR);
		assert_int_equal(-kt_connect(s.fd, &at), ECONNRESET);
		assert_int_equal(-kt_connect(s.fd, &at), EISCONN);
		kt_refused(listen(s.fd, 1), EINVAL);
		kt_refused(shutdown(s.fd, SHUT_WR), ENOTCONN);
		close(listener);
		usleep(200000); /* its port ends, and what is known of it */
		come(&s.late);
		assert_int_equal(-kt_join(&t), EPIPE);
		munmap(s.late.page, 4096);
		close(s.late.fd);
		close(s.fd);
	}
}

/* Threads that use one socket without order, and another one in its place now and then. */
struct crowd {
	int fd, type;
	struct sockaddr_beowire at;
	uint64_t end;
};

static int crowd_socket(const struct crowd *c)
{
	const struct timeval patience = {.tv_usec = 4000};
	int fd = kt_open("a", c->type);

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

static long crowd_at_a(void *arg)
{
	struct crowd *c = arg;
	uint64_t random = (uintptr_t)&random;
	struct sockaddr_beowire name;
	static __thread char bytes[40000];
	socklen_t len;
	int fd;

	while (kt_now_ns() < c->end) {
		switch (kt_random(&random) >> 7 & 15) {
		case 0:
		case 1:
		case 2:
			kt_connect(c->fd, &c->at);
			break;
		case 3:
		case 4:
		case 5:
			send(c->fd, bytes, 1 + (kt_random(&random) & 32767), MSG_NOSIGNAL);
			break;
		case 6:
		case 7:
			recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
			break;
		case 8:
			recv(c->fd, bytes, sizeof(bytes), 0);
			break;
		case 9:
			shutdown(c->fd, (int)(kt_random(&random) >> 7 & 1) + SHUT_WR);
			break;
		case 10:
			listen(c->fd, 1);
			break;
		case 11:
			fd = accept4(c->fd, NULL, NULL, SOCK_NONBLOCK);
			if (fd >= 0)
				close(fd);
			break;
		case 12:
			len = sizeof(name);
			getpeername(c->fd, (struct sockaddr *)&name, &len);
			poll(&(struct pollfd){c->fd, POLLIN | POLLOUT, 0}, 1, 1);
			break;
		case 13:
			fcntl(c->fd, F_SETFL, random & 1 ? O_NONBLOCK : 0);
			break;
		default:
			fd = crowd_socket(c);
			dup2(fd, c->fd);
			close(fd);
		}
	}
	return 0;
}

/* Accepts, reads a little or nothing, says a word, and goes: often what it leaves is unread. */
static long crowd_at_b(void *arg)
{
	struct crowd *c = arg;
	uint64_t random = 7;
	char bytes[100];

	while (kt_now_ns() < c->end) {
		int listener, fd;
		bool early; /* close the listener before the connection */

		kt_enter("b");
		listener = socket(AF_BEOWIRE, c->type, 0);
		fd = -1;
		if (bind(listener,
			 (struct sockaddr *)&(struct sockaddr_beowire){.sbw_family = AF_BEOWIRE,
								       .sbw_port = c->at.sbw_port},
			 sizeof(struct sockaddr_beowire)) == 0 &&
		    listen(listener, 2) == 0 &&
		    poll(&(struct pollfd){listener, POLLIN, 0}, 1, 100) == 1)
			fd = accept(listener, NULL, NULL);
		early = random & 1;
		if (early)
			close(listener);
		if (fd >= 0) {
			send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
			usleep((unsigned)(kt_random(&random) & 2047));
			if (random & 2)
				recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
			close(fd);
		}
		if (!early)
			close(listener);
	}
	return 0;
}

static void test_threads_on_one_socket(void **state)
{
	kt_each_connection_type(type) {
		int listener = kt_listener(*type, 1);
		struct crowd c = {.type = *type, .at = kt_at(listener)};
		struct kt_thread t[5];
		struct kt_pair p;
		char byte = 0;

		close(listener);
		c.at.sbw_inc = 0;
		c.fd = crowd_socket(&c);
		c.end = kt_now_ns() + 1500000000;
		for (int i = 0; i < 5; i++)
			kt_start(&t[i], i ? crowd_at_a : crowd_at_b, &c);
		for (int i = 0; i < 5; i++)
			kt_join(&t[i]);
		close(c.fd);
		p = kt_connection(*type);
		assert_int_equal(send(p.a, "x", 1, 0), 1);
		assert_int_equal(recv(p.b, &byte, 1, 0), 1);
		assert_int_equal(byte, 'x');
		kt_close(&p);
	}
	kt_becomes(kt_pinned(), 0, 0);
}

/* ---- an error that another thread takes ---- */

struct refused {
	int fd;
	struct sockaddr_beowire at; /* nobody listens there */
	uint64_t end;
};

static long send_again(void *arg)
{
	const struct refused *r = arg;
	long sent = 0;

	while (kt_now_ns() < r->end)
		sent += send(r->fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
	return sent;
}

static long take_error(void *arg)
{
	const struct refused *r = arg;

	while (kt_now_ns() < r->end)
		kt_error(r->fd);
	return 0;
}

static long connect_again(void *arg)
{
	const struct refused *r = arg;
	long refused = 0;

	while (kt_now_ns() < r->end)
		refused += kt_connect(r->fd, &r->at) == -ECONNREFUSED;
	return refused;
}

/* Who finds no error any more, as another thread has taken it, has not seen a connection either:
 * nothing is sent, and the peer of an attempt that is over is not used. */
static void test_an_error_that_another_thread_takes(void **state)
{
	kt_each_connection_type(type) {
		int deaf = kt_bound("b", *type, 0);
		struct refused r = {.fd = kt_open("a", *type),
				    .at = kt_at(deaf),
				    .end = kt_now_ns() + 1500000000};
		struct kt_thread t[5];

		for (int i = 0; i < 5; i++)
			kt_start(&t[i],
				 i < 2	 ? send_again
				 : i < 4 ? take_error
					 : connect_again,
				 &r);
		for (int i = 0; i < 4; i++)
			assert_int_equal(kt_join(&t[i]), 0);
		assert_true(kt_join(&t[4]) >= 0);
		close(r.fd);
		close(deaf);
	}
}

/* ---- listeners ---- */

static void test_backlog(void **state)
{
	int listener = kt_listener(SOCK_STREAM, 1), fd[4];
	struct sockaddr_beowire at = kt_at(listener);

	for (int i = 0; i < 4; i++)
		fd[i] = kt_open("a", SOCK_STREAM);
	assert_int_equal(kt_connect(fd[0], &at), 0);
	assert_int_equal(kt_connect(fd[1], &at), 0); /* one more than its length, as for TCP */
	assert_int_equal(-kt_connect(fd[2], &at), ECONNREFUSED);
	close(accept(listener, NULL, NULL)); /* gives room for one */
	assert_int_equal(kt_connect(fd[2], &at), 0);
	assert_int_equal(-kt_connect(fd[3], &at), ECONNREFUSED);
	assert_int_equal(listen(listener, 5), 0); /* may be changed */
	assert_int_equal(kt_connect(fd[3], &at), 0);
	for (int i = 0; i < 4; i++)
		close(fd[i]);
	close(listener);
}

static long accept_one(void *arg)
{
	int fd = accept(*(int *)arg, NULL, NULL);

	return fd < 0 ? -errno : fd;
}

static void test_accept_waits(void **state)
{
	const struct timeval patience = {.tv_usec = 100000};
	int listener = kt_listener(SOCK_STREAM, 1), a = kt_open("a", SOCK_STREAM);
	struct sockaddr_beowire at = kt_at(listener);
	struct kt_thread t;
	uint64_t begin;
	long b;

	nonblocking(listener, true);
	kt_refused(accept(listener, NULL, NULL), EAGAIN);
	assert_int_equal(poll(&(struct pollfd){listener, POLLIN, 0}, 1, 0), 0);
	nonblocking(listener, false);
	kt_interrupt_in_ms(50, 0);
	kt_refused(accept(listener, NULL, NULL), EINTR);
	kt_start(&t, accept_one, &listener);
	usleep(50000);
	assert_int_equal(kt_connect(a, &at), 0);
	b = kt_join(&t);
	assert_true(b >= 0);
	close((int)b);
	setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	begin = kt_now_ns();
	kt_refused(accept(listener, NULL, NULL), EAGAIN);
	assert_in_range(kt_now_ns() - begin, 50000000, KT_SOON_NS);
	close(a);
	a = kt_open("a", SOCK_STREAM);
	assert_int_equal(kt_connect(a, &at), 0);
	assert_int_equal(kt_events(listener, POLLIN), POLLIN);
	b = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	kt_refused(recv((int)b, &b, 1, 0), EAGAIN);
	close((int)b);
	close(a);
	close(listener);
}

static void test_listener_is_shut_down(void **state)
{
	int listener = kt_listener(SOCK_STREAM, 1), a = kt_open("a", SOCK_STREAM);
	struct sockaddr_beowire at = kt_at(listener);
	struct kt_thread t;

	kt_start(&t, accept_one, &listener);
	usleep(50000);
	assert_int_equal(shutdown(listener, SHUT_RD), 0);
	assert_int_equal(-kt_join(&t), EINVAL);
	assert_int_equal(-kt_connect(a, &at), ECONNREFUSED);
	close(a);
	close(listener);
}

/* Connections that wait to be accepted end with the listener; those accepted live on, and so does
 * the port that they share. */
static void test_listener_is_closed(void **state)
{
	int listener = kt_listener(SOCK_STREAM, 5), a[3], b, other;
	struct sockaddr_beowire at = kt_at(listener), self = {.sbw_family = AF_BEOWIRE};
	char byte = 0;

	for (int i = 0; i < 3; i++)
		a[i] = kt_open("a", SOCK_STREAM);
	assert_int_equal(kt_connect(a[0], &at), 0);
	b = accept(listener, NULL, NULL);
	assert_int_equal(kt_connect(a[1], &at), 0);
	close(listener);
	kt_refused(recv(a[1], &byte, 1, 0), ECONNRESET);
	assert_int_equal(recv(a[1], &byte, 1, 0), 0);
	assert_int_equal(-kt_connect(a[2], &at), ECONNREFUSED);
	assert_int_equal(send(a[0], "x", 1, 0), 1);
	assert_int_equal(recv(b, &byte, 1, 0), 1);
	self.sbw_port = at.sbw_port;
	other = kt_open("b", SOCK_STREAM);
	kt_refused(bind(other, (struct sockaddr *)&self, sizeof(self)), EADDRINUSE);
	for (int i = 0; i < 3; i++)
		close(a[i]);
	close(b);
	kt_until(bind(other, (struct sockaddr *)&self, sizeof(self)) == 0); /* it is free again */
	assert_int_equal(kt_at(other).sbw_port, at.sbw_port);
	close(other);
}

static long connect_many(void *arg)
{
	const struct sockaddr_beowire *at = arg;
	uint32_t n, got;

	for (n = 0; n < 10; n++) {
		int fd = kt_open("a", SOCK_STREAM);

		while (kt_connect(fd, at) == -ECONNREFUSED) /* the backlog is full */
			usleep(1000);
		if (send(fd, &n, 4, 0) != 4 || recv(fd, &got, 4, MSG_WAITALL) != 4 || got != n)
			return -1;
		close(fd);
	}
	return n;
}

static void test_many_connections(void **state)
{
	int listener = kt_listener(SOCK_STREAM, 2);
	struct sockaddr_beowire at = kt_at(listener);
	struct kt_thread t[3];
	uint32_t n;

	for (int i = 0; i < 3; i++)
		kt_start(&t[i], connect_many, &at);
	for (int i = 0; i < 30; i++) {
		int fd = accept(listener, NULL, NULL);

		assert_int_equal(recv(fd, &n, 4, MSG_WAITALL), 4);
		assert_int_equal(send(fd, &n, 4, 0), 4);
		assert_int_equal(recv(fd, &n, 4, 0), 0);
		close(fd);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(kt_join(&t[i]), 10);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_connect_and_accept),
		kt_test(test_data_before_accept),
		kt_test(test_bad_addresses),
		kt_test(test_wrong_state),
		kt_test(test_refused),
		kt_test(test_again_after_a_refusal),
		kt_test(test_connect_without_waiting),
		kt_test(test_connect_to_nobody),
		kt_test(test_connect_interrupted),
		kt_test(test_never_connected_anew),
		kt_test(test_threads_on_one_socket),
		kt_test(test_an_error_that_another_thread_takes),
		kt_test(test_backlog),
		kt_test(test_accept_waits),
		kt_test(test_listener_is_shut_down),
		kt_test(test_listener_is_closed),
		kt_test(test_many_connections),
	};

	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
