/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Buffers: the bytes behind the engine's cookies. Short ones lie within, copied; longer ones in
 * pages of the kernel's, copied, or in pages of the user's, pinned. What arrives in pieces is put
 * together in a socket buffer.
 */
#ifndef BWK_BUF_H
#define BWK_BUF_H

#include <linux/list.h>
#include <linux/llist.h>
#include <linux/rbtree.h>
#include <linux/skbuff.h>
#include <linux/uio.h>

#include "account.h"
#include "protocol.h"

#define BWK_BUF_FLAT   1024 /* bytes; longer ones lie in pages, which frames can refer to */
#define BWK_BUF_LINEAR 2048 /* bytes of what arrives in pieces; longer copies lie in pages */
#define BWK_BUF_SMALL  256  /* bytes; shorter ones are kept by their socket for its next send */

struct bwk_node;
struct bwk_peer;

/* A stretch of a buffer that lies in consecutive entries of `pages`. */
struct bwk_part {
	u64 off;     /* of its first byte in the buffer */
	u32 page;    /* entry that this byte lies in */
	u32 in_page; /* and where */
};

enum bwk_buf_kind {
	BWK_BUF_IN, /* bytes in `flat` */
	BWK_BUF_PAGES,
	BWK_BUF_PIECE_OF, /* bytes in one piece of `whole`, a compound page */
	BWK_BUF_USER,	  /* pinned pages */
	BWK_BUF_GROWING,  /* pages, each allocated when bytes for it come: from here on by frames */
	BWK_BUF_CHAIN,	  /* arriving, so far in order: the frames themselves */
	BWK_BUF_SKB,	  /* arriving in any order: copied */
};

enum bwk_buf_use {
	BWK_BUF_SEND = 1, /* an eager message */
	BWK_BUF_EXPOSED,  /* a long one, to be pulled */
	BWK_BUF_PULL,	  /* destination of a pull */
};

/* What a growing buffer had. */
struct bwk_grown {
	struct bwk_account *payer;
	struct page **pages; /* NULL: nothing */
	u32 npages;
};

struct bwk_buf {
	struct hlist_node held; /* while the engine has it: in its socket's list, or in port.bufs */
	union {
		struct rb_node named;	/* in sock.cookies meanwhile, perhaps */
		struct list_head ended; /* in sock.done, perhaps, afterwards */
	};
	u8 kind;      /* enum bwk_buf_kind */
	u8 use;	      /* enum bwk_buf_use */
	bool notify;  /* its end is an event for the program */
	bool awaited; /* a thread sleeps until it is done */
	bool done;    /* it has ended: `status` and `got` are valid */
	bool small;   /* there is room for BWK_BUF_SMALL bytes in it */
	bool found;   /* it is in sock.cookies */
	int status;
	u32 peer;    /* number in its socket */
	u32 handle;  /* of the peer in the engine */
	u32 sending; /* bytes that its socket is charged for a send under way */
	u64 len, got;
	u64 cookie;		 /* the program's */
	u64 key;		 /* EXPOSED: of the region; PULL: its number */
	struct bwk_peer *end_of; /* the END of a connection, or what is still to be fetched of
				  * one that is closed: with whom, a reference */
	void *owner;		 /* its socket; NULL once that is closed */
	/* From here on the same in small buffers, all the time. */
	struct bwk_account *payer; /* who is charged for it; NULL: nobody */
	u64 paid;		   /* bytes, without the pages of a growing one */
	u32 first;  /* offset of its first byte in the first page, if that is where all follow */
	u32 npages; /* of `pages` */
	union {
		u32 charge; /* USER: pages that its user is charged for locked memory */
		u32 moved;  /* GROWING: jiffies when bytes last came */
	};
	u32 nparts; /* of `parts` */
	union {
		u64 to;	    /* PULL into pages of ours: the program's address; 0: none */
		u64 source; /* PULL ahead: of its first byte in the message */
	};
	struct mm_struct *mm;	     /* whose address that is: a reference to the structure only */
	u64 region;		     /* PULL: key to be given up once all is in place; 0: none */
	struct bwk_region *read_for; /* that it was given for; NULL once that is gone */
	bool ahead;		     /* PULL: nobody waits; the socket becomes readable */
	u8 slot;		     /* then: enum bwk_ahead */
	bool yields;		     /* PULL: who waits for it stops once anything else is there */
	bool stale;		     /* such a one that was given up: its pages are gone */
	struct page **pages;
	struct bwk_part *parts;	    /* USER, scattered; else NULL */
	struct page *whole;	    /* PIECE_OF: a reference */
	struct sk_buff *skb, *tail; /* CHAIN: the first frame, and the last one beside it */
	const struct cred *locker;  /* USER: whose user is charged for locked memory */
	bool pinned;		    /* USER: by FOLL_PIN, else referred to */
	struct ubuf_info lent;	    /* USER to be sent: frames refer to its pages. Counted are they,
				     * and 1 until the owner is done with it; 0: nobody is */
	struct bwk_port *back;	    /* the owner is, and frames are not: a reference to the port
				     * that is told when they are */
	struct llist_node later;
	u8 flat[];
};

static inline u64 bwk_buf_cookie(const struct bwk_buf *b)
{
	return (u64)(uintptr_t)b;
}

static inline struct bwk_buf *bwk_buf_of(u64 cookie)
{
	return (struct bwk_buf *)(uintptr_t)cookie;
}

/* Small buffers of a socket that its sends no longer need, for the next ones. */
struct bwk_spares {
	struct llist_head list;
	unsigned long taking; /* bit 0: a thread takes one, others do without */
	atomic_t count;
};

/* A copy of the next `len` bytes, in a spare buffer where that will do (`spares` may be NULL). As
 * all buffers that programs cause it is charged to their account. Sleeps. ERR_PTR(-ENOMEM, -EFAULT,
 * or -ENOBUFS: the user holds too much). */
struct bwk_buf *bwk_buf_copy(struct bwk_spares *spares, struct bwk_account *account,
			     struct iov_iter *from, size_t len);
/* Keep a buffer that has ended; false: it is not such a one, or there are enough. Any context. */
bool bwk_spares_keep(struct bwk_spares *spares, struct bwk_buf *b);
void bwk_spares_free(struct bwk_spares *spares);
/* What is done with the program's memory. */
enum bwk_pin {
	BWK_PIN_READ,	    /* it is sent */
	BWK_PIN_READ_LONG,  /* the same, for longer than the call: peers read it, or it waits */
	BWK_PIN_WRITE,	    /* it is filled during this call of the program */
	BWK_PIN_WRITE_LONG, /* or as long as peers take */
};

/* The memory behind the next `len` bytes itself, pinned until bwk_buf_free(), scattered or not.
 * Sleeps. ERR_PTR(-EDQUOT): the user's RLIMIT_MEMLOCK is reached; -EAGAIN: this memory cannot be
 * pinned, or lies in too many small pieces; both: copy it. Charged is what describes it. */
struct bwk_buf *bwk_buf_pin(struct bwk_account *account, struct iov_iter *from, size_t len,
			    enum bwk_pin how);
/* One without bytes, charged to nobody: there is one for a socket at most. Sleeps. NULL. */
struct bwk_buf *bwk_buf_empty(void);
/* Room for any number of bytes, such as are to be filled by a pull and copied out of later. Sleeps.
 * ERR_PTR(-ENOMEM, -ENOBUFS). */
struct bwk_buf *bwk_buf_held(struct bwk_account *account, size_t len);
/* The same whose pages are allocated as bytes come, so that who promises many and sends none costs
 * a few; it is refused nevertheless if not all of it may be charged now. */
struct bwk_buf *bwk_buf_growing(struct bwk_account *account, size_t len);
/* Its pages, and what was charged for them, go to `grown`: nothing is placed any more. Then
 * GROWN_FREE, without a lock; it does nothing where no buffer was stripped. */
void bwk_buf_strip(struct bwk_buf *b, struct bwk_grown *grown);
void bwk_grown_free(const struct bwk_grown *grown);
/* Any context. Pages that were written to, and those of long buffers, are let go a little later, by
 * a work queue; those that frames still refer to, with the last frame. */
void bwk_buf_free(struct bwk_buf *b);
/* The same at once, in process context without locks. */
void bwk_buf_free_now(struct bwk_buf *b);
/* Wait until all that bwk_buf_free() put off is done. */
void bwk_buf_flush(void);
/* The same, and until no frame under way refers to a program's pages any more: the module goes. */
void bwk_buf_exit(void);
/* The engine is done with a buffer. True: so is everything. False: its bytes may still be read, as
 * frames that refer to it are under way; with the last one bwk_port_back() is called. Port's lock
 * held. May be asked again. */
bool bwk_buf_over(struct bwk_buf *b, struct bwk_port *port);

/* Bytes `off` to off+n (excluded) attached to a frame, or copied behind its linear part. */
int bwk_buf_attach(struct bwk_buf *b, u64 off, u32 n, struct sk_buff *skb);
void bwk_buf_read(const struct bwk_buf *b, u64 off, void *to, u32 n);
u32 bwk_buf_crc(const struct bwk_buf *b, u64 off, u32 n);
/* Copy n bytes from `at` of the socket buffer to `off`; their CRC32C into *crc if it is wanted. b
 * may be NULL: only the CRC. */
int bwk_buf_place(struct bwk_buf *b, u64 off, struct sk_buff *skb, u32 at, u32 n, u32 *crc);
/* The caller is to have the bytes at this address, once they are there: not earlier than that a
 * thread of the same program asks. OUT: -EFAULT, and for any other program, which is counted. */
void bwk_buf_copy_later(struct bwk_buf *b, u64 to);
int bwk_buf_copy_out(struct bwk_node *node, const struct bwk_buf *b);
/* Copy n bytes from `off` on to a program. -EFAULT. */
int bwk_buf_to_iter(const struct bwk_buf *b, u64 off, size_t n, struct iov_iter *to);

/* ---- between the files of the buffers ---- */

/* A buffer of this kind (enum bwk_buf_kind), all else 0, with room for `flat` bytes within. NULL
 * without memory. */
struct bwk_buf *bwk_buf_new(u8 kind, u64 len, size_t flat, gfp_t gfp);
/* One with room for so many entries of `pages`, of which there are none yet. Sleeps. NULL. */
struct bwk_buf *bwk_buf_new_pages(u8 kind, u64 len, u32 npages);
/* Charge so many bytes for a buffer that is not charged yet. 0 or -ENOBUFS. */
int bwk_buf_pay(struct bwk_buf *b, struct bwk_account *account, u64 bytes);
void bwk_buf_put_pages(struct bwk_buf *b);
/* The work queue goes on with it: bwk_buf_free_now(), or bwk_port_back(). Any context. */
void bwk_buf_put_off(struct bwk_buf *b);
/* The program's pages are its own again, and its user is charged no more for them. Sleeps. */
void bwk_buf_unpin(struct bwk_buf *b);
/* Its owner is done with it; true: so are all frames. Any context. */
bool bwk_buf_let_go(struct bwk_buf *b);
/* Pages of a growing one for n bytes at `off`. 0, -ENOBUFS or -ENOMEM. Any context. */
int bwk_buf_grow(struct bwk_buf *b, u64 off, u32 n);
/* A chain becomes memory that can be filled in any order. 0 or a negative errno. Any context. */
int bwk_buf_unchain(struct bwk_buf *b);

#endif
