/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Several paths that carry pulled data together: who sends what (stripe.c), and their shares
 * (share.c). */
#ifndef BW_STRIPE_H
#define BW_STRIPE_H

#include "reliable.h"

/* Bytes that the path delivers in a millisecond: measured, or else what its window allows. */
uint64_t bw_stripe_rate(const struct bw_path *t);
/* Its shortest round trip, ns. */
uint64_t bw_stripe_rtt(const struct bw_path *t);
/* Time at which `len` bytes would have arrived if they left by this path now, in ns from now. */
uint64_t bw_stripe_eta(const struct bw_path *t, uint64_t len);
/* Does data go by this path? One that does not answer gets nothing but probes. */
bool bw_stripe_usable(const struct bw_engine *e, const struct bw_peer *p, const struct bw_path *t);

/* And is it to carry pulled data now? */
bool bw_stripe_carries(const struct bw_engine *e, const struct bw_peer *p, const struct bw_path *t);

bool bw_stripe_frame(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f);
/* A question about the frame size of one of them, or whether it still carries anything. */
bool bw_stripe_probe(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f);
/* What this path is to send next of pulled data, up to `room` bytes at a time: a record in its
 * share; NULL if there is none, or if it is better sent by another path. */
struct bw_record *bw_stripe_next(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
				 uint32_t room);
/* Bytes that may be under way on a striped path. */
uint64_t bw_stripe_limit(const struct bw_engine *e, const struct bw_peer *p,
			 const struct bw_path *t);
/* Are both in use, or to be used, together? */
bool bw_stripe_together(const struct bw_engine *e, const struct bw_path *a,
			const struct bw_path *b);
/* When a short message by this path would be answered, in ns; BW_NEVER: it is silent. */
uint64_t bw_stripe_reach(const struct bw_path *t);
void bw_stripe_acked(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint64_t bytes);
/* A tail probe of it was sent: is it still alive? */
void bw_stripe_doubt(struct bw_engine *e, struct bw_peer *p, struct bw_path *t);
/* What was set aside for a path is for any other. */
void bw_stripe_leave(struct bw_peer *p, struct bw_path *t);
/* There is data to be sent: paths that are down are asked soon. */
void bw_stripe_retry(struct bw_engine *e, struct bw_peer *p);
/* Bytes of a serve that are set aside, not sent; and forget them. */
uint64_t bw_stripe_unsent(const struct bw_peer *p, const struct bw_serve *s);
void bw_stripe_forget(struct bw_engine *e, struct bw_peer *p, const struct bw_serve *s);

/* The paths that are up have changed: are several lines in use? */
void bw_stripe_update(struct bw_peer *p);

#endif
