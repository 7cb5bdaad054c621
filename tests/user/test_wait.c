/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What ends bw_wait(): a wake-up, which is for all threads asleep in it, a signal, or its time. */
#include "endpoint.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
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
static _Atomic bool taken;

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

#define PATIENCE (200 * BW_MS)

static _Atomic uint64_t waited; /* ns */
static int found;

static void *wait_once(void *arg)
{
	uint64_t began = bw_clock_now();

	found = bw_wait(ep, PATIENCE);
	waited = bw_clock_now() - began;
	return NULL;
}

/* Who is only to look for himself finds nothing, and waits for as long as he was to. */
static void roused__waits_on(void **state)
{
	pthread_t thread;

	setenv("BEOWIRE_WAIT", "block", 1);
	ep = endpoint_open("udp", &told);
	unsetenv("BEOWIRE_WAIT");
	assert_int_equal(pthread_create(&thread, NULL, wait_once, NULL), 0);
	for (int i = 0; i < 20; i++) {
		while (!atomic_load(&ep->sleepers) && !waited)
			usleep(20);
		bw_wait_rouse(ep);
		usleep(1000);
	}
	pthread_join(thread, NULL);
	assert_int_equal(found, 0);
	assert_true(waited >= PATIENCE);
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
		/* So that nobody looks for more in it. */
		assert_int_equal(ep->rings_seen, atomic_load(&ep->rings));
		bw_ep_wake(ep);
	}
	bw_ep_close(ep, 0);
}

/* Of two who have armed it and not looked yet one takes the wake-up in by arming it again: so one
 * thread at a time may sleep on the descriptor, as beowire.h says. */
static void wake__is_for_one_thread_at_the_descriptor(void **state)
{
	uint64_t timeout_ns;

	ep = endpoint_open("udp", &told);
	int fd = bw_ep_fd(ep);

	arm();
	arm();
	bw_ep_wake(ep);
	assert_true(readable(fd));
	assert_int_equal(bw_ep_arm(ep, &timeout_ns), -EAGAIN);
	assert_false(readable(fd));
	bw_ep_close(ep, 0);
}

static struct bw_ep *asker;
static bw_peer_no to_ep;

static void *send_later(void *arg)
{
	usleep(1000);
	assert_int_equal(bw_send(asker, to_ep, 1, 1, 1, "word", 4, 0, NULL), 1);
	return NULL;
}

/* Both have said all that they have to say, of what was sent again as well, and the program may
 * sleep on the descriptor. */
static void get_quiet(int fd)
{
	uint64_t until = bw_clock_now() + SOON_MS * BW_MS;

	do {
		assert_true(bw_clock_now() < until);
		while (bw_progress(ep) + bw_progress(asker))
			;
		arm();
	} while (readable(fd));
}

/* A socket that a peer gets after the program has asked for the descriptor ends its sleep, too. */
static void descriptor__hears_sockets_of_later(void **state)
{
	struct told other;
	int fd;

	ep = endpoint_open("udp", &told);
	fd = bw_ep_fd(ep);
	asker = endpoint_open("udp", &other);
	to_ep = endpoint_find(asker, ep);
	for (uint64_t i = 1; ep->udp.sockets < 2; i++) {
		assert_true(i < ROUNDS);
		assert_int_equal(bw_send(ep, endpoint_find(ep, asker), 1, 1, 1, "word", 4, 0, NULL),
				 1);
		endpoint_await(ep, asker, &other.messages, i);
	}
	get_quiet(fd);
	send_later(NULL);
	assert_true(readable(fd));
	endpoint_await(ep, asker, &told.messages, 1);
	bw_ep_close(asker, 0);
	bw_ep_close(ep, 0);
}

/* As with an endpoint that speaks by other links, and has just looked for datagrams in vain. */
static void looked_in_vain(void)
{
	ep->local_hot = BW_UDP_HOT;
	ep->udp_hot = 0;
	ep->udp_seen = ep->now = bw_clock_now();
	ep->udp_pause = BW_NEVER / 2;
}

/* A datagram has come. */
static void ask(int fd)
{
	send_later(NULL);
	while (!readable(fd))
		usleep(100);
}

/* Datagrams are looked for at times only. But who has slept until there was something, and finds
 * nothing by other links, looks for them at once. The helper thread has no part in it. */
static void progress__looks_for_datagrams_after_a_sleep(void **state)
{
	struct told other;
	int fd;

	ep = endpoint_open("udp", &told);
	fd = bw_ep_fd(ep);
	asker = endpoint_open("udp", &other);
	to_ep = endpoint_find(asker, ep);
	send_later(NULL);
	endpoint_await(ep, asker, &told.messages, 1);
	get_quiet(fd);
	bw_ep_lock(ep);
	arm();
	looked_in_vain();
	ask(fd);
	assert_true(bw_progress(ep) > 0);
	assert_int_equal(told.messages, 2);

	arm();
	ep->armed = false;
	looked_in_vain();
	ask(fd);
	assert_int_equal(bw_progress(ep), 0);
	ep->udp_pause = 0;
	assert_true(bw_progress(ep) > 0);
	assert_int_equal(told.messages, 3);
	bw_ep_unlock(ep);
	bw_ep_close(asker, 0);
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

/* No sleep goes beyond what the engine or a chore has to do. */
static void wait__is_limited_by_what_is_due(void **state)
{
	ep = endpoint_open("udp", &told);
	bw_ep_lock(ep);
	ep->deadline = BW_NEVER;
	assert_int_equal(bw_wait_limit(ep, 400), BW_NEVER);
	ep->deadline = 1000;
	assert_int_equal(bw_wait_limit(ep, 400), 600);
	assert_int_equal(bw_wait_limit(ep, 1000), 0);
	assert_int_equal(bw_wait_limit(ep, 2000), 0);
	ep->watch.n = 1;
	ep->watch.forget_at = 900;
	assert_int_equal(bw_wait_limit(ep, 400), 500);
	ep->has_packet = true;
	ep->watch.claim_at = 800;
	ep->links_at = BW_NEVER;
	assert_int_equal(bw_wait_limit(ep, 400), 400);
	ep->links_at = 700;
	assert_int_equal(bw_wait_limit(ep, 400), 300);
	ep->watch.claim = 0; /* we keep the watch */
	ep->watch.drain_at = 600;
	assert_int_equal(bw_wait_limit(ep, 400), 200);
	ep->watch.claim = -1;
	ep->has_packet = false;
	ep->watch.n = 0;
	bw_ep_unlock(ep);
	bw_ep_close(ep, 0);
}

/* Nor does one begin while the engine has events for the program. */
static void arm__is_refused_while_events_wait(void **state)
{
	uint64_t timeout_ns;

	ep = endpoint_open("udp", &told);
	while (bw_progress(ep))
		;
	bw_ep_lock(ep);
	ep->dirty = false;
	assert_int_equal(bw_ep_arm(ep, &timeout_ns), 0);
	ep->dirty = true;
	assert_int_equal(bw_ep_arm(ep, &timeout_ns), -EAGAIN);
	bw_ep_unlock(ep);
	bw_ep_close(ep, 0);
}

/* One wait for a message that is there, or that comes after a while. */
static void wait_for_one(bool later)
{
	uint64_t before = told.messages;
	pthread_t sender;

	if (later)
		assert_int_equal(pthread_create(&sender, NULL, send_later, NULL), 0);
	else
		send_later(NULL);
	while (told.messages == before)
		bw_wait(ep, BW_S);
	if (later)
		pthread_join(sender, NULL);
}

/* Longer where messages are near, but never longer than a sleep costs; hardly where they are far.
 * By the number of waits: what a busy machine makes of one of them does not matter. */
static void spin__follows_how_long_waits_take(void **state)
{
	const uint64_t least = 2 * BW_US, most = 50 * BW_US;
	uint64_t until = bw_clock_now() + SOON_MS * BW_MS;
	struct told other;

	ep = endpoint_open("local", &told);
	asker = endpoint_open("local", &other);
	to_ep = endpoint_find(asker, ep);
	wait_for_one(false);
	for (int target = 0; target < 4; target++) {
		uint64_t aim = target % 2 ? least : most;

		while (ep->spin_ns != aim && bw_clock_now() < until) {
			wait_for_one(target % 2);
			assert_in_range(ep->spin_ns, least, most);
		}
		assert_int_equal(ep->spin_ns, aim);
		wait_for_one(target % 2); /* and not beyond it */
		assert_in_range(ep->spin_ns, least, most);
	}
	bw_ep_close(asker, 0);
	bw_ep_close(ep, 0);
}

/* ---- one thread makes rounds while another one sleeps ---- */

/* Until a thread has made a round with the lock: some calls do with looks. */
static void rounds_of_progress(void)
{
	uint64_t before = ep->rounds;

	while (ep->rounds < before + 3)
		assert_int_equal(bw_progress(ep), 0);
}

static void short_wait(void)
{
	assert_int_equal(bw_wait(ep, BW_MS), 0);
}

static void *arm_and_sleep(void *arg)
{
	struct pollfd p = {.fd = bw_ep_fd(ep), .events = POLLIN};

	arm();
	taken = true;
	poll(&p, 1, SOON_MS);
	return NULL;
}

/* They know each other by the local link, and have no more to say. */
static void meet(struct told *other)
{
	setenv("BEOWIRE_WAIT", "block", 1);
	ep = endpoint_open("local", &told);
	unsetenv("BEOWIRE_WAIT");
	asker = endpoint_open("local", other);
	to_ep = endpoint_find(asker, ep);
	send_later(NULL);
	endpoint_await(ep, asker, &told.messages, 1);
	for (int i = 0; i < 1000; i++) {
		bw_progress(ep);
		bw_progress(asker);
	}
}

/* A thread sleeps; this one makes rounds that find nothing, and no more. Does the other one hear of
 * what comes then? */
static void sleeper_hears(void *(*sleeper)(void *), void (*rounds)(void))
{
	struct told other;
	pthread_t thread;
	bool told_again = false;

	meet(&other);
	taken = false;
	assert_int_equal(pthread_create(&thread, NULL, sleeper, NULL), 0);
	while (!atomic_load(&ep->sleepers) && !taken)
		usleep(20);
	for (int i = 0; i < 3; i++)
		rounds();
	for (int i = 0; i < 200 && !told_again; i++) {
		bw_ep_lock(ep);
		told_again = bw_local_armed(ep->local);
		bw_ep_unlock(ep);
		usleep(1000);
	}
	if (told_again)
		send_later(NULL);
	else
		bw_ep_wake(ep);
	pthread_join(thread, NULL);
	assert_true(told_again);
	bw_ep_close(asker, 0);
	bw_ep_close(ep, 0);
}

static void sleeper__hears_after_rounds_of_others(void **state)
{
	sleeper_hears(sleep_once, rounds_of_progress);
	sleeper_hears(sleep_once, short_wait);
}

static void sleeper__on_the_descriptor_hears_as_well(void **state)
{
	sleeper_hears(arm_and_sleep, rounds_of_progress);
	sleeper_hears(arm_and_sleep, short_wait);
}

/* Who has armed it himself and goes on does not sleep: peers need not ring. */
static void armed__thread_that_goes_on_is_awake(void **state)
{
	struct told other;

	meet(&other);
	bw_ep_fd(ep);
	arm();
	assert_true(bw_local_armed(ep->local));
	rounds_of_progress();
	assert_false(ep->armed);
	assert_false(bw_local_armed(ep->local));
	bw_ep_close(asker, 0);
	bw_ep_close(ep, 0);
}

/* ---- the lock that an endpoint's threads wait for ---- */

#define TURNS 200000 /* of each thread */

static struct bw_lock lock;
static uint64_t counted; /* changed with the lock alone */
static _Atomic uint32_t inside;
static _Atomic bool together;
static void *count(void *arg)
{
	for (int i = 0; i < TURNS; i++) {
		bw_lock_take(&lock);
		together = together || atomic_fetch_add(&inside, 1);
		counted++;
		atomic_fetch_sub(&inside, 1);
		bw_lock_release(&lock);
		if (i % 1000 == 0)
			sched_yield();
	}
	return NULL;
}

static void lock__is_had_by_one_thread(void **state)
{
	pthread_t thread[SLEEPERS];

	for (int i = 0; i < SLEEPERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, count, NULL), 0);
	for (int i = 0; i < SLEEPERS; i++)
		pthread_join(thread[i], NULL);
	assert_false(together);
	assert_int_equal(counted, SLEEPERS * (uint64_t)TURNS);
}

/* Who finds it free while it waits has it at once, and with nobody behind. */
static void lock__is_taken_where_it_becomes_free(void **state)
{
	for (int i = 0; i < 1000; i++) {
		bw_lock_wait(&lock);
		bw_lock_own(&lock);
		assert_int_equal(atomic_load(&lock.word), 1);
		bw_lock_release(&lock);
		assert_int_equal(atomic_load(&lock.word), 0);
	}
}

static void *take(void *arg)
{
	bw_lock_take(&lock);
	taken = true;
	bw_lock_release(&lock);
	return NULL;
}

static uint64_t processor_time(pthread_t thread)
{
	struct timespec t;
	clockid_t id;

	assert_int_equal(pthread_getcpuclockid(thread, &id), 0);
	assert_int_equal(clock_gettime(id, &t), 0);
	return (uint64_t)t.tv_sec * BW_S + (uint64_t)t.tv_nsec;
}

/* Who waits for long sleeps, however long, and is woken up when it is free: each in turn. */
static void lock__is_waited_for_asleep(void **state)
{
	pthread_t thread[SLEEPERS];
	uint64_t until, spent = 0;

	for (int round = 0; round < 20; round++) {
		int n = round % SLEEPERS + 1;

		bw_lock_take(&lock);
		taken = false;
		for (int i = 0; i < n; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, take, NULL), 0);
		until = bw_clock_now() + SOON_MS * BW_MS;
		while (atomic_load(&lock.word) != 2 && bw_clock_now() < until)
			usleep(100);
		assert_int_equal(atomic_load(&lock.word), 2);
		usleep(20000);
		for (int i = 0; i < n; i++)
			spent += processor_time(thread[i]);
		assert_false(taken);
		bw_lock_release(&lock);
		for (int i = 0; i < n; i++)
			pthread_join(thread[i], NULL);
		assert_true(taken);
		assert_int_equal(atomic_load(&lock.word), 0);
	}
	/* Of 20 times 20 ms. */
	assert_true(spent < 200 * BW_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wake__is_for_every_sleeper),
		cmocka_unit_test(wake__is_left_for_the_descriptor),
		cmocka_unit_test(roused__waits_on),
		cmocka_unit_test(wake__is_told_once_by_the_descriptor),
		cmocka_unit_test(wake__is_for_one_thread_at_the_descriptor),
		cmocka_unit_test(descriptor__hears_sockets_of_later),
		cmocka_unit_test(progress__looks_for_datagrams_after_a_sleep),
		cmocka_unit_test(wait__is_ended_by_a_signal),
		cmocka_unit_test(wait__ends_in_time),
		cmocka_unit_test(wait__is_limited_by_what_is_due),
		cmocka_unit_test(arm__is_refused_while_events_wait),
		cmocka_unit_test(spin__follows_how_long_waits_take),
		cmocka_unit_test(sleeper__hears_after_rounds_of_others),
		cmocka_unit_test(sleeper__on_the_descriptor_hears_as_well),
		cmocka_unit_test(armed__thread_that_goes_on_is_awake),
		cmocka_unit_test(lock__is_had_by_one_thread),
		cmocka_unit_test(lock__is_taken_where_it_becomes_free),
		cmocka_unit_test(lock__is_waited_for_asleep),
	};

	/* Whoever publishes its state wakes up for that as well. */
	setenv("BEOWIRE_STATUS", "off", 1);
	return cmocka_run_group_tests_name("wait", tests, NULL, NULL);
}
