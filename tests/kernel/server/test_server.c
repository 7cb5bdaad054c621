/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Protocol servers of the kernel module, in a guest: beowire-server in two network namespaces,
 * whose sockets exchange datagrams; servers that die, sleep, or are hostile. One thread holds both
 * ends, as a socket belongs to the namespace that the thread was in when it was opened.
 *
 *	test_server PATH-OF-BEOWIRE-SERVER
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "beowire_server.h"
#include "rings.h"
#include "servertest.h"
#include "wire.h"

#define MANY	    200
#define OWN_LIMIT   100	  /* bytes of a message to a server of the tests' own */
#define PATIENCE_MS 30000 /* on a busy machine, and it is never meant to pass */

/* ---- a server in each of two nodes ---- */

struct pair {
	pid_t server[2];
};

static int pair_begin_with(void **state, const char *extra)
{
	static struct pair pair;

	pair.server[0] = st_serve("a", "2", extra);
	pair.server[1] = st_serve("b", "2", extra);
	*state = &pair;
	return 0;
}

static int pair_begin(void **state)
{
	return pair_begin_with(state, NULL);
}

static int pair_begin_spinning(void **state)
{
	return pair_begin_with(state, "-s");
}

static int pair_end(void **state)
{
	struct pair *pair = *state;

	st_end(pair->server[0]);
	st_end(pair->server[1]);
	return 0;
}

static void exchange(void **state)
{
	static const size_t sizes[] = {0, 1, 7, 1000, 8900};
	static uint8_t sent[8900], got[8900];
	int a = st_bound("a", 5), b = st_bound("b", 7);
	struct sockaddr_beowire at_a = st_at(a), at_b = st_at(b), from;
	socklen_t len;
	size_t i, k;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes) * 20; i++) {
		size_t n = sizes[i % (sizeof(sizes) / sizeof(*sizes))];

		for (k = 0; k < n; k++)
			sent[k] = (uint8_t)(i * 31 + k * 7);
		len = sizeof(from);
		assert_int_equal(st_send_to(a, sent, n, &at_b), n);
		assert_int_equal(recvfrom(b, got, sizeof(got), 0, (struct sockaddr *)&from, &len),
				 n);
		assert_memory_equal(got, sent, n);
		assert_int_equal(len, sizeof(from));
		assert_int_equal(from.sbw_port, 5);
		assert_memory_equal(from.sbw_mac, at_a.sbw_mac, 6);
		assert_int_equal(st_send_to(b, got, n, &from), n);
		assert_int_equal(recv(a, got, sizeof(got), 0), n);
		assert_memory_equal(got, sent, n);
	}
	close(a);
	close(b);
}

static void exchange_spinning(void **state)
{
	exchange(state);
}

static void calls(void **state)
{
	int a = st_open_socket("a", NUMBER), b = st_bound("b", 0), other;
	struct sockaddr_beowire at_b = st_at(b), name;
	struct pollfd p = {.fd = b, .events = POLLIN | POLLOUT};
	socklen_t len = sizeof(name);
	char bytes[9000];

	assert_true(at_b.sbw_port >= 1024);
	st_refused(send(a, "x", 1, 0), EDESTADDRREQ);
	assert_int_equal(connect(a, (struct sockaddr *)&at_b, sizeof(at_b)), 0);
	assert_int_equal(send(a, "hello", 5, 0), 5);
	assert_true(st_at(a).sbw_port >= 1024);
	assert_int_equal(getpeername(a, (struct sockaddr *)&name, &len), 0);
	assert_int_equal(name.sbw_port, at_b.sbw_port);
	assert_int_equal(recv(b, bytes, 2, MSG_PEEK), 2);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(p.revents, POLLIN | POLLOUT);
	assert_int_equal(recv(b, bytes, 2, MSG_TRUNC), 5);
	st_refused(recv(b, bytes, 2, MSG_DONTWAIT), EAGAIN);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(p.revents, POLLOUT);
	st_refused(send(a, bytes, sizeof(bytes), 0), EMSGSIZE);
	st_refused(st_bind_to(a, 9), EINVAL);
	other = st_open_socket("b", NUMBER);
	st_refused(st_bind_to(other, at_b.sbw_port), EADDRINUSE);
	st_refused(st_bind_to(other, 40000), EADDRNOTAVAIL);
	name.sbw_family = AF_UNIX;
	st_refused(st_send_to(other, "x", 1, &name), EAFNOSUPPORT);
	close(other);
	close(a);
	close(b);
}

/* Ports of servers and of the kernel's own protocols have one space of numbers. */
static void one_space_of_numbers(void **state)
{
	int own = st_bound("a", 11), fd = socket(AF_BEOWIRE, SOCK_RDM, 0), i;

	st_refused(st_bind_to(fd, 11), EADDRINUSE);
	assert_int_equal(st_bind_to(fd, 12), 0);
	close(own);
	own = st_open_socket("a", NUMBER);
	st_refused(st_bind_to(own, 12), EADDRINUSE);
	/* The server says when the number is free. */
	for (i = 0; st_bind_to(own, 11); i++) {
		assert_int_equal(errno, EADDRINUSE);
		assert_true(i < PATIENCE_MS);
		usleep(1000);
	}
	close(own);
	close(fd);
}

static void numbers_are_claimed_once(void **state)
{
	struct rings r;

	st_enter("a");
	assert_int_equal(rings_open(&r, NUMBER, "second"), -EBUSY);
	assert_int_equal(rings_open(&r, BEOWIRE_RINGS + 300, "none"), -EINVAL);
	assert_int_equal(rings_open(&r, 1, "datagram"), -EINVAL);
	st_refused(st_open_socket("a", 9), EPROTONOSUPPORT);
	/* The namespaces do not see one another's servers. */
	assert_int_equal(rings_open(&r, 9, "mine"), 0);
	st_refused(st_open_socket("b", 9), EPROTONOSUPPORT);
	close(st_open_socket("a", 9));
	rings_close(&r);
	st_refused(st_open_socket("a", 9), EPROTONOSUPPORT);
}

/* Waits until this node's server has none, so many milliseconds at most. */
static void no_ports_become(int most)
{
	for (int i = 0; st_listed(PORTS); i++) {
		assert_true(i < most);
		usleep(1000);
	}
}

static void many_sockets(void **state)
{
	static int a[MANY], b[MANY];
	static struct sockaddr_beowire at_b[MANY];
	int i, value;

	for (i = 0; i < MANY; i++) {
		a[i] = st_bound("a", 0);
		b[i] = st_bound("b", 0);
		at_b[i] = st_at(b[i]);
	}
	st_enter("a");
	assert_int_equal(st_listed(PORTS), MANY);
	for (i = 0; i < MANY; i++)
		assert_int_equal(st_send_to(a[i], &i, sizeof(i), &at_b[i]), sizeof(i));
	for (i = 0; i < MANY; i++) {
		assert_int_equal(recv(b[i], &value, sizeof(value), 0), sizeof(value));
		assert_int_equal(value, i);
		close(a[i]);
		close(b[i]);
	}
	no_ports_become(PATIENCE_MS);
}

/* ---- a reader that is slow ---- */

static int reliable_begin(void **state)
{
	static struct pair pair;

	pair.server[0] = st_serve_protocol("a", "2", "reliable", NULL);
	pair.server[1] = st_serve_protocol("b", "2", "reliable", NULL);
	*state = &pair;
	return 0;
}

/* As much as goes without waiting long: less than until a server asks again. */
static uint32_t pour(int a, const struct sockaddr_beowire *to, uint32_t from, uint32_t end)
{
	struct pollfd room = {.fd = a, .events = POLLOUT};
	uint32_t message[250] = {0};

	for (; from < end && poll(&room, 1, 50) == 1; from++) {
		message[0] = from;
		assert_int_equal(st_send_to(a, message, sizeof(message), to), sizeof(message));
	}
	return from;
}

/* A full receive buffer holds its senders up, and nobody else; then all is had, in order. */
static void nothing_is_lost_by_a_full_buffer(void **state)
{
	const uint32_t count = 3000;
	int a = st_bound("a", 0), b = st_bound("b", 0), idle = st_bound("b", 0), small = 8192;
	struct sockaddr_beowire at_b = st_at(b), at_idle = st_at(idle);
	uint32_t message[250], sent, next = 0;

	setsockopt(b, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	sent = pour(a, &at_b, 0, count);
	assert_true(sent > 8 && sent < count);
	small = 1 << 22; /* the room for sends is for all receivers */
	assert_int_equal(setsockopt(a, SOL_SOCKET, SO_SNDBUFFORCE, &small, sizeof(small)), 0);
	assert_int_equal(st_send_to(a, "y", 1, &at_idle), 1);
	assert_int_equal(recv(idle, message, sizeof(message), 0), 1);
	while (next < count) {
		usleep(1000);
		for (; next < sent; next++) {
			assert_int_equal(recv(b, message, sizeof(message), 0), sizeof(message));
			assert_int_equal(message[0], next);
		}
		sent = pour(a, &at_b, sent, count);
	}
	st_refused(recv(b, message, 4, MSG_DONTWAIT), EAGAIN);
	close(a);
	close(b);
	close(idle);
}

/* Bytes that sockets of servers have under way in this node; `charged`: that are charged to them
 * for unread messages, instead. */
static int bytes_of_sockets(bool charged)
{
	FILE *f = fopen("/proc/net/beowire/sockets", "r");
	int sum = 0, sending, unread;
	char line[256];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "server %*s %*u %*s %*u %*d %d %*u %*u %d", &sending, &unread) ==
		    2)
			sum += charged ? unread : sending;
	fclose(f);
	return sum;
}

static int under_way(void)
{
	return bytes_of_sockets(false);
}

/* The last frames of a port are taken before its number is free. */
static void a_farewell_is_sent(void **state)
{
	int a = st_bound("a", 0), b = st_bound("b", 0);
	struct sockaddr_beowire at_b = st_at(b);
	uint64_t sent;
	char byte;

	assert_int_equal(st_send_to(a, "x", 1, &at_b), 1);
	assert_int_equal(recv(b, &byte, 1, 0), 1);
	st_enter("a");
	while (under_way()) /* what is done later is told to nobody, and that is counted */
		usleep(1000);
	sent = st_listed(FRAMES_OUT);
	close(a);
	no_ports_become(PATIENCE_MS);
	assert_true(st_listed(FRAMES_OUT) > sent);
	assert_int_equal(st_listed(REFUSED), 0);
	close(b);
}

/* ---- the end of a server ---- */

static void *receive(void *arg)
{
	char byte;
	ssize_t n = recv(*(int *)arg, &byte, 1, 0);

	return (void *)(intptr_t)(n < 0 ? errno : 0);
}

static void *bind_any(void *arg)
{
	return (void *)(intptr_t)(st_bind_to(*(int *)arg, 0) ? errno : 0);
}

/* Wait for the thread, whose call has ended with this errno. */
static void assert_ended(pthread_t thread, int error)
{
	void *found;

	assert_int_equal(pthread_join(thread, &found), 0);
	assert_int_equal((intptr_t)found, error);
}

static void killed_and_restarted(void **state)
{
	struct pair *pair = *state;
	int a = st_bound("a", 5), b = st_bound("b", 7), late = st_bound("a", 6), unbound;
	struct sockaddr_beowire at_b = st_at(b);
	struct pollfd p = {.fd = a, .events = POLLIN | POLLOUT};
	pthread_t waiting;
	int error, i;
	socklen_t len = sizeof(error);
	char byte;

	unbound = st_open_socket("a", NUMBER);
	assert_int_equal(st_send_to(b, "q", 1, &(struct sockaddr_beowire){0}), -1);
	assert_int_equal(pthread_create(&waiting, NULL, receive, &a), 0);
	usleep(50000);
	st_end(pair->server[0]);
	assert_ended(waiting, ECONNRESET);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(p.revents & (POLLERR | POLLHUP | POLLIN), POLLERR | POLLHUP | POLLIN);
	st_refused(recv(a, &byte, 1, 0), ECONNRESET);
	st_refused(recv(a, &byte, 1, MSG_DONTWAIT), ECONNRESET);
	st_refused(st_send_to(a, "x", 1, &at_b), EPIPE);
	assert_int_equal(getsockopt(late, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	assert_int_equal(error, ECONNRESET);
	st_refused(st_send_to(late, "x", 1, &at_b), EPIPE);
	st_refused(st_bind_to(unbound, 0), ECONNRESET);
	st_refused(connect(unbound, (struct sockaddr *)&at_b, sizeof(at_b)), ECONNRESET);
	st_refused(st_open_socket("a", NUMBER), EPROTONOSUPPORT);
	pair->server[0] = st_serve("a", "2", NULL);
	/* Old sockets stay as they are, new ones work, even under an old number. */
	st_refused(recv(a, &byte, 1, 0), ECONNRESET);
	close(a);
	a = st_bound("a", 5);
	for (i = 0; i < 10; i++) {
		assert_int_equal(st_send_to(a, "again", 5, &at_b), 5);
		assert_int_equal(recv(b, &byte, 1, MSG_TRUNC), 5);
	}
	close(a);
	close(b);
	close(late);
	close(unbound);
}

static void killed_while_it_sleeps(void **state)
{
	struct pair *pair = *state;
	int a = st_open_socket("a", NUMBER), b = st_bound("b", 0);
	pthread_t waiting;

	st_stop(pair->server[0]);
	assert_int_equal(pthread_create(&waiting, NULL, bind_any, &a), 0);
	usleep(50000);
	st_end(pair->server[0]);
	assert_ended(waiting, ECONNRESET);
	pair->server[0] = st_serve("a", "2", NULL);
	close(a);
	close(b);
}

static void *wake(void *arg)
{
	usleep(200000); /* somebody waits by now */
	kill(*(pid_t *)arg, SIGCONT);
	return NULL;
}

/* Who does not empty the rings holds up senders, who learn of it; then it goes on. */
static void sleeps_and_wakes(void **state)
{
	struct pair *pair = *state;
	static char bytes[8000];
	int a = st_bound("a", 0), b = st_bound("b", 0), big = 1 << 24, sent = 0, came = 0;
	struct sockaddr_beowire at_b = st_at(b);
	struct pollfd p = {.fd = a, .events = POLLOUT};
	pthread_t waker;
	time_t begin;

	st_stop(pair->server[0]);
	assert_int_equal(setsockopt(a, SOL_SOCKET, SO_SNDBUFFORCE, &big, sizeof(big)), 0);
	while (sendto(a, bytes, sizeof(bytes), MSG_DONTWAIT, (struct sockaddr *)&at_b,
		      sizeof(at_b)) > 0)
		sent++;
	assert_int_equal(errno, EAGAIN);
	assert_in_range(sent, 100, 140); /* what a ring of 1 MiB holds */
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(pthread_create(&waker, NULL, wake, &pair->server[0]), 0);
	begin = time(NULL);
	assert_int_equal(poll(&p, 1, 30000), 1);
	assert_int_equal(p.revents, POLLOUT);
	assert_in_range(time(NULL) - begin, 0, 20); /* at its end poll() looks again, unwoken */
	pthread_join(waker, NULL);
	assert_int_equal(st_send_to(a, "x", 1, &at_b), 1);
	/* The receive buffer holds only some, the rest is dropped; but all buffers come back. */
	for (int flags = 0; recv(b, bytes, sizeof(bytes), flags) > 0; flags = MSG_DONTWAIT) {
		came++;
		usleep(100000);
	}
	assert_in_range(came, 1, sent + 1);
	/* Frames for a server that sleeps are dropped and counted, and no more. */
	st_stop(pair->server[1]);
	for (sent = 0; sent < 200; sent++)
		assert_int_equal(st_send_to(a, bytes, sizeof(bytes), &at_b), sizeof(bytes));
	st_enter("b");
	for (came = 0; !st_listed(DROPPED); came++) {
		assert_true(came < PATIENCE_MS);
		usleep(1000);
	}
	kill(pair->server[1], SIGCONT);
	close(a);
	close(b);
}

/* ---- servers that mean harm, or do nonsense ---- */

static uint64_t randomness = 1;

static uint64_t draw(void)
{
	randomness ^= randomness << 13;
	randomness ^= randomness >> 7;
	randomness ^= randomness << 17;
	return randomness;
}

/* One more socket that a server of our own has opened; its number in *id. */
static int own_socket(struct rings *r, uint32_t *id)
{
	const struct beowire_record *open;
	struct beowire_record *answer;
	pthread_t binding;
	int fd = st_open_socket("a", 3);

	assert_true(fd >= 0);
	assert_int_equal(st_bind_to(fd, 40000), -1);
	*id = 0;
	assert_int_equal(pthread_create(&binding, NULL, bind_any, &fd), 0);
	assert_int_equal(rings_turn(r, -1), 0);
	open = rings_next(r, BEOWIRE_REQUESTS);
	assert_non_null(open);
	assert_int_equal(open->type, BEOWIRE_OPEN);
	*id = open->socket;
	rings_consume(r, BEOWIRE_REQUESTS, open);
	answer = rings_reserve(r, BEOWIRE_ANSWERS, BEOWIRE_OPENED, *id, 0);
	answer->result.bytes = OWN_LIMIT;
	rings_commit(r, BEOWIRE_ANSWERS, answer);
	assert_int_equal(rings_turn(r, 0), 0);
	assert_ended(binding, 0);
	return fd;
}

/* A server of our own with one such socket. */
static int own_server(struct rings *r, uint32_t *id, uint16_t port)
{
	st_enter("a");
	assert_int_equal(rings_open(r, 3, "own"), 0);
	return own_socket(r, id);
}

/* A server that says nothing holds up who waits for its word, and nobody else. */
static void a_server_without_words(void **state)
{
	struct sockaddr_beowire name = {.sbw_family = AF_BEOWIRE, .sbw_port = 9, .sbw_mac = {2}};
	socklen_t len = sizeof(int);
	struct rings r;
	pthread_t binding;
	pid_t user;
	int fd, busy = 7, status = 0;

	st_enter("a");
	assert_int_equal(rings_open(&r, 3, "own"), 0);
	fd = st_open_socket("a", 3);
	user = fork(); /* of the same socket, as a thread would be */
	if (user == 0) {
		pthread_create(&binding, NULL, bind_any, &fd);
		while (!rings_next(&r, BEOWIRE_REQUESTS)) /* now it waits */
			usleep(1000);
		alarm(60);
		status = setsockopt(fd, SOL_BEOWIRE, BEOWIRE_BUSY_US, &busy, sizeof(busy)) ||
			 getsockopt(fd, SOL_BEOWIRE, BEOWIRE_BUSY_US, &busy, &len) ||
			 connect(fd, (struct sockaddr *)&name, sizeof(name));
		len = sizeof(name);
		_exit(status || getpeername(fd, (struct sockaddr *)&name, &len));
	}
	assert_int_equal(waitpid(user, &status, 0), user);
	assert_true(WIFEXITED(status)); /* it is gone, not held up beyond its alarm clock */
	assert_int_equal(WEXITSTATUS(status), 0);
	close(fd);
	rings_close(&r);
}

static void own_end(struct rings *r, int fd)
{
	close(fd);
	rings_close(r);
}

static struct beowire_record *frame(struct rings *r, uint32_t id, uint16_t engine)
{
	struct bw_hdr hdr = {.magic = BW_MAGIC, .src_engine = engine};
	struct beowire_record *record = rings_reserve(r, BEOWIRE_FRAMES_OUT, BEOWIRE_FRAME, id, 64);

	assert_non_null(record);
	if (record) /* the compiler does not know that the line above ends the test */
		memcpy(record + 1, &hdr, sizeof(hdr));
	rings_commit(r, BEOWIRE_FRAMES_OUT, record);
	return record;
}

/* A server sends under the numbers of its own ports only. */
static void forged_frames(void **state)
{
	struct rings r;
	uint32_t id;
	int fd = own_server(&r, &id, 0);
	uint16_t port = st_at(fd).sbw_port;

	frame(&r, id, port);
	assert_int_equal(rings_turn(&r, 0), 0);
	assert_int_equal(st_listed(FRAMES_OUT), 1);
	frame(&r, id, port + 1);
	frame(&r, id + 1, port);
	((struct bw_hdr *)(frame(&r, id, port) + 1))->magic = 0;
	frame(&r, id, port)->frame.ifindex = 77;
	frame(&r, id, port)->type = BEOWIRE_DONE;
	frame(&r, id, port)->bytes = 31;
	assert_int_equal(rings_turn(&r, 0), 0);
	assert_int_equal(st_listed(FRAMES_OUT), 1);
	assert_int_equal(st_listed(REFUSED), 6);
	own_end(&r, fd);
}

static void answer(struct rings *r, uint32_t id, uint16_t type, int status, uint32_t bytes)
{
	struct beowire_record *record = rings_reserve(r, BEOWIRE_ANSWERS, type, id, 0);

	assert_non_null(record);
	record->result.status = status;
	record->result.bytes = bytes;
	rings_commit(r, BEOWIRE_ANSWERS, record);
}

/* Answers to what was not asked are counted, and change nothing. */
static void answers_to_nothing(void **state)
{
	struct rings r;
	uint32_t id;
	int fd = own_server(&r, &id, 0);

	answer(&r, id, BEOWIRE_OPENED, 0, 9);
	answer(&r, id, BEOWIRE_DONE, 0, 0);
	answer(&r, id, BEOWIRE_DONE, 0, UINT32_MAX);
	answer(&r, id, BEOWIRE_FAILED, 1, 0);
	answer(&r, id, BEOWIRE_FAILED, INT32_MIN, 0);
	answer(&r, id, BEOWIRE_FAILED, -512, 0); /* ERESTARTSYS, and others of the kernel's own */
	answer(&r, id, BEOWIRE_CLOSED, 0, 0);
	answer(&r, id, BEOWIRE_OPEN, 0, 0);
	answer(&r, id, 999, 0, 0);
	answer(&r, id + 5, BEOWIRE_ARRIVED, 0, 0);
	assert_int_equal(rings_turn(&r, 0), 0);
	assert_int_equal(st_listed(REFUSED), 10);
	assert_int_equal(st_listed(PORTS), 1);
	answer(&r, id, BEOWIRE_FAILED, -EHOSTUNREACH, 0);
	assert_int_equal(rings_turn(&r, 0), 0);
	st_refused(recv(fd, &id, 1, MSG_DONTWAIT), EHOSTUNREACH);
	st_refused(recv(fd, &id, 1, MSG_DONTWAIT), EAGAIN);
	own_end(&r, fd);
}

/* What this node counts by this name. */
static uint64_t counted(const char *name)
{
	FILE *f = fopen("/proc/thread-self/net/beowire/node", "r");
	unsigned long count = 0, value;
	char line[256], word[64];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s %lu", word, &value) == 2 && !strcmp(word, name))
			count = value;
	fclose(f);
	return count;
}

static void deliver(struct rings *r, uint32_t id, const struct sockaddr_beowire *from, uint32_t n)
{
	struct beowire_record *record = rings_reserve(r, BEOWIRE_ANSWERS, BEOWIRE_ARRIVED, id, n);

	assert_non_null(record);
	record->addr = *from;
	rings_commit(r, BEOWIRE_ANSWERS, record);
	assert_int_equal(rings_turn(r, 0), 0);
}

/* Bytes of an address that mean nothing do not come from a server to a program; and what a socket
 * has no room for is counted. */
static void what_a_server_delivers(void **state)
{
	static const uint8_t zero[sizeof(((struct sockaddr_beowire *)NULL)->sbw_zero)];
	struct sockaddr_beowire told = {.sbw_family = AF_UNIX, .sbw_port = 9, .sbw_mac = {2}}, from;
	socklen_t len = sizeof(from);
	char bytes[OWN_LIMIT];
	uint64_t before;
	struct rings r;
	uint32_t id;
	int fd = own_server(&r, &id, 0), small = 1;

	memset(told.sbw_zero, 0xa5, sizeof(told.sbw_zero));
	deliver(&r, id, &told, 1);
	assert_int_equal(recvfrom(fd, bytes, 1, 0, (struct sockaddr *)&from, &len), 1);
	assert_int_equal(len, sizeof(from));
	assert_int_equal(from.sbw_family, AF_BEOWIRE);
	assert_int_equal(from.sbw_port, told.sbw_port);
	assert_memory_equal(from.sbw_mac, told.sbw_mac, sizeof(told.sbw_mac));
	assert_memory_equal(from.sbw_zero, zero, sizeof(zero));
	assert_int_equal(st_send_to(fd, bytes, 1, &from), 1);

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	before = counted("unqueued");
	for (int i = 0; i < 4; i++)
		deliver(&r, id, &told, 8000); /* each is more than SO_RCVBUF */
	assert_int_equal(counted("unqueued"), before + 3);
	own_end(&r, fd);
}

struct sender {
	int fd, number; /* of the thread */
};

static const struct sockaddr_beowire nobody = {
	.sbw_family = AF_BEOWIRE, .sbw_port = 9, .sbw_mac = {2}};

static void *send_one(void *arg)
{
	struct sender *s = arg;
	char bytes[OWN_LIMIT] = {0};

	__atomic_store_n(&s->number, gettid(), __ATOMIC_RELEASE);
	return (void *)(intptr_t)(st_send_to(s->fd, bytes, sizeof(bytes), &nobody) < 0 ? errno : 0);
}

/* The thread's call sleeps. */
static bool sleeps(int thread)
{
	char path[64], letter = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*d (%*[^)]) %c", &letter), 1);
	fclose(f);
	return letter == 'S';
}

/* A server reads all that it was asked for: how many of this type. */
static int read_requests(struct rings *r, uint16_t type)
{
	const struct beowire_record *request;
	int count = 0;

	while ((request = rings_next(r, BEOWIRE_REQUESTS))) {
		count += request->type == type;
		rings_consume(r, BEOWIRE_REQUESTS, request);
	}
	return count;
}

/* A server that says of a send twice that it is done gives back nothing of another one, of which
 * it was not told: one that waits for room in the ring. */
static void done_twice(void **state)
{
	struct rings r;
	uint32_t id, sent = 0;
	int fd = own_server(&r, &id, 0), room = 1 << 24, one;
	struct sender sender = {.fd = fd};
	char bytes[OWN_LIMIT] = {0};
	pthread_t waiting;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)), 0);
	while (sendto(fd, bytes, sizeof(bytes), MSG_DONTWAIT, (const struct sockaddr *)&nobody,
		      sizeof(nobody)) > 0)
		sent++;
	assert_int_equal(errno, EAGAIN);
	one = under_way() / (int)sent;
	assert_true(one >= OWN_LIMIT);
	for (uint32_t i = 0; i < sent; i++) {
		answer(&r, id, BEOWIRE_DONE, 0, sizeof(bytes));
		assert_int_equal(rings_turn(&r, 0), 0);
	}
	assert_int_equal(under_way(), 0);
	assert_int_equal(pthread_create(&waiting, NULL, send_one, &sender), 0);
	for (int i = 0; under_way() != one || !sleeps(sender.number); i++) {
		assert_true(i < PATIENCE_MS);
		usleep(1000);
	}
	assert_int_equal(st_listed(REFUSED), 0);
	answer(&r, id, BEOWIRE_DONE, 0, sizeof(bytes));
	assert_int_equal(rings_turn(&r, 0), 0);
	assert_int_equal(st_listed(REFUSED), 1);
	assert_int_equal(under_way(), one);
	read_requests(&r, BEOWIRE_SEND);
	assert_int_equal(rings_turn(&r, 0), 0);
	assert_ended(waiting, 0);
	answer(&r, id, BEOWIRE_DONE, 0, sizeof(bytes));
	assert_int_equal(rings_turn(&r, 0), 0);
	assert_int_equal(st_listed(REFUSED), 1);
	assert_int_equal(under_way(), 0);
	own_end(&r, fd);
}

/* A server reads nothing, until there is no room for what it is asked for, be it ever so short. */
static void fill_requests(int fd)
{
	char bytes[OWN_LIMIT] = {0};

	for (int left = 1; left >= 0; left--) {
		while (sendto(fd, bytes, left ? sizeof(bytes) : 0, MSG_DONTWAIT,
			      (const struct sockaddr *)&nobody, sizeof(nobody)) >= 0)
			;
		assert_int_equal(errno, EAGAIN);
	}
}

enum { WAITING = 320, PIECE = 64 };

/* Sockets that wait for room, each of which is told by itself, and words for the server. */
struct waiting {
	struct rings r;
	int filler, epoll, fd[WAITING];
	uint32_t id[WAITING];
};

static void waiting_begin(struct waiting *w)
{
	struct epoll_event out = {.events = EPOLLOUT | EPOLLET};
	int room = 1 << 24, small = 1;
	struct beowire_record *record;
	uint32_t id;

	w->filler = own_server(&w->r, &id, 0);
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(setsockopt(w->filler, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)), 0);
	for (int i = 0; i < WAITING; i++) {
		w->fd[i] = own_socket(&w->r, &w->id[i]);
		setsockopt(w->fd[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	}
	fill_requests(w->filler);
	for (int i = 0; i < WAITING; i++) { /* each is more than SO_RCVBUF */
		record = rings_reserve(&w->r, BEOWIRE_ANSWERS, BEOWIRE_ARRIVED, w->id[i], 8000);
		assert_non_null(record);
		record->addr = nobody;
		rings_commit(&w->r, BEOWIRE_ANSWERS, record);
		assert_int_equal(rings_turn(&w->r, 0), 0);
	}
	for (int i = 0; i < WAITING; i++)
		assert_int_equal(epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->fd[i], &out), 0);
}

/* Once a server has read everything each of many sockets that waited is told, and the server is
 * told of each what there had been no room for. Between 64 and the next others get its lock. */
static void many_that_wait(void **state)
{
	static struct epoll_event events[WAITING];
	static struct waiting w;
	uint64_t before;

	waiting_begin(&w);
	assert_int_equal(epoll_wait(w.epoll, events, WAITING, 0), 0);
	assert_int_equal(read_requests(&w.r, BEOWIRE_PRESSED), 0);
	before = counted("squeezed");
	assert_int_equal(rings_turn(&w.r, 0), 0);
	assert_int_equal(epoll_wait(w.epoll, events, WAITING, 0), WAITING);
	assert_int_equal(counted("squeezed") - before, 2 * (WAITING + 1) / PIECE);
	assert_int_equal(read_requests(&w.r, BEOWIRE_PRESSED), WAITING);
	assert_int_equal(rings_turn(&w.r, 0), 0);
	fill_requests(w.filler);
	for (int i = 0; i < WAITING; i++)
		close(w.fd[i]);
	assert_int_equal(read_requests(&w.r, BEOWIRE_CLOSE), 0);
	before = counted("squeezed");
	assert_int_equal(rings_turn(&w.r, 0), 0);
	assert_int_equal(counted("squeezed") - before, WAITING / PIECE);
	assert_int_equal(read_requests(&w.r, BEOWIRE_CLOSE), WAITING);
	for (int i = 0; i < WAITING; i++)
		answer(&w.r, w.id[i], BEOWIRE_CLOSED, 0, 0);
	assert_int_equal(rings_turn(&w.r, 0), 0);
	assert_int_equal(st_listed(PORTS), 1);
	close(w.epoll);
	own_end(&w.r, w.filler);
}

/* What is charged for unread messages is given back when they have been read. */
static void unread_messages_are_charged(void **state)
{
	enum { COUNT = 40, BYTES = 8000, KEPT = 48 << 10 };
	static char bytes[BYTES];
	struct rings r;
	uint32_t id;
	int fd = own_server(&r, &id, 0), room = 1 << 22;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)), 0);
	for (int i = 0; i < COUNT; i++) {
		struct beowire_record *record =
			rings_reserve(&r, BEOWIRE_ANSWERS, BEOWIRE_ARRIVED, id, BYTES);

		assert_non_null(record);
		record->addr = nobody;
		rings_commit(&r, BEOWIRE_ANSWERS, record);
		assert_int_equal(rings_turn(&r, 0), 0);
	}
	assert_true(bytes_of_sockets(true) >= COUNT * BYTES);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT), BYTES);
	assert_in_range(bytes_of_sockets(true), 0, KEPT);
	own_end(&r, fd);
}

static void records_without_sense(void **state)
{
	static const uint32_t lengths[] = {0,  8,  16,	    32,		17,	48,
					   56, 64, 1 << 20, UINT32_MAX, 1 << 31};
	struct rings r;
	uint32_t id, i;
	int fd = own_server(&r, &id, 0);
	struct ring *ring = &r.ring[BEOWIRE_ANSWERS];
	char byte;

	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		bool good = lengths[i] == 64;
		struct beowire_record *record =
			(void *)(ring->data + (ring->at & (ring->size - 1)));

		*record = (struct beowire_record){.len = lengths[i], .type = BEOWIRE_ARRIVED};
		record->socket = id;
		record->bytes = good ? 0 : 1;
		ring->at += 64;
		__atomic_store_n(&ring->shared->head, ring->at, __ATOMIC_RELEASE);
		assert_int_equal(rings_turn(&r, 0), good ? 0 : -EPROTO);
		assert_int_equal(ring->shared->tail, ring->at);
		assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), good ? 0 : -1);
	}
	/* More written than there is room for, and not a multiple of anything. */
	__atomic_store_n(&ring->shared->head, ring->at + (2 << 20), __ATOMIC_RELEASE);
	assert_int_equal(rings_turn(&r, 0), -EPROTO);
	__atomic_store_n(&ring->shared->head, ring->at + 5, __ATOMIC_RELEASE);
	assert_int_equal(rings_turn(&r, 0), -EPROTO);
	own_end(&r, fd);
}

/* Random words everywhere, while frames arrive and sockets are used. */
static void random_rings(void **state)
{
	struct rings r;
	uint32_t id, i, k;
	int fd = own_server(&r, &id, 0), other = st_bound("b", 0), refusals = 0;
	struct sockaddr_beowire here = st_at(fd), there = st_at(other);
	char bytes[100] = "";

	for (i = 0; i < 1000; i++) {
		for (k = BEOWIRE_ANSWERS; k <= BEOWIRE_FRAMES_OUT; k++) {
			struct ring *ring = &r.ring[k];
			uint32_t n = ring->size / 4, at = ring->shared->tail / 4, j, end;

			for (j = 0; j < 64; j++)
				((uint32_t *)ring->data)[(at + j) % n] = (uint32_t)draw();
			/* Often enough something that is looked at. */
			((uint32_t *)ring->data)[at % n] = (uint32_t)(draw() % 16) * 16;
			((uint32_t *)ring->data)[(at + 1) % n] = (uint32_t)(draw() % 12);
			((uint32_t *)ring->data)[(at + 2) % n] = id + (uint32_t)(draw() % 2);
			((uint32_t *)ring->data)[(at + 3) % n] = (uint32_t)(draw() % 100);
			end = (uint32_t)(draw() % 8 ? draw() % 32 * 16 : draw());
			__atomic_store_n(&ring->shared->head, ring->shared->tail + end,
					 __ATOMIC_RELEASE);
		}
		for (k = BEOWIRE_REQUESTS; k <= BEOWIRE_FRAMES_IN; k++)
			if (draw() % 16 == 0)
				r.ring[k].shared->tail = (uint32_t)draw();
			else
				r.ring[k].shared->tail = r.ring[k].shared->head;
		refusals += rings_turn(&r, 0) == -EPROTO;
		st_send_to(other, bytes, draw() % sizeof(bytes), &here);
		sendto(fd, bytes, draw() % sizeof(bytes), MSG_DONTWAIT, (struct sockaddr *)&there,
		       sizeof(there));
		recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	}
	assert_in_range(refusals, 30, 999);
	st_enter("a");
	assert_true(st_listed(REFUSED) > 30);
	own_end(&r, fd);
	close(other);
}

/* ---- who may serve, and what it costs ---- */

/* The exit status of a process that does this. */
static int child_status(int (*act)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(act());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int open_as_nobody(void)
{
	struct rings r;

	if (setgid(65534) || setuid(65534))
		return 1;
	return -rings_open(&r, 4, "mine");
}

/* CAP_NET_ADMIN suffices; but the rings are locked memory. */
static int open_with_one_capability(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2] = {
		{.effective = 1 << CAP_NET_ADMIN, .permitted = 1 << CAP_NET_ADMIN}};
	struct rlimit enough = {8 << 20, 8 << 20}, little = {1 << 20, 1 << 20};
	struct rings r;
	int error;

	if (prctl(PR_SET_KEEPCAPS, 1) || setgid(65534) || setuid(65534) ||
	    syscall(SYS_capset, &head, caps) || setrlimit(RLIMIT_MEMLOCK, &enough))
		return 255;
	error = rings_open(&r, 4, "mine");
	if (error)
		return -error;
	rings_close(&r);
	setrlimit(RLIMIT_MEMLOCK, &little);
	return rings_open(&r, 4, "mine") == -ENOMEM ? 0 : 254;
}

static void who_may_serve(void **state)
{
	st_enter("a");
	assert_int_equal(child_status(open_as_nobody), EPERM);
	assert_int_equal(child_status(open_with_one_capability), 0);
}

static void calls_of_the_device(void **state)
{
	struct beowire_server_turn turn = {.timeout_ns = 1000000};
	struct beowire_server_claim claim = {.number = 4, .ring_bytes = 1000};
	struct pollfd p = {.events = POLLIN};
	int fd;

	st_enter("a");
	fd = open("/dev/beowire", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	st_refused(ioctl(fd, BEOWIRE_SERVER_TURN, &turn), ENODEV);
	st_refused(ioctl(fd, 12345, &turn), ENOTTY);
	st_refused((int)(intptr_t)mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0), ENODEV);
	st_refused(ioctl(fd, BEOWIRE_SERVER_CLAIM, &claim), EINVAL);
	st_refused(ioctl(fd, BEOWIRE_SERVER_CLAIM, NULL), EFAULT);
	claim.ring_bytes = 1 << 19;
	assert_int_equal(ioctl(fd, BEOWIRE_SERVER_CLAIM, &claim), 0);
	st_refused(ioctl(fd, BEOWIRE_SERVER_CLAIM, &claim), EBUSY);
	st_refused((int)(intptr_t)mmap(NULL, claim.area + 4096, PROT_READ, MAP_SHARED, fd, 0),
		   EINVAL);
	st_refused((int)(intptr_t)mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 4096), EINVAL);
	st_refused((int)(intptr_t)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0), EINVAL);
	assert_int_equal(ioctl(fd, BEOWIRE_SERVER_TURN, &turn), 0);
	p.fd = fd;
	assert_int_equal(poll(&p, 1, 0), 0);
	close(fd);
}

/* ---- all ---- */

static int set_up(void **state)
{
	return system("for n in a b; do ip netns add $n; ip -n $n link set lo up; done; "
		      "ip link add eth0 netns a type veth peer name eth0 netns b; "
		      "for n in a b; do ip -n $n link set eth0 mtu 9000 up; done");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(exchange, pair_begin, pair_end),
		cmocka_unit_test_setup_teardown(exchange_spinning, pair_begin_spinning, pair_end),
		cmocka_unit_test_setup_teardown(calls, pair_begin, pair_end),
		cmocka_unit_test_setup_teardown(one_space_of_numbers, pair_begin, pair_end),
		cmocka_unit_test_setup_teardown(numbers_are_claimed_once, pair_begin, pair_end),
		cmocka_unit_test_setup_teardown(many_sockets, pair_begin, pair_end),
		cmocka_unit_test_setup_teardown(nothing_is_lost_by_a_full_buffer, reliable_begin,
						pair_end),
		cmocka_unit_test_setup_teardown(a_farewell_is_sent, reliable_begin, pair_end),
		cmocka_unit_test_setup_teardown(killed_and_restarted, pair_begin, pair_end),
		cmocka_unit_test_setup_teardown(killed_while_it_sleeps, pair_begin, pair_end),
		cmocka_unit_test_setup_teardown(sleeps_and_wakes, pair_begin, pair_end),
		cmocka_unit_test_setup_teardown(a_server_without_words, NULL, NULL),
		cmocka_unit_test_setup_teardown(forged_frames, NULL, NULL),
		cmocka_unit_test_setup_teardown(answers_to_nothing, NULL, NULL),
		cmocka_unit_test_setup_teardown(what_a_server_delivers, NULL, NULL),
		cmocka_unit_test_setup_teardown(done_twice, NULL, NULL),
		cmocka_unit_test_setup_teardown(many_that_wait, NULL, NULL),
		cmocka_unit_test_setup_teardown(unread_messages_are_charged, NULL, NULL),
		cmocka_unit_test_setup_teardown(records_without_sense, NULL, NULL),
		cmocka_unit_test_setup_teardown(random_rings, pair_begin, pair_end),
		cmocka_unit_test_setup_teardown(who_may_serve, NULL, NULL),
		cmocka_unit_test_setup_teardown(calls_of_the_device, NULL, NULL),
	};

	if (argc != 2)
		return 2;
	st_program = argv[1];
	return cmocka_run_group_tests(tests, set_up, NULL);
}
