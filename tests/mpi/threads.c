/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MPI_THREAD_MULTIPLE: four threads of each rank exchange with the same thread of the neighbour
 * ranks at once, each with its own tag; two of them use their own communicator for collectives
 * meanwhile. A message that reaches the wrong thread has the wrong content.
 */
#include "check.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 150, WINDOW = 6, SIZE_MAX_BYTES = 150000 };

struct worker {
	struct check check;
	int thread;
	MPI_Comm comm; /* of this thread's collectives */
	pthread_t handle;
};

static uint64_t message_seed(int from, int thread, int round, int index)
{
	return (uint64_t)from << 40 | (uint64_t)thread << 32 | (uint64_t)(round * WINDOW + index);
}

static size_t message_bytes(uint64_t seed)
{
	uint64_t state = ex_mix(seed);

	return check_random_size(&state, SIZE_MAX_BYTES);
}

/* A window of messages to the right neighbour, one from the left neighbour, all in flight. */
static void exchange(const struct worker *worker, int round, unsigned char *out, unsigned char *in)
{
	int size = worker->check.size, rank = worker->check.rank;
	int right = (rank + 1) % size, left = (rank + size - 1) % size;
	MPI_Request requests[2 * WINDOW];
	MPI_Status statuses[2 * WINDOW];

	for (int i = 0; i < WINDOW; i++) {
		uint64_t seed = message_seed(rank, worker->thread, round, i);
		unsigned char *to = out + (size_t)i * SIZE_MAX_BYTES;

		MPI_Irecv(in + (size_t)i * SIZE_MAX_BYTES, SIZE_MAX_BYTES, MPI_BYTE, left,
			  worker->thread, MPI_COMM_WORLD, &requests[WINDOW + i]);
		ex_pattern_fill(to, message_bytes(seed), seed);
		MPI_Isend(to, (int)message_bytes(seed), MPI_BYTE, right, worker->thread,
			  MPI_COMM_WORLD, &requests[i]);
	}
	MPI_Waitall(2 * WINDOW, requests, statuses);
	for (int i = 0; i < WINDOW; i++) {
		uint64_t seed = message_seed(left, worker->thread, round, i);

		check_status(&statuses[WINDOW + i], left, worker->thread, message_bytes(seed));
		check_pattern(in + (size_t)i * SIZE_MAX_BYTES, message_bytes(seed), seed, "thread");
	}
}

static void *work(void *argument)
{
	const struct worker *worker = argument;
	unsigned char *out = ex_alloc((size_t)WINDOW * SIZE_MAX_BYTES);
	unsigned char *in = ex_alloc((size_t)WINDOW * SIZE_MAX_BYTES);
	int size = worker->check.size;

	for (int round = 0; round < ROUNDS; round++) {
		int64_t own = round + worker->check.rank, sum;

		exchange(worker, round, out, in);
		if (worker->thread % 2)
			continue;
		MPI_Allreduce(&own, &sum, 1, MPI_INT64_T, MPI_SUM, worker->comm);
		check_that(sum == (int64_t)size * round + (int64_t)size * (size - 1) / 2,
			   "thread %d: sum %lld in round %d", worker->thread, (long long)sum,
			   round);
	}
	free(in);
	free(out);
	return NULL;
}

int main(int argc, char **argv)
{
	struct check check = check_start_threaded(&argc, &argv, 2);
	struct worker workers[THREADS];

	check_options(argc, argv);
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.check = check, .thread = i};
		MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
	}
	for (int i = 0; i < THREADS; i++)
		check_that(pthread_create(&workers[i].handle, NULL, work, &workers[i]) == 0,
			   "no thread");
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].handle, NULL);
		MPI_Comm_free(&workers[i].comm);
	}
	return check_finish();
}
