/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The last rank gives up: it ends by exit() with an error, without MPI_Finalize. The first waits
 * for a message of anybody and must be told, by an MPI error or by the launcher's end, although
 * its peer ended in its own way. The program does not end well: the caller checks that it ends.
 */
#include "check.h"

#include <stdlib.h>

enum { EXIT_GAVE_UP = 3 };

int main(int argc, char **argv)
{
	struct check check = check_start(&argc, &argv, 2);
	int word = 0;

	check_options(argc, argv);
	MPI_Barrier(MPI_COMM_WORLD);
	if (check.rank == check.size - 1) {
		fprintf(stderr, "failed: rank %d gives up\n", check.rank);
		exit(EXIT_GAVE_UP);
	}
	MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return check_finish();
}
