/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A send with a time limit ends by it, whatever its receiver does: one that has begun to fetch and
 * goes no further gets no more of the message, and the program its memory back.
 */
#include <pthread.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "hosts.h"
#include "kframe.h"

#define MIB	 (1u << 20)
#define LIMIT_MS 300
#define NODE	 "/proc/net/beowire/node"

static char out[5 * MIB], in[5 * MIB];

/* Fetched bytes are lost while this is wanted. */
static void starve(struct kt_frame *f, long wanted)
{
	if (wanted && kt_part(f, BW_PART_BULK, 0))
		f->len = 0;
}

struct receiver {
	int fd;
	ssize_t got;
};

static long receive(void *arg)
{
	struct receiver *r = arg;

	r->got = recv(r->fd, in, sizeof(in), 0);
	return 0;
}

static void limit(int fd, int name, int ms)
{
	const struct timeval time = {ms / 1000, ms % 1000 * 1000};

	assert_int_equal(setsockopt(fd, SOL_SOCKET, name, &time, sizeof(time)), 0);
}

/* a sends to b by the relay, out of the program's own pages. */
static struct kt_pair starved_pair(int type)
{
	struct kt_pair p = {.a = kt_open("a", type), .b = kt_bound("b", type, 0)};
	struct sockaddr_beowire to;
	int listener = p.b;

	p.at_b = kt_at(p.b);
	to = kt_relayed(&p.at_b);
	if (type != SOCK_RDM)
		assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(kt_connect(p.a, &to), 0);
	if (type != SOCK_RDM) {
		p.b = accept(listener, NULL, NULL);
		assert_true(p.b >= 0);
		close(listener);
	}
	kt_option(p.a, BEOWIRE_COPY_MAX, 1000);
	limit(p.a, SO_SNDTIMEO, LIMIT_MS);
	limit(p.b, SO_RCVTIMEO, KT_SOON_MS);
	return p;
}

/* The receiver fetches a piece of 4 MiB at a time, and asks for no more before that has come. */
static void take_back(struct kt_relay *relay, int type, size_t len, int error)
{
	struct kt_pair p = starved_pair(type);
	struct receiver r = {.fd = p.b};
	uint64_t begun = kt_now_ns(), before = kt_number("a", NODE, "taken-back");
	struct kt_thread t;

	relay->wanted = 1;
	kt_start(&t, receive, &r);
	kt_refused(send(p.a, out, len, 0), error);
	assert_in_range(kt_now_ns() - begun, (LIMIT_MS - 50) * 1000000ull, KT_SOON_NS);
	kt_becomes(kt_pinned(), 0, 0);
	assert_int_equal(kt_number("a", NODE, "taken-back"), before + 1);
	relay->wanted = 0;
	limit(p.a, SO_SNDTIMEO, 0);
	assert_int_equal(send(p.a, "next", 4, 0), 4);
	kt_join(&t);
	assert_int_equal(r.got, 4); /* nobody has missed the other one */
	assert_memory_equal(in, "next", 4);
	kt_close(&p);
}

static void test_a_receiver_that_stops(void **state)
{
	struct kt_relay relay;

	kt_relay_begin(&relay, starve);
	take_back(&relay, SOCK_RDM, 5 * MIB, EAGAIN);
	take_back(&relay, SOCK_SEQPACKET, 5 * MIB, EAGAIN);
	kt_relay_end(&relay);
}

/* Then the sender cannot know. */
static void test_a_receiver_that_has_asked_for_all(void **state)
{
	struct kt_relay relay;

	kt_relay_begin(&relay, starve);
	take_back(&relay, SOCK_RDM, MIB, ETIMEDOUT);
	take_back(&relay, SOCK_SEQPACKET, MIB, ETIMEDOUT);
	kt_relay_end(&relay);
}

/* A stream gives as much as there is room for, and what was read of it stays read. */
static void test_a_stream(void **state)
{
	struct kt_pair p = kt_connection(SOCK_STREAM);
	ssize_t sent, n;

	kt_option(p.a, BEOWIRE_COPY_MAX, 1000);
	limit(p.a, SO_SNDTIMEO, LIMIT_MS);
	kt_fill(out, sizeof(out), 3);
	sent = send(p.a, out, sizeof(out), 0);
	assert_in_range(sent, 65536, sizeof(out) - 1);
	assert_int_equal(kt_counters(p.a).pinned, 0);
	assert_int_equal(recv(p.b, in, 1000, 0), 1000);
	kt_refused(send(p.a, out, sizeof(out), MSG_DONTWAIT), EAGAIN);
	for (ssize_t done = 1000; done < sent; done += n) {
		n = recv(p.b, in + done, (size_t)(sent - done), 0);
		assert_true(n > 0);
	}
	assert_true(kt_filled(in, (size_t)sent, 3));
	kt_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_a_receiver_that_stops),
		kt_test(test_a_receiver_that_has_asked_for_all),
		kt_test(test_a_stream),
	};

	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
