/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages arrive whole, once and in order, whatever their size and by whichever call they are sent
 * and received; and what the calls say of them is true.
 */
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ktest.h"
#include "protocol.h"

#define MIB (1u << 20)

static uint8_t *bytes_for(size_t n)
{
	uint8_t *p = aligned_alloc(4096, (n + 8191) / 4096 * 4096);

	assert_non_null(p);
	return p;
}

/* Receives messages of given sizes until one is wrong; gives how many were right. */
struct expected {
	int fd;
	const uint32_t *size;
	long count;
	size_t room;
};

static long receive_expected(void *arg)
{
	const struct expected *e = arg;
	uint8_t *p = malloc(e->room);
	long i;

	for (i = 0; i < e->count; i++) {
		memset(p, 0, e->size[i]);
		if (recv(e->fd, p, e->room, 0) != (ssize_t)e->size[i] ||
		    !kt_filled(p, e->size[i], (uint32_t)i)) {
			fprintf(stderr, "message %ld of %u bytes is wrong\n", i, e->size[i]);
			break;
		}
	}
	free(p);
	return i;
}

static void send_and_check(int type, const uint32_t *size, long count, size_t room)
{
	struct kt_pair p = kt_couple(type);
	struct expected e = {.fd = p.b, .size = size, .count = count, .room = room};
	uint8_t *bytes = bytes_for(room);
	struct kt_thread t;

	kt_start(&t, receive_expected, &e);
	for (long i = 0; i < count; i++) {
		kt_fill(bytes, size[i], (uint32_t)i);
		assert_int_equal(send(p.a, bytes, size[i], 0), size[i]);
	}
	assert_int_equal(kt_join(&t), count);
	free(bytes);
	kt_close(&p);
}

/* ---- sizes ---- */

static void test_sizes(void **state)
{
	static const uint32_t sizes[] = {0,	1,     15,     16,	17,    255,   256,
					 257,	1023,  1024,   1025,	4096,  8900,  8999,
					 9000,	9001,  9100,   16383,	16384, 16385, 65535,
					 65536, 65537, 200000, MIB - 1, MIB};

	send_and_check(SOCK_RDM, sizes, sizeof(sizes) / sizeof(sizes[0]), MIB);
}

static void test_sizes_of_datagrams(void **state)
{
	static const uint32_t sizes[] = {0, 1, 255, 256, 257, 1023, 1024, 1025, 8952};

	for (int i = 0; i < 9; i++) /* one at a time: they may be lost when many come at once */
		send_and_check(SOCK_DGRAM, &sizes[i], 1, 9000);
}

/* A datagram is sent once its call returns: what the program does with its memory afterwards is
 * nobody's concern, however long the receiver leaves the message unread. */
static void test_datagrams_are_copied(void **state)
{
	struct kt_pair p = kt_couple(SOCK_DGRAM);
	uint8_t *sent = bytes_for(8000), *got = bytes_for(8000);

	kt_option(p.a, BEOWIRE_EAGER_MAX, 0);
	kt_option(p.a, BEOWIRE_COPY_MAX, 0);
	kt_fill(sent, 8000, 1);
	assert_int_equal(send(p.a, sent, 8000, 0), 8000);
	kt_fill(sent, 8000, 2);
	assert_int_equal(recv(p.b, got, 8000, 0), 8000);
	assert_true(kt_filled(got, 8000, 1));
	assert_int_equal(kt_counters(p.a).pinned, 0);
	free(sent);
	free(got);
	kt_close(&p);
}

struct giant {
	int fd;
	const void *bytes;
};

static long send_giant(void *arg)
{
	const struct giant *g = arg;

	return send(g->fd, g->bytes, BEOWIRE_MSG_MAX, 0) < 0 ? errno : 0;
}

/* Messages as long as can be, in room that has no end: what is under way is counted right. */
static void test_room_is_an_int(void **state)
{
	const struct timeval patience = {.tv_sec = 8};
	const int most = INT_MAX;
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct giant g = {.fd = p.a};
	struct kt_thread t[2];

	assert_int_equal(setsockopt(p.a, SOL_SOCKET, SO_SNDBUFFORCE, &most, sizeof(most)), 0);
	setsockopt(p.a, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	g.bytes = mmap(NULL, BEOWIRE_MSG_MAX, PROT_READ,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(g.bytes, MAP_FAILED);
	kt_start(&t[0], send_giant, &g);
	kt_becomes(kt_pinned(), BEOWIRE_MSG_MAX / 4096, BEOWIRE_MSG_MAX / 4096);
	kt_start(&t[1], send_giant, &g);
	usleep(300000);
	assert_int_equal(kt_pinned(), BEOWIRE_MSG_MAX / 4096); /* it waits */
	kt_refused(send(p.a, "", 1, MSG_DONTWAIT), EAGAIN);
	assert_int_equal(kt_join(&t[0]), EAGAIN);
	assert_int_equal(kt_join(&t[1]), EAGAIN);
	munmap((void *)g.bytes, BEOWIRE_MSG_MAX);
	kt_close(&p);
	kt_becomes(kt_pinned(), 0, 0);
}

static void test_too_long(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM), d = kt_couple(SOCK_DGRAM);
	size_t n = BEOWIRE_MSG_MAX + 1;
	uint8_t *much =
		mmap(NULL, n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(much, MAP_FAILED);
	kt_refused(send(p.a, much, n, 0), EMSGSIZE);
	kt_refused(send(d.a, much, 9000, 0), EMSGSIZE); /* does not fit one frame */
	kt_refused(send(d.a, much, 65536, 0), EMSGSIZE);
	munmap(much, n);
	kt_close(&p);
	kt_close(&d);
}

static void test_many_of_random_sizes(void **state)
{
	static uint32_t size[10000];
	uint64_t random = 7;

	for (int i = 0; i < 10000; i++) {
		uint64_t r = kt_random(&random);

		size[i] = (uint32_t)((r >> 8) % ((r & 0xff) == 0 ? 100000 : 2000));
	}
	send_and_check(SOCK_RDM, size, 10000, 100000);
}

/* A message of a MiB, wherever it begins in the program's memory and by whichever call. */
enum sender { BY_SEND, BY_WRITE, BY_WRITEV, BY_NONBLOCK, SENDERS };

static long send_mib(int fd, uint8_t *bytes, enum sender how)
{
	struct iovec parts[3] = {{bytes, 0}, {bytes, 5}, {bytes + 5, MIB - 5}};
	struct pollfd room = {.fd = fd, .events = POLLOUT};

	switch (how) {
	case BY_WRITE:
		return write(fd, bytes, MIB);
	case BY_WRITEV:
		return writev(fd, parts, 3);
	case BY_NONBLOCK:
		poll(&room, 1, -1); /* the message before was copied and may be under way */
		return send(fd, bytes, MIB, MSG_DONTWAIT);
	default:
		return send(fd, bytes, MIB, 0);
	}
}

static long receive_mib(void *arg)
{
	int fd = *(int *)arg;
	uint8_t *p = bytes_for(MIB + 100);
	struct iovec parts[2] = {{p + 3, 1000}, {p + 1003, MIB}};
	bool good = true;

	for (int i = 0; i < SENDERS; i++) {
		ssize_t n = i == 0   ? recv(fd, p + 3, MIB, 0)
			    : i == 1 ? read(fd, p + 3, MIB)
				     : readv(fd, parts, 2);

		good = good && n == MIB && kt_filled(p + 3, MIB, (uint32_t)i);
	}
	free(p);
	return good;
}

static void test_every_way_to_send_and_receive(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	uint8_t *bytes = bytes_for(MIB + 100);
	const int room = 2 * MIB;
	struct kt_thread t;

	assert_int_equal(setsockopt(p.a, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)), 0);
	kt_start(&t, receive_mib, &p.b);
	for (int i = 0; i < SENDERS; i++) {
		uint8_t *at = bytes + i * 7;

		kt_fill(at, MIB, (uint32_t)i);
		if (send_mib(p.a, at, i) != MIB)
			fail_msg("way %d: %s", i, strerror(errno));
	}
	assert_int_equal(kt_join(&t), 1);
	assert_true(kt_counters(p.a).pinned >= 2 * MIB);
	free(bytes);
	kt_close(&p);
	kt_becomes(kt_pinned(), 0, 0);
}

/* ---- peek, cut, wait ---- */

static void test_peek(void **state)
{
	const int types[] = {SOCK_RDM, SOCK_DGRAM};
	char got[8];

	for (int i = 0; i < 2; i++) {
		struct kt_pair p = kt_couple(types[i]);
		struct sockaddr_beowire from;
		socklen_t len = sizeof(from);

		assert_int_equal(send(p.a, "first", 5, 0), 5);
		assert_int_equal(send(p.a, "second", 6, 0), 6);
		for (int k = 0; k < 2; k++) {
			assert_int_equal(recvfrom(p.b, got, sizeof(got), MSG_PEEK,
						  (struct sockaddr *)&from, &len),
					 5);
			assert_memory_equal(got, "first", 5);
			assert_int_equal(from.sbw_port, p.at_a.sbw_port);
			assert_memory_equal(from.sbw_mac, p.at_a.sbw_mac, 6);
		}
		assert_int_equal(recv(p.b, got, 2, MSG_PEEK | MSG_TRUNC), 5);
		assert_int_equal(recv(p.b, got, sizeof(got), 0), 5);
		assert_int_equal(recv(p.b, got, sizeof(got), 0), 6);
		kt_refused(recv(p.b, got, 1, MSG_PEEK | MSG_DONTWAIT), EAGAIN);
		kt_close(&p);
	}
}

static void test_cut(void **state)
{
	struct iovec part;
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
	uint8_t *bytes = bytes_for(100000);
	const int sizes[] = {100, 100000}; /* eager, and fetched */
	uint8_t few[10];

	kt_fill(bytes, 100000, 3);
	for (int i = 0; i < 2; i++) {
		struct kt_pair p = kt_couple(SOCK_RDM);

		for (int k = 0; k < 3; k++)
			assert_int_equal(send(p.a, bytes, sizes[i], MSG_DONTWAIT), sizes[i]);
		part = (struct iovec){few, sizeof(few)};
		assert_int_equal(recvmsg(p.b, &m, 0), sizeof(few));
		assert_int_equal(m.msg_flags & MSG_TRUNC, MSG_TRUNC);
		assert_true(kt_filled(few, sizeof(few), 3));
		assert_int_equal(recv(p.b, few, sizeof(few), MSG_TRUNC), sizes[i]);
		assert_int_equal(recv(p.b, few, 0, 0), 0); /* thrown away */
		kt_refused(recv(p.b, few, 1, MSG_DONTWAIT), EAGAIN);
		kt_close(&p);
	}
	free(bytes);
}

static void test_empty_messages(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	char byte;

	assert_int_equal(send(p.a, NULL, 0, 0), 0);
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	assert_int_equal(recv(p.b, &byte, 1, 0), 0);
	assert_int_equal(recv(p.b, &byte, 1, 0), 1);
	kt_close(&p);
}

static void test_source_address(void **state)
{
	struct kt_pair p = kt_pair(SOCK_RDM);
	struct sockaddr_beowire from, none = {0};
	socklen_t len = sizeof(from);
	char byte;

	assert_int_equal(kt_send_to(p.a, "q", 1, &p.at_b), 1);
	assert_int_equal(recvfrom(p.b, &byte, 1, 0, (struct sockaddr *)&from, &len), 1);
	assert_int_equal(len, sizeof(from));
	assert_int_equal(from.sbw_family, AF_BEOWIRE);
	assert_int_equal(from.sbw_node, p.at_a.sbw_node);
	assert_int_equal(from.sbw_inc, p.at_a.sbw_inc);
	assert_memory_equal(from.sbw_zero, none.sbw_zero, sizeof(none.sbw_zero));
	assert_int_equal(kt_send_to(p.b, "a", 1, &from), 1); /* an answer */
	assert_int_equal(recv(p.a, &byte, 1, 0), 1);
	kt_close(&p);
}

static void test_bad_memory(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	uint8_t *bytes = bytes_for(200000),
		*hole = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	kt_refused(send(p.a, hole, 10, 0), EFAULT);
	kt_refused(send(p.a, hole, 200000, 0), EFAULT);
	kt_refused(send(p.a, (void *)-4096L, 200000, 0), EFAULT);
	assert_int_equal(send(p.a, bytes, 200000, MSG_DONTWAIT), 200000);
	kt_refused(recv(p.b, hole, 200000, 0), EFAULT);
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	kt_refused(recv(p.b, hole, 1, 0), EFAULT);
	assert_int_equal(send(p.a, "y", 1, 0), 1); /* both live on */
	assert_int_equal(recv(p.b, bytes, 1, 0), 1);
	assert_int_equal(bytes[0], 'y');
	free(bytes);
	kt_close(&p);
}

/* ---- rows ---- */

#define ROW 64

static void fill_row(struct mmsghdr *row, struct iovec *parts, uint8_t *bytes, size_t each)
{
	memset(row, 0, ROW * sizeof(*row));
	for (int i = 0; i < ROW; i++) {
		parts[i] = (struct iovec){bytes + (size_t)i * each, each};
		kt_fill(parts[i].iov_base, each, (uint32_t)i);
		row[i].msg_hdr.msg_iov = &parts[i];
		row[i].msg_hdr.msg_iovlen = 1;
	}
}

static void test_rows(void **state)
{
	static uint8_t sent[ROW * 64], got[ROW * 64];
	struct mmsghdr out[ROW], in[ROW];
	struct iovec from[ROW], to[ROW];
	struct kt_pair p = kt_couple(SOCK_RDM);

	fill_row(out, from, sent, 64);
	fill_row(in, to, got, 64);
	memset(got, 0, sizeof(got));
	assert_int_equal(sendmmsg(p.a, out, ROW, 0), ROW);
	for (int done = 0; done < ROW;) {
		int n = recvmmsg(p.b, in + done, (unsigned)(ROW - done), MSG_WAITFORONE, NULL);

		assert_true(n > 0);
		done += n;
	}
	assert_memory_equal(sent, got, sizeof(sent));
	assert_true(kt_counters(p.a).tx_frames < ROW / 2); /* several to a frame */
	kt_refused(recvmmsg(p.b, in, ROW, MSG_DONTWAIT, NULL), EAGAIN);
	kt_close(&p);
}

static long receive_row(void *arg)
{
	struct expected *e = arg;

	return receive_expected(e);
}

/* Long ones are waited for, one by one, though others follow. */
static void test_rows_of_long_messages(void **state)
{
	const size_t each = 40000;
	uint8_t *bytes = bytes_for(ROW * each);
	struct mmsghdr out[ROW];
	struct iovec from[ROW];
	uint32_t size[ROW];
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct expected e = {.fd = p.b, .size = size, .count = ROW, .room = each};
	struct kt_thread t;

	for (int i = 0; i < ROW; i++)
		size[i] = (uint32_t)each;
	fill_row(out, from, bytes, each);
	kt_start(&t, receive_row, &e);
	assert_int_equal(sendmmsg(p.a, out, ROW, 0), ROW);
	assert_int_equal(kt_join(&t), ROW);
	free(bytes);
	kt_close(&p);
}

/* A row that fills the room for sends goes out to make room. */
static void test_rows_larger_than_the_room(void **state)
{
	static uint8_t bytes[ROW * 1000], got[1000];
	struct mmsghdr out[ROW];
	struct iovec from[ROW];
	struct kt_pair p = kt_couple(SOCK_RDM);
	int room = 4096;

	setsockopt(p.a, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	fill_row(out, from, bytes, 1000);
	assert_int_equal(sendmmsg(p.a, out, ROW, 0), ROW);
	for (int i = 0; i < ROW; i++) {
		assert_int_equal(recv(p.b, got, sizeof(got), 0), sizeof(got));
		assert_true(kt_filled(got, sizeof(got), (uint32_t)i));
	}
	kt_close(&p);
}

/* What the call says was sent leaves although the rest of the row was refused. */
static void test_rows_that_break_off(void **state)
{
	static uint8_t bytes[ROW * 8], got[8];
	struct mmsghdr out[ROW];
	struct iovec from[ROW];
	struct kt_pair p = kt_couple(SOCK_RDM);

	fill_row(out, from, bytes, 8);
	assert_int_equal(send(p.a, "first", 5, 0), 5);
	assert_int_equal(recv(p.b, got, 8, 0), 5);
	usleep(100000); /* nothing is under way any more */
	out[3].msg_hdr.msg_iov = (struct iovec *)8;
	assert_int_equal(sendmmsg(p.a, out, ROW, 0), 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(recv(p.b, got, 8, 0), 8);
		assert_true(kt_filled(got, 8, (uint32_t)i));
	}
	kt_close(&p);
}

/* ---- events ---- */

static void wanted(const struct kt_pair *p)
{
	kt_option(p->a, BEOWIRE_INFO_WANTED, 1);
	kt_option(p->b, BEOWIRE_INFO_WANTED, 1);
}

static void test_info_goes_along(void **state)
{
	const struct beowire_info sent = {.tag = 11, .imm = 22, .cookie = 33, .code = 44};
	struct kt_pair p = kt_pair(SOCK_RDM);
	struct beowire_info got;
	char byte;

	wanted(&p);
	assert_int_equal(kt_send_info(p.a, "i", 1, &p.at_b, &sent, 0), 0);
	assert_int_equal(kt_recv_info(p.b, &byte, 1, &got, 0), 0);
	assert_int_equal(got.event, BEOWIRE_MESSAGE);
	assert_int_equal(got.tag, 11);
	assert_int_equal(got.imm, 22);
	assert_int_equal(got.code, 44);
	assert_int_equal(got.len, 1);
	assert_int_equal(got.cookie, 0);
	assert_int_equal(got.peer, 1);
	assert_int_equal(kt_recv_info(p.a, &byte, 1, &got, 0), 0);
	assert_int_equal(got.event, BEOWIRE_SENT);
	assert_int_equal(got.cookie, 33);
	assert_int_equal(got.status, 0);
	kt_close(&p);
}

static void test_pull(void **state)
{
	const struct beowire_info sent = {.cookie = 5, .flags = BEOWIRE_SEND_ASYNC};
	struct kt_pair p = kt_pair(SOCK_RDM);
	uint8_t *from = bytes_for(MIB), *to = bytes_for(MIB);
	struct beowire_info got;
	struct beowire_pull pull = {.buf = (uintptr_t)to, .len = MIB, .cookie = 6};

	wanted(&p);
	kt_fill(from, MIB, 9);
	assert_int_equal(kt_send_info(p.a, from, MIB, &p.at_b, &sent, 0), 0);
	assert_int_equal(kt_recv_info(p.b, to, 1, &got, 0), 0);
	assert_int_equal(got.event, BEOWIRE_ENVELOPE);
	assert_int_equal(got.len, MIB);
	pull.key = got.key + 1; /* what one may not have ends with an error */
	pull.peer = got.peer;
	assert_int_equal(ioctl(p.b, BEOWIRE_IOC_PULL, &pull), 0);
	pull.key = got.key;
	assert_int_equal(kt_recv_info(p.b, to, 1, &got, 0), 0);
	assert_int_equal(got.event, BEOWIRE_PULLED);
	assert_true(got.status < 0);
	assert_int_equal(ioctl(p.b, BEOWIRE_IOC_PULL, &pull), 0);
	assert_int_equal(kt_recv_info(p.b, to, 1, &got, 0), 0);
	assert_int_equal(got.event, BEOWIRE_PULLED);
	assert_int_equal(got.cookie, 6);
	assert_int_equal(got.status, 0);
	assert_int_equal(got.len, MIB);
	assert_true(kt_filled(to, MIB, 9));
	assert_int_equal(kt_recv_info(p.a, to, 1, &got, 0), 0);
	assert_int_equal(got.event, BEOWIRE_SENT);
	assert_int_equal(got.cookie, 5);
	assert_int_equal(kt_counters(p.b).pinned, MIB);
	free(from);
	free(to);
	kt_close(&p);
	kt_becomes(kt_pinned(), 0, 0);
}

/* The next event of a socket is this end of the operation with cookie 6. */
static void ended(int fd, uint8_t event, int status)
{
	struct beowire_info got;
	char byte;

	assert_int_equal(kt_recv_info(fd, &byte, 1, &got, 0), 0);
	assert_int_equal(got.event, event);
	assert_int_equal(got.cookie, 6);
	assert_int_equal(got.status, status);
}

/* Ends the pull with cookie 6: once, by its own socket. */
static void cancel_pull(const struct kt_pair *p)
{
	uint64_t cookie = 7;

	kt_refused(ioctl(p->b, BEOWIRE_IOC_CANCEL, &cookie), ENOENT);
	cookie = 6;
	assert_int_equal(ioctl(p->b, BEOWIRE_IOC_CANCEL, &cookie), 0);
	kt_refused(ioctl(p->b, BEOWIRE_IOC_CANCEL, &cookie), ENOENT);
	ended(p->b, BEOWIRE_PULLED, -ECANCELED);
}

/* What an envelope names does not come; its sender is free once it hears of the end. */
static void test_pull_of_a_message_that_is_ended(void **state)
{
	const struct beowire_info sent = {.cookie = 6, .flags = BEOWIRE_SEND_ASYNC};
	struct kt_pair p = kt_pair(SOCK_RDM);
	uint8_t *from = bytes_for(MIB), *to = bytes_for(MIB);
	struct beowire_pull pull = {.buf = (uintptr_t)to, .len = MIB, .cookie = 6};
	struct beowire_info got;

	wanted(&p);
	memset(from, 7, MIB);
	memset(to, 1, MIB);
	assert_int_equal(kt_send_info(p.a, from, MIB, &p.at_b, &sent, 0), 0);
	assert_int_equal(kt_recv_info(p.b, to, 0, &got, 0), 0);
	assert_int_equal(got.event, BEOWIRE_ENVELOPE);
	pull.key = got.key;
	pull.peer = got.peer;
	kt_link_of_b("down");
	assert_int_equal(ioctl(p.b, BEOWIRE_IOC_PULL, &pull), 0);
	cancel_pull(&p);
	kt_link_of_b("up");
	ended(p.a, BEOWIRE_SENT, 0);
	for (uint32_t i = 0; i < MIB; i++)
		assert_int_equal(to[i], 1);
	kt_close(&p);
	free(from);
	free(to);
	kt_becomes(kt_pinned(), 0, 0);
}

/* The peer lives, but its program does not say where the memory lies. */
static void test_pull_of_memory_that_is_ended(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	uint8_t *to = bytes_for(MIB);
	struct beowire_pull pull = {
		.flags = BEOWIRE_PULL_MEMORY, .buf = (uintptr_t)to, .len = MIB, .cookie = 6};
	struct beowire_info got;

	wanted(&p);
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	assert_int_equal(kt_recv_info(p.b, to, 1, &got, 0), 0);
	pull.peer = got.peer;
	assert_int_equal(ioctl(p.b, BEOWIRE_IOC_PULL, &pull), 0);
	assert_int_equal(kt_recv_info(p.a, to, 1, &got, 0), 0);
	assert_int_equal(got.event, BEOWIRE_REGION);
	cancel_pull(&p);
	kt_becomes(kt_pinned(), 0, 0);
	kt_close(&p);
	free(to);
}

/* Who has not asked for events is not woken by them, and is not given any. */
static void test_events_unasked_for(void **state)
{
	const struct beowire_info info = {.cookie = 1};
	const struct timeval patience = {.tv_usec = 100000};
	struct kt_pair p = kt_pair(SOCK_RDM);
	char byte;

	assert_int_equal(kt_send_info(p.a, "x", 1, &p.at_b, &info, 0), 0);
	assert_int_equal(recv(p.b, &byte, 1, 0), 1);
	usleep(50000); /* it is acknowledged */
	setsockopt(p.a, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	kt_refused(recv(p.a, &byte, 1, 0), EAGAIN);
	kt_option(p.a, BEOWIRE_INFO_WANTED, 1);
	assert_int_equal(kt_send_info(p.a, "x", 1, &p.at_b, &info, 0), 0);
	assert_int_equal(recv(p.b, &byte, 1, 0), 1);
	assert_int_equal(kt_events(p.a, POLLIN), POLLIN);
	kt_option(p.a, BEOWIRE_INFO_WANTED, 0);
	kt_refused(recv(p.a, &byte, 1, 0), EAGAIN);
	kt_refused(recv(p.a, &byte, 1, MSG_PEEK), EAGAIN);
	kt_option(p.a, BEOWIRE_INFO_WANTED, 1);
	kt_refused(recv(p.a, &byte, 1, MSG_PEEK), EOPNOTSUPP);
	kt_close(&p);
}

static void test_down_is_an_event(void **state)
{
	struct kt_pair p = kt_pair(SOCK_RDM);
	const struct beowire_info info = {0};
	struct beowire_info got;
	char byte;

	wanted(&p);
	assert_int_equal(kt_send_info(p.a, "x", 1, &p.at_b, &info, 0), 0);
	assert_int_equal(kt_recv_info(p.b, &byte, 1, &got, 0), 0);
	close(p.b);
	assert_int_equal(kt_recv_info(p.a, &byte, 1, &got, 0), 0);
	assert_int_equal(got.event, BEOWIRE_DOWN);
	assert_int_equal(got.status, -ESHUTDOWN);
	assert_int_equal(got.peer, 1);
	close(p.a);
}

/* ---- many at once ---- */

/* Two threads peek and two receive: every message is had once. */
struct crowd {
	int fd;
	bool peeks;
};

static long crowd_member(void *arg)
{
	const struct crowd *c = arg;
	struct sockaddr_beowire from;
	socklen_t len = sizeof(from);
	uint32_t number;
	long count = 0;

	for (;;) {
		if (recvfrom(c->fd, &number, 4, c->peeks ? MSG_PEEK : 0, (struct sockaddr *)&from,
			     &len) != 4)
			return -1;
		if (number == UINT32_MAX)
			return count;
		count++;
	}
}

static void test_peeking_beside_receiving(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct crowd members[4] = {{p.b, true}, {p.b, true}, {p.b, false}, {p.b, false}};
	struct kt_thread t[4];
	const uint32_t end = UINT32_MAX;

	for (int i = 0; i < 4; i++)
		kt_start(&t[i], crowd_member, &members[i]);
	for (uint32_t i = 0; i < 3000; i++)
		assert_int_equal(send(p.a, &i, 4, 0), 4);
	usleep(200000);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(send(p.a, &end, 4, 0), 4);
		usleep(20000);
	}
	assert_int_equal(kt_join(&t[2]) + kt_join(&t[3]), 3000);
	assert_true(kt_join(&t[0]) >= 0 && kt_join(&t[1]) >= 0);
	kt_close(&p);
}

/* ---- frames that cannot leave ---- */

#define LARGE 8000u /* in one frame */
#define FITS  4000  /* what the interface takes of one meanwhile */
#define PIECE 2000u /* in a page, and not so long that its checksum is made later */

/* A message in one frame, once the way to that peer is known to take it. */
static bool large_frames_leave(const struct kt_pair *p, uint8_t *bytes)
{
	uint64_t before = kt_counters(p->a).tx_frames;

	assert_int_equal(kt_send_to(p->a, bytes, LARGE, &p->at_b), LARGE);
	assert_int_equal(recv(p->b, bytes, LARGE, 0), LARGE);
	return kt_counters(p->a).tx_frames == before + 1;
}

/* The interface's frames become shorter. What was to be done for the one that did not leave is not
 * done to the next one, which goes to another peer: it arrives, and is right. */
static void test_a_frame_that_does_not_leave(void **state)
{
	struct kt_pair p = kt_pair(SOCK_RDM);
	int other = kt_bound("b", SOCK_RDM, 0);
	struct sockaddr_beowire to = kt_at(other);
	static uint8_t bytes[LARGE];
	char byte;

	assert_int_equal(kt_send_to(p.a, "x", 1, &to), 1);
	assert_int_equal(recv(other, &byte, 1, 0), 1);
	kt_until(large_frames_leave(&p, bytes));
	kt_shell("ip -n a link set dev eth0 mtu %d", FITS);
	assert_int_equal(kt_send_to(p.a, bytes, LARGE, &p.at_b), LARGE);
	kt_fill(bytes, PIECE, 1);
	assert_int_equal(kt_send_to(p.a, bytes, PIECE, &to), PIECE);
	memset(bytes, 0, PIECE);
	assert_int_equal(recv(other, bytes, PIECE, 0), PIECE);
	assert_true(kt_filled(bytes, PIECE, 1));
	assert_int_equal(kt_counters(other).drop[BW_DROP_HEADER], 0);
	assert_int_equal(recv(p.b, bytes, LARGE, 0), LARGE); /* in shorter ones */
	kt_shell("ip -n a link set dev eth0 mtu 9000");
	close(other);
	kt_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_sizes),
		kt_test(test_sizes_of_datagrams),
		kt_test(test_datagrams_are_copied),
		kt_test(test_room_is_an_int),
		kt_test(test_too_long),
		kt_test(test_many_of_random_sizes),
		kt_test(test_every_way_to_send_and_receive),
		kt_test(test_peek),
		kt_test(test_cut),
		kt_test(test_empty_messages),
		kt_test(test_source_address),
		kt_test(test_bad_memory),
		kt_test(test_rows),
		kt_test(test_rows_of_long_messages),
		kt_test(test_rows_larger_than_the_room),
		kt_test(test_rows_that_break_off),
		kt_test(test_info_goes_along),
		kt_test(test_pull),
		kt_test(test_pull_of_a_message_that_is_ended),
		kt_test(test_pull_of_memory_that_is_ended),
		kt_test(test_events_unasked_for),
		kt_test(test_down_is_an_event),
		kt_test(test_peeking_beside_receiving),
		kt_test(test_a_frame_that_does_not_leave),
	};

	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
