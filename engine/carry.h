/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which of several paths over one line carries pulled data and long messages (carry.c). */
#ifndef BW_CARRY_H
#define BW_CARRY_H

#include "reliable.h"

/* Are they different, and over one line? */
bool bw_carry_rivals(const struct bw_engine *e, const struct bw_path *a, const struct bw_path *b);
/* A path has come up, or is no longer: each line that has one up has one that carries. */
void bw_carry_up(struct bw_engine *e, struct bw_peer *p, struct bw_path *t);
void bw_carry_choose(struct bw_engine *e, struct bw_peer *p);
/* The index of the path that does so instead of this one, or of this one. */
uint8_t bw_carry_instead(const struct bw_engine *e, const struct bw_peer *p,
			 const struct bw_path *t);
/* Is there more than one path over some line, so that it is to be measured which carries most? */
static inline bool bw_carry_contested(const struct bw_peer *p)
{
	return p->together != p->lines;
}
/* The path by which a message of so many bytes leaves: if it takes several frames, the one that
 * carries what is long. */
static inline struct bw_path *bw_carry_message(const struct bw_engine *e, struct bw_peer *p,
					       uint64_t len)
{
	struct bw_path *t = p->path[p->best];

	if (BW_LIKELY(len <= t->pmtu.mtu - BW_MESSAGE_HEAD) || !bw_carry_contested(p))
		return t;
	return p->path[bw_carry_instead(e, p, t)];
}
/* A frame to a peer with such paths: what is long by the one that carries, the rest by the best. */
bool bw_carry_frame(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f);
/* A frame is about to be sent by it, perhaps of something long; bytes of it were acknowledged. */
void bw_carry_sent(struct bw_engine *e, struct bw_path *t, bool load);
void bw_carry_acked(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint64_t bytes);

#endif
