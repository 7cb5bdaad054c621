/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The life of a message that is sent (submit.c). */
#ifndef BW_SUBMIT_H
#define BW_SUBMIT_H

#include "reliable.h"

int bw_send_submit(struct bw_engine *e, struct bw_op *op);
struct bw_txmsg *bw_send_control(struct bw_engine *e, struct bw_peer *p, uint8_t kind);
/* Sent completely for the first time: it leaves its flow's queue. */
void bw_txmsg_left(struct bw_engine *e, struct bw_txmsg *m);
void bw_txmsg_settle(struct bw_engine *e, struct bw_txmsg *m);

#endif
