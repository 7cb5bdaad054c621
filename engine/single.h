/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A DATA frame of one part, in the order of its path: the common case (single.c), and the
 * beginning of a row (row.c). */
#ifndef BW_SINGLE_H
#define BW_SINGLE_H

#include "credit.h"
#include "keys.h"
#include "peer.h"
#include "reliable.h"

/* The start of a DATA frame with one part. */
struct bw_single {
	struct bw_hdr h;
	struct bw_ackblk b;
	union {
		struct bw_part part;
		struct bw_part_msg msg;
		struct bw_part_bulk bulk;
	};
};

#define BW_SINGLE_FIXED (sizeof(struct bw_hdr) + sizeof(struct bw_ackblk))

BW_ASSERT_LAYOUT(bw_single, BW_MESSAGE_HEAD);

/* Bytes of the frame before the payload; 0: it carries something else. */
static BW_WITHIN uint32_t bw_single_head(const struct bw_rx_frame *f, uint32_t trailer)
{
	const struct bw_single *s = f->head;
	uint32_t size = BW_SINGLE_FIXED;

	if (f->head_len < BW_SINGLE_FIXED + sizeof(s->part))
		return 0;
	if (s->part.kind == BW_PART_MESSAGE)
		size += sizeof(s->msg);
	else if (s->part.kind == BW_PART_BULK)
		size += sizeof(s->bulk);
	else
		return 0;
	return f->head_len >= size && s->h.len == size - sizeof(s->h) + s->part.plen + trailer
		       ? size
		       : 0;
}

static inline bool bw_single_genuine(struct bw_engine *e, const struct bw_peer *p,
				     const struct bw_path *t, const struct bw_single *s,
				     uint32_t head)
{
	struct bw_single copy;
	uint64_t over;

	if (p->trailer) /* it is to be opened first, and comes again */
		return false;
	memcpy(&copy, s, head);
	over = bw_key_over_data(t->rx.got.base, bw_credit_whole(p, s->b.credit));
	return bw_key_tag(e, p->keys->rx.tag, &copy.h, head, over) ==
	       ((uint64_t)s->h.token << 32 | s->h.hcrc);
}

static BW_WITHIN bool bw_single_intact(struct bw_engine *e, const struct bw_single *s,
				       uint32_t head)
{
	const uint8_t *from = (const uint8_t *)s;
	uint64_t h[4]; /* the header, its check 0: the last four bytes */
	uint32_t crc, i;

	for (i = 0; i < 4; i++)
		memcpy(&h[i], from + 8 * i, 8);
	h[3] &= UINT32_MAX;
	crc = bw_ops(e)->crc32c(0, h, sizeof(h));
	return bw_ops(e)->crc32c(crc, &s->b, head - sizeof(h)) == s->h.hcrc;
}

/* Is it what the peer sent? With a key: as the packet due next. */
static BW_WITHIN bool bw_single_right(struct bw_engine *e, const struct bw_peer *p,
				      const struct bw_path *t, const struct bw_single *s,
				      uint32_t head)
{
	return BW_UNLIKELY(p->keyed) ? bw_single_genuine(e, p, t, s, head)
				     : bw_single_intact(e, s, head);
}

/* When the peer needs attention next. */
static BW_WITHIN void bw_single_plan(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
				     const struct bw_single *s)
{
	if (s->part.kind == BW_PART_BULK && (!p->ping_pause || bw_list_empty(&p->pulls))) {
		bw_peer_schedule(e, p);
		return;
	}
	if (p->waiting_since && !bw_peer_waits(p))
		p->waiting_since = 0;
	bw_peer_sooner(e, p, bw_min_u64(t->rx.ack_at, t->loss_at));
}

/* False: nothing was done, the frame is for the general way. */
bool bw_single_received(struct bw_engine *e, const struct bw_rx_frame *f, int *result);
/* The same of a frame that was opened, and is the peer's, by this path. */
bool bw_single_opened(struct bw_engine *e, const struct bw_rx_frame *f, struct bw_peer *p,
		      struct bw_path *t, int *result);

#endif
