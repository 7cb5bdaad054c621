/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Several processors send by one port. One of them is its sender at a time, which also sends what
 * the others add meanwhile: the frames leave in the order in which they were made, none stays
 * behind, and none leaves when the port has ended.
 */
#include <linux/if_ether.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kframe.h"

#define MESSAGES 4000 /* of each thread */
#define BYTES	 64
#define LONG	 60000
#define ENDS	 50
#define FEW	 8 /* of so many frames a slow machine sends one again */

static uint8_t bytes[LONG];

struct sender {
	int fd, processor, times;
	size_t len;
	struct kt_thread thread;
};

static long send_many(void *arg)
{
	const struct sender *s = arg;
	cpu_set_t set;
	long done = 0;

	CPU_ZERO(&set);
	CPU_SET((size_t)s->processor, &set);
	sched_setaffinity(0, sizeof(set), &set);
	for (; done < s->times; done++)
		if (send(s->fd, bytes, s->len, MSG_NOSIGNAL) != (ssize_t)s->len)
			break;
	return done;
}

static void start(struct sender *s, int fd, size_t len, int times)
{
	for (int i = 0; i < 2; i++) {
		s[i] = (struct sender){.fd = fd, .processor = i, .times = times, .len = len};
		kt_start(&s[i].thread, send_many, &s[i]);
	}
}

/* What a sends, as it leaves. */
static int watch(void)
{
	const int room = 256 << 20;
	int raw = kt_raw("a", "eth0", ETH_P_ALL);

	assert_int_equal(setsockopt(raw, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)), 0);
	return raw;
}

/* How many frames of this port are seen. Each packet has a number greater than those before. */
static uint32_t in_order(int raw, uint16_t port)
{
	static struct kt_frame f;
	uint32_t frames = 0, last = 0;
	ssize_t n;

	while ((n = recv(raw, f.bytes, sizeof(f.bytes), MSG_DONTWAIT)) > 0) {
		const struct bw_hdr *h = kt_header(&f);

		if (n < (ssize_t)(KT_ETHERNET + sizeof(*h)) || h->src_engine != port ||
		    h->type != BW_FRAME_DATA)
			continue;
		assert_true(!frames || (int32_t)(h->pn - last) > 0);
		last = h->pn;
		frames++;
	}
	close(raw);
	return frames;
}

static void two_send(size_t len, int times)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	uint16_t port = kt_at(p.a).sbw_port;
	struct beowire_counters before = kt_counters(p.a), after;
	struct sender s[2];
	static uint8_t got[LONG];
	uint32_t frames;
	int raw = watch();

	memset(bytes, 7, sizeof(bytes));
	start(s, p.a, len, times);
	for (int i = 0; i < 2 * times; i++) {
		assert_int_equal(recv(p.b, got, sizeof(got), 0), len);
		assert_memory_equal(got, bytes, len);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(kt_join(&s[i].thread), times);
	after = kt_counters(p.a);
	frames = in_order(raw, port);
	fprintf(stderr, "%zu bytes: %u frames seen, %llu sent again\n", len, frames,
		(unsigned long long)(after.retransmits - before.retransmits));
	assert_in_range(after.retransmits - before.retransmits, 0, frames / FEW);
	kt_close(&p);
}

static void test_short_messages(void **state)
{
	two_send(BYTES, MESSAGES);
}

/* Frames of a row that refer to copies, and are checked by who sends them. */
static void test_messages_of_many_frames(void **state)
{
	two_send(LONG, MESSAGES / 40);
}

/* After its farewell a port sends no data any more, though threads were sending until then. */
static void test_nothing_after_the_end(void **state)
{
	static struct kt_frame f;

	for (int i = 0; i < ENDS; i++) {
		struct kt_pair p = kt_couple(SOCK_RDM);
		uint16_t port = kt_at(p.a).sbw_port;
		struct sender s[2];
		bool over = false;
		int raw = watch();

		start(s, p.a, BYTES, MESSAGES);
		usleep(1000);
		shutdown(p.a, SHUT_RDWR);
		for (int k = 0; k < 2; k++)
			kt_join(&s[k].thread);
		kt_close(&p);
		usleep(1000);
		while (recv(raw, f.bytes, sizeof(f.bytes), MSG_DONTWAIT) > 0) {
			if (kt_header(&f)->src_engine != port)
				continue;
			assert_false(over && kt_header(&f)->type == BW_FRAME_DATA);
			over = over || kt_header(&f)->type == BW_FRAME_BYE;
		}
		close(raw);
	}
}

/* What two processors have sent in order one receives (RPS), so that it comes in order. */
static int one_receives(void **state)
{
	kt_shell("ip netns exec b sh -c 'echo 1 >/sys/class/net/eth0/queues/rx-0/rps_cpus'");
	return kt_attach(state);
}

static int two_receive(void **state)
{
	kt_shell("ip netns exec b sh -c 'echo 0 >/sys/class/net/eth0/queues/rx-0/rps_cpus'");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_short_messages),
		kt_test(test_messages_of_many_frames),
		kt_test(test_nothing_after_the_end),
	};

	return cmocka_run_group_tests(tests, one_receives, two_receive);
}
