/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What goes wrong around a socket: peers that are not there, stop or are killed, frames that are
 * lost or overtake one another, interfaces and namespaces that go away. Nothing hangs, nothing is
 * left pinned, what arrives is right.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ktest.h"

#define MIB	  (1u << 20)
#define MIB_PAGES 256
#define OF_TWO	  12000 /* bytes; a message of two frames */

static _Alignas(4096) uint8_t bytes[4 * MIB];

static int error_of(int fd, int ms)
{
	struct pollfd poller = {.fd = fd};
	int error = 0;
	socklen_t len = sizeof(error);

	poll(&poller, 1, ms);
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
	return error;
}

/* ---- sockets that are closed at once ---- */

/* Each of its sockets is closed as soon as it has got something, on another processor than the one
 * that its frame comes in by: the frame must be let go before the socket it is charged to. */
static long take_one_and_close(void *arg)
{
	static uint8_t got[OF_TWO];
	int *row = arg, i;

	for (i = 0; row[i] >= 0; i++) {
		if (recv(row[i], got, sizeof(got), 0) <= 0)
			break;
		close(row[i]);
	}
	return i;
}

static void close_at_once(size_t len)
{
	enum { ROW = 50 };
	struct sockaddr_beowire at[ROW];
	int row[ROW + 1], from = kt_bound("a", SOCK_RDM, 0);
	struct kt_thread t;

	for (int i = 0; i < ROW; i++) {
		row[i] = kt_bound("b", SOCK_RDM, 0);
		kt_option(row[i], BEOWIRE_BUSY_US, 1000000);
		at[i] = kt_at(row[i]);
	}
	row[ROW] = -1;
	kt_start(&t, take_one_and_close, row);
	for (int i = 0; i < ROW; i++)
		assert_int_equal(kt_send_to(from, bytes, len, &at[i]), len);
	assert_int_equal(kt_join(&t), ROW);
	close(from);
}

static void test_closed_at_once(void **state)
{
	close_at_once(1);
	close_at_once(OF_TWO);
}

/* ---- peers that are not there ---- */

static void test_nobody_has_the_port(void **state)
{
	struct kt_pair p = kt_pair(SOCK_RDM);
	char byte;

	p.at_b.sbw_port = 9;
	p.at_b.sbw_inc = 0;
	assert_int_equal(kt_send_to(p.a, "x", 1, &p.at_b), 1);
	kt_refused(recv(p.a, &byte, 1, 0), ECONNREFUSED);
	kt_refused(kt_send_to(p.a, bytes, MIB, &p.at_b), ECONNREFUSED); /* waits, and is told */
	kt_close(&p);
	kt_becomes(kt_pinned(), 0, 0);
}

static void test_nobody_has_the_address(void **state)
{
	const struct sockaddr_beowire to = {
		.sbw_family = AF_BEOWIRE, .sbw_port = 9, .sbw_mac = {2, 0, 0, 0, 0, 9}};
	int fd = kt_open("a", SOCK_RDM);

	kt_option(fd, BEOWIRE_DEAD_MS, 1000);
	assert_int_equal(kt_send_to(fd, "x", 1, &to), 1);
	assert_int_equal(error_of(fd, KT_SOON_MS), ETIMEDOUT);
	kt_refused(kt_send_to(fd, bytes, MIB, &to), ETIMEDOUT);
	close(fd);
	kt_becomes(kt_pinned(), 0, 0);
}

static void test_another_incarnation(void **state)
{
	struct kt_pair p = kt_pair(SOCK_RDM);

	p.at_b.sbw_inc++;
	assert_int_equal(kt_send_to(p.a, "x", 1, &p.at_b), 1);
	assert_int_equal(error_of(p.a, KT_SOON_MS), ECONNREFUSED);
	kt_close(&p);
}

/* ---- peers that end ---- */

/* A process of b's that has p->b and does nothing with it. */
static pid_t holder(struct kt_pair *p)
{
	pid_t pid = fork();

	if (pid == 0) {
		close(p->a);
		pause();
		_exit(0);
	}
	close(p->b);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static long send_mib(void *arg)
{
	return send(*(int *)arg, bytes, MIB, 0) < 0 ? -errno : 0;
}

static void test_receiver_is_killed(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	pid_t pid = holder(&p);
	struct kt_thread t;

	kt_start(&t, send_mib, &p.a);
	kt_becomes(kt_pinned(), MIB_PAGES, MIB_PAGES);
	end(pid);
	assert_true(kt_join(&t) < 0);
	close(p.a);
	kt_becomes(kt_pinned(), 0, 0);
}

static void test_sender_is_killed(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	pid_t pid = fork();
	char byte = 0;

	if (pid == 0)
		_exit((int)send_mib(&p.a));
	close(p.a);
	kt_becomes(kt_pinned(), MIB_PAGES, MIB_PAGES);
	end(pid);
	kt_becomes(kt_pinned(), 0, 0);
	assert_true(recv(p.b, bytes, MIB, 0) < 0); /* its bytes are gone */
	kt_refused(recv(p.b, &byte, 1, MSG_DONTWAIT), EAGAIN);
	close(p.b);
}

/* The memory of a program that has ended is nobody's, whether it waited for its sends or not. */
static void test_asynchronous_sender_is_killed(void **state)
{
	const struct beowire_info info = {.flags = BEOWIRE_SEND_ASYNC, .cookie = 1};
	struct kt_pair p = kt_couple(SOCK_RDM);
	pid_t pid = fork();

	if (pid == 0) {
		kt_send_info(p.a, bytes, MIB, NULL, &info, 0);
		pause();
	}
	close(p.a);
	kt_becomes(kt_pinned(), MIB_PAGES, MIB_PAGES);
	end(pid);
	kt_becomes(kt_pinned(), 0, 0);
	close(p.b);
}

static void test_puller_is_killed(void **state)
{
	const struct beowire_info info = {.flags = BEOWIRE_SEND_ASYNC};
	struct kt_pair p = kt_pair(SOCK_RDM);
	struct beowire_info got;
	pid_t pid;

	kt_option(p.b, BEOWIRE_INFO_WANTED, 1);
	assert_int_equal(kt_send_info(p.a, bytes, MIB, &p.at_b, &info, 0), 0);
	assert_int_equal(kt_recv_info(p.b, bytes, 1, &got, 0), 0);
	kt_shell("ip -n a link set eth0 down"); /* the pull cannot end */
	pid = fork();
	if (pid == 0) {
		struct beowire_pull pull = {
			.key = got.key, .peer = got.peer, .len = MIB, .buf = (uintptr_t)bytes};

		close(p.a);
		ioctl(p.b, BEOWIRE_IOC_PULL, &pull);
		pause();
	}
	close(p.b);
	close(p.a);
	kt_becomes(kt_pinned(), MIB_PAGES, MIB_PAGES);
	end(pid);
	kt_becomes(kt_pinned(), 0, 0);
	kt_shell("ip -n a link set eth0 up");
}

/* A file's pages are sealed against writing only while nobody else refers to them. */
static bool sealed(int file, int tries)
{
	bool done = false;

	while (!done && tries--) {
		done = fcntl(file, F_ADD_SEALS, F_SEAL_WRITE) == 0;
		if (!done)
			assert_int_equal(errno, EBUSY);
	}
	return done;
}

/* A sender's MiB in pages of a file. */
struct paged {
	int fd;	  /* that it is sent by */
	int file; /* whose pages they are */
	void *at; /* where the sender has them */
};

static struct paged paged(int fd)
{
	struct paged m = {fd, memfd_create("pages", MFD_ALLOW_SEALING), NULL};

	assert_int_equal(ftruncate(m.file, MIB), 0);
	m.at = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, m.file, 0);
	assert_true(m.at != MAP_FAILED);
	kt_fill(m.at, MIB, 9);
	return m;
}

/* It arrives at `to`; from then on nobody refers to its pages. */
static void expect_let_go(struct paged *m, int to)
{
	munmap(m->at, MIB);
	assert_false(sealed(m->file, 1));
	assert_int_equal(recv(to, bytes, MIB, 0), MIB);
	assert_true(kt_filled(bytes, MIB, 9));
	assert_true(sealed(m->file, 50)); /* each waits for a fraction of a second */
	close(m->file);
}

static void test_pinned_pages_are_let_go(void **state)
{
	const struct beowire_info info = {.flags = BEOWIRE_SEND_ASYNC | BEOWIRE_SEND_LONG};
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct paged m = paged(p.a);

	assert_int_equal(kt_send_info(m.fd, m.at, MIB, NULL, &info, 0), 0);
	expect_let_go(&m, p.b);
	kt_close(&p);
}

static long send_paged(void *arg)
{
	const struct paged *m = arg;

	return send(m->fd, m->at, MIB, 0);
}

/* Of a call that waits the pages are not pinned, but only referred to. */
static void test_pages_of_a_call_are_let_go(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct paged m = paged(p.a);
	struct kt_thread t;

	kt_start(&t, send_paged, &m);
	kt_becomes(kt_pinned(), MIB_PAGES, MIB_PAGES);
	expect_let_go(&m, p.b);
	assert_int_equal(kt_join(&t), MIB);
	kt_close(&p);
}

static void test_stopped_receiver(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		uint32_t number = 0;

		for (uint32_t i = 0; i < 500; i++)
			if (recv(p.b, &number, 4, 0) != 4 || number != i)
				_exit(1);
		_exit(0);
	}
	kill(pid, SIGSTOP);
	for (uint32_t i = 0; i < 500; i++) /* the kernel takes them meanwhile */
		assert_int_equal(send(p.a, &i, 4, 0), 4);
	kill(pid, SIGCONT);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	kt_close(&p);
}

/* ---- frames that are lost or late ---- */

struct row {
	int fd;
	uint32_t count;
};

static uint32_t length(uint32_t i)
{
	return i * 2654435761u % (i % 50 ? 3000 : 200000);
}

static long receive_row(void *arg)
{
	const struct row *r = arg;
	static uint8_t got[200000];

	for (uint32_t i = 0; i < r->count; i++)
		if (recv(r->fd, got, sizeof(got), 0) != length(i) || !kt_filled(got, length(i), i))
			return i;
	return r->count;
}

static void over_bad_wire(const char *netem, uint32_t count)
{
	const char *const nodes[] = {"a", "b"};
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct row row = {p.b, count};
	struct kt_thread t;

	for (int i = 0; i < 2; i++) {
		kt_shell("ip netns exec %s sh -c 'echo 0 >/proc/sys/net/beowire/qdisc_bypass'",
			 nodes[i]);
		kt_shell("tc -n %s qdisc add dev eth0 root netem %s", nodes[i], netem);
	}
	kt_start(&t, receive_row, &row);
	for (uint32_t i = 0; i < count; i++) {
		kt_fill(bytes, length(i), i);
		assert_int_equal(send(p.a, bytes, length(i), 0), length(i));
	}
	assert_int_equal(kt_join(&t), count);
	for (int i = 0; i < 2; i++) {
		kt_shell("tc -n %s qdisc del dev eth0 root", nodes[i]);
		kt_shell("ip netns exec %s sh -c 'echo 1 >/proc/sys/net/beowire/qdisc_bypass'",
			 nodes[i]);
	}
	assert_true(kt_counters(p.a).retransmits > 0);
	kt_close(&p);
}

static void pass_queueing_discipline(bool pass)
{
	kt_shell("ip netns exec a sh -c 'echo %d >/proc/sys/net/beowire/qdisc_bypass'", pass);
}

static uint64_t dropped_at_a(void)
{
	return kt_number("a", "/proc/net/beowire/node", "dropped");
}

/* What the discipline of our own interface drops is counted, and sent again. */
static void test_full_queueing_discipline(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct row row = {p.b, 60};
	uint64_t before = dropped_at_a();
	struct kt_thread t;

	pass_queueing_discipline(false);
	kt_shell("tc -n a qdisc add dev eth0 root netem delay 5ms limit 3");
	kt_start(&t, receive_row, &row);
	for (uint32_t i = 0; i < row.count; i++) {
		kt_fill(bytes, length(i), i);
		assert_int_equal(send(p.a, bytes, length(i), 0), length(i));
	}
	assert_int_equal(kt_join(&t), row.count);
	kt_shell("tc -n a qdisc del dev eth0 root");
	pass_queueing_discipline(true);
	assert_true(dropped_at_a() > before);
	kt_close(&p);
}

/* A queueing discipline with classes takes a frame's priority for the number of its class. */
static void test_priority(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	const int class = 0x10010; /* 1:10 */
	char byte;

	pass_queueing_discipline(false);
	kt_shell("tc -n a qdisc add dev eth0 root handle 1: htb default 20");
	kt_shell("tc -n a class add dev eth0 classid 1:10 htb rate 1gbit");
	kt_shell("tc -n a class add dev eth0 classid 1:20 htb rate 1gbit");
	assert_int_equal(setsockopt(p.a, SOL_SOCKET, SO_PRIORITY, &class, sizeof(class)), 0);
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	assert_int_equal(recv(p.b, &byte, 1, 0), 1);
	kt_shell("tc -n a -s class show dev eth0 | grep -A 1 'class htb 1:10 ' | "
		 "grep -q 'Sent [1-9]'");
	kt_shell("tc -n a qdisc del dev eth0 root");
	pass_queueing_discipline(true);
	kt_close(&p);
}

/* A filter hands every frame that leaves to the node's own receivers, so that a port hears itself:
 * in the midst of its sending nothing may wait for it. */
static void test_frames_that_come_back(void **state)
{
	struct kt_pair p = kt_pair(SOCK_RDM);
	struct sockaddr_beowire to = p.at_b;
	uint64_t before = kt_counters(p.a).rx_frames;
	char byte;

	to.sbw_port = p.at_a.sbw_port;
	to.sbw_inc = 0;
	pass_queueing_discipline(false);
	kt_shell("tc -n a qdisc add dev eth0 clsact");
	kt_shell("tc -n a filter add dev eth0 egress matchall action mirred ingress redirect "
		 "dev eth0");
	assert_int_equal(kt_send_to(p.a, "x", 1, &to), 1);
	kt_becomes(kt_counters(p.a).rx_frames, before + 1, UINT64_MAX);
	kt_shell("tc -n a qdisc del dev eth0 clsact");
	pass_queueing_discipline(true);
	kt_close(&p);
	p = kt_couple(SOCK_RDM);
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	assert_int_equal(recv(p.b, &byte, 1, 0), 1);
	kt_close(&p);
}

static void test_loss(void **state)
{
	over_bad_wire("loss 2%", 400);
}

static void test_reordering_and_doubles(void **state)
{
	over_bad_wire("delay 1ms reorder 70% duplicate 5% loss 0.5%", 150);
}

static void test_damage(void **state)
{
	over_bad_wire("corrupt 5%", 200);
}

/* ---- what sockets stand on goes away ---- */

/* Two more nodes of this name and name2, and what they say to one another. */
static struct kt_pair own_nodes(const char *name)
{
	const char *const nodes[] = {"c", "d"};
	struct kt_pair p;

	kt_enter("a");
	for (int i = 0; i < 2; i++)
		kt_shell("ip netns add %s", nodes[i]);
	kt_shell("ip link add %s netns c type veth peer name %s netns d", name, name);
	for (int i = 0; i < 2; i++) {
		struct beowire_iface iface = {0};
		int fd;

		kt_shell("ip -n %s link set %s up", nodes[i], name);
		fd = kt_open(nodes[i], SOCK_RDM);
		strcpy(iface.name, name);
		assert_int_equal(ioctl(fd, BEOWIRE_IOC_ATTACH, &iface), 0);
		close(fd);
	}
	p = (struct kt_pair){.a = kt_bound("c", SOCK_RDM, 0), .b = kt_bound("d", SOCK_RDM, 0)};
	p.at_b = kt_at(p.b);
	assert_int_equal(connect(p.a, (struct sockaddr *)&p.at_b, sizeof(p.at_b)), 0);
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	assert_int_equal(recv(p.b, bytes, 1, 0), 1);
	kt_enter("a");
	return p;
}

static void no_more_nodes(void)
{
	kt_enter("a");
	kt_shell("ip netns del c; ip netns del d");
}

static void test_interface_is_deleted(void **state)
{
	struct kt_pair p = own_nodes("eth7");
	const int room = 2 * MIB;

	setsockopt(p.a, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	send(p.a, bytes, MIB, MSG_DONTWAIT);
	kt_shell("ip -n c link del eth7"); /* does not wait for us */
	kt_refused(kt_send_to(kt_open("c", SOCK_RDM), "x", 1, &p.at_b), EADDRNOTAVAIL);
	kt_close(&p);
	no_more_nodes();
}

static void test_interface_leaves_its_namespace(void **state)
{
	struct kt_pair p = own_nodes("eth7");

	kt_shell("ip -n c link set eth7 netns d name eth8");
	assert_int_equal(send(p.a, "x", 1, MSG_DONTWAIT), 1);
	kt_refused(kt_send_to(kt_open("c", SOCK_RDM), "x", 1, &p.at_b), EADDRNOTAVAIL);
	kt_close(&p);
	no_more_nodes();
}

static void test_namespace_is_deleted(void **state)
{
	struct kt_pair p = own_nodes("eth7");
	const int room = 2 * MIB;

	assert_int_equal(setsockopt(p.a, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)), 0);
	kt_shell("ip netns del c");
	assert_int_equal(send(p.a, "y", 1, 0), 1); /* sockets keep it */
	assert_int_equal(recv(p.b, bytes, 1, 0), 1);
	assert_int_equal(send(p.a, bytes, MIB, MSG_DONTWAIT), MIB);
	close(p.a); /* it goes while bytes are under way */
	kt_shell("ip netns del d");
	close(p.b);
}

static void test_smaller_mtu(void **state)
{
	struct kt_pair p = own_nodes("eth7");
	struct row row = {p.b, 200};
	struct kt_thread t;

	kt_start(&t, receive_row, &row);
	for (uint32_t i = 0; i < row.count; i++) {
		if (i == 50)
			kt_shell("ip -n c link set eth7 mtu 900");
		kt_fill(bytes, length(i), i);
		assert_int_equal(send(p.a, bytes, length(i), 0), length(i));
	}
	assert_int_equal(kt_join(&t), row.count);
	kt_close(&p);
	no_more_nodes();
}

/* Interfaces come and go while they are attached: none is held for ever. */
static long attach_again_and_again(void *arg)
{
	struct beowire_iface iface = {.name = "eth9"};
	int fd = *(int *)arg;
	long count = 0;

	while (recv(fd, NULL, 0, MSG_DONTWAIT) < 0 && errno == EAGAIN) /* until it is told */
		count += ioctl(fd, BEOWIRE_IOC_ATTACH, &iface) == 0;
	return count;
}

/* Of another type its frames have other headers. */
static void test_interface_changes_its_type(void **state)
{
	struct ifreq request = {.ifr_name = "t0", .ifr_flags = IFF_TAP};
	struct beowire_iface interface = {.name = "t0"};
	int fd = kt_open("a", SOCK_RDM), tap;

	kt_shell("modprobe tun");
	tap = open("/dev/net/tun", O_RDWR);
	assert_true(tap >= 0);
	assert_int_equal(ioctl(tap, TUNSETIFF, &request), 0);
	assert_int_equal(ioctl(fd, BEOWIRE_IOC_ATTACH, &interface), 0);
	kt_refused(ioctl(fd, BEOWIRE_IOC_ATTACH, &interface), EEXIST);
	assert_int_equal(ioctl(tap, TUNSETLINK, ARPHRD_LOOPBACK), 0);
	kt_refused(ioctl(fd, BEOWIRE_IOC_DETACH, &interface), ENODEV);
	kt_refused(ioctl(fd, BEOWIRE_IOC_ATTACH, &interface), EINVAL);
	close(tap);
	close(fd);
}

static void test_attaching_what_goes(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct kt_thread t;

	kt_enter("a");
	kt_start(&t, attach_again_and_again, &p.a);
	kt_shell("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do "
		 "echo link add eth9 type veth peer name eth9b; echo link del eth9; "
		 "done | ip -n a -batch -");
	assert_int_equal(send(p.b, "", 0, 0), 0);
	assert_true(kt_join(&t) > 0);
	kt_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_closed_at_once),
		kt_test(test_nobody_has_the_port),
		kt_test(test_nobody_has_the_address),
		kt_test(test_another_incarnation),
		kt_test(test_receiver_is_killed),
		kt_test(test_sender_is_killed),
		kt_test(test_asynchronous_sender_is_killed),
		kt_test(test_puller_is_killed),
		kt_test(test_pinned_pages_are_let_go),
		kt_test(test_pages_of_a_call_are_let_go),
		kt_test(test_stopped_receiver),
		kt_test(test_loss),
		kt_test(test_full_queueing_discipline),
		kt_test(test_priority),
		kt_test(test_frames_that_come_back),
		kt_test(test_reordering_and_doubles),
		kt_test(test_damage),
		kt_test(test_interface_is_deleted),
		kt_test(test_interface_leaves_its_namespace),
		kt_test(test_namespace_is_deleted),
		kt_test(test_smaller_mtu),
		kt_test(test_interface_changes_its_type),
		kt_test(test_attaching_what_goes),
	};

	memset(bytes, 1, sizeof(bytes)); /* pages of their own: the page of zeroes is not pinned */
	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
