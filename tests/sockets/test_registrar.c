/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whom the registrar takes as a client, and what it hands on, where its sockets are the test's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "claim.h"
#include "core.h"
#include "discard.h"
#include "owned.h"
#include "real.h"
#include "registrar.h"
#include "who.h"

#define CLAIM	 1000000 /* numbers of descriptors that are none */
#define PORT	 1000001
#define CALLER	 1000002
#define CALLERS	 (2 * BWS_REGISTRAR_CLIENTS)
#define STRANGER 17 /* each so many callers one is another user's */

struct bws_core bws;

static struct bws_registrar r;
static struct pollfd fds[BWS_REGISTRAR_FDS];
static int calls, callers; /* that have come, and that will */
static bool strangers;
static int places;   /* for strangers' calls: that are free, */
static int reserved; /* and taken for a moment */
static uint32_t discarded[CALLERS];
static uint32_t closed[CALLERS], closed_other;
static uint8_t datagram[BWS_OFFER_BYTES + 1];
static int datagrams, datagram_len;
static uint32_t told;
static size_t told_len;

int bw_claim_dial(const char *name)
{
	return -ECONNREFUSED;
}

int bw_claim_name(const char *name)
{
	return CLAIM;
}

int bws_own_accept4(int fd, struct sockaddr *name, socklen_t *len, int flags)
{
	assert_int_equal(fd, CLAIM);
	return calls < callers ? CALLER + calls++ : -1;
}

int bw_who_may(int fd, struct ucred *who)
{
	return strangers && (fd - CALLER) % STRANGER == 0 ? -EACCES : 0;
}

int bws_own_close(int fd)
{
	if (fd < CALLER)
		closed_other++;
	else
		closed[fd - CALLER]++;
	return 0;
}

bool bw_discard_reserve(void)
{
	assert_int_equal(reserved, 0);
	reserved = places > 0;
	return reserved;
}

void bw_discard_return(void)
{
	assert_int_equal(reserved--, 1);
}

bool bw_discard_room(void)
{
	return places > 0;
}

void bw_discard(int fd)
{
	bw_discard_return();
	places--;
	discarded[fd - CALLER]++;
}

void bw_discard_listener(int fd)
{
	assert_int_equal(fd, CLAIM);
	closed_other++;
}

int bws_offer_socket(int family, uint16_t port)
{
	assert_int_equal(port, BWS_OFFER_PORT);
	return family ? -1 : PORT;
}

int bws_offer_receive(int fd, struct bws_from *from, uint8_t *bytes, size_t room)
{
	if (!datagrams)
		return -1;
	datagrams--;
	memset(from, 0, sizeof(*from));
	from->port = 77;
	memcpy(bytes, datagram, room);
	return datagram_len;
}

static void tell(const struct bws_from *from, const uint8_t *bytes, size_t len)
{
	assert_int_equal(from->port, 77);
	told++;
	told_len = len;
}

static int begin(void **state)
{
	bws_real_load();
	calls = callers = datagrams = 0;
	strangers = false;
	memset(closed, 0, sizeof(closed));
	memset(discarded, 0, sizeof(discarded));
	places = CALLERS;
	reserved = 0;
	told = closed_other = 0;
	bws_registrar_init(&r);
	bws_registrar_seek(&r, 1);
	assert_int_equal(r.claim, CLAIM);
	assert_int_equal(r.port[0], PORT);
	return 0;
}

/* What is there at these of its descriptors. */
static void serve(int which)
{
	int n = bws_registrar_fds(&r, fds);

	assert_true(which < n);
	fds[which].revents = POLLIN;
	bws_registrar_serve(&r, fds, n, tell);
}

static void call(int n)
{
	callers = n;
	serve(3);
	assert_int_equal(calls, n);
}

/* Who hears of offers could answer them. */
static void registrar__takes_processes_of_its_user_alone(void **state)
{
	strangers = true;
	call(100);
	assert_int_equal(r.clients, 100 - 6);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(discarded[i], i % STRANGER == 0);
		assert_int_equal(closed[i], 0);
	}
	assert_int_equal(reserved, 0);
	for (int i = 0; i < r.clients; i++)
		assert_int_not_equal((r.client[i] - CALLER) % STRANGER, 0);
	bws_registrar_close(&r);
}

/* Whose connection there is no place for is not accepted, until there is one. */
static void registrar__waits_for_a_place(void **state)
{
	strangers = true;
	places = 2;
	callers = 100;
	serve(3);
	assert_int_equal(calls, STRANGER + 1);
	assert_int_equal(r.clients, STRANGER - 1);
	assert_true(bws_registrar_due(&r, 1) < UINT64_MAX);
	bws_registrar_fds(&r, fds);
	assert_int_equal(fds[3].events, 0);
	places = CALLERS;
	bws_registrar_fds(&r, fds);
	assert_int_equal(fds[3].events, POLLIN);
	assert_true(bws_registrar_due(&r, 1) == UINT64_MAX);
	serve(3);
	assert_int_equal(calls, 100);
	bws_registrar_close(&r);
	assert_int_equal(r.clients, 0);
	assert_int_equal(r.claim, -1);
}

static void registrar__has_room_for_so_many(void **state)
{
	uint32_t sum = 0;

	call(BWS_REGISTRAR_CLIENTS + 20);
	assert_int_equal(r.clients, BWS_REGISTRAR_CLIENTS);
	for (int i = 0; i < CALLERS; i++)
		sum += closed[i];
	assert_int_equal(sum, 20);
	for (int i = 0; i < 20; i++)
		assert_int_equal(closed[BWS_REGISTRAR_CLIENTS + i], 1);
	/* One that ends makes room for one. */
	serve(4);
	assert_int_equal(r.clients, BWS_REGISTRAR_CLIENTS - 1);
	assert_int_equal(closed[0], 1);
	call(BWS_REGISTRAR_CLIENTS + 22);
	assert_int_equal(r.clients, BWS_REGISTRAR_CLIENTS);
	assert_int_equal(closed[BWS_REGISTRAR_CLIENTS + 20], 0);
	assert_int_equal(closed[BWS_REGISTRAR_CLIENTS + 21], 1);
	bws_registrar_close(&r);
	assert_int_equal(r.clients, 0);
}

/* A client, and our end of the connection to it. */
static int client(void)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	r.client[r.clients++] = ends[0];
	return ends[1];
}

static ssize_t client_reads(int fd)
{
	uint8_t bytes[1000];

	return recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
}

/* A datagram of another length is told of here, where it is counted, and goes no further. */
static void registrar__hands_on_what_has_the_length(void **state)
{
	int fd = client();

	for (datagram_len = 0; datagram_len <= BWS_OFFER_BYTES; datagram_len++) {
		datagrams = 1;
		serve(1);
		assert_int_equal(told_len, datagram_len);
		assert_true(datagram_len == BWS_OFFER_BYTES ? client_reads(fd) > 0
							    : client_reads(fd) == -1);
	}
	assert_int_equal(told, BWS_OFFER_BYTES + 1);
	close(r.client[--r.clients]);
	close(fd);
	bws_registrar_close(&r);
}

/* And the other way: who is the registrar for us says nothing but whole offers. */
static void registrar__is_left_if_it_says_something_else(void **state)
{
	int ends[2];
	uint8_t bytes[1000];
	ssize_t n;

	datagram_len = BWS_OFFER_BYTES;
	datagrams = 1;
	ends[1] = client();
	serve(1);
	n = recv(ends[1], bytes, sizeof(bytes), MSG_DONTWAIT);
	assert_true(n > BWS_OFFER_BYTES);
	close(r.client[--r.clients]);
	close(ends[1]);
	bws_registrar_close(&r);

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	bws_registrar_init(&r);
	r.connection = ends[0];
	told = 0;
	assert_int_equal(send(ends[1], bytes, (size_t)n, 0), n);
	serve(0);
	assert_int_equal(told, 1);
	assert_int_equal(told_len, BWS_OFFER_BYTES);
	assert_int_equal(send(ends[1], bytes, (size_t)n - 1, 0), n - 1);
	serve(0);
	assert_int_equal(told, 1);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(registrar__takes_processes_of_its_user_alone, begin),
		cmocka_unit_test_setup(registrar__waits_for_a_place, begin),
		cmocka_unit_test_setup(registrar__has_room_for_so_many, begin),
		cmocka_unit_test_setup(registrar__hands_on_what_has_the_length, begin),
		cmocka_unit_test_setup(registrar__is_left_if_it_says_something_else, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
