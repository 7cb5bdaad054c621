/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Peers, from first contact to their end, and their flows (peer.c). */
#ifndef BW_PEER_H
#define BW_PEER_H

#include "reliable.h"

struct bw_peer *bw_peer_new(struct bw_engine *e);
/* What is random and goes with `wire`: drawn whenever that changes. */
void bw_peer_draw(struct bw_engine *e, struct bw_peer *p);
struct bw_peer *bw_peer_get(struct bw_engine *e, uint32_t handle);
void bw_peer_ready(struct bw_engine *e, struct bw_peer *p);
/* The same, and before all others. */
void bw_peer_first(struct bw_engine *e, struct bw_peer *p);
/* Is there certainly nothing to send to it now? Saves a look that finds nothing. */
bool bw_peer_idle(const struct bw_peer *p);
/* It is lost. What it leaves behind ends in pieces, before the event of its own end. */
void bw_peer_down(struct bw_engine *e, struct bw_peer *p, int32_t status);
/* A piece of that, up to the first thing of which an event tells; true: there is nothing left. */
bool bw_peer_shed(struct bw_engine *e, struct bw_peer *p);
void bw_peer_free(struct bw_engine *e, struct bw_peer *p);
/* Recompute when the peer needs attention. Call after everything that changes its state. */
void bw_peer_schedule(struct bw_engine *e, struct bw_peer *p);
/* The same where nothing but this one time can have come nearer. */
void bw_peer_sooner(struct bw_engine *e, struct bw_peer *p, uint64_t at);
/* It has gone, with this status, after a grace in which what it sent before may be read. */
void bw_peer_part(struct bw_engine *e, struct bw_peer *p, int32_t status);
void bw_peer_timers(struct bw_engine *e, struct bw_peer *p);
/* Is there something that only the peer's frames can finish? */
bool bw_peer_waits(const struct bw_peer *p);
/* The peer has answered something that we sent. That frames of it come proves only that one
 * direction works, and perhaps not even that: they can be old ones. */
void bw_peer_proven(struct bw_engine *e, struct bw_peer *p);
/* Some of what is expected of the peer has come, or more is expected: pings begin anew. */
void bw_peer_progress(struct bw_peer *p);
struct bw_path *bw_peer_path(struct bw_peer *p, uint8_t remote_no);
/* The flow between two endpoints: NULL if there is none yet. */
struct bw_flow *bw_peer_flow_seek(struct bw_engine *e, struct bw_peer *p, uint16_t local_ep,
				  uint16_t remote_ep);
static inline struct bw_flow *bw_peer_flow_find(struct bw_engine *e, struct bw_peer *p,
						uint16_t local_ep, uint16_t remote_ep)
{
	if (BW_LIKELY(p->app.local_ep == local_ep && p->app.remote_ep == remote_ep))
		return &p->app;
	return bw_peer_flow_seek(e, p, local_ep, remote_ep);
}
/* A message of it is to be sent. */
static inline void bw_flow_sends(struct bw_peer *p, const struct bw_flow *f)
{
	if (BW_UNLIKELY(f != &p->app) && p->flow_table)
		p->flow_table->sends[f->bucket / 64] |= 1ull << f->bucket % 64;
}
/* The same, made if need be; NULL if the pool is empty. */
struct bw_flow *bw_peer_flow(struct bw_engine *e, struct bw_peer *p, uint16_t local_ep,
			     uint16_t remote_ep);

#endif
