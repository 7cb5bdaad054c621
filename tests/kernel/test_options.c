/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options, ioctls and control messages of sockets without connections.
 */
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ktest.h"

/* ---- options ---- */

static void check_option(int fd, int name, int least, int most)
{
	const int bad[] = {least - 1, most + 1};
	int value = -1, before;
	socklen_t len = sizeof(value);

	assert_int_equal(getsockopt(fd, SOL_BEOWIRE, name, &before, &len), 0);
	for (int i = 0; i < 2; i++) {
		if (i == 1 && most == INT32_MAX)
			continue;
		kt_refused(setsockopt(fd, SOL_BEOWIRE, name, &bad[i], sizeof(int)), EINVAL);
		assert_int_equal(getsockopt(fd, SOL_BEOWIRE, name, &value, &len), 0);
		assert_int_equal(value, before); /* a refused value changes nothing */
	}
	kt_option(fd, name, least);
	assert_int_equal(getsockopt(fd, SOL_BEOWIRE, name, &value, &len), 0);
	assert_int_equal(value, least);
	kt_option(fd, name, most);
	kt_refused(setsockopt(fd, SOL_BEOWIRE, name, &value, sizeof(int) - 1), EINVAL);
	kt_refused(setsockopt(fd, SOL_BEOWIRE, name, NULL, sizeof(int)), EFAULT);
	assert_int_equal(getsockopt(fd, SOL_BEOWIRE, name, &value, &len), 0);
	assert_int_equal(value, most);
	assert_int_equal(len, sizeof(value));
}

static void test_options(void **state)
{
	const int early[] = {BEOWIRE_CHECKSUM, BEOWIRE_DEAD_MS};
	int fd = kt_open("a", SOCK_RDM), value = 1;
	socklen_t len = 2;

	check_option(fd, BEOWIRE_BUSY_US, 0, 1000000);
	check_option(fd, BEOWIRE_CHECKSUM, 0, 1);
	check_option(fd, BEOWIRE_COPY_MAX, 0, INT32_MAX);
	check_option(fd, BEOWIRE_EAGER_MAX, 0, 65536);
	check_option(fd, BEOWIRE_DEAD_MS, 1, INT32_MAX);
	check_option(fd, BEOWIRE_INFO_WANTED, 0, 1);
	kt_refused(setsockopt(fd, SOL_BEOWIRE, 99, &value, sizeof(value)), ENOPROTOOPT);
	kt_refused(getsockopt(fd, SOL_BEOWIRE, 99, &value, &len), ENOPROTOOPT);
	kt_refused(setsockopt(fd, 12345, BEOWIRE_BUSY_US, &value, sizeof(value)), ENOPROTOOPT);
	assert_int_equal(getsockopt(fd, SOL_BEOWIRE, BEOWIRE_BUSY_US, &value, &len), 0);
	assert_int_equal(len, 2); /* cut */
	len = (socklen_t)-1;
	kt_refused(getsockopt(fd, SOL_BEOWIRE, BEOWIRE_BUSY_US, &value, &len), EINVAL);
	close(fd);

	fd = kt_bound("a", SOCK_DGRAM, 0); /* too late, or for SOCK_RDM */
	for (int i = 0; i < 2; i++)
		kt_refused(setsockopt(fd, SOL_BEOWIRE, early[i], &value, sizeof(value)), EISCONN);
	kt_refused(setsockopt(fd, SOL_BEOWIRE, BEOWIRE_INFO_WANTED, &value, sizeof(value)), EINVAL);
	close(fd);
}

static int copy_max(void)
{
	int fd = kt_open("a", SOCK_RDM), value = -1;
	socklen_t len = sizeof(value);

	assert_int_equal(getsockopt(fd, SOL_BEOWIRE, BEOWIRE_COPY_MAX, &value, &len), 0);
	close(fd);
	assert_int_equal(kt_number("a", "/proc/net/beowire/node", "copy-max"), value);
	return value;
}

/* The length that pinning begins at is measured, unless a number is set. */
static void test_measured_threshold(void **state)
{
	const int measured = copy_max();

	assert_in_range(measured, 4096, 65536);
	assert_int_equal(measured & (measured - 1), 0);
	kt_shell("ip netns exec a sh -c 'echo 5000 >/proc/sys/net/beowire/copy_max'");
	assert_int_equal(copy_max(), 5000);
	kt_shell("ip netns exec a sh -c 'echo 0 >/proc/sys/net/beowire/copy_max'");
	assert_int_equal(copy_max(), measured);
}

static void test_option_counters(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct beowire_counters c;
	socklen_t len = sizeof(c);
	int fd = kt_open("a", SOCK_RDM);
	char byte;

	kt_refused(getsockopt(fd, SOL_BEOWIRE, BEOWIRE_COUNTERS, &c, &len), ENOTCONN);
	kt_refused(setsockopt(p.a, SOL_BEOWIRE, BEOWIRE_COUNTERS, &c, sizeof(c)), ENOPROTOOPT);
	assert_int_equal(send(p.a, "x", 1, 0), 1);
	assert_int_equal(recv(p.b, &byte, 1, 0), 1);
	c = kt_counters(p.a);
	assert_int_equal(c.tx_messages, 1);
	assert_int_equal(c.peers, 1);
	assert_int_equal(kt_counters(p.b).rx_messages, 1);
	len = 8;
	memset(&c, 0xee, sizeof(c));
	assert_int_equal(getsockopt(p.a, SOL_BEOWIRE, BEOWIRE_COUNTERS, &c, &len), 0);
	assert_int_equal(len, 8);
	assert_int_equal(c.rx_frames, 0xeeeeeeeeeeeeeeee);
	kt_close(&p);
}

static void test_option_peer_number(void **state)
{
	struct kt_pair p = kt_pair(SOCK_RDM);
	union {
		struct sockaddr_beowire addr;
		int number;
	} u = {.addr = p.at_b};
	socklen_t len = sizeof(u), few = sizeof(u) - 1;
	struct beowire_info info = {.peer = 1};
	int fd = kt_open("a", SOCK_RDM), connects = kt_bound("a", SOCK_STREAM, 0);
	char byte;

	kt_refused(getsockopt(connects, SOL_BEOWIRE, BEOWIRE_PEER_NUMBER, &u, &len), EOPNOTSUPP);
	kt_refused(getsockopt(connects, SOL_BEOWIRE, BEOWIRE_PEER_UP, &u, &len), EOPNOTSUPP);
	close(connects);
	kt_refused(getsockopt(fd, SOL_BEOWIRE, BEOWIRE_PEER_NUMBER, &u, &len), ENOTCONN);
	kt_refused(getsockopt(p.a, SOL_BEOWIRE, BEOWIRE_PEER_NUMBER, &u, &few), EINVAL);
	u.addr.sbw_port = 0; /* nobody has it */
	kt_refused(getsockopt(p.a, SOL_BEOWIRE, BEOWIRE_PEER_NUMBER, &u, &len), EINVAL);
	u.addr = p.at_b;
	u.addr.sbw_mac[0] |= 1; /* of many */
	kt_refused(getsockopt(p.a, SOL_BEOWIRE, BEOWIRE_PEER_NUMBER, &u, &len), EINVAL);
	u.addr = p.at_b;
	assert_int_equal(getsockopt(p.a, SOL_BEOWIRE, BEOWIRE_PEER_NUMBER, &u, &len), 0);
	assert_int_equal(u.number, 1);
	assert_int_equal(kt_send_info(p.a, "n", 1, NULL, &info, 0), 0);
	assert_int_equal(recv(p.b, &byte, 1, 0), 1);
	info.peer = 2;
	assert_int_equal(kt_send_info(p.a, "n", 1, NULL, &info, 0), -ENOTCONN);
	kt_close(&p);
}

static void test_options_of_sockets(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	int value = 0;
	socklen_t len = sizeof(value);

	assert_int_equal(getsockopt(p.a, SOL_SOCKET, SO_TYPE, &value, &len), 0);
	assert_int_equal(value, SOCK_RDM);
	assert_int_equal(getsockopt(p.a, SOL_SOCKET, SO_DOMAIN, &value, &len), 0);
	assert_int_equal(value, AF_BEOWIRE);
	assert_int_equal(getsockopt(p.a, SOL_SOCKET, SO_ERROR, &value, &len), 0);
	assert_int_equal(value, 0);
	kt_close(&p);
}

/* ---- ioctls, control messages ---- */

static void test_ioctl(void **state)
{
	struct beowire_iface iface = {.name = "eth0"};
	struct beowire_pull pull = {.peer = 1};
	int fd = kt_open("a", SOCK_RDM), dgram = kt_bound("a", SOCK_DGRAM, 0);

	kt_refused(ioctl(fd, BEOWIRE_IOC_ATTACH, &iface), EEXIST);
	kt_refused(ioctl(fd, BEOWIRE_IOC_ATTACH, NULL), EFAULT);
	memset(iface.name, 'x', sizeof(iface.name)); /* does not end */
	kt_refused(ioctl(fd, BEOWIRE_IOC_ATTACH, &iface), ENODEV);
	strcpy(iface.name, "lo");
	kt_refused(ioctl(fd, BEOWIRE_IOC_ATTACH, &iface), EINVAL);
	kt_refused(ioctl(fd, BEOWIRE_IOC_DETACH, &iface), ENODEV);
	kt_refused(ioctl(fd, BEOWIRE_IOC_PULL, &pull), ENOTCONN);
	kt_refused(ioctl(dgram, BEOWIRE_IOC_PULL, &pull), EOPNOTSUPP);
	kt_refused(ioctl(fd, BEOWIRE_IOC_PULL, (void *)8), EFAULT);
	kt_refused(ioctl(fd, SIOCPROTOPRIVATE + 9, &pull), ENOTTY);
	close(fd);
	fd = kt_bound("a", SOCK_RDM, 0);
	kt_refused(ioctl(fd, BEOWIRE_IOC_PULL, &pull), ENOTCONN); /* no such peer */
	pull.flags = 2;
	kt_refused(ioctl(fd, BEOWIRE_IOC_PULL, &pull), EINVAL);
	pull = (struct beowire_pull){.len = BEOWIRE_MSG_MAX + 1};
	kt_refused(ioctl(fd, BEOWIRE_IOC_PULL, &pull), EINVAL);
	close(fd);
	close(dgram);
}

static void test_attach_again(void **state)
{
	struct beowire_iface iface = {.name = "eth0"};
	int fd = kt_open("a", SOCK_RDM);

	assert_int_equal(ioctl(fd, BEOWIRE_IOC_DETACH, &iface), 0);
	kt_refused(ioctl(fd, BEOWIRE_IOC_DETACH, &iface), ENODEV);
	assert_int_equal(ioctl(fd, BEOWIRE_IOC_ATTACH, &iface), 0);
	assert_int_equal(iface.mtu, 9000);
	assert_true(iface.ifindex > 0);
	close(fd);
}

static void test_control_messages(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct beowire_info info = {.code = 0x80};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(info))];
	} control = {.head = {CMSG_LEN(sizeof(info)), SOL_BEOWIRE, BEOWIRE_INFO}};
	struct iovec part = {.iov_base = "x", .iov_len = 1};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};

	assert_int_equal(kt_send_info(p.a, "x", 1, NULL, &info, 0), -EINVAL); /* the code */
	info = (struct beowire_info){.flags = 0x100};
	assert_int_equal(kt_send_info(p.a, "x", 1, NULL, &info, 0), -EINVAL);
	control.head.cmsg_len -= 1;
	kt_refused(sendmsg(p.a, &m, 0), EINVAL);
	control.head.cmsg_len = 5; /* shorter than its own head */
	kt_refused(sendmsg(p.a, &m, 0), EINVAL);
	control.head.cmsg_len = 10000;
	kt_refused(sendmsg(p.a, &m, 0), EINVAL);
	control.head = (struct cmsghdr){CMSG_LEN(sizeof(info)), SOL_BEOWIRE, 99};
	kt_refused(sendmsg(p.a, &m, 0), EINVAL);
	kt_close(&p);
	p = kt_couple(SOCK_DGRAM);
	info.flags = 0;
	assert_int_equal(kt_send_info(p.a, "x", 1, NULL, &info, 0), -EINVAL);
	kt_close(&p);
}

/* A number that was a peer's is not at once another one's. */
static void test_peers_are_numbered_anew(void **state)
{
	struct beowire_info info;
	char byte;
	int a = kt_bound("a", SOCK_RDM, 0);
	struct sockaddr_beowire at = kt_at(a);

	at.sbw_ifindex = 0;
	kt_option(a, BEOWIRE_INFO_WANTED, 1);
	for (uint32_t i = 1; i < 4; i++) {
		int b = kt_bound("b", SOCK_RDM, 0);

		assert_int_equal(kt_send_to(b, "x", 1, &at), 1);
		assert_int_equal(kt_recv_info(a, &byte, 1, &info, 0), 0);
		assert_int_equal(info.event, BEOWIRE_MESSAGE);
		assert_int_equal(info.peer, i);
		close(b);
		assert_int_equal(kt_recv_info(a, &byte, 1, &info, 0), 0);
		assert_int_equal(info.event, BEOWIRE_DOWN);
		assert_int_equal(info.peer, i);
	}
	close(a);
}

struct elsewhere {
	struct sockaddr_beowire to;
};

/* From a host of another name, as a container has one. */
static long send_from_elsewhere(void *arg)
{
	const struct elsewhere *e = arg;
	int fd;

	if (unshare(CLONE_NEWUTS) || sethostname("elsewhere", 9))
		return -1;
	fd = kt_bound("b", SOCK_RDM, 0);
	return kt_send_to(fd, "x", 1, &e->to) == 1 ? fd : -1;
}

static void test_name_of_a_container(void **state)
{
	struct kt_thread thread;
	struct elsewhere e;
	union {
		char name[256];
		uint32_t number;
	} u;
	socklen_t len = sizeof(u);
	int a = kt_bound("a", SOCK_RDM, 0), fd;
	char byte;

	e.to = kt_at(a);
	e.to.sbw_ifindex = 0;
	kt_start(&thread, send_from_elsewhere, &e);
	assert_int_equal(recv(a, &byte, 1, 0), 1);
	fd = (int)kt_join(&thread);
	assert_true(fd >= 0);
	u.number = 1;
	assert_int_equal(getsockopt(a, SOL_BEOWIRE, BEOWIRE_PEER_NAME, &u, &len), 0);
	assert_string_equal(u.name, "elsewhere");
	close(fd);
	close(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_options),
		kt_test(test_measured_threshold),
		kt_test(test_option_counters),
		kt_test(test_option_peer_number),
		kt_test(test_peers_are_numbered_anew),
		kt_test(test_name_of_a_container),
		kt_test(test_options_of_sockets),
		kt_test(test_ioctl),
		kt_test(test_attach_again),
		kt_test(test_control_messages),
	};

	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
