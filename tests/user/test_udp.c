/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The socket of the udp link, on an address of the loopback network that nobody else uses: ports,
 * addresses, marks of congestion, closed ports and what the kernel had no room for.
 */
#include "link/udp/udp.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define SOON_MS	 120000 /* far beyond what anything here takes */
#define ENGINE	 40000
#define CLUSTER	 7
#define LO	 47100
#define OVERFLOW 3000 /* datagrams, more than a small buffer holds */

static struct bw_udp a, b;
static struct bw_env env;
static struct bw_iface iface;
static union bw_name name;

static int open_on(struct bw_udp *u)
{
	const char *why;

	return bw_udp_open(u, &env, &iface, &name, ENGINE, &why);
}

static int setup(void **state)
{
	env = (struct bw_env){.udp_lo = LO, .udp_hi = LO + 99};
	/* 127.x.y.z: of this process alone. */
	iface = (struct bw_iface){.mtu = 65536};
	name.in.sin_family = AF_INET;
	name.in.sin_addr.s_addr = htonl(0x7F800000u | ((uint32_t)getpid() & 0x7FFFFF));
	assert_int_equal(open_on(&a), 0);
	assert_int_equal(open_on(&b), 0);
	return 0;
}

static int teardown(void **state)
{
	bw_udp_close(&a);
	bw_udp_close(&b);
	return 0;
}

/* A first frame, for this engine, of which `number` is the nonce. */
static struct bw_tx_frame hello(const struct bw_udp *to, uint16_t engine, uint32_t number)
{
	struct bw_tx_frame f = {.head_len = sizeof(struct bw_hdr) + sizeof(struct bw_hello)};
	struct bw_hdr hdr = {
		.magic = BW_MAGIC,
		.version = BW_VERSION,
		.type = BW_FRAME_HELLO,
		.cluster = CLUSTER,
		.dst_engine = engine,
		.src_engine = ENGINE,
		.len = sizeof(struct bw_hello),
	};
	struct bw_hello body = {.node = 1, .inc = 1, .conn = 99, .nonce = number};

	f.len = f.head_len;
	bw_name_to_link(&f.to, &to->name);
	memcpy(f.head, &hdr, sizeof(hdr));
	memcpy((uint8_t *)f.head + sizeof(hdr), &body, sizeof(body));
	return f;
}

static void send_hello(struct bw_udp *from, const struct bw_udp *to, uint16_t engine,
		       uint32_t number)
{
	struct bw_tx_frame f = hello(to, engine, number);

	assert_true(bw_udp_add(from, &f));
	assert_true(bw_udp_flush(from, 1));
}

static short await(const struct bw_udp *u, short events)
{
	struct pollfd fd = {.fd = u->socket[0].fd, .events = events};

	assert_int_equal(poll(&fd, 1, SOON_MS), 1);
	return fd.revents;
}

/* What has come: its number. */
static uint32_t take(struct bw_udp *u, struct bw_rx_frame *f)
{
	struct bw_hello body;

	await(u, POLLIN);
	assert_int_equal(bw_udp_receive(u), 1);
	assert_true(bw_udp_frame(u, f));
	assert_int_equal(f->len, sizeof(struct bw_hdr) + sizeof(body));
	memcpy(&body, (const uint8_t *)f->head + sizeof(struct bw_hdr), sizeof(body));
	return body.nonce;
}

/* A range has as many ports as it says, and no others are used. */
static void ports__are_those_of_the_range(void **state)
{
	struct bw_udp u[16], one_more;
	uint32_t wide = 2;
	bool used[16] = {false};

	/* So that the search, which the process number begins, comes to the end of the range. */
	while (wide < 16 && (uint32_t)getpid() % wide == 0)
		wide++;
	env.udp_lo = LO + 200;
	env.udp_hi = (uint16_t)(env.udp_lo + wide - 1);
	for (uint32_t i = 0; i < wide; i++) {
		assert_int_equal(open_on(&u[i]), 0);
		assert_in_range(u[i].port, env.udp_lo, env.udp_hi);
		assert_false(used[u[i].port - env.udp_lo]);
		used[u[i].port - env.udp_lo] = true;
	}
	assert_int_equal(open_on(&one_more), -EADDRINUSE);
	for (uint32_t i = 0; i < wide; i++)
		bw_udp_close(&u[i]);
}

static void datagram__comes_from_its_sender(void **state)
{
	struct bw_link_addr sender;
	struct bw_rx_frame f;

	send_hello(&a, &b, ENGINE, 11);
	assert_int_equal(take(&b, &f), 11);
	bw_name_to_link(&sender, &a.name);
	assert_memory_equal(&f.from, &sender, sizeof(sender));
	assert_false(f.mark);
	assert_int_equal(a.count.tx_frames, 1);
	assert_int_equal(b.count.rx_frames, 1);
	assert_int_equal(b.count.rx_bytes, f.len);
}

/* Only a router's mark is one: RFC 3168 5. */
static void mark__is_that_of_congestion(void **state)
{
	struct bw_rx_frame f;

	for (int tos = 0; tos < 4; tos++) {
		assert_int_equal(setsockopt(a.socket[0].fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos)),
				 0);
		send_hello(&a, &b, ENGINE, (uint32_t)tos);
		assert_int_equal(take(&b, &f), tos);
		assert_int_equal(f.mark, tos == 3);
	}
}

static void datagram__for_another_engine_does_not_come(void **state)
{
	struct bw_rx_frame f;

	send_hello(&a, &b, ENGINE + 1, 1);
	send_hello(&a, &b, ENGINE, 2);
	assert_int_equal(take(&b, &f), 2);
	assert_int_equal(bw_udp_receive(&b), 0);
}

static void assert_refused(struct bw_udp *u, const struct bw_link_addr *who)
{
	struct bw_refuse_frame r;
	struct bw_rx_frame f;

	assert_true(bw_udp_refusal(u, CLUSTER, &r, &f));
	assert_ptr_equal(f.head, &r);
	assert_int_equal(f.len, sizeof(r));
	assert_memory_equal(&f.from, who, sizeof(*who));
	assert_int_equal(r.hdr.type, BW_FRAME_REFUSE);
	assert_int_equal(r.hdr.dst_engine, ENGINE);
	assert_int_equal(r.body.echo_conn, 99);
}

/* The kernel says that a port is closed; this is told as the refusal that its owner cannot send. */
static void port__that_is_closed_is_a_refusal(void **state)
{
	struct bw_refuse_frame r;
	struct bw_link_addr who;
	struct bw_rx_frame f;
	struct bw_udp gone = b;

	bw_name_to_link(&who, &b.name);
	bw_udp_close(&b);
	send_hello(&a, &gone, ENGINE, 1);
	assert_true(await(&a, 0) & POLLERR);
	assert_int_equal(bw_udp_receive(&a), -ECONNREFUSED);
	assert_refused(&a, &who);
	assert_false(bw_udp_refusal(&a, CLUSTER, &r, &f));
	assert_int_equal(bw_udp_receive(&a), 0);
}

/* The error of the first datagram meets the second, which leaves all the same, and who receives
 * next hears of both. */
static void port__that_is_closed_is_told_where_sending_met_it(void **state)
{
	struct bw_refuse_frame r;
	struct bw_link_addr who;
	struct bw_rx_frame f;
	struct bw_udp gone = b;

	bw_name_to_link(&who, &b.name);
	bw_udp_close(&b);
	send_hello(&a, &gone, ENGINE, 1);
	assert_true(await(&a, 0) & POLLERR);
	assert_int_equal(open_on(&b), 0);
	send_hello(&a, &b, ENGINE, 2);
	assert_int_equal(take(&b, &f), 2);
	assert_int_equal(a.batch->errors, 0);
	assert_int_equal(bw_udp_receive(&a), -ECONNREFUSED);
	assert_refused(&a, &who);
	assert_false(bw_udp_refusal(&a, CLUSTER, &r, &f));
}

/* Each that the kernel drops for want of room is counted once. */
static void overruns__are_counted_once(void **state)
{
	int small = 4096, n;
	uint32_t got = 0, sent = 0;

	assert_int_equal(setsockopt(b.socket[0].fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)),
			 0);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < OVERFLOW; i++)
			send_hello(&a, &b, ENGINE, sent++);
		/* The last one finds room: the kernel tells with it how many did not. */
		for (int last = 0; last < 2; last++) {
			struct bw_rx_frame f;

			await(&b, POLLIN);
			while ((n = bw_udp_receive(&b)) > 0) {
				while (bw_udp_frame(&b, &f))
					got++;
			}
			if (!last)
				send_hello(&a, &b, ENGINE, sent++);
		}
		bw_udp_overruns(&b);
		assert_int_equal(got + b.count.rx_overruns, sent);
	}
	assert_true(b.count.rx_overruns > OVERFLOW);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ports__are_those_of_the_range),
		TEST(datagram__comes_from_its_sender),
		TEST(mark__is_that_of_congestion),
		TEST(datagram__for_another_engine_does_not_come),
		TEST(port__that_is_closed_is_a_refusal),
		TEST(port__that_is_closed_is_told_where_sending_met_it),
		TEST(overruns__are_counted_once),
	};

	return cmocka_run_group_tests_name("udp", tests, NULL, NULL);
}
