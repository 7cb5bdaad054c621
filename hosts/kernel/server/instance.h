/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An instance: the engine of one socket, as the kernel host has one for each of its ports. It lives
 * from OPEN until nothing is left to be done after CLOSE.
 */
#ifndef SERVER_INSTANCE_H
#define SERVER_INSTANCE_H

#include "memory.h"
#include "peers.h"
#include "protocol.h"
#include "rings.h"

struct instance {
	struct instance *next, *in_bucket; /* the server's */
	uint32_t id;			   /* of the socket */
	uint16_t port;
	const struct bw_protocol *protocol;
	struct rings *rings;
	uint32_t ifindex[BEOWIRE_SERVER_IFACES]; /* by the engine's numbers of links; 0: none */
	void *engine;
	struct bw_host_ops ops; /* what it asks for */
	void *grown;		/* memory.c: what the engine grew by, chained by the first word; */
	uint64_t grown_bytes;	/* so much, in bytes; */
	uint64_t arriving;	/* bytes of messages that have begun; */
	bool crowded;		/* one was refused since the last look at who is in the way, */
	uint64_t relieve_at;	/* of which none is made before; */
	uint64_t given_up;	/* so many peers were; */
	uint64_t unmet;		/* so many callers there was no memory for */
	struct peers peers;
	struct instance_held *held;   /* messages, the oldest first */
	struct plain_buffer *sending; /* those that the engine has */
	uint64_t ask_at;	      /* then one of them is sent all the same */
	bool retrying;
	uint64_t deadline; /* when instance_run() is due */
	uint64_t linger_until;
	bool closing;
};

/* For this OPEN, which is answered. NULL: refused. */
struct instance *instance_open(struct rings *rings, const struct bw_protocol *protocol,
			       const struct beowire_record *open);
void instance_send(struct instance *in, const struct beowire_record *send);
/* The socket has too much unread, or no longer. */
void instance_press(struct instance *in, bool on);
void instance_frame(struct instance *in, const struct beowire_record *frame);
/* All that the engine wants to do now, and when it wants to be asked again. */
void instance_run(struct instance *in);
/* The socket is gone. */
void instance_close(struct instance *in);
/* Is it closed, and nothing left to be done? */
bool instance_over(const struct instance *in);
/* Answer CLOSED. */
void instance_end(struct instance *in);

/* An answer without bytes, and with a status. */
void instance_answer(struct rings *rings, uint32_t id, uint16_t type, int status, uint32_t bytes);

#endif
