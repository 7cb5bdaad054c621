/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What arrives in pieces for a port: messages of several frames until all of them are there, and
 * the messages before them. Peers cause it, and the port's account pays: at most memory_max bytes
 * for a port, of what users may leave waiting (overflow.h). Beyond that a frame is not
 * acknowledged, and comes again.
 */
#ifndef BWK_ARRIVE_H
#define BWK_ARRIVE_H

#include "port.h"

/* A part of it has come. */
static inline void bwk_arrive_moved(const struct bwk_port *port, struct bwk_buf *b)
{
	b->moved = port->now;
}

/* A buffer for a message of n bytes of this peer's; `next`: none before it is missing, so that it
 * will not wait for another one. 0: there is no room now. Lock held, as for all that follow. */
u64 bwk_arrive_begin(struct bwk_port *port, u32 handle, u64 n, bool next);
/* The frame itself becomes a part of it, if that is worth while and paid for. */
bool bwk_arrive_chain(struct bwk_port *port, struct bwk_buf *b, u64 off, struct sk_buff *skb,
		      u32 at, u32 n);
/* It is complete, or given up. The buffer is still the caller's. */
void bwk_arrive_end(struct bwk_port *port, struct bwk_buf *b);
/* Work: peers that have let a message stand still for as long as a silent peer is waited for are
 * left. The lock is not held, and neither for STOP: the port is dead. */
void bwk_arrive_expire(struct work_struct *work);
void bwk_arrive_stop(struct bwk_port *port);
/* Nothing arrives any more. */
void bwk_arrive_close(struct bwk_port *port);

#endif
