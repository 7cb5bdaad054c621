/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Closing an endpoint with raw frames: the kernel takes two RCU grace periods to close a packet
 * socket, and a program that may have threads does not wait for that. Needs an interface for raw
 * frames: test_user_close.py makes one.
 */
#include "endpoint.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define HOLD_MS 200

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int packets_closed; /* packet sockets */
static pthread_t closer;   /* who closed the last one */
static bool held;	   /* closing waits for a fork(), which is to wait for it in its turn */
static bool closing;	   /* it has begun to wait */

int __real_close(int fd);
int __wrap_close(int fd);

/* Until a fork() has come between, or HOLD_MS. */
static void hold(void)
{
	struct timespec until;
	int error = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += HOLD_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&mutex);
	closing = true;
	pthread_cond_broadcast(&changed);
	while (held && !error)
		error = pthread_cond_timedwait(&changed, &mutex, &until);
	pthread_mutex_unlock(&mutex);
}

/* Linked in the place of close(). */
int __wrap_close(int fd)
{
	int domain = 0, result;
	socklen_t size = sizeof(domain);
	bool packet = !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) && domain == AF_PACKET;

	if (packet)
		hold();
	result = __real_close(fd);
	if (packet) {
		pthread_mutex_lock(&mutex);
		packets_closed++;
		closer = pthread_self();
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&mutex);
	}
	return result;
}

static void await_closed(int count)
{
	pthread_mutex_lock(&mutex);
	while (packets_closed < count)
		pthread_cond_wait(&changed, &mutex);
	pthread_mutex_unlock(&mutex);
}

static void on_message(void *arg, const struct bw_message *m)
{
}

static void on_end(void *arg, void *op, int status)
{
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
}

static const struct bw_handlers handlers = {
	.message = on_message, .sent = on_end, .pulled = on_pulled, .peer_down = on_down};

static struct bw_ep *opened(bool no_helper)
{
	struct bw_ep_attr attr = {.handlers = &handlers, .no_helper = no_helper};
	const char *why;
	struct bw_ep *ep;

	if (bw_ep_open(&ep, &attr, &why))
		fail_msg("%s", why);
	assert_int_equal(ep->packets, 1);
	return ep;
}

static void close__leaves_the_packet_socket_to_a_thread(void **state)
{
	int before = packets_closed;

	bw_ep_close(opened(false), 0);
	await_closed(before + 1);
	assert_false(pthread_equal(closer, pthread_self()));
}

static void close__starts_no_thread_where_none_is_wanted(void **state)
{
	int before = packets_closed;

	bw_ep_close(opened(true), 0);
	assert_int_equal(packets_closed, before + 1);
	assert_true(pthread_equal(closer, pthread_self()));
}

/* Descriptors of packet sockets in this process. */
static int packet_sockets(void)
{
	int found = 0;

	for (int fd = 0; fd < 256; fd++) {
		int domain = 0;
		socklen_t size = sizeof(domain);

		if (!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) && domain == AF_PACKET)
			found++;
	}
	return found;
}

/* A child that kept one would get the frames of its parent's successor. fork() comes just before
 * the thread closes it, and waits. */
static void fork__waits_for_a_packet_socket_to_be_closed(void **state)
{
	int status;
	pid_t pid;

	held = true;
	closing = false;
	bw_ep_close(opened(false), 0);
	pthread_mutex_lock(&mutex);
	while (!closing)
		pthread_cond_wait(&changed, &mutex);
	pthread_mutex_unlock(&mutex);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(packet_sockets());
	pthread_mutex_lock(&mutex);
	held = false;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(close__leaves_the_packet_socket_to_a_thread),
		cmocka_unit_test(close__starts_no_thread_where_none_is_wanted),
		cmocka_unit_test(fork__waits_for_a_packet_socket_to_be_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
