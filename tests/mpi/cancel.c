/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cancelling receives: one that was not matched is cancelled and leaves no trace, one that was
 * matched completes as if nobody had asked, and a message goes to the next receive that fits.
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { MANY = 1000, LONG_BYTES = 1 << 20, GUARD = 0xA5 };

static bool cancel_and_wait(MPI_Request *request, MPI_Status *status)
{
	int cancelled;

	MPI_Cancel(request);
	MPI_Wait(request, status);
	MPI_Test_cancelled(status, &cancelled);
	return cancelled != 0;
}

/* Nobody sends: every receive is cancelled, also those in the middle of the queue. */
static void cancel_unmatched(void)
{
	MPI_Request *requests = ex_alloc(MANY * sizeof(*requests));
	unsigned char *buffer = ex_alloc(MANY);
	MPI_Status status;

	memset(buffer, GUARD, MANY);
	for (int i = 0; i < MANY; i++)
		MPI_Irecv(buffer + i, 1, MPI_BYTE, i % 2 ? MPI_ANY_SOURCE : 0,
			  i % 3 ? i : MPI_ANY_TAG, MPI_COMM_WORLD, &requests[i]);
	for (int i = 0; i < MANY; i++) {
		int which = (i * 7) % MANY;

		check_that(cancel_and_wait(&requests[which], &status),
			   "receive %d without a sender was not cancelled", which);
	}
	check_untouched(buffer, MANY, GUARD, "cancelled receives");
	free(buffer);
	free(requests);
}

/* Of two receives that fit the first is cancelled: the message must go to the second. */
static void next_gets_it(const struct check *check, size_t bytes)
{
	unsigned char *first = ex_alloc(bytes), *second = ex_alloc(bytes);
	MPI_Request requests[2];
	MPI_Status status;

	if (check->rank == 0) {
		memset(first, GUARD, bytes);
		MPI_Irecv(first, (int)bytes, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &requests[0]);
		MPI_Irecv(second, (int)bytes, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &requests[1]);
		check_that(cancel_and_wait(&requests[0], &status), "the first was not cancelled");
		MPI_Send(NULL, 0, MPI_BYTE, 1, 5, MPI_COMM_WORLD);
		MPI_Wait(&requests[1], &status);
		check_status(&status, 1, 4, bytes);
		check_pattern(second, bytes, bytes, "the receive after a cancelled one");
		check_untouched(first, bytes, GUARD, "a cancelled receive");
	} else if (check->rank == 1) {
		MPI_Recv(NULL, 0, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &status);
		ex_pattern_fill(first, bytes, bytes);
		MPI_Send(first, (int)bytes, MPI_BYTE, 0, 4, MPI_COMM_WORLD);
	}
	free(first);
	free(second);
}

/* The message was taken (a later one is here already): cancelling comes too late. */
static void too_late(const struct check *check, size_t bytes)
{
	unsigned char *buffer = ex_alloc(bytes);
	MPI_Request request;
	MPI_Status status;

	if (check->rank == 0)
		MPI_Irecv(buffer, (int)bytes, MPI_BYTE, 1, 6, MPI_COMM_WORLD, &request);
	MPI_Barrier(MPI_COMM_WORLD);
	if (check->rank == 1) {
		ex_pattern_fill(buffer, bytes, bytes + 1);
		MPI_Ssend(buffer, (int)bytes, MPI_BYTE, 0, 6, MPI_COMM_WORLD);
		MPI_Send(NULL, 0, MPI_BYTE, 0, 7, MPI_COMM_WORLD);
	} else if (check->rank == 0) {
		MPI_Recv(NULL, 0, MPI_BYTE, 1, 7, MPI_COMM_WORLD, &status);
		check_that(!cancel_and_wait(&request, &status), "a finished receive was cancelled");
		check_status(&status, 1, 6, bytes);
		check_pattern(buffer, bytes, bytes + 1, "a receive cancelled too late");
	}
	free(buffer);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {1, 5000, LONG_BYTES};
	struct check check = check_start(&argc, &argv, 2);

	check_options(argc, argv);
	cancel_unmatched();
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < 3; i++) {
		next_gets_it(&check, sizes[i]);
		too_late(&check, sizes[i]);
	}
	return check_finish();
}
