/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packets whose ranges others have taken over (late.c). */
#ifndef BW_LATE_H
#define BW_LATE_H

#include "reliable.h"

/* The range of this record, which was sent by the path, gets another owner. */
void bw_late_keep(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
		  const struct bw_record *r);
/* The packet was acknowledged: settle what it carried. */
void bw_late_acked(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint64_t pn);
/* An acknowledgement of the packet would not be noticed any more. */
void bw_late_forget(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint64_t pn);
/* A message or serve has ended; NULL: all have. */
void bw_late_ended(struct bw_engine *e, struct bw_peer *p, const void *obj);

#endif
