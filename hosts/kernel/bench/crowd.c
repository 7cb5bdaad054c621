/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many connections of one listener: how many exchanges of a message each way one processor makes
 * with all of them, and how many two make with half of them each. What the connections have in
 * common, as a lock, keeps the second processor from doubling the rate. Each processor has one
 * process, which holds both ends of its connections, so that nobody ever waits for a message.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define CROWD_NS     1000000000u /* how long one rate is measured */
#define CROWD_SHARES 2
#define CROWD_LIMIT  120 /* seconds, until a message is taken for lost */

struct crowd {
	struct bench_end (*pair)[2]; /* by connection and side */
	unsigned count;
	struct crowd_shared {
		atomic_uint ready;
		_Atomic uint64_t begin;
		uint64_t done[CROWD_SHARES]; /* exchanges */
	} * shared;
};

static void open_all(struct crowd *w, const struct bench_case *c, const struct bench_net *net)
{
	struct bench_end server = {.c = c, .net = net, .side = 1, .fd = -1, .listener = -1};
	uint8_t *buffer = calloc(1, c->bytes);

	if (!buffer)
		bench_fail("out of memory");
	bench_net_enter(net, 1);
	c->transport->open(&server);
	if (server.listener < 0 || listen(server.listener, (int)w->count))
		bench_fail("%s: cannot listen", c->transport->name);
	for (unsigned i = 0; i < w->count; i++) {
		struct bench_end *pair = w->pair[i];

		pair[0] = (struct bench_end){.c = c, .net = net, .fd = -1, .listener = -1};
		bench_net_enter(net, 0);
		c->transport->open(&pair[0]);
		c->transport->join(&pair[0], &server);
		pair[1] = server;
		c->transport->join(&pair[1], &pair[0]);
		pair[0].buffer = pair[1].buffer = buffer;
	}
}

static void close_all(struct crowd *w)
{
	close(w->pair[0][1].listener);
	free(w->pair[0][0].buffer);
	for (unsigned i = 0; i < w->count; i++) {
		close(w->pair[i][0].fd);
		close(w->pair[i][1].fd);
	}
}

static void exchange(struct bench_end *pair)
{
	const struct bench_transport *t = pair->c->transport;

	for (int side = 0; side < 2; side++) {
		t->send(&pair[side], pair->c->bytes);
		t->receive(&pair[!side], pair->c->bytes);
	}
}

/* One process: its share of the connections, in turn, on its processor. */
static _Noreturn void run_share(struct crowd *w, unsigned share, unsigned shares)
{
	uint64_t end, done = 0;

	alarm(CROWD_LIMIT);
	bench_pin((int)share);
	for (unsigned i = share; i < w->count; i += shares)
		exchange(w->pair[i]);
	if (atomic_fetch_add(&w->shared->ready, 1) + 1 == shares)
		atomic_store(&w->shared->begin, bench_now());
	while (!atomic_load(&w->shared->begin))
		;
	end = atomic_load(&w->shared->begin) + CROWD_NS;
	for (unsigned i = share; bench_now() < end; done++) {
		exchange(w->pair[i]);
		i += shares;
		if (i >= w->count)
			i = share;
	}
	w->shared->done[share] = done;
	_exit(0);
}

/* Exchanges in CROWD_NS. */
static uint64_t rate(struct crowd *w, unsigned shares)
{
	pid_t child[CROWD_SHARES];
	uint64_t sum = 0;
	int status;

	memset(w->shared, 0, sizeof(*w->shared));
	for (unsigned i = 0; i < shares; i++) {
		child[i] = fork();
		if (child[i] < 0)
			bench_fail("cannot start a process");
		if (!child[i])
			run_share(w, i, shares);
	}
	for (unsigned i = 0; i < shares; i++) {
		if (waitpid(child[i], &status, 0) != child[i] || status)
			bench_fail("a process of the crowd failed");
		sum += w->shared->done[i];
	}
	return sum;
}

void bench_crowd(const struct bench_case *c, const struct bench_net *net, unsigned connections,
		 uint64_t *one, uint64_t *two)
{
	const struct rlimit files = {2 * connections + 64, 2 * connections + 64};
	struct crowd w = {.count = connections};

	w.pair = calloc(connections, sizeof(*w.pair));
	w.shared = mmap(NULL, sizeof(*w.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (!w.pair || w.shared == MAP_FAILED || setrlimit(RLIMIT_NOFILE, &files))
		bench_fail("out of memory");
	bench_net_set(net, c);
	open_all(&w, c, net);
	*one = rate(&w, 1);
	*two = rate(&w, CROWD_SHARES);
	close_all(&w);
	munmap(w.shared, sizeof(*w.shared));
	free(w.pair);
}
