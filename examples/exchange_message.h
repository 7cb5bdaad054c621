/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One message of the exchange benchmark: how its payload lies in memory, as an MPI type and as
 * bytes. Where the type has gaps, a receive must leave them alone; so a check looks at them too.
 */
#ifndef EXAMPLES_EXCHANGE_MESSAGE_H
#define EXAMPLES_EXCHANGE_MESSAGE_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

enum message_kind { MESSAGE_BYTE, MESSAGE_DOUBLE, MESSAGE_VECTOR, MESSAGE_STRUCT, MESSAGE_KINDS };

/* As options and reports name the kinds. */
extern const char *const message_kind_names[MESSAGE_KINDS];

/* The least size of a message: that of one struct in memory. */
#define MESSAGE_MIN_BYTES 16

struct message {
	enum message_kind kind;
	MPI_Datatype type;    /* committed, of one element; the whole message for a vector */
	int count;	      /* elements */
	size_t payload_bytes; /* what travels */
	size_t span_bytes;    /* what it takes in memory, gaps included */
};

/*
 * A message of as many whole elements as carry at most @bytes, at least MESSAGE_MIN_BYTES: bytes,
 * doubles, every second one of a row of doubles, or structs of a double and an int32_t with four
 * bytes of padding. The caller hands it back to message_free().
 */
struct message message_make(enum message_kind kind, size_t bytes);
void message_free(struct message *message);

/* Makes @data, of span_bytes, what a sender sends under this @seed. */
void message_fill(const struct message *message, void *data, uint64_t seed);

/* Makes @data what a receive starts from. */
void message_clear(const struct message *message, void *data);

/*
 * Compares @data with what was cleared and then received under @seed: span_bytes if all is as it
 * should be, else the offset of the first byte that differs. @scratch has room for span_bytes.
 */
size_t message_check(const struct message *message, const void *data, uint64_t seed, void *scratch);

#endif
