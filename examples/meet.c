/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The shortest job in which all ranks meet: it starts, they agree on how many they are, it ends.
 * What it takes is what starting and ending a job takes (`beowire bench start`).
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int ranks, one = 1, met = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Allreduce(&one, &met, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	if (met == ranks)
		return 0;
	fprintf(stderr, "meet: %d ranks met, of %d\n", met, ranks);
	return 1;
}
