/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One case: both ends are opened here, then side 1 is left to a second process, unless the case
 * wants one process with both ends. Side 0 reads the clock before and after each round trip, or
 * each row of messages that side 1 answers with one byte.
 */
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define LIMIT_S	   60	       /* for a case; a lost message would be waited for for ever */
#define BULK_BYTES (16u << 10) /* that TCP takes and delivers without waiting */

struct pair {
	const struct bench_case *c;
	struct bench_end end[2];
};

static void *room(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		bench_fail("out of memory");
	return at;
}

static void open_pair(struct pair *p, const struct bench_case *c, const struct bench_net *net)
{
	p->c = c;
	for (int side = 1; side >= 0; side--) {
		p->end[side] = (struct bench_end){
			.c = c,
			.net = net,
			.side = side,
			.fd = -1,
			.listener = -1,
			.yield = sysconf(_SC_NPROCESSORS_ONLN) < 2,
			.iov = room(BENCH_COUNT_MAX * sizeof(struct iovec)),
			.row = room(BENCH_COUNT_MAX * sizeof(struct mmsghdr)),
			.buffer = room(BENCH_BYTES_MAX),
		};
		bench_net_enter(net, side);
		c->transport->open(&p->end[side]);
	}
	c->transport->join(&p->end[0], &p->end[1]);
	bench_net_enter(net, 1);
	c->transport->join(&p->end[1], &p->end[0]);
}

static void close_pair(struct pair *p)
{
	for (int side = 0; side < 2; side++) {
		struct bench_end *end = &p->end[side];

		if (end->fd >= 0)
			close(end->fd);
		if (end->listener >= 0)
			close(end->listener);
		if (end->helper) {
			kill(end->helper, SIGKILL);
			waitpid(end->helper, NULL, 0);
		}
		munmap(end->iov, BENCH_COUNT_MAX * sizeof(struct iovec));
		munmap(end->row, BENCH_COUNT_MAX * sizeof(struct mmsghdr));
		munmap(end->buffer, BENCH_BYTES_MAX);
	}
}

static void send_message(struct bench_end *end)
{
	const struct bench_case *c = end->c;

	if (c->count)
		bench_row_send(end, c->bytes, c->count);
	else
		c->transport->send(end, c->bytes);
}

static void receive_message(struct bench_end *end)
{
	const struct bench_case *c = end->c;

	if (c->count)
		bench_row_receive(end, c->bytes, c->count);
	else
		c->transport->receive(end, c->bytes);
}

static void answer(struct bench_end *end)
{
	end->c->transport->send(end, end->c->count ? 1 : end->c->bytes);
}

static void receive_answer(struct bench_end *end)
{
	end->c->transport->receive(end, end->c->count ? 1 : end->c->bytes);
}

/* What has never been written to is one page of zeros in many places, which the kernel pins by a
 * longer way. Here, as the pages of before a fork() are still shared. */
static void fill(struct bench_end *end)
{
	memset(end->buffer + end->c->transport->head, end->side + 1, end->c->bytes);
}

/* What the second process does. It ends in a trip that is not looked at. */
static void serve(struct bench_end *end)
{
	const struct bench_case *c = end->c;

	for (unsigned i = 0; i < c->warmup + c->trips + c->profile + 1; i++) {
		receive_message(end);
		answer(end);
	}
}

/* What TCP carries beside, through the same interfaces. */
static void carry_bulk(struct pair *bulk, size_t bytes)
{
	while (bytes) {
		size_t n = bytes < BULK_BYTES ? bytes : BULK_BYTES;

		bench_send_all(&bulk->end[0], n);
		bench_receive_all(&bulk->end[1], n);
		bytes -= n;
	}
}

/* Returns when the sender's calls had returned. A row is answered only by another process. */
static uint64_t trip(struct pair *p, struct pair *bulk)
{
	bool one = p->c->wait == BENCH_ONE;
	uint64_t sent;

	send_message(&p->end[0]);
	sent = bench_now();
	if (one)
		receive_message(&p->end[1]);
	if (one && !p->c->count)
		answer(&p->end[1]);
	if (!one || !p->c->count)
		receive_answer(&p->end[0]);
	if (p->c->bulk)
		carry_bulk(bulk, p->c->bulk);
	return sent;
}

static void count(struct pair *p, int side, struct bench_counters *counters)
{
	memset(counters, 0, sizeof(*counters));
	if (p->c->transport->count)
		p->c->transport->count(&p->end[side], counters);
}

/* Turns what was read before into the growth since. */
static void count_growth(struct pair *p, int side, struct bench_counters *before)
{
	struct bench_counters now;

	count(p, side, &now);
	before->copied_tx = now.copied_tx - before->copied_tx;
	before->copied_rx = now.copied_rx - before->copied_rx;
	before->pinned = now.pinned - before->pinned;
	before->tx_frames = now.tx_frames - before->tx_frames;
	before->rx_frames = now.rx_frames - before->rx_frames;
	before->retransmits = now.retransmits - before->retransmits;
}

static void run_trips(struct pair *p, struct pair *bulk, struct bench_result *result)
{
	for (unsigned i = 0; i < p->c->warmup; i++)
		trip(p, bulk);
	count(p, 0, &result->tx);
	count(p, 1, &result->rx);
	for (unsigned i = 0; i < p->c->trips; i++) {
		uint64_t start = bench_now();

		result->sent[i] = trip(p, bulk) - start;
		result->whole[i] = bench_now() - start;
	}
	count_growth(p, 0, &result->tx);
	count_growth(p, 1, &result->rx);
	if (p->c->profile)
		bench_mark_begin();
	for (unsigned i = 0; i < p->c->profile; i++)
		trip(p, bulk);
	if (p->c->profile)
		bench_mark_end();
	trip(p, bulk);
}

void bench_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1 && sched_setaffinity(0, sizeof(set), &set))
		bench_fail("cannot choose a processor");
}

static pid_t start_server(struct bench_end *end)
{
	pid_t child = fork();

	if (child < 0)
		bench_fail("cannot start a process");
	if (child)
		return child;
	bench_pin(1);
	fill(end);
	serve(end);
	_exit(0);
}

static void wait_for(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status))
		bench_fail("the second process failed");
}

void bench_measure(const struct bench_case *c, const struct bench_net *net,
		   struct bench_result *result)
{
	static const struct bench_case beside = {.transport = &bench_tcp, .wait = BENCH_ONE};
	struct pair pair, bulk;
	pid_t child = 0;

	bench_net_set(net, c);
	open_pair(&pair, c, net);
	if (c->bulk)
		open_pair(&bulk, &beside, net);
	alarm(LIMIT_S);
	bench_pin(0);
	if (c->wait != BENCH_ONE)
		child = start_server(&pair.end[1]);
	else
		fill(&pair.end[1]);
	fill(&pair.end[0]);
	run_trips(&pair, &bulk, result);
	if (child)
		wait_for(child);
	alarm(0);
	if (c->bulk)
		close_pair(&bulk);
	close_pair(&pair);
}
