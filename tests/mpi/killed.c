/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The last rank kills itself (SIGKILL) in the middle of traffic; the others go on talking to it and
 * to each other and must be told, by an MPI error or by the launcher's end, never wait for ever.
 * The program does not end well: the caller checks that it ends, and how.
 */
#include "check.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { EXIT_TOLD = 3, BYTES = 200000 };

static void stop_if_error(const struct check *check, int error)
{
	char text[MPI_MAX_ERROR_STRING];
	int length;

	if (error == MPI_SUCCESS)
		return;
	MPI_Error_string(error, text, &length);
	fprintf(stderr, "killed: rank %d was told of the loss: %s\n", check->rank, text);
	fflush(stderr);
	_exit(EXIT_TOLD);
}

int main(int argc, char **argv)
{
	struct check check = check_start(&argc, &argv, 2);
	int rounds = (int)check_option(argc, argv, "--after", 100, 1, 1 << 20);
	int right = (check.rank + 1) % check.size;
	int left = (check.rank + check.size - 1) % check.size;
	unsigned char *out = ex_alloc(BYTES), *in = ex_alloc(BYTES);

	check_options(argc, argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int round = 0;; round++) {
		int bytes = round % 2 ? BYTES : 8;

		if (round == rounds && check.rank == check.size - 1) {
			fprintf(stderr, "killed: rank %d goes now\n", check.rank);
			fflush(stderr);
			raise(SIGKILL);
		}
		stop_if_error(&check,
			      MPI_Sendrecv(out, bytes, MPI_BYTE, right, 1, in, bytes, MPI_BYTE,
					   left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	}
}
