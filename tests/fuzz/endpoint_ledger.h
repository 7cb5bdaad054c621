/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs of endpoint_ops.h remember: operations, and with whom they speak. */
#ifndef ENDPOINT_LEDGER_H
#define ENDPOINT_LEDGER_H

#include "endpoint_ops.h"

#define OPS	 2048 /* in a run */
#define KEPT	 OPS  /* envelopes that a side keeps */
#define LONGEST	 330000u
#define VOLUME	 (2u << 20) /* bytes sent and read in a run; from then on all is short */
#define REGION	 100000u
#define KEY_BASE 77

enum kind { SEND, PULL, READ, PLACE };
enum state { FREE, PENDING, ENDED, DEAD };

struct op {
	enum kind kind;
	enum state state;
	int side, to;	   /* of PULL and PLACE: whom from */
	uint8_t *buf;	   /* the program's memory; NULL: it is its own again */
	uint64_t len, off; /* bytes; READ: where in the region */
	uint32_t pattern;  /* where in the pattern the bytes lie that it has or is to have */
	uint64_t imm;
	unsigned int flags;
	uint8_t code;
	uint32_t inc;	    /* of the side that sends */
	uint32_t conv, seq; /* SEND: which conversation, and its number in that */
	uint32_t breaks;    /* of its pair of sides, when it began */
	struct op *of;	    /* PULL, PLACE: the message */
	bool delivered, taken, canceled, may_fail;
	int status;
};

struct program {
	uint8_t *region;
	bool forbids;
	struct {
		struct op *of;
		struct bw_rndv rndv;
		uint64_t len;
		bw_peer_no peer;
		int from;
	} kept[KEPT];
	uint32_t n_kept;
	struct {
		uint32_t conv, seq;	  /* of what it sends there: the next one */
		uint32_t inc, from, next; /* of what it receives: of which incarnation, which
					   * conversation, and what comes next */
		uint32_t breaks;	  /* ends of conversations with it, told or made */
	} with[WORLD_SIDES];
};

extern struct op op_all[OPS]; /* their tags are their places here */
extern uint32_t op_count, op_volume;
extern uint8_t op_pattern[1u << 20]; /* what all bytes are made of */
extern struct program program[WORLD_SIDES];

/* One of side s with t, with memory of its own; NULL: there are too many. It is not begun. */
struct op *op_new(enum kind kind, int s, int t, uint64_t len);
/* The program's memory is free. */
void op_end(struct op *op, enum state state);
/* The newest one was not begun. */
void op_undo(struct op *op);

/* What was under way between the two may fail. */
void program_break_up(int s, int t);
void program_unkeep(int s, uint32_t k);
/* Side s fetches what it keeps as k: so many bytes, ahead of its decision if `early`. */
int program_fetch(int s, uint32_t k, uint64_t len, bool early);

#endif
