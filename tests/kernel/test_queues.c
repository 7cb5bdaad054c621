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
#include <time.h>
#include <unistd.h>

#include "kframe.h"

#define QUEUES	 4
#define PORTS	 16
#define TIMES	 8
#define MOVES	 10 /* that were fast enough to tell */
#define PAUSE_US 50000
#define LONG_NS	 25000000 /* more than what the module takes for a pause */
#define SOON_NS	 5000000  /* and less: a tick of its clock */

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

/* What came from each queue since this was last asked. */
struct seen {
	uint32_t frames, queues; /* how many, and by how many queues */
	/* For each path the queue that its frames came by, counted from 1. A path is named by the
	 * numbers of both ports. */
	uint8_t queue_of[PORTS + 1][PORTS + 1];
	bool one; /* each path's came by one queue */
};

static const struct seen *look(void)
{
	static struct kt_frame f;
	static struct seen seen;

	memset(&seen, 0, sizeof(seen));
	seen.one = true;
	for (uint32_t i = 0; i < QUEUES; i++) {
		uint32_t frames = 0;

		for (; recv(raw[i], f.bytes, sizeof(f.bytes), MSG_DONTWAIT) > 0; frames++) {
			uint8_t *known;

			assert_in_range(kt_header(&f)->src_engine, 1, PORTS);
			assert_in_range(kt_header(&f)->dst_engine, 1, PORTS);
			known = &seen.queue_of[kt_header(&f)->src_engine]
					      [kt_header(&f)->dst_engine];
			seen.one = seen.one && (!*known || *known == i + 1);
			*known = (uint8_t)(i + 1);
		}
		seen.frames += frames;
		seen.queues += frames != 0;
	}
	return &seen;
}

/* Each path has one queue, but all have several. */
static void are_spread(void)
{
	const struct seen *seen = look();

	assert_true(seen->one);
	assert_in_range(seen->queues, 2, QUEUES);
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
	return 0;
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
	are_spread();
	for (int i = 0; i < PORTS; i++) {
		close(a[i]);
		close(b[i]);
	}
}

/* A server with one port and many clients. */
static void test_paths_of_one_port_are_spread(void **state)
{
	int server = kt_bound("a", SOCK_RDM, 1), client[PORTS];

	for (uint16_t i = 0; i < PORTS; i++) {
		struct sockaddr_beowire to;

		client[i] = kt_bound("b", SOCK_RDM, i + 1);
		to = kt_at(client[i]);
		assert_int_equal(kt_connect(server, &to), 0);
		for (int k = 0; k < TIMES; k++)
			exchange(server, client[i]);
	}
	are_spread();
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

/* By the module's clock, which a processor that stands still may keep from going on. */
static uint64_t ticked_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Nothing has left by any queue for a while. */
static void pause_all(void)
{
	uint64_t began;

	do {
		began = ticked_ns();
		usleep(PAUSE_US);
	} while (look()->frames || ticked_ns() - began < LONG_NS);
}

/* The next frame after a pause, and another one from another processor soon afterwards: of both
 * packets, and of nothing else that a's engine has sent since, the queue, counted from 1. 0: a lot
 * of time passed, or the engine had something to say by itself; then any queue is right. */
static int queue_after_a_pause(int a, int b, int processor)
{
	const struct seen *seen;
	uint64_t began;
	bool soon;

	move_to(processor);
	pause_all();
	began = ticked_ns();
	exchange(a, b);
	move_to(!processor);
	exchange(a, b);
	soon = ticked_ns() - began < SOON_NS;
	usleep(PAUSE_US); /* a frame comes here after its receiver has it */
	seen = look();
	if (!soon || seen->frames != 2)
		return 0;
	assert_true(seen->one);
	return seen->queue_of[1][1];
}

/* Each processor has a queue of its own (XPS). */
static void test_a_path_keeps_its_queue(void **state)
{
	int a = kt_bound("a", SOCK_RDM, 1), b = kt_bound("b", SOCK_RDM, 1);
	struct sockaddr_beowire to = kt_at(b);
	int kept = 0, followed = 0;

	assert_int_equal(kt_connect(a, &to), 0);
	exchange(a, b);
	for (int i = 0; i < 2; i++)
		kt_shell("ip netns exec a sh -c 'echo %d >/sys/class/net/q0/queues/tx-%d/xps_cpus'",
			 1 << i, i);
	for (int i = 0; kept < MOVES; i++) {
		int queue = queue_after_a_pause(a, b, i % 2);

		kept += queue != 0;
		followed += queue == i % 2 + 1;
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
