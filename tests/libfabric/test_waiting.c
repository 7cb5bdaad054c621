// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Waiting: for completions, on descriptors, for counters and by poll sets, and being woken by the
 * endpoint's helper thread, by other threads and by signals. A lost wake-up shows as a hang, which
 * the test runner ends.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"

#define ROUNDS 300

static char buf[64];

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int setup_fd(void **state)
{
	pair_open(&(struct pair_options){.wait_obj = FI_WAIT_FD});
	return 0;
}

static int setup_none(void **state)
{
	pair_open(&(struct pair_options){.wait_obj = FI_WAIT_NONE});
	return 0;
}

/* The other end in a thread of its own, which only ever waits. */
static void *echo(void *arg)
{
	struct fi_cq_tagged_entry e;

	for (int i = 0; i < ROUNDS; i++) {
		while (fi_trecv(b.ep, buf, 8, NULL, b.peer, 1, 0, NULL))
			;
		while (fi_cq_sread(b.rx, &e, 1, NULL, -1) != 1)
			;
		if (i % 16 == 0)
			usleep(2000); /* long enough for the other end to fall asleep */
		while (fi_tinject(b.ep, buf, 8, b.peer, 2) == -FI_EAGAIN)
			;
	}
	return NULL;
}

static void sread__wakes_for_every_message(void **state)
{
	struct fi_cq_tagged_entry e;
	pthread_t thread;
	char back[8];

	assert_int_equal(pthread_create(&thread, NULL, echo, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		pair_retry(fi_trecv(a.ep, back, 8, NULL, a.peer, 2, 0, NULL));
		pair_retry(fi_tinject(a.ep, "12345678", 8, a.peer, 1));
		assert_int_equal(fi_cq_sread(a.rx, &e, 1, NULL, -1), 1);
	}
	pthread_join(thread, NULL);
}

static void *wait_for_one(void *arg)
{
	assert_int_equal(fi_cntr_wait(a.sent, 1, -1), 0);
	return NULL;
}

/* A counter is bound for something else as well while a thread sleeps on it. */
static void bind__beside_a_sleeper(void **state)
{
	pthread_t thread;
	char back[8];

	assert_int_equal(pthread_create(&thread, NULL, wait_for_one, NULL), 0);
	usleep(50000); /* it sleeps then; if not the test passes and says nothing */
	assert_int_equal(fi_ep_bind(a.ep, &a.sent->fid, FI_READ), 0);
	pair_retry(fi_trecv(b.ep, back, 8, NULL, b.peer, 1, 0, NULL));
	pair_retry(fi_tinject(a.ep, "12345678", 8, a.peer, 1));
	pair_completion(b.rx);
	pthread_join(thread, NULL);
}

static void sread__ends_with_its_time(void **state)
{
	struct fi_cq_tagged_entry e;
	uint64_t began = now_ms();

	assert_int_equal(fi_cq_sread(a.rx, &e, 1, NULL, 30), -FI_EAGAIN);
	assert_true(now_ms() - began >= 30);
	assert_int_equal(fi_cq_sread(a.rx, &e, 1, NULL, 0), -FI_EAGAIN);
	/* an error is not slept through */
	pair_retry(fi_trecv(a.ep, buf, 8, NULL, a.peer, 1, 0, buf));
	assert_int_equal(fi_cancel(&a.ep->fid, buf), 0);
	assert_int_equal(fi_cq_sread(a.rx, &e, 1, NULL, -1), -FI_EAVAIL);
	assert_int_equal(pair_error(a.rx).err, FI_ECANCELED);
}

static void *signal_later(void *arg)
{
	usleep(20000);
	fi_cq_signal(arg);
	return NULL;
}

static void signal__ends_a_sleep_now_or_the_next_one(void **state)
{
	struct fi_cq_tagged_entry e;
	pthread_t thread;

	assert_int_equal(fi_cq_signal(a.rx), 0);
	assert_int_equal(fi_cq_sread(a.rx, &e, 1, NULL, -1), -FI_EAGAIN);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(pthread_create(&thread, NULL, signal_later, a.rx), 0);
		assert_int_equal(fi_cq_sread(a.rx, &e, 1, NULL, -1), -FI_EAGAIN);
		pthread_join(thread, NULL);
	}
}

static void none__cannot_be_waited_on(void **state)
{
	struct fi_cq_tagged_entry e;
	int fd;

	assert_int_equal(fi_cq_sread(a.rx, &e, 1, NULL, 1), -FI_ENOSYS);
	assert_int_equal(fi_control(&a.rx->fid, FI_GETWAIT, &fd), -FI_ENODATA);
}

/* As a program does that waits for other things, too. */
static void wait_on_descriptor(struct fid_cq *cq, int fd)
{
	struct fid *fid = &cq->fid;
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (fi_trywait(pair_fabric, &fid, 1) == 0)
		assert_true(poll(&p, 1, -1) >= 0);
}

static void *echo_fd(void *arg)
{
	struct fi_cq_tagged_entry e;
	int fd;

	assert_int_equal(fi_control(&b.rx->fid, FI_GETWAIT, &fd), 0);
	for (int i = 0; i < ROUNDS; i++) {
		while (fi_trecv(b.ep, buf, 8, NULL, b.peer, 1, 0, NULL))
			;
		while (fi_cq_read(b.rx, &e, 1) != 1)
			wait_on_descriptor(b.rx, fd);
		if (i % 16 == 0)
			usleep(2000);
		while (fi_tinject(b.ep, buf, 8, b.peer, 2) == -FI_EAGAIN)
			;
	}
	return NULL;
}

static void descriptor__wakes_for_every_message(void **state)
{
	struct fi_cq_tagged_entry e;
	pthread_t thread;
	char back[8];
	int fd;

	assert_int_equal(fi_control(&a.rx->fid, FI_GETWAIT, &fd), 0);
	assert_int_equal(pthread_create(&thread, NULL, echo_fd, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		pair_retry(fi_trecv(a.ep, back, 8, NULL, a.peer, 2, 0, NULL));
		pair_retry(fi_tinject(a.ep, "12345678", 8, a.peer, 1));
		while (fi_cq_read(a.rx, &e, 1) != 1)
			wait_on_descriptor(a.rx, fd);
	}
	pthread_join(thread, NULL);
}

#define SOON 20000 /* looks of a millisecond or more: far beyond what it takes */

/* It may be slept on, and nothing wakes up: soon, as what came before may still be on its way. */
static bool gets_quiet(struct fid *fid, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	for (int i = 0; i < SOON; i++) {
		if (fi_trywait(pair_fabric, &fid, 1) == 0 && poll(&p, 1, 20) == 0)
			return true;
		usleep(1000);
	}
	return false;
}

static void descriptor__is_quiet_while_nothing_comes(void **state)
{
	int fd;

	assert_int_equal(fi_control(&a.rx->fid, FI_GETWAIT, &fd), 0);
	for (int i = 0; i < 5; i++)
		assert_true(gets_quiet(&a.rx->fid, fd));
}

static void *send_later(void *arg)
{
	usleep(20000);
	for (int i = 0; i < 10; i++) {
		while (fi_inject(a.ep, "x", 1, a.peer) == -FI_EAGAIN)
			;
	}
	return NULL;
}

static void counter__waits_for_a_threshold(void **state)
{
	pthread_t thread;
	uint64_t began = now_ms();

	for (int i = 0; i < 10; i++)
		pair_retry(fi_recv(b.ep, buf, 1, NULL, FI_ADDR_UNSPEC, NULL));
	assert_int_equal(fi_cntr_wait(b.received, 1, 30), -FI_ETIMEDOUT);
	assert_true(now_ms() - began >= 30);
	assert_int_equal(pthread_create(&thread, NULL, send_later, NULL), 0);
	assert_int_equal(fi_cntr_wait(b.received, 10, -1), 0);
	assert_int_equal(fi_cntr_read(b.received), 10);
	pthread_join(thread, NULL);
	/* an error ends the wait */
	pair_retry(fi_recv(b.ep, buf, 1, NULL, FI_ADDR_UNSPEC, buf));
	assert_int_equal(fi_cancel(&b.ep->fid, buf), 0);
	assert_int_equal(fi_cntr_readerr(b.received), 1);
	assert_int_equal(fi_cntr_set(b.received, 5), 0);
	assert_int_equal(fi_cntr_add(b.received, 2), 0);
	assert_int_equal(fi_cntr_read(b.received), 7);
}

static atomic_bool enough;

static void *cancel_often(void *arg)
{
	while (!atomic_load(&enough)) {
		usleep(5000);
		while (fi_recv(b.ep, buf, 1, NULL, FI_ADDR_UNSPEC, buf))
			;
		fi_cancel(&b.ep->fid, buf);
	}
	return NULL;
}

/* Who waits for a count hears of an error that comes instead. */
static void counter__an_error_ends_the_wait(void **state)
{
	pthread_t thread;

	atomic_store(&enough, false);
	assert_int_equal(pthread_create(&thread, NULL, cancel_often, NULL), 0);
	assert_int_equal(fi_cntr_wait(b.received, 10, 60000), -FI_EAVAIL);
	atomic_store(&enough, true);
	pthread_join(thread, NULL);
}

/* Nor does a program that polls the counter's descriptor sleep over one. */
static void counter__an_error_forbids_to_sleep(void **state)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_FD};
	struct fid_cntr *cntr;
	struct fid *fid;

	assert_int_equal(fi_cntr_open(pair_domain, &attr, &cntr, NULL), 0);
	fid = &cntr->fid;
	assert_int_equal(fi_trywait(pair_fabric, &fid, 1), 0);
	assert_int_equal(fi_cntr_adderr(cntr, 1), 0);
	assert_int_equal(fi_cntr_read(cntr), 0);
	assert_int_equal(fi_trywait(pair_fabric, &fid, 1), -FI_EAGAIN);
	/* once, also if nobody asks */
	assert_int_equal(fi_trywait(pair_fabric, &fid, 1), 0);
	assert_int_equal(fi_cntr_adderr(cntr, 1), 0);
	assert_int_equal(fi_cntr_readerr(cntr), 2);
	assert_int_equal(fi_trywait(pair_fabric, &fid, 1), 0);
	assert_int_equal(fi_close(fid), 0);
}

#define TWICE	 3000  /* rounds of two entries for two threads, */
#define TWICE_MS 15000 /* or so long, */
#define TWICE_AT 300   /* but so many */
#define LONG_MS	 60000 /* what nobody sleeps whom an entry wakes */

static pthread_barrier_t begin, ended;
static bool last; /* this round is; set before `ended` */

/* Takes one entry in each round, asleep until it comes. */
static void *take_one(void *arg)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = {0};

	for (int i = 0; !last; i++) {
		uint64_t since;

		pthread_barrier_wait(&begin);
		since = now_ms();
		usleep((useconds_t)(i * (arg ? 7 : 3) % 100));
		do
			assert_int_equal(fi_cq_sread(a.rx, &e, 1, NULL, LONG_MS), -FI_EAVAIL);
		while (fi_cq_readerr(a.rx, &err, 0) != 1);
		assert_true(now_ms() - since < LONG_MS / 2);
		pthread_barrier_wait(&ended);
	}
	return NULL;
}

/* Two threads sleep on the queue of two endpoints, and two entries come: each gets one. */
static void sread__wakes_as_many_as_there_are_entries(void **state)
{
	uint64_t since = now_ms();
	struct fid_ep *second;
	pthread_t thread[2];

	last = false;
	assert_int_equal(fi_endpoint(pair_domain, pair_info, &second, NULL), 0);
	assert_int_equal(fi_ep_bind(second, &a.av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(second, &a.rx->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(second), 0);
	pthread_barrier_init(&begin, NULL, 3);
	pthread_barrier_init(&ended, NULL, 3);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, take_one, i ? &begin : NULL), 0);
	for (int i = 0; !last; i++) {
		pair_retry(fi_trecv(a.ep, buf, 8, NULL, a.peer, 1, 0, &thread[0]));
		pair_retry(fi_trecv(a.ep, buf, 8, NULL, a.peer, 1, 0, &thread[1]));
		pthread_barrier_wait(&begin);
		usleep((useconds_t)(i % 150));
		fi_cancel(&a.ep->fid, &thread[0]);
		fi_cancel(&a.ep->fid, &thread[1]);
		last = i + 1 == TWICE || (i >= TWICE_AT && now_ms() - since > TWICE_MS);
		pthread_barrier_wait(&ended);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&begin);
	pthread_barrier_destroy(&ended);
	assert_int_equal(fi_close(&second->fid), 0);
}

static void *cancel(void *arg)
{
	fi_cancel(&a.ep->fid, buf);
	return NULL;
}

static void *cancel_later(void *arg)
{
	usleep(20000);
	return cancel(arg);
}

/* What another thread completes is told by the descriptor, too; then it is quiet again. */
static void descriptor__tells_of_another_threads_work(void **state)
{
	struct fi_cq_tagged_entry e;
	pthread_t thread;
	int fd;

	assert_int_equal(fi_control(&a.rx->fid, FI_GETWAIT, &fd), 0);
	for (int i = 0; i < 5; i++) {
		pair_retry(fi_trecv(a.ep, buf, 8, NULL, a.peer, 1, 0, buf));
		assert_int_equal(pthread_create(&thread, NULL, cancel_later, NULL), 0);
		while (fi_cq_read(a.rx, &e, 1) == -FI_EAGAIN)
			wait_on_descriptor(a.rx, fd);
		pthread_join(thread, NULL);
		assert_int_equal(pair_error(a.rx).err, FI_ECANCELED);
		assert_true(gets_quiet(&a.rx->fid, fd));
	}
}

/* Not only when something else wakes it: no time passes here. */
static void descriptor__tells_at_once(void **state)
{
	struct pollfd p = {.events = POLLIN};
	pthread_t thread;

	assert_int_equal(fi_control(&a.rx->fid, FI_GETWAIT, &p.fd), 0);
	for (int i = 0; i < 5; i++) {
		pair_retry(fi_trecv(a.ep, buf, 8, NULL, a.peer, 1, 0, buf));
		assert_true(gets_quiet(&a.rx->fid, p.fd));
		assert_int_equal(pthread_create(&thread, NULL, cancel, NULL), 0);
		pthread_join(thread, NULL);
		assert_int_equal(poll(&p, 1, 0), 1);
		assert_int_equal(pair_error(a.rx).err, FI_ECANCELED);
	}
}

static void poll_set__names_what_is_ready(void **state)
{
	struct fi_poll_attr attr = {0};
	struct fid_poll *set;
	void *context;

	b.rx->fid.context = &b.rx;
	assert_int_equal(fi_poll_open(pair_domain, &attr, &set), 0);
	assert_int_equal(fi_poll_add(set, &b.rx->fid, 0), 0);
	assert_int_equal(fi_poll_add(set, &b.sent->fid, 0), 0);
	assert_int_equal(fi_poll(set, &context, 1), 0);
	pair_retry(fi_recv(b.ep, buf, 1, NULL, FI_ADDR_UNSPEC, NULL));
	pair_retry(fi_inject(a.ep, "x", 1, a.peer));
	while (fi_poll(set, &context, 1) == 0)
		pair_progress();
	assert_ptr_equal(context, &b.rx);
	pair_completion(b.rx);
	/* a counter is named once for each change */
	b.sent->fid.context = &b.sent;
	for (int i = 0; i < 2; i++) {
		pair_retry(fi_inject(b.ep, "x", 1, b.peer));
		assert_int_equal(fi_poll(set, &context, 1), 1);
		assert_ptr_equal(context, &b.sent);
		assert_int_equal(fi_poll(set, &context, 1), 0);
	}
	assert_int_equal(fi_poll_del(set, &b.rx->fid, 0), 0);
	assert_int_equal(fi_close(&set->fid), 0);
}

/* Two threads on one endpoint and one queue: everything comes exactly once. */
static atomic_int taken;

static void *take(void *arg)
{
	struct fi_cq_tagged_entry e;

	while (atomic_load(&taken) < 2 * ROUNDS) {
		if (fi_cq_sread(b.rx, &e, 1, NULL, 1) == 1)
			atomic_fetch_add(&taken, 1);
	}
	return NULL;
}

static void *give(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		while (fi_trecv(b.ep, buf, 8, NULL, b.peer, 1, 0, NULL))
			;
		while (fi_tinject(a.ep, "12345678", 8, a.peer, 1) == -FI_EAGAIN)
			;
	}
	return NULL;
}

static void threads__share_an_endpoint(void **state)
{
	void *(*const jobs[])(void *) = {take, take, give, give};
	pthread_t threads[4];

	atomic_store(&taken, 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, jobs[i], NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&taken), 2 * ROUNDS);
	pair_nothing(b.rx);
	pair_count(b.received, 2 * ROUNDS);
}

/* Nobody calls anything at the receiver: its helper thread completes the transfer. */
static void progress__goes_on_without_the_receiver(void **state)
{
	static char out[1 << 20], in[1 << 20];
	struct fi_cq_tagged_entry e;

	pair_fill(out, sizeof(out), 1);
	pair_retry(fi_trecv(b.ep, in, sizeof(in), NULL, b.peer, 1, 0, NULL));
	pair_retry(fi_tsend(a.ep, out, sizeof(out), NULL, a.peer, 1, NULL));
	assert_int_equal(fi_cq_sread(a.tx, &e, 1, NULL, -1), 1);
	pair_order();
	assert_true(pair_filled(in, sizeof(in), 1));
	pair_completion(b.rx);
}

int main(void)
{
#define TEST(f, with) cmocka_unit_test_setup_teardown(f, with, pair_teardown)
	const struct CMUnitTest tests[] = {
		TEST(sread__wakes_for_every_message, pair_setup),
		TEST(sread__ends_with_its_time, pair_setup),
		TEST(signal__ends_a_sleep_now_or_the_next_one, pair_setup),
		TEST(none__cannot_be_waited_on, setup_none),
		TEST(descriptor__wakes_for_every_message, setup_fd),
		TEST(descriptor__is_quiet_while_nothing_comes, setup_fd),
		TEST(counter__waits_for_a_threshold, pair_setup),
		TEST(counter__an_error_ends_the_wait, pair_setup),
		TEST(counter__an_error_forbids_to_sleep, setup_fd),
		TEST(sread__wakes_as_many_as_there_are_entries, pair_setup),
		TEST(bind__beside_a_sleeper, pair_setup),
		TEST(descriptor__tells_of_another_threads_work, setup_fd),
		TEST(descriptor__tells_at_once, setup_fd),
		TEST(poll_set__names_what_is_ready, pair_setup),
		TEST(threads__share_an_endpoint, pair_setup),
		TEST(progress__goes_on_without_the_receiver, pair_setup),
	};

	return cmocka_run_group_tests_name("waiting", tests, NULL, NULL);
}
