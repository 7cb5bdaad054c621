/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The send modes: a synchronous send completes only once its receive has begun, a buffered one
 * without any receive, a ready one into a posted receive; persistent requests start again and
 * again; Sendrecv_replace swaps in place.
 */
#include "check.h"

#include <stdlib.h>

enum tag { TAG_DATA = 1, TAG_GO = 2 };

enum { SIZES = 4, ROUNDS = 20, SIZE_MAX_BYTES = 1 << 20 };

static const int sizes[SIZES] = {0, 8, 9000, SIZE_MAX_BYTES};

/*
 * The receiver posts nothing until it is told to: up to then the synchronous send must not be
 * complete, however often it is tested.
 */
static void synchronous(const struct check *check, int peer, int bytes)
{
	unsigned char *buffer = ex_alloc((size_t)bytes);
	MPI_Request request;
	MPI_Status status;
	int done;

	if (check->rank == 0) {
		ex_pattern_fill(buffer, (size_t)bytes, 1);
		MPI_Issend(buffer, bytes, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD, &request);
		double until_s = MPI_Wtime() + 0.02;

		for (int i = 0; i < 2000 || MPI_Wtime() < until_s; i++) {
			MPI_Test(&request, &done, MPI_STATUS_IGNORE);
			check_that(!done, "a synchronous send of %d bytes ended unreceived", bytes);
		}
		MPI_Send(NULL, 0, MPI_BYTE, peer, TAG_GO, MPI_COMM_WORLD);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG_GO, MPI_COMM_WORLD, &status);
		MPI_Recv(buffer, bytes, MPI_BYTE, 0, TAG_DATA, MPI_COMM_WORLD, &status);
		check_status(&status, 0, TAG_DATA, (size_t)bytes);
		check_pattern(buffer, (size_t)bytes, 1, "synchronous");
	}
	free(buffer);
}

/* All buffered sends end before the first receive, and the sender's memory is free at once. */
static void buffered(const struct check *check, int peer, int bytes)
{
	unsigned char *buffer = ex_alloc((size_t)bytes);
	int attached_bytes = ROUNDS * (bytes + MPI_BSEND_OVERHEAD + 64);
	void *attached = ex_alloc((size_t)attached_bytes);
	MPI_Status status;

	if (check->rank == 0) {
		MPI_Buffer_attach(attached, attached_bytes);
		for (int i = 0; i < ROUNDS; i++) {
			ex_pattern_fill(buffer, (size_t)bytes, (uint64_t)i);
			MPI_Bsend(buffer, bytes, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD);
		}
		MPI_Send(NULL, 0, MPI_BYTE, peer, TAG_GO, MPI_COMM_WORLD);
		MPI_Buffer_detach(&attached, &attached_bytes);
	} else {
		MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG_GO, MPI_COMM_WORLD, &status);
		for (int i = 0; i < ROUNDS; i++) {
			MPI_Recv(buffer, bytes, MPI_BYTE, 0, TAG_DATA, MPI_COMM_WORLD, &status);
			check_status(&status, 0, TAG_DATA, (size_t)bytes);
			check_pattern(buffer, (size_t)bytes, (uint64_t)i, "buffered");
		}
	}
	free(attached);
	free(buffer);
}

static void ready(const struct check *check, int peer, int bytes)
{
	unsigned char *buffer = ex_alloc((size_t)bytes);
	MPI_Request request;
	MPI_Status status;

	if (check->rank == 0) {
		ex_pattern_fill(buffer, (size_t)bytes, 2);
		MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG_GO, MPI_COMM_WORLD, &status);
		MPI_Rsend(buffer, bytes, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD);
	} else {
		MPI_Irecv(buffer, bytes, MPI_BYTE, 0, TAG_DATA, MPI_COMM_WORLD, &request);
		MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_GO, MPI_COMM_WORLD);
		MPI_Wait(&request, &status);
		check_status(&status, 0, TAG_DATA, (size_t)bytes);
		check_pattern(buffer, (size_t)bytes, 2, "ready");
	}
	free(buffer);
}

/* Both sides send and receive by persistent requests, new content in each round. */
static void persistent(const struct check *check, int peer, int bytes)
{
	unsigned char *out = ex_alloc((size_t)bytes), *in = ex_alloc((size_t)bytes);
	MPI_Request requests[2];

	MPI_Send_init(out, bytes, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD, &requests[0]);
	MPI_Recv_init(in, bytes, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD, &requests[1]);
	for (int i = 0; i < ROUNDS; i++) {
		ex_pattern_fill(out, (size_t)bytes, (uint64_t)(i * 2 + (check->rank == 0)));
		MPI_Startall(2, requests);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
		check_pattern(in, (size_t)bytes, (uint64_t)(i * 2 + (check->rank != 0)),
			      "persistent");
	}
	MPI_Request_free(&requests[0]);
	MPI_Request_free(&requests[1]);
	free(in);
	free(out);
}

static void replace(const struct check *check, int peer, int bytes)
{
	unsigned char *buffer = ex_alloc((size_t)bytes);
	MPI_Status status;

	ex_pattern_fill(buffer, (size_t)bytes, (uint64_t)check->rank);
	MPI_Sendrecv_replace(buffer, bytes, MPI_BYTE, peer, TAG_DATA, peer, TAG_DATA,
			     MPI_COMM_WORLD, &status);
	check_pattern(buffer, (size_t)bytes, (uint64_t)peer, "replaced");
	free(buffer);
}

int main(int argc, char **argv)
{
	struct check check = check_start(&argc, &argv, 2);
	int peer = check.size - 1 - check.rank;

	check_options(argc, argv);
	for (int i = 0; i < SIZES; i++) {
		if (check.rank != 0 && check.rank != check.size - 1)
			continue;
		synchronous(&check, peer, sizes[i]);
		buffered(&check, peer, sizes[i]);
		ready(&check, peer, sizes[i]);
		persistent(&check, peer, sizes[i]);
		replace(&check, peer, sizes[i]);
	}
	/* Again, now that it is known how long a message takes. */
	if (check.rank == 0 || check.rank == check.size - 1)
		synchronous(&check, peer, 100000);
	return check_finish();
}
