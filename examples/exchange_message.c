/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Types and contents of the exchange benchmark's messages (see exchange_message.h). Each kind is a
 * row of units in memory, of which the first part of each is payload and the rest a gap.
 */
#include "exchange_message.h"

#include "common.h"

#include <assert.h>
#include <string.h>

struct record {
	double value;
	int32_t index;
};
static_assert(sizeof(struct record) == MESSAGE_MIN_BYTES, "a struct ends in a gap of 4 bytes");

const char *const message_kind_names[MESSAGE_KINDS] = {"byte", "double", "vector", "struct"};

/* A unit of a row: so many bytes of payload, and so many with the gap. */
struct unit {
	size_t payload_bytes, span_bytes;
};

static const struct unit units[MESSAGE_KINDS] = {
	[MESSAGE_BYTE] = {1, 1},
	[MESSAGE_DOUBLE] = {sizeof(double), sizeof(double)},
	[MESSAGE_VECTOR] = {sizeof(double), 2 * sizeof(double)},
	[MESSAGE_STRUCT] = {sizeof(double) + sizeof(int32_t), sizeof(struct record)},
};

static const unsigned char gap_byte = 0xa5;

static MPI_Datatype record_type(void)
{
	int lengths[] = {1, 1};
	MPI_Aint offsets[] = {offsetof(struct record, value), offsetof(struct record, index)};
	MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT32_T}, tight, padded;

	MPI_Type_create_struct(2, lengths, offsets, types, &tight);
	MPI_Type_create_resized(tight, 0, sizeof(struct record), &padded);
	MPI_Type_free(&tight);
	return padded;
}

struct message message_make(enum message_kind kind, size_t bytes)
{
	size_t count = bytes / units[kind].payload_bytes;
	struct message message = {
		.kind = kind,
		.type = kind == MESSAGE_BYTE ? MPI_BYTE : MPI_DOUBLE,
		.count = (int)count,
		.payload_bytes = count * units[kind].payload_bytes,
		.span_bytes = count * units[kind].span_bytes,
	};

	if (kind == MESSAGE_VECTOR) {
		MPI_Type_vector((int)count, 1, 2, MPI_DOUBLE, &message.type);
		message.count = 1;
	} else if (kind == MESSAGE_STRUCT) {
		message.type = record_type();
	}
	if (kind == MESSAGE_VECTOR || kind == MESSAGE_STRUCT)
		MPI_Type_commit(&message.type);
	return message;
}

void message_free(struct message *message)
{
	if (message->kind == MESSAGE_VECTOR || message->kind == MESSAGE_STRUCT)
		MPI_Type_free(&message->type);
}

/* The gaps of a sender hold other bytes than those of a receiver: they must not travel. */
static void gaps_set(const struct message *message, unsigned char *data, unsigned char byte)
{
	const struct unit *unit = &units[message->kind];
	size_t gap_bytes = unit->span_bytes - unit->payload_bytes;

	if (gap_bytes == 0)
		return;
	for (size_t at = unit->payload_bytes; at < message->span_bytes; at += unit->span_bytes)
		memset(data + at, byte, gap_bytes);
}

void message_fill(const struct message *message, void *data, uint64_t seed)
{
	ex_pattern_fill(data, message->span_bytes, seed);
	gaps_set(message, data, (unsigned char)~gap_byte);
}

void message_clear(const struct message *message, void *data)
{
	memset(data, gap_byte, message->span_bytes);
}

size_t message_check(const struct message *message, const void *data, uint64_t seed, void *scratch)
{
	const unsigned char *got = data, *want = scratch;
	size_t at = 0;

	ex_pattern_fill(scratch, message->span_bytes, seed);
	gaps_set(message, scratch, gap_byte);
	if (memcmp(got, want, message->span_bytes) == 0)
		return message->span_bytes;
	while (got[at] == want[at])
		at++;
	return at;
}
