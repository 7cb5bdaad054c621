/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What arrives in pieces for a port: messages of several frames until all of them are there, and
 * the messages before them. Peers cause it, and the port's account pays: at most memory_max bytes
 * for a port, half of that for strangers, of what users may leave waiting (overflow.h). Beyond that
 * a frame is not acknowledged, and comes again.
 */
#ifndef BWK_ARRIVE_H
#define BWK_ARRIVE_H

#include "port.h"

/* A buffer for a message of n bytes of this peer's; `next`: none before it is missing, so that it
 * will not wait for another one. 0: there is no room now. Lock held, as for all that follow. */
u64 bwk_arrive_begin(struct bwk_port *port, u32 handle, u64 n, bool next);
/* The frame itself becomes a part of it, if that is worth while and paid for. */
bool bwk_arrive_chain(struct bwk_port *port, struct bwk_buf *b, u64 off, struct sk_buff *skb,
		      u32 at, u32 n);
/* It is complete, or given up. The buffer is still the caller's. */
void bwk_arrive_end(struct bwk_port *port, struct bwk_buf *b);
/* The port has ended, and nothing arrives any more. */
void bwk_arrive_close(struct bwk_port *port);

#endif
