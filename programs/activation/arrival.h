/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a frame's arrival to the program that waits for its message: what the parts share. */
#ifndef ARRIVAL_H
#define ARRIVAL_H

#include "activation.h"

#define ARRIVAL_TOKEN	  16
#define ARRIVAL_BYTES	  64 /* of a message */
#define ARRIVAL_COUNT_MAX 100000

/* A message on the wire; both ends run on one machine, in two namespaces of it. */
struct arrival_message {
	uint8_t token[ARRIVAL_TOKEN]; /* by which the observer knows the frame */
	uint64_t number;
	uint64_t sent; /* the sender's clock, which is ours */
	uint8_t rest[ARRIVAL_BYTES - ARRIVAL_TOKEN - 16];
};

/* Who waits: a message came, and this is the first that the program does about it. */
struct arrival {
	uint32_t warm, count;
	int observer;	  /* the packet socket */
	uint64_t *stamps; /* CLOCK_REALTIME in ns: frame of message i + 1; 0: not seen */
	uint32_t seen;	  /* messages so far */
	uint32_t unstamped;
	struct act_samples arrived, one_way;
};

extern const uint8_t arrival_token[ARRIVAL_TOKEN];

/* observe.c: frames that come to this network namespace, with the kernel's time of arrival, from
 * now on. `warm` and `count` stand. */
void arrival_observe(struct arrival *arrival);
/* CLOCK_REALTIME in ns of the first frame with that message (1, 2 ...), or 0 if none was seen. What
 * came with it and behind it is kept for the next ones. */
uint64_t arrival_stamp(struct arrival *arrival, uint64_t number);

/* arrival.c */
void arrival_came(struct arrival *arrival, const struct arrival_message *message);
bool arrival_ended(const struct arrival *arrival);

/* arrival_ways.c: TCP and Beowire, a receiver and a sender each. */
void arrival_tcp_receive(struct arrival *arrival, const char *port);
void arrival_tcp_send(const char *host, const char *port, uint32_t count, uint64_t interval_ns);
void arrival_beowire_receive(struct arrival *arrival);
void arrival_beowire_send(const char *address, uint32_t count, uint64_t interval_ns);

#endif
