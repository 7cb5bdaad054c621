/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The turns of the exchange benchmark (see exchange_pattern.h). A turn is a row of transfers, each
 * with a buffer of its own, so that all may be under way at once; the row is the same for blocking
 * and non-blocking calls.
 */
#include "exchange_pattern.h"

#include "common.h"

#include <stdlib.h>

const char *const pattern_names[PATTERNS] = {"pair", "scatter", "gather"};
const char *const calls_names[CALLS_KINDS] = {"blocking", "nonblocking"};

enum tag { TAG_MESSAGE = 1, TAG_TURN = 2 };

static bool sends(const struct exchange *e)
{
	return e->pattern == PATTERN_PAIR || (e->pattern == PATTERN_SCATTER) == (e->rank == 0);
}

static bool receives(const struct exchange *e)
{
	return e->pattern == PATTERN_PAIR || !sends(e);
}

/* How many ranks this one exchanges with, and which is the @index'th. */
static int peers(const struct exchange *e)
{
	return e->rank == 0 ? e->ranks - 1 : 1;
}

static int peer(const struct exchange *e, size_t index)
{
	return e->rank == 0 ? 1 + (int)index % peers(e) : 0;
}

void exchange_open(struct exchange *e)
{
	size_t bytes;

	e->messages = (size_t)peers(e) * (size_t)e->window;
	bytes = e->messages * e->message.span_bytes;
	e->send = sends(e) ? ex_alloc(bytes) : NULL;
	e->receive = receives(e) ? ex_alloc(bytes) : NULL;
	e->scratch = e->verify ? ex_alloc(e->message.span_bytes) : NULL;
	e->requests = ex_alloc(2 * e->messages * sizeof(MPI_Request));
}

void exchange_close(struct exchange *e)
{
	free(e->send);
	free(e->receive);
	free(e->scratch);
	free(e->requests);
}

uint64_t exchange_turn_bytes(const struct exchange *e)
{
	uint64_t messages =
		e->pattern == PATTERN_PAIR ? 2 : (uint64_t)(e->ranks - 1) * (uint64_t)e->window;

	return messages * e->message.payload_bytes;
}

static unsigned char *slot(const struct exchange *e, unsigned char *memory, size_t index)
{
	return memory + index * e->message.span_bytes;
}

/* Names the content of this turn's message @index between the two ranks, by who sends it. */
static uint64_t seed(const struct exchange *e, int from, size_t index)
{
	int other = e->rank == 0 ? peer(e, index) : e->rank;
	uint64_t place = index / (size_t)peers(e);
	uint64_t message = e->turn * (uint64_t)e->window + place;

	return message << 20 | (uint64_t)other << 1 | (from == 0);
}

static void contents_make(const struct exchange *e)
{
	for (size_t i = 0; e->send && i < e->messages; i++)
		message_fill(&e->message, slot(e, e->send, i), seed(e, e->rank, i));
	for (size_t i = 0; e->receive && i < e->messages; i++)
		message_clear(&e->message, slot(e, e->receive, i));
}

static void contents_check(const struct exchange *e)
{
	const struct message *message = &e->message;

	for (size_t i = 0; e->receive && i < e->messages; i++) {
		int from = peer(e, i);
		size_t good = message_check(message, slot(e, e->receive, i), seed(e, from, i),
					    e->scratch);

		if (good != message->span_bytes)
			ex_abort("%s message of %zu bytes from rank %d, turn %llu: wrong at byte "
				 "%zu of %zu in memory",
				 message_kind_names[message->kind], message->payload_bytes, from,
				 (unsigned long long)e->turn, good, message->span_bytes);
	}
}

static void send_blocking(const struct exchange *e)
{
	for (size_t i = 0; i < e->messages; i++)
		MPI_Send(slot(e, e->send, i), e->message.count, e->message.type, peer(e, i),
			 TAG_MESSAGE, MPI_COMM_WORLD);
}

static void receive_blocking(const struct exchange *e)
{
	for (size_t i = 0; i < e->messages; i++)
		MPI_Recv(slot(e, e->receive, i), e->message.count, e->message.type, peer(e, i),
			 TAG_MESSAGE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void transfer_blocking(const struct exchange *e)
{
	if (e->send && e->rank == 0)
		send_blocking(e);
	if (e->receive)
		receive_blocking(e);
	if (e->send && e->rank != 0)
		send_blocking(e);
}

/* Receives are posted first, so that what comes finds its place. */
static void transfer_nonblocking(const struct exchange *e)
{
	int count = 0;

	for (size_t i = 0; e->receive && i < e->messages; i++)
		MPI_Irecv(slot(e, e->receive, i), e->message.count, e->message.type, peer(e, i),
			  TAG_MESSAGE, MPI_COMM_WORLD, &e->requests[count++]);
	for (size_t i = 0; e->send && i < e->messages; i++)
		MPI_Isend(slot(e, e->send, i), e->message.count, e->message.type, peer(e, i),
			  TAG_MESSAGE, MPI_COMM_WORLD, &e->requests[count++]);
	MPI_Waitall(count, e->requests, MPI_STATUSES_IGNORE);
}

/* Who received the window says so to each that sent it. */
static void acknowledge(const struct exchange *e)
{
	for (size_t i = 0; i < (size_t)peers(e); i++) {
		if (e->receive)
			MPI_Send(NULL, 0, MPI_BYTE, peer(e, i), TAG_TURN, MPI_COMM_WORLD);
		else
			MPI_Recv(NULL, 0, MPI_BYTE, peer(e, i), TAG_TURN, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
	}
}

void exchange_turn(struct exchange *e)
{
	if (e->verify)
		contents_make(e);
	if (e->calls == CALLS_BLOCKING)
		transfer_blocking(e);
	else
		transfer_nonblocking(e);
	if (e->verify)
		contents_check(e);
	if (e->pattern != PATTERN_PAIR)
		acknowledge(e);
	e->turn++;
}
