/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Probing: what a probe tells is what the next receive gets; a matched probe takes the message out
 * of the queue, so that no other receive can have it, and matched messages may be received in any
 * order; a probe that finds nothing says so.
 */
#include "check.h"

#include <stdlib.h>

enum { SIZE_MAX_BYTES = 1 << 20, MESSAGES = 6 };

static const size_t sizes[MESSAGES] = {0, 8, 1000, 16384, 70000, SIZE_MAX_BYTES};

static void send_sizes(int to)
{
	unsigned char *buffers[MESSAGES];
	MPI_Request requests[MESSAGES];

	for (int i = 0; i < MESSAGES; i++) {
		buffers[i] = ex_alloc(sizes[i]);
		ex_pattern_fill(buffers[i], sizes[i], (uint64_t)i);
		MPI_Isend(buffers[i], (int)sizes[i], MPI_BYTE, to, i, MPI_COMM_WORLD, &requests[i]);
	}
	MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < MESSAGES; i++)
		free(buffers[i]);
}

/* MPI_Probe, then a receive of exactly that size. */
static void probe_receive(int from)
{
	for (int i = 0; i < MESSAGES; i++) {
		unsigned char *buffer = ex_alloc(sizes[i]);
		MPI_Status status;

		MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		check_status(&status, from, i, sizes[i]);
		MPI_Recv(buffer, (int)sizes[i], MPI_BYTE, from, i, MPI_COMM_WORLD, &status);
		check_status(&status, from, i, sizes[i]);
		check_pattern(buffer, sizes[i], (uint64_t)i, "probe");
		free(buffer);
	}
}

/* MPI_Iprobe for one tag until it comes, from the last tag to the first. */
static void iprobe_receive(int from)
{
	unsigned char *buffer = ex_alloc(SIZE_MAX_BYTES);

	for (int i = MESSAGES - 1; i >= 0; i--) {
		MPI_Status status;
		int found = 0;

		while (!found)
			MPI_Iprobe(from, i, MPI_COMM_WORLD, &found, &status);
		check_status(&status, from, i, sizes[i]);
		MPI_Recv(buffer, SIZE_MAX_BYTES, MPI_BYTE, from, i, MPI_COMM_WORLD, &status);
		check_status(&status, from, i, sizes[i]);
		check_pattern(buffer, sizes[i], (uint64_t)i, "iprobe");
	}
	free(buffer);
}

/* Takes all messages out by matched probes, then receives them from the last to the first. */
static void mprobe_receive(int from, bool blocking)
{
	MPI_Message messages[MESSAGES];
	MPI_Status status;

	for (int i = 0; i < MESSAGES; i++) {
		int found = blocking;

		if (blocking)
			MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &messages[i],
				   &status);
		while (!found)
			MPI_Improbe(from, i, MPI_COMM_WORLD, &found, &messages[i], &status);
		check_status(&status, from, i, sizes[i]);
	}
	for (int i = MESSAGES - 1; i >= 0; i--) {
		unsigned char *buffer = ex_alloc(sizes[i]);
		MPI_Request request;

		if (blocking) {
			MPI_Mrecv(buffer, (int)sizes[i], MPI_BYTE, &messages[i], &status);
		} else {
			MPI_Imrecv(buffer, (int)sizes[i], MPI_BYTE, &messages[i], &request);
			MPI_Wait(&request, &status);
		}
		check_that(messages[i] == MPI_MESSAGE_NULL, "message %d is still a handle", i);
		check_status(&status, from, i, sizes[i]);
		check_pattern(buffer, sizes[i], (uint64_t)i, "matched probe");
		free(buffer);
	}
}

/* A message taken by a matched probe must not be seen by another probe or receive. */
static void mprobe_hides(int from)
{
	MPI_Message message;
	MPI_Status status;
	int found, value;

	MPI_Mprobe(from, 1, MPI_COMM_WORLD, &message, &status);
	MPI_Iprobe(from, 1, MPI_COMM_WORLD, &found, &status);
	if (found) {
		MPI_Recv(&value, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &status);
		check_that(value == 2, "message %d was probed twice", value);
	} else {
		MPI_Recv(&value, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &status);
		check_that(value == 2, "a receive took message %d out of a probe's hands", value);
	}
	MPI_Mrecv(&value, 1, MPI_INT, &message, &status);
	check_that(value == 1, "the matched probe held message %d", value);
}

static void nothing_there(const struct check *check)
{
	MPI_Message message = MPI_MESSAGE_NULL;
	MPI_Status status;
	int found = 1;

	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
	check_that(!found, "a probe found a message that nobody sent");
	MPI_Improbe(check->rank, 77, MPI_COMM_WORLD, &found, &message, MPI_STATUS_IGNORE);
	check_that(!found, "a matched probe found a message that nobody sent");
	MPI_Mprobe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &message, &status);
	check_that(message == MPI_MESSAGE_NO_PROC, "no message from nobody");
	MPI_Mrecv(NULL, 0, MPI_BYTE, &message, &status);
	check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

int main(int argc, char **argv)
{
	struct check check = check_start(&argc, &argv, 2);
	int last = check.size - 1;

	check_options(argc, argv);
	nothing_there(&check);
	for (int kind = 0; kind < 4; kind++) {
		MPI_Barrier(MPI_COMM_WORLD);
		if (check.rank == last)
			send_sizes(0);
		else if (check.rank == 0 && kind == 0)
			probe_receive(last);
		else if (check.rank == 0 && kind == 1)
			iprobe_receive(last);
		else if (check.rank == 0)
			mprobe_receive(last, kind == 2);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (check.rank == last) {
		for (int value = 1; value <= 2; value++)
			MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
	} else if (check.rank == 0) {
		mprobe_hides(last);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	nothing_there(&check);
	return check_finish();
}
