/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages of a flow that wait for others (queue.c). */
#ifndef BW_QUEUE_H
#define BW_QUEUE_H

#include "reliable.h"

/* May one more be added? If not, memory is short. */
bool bw_queue_room(struct bw_engine *e, struct bw_flow *flow);
/* One more, whose place bw_queue_find() has told. */
void bw_queue_add(struct bw_flow *flow, struct bw_rxmsg *m, struct bw_list *before);
/* The first one, which no longer waits; there is one. */
struct bw_rxmsg *bw_queue_take(struct bw_engine *e, struct bw_flow *flow);
/* The one with this number, or NULL and *before: the place in the queue before which it belongs.
 * The number is less than that of the last one. */
struct bw_rxmsg *bw_queue_find(struct bw_engine *e, struct bw_flow *flow, uint64_t id,
			       struct bw_list **before);

#endif
