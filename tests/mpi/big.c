/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Big messages, up to 64 MiB, both ways at once between rank 0 and the last rank, at odd lengths
 * and odd addresses too; every byte is checked.
 */
#include "check.h"

#include <stdlib.h>

enum tag { TAG_BIG = 1 };

static void exchange(const struct check *check, int peer, size_t bytes, size_t shift)
{
	unsigned char *out = ex_alloc(bytes + shift), *in = ex_alloc(bytes + shift);
	MPI_Status status;

	ex_pattern_fill(out + shift, bytes, bytes + (uint64_t)check->rank);
	MPI_Sendrecv(out + shift, (int)bytes, MPI_BYTE, peer, TAG_BIG, in + shift, (int)bytes,
		     MPI_BYTE, peer, TAG_BIG, MPI_COMM_WORLD, &status);
	check_status(&status, peer, TAG_BIG, bytes);
	check_pattern(in + shift, bytes, bytes + (uint64_t)peer, "big message");
	free(in);
	free(out);
}

int main(int argc, char **argv)
{
	struct check check = check_start(&argc, &argv, 2);
	size_t max = check_option(argc, argv, "--max", 64u << 20, 1u << 20, 1u << 30);
	int last = check.size - 1;

	check_options(argc, argv);
	if (check.rank == 0 || check.rank == last) {
		int peer = last - check.rank;

		for (size_t bytes = 1u << 20; bytes <= max; bytes *= 2) {
			exchange(&check, peer, bytes, 0);
			exchange(&check, peer, bytes - 1, 1);
			exchange(&check, peer, bytes - 4095, 3);
		}
	}
	return check_finish();
}
