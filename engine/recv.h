/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* DATA and ACK frames that come (recv.c). */
#ifndef BW_RECV_H
#define BW_RECV_H

#include "reliable.h"

/* A MESSAGE part whose payload is at `at`: 0, or the negative of enum bw_drop. */
int bw_recv_message(struct bw_engine *e, struct bw_peer *p, const struct bw_rx_frame *f,
		    const struct bw_part_msg *w, uint32_t at);
/* The message that this is a segment of, if some of it has come and some has not; else NULL. */
struct bw_rxmsg *bw_recv_arriving(struct bw_engine *e, struct bw_peer *p,
				  const struct bw_part_msg *w);
/* Bytes [lo, hi) of it are in place, of which some may have been before. */
void bw_recv_placed(struct bw_engine *e, struct bw_rxmsg *m, uint64_t lo, uint64_t hi);
int bw_recv_data(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h);
/* Is the body of this ACK, or of a BYE that acknowledges, whole and right? 0, or the negative
 * reason to drop it. */
int bw_recv_ack_body(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h);
/* What such a body acknowledges of what the peer was sent on this path. */
void bw_recv_ack_taken(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
		       const struct bw_hdr *h);
int bw_recv_ack(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h);
bool bw_recv_head_ok(struct bw_engine *e, const struct bw_rx_frame *f, uint32_t fixed);
/* The same of a frame without payload by a peer, NULL: an unknown one: its checksum or tag. 0, or
 * why it is dropped. */
int bw_recv_peers_head(struct bw_engine *e, const struct bw_rx_frame *f, struct bw_peer *p,
		       uint32_t fixed);
uint64_t bw_unwrap(uint64_t near, uint32_t wire);
/* The first message that waits is dropped; false: there is none. */
bool bw_flow_drop_one(struct bw_engine *e, struct bw_flow *flow);
/* Messages that are whole, and whose turn has come. */
void bw_flow_deliver(struct bw_engine *e, struct bw_flow *flow);

#endif
