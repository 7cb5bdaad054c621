/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What arrives in pieces: out of the frames that came in order into one socket buffer. */
#include "buf.h"

/* The bytes of `from` at the beginning of `to`. */
static int bwk_buf_take_over(struct sk_buff *to, struct sk_buff *from)
{
	struct skb_seq_state walk;
	const u8 *piece;
	u32 part, done = 0;
	int error = 0;

	skb_prepare_seq_read(from, 0, from->len, &walk);
	while (!error && (part = skb_seq_read(done, &piece, &walk))) {
		error = skb_store_bits(to, done, piece, part);
		done += part;
	}
	skb_abort_seq_read(&walk);
	return error;
}

int bwk_buf_unchain(struct bwk_buf *b)
{
	struct sk_buff *chain = b->skb, *skb;
	u32 linear = b->len <= BWK_BUF_LINEAR ? b->len : 0;
	int error;

	skb = alloc_skb_with_frags(linear, b->len - linear, PAGE_ALLOC_COSTLY_ORDER, &error,
				   GFP_ATOMIC);
	if (!skb)
		return -ENOMEM;
	skb_put(skb, linear);
	skb->data_len = b->len - linear;
	skb->len = b->len;
	error = chain ? bwk_buf_take_over(skb, chain) : 0;
	if (error) {
		kfree_skb(skb);
		return error;
	}
	kfree_skb(chain);
	b->skb = skb;
	b->tail = NULL;
	b->kind = BWK_BUF_SKB;
	return 0;
}
