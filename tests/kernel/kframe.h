/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames as they are on the wire, for tests of the kernel module: made, and changed under way. */
#ifndef KFRAME_H
#define KFRAME_H

#include "ktest.h"
#include "protocol.h"

#define KT_FRAME_MAX 9018
#define KT_ETHERNET  14

struct kt_frame {
	uint32_t len;
	uint8_t bytes[KT_FRAME_MAX];
};

/* A packet socket of this node's interface, for frames of this type; fails the test. */
int kt_raw(const char *node, const char *interface, uint16_t type);
struct bw_hdr *kt_header(struct kt_frame *f);
/* The first part of this kind, with at least these bits of `code`, in a DATA frame, or NULL. */
uint8_t *kt_part(struct kt_frame *f, uint8_t kind, uint8_t code);
/* The header gets the checksum that belongs to the rest; nothing if the frame is too short. */
void kt_seal(struct kt_frame *f);
void kt_inject(int raw, const struct kt_frame *f);
/* A packet socket by which frames of a page and more arrive in pieces; the first one has so many
 * bytes, with the Ethernet header. */
int kt_raw_in_pieces(const char *node, const char *interface);
void kt_send_in_pieces(int raw, const struct kt_frame *f, uint32_t piece);

/* A second way from a to b, over their interfaces m0: each frame is given to `change`, sealed
 * anew, and sent on, until it is ended. A length of 0: not this one. */
struct kt_relay {
	struct kt_thread thread;
	int raw[2];    /* towards a, towards b */
	int pieces[2]; /* the same, for frames in pieces */
	void (*change)(struct kt_frame *f, long wanted);
	volatile long wanted;	 /* what `change` is given */
	volatile bool as_it_is;	 /* it is not sealed anew: who has no key cannot */
	volatile uint32_t piece; /* not 0: of frames in pieces the first one has so many bytes */
	volatile bool over;
};
void kt_relay_begin(struct kt_relay *r, void (*change)(struct kt_frame *f, long wanted));
void kt_relay_end(struct kt_relay *r);
/* A socket of a's reaches this port of b's by that way: the address for connect(). */
struct sockaddr_beowire kt_relayed(const struct sockaddr_beowire *at_b);

#endif
