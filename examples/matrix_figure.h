/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The figures of the matrix benchmark: what moves in one unit of each. Every rank runs the same
 * units in the same order; rank 0 measures them. Messages take the slots of a ring in turn, to send
 * from and to receive into, so that no transport finds a buffer warmer than another does.
 */
#ifndef EXAMPLES_MATRIX_FIGURE_H
#define EXAMPLES_MATRIX_FIGURE_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

enum figure {
	FIGURE_LATENCY,	      /* a round trip between two ranks */
	FIGURE_BANDWIDTH,     /* a message of a stream from rank 0 to rank 1 */
	FIGURE_BIDIRECTIONAL, /* one of a stream each way at once */
	FIGURE_RATE,	      /* a window of messages that a reply acknowledges */
	FIGURE_PAIRS,	      /* a message of a stream in each pair: rank i to i + half of all */
	FIGURE_ALLREDUCE,     /* a sum of doubles */
	FIGURE_ALLTOALL,      /* a message from each rank to each */
	FIGURE_BROADCAST,     /* from ranks in turn */
	FIGURES
};

/* As options and reports name them. */
extern const char *const figure_names[FIGURES];

/* One rank's part. Fill in the first group, then figure_open(). */
struct figure_run {
	enum figure figure;
	int rank, ranks;
	size_t bytes; /* of a message; of allreduce and broadcast, of the whole vector */

	size_t slot_bytes;	       /* bytes, or those for all ranks (alltoall) */
	size_t stride;		       /* from one slot to the next */
	int slots;		       /* of a ring: messages that may be under way at once */
	unsigned char *send, *receive; /* the rings, owned */
	MPI_Request *requests;	       /* two for each slot, owned; all null between runs */
	uint64_t next;		       /* messages so far, names the next slot */
};

/*
 * Whether @ranks can run the @figure, and messages of @bytes fit: NULL, else what it needs. The
 * same for all ranks.
 */
const char *figure_lacks(enum figure figure, int ranks, uint64_t bytes);

/* Rings of known contents, touched. figure_close() gives them back. */
void figure_open(struct figure_run *run);
void figure_close(struct figure_run *run);

/*
 * Runs @units, and returns at rank 0 when the last one has come where it goes. Every rank must call
 * it with the same number.
 */
void figure_run(struct figure_run *run, uint64_t units);

/*
 * Ends the job by ex_abort() unless each slot that this rank has received into since figure_open()
 * holds what it should.
 */
void figure_check(const struct figure_run *run);

/* The messages, or calls, of a unit: a window of them for rate. */
uint64_t figure_unit_messages(const struct figure_run *run);

/* Fewer units would not show the figure: a stream has to fill its ring, and go on. */
uint64_t figure_least_units(const struct figure_run *run);

#endif
