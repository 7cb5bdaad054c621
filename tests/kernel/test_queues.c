/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which queue of a device with several the frames leave by: those of one path, from one port to
 * another, by one; those of different paths by different ones. A path's queue follows its program
 * to another processor only after a pause, so that frames do not overtake one another.
 */
#include <linux/filter.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kframe.h"

#define QUEUES	 4
#define PORTS	 16
#define TIMES	 8
#define MOVES	 10 /* that were fast enough to tell */
#define PAUSE_US 50000
#define SOON_NS	 5000000 /* half of what the module takes for a pause */

static uint8_t bytes[100];
static int raw[QUEUES]; /* what arrives from each queue of the other side */

static void watch_queue(uint32_t queue)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_QUEUE)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, queue, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0xffff),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog program = {.len = 4, .filter = code};

	raw[queue] = kt_raw("b", "q0", BW_ETHERTYPE);
	assert_int_equal(
		setsockopt(raw[queue], SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), 0);
}

/* For each path the queue that its frames came by since this was last asked, counted from 1; it is
 * one only, if `one`. A path is named by the numbers of both ports. Returns how many queues were
 * used. */
static uint32_t look(uint8_t (*queue_of)[PORTS + 1], bool one)
{
	static struct kt_frame f;
	uint32_t used = 0;

	memset(queue_of, 0, (PORTS + 1) * sizeof(*queue_of));
	for (uint32_t i = 0; i < QUEUES; i++) {
		uint32_t frames = 0;

		for (; recv(raw[i], f.bytes, sizeof(f.bytes), MSG_DONTWAIT) > 0; frames++) {
			uint8_t *known;

			assert_in_range(kt_header(&f)->src_engine, 1, PORTS);
			assert_in_range(kt_header(&f)->dst_engine, 1, PORTS);
			known = &queue_of[kt_header(&f)->src_engine][kt_header(&f)->dst_engine];
			assert_true(!one || !*known || *known == i + 1);
			*known = (uint8_t)(i + 1);
		}
		used += frames != 0;
	}
	return used;
}

static int begin(void **state)
{
	struct beowire_iface iface = {.name = "q0"};

	kt_shell("ip -n a link add q0 numtxqueues %d numrxqueues %d type veth peer name q0 "
		 "netns b numtxqueues %d numrxqueues %d",
		 QUEUES, QUEUES, QUEUES, QUEUES);
	kt_shell("ip -n a link set q0 up && ip -n b link set q0 up");
	for (const char *node = "a"; node; node = *node == 'a' ? "b" : NULL) {
		int fd = kt_open(node, SOCK_RDM);
		struct beowire_iface before = {.name = "eth0"};

		ioctl(fd, BEOWIRE_IOC_DETACH, &before);
		assert_int_equal(ioctl(fd, BEOWIRE_IOC_ATTACH, &iface), 0);
		close(fd);
	}
	for (uint32_t i = 0; i < QUEUES; i++)
		watch_queue(i);
	return kt_begin(state);
}

static int end(void **state)
{
	for (int i = 0; i < QUEUES; i++)
		close(raw[i]);
	kt_shell("ip -n a link del q0");
	return kt_end(state);
}

static void exchange(int from, int to)
{
	uint8_t got[sizeof(bytes)];

	assert_int_equal(send(from, bytes, sizeof(bytes), 0), sizeof(bytes));
	assert_int_equal(recv(to, got, sizeof(got), 0), sizeof(got));
}

static void test_ports_are_spread(void **state)
{
	static uint8_t queue_of[PORTS + 1][PORTS + 1];
	int a[PORTS], b[PORTS];
	struct sockaddr_beowire to;

	for (uint16_t i = 0; i < PORTS; i++) {
		a[i] = kt_bound("a", SOCK_RDM, i + 1);
		b[i] = kt_bound("b", SOCK_RDM, i + 1);
		to = kt_at(b[i]);
		assert_int_equal(kt_connect(a[i], &to), 0);
		for (int k = 0; k < TIMES; k++)
			exchange(a[i], b[i]);
	}
	assert_in_range(look(queue_of, true), 2, QUEUES);
	for (int i = 0; i < PORTS; i++) {
		close(a[i]);
		close(b[i]);
	}
}

/* A server with one port and many clients. */
static void test_paths_of_one_port_are_spread(void **state)
{
	static uint8_t queue_of[PORTS + 1][PORTS + 1];
	int server = kt_bound("a", SOCK_RDM, 1), client[PORTS];

	for (uint16_t i = 0; i < PORTS; i++) {
		struct sockaddr_beowire to;

		client[i] = kt_bound("b", SOCK_RDM, i + 1);
		to = kt_at(client[i]);
		assert_int_equal(kt_connect(server, &to), 0);
		for (int k = 0; k < TIMES; k++)
			exchange(server, client[i]);
	}
	assert_in_range(look(queue_of, true), 2, QUEUES);
	for (int i = 0; i < PORTS; i++)
		close(client[i]);
	close(server);
}

static void move_to(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)processor, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

/* Each processor has a queue of its own (XPS). */
static void test_a_path_keeps_its_queue(void **state)
{
	static uint8_t queue_of[PORTS + 1][PORTS + 1];
	int a = kt_bound("a", SOCK_RDM, 1), b = kt_bound("b", SOCK_RDM, 1);
	struct sockaddr_beowire to = kt_at(b);
	int kept = 0, followed = 0;

	assert_int_equal(kt_connect(a, &to), 0);
	exchange(a, b);
	for (int i = 0; i < 2; i++)
		kt_shell("ip netns exec a sh -c 'echo %d >/sys/class/net/q0/queues/tx-%d/xps_cpus'",
			 1 << i, i);
	for (int i = 0; kept < MOVES; i++) {
		uint64_t began;

		move_to(i % 2);
		usleep(PAUSE_US);
		look(queue_of, false);
		began = kt_now_ns();
		exchange(a, b);
		move_to((i + 1) % 2);
		exchange(a, b);
		if (kt_now_ns() - began < SOON_NS) {
			look(queue_of, true);
			followed += queue_of[1][1] == i % 2 + 1;
			kept++;
		}
	}
	assert_int_equal(followed, kept);
	close(a);
	close(b);
}

#undef kt_test
#define kt_test(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_ports_are_spread),
		kt_test(test_paths_of_one_port_are_spread),
		kt_test(test_a_path_keeps_its_queue),
	};

	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
