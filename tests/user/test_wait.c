/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What ends bw_wait(): a wake-up, which is for all threads asleep in it, a signal, or its time. */
#include "endpoint.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#define SLEEPERS 6
#define ROUNDS	 300

static struct bw_ep *ep;
static struct told told;
static pthread_barrier_t round_begins;
static _Atomic uint32_t awake;
static _Atomic bool over;

static void *sleeper(void *arg)
{
	while (true) {
		pthread_barrier_wait(&round_begins);
		if (over)
			return NULL;
		bw_wait(ep, UINT64_MAX);
		awake++;
	}
}

/* Until all have woken up. False if some have not in a time far beyond what it takes. */
static bool all_awake(void)
{
	uint64_t until = bw_clock_now() + SOON_MS * BW_MS;

	while (awake < SLEEPERS && bw_clock_now() < until)
		usleep(50);
	return awake == SLEEPERS;
}

static void wake__is_for_every_sleeper(void **state)
{
	pthread_t thread[SLEEPERS];
	bool all = true;

	setenv("BEOWIRE_WAIT", "block", 1);
	ep = endpoint_open("udp", &told);
	unsetenv("BEOWIRE_WAIT");
	pthread_barrier_init(&round_begins, NULL, SLEEPERS + 1);
	for (int i = 0; i < SLEEPERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, sleeper, NULL), 0);
	for (int i = 0; i < ROUNDS && all; i++) {
		awake = 0;
		pthread_barrier_wait(&round_begins);
		while (atomic_load(&ep->sleepers) < SLEEPERS)
			usleep(20);
		bw_ep_wake(ep);
		all = all_awake();
		while (awake < SLEEPERS) { /* nobody is left behind, so that the test ends */
			bw_ep_wake(ep);
			usleep(1000);
		}
	}
	over = true;
	pthread_barrier_wait(&round_begins);
	for (int i = 0; i < SLEEPERS; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&round_begins);
	bw_ep_close(ep, 0);
	assert_true(all);
}

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* Until the program may sleep on the descriptor. */
static void arm(void)
{
	uint64_t timeout_ns;
	int rounds = 0;

	while (bw_ep_arm(ep, &timeout_ns) == -EAGAIN && rounds++ < ROUNDS)
		bw_progress(ep);
	assert_true(rounds < ROUNDS);
}

static void *sleep_once(void *arg)
{
	bw_wait(ep, UINT64_MAX);
	return NULL;
}

/* Who is about to sleep on the descriptor, but runs only after the thread in bw_wait() has woken up
 * and gone, still finds the wake-up. */
static void wake__is_left_for_the_descriptor(void **state)
{
	pthread_t thread;

	setenv("BEOWIRE_WAIT", "block", 1);
	ep = endpoint_open("udp", &told);
	unsetenv("BEOWIRE_WAIT");
	int fd = bw_ep_fd(ep);

	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(pthread_create(&thread, NULL, sleep_once, NULL), 0);
		while (!atomic_load(&ep->sleepers))
			usleep(20);
		arm();
		assert_false(readable(fd));
		bw_ep_wake(ep);
		pthread_join(thread, NULL);
		assert_true(readable(fd));
	}
	bw_ep_close(ep, 0);
}

/* One wake-up is told once, whether the descriptor was there before or not, and its descriptor is
 * quiet afterwards. */
static void wake__is_told_once_by_the_descriptor(void **state)
{
	uint64_t timeout_ns;

	ep = endpoint_open("udp", &told);
	bw_ep_wake(ep);
	int fd = bw_ep_fd(ep);

	for (int i = 0; i < 3; i++) {
		assert_true(readable(fd));
		assert_int_equal(bw_ep_arm(ep, &timeout_ns), -EAGAIN);
		arm();
		assert_false(readable(fd));
		bw_ep_wake(ep);
	}
	bw_ep_close(ep, 0);
}

static void on_alarm(int number)
{
}

/* Nothing arrives, and nobody wakes: only the signal can end it. */
static void wait__is_ended_by_a_signal(void **state)
{
	struct sigaction action = {.sa_handler = on_alarm};
	const struct timeval soon_after = {.tv_usec = 50000};
	const struct itimerval again = {soon_after, soon_after}, never = {0};

	ep = endpoint_open("udp", &told);
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(setitimer(ITIMER_REAL, &again, NULL), 0);
		assert_int_equal(bw_wait(ep, UINT64_MAX), -EINTR);
		setitimer(ITIMER_REAL, &never, NULL);
	}
	bw_ep_close(ep, 0);
}

static void wait__ends_in_time(void **state)
{
	uint64_t began = bw_clock_now();

	ep = endpoint_open("udp", &told);
	assert_int_equal(bw_wait(ep, 20 * BW_MS), 0);
	assert_true(bw_clock_now() - began >= 20 * BW_MS);
	bw_ep_close(ep, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wake__is_for_every_sleeper),
		cmocka_unit_test(wake__is_left_for_the_descriptor),
		cmocka_unit_test(wake__is_told_once_by_the_descriptor),
		cmocka_unit_test(wait__is_ended_by_a_signal),
		cmocka_unit_test(wait__ends_in_time),
	};

	return cmocka_run_group_tests_name("wait", tests, NULL, NULL);
}
