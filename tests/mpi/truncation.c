/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A message longer than the receive: the receiver gets MPI_ERR_TRUNCATE and not one byte more than
 * it offered, the sender completes, and what is sent afterwards arrives as if nothing had been.
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum tag { TAG_LONG = 1, TAG_AFTER = 2 };

enum { GUARD_BYTES = 4096, GUARD = 0xA5 };

struct pair {
	size_t sent, offered; /* bytes */
};

static const struct pair pairs[] = {
	{8, 0},
	{8, 4},
	{1000, 999},
	{9000, 100},
	{9000, 8999},
	{65536, 4096},
	{1 << 20, 1000},
	{1 << 20, 1 << 19},
	{4 << 20, (4 << 20) - 1},
};

static int error_class(int error)
{
	int class;

	MPI_Error_class(error, &class);
	return class;
}

static void send_long(const struct pair *pair, int to, int value)
{
	unsigned char *buffer = ex_alloc(pair->sent);

	ex_pattern_fill(buffer, pair->sent, pair->sent);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Send(buffer, (int)pair->sent, MPI_BYTE, to, TAG_LONG, MPI_COMM_WORLD);
	MPI_Send(&value, 1, MPI_INT, to, TAG_AFTER, MPI_COMM_WORLD);
	free(buffer);
}

/* @posted: the receive is posted before the message is sent, else long after it came. */
static void receive_short(const struct pair *pair, int from, bool posted, int value)
{
	unsigned char *buffer = ex_alloc(pair->offered + GUARD_BYTES);
	MPI_Request request;
	MPI_Status status;
	int error, after;

	memset(buffer, GUARD, pair->offered + GUARD_BYTES);
	if (posted)
		MPI_Irecv(buffer, (int)pair->offered, MPI_BYTE, from, TAG_LONG, MPI_COMM_WORLD,
			  &request);
	MPI_Barrier(MPI_COMM_WORLD);
	if (posted) {
		error = MPI_Wait(&request, &status);
	} else {
		MPI_Probe(from, TAG_LONG, MPI_COMM_WORLD, &status);
		check_status(&status, from, TAG_LONG, pair->sent);
		error = MPI_Recv(buffer, (int)pair->offered, MPI_BYTE, from, TAG_LONG,
				 MPI_COMM_WORLD, &status);
	}
	check_that(error_class(error) == MPI_ERR_TRUNCATE,
		   "%zu bytes into %zu: error class %d instead of truncation", pair->sent,
		   pair->offered, error_class(error));
	check_untouched(buffer + pair->offered, GUARD_BYTES, GUARD, "behind a short buffer");
	error = MPI_Recv(&after, 1, MPI_INT, from, TAG_AFTER, MPI_COMM_WORLD, &status);
	check_that(error == MPI_SUCCESS && after == value, "after truncation: error %d, value %d",
		   error, after);
	free(buffer);
}

int main(int argc, char **argv)
{
	struct check check = check_start(&argc, &argv, 2);
	int last = check.size - 1;

	check_options(argc, argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int i = 0; i < 2 * (int)(sizeof(pairs) / sizeof(pairs[0])); i++) {
		if (check.rank == 0)
			receive_short(&pairs[i / 2], last, i % 2 == 0, i);
		else if (check.rank == last)
			send_long(&pairs[i / 2], 0, i);
		else
			MPI_Barrier(MPI_COMM_WORLD);
	}
	return check_finish();
}
