/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An instance of beowire-server between a socket, whose program is the test, and callers, which are
 * engines of the test's: rings, time and memory are stand-ins.
 */
#ifndef SERVER_CALLERS_H
#define SERVER_CALLERS_H

#include "instance.h"
#include "plain.h"

#define LONG 60000 /* bytes of a message of many frames, the longest */

extern uint64_t now; /* of the clock of all, ns */
extern struct instance *in;

struct memory {
	uint64_t held, peak; /* bytes that the instance has */
	bool none;	     /* there is no more */
};
extern struct memory memory;

/* What the program was told. */
struct told {
	uint32_t arrived, done, failed;
	uint32_t bytes; /* of the message that arrived last, */
	struct sockaddr_beowire from;
	int error; /* the last one; 0: none */
};
extern struct told told;

/* What the kernel says are the interfaces in use, and by which one the last frame left. */
extern struct beowire_server_iface interface[BEOWIRE_SERVER_IFACES];
extern uint32_t left_by;

struct caller {
	void *engine, *grown;
	uint64_t node;
	uint32_t inc;
	uint16_t port;
	uint8_t mac[6];
	uint32_t peer;	/* its handle of the instance */
	uint32_t taken; /* messages */
	int down;	/* why it lost us */
	uint32_t mute;	/* one frame less than that passes, and all others are lost; 0: all pass */
};

/* cmocka's: there is an instance; it has ended, and has left nothing. */
int callers_begin(void **state);
int callers_end(void **state);

/* Another caller, of this number, with nothing of what it may have been before. */
void caller_begin(struct caller *c, uint32_t number);
/* Without a word. */
void caller_free(struct caller *c);
void caller_meets(struct caller *c);
/* All messages have the same bytes. */
void caller_posts(struct caller *c, uint32_t bytes);
/* It is sent now. */
void caller_sends(struct caller *c, uint32_t bytes);
/* A caller whose one message has arrived. */
void caller_calls(struct caller *c, uint32_t number);
/* What a program knows of it that has not heard of it. */
struct sockaddr_beowire address(const struct caller *c);
void program_sends(const struct sockaddr_beowire *to, uint32_t bytes);
/* One more socket is opened, and closed at once. */
void program_opens_another(void);
/* Frames to callers that have not left are lost. */
void lose(void);

/* All that is said at this time between the instance and this caller. What is for others is
 * lost. */
void settle(struct caller *c);
/* So much time passes. */
void pass(struct caller *c, uint64_t ns);

#endif
