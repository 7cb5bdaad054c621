/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who pays for what peers make the module hold: messages that nobody reads, messages of which a
 * part has come, accepted connections, and engines that grow. It is charged to the socket's user
 * and to his control group, bounded, and given back.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hosts.h"
#include "kheld.h"
#include "kuser.h"

#define SOCKET 8192 /* bytes that one costs: account.h */
#define NODE   "/proc/net/beowire/node"
#define GROUP  "/tmp/groups/tested"

/* ---- unread messages ---- */

#define UNREAD 300
#define MANY   2000 /* 16 MB */

static int set_pages(const char *text)
{
	int fd = open("/sys/module/beowire/parameters/memory_pages", O_WRONLY), error = 0;

	assert_true(fd >= 0);
	if (write(fd, text, strlen(text)) < 0)
		error = errno;
	close(fd);
	return error;
}

/* One number bounds what is charged, and nothing else is taken for one. */
static void test_pages_of_all_sockets(void **state)
{
	const uint64_t before = kt_parameter("memory_pages");

	assert_int_equal(set_pages("0"), EINVAL);
	assert_int_equal(set_pages("-1"), EINVAL);
	assert_int_equal(set_pages("9,9,9"), EINVAL);
	assert_int_equal(kt_parameter("memory_pages"), before);
	kt_set_parameter("memory_pages", before - 1);
	assert_int_equal(kt_parameter("memory_pages"), before - 1);
	kt_set_parameter("memory_pages", before);
}

/* All that waits unread fits into its socket, but not into what there is for all sockets: a sender
 * waits, or is told that he was left, which a send alone is not. */
static void test_pages_are_the_bound(void **state)
{
	static const char bytes[8000];
	const struct timeval patience = {.tv_sec = 2};
	const int room = 64 << 20;
	struct kt_pair p = kt_couple(SOCK_RDM);
	const uint64_t pages = kt_parameter("memory_pages");
	uint64_t before = kt_parameter("held_bytes"), met = kt_parameter("user_limited");
	int sent = 0;

	assert_int_equal(setsockopt(p.b, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)), 0);
	setsockopt(p.a, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	kt_set_parameter("memory_pages", 1);
	while (sent < MANY && !kt_error(p.a) && send(p.a, bytes, sizeof(bytes), 0) == sizeof(bytes))
		sent++;
	assert_in_range(sent, 0, MANY / 2);
	/* Each processor keeps up to a MiB for itself (net/core/sock.c). */
	assert_in_range(kt_parameter("held_bytes"), 0,
			before + (2 + (uint64_t)sysconf(_SC_NPROCESSORS_ONLN)) * MIB);
	assert_true(kt_parameter("user_limited") > met);
	kt_set_parameter("memory_pages", pages);
	kt_close(&p);
	kt_becomes(kt_held(), 0, before);
}

static void test_unread_messages(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	uint64_t before = kt_parameter("held_bytes");
	char bytes[16];

	assert_int_equal(kt_charged(p.b), 4096);
	for (int i = 0; i < UNREAD; i++)
		assert_int_equal(send(p.a, bytes, 1, 0), 1);
	/* A frame of one byte takes some 700 bytes of memory. */
	kt_becomes(kt_charged(p.b), UNREAD * 600, UNREAD * 2000);
	assert_in_range(kt_parameter("held_bytes"), before + UNREAD * 600, before + UNREAD * 3000);
	for (int i = 0; i < UNREAD; i++)
		assert_int_equal(recv(p.b, bytes, sizeof(bytes), 0), 1);
	assert_in_range(kt_charged(p.b), 4096, 4096 + 3 * 16384);
	kt_close(&p);
	kt_becomes(kt_held(), 0, before);
}

#define SOCKETS 100

/* A user's process in a that holds sockets, the last one a listener, until it is told to end. */
struct holder {
	int ready[2], go[2];
	uint64_t held; /* bytes */
	struct sockaddr_beowire at[SOCKETS];
	pid_t pid;
};

static int hold_sockets(void *arg)
{
	struct holder *h = arg;
	struct sockaddr_beowire any = {.sbw_family = AF_BEOWIRE};
	socklen_t len = sizeof(any);
	char byte;

	for (int i = 0; i < SOCKETS; i++) {
		bool last = i == SOCKETS - 1;
		int fd = socket(AF_BEOWIRE, last ? SOCK_SEQPACKET : SOCK_RDM, 0);

		if (bind(fd, (struct sockaddr *)&any, len) ||
		    getsockname(fd, (struct sockaddr *)&h->at[i], &len) ||
		    (last && listen(fd, SOCKETS)))
			return 98;
		h->at[i].sbw_ifindex = 0;
	}
	if (write(h->ready[1], h->at, sizeof(h->at)) != sizeof(h->at))
		return 97;
	return read(h->go[0], &byte, 1) == 1 ? 0 : 96;
}

static void begin_holding(struct holder *h)
{
	uint64_t before = kt_parameter("held_bytes");

	assert_int_equal(pipe(h->ready) | pipe(h->go), 0);
	kt_enter("a");
	h->pid = kt_begin_as(KT_BOB, KT_BOB, KT_BOB, hold_sockets, h);
	close(h->ready[1]); /* if it dies, that is seen */
	assert_int_equal(read(h->ready[0], h->at, sizeof(h->at)), sizeof(h->at));
	h->held = kt_parameter("held_bytes") - before;
}

static void end_holding(const struct holder *h, uint64_t before)
{
	assert_int_equal(write(h->go[1], "", 1), 1);
	assert_int_equal(kt_end_of(h->pid), 0);
	kt_set_parameter("user_memory_max", 0);
	kt_becomes(kt_held(), 0, before);
}

/* However many sockets somebody has, each with less than SO_RCVBUF unread. */
static void test_unread_messages_of_many_sockets(void **state)
{
	static const char bytes[8000];
	uint64_t before = kt_parameter("held_bytes"), met = kt_parameter("user_limited"), most;
	int from = kt_bound("b", SOCK_RDM, 0);
	struct holder h;

	begin_holding(&h);
	kt_set_parameter("user_memory_max", h.held + 2 * MIB);
	most = kt_parameter("held_bytes") + 2 * MIB + MIB; /* the sender's engine grows, too */
	for (int i = 0; i < SOCKETS - 1; i++) {
		for (int n = 0; n < 10; n++)
			sendto(from, bytes, sizeof(bytes), MSG_DONTWAIT,
			       (struct sockaddr *)&h.at[i], sizeof(h.at[i]));
		usleep(2000);
		assert_in_range(kt_parameter("held_bytes"), 0, most);
	}
	assert_true(kt_parameter("user_limited") > met);
	close(from);
	end_holding(&h, before);
}

/* ---- root of a container ---- */

static int bind_many(void *arg)
{
	struct sockaddr_beowire any = {.sbw_family = AF_BEOWIRE};
	int most = *(int *)arg, n;

	for (n = 0; n < most; n++) {
		int fd = socket(AF_BEOWIRE, SOCK_RDM, 0);

		if (bind(fd, (struct sockaddr *)&any, sizeof(any)))
			return errno == ENOBUFS ? n : 99;
	}
	return n;
}

/* Uid 0 in a network namespace of its own is as bounded as anybody, and each namespace has its own
 * share. */
static void test_root_of_a_container(void **state)
{
	int most = 20, kept = kt_bound("b", SOCK_RDM, 0);

	kt_set_parameter("user_ports_max", 8);
	kt_enter("b");
	assert_int_equal(kt_as(0, bind_many, &most), 7);
	kt_enter("a");
	assert_int_equal(kt_as(0, bind_many, &most), 8);
	kt_set_parameter("user_ports_max", 4096);
	close(kept);
}

/* Root of the machine has put it into a user namespace. */
struct contained {
	int most, ready[2], go[2];
};

static int bind_contained(void *arg)
{
	struct contained *c = arg;
	int n;
	char byte;

	if (unshare(CLONE_NEWUSER))
		return 97;
	n = bind_many(&c->most);
	if (write(c->ready[1], "", 1) != 1 || read(c->go[0], &byte, 1) != 1)
		return 98;
	return n;
}

static pid_t begin_contained(struct contained *c, const char *node, int most)
{
	pid_t pid;
	char byte;

	c->most = most;
	assert_int_equal(pipe(c->ready) | pipe(c->go), 0);
	kt_enter(node);
	pid = kt_begin_as(0, KT_BOB, KT_BOB, bind_contained, c); /* whose group may open */
	close(c->ready[1]);					 /* if it dies, that is seen */
	assert_int_equal(read(c->ready[0], &byte, 1), 1);
	return pid;
}

/* In user namespaces it is the same user in all network namespaces, and bounded. */
static void test_root_in_user_namespaces(void **state)
{
	struct contained first, second;
	pid_t one, other;

	kt_set_parameter("user_ports_max", 8);
	one = begin_contained(&first, "b", 5);
	other = begin_contained(&second, "a", 20);
	kt_set_parameter("user_ports_max", 4096);
	assert_int_equal(write(first.go[1], "", 1) + write(second.go[1], "", 1), 2);
	assert_int_equal(kt_end_of(one), 5);
	assert_int_equal(kt_end_of(other), 3);
}

static void test_root_of_the_machine(void **state)
{
	struct beowire_iface interface = {.name = "m1"};
	int most = 20, fd;

	kt_enter("../../../proc/1/ns/net");
	kt_shell("ip link add m1 type veth peer name m2 && ip link set dev m1 up");
	fd = socket(AF_BEOWIRE, SOCK_RDM, 0);
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, BEOWIRE_IOC_ATTACH, &interface), 0);
	kt_set_parameter("user_ports_max", 8);
	assert_int_equal(kt_as(0, bind_many, &most), 20);
	kt_set_parameter("user_ports_max", 4096);
	close(fd);
	kt_shell("ip link del m1");
	kt_enter("a");
}

/* ---- sockets ---- */

static int open_many(void *arg)
{
	const struct rlimit files = {4096, 4096};
	int n = 0;

	if (setrlimit(RLIMIT_NOFILE, &files))
		return 99;
	while (socket(AF_BEOWIRE, SOCK_RDM, 0) >= 0)
		n++;
	return errno == ENOBUFS && n == *(int *)arg ? 0 : 98;
}

static void test_sockets_cost(void **state)
{
	uint64_t before = kt_parameter("held_bytes");
	int most = 128;

	kt_set_parameter("user_memory_max", (uint64_t)most * SOCKET);
	kt_enter("a");
	assert_int_equal(kt_as(KT_BOB, open_many, &most), 0);
	kt_set_parameter("user_memory_max", 0);
	kt_becomes(kt_held(), 0, before);
}

#define CLIENTS 64

/* Connections, accepted or not, are sockets of the listener's user. */
static void test_accepted_sockets_cost(void **state)
{
	uint64_t before = kt_parameter("held_bytes");
	int fd[CLIENTS], connected = 0;
	struct holder h;

	begin_holding(&h);
	kt_set_parameter("user_memory_max", h.held + 32 * SOCKET);
	for (int i = 0; i < CLIENTS; i++) {
		fd[i] = kt_open("b", SOCK_SEQPACKET);
		kt_option(fd[i], BEOWIRE_DEAD_MS, 2000);
		assert_int_equal(fcntl(fd[i], F_SETFL, O_NONBLOCK), 0);
		kt_connect(fd[i], &h.at[SOCKETS - 1]);
		usleep(5000);
	}
	for (int i = 0; i < CLIENTS; i++) {
		connected += kt_events(fd[i], POLLOUT) == POLLOUT;
	}
	assert_in_range(connected, 16, 32);
	for (int i = 0; i < CLIENTS; i++)
		close(fd[i]);
	end_holding(&h, before);
}

/* ---- messages of which a part has come ---- */

/* A socket of b's that hears of a peer's death, or stillness, after so long, and one of a's that
 * reaches it by the relay. */
static struct kt_pair hurt_pair(struct kt_relay *r, int patience_ms)
{
	struct kt_pair p = {.a = kt_open("a", SOCK_RDM), .b = kt_open("b", SOCK_RDM)};
	struct sockaddr_beowire any = {.sbw_family = AF_BEOWIRE}, to;
	char byte;

	kt_relay_begin(r, kt_hurt);
	kt_option(p.b, BEOWIRE_DEAD_MS, patience_ms);
	kt_option(p.a, BEOWIRE_DEAD_MS, 3000); /* else its port would linger */
	assert_int_equal(bind(p.b, (struct sockaddr *)&any, sizeof(any)), 0);
	p.at_b = kt_at(p.b);
	to = kt_relayed(&p.at_b);
	assert_int_equal(kt_connect(p.a, &to), 0);
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	assert_int_equal(recv(p.b, &byte, 1, 0), 1);
	return p;
}

static void end_pair(struct kt_relay *r, struct kt_pair *p)
{
	kt_relay_end(r);
	kt_close(p);
}

/* Its bytes are counted and charged, and given back when its sender, who still answers, lets it
 * stand still. */
static void test_a_message_that_stands_still(void **state)
{
	static const char bytes[16384];
	uint64_t before = kt_parameter("held_bytes"), expired, end;
	struct kt_relay r;
	struct kt_pair p = hurt_pair(&r, 1000);

	expired = kt_number("b", NODE, "arriving-expired");
	assert_int_equal(kt_arriving(p.b), 0);
	r.wanted = HURT_REST;
	end = kt_parameter("held_bytes");
	assert_int_equal(send(p.a, bytes, sizeof(bytes), 0), sizeof(bytes));
	kt_becomes(kt_arriving(p.b), sizeof(bytes), 5 * sizeof(bytes));
	assert_in_range(kt_parameter("held_bytes"), end + sizeof(bytes), end + 8 * MIB);
	kt_becomes(kt_arriving(p.b), 0, 0);
	assert_int_equal(kt_number("b", NODE, "arriving-expired"), expired + 1);
	assert_int_equal(kt_error(p.b), 0); /* it has not spoken to the sender */
	end_pair(&r, &p);
	kt_becomes(kt_held(), 0, before);
}

/* It is there as soon as its last part is, though that came late; and nothing is left then. */
static void test_a_message_that_goes_on(void **state)
{
	static char sent[16384], got[16384];
	struct kt_relay r;
	struct kt_pair p = hurt_pair(&r, 60000);

	kt_fill(sent, sizeof(sent), 7);
	r.wanted = HURT_REST;
	assert_int_equal(send(p.a, sent, sizeof(sent), 0), sizeof(sent));
	kt_becomes(kt_arriving(p.b), sizeof(sent), 5 * sizeof(sent));
	r.wanted = HURT_NOTHING;
	assert_int_equal(recv(p.b, got, sizeof(got), 0), sizeof(got));
	assert_memory_equal(got, sent, sizeof(got));
	assert_int_equal(kt_arriving(p.b), 0);
	end_pair(&r, &p);
}

#define PARTS 200

/* One byte of a short message takes the room of the message, not that of a frame. */
static void test_short_parts(void **state)
{
	struct kt_relay r;
	struct kt_pair p = hurt_pair(&r, 60000);

	r.wanted = HURT_LONGER;
	for (int i = 0; i < PARTS; i++)
		assert_int_equal(send(p.a, "x", 1, 0), 1);
	kt_becomes(kt_arriving(p.b), PARTS * 64, PARTS * 1200);
	usleep(100000); /* all are there, or lost */
	assert_in_range(kt_arriving(p.b), PARTS * 64, PARTS * 1200);
	end_pair(&r, &p);
}

/* Bytes that come in part, of a stranger or not, until there is no room for more. */
static uint64_t parts_until_refused(bool stranger)
{
	struct kt_relay r;
	struct kt_pair p = hurt_pair(&r, 60000);
	uint64_t refused = kt_number("b", NODE, "arriving-refused"), bytes;
	uint64_t until = kt_now_ns() + kt_patience_s() / 2 * 1000000000ull;

	if (!stranger) {
		assert_int_equal(send(p.a, "x", 1, 0), 1);
		kt_until(kt_events(p.b, POLLIN));
		kt_answer(&p);
	}
	r.wanted = HURT_LONGER;
	do {
		for (int i = 0; i < 20; i++)
			if (send(p.a, "x", 1, MSG_DONTWAIT) < 0)
				usleep(1000);
	} while (kt_number("b", NODE, "arriving-refused") == refused && kt_now_ns() < until);
	bytes = kt_arriving(p.b);
	if (kt_number("b", NODE, "arriving-refused") == refused)
		bytes = 0;
	end_pair(&r, &p);
	return bytes;
}

/* A port holds no more of them than memory_max, and what is beyond that is not acknowledged. Of
 * strangers it holds half. */
static void test_parts_of_a_port(void **state)
{
	kt_settings("memory_max", "1048576");
	assert_in_range(parts_until_refused(true), MIB / 4, MIB * 5 / 8);
	assert_in_range(parts_until_refused(false), MIB * 5 / 8 + 1, MIB * 5 / 4);
	kt_settings("memory_max", "67108864");
}

/* They are a part of what users may leave waiting: a half of that at most, of strangers a third. */
static void test_parts_of_all_ports(void **state)
{
	kt_set_parameter("overflow_max", MIB);
	assert_in_range(parts_until_refused(true), MIB / 4, MIB / 3 + 16384);
	assert_in_range(parts_until_refused(false), MIB / 3 + 16384 + 1, MIB / 2 + 16384);
	kt_set_parameter("overflow_max", 0);
}

/* ---- control groups ---- */

/* This process is in a control group of its own until it leaves. */
static void enter_group(void)
{
	/* It is there still if a test failed in it. */
	kt_shell("[ -d " GROUP " ] || { mkdir -p /tmp/groups && "
		 "mount -t cgroup2 none /tmp/groups && "
		 "echo +memory >/tmp/groups/cgroup.subtree_control && mkdir " GROUP "; } && "
		 "echo %d >" GROUP "/cgroup.procs",
		 getpid());
}

static void leave_group(void)
{
	kt_shell("for i in %d 0; do echo $i >/tmp/groups/cgroup.procs; done; rmdir " GROUP
		 " && umount /tmp/groups",
		 getpid());
}

static uint64_t group(const char *word)
{
	return kt_number(NULL, GROUP "/memory.stat", word);
}

#define PEERS 150 /* for whom an engine has to grow */

/* What peers send is charged to the group of whoever opened the socket, though it comes in softirq;
 * so is what its engine grows by, though a kernel thread does that. */
static void test_control_group(void **state)
{
	uint64_t sock, kernel, memory, bytes;
	struct sockaddr_beowire any = {.sbw_family = AF_BEOWIRE}, to;
	int from[PEERS], fd;

	for (int i = 0; i < PEERS; i++)
		from[i] = kt_bound("a", SOCK_RDM, 0);
	enter_group();
	fd = kt_open("b", SOCK_RDM);
	assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	to = kt_at(fd);
	to.sbw_ifindex = 0;
	sock = group("sock");
	kernel = group("kernel");
	for (int i = 1; i <= UNREAD; i++) {
		assert_int_equal(kt_send_to(from[i % PEERS], "x", 1, &to), 1);
		if (i % PEERS)
			continue; /* two of a peer might come in one frame */
		kt_becomes(kt_counters(fd).rx_messages, i, i);
		kt_becomes(kt_charged(fd), i * 600, i * 2000);
	}
	assert_true(group("sock") >= sock + UNREAD * 600);
	kt_port_of(fd, &memory, &bytes);
	assert_true(memory > 0);
	assert_true(group("kernel") >= kernel + memory);
	for (int i = 0; i < PEERS; i++)
		close(from[i]);
	close(fd);
	leave_group();
}

#define NOBODIES   2100		  /* more than fit into tables of 1024 slots: table.c */
#define GIVE_UP_MS 15000	  /* all are there before the first one is given up */
#define PEER_LEAST 1000		  /* bytes that one is charged for, beside its engine's */
#define TABLES	   (2 * 4096 * 8) /* bytes: by address, and by handle; none has an identity yet */
#define STAT_S	   3		  /* for memory.stat, which is up to 2 s old */
#define SPARE	   (32 << 10)	  /* bytes that may stay charged: account.h, and parts of pages */

/* Peers are charged as long as they are there; what tables of them grew by as long as the port is,
 * although it is next to nothing beside the peers. */
static void test_peers_and_their_tables(void **state)
{
	const struct sockaddr_beowire any = {.sbw_family = AF_BEOWIRE};
	uint64_t before;
	int fd;

	enter_group();
	fd = kt_open("a", SOCK_RDM);
	kt_option(fd, BEOWIRE_DEAD_MS, GIVE_UP_MS);
	assert_int_equal(bind(fd, (const struct sockaddr *)&any, sizeof(any)), 0);
	before = group("sock");
	for (int i = 0; i < NOBODIES; i++) {
		struct sockaddr_beowire to = kt_nobody(i);
		socklen_t len = sizeof(to);

		assert_int_equal(getsockopt(fd, SOL_BEOWIRE, BEOWIRE_PEER_NUMBER, &to, &len), 0);
	}
	assert_true(group("sock") >= before + (uint64_t)NOBODIES * PEER_LEAST);
	kt_becomes(kt_counters(fd).peers, 0, 0); /* they are given up */
	sleep(STAT_S);
	assert_in_range(group("sock") - before, TABLES, TABLES + SPARE);
	close(fd);
	kt_becomes(group("sock"), 0, before + SPARE);
	leave_group();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_counting_test(test_pages_of_all_sockets),
		kt_counting_test(test_pages_are_the_bound),
		kt_counting_test(test_unread_messages),
		kt_counting_test(test_unread_messages_of_many_sockets),
		kt_counting_test(test_root_of_a_container),
		kt_counting_test(test_root_in_user_namespaces),
		kt_counting_test(test_root_of_the_machine),
		kt_counting_test(test_sockets_cost),
		kt_counting_test(test_accepted_sockets_cost),
		kt_counting_test(test_a_message_that_stands_still),
		kt_counting_test(test_a_message_that_goes_on),
		kt_counting_test(test_short_parts),
		kt_counting_test(test_parts_of_a_port),
		kt_counting_test(test_parts_of_all_ports),
		kt_counting_test(test_control_group),
		kt_counting_test(test_peers_and_their_tables),
	};

	return cmocka_run_group_tests(tests, kt_open_to_all, NULL);
}
