/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames that refer to a program's own pages: whoever keeps such a frame never reads what the
 * program writes there after it got its memory back, be it on this machine or behind the wire.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "kframe.h"

#define MIB	   (1u << 20)
#define RUN	   64 /* bytes of one kind that heads do not have */
#define LATE_MS	   300
#define MANY_READS 128 /* of one peer, at most */

static _Alignas(4096) uint8_t bytes[MIB];

/* Everything that comes by this interface of b's, kept until it is read. */
static int tap_of_b(const char *interface)
{
	const struct timeval patience = {.tv_usec = 2 * LATE_MS * 1000};
	const int room = 64 << 20;
	int raw = kt_raw("b", interface, BW_ETHERTYPE);

	assert_int_equal(setsockopt(raw, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)), 0);
	setsockopt(raw, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return raw;
}

/* Frames, and super-frames, with such bytes, until none comes any more. */
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

struct receiver {
	int fd;
	pthread_t sender;
	bool interrupts; /* the sender, when all has been received */
};

static long receive_one(void *arg)
{
	static uint8_t got[MIB];
	const struct receiver *r = arg;
	long n = recv(r->fd, got, MIB, 0);

	if (r->interrupts) {
		usleep(LATE_MS * 1000 / 4); /* so that the sender's engine knows */
		pthread_kill(r->sender, SIGUSR1);
	}
	return n;
}

/* It is sent, and as soon as it may be, its memory is used for something else. */
static void send_and_overwrite(const char *tap, bool interrupted, int *public, int *secret)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct receiver r = {p.b, pthread_self(), interrupted};
	int raw = tap_of_b(tap);
	struct kt_thread t;

	kt_option(p.a, BEOWIRE_COPY_MAX, 1000);
	kt_count_signal(SIGUSR1, 0);
	memset(bytes, 'o', MIB);
	kt_start(&t, receive_one, &r);
	assert_int_equal(send(p.a, bytes, MIB, 0), MIB);
	memset(bytes, 's', MIB);
	assert_int_equal(kt_join(&t), MIB);
	assert_int_equal(kt_signals, interrupted);
	assert_true(kt_counters(p.a).pinned >= MIB);
	count_frames(raw, public, secret);
	close(raw);
	kt_close(&p);
	kt_becomes(kt_pinned(), 0, 0);
}

static void test_kept_on_the_same_machine(void **state)
{
	int public, secret;

	send_and_overwrite("eth0", false, &public, &secret);
	assert_in_range(public, MIB / 65536, 1000);
	assert_int_equal(secret, 0);
}

static void use_qdisc_of_a(bool on)
{
	kt_shell("ip netns exec a sh -c 'echo %d >/proc/sys/net/beowire/qdisc_bypass'", !on);
}

static void slow_wire(bool on)
{
	use_qdisc_of_a(on);
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
	send_and_overwrite("eth0", false, &public, &secret);
	slow_wire(false);
	assert_in_range(public, MIB / 65536, 10000);
	assert_int_equal(secret, 0);
}

/* Each frame leaves at once, and a second time behind another interface, after LATE_MS: when all
 * have been acknowledged. */
static void late_copies(bool on)
{
	use_qdisc_of_a(on);
	if (!on) {
		kt_shell("tc -n a qdisc del dev eth0 clsact && ip -n a link del late0");
		return;
	}
	kt_shell("ip link add late0 netns a type veth peer name late0 netns b");
	kt_shell("ip -n a link set late0 mtu 9000 up && ip -n b link set late0 mtu 9000 up");
	kt_shell("tc -n a qdisc add dev late0 root netem delay %dms limit 10000", LATE_MS);
	kt_shell("tc -n a qdisc add dev eth0 clsact && tc -n a filter add dev eth0 egress "
		 "matchall action mirred egress mirror dev late0");
}

static void send_with_late_copies(bool interrupted)
{
	int public, secret;

	late_copies(true);
	send_and_overwrite("late0", interrupted, &public, &secret);
	late_copies(false);
	assert_in_range(public, MIB / 65536, 10000);
	assert_int_equal(secret, 0);
}

static void test_sent_again_after_the_end(void **state)
{
	send_with_late_copies(false);
}

/* A signal comes when the message has been received, and the last frame has not left. */
static void test_interrupted_after_the_end(void **state)
{
	send_with_late_copies(true);
}

static void super_frames_of_a(bool on)
{
	struct ethtool_value value = {.cmd = ETHTOOL_SGSO, .data = on};
	struct ifreq request = {.ifr_name = "eth0", .ifr_data = (void *)&value};
	int fd = kt_open("a", SOCK_RDM);

	assert_int_equal(ioctl(fd, SIOCETHTOOL, &request), 0);
	close(fd);
}

static long receive_all(void *arg)
{
	static uint8_t got[MIB];
	const struct receiver *r = arg;
	long n = 0;

	while (recv(r->fd, got, MIB, 0) >= 0)
		n++;
	return n;
}

/* The call's time is over, and its last frames have not left. */
static void test_taken_back_while_it_leaves(void **state)
{
	struct timeval patience = {.tv_sec = 1};
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct receiver r = {.fd = p.b};
	int raw = tap_of_b("eth0"), public, secret, late = 0;
	struct kt_thread t;

	slow_wire(true);
	super_frames_of_a(false); /* else frames to a veth are copies */
	kt_option(p.a, BEOWIRE_COPY_MAX, 1000);
	setsockopt(p.b, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	kt_start(&t, receive_all, &r);
	for (int ms = 100; ms < 400; ms += 15) {
		patience = (struct timeval){.tv_usec = ms * 1000};
		setsockopt(p.a, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
		memset(bytes, 'o', MIB);
		late += send(p.a, bytes, MIB, 0) < 0;
		memset(bytes, 's', MIB);
		usleep(150000);
	}
	kt_join(&t);
	count_frames(raw, &public, &secret);
	super_frames_of_a(true);
	slow_wire(false);
	assert_in_range(late, 1, 20);
	assert_true(public > 0);
	assert_int_equal(secret, 0);
	close(raw);
	kt_close(&p);
	kt_becomes(kt_pinned(), 0, 0);
}

/* ---- where pinned memory lies ---- */

/* Pins of pages in the whole system, ever. */
static uint64_t pins(void)
{
	kt_shell("echo 1 >/proc/sys/vm/stat_refresh");
	return kt_number(NULL, "/proc/vmstat", "nr_foll_pin_acquired");
}

/* The pages of the zone that is to be movable (the kernel's option movablecore=), by number. */
static void find_movable(uint64_t *first, uint64_t *count)
{
	FILE *f = fopen("/proc/zoneinfo", "r");
	bool movable = false;
	char line[256], zone[32];

	assert_non_null(f);
	*first = *count = 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Node %*d, zone %31s", zone) == 1)
			movable = !strcmp(zone, "Movable");
		else if (movable && !*count)
			sscanf(line, " spanned %" SCNu64, count);
		else if (movable)
			sscanf(line, " start_pfn: %" SCNu64, first);
	}
	fclose(f);
	if (!*count)
		fail_msg("no memory is to be movable: boot with movablecore=256M");
}

/* How many pages of the MiB at `at` lie in there. */
static uint64_t movable_pages(const void *at)
{
	int map = open("/proc/self/pagemap", O_RDONLY);
	uint64_t first, count, entry[MIB / 4096], found = 0;

	find_movable(&first, &count);
	assert_true(map >= 0);
	assert_int_equal(pread(map, entry, sizeof(entry), (off_t)((uintptr_t)at / 4096 * 8)),
			 sizeof(entry));
	close(map);
	for (size_t i = 0; i < MIB / 4096; i++) {
		const uint64_t number = entry[i] & ((1ull << 55) - 1);

		assert_true(entry[i] >> 63); /* it is in memory */
		found += number >= first && number < first + count;
	}
	return found;
}

/* The MiB at `at` gets pages anew, such as are to be movable. */
static void renew_pages(void *at)
{
	kt_shell("echo 3 >/proc/sys/vm/drop_caches"); /* most of them may be of files */
	madvise(at, MIB, MADV_NOHUGEPAGE);	      /* that may lie elsewhere */
	assert_int_equal(madvise(at, MIB, MADV_DONTNEED), 0);
	memset(at, 'o', MIB);
	assert_in_range(movable_pages(at), MIB / 4096 / 2, MIB / 4096);
}

/* ---- pins that outlive their call ---- */

/* The program has answered a question about its memory: until it is read, and no longer. */
static void answer(int fd, const struct beowire_info *asked)
{
	struct beowire_region region = {
		.id = asked->cookie, .buf = (uintptr_t)bytes, .len = asked->len};

	assert_int_equal(asked->event, BEOWIRE_REGION);
	assert_int_equal(ioctl(fd, BEOWIRE_IOC_REGION, &region), 0);
}

/* Is any of `n` bytes at `at` read by peers, or about to be? */
static bool serving(int fd, uintptr_t at, uint64_t n)
{
	struct beowire_region what = {.buf = at, .len = n};
	int got = ioctl(fd, BEOWIRE_IOC_SERVING, &what);

	assert_in_range(got, 0, 1);
	return got;
}

/* It is pinned, as is where a peer's memory is to go: both by pins for long, for which they leave
 * memory that is to be movable. */
static void test_memory_that_is_read(void **state)
{
	const uintptr_t at = (uintptr_t)bytes;
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct beowire_pull pull = {.flags = BEOWIRE_PULL_MEMORY, .len = MIB, .cookie = 1};
	static _Alignas(4096) uint8_t got[MIB];
	struct beowire_info info;
	int raw, public, secret;
	char byte;

	kt_option(p.a, BEOWIRE_INFO_WANTED, 1);
	kt_option(p.b, BEOWIRE_INFO_WANTED, 1);
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	assert_int_equal(kt_recv_info(p.b, &byte, 1, &info, 0), 0);
	raw = tap_of_b("eth0");
	renew_pages(bytes);
	renew_pages(got);
	slow_wire(true);
	super_frames_of_a(false); /* else frames to a veth are copies */
	pull.peer = info.peer;
	pull.buf = (uintptr_t)got;
	assert_int_equal(ioctl(p.b, BEOWIRE_IOC_PULL, &pull), 0);
	assert_int_equal(movable_pages(got), 0);
	assert_int_equal(kt_recv_info(p.a, &byte, 1, &info, 0), 0);
	assert_false(serving(p.a, at, MIB));
	assert_in_range(movable_pages(bytes), MIB / 4096 / 2, MIB / 4096);
	answer(p.a, &info);
	assert_int_equal(movable_pages(bytes), 0);
	assert_true(serving(p.a, at, MIB));
	assert_true(serving(p.a, at - 1, 2) && serving(p.a, at + MIB - 1, 1));
	assert_true(serving(p.a, 1, UINT64_MAX));
	assert_false(serving(p.a, at - 1, 1) || serving(p.a, at + MIB, 1) || serving(p.a, at, 0));
	assert_int_equal(kt_recv_info(p.b, &byte, 1, &info, 0), 0);
	assert_int_equal(info.event, BEOWIRE_PULLED);
	assert_int_equal(info.status, 0);
	while (serving(p.a, at, MIB))
		usleep(1000);
	memset(bytes, 's', MIB);
	count_frames(raw, &public, &secret);
	super_frames_of_a(true);
	slow_wire(false);
	assert_in_range(public, MIB / 65536, 10000);
	assert_int_equal(secret, 0);
	close(raw);
	kt_close(&p);
	kt_becomes(kt_pinned(), 0, 0);
}

/* A question that nobody answers for a while is told again. */
static bool is_new(const struct beowire_info *asked, int n)
{
	for (int i = 0; i < n; i++)
		if (asked[i].cookie == asked[n].cookie)
			return false;
	return true;
}

/* So many reads of a's memory are under way when a's program closes its socket. The memory is let
 * go at once, although the peer has not read it, nor can: its port lingers for longer, for what
 * else the program has said. */
static void leave_what_is_read(int reads)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct beowire_pull pull = {.flags = BEOWIRE_PULL_MEMORY, .len = MIB / (unsigned int)reads};
	static _Alignas(4096) uint8_t got[MIB];
	static struct beowire_info asked[MANY_READS];
	struct beowire_info info;
	uint64_t others, began;
	char byte;

	kt_option(p.a, BEOWIRE_INFO_WANTED, 1);
	kt_option(p.b, BEOWIRE_INFO_WANTED, 1);
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	assert_int_equal(kt_recv_info(p.b, &byte, 1, &info, 0), 0);
	pull.peer = info.peer;
	pull.buf = (uintptr_t)got;
	for (int i = 0; i < reads; i++) {
		pull.cookie = (uint64_t)i + 1;
		pull.off = pull.len * (uint64_t)i;
		assert_int_equal(ioctl(p.b, BEOWIRE_IOC_PULL, &pull), 0);
	}
	for (int i = 0; i < reads;) {
		assert_int_equal(kt_recv_info(p.a, &byte, 1, &asked[i], 0), 0);
		i += is_new(asked, i);
	}
	others = kt_pinned();
	use_qdisc_of_a(true);
	kt_shell("tc -n a qdisc add dev eth0 root netem loss 100%%");
	for (int i = 0; i < reads; i++)
		answer(p.a, &asked[i]);
	kt_until(kt_pinned() >= others + MIB / 4096);
	sleep(2); /* the peer asks for each again within that, and it is read from then on */
	began = kt_now_ns();
	close(p.a);
	kt_becomes(kt_pinned(), 0, others);
	assert_in_range(kt_now_ns() - began, 0, 5000000000);
	kt_shell("tc -n a qdisc del dev eth0 root");
	use_qdisc_of_a(false);
	close(p.b);
	kt_becomes(kt_pinned(), 0, 0);
}

static void test_memory_of_one_who_leaves(void **state)
{
	leave_what_is_read(1);
}

/* More than are ended with the port's lock held. */
static void test_much_memory_of_one_who_leaves(void **state)
{
	leave_what_is_read(MANY_READS);
}

/* Memory of a send that outlives its call is pinned, as nothing else tells the kernel that it
 * stays in use: by pins for long, for which it leaves memory that is to be movable. */
static void test_memory_of_asynchronous_sends(void **state)
{
	const struct beowire_info sent = {.cookie = 5, .flags = BEOWIRE_SEND_ASYNC};
	struct kt_pair p = kt_pair(SOCK_RDM);
	uint64_t before;

	kt_option(p.a, BEOWIRE_INFO_WANTED, 1);
	kt_option(p.b, BEOWIRE_INFO_WANTED, 1);
	renew_pages(bytes);
	before = pins();
	assert_int_equal(kt_send_info(p.a, bytes, MIB, &p.at_b, &sent, 0), 0);
	assert_in_range(pins() - before, MIB / 4096, 2 * MIB / 4096);
	assert_int_equal(movable_pages(bytes), 0);
	kt_close(&p);
	kt_becomes(kt_pinned(), 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_kept_on_the_same_machine),
		kt_test(test_leaving_late),
		kt_test(test_sent_again_after_the_end),
		kt_test(test_interrupted_after_the_end),
		kt_test(test_taken_back_while_it_leaves),
		kt_test(test_memory_that_is_read),
		kt_test(test_memory_of_asynchronous_sends),
		kt_test(test_memory_of_one_who_leaves),
		kt_test(test_much_memory_of_one_who_leaves),
	};

	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
