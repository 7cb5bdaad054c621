/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The last rank is stopped (SIGSTOP) for some seconds while the others send to it and wait for it:
 * nothing may be lost and nobody may be declared dead. A child process wakes it again. With
 * --together 1 all ranks are stopped at the same time, each while it waits for its neighbours.
 */
#include "check.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MESSAGES = 60, SIZE_MAX_BYTES = 200000 };

static void sleep_stopped(unsigned int seconds)
{
	pid_t self = getpid(), child = fork();

	check_that(child >= 0, "no child process");
	if (child == 0) {
		sleep(seconds);
		kill(self, SIGCONT);
		_exit(0);
	}
	raise(SIGSTOP);
	waitpid(child, NULL, 0);
}

static size_t bytes_of(int from, int index)
{
	uint64_t state = ex_mix((uint64_t)from << 32 | (uint64_t)index);

	return check_random_size(&state, SIZE_MAX_BYTES);
}

/* Every rank sends to the last one, which stops in the middle, and gets as much back. */
static void traffic(const struct check *check, int peer, unsigned int seconds)
{
	unsigned char *in = ex_alloc(SIZE_MAX_BYTES), *out = ex_alloc(SIZE_MAX_BYTES);
	int last = check->size - 1;

	for (int i = 0; i < MESSAGES; i++) {
		size_t bytes = bytes_of(check->rank, i), expected = bytes_of(peer, i);
		MPI_Status status;

		if (i == MESSAGES / 2 && check->rank == last && peer == 0 && seconds > 0)
			sleep_stopped(seconds);
		ex_pattern_fill(out, bytes, (uint64_t)check->rank << 32 | (uint64_t)i);
		MPI_Sendrecv(out, (int)bytes, MPI_BYTE, peer, i, in, (int)expected, MPI_BYTE, peer,
			     i, MPI_COMM_WORLD, &status);
		check_status(&status, peer, i, expected);
		check_pattern(in, expected, (uint64_t)peer << 32 | (uint64_t)i, "message");
	}
	free(out);
	free(in);
}

/* Each rank stops while it sends to the next one and receives from the one before. */
static void stop_together(const struct check *check, unsigned int seconds)
{
	int next = (check->rank + 1) % check->size;
	int before = (check->rank + check->size - 1) % check->size;
	size_t bytes = (size_t)16 << 20;
	unsigned char *in = ex_alloc(bytes), *out = ex_alloc(bytes);
	MPI_Request requests[2];

	ex_pattern_fill(out, bytes, (uint64_t)check->rank);
	/* Both neighbours have told their names by then. */
	MPI_Sendrecv(out, 1, MPI_BYTE, next, 1, in, 1, MPI_BYTE, before, 1, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	MPI_Sendrecv(out, 1, MPI_BYTE, before, 1, in, 1, MPI_BYTE, next, 1, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Irecv(in, (int)bytes, MPI_BYTE, before, 0, MPI_COMM_WORLD, &requests[0]);
	MPI_Isend(out, (int)bytes, MPI_BYTE, next, 0, MPI_COMM_WORLD, &requests[1]);
	sleep_stopped(seconds);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	check_pattern(in, bytes, (uint64_t)before, "message");
	free(out);
	free(in);
}

int main(int argc, char **argv)
{
	struct check check = check_start(&argc, &argv, 2);
	unsigned int seconds = (unsigned int)check_option(argc, argv, "--seconds", 30, 0, 3600);
	bool together = check_option(argc, argv, "--together", 0, 0, 1);
	int last = check.size - 1;

	check_options(argc, argv);
	if (together) {
		stop_together(&check, seconds);
	} else if (check.rank == last) {
		for (int peer = 0; peer < last; peer++)
			traffic(&check, peer, seconds);
	} else {
		traffic(&check, last, seconds);
	}
	return check_finish();
}
