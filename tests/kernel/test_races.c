/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is read without the lock that it is written with is read and written at the same time: on
 * one processor messages go to and fro, or connections come and go, while on the other one a thread
 * does one small thing with these sockets, again and again: what the one writes without a lock, the
 * other one is about to read. What matters is what a kernel says of it that looks for data races
 * (test_kernel_races.py).
 *
 *	test_races [MILLISECONDS]
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ktest.h"

#define SHORT 256
#define LONG  40000 /* too long to go along with the first frame */
#define BURST 32    /* messages that wait for their receiver */

static unsigned long for_ms = 50; /* each pair of doings */

struct race {
	struct kt_pair p;
	int listener;
	struct sockaddr_beowire at;
	volatile int one, other; /* the sockets that the other processor looks at */
	bool sends_only;	 /* mostly */
	uint64_t end;
};

/* Until the time is over, but at least until something has been done. */
static bool lasts(const struct race *r, long done)
{
	return !done || kt_now_ns() < r->end;
}

static void go_to(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)processor, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

/* ---- on the first processor: nothing that waits ---- */

/* Both ends of an exchange. Now and then more waits in its queue, and a message is long. */
static long talks(void *arg)
{
	static char bytes[LONG];
	const struct race *r = arg;
	long sent = 0;

	go_to(0);
	for (unsigned i = 0; lasts(r, sent); i++) {
		for (int k = i % 8 ? 2 : BURST; k && lasts(r, sent); k--)
			sent += send(r->p.a, bytes, SHORT, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
		if (i % 8 == 0)
			send(r->p.a, bytes, LONG, MSG_NOSIGNAL | MSG_DONTWAIT);
		for (int k = r->sends_only && i % 8 ? 0 : 2 * BURST; k && lasts(r, sent); k--)
			if (recv(r->p.b, bytes, sizeof(bytes), MSG_DONTWAIT) < 0)
				break;
	}
	return sent;
}

/* Both ends of one connection after another; either end is closed first. */
static long comes_and_goes(void *arg)
{
	struct race *r = arg;
	long done = 0;
	char byte = 0;

	go_to(0);
	for (; lasts(r, done); done++) {
		r->one = kt_open("a", SOCK_STREAM);
		assert_int_equal(kt_connect(r->one, &r->at), 0);
		r->other = accept(r->listener, NULL, NULL);
		send(r->one, &byte, 1, MSG_NOSIGNAL);
		recv(r->other, &byte, 1, MSG_DONTWAIT);
		shutdown(done % 2 ? r->one : r->other, done % 4 < 2 ? SHUT_WR : SHUT_RDWR);
		recv(r->one, &byte, 1, MSG_DONTWAIT);
		recv(r->other, &byte, 1, MSG_DONTWAIT);
		close(done % 3 ? r->one : r->other);
		close(done % 3 ? r->other : r->one);
	}
	return done;
}

/* ---- on the other one ---- */

static void polls(const struct race *r, bool odd)
{
	struct pollfd two[] = {{.fd = r->one, .events = POLLIN | POLLOUT},
			       {.fd = r->other, .events = POLLIN | POLLOUT}};

	poll(two, 2, 0);
}

static void reads_counters(const struct race *r, bool odd)
{
	struct beowire_counters counters;
	socklen_t n = sizeof(counters);

	getsockopt(odd ? r->one : r->other, SOL_BEOWIRE, BEOWIRE_COUNTERS, &counters, &n);
}

static void lists(const struct race *r, bool odd)
{
	char text[4096];
	int fd = open(odd ? "/proc/thread-self/net/beowire/sockets"
			  : "/proc/thread-self/net/beowire/ports",
		      O_RDONLY);

	while (read(fd, text, sizeof(text)) > 0)
		;
	close(fd);
}

static void sets(const struct race *r, bool odd)
{
	static const struct {
		int name, values[2];
	} options[] = {
		{BEOWIRE_BUSY_US, {20, 50}},
		{BEOWIRE_WAIT, {BEOWIRE_WAIT_ADAPTIVE, BEOWIRE_WAIT_FIXED}},
		{BEOWIRE_COPY_MAX, {1000, 65536}},
		{BEOWIRE_EAGER_MAX, {1000, 16384}},
	};

	for (int i = 0; i < 4; i++) {
		const int *value = &options[i].values[odd];

		setsockopt(r->one, SOL_BEOWIRE, options[i].name, value, sizeof(*value));
		setsockopt(r->other, SOL_BEOWIRE, options[i].name, value, sizeof(*value));
	}
}

static void resizes(const struct race *r, bool odd)
{
	const int room = odd ? 16384 : 1 << 20;

	setsockopt(r->p.b, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	setsockopt(r->p.a, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
}

static void directs(const struct race *r, bool odd)
{
	kt_connect(r->p.a, &r->p.at_b);
}

static void sends_too(const struct race *r, bool odd)
{
	char bytes[SHORT] = {0};

	send(r->p.a, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void receives_too(const struct race *r, bool odd)
{
	static char bytes[LONG];

	recv(r->p.b, bytes, sizeof(bytes), MSG_DONTWAIT);
}

/* Who sends reads that as well. */
static void shuts(const struct race *r, bool odd)
{
	shutdown(r->p.a, SHUT_RD);
}

static const struct {
	void (*does)(const struct race *r, bool odd);
	bool anywhere; /* also while connections come and go */
} others[] = {
	{polls, true},	    {reads_counters, true}, {lists, true},
	{sets, true},	    {resizes, false},	    {directs, false},
	{sends_too, false}, {receives_too, false},  {shuts, false},
};

#define OTHERS (sizeof(others) / sizeof(others[0]))

/* One thing on one processor, and another one on the other: each once at least. */
static void meet(struct race *r, long (*one)(void *), size_t other)
{
	struct kt_thread t;
	long turns = 0;

	r->sends_only = others[other].does == receives_too;
	r->end = kt_now_ns() + for_ms * 1000000;
	kt_start(&t, one, r);
	kt_enter("b");
	go_to(1);
	for (; lasts(r, turns); turns++) {
		others[other].does(r, turns % 2);
		__builtin_ia32_pause(); /* where one thread emulates both, it goes to the first */
	}
	kt_join(&t);
}

static void beside_all(struct kt_pair p)
{
	struct race r = {.p = p, .one = p.a, .other = p.b};

	for (size_t i = 0; i < OTHERS; i++)
		meet(&r, talks, i);
	kt_close(&r.p);
}

static void test_messages(void **state)
{
	beside_all(kt_couple(SOCK_RDM));
}

static void test_datagrams(void **state)
{
	beside_all(kt_couple(SOCK_DGRAM));
}

static void test_records(void **state)
{
	beside_all(kt_connection(SOCK_SEQPACKET));
}

static void test_streams(void **state)
{
	beside_all(kt_connection(SOCK_STREAM));
}

static void test_comings_and_goings(void **state)
{
	struct race r = {.listener = kt_listener(SOCK_STREAM, 8), .one = -1, .other = -1};

	r.at = kt_at(r.listener);
	for (size_t i = 0; i < OTHERS; i++)
		if (others[i].anywhere)
			meet(&r, comes_and_goes, i);
	close(r.listener);
}

int main(int count, char **words)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_comings_and_goings),
		kt_test(test_messages),
		kt_test(test_datagrams),
		kt_test(test_records),
		kt_test(test_streams),
	};

	if (count > 1)
		for_ms = strtoul(words[1], NULL, 10);
	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
