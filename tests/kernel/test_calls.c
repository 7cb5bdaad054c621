/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls on sockets without connections and what they promise: the table of
 * docs/kernel-module.md, row by row. What is sent and whether it arrives is in test_messages.c,
 * how calls wait in test_blocking.c, options in test_options.c.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ktest.h"

static char numbers[512]; /* the file of the module kt_numbers */
static char hashes[512];  /* the same of another one */

/* ---- socket, bind, names ---- */

static void test_socket_types(void **state)
{
	kt_enter("a");
	kt_each_message_type(type)
		close(kt_open("a", *type));
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

	kt_each_message_type(type) {
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

/* Of an address that the kernel tells all bytes are told. */
static void has_no_others(const struct sockaddr_beowire *name)
{
	const struct sockaddr_beowire none = {0};

	assert_memory_equal(name->sbw_zero, none.sbw_zero, sizeof(none.sbw_zero));
}

static void test_names(void **state)
{
	struct sockaddr_beowire name,
		none = {.sbw_family = AF_BEOWIRE},
		to = {.sbw_family = AF_BEOWIRE, .sbw_port = 5, .sbw_mac = {2}};
	struct sockaddr *p = (struct sockaddr *)&name;
	socklen_t len = sizeof(name), few = 4;
	int fd = kt_open("a", SOCK_RDM);

	assert_int_equal(getsockname(fd, p, &len), 0);
	assert_memory_equal(&name, &none, sizeof(none));
	kt_refused(getpeername(fd, p, &len), ENOTCONN);
	assert_int_equal(kt_connect(fd, &to), 0);
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
	has_no_others(&name);
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

	kt_each_message_type(type) {
		struct kt_pair p = kt_pair(*type);

		kt_refused(send(p.a, "x", 1, 0), EDESTADDRREQ);
		assert_int_equal(kt_connect(p.a, &p.at_b), 0);
		assert_int_equal(send(p.a, "x", 1, 0), 1);
		assert_int_equal(recv(p.b, &byte, 1, 0), 1);
		assert_int_equal(connect(p.a, &none, sizeof(none)), 0);
		kt_refused(send(p.a, "x", 1, 0), EDESTADDRREQ);
		kt_close(&p);
	}
}

static void test_bad_destination(void **state)
{
	kt_each_message_type(type) {
		struct kt_pair p = kt_pair(*type);
		struct sockaddr_beowire to = p.at_b;

		to.sbw_port = 0;
		kt_refused(kt_send_to(p.a, "x", 1, &to), EADDRNOTAVAIL);
		assert_int_equal(kt_connect(p.a, &to), -EADDRNOTAVAIL);
		to = p.at_b;
		memset(to.sbw_mac, 0, 6);
		kt_refused(kt_send_to(p.a, "x", 1, &to), EADDRNOTAVAIL);
		assert_int_equal(kt_connect(p.a, &to), -EADDRNOTAVAIL);
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
	kt_each_message_type(type) {
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

	kt_each_message_type(type) {
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
	usleep(50000); /* mostly it waits by then; if not it is told all the same */
	assert_int_equal(shutdown(p.a, SHUT_RD), 0);
	assert_int_equal(kt_join(&t), 0);
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

/* ---- numbers of peers ---- */

/* What this socket calls the peer at this address; it is met if need be. */
static int number_of(int fd, const struct sockaddr_beowire *at)
{
	union {
		struct sockaddr_beowire addr;
		int number;
	} who = {.addr = *at};
	socklen_t len = sizeof(who);

	assert_int_equal(getsockopt(fd, SOL_BEOWIRE, BEOWIRE_PEER_NUMBER, &who, &len), 0);
	return who.number;
}

/* Behind the last number that an int holds comes the first one that nobody has, and programs reach
 * each peer by its own (drivers/kt_numbers.c). */
static void test_numbers_of_peers_begin_anew(void **state)
{
	int a = kt_bound("a", SOCK_RDM, 0), b[3], number[3];
	char byte;

	kt_shell("insmod %s", numbers);
	for (int i = 0; i < 3; i++) {
		struct sockaddr_beowire at;

		b[i] = kt_bound("b", SOCK_RDM, 0);
		at = kt_at(b[i]);
		if (i == 1)
			kt_shell("echo %d >/sys/module/kt_numbers/parameters/thread", gettid());
		number[i] = number_of(a, &at);
	}
	kt_shell("rmmod kt_numbers");
	assert_int_equal(number[0], 1);
	assert_int_equal(number[1], INT32_MAX);
	assert_int_equal(number[2], 2);
	for (int i = 0; i < 3; i++) {
		const struct beowire_info info = {.peer = (uint32_t)number[i]};

		assert_int_equal(kt_send_info(a, "x", 1, NULL, &info, 0), 0);
		assert_int_equal(recv(b[i], &byte, 1, 0), 1);
		close(b[i]);
	}
	close(a);
}

static uint64_t hashed(const char *parameter)
{
	char path[128];
	unsigned long long value = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/module/kt_hashed/parameters/%s", parameter);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%llu", &value), 1);
	fclose(f);
	return value;
}

/* Keys by which one socket finds peers: by address, and by node, port and incarnation. */
struct keys {
	uint64_t address, identity;
};

static struct keys keys_of(int fd, const struct sockaddr_beowire at[2])
{
	union {
		struct sockaddr_beowire addr;
		int up;
	} who = {.addr = at[0]};
	socklen_t len = sizeof(who);
	uint64_t one, two;
	struct keys keys;

	number_of(fd, &at[0]);
	number_of(fd, &at[1]); /* the last one is found without its hash */
	kt_shell("echo %d >/sys/module/kt_hashed/parameters/thread", gettid());
	one = hashed("one");
	number_of(fd, &at[0]);
	keys.address = hashed("one_by");
	assert_int_equal(hashed("one"), one + 1);
	two = hashed("two");
	assert_int_equal(getsockopt(fd, SOL_BEOWIRE, BEOWIRE_PEER_UP, &who, &len), 0);
	keys.identity = hashed("two_by");
	assert_int_equal(hashed("two"), two + 1);
	kt_shell("echo 0 >/sys/module/kt_hashed/parameters/thread");
	return keys;
}

/* Who chooses addresses does not choose where a port looks for them: each has a key of its own
 * (drivers/kt_hashed.c). */
static void test_ports_have_keys_to_find_peers_by(void **state)
{
	int one = kt_bound("a", SOCK_RDM, 0), other = kt_bound("a", SOCK_RDM, 0),
	    b[2] = {kt_bound("b", SOCK_RDM, 0), kt_bound("b", SOCK_RDM, 0)};
	const struct sockaddr_beowire at[2] = {kt_at(b[0]), kt_at(b[1])};
	struct keys of_one, of_other;

	kt_shell("insmod %s", hashes);
	of_one = keys_of(one, at);
	of_other = keys_of(other, at);
	kt_shell("rmmod kt_hashed");
	assert_true(of_one.address != of_other.address);
	assert_true(of_one.identity != of_other.identity);
	close(b[0]);
	close(b[1]);
	close(one);
	close(other);
}

#define MANY 300

/* Tables in which a port finds its peers grow with their number, and that costs little: each peer
 * is looked for and put there, 32 are put into the first larger table, and 128 into the next. */
static void test_tables_of_peers_grow(void **state)
{
	struct sockaddr_beowire nobody = {.sbw_family = AF_BEOWIRE, .sbw_mac = {2}};
	int fd = kt_bound("a", SOCK_RDM, 0);
	uint64_t before;

	kt_shell("insmod %s", hashes);
	kt_shell("echo %d >/sys/module/kt_hashed/parameters/thread", gettid());
	before = hashed("one");
	for (int i = 1; i <= MANY; i++) {
		nobody.sbw_port = (uint16_t)i;
		number_of(fd, &nobody);
	}
	assert_in_range(hashed("one") - before, 700, 1200);
	kt_shell("rmmod kt_hashed");
	close(fd);
}

int main(int count, char **words)
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
		kt_test(test_fork_and_dup),
		kt_test(test_close_after_send),
		kt_test(test_numbers_of_peers_begin_anew),
		kt_test(test_ports_have_keys_to_find_peers_by),
		kt_test(test_tables_of_peers_grow),
	};

	kt_driver(numbers, sizeof(numbers), words[0], "kt_numbers");
	kt_driver(hashes, sizeof(hashes), words[0], "kt_hashed");
	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
