/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the target of raw frames sends by its links: frames of any layout, which leave by sendto()
 * and sendmmsg() as they were given, once, or are counted as lost. The kernel takes as many as the
 * script says.
 */
#ifndef PACKET_SENT_H
#define PACKET_SENT_H

#include "fuzz.h"
#include "link/packet/packet.h"

#define PACKET_LINKS 2

/* A new input, whose links are `of`. */
void packet_sent_begin(struct fuzz_input *script, struct bw_packet *of);
/* Collect a frame of the script's, made in f. */
void packet_sent_add(uint32_t i, struct bw_tx_frame *f);
/* Give all that is collected to the kernel. False: it has no room now. */
bool packet_sent_flush(uint32_t i, uint64_t now);
/* The target's: a frame leaves that the script did not make. */
void packet_refusal(const uint8_t *bytes, uint32_t len);

#endif
