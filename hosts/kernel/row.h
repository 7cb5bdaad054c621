/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rows: frames of one port for one receiver, that leave one after another. Each is a complete frame
 * of the protocol, whatever becomes of the row on its way.
 *
 * A device that takes super-frames (veth) gets the row as one socket buffer, whose list of
 * fragments are the other frames (SKB_GSO_FRAGLIST): the queues, locks and handlers between two
 * ports are passed once. Where such a buffer comes to a device that does not take it, or to a
 * queueing discipline that wants single frames, the kernel asks us to take it apart
 * (gso_segment). Frames that arrive by a device with generic receive offload are joined in the same
 * way. Other devices get the frames one by one, told each time that more follows (xmit_more).
 *
 * Only frames between ports of the kernel travel so: endpoints of user space see single frames.
 */
#ifndef BWK_ROW_H
#define BWK_ROW_H

#include <linux/skbuff.h>

#define BWK_ROW_FRAMES 64    /* of a super-frame */
#define BWK_ROW_SINGLE 16    /* frames that wait for one another before a device that takes none */
#define BWK_ROW_BYTES  65535 /* of a super-frame, Ethernet header included */

/* How the frames of a row leave that has more than one. */
enum bwk_row_joins {
	BWK_ROW_UNKNOWN, /* it has one */
	BWK_ROW_JOINS,	 /* as a super-frame */
	BWK_ROW_APART,
};

/* Frames to be sent, chained by `next`; `data` of each is at its Beowire header, its Ethernet
 * header lies before that. Of who sends them. */
struct bwk_row {
	struct sk_buff *first, *last;
	u32 frames;
	u32 bytes;   /* of all frames, Ethernet headers excluded */
	u8 link;     /* number of the interface that it leaves by */
	u8 joins;    /* enum bwk_row_joins */
	bool direct; /* past the queueing discipline: the setting may change meanwhile */
	bool shown;  /* to taps */
};

struct net_device;

/* Does this device take super-frames as they are? */
bool bwk_row_taken(const struct net_device *dev);
void bwk_row_add(struct bwk_row *row, struct sk_buff *skb);
/* They are lost. */
void bwk_row_drop(struct bwk_row *row);
/* The frames become one super-frame, the only one of the row. */
void bwk_row_join(struct bwk_row *row);
/* The frames of a super-frame that has arrived, chained by `next`. It is used up. NULL: there are
 * none. LOST grows by those for which there was no memory. */
struct sk_buff *bwk_row_split(struct sk_buff *skb, u32 *lost);

/* The kernel is told how super-frames are taken apart, and what is joined. EXIT waits for its
 * readers. */
void bwk_row_init(void);
void bwk_row_exit(void);

#endif
