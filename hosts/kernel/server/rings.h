/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rings that a protocol server shares with the kernel module, from the server's side. One
 * thread at a time.
 */
#ifndef SERVER_RINGS_H
#define SERVER_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "beowire_server.h"

struct ring {
	struct beowire_ring *shared;
	uint8_t *data;
	uint32_t size, at; /* bytes ever read, or written */
};

struct rings {
	int fd;
	uint32_t number;
	uint64_t node;
	uint32_t cluster;
	void *area;
	uint64_t area_bytes;
	struct ring ring[BEOWIRE_RINGS];
	struct beowire_server_iface link[BEOWIRE_SERVER_IFACES];
	bool touched; /* the kernel does not know yet of what was read or written */
};

/* Claim the protocol number and map the rings. 0, or a negative errno. */
int rings_open(struct rings *r, uint32_t number, const char *name);
/* The number is free again, its sockets fail. */
void rings_close(struct rings *r);
/* Learn anew which interfaces are in use, in the kernel's order. */
int rings_read_links(struct rings *r);

/* The next record from the kernel, or NULL. It lies in the ring until rings_consume(). */
const struct beowire_record *rings_next(struct rings *r, enum beowire_ring_number ring);
void rings_consume(struct rings *r, enum beowire_ring_number ring,
		   const struct beowire_record *record);

/* Begin a record with room for so many bytes behind it; NULL: the kernel has not yet made room.
 * rings_commit() shows it to the kernel, by the next turn. */
struct beowire_record *rings_reserve(struct rings *r, enum beowire_ring_number ring, uint16_t type,
				     uint32_t socket, uint32_t bytes);
void rings_commit(struct rings *r, enum beowire_ring_number ring,
		  const struct beowire_record *record);

/* Hand over what was written; then wait for the kernel's next record, but not longer than this
 * (nanoseconds; 0: not at all, negative: without end). 0, -EINTR, or another negative errno. */
int rings_turn(struct rings *r, int64_t timeout_ns);

#endif
