/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* DATA frames that are sent (send.c). */
#ifndef BW_SEND_H
#define BW_SEND_H

#include "reliable.h"

enum bw_send_what { BW_SEND_AGAIN = 1, BW_SEND_MESSAGES = 2, BW_SEND_BULK = 4, BW_SEND_ALL = 7 };
/* A frame of some of this by one path. */
bool bw_send_by(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint32_t what,
		struct bw_tx_frame *f);
/* It owns this range, of what goes to the peer, from now on. NULL: there is no memory, or it
 * is another peer's; this one will have its turn. */
struct bw_record *bw_record_new(struct bw_engine *e, struct bw_peer *p, uint8_t kind, void *obj,
				uint64_t off, uint32_t len);
/* One message or piece of a pull alone in its frame, where nothing else is to be sent and nothing
 * was lost; the peer is then no longer ready if that was all. False: it is for bw_send_frame(). */
bool bw_send_single(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f);
bool bw_send_frame(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f);
/* Bytes of the message that is sent next; 0: there is none. */
uint64_t bw_send_length(struct bw_engine *e, struct bw_peer *p);
/* The next so many bytes of a message, or of a serve, are in a frame for the first time. */
void bw_send_message_left(struct bw_engine *e, struct bw_txmsg *m, uint32_t len);
void bw_send_serve_left(struct bw_engine *e, struct bw_serve *s, uint32_t len);
/* Is the last packet of the message to be acknowledged at once? */
bool bw_send_urgent(const struct bw_path *t, const struct bw_txmsg *m);
/* Some of the flow's only message, or of pulled data (NULL), has left alone: is there more? */
void bw_send_rest(struct bw_peer *p, const struct bw_flow *flow);

#endif
