/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receives of a phase (see load_receiver.h). MPI matches the messages of one sender in their
 * order, so a receive's place in that order tells which message it gets.
 */
#include "load_receiver.h"

#include "common.h"
#include "load_buffers.h"
#include "load_stamp.h"

#include <stdlib.h>

#define POSTED_MAX   128 /* receives in all, divided among the senders */
#define WINDOW_LEAST 4

/* Posts the next message of this rank in slot @slot, if there is one. */
static void receipt_post(struct receiver *r, int slot, int from)
{
	struct receipt *receipt = &r->receipts[slot];

	if (r->posted[from] == r->from[from].count)
		return;
	receipt->message = &r->from[from].messages[r->posted[from]++];
	receipt->buffer = buffer_take(receipt->message->bytes);
	MPI_Irecv(receipt->buffer, (int)receipt->message->bytes, MPI_BYTE, from, LOAD_TAG_MESSAGE,
		  MPI_COMM_WORLD, &r->requests[slot]);
}

static bool schedules_draw(struct receiver *r, int rank, size_t room)
{
	for (int from = 0; from < r->arrangement->ranks; from++) {
		if (from == rank)
			continue;
		if (!schedule_draw(&r->from[from], r->arrangement, from, rank, room))
			return false;
		r->left += r->from[from].count;
		r->bytes += r->from[from].bytes;
	}
	return true;
}

bool receiver_open(struct receiver *r, const struct arrangement *arrangement, int rank,
		   bool answers, size_t room)
{
	int ranks = arrangement->ranks, window = POSTED_MAX / ranks;

	*r = (struct receiver){.arrangement = arrangement, .answers = answers};
	r->window = window > WINDOW_LEAST ? window : WINDOW_LEAST;
	r->slots = r->window * ranks;
	r->from = ex_alloc((size_t)ranks * sizeof(*r->from));
	r->posted = ex_alloc((size_t)ranks * sizeof(*r->posted));
	r->receipts = ex_alloc((size_t)r->slots * sizeof(*r->receipts));
	r->requests = ex_alloc((size_t)r->slots * sizeof(*r->requests));
	r->statuses = ex_alloc((size_t)r->slots * sizeof(*r->statuses));
	r->indices = ex_alloc((size_t)r->slots * sizeof(*r->indices));
	for (int i = 0; i < r->slots; i++)
		r->requests[i] = MPI_REQUEST_NULL;
	if (!schedules_draw(r, rank, room))
		return false;
	r->timed = ex_alloc(r->left * sizeof(*r->timed));
	for (int i = 0; i < r->slots; i++)
		receipt_post(r, i, i % ranks);
	return true;
}

static void receipt_check(const struct receiver *r, const struct receipt *receipt,
			  const MPI_Status *status)
{
	const struct message *message = receipt->message;
	size_t wrong;
	int bytes;

	MPI_Get_count(status, MPI_BYTE, &bytes);
	if ((uint64_t)bytes != message->bytes)
		ex_abort("message %llu of rank %d has %d bytes, not %llu",
			 (unsigned long long)message->number, message->from, bytes,
			 (unsigned long long)message->bytes);
	wrong = stamp_check(receipt->buffer, message->bytes, message_seed(r->arrangement, message));
	if (wrong < message->bytes)
		ex_abort("message %llu of rank %d is wrong at byte %zu of %d",
			 (unsigned long long)message->number, message->from, wrong, bytes);
}

/* A message is there: its time, and an answer if one is wanted. Whether that was all. */
static bool receipt_take(struct receiver *r, int slot, uint64_t ns)
{
	struct receipt *receipt = &r->receipts[slot];
	const struct message *message = receipt->message;

	r->timed[r->timed_count++] = (struct timed){
		.due_ns = message->due_ns,
		.bytes = message->bytes,
		.ns = ns > message->due_ns ? ns - message->due_ns : 0,
	};
	if (!r->answers)
		return true;
	receipt->answering = true;
	receipt->answer = message->number;
	MPI_Isend(&receipt->answer, sizeof(receipt->answer), MPI_BYTE, message->from,
		  LOAD_TAG_ANSWER, MPI_COMM_WORLD, &r->requests[slot]);
	return false;
}

bool receiver_step(struct receiver *r, uint64_t start_ns)
{
	uint64_t ns;
	int count;

	if (r->left == 0)
		return false;
	MPI_Testsome(r->slots, r->requests, &count, r->indices, r->statuses);
	if (count == 0 || count == MPI_UNDEFINED)
		return false;
	ns = ex_now_ns() - start_ns;
	for (int i = 0; i < count; i++) {
		int slot = r->indices[i];
		struct receipt *receipt = &r->receipts[slot];

		if (!receipt->answering) {
			bool ended = receipt_take(r, slot, ns);

			receipt_check(r, receipt, &r->statuses[i]);
			if (!ended)
				continue;
		}
		receipt->answering = false;
		buffer_return(receipt->buffer, receipt->message->bytes);
		r->left--;
		receipt_post(r, slot, receipt->message->from);
	}
	return true;
}

void receiver_close(struct receiver *r)
{
	for (int from = 0; from < r->arrangement->ranks; from++)
		schedule_free(&r->from[from]);
	free(r->from);
	free(r->posted);
	free(r->receipts);
	free(r->requests);
	free(r->statuses);
	free(r->indices);
	free(r->timed);
	*r = (struct receiver){0};
}
