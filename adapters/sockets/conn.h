/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One TCP connection of the program: what its descriptors share, and which way each direction's
 * bytes go. The kernel's connection lives as long as this; see docs/sockets.md.
 */
#ifndef BWS_CONN_H
#define BWS_CONN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "beowire.h"
#include "offer.h"

#define BWS_HOLDERS 4		   /* processes that a connection is followed through */
#define BWS_WINDOW  (1u << 20)	   /* bytes that the peer's program has not taken yet */
#define BWS_PIECE   (64u << 10)	   /* bytes of the longest message */
#define BWS_SMALL   1000	   /* bytes that pieces of short messages share */
#define BWS_ORPHAN  60000000000ull /* ns without a byte taken; then an orphan is given up */

/* Which way the bytes of a direction go. */
enum bws_way {
	BWS_TCP,
	BWS_UNTIL, /* received: by TCP up to rx.from, then by Beowire */
	BWS_BW,
	BWS_DRAIN, /* sent: what the peer has not taken goes by TCP once more, ahead of the rest */
};

/* In memory that a child of fork() shares. */
struct bws_shared {
	_Atomic uint64_t tx, rx; /* bytes of the stream that programs have sent and received */
	_Atomic int holder[BWS_HOLDERS]; /* processes that have descriptors; 0: none */
	_Atomic uint32_t forking;	 /* children on their way that are not among them yet */
	_Atomic bool lost; /* more processes than have room here: nobody knows who has one */
};

struct bws_piece {
	struct bws_piece *next;
	uint64_t off; /* of its first byte in the stream */
	uint32_t len; /* bytes, and for how many there is room */
	uint32_t room;
	uint32_t given; /* sent: libbeowire has got */
	uint32_t done;	/* received: taken by the program; sent: gone by TCP, once draining */
	bool busy;	/* libbeowire reads it */
	bool dropped;	/* free it when libbeowire is done with it */
	uint8_t data[];
};

struct bws_queue {
	struct bws_piece *first, *last;
};

/* What is to be told to the peer, as soon as libbeowire takes it. */
enum bws_owed {
	BWS_OWE_HELLO = 1,
	BWS_OWE_WELCOME = 2,
	BWS_OWE_RETURN = 4,
	BWS_OWE_READY = 8,
	BWS_OWE_CREDIT = 16,
	BWS_OWE_BACK = 32,
	BWS_OWE_SWITCH = 64,
	BWS_OWE_PARK = 128,
	BWS_OWE_CROWDED = 256,
};

struct bws_conn {
	_Atomic uint32_t users; /* calls that look at it: not to be used anew before they end */
	uint32_t id;		/* place and generation: how the peer names it; 0: not in use */
	uint32_t index, uses;	/* which place, and how often it was used */
	int fd;			/* one of the program's, or ours once it is an orphan */
	int refs;		/* of the program's descriptors */
	bool orphan;		/* the program has closed it */
	bool connector;		/* made by connect(): the side that offers */
	bool named;		/* `name` is filled in */
	bool pinned;		/* by TCP for good */
	bool told;		/* counted at the end of the process */
	bool overdue;		/* its way back was waited for in vain */
	bool forked;		/* others may have descriptors: look whether they still do */
	const char *why;	/* text: why it is where it is */
	struct bws_name name;
	struct bws_shared *shared;
	struct bws_conn *next_free, *next_retry;
	bool retrying; /* is in that list */

	/* Offers, by the control thread and, paired, by messages. */
	_Atomic uint64_t bytes; /* of the program, until it is a candidate */
	_Atomic bool candidate;
	uint64_t offer_at; /* next offer; 0: none. Of an orphan: when it is given up */
	uint32_t offers;
	uint32_t awaited;	  /* offers that were sent, and of which no answer was seen */
	uint8_t nonce[BWS_NONCE]; /* ours for the offer under way */
	uint8_t peer_nonce[BWS_NONCE];
	bool answered;
	/* Both nonces prove who tells that Beowire is lost, also once there are new ones: the peer
	 * may not know yet that we know. */
	bool proven, retired; /* the peer knows both present ones; there are old ones */
	uint8_t old_nonce[BWS_NONCE];
	uint8_t old_peer_nonce[BWS_NONCE];
	/* By the old ones the peer was greeted, and has not answered: it may be paired by them. */
	bool unwelcomed;
	struct bws_from peer_at; /* where the peer's offers or answers come from */
	bool paired;		 /* both know each other's endpoint and name of it */
	uint64_t pairing_until;	 /* it may leave TCP soon, at most until then; 0: it may not */
	/* We, or the peer, want it on TCP until further notice, as that moves more. */
	bool parked, peer_parks;
	uint64_t compared; /* bytes of the stream that the comparison with TCP has counted */
	bw_peer_no peer;
	uint32_t peer_id;
	struct bw_addr peer_addr;
	uint32_t owed;	   /* set of enum bws_owed */
	_Atomic bool slow; /* not all is by TCP: calls go the long way */

	struct {
		_Atomic uint32_t under_way; /* calls of the kernel that may send */
		_Atomic enum bws_way way;
		uint32_t epoch;		  /* that the peer is ready in; 0: it is not */
		uint64_t switch_at;	  /* offset of the first byte by Beowire, lately */
		uint64_t taken;		  /* by the peer's program */
		struct bws_queue queue;	  /* from `taken` on */
		struct bws_piece *unsent; /* the first one that libbeowire has not got */
		bool back;		  /* we have asked for the way back */
		bool shut;		  /* SHUT_WR: by the program; done once drained */
	} tx;
	struct {
		_Atomic uint32_t under_way; /* calls of the kernel that may receive or wait */
		_Atomic enum bws_way way;
		uint32_t epoch; /* of our last READY */
		bool open;	/* the peer may switch, or has */
		bool wanted;	/* open it, as soon as no call sleeps in the kernel */
		uint64_t from;
		uint64_t next; /* offset behind the last byte that came by Beowire */
		uint64_t told; /* offset up to which the peer knows that bytes were taken */
		uint64_t must; /* offset up to which TCP has to bring bytes that came by Beowire */
		uint64_t looked; /* bw_clock_now() when a call that does not wait asked TCP */
		struct bws_queue queue;
		bool shut;	     /* SHUT_RD, while bytes came by Beowire */
		bool ended;	     /* TCP has ended while bytes were to come by Beowire */
		bool returned_final; /* the last RETURN says that we are gone */
		uint32_t returning;  /* RETURNs that are not acknowledged */
	} rx;
	/* Beowire is lost, TCP is not: each side tells the other what it has taken. */
	bool rescue, rescued; /* under way; the peer knows our offset */
	bool rescue_idle;     /* neither needs the other's */
	uint64_t rescue_from; /* what we had taken */
	uint64_t rescue_at, rescue_until;
	uint32_t losses; /* how often that was so */
	bool lost;	 /* and the two have not been paired since */
	int error;	 /* Beowire lost it: positive errno for all calls, once what came is read */
	bool error_told; /* to who received, or asked for SO_ERROR, which does not tell it again */
	int kept; /* programs under way that are not to inherit it: it has FD_CLOEXEC for that */
	bool foreign; /* its bytes in TCP are another process's: that is the error */
	int untold;   /* TCP's error, positive errno, that the program was not told of; else 0 */

	/* For who is told of it at the end. */
	uint64_t tx_beowire, rx_beowire; /* bytes */
	uint64_t tx_switches, tx_returns;
	const char *link; /* of libbeowire, when bytes last left TCP; NULL: they never did */
	struct bws_watch *watches; /* epoll instances that it is in */
};

bool bws_conn_init(void);

/* In a child of fork(): what its own connections share with its children is not the parent's. */
void bws_conn_in_child(void);

/* A connection that was just made (or is being made) of a TCP socket. Lock held. */
struct bws_conn *bws_conn_new(int fd, bool connector);
void bws_conn_put(struct bws_conn *c);
/* Nothing refers to it any more. Lock held. */
void bws_conn_free(struct bws_conn *c);

/* By the peer's name of it; NULL: none. Lock held. */
struct bws_conn *bws_conn_by_id(uint32_t id);
/* All of them: from NULL on. Lock held. */
struct bws_conn *bws_conn_next(struct bws_conn *c);

/* Is this process the only one that has descriptors of it? */
bool bws_conn_alone(struct bws_conn *c);
/* Before fork(): a child will have descriptors, whenever it first runs. If fork() fails the
 * connection stays on TCP. */
void bws_conn_forking(struct bws_conn *c);
/* That child has none, or none any more. */
void bws_conn_forked(struct bws_conn *c);
/* In a child of fork(): this process has descriptors as well. */
void bws_conn_inherit(struct bws_conn *c);
/* This process has none any more. */
void bws_conn_leave(struct bws_conn *c);

/* Beowire is lost, and a program's bytes depend on what the peer has taken. */
static inline bool bws_conn_in_doubt(const struct bws_conn *c)
{
	return c->rescue && !c->rescue_idle;
}

/* Recompute `slow`: lock held. */
void bws_conn_settle(struct bws_conn *c);

/* Keep bytes from this offset on, which follow those that are kept: short ones share a piece, so
 * that about twice the bytes are all that is needed of memory. NULL: there is none. */
struct bws_piece *bws_queue_add(struct bws_queue *q, uint64_t off, const void *data, uint32_t len);
/* Take out the first one, and free it as soon as libbeowire is done with it. */
void bws_queue_pop(struct bws_queue *q);
void bws_queue_clear(struct bws_queue *q);

#endif
