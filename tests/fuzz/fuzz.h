/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the fuzz targets share: an input read as a script, a host whose buffers are real memory (so
 * that sanitizers see every byte out of bounds), and frames made to pass the checks that random
 * bytes never pass.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include "protocol.h"

#define FUZZ_CLUSTER 7u
#define FUZZ_MTU     2000u
#define FUZZ_BUFFERS 64 /* that buf_get() hands out at a time */

/* The rest of the input. Past its end everything read is 0. */
struct fuzz_input {
	const uint8_t *at, *end;
};

uint8_t fuzz_u8(struct fuzz_input *in);
uint16_t fuzz_u16(struct fuzz_input *in);
/* Mostly plausible, else anything. */
uint64_t fuzz_number(struct fuzz_input *in);
/* What is odd, a bit for each: mostly one thing. */
uint8_t fuzz_odd(struct fuzz_input *in);
/* The next n bytes, or as many as there are; *n is set to their number. */
const uint8_t *fuzz_bytes(struct fuzz_input *in, uint32_t *n);

/* An engine, its memory, and all that it was given. */
#define FUZZ_GROWN 8
#define FUZZ_ROW   8 /* frames that arrive as a row, at most */
struct fuzz_host {
	const struct bw_protocol *protocol;
	struct bw_config cfg;
	void *mem, *grown[FUZZ_GROWN];
	uint32_t grown_n, buffers_n;
	void *buffers[FUZZ_BUFFERS];
	uint8_t *memory; /* what is sent, pulled and exposed */
	uint64_t now;
	uint64_t drawn; /* random numbers, so that a run repeats from its input */
	bool seals;	/* it has a key and encrypts: set before it is opened */
	void (*seen)(const struct bw_event *e); /* told of what a frame brings; or NULL */
	uint32_t hold; /* frames still to be held until the one behind them arrives with them */
	uint32_t held;
	struct bw_rx_frame row[FUZZ_ROW]; /* `held` of them */
};

#define FUZZ_MEMORY 200000u /* bytes of fuzz_host.memory */

/* What is sealed is not enciphered, and genuine unless the first byte of its tag is odd. */
void fuzz_open(struct fuzz_host *h, const struct bw_protocol *protocol, uint8_t number);
void fuzz_close(struct fuzz_host *h);
/* Events are taken; `seen` is called with each. */
void fuzz_events(struct fuzz_host *h, void (*seen)(const struct bw_event *e));
/* The next frame as flat bytes (at most BW_FRAME_MAX_MTU), and checked; 0: none. */
uint32_t fuzz_next_frame(struct fuzz_host *h, uint8_t *flat);
/* Let the bytes arrive, or hold them. `scatter`: the engine sees BW_HEAD_MAX of them only. */
int fuzz_receive(struct fuzz_host *h, const uint8_t *bytes, uint32_t len, bool scatter, bool mark);
/* Grow where wanted, and abort if an invariant is broken. */
void fuzz_after(struct fuzz_host *h);
/* The tag of every frame where there is a key, so that inputs can make it. */
#define FUZZ_TAG 1u

/* Set hdr.len to what is there (if `len`), and hdr.hcrc to what a receiver computes. */
void fuzz_seal(uint8_t *bytes, uint32_t size, bool len);
/* Print and abort. */
__attribute__((noreturn)) void fuzz_bad(const char *what);

#endif
