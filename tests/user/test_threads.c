/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What threads may do with one endpoint at a time: send, make progress, wait, wake, ask, fork and
 * close. What handlers count here is guarded by the endpoint's lock alone, as the manual page
 * allows: ThreadSanitizer sees where that does not hold. Runs over the local link, where the tool
 * knows of no order but that of the lock, and over UDP.
 */
#include "endpoint.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SENDERS	    3
#define MESSAGES    200	   /* of each sender */
#define LONG_EVERY  20	   /* one message in so many is long */
#define LONG_BYTES  300000 /* longer than what is sent eagerly over any link */
#define SHORT_BYTES 64
#define UNDER_WAY   16 /* sends that have not ended, or senders fill the machine's memory */
#define WAITERS	    3
#define WAKES	    200
#define OPENERS	    3
#define OPENINGS    5 /* of each of them */
#ifdef __SANITIZE_ADDRESS__
/* A child inherits the locks of AddressSanitizer's allocator as they are, some of them held by
 * threads that it does not have, and waits for them in malloc(). */
#define CHILDREN 0
#else
#define CHILDREN 8
#endif
#define CHILD_S 20 /* for a child that ThreadSanitizer's allocator may hold up */

/* A long message on its way, and the buffer it is fetched into. */
struct fetch {
	uint8_t data[LONG_BYTES];
	uint64_t seed;
};

/* What an endpoint's handlers saw; guarded by its lock. */
struct seen {
	struct bw_ep *ep;
	uint64_t next[SENDERS]; /* `imm` of the next message of each sender, its tag */
	uint64_t messages, sents, pulleds;
	uint64_t wrong; /* messages out of order or damaged */
};

static struct seen at_a, at_b;
static bw_peer_no to_b;
static _Atomic bool over;
static _Atomic int under_way;

static uint8_t byte_of(uint64_t seed, uint64_t i)
{
	return (uint8_t)(seed * 31 + i + (i >> 8));
}

static void fill(uint8_t *buf, uint64_t len, uint64_t seed)
{
	for (uint64_t i = 0; i < len; i++)
		buf[i] = byte_of(seed, i);
}

static bool filled(const uint8_t *buf, uint64_t len, uint64_t seed)
{
	for (uint64_t i = 0; i < len; i++) {
		if (buf[i] != byte_of(seed, i))
			return false;
	}
	return true;
}

static void fetch(struct seen *s, const struct bw_message *m)
{
	struct fetch *f = malloc(sizeof(*f));

	assert_non_null(f);
	f->seed = m->imm;
	assert_int_equal(bw_pull(s->ep, m->peer, &m->rndv, f->data, sizeof(f->data), f), 0);
}

static void on_message(void *arg, const struct bw_message *m)
{
	struct seen *s = arg;

	s->messages++;
	s->wrong += m->tag >= SENDERS || m->imm != s->next[m->tag]++;
	if (m->envelope)
		fetch(s, m);
	else
		s->wrong += !filled(m->data, m->len, m->imm);
}

static void on_sent(void *arg, void *op, int status)
{
	struct seen *s = arg;

	s->sents++;
	s->wrong += status != 0;
	under_way -= op != NULL;
	free(op);
}

static void on_pulled(void *arg, void *op, int status, uint64_t len)
{
	struct seen *s = arg;
	struct fetch *f = op;

	s->pulleds++;
	s->wrong += status || len != LONG_BYTES || !filled(f->data, len, f->seed);
	free(f);
}

static void on_down(void *arg, bw_peer_no peer, int status)
{
}

static const struct bw_handlers handlers = {on_message, on_sent, on_pulled, on_down, NULL};

static struct bw_ep *open_one(struct seen *s)
{
	struct bw_ep_attr attr = {.handlers = &handlers, .arg = s};
	struct bw_ep *ep;
	const char *why;

	*s = (struct seen){0};
	if (bw_ep_open(&ep, &attr, &why))
		fail_msg("%s", why);
	/* A handler may run before the caller knows the endpoint. */
	bw_ep_lock(ep);
	s->ep = ep;
	bw_ep_unlock(ep);
	return ep;
}

static int setup(void **state)
{
	over = false;
	under_way = 0;
	open_one(&at_a);
	open_one(&at_b);
	to_b = endpoint_find(at_a.ep, at_b.ep);
	return 0;
}

static int teardown(void **state)
{
	bw_ep_close(at_a.ep, 10 * BW_S);
	if (at_b.ep)
		bw_ep_close(at_b.ep, 10 * BW_S);
	return 0;
}

static void start(pthread_t *threads, int n, void *(*job)(void *))
{
	for (intptr_t i = 0; i < n; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, job, (void *)i), 0);
}

static void join(pthread_t *threads, int n)
{
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

static uint64_t read_locked(struct seen *s, const uint64_t *counter)
{
	uint64_t value;

	bw_ep_lock(s->ep);
	value = *counter;
	bw_ep_unlock(s->ep);
	return value;
}

/* Rounds and sleeps in turn. */
static void make_room(int tries)
{
	if (tries % 2)
		bw_wait(at_a.ep, BW_MS);
	else
		bw_progress(at_a.ep);
}

static void say(uint64_t tag, uint64_t imm, uint64_t len)
{
	/* Freed by on_sent(), or here if the library copied it. */
	uint8_t *buf = malloc(len);
	int result, tries = 0;

	assert_non_null(buf);
	fill(buf, len, imm);
	while (under_way > UNDER_WAY)
		make_room(tries++);
	under_way++;
	while ((result = bw_send(at_a.ep, to_b, 1, tag, imm, buf, len, 0, buf)) == -EAGAIN)
		make_room(tries++);
	if (result == 0)
		return;
	assert_int_equal(result, 1);
	under_way--;
	free(buf);
}

static void *sender(void *arg)
{
	uint64_t tag = (uint64_t)(intptr_t)arg;

	for (uint64_t i = 0; i < MESSAGES; i++)
		say(tag, i, i % LONG_EVERY == LONG_EVERY / 2 ? LONG_BYTES : SHORT_BYTES);
	return NULL;
}

/* Sleeps with its look at the count under the lock, so that no wake-up is lost. */
static void *waiter(void *arg)
{
	bw_ep_lock(at_b.ep);
	while (!over)
		bw_wait(at_b.ep, UINT64_MAX);
	bw_ep_unlock(at_b.ep);
	return NULL;
}

static void *poller(void *arg)
{
	struct pollfd fd = {.fd = bw_ep_fd(at_b.ep), .events = POLLIN};
	uint64_t timeout_ns;

	while (!over) {
		if (!bw_ep_arm(at_b.ep, &timeout_ns))
			poll(&fd, 1, 1);
		bw_progress(at_b.ep);
	}
	return NULL;
}

static void *asker(void *arg)
{
	while (!over) {
		char *stats = bw_ep_stats(at_a.ep);

		assert_non_null(stats);
		free(stats);
		assert_int_equal(bw_peer_status(at_a.ep, to_b), 0);
		assert_non_null(bw_peer_describe(at_a.ep, to_b));
		bw_ep_wake(at_a.ep);
		bw_ep_wake(at_b.ep);
		usleep(500);
	}
	return NULL;
}

static void await(struct seen *s, const uint64_t *counter, uint64_t value)
{
	uint64_t until = bw_clock_now() + SOON_MS * BW_MS;

	while (read_locked(s, counter) < value && bw_clock_now() < until)
		bw_wait(s->ep, BW_MS);
	assert_int_equal(read_locked(s, counter), value);
}

static void threads__share_one_endpoint(void **state)
{
	const uint64_t all = SENDERS * MESSAGES, pulls = all / LONG_EVERY;
	pthread_t senders[SENDERS], waiters[WAITERS], others[2];

	start(waiters, WAITERS, waiter);
	start(others, 1, asker);
	start(others + 1, 1, poller);
	start(senders, SENDERS, sender);
	join(senders, SENDERS);
	await(&at_b, &at_b.messages, all);
	await(&at_b, &at_b.pulleds, pulls);
	/* Not between a waiter's look and its sleep. */
	bw_ep_lock(at_b.ep);
	over = true;
	bw_ep_unlock(at_b.ep);
	bw_ep_wake(at_b.ep);
	join(waiters, WAITERS);
	join(others, 2);
	assert_int_equal(read_locked(&at_a, &at_a.wrong), 0);
	assert_int_equal(read_locked(&at_b, &at_b.wrong), 0);
}

/* Take a's lock while its helper leaves the sockets alone, since the program makes rounds. */
static void lock_while_it_looks_up_only(void)
{
	bw_ep_lock(at_a.ep);
	while (at_a.ep->helper.serving) {
		bw_progress(at_a.ep);
		bw_ep_unlock(at_a.ep);
		usleep(100);
		bw_ep_lock(at_a.ep);
	}
}

/* Messages that wait for each other are the helper's to look after, which finds the lock taken. */
static void helper__looks_while_the_lock_is_held(void **state)
{
	for (uint64_t row = 0; row < 5; row++) {
		lock_while_it_looks_up_only();
		for (uint64_t i = 0; i < 16; i++)
			say(0, 16 * row + i, SHORT_BYTES);
		usleep(10000);
		bw_ep_unlock(at_a.ep);
		usleep(5000);
	}
	await(&at_b, &at_b.messages, 5 * 16);
	assert_int_equal(read_locked(&at_b, &at_b.wrong), 0);
}

static _Atomic uint64_t woken;

static void *sleeper(void *arg)
{
	while (!over) {
		bw_wait(at_b.ep, UINT64_MAX);
		woken++;
	}
	return NULL;
}

/* Until a thread sleeps in bw_wait(). Taken with the lock, without which it does not go on. */
static void lock_while_somebody_sleeps(void)
{
	bw_ep_lock(at_b.ep);
	while (!atomic_load(&at_b.ep->sleepers)) {
		bw_ep_unlock(at_b.ep);
		sched_yield();
		bw_ep_lock(at_b.ep);
	}
}

/* Who arms the descriptor takes the wake-up in; a thread that is asleep in bw_wait() and has not
 * run since must still find it. It may wake up for a reason of its own, too: a wake-up before it
 * calls bw_wait() again is not for that call. */
static void wake__reaches_sleepers_beside_the_descriptor(void **state)
{
	uint64_t timeout_ns, before, until;
	pthread_t thread;

	woken = 0;
	start(&thread, 1, sleeper);
	for (int i = 0; i < WAKES; i++) {
		lock_while_somebody_sleeps();
		before = woken;
		over = i == WAKES - 1;
		bw_ep_wake(at_b.ep);
		bw_ep_arm(at_b.ep, &timeout_ns);
		bw_ep_unlock(at_b.ep);
		until = bw_clock_now() + SOON_MS * BW_MS;
		while (woken == before && bw_clock_now() < until)
			sched_yield();
		assert_int_not_equal(woken, before);
	}
	join(&thread, 1);
}

static _Atomic bool closing;
static _Atomic int odd; /* a result of bw_wait() that close does not explain */

/* A wait may end for another reason while the endpoint is closed; none may begin then. */
static void *wait_until_closed(void *arg)
{
	int result;

	do
		result = bw_wait(at_b.ep, UINT64_MAX);
	while (result >= 0 && !closing);
	if (result < 0 && result != -EINVAL)
		odd = result;
	return NULL;
}

/* Asleep, spinning and in between: all of them are told, and none touches what close has freed. */
static void close__ends_the_waits_of_other_threads(void **state)
{
	pthread_t waiters[WAITERS];

	closing = false;
	odd = 0;
	start(waiters, WAITERS, wait_until_closed);
	for (uint64_t i = 0; i < 10; i++)
		say(0, i, SHORT_BYTES);
	await(&at_b, &at_b.messages, 10);
	bw_ep_lock(at_b.ep);
	while (at_b.ep->waits < WAITERS) {
		bw_ep_unlock(at_b.ep);
		usleep(100);
		bw_ep_lock(at_b.ep);
	}
	closing = true;
	bw_ep_unlock(at_b.ep);
	bw_ep_close(at_b.ep, BW_S);
	at_b.ep = NULL;
	join(waiters, WAITERS);
	assert_int_equal(odd, 0);
}

/* Of a child of this process; SIGKILL's for one that has not ended after `ns`, but 0 for as many of
 * these as may stand still. */
static int status_within(pid_t pid, uint64_t ns, int *may_stand)
{
	uint64_t until = bw_clock_now() + ns;
	int status = 0;
	pid_t ended;

	while ((ended = waitpid(pid, &status, WNOHANG)) == 0 && bw_clock_now() < until)
		usleep(1000);
	if (ended == 0) {
		print_message("a child stands still, perhaps in malloc()\n");
		kill(pid, SIGKILL);
		ended = waitpid(pid, &status, 0);
		if (WIFSIGNALED(status) && (*may_stand)-- > 0)
			status = 0;
	}
	assert_int_equal(ended, pid);
	return status;
}

/* Of a child of this process with its threads. One that waits for a lock of ThreadSanitizer's
 * allocator (gcc 12: as for AddressSanitizer above), which a thread held that it does not have,
 * says nothing; that is rare, and more than one of them stand still for another reason. */
static int status_of(pid_t pid)
{
#ifdef __SANITIZE_THREAD__
	static int may_stand = 1; /* of the children of all tests */

	assert_true(pid > 0);
	return status_within(pid, CHILD_S * BW_S, &may_stand);
#else
	int status;

	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
#endif
}

static pid_t child_that_stands_still(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	return pid;
}

/* What the tests below say would be worth nothing if any number of children could hang. */
static void status__of_a_second_child_that_stands_still_is_no_success(void **state)
{
	int may_stand = 1;

	assert_int_equal(status_within(child_that_stands_still(), 0, &may_stand), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(status_within(child_that_stands_still(), 0, &may_stand), SIGKILL);
}

/* In a child: its parent's endpoints are of no use but to be closed, and its own one works. Its
 * exit status. */
static int child(void)
{
	struct seen own = {0};
	struct bw_ep_attr attr = {.handlers = &handlers, .arg = &own, .no_helper = true};

	if (bw_send(at_a.ep, to_b, 1, 0, 0, "word", 4, 0, NULL) != -EINVAL)
		return 1;
	bw_ep_close(at_a.ep, 0);
	if (bw_ep_open(&own.ep, &attr, NULL))
		return 2;
	bw_ep_close(own.ep, 0);
	return 0;
}

static _Atomic uint64_t said;

static void *talker(void *arg)
{
	for (uint64_t i = 0; !over; i++, said++)
		say((uint64_t)(intptr_t)arg, i, i % LONG_EVERY ? SHORT_BYTES : LONG_BYTES);
	return NULL;
}

static void *opener(void *arg)
{
	struct seen own, other;

	for (int i = 0; i < OPENINGS; i++) {
		struct bw_ep *one = open_one(&own), *two = open_one(&other);
		bw_peer_no peer = endpoint_find(one, two);

		assert_int_equal(bw_send(one, peer, 1, 0, 0, "", 0, 0, NULL), 1);
		await(&other, &other.messages, 1);
		assert_int_equal(other.wrong, 0);
		bw_ep_close(two, BW_S);
		bw_ep_close(one, BW_S);
	}
	return NULL;
}

static void fork__beside_threads_that_talk(void **state)
{
	pthread_t talkers[SENDERS], other;
	pid_t pid;

	said = 0;
	start(talkers, SENDERS, talker);
	start(&other, 1, opener);
	for (int i = 0; i < CHILDREN; i++) {
		pid = fork();
		if (pid == 0)
			_exit(child());
		assert_int_equal(status_of(pid), 0);
	}
	over = true;
	join(talkers, SENDERS);
	join(&other, 1);
	await(&at_b, &at_b.messages, said);
	assert_int_equal(read_locked(&at_b, &at_b.wrong), 0);
}

/* Descriptors of this process; one more while they are counted. */
static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static int descriptors_before; /* without endpoints */

static void *come_and_go(void *arg)
{
	struct bw_ep_attr attr = {.handlers = &handlers, .no_helper = arg != NULL};
	struct bw_ep *ep;

	while (!over) {
		assert_int_equal(bw_ep_open(&ep, &attr, NULL), 0);
		bw_ep_fd(ep);
		bw_ep_close(ep, 0);
	}
	return NULL;
}

/* Whatever an endpoint of another thread is about, opening or closing: a child has none of its
 * descriptors, which would keep its names and connections alive. */
static void fork__leaves_no_descriptor_of_endpoints_that_come_and_go(void **state)
{
	pthread_t threads[OPENERS];
	pid_t pid;

	start(threads, OPENERS, come_and_go);
	for (int i = 0; i < 5 * CHILDREN; i++) {
		pid = fork();
		if (pid == 0)
			_exit(descriptors() - descriptors_before);
		assert_int_equal(status_of(pid), 0);
	}
	over = true;
	join(threads, OPENERS);
}

static void open__by_several_threads(void **state)
{
	pthread_t openers[OPENERS];

	start(openers, OPENERS, opener);
	join(openers, OPENERS);
}

static _Atomic int opened;

static void *open_for_ever(void *arg)
{
	struct bw_ep_attr attr = {.handlers = &handlers, .no_helper = true};
	struct bw_ep *ep;

	while (true) {
		if (!bw_ep_open(&ep, &attr, NULL))
			bw_ep_close(ep, 0);
		opened++;
	}
	return NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(threads__share_one_endpoint),
		TEST(helper__looks_while_the_lock_is_held),
		TEST(close__ends_the_waits_of_other_threads),
		TEST(fork__beside_threads_that_talk),
		TEST(fork__leaves_no_descriptor_of_endpoints_that_come_and_go),
		TEST(wake__reaches_sleepers_beside_the_descriptor),
		cmocka_unit_test(open__by_several_threads),
		cmocka_unit_test(status__of_a_second_child_that_stands_still_is_no_success),
	};

	pthread_t thread;
	int failed;

	/* What fails in another thread must not jump to where this one began the test. */
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	descriptors_before = descriptors();
	failed = cmocka_run_group_tests_name("threads", tests, NULL, NULL);

	/* exit() looks after endpoints that others open and close meanwhile. */
	if (pthread_create(&thread, NULL, open_for_ever, NULL))
		return 1;
	while (opened < OPENINGS)
		usleep(100);
	return failed;
}
