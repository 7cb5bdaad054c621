/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Beside TCP/IP on one interface: its connections neither lose a byte nor wait for ever while
 * messages flow in both directions, while the interface is attached and detached, and while the
 * module is not asked at all.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ktest.h"

#define BYTES (8u << 20)
#define PART  65536u

struct stream {
	int fd;
	uint32_t seed;
};

static struct sockaddr_in address(int last)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(4000)};

	at.sin_addr.s_addr = htonl(0x0a090000u + (uint32_t)last);
	return at;
}

static int addresses(void **state)
{
	kt_shell("ip -n a address replace 10.9.0.1/24 dev eth0");
	kt_shell("ip -n b address replace 10.9.0.2/24 dev eth0");
	return kt_attach(state);
}

/* A connection of TCP's from a to b. */
static struct kt_pair tcp_connection(void)
{
	struct sockaddr_in at = address(2);
	const int on = 1;
	struct kt_pair p;
	int listener;

	kt_enter("b");
	listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	kt_enter("a");
	p.a = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(p.a, (struct sockaddr *)&at, sizeof(at)), 0);
	p.b = accept(listener, NULL, NULL);
	assert_true(p.b >= 0);
	close(listener);
	return p;
}

static long send_all(void *arg)
{
	const struct stream *s = arg;
	static __thread char bytes[PART];

	for (uint32_t at = 0; at < BYTES; at += PART) {
		kt_fill(bytes, PART, s->seed + at);
		for (uint32_t done = 0; done < PART;) {
			ssize_t n = send(s->fd, bytes + done, PART - done, 0);

			if (n <= 0)
				return -errno;
			done += (uint32_t)n;
		}
	}
	return 0;
}

static long receive_all(void *arg)
{
	const struct stream *s = arg;
	static __thread char bytes[PART];

	for (uint32_t at = 0; at < BYTES; at += PART)
		if (recv(s->fd, bytes, PART, MSG_WAITALL) != PART ||
		    !kt_filled(bytes, PART, s->seed + at))
			return -1;
	return 0;
}

/* All bytes of a stream each way, while `meanwhile` is called again and again. */
static void carry(const struct kt_pair *tcp, void (*meanwhile)(void *), void *arg)
{
	struct stream ends[4] = {{tcp->a, 1}, {tcp->b, 1}, {tcp->b, 2}, {tcp->a, 2}};
	struct kt_thread threads[4];
	uint64_t begun = kt_now_ns();

	for (int i = 0; i < 4; i++)
		kt_start(&threads[i], i % 2 ? receive_all : send_all, &ends[i]);
	do {
		meanwhile(arg);
	} while (kt_now_ns() - begun < 300000000);
	for (int i = 0; i < 4; i++)
		assert_int_equal(kt_join(&threads[i]), 0);
}

static void messages(void *arg)
{
	const struct kt_pair *p = arg;
	static char bytes[100000], got[100000];
	const size_t sizes[] = {1, 1000, 8000, sizeof(bytes)};

	for (int i = 0; i < 4; i++) {
		kt_fill(bytes, sizes[i], (uint32_t)i);
		assert_int_equal(send(p->a, bytes, sizes[i], MSG_DONTWAIT), sizes[i]);
		assert_int_equal(recv(p->b, got, sizeof(got), 0), sizes[i]);
		assert_true(kt_filled(got, sizes[i], (uint32_t)i));
	}
}

static void test_while_messages_flow(void **state)
{
	struct kt_pair tcp = tcp_connection(), p = kt_couple(SOCK_RDM);

	carry(&tcp, messages, &p);
	kt_close(&p);
	kt_close(&tcp);
}

static void detach_and_attach(void *arg)
{
	struct beowire_iface iface = {.name = "eth0"};

	assert_int_equal(ioctl(*(int *)arg, BEOWIRE_IOC_DETACH, &iface), 0);
	usleep(1000);
	assert_int_equal(ioctl(*(int *)arg, BEOWIRE_IOC_ATTACH, &iface), 0);
	usleep(1000);
}

static void test_while_the_interface_is_attached_and_detached(void **state)
{
	struct kt_pair tcp = tcp_connection();
	int fd = kt_open("a", SOCK_RDM);

	carry(&tcp, detach_and_attach, &fd);
	close(fd);
	kt_close(&tcp);
}

/* What the module does not know of is not its: neither counted nor answered. */
static void test_frames_of_tcp_are_not_seen(void **state)
{
	const char *const words[] = {"foreign", "malformed", "unclaimed", "refused"};
	struct kt_pair tcp = tcp_connection();
	uint64_t before[4];
	char bytes[8];

	for (int i = 0; i < 4; i++)
		before[i] = kt_number("a", "/proc/net/beowire/node", words[i]);
	assert_int_equal(send(tcp.a, "12345678", 8, 0), 8);
	assert_int_equal(recv(tcp.b, bytes, 8, MSG_WAITALL), 8);
	for (int i = 0; i < 4; i++)
		assert_int_equal(kt_number("a", "/proc/net/beowire/node", words[i]), before[i]);
	kt_close(&tcp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_while_messages_flow),
		kt_test(test_while_the_interface_is_attached_and_detached),
		kt_test(test_frames_of_tcp_are_not_seen),
	};

	return cmocka_run_group_tests(tests, addresses, NULL);
}
