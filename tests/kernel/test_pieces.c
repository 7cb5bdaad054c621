/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What may be long, as only memory bounds it, is done in pieces, between which others have the
 * processor and the lock: sends of a socket that closes, lists of sockets, pages of a long buffer.
 * And what ends in pieces ends completely.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ktest.h"

#define NODE	"/proc/net/beowire/node"
#define PIECE	64 /* port.c, proc.c */
#define MANY	(5 * PIECE)
#define SIZE	100
#define VISIT	256 /* host.c */
#define LOST	(16 * VISIT)
#define WORDS	4000
#define TRACING "/sys/kernel/tracing"
#define PAGES	4096 /* of a long buffer */

/* ---- what a socket has under way ---- */

static void close_with_many_sends(int type)
{
	const int room = 4 << 20;
	int listener = kt_listener(type, 1), client = kt_open("a", type), server;
	struct sockaddr_beowire at = kt_at(listener);
	uint8_t bytes[SIZE];
	uint64_t before;

	assert_int_equal(kt_connect(client, &at), 0);
	server = accept(listener, NULL, NULL);
	assert_true(server >= 0);
	kt_option(server, BEOWIRE_EAGER_MAX, SIZE - 1);
	assert_int_equal(setsockopt(server, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	for (uint32_t i = 0; i < MANY; i++) {
		kt_fill(bytes, SIZE, i);
		assert_int_equal(send(server, bytes, SIZE, MSG_DONTWAIT), SIZE);
	}
	before = kt_number("b", NODE, "squeezed");
	close(server);
	assert_in_range(kt_number("b", NODE, "squeezed"), before + MANY / PIECE, UINT64_MAX);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(recv(client, bytes, SIZE, MSG_WAITALL), SIZE);
		assert_true(kt_filled(bytes, SIZE, i));
		assert_int_equal(kt_counters(listener).peers, 1);
	}
	assert_int_equal(recv(client, bytes, SIZE, 0), 0);
	assert_int_equal(shutdown(client, SHUT_WR), 0);
	kt_becomes(kt_counters(listener).peers, 0, 0);
	close(client);
	close(listener);
}

/* They still arrive, and then the peer is forgotten, and not before. */
static void test_a_connection_with_many_sends(void **state)
{
	kt_each_connection_type(type)
		close_with_many_sends(*type);
}

/* Sends out of the program's own pages, by cookies from 1 on, that nobody fetches. */
static struct kt_pair many_long_sends(uint8_t *bytes, uint64_t many)
{
	struct kt_pair p = kt_pair(SOCK_RDM);

	kt_option(p.a, BEOWIRE_INFO_WANTED, 1);
	kt_option(p.b, BEOWIRE_INFO_WANTED, 1);
	for (uint64_t i = 0; i < many; i++) {
		const struct beowire_info info = {
			.cookie = 1 + i * 37 % many, /* in no order */
			.flags = BEOWIRE_SEND_ASYNC | BEOWIRE_SEND_LONG,
		};

		assert_int_equal(kt_send_info(p.a, bytes, SIZE, &p.at_b, &info, 0), 0);
	}
	return p;
}

static void test_a_program_with_many_sends(void **state)
{
	static uint8_t bytes[SIZE];
	struct kt_pair p = many_long_sends(bytes, MANY);
	uint64_t before = kt_number("a", NODE, "squeezed");

	assert_true(kt_pinned() >= MANY);
	close(p.a);
	assert_in_range(kt_number("a", NODE, "squeezed"), before + MANY / PIECE, UINT64_MAX);
	kt_becomes(kt_pinned(), 0, 0);
	close(p.b);
}

struct talker {
	int fd;
	struct sockaddr_beowire to;
};

static long talk(void *arg)
{
	const struct talker *t = arg;

	for (uint32_t i = 0; i < WORDS; i++)
		if (kt_send_to(t->fd, &i, sizeof(i), &t->to) != sizeof(i))
			return i;
	return WORDS;
}

/* What was under way to a peer that is lost ends in several visits, and messages of others that
 * come meanwhile are neither lost nor taken for others. */
static void test_a_peer_with_many_sends(void **state)
{
	static uint8_t bytes[SIZE];
	struct kt_pair p = many_long_sends(bytes, LOST);
	struct talker talker = {.fd = kt_bound("b", SOCK_RDM, 0), .to = p.at_a};
	uint64_t before = kt_number("a", NODE, "squeezed");
	uint32_t sent = 0, messages = 0, text;
	struct beowire_info got;
	struct kt_thread thread;

	kt_start(&thread, talk, &talker);
	kt_until(kt_counters(p.a).rx_messages > 0);
	close(p.b);
	while (sent < LOST || messages < WORDS) {
		assert_int_equal(kt_recv_info(p.a, &text, sizeof(text), &got, 0), 0);
		if (got.event == BEOWIRE_MESSAGE) {
			assert_int_equal(got.len, sizeof(text));
			assert_int_equal(text, messages++);
		} else if (got.event == BEOWIRE_SENT) {
			assert_int_equal(got.status, -ESHUTDOWN);
			sent++;
		}
	}
	assert_in_range(kt_number("a", NODE, "squeezed"), before + LOST / (2 * VISIT) - 1,
			UINT64_MAX);
	kt_becomes(kt_pinned(), 0, 0);
	assert_int_equal(kt_join(&thread), WORDS);
	close(p.a);
	close(talker.fd);
}

/* Each is found by its own cookie, once. */
static void test_one_of_many_is_taken_back(void **state)
{
	static uint8_t bytes[SIZE];
	struct kt_pair p = many_long_sends(bytes, MANY);
	struct beowire_info got;
	char byte;

	for (uint64_t cookie = MANY; cookie; cookie -= 2) {
		assert_int_equal(ioctl(p.a, BEOWIRE_IOC_CANCEL, &cookie), 0);
		assert_int_equal(kt_recv_info(p.a, &byte, 1, &got, 0), 0);
		assert_int_equal(got.event, BEOWIRE_SENT);
		assert_int_equal(got.cookie, cookie);
		assert_int_equal(got.status, -ECANCELED);
		kt_refused(ioctl(p.a, BEOWIRE_IOC_CANCEL, &cookie), ENOENT);
	}
	kt_becomes(kt_pinned(), MANY / 2, MANY / 2);
	kt_close(&p);
	kt_becomes(kt_pinned(), 0, 0);
}

/* ---- lists ---- */

struct opener {
	volatile bool over;
};

static long open_again_and_again(void *arg)
{
	const struct opener *o = arg;
	int fd[3];

	while (!o->over) {
		for (int i = 0; i < 3; i++)
			fd[i] = kt_open("a", SOCK_RDM);
		for (int i = 0; i < 3; i++)
			close(fd[i]);
	}
	return 0;
}

/* How many of these sockets the list has; none twice. */
static int count_listed(const int *fd, const ino_t *inode)
{
	static char line[256];
	unsigned long seen;
	int found = 0;
	FILE *f;

	kt_enter("a");
	f = fopen("/proc/thread-self/net/beowire/sockets", "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*s %*s %*u %*s %*u %*d %*d %*u %lu", &seen) != 1)
			continue;
		for (int i = 0; i < MANY; i++)
			found += fd[i] >= 0 && inode[i] == seen;
	}
	fclose(f);
	return found;
}

/* While others come and go each socket is listed once. */
static void test_many_sockets(void **state)
{
	const struct rlimit files = {4096, 4096};
	struct opener opener = {.over = false};
	static int fd[MANY];
	static ino_t inode[MANY];
	struct kt_thread thread;
	struct stat st;
	uint64_t before;

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	for (int i = 0; i < MANY; i++) {
		fd[i] = kt_open("a", SOCK_RDM);
		assert_int_equal(fstat(fd[i], &st), 0);
		inode[i] = st.st_ino;
	}
	before = kt_number("a", NODE, "squeezed");
	assert_int_equal(count_listed(fd, inode), MANY);
	assert_in_range(kt_number("a", NODE, "squeezed"), before + MANY / PIECE - 1, UINT64_MAX);
	kt_start(&thread, open_again_and_again, &opener);
	for (int i = 0; i < 50; i++)
		assert_int_equal(count_listed(fd, inode), MANY);
	opener.over = true;
	kt_join(&thread);
	for (int i = 0; i < MANY; i++)
		close(fd[i]);
}

/* ---- pages ---- */

/* Pages that are let go in softirq, or with softirqs off, are counted from now on, as the kernel
 * traces them. */
static void count_pages(void)
{
	kt_shell("mountpoint -q %s || mount -t tracefs tracefs %s", TRACING, TRACING);
	kt_shell("cd %s && echo 0 >tracing_on && echo 4096 >buffer_size_kb && echo >trace && "
		 "echo 'common_flags & 0x90' >events/kmem/mm_page_free/filter && "
		 "echo 1 >events/kmem/mm_page_free/enable && echo 1 >tracing_on",
		 TRACING);
}

static int counted_pages(void)
{
	char line[512];
	int n = 0;
	FILE *f;

	kt_shell("cd %s && echo 0 >tracing_on && echo 0 >events/kmem/mm_page_free/enable", TRACING);
	f = fopen(TRACING "/trace", "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "mm_page_free:") != NULL;
	fclose(f);
	kt_shell("cd %s && echo >trace && echo 0 >events/kmem/mm_page_free/filter && "
		 "echo 1 >tracing_on",
		 TRACING);
	return n;
}

/* The copy of a long message is let go when it has been fetched, of which an acknowledgement
 * tells. */
static void test_a_long_copy(void **state)
{
	const size_t len = (size_t)PAGES * 4096;
	const int room = 64 << 20;
	struct kt_pair p = kt_couple(SOCK_RDM);
	uint8_t *bytes = malloc(len);
	int pages;

	assert_non_null(bytes);
	kt_fill(bytes, len, 3);
	assert_int_equal(setsockopt(p.a, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)), 0);
	assert_int_equal(send(p.a, bytes, len, MSG_DONTWAIT), len);
	count_pages();
	assert_int_equal(recv(p.b, bytes, len, 0), len);
	assert_true(kt_filled(bytes, len, 3));
	kt_close(&p);
	pages = counted_pages();
	fprintf(stderr, "pages let go with softirqs off: %d of %d\n", pages, PAGES);
	assert_in_range(pages, 0, PAGES / 16);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_a_connection_with_many_sends),
		kt_test(test_a_program_with_many_sends),
		kt_test(test_a_peer_with_many_sends),
		kt_test(test_one_of_many_is_taken_back),
		kt_test(test_many_sockets),
		kt_test(test_a_long_copy),
	};

	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
