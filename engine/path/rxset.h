/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What has been received on a path, and how much of it the peer has not been told. When it is told
 * what: ack.c. Nothing here can fail.
 */
#ifndef BW_RXSET_H
#define BW_RXSET_H

#include "spans.h"

/* Written by ack.c, recv.c and single.c; whoever wants an acknowledgement sent sets ack_now. */
struct bw_rxset {
	uint64_t ack_at;     /* ns; when an acknowledgement is due; BW_NEVER: none owed */
	uint64_t max;	     /* largest packet number */
	uint64_t max_ns;     /* when it came */
	uint32_t unacked;    /* packets since the last acknowledgement */
	uint16_t marks;	     /* marked ones, ever */
	bool any;	     /* has anything come? Else `max` says nothing */
	bool ack_now;	     /* an acknowledgement is to be sent at once */
	struct bw_pnset got; /* packet numbers */
};

/* The peer is told everything. */
static inline void bw_rxset_told(struct bw_rxset *x)
{
	x->ack_now = false;
	x->ack_at = BW_NEVER;
	x->unacked = 0;
}

#endif
