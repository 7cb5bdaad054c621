/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What arrives in pieces: the frames while they come in order, else one socket buffer. */
#include "buf.h"

/* Memory that the frames of a chain may take, per byte that they have brought: four times is more
 * than any driver's frames of full size take, and a sender of tiny ones gets no more. */
#define BWK_CHAIN_TIMES 4

#define BWK_CHAIN_LINEAR 2048 /* bytes; longer copies lie in pages */

bool bwk_buf_chains(const struct bwk_buf *b, u64 off, const struct sk_buff *skb, u32 at, u32 n)
{
	u64 before = b->skb ? b->skb->truesize : 0;

	return b->kind == BWK_BUF_CHAIN && off == b->got && skb->len == at + n &&
	       !skb_cloned(skb) && !skb_has_frag_list(skb) && at <= skb_headlen(skb) &&
	       before + skb->truesize <= BWK_CHAIN_TIMES * (b->got + n);
}

void bwk_buf_chain(struct bwk_buf *b, struct sk_buff *skb, u32 at, u32 n)
{
	struct sk_buff *head = b->skb;

	skb_get(skb);
	skb_orphan(skb);
	__skb_pull(skb, at);
	skb->next = NULL;
	if (!head) {
		b->skb = skb;
	} else {
		if (b->tail)
			b->tail->next = skb;
		else
			skb_shinfo(head)->frag_list = skb;
		b->tail = skb;
		head->len += n;
		head->data_len += n;
		head->truesize += skb->truesize;
	}
	b->got += n;
}

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
	u32 linear = b->len <= BWK_CHAIN_LINEAR ? b->len : 0;
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
