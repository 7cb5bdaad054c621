/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs a phase (see load_traffic.h).
 */
#include "load_traffic.h"

#include "common.h"

#include <mpi.h>
#include <time.h>

#define SPIN_NS 5000u /* a sleep that is shorter is not worth its way through the kernel */

/* In good time for all ranks. With one clock it is the same moment for all. */
static uint64_t start_choose(const struct limits *limits)
{
	const uint64_t ahead_ns = 20000000;
	uint64_t start_ns;

	MPI_Barrier(MPI_COMM_WORLD);
	start_ns = ex_now_ns() + ahead_ns;
	if (!limits->answers)
		MPI_Bcast(&start_ns, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	return start_ns;
}

static bool step(struct traffic *t, uint64_t start_ns)
{
	bool busy = receiver_step(&t->receiver, start_ns);

	busy |= sender_step(&t->sender, start_ns);
	busy |= bulk_step(&t->bulk, start_ns);
	return busy;
}

static bool done(const struct traffic *t)
{
	return t->receiver.left == 0 && sender_done(&t->sender) && bulk_done(&t->bulk);
}

/* Sleeps, but not beyond what is due next. */
static void nap(const struct traffic *t, const struct limits *limits, uint64_t ns)
{
	uint64_t next_ns = sender_next_ns(&t->sender);
	uint64_t left_ns = next_ns > ns ? next_ns - ns : 0;

	if (limits->nap_ns < left_ns)
		left_ns = limits->nap_ns;
	if (left_ns > SPIN_NS)
		ex_wait(left_ns);
}

static void opened(struct traffic *t, const struct arrangement *arrangement,
		   const struct limits *limits, int rank)
{
	/* All draw the same, so what is too much for one may not be so for all. */
	int fits = receiver_open(&t->receiver, arrangement, rank, limits->answers, MESSAGES_MAX) &&
		   sender_open(&t->sender, arrangement, rank, limits->outstanding,
			       limits->outstanding_bytes, limits->answers, MESSAGES_MAX);

	MPI_Allreduce(MPI_IN_PLACE, &fits, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (!fits)
		ex_quit(EX_EXIT_USAGE,
			"a sender would send more than %u messages; choose a shorter time or a "
			"longer gap",
			MESSAGES_MAX);
}

/* The processor time of this thread. */
static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* When a rank last looked, by the clock and by its processor time. */
struct look {
	uint64_t ns, cpu_ns;
};

static struct look look(void)
{
	return (struct look){.ns = ex_now_ns(), .cpu_ns = cpu_ns()};
}

/* Whether much time has passed since @before, and what became of it. */
static void absence_count(struct traffic *t, struct look before, struct look now)
{
	uint64_t passed_ns = now.ns - before.ns, ran_ns = now.cpu_ns - before.cpu_ns;

	if (passed_ns <= AWAY_NS)
		return;
	ran_ns = ran_ns < passed_ns ? ran_ns : passed_ns;
	t->inside_ns += ran_ns;
	t->away_ns += passed_ns - ran_ns;
}

void traffic_run(struct traffic *t, const struct arrangement *arrangement,
		 const struct limits *limits, const struct bulk *bulk, int rank)
{
	struct look before, now;
	uint64_t start_ns;

	*t = (struct traffic){.bulk = *bulk};
	opened(t, arrangement, limits, rank);
	bulk_open(&t->bulk, rank);
	start_ns = start_choose(limits);
	now = look();
	ex_wait(start_ns > now.ns ? start_ns - now.ns : 0);
	before = look();
	for (;;) {
		bool busy = step(t, start_ns);

		now = look();
		absence_count(t, before, now);
		before = now;
		if (now.ns >= start_ns + arrangement->horizon_ns && done(t))
			break;
		if (!busy && limits->nap_ns && now.ns > start_ns)
			nap(t, limits, now.ns - start_ns);
	}
	t->end_ns = now.ns - start_ns;
	MPI_Barrier(MPI_COMM_WORLD);
}

void traffic_close(struct traffic *t)
{
	sender_close(&t->sender);
	receiver_close(&t->receiver);
	bulk_close(&t->bulk);
}
