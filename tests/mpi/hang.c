/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hang HOW: a job that never ends. HOW is receive (rank 0 waits for a message that nobody sends),
 * sends (ranks 0 and 1 send one another a long message, and neither receives first), or ring
 * (messages go round both ways without end, until something outside stops them).
 */
#include "check.h"

#include <string.h>
#include <unistd.h>

enum { LONG = 4 << 20, SHORT = 1000, TAG = 7 };

static unsigned char out[LONG], in[LONG];

static void receive(const struct check *check)
{
	if (check->rank == 0)
		MPI_Recv(in, SHORT, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	while (true)
		pause();
}

static void sends(const struct check *check)
{
	if (check->rank < 2)
		MPI_Send(out, LONG, MPI_BYTE, 1 - check->rank, TAG, MPI_COMM_WORLD);
	while (true)
		pause();
}

static void ring(const struct check *check)
{
	int next = (check->rank + 1) % check->size;
	int before = (check->rank + check->size - 1) % check->size;

	while (true) {
		MPI_Request all[4];

		MPI_Irecv(in, SHORT, MPI_BYTE, before, TAG, MPI_COMM_WORLD, &all[0]);
		MPI_Irecv(in + SHORT, SHORT, MPI_BYTE, next, TAG + 1, MPI_COMM_WORLD, &all[1]);
		MPI_Isend(out, SHORT, MPI_BYTE, next, TAG, MPI_COMM_WORLD, &all[2]);
		MPI_Isend(out, SHORT, MPI_BYTE, before, TAG + 1, MPI_COMM_WORLD, &all[3]);
		MPI_Waitall(4, all, MPI_STATUSES_IGNORE);
	}
}

int main(int argc, char **argv)
{
	struct check check = check_start(&argc, &argv, 2);

	check_that(argc == 2, "usage: hang receive|sends|ring");
	MPI_Barrier(MPI_COMM_WORLD);
	if (check.rank == 0) {
		printf("begun\n");
		fflush(stdout);
	}
	if (!strcmp(argv[1], "receive"))
		receive(&check);
	else if (!strcmp(argv[1], "sends"))
		sends(&check);
	else
		ring(&check);
	return 0;
}
