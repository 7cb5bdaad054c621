/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Endpoints of libbeowire in one process, on a clock of the test's own: what each hands to its
 * packet link is put on a line, from which the test takes it, and frames that arrive are put into
 * rings as the kernel would. Sides 1 and 2 are two endpoints of one node.
 */
#ifndef ENDPOINT_WORLD_H
#define ENDPOINT_WORLD_H

#include "arriving.h"
#include "ep.h"
#include "fuzz.h"

#define WORLD_SIDES	3
#define WORLD_LINE	4096 /* frames that the line holds; others get lost */
#define WORLD_ETHER	14
#define WORLD_MTU	9000
#define WORLD_SLOTS	64
#define WORLD_SLOT	9216 /* bytes */
#define WORLD_PER_BLOCK 8
#define WORLD_BLOCK	(WORLD_PER_BLOCK * WORLD_SLOT + 4096)
#define WORLD_RING	(WORLD_SLOTS / WORLD_PER_BLOCK * WORLD_BLOCK)
#define WORLD_DEAD_NS	(2 * BW_S) /* a silent peer is given up */

/* What others' messages take of the room for those that arrive, and for those sent, if so. */
#define WORLD_LEFT   (400u << 10)
#define WORLD_COME   (BW_ARRIVING_MAX - WORLD_LEFT)
#define WORLD_COPIED (32u << 20)

struct world_side {
	struct bw_ep *ep; /* NULL: closed */
	struct bw_addr addr;
	uint16_t engine;
	uint32_t inc;
	uint32_t opens;	  /* times that it was opened */
	uint64_t due;	  /* when it wants to be called */
	uint32_t head;	  /* slot of the ring that the next frame goes to */
	uint32_t used;	  /* slots before it that have not been taken back */
	uint32_t no_room; /* frames that the kernel has no room for, from now on */
	bool cut;	  /* all that it sends gets lost */
	uint16_t alive[BW_FILTER_ALIVE];
	unsigned int alives; /* engines that its filter leaves out */
};

/* A frame on the line, the Ethernet header first. */
struct world_frame {
	uint8_t *bytes;
	uint32_t len;
	uint8_t from; /* side */
};

struct world {
	struct world_side side[WORLD_SIDES];
	int sides;
	struct world_frame line[WORLD_LINE];
	uint32_t frames;
	struct world_frame last[WORLD_SIDES]; /* DATA that each has sent last, a copy */
	uint64_t now;
	uint64_t frame_ns; /* time that a frame takes */
	uint64_t drawn;	   /* random numbers, so that a run repeats from its input */
	uint32_t mtu;
	bool keyed, encrypts; /* all have one key */
	bool budget;	      /* peers may have so much under way that rings do not bound it */
	bool crowded;	      /* messages to and from others take nearly all room for such; */
	uint64_t come;	      /* so many bytes of those that arrive */
	uint32_t no_memory;   /* requests for memory that fail, from now on */
	bool lossy;	      /* frames got lost, or time jumped: peers may be given up */
	int opening;	      /* the side that is being opened */
	bool inside;	      /* calls go to this world, not to the kernel */
};

extern struct world world;

/* All is closed and the clock starts anew. */
void world_begin(void);
/* Open side i. */
void world_open(int i, const struct bw_handlers *handlers);
/* Close it, waiting for so long; the others go on meanwhile. */
void world_close(int i, uint64_t timeout_ns);
void world_end(void);

/* Side i makes a round. */
void world_round(int i);
/* The first n frames of the line arrive. */
void world_deliver(uint32_t n);
/* Frame i of the line is no more. */
void world_lose(uint32_t i);
/* A frame of a side joins the line, at its end: a copy of these bytes. */
void world_add(int from, const uint8_t *bytes, uint32_t len);
/* All that is under way arrives, and all but side `not` make a round. If nothing was under way the
 * clock goes on to when somebody wants to be called, `until` at most. */
void world_turn(int not, uint64_t until);

/* endpoint_frame.c: what a hostile peer does, frames from their header on. */
/* Nothing was seen yet. */
void frame_forget(void);
/* Learn what a frame of this side names, so that others can name it. */
void frame_see(int from, const uint8_t *bytes, uint32_t len);
/* Change a frame as the script says, checks made right afterwards; its new length, of at most
 * `room`. */
uint32_t frame_change(struct fuzz_input *in, uint8_t *bytes, uint32_t len, uint32_t room);
/* Of DATA of this side, make the next one with parts that the script says; its length. */
uint32_t frame_invent(struct fuzz_input *in, int from, uint8_t *bytes, uint32_t room);

#endif
