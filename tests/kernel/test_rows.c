/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames that leave together: as one super-frame where the device takes it, one by one where it
 * does not, taken apart on the way where something in between wants single frames; and joined
 * again where the receiving device does that. Whichever way they come, every byte is right and
 * every frame is counted.
 */
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kframe.h"

#define MTU	 1500
#define EAGER	 12000 /* bytes; a message of several frames */
#define LONG	 300000
#define TIMES	 8
#define FEW	 300 /* frames that a slow machine sends again */
#define FEATURES 128 /* of a device, at most */

static uint8_t bytes[LONG], got[LONG];
static uint64_t may_lose = FEW; /* frames */
static uint64_t may_repeat;	/* frames that the wire itself sends again */

/* ---- what the interfaces are ---- */

static void offload(const char *node, const char *name, uint32_t command, uint32_t on)
{
	struct ethtool_value value = {.cmd = command, .data = on};
	struct ifreq r = {.ifr_data = (char *)&value};
	int fd;

	kt_enter(node);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	strcpy(r.ifr_name, name);
	assert_int_equal(ioctl(fd, SIOCETHTOOL, &r), 0);
	close(fd);
}

/* The number of a feature that has no command of its own; *count: of them all. */
static uint32_t feature_named(struct ifreq *r, int fd, const char *feature, uint32_t *count)
{
	struct {
		struct ethtool_gstrings head;
		char name[FEATURES][ETH_GSTRING_LEN];
	} all = {.head = {.cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_FEATURES}};
	struct {
		struct ethtool_sset_info head;
		uint32_t count;
	} sets = {.head = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1u << ETH_SS_FEATURES}};

	r->ifr_data = (char *)&sets;
	assert_int_equal(ioctl(fd, SIOCETHTOOL, r), 0);
	assert_in_range(sets.count, 1, FEATURES);
	*count = sets.count;
	r->ifr_data = (char *)&all;
	assert_int_equal(ioctl(fd, SIOCETHTOOL, r), 0);
	for (uint32_t i = 0; i < all.head.len; i++)
		if (!strcmp(all.name[i], feature))
			return i;
	fail_msg("no feature is called %s", feature);
	return 0;
}

/* Whether a device takes super-frames, the other offloads left as they are. */
static void take_super_frames(const char *node, const char *name, bool on)
{
	struct {
		struct ethtool_sfeatures head;
		struct ethtool_set_features_block block[FEATURES / 32];
	} set = {.head = {.cmd = ETHTOOL_SFEATURES}};
	struct ifreq r = {0};
	uint32_t number, count;
	int fd;

	kt_enter(node);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	strcpy(r.ifr_name, name);
	number = feature_named(&r, fd, "tx-gso-list", &count);
	set.head.size = (count + 31) / 32;
	set.block[number / 32].valid = 1u << number % 32;
	set.block[number / 32].requested = (uint32_t)on << number % 32;
	r.ifr_data = (char *)&set;
	assert_int_equal(ioctl(fd, SIOCETHTOOL, &r), 0);
	close(fd);
}

static void offloads(const char *node, const char *name, bool segment, bool receive)
{
	offload(node, name, ETHTOOL_STSO, segment);
	offload(node, name, ETHTOOL_SGSO, segment);
	offload(node, name, ETHTOOL_SGRO, receive);
}

static int small_frames(void **state)
{
	for (const char *node = "ab"; *node; node++)
		kt_shell("ip -n %c link set eth0 mtu %d", *node, MTU);
	return kt_attach(state);
}

static void use_qdisc_of_a(bool on)
{
	kt_shell("ip netns exec a sh -c 'echo %d >/proc/sys/net/beowire/qdisc_bypass'", !on);
}

/* ---- what travels ---- */

/* What came by b's interface since it was opened. */
struct seen {
	int frames, super;
};

static int watch(const char *name)
{
	const int room = 64 << 20;
	int raw = kt_raw("b", name, BW_ETHERTYPE);

	assert_int_equal(setsockopt(raw, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)), 0);
	return raw;
}

static struct seen seen(int raw)
{
	static uint8_t frame[1 << 17];
	struct seen s = {0};
	ssize_t n;

	while ((n = recv(raw, frame, sizeof(frame), MSG_DONTWAIT)) >= 0) {
		s.frames++;
		s.super += n > MTU + KT_ETHERNET;
	}
	fprintf(stderr, "seen: %d frames, %d of them super-frames\n", s.frames, s.super);
	close(raw);
	return s;
}

static long receive_all(void *arg)
{
	const int *fd = arg;

	for (uint32_t i = 0; i < 2 * TIMES; i++) {
		const ssize_t len = i % 2 ? LONG : EAGER;

		if (recv(*fd, got, LONG, 0) != len || !kt_filled(got, (size_t)len, i))
			return i;
	}
	return 2 * TIMES;
}

/* Next to nothing was dropped by either side's engine, or sent again: a late timer, at most. What b
 * received is what a sent, but for what the wire lost and what it repeated. */
static void nothing_amiss(const struct kt_pair *p)
{
	const struct beowire_counters a = kt_counters(p->a), b = kt_counters(p->b);
	uint64_t dropped = 0;

	for (int i = 0; i < BEOWIRE_DROP_REASONS; i++) {
		dropped += a.drop[i] + b.drop[i];
		if (a.drop[i] + b.drop[i])
			fprintf(stderr, "%s: %d and %d\n", bw_drop_name((enum bw_drop)i),
				(int)a.drop[i], (int)b.drop[i]);
	}
	assert_in_range(dropped, 0, may_lose);
	assert_in_range(a.retransmits, 0, may_lose);
	assert_in_range(b.rx_frames + may_lose, a.tx_frames, a.tx_frames + may_lose + may_repeat);
}

static void send_all(struct kt_pair *p)
{
	struct kt_thread t;

	kt_start(&t, receive_all, &p->b);
	for (uint32_t i = 0; i < 2 * TIMES; i++) {
		const ssize_t len = i % 2 ? LONG : EAGER;

		kt_fill(bytes, (size_t)len, i);
		assert_int_equal(send(p->a, bytes, (size_t)len, 0), len);
	}
	assert_int_equal(kt_join(&t), 2 * TIMES);
	nothing_amiss(p);
	kt_close(p);
}

/* Messages of both kinds from a to b; what was seen of them at b. */
static struct seen messages(const char *name)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	int raw = watch(name);

	send_all(&p);
	return seen(raw);
}

static void test_whole_over_a_veth(void **state)
{
	struct seen s = messages("eth0");

	assert_true(s.super >= TIMES);
	/* Of a row of 43 frames one is seen. */
	assert_true(s.frames < TIMES * (EAGER + LONG) / MTU / 3);
}

static void test_one_by_one_without_offload(void **state)
{
	struct seen s;

	offloads("a", "eth0", false, false);
	s = messages("eth0");
	assert_int_equal(s.super, 0);
	assert_true(s.frames >= TIMES * (EAGER + LONG) / MTU);
}

/* Single frames that a device finds together (NAPI), as a veth does whose peer does not segment. */
static void arriving_together(void)
{
	struct seen s;

	offloads("a", "eth0", false, false);
	offloads("b", "eth0", true, true);
	may_lose = 1000; /* its ring is short */
	s = messages("eth0");
	assert_true(s.super > 0);
}

static void test_joined_where_they_arrive(void **state)
{
	arriving_together();
}

/* netem loses, repeats and exchanges some of them. */
static void test_joined_from_a_bad_wire(void **state)
{
	may_repeat = FEW; /* 1 % of some 2000, and of what is sent again */
	use_qdisc_of_a(true);
	kt_shell("tc -n a qdisc add dev eth0 root netem delay 100us 50us loss 1%% duplicate 1%% "
		 "limit 100000");
	arriving_together();
}

/* A token bucket that even the shortest super-frame, a full frame and a bit, does not fit. */
static void test_taken_apart_by_a_queueing_discipline(void **state)
{
	struct seen s;

	use_qdisc_of_a(true);
	kt_shell("tc -n a qdisc add dev eth0 root tbf rate 1gbit burst 1530 limit 10000000");
	s = messages("eth0");
	assert_int_equal(s.super, 0);
	assert_true(s.frames >= TIMES * (EAGER + LONG) / MTU);
}

/* One that passes them on, as most do, to a device that takes super-frames. */
static void test_whole_through_a_queueing_discipline(void **state)
{
	struct seen s;

	use_qdisc_of_a(true);
	s = messages("eth0");
	assert_true(s.super >= TIMES);
}

/* Frames to a port of the same node. */
static void test_on_one_node(void **state)
{
	struct kt_pair p = {.a = kt_bound("a", SOCK_RDM, 0), .b = kt_bound("a", SOCK_RDM, 0)};

	p.at_b = kt_at(p.b);
	assert_int_equal(kt_connect(p.a, &p.at_b), 0);
	send_all(&p);
}

/* ---- over other interfaces than eth0 ---- */

static void attach(const char *node, const char *name, bool on)
{
	struct beowire_iface iface = {0};
	int fd = kt_open(node, SOCK_RDM);

	strcpy(iface.name, name);
	assert_int_equal(ioctl(fd, on ? BEOWIRE_IOC_ATTACH : BEOWIRE_IOC_DETACH, &iface), 0);
	close(fd);
}

static void use_instead_of_eth0(const char *name, bool on)
{
	for (int i = 0; i < 2; i++) {
		const char *node = i ? "b" : "a";

		attach(node, on ? "eth0" : name, false);
		attach(node, on ? name : "eth0", true);
	}
}

/* A bridge forwards super-frames, and takes them apart for the side that wants single ones. */
static void test_taken_apart_behind_a_bridge(void **state)
{
	struct seen s;

	kt_shell("ip netns add bridge0 && ip -n bridge0 link add br0 type bridge");
	kt_shell("ip -n bridge0 link set br0 up");
	for (const char *node = "ab"; *node; node++) {
		kt_shell("ip -n %c link add p0 type veth peer name p%c netns bridge0", *node,
			 *node);
		kt_shell("ip -n bridge0 link set p%c master br0 up && ip -n %c link set p0 up",
			 *node, *node);
	}
	take_super_frames("bridge0", "pb", false);
	use_instead_of_eth0("p0", true);
	s = messages("p0");
	assert_int_equal(s.super, 0);
	assert_true(s.frames >= TIMES * (EAGER + LONG) / MTU);
	take_super_frames("bridge0", "pb", true);
	s = messages("p0");
	assert_true(s.super >= TIMES);
	use_instead_of_eth0("p0", false);
	kt_shell("ip netns del bridge0");
}

/* Nothing is left of what the test before has changed of eth0, also if it failed. */
static int begin(void **state)
{
	may_lose = FEW;
	may_repeat = 0;
	use_qdisc_of_a(false);
	kt_shell("tc -n a qdisc replace dev eth0 root pfifo && tc -n a qdisc del dev eth0 root");
	offloads("a", "eth0", true, false);
	offloads("b", "eth0", true, false);
	return 0;
}

#undef kt_test
#define kt_test(f) cmocka_unit_test_setup_teardown(f, begin, kt_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_whole_over_a_veth),
		kt_test(test_one_by_one_without_offload),
		kt_test(test_joined_where_they_arrive),
		kt_test(test_joined_from_a_bad_wire),
		kt_test(test_taken_apart_by_a_queueing_discipline),
		kt_test(test_whole_through_a_queueing_discipline),
		kt_test(test_on_one_node),
		kt_test(test_taken_apart_behind_a_bridge),
	};

	return cmocka_run_group_tests(tests, small_frames, NULL);
}
