/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Queues of socket buffers; see skb.h. */
#include "kernel.h"

static void insert(struct sk_buff_head *queue, struct sk_buff *skb, struct sk_buff *before)
{
	spin_lock_bh(&queue->lock);
	skb->next = before;
	skb->prev = before->prev;
	before->prev->next = skb;
	before->prev = skb;
	queue->qlen++;
	spin_unlock_bh(&queue->lock);
}

void skb_queue_head(struct sk_buff_head *queue, struct sk_buff *skb)
{
	insert(queue, skb, queue->next);
}

void skb_queue_tail(struct sk_buff_head *queue, struct sk_buff *skb)
{
	insert(queue, skb, (struct sk_buff *)queue);
}

void skb_unlink(struct sk_buff *skb, struct sk_buff_head *queue)
{
	spin_lock_bh(&queue->lock);
	skb->prev->next = skb->next;
	skb->next->prev = skb->prev;
	skb->next = skb->prev = NULL;
	queue->qlen--;
	spin_unlock_bh(&queue->lock);
}

struct sk_buff *skb_dequeue(struct sk_buff_head *queue)
{
	struct sk_buff *skb = skb_peek(queue);

	if (skb)
		skb_unlink(skb, queue);
	return skb;
}

void skb_queue_purge(struct sk_buff_head *queue)
{
	struct sk_buff *skb;

	while ((skb = skb_dequeue(queue)))
		kfree_skb(skb);
}
