/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The cluster's key, and what is made of it (key.c). */
#ifndef BW_KEYS_H
#define BW_KEYS_H

#include "reliable.h"

/* Who is said to have another key, or another version, may answer for so long. */
#define BW_KEY_PATIENCE (3 * BW_S)
void bw_key_open(struct bw_engine *e);
/* The keys of the conversation with a peer that has said all of HELLO; random: of its HELLO. */
void bw_key_session(struct bw_engine *e, struct bw_peer *p, uint64_t random);
/* `auth` of a HELLO that is complete but for it and its checksum. */
void bw_key_sign_hello(struct bw_engine *e, struct bw_hdr *h);
/* Was it made with our key, or without one if we have none? */
bool bw_key_hello_genuine(struct bw_engine *e, const struct bw_hdr *h);
/* The tag of a frame whose fixed parts lie at `head`, in order; its fields for the tag are
 * overwritten, by `over`: the halves of numbers that the frame leaves out. */
uint64_t bw_key_tag(struct bw_engine *e, const uint8_t key[16], struct bw_hdr *head,
		    uint32_t head_len, uint64_t over);
/* `over` of DATA with this packet number, that states a limit of `credit` units. */
static inline uint64_t bw_key_over_data(uint64_t pn, uint64_t credit)
{
	return pn >> 32 << 32 | credit >> 32;
}

/* `over` of what acknowledges all packets up to `ack`, wants nothing before `floor`, and states a
 * limit of `credit` units. */
uint64_t bw_key_over_ack(uint64_t ack, uint64_t floor, uint64_t credit);

#endif
