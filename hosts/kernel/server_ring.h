/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's end of rings of records, in memory that a protocol server maps; beowire_server.h
 * says what lies there. tests/fuzz runs this outside a kernel.
 */
#ifndef BWK_SERVER_RING_H
#define BWK_SERVER_RING_H

#include <linux/spinlock.h>

#include "beowire_server.h"

/* Our end of a ring. */
struct bwk_ring {
	spinlock_t lock;	     /* of rings that we write */
	struct beowire_ring *shared; /* NULL once the server is gone */
	u8 *data;
	u32 size; /* bytes, a power of two */
	u32 at;	  /* bytes ever written, or read */
};

/* Room for a record with so many bytes of payload, its common fields filled in, or NULL. Lock held,
 * bwk_ring_commit() follows. */
struct beowire_record *bwk_ring_reserve(struct bwk_ring *ring, u16 type, u32 id, u32 bytes);
/* It is complete, with `bytes` as reserved. */
void bwk_ring_commit(struct bwk_ring *ring, u32 bytes);
/* Is half of the ring free? Then any record finds room. Any context. */
bool bwk_ring_roomy(struct bwk_ring *ring);
/* Has the server left something unread? Any context. */
bool bwk_ring_waiting(struct bwk_ring *ring);
/* The next record that the server wrote is copied to *record, its payload is at *bytes and may
 * change at any time. 1, 0: none, -EPROTO: nonsense; the ring is empty now. */
int bwk_ring_next(struct bwk_ring *ring, struct beowire_record *record, const u8 **bytes);
/* It has been dealt with. */
void bwk_ring_consume(struct bwk_ring *ring, const struct beowire_record *record);

#endif
