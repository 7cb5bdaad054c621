/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What two processes share over the `local` link: the handshake on the unix socket, the segment
 *with its two rings, and each endpoint's status page. Everything here may be written by the other
 *process at any time, so each word is read once, atomically, and checked before use.
 *
 * Segment (a sealed memfd made by the side that connects; ring 0 carries its records, ring 1 those
 *of the side that accepts):
 *
 *	control page | slot states 0 | slot states 1 | ring 0 | ring 1
 *
 * Pages that are not touched need no memory. If both sides connect at the same time each goes on
 *sending through its own segment's ring 0, and both ring 1 stay unused.
 */
#ifndef BW_LOCAL_SHM_H
#define BW_LOCAL_SHM_H

#include "platform.h"

#define BW_LOCAL_MAGIC	 0x4C774265u /* "eBwL" */
#define BW_LOCAL_VERSION 1

#define BW_LOCAL_PAGE	      4096 /* bytes; unit of the layout, or a multiple for larger pages */
#define BW_LOCAL_RING_MIN     (16u << 10)
#define BW_LOCAL_RING_MAX     (16u << 20)
#define BW_LOCAL_RING_DEFAULT (256u << 10)
#define BW_LOCAL_LINE	      64 /* bytes; records start at multiples of it */

/* First packet in each direction on a connection. Its layout never changes between versions. Hello
 * comes with two descriptors (segment, status page), a positive answer with one (status page). */
struct bw_local_hello {
	uint32_t magic;	  /* BW_LOCAL_MAGIC */
	uint16_t version; /* BW_LOCAL_VERSION */
	uint16_t answer;  /* 0: hello, 1: answer */
	int32_t status;	  /* answer: 0 or the negative errno of a refusal */
	uint32_t flags;	  /* BW_LOCAL_BARRIER */
	uint64_t node;	  /* the sender's identity ... */
	uint32_t cluster;
	uint32_t incarnation;
	uint16_t engine;
	uint16_t dst_engine; /* hello: who is meant */
	uint32_t dst_incarnation;
	uint32_t ring_bytes; /* hello: of each ring of the segment */
	uint32_t reserved;
	uint64_t key[2];      /* hello: of ring 0 and 1, random */
	uint64_t probe_addr;  /* address of a word in the sender's memory ... */
	uint64_t probe_value; /* ... and its value: proves that cross-memory attach reads the sender
			       */
	char name[32];
};
_Static_assert(sizeof(struct bw_local_hello) == 112, "bw_local_hello");

/* An endpoint's status page: written by it, mapped read-only by its peers. */
struct bw_local_status {
	uint32_t sleeping; /* odd: a doorbell is needed. Grows by one at each change */
	uint32_t pressure; /* not 0: send envelopes only */
};

/* Control words of one ring, those of each writer on a line of their own (two, since processors
 * fetch lines in pairs). */
struct bw_local_control {
	uint64_t head; /* consumer: bytes taken out, ever */
	uint8_t pad0[120];
	uint32_t want_room; /* producer: changed when it goes to sleep without room */
	uint32_t closed;    /* producer: not 0 after a close in good order */
	uint8_t pad1[120];
};
_Static_assert(sizeof(struct bw_local_control) == 256, "bw_local_control");

/*
 * A record starts on a line. It is complete when its commit word is the ring's key plus the
 * record's position (bytes put in before it, ever), so neither an index nor cleaning is needed:
 * what an earlier round left there had another position, and whoever chooses the payload cannot
 * know the random key.
 */
struct bw_local_record {
	uint64_t commit;
	uint32_t len;  /* bytes in data */
	uint32_t what; /* BW_LOCAL_WHAT() */
	uint64_t a;
	uint64_t b;
	uint8_t data[];
};
_Static_assert(sizeof(struct bw_local_record) == 32, "bw_local_record");

/* Bytes that a record with len bytes of data takes in a ring. */
static inline uint64_t bw_local_record_bytes(uint64_t len)
{
	return (sizeof(struct bw_local_record) + len + BW_LOCAL_LINE - 1) &
	       ~(uint64_t)(BW_LOCAL_LINE - 1);
}

/* Most data of a record: 64 KiB, or a quarter of a small ring. */
static inline uint32_t bw_local_record_limit(uint32_t ring_bytes)
{
	return ring_bytes / 4 < 65536 ? ring_bytes / 4 : 65536;
}

#define BW_LOCAL_WHAT(kind, code, slot) ((uint32_t)(kind) | (uint32_t)(code) << 4 | (slot) << 12)
#define BW_LOCAL_KIND(what)		((what)&0xF)
#define BW_LOCAL_CODE(what)		((uint8_t)((what) >> 4))
#define BW_LOCAL_SLOT(what)		((what) >> 12)
#define BW_LOCAL_SLOTS			(1u << 20)
#define BW_LOCAL_NO_SLOT		(BW_LOCAL_SLOTS - 1)
/* Slots that may be in use at a time, all below this number: so many releases one side may have to
 * remember, and so many pulls of its program's. */
#define BW_LOCAL_SLOTS_USED (1u << 17)

enum bw_local_kind {
	BW_LOCAL_MESSAGE = 1, /* a tag, b imm; slot: release it when taken, unless NO_SLOT */
	BW_LOCAL_ENVELOPE,    /* a tag, b imm; slot; data: address, length (2 x u64) */
	BW_LOCAL_RELEASE,     /* slot: done with it; a bytes fetched */
	BW_LOCAL_PULL,	      /* slot: send its data; a bytes wanted, b id */
	BW_LOCAL_READ,	/* a key, b id; data: offset, bytes (2 x u64); code 1: an address will do */
	BW_LOCAL_GRANT, /* a address that a READ may read itself, b id */
	BW_LOCAL_REFUSED, /* a negative errno, b id of the PULL or READ that ends so */
	BW_LOCAL_DATA,	  /* a offset, b id; data: bytes for a PULL or READ */
};

/* States of a slot, one byte each, changed by compare-and-swap: both sides may want it at once. */
enum bw_local_slot_state {
	BW_LOCAL_OFFERED = 1, /* by the offering side, before the envelope is written */
	BW_LOCAL_TAKEN,	      /* by the pulling side, before it reads: too late to retract */
	BW_LOCAL_RETRACTED,   /* by the offering side */
};

#endif
