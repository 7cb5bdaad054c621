/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What providers say to one another: the codes of their messages and the requests that the payload
 * of some of them begins with. All integers are little-endian, as in Beowire's frames.
 */
#ifndef BWF_CODES_H
#define BWF_CODES_H

#include <stdint.h>

/* Low bits of a message's code. */
enum bwf_code {
	BWF_CODE_MSG = 1,    /* imm: the sender's data */
	BWF_CODE_TAGGED = 2, /* tag: the tag; imm: the sender's data */
	BWF_CODE_WRITE = 3,  /* payload: bwf_write_request, segments, data */
	BWF_CODE_WRITE_LONG =
		4, /* payload: bwf_write_request, segments; data follow in WRITE_DATA */
	BWF_CODE_WRITE_DATA = 5,  /* tag: token of the WRITE_LONG; payload: the data */
	BWF_CODE_WRITE_DONE = 6,  /* tag: token; imm: 0 or a positive errno: EACCES, EALREADY,
				   * ECANCELED, EINVAL, EIO, ENOBUFS, ENOMEM */
	BWF_CODE_ATOMIC = 7,	  /* payload: bwf_atomic_request, segments, operands [, compare] */
	BWF_CODE_ATOMIC_DONE = 8, /* tag: token; imm: as above; payload: the values before */
};
#define BWF_CODE_MASK 0x1F
#define BWF_CODE_DATA 0x40 /* MSG, TAGGED: imm is remote CQ data */
/* MSG, TAGGED, if the data have to be fetched: the sending program was told that it is done, so
 * that what it sends later must not complete a receive sooner. */
#define BWF_CODE_DONE 0x20

/* A piece of the target's memory. */
struct bwf_segment {
	uint64_t addr;
	uint64_t len; /* bytes; of an atomic: elements */
	uint64_t key;
};

/* WRITE_LONG requests of one initiator that one target keeps at a time: the initiator starts no
 * more, the target refuses more with ENOBUFS. */
#define BWF_WRITES_MAX 1024
/* The same of all initiators together that the target's program has not named, and whose data are
 * still to come: the oldest of them is then refused in the place of the newest. */
#define BWF_WRITES_STRANGERS 16384
/* Requests (WRITE, WRITE_LONG, ATOMIC) of one initiator to one target that are not answered, and
 * bytes that their answers bring: the initiator starts no more. Who has more answers than that kept
 * for it, since it does not take them, is given up. */
#define BWF_REQUESTS_MAX 16384
#define BWF_ANSWERS_MAX	 (8U << 20)
/* The same of all together that the target's program has not named: who has most of them is given
 * up. */
#define BWF_KEPT_STRANGERS    262144
#define BWF_ANSWERS_STRANGERS (128U << 20)
/* Keys of memory that one initiator may name although nobody has them; then it is given up. */
#define BWF_GUESSES_MAX 64
/* The same of all together that the target's program has not named, at a time; each second one more
 * may be named. Beyond that such a peer is answered EACCES whatever it names, unless it has named a
 * key before that the target has. */
#define BWF_GUESSES_STRANGERS 1024

#define BWF_WRITE_HAS_DATA 0x1 /* `data` is to be put into the target's completion queue */

struct bwf_write_request {
	uint64_t token; /* names the operation in the answer */
	uint64_t data;
	uint64_t len;	   /* bytes of data written */
	uint32_t flags;	   /* BWF_WRITE_* */
	uint32_t segments; /* bwf_segment that follow, 1 to BWF_IOV_MAX */
};

enum bwf_atomic_kind {
	BWF_ATOMIC_BASE = 0,
	BWF_ATOMIC_FETCH = 1,
	BWF_ATOMIC_COMPARE = 2,
};

struct bwf_atomic_request {
	uint64_t token;
	uint64_t data;
	uint32_t count;	   /* elements of all segments together */
	uint32_t flags;	   /* BWF_WRITE_* */
	uint16_t type, op; /* enum fi_datatype, fi_op */
	uint16_t kind;	   /* enum bwf_atomic_kind */
	uint16_t segments; /* 1 to BWF_IOV_MAX */
};

#endif
