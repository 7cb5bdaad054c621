/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Several users on one node: who may open sockets, what one user can do to another (nothing), and
 * what memory each may lock.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kuser.h"
#include "wire.h"

#define MIB  (1u << 20)
#define NODE "/proc/net/beowire/node"

static int open_socket(void *arg)
{
	return socket(AF_BEOWIRE, SOCK_RDM, 0) < 0 ? errno : 0;
}

static void test_groups_that_may_open(void **state)
{
	kt_enter("a");
	kt_settings("group_range", "1 0");
	assert_int_equal(kt_as(KT_ALICE, open_socket, NULL), EACCES);
	assert_int_equal(kt_as(0, open_socket, NULL), 0);
	kt_settings("group_range", "1001 1001");
	kt_enter("a");
	assert_int_equal(kt_as(KT_ALICE, open_socket, NULL), 0);
	assert_int_equal(kt_as(KT_BOB, open_socket, NULL), EACCES);
	assert_int_equal(kt_end_of(kt_begin_as(KT_BOB, KT_BOB, 1001, open_socket, NULL)), 0);
	kt_settings("group_range", "1000 2000");
}

static int attach(void *arg)
{
	struct beowire_iface iface = {.name = "eth0"};
	int fd = socket(AF_BEOWIRE, SOCK_RDM, 0);

	if (ioctl(fd, BEOWIRE_IOC_ATTACH, &iface) == 0 || errno != EPERM)
		return 1;
	return ioctl(fd, BEOWIRE_IOC_DETACH, &iface) == 0 || errno != EPERM;
}

static int change_settings(void *arg)
{
	FILE *f = fopen("/proc/sys/net/beowire/memory_max", "w");

	return f != NULL;
}

static void test_privileges(void **state)
{
	kt_enter("a");
	assert_int_equal(kt_as(KT_ALICE, attach, NULL), 0);
	assert_int_equal(kt_as(KT_ALICE, change_settings, NULL), 0);
}

static int bind_of(void *arg)
{
	const struct sockaddr_beowire *addr = arg;
	int fd = socket(AF_BEOWIRE, SOCK_RDM, 0);

	return bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) ? errno : 0;
}

static void test_a_port_is_its_owners(void **state)
{
	struct sockaddr_beowire addr = {.sbw_family = AF_BEOWIRE, .sbw_port = 77};
	int fd = kt_bound("a", SOCK_RDM, 77);

	assert_int_equal(kt_as(KT_BOB, bind_of, &addr), EADDRINUSE);
	addr = kt_at(fd); /* neither can an address be had by its parts */
	addr.sbw_port = 78;
	assert_int_equal(kt_as(KT_BOB, bind_of, &addr), EADDRNOTAVAIL);
	close(fd);
}

/* ---- messages of others ---- */

struct robbery {
	struct sockaddr_beowire victim;
	uint64_t key;
};

/* Bob has learned the key of Alice's message, and asks her port for it. */
static int rob(void *arg)
{
	const struct robbery *r = arg;
	const struct beowire_info none = {0};
	const int on = 1;
	static char loot[MIB];
	struct beowire_pull pull = {
		.key = r->key, .buf = (uintptr_t)loot, .len = MIB, .peer = 1, .cookie = 1};
	struct beowire_info info;
	int fd = socket(AF_BEOWIRE, SOCK_RDM, 0);

	if (setsockopt(fd, SOL_BEOWIRE, BEOWIRE_INFO_WANTED, &on, sizeof(on)) ||
	    kt_send_info(fd, "hello", 5, &r->victim, &none, 0) ||
	    ioctl(fd, BEOWIRE_IOC_PULL, &pull) || kt_recv_info(fd, loot, 1, &info, 0))
		return errno;
	if (info.event != BEOWIRE_PULLED || info.status >= 0)
		return 1;
	for (unsigned i = 0; i < MIB; i++)
		if (loot[i])
			return 2;
	return 0;
}

static void test_messages_are_their_receivers(void **state)
{
	const struct beowire_info sent = {.flags = BEOWIRE_SEND_ASYNC};
	struct kt_pair p = kt_pair(SOCK_RDM);
	struct robbery robbery = {.victim = p.at_a};
	struct beowire_info got;
	char *bytes = malloc(MIB);

	memset(bytes, 'a', MIB);
	kt_option(p.b, BEOWIRE_INFO_WANTED, 1);
	assert_int_equal(kt_send_info(p.a, bytes, MIB, &p.at_b, &sent, 0), 0);
	assert_int_equal(kt_recv_info(p.b, bytes, 1, &got, 0), 0);
	assert_int_equal(got.event, BEOWIRE_ENVELOPE);
	robbery.key = got.key;
	kt_enter("b");
	assert_int_equal(kt_as(KT_BOB, rob, &robbery), 0);
	free(bytes);
	kt_close(&p);
}

/* Where the one who asked wants the bytes. Nothing else lies there in any program. */
#define ROOM_AT ((void *)0x100000000000)

static char *make_room(void)
{
	return mmap(ROOM_AT, MIB, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

/* The socket has come to another program, which has memory of its own at that address. */
static int inherit(void *fd)
{
	const char *room = ROOM_AT;
	struct beowire_info info;
	char byte;

	if (kt_recv_info(*(int *)fd, &byte, 1, &info, 0))
		return errno;
	if (info.event != BEOWIRE_PULLED || info.cookie != 9 || info.status != -EFAULT)
		return 1;
	for (unsigned i = 0; i < MIB; i++)
		if (room[i])
			return 2;
	return 0;
}

/* Who asks, and becomes another program before it is answered: main() gets this word. */
struct asker {
	int fd;
	struct beowire_pull pull;
};

static int ask_and_exec(void *arg)
{
	struct asker *a = arg;
	char word[16];

	if (ioctl(a->fd, BEOWIRE_IOC_PULL, &a->pull))
		return errno;
	snprintf(word, sizeof(word), "%d", a->fd);
	execl("/proc/self/exe", "heir", word, NULL);
	return 3;
}

static int heir(int fd)
{
	return make_room() == ROOM_AT ? inherit(&fd) : 4;
}

static void test_pulled_bytes_are_for_who_asked(void **state)
{
	const struct beowire_info sent = {.flags = BEOWIRE_SEND_ASYNC | BEOWIRE_SEND_LONG};
	struct kt_pair p = kt_pair(SOCK_RDM);
	struct beowire_pull pull = {.len = MIB, .cookie = 9};
	struct asker asker = {.fd = p.b};
	char *bytes = malloc(MIB), *room = make_room();
	uint64_t before = kt_number("b", NODE, "bad-readers");
	struct beowire_info got;

	memset(bytes, 'a', MIB);
	kt_option(p.b, BEOWIRE_INFO_WANTED, 1);
	kt_option(p.b, BEOWIRE_COPY_MAX, MIB); /* nothing is pinned */
	assert_ptr_equal(room, ROOM_AT);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(kt_send_info(p.a, bytes, MIB, &p.at_b, &sent, 0), 0);
		assert_int_equal(kt_recv_info(p.b, &got, 1, &got, 0), 0);
		pull.key = got.key;
		pull.peer = got.peer;
		pull.buf = (uintptr_t)room;
		asker.pull = pull;
		if (i == 0) {
			assert_int_equal(kt_as(0, ask_and_exec, &asker), 0);
			continue;
		}
		assert_int_equal(ioctl(p.b, BEOWIRE_IOC_PULL, &pull), 0);
		assert_int_equal(kt_events(p.b, POLLIN), POLLIN); /* all is there */
		if (i == 1)
			assert_int_equal(kt_as(0, inherit, &p.b), 0);
	}
	assert_int_equal(kt_recv_info(p.b, &got, 1, &got, 0), 0);
	assert_int_equal(got.status, 0);
	assert_memory_equal(room, bytes, MIB);
	assert_int_equal(kt_number("b", NODE, "bad-readers"), before + 2);
	free(bytes);
	munmap(room, MIB);
	kt_close(&p);
}

static int send_hello(void *arg)
{
	int fd = socket(AF_BEOWIRE, SOCK_RDM, 0);

	return kt_send_to(fd, "bob", 3, arg) == 3 ? 0 : errno;
}

static void test_messages_come_from_their_senders(void **state)
{
	struct kt_pair p = kt_pair(SOCK_RDM);
	struct sockaddr_beowire from;
	socklen_t len = sizeof(from);
	char bytes[4];

	kt_enter("b");
	assert_int_equal(kt_as(KT_BOB, send_hello, &p.at_a), 0);
	assert_int_equal(recvfrom(p.a, bytes, 4, 0, (struct sockaddr *)&from, &len), 3);
	assert_int_not_equal(from.sbw_port, p.at_b.sbw_port);
	assert_int_not_equal(from.sbw_inc, p.at_b.sbw_inc);
	kt_close(&p);
}

/* Whatever can be said in a call, about the address and the message, by one who knows all of the
 * victim's address. */
static int forge(void *arg)
{
	static const uint16_t flags[] = {0, BEOWIRE_SEND_EAGER, BEOWIRE_SEND_SHORT,
					 BEOWIRE_SEND_LONG | BEOWIRE_SEND_ASYNC};
	const struct kt_pair *p = arg;
	int rdm = socket(AF_BEOWIRE, SOCK_RDM, 0), dgram = socket(AF_BEOWIRE, SOCK_DGRAM, 0);
	int seq = socket(AF_BEOWIRE, SOCK_SEQPACKET, 0);

	for (uint32_t i = 0; i < 256; i++) {
		const struct beowire_info info = {.tag = p->at_b.sbw_port,
						  .imm = p->at_b.sbw_inc,
						  .key = p->at_b.sbw_port,
						  .peer = i / 64 % 2,
						  .event = (uint8_t)i,
						  .code = i % 128,
						  .flags = flags[i % 4]};
		struct sockaddr_beowire to = p->at_a;

		to.sbw_inc = i & 4 ? to.sbw_inc : 0;
		to.sbw_node = i & 8 ? p->at_b.sbw_node : to.sbw_node;
		to.sbw_node = i & 16 ? 0 : to.sbw_node;
		to.sbw_ifindex = i & 32 ? 1 : 0;
		kt_send_info(rdm, &p->at_b, sizeof(p->at_b), &to, &info, MSG_DONTWAIT);
		kt_send_to(dgram, &p->at_b, sizeof(p->at_b), &to);
	}
	fcntl(seq, F_SETFL, O_NONBLOCK);
	kt_connect(seq, &p->at_a);
	return 0;
}

/* Frames of b that come to a, as they are on the wire. */
static void test_no_frame_is_forged(void **state)
{
	struct kt_pair p = kt_pair(SOCK_RDM);
	union {
		uint8_t bytes[9100];
		struct {
			uint8_t to[6], from[6], type[2], room[2];
		} eth;
	} frame;
	const struct timeval patience = {.tv_usec = 200000};
	struct sockaddr_ll from;
	socklen_t len = sizeof(from);
	int tap, seen = 0;
	struct bw_hdr h;
	ssize_t n;

	kt_enter("a");
	tap = socket(AF_PACKET, SOCK_RAW, htons(BW_ETHERTYPE));
	assert_true(tap >= 0);
	setsockopt(tap, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	kt_enter("b");
	assert_int_equal(kt_as(KT_BOB, forge, &p), 0);
	while ((n = recvfrom(tap, &frame, sizeof(frame), 0, (struct sockaddr *)&from, &len)) > 0) {
		if (from.sll_pkttype == PACKET_OUTGOING)
			continue;
		assert_true(n >= (ssize_t)(14 + sizeof(h)));
		memcpy(&h, frame.bytes + 14, sizeof(h));
		assert_memory_equal(frame.eth.from, p.at_b.sbw_mac, 6);
		assert_int_not_equal(h.src_engine, p.at_b.sbw_port);
		seen++;
	}
	assert_in_range(seen, 100, 100000);
	close(tap);
	kt_close(&p);
}

/* What can be read about others is the list of ports, which has no incarnations. */
static int look_around(void *arg)
{
	static const char *const secret[] = {"held_bytes", "user_limited", "pinned_pages"};
	static const char *const open[] = {"ports", "node", "servers"};
	const struct sockaddr_beowire *victim = arg;
	char path[96], text[8192], words[2][16];
	FILE *f;

	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "/sys/module/beowire/parameters/%s", secret[i]);
		if (fopen(path, "r") || errno != EACCES)
			return 1;
	}
	snprintf(words[0], sizeof(words[0]), "%u", victim->sbw_inc);
	snprintf(words[1], sizeof(words[1]), "%08x", victim->sbw_inc);
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "/proc/self/net/beowire/%s", open[i]);
		f = fopen(path, "r");
		if (!f)
			return 2;
		text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
		fclose(f);
		if (strstr(text, words[0]) || strstr(text, words[1]))
			return 3;
	}
	return 0;
}

static void test_what_others_see(void **state)
{
	int fd = kt_bound("a", SOCK_RDM, 0);
	struct sockaddr_beowire addr = kt_at(fd);

	assert_int_equal(kt_as(KT_BOB, look_around, &addr), 0);
	close(fd);
}

/* Whoever reads nothing does not take the node's memory: who floods him is left. */
struct flood {
	struct sockaddr_beowire to;
	int type;
};

static int flood(void *arg)
{
	const struct timeval patience = {.tv_sec = 60};
	struct flood *f = arg;
	int fd = socket(AF_BEOWIRE, f->type, 0);
	long count;

	if (connect(fd, (struct sockaddr *)&f->to, sizeof(f->to)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)))
		return 1;
	for (count = 0; count < 20000; count++)
		if (send(fd, "sixteen bytes...", 16, 0) != 16)
			return f->type == SOCK_RDM && errno == ECONNRESET ? 0 : 2;
		else if (f->type == SOCK_RDM && recv(fd, &count, 1, MSG_DONTWAIT) < 0 &&
			 errno != EAGAIN)
			return errno == ECONNRESET ? 0 : errno;
	return f->type == SOCK_RDM ? 3 : 0; /* reliable messages are not lost without a word */
}

static void hold_back(int type, uint32_t most)
{
	struct kt_pair p = kt_pair(type);
	struct flood f = {p.at_a, type};
	char bytes[16];
	uint32_t had = 0;

	kt_enter("b");
	assert_int_equal(kt_as(KT_BOB, flood, &f), 0);
	while (recv(p.a, bytes, sizeof(bytes), MSG_DONTWAIT) == 16)
		had++;
	assert_in_range(had, 10, most);
	kt_close(&p);
}

static void test_a_flood_is_held_back(void **state)
{
	kt_settings("memory_max", "1048576");
	hold_back(SOCK_RDM, 6000);
	hold_back(SOCK_DGRAM, 2000); /* SO_RCVBUF */
	kt_settings("memory_max", "67108864");
	kt_shell("echo 1048576 >/sys/module/beowire/parameters/overflow_max");
	hold_back(SOCK_RDM, 6000);
	kt_shell("echo 0 >/sys/module/beowire/parameters/overflow_max");
}

/* ---- locked memory ---- */

struct sending {
	int fd, times;
	rlim_t limit;
	struct beowire_counters after;
};

/* All of them: those that were copied are sent long before they are received. */
static long receive_all(void *arg)
{
	const struct sending *s = arg;
	static char bytes[MIB];
	long n = 0;

	while (n < s->times && recv(s->fd, bytes, MIB, 0) == MIB)
		n++;
	return n;
}

static int send_under_limit(void *arg)
{
	const struct sending *s = arg;
	const struct rlimit limit = {s->limit, s->limit};
	static char bytes[MIB];

	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		return errno;
	for (int i = 0; i < s->times; i++)
		if (send(s->fd, bytes, MIB, 0) != MIB)
			return errno;
	return 0;
}

static void send_long(rlim_t limit, uint64_t pinned, uint64_t limited)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct sending s = {.fd = p.a, .times = 8, .limit = limit}, r = {.fd = p.b, .times = 8};
	struct beowire_counters c;
	struct kt_thread t;

	kt_start(&t, receive_all, &r);
	assert_int_equal(kt_as(KT_ALICE, send_under_limit, &s), 0);
	c = kt_counters(p.a);
	assert_true(c.pinned >= pinned && !c.pinned == !pinned); /* more if some was lost */
	assert_int_equal(c.memlock_limited, limited);
	assert_int_equal(kt_join(&t), 8);
	kt_close(&p);
	kt_becomes(kt_pinned(), 0, 0);
}

static void test_locked_memory_is_limited(void **state)
{
	send_long(0, 0, 8);
	send_long(2 * MIB, 8 * MIB, 0); /* given back each time */
}

struct pulling {
	int fd;
	struct beowire_pull pull;
};

static int pull_under_limit(void *arg)
{
	const struct rlimit limit = {0, 0};
	const struct pulling *what = arg;
	struct beowire_pull pull = what->pull;
	static char bytes[MIB];
	struct beowire_info info;

	pull.buf = (uintptr_t)bytes;
	if (setrlimit(RLIMIT_MEMLOCK, &limit) || ioctl(what->fd, BEOWIRE_IOC_PULL, &pull))
		return errno;
	if (pull.cookie && (kt_recv_info(what->fd, &info, 1, &info, 0) || info.status))
		return 1;
	return kt_filled(bytes, MIB, 3) ? 0 : 2;
}

static void pull_long(uint64_t cookie)
{
	const struct beowire_info sent = {.flags = BEOWIRE_SEND_ASYNC};
	struct kt_pair p = kt_pair(SOCK_RDM);
	struct pulling what = {.fd = p.b, .pull = {.len = MIB, .cookie = cookie}};
	char *bytes = malloc(MIB);
	struct beowire_info got;

	kt_fill(bytes, MIB, 3);
	kt_option(p.b, BEOWIRE_INFO_WANTED, 1);
	assert_int_equal(kt_send_info(p.a, bytes, MIB, &p.at_b, &sent, 0), 0);
	assert_int_equal(kt_recv_info(p.b, &got, 1, &got, 0), 0);
	what.pull.key = got.key;
	what.pull.peer = got.peer;
	assert_int_equal(kt_as(KT_ALICE, pull_under_limit, &what), 0);
	assert_int_equal(kt_counters(p.b).memlock_limited, 1);
	free(bytes);
	kt_close(&p);
	kt_becomes(kt_pinned(), 0, 0);
}

/* As sends and receive calls do: bytes that may not be pinned are copied, and that is counted. */
static void test_pulls_keep_to_the_limit(void **state)
{
	pull_long(7);
	pull_long(0);
}

int main(int count, char **words)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_groups_that_may_open),
		kt_test(test_privileges),
		kt_test(test_a_port_is_its_owners),
		kt_test(test_messages_are_their_receivers),
		kt_test(test_pulled_bytes_are_for_who_asked),
		kt_test(test_messages_come_from_their_senders),
		kt_test(test_no_frame_is_forged),
		kt_test(test_what_others_see),
		kt_test(test_a_flood_is_held_back),
		kt_test(test_locked_memory_is_limited),
		kt_test(test_pulls_keep_to_the_limit),
	};

	if (count == 2)
		return heir(atoi(words[1]));
	return cmocka_run_group_tests(tests, kt_open_to_all, NULL);
}
