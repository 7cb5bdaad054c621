/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames that refer to a program's own pages: whoever keeps such a frame never reads what the
 * program writes there after it got its memory back, be it on this machine or behind the wire.
 */
#include <linux/if_ether.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

#include "kframe.h"

#define MIB (1u << 20)
#define RUN 64 /* bytes of one kind that heads do not have */

static _Alignas(4096) uint8_t bytes[MIB];

/* Everything that comes by b's interface, kept until it is read. */
static int tap_of_b(void)
{
	const struct timeval patience = {.tv_usec = 500000};
	const int room = 64 << 20;
	int raw = kt_raw("b", "eth0", BW_ETHERTYPE);

	assert_int_equal(setsockopt(raw, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)), 0);
	setsockopt(raw, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return raw;
}

/* Frames with such bytes, until none comes any more. */
static void count_frames(int raw, int *public, int *secret)
{
	uint8_t ours[RUN], theirs[RUN];
	static struct kt_frame f;
	ssize_t n;

	memset(ours, 'o', RUN);
	memset(theirs, 's', RUN);
	*public = *secret = 0;
	while ((n = recv(raw, f.bytes, sizeof(f.bytes), 0)) >= 0) {
		*public += memmem(f.bytes, (size_t)n, ours, RUN) != NULL;
		*secret += memmem(f.bytes, (size_t)n, theirs, RUN) != NULL;
	}
}

static long receive_one(void *arg)
{
	static uint8_t got[MIB];

	return recv(*(int *)arg, got, MIB, 0);
}

/* It is sent, and as soon as it may be, its memory is used for something else. */
static void send_and_overwrite(int *public, int *secret)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	int raw = tap_of_b();
	struct kt_thread t;

	kt_option(p.a, BEOWIRE_COPY_MAX, 1000);
	memset(bytes, 'o', MIB);
	kt_start(&t, receive_one, &p.b);
	assert_int_equal(send(p.a, bytes, MIB, 0), MIB);
	memset(bytes, 's', MIB);
	assert_int_equal(kt_join(&t), MIB);
	assert_true(kt_counters(p.a).pinned >= MIB);
	count_frames(raw, public, secret);
	close(raw);
	kt_close(&p);
	assert_true(kt_pinned_becomes(0));
}

static void test_kept_on_the_same_machine(void **state)
{
	int public, secret;

	send_and_overwrite(&public, &secret);
	assert_in_range(public, MIB / 9000, 1000);
	assert_int_equal(secret, 0);
}

static void slow_wire(bool on)
{
	kt_shell("ip netns exec a sh -c 'echo %d >/proc/sys/net/beowire/qdisc_bypass'", !on);
	if (on)
		kt_shell("tc -n a qdisc add dev eth0 root netem delay 60ms 50ms duplicate 100%% "
			 "limit 10000");
	else
		kt_shell("tc -n a qdisc del dev eth0 root");
}

/* Each frame leaves twice, one long after the other, and mostly long after its acknowledgement. */
static void test_leaving_late(void **state)
{
	int public, secret;

	slow_wire(true);
	send_and_overwrite(&public, &secret);
	slow_wire(false);
	assert_in_range(public, MIB / 9000, 10000);
	assert_int_equal(secret, 0);
}

/* The program has answered a question about its memory: until it is read, and no longer. */
static void answer(int fd, const struct beowire_info *asked)
{
	struct beowire_region region = {.id = asked->cookie, .buf = (uintptr_t)bytes, .len = MIB};

	assert_int_equal(asked->event, BEOWIRE_REGION);
	assert_int_equal(ioctl(fd, BEOWIRE_IOC_REGION, &region), 0);
}

static void test_memory_that_is_read(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct beowire_region what = {.buf = (uintptr_t)bytes, .len = MIB};
	struct beowire_pull pull = {.flags = BEOWIRE_PULL_MEMORY, .len = MIB, .cookie = 1};
	static uint8_t got[MIB];
	struct beowire_info info;
	int raw, public, secret;
	char byte;

	kt_option(p.a, BEOWIRE_INFO_WANTED, 1);
	kt_option(p.b, BEOWIRE_INFO_WANTED, 1);
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	assert_int_equal(kt_recv_info(p.b, &byte, 1, &info, 0), 0);
	raw = tap_of_b();
	memset(bytes, 'o', MIB);
	slow_wire(true);
	pull.peer = info.peer;
	pull.buf = (uintptr_t)got;
	assert_int_equal(ioctl(p.b, BEOWIRE_IOC_PULL, &pull), 0);
	assert_int_equal(kt_recv_info(p.a, &byte, 1, &info, 0), 0);
	answer(p.a, &info);
	assert_int_equal(kt_recv_info(p.b, &byte, 1, &info, 0), 0);
	assert_int_equal(info.event, BEOWIRE_PULLED);
	assert_int_equal(info.status, 0);
	while (ioctl(p.a, BEOWIRE_IOC_SERVING, &what) == 1)
		usleep(1000);
	memset(bytes, 's', MIB);
	count_frames(raw, &public, &secret);
	slow_wire(false);
	assert_in_range(public, MIB / 9000, 10000);
	assert_int_equal(secret, 0);
	close(raw);
	kt_close(&p);
	assert_true(kt_pinned_becomes(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_kept_on_the_same_machine),
		kt_test(test_leaving_late),
		kt_test(test_memory_that_is_read),
	};

	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
