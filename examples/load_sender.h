/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a rank sends in a phase: each message when it is due, whatever became of those before it,
 * unless too much is outstanding. Then messages are held, which is counted; their time runs on.
 */
#ifndef EXAMPLES_LOAD_SENDER_H
#define EXAMPLES_LOAD_SENDER_H

#include "load_receiver.h"

struct sender {
	const struct arrangement *arrangement;
	struct schedule schedule; /* the sender's own */
	size_t next;		  /* of its messages */
	struct departure {
		const struct message *message; /* NULL: free */
		void *buffer;
		uint64_t answer; /* where it is received */
	} * departures;
	MPI_Request *requests; /* a send and the receive of an answer for each departure */
	int *indices;
	int slots, free_slots;
	uint64_t room_bytes; /* that may still be outstanding */
	bool answers;
	bool blocked;	  /* the next message is due, and held */
	uint64_t free_ns; /* when messages were last held */
	uint64_t held;
	uint64_t *late_ns; /* of messages that were not held, from when they were due until sent */
	size_t late_count;
	struct timed *timed; /* with answers: in the order of their arrival */
	size_t timed_count;
};

/*
 * At most @slots messages and @room_bytes may be outstanding: not sent, or with @answers not
 * answered. False if more than @room messages are to be sent.
 */
bool sender_open(struct sender *sender, const struct arrangement *arrangement, int rank, int slots,
		 uint64_t room_bytes, bool answers, size_t room);

/* Sends what is due, times being after @start_ns; whether there was anything to do. */
bool sender_step(struct sender *sender, uint64_t start_ns);

/* All is sent, and answered. */
bool sender_done(const struct sender *sender);

/* When the next message is due, after the start; UINT64_MAX: none is left. */
uint64_t sender_next_ns(const struct sender *sender);

void sender_close(struct sender *sender);

#endif
