/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Queues of socket buffers; see skb.h. */
#include "kernel.h"

static void insert(struct sk_buff_head *queue, struct sk_buff *skb, struct sk_buff *before)
{
	skb->next = before;
	skb->prev = before->prev;
	before->prev->next = skb;
	before->prev = skb;
	queue->qlen++;
}

static void take_out(struct sk_buff_head *queue, struct sk_buff *skb)
{
	skb->prev->next = skb->next;
	skb->next->prev = skb->prev;
	skb->next = skb->prev = NULL;
	queue->qlen--;
}

void __skb_queue_head(struct sk_buff_head *queue, struct sk_buff *skb)
{
	insert(queue, skb, queue->next);
}

void __skb_queue_tail(struct sk_buff_head *queue, struct sk_buff *skb)
{
	insert(queue, skb, (struct sk_buff *)queue);
}

struct sk_buff *__skb_dequeue(struct sk_buff_head *queue)
{
	struct sk_buff *skb = skb_peek(queue);

	if (skb)
		take_out(queue, skb);
	return skb;
}

void skb_queue_splice_tail_init(struct sk_buff_head *from, struct sk_buff_head *to)
{
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(from)))
		__skb_queue_tail(to, skb);
}

void skb_queue_head(struct sk_buff_head *queue, struct sk_buff *skb)
{
	spin_lock_bh(&queue->lock);
	__skb_queue_head(queue, skb);
	spin_unlock_bh(&queue->lock);
}

void skb_queue_tail(struct sk_buff_head *queue, struct sk_buff *skb)
{
	spin_lock_bh(&queue->lock);
	__skb_queue_tail(queue, skb);
	spin_unlock_bh(&queue->lock);
}

void skb_unlink(struct sk_buff *skb, struct sk_buff_head *queue)
{
	spin_lock_bh(&queue->lock);
	take_out(queue, skb);
	spin_unlock_bh(&queue->lock);
}

struct sk_buff *skb_dequeue(struct sk_buff_head *queue)
{
	struct sk_buff *skb;

	spin_lock_bh(&queue->lock);
	skb = __skb_dequeue(queue);
	spin_unlock_bh(&queue->lock);
	return skb;
}

void skb_queue_purge(struct sk_buff_head *queue)
{
	struct sk_buff *skb;

	while ((skb = skb_dequeue(queue)))
		kfree_skb(skb);
}
