/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of a rank to itself, in the world and in MPI_COMM_SELF: expected, unexpected, probed,
 * synchronous, long, and many in flight, while the other ranks do the same.
 */
#include "check.h"

#include <stdlib.h>

enum { SIZE_MAX_BYTES = 4 << 20, MANY = 1000 };

static const size_t sizes[] = {0, 1, 8, 1000, 16384, 100000, SIZE_MAX_BYTES};

/* @posted: the receive comes before the send. */
static void once(MPI_Comm comm, int self, size_t bytes, bool posted, bool synchronous)
{
	unsigned char *out = ex_alloc(bytes), *in = ex_alloc(bytes);
	MPI_Request send, receive;
	MPI_Status status;

	ex_pattern_fill(out, bytes, bytes);
	if (posted)
		MPI_Irecv(in, (int)bytes, MPI_BYTE, MPI_ANY_SOURCE, 3, comm, &receive);
	if (synchronous)
		MPI_Issend(out, (int)bytes, MPI_BYTE, self, 3, comm, &send);
	else
		MPI_Isend(out, (int)bytes, MPI_BYTE, self, 3, comm, &send);
	if (!posted) {
		MPI_Probe(self, MPI_ANY_TAG, comm, &status);
		check_status(&status, self, 3, bytes);
		MPI_Irecv(in, (int)bytes, MPI_BYTE, self, 3, comm, &receive);
	}
	MPI_Wait(&receive, &status);
	check_status(&status, self, 3, bytes);
	MPI_Wait(&send, MPI_STATUS_IGNORE);
	check_pattern(in, bytes, bytes, "a message to oneself");
	free(in);
	free(out);
}

static void many(MPI_Comm comm, int self)
{
	MPI_Request *requests = ex_alloc(2 * MANY * sizeof(*requests));
	int *values = ex_alloc(2 * MANY * sizeof(*values));

	for (int i = 0; i < MANY; i++) {
		values[i] = i;
		MPI_Isend(&values[i], 1, MPI_INT, self, i, comm, &requests[i]);
	}
	for (int i = MANY - 1; i >= 0; i--)
		MPI_Irecv(&values[MANY + i], 1, MPI_INT, self, i, comm, &requests[MANY + i]);
	MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < MANY; i++)
		check_that(values[MANY + i] == i, "tag %d brought %d", i, values[MANY + i]);
	free(values);
	free(requests);
}

int main(int argc, char **argv)
{
	struct check check = check_start(&argc, &argv, 1);
	MPI_Comm comms[] = {MPI_COMM_WORLD, MPI_COMM_SELF};
	int ranks[] = {check.rank, 0};

	check_options(argc, argv);
	for (int i = 0; i < 2; i++) {
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
			for (int way = 0; way < 4; way++)
				once(comms[i], ranks[i], sizes[s], way & 1, way & 2);
		many(comms[i], ranks[i]);
	}
	return check_finish();
}
