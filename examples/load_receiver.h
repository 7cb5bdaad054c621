/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a rank receives in a phase. It knows from the others' schedules what comes, in which order
 * from each; so buffers of the right length are posted ahead, and each message is checked.
 */
#ifndef EXAMPLES_LOAD_RECEIVER_H
#define EXAMPLES_LOAD_RECEIVER_H

#include "load_schedule.h"

#include <mpi.h>

#define LOAD_TAG_MESSAGE 1
#define LOAD_TAG_ANSWER	 2
#define LOAD_TAG_BULK	 3

/* A message that was there, or was answered, @ns after it was due. */
struct timed {
	uint64_t due_ns, bytes, ns;
};

/* One receive that is posted, or the answer to what it received. */
struct receipt {
	const struct message *message;
	void *buffer;
	uint64_t answer; /* the message's number, while that is being sent */
	bool answering;
};

struct receiver {
	const struct arrangement *arrangement;
	struct schedule *from; /* what each rank sends here; the receiver's own */
	size_t *posted;	       /* how many of each rank's were posted */
	struct receipt *receipts;
	MPI_Request *requests; /* of the receipts, MPI_REQUEST_NULL: free */
	MPI_Status *statuses;
	int *indices;
	int slots, window; /* receipts in all, and for each rank that sends */
	size_t left;	   /* messages that have not come, or whose answer is not sent */
	bool answers;
	struct timed *timed; /* in the order of arrival; timed_count of them */
	size_t timed_count;
	uint64_t bytes; /* of all messages of the schedules */
};

/* Draws what comes to @rank and posts the first receives; false if one draws more than @room. */
bool receiver_open(struct receiver *receiver, const struct arrangement *arrangement, int rank,
		   bool answers, size_t room);

/* Takes what has come, times being after @start_ns; whether anything had. */
bool receiver_step(struct receiver *receiver, uint64_t start_ns);

/* Everything has come, or never was posted. */
void receiver_close(struct receiver *receiver);

#endif
