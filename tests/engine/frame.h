/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A frame between two engines of a test, as flat bytes: described in one line of text, which tests
 * compare, and sealed again after a test has changed it.
 */
#ifndef TEST_FRAME_H
#define TEST_FRAME_H

#include "protocol.h"

/* Bytes of a ping: as many as a refusal has. */
#define FRAME_PING (sizeof(struct bw_hdr) + sizeof(struct bw_refuse))

struct frame {
	int from, to; /* nodes of the world */
	uint8_t link;
	uint8_t place; /* of the sender; see struct node */
	bool mark;     /* arrives with a congestion mark */
	uint32_t len;
	uint32_t trailer; /* bytes at its end for the tag, if it is to be sealed */
	bool sealed;	  /* it is; else what it says can be read and changed */
	uint8_t seal[BW_SEAL_KEY];
	uint64_t pn;	/* its whole number then */
	uint8_t *bytes; /* exactly len of them, so that sanitizers see every byte read too much */
};

/* What a description says beyond the frame's own contents. */
struct frame_view {
	bool credit, floor, marks;
	uint32_t last_ack; /* an acknowledgement on DATA is described when it differs from this */
};

/* The bytes of a frame that the engine made, payloads fetched by `read`. */
struct frame *frame_new(const struct bw_tx_frame *t,
			void (*read)(uint64_t buf, uint64_t off, void *to, uint32_t n));
/* It is enciphered, as its sender's host would, if it is to be and is not yet. */
void frame_encipher(struct frame *f);
struct frame *frame_copy(const struct frame *f);
void frame_free(struct frame *f);

static inline struct bw_hdr *frame_hdr(const struct frame *f)
{
	return (struct bw_hdr *)f->bytes;
}

/* The body behind the header: a bw_hello, bw_ackblk, bw_refuse ... */
static inline void *frame_body(const struct frame *f)
{
	return f->bytes + sizeof(struct bw_hdr);
}

static inline uint8_t frame_type(const struct frame *f)
{
	return frame_hdr(f)->type;
}

/* Packet number of a DATA frame (low 32 bits), 0 for others. */
static inline uint32_t frame_pn(const struct frame *f)
{
	return frame_type(f) == BW_FRAME_DATA ? frame_hdr(f)->pn : 0;
}

/* Part i of a DATA frame, NULL if there are not so many. */
struct bw_part *frame_part(const struct frame *f, unsigned int i);
/* The payload of a part. */
uint8_t *frame_payload(const struct frame *f, const struct bw_part *part);
/* What the header's check covers, in order, to a place for a whole frame; its length. Of a frame
 * that is sealed that is what is shown. */
uint32_t frame_fixed(const struct frame *f, uint8_t *to);
/* Compute the header checksum afresh. */
void frame_seal(struct frame *f);
/* "HELLO answer", "DATA 1 now [MESSAGE 0 0+8/8]", "ACK 3 +[5,7)" ... */
void frame_describe(const struct frame *f, struct frame_view *view, char *text, size_t room);

#endif
