/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Overlap: rank 0 starts to send a long message and then computes without calling MPI until it sees
 * (by a file, not by MPI) that the last rank has all of it. Where messages move only inside MPI
 * calls, it sees nothing until it gives up; with --require that is a failure. Ranks 0 and last
 * must share the directory of the file.
 */
#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum tag { TAG_DATA = 1, TAG_GO = 2 };

enum { PATH_BYTES = 64 };

/* Computes until the file at @path is there, at most @limit_s seconds; false if it never came. */
static bool compute_until(const char *path, uint64_t limit_s)
{
	uint64_t end_ns = ex_now_ns() + limit_s * 1000000000u, sum = 0;

	while (access(path, F_OK) != 0) {
		if (ex_now_ns() > end_ns)
			return false;
		for (int i = 0; i < 100000; i++)
			sum = ex_mix(sum);
	}
	check_that(sum != 1, "the sum cannot be left out");
	return true;
}

static bool send_and_compute(int to, const char *path, size_t bytes, uint64_t limit_s)
{
	unsigned char *data = ex_alloc(bytes);
	MPI_Request request;
	bool overlapped;

	ex_pattern_fill(data, bytes, bytes);
	MPI_Recv(NULL, 0, MPI_BYTE, to, TAG_GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Isend(data, (int)bytes, MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD, &request);
	overlapped = compute_until(path, limit_s);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	free(data);
	return overlapped;
}

static void receive_and_tell(const char *path, size_t bytes)
{
	unsigned char *data = ex_alloc(bytes);
	MPI_Request request;
	MPI_Status status;
	FILE *file;

	MPI_Irecv(data, (int)bytes, MPI_BYTE, 0, TAG_DATA, MPI_COMM_WORLD, &request);
	MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_GO, MPI_COMM_WORLD);
	MPI_Wait(&request, &status);
	check_status(&status, 0, TAG_DATA, bytes);
	check_pattern(data, bytes, bytes, "message");
	file = fopen(path, "w");
	check_that(file, "cannot write %s: %s", path, strerror(errno));
	fclose(file);
	free(data);
}

int main(int argc, char **argv)
{
	struct check check = check_start(&argc, &argv, 2);
	size_t bytes = check_option(argc, argv, "--bytes", 32u << 20, 1, 1u << 30);
	uint64_t limit_s = check_option(argc, argv, "--limit", 20, 1, 3600);
	bool require = check_option(argc, argv, "--require", 0, 0, 1);
	int last = check.size - 1;
	char path[PATH_BYTES] = {0};

	check_options(argc, argv);
	if (check.rank == 0)
		snprintf(path, sizeof(path), "/tmp/beowire-overlap-%ld-%llx", (long)getpid(),
			 (unsigned long long)ex_now_ns());
	MPI_Bcast(path, sizeof(path), MPI_CHAR, 0, MPI_COMM_WORLD);
	if (check.rank == 0) {
		bool overlapped = send_and_compute(last, path, bytes, limit_s);

		printf("overlap: the message %s while its sender computed\n",
		       overlapped ? "arrived" : "did not arrive");
		check_that(overlapped || !require, "no overlap within %llu s",
			   (unsigned long long)limit_s);
	} else if (check.rank == last) {
		receive_and_tell(path, bytes);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (check.rank == 0)
		unlink(path);
	return check_finish();
}
