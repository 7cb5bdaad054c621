/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets of their own for the peers that most is sent to: who gets one, that frames are the same
 * by whichever they come, and that the port stays ours. Each test runs over IPv4 and over IPv6.
 * connect() goes through this file, as what happens before it matters.
 */
#include "link/udp/udp.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "buffer.h"

#define SOON_MS 120000 /* far beyond what anything here takes */
#define ENGINE	40000
#define CLUSTER 7
#define LO	47300
#define PORTS	200
#define LO6	10000
#define PLACES6 97
#define WARM	32	/* frames that make a peer worth a socket */
#define LOOKS	(9 * 5) /* find what has come to any socket */
#define OTHERS	8
#define SHORT	40 /* bytes of a frame */
#define LONG	1400

static struct bw_udp a, b, c, other[OTHERS];
static struct bw_env env;
static struct bw_iface iface;
static union bw_name name;
static uint8_t payload[LONG];

static void send_frame(struct bw_udp *from, const struct bw_udp *to, uint8_t number, uint32_t len);

/* Strangers' datagrams come when the new socket is bound and not yet connected. */
static bool strangers_between;

int connect(int fd, const struct sockaddr *to, socklen_t len)
{
	static int (*real)(int, const struct sockaddr *, socklen_t);

	if (!real)
		real = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT,
									       "connect");
	for (uint8_t i = 0; i < OTHERS && strangers_between; i++)
		send_frame(&other[i], &a, i, SHORT);
	strangers_between = false;
	return real(fd, to, len);
}

/* With this errno sockets refuse all that they are given while they are to cut. */
static int refuse;

/* In place of the C library's, for the link's calls. */
long syscall(long number, ...)
{
	static long (*real)(long, ...);
	long v[6];
	va_list all;
	int cut = 0;
	socklen_t len = sizeof(cut);

	if (!real)
		real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	va_start(all, number);
	for (int i = 0; i < 6; i++)
		v[i] = va_arg(all, long);
	va_end(all);
	if (refuse && (number == SYS_sendto || number == SYS_sendmmsg) &&
	    !getsockopt((int)v[0], IPPROTO_UDP, UDP_SEGMENT, &cut, &len) && cut) {
		errno = refuse;
		return -1;
	}
	return real(number, v[0], v[1], v[2], v[3], v[4], v[5]);
}

static void open_on(struct bw_udp *u)
{
	const char *why;

	assert_int_equal(bw_udp_open(u, &env, &iface, &name, ENGINE, &why), 0);
}

static int setup(void **state)
{
	bool six = *(const bool *)*state;

	/* Nobody else has a port that was closed a moment ago: of IPv4 the address is this
	 * process's alone, as in test_udp.c, of IPv6 the range, which is none of endpoints. */
	uint16_t lo = six ? (uint16_t)(LO6 + (uint32_t)getpid() % PLACES6 * PORTS) : LO;

	env = (struct bw_env){.udp_lo = lo, .udp_hi = lo + PORTS - 1, .udp_offload = true};
	iface = (struct bw_iface){.mtu = 9000};
	memset(&name, 0, sizeof(name));
	if (six) {
		name.in6.sin6_family = AF_INET6;
		name.in6.sin6_addr = in6addr_loopback;
	} else {
		name.in.sin_family = AF_INET;
		name.in.sin_addr.s_addr = htonl(0x7F800000u | ((uint32_t)getpid() & 0x7FFFFF));
	}
	open_on(&a);
	open_on(&b);
	open_on(&c);
	for (int i = 0; i < OTHERS; i++)
		open_on(&other[i]);
	return 0;
}

static int teardown(void **state)
{
	bw_udp_close(&a);
	bw_udp_close(&b);
	bw_udp_close(&c);
	for (int i = 0; i < OTHERS; i++)
		bw_udp_close(&other[i]);
	return 0;
}

/* Carries on the frame before, as the engine says. */
static bool alike;

static void add_frame(struct bw_udp *from, const struct bw_udp *to, uint8_t number, uint32_t len)
{
	struct bw_hdr hdr = {
		.magic = BW_MAGIC,
		.version = BW_VERSION,
		.type = BW_FRAME_DATA,
		.cluster = CLUSTER,
		.dst_engine = ENGINE,
		.src_engine = ENGINE,
		.conn = 99,
		.pn = number,
		.len = (uint16_t)(len - sizeof(hdr)),
	};
	struct bw_tx_frame f = {.head_len = sizeof(hdr), .len = len, .segments = 1};
	struct bw_buffer buffer = {.data = payload};

	bw_name_to_link(&f.to, &to->name);
	memcpy(f.head, &hdr, sizeof(hdr));
	f.segment[0].head_end = sizeof(hdr);
	f.segment[0].len = len - (uint32_t)sizeof(hdr);
	f.segment[0].buf = bw_buffer_cookie(&buffer);
	assert_true((alike ? bw_udp_add_alike : bw_udp_add)(from, &f));
}

static void send_frame(struct bw_udp *from, const struct bw_udp *to, uint8_t number, uint32_t len)
{
	add_frame(from, to, number, len);
	assert_true(bw_udp_flush(from, 1));
	assert_int_equal(from->batch->errors, 0);
}

/* Something comes to one of the sockets. */
static void await(const struct bw_udp *u)
{
	struct pollfd fds[BW_UDP_SOCKETS];

	for (int i = 0; i < u->sockets; i++)
		fds[i] = (struct pollfd){.fd = u->socket[i].fd, .events = POLLIN};
	assert_in_range(poll(fds, (nfds_t)u->sockets, SOON_MS), 1, BW_UDP_SOCKETS);
}

static int find(struct bw_udp *u)
{
	int n = 0;

	await(u);
	for (int i = 0; i < LOOKS && !n; i++)
		n = bw_udp_receive(u);
	return n;
}

/* One frame has come, this one, from there. */
static void assert_comes(struct bw_udp *u, const struct bw_udp *from, uint8_t number, uint32_t len)
{
	struct bw_link_addr sender;
	struct bw_rx_frame f;
	struct bw_hdr hdr;

	assert_int_equal(find(u), 1);
	assert_true(bw_udp_frame(u, &f));
	memcpy(&hdr, f.head, sizeof(hdr));
	assert_int_equal(hdr.pn, number);
	assert_int_equal(f.len, len);
	bw_name_to_link(&sender, &from->name);
	assert_memory_equal(&f.from, &sender, sizeof(sender));
	assert_false(bw_udp_frame(u, &f));
}

static void assert_nothing(struct bw_udp *u)
{
	for (int i = 0; i < LOOKS; i++)
		assert_int_equal(bw_udp_receive(u), 0);
}

static void exchange(struct bw_udp *u, struct bw_udp *v, uint8_t number)
{
	send_frame(u, v, number, SHORT);
	assert_comes(v, u, number, SHORT);
	send_frame(v, u, number, SHORT);
	assert_comes(u, v, number, SHORT);
}

/* Enough is sent to it for a socket. */
static void warm(struct bw_udp *u, struct bw_udp *to)
{
	for (uint8_t i = 0; i < WARM; i++) {
		send_frame(u, to, i, SHORT);
		assert_comes(to, u, i, SHORT);
	}
	bw_udp_receive(u);
}

static void peer__gets_a_socket_once_it_is_active(void **state)
{
	for (uint8_t i = 0; i < WARM - 1; i++)
		exchange(&a, &b, i);
	assert_int_equal(a.sockets, 1);
	exchange(&a, &b, WARM);
	exchange(&a, &b, WARM + 1);
	assert_int_equal(a.sockets, 2);
	assert_int_equal(b.sockets, 2);
	/* From the same port, to the same port, either way. */
	for (uint8_t i = 0; i < 200; i++)
		exchange(&a, &b, i);
	assert_true(a.tx_connected >= 200);
	assert_true(a.rx_connected >= 200);
	assert_int_equal(a.connects, 1);
	assert_int_equal(b.connects, 1);
}

/* It takes the way of the frame before it, if that waits still. */
static void alike__goes_the_same_way(void **state)
{
	struct bw_rx_frame f[4];
	uint64_t before;
	uint32_t sent;

	warm(&a, &b);
	before = a.tx_connected;
	sent = a.socket[1].sent;
	for (uint8_t i = 0; i < 6; i++) {
		alike = i > 0;
		add_frame(&a, &b, i, SHORT);
		assert_int_equal(a.batch->slot[i].fd, a.socket[1].fd);
		assert_int_equal(a.batch->slot[i].same, alike);
	}
	assert_int_equal(a.tx_connected, before + 6);
	assert_int_equal(a.socket[1].sent, sent + 6);
	assert_true(bw_udp_flush(&a, 1));
	assert_int_equal(a.batch->rows, 1);
	alike = true;
	add_frame(&a, &c, 1, SHORT); /* nothing waits: by its name */
	add_frame(&a, &c, 2, SHORT); /* nor has that a socket of its own */
	alike = false;
	assert_int_equal(a.tx_connected, before + 6);
	assert_true(bw_udp_flush(&a, 1));
	assert_int_equal(find(&c), 1);
	assert_int_equal(bw_udp_frames(&c, f, 4), 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(((const struct bw_hdr *)f[i].head)->pn, i + 1);
	assert_int_equal(bw_udp_frames(&c, f, 4), 0);
}

static void stranger__is_heard_beside_it(void **state)
{
	uint64_t before;

	warm(&a, &b);
	assert_int_equal(a.sockets, 2);
	before = a.rx_connected;
	for (uint8_t i = 0; i < 10; i++) {
		send_frame(&c, &a, i, SHORT);
		assert_comes(&a, &c, i, SHORT);
		exchange(&a, &b, i);
	}
	assert_int_equal(a.rx_connected, before + 10);
}

/* What only few are sent to, or what is no data, is worth nothing. */
static void stranger__gets_none(void **state)
{
	struct bw_tx_frame f = {.head_len = sizeof(struct bw_hdr), .len = sizeof(struct bw_hdr)};
	struct bw_hdr hdr = {.magic = BW_MAGIC, .type = BW_FRAME_REFUSE, .dst_engine = ENGINE};

	bw_name_to_link(&f.to, &c.name);
	memcpy(f.head, &hdr, sizeof(hdr));
	for (int i = 0; i < 3 * WARM; i++) {
		assert_true(bw_udp_add(&a, &f));
		assert_true(bw_udp_flush(&a, 1));
		assert_int_equal(bw_udp_receive(&a), 0);
	}
	assert_int_equal(a.sockets, 1);
}

/* Datagrams that the kernel gave to the new socket before it was connected are their senders'. The
 * kernel divides them among the two sockets. */
static void strangers__between_bind_and_connect_are_themselves(void **state)
{
	struct bw_link_addr sender;
	struct bw_rx_frame f;
	struct bw_hdr hdr;
	int got = 0;

	for (uint8_t i = 0; i < WARM; i++)
		send_frame(&a, &b, i, SHORT);
	strangers_between = true;
	for (int i = 0; i < LOOKS; i++) {
		bw_udp_receive(&a);
		for (; bw_udp_frame(&a, &f); got++) {
			memcpy(&hdr, f.head, sizeof(hdr));
			assert_in_range(hdr.pn, 0, OTHERS - 1);
			bw_name_to_link(&sender, &other[hdr.pn].name);
			assert_memory_equal(&f.from, &sender, sizeof(sender));
		}
	}
	assert_false(strangers_between);
	assert_int_equal(a.sockets, 2);
	assert_int_equal(got, OTHERS);
	assert_true(a.rx_connected > 0);
}

/* What came by the open socket before is taken before what comes by the new one. */
static void frames__stay_in_their_order(void **state)
{
	for (uint8_t i = 0; i < WARM; i++)
		send_frame(&a, &b, i, SHORT);
	send_frame(&b, &a, 1, SHORT);
	await(&a);
	assert_int_equal(bw_udp_receive(&a), 1); /* connects, and finds it */
	assert_int_equal(a.sockets, 2);
	struct bw_rx_frame f;
	struct bw_hdr hdr;

	send_frame(&b, &a, 2, SHORT);
	assert_true(bw_udp_frame(&a, &f));
	memcpy(&hdr, f.head, sizeof(hdr));
	assert_int_equal(hdr.pn, 1);
	assert_comes(&a, &b, 2, SHORT);
	assert_nothing(&a);
}

static void rows__are_cut_whatever_was_asked_of_the_kernel(void **state)
{
	struct bw_rx_frame f;

	warm(&b, &a);
	warm(&a, &b);
	for (uint8_t i = 0; i < 200; i++)
		exchange(&a, &b, i);
	while (b.socket[1].told)
		exchange(&a, &b, 0);
	for (int round = 0; round < 2; round++) {
		uint32_t n = 0;

		assert_nothing(&b);
		for (uint8_t i = 0; i < 10; i++)
			add_frame(&a, &b, i, LONG);
		assert_true(bw_udp_flush(&a, 1));
		while (n < 10) {
			assert_true(find(&b) > 0);
			while (bw_udp_frame(&b, &f)) {
				struct bw_hdr hdr;

				memcpy(&hdr, f.head, sizeof(hdr));
				assert_int_equal(hdr.pn, n++);
				assert_int_equal(f.len, LONG);
			}
		}
		assert_int_equal(b.plain, round == 0);
		b.socket[1].told = 1;
	}
	assert_int_equal(b.rx_rows, 2);
	assert_int_equal(a.batch->rows, 2);
}

static void set_tos(struct bw_udp *u, int tos)
{
	bool four = u->name.any.sa_family == AF_INET;

	for (int i = 0; i < u->sockets; i++)
		assert_int_equal(setsockopt(u->socket[i].fd, four ? IPPROTO_IP : IPPROTO_IPV6,
					    four ? IP_TOS : IPV6_TCLASS, &tos, sizeof(tos)),
				 0);
}

/* Of so many frames from a to b those that are marked. */
static int marks(int frames, uint32_t len)
{
	struct bw_rx_frame f;
	int marked = 0;

	for (int i = 0; i < frames; i++) {
		assert_nothing(&b);
		send_frame(&a, &b, (uint8_t)i, len);
		assert_int_equal(find(&b), 1);
		while (bw_udp_frame(&b, &f))
			marked += f.mark;
	}
	return marked;
}

/* One in eight of those that come alone; then all, until 64 had none; all that come together. */
static void marks__are_seen(void **state)
{
	struct bw_rx_frame f;
	int together = 0;

	warm(&b, &a);
	warm(&a, &b);
	set_tos(&a, 2);
	assert_int_equal(marks(200, LONG), 0);
	assert_in_range(b.socket[1].told, 0, 1);
	set_tos(&a, 3);
	assert_in_range(marks(9, SHORT), 1, 9);
	assert_int_equal(marks(100, LONG), 100);
	set_tos(&a, 2);
	assert_int_equal(marks(200, SHORT), 0);
	assert_in_range(b.socket[1].told, 0, 1);
	set_tos(&a, 3);
	assert_nothing(&b);
	for (uint8_t i = 0; i < BW_UDP_FRAMES; i++)
		send_frame(&a, &b, i, SHORT);
	assert_int_equal(find(&b), 1);
	assert_int_equal(find(&b), BW_UDP_FRAMES - 1);
	for (; bw_udp_frame(&b, &f); together++)
		assert_true(f.mark);
	assert_int_equal(together, BW_UDP_FRAMES - 1);
}

/* A row behind which nothing else has come is one look's; what has come meanwhile is taken
 * together. */
static void stream__is_taken_together(void **state)
{
	uint32_t got = 0;
	struct bw_rx_frame f;

	warm(&b, &a);
	warm(&a, &b);
	assert_nothing(&b);
	for (uint8_t i = 0; i < BW_UDP_FRAMES + 1; i++)
		send_frame(&a, &b, i, SHORT);
	assert_int_equal(find(&b), 1);
	while (bw_udp_frame(&b, &f))
		got++;
	assert_int_equal(find(&b), BW_UDP_FRAMES);
	while (bw_udp_frame(&b, &f))
		got++;
	assert_int_equal(got, BW_UDP_FRAMES + 1);
}

static void port__that_is_closed_is_a_refusal(void **state)
{
	struct bw_link_addr who;
	struct bw_refuse_frame r;
	struct bw_rx_frame f;
	struct pollfd fd;

	warm(&a, &b);
	assert_int_equal(a.sockets, 2);
	bw_name_to_link(&who, &b.name);
	fd = (struct pollfd){.fd = a.socket[1].fd};
	union bw_name gone = b.name;

	bw_udp_close(&b);
	b.name = gone;
	send_frame(&a, &b, 1, SHORT);
	assert_int_equal(poll(&fd, 1, SOON_MS), 1);
	assert_true(bw_udp_seen(&a, fd.fd, fd.revents));
	assert_int_equal(bw_udp_receive(&a), -ECONNREFUSED);
	assert_true(bw_udp_refusal(&a, CLUSTER, &r, &f));
	assert_memory_equal(&f.from, &who, sizeof(who));
	assert_int_equal(r.body.echo_conn, 99);
	assert_false(bw_udp_refusal(&a, CLUSTER, &r, &f));
	assert_nothing(&a);
	/* Whoever has the port then is spoken with by the same socket. */
	bw_udp_forget(&a, &who);
	assert_int_equal(a.sockets, 1);
}

/* A send that meets the error of the one before leaves all the same. */
static void port__that_is_closed_is_told_where_sending_met_it(void **state)
{
	struct bw_link_addr who;
	struct bw_refuse_frame r;
	struct bw_rx_frame f;
	struct pollfd fd;
	union bw_name gone;

	warm(&a, &b);
	bw_name_to_link(&who, &b.name);
	fd = (struct pollfd){.fd = a.socket[1].fd};
	gone = b.name;
	bw_udp_close(&b);
	b.name = gone;
	send_frame(&a, &b, 1, SHORT);
	assert_int_equal(poll(&fd, 1, SOON_MS), 1);
	send_frame(&a, &b, 2, SHORT);
	assert_int_equal(bw_udp_receive(&a), -ECONNREFUSED);
	assert_true(bw_udp_refusal(&a, CLUSTER, &r, &f));
	assert_memory_equal(&f.from, &who, sizeof(who));
	assert_int_equal(r.body.echo_conn, 99);
}

static void peer__that_is_gone_gives_its_socket_back(void **state)
{
	struct bw_link_addr who;

	warm(&a, &b);
	warm(&a, &c);
	assert_int_equal(a.sockets, 3);
	bw_name_to_link(&who, &b.name);
	/* What waits to be sent by it goes by name. */
	add_frame(&a, &b, 9, SHORT);
	bw_udp_forget(&a, &who);
	assert_int_equal(a.sockets, 2);
	assert_true(bw_udp_flush(&a, 1));
	assert_int_equal(a.batch->errors, 0);
	assert_comes(&b, &a, 9, SHORT);
	exchange(&a, &b, 3);
	exchange(&a, &c, 4);
}

/* No more than there are sockets, and those who are sent nothing any more give way. */
static void peers__that_are_most_active_have_sockets(void **state)
{
	for (int i = 0; i < OTHERS; i++)
		warm(&a, &other[i]);
	assert_int_equal(a.sockets, BW_UDP_SOCKETS);
	for (int i = 0; i < OTHERS; i++)
		exchange(&a, &other[i], (uint8_t)i);
	assert_int_equal(a.connects, BW_UDP_CONNECTED);
	/* Of the last one much is sent: who has become cold gives way, and is heard all the
	 * same. */
	for (int i = 0; i < 3 * 4096 + 2 * WARM; i++) {
		send_frame(&a, &other[OTHERS - 1], 5, SHORT);
		assert_comes(&other[OTHERS - 1], &a, 5, SHORT);
		if (i % 64 == 0)
			assert_nothing(&a);
	}
	assert_int_equal(a.sockets, BW_UDP_SOCKETS);
	uint64_t before = a.tx_connected;

	exchange(&a, &other[OTHERS - 1], 6);
	assert_int_equal(a.tx_connected, before + 1);
	for (int i = 0; i < OTHERS; i++)
		exchange(&a, &other[i], (uint8_t)i);
}

/* A batch for several of them, and for one without: each frame comes to its own. */
static void batch__is_divided_among_sockets(void **state)
{
	warm(&a, &b);
	warm(&a, &c);
	assert_int_equal(a.sockets, 3);
	for (uint8_t i = 0; i < 3; i++) {
		add_frame(&a, &b, i, SHORT);
		add_frame(&a, &c, i, SHORT);
		add_frame(&a, &other[0], i, SHORT);
		assert_true(bw_udp_flush(&a, 1));
		assert_comes(&b, &a, i, SHORT);
		assert_comes(&c, &a, i, SHORT);
		assert_comes(&other[0], &a, i, SHORT);
	}
}

/* Frames of these lengths, given to the kernel together, come as they were to who has nothing
 * joined for it. */
static void together(const uint32_t *len, uint8_t n)
{
	struct bw_rx_frame f;
	struct bw_hdr hdr;
	uint8_t came = 0;

	for (uint8_t i = 0; i < n; i++)
		add_frame(&a, &b, i, len[i]);
	assert_true(bw_udp_flush(&a, 1));
	assert_int_equal(a.batch->errors, 0);
	while (came < n) {
		assert_true(find(&b) > 0);
		while (bw_udp_frame(&b, &f)) {
			memcpy(&hdr, f.head, sizeof(hdr));
			assert_int_equal(f.len, len[came]);
			assert_int_equal(hdr.pn, came++);
		}
	}
}

static void many(uint32_t len, uint8_t n)
{
	uint32_t all[BW_BATCH_FRAMES];

	for (uint8_t i = 0; i < n; i++)
		all[i] = len;
	together(all, n);
}

/* The port with nothing joined for it. */
static void open_plain(struct bw_udp *u)
{
	bw_udp_close(u);
	env.udp_offload = false;
	open_on(u);
	env.udp_offload = true;
	warm(&a, u);
	assert_int_equal(a.sockets, 2);
}

static void socket__learns_where_to_cut(void **state)
{
	static const uint32_t mixed[] = {LONG, LONG, 600, 600, 600, 1390, 1390, LONG, 100, LONG};

	open_plain(&b);
	many(LONG, 10);
	assert_int_equal(a.socket[1].cut, BW_BATCH_WHOLE);
	for (int i = 0; i < 5; i++)
		many(LONG, 10);
	assert_int_equal(a.socket[1].cut, LONG);
	many(LONG, 10);
	many(LONG, 1);
	together(mixed, sizeof(mixed) / sizeof(mixed[0]));
	/* Others take its place. */
	for (int i = 0; i < 5; i++)
		many(600, 10);
	assert_int_equal(a.socket[1].cut, 600);
	many(600, 10);
	many(LONG, 1);
	many(LONG, 10);
	together(mixed, sizeof(mixed) / sizeof(mixed[0]));
	assert_true(a.batch->rows > 15);
}

/* What a socket cuts is longer than its interface carries now, when Linux 6.1 takes not even short
 * frames, or checksums cannot be left to the device any more. */
static void socket__that_takes_nothing_cuts_no_more(void **state)
{
	static const int why[] = {EINVAL, EIO, EINVAL, EIO};

	for (int i = 0; i < 4; i++) {
		uint64_t rows = a.batch->rows;

		open_plain(&b);
		for (int k = 0; k < 6; k++)
			many(LONG, 10);
		assert_int_equal(a.socket[1].cut, LONG);
		refuse = why[i];
		many(LONG, i < 2 ? 10 : 1);
		for (int k = 0; k < 6; k++)
			many(LONG, 10);
		assert_int_equal(a.socket[1].cut, BW_BATCH_WHOLE);
		assert_true(a.whole);
		assert_int_equal(a.batch->rows, rows + (i < 2 ? 13 : 12));
		refuse = 0;
		a.whole = false;
		bw_udp_forget(&a, &a.socket[1].who);
	}
}

/* A name that the engine keeps is the kernel's again: of one link with our interface's number. */
static void name__is_kept_by_the_engine(void **state)
{
	static const char *const text[] = {"10.1.2.3", "fd77::1:2", "fe80::1%lo"};
	char again[BW_NAME_TEXT];
	struct bw_link_addr link;
	union bw_name n;

	for (int i = 0; i < 3; i++) {
		assert_true(bw_name_parse(&n, text[i]));
		bw_name_set_port(&n, 47123);
		bw_name_to_link(&link, &n);
		assert_int_equal(link.len, i ? 18 : 6);
		memset(&n, 0xEE, sizeof(n));
		bw_name_from_link(&n, &link, 1);
		assert_string_equal(bw_name_print(&n, again), text[i]);
		assert_int_equal(i ? n.in6.sin6_port : n.in.sin_port, htons(47123));
	}
	assert_false(bw_name_parse(&n, "10.1.2"));
	assert_false(bw_name_parse(&n, "fe80::1%nowhere"));
	assert_false(bw_name_parse(&n, "fe80::1%"));
	assert_false(bw_name_parse(&n, "host"));
	assert_false(bw_name_parse(&n, ""));
}

/* What a socket holds when it is to be given up is taken first. */
static void peer__that_gives_way_is_heard_first(void **state)
{
	for (int i = 0; i < BW_UDP_CONNECTED; i++)
		warm(&a, &other[i]);
	a.socket[1].sent = 0;
	a.socket[2].sent = a.socket[3].sent = a.socket[4].sent = 1000;
	send_frame(&other[0], &a, 42, SHORT);
	for (uint8_t i = 0; i < WARM; i++)
		send_frame(&a, &b, i, SHORT);
	assert_comes(&a, &other[0], 42, SHORT);
	assert_nothing(&a);
	send_frame(&a, &b, 1, SHORT);
	assert_int_equal(a.connects, BW_UDP_CONNECTED + 1);
	assert_int_equal(a.sockets, BW_UDP_SOCKETS);
	exchange(&a, &other[0], 43);
}

/* Nobody else gets the port, whatever he allows. */
static void port__is_ours_alone(void **state)
{
	int on = 1, fd;

	warm(&a, &b);
	assert_int_equal(a.sockets, 2);
	fd = socket(name.any.sa_family, SOCK_DGRAM, 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(bind(fd, &a.name.any, bw_name_bytes(&a.name)), -1);
	assert_int_equal(errno, EADDRINUSE);
	close(fd);
}

/* Without descriptors all goes by the open socket, and later tries succeed. */
static void descriptors__may_run_out(void **state)
{
	struct rlimit limit, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 3, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (uint8_t i = 0; i < WARM; i++)
		send_frame(&a, &b, i, SHORT);
	assert_int_equal(bw_udp_receive(&a), 0);
	assert_int_equal(a.sockets, 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int i = 0; i < WARM; i++)
		bw_udp_receive(&b);
	assert_nothing(&b);
	for (uint8_t i = 0; i < WARM; i++)
		exchange(&a, &b, i);
	exchange(&a, &b, 1);
	assert_int_equal(a.sockets, 2);
}

#define TEST(name)                                                                                 \
	{#name " ipv4", name, setup, teardown, (void *)&four},                                     \
	{                                                                                          \
#name " ipv6", name, setup, teardown, (void *)&six                                 \
	}

int main(void)
{
	static const bool four = false, six = true;
	const struct CMUnitTest tests[] = {
		TEST(peer__gets_a_socket_once_it_is_active),
		TEST(alike__goes_the_same_way),
		TEST(stranger__is_heard_beside_it),
		TEST(stranger__gets_none),
		TEST(strangers__between_bind_and_connect_are_themselves),
		TEST(frames__stay_in_their_order),
		TEST(rows__are_cut_whatever_was_asked_of_the_kernel),
		TEST(marks__are_seen),
		TEST(stream__is_taken_together),
		TEST(port__that_is_closed_is_a_refusal),
		TEST(port__that_is_closed_is_told_where_sending_met_it),
		TEST(peer__that_is_gone_gives_its_socket_back),
		TEST(peers__that_are_most_active_have_sockets),
		TEST(peer__that_gives_way_is_heard_first),
		TEST(batch__is_divided_among_sockets),
		TEST(socket__learns_where_to_cut),
		TEST(socket__that_takes_nothing_cuts_no_more),
		TEST(name__is_kept_by_the_engine),
		TEST(port__is_ours_alone),
		TEST(descriptors__may_run_out),
	};

	return cmocka_run_group_tests_name("udp_active", tests, NULL, NULL);
}
