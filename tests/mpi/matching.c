/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MPI's rules of matching: messages of one sender in one communicator are received in the order
 * sent, whatever their lengths; receives that could take the same message are served in the order
 * posted; communicators are separate worlds.
 */
#include "check.h"

#include <stdlib.h>

enum { ORDER_MESSAGES = 400, SIZE_MAX_BYTES = 200000, TAGS = 3 };

static size_t order_size(int sender, int index)
{
	uint64_t state = ex_mix((uint64_t)sender << 32 | (uint64_t)index);

	return sizeof(uint64_t) + check_random_size(&state, SIZE_MAX_BYTES - sizeof(uint64_t));
}

static uint64_t order_seed(int sender, int index)
{
	return (uint64_t)sender << 40 | (uint64_t)index;
}

/* Sends short and long messages by turns, tags in a circle, all in flight together. */
static void order_send(const struct check *check)
{
	MPI_Request *requests = ex_alloc(ORDER_MESSAGES * sizeof(*requests));
	unsigned char **buffers = ex_alloc(ORDER_MESSAGES * sizeof(*buffers));

	for (int i = 0; i < ORDER_MESSAGES; i++) {
		size_t bytes = order_size(check->rank, i);

		buffers[i] = ex_alloc(bytes);
		ex_pattern_fill(buffers[i], bytes, order_seed(check->rank, i));
		MPI_Isend(buffers[i], (int)bytes, MPI_BYTE, 0, i % TAGS, MPI_COMM_WORLD,
			  &requests[i]);
	}
	MPI_Waitall(ORDER_MESSAGES, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < ORDER_MESSAGES; i++)
		free(buffers[i]);
	free(buffers);
	free(requests);
}

/* Rank 0 takes everything by wildcards: from each sender it must come in the order sent. */
static void order_receive_any(const struct check *check)
{
	unsigned char *buffer = ex_alloc(SIZE_MAX_BYTES);
	int *next = ex_alloc((size_t)check->size * sizeof(*next));
	MPI_Status status;

	for (int i = 0; i < (check->size - 1) * ORDER_MESSAGES; i++) {
		int index, source;
		size_t bytes;

		MPI_Recv(buffer, SIZE_MAX_BYTES, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG,
			 MPI_COMM_WORLD, &status);
		source = status.MPI_SOURCE;
		check_that(source > 0 && source < check->size, "source %d", source);
		index = next[source]++;
		bytes = order_size(source, index);
		check_status(&status, source, index % TAGS, bytes);
		check_pattern(buffer, bytes, order_seed(source, index), "any source, any tag");
	}
	free(next);
	free(buffer);
}

/* Rank 0 takes tag after tag, any source: each sender's messages of one tag keep their order. */
static void order_receive_tags(const struct check *check)
{
	unsigned char *buffer = ex_alloc(SIZE_MAX_BYTES);
	MPI_Status status;

	for (int tag = TAGS - 1; tag >= 0; tag--) {
		int *next = ex_alloc((size_t)check->size * sizeof(*next));
		int each = (ORDER_MESSAGES - tag + TAGS - 1) / TAGS;

		for (int i = 0; i < (check->size - 1) * each; i++) {
			int source, index;

			MPI_Recv(buffer, SIZE_MAX_BYTES, MPI_BYTE, MPI_ANY_SOURCE, tag,
				 MPI_COMM_WORLD, &status);
			source = status.MPI_SOURCE;
			index = tag + TAGS * next[source]++;
			check_status(&status, source, tag, order_size(source, index));
			check_pattern(buffer, order_size(source, index), order_seed(source, index),
				      "any source, one tag");
		}
		free(next);
	}
	free(buffer);
}

/*
 * Receives posted before the messages come, wildcards and exact ones mixed: rank 1 sends tags
 * 5, 6, 5, 7 and the receives, in the order posted, must take them so that no message goes to a
 * receive posted later than another one that fits.
 */
static void posted_order(const struct check *check)
{
	static const int posted[] = {MPI_ANY_TAG, 6, 5, MPI_ANY_TAG};
	static const int sent[] = {5, 6, 5, 7};
	MPI_Request requests[4];
	MPI_Status statuses[4];
	int values[4];

	if (check->rank == 0) {
		for (int i = 0; i < 4; i++)
			MPI_Irecv(&values[i], 1, MPI_INT, i % 2 ? 1 : MPI_ANY_SOURCE, posted[i],
				  MPI_COMM_WORLD, &requests[i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (check->rank == 1) {
		for (int i = 0; i < 4; i++)
			MPI_Send(&i, 1, MPI_INT, 0, sent[i], MPI_COMM_WORLD);
	}
	if (check->rank != 0)
		return;
	MPI_Waitall(4, requests, statuses);
	for (int i = 0; i < 4; i++) {
		check_status(&statuses[i], 1, sent[i], sizeof(int));
		check_that(values[i] == i, "receive %d got message %d", i, values[i]);
	}
}

/* The same tag in two communicators: each receive takes the message of its own one. */
static void communicators_apart(const struct check *check)
{
	MPI_Comm other;
	int value;

	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	if (check->rank == 1) {
		value = 1;
		MPI_Send(&value, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
		value = 2;
		MPI_Send(&value, 1, MPI_INT, 0, 9, other);
	} else if (check->rank == 0) {
		MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, other, MPI_STATUS_IGNORE);
		check_that(value == 2, "the duplicate got message %d", value);
		MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		check_that(value == 1, "the world got message %d", value);
	}
	MPI_Comm_free(&other);
}

int main(int argc, char **argv)
{
	struct check check = check_start(&argc, &argv, 2);

	check_options(argc, argv);
	if (check.rank == 0)
		order_receive_any(&check);
	else
		order_send(&check);
	MPI_Barrier(MPI_COMM_WORLD);
	if (check.rank == 0)
		order_receive_tags(&check);
	else
		order_send(&check);
	posted_order(&check);
	communicators_apart(&check);
	return check_finish();
}
