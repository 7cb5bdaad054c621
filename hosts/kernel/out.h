/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What leaves a port: a list of frames, built under the port's lock and sent without it. Who adds
 * frames sends them when it gives the lock back, unless another one is at it: then that one sends
 * them as well, so that a port has one sender at a time, and its frames leave in the order in which
 * the engine made them, whichever processors they come from.
 */
#ifndef BWK_OUT_H
#define BWK_OUT_H

#include <linux/atomic.h>
#include <linux/skbuff.h>

#define BWK_OUT_BYTES (256 << 10) /* of memory that waits to be sent at most, and a frame beyond */

struct bwk_buf;
struct bwk_port;

enum bwk_sender {
	BWK_SENDER_NONE,
	BWK_SENDER_BUSY,
	BWK_SENDER_WANTED, /* busy, and frames have been added since it took the list */
};

struct bwk_out {
	struct sk_buff *first,
		*last;	 /* chained by `next`; all guarded by the port's lock but `sender` */
	u32 bytes;	 /* of memory */
	bool more;	 /* the engine is to be asked again once these have left */
	bool stuck;	 /* the first one found no room at its interface; then `more`, too */
	bool closed;	 /* the port has ended: nothing leaves any more */
	atomic_t sender; /* enum bwk_sender; BUSY becomes NONE without the lock */
};

/* What a frame under way knows of itself, until it is given to its interface. */
struct bwk_tx_cb {
	struct bwk_buf *buf; /* `copy`: where the last `len` bytes come from */
	u64 off;
	u32 len;
	u16 head; /* length of its heads, behind which a payload follows that is to be checked; 0 */
	u8 link;  /* number of its interface */
	bool copy, shown; /* to taps */
	bool seal;	  /* `head` and what follows: struct bwk_tx_seal lies behind its end */
};

static inline struct bwk_tx_cb *bwk_tx_cb(const struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct bwk_tx_cb) > sizeof(skb->cb));
	return (struct bwk_tx_cb *)skb->cb;
}

/* Lock held, of both. */
static inline bool bwk_out_full(const struct bwk_out *out)
{
	return out->bytes >= BWK_OUT_BYTES;
}

void bwk_out_add(struct bwk_out *out, struct sk_buff *skb);
/* What waits for its sender leaves, and nothing more afterwards; returns when there is no sender.
 * Process context, lock not held. */
void bwk_out_close(struct bwk_port *port);

#endif
