/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The peers of an instance, found by the engine's handle. An entry is there from the PEER_UP, or
 * from the first send if that comes sooner, to the PEER_DOWN.
 */
#ifndef SERVER_PEERS_H
#define SERVER_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "beowire_socket.h"
#include "protocol.h"

struct peer {
	struct peer *next;	   /* of its bucket */
	uint32_t handle;	   /* the engine's */
	bool spoken;		   /* the program has sent to it: its end is told, and it stays */
	uint64_t arriving;	   /* bytes of messages of its that have not arrived whole, */
	uint64_t arriving_at;	   /* when that last changed, ns, */
	uint32_t arriving_next;	   /* how many of them were the next of their flow, */
	uint64_t arriving_refused; /* when there was no room for such a one, ns; 0: not since */
	struct sockaddr_beowire addr; /* once it is up */
};

struct peers {
	struct peer **bucket;
	uint32_t buckets; /* a power of two; 0: there is no table yet */
	uint32_t count;
	const struct bw_host_ops *ops; /* for random() and siphash() */
	uint8_t key[16];	       /* of the buckets: nobody else can tell who shares one */
	uint64_t steps;		       /* along chains, ever; for tests */
};

/* There is none. `ops` must outlive it. */
void peers_init(struct peers *p, const struct bw_host_ops *ops, void *host);
void peers_free(struct peers *p);
/* The peer of this handle, or NULL. */
struct peer *peers_find(struct peers *p, uint32_t handle);
/* The same, made if it is new; NULL without memory. */
struct peer *peers_make(struct peers *p, uint32_t handle);
void peers_drop(struct peers *p, struct peer *peer);

#endif
