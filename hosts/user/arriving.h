/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of several frames of which not all have arrived: each is charged to the peer that began
 * it. Together they may hold a bounded amount of memory, of which a part is for messages that wait
 * for no other one: else those that wait for them could take all. Where it is used up, the peers
 * whose messages stand still are given up, since anybody may begin messages and never end them. Not
 * those that have room for no message that the others wait for, as long as they go on sending it:
 * what stands still there is ours.
 */
#ifndef BW_ARRIVING_H
#define BW_ARRIVING_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"

#define BW_ARRIVING_MAX	  (128ull << 20) /* bytes of all of them, */
#define BW_ARRIVING_NEXT  (32ull << 20)	 /* and beyond that of those that wait for no other */
#define BW_ARRIVING_STALE (2 * BW_S)	 /* a peer whose messages have not moved for so long */

struct bw_ep;
struct bw_buffer;

/* A buffer for n bytes from the peer with this handle of the engine's; 0: none now. `next`: as for
 * buf_get() (protocol.h). */
uint64_t bw_arriving_get(struct bw_ep *ep, uint32_t peer, uint64_t n, bool next);
/* It has been delivered, or will not be. */
void bw_arriving_put(struct bw_ep *ep, struct bw_buffer *b);
/* Give up who keeps others out. Outside the engine. */
void bw_arriving_relieve(struct bw_ep *ep);

#endif
