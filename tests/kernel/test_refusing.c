/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An interface whose driver refuses frames, and has written to them before (drivers/kt_refusing.c):
 * they leave later as they are, in their order, are shown once, and none is left behind.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kframe.h"

#define MTU	1500
#define TIMES	60
#define SHORT	100
#define EAGER	12000 /* bytes; a message of several frames */
#define LONG	300000
#define FULL	1400 /* bytes; a message that fills a frame */
#define MANY	240
#define WAITING (256 << 10) /* bytes of memory that frames of one port may take: out.h */

static uint8_t bytes[LONG], got[LONG];
static char driver[512]; /* the module's file */

/* ---- the driver ---- */

static FILE *parameter(const char *name, const char *how)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/module/kt_refusing/parameters/%s", name);
	f = fopen(path, how);
	assert_non_null(f);
	return f;
}

static void set(const char *name, unsigned value)
{
	FILE *f = parameter(name, "w");

	fprintf(f, "%u", value);
	assert_int_equal(fclose(f), 0);
}

static unsigned count_of(const char *name)
{
	FILE *f = parameter(name, "r");
	unsigned value = 0;

	assert_int_equal(fscanf(f, "%u", &value), 1);
	fclose(f);
	return value;
}

static bool is_held(void)
{
	FILE *f = parameter("held", "r");
	int letter = fgetc(f);

	fclose(f);
	return letter == 'Y';
}

static void use(const char *node, const char *name)
{
	struct beowire_iface iface = {0}, before = {.name = "eth0"};
	int fd = kt_open(node, SOCK_RDM);

	strcpy(iface.name, name);
	ioctl(fd, BEOWIRE_IOC_DETACH, &before);
	assert_int_equal(ioctl(fd, BEOWIRE_IOC_ATTACH, &iface), 0);
	close(fd);
}

static int begin(void **state)
{
	kt_enter("a");
	/* Nobody but the module sends by rf0: who waits for its queue while a frame is held does so
	 * in softirq, and may have the processor of who looks whether one is. */
	kt_shell("insmod %s && echo 1 >/proc/sys/net/ipv6/conf/rf0/disable_ipv6 && "
		 "ip link set rf1 netns b",
		 driver);
	kt_shell("ip -n a link set rf0 mtu %d up && ip -n b link set rf1 mtu %d up", MTU, MTU);
	use("a", "rf0");
	use("b", "rf1");
	return 0;
}

static int end(void **state)
{
	set("hold", 0); /* a test that failed may have left it */
	kt_shell("rmmod kt_refusing");
	return kt_attach(NULL) || kt_end(state);
}

/* ---- what travels ---- */

static void send_short(const struct kt_pair *p, uint32_t seed)
{
	kt_fill(bytes, SHORT, seed);
	assert_int_equal(send(p->a, bytes, SHORT, 0), SHORT);
}

static void receive_short(const struct kt_pair *p, uint32_t seed)
{
	assert_int_equal(kt_events(p->b, POLLIN), POLLIN);
	assert_int_equal(recv(p->b, got, sizeof(got), MSG_DONTWAIT), SHORT);
	assert_true(kt_filled(got, SHORT, seed));
}

/* Datagrams, none of which is sent twice: each is refused up to three times, arrives, and in its
 * turn. */
static void test_datagrams(void **state)
{
	struct kt_pair p = kt_couple(SOCK_DGRAM);

	for (unsigned one_of = 1; one_of <= 4; one_of++) {
		unsigned refused = count_of("refused");

		set("one_of", one_of);
		for (uint32_t i = 0; i < TIMES; i++) {
			send_short(&p, i);
			receive_short(&p, i);
		}
		assert_int_equal(count_of("refused") - refused, TIMES * (one_of - 1));
		for (uint32_t i = 0; i < TIMES; i++)
			send_short(&p, i);
		for (uint32_t i = 0; i < TIMES; i++)
			receive_short(&p, i);
		assert_int_equal(count_of("refused") - refused, 2 * TIMES * (one_of - 1));
	}
	kt_close(&p);
}

static long receive_all(void *arg)
{
	const int *fd = arg;

	for (uint32_t i = 0; i < TIMES; i++) {
		const ssize_t len = i % 2 ? LONG : EAGER;

		if (recv(*fd, got, LONG, 0) != len || !kt_filled(got, (size_t)len, i))
			return i;
	}
	return TIMES;
}

/* Messages that travel as rows, copied and out of the program's pages. */
static void send_messages(struct kt_pair *p)
{
	struct kt_thread t;

	kt_start(&t, receive_all, &p->b);
	for (uint32_t i = 0; i < TIMES; i++) {
		const ssize_t len = i % 2 ? LONG : EAGER;

		kt_fill(bytes, (size_t)len, i);
		assert_int_equal(send(p->a, bytes, (size_t)len, 0), len);
	}
	assert_int_equal(kt_join(&t), TIMES);
}

static void test_messages(void **state)
{
	for (unsigned one_of = 2; one_of <= 4; one_of++) {
		struct kt_pair p = kt_couple(SOCK_RDM);

		kt_option(p.a, BEOWIRE_COPY_MAX, one_of % 2 ? LONG : 1000);
		set("one_of", one_of);
		send_messages(&p);
		kt_close(&p);
	}
}

/* Frames of a's that were shown to a tap, of which so many are known. */
static unsigned shown(int raw, unsigned *known)
{
	struct sockaddr_ll from;
	socklen_t len = sizeof(from);

	while (recvfrom(raw, got, sizeof(got), MSG_DONTWAIT, (struct sockaddr *)&from, &len) >= 0)
		*known += from.sll_pkttype == PACKET_OUTGOING &&
			  from.sll_protocol == htons(BW_ETHERTYPE);
	return *known;
}

/* As often as a frame leaves, and not as often as it is tried. */
static void test_shown_once(void **state)
{
	const int room = 64 << 20;
	struct kt_pair p = kt_couple(SOCK_RDM);
	unsigned frames = 0;
	int raw;

	set("one_of", 3);
	raw = kt_raw("a", "rf0", ETH_P_ALL);
	assert_int_equal(setsockopt(raw, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)), 0);
	send_messages(&p);
	kt_until(shown(raw, &frames) == count_of("taken")); /* more than that would stay more */
	assert_true(frames >= TIMES / 2 * (EAGER + LONG) / MTU);
	close(raw);
	kt_close(&p);
}

/* ---- what others add while a sender is at it ---- */

static void move_to(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)processor, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static long send_one(void *arg)
{
	move_to(0);
	return send(*(const int *)arg, "first", 5, 0);
}

/* A sender stands in the driver, and another one adds two frames to the port's list meanwhile: all
 * three arrive, in their order, and nothing else is sent that would take them along. Then the
 * driver refuses the first one so many times. */
static void add_meanwhile(unsigned refuse)
{
	struct kt_pair p = kt_couple(SOCK_DGRAM);
	struct kt_thread t;

	send_short(&p, 1);
	receive_short(&p, 1);
	move_to(1);
	set("hold", 1);
	kt_start(&t, send_one, &p.a);
	kt_until(is_held());
	send_short(&p, 2);
	send_short(&p, 3);
	assert_true(is_held());
	set("refuse", refuse);
	set("hold", 0);
	assert_int_equal(kt_join(&t), 5);
	assert_int_equal(kt_events(p.b, POLLIN), POLLIN);
	assert_int_equal(recv(p.b, got, sizeof(got), MSG_DONTWAIT), 5);
	receive_short(&p, 2);
	receive_short(&p, 3);
	assert_int_equal(count_of("refused"), refuse);
	kt_close(&p);
}

static void test_nothing_is_left_behind(void **state)
{
	add_meanwhile(0);
}

static void test_what_was_refused_goes_first(void **state)
{
	add_meanwhile(2); /* as one frame, and as a row of one */
}

/* Messages that fill a frame each: how many were taken. */
static uint32_t send_many(int fd)
{
	uint32_t n = 0;

	do
		kt_fill(bytes, FULL, n);
	while (n < MANY && send(fd, bytes, FULL, MSG_DONTWAIT) == FULL && ++n);
	return n;
}

/* While a sender stands in the driver only so many frames are made for the port's list as fill its
 * bound of memory: the engine keeps what is beyond that, and all of it leaves later. Nothing is
 * judged meanwhile: whoever tells of a failure may need the processor that the driver has. */
static void test_what_waits_is_bounded(void **state)
{
	const int room = 4 << 20;
	struct kt_pair p = kt_couple(SOCK_DGRAM);
	struct kt_thread t;
	uint64_t before, frames;
	uint32_t taken;
	bool held;

	assert_int_equal(setsockopt(p.a, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)), 0);
	assert_int_equal(setsockopt(p.b, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)), 0);
	send_short(&p, 1);
	receive_short(&p, 1);
	move_to(1);
	set("hold", 1);
	kt_start(&t, send_one, &p.a);
	kt_until(is_held());
	before = kt_counters(p.a).tx_frames;
	taken = send_many(p.a);
	frames = kt_counters(p.a).tx_frames - before;
	held = is_held();
	set("hold", 0);
	assert_int_equal(kt_join(&t), 5);
	assert_true(held);
	assert_int_equal(taken, MANY);
	assert_in_range(frames, WAITING / 4096, WAITING / FULL);
	assert_int_equal(kt_events(p.b, POLLIN), POLLIN);
	assert_int_equal(recv(p.b, got, sizeof(got), MSG_DONTWAIT), 5);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(kt_events(p.b, POLLIN), POLLIN);
		assert_int_equal(recv(p.b, got, sizeof(got), MSG_DONTWAIT), FULL);
		assert_true(kt_filled(got, FULL, i));
	}
	kt_close(&p);
}

/* ---- what the driver may give ---- */

static bool has_unreadable_frames(void)
{
	struct utsname self;
	int major, minor;

	assert_int_equal(uname(&self), 0);
	assert_int_equal(sscanf(self.release, "%d.%d", &major, &minor), 2);
	return major > 6 || (major == 6 && minor >= 12);
}

/* Frames whose bytes the processor cannot read are lost, and counted; they come again. */
static void test_unreadable_frames(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	uint64_t before = kt_number("b", "/proc/thread-self/net/beowire/node", "uncopied");

	send_short(&p, 1);
	receive_short(&p, 1);
	set("unreadable", has_unreadable_frames());
	kt_fill(bytes, EAGER, 2);
	assert_int_equal(send(p.a, bytes, EAGER, 0), EAGER);
	if (has_unreadable_frames()) {
		kt_becomes(kt_number("b", "/proc/thread-self/net/beowire/node", "uncopied"),
			   before + EAGER / MTU, UINT64_MAX);
		kt_refused(recv(p.b, got, sizeof(got), MSG_DONTWAIT), EAGAIN);
	}
	set("unreadable", 0);
	assert_int_equal(recv(p.b, got, sizeof(got), 0), EAGER);
	assert_true(kt_filled(got, EAGER, 2));
	kt_close(&p);
}

#undef kt_test
#define kt_test(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(int count, char **words)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_nothing_is_left_behind),
		kt_test(test_what_was_refused_goes_first),
		kt_test(test_what_waits_is_bounded),
		kt_test(test_datagrams),
		kt_test(test_messages),
		kt_test(test_shown_once),
		kt_test(test_unreadable_frames),
	};

	kt_driver(driver, sizeof(driver), words[0], "kt_refusing");
	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
