/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What becomes of records of sent packets (loss.c). */
#ifndef BW_LOSS_H
#define BW_LOSS_H

#include "reliable.h"

void bw_loss_detect(struct bw_engine *e, struct bw_peer *p, struct bw_path *t);
void bw_loss_probe(struct bw_engine *e, struct bw_peer *p, struct bw_path *t);
void bw_loss_floor(struct bw_engine *e, struct bw_peer *p, struct bw_path *t);
/* The peer cannot remember one gap more, and drops what comes behind the last one: what was taken
 * for lost before that is lost. Else, where all under way is behind it, no answer would come that
 * ends the wait for late ones. */
void bw_loss_settle(struct bw_engine *e, struct bw_peer *p, struct bw_path *t);
/* All packets of a path that is given up, or those of one number, go back to be sent again. */
void bw_loss_requeue_path(struct bw_engine *e, struct bw_peer *p, struct bw_path *t);
/* It carries nothing any more, and is tried by HELLO. */
void bw_loss_leave_path(struct bw_engine *e, struct bw_peer *p, struct bw_path *t);
void bw_loss_requeue_packet(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint64_t pn);
void bw_record_acked(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
		     struct bw_record *r);
void bw_record_forget(struct bw_engine *e, struct bw_record *r);
/* Its range is somebody else's or settled; the packet is still under way. */
void bw_record_vacate(struct bw_record *r);

#endif
