/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Acknowledgements both ways (ack.c). */
#ifndef BW_ACK_H
#define BW_ACK_H

#include "reliable.h"

void bw_ack_received(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
		     const struct bw_hdr *h, const struct bw_ackblk *b, const struct bw_ack *a,
		     const struct bw_range *r);
/* So many packets in a row have come, the last of this number, some with a congestion mark; to be
 * acknowledged at once, or not. */
void bw_ack_note(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint64_t pn,
		 uint32_t packets, uint32_t marks, bool now);
void bw_ack_block(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, struct bw_ackblk *b);
bool bw_ack_frame(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f);
/* The same, but only what data by the best path would not take along: where several are in use. */
bool bw_ack_urgent(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f);
/* Is an acknowledgement of the path to be sent, now or some time later? */
bool bw_ack_owed(const struct bw_peer *p, const struct bw_path *t);
/* An ACK frame of the path, or a BYE that says the same, of up to BW_ACK_BYTES at `head`; its
 * length. */
uint32_t bw_ack_write(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint8_t type,
		      void *head);
/* `over` of its tag, as in bw_key_tag(); what it says of credit is what the peer was told last. */
uint64_t bw_ack_over(const struct bw_peer *p, const struct bw_path *t);
/* The same of DATA whose packet has this number. */
uint64_t bw_ack_over_data(const struct bw_peer *p, uint64_t pn);
/* Both fixed bodies of an acknowledgement, without ranges. */
void bw_ack_whole(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, struct bw_ackblk *b,
		  struct bw_ack *a);
void bw_ack_build(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, struct bw_tx_frame *f);

#endif
