/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The patterns of the exchange benchmark: who sends what to whom in one turn. Every rank runs the
 * same turns in the same order; rank 0 measures them.
 */
#ifndef EXAMPLES_EXCHANGE_PATTERN_H
#define EXAMPLES_EXCHANGE_PATTERN_H

#include "exchange_message.h"

#include <stdbool.h>

enum pattern { PATTERN_PAIR, PATTERN_SCATTER, PATTERN_GATHER, PATTERNS };
enum calls { CALLS_BLOCKING, CALLS_NONBLOCKING, CALLS_KINDS };

extern const char *const pattern_names[PATTERNS];
extern const char *const calls_names[CALLS_KINDS];

/* One rank's part. Fill in the first group, then exchange_open(). */
struct exchange {
	enum pattern pattern;
	enum calls calls;
	bool verify;
	int rank, ranks;
	int window; /* messages to or from each rank in one turn; 1 for a pair */
	struct message message;

	size_t messages;	       /* of this rank in one turn and one direction */
	unsigned char *send, *receive; /* room for each of them; NULL where none goes that way */
	unsigned char *scratch;
	MPI_Request *requests;
	uint64_t turn; /* of the next turn, names its content */
};

/* Memory for the turns, touched. exchange_close() gives it back, the message stays the caller's. */
void exchange_open(struct exchange *exchange);
void exchange_close(struct exchange *exchange);

/*
 * One turn. pair, blocking: rank 0 sends, rank 1 answers with a message as long. pair, nonblocking:
 * both send and receive at once. scatter and gather: a window of messages from rank 0 to each other
 * rank, or from each to rank 0, which the receiver acknowledges by a message without data. With
 * .verify a wrong byte ends the job by ex_abort().
 */
void exchange_turn(struct exchange *exchange);

/* The payload that one turn moves between all ranks, in bytes. */
uint64_t exchange_turn_bytes(const struct exchange *exchange);

#endif
