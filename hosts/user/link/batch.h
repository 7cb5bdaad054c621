/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames on their way into a socket: collected, then given to the kernel by one system call. Short
 * frames are made contiguous; of longer ones the payload is referred to until the flush. Frames
 * that the kernel has no room for are copied and kept, so that no reference outlives a flush.
 * Those that are to be sealed are on their way to a place of their own: nothing of them is referred
 * to.
 *
 * Of datagrams, neighbours of one address and one length can go as a row: one message, which the
 * kernel or the NIC cuts (UDP_SEGMENT, the kernel's networking/segmentation-offloads.rst). Where it
 * is to be cut goes with the message, or is known to the socket.
 */
#ifndef BW_BATCH_H
#define BW_BATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "clock.h"
#include "link/name.h"
#include "protocol.h"

#define BW_BATCH_FRAMES 64 /* a row of the shortest frames of long messages, and more */
#define BW_BATCH_FLAT	2048
#define BW_BATCH_PREFIX 16 /* room for the link's own header before a frame */
#define BW_BATCH_TRIES	8  /* flushes that may fail for one frame with ENOBUFS */

#define BW_BATCH_PIECES	   (2 * BW_TX_SEGMENTS + 2) /* of one frame, at most */
#define BW_BATCH_ALL	   1024			    /* of all, which may be one row: UIO_MAXIOV */
#define BW_BATCH_WHOLE	   UINT32_MAX /* a socket that cuts nothing unless it is told to */
#define BW_BATCH_ROW	   64	      /* frames of a row: UDP_MAX_SEGMENTS of Linux 4.18 */
#define BW_BATCH_ROW_BYTES 65507      /* of a row: the longest datagram over IPv4 */

/* For so long the kernel may take nothing at all; then what is left is lost. The engine must come
 * to know, or nobody would ever be given up. */
#define BW_BATCH_PATIENCE (250 * BW_MS)

struct bw_batch_slot {
	uint8_t *flat;		/* the whole frame, or its head parts, behind the link's header */
	uint32_t len;		/* bytes, the link's header included */
	uint32_t first, pieces; /* which of the batch's pieces make the frame */
	int fd;			/* the socket to send it by, connected; -1: the batch's */
	uint32_t cut;		/* bytes at which that cuts what is longer; BW_BATCH_WHOLE */
	union bw_name to;	/* the destination, for the batch's */
	void *spill;		/* malloc'ed copy while the kernel has no room */
	bool same;		/* the way of the slot before it */
};

/* What one message to the kernel takes beside its struct msghdr. */
struct bw_batch_row {
	unsigned int frames; /* of the batch in this message; 1: no row */
	struct iovec whole;  /* all of them, if they lie in one piece */
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(sizeof(uint16_t))];
	} control; /* the length at which a row is cut */
};

struct bw_batch {
	unsigned int count;  /* frames collected */
	unsigned int done;   /* of these given to the kernel already */
	unsigned int tries;  /* flushes that failed for the next frame */
	uint64_t since;	     /* when the first of these was; tries is not 0 */
	bool refused;	     /* the error queue of the socket has something: reset by its reader */
	unsigned int prefix; /* bytes of the link's header */
	uint64_t errors;     /* frames that the kernel refused for good or for too long: lost */
	bool named;	     /* frames carry a destination address */
	bool join;	     /* neighbours may go as rows: the link's choice, until EIO */
	bool singly;	     /* but not in this batch: the kernel did not take a row of it */
	bool uncut;	     /* a socket that was to cut took nothing: reset by the link */
	uint64_t rows;	     /* that the kernel took */
	uint64_t row_frames; /* in these */
	uint32_t bytes;	     /* of the frames collected */
	uint32_t pieces;     /* of piece[] in use */
	struct iovec piece[BW_BATCH_ALL];    /* of all frames, in their order */
	struct mmsghdr msg[BW_BATCH_FRAMES]; /* of a call: entry n is for row[n] */
	struct bw_batch_row row[BW_BATCH_FRAMES];
	struct bw_batch_slot slot[BW_BATCH_FRAMES];
	uint8_t *room;	    /* for whole frames that are sealed; NULL: there will be none */
	uint8_t *sealed;    /* within it: of the next one */
	uint32_t stride;    /* bytes of the longest, with the link's header before it */
	uint8_t *next;	    /* within flat[]: of the next slot */
	const void *placed; /* a payload that lies there already, see bw_batch_place(); NULL */
	/* Of the slots. Without the link's headers short frames lie one behind the other. */
	_Alignas(BW_BATCH_PREFIX) uint8_t flat[BW_BATCH_FRAMES * (BW_BATCH_PREFIX + BW_BATCH_FLAT)];
};

/* prefix: bytes of the link's own header (0 to 16); named: frames carry a destination address. */
struct bw_batch *bw_batch_new(unsigned int prefix, bool named);
void bw_batch_free(struct bw_batch *b);

/* Where the payload `from` of the next frame, behind so many bytes of head, will lie, if it is
 * short enough to be copied and the frame is not to be sealed: whoever puts it there now, since it
 * reads all of it, saves bw_batch_add() that. NULL: nowhere. */
void *bw_batch_place(struct bw_batch *b, uint32_t head_len, const void *from, uint32_t n);

/* Is there no room for another frame? */
bool bw_batch_full(const struct bw_batch *b);

/* Is it time to give them to the kernel, if another one is as long as the last? A row is full:
 * while the kernel carries it to the peer, the next one is checksummed. */
bool bw_batch_ripe(const struct bw_batch *b);

/* Frames of up to so many bytes may be sealed ones. 0 or -ENOMEM. */
int bw_batch_make_room(struct bw_batch *b, uint32_t bytes);

/* Collect a frame: its slot, where the link then writes its header or address. NULL if the batch is
 * full: nothing was collected. */
struct bw_batch_slot *bw_batch_add(struct bw_batch *b, const struct bw_tx_frame *f);

/* This slot's frame goes where the one before it does, and as that. */
static inline void bw_batch_same_way(struct bw_batch_slot *slot)
{
	slot->to = slot[-1].to;
	slot->fd = slot[-1].fd;
	slot->cut = slot[-1].cut;
	slot->same = true;
}

/* Where the link's own header begins in a slot of this batch. */
static inline uint8_t *bw_batch_header(const struct bw_batch *b, struct bw_batch_slot *slot)
{
	return slot->flat - b->prefix;
}

/* Bytes of payload in a frame; padding is none. */
static inline uint32_t bw_batch_payload_bytes(const struct bw_tx_frame *f)
{
	uint32_t trailer;

	if (BW_LIKELY(f->segments == 1))
		return f->segment[0].buf ? f->segment[0].len : 0;
	trailer = f->seal.key ? BW_SEAL_TAG : 0;
	return f->segments && f->segment[0].buf ? f->len - f->head_len - trailer : 0;
}

/* This connected socket will be closed: what was to be sent by it goes by name. */
void bw_batch_disown(struct bw_batch *b, int fd);

/* Give all to the kernel. False if it has no room now: flush again later, add nothing until then.
 */
bool bw_batch_flush(struct bw_batch *b, int fd, uint64_t now);

#endif
