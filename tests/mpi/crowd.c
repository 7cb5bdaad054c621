/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many ranks: all send to rank 0 at once (short and long messages, the classic incast), rank 0
 * answers each, and then everybody exchanges with everybody. No rank may be starved.
 */
#include "check.h"

#include <stdlib.h>

enum tag { TAG_TO_ROOT = 1, TAG_ANSWER = 2, TAG_PEER = 3 };

enum { ROUNDS = 12, SIZE_MAX_BYTES = 300000, PEER_BYTES = 40000 };

static size_t bytes_of(int from, int round)
{
	uint64_t state = ex_mix((uint64_t)from << 32 | (uint64_t)round);

	return check_random_size(&state, SIZE_MAX_BYTES);
}

static uint64_t seed_of(int from, int to, int round)
{
	return (uint64_t)from << 40 | (uint64_t)to << 20 | (uint64_t)round;
}

static void incast_send(const struct check *check)
{
	unsigned char *buffers[ROUNDS];
	MPI_Request requests[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		size_t bytes = bytes_of(check->rank, i);

		buffers[i] = ex_alloc(bytes);
		ex_pattern_fill(buffers[i], bytes, seed_of(check->rank, 0, i));
		MPI_Isend(buffers[i], (int)bytes, MPI_BYTE, 0, TAG_TO_ROOT, MPI_COMM_WORLD,
			  &requests[i]);
	}
	for (int i = 0; i < ROUNDS; i++) {
		int answer;

		MPI_Recv(&answer, 1, MPI_INT, 0, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check_that(answer == i, "answer %d instead of %d", answer, i);
	}
	MPI_Waitall(ROUNDS, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < ROUNDS; i++)
		free(buffers[i]);
}

static void incast_receive(const struct check *check)
{
	unsigned char *buffer = ex_alloc(SIZE_MAX_BYTES);
	int *next = ex_alloc((size_t)check->size * sizeof(*next));

	for (int i = 0; i < (check->size - 1) * ROUNDS; i++) {
		MPI_Status status;
		int from, round;

		MPI_Recv(buffer, SIZE_MAX_BYTES, MPI_BYTE, MPI_ANY_SOURCE, TAG_TO_ROOT,
			 MPI_COMM_WORLD, &status);
		from = status.MPI_SOURCE;
		round = next[from]++;
		check_status(&status, from, TAG_TO_ROOT, bytes_of(from, round));
		check_pattern(buffer, bytes_of(from, round), seed_of(from, 0, round), "incast");
		MPI_Send(&round, 1, MPI_INT, from, TAG_ANSWER, MPI_COMM_WORLD);
	}
	free(next);
	free(buffer);
}

static void everybody(const struct check *check)
{
	size_t size = (size_t)check->size;
	unsigned char *out = ex_alloc(size * PEER_BYTES), *in = ex_alloc(size * PEER_BYTES);
	MPI_Request *requests = ex_alloc(2 * size * sizeof(*requests));

	for (int peer = 0; peer < check->size; peer++) {
		unsigned char *to = out + (size_t)peer * PEER_BYTES;

		ex_pattern_fill(to, PEER_BYTES, seed_of(check->rank, peer, ROUNDS));
		MPI_Irecv(in + (size_t)peer * PEER_BYTES, PEER_BYTES, MPI_BYTE, peer, TAG_PEER,
			  MPI_COMM_WORLD, &requests[peer]);
		MPI_Isend(to, PEER_BYTES, MPI_BYTE, peer, TAG_PEER, MPI_COMM_WORLD,
			  &requests[check->size + peer]);
	}
	MPI_Waitall(2 * check->size, requests, MPI_STATUSES_IGNORE);
	for (int peer = 0; peer < check->size; peer++)
		check_pattern(in + (size_t)peer * PEER_BYTES, PEER_BYTES,
			      seed_of(peer, check->rank, ROUNDS), "everybody");
	free(requests);
	free(in);
	free(out);
}

int main(int argc, char **argv)
{
	struct check check = check_start(&argc, &argv, 2);

	check_options(argc, argv);
	if (check.rank == 0)
		incast_receive(&check);
	else
		incast_send(&check);
	everybody(&check);
	return check_finish();
}
