/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The helper thread and a program that sleeps, told by two endpoints in one process: `a` asks, `b`
 * is asked, and the test looks into b's helper to know where it stands. Runs over the local link
 * and over UDP.
 */
#include "ep.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SOON_MS	      120000 /* far beyond what anything here takes */
#define ACQUAINTED_MS 5

static struct bw_ep *a, *b;
static bw_peer_no to_b;
static _Atomic uint32_t ended, arrived;
static _Atomic bool slow_handler, in_handler;

static void on_message(void *arg, const struct bw_message *m)
{
	arrived++;
	in_handler = slow_handler;
	while (slow_handler)
		usleep(1000);
	in_handler = false;
}

static void on_sent(void *arg, void *op, int status)
{
	assert_int_equal(status, 0);
	ended++;
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
}

static const struct bw_handlers handlers = {on_message, on_sent, on_pulled, on_down, NULL};

static struct bw_ep *open_one(bool helper)
{
	struct bw_ep_attr attr = {.handlers = &handlers, .no_helper = !helper};
	struct bw_ep *ep;
	const char *why;

	if (bw_ep_open(&ep, &attr, &why))
		fail_msg("%s", why);
	return ep;
}

/* A message that ends when b's endpoint has it. */
static void ask(void)
{
	assert_int_equal(bw_send(a, to_b, 1, 1, 1, "word", 4, BW_SEND_ACKED, &to_b), 0);
}

/* a makes rounds until a counter is there. False if that takes too long. */
static bool soon(_Atomic uint32_t *counter, uint32_t value)
{
	uint64_t until = bw_clock_now() + SOON_MS * BW_MS;

	while (*counter < value && bw_clock_now() < until)
		bw_progress(a);
	return *counter >= value;
}

/* Nothing is under way to anybody, and nothing due later. */
static bool is_quiet(struct bw_ep *ep)
{
	bool quiet;

	bw_ep_lock(ep);
	quiet = ep->deadline == BW_NEVER;
	bw_ep_unlock(ep);
	return quiet;
}

static int setup(void **state)
{
	struct bw_addr addr;

	ended = 0;
	a = open_one(false);
	b = open_one(true);
	bw_ep_addr(b, &addr);
	assert_int_equal(bw_peer_find(a, &addr, &to_b), 0);
	/* They know each other, and nothing is under way: before that a always rings, and b wakes
	 * up for what is due, the search for the size of frames for one. */
	ask();
	for (uint64_t until = bw_clock_now() + ACQUAINTED_MS * BW_MS;
	     ended == 0 || bw_clock_now() < until || !is_quiet(a) || !is_quiet(b); bw_progress(b))
		bw_progress(a);
	return 0;
}

static int teardown(void **state)
{
	bw_ep_close(a, BW_S);
	bw_ep_close(b, BW_S);
	return 0;
}

enum state { AWAKE, SERVING, WATCHING };

/* Wait for a state of b's helper. */
static void await(enum state wanted)
{
	uint64_t until = bw_clock_now() + SOON_MS * BW_MS;
	enum state now;

	do {
		bw_progress(a);
		usleep(100);
		bw_ep_lock(b);
		now = !b->helper.asleep ? AWAKE : b->helper.serving ? SERVING : WATCHING;
		bw_ep_unlock(b);
	} while (now != wanted && bw_clock_now() < until);
	assert_int_equal(now, wanted);
}

static void kick(void)
{
	const uint64_t one = 1;

	assert_int_equal(write(b->helper.fd, &one, sizeof(one)), sizeof(one));
}

/* The program of b is about to sleep on its descriptor, which is silent, while the helper sleeps on
 * everything. */
static void arm(void)
{
	struct pollfd fd = {.fd = bw_ep_fd(b), .events = POLLIN};
	uint64_t timeout_ns;

	do {
		while (bw_progress(b) + bw_progress(a))
			;
		await(SERVING);
	} while (bw_ep_arm(b, &timeout_ns) || poll(&fd, 1, 0));
}

/* By the program's word or by the environment's there is none. */
static void helper__is_told_of(void **state)
{
	struct bw_ep *ep;

	assert_true(bw_ep_has_helper(b));
	assert_false(bw_ep_has_helper(a));
	setenv("BEOWIRE_HELPER", "off", 1);
	ep = open_one(true);
	unsetenv("BEOWIRE_HELPER");
	assert_false(bw_ep_has_helper(ep));
	bw_ep_close(ep, 0);
}

/* The helper wakes up for a reason of its own while the program sleeps too. It must not take along
 * what peers look at before they ring. */
static void helper__leaves_peers_to_ring_for_a_sleeping_program(void **state)
{
	struct pollfd fd = {.fd = bw_ep_fd(b), .events = POLLIN};

	arm();
	kick();
	await(WATCHING);
	assert_int_equal(poll(&fd, 1, 0), 0);
	ask();
	bw_progress(a);
	assert_int_equal(poll(&fd, 1, SOON_MS), 1);
	for (uint64_t until = bw_clock_now() + SOON_MS * BW_MS; ended < 2 && bw_clock_now() < until;
	     bw_progress(a))
		bw_progress(b);
	assert_int_equal(ended, 2);
}

/* A round of the program tells peers that nobody sleeps here, which is not true of the helper. */
static void helper__serves_after_a_single_round(void **state)
{
	for (uint32_t i = 2; i < 6; i++) {
		await(SERVING);
		bw_progress(b);
		ask();
		assert_true(soon(&ended, i));
	}
}

/* Armed, and then busy with something else: peers must not wait for it. */
static void helper__serves_a_program_that_armed_and_computes(void **state)
{
	arm();
	kick();
	await(WATCHING);
	for (uint32_t i = 2; i < 6; i++) {
		ask();
		assert_true(soon(&ended, i));
	}
}

static void on_alarm(int number)
{
}

/* A wait that a signal has ended, and no round after it. */
static void helper__serves_after_an_interrupted_wait(void **state)
{
	struct sigaction action = {.sa_handler = on_alarm};
	const struct timeval soon_after = {.tv_usec = 100000};
	const struct itimerval again = {soon_after, soon_after}, never = {0};

	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &again, NULL), 0);
	kick();
	while (bw_wait(b, UINT64_MAX) != -EINTR)
		;
	setitimer(ITIMER_REAL, &never, NULL);
	ask();
	assert_true(soon(&ended, 2));
}

static void *wait_for_one(void *arg)
{
	uint32_t before = arrived;

	while (arrived == before)
		bw_wait(b, UINT64_MAX);
	return NULL;
}

/* One thread sleeps while another one makes a single round, which ends what the first had armed. */
static void helper__wakes_a_sleeper_after_a_round_of_another_thread(void **state)
{
	pthread_t sleeper;

	assert_int_equal(pthread_create(&sleeper, NULL, wait_for_one, NULL), 0);
	while (!atomic_load(&b->sleepers))
		usleep(1000);
	await(WATCHING);
	bw_progress(b);
	usleep(10000);
	await(WATCHING);
	ask();
	assert_true(soon(&ended, 2));
	pthread_join(sleeper, NULL);
}

/* What the program sends from another thread while it sleeps is its helper's to repeat: the helper
 * knows of the new deadline. */
static void helper__sees_to_deadlines_of_a_sleeping_program(void **state)
{
	uint64_t until;

	arm();
	kick();
	await(WATCHING);
	bw_ep_lock(b);
	b->deadline = bw_clock_now() + 10 * BW_MS;
	until = b->deadline;
	bw_helper_deadline(b);
	bw_ep_unlock(b);
	for (uint64_t end = until + SOON_MS * BW_MS; bw_clock_now() < end;) {
		bw_ep_lock(b);
		bool seen = b->deadline != until;

		bw_ep_unlock(b);
		if (seen)
			return;
		usleep(1000);
	}
	fail_msg("the deadline passed unseen");
}

/* Who holds the lock from its look at what handlers set until it sleeps misses nothing. */
static void helper__stays_out_between_a_locked_look_and_the_sleep(void **state)
{
	uint64_t began;
	uint32_t before;

	await(SERVING);
	bw_ep_lock(b);
	before = arrived;
	ask();
	for (int i = 0; i < 20; i++) {
		bw_progress(a);
		usleep(1000);
	}
	assert_int_equal(arrived, before);
	began = bw_clock_now();
	while (arrived == before && bw_clock_now() < began + SOON_MS * BW_MS)
		bw_wait(b, SOON_MS * BW_MS);
	bw_ep_unlock(b);
	assert_int_equal(arrived, before + 1);
	assert_true(bw_clock_now() - began < SOON_MS * BW_MS / 2);
	assert_true(soon(&ended, 2));
}

static void *end_the_handler(void *arg)
{
	usleep(20000);
	slow_handler = false;
	return NULL;
}

/* A thread in the middle of a handler when another one forks: the child is to find the endpoint at
 * rest, since that thread will not go on there. */
static void helper__is_let_finish_before_a_fork(void **state)
{
	pthread_t ender;
	int status;
	pid_t child;

	slow_handler = true;
	await(SERVING);
	ask();
	while (!in_handler)
		bw_progress(a);
	assert_int_equal(pthread_create(&ender, NULL, end_the_handler, NULL), 0);
	child = fork();
	if (child == 0)
		_exit(in_handler);
	pthread_join(ender, NULL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(soon(&ended, 2));
}

/* The mask of blocked signals of the helper's thread, as the kernel tells it. */
static uint64_t blocked_in_helper(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned long long mask = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		char path[300], line[100], name[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", e->d_name);
		f = *e->d_name == '.' ? NULL : fopen(path, "re");
		while (f && fgets(line, sizeof(line), f)) {
			sscanf(line, "Name: %31s", name);
			if (!strcmp(name, "beowire"))
				sscanf(line, "SigBlk: %llx", &mask);
		}
		if (f)
			fclose(f);
	}
	closedir(d);
	return mask;
}

/* A handler of the program's must not find itself on another stack than its threads'. */
static void helper__takes_no_signals(void **state)
{
	static const int signals[] = {SIGINT,  SIGTERM, SIGALRM, SIGCHLD,
				      SIGUSR1, SIGUSR2, SIGPIPE, SIGHUP};
	uint64_t until = bw_clock_now() + SOON_MS * BW_MS, mask;
	sigset_t own;

	/* It has its name a moment after it was made. */
	do {
		mask = blocked_in_helper();
	} while (!mask && bw_clock_now() < until);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &own), 0);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		assert_true(mask >> (signals[i] - 1) & 1);
		assert_false(sigismember(&own, signals[i]));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(helper__is_told_of),
		TEST(helper__leaves_peers_to_ring_for_a_sleeping_program),
		TEST(helper__serves_after_a_single_round),
		TEST(helper__serves_a_program_that_armed_and_computes),
		TEST(helper__serves_after_an_interrupted_wait),
		TEST(helper__wakes_a_sleeper_after_a_round_of_another_thread),
		TEST(helper__sees_to_deadlines_of_a_sleeping_program),
		TEST(helper__stays_out_between_a_locked_look_and_the_sleep),
		TEST(helper__is_let_finish_before_a_fork),
		TEST(helper__takes_no_signals),
	};

	/* Whoever publishes its state wakes up for that as well. */
	setenv("BEOWIRE_STATUS", "off", 1);
	return cmocka_run_group_tests_name("helper", tests, NULL, NULL);
}
