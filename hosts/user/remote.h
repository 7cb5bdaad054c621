/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The peers of an endpoint: numbered, found by who they are (node, engine, incarnation) and by the
 * engine's handle. A peer is made when the program names its address or when it makes contact with
 * us, whichever comes first. It stays until the endpoint is closed, or until it is down if the
 * program never came to know it: else whoever makes contact again and again would fill memory.
 */
#ifndef BW_REMOTE_H
#define BW_REMOTE_H

#include "addr.h"
#include "keyed.h"
#include "link/link.h"
#include "link/local/local.h"
#include "protocol.h"
#include "secret.h"
#include "transport.h"

struct bw_ep;

#define BW_REMOTE_GHOSTS 65536

struct bw_remote {
	struct bw_addr_fields addr;    /* as far as known */
	uint32_t number;	       /* the program's bw_peer_no */
	uint32_t handle;	       /* the engine's; 0: none */
	uint32_t kernel;	       /* the kernel link's number; 0: none */
	const struct bw_transport *by; /* how it is sent to; NULL: not decided */
	bool meeting;		       /* kernel: whether raw frames pass is being found out, */
	uint64_t meet_until;	       /* until then */
	bool met;		       /* kernel: it was heard of there */
	bool unneeded;		       /* kernel: the module was told that it may go for others */
	struct bw_remote *next_kernel; /* kernel: in its table by number */
	struct bw_local_peer *local;   /* NULL: reached through the engine or the kernel link */
	int status;		       /* 0, or why it is down */
	bool pressed;		       /* kernel: it wanted envelopes when it was last asked */
	bool complete;		       /* addr was given by the program, not pieced together */
	bool known; /* the program named it, or was called with its number: it is told its end */
	bool up;    /* the engine made first contact */
	bool watch; /* bw_peer_watch() */
	bool ghost; /* one of bw_remotes.ghosts */
	bool gone;  /* nobody is there: its end is still to be told */
	uint8_t offered;	       /* links named in CONNECT, bit per link number */
	uint8_t passed;		       /* of these, those that were usable once */
	uint32_t mtu[BW_LINK_NUMBERS]; /* largest frame that passed, in bytes */
	uint64_t check_at;	       /* when to look whether all links pass; BW_NEVER: done */
	uint64_t eager;		       /* bytes of its share of ep.copied */
	struct bw_buffer *sent;	       /* by the engine: eager messages, the oldest that has not */
	struct bw_buffer *sent_last;   /* been acknowledged first */
	uint32_t held;		       /* of these those that have been, behind one that has not */
	bool ahead;		       /* a message is on its way to it that was not waited for */
	uint64_t arriving;	       /* bytes of messages of its that have not arrived whole, */
	uint64_t arriving_at;	       /* when that last changed, */
	uint32_t arriving_next;	       /* how many of them were the next of their flow, */
	uint64_t arriving_refused;     /* ns; when there was no room for such a one; 0: not since */
	uint32_t copied;	       /* bytes of copies that it has not pulled (copies.h) */
	uint32_t taken_cost;	       /* of long messages to it (cost.h) */
	uint32_t fetched_cost;	       /* of those from it */
	uint64_t published;	       /* publish.c: when it was looked at, */
	uint64_t told_sum;	       /* what had gone to it and come by then, */
	uint64_t told_losses;	       /* and been lost, */
	uint64_t exposed_first;	       /* which message it has not fetched longest, */
	uint64_t exposed_since;	       /* and since when a message waits to be fetched */
	char name[BW_NAME_MAX + 1];    /* its host name, printable; "" before contact */
	struct bw_remote *next_id, *next_handle; /* hash chains */
	struct bw_remote *older, *newer;	 /* ghosts, by when they went down */
};

struct bw_remotes {
	struct bw_remote **at; /* by number; NULL: free again */
	uint32_t count, room;
	uint32_t vacant;	  /* of `count` */
	uint32_t named;		  /* those that the program has named, and */
	uint32_t ghosts;	  /* those that it has not, knows, and are down */
	uint64_t ghosts_gone;	  /* of these, whose number became void, ever */
	uint64_t callers_refused; /* there was no room for them, ever */
	struct bw_remote *ghost_oldest, *ghost_newest;
	uint32_t gone;			       /* those of which that is true */
	struct bw_remote **by_id, **by_handle; /* hash tables of `buckets`, a power of two */
	uint32_t buckets;
	uint8_t key[BW_KEYED_SIP_KEY]; /* of by_id: strangers choose their identities */
};

int bw_remote_init(struct bw_remotes *r, struct bw_secret *secret);
void bw_remote_free_all(struct bw_remotes *r);

static inline struct bw_remote *bw_remote_get(const struct bw_remotes *r, uint32_t number)
{
	return number < r->count ? r->at[number] : NULL;
}

/* Do sends to it go by the kernel link, now or once raw frames have passed? */
static inline bool bw_remote_by_kernel(const struct bw_remote *p)
{
	return p->kernel && p->by != &bw_by_engine;
}

/* The peer with this identity, or NULL. */
struct bw_remote *bw_remote_find(const struct bw_remotes *r, uint64_t node, uint16_t engine,
				 uint32_t inc);
/* The same, made if it is new; NULL without memory. */
struct bw_remote *bw_remote_make(struct bw_remotes *r, uint64_t node, uint16_t engine,
				 uint32_t inc);
/* The same for one that made contact. If BW_REMOTE_GHOSTS that did so are down, of which the
 * program knows, the oldest that it does not need makes room: its number is void, as
 * peer_down(-ENOBUFS) tells. NULL, too, if it needs all that were asked about. */
struct bw_remote *bw_remote_meet(struct bw_ep *ep, uint64_t node, uint16_t engine, uint32_t inc);
/* It is a ghost from now on, the newest, or no longer. */
void bw_remote_ghost(struct bw_remotes *r, struct bw_remote *p, bool is);
/* Is it connected, or anything of it under way? */
bool bw_remote_in_use(const struct bw_remote *p);
/* Nobody refers to it any more: its number is void. */
void bw_remote_forget(struct bw_remotes *r, struct bw_remote *p);
/* What it says its host is called: at most n bytes. */
void bw_remote_name(struct bw_remote *p, const void *name, size_t n);
struct bw_remote *bw_remote_by_handle(const struct bw_remotes *r, uint32_t handle);
void bw_remote_set_handle(struct bw_remotes *r, struct bw_remote *p, uint32_t handle);

/* Choose how to send to a peer, on first use: local, or the engine over what it has in common with
 * us. 0, -EAGAIN, -EHOSTUNREACH, -ENOMEM. */
int bw_remote_connect(struct bw_ep *ep, struct bw_remote *p);

/* The same, by the engine: with another call, links that were learnt of since. */
int bw_remote_connect_engine(struct bw_ep *ep, struct bw_remote *p);
/* Tells the ends of those that were found gone, which no handler could be told of then. */
void bw_remote_bury(struct bw_ep *ep);
/* Have engine and address a link in common? */
bool bw_remote_engine_reaches(const struct bw_ep *ep, const struct bw_addr_fields *a);

/* The engine's events about peers. */
void bw_remote_event(struct bw_ep *ep, const struct bw_event *ev);

/* The peer is lost: remember why, and tell the program (once). One that the program does not know
 * is forgotten instead, p is no more. */
void bw_remote_down(struct bw_ep *ep, struct bw_remote *p, int status);
/* Before it: why the two do not talk to each other, if the program cares, by one line of the job.
 * The versions of the wire protocol that the peer speaks are for BW_DOWN_VERSION. */
void bw_remote_kept_apart(const struct bw_ep *ep, const struct bw_remote *p, int status,
			  unsigned int version_min, unsigned int version_max);

/* Warn of links that should pass but do not; called now and then. */
void bw_remote_check_links(struct bw_ep *ep);

#endif
