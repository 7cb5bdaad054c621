/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A listener's shards: several engines under one number, each with a lock of its own. Connections
 * are spread over them, and nobody can tell: not the other node, and of programs only who reads the
 * list of ports. Listeners are node b's, in a machine with several processors.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kuser.h"

#define MANY	64
#define CROWD	600	  /* strangers, for whom a port of MEMORY has no room */
#define MEMORY	"1048576" /* of a port */
#define SHARDS	4
#define TRIES	200
#define KEY_OFF "none"

static int one[CROWD], other[MANY];

/* What b's list of ports says of a number. */
struct ports {
	unsigned shards; /* lines */
	unsigned busy;	 /* those with peers */
	uint64_t peers, memory;
};

static struct ports ports_of(uint16_t number)
{
	unsigned long long peers, memory;
	struct ports sum = {0};
	char line[256];
	unsigned port;
	FILE *f;

	kt_enter("b");
	f = fopen("/proc/thread-self/net/beowire/ports", "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%u %*s %*s %*s %llu %*s %*s %llu", &port, &peers, &memory) != 3 ||
		    port != number)
			continue;
		sum.shards++;
		sum.busy += peers > 0;
		sum.peers += peers;
		sum.memory += memory;
	}
	fclose(f);
	return sum;
}

static int set_shards(void **state)
{
	const struct rlimit files = {4096, 4096};

	if (setrlimit(RLIMIT_NOFILE, &files))
		return -1;
	kt_settings("shards", "4");
	return 0;
}

static int set_back(void **state)
{
	kt_settings("shards", "0");
	kt_settings("memory_max", "67108864");
	return kt_end(state);
}

#undef kt_test
#define kt_test(f) cmocka_unit_test_setup_teardown(f, set_shards, set_back)

/* Connects MANY, and accepts them. */
static void meet(int listener, int type)
{
	struct sockaddr_beowire at = kt_at(listener);

	for (int i = 0; i < MANY; i++) {
		one[i] = kt_open("a", type);
		assert_int_equal(kt_connect(one[i], &at), 0);
		other[i] = accept(listener, NULL, NULL);
		assert_true(other[i] >= 0);
	}
}

static void part(void)
{
	for (int i = 0; i < MANY; i++) {
		close(one[i]);
		close(other[i]);
	}
}

/* Each of MANY says something else, and is answered. They were accepted in the order in which they
 * were connected. */
static void talk(void)
{
	int word;

	for (int i = 0; i < MANY; i++)
		assert_int_equal(send(one[i], &i, sizeof(i), 0), sizeof(i));
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(recv(other[i], &word, sizeof(word), 0), sizeof(word));
		assert_int_equal(word, i);
		word = ~i;
		assert_int_equal(send(other[i], &word, sizeof(word), 0), sizeof(word));
	}
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(recv(one[i], &word, sizeof(word), 0), sizeof(word));
		assert_int_equal(word, ~i);
	}
}

static void test_connections_are_spread(void **state)
{
	kt_each_connection_type(type) {
		int listener = kt_listener(*type, 5);
		struct sockaddr_beowire at = kt_at(listener), name;
		socklen_t len = sizeof(name);
		struct beowire_counters c;
		struct ports all;

		assert_int_equal(ports_of(at.sbw_port).shards, SHARDS);
		meet(listener, *type);
		talk();
		all = ports_of(at.sbw_port);
		assert_int_equal(all.peers, MANY);
		assert_int_equal(all.busy, SHARDS);
		for (int i = 0; i < MANY; i++) {
			name = kt_at(other[i]);
			assert_memory_equal(&name, &at, sizeof(at));
			assert_int_equal(getpeername(one[i], (struct sockaddr *)&name, &len), 0);
			assert_int_equal(name.sbw_port, at.sbw_port);
		}
		/* A socket's counters are those of all. */
		c = kt_counters(listener);
		assert_int_equal(c.peers, MANY);
		assert_int_equal(c.rx_payload, MANY * sizeof(int));
		assert_int_equal(kt_counters(other[0]).peers, MANY);
		assert_int_equal(kt_counters(other[MANY - 1]).rx_payload, c.rx_payload);
		part();
		close(listener);
	}
}

static void test_as_many_as_are_set(void **state)
{
	int listener;

	kt_settings("shards", "1");
	listener = kt_listener(SOCK_STREAM, 5);
	assert_int_equal(ports_of(kt_at(listener).sbw_port).shards, 1);
	meet(listener, SOCK_STREAM);
	talk();
	part();
	close(listener);
	kt_settings("shards", "0"); /* one for each processor */
	listener = kt_listener(SOCK_STREAM, 5);
	assert_int_equal(ports_of(kt_at(listener).sbw_port).shards,
			 sysconf(_SC_NPROCESSORS_ONLN) < 8 ? sysconf(_SC_NPROCESSORS_ONLN) : 8);
	close(listener);
	kt_enter("b");
	assert_int_equal(kt_set("shards", "9"), -EINVAL);
}

/* Whoever only connects, or only has a number, has one engine. */
static void test_others_have_one(void **state)
{
	int fd = kt_bound("b", SOCK_STREAM, 0), message = kt_bound("b", SOCK_RDM, 0);

	assert_int_equal(ports_of(kt_at(fd).sbw_port).shards, 1);
	assert_int_equal(ports_of(kt_at(message).sbw_port).shards, 1);
	close(message);
	close(fd);
}

/* The number is taken until the last connection ends; shards without any end with the listener. */
static void test_the_listener_ends(void **state)
{
	int listener = kt_listener(SOCK_SEQPACKET, 5), fd;
	struct sockaddr_beowire at = kt_at(listener), self = {.sbw_family = AF_BEOWIRE};
	int a = kt_open("a", SOCK_SEQPACKET), b;
	char byte;

	self.sbw_port = at.sbw_port;
	assert_int_equal(kt_connect(a, &at), 0);
	b = accept(listener, NULL, NULL);
	assert_true(b >= 0);
	close(listener);
	kt_becomes(ports_of(at.sbw_port).shards, 1, 1);
	fd = kt_open("b", SOCK_SEQPACKET);
	kt_refused(bind(fd, (struct sockaddr *)&self, sizeof(self)), EADDRINUSE);
	assert_int_equal(send(a, "x", 1, 0), 1);
	assert_int_equal(recv(b, &byte, 1, 0), 1);
	assert_int_equal(send(b, "y", 1, 0), 1);
	assert_int_equal(recv(a, &byte, 1, 0), 1);
	close(a);
	close(b);
	kt_becomes(ports_of(at.sbw_port).shards, 0, 0);
	kt_until(bind(fd, (struct sockaddr *)&self, sizeof(self)) == 0);
	close(fd);
}

/* Whom nobody has accepted is told so, whichever shard he is in; nobody is let in any more. */
static void test_nobody_accepts(void **state)
{
	int listener = kt_listener(SOCK_SEQPACKET, MANY), late = kt_open("a", SOCK_SEQPACKET);
	struct sockaddr_beowire at = kt_at(listener);

	for (int i = 0; i < MANY; i++) {
		one[i] = kt_open("a", SOCK_SEQPACKET);
		assert_int_equal(kt_connect(one[i], &at), 0);
	}
	close(listener);
	for (int i = 0; i < MANY; i++) {
		assert_int_not_equal(kt_events(one[i], POLLIN), 0); /* within its time */
		assert_int_equal(kt_error(one[i]), ECONNRESET);
		close(one[i]);
	}
	assert_int_equal(kt_connect(late, &at), -ECONNREFUSED);
	close(late);
	kt_becomes(ports_of(at.sbw_port).shards, 0, 0);
}

/* The backlog is that of the listener, not of a shard. */
static void test_one_backlog(void **state)
{
	int listener = kt_listener(SOCK_SEQPACKET, 7), in = 0;
	struct sockaddr_beowire at = kt_at(listener);

	for (int i = 0; i < MANY; i++) {
		one[i] = kt_open("a", SOCK_SEQPACKET);
		in += kt_connect(one[i], &at) == 0;
	}
	assert_int_equal(in, 8); /* one more than asked for, as with TCP */
	for (int i = 0; i < MANY; i++)
		close(one[i]);
	close(listener);
}

/* Who listens is connected to nothing, and the other way round; listening again is no second set of
 * shards. */
static void test_listens_for_good(void **state)
{
	int listener = kt_listener(SOCK_STREAM, 1), fd = kt_listener(SOCK_STREAM, 1);
	struct sockaddr_beowire at = kt_at(listener);
	int a = kt_open("a", SOCK_STREAM);

	assert_int_equal(kt_connect(fd, &at), -EISCONN);
	assert_int_equal(listen(listener, 3), 0);
	assert_int_equal(ports_of(at.sbw_port).shards, SHARDS);
	assert_int_equal(kt_connect(a, &at), 0);
	kt_refused(listen(a, 1), EINVAL);
	close(a);
	close(fd);
	close(listener);
}

/* As their own ports count them. */
static uint64_t peers_of_all(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < MANY; i++)
		sum += kt_counters(one[i]).peers;
	return sum;
}

/* Who was refused before the port listened, and whose frames go to another shard since, is left,
 * and gets in. */
static void test_refused_before(void **state)
{
	int listener = kt_bound("b", SOCK_SEQPACKET, 0);
	struct sockaddr_beowire at = kt_at(listener);

	for (int i = 0; i < MANY; i++) {
		one[i] = kt_open("a", SOCK_SEQPACKET);
		assert_int_equal(kt_connect(one[i], &at), -ECONNREFUSED);
	}
	assert_int_equal(listen(listener, MANY), 0);
	kt_becomes(peers_of_all(), ports_of(at.sbw_port).peers, ports_of(at.sbw_port).peers);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(kt_connect(one[i], &at), 0);
		other[i] = accept(listener, NULL, NULL);
		assert_true(other[i] >= 0);
	}
	talk();
	part();
	close(listener);
}

static int listening, looked;

static long looks(void *arg)
{
	struct beowire_counters c;
	socklen_t len = sizeof(c);

	while (!__atomic_load_n(&listening, __ATOMIC_ACQUIRE)) {
		if (getsockopt(*(int *)arg, SOL_BEOWIRE, BEOWIRE_COUNTERS, &c, &len))
			return errno;
		__atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
	}
	return 0;
}

/* Its counters are read while shards are being opened. */
static void test_counted_meanwhile(void **state)
{
	for (int i = 0; i < TRIES; i++) {
		int listener = kt_bound("b", SOCK_SEQPACKET, 0);
		struct kt_thread thread = {0};

		listening = looked = 0;
		kt_start(&thread, looks, &listener);
		while (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE))
			;
		assert_int_equal(listen(listener, 1), 0);
		__atomic_store_n(&listening, 1, __ATOMIC_RELEASE);
		assert_int_equal(kt_join(&thread), 0);
		close(listener);
	}
}

/* Listening again, when more shards are set than before, costs no connection. */
static void test_spread_once(void **state)
{
	int listener;

	kt_settings("shards", "1");
	listener = kt_listener(SOCK_STREAM, 5);
	meet(listener, SOCK_STREAM);
	kt_settings("shards", "4");
	assert_int_equal(listen(listener, 7), 0);
	assert_int_equal(ports_of(kt_at(listener).sbw_port).shards, 1);
	talk();
	part();
	close(listener);
}

/* What is set between bind() and listen() is for ports that are opened later: a shard that would
 * differ from the first is not opened. */
static void test_settings_of_the_first(void **state)
{
	int listener = kt_bound("b", SOCK_STREAM, 0), a = kt_open("a", SOCK_STREAM);
	struct sockaddr_beowire at = kt_at(listener);

	kt_enter("b");
	assert_int_equal(kt_set("key", KEY_OFF), 0); /* again: another key than before, perhaps */
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(ports_of(at.sbw_port).shards, 1);
	assert_int_equal(kt_connect(a, &at), 0);
	close(a);
	close(listener);
}

static int listens_three_times(void *arg)
{
	for (int i = 0; i < 3; i++) {
		int fd = socket(AF_BEOWIRE, SOCK_STREAM, 0);

		if (fd < 0 || listen(fd, 1))
			return errno;
	}
	return listen(socket(AF_BEOWIRE, SOCK_STREAM, 0), 1) && errno == ENOBUFS ? 0 : 99;
}

/* A user's ports are counted by their numbers. */
static void test_one_port_of_its_user(void **state)
{
	kt_set_parameter("user_ports_max", 3);
	kt_enter("b");
	assert_int_equal(kt_as(KT_BOB, listens_three_times, NULL), 0);
}

/* Strangers get what one port may take, however many shards it has: of those that are not let in,
 * as they want another type of connection, some make room for others. */
static void test_memory_of_one_port(void **state)
{
	struct sockaddr_beowire at;
	int listener;

	kt_settings("memory_max", MEMORY);
	listener = kt_listener(SOCK_SEQPACKET, 1);
	at = kt_at(listener);
	for (int i = 0; i < CROWD; i++) {
		one[i] = kt_open("a", SOCK_STREAM);
		assert_int_equal(kt_connect(one[i], &at), -ECONNREFUSED);
	}
	assert_in_range(ports_of(at.sbw_port).memory, 1, atol(MEMORY));
	assert_in_range(kt_counters(listener).evicted, 1, CROWD);
	for (int i = 0; i < CROWD; i++)
		close(one[i]);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_connections_are_spread),
		kt_test(test_as_many_as_are_set),
		kt_test(test_others_have_one),
		kt_test(test_the_listener_ends),
		kt_test(test_nobody_accepts),
		kt_test(test_one_backlog),
		kt_test(test_listens_for_good),
		kt_test(test_settings_of_the_first),
		kt_test(test_refused_before),
		kt_test(test_counted_meanwhile),
		kt_test(test_spread_once),
		kt_test(test_one_port_of_its_user),
		kt_test(test_memory_of_one_port),
	};

	return cmocka_run_group_tests(tests, kt_open_to_all, NULL);
}
