/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waiting for a long message ends by a signal, a time limit or MSG_DONTWAIT as any other wait does,
 * and nothing is lost, had twice or half by that. What holds a transfer up is the interface of one
 * node, which is down meanwhile, or late.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kframe.h"

#define MIB (1u << 20)
#define MS  1000000u /* nanoseconds */

static _Alignas(4096) uint8_t out[24 * MIB], in[24 * MIB + 4096];

static void cut(void)
{
	kt_shell("ip -n a link set eth0 down");
}

static void repair(void)
{
	kt_shell("ip -n a link set eth0 up");
}

/* Whatever a test that failed has left. */
static int repaired(void **state)
{
	kt_end(state);
	repair();
	return 0;
}

static void limit(int fd, int name, unsigned ms)
{
	const struct timeval t = {ms / 1000, ms % 1000 * 1000};

	assert_int_equal(setsockopt(fd, SOL_SOCKET, name, &t, sizeof(t)), 0);
}

static void room(int fd, int bytes)
{
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)), 0);
}

/* Two sockets that speak with one another, connected or not. */
static struct kt_pair pair_of(int type)
{
	struct kt_pair p;
	int listener;

	if (type == SOCK_RDM)
		return kt_couple(type);
	listener = kt_bound("b", type, 0);
	p = (struct kt_pair){.a = kt_open("a", type), .at_b = kt_at(listener)};
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(connect(p.a, (struct sockaddr *)&p.at_b, sizeof(p.at_b)), 0);
	p.b = accept(listener, NULL, NULL);
	assert_true(p.b >= 0);
	close(listener);
	return p;
}

static const int types[] = {SOCK_RDM, SOCK_SEQPACKET, SOCK_STREAM};

#define EACH_TYPE (int i = 0; i < 3; i++)

/* A long message is copied and waits for its receiver, who cannot have its bytes yet. */
static struct kt_pair held_up(int type, size_t bytes, uint32_t seed)
{
	struct kt_pair p = pair_of(type);

	room(p.a, (int)bytes + 4096);
	kt_fill(out, bytes, seed);
	assert_int_equal(send(p.a, out, bytes, MSG_DONTWAIT), bytes);
	assert_int_equal(kt_events(p.b, POLLIN), POLLIN);
	cut();
	return p;
}

/* Receives `bytes`, of a stream in as many calls as it takes. */
static bool have(int fd, size_t bytes, uint32_t seed, int flags)
{
	struct pollfd poller = {.fd = fd, .events = POLLIN};
	size_t done = 0;

	memset(in, 0, bytes);
	while (done < bytes) {
		ssize_t n = recv(fd, in + done, bytes - done, flags);

		if (n < 0 && (flags & MSG_DONTWAIT) && errno == EAGAIN &&
		    poll(&poller, 1, KT_SOON_MS) == 1)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return kt_filled(in, bytes, seed);
}

/* ---- signals ---- */

static volatile sig_atomic_t heard;

static void hear(int number)
{
	heard = number;
}

static void handle(int flags)
{
	struct sigaction action = {.sa_handler = hear, .sa_flags = flags};

	heard = 0;
	sigaction(SIGUSR1, &action, NULL);
}

struct call {
	int fd;
	size_t bytes;
};

static long receive(void *arg)
{
	const struct call *c = arg;
	ssize_t n = recv(c->fd, in, c->bytes, 0);

	return n < 0 ? -errno : n;
}

/* Of a stream in as many calls as it takes: one that a signal finds with a part gives that. */
static long receive_whole(void *arg)
{
	const struct call *c = arg;
	size_t done = 0;

	while (done < c->bytes) {
		ssize_t n = recv(c->fd, in + done, c->bytes - done, 0);

		if (n <= 0)
			return n < 0 ? -errno : (long)done;
		done += (size_t)n;
	}
	return (long)done;
}

static long transmit(void *arg)
{
	const struct call *c = arg;
	ssize_t n = send(c->fd, out, c->bytes, 0);

	return n < 0 ? -errno : n;
}

/* The thread sleeps in its call when the signal comes; and it has heard it afterwards. */
static void disturb(const struct kt_thread *t, long call)
{
	kt_await_sleep(t, call);
	heard = 0;
	pthread_kill(t->id, SIGUSR1);
	kt_until(heard == SIGUSR1);
}

static void test_signal_ends_a_receive(void **state)
{
	for
		EACH_TYPE
		{
			struct kt_pair p = held_up(types[i], MIB, 1);
			struct call c = {p.b, MIB};
			struct kt_thread t;

			handle(0);
			kt_start(&t, receive, &c);
			disturb(&t, SYS_recvfrom);
			assert_int_equal(kt_join(&t), -EINTR);
			assert_int_equal(heard, SIGUSR1);
			repair();
			assert_true(have(p.b, MIB, 1, 0));
			kt_close(&p);
		}
	kt_becomes(kt_pinned(), 0, 0);
}

/* SA_RESTART: the call goes on by itself. */
static void test_signal_and_a_receive_that_goes_on(void **state)
{
	for
		EACH_TYPE
		{
			struct kt_pair p = held_up(types[i], MIB, 2);
			struct call c = {p.b, MIB};
			struct kt_thread t;

			handle(SA_RESTART);
			memset(in, 0, MIB);
			kt_start(&t, receive_whole, &c);
			disturb(&t, SYS_recvfrom);
			disturb(&t, SYS_recvfrom);
			repair();
			assert_int_equal(kt_join(&t), MIB);
			assert_int_equal(heard, SIGUSR1);
			assert_true(kt_filled(in, MIB, 2));
			kt_close(&p);
		}
}

static void test_signal_ends_a_send(void **state)
{
	for
		EACH_TYPE
		{
			struct kt_pair p = pair_of(types[i]);
			struct call c = {p.a, MIB};
			struct kt_thread t;
			char got[8];

			handle(0);
			kt_start(&t, transmit, &c);
			disturb(&t, SYS_sendto);
			assert_int_equal(kt_join(&t), -EINTR);
			kt_becomes(kt_pinned(), 0, 0);
			assert_int_equal(send(p.a, "after", 5, 0),
					 5); /* what was taken back is not had */
			assert_int_equal(recv(p.b, got, sizeof(got), 0), 5);
			assert_memory_equal(got, "after", 5);
			assert_int_equal(recv(p.b, got, 1, MSG_DONTWAIT), -1);
			assert_int_equal(errno, EAGAIN);
			kt_close(&p);
		}
}

static void test_signal_and_a_send_that_goes_on(void **state)
{
	for
		EACH_TYPE
		{
			struct kt_pair p = pair_of(types[i]);
			struct call c = {p.a, MIB};
			struct kt_thread t;

			handle(SA_RESTART);
			kt_fill(out, MIB, 3);
			kt_start(&t, transmit, &c);
			disturb(&t, SYS_sendto);
			disturb(&t, SYS_sendto);
			assert_true(have(p.b, MIB, 3, 0));
			assert_int_equal(kt_join(&t), MIB);
			kt_refused(recv(p.b, in, 1, MSG_DONTWAIT), EAGAIN); /* once */
			kt_close(&p);
		}
}

/* Signals that come again and again do not keep a message from ever being had. */
static void test_many_signals(void **state)
{
	const struct itimerspec each = {{0, 20 * MS}, {0, 20 * MS}};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	timer_t timer;

	handle(SA_RESTART);
	for
		EACH_TYPE
		{
			struct kt_pair p = held_up(types[i], 16 * MIB, 4);

			repair();
			assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
			timer_settime(timer, 0, &each, NULL);
			assert_true(have(p.b, 16 * MIB, 4, 0));
			timer_delete(timer);
			kt_close(&p);
		}
}

/* ---- time limits ---- */

static void test_receive_with_a_limit(void **state)
{
	for
		EACH_TYPE
		{
			struct kt_pair p = held_up(types[i], MIB, 5);
			uint64_t start = kt_now_ns();

			limit(p.b, SO_RCVTIMEO, 300);
			kt_refused(recv(p.b, in, MIB, 0), EAGAIN);
			assert_in_range(kt_now_ns() - start, 250 * MS, KT_SOON_NS);
			repair();
			limit(p.b, SO_RCVTIMEO, KT_SOON_MS);
			assert_true(have(p.b, MIB, 5, 0));
			kt_close(&p);
		}
	kt_becomes(kt_pinned(), 0, 0);
}

/* A stream takes a part of it: test_taking_back.c. */
static void test_send_with_a_limit(void **state)
{
	for
		EACH_TYPE
		{
			if (types[i] == SOCK_STREAM)
				continue;
			struct kt_pair p = pair_of(types[i]);
			uint64_t start = kt_now_ns();

			limit(p.a, SO_SNDTIMEO, 300);
			kt_refused(send(p.a, out, MIB, 0), EAGAIN);
			assert_in_range(kt_now_ns() - start, 250 * MS, KT_SOON_NS);
			kt_becomes(kt_pinned(), 0, 0);
			kt_fill(out, MIB, 6);
			room(p.a, 2 * MIB);
			assert_int_equal(send(p.a, out, MIB, MSG_DONTWAIT), MIB);
			assert_true(have(p.b, MIB, 6, 0)); /* and not the one before */
			kt_close(&p);
		}
}

/* A sender is interrupted when its receiver has begun, and its bytes are held back until it waits
 * as one that cannot be interrupted. */
static struct {
	pid_t thread;
	volatile bool begun, waits;
} sender;

static bool sender_waits(void)
{
	char path[64], state = 0;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", sender.thread);
	in = fopen(path, "r");
	if (!in || fscanf(in, "%*d %*s %c", &state) != 1)
		state = 0;
	if (in)
		fclose(in);
	return state == 'D';
}

static void hold_back(struct kt_frame *f, long unused)
{
	struct bw_part part;

	memcpy(&part, f->bytes + KT_ETHERNET + sizeof(struct bw_hdr) + sizeof(struct bw_ackblk),
	       sizeof(part));
	if (kt_header(f)->type != BW_FRAME_DATA || part.kind != BW_PART_BULK || sender.waits)
		return;
	if (!sender.begun)
		syscall(SYS_tgkill, getpid(), sender.thread, SIGUSR1);
	sender.begun = true;
	sender.waits = sender_waits();
	if (!sender.waits)
		f->len = 0; /* it comes again */
}

/* A receiver that has begun may have all of it: the call waits, and says what is true. */
static void test_signal_after_the_receiver_has_begun(void **state)
{
	struct kt_relay relay;
	struct kt_pair p;
	struct sockaddr_beowire to;
	struct call c = {.bytes = MIB};
	struct kt_thread t;

	kt_relay_begin(&relay, hold_back);
	p = (struct kt_pair){.a = kt_open("a", SOCK_RDM), .b = kt_bound("b", SOCK_RDM, 0)};
	p.at_b = kt_at(p.b);
	to = kt_relayed(&p.at_b);
	assert_int_equal(kt_connect(p.a, &to), 0);
	kt_option(p.a, BEOWIRE_COPY_MAX, 1000);
	c.fd = p.b;
	sender.thread = gettid();
	sender.begun = sender.waits = false;
	kt_count_signal(SIGUSR1, 0);
	kt_fill(out, MIB, 7);
	kt_start(&t, receive, &c);
	assert_int_equal(send(p.a, out, MIB, 0), MIB);
	assert_int_equal(kt_signals, 1);
	assert_int_equal(kt_join(&t), MIB);
	assert_true(kt_filled(in, MIB, 7));
	kt_close(&p);
	kt_relay_end(&relay);
}

/* ---- who may not wait ---- */

static void test_receive_without_waiting(void **state)
{
	for
		EACH_TYPE
		{
			struct kt_pair p = held_up(types[i], 5 * MIB, 8);
			struct pollfd poller = {.fd = p.b, .events = POLLIN};

			kt_refused(recv(p.b, in, 5 * MIB, MSG_DONTWAIT), EAGAIN);
			kt_refused(recv(p.b, in, 5 * MIB, MSG_DONTWAIT), EAGAIN);
			assert_int_equal(poll(&poller, 1, 100), 0); /* it is not there yet */
			repair();
			assert_int_equal(poll(&poller, 1, KT_SOON_MS), 1);
			assert_true(have(p.b, 5 * MIB, 8, MSG_DONTWAIT));
			assert_int_equal(kt_counters(p.b).drop[0], 0);
			kt_close(&p);
		}
}

static void test_edges_without_waiting(void **state)
{
	struct kt_pair p = held_up(SOCK_RDM, MIB, 9);
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	int ep = epoll_create1(0);

	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, p.b, &event), 0);
	assert_int_equal(epoll_wait(ep, &event, 1, KT_SOON_MS), 1);
	kt_refused(recv(p.b, in, MIB, MSG_DONTWAIT), EAGAIN);
	assert_int_equal(epoll_wait(ep, &event, 1, 100), 0);
	repair();
	assert_int_equal(epoll_wait(ep, &event, 1, KT_SOON_MS), 1);
	assert_int_equal(recv(p.b, in, MIB, MSG_DONTWAIT), MIB);
	assert_true(kt_filled(in, MIB, 9));
	close(ep);
	kt_close(&p);
}

/* The next messages come behind it, in order, whoever reads. */
static void test_order_behind_what_is_fetched(void **state)
{
	struct kt_pair p = held_up(SOCK_RDM, MIB, 10);
	char got[8];

	kt_refused(recv(p.b, in, MIB, MSG_DONTWAIT), EAGAIN);
	repair();
	assert_int_equal(send(p.a, "next", 4, 0), 4);
	assert_int_equal(recv(p.b, in, MIB, 0), MIB);
	assert_true(kt_filled(in, MIB, 10));
	assert_int_equal(recv(p.b, got, sizeof(got), 0), 4);
	kt_close(&p);
}

/* The socket goes while bytes are on their way to it. */
static void test_closed_while_it_is_fetched(void **state)
{
	for
		EACH_TYPE
		{
			struct kt_pair p = held_up(types[i], MIB, 11);

			kt_refused(recv(p.b, in, MIB, MSG_DONTWAIT), EAGAIN);
			close(p.b);
			repair();
			close(p.a);
		}
	kt_becomes(kt_pinned(), 0, 0);
}

/* Cut off, thrown away and peeked at, when it has been fetched ahead. */
static void test_parts_of_what_is_fetched(void **state)
{
	struct kt_pair p = held_up(SOCK_RDM, MIB, 12);
	struct pollfd poller = {.fd = p.b, .events = POLLIN};

	kt_refused(recv(p.b, in, MIB, MSG_DONTWAIT), EAGAIN);
	repair();
	assert_int_equal(poll(&poller, 1, KT_SOON_MS), 1);
	assert_int_equal(recv(p.b, in, 100, MSG_PEEK | MSG_TRUNC), MIB);
	assert_int_equal(recv(p.b, in, 100, MSG_TRUNC), MIB);
	assert_true(kt_filled(in, 100, 12));
	kt_refused(recv(p.b, in, 1, MSG_DONTWAIT), EAGAIN);
	kt_close(&p);
	p = held_up(SOCK_STREAM, MIB, 13);
	kt_refused(recv(p.b, in, 1, MSG_DONTWAIT), EAGAIN);
	repair();
	poller.fd = p.b;
	assert_int_equal(poll(&poller, 1, KT_SOON_MS), 1);
	for (size_t done = 0; done < 16384; done += 100)
		assert_int_equal(recv(p.b, in + done, 100, MSG_WAITALL), 100);
	assert_true(kt_filled(in, 16384, 13));
	kt_close(&p);
}

/* ---- memory ---- */

static void test_room_for_copies(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);

	room(p.a, 100000);
	kt_refused(send(p.a, out, MIB, MSG_DONTWAIT), EMSGSIZE);
	assert_int_equal(send(p.a, out, 90000, MSG_DONTWAIT), 90000);
	assert_int_equal(fcntl(p.a, F_SETFL, O_NONBLOCK), 0);
	for (int i = 0; i < 2; i++) /* 2 * SO_SNDBUF is the most that is under way */
		assert_int_equal(send(p.a, out, 60000, 0), 60000);
	kt_refused(send(p.a, out, 60000, 0), EAGAIN);
	assert_int_equal(poll(&(struct pollfd){.fd = p.a, .events = POLLOUT}, 1, 0), 0);
	assert_int_equal(recv(p.b, in, MIB, 0), 90000);
	assert_int_equal(poll(&(struct pollfd){.fd = p.a, .events = POLLOUT}, 1, KT_SOON_MS), 1);
	assert_int_equal(send(p.a, out, 60000, 0), 60000);
	kt_close(&p);
}

/* A stream takes as much as there is room for, however little that is. */
static void test_little_room_for_a_stream(void **state)
{
	struct kt_pair p = pair_of(SOCK_STREAM);
	size_t sent = 0, had = 0;

	room(p.a, 2048);
	kt_fill(out, 100000, 16);
	for (int tries = 0; had < 100000 && tries < 10000; tries++) {
		ssize_t n = send(p.a, out + sent, 100000 - sent, MSG_DONTWAIT);

		assert_true(n >= 0 || errno == EAGAIN);
		sent += n > 0 ? (size_t)n : 0;
		n = recv(p.b, in + had, 100000 - had, MSG_DONTWAIT);
		assert_true(n > 0 || errno == EAGAIN);
		had += n > 0 ? (size_t)n : 0;
		if (n < 0)
			usleep(1000);
	}
	assert_int_equal(had, 100000);
	assert_true(kt_filled(in, had, 16));
	kt_close(&p);
}

/* Runs in a process whose locked memory is limited. */
static long limited(rlim_t bytes, long (*run)(void *arg), void *arg)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		const struct rlimit r = {bytes, bytes};

		if (setrlimit(RLIMIT_MEMLOCK, &r) || setresuid(4242, 4242, 4242))
			_exit(255);
		_exit((int)run(arg) & 255);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static long send_all_of_it(void *arg)
{
	const struct call *c = arg;

	return send(c->fd, out, c->bytes, 0) == (ssize_t)c->bytes ? 0 : errno;
}

static void test_long_sends_at_the_limit(void **state)
{
	struct kt_pair p = kt_couple(SOCK_RDM);
	struct call s = {p.a, 20 * MIB}, r = {p.b, 20 * MIB};
	struct kt_thread t;

	kt_fill(out, s.bytes, 14);
	kt_start(&t, receive, &r);
	assert_int_equal(limited(0, send_all_of_it, &s), 0);
	assert_int_equal(kt_join(&t), s.bytes);
	assert_true(kt_filled(in, s.bytes, 14));
	assert_int_equal(kt_counters(p.a).memlock_limited, 1);
	kt_shell("ip netns exec a sh -c 'echo 8388608 >/proc/sys/net/beowire/memory_max'");
	assert_int_equal(limited(0, send_all_of_it, &s), ENOBUFS);
	kt_shell("ip netns exec a sh -c 'echo 67108864 >/proc/sys/net/beowire/memory_max'");
	kt_close(&p);
}

static long receive_all_of_it(void *arg)
{
	const struct call *c = arg;

	return have(c->fd, c->bytes, 15, 0) ? 0 : 1;
}

/* A receiver at its limit has long messages in pieces. */
static void test_long_receives_at_the_limit(void **state)
{
	const rlim_t limits[] = {0, 6 * MIB};

	for (int i = 0; i < 2; i++) {
		struct kt_pair p = kt_couple(SOCK_RDM);
		struct call s = {p.a, 20 * MIB}, r = {p.b, 20 * MIB};
		struct kt_thread t;

		kt_fill(out, s.bytes, 15);
		kt_start(&t, transmit, &s);
		assert_int_equal(limited(limits[i], receive_all_of_it, &r), 0);
		assert_int_equal(kt_join(&t), s.bytes);
		assert_int_equal(kt_counters(p.b).memlock_limited, i == 0 ? 5 : 0);
		if (i == 0)
			assert_int_equal(kt_counters(p.b).pinned, 0);
		else
			assert_true(kt_counters(p.b).pinned >= s.bytes);
		kt_close(&p);
	}
	kt_becomes(kt_pinned(), 0, 0);
}

/* Memory in several places is pinned too, unless the pieces are small. */
static void test_scattered_memory(void **state)
{
	const size_t sizes[][4] = {{300000, 1, 700000, 48575},
				   {MIB / 4, MIB / 4, MIB / 4, MIB / 4},
				   {3000, 3000, 2000, 5}};
	struct kt_pair p = kt_couple(SOCK_RDM);
	uint64_t pinned = 0;

	kt_option(p.a, BEOWIRE_EAGER_MAX, 1000);
	kt_option(p.a, BEOWIRE_COPY_MAX, 1000);
	for (int i = 0; i < 3; i++) {
		struct iovec from[4], to[4];
		size_t whole = 0;
		struct call r;
		struct kt_thread t;

		for (int k = 0; k < 4; whole += sizes[i][k++])
			from[k] = (struct iovec){out + k * (MIB + 5000), sizes[i][k]};
		r = (struct call){p.b, whole};
		for (int k = 0, done = 0; k < 4; done += (int)sizes[i][k++])
			for (size_t n = 0; n < sizes[i][k]; n++)
				((uint8_t *)from[k].iov_base)[n] = (uint8_t)((done + n) * 7);
		memset(in, 0, whole);
		kt_start(&t, receive, &r);
		assert_int_equal(writev(p.a, from, 4), whole);
		assert_int_equal(kt_join(&t), whole);
		for (size_t n = 0; n < whole; n++)
			if (in[n] != (uint8_t)(n * 7))
				fail_msg("case %d: byte %zu of %zu", i, n, whole);
		if (i < 2) /* more if some was lost */
			assert_true(kt_counters(p.a).pinned >= pinned + whole);
		else
			assert_int_equal(kt_counters(p.a).pinned, pinned);
		assert_int_equal(kt_counters(p.a).memlock_limited, 0);
		for (int k = 0; k < 4; k++)
			to[k] = (struct iovec){in + k * (MIB + 3000), sizes[i][k]};
		kt_start(&t, transmit, &(struct call){p.a, whole});
		memset(in, 0, 4 * (MIB + 3000));
		assert_int_equal(readv(p.b, to, 4), whole);
		assert_int_equal(kt_join(&t), whole);
		for (int k = 0, done = 0; k < 4; done += (int)sizes[i][k++])
			assert_memory_equal(to[k].iov_base, out + done, sizes[i][k]);
		pinned = kt_counters(p.a).pinned;
	}
	kt_close(&p);
	kt_becomes(kt_pinned(), 0, 0);
}

/* More places than one frame can refer to. */
static void test_frames_out_of_many_places(void **state)
{
	struct kt_pair p;
	struct iovec from[256];
	struct kt_thread t;
	struct call r;

	kt_shell("for n in a b; do ip -n $n link set eth0 mtu 65000; done");
	p = kt_couple(SOCK_RDM);
	for (int i = 0; i < 256; i++)
		from[i] = (struct iovec){out + i * 12288 + 2048, 4096};
	for (int i = 0; i < 256; i++)
		for (int n = 0; n < 4096; n++)
			((uint8_t *)from[i].iov_base)[n] = (uint8_t)((i * 4096 + n) * 11 >> 3);
	r = (struct call){p.b, MIB};
	kt_start(&t, receive, &r);
	assert_int_equal(writev(p.a, from, 256), MIB);
	assert_int_equal(kt_join(&t), MIB);
	for (size_t n = 0; n < MIB; n++)
		if (in[n] != (uint8_t)(n * 11 >> 3))
			fail_msg("byte %zu", n);
	kt_close(&p);
	kt_shell("for n in a b; do ip -n $n link set eth0 mtu 9000; done");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_signal_ends_a_receive),
		kt_test(test_signal_and_a_receive_that_goes_on),
		kt_test(test_signal_ends_a_send),
		kt_test(test_signal_and_a_send_that_goes_on),
		kt_test(test_many_signals),
		kt_test(test_receive_with_a_limit),
		kt_test(test_send_with_a_limit),
		kt_test(test_signal_after_the_receiver_has_begun),
		kt_test(test_receive_without_waiting),
		kt_test(test_edges_without_waiting),
		kt_test(test_order_behind_what_is_fetched),
		kt_test(test_closed_while_it_is_fetched),
		kt_test(test_parts_of_what_is_fetched),
		kt_test(test_room_for_copies),
		kt_test(test_little_room_for_a_stream),
		kt_test(test_long_sends_at_the_limit),
		kt_test(test_long_receives_at_the_limit),
		kt_test(test_scattered_memory),
		kt_test(test_frames_out_of_many_places),
	};

	memset(out, 1, sizeof(out)); /* pages of their own: the page of zeroes is not pinned */
	return cmocka_run_group_tests(tests, kt_attach, repaired);
}
