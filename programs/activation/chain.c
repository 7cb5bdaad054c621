/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An event wakes a first thread, which works and wakes a second one, which works too: threads of
 * one process or two processes. The source of events waits for the end of each chain.
 */
#include "activation.h"

#include "rng.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Somebody waits here for the next number. */
struct gate {
	_Alignas(64) _Atomic uint32_t number;
	int fd; /* of an eventfd, or -1: the number is a futex */
};

struct chain {
	const struct act_settings *settings;
	struct gate first, second, end;
	uint64_t due, woke_first, left_first, woke_second, left_second;
	uint64_t queued_first; /* of the way to woke_first, in the queue of a processor */
	uint64_t sink;	       /* what the work computed */
};

static void gate_make(struct gate *gate, bool by_fd)
{
	gate->fd = by_fd ? eventfd(0, EFD_CLOEXEC) : -1;
	if (by_fd && gate->fd < 0)
		act_fail("eventfd: %s", strerror(errno));
}

static void gate_open(struct gate *gate, uint32_t number)
{
	uint64_t one = 1;

	atomic_store(&gate->number, number);
	if (gate->fd < 0)
		syscall(SYS_futex, &gate->number, FUTEX_WAKE, 1, NULL, NULL, 0);
	else if (write(gate->fd, &one, sizeof(one)) < 0)
		act_fail("eventfd: %s", strerror(errno));
}

/* Returns the clock's time at the first instructions after the wait. */
static uint64_t gate_wait(struct gate *gate, uint32_t number)
{
	static const struct timespec patience = {.tv_sec = ACT_PATIENCE};
	uint64_t got, now = 0;
	uint32_t seen;

	if (gate->fd >= 0) {
		while (read(gate->fd, &got, sizeof(got)) < 0)
			if (errno != EINTR)
				act_fail("eventfd: %s", strerror(errno));
		return bw_clock_now();
	}
	while ((seen = atomic_load(&gate->number)) != number) {
		long r = syscall(SYS_futex, &gate->number, FUTEX_WAIT, seen, &patience, NULL, 0);

		now = bw_clock_now();
		if (r < 0 && errno == ETIMEDOUT)
			act_fail("nobody woke a thread for %d s", ACT_PATIENCE);
	}
	return now ? now : bw_clock_now();
}

static uint32_t chain_length(const struct chain *chain)
{
	return chain->settings->warm + chain->settings->count;
}

/* The account of a thread as it was at a time. */
struct look {
	uint64_t queued, at;
};

static struct look look(const struct act_account *account)
{
	uint64_t queued = act_account_queued(account);

	return (struct look){queued, bw_clock_now()};
}

/* The account when the event was due: of a thread that looked only later, as it had stood in the
 * queue, that was the last it did. `before` is the account at the event before. */
static uint64_t queued_until(uint64_t due, uint64_t before, struct look before_wait)
{
	uint64_t late = before_wait.at > due ? before_wait.at - due : 0;

	return before_wait.queued - before > late ? before_wait.queued - late : before;
}

static void *first_main(void *arg)
{
	struct chain *chain = arg;
	bool timer = chain->settings->event == ACT_TIMER;
	struct act_account account;
	struct look before_wait, woken;
	uint64_t before;

	act_account_open(&account);
	before = act_account_queued(&account);
	prctl(PR_SET_TIMERSLACK, 1); /* else the timer may be 50 us late on purpose */
	act_take_place(chain->settings, ACT_FIRST);
	for (uint32_t i = 1; i <= chain_length(chain); i++) {
		before_wait = look(&account);
		chain->woke_first = gate_wait(&chain->first, i);
		if (timer) { /* the gate only told when the event is due */
			before_wait = look(&account);
			bw_clock_sleep(chain->due);
			chain->woke_first = bw_clock_now();
		}
		woken = look(&account);
		chain->queued_first = woken.queued - queued_until(chain->due, before, before_wait);
		before = woken.queued;
		chain->sink ^= act_work(chain->settings->work);
		chain->left_first = bw_clock_now();
		gate_open(&chain->second, i);
	}
	return NULL;
}

static void *second_main(void *arg)
{
	struct chain *chain = arg;

	act_take_place(chain->settings, ACT_SECOND);
	for (uint32_t i = 1; i <= chain_length(chain); i++) {
		chain->woke_second = gate_wait(&chain->second, i);
		chain->sink ^= act_work(chain->settings->work);
		chain->left_second = bw_clock_now();
		gate_open(&chain->end, i);
	}
	return NULL;
}

static pid_t process(void *(*main)(void *), struct chain *chain)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		act_fail("fork: %s", strerror(errno));
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	main(chain);
	_exit(0);
}

/* Between half of the interval and one and a half: nothing periodic keeps step with it. */
static uint64_t pause_ns(const struct act_settings *settings, struct sim_rng *rng)
{
	return settings->interval_ns / 2 + sim_below(rng, settings->interval_ns + 1);
}

static void events(struct chain *chain, struct act_samples *samples)
{
	const struct act_settings *s = chain->settings;
	struct sim_rng rng = {.state = 1};

	act_take_place(s, ACT_SOURCE);
	for (uint32_t i = 1; i <= chain_length(chain); i++) {
		uint64_t at = bw_clock_now() + pause_ns(s, &rng);

		if (s->event == ACT_TIMER) {
			chain->due = at;
		} else {
			bw_clock_sleep(at);
			chain->due = bw_clock_now();
		}
		gate_open(&chain->first, i);
		gate_wait(&chain->end, i);
		if (i <= s->warm)
			continue;
		act_samples_add(&samples[0], chain->due, chain->woke_first);
		act_samples_add(&samples[1], chain->left_first, chain->woke_second);
		act_samples_add(&samples[2], chain->due, chain->left_second);
		act_samples_put(&samples[3], chain->queued_first);
	}
}

static void with_threads(struct chain *chain, struct act_samples *samples)
{
	pthread_t first, second;

	if (pthread_create(&first, NULL, first_main, chain) ||
	    pthread_create(&second, NULL, second_main, chain))
		act_fail("no threads");
	events(chain, samples);
	pthread_join(first, NULL);
	pthread_join(second, NULL);
}

static void with_processes(struct chain *chain, struct act_samples *samples)
{
	pid_t pid[2] = {process(first_main, chain), process(second_main, chain)};
	int status;

	events(chain, samples);
	for (int i = 0; i < 2; i++)
		if (waitpid(pid[i], &status, 0) < 0 || status)
			act_fail("a process of the chain failed");
}

void act_chain(const struct act_settings *settings)
{
	static const char *const events_by[] = {"timer", "futex", "eventfd"};
	struct act_samples samples[4];
	struct chain *chain = mmap(NULL, sizeof(*chain), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (chain == MAP_FAILED)
		act_fail("no memory");
	chain->settings = settings;
	gate_make(&chain->first, settings->event == ACT_EVENTFD);
	gate_make(&chain->second, settings->event == ACT_EVENTFD);
	gate_make(&chain->end, settings->event == ACT_EVENTFD);
	act_samples_make(&samples[0], "first_ns", settings->count);
	act_samples_make(&samples[1], "second_ns", settings->count);
	act_samples_make(&samples[2], "whole_ns", settings->count);
	act_samples_make(&samples[3], "queued_ns", settings->count);
	if (settings->processes)
		with_processes(chain, samples);
	else
		with_threads(chain, samples);
	printf("{\"scope\": \"%s\", \"event\": \"%s\", \"work\": %u, ",
	       settings->processes ? "processes" : "threads", events_by[settings->event],
	       settings->work);
	act_clock_print();
	for (int i = 0; i < 4; i++)
		act_samples_print(&samples[i]);
	printf("}\n");
}
