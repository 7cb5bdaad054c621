/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the host is told, in the order in which it happened (event.c). */
#ifndef BW_EVENT_H
#define BW_EVENT_H

#include "reliable.h"

void bw_event_push(struct bw_engine *e, struct bw_evnode *n, enum bw_event_type type);
bool bw_event_next(struct bw_engine *e, struct bw_event *out);
/* What the host is told of the message that this part is of, but for where it lies. */
static inline void bw_told_message(struct bw_engine *e, const struct bw_peer *p,
				   const struct bw_part_msg *w)
{
	e->told.type = BW_EV_MESSAGE;
	e->told.peer = p->handle;
	e->told.len = w->total;
	e->told.tag = w->tag;
	e->told.imm = w->imm;
	e->told.dst_ep = w->dst_ep;
	e->told.src_ep = w->src_ep;
	e->told.code = w->part.code;
}

#endif
