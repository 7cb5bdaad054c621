/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sends of a phase (see load_sender.h).
 */
#include "load_sender.h"

#include "common.h"
#include "load_buffers.h"
#include "load_stamp.h"

#include <stdlib.h>

#define SENDS_MAX 16 /* in a step: what was received must not wait behind a long row of sends */

bool sender_open(struct sender *s, const struct arrangement *arrangement, int rank, int slots,
		 uint64_t room_bytes, bool answers, size_t room)
{
	size_t count = (size_t)slots;

	*s = (struct sender){.arrangement = arrangement, .slots = slots, .free_slots = slots};
	s->room_bytes = room_bytes;
	s->answers = answers;
	s->departures = ex_alloc(count * sizeof(*s->departures));
	s->requests = ex_alloc(2 * count * sizeof(*s->requests));
	s->indices = ex_alloc(2 * count * sizeof(*s->indices));
	for (int i = 0; i < 2 * slots; i++)
		s->requests[i] = MPI_REQUEST_NULL;
	if (!schedule_draw(&s->schedule, arrangement, rank, -1, room))
		return false;
	s->late_ns = ex_alloc(s->schedule.count * sizeof(*s->late_ns));
	s->timed = ex_alloc(s->schedule.count * sizeof(*s->timed));
	return true;
}

/* Of an answer that has come; they come in any order, and tell which message they are for. */
static void answer_take(struct sender *s, const struct departure *departure, uint64_t ns)
{
	const struct message *message;

	if (departure->answer >= s->next)
		ex_abort("an answer to message %llu came, which was not sent",
			 (unsigned long long)departure->answer);
	message = &s->schedule.messages[departure->answer];
	s->timed[s->timed_count++] = (struct timed){
		.due_ns = message->due_ns,
		.bytes = message->bytes,
		.ns = ns - message->due_ns,
	};
}

static bool departures_end(struct sender *s, uint64_t start_ns)
{
	uint64_t ns;
	int count;

	if (s->free_slots == s->slots)
		return false;
	MPI_Testsome(2 * s->slots, s->requests, &count, s->indices, MPI_STATUSES_IGNORE);
	if (count == 0 || count == MPI_UNDEFINED)
		return false;
	ns = ex_now_ns() - start_ns;
	for (int i = 0; i < count; i++) {
		int slot = s->indices[i] % s->slots;
		struct departure *departure = &s->departures[slot];

		if (s->indices[i] >= s->slots)
			answer_take(s, departure, ns);
		if (s->requests[slot] != MPI_REQUEST_NULL ||
		    s->requests[s->slots + slot] != MPI_REQUEST_NULL || !departure->message)
			continue;
		buffer_return(departure->buffer, departure->message->bytes);
		s->room_bytes += departure->message->bytes;
		departure->message = NULL;
		s->free_slots++;
	}
	return true;
}

static void depart(struct sender *s, const struct message *message)
{
	int slot = 0, bytes = (int)message->bytes;
	struct departure *departure;

	while (s->departures[slot].message)
		slot++;
	departure = &s->departures[slot];
	departure->message = message;
	departure->buffer = buffer_take(message->bytes);
	s->free_slots--;
	s->room_bytes -= message->bytes;
	stamp_write(departure->buffer, message->bytes, message_seed(s->arrangement, message));
	if (s->answers)
		MPI_Irecv(&departure->answer, sizeof(departure->answer), MPI_BYTE, message->to,
			  LOAD_TAG_ANSWER, MPI_COMM_WORLD, &s->requests[s->slots + slot]);
	MPI_Isend(departure->buffer, bytes, MPI_BYTE, message->to, LOAD_TAG_MESSAGE, MPI_COMM_WORLD,
		  &s->requests[slot]);
}

/* Whether the next message, which is due, may leave; keeps account of those that may not. */
static bool may_leave(struct sender *s, const struct message *message, uint64_t ns)
{
	if (s->free_slots == 0 || s->room_bytes < message->bytes) {
		s->blocked = true;
		return false;
	}
	if (s->blocked) {
		s->blocked = false;
		s->free_ns = ns;
	}
	if (message->due_ns < s->free_ns)
		s->held++;
	else
		s->late_ns[s->late_count++] = ns - message->due_ns;
	return true;
}

bool sender_step(struct sender *s, uint64_t start_ns)
{
	bool busy = departures_end(s, start_ns);

	for (int i = 0; i < SENDS_MAX && s->next < s->schedule.count; i++) {
		const struct message *message = &s->schedule.messages[s->next];
		uint64_t ns = ex_now_ns();

		ns = ns > start_ns ? ns - start_ns : 0;
		if (ns < message->due_ns || !may_leave(s, message, ns))
			break;
		s->next++;
		depart(s, message);
		busy = true;
	}
	return busy;
}

bool sender_done(const struct sender *s)
{
	return s->next == s->schedule.count && s->free_slots == s->slots;
}

uint64_t sender_next_ns(const struct sender *s)
{
	if (s->next == s->schedule.count || s->blocked)
		return UINT64_MAX;
	return s->schedule.messages[s->next].due_ns;
}

void sender_close(struct sender *s)
{
	schedule_free(&s->schedule);
	free(s->departures);
	free(s->requests);
	free(s->indices);
	free(s->late_ns);
	free(s->timed);
	*s = (struct sender){0};
}
