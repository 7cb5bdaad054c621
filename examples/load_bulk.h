/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A bulk transfer beside a phase's messages: rank 1 sends rank 0 so many messages of one length, a
 * few of them under way at a time, as fast as they go.
 */
#ifndef EXAMPLES_LOAD_BULK_H
#define EXAMPLES_LOAD_BULK_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BULK_WINDOW 4

struct bulk {
	uint64_t bytes; /* of a message */
	uint64_t count; /* of messages; 0: no bulk transfer */
	uint64_t seed;
	uint64_t begun, ended;
	uint64_t place[BULK_WINDOW]; /* which message a buffer has */
	unsigned char *buffers[BULK_WINDOW];
	MPI_Request requests[BULK_WINDOW];
	uint64_t end_ns; /* when the last one had come, after the start; receiver alone */
	int rank;
};

/* @bytes, @count and @seed are set; ranks beside 0 and 1 have nothing to do. Posts receives. */
void bulk_open(struct bulk *bulk, int rank);

/* Sends or takes what it can, times being after @start_ns; whether there was anything. */
bool bulk_step(struct bulk *bulk, uint64_t start_ns);
bool bulk_done(const struct bulk *bulk);
void bulk_close(struct bulk *bulk);

#endif
