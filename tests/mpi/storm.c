/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Non-blocking storms: in each round every rank sends to every rank (itself too) a random number of
 * messages of random lengths and tags, all drawn from a seed, so that the receiver knows what must
 * come. Some receives are posted before, some long after; they are finished in several ways.
 */
#include "check.h"

#include <stdlib.h>

enum { TAGS = 4 };

struct storm {
	struct check check;
	uint64_t seed;
	int rounds, messages; /* messages: at most, from one rank to one in a round */
	size_t size_max;
};

struct message {
	int from, tag;
	size_t bytes;
	uint64_t seed;
	unsigned char *data;
};

struct batch {
	struct message *messages;
	MPI_Request *requests;
	int count;
};

/* Appends what @from sends to @to in @round: both sides draw the same. */
static void schedule(const struct storm *storm, struct batch *batch, int round, int from, int to)
{
	uint64_t pair = (uint64_t)from << 20 | (uint64_t)to;
	uint64_t state = ex_mix(storm->seed ^ ex_mix(pair << 24 | (uint64_t)round));
	int count = (int)(check_random(&state) % (uint64_t)(storm->messages + 1));

	for (int i = 0; i < count; i++) {
		struct message *message = &batch->messages[batch->count++];

		message->from = from;
		message->tag = (int)(check_random(&state) % TAGS);
		message->bytes = check_random_size(&state, storm->size_max);
		message->seed = check_random(&state);
		message->data = ex_alloc(message->bytes);
	}
}

static struct batch batch_make(const struct storm *storm)
{
	size_t most = (size_t)storm->check.size * (size_t)storm->messages;

	return (struct batch){
		.messages = ex_alloc(most * sizeof(struct message)),
		.requests = ex_alloc(2 * most * sizeof(MPI_Request)),
	};
}

static void batch_free(struct batch *batch)
{
	for (int i = 0; i < batch->count; i++)
		free(batch->messages[i].data);
	free(batch->messages);
	free(batch->requests);
}

/* Receives of one (source, tag) are posted in the order of sending, as MPI matches them. */
static void post_receives(struct batch *batch, int first, int end)
{
	for (int i = first; i < end; i++) {
		struct message *message = &batch->messages[i];

		MPI_Irecv(message->data, (int)message->bytes, MPI_BYTE, message->from, message->tag,
			  MPI_COMM_WORLD, &batch->requests[i]);
	}
}

static void check_received(const struct message *message, const MPI_Status *status)
{
	check_status(status, message->from, message->tag, message->bytes);
	check_pattern(message->data, message->bytes, message->seed, "storm");
}

/* Finishes the receives by Waitany, Testsome or Waitall, and checks each. */
static void finish_receives(struct batch *batch, int way)
{
	MPI_Status *statuses = ex_alloc((size_t)(batch->count + 1) * sizeof(*statuses));
	int *indices = ex_alloc((size_t)(batch->count + 1) * sizeof(*indices));

	for (int left = batch->count; left > 0;) {
		int done = 1;

		if (way == 0) {
			MPI_Waitany(batch->count, batch->requests, indices, statuses);
		} else if (way == 1) {
			MPI_Testsome(batch->count, batch->requests, &done, indices, statuses);
		} else {
			MPI_Waitall(batch->count, batch->requests, statuses);
			done = batch->count;
			for (int i = 0; i < done; i++)
				indices[i] = i;
		}
		for (int i = 0; i < done; i++)
			check_received(&batch->messages[indices[i]], &statuses[i]);
		left -= done;
	}
	free(indices);
	free(statuses);
}

static void storm_round(const struct storm *storm, int round)
{
	struct batch out = batch_make(storm), in = batch_make(storm);
	int size = storm->check.size, rank = storm->check.rank, early;

	for (int peer = 0; peer < size; peer++)
		schedule(storm, &in, round, (peer + rank) % size, rank);
	early = round % 3 == 0 ? in.count : round % 3 == 1 ? in.count / 2 : 0;
	post_receives(&in, 0, early);
	if (round % 4 == 3)
		MPI_Barrier(MPI_COMM_WORLD);
	for (int step = 0; step < size; step++) {
		int to = (rank + step) % size, first = out.count;

		schedule(storm, &out, round, rank, to);
		for (int i = first; i < out.count; i++) {
			struct message *message = &out.messages[i];

			ex_pattern_fill(message->data, message->bytes, message->seed);
			MPI_Isend(message->data, (int)message->bytes, MPI_BYTE, to, message->tag,
				  MPI_COMM_WORLD, &out.requests[i]);
		}
	}
	post_receives(&in, early, in.count);
	finish_receives(&in, round % 3);
	MPI_Waitall(out.count, out.requests, MPI_STATUSES_IGNORE);
	batch_free(&in);
	batch_free(&out);
}

int main(int argc, char **argv)
{
	struct storm storm = {.check = check_start(&argc, &argv, 1)};

	storm.seed = check_option(argc, argv, "--seed", 1, 0, UINT64_MAX);
	storm.rounds = (int)check_option(argc, argv, "--rounds", 60, 1, 1 << 20);
	storm.messages = (int)check_option(argc, argv, "--messages", 40, 1, 1 << 16);
	storm.size_max = check_option(argc, argv, "--size", 400000, 0, 1u << 30);
	check_options(argc, argv);
	for (int round = 0; round < storm.rounds; round++)
		storm_round(&storm, round);
	return check_finish();
}
