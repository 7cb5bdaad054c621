/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The `local` link: messages between the endpoints of one node (one network namespace) through
 * shared memory. Two endpoints that speak share a sealed memfd with one ring per direction and a
 * unix socket that shows the death of the other side and wakes it when it sleeps. A long message is
 * an envelope; its receiver reads the data straight out of the sender's memory (cross-memory
 * attach), or has it sent through the ring where that is faster or the kernel forbids the other.
 *
 * Nothing lies in any file system: after kill -9 nothing is left. What the other process writes
 * into the shared memory is never trusted: a peer that breaks the rules is reported down with
 * -EPROTO. Only processes of the same user are accepted.
 *
 * Threads: all functions of one bw_local are called under its endpoint's lock. Handlers are called
 * only from bw_local_poll() and bw_local_close(), and may call every function but those two.
 *
 * Sending to oneself needs no special case: bw_local_connect() with the own engine number and
 * incarnation gives a peer that loops back; peer_new is not called for it.
 *
 * Errors are negative errno numbers, 0 is success unless stated otherwise.
 */
#ifndef BW_LOCAL_H
#define BW_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bw_local;      /* the link of one endpoint */
struct bw_local_peer; /* the other side of one pair; freed when its peer_down handler has returned
		       */

/* Who an endpoint is. */
struct bw_local_id {
	uint64_t node; /* identity of the node (network namespace) */
	uint32_t cluster;
	uint32_t incarnation; /* not 0 */
	uint16_t engine;      /* the number claimed by bw_local_claim() */
	uint32_t pid;  /* process, as the kernel says; 0 in our own namespace of processes unknown.
			* Ignored where an id is an argument */
	char name[32]; /* name for messages to people, zero-terminated */
};

/* An envelope: where a long message lies in the memory of its sender. Copy it freely, pull it once.
 */
struct bw_local_envelope {
	uint64_t addr; /* in the sender's memory */
	uint64_t len;  /* bytes */
	uint32_t slot; /* the sender's number for it */
	uint32_t reserved;
};

struct bw_local_message {
	uint8_t code;	  /* the sender's code, tag and imm */
	bool is_envelope; /* the data must be fetched or discarded with bw_local_pull() */
	uint64_t tag;
	uint64_t imm;
	uint64_t len;	  /* bytes of the message */
	const void *data; /* all bytes, 8-aligned, in shared memory: valid during the handler only,
			   * and a hostile sender may change them meanwhile: read each byte once.
			   * NULL if is_envelope */
	struct bw_local_envelope envelope; /* if is_envelope */
};

struct bw_local_handlers {
	/* Somebody made contact. Set *ctx, which comes back as `ctx` of all other handlers. Return
	 * 0, or a negative errno to turn it away (no peer_down follows). */
	int (*peer_new)(void *arg, struct bw_local_peer *p, const struct bw_local_id *id,
			void **ctx);
	/* A message arrived, in the order in which the peer sent them. */
	void (*message)(void *arg, void *ctx, const struct bw_local_message *m);
	/* An operation of bw_local_offer() or bw_local_send(ack_op) ended: 0, or a negative errno.
	 */
	void (*sent)(void *arg, void *ctx, void *op, int status);
	/* A bw_local_pull() or bw_local_read() ended; len bytes are in the buffer if status is 0.
	 */
	void (*pulled)(void *arg, void *ctx, void *op, int status, uint64_t len);
	/* The peer is gone: -ESHUTDOWN closed in good order, -ECONNREFUSED dead or never there,
	 * -ECONNRESET a new incarnation took its place, -EPROTO broke the rules, -EPROTONOSUPPORT
	 * another version, -EACCES turned us away. What it sent before was delivered; its pending
	 * operations ended with the same status before this call. The bw_local_peer is invalid
	 * afterwards. */
	void (*peer_down)(void *arg, void *ctx, int status);
	/* bw_local_read() of the peer: where are n bytes of memory `key` at `off`? NULL forbids. */
	void *(*region)(void *arg, void *ctx, uint64_t key, uint64_t off, uint64_t n);
	/* Memory made for a pair is mapped there, and untouched: say where it lies. May be NULL. */
	void (*share)(void *arg, void *at, size_t n);
};

struct bw_local_attr {
	struct bw_local_id self;
	int claim; /* from bw_local_claim(self.engine); owned by the link if open succeeds */
	uint32_t ring_bytes; /* per direction, a power of two from 16 KiB to 16 MiB; 0: 256 KiB */
	uint32_t eager_max;  /* bytes, for bw_local_eager_max(); 0: what is fastest as a rule */
	const struct bw_local_handlers *handlers; /* must outlive the link */
	void *arg;				  /* first argument of every handler */
};

/* Counters since open. A frame is one record in a ring; a pull by cross-memory attach adds none. */
struct bw_local_counters {
	uint64_t tx_frames, rx_frames;
	uint64_t tx_bytes, rx_bytes;	   /* of the rings, heads and padding included */
	uint64_t tx_payload, rx_payload;   /* bytes of messages, pulls and reads */
	uint64_t tx_messages, rx_messages; /* envelopes included */
	uint64_t pulls_direct;		   /* pulls and reads by cross-memory attach */
	uint64_t pulls_copied;		   /* pulls and reads through the ring */
	uint64_t doorbells_tx, doorbells_rx;
	uint64_t ring_full;   /* times that a send found no room */
	uint64_t broken;      /* peers given up since they broke the rules */
	uint64_t turned_away; /* contacts refused: other user, cluster, version, incarnation */
	uint64_t peers;	      /* pairs now */
};

/* Claim an engine number on this node (network namespace): a descriptor that holds it until it is
 * closed or the process ends, or -EADDRINUSE. The descriptor is a unix socket bound to the abstract
 * name "beowire.NUMBER"; without bw_local_open() it does not listen, and contacts are refused. */
int bw_local_claim(uint16_t engine);
/* The same under a name that nobody can foresee, for a number whose own name others hold. */
int bw_local_claim_as(uint16_t engine, uint32_t incarnation);

/* Open the link. Reads BEOWIRE_LOCAL_CMA: "off" never uses cross-memory attach, "on" wherever it
 * works; else it is used where it is the faster way. -EINVAL, -ENOMEM, -EMFILE, -ENFILE. */
int bw_local_open(struct bw_local **l, const struct bw_local_attr *attr);

/* Say goodbye to all peers and free everything, the claim included. What lies in the rings can
 * still be read by the peers. Pending operations end with sent or pulled(-ECANCELED); no peer_down
 * is called. To lose nothing call bw_local_poll() before until bw_local_busy() is false. */
void bw_local_close(struct bw_local *l);

/* In a child of fork(), which must neither speak in its parent's name nor keep alive what peers
 * take for the parent: close all descriptors, unmap what is shared. Says no goodbye, calls no
 * handler, frees nothing; no other function may be called afterwards. bw_local_close() in a child
 * does this. */
void bw_local_abandon(struct bw_local *l);

/* When to poll next though nothing may have come; UINT64_MAX: never. */
uint64_t bw_local_due(const struct bw_local *l, uint64_t now);

/* Something sent is not yet taken, or a pull has not ended (what close would lose). */
bool bw_local_busy(const struct bw_local *l);

/* Make contact with the endpoint of this engine number and incarnation. Never waits: messages can
 * be sent at once, peer_down tells if it does not want us. When both sides do this at the same time
 * they still have one peer each. -EEXIST (and *p): that pair exists already. -ECONNREFUSED: nobody
 * has that number; -EAGAIN: too many contacts at once there, try again; -EACCES: another user's;
 * -ENOMEM, -EMFILE. */
int bw_local_connect(struct bw_local *l, uint16_t engine, uint32_t incarnation, void *ctx,
		     struct bw_local_peer **p);

/* The identity of a peer: as it said itself, but for .pid (kernel). Before the peer has answered
 * only engine and incarnation are known. */
void bw_local_peer_id(const struct bw_local_peer *p, struct bw_local_id *id);

/* Forget a peer: its pending operations end with -ECANCELED and peer_down(-ECANCELED) comes, both
 * from the next bw_local_poll(). */
void bw_local_disconnect(struct bw_local_peer *p);

/* Longest message that bw_local_send() takes, in bytes (65536 with the default ring). */
uint32_t bw_local_send_limit(const struct bw_local_peer *p);
/* Up to this length sending is faster than offering, in bytes; 0 when the peer is under pressure.
 */
uint32_t bw_local_eager_max(const struct bw_local_peer *p);
/* Tell all peers whether unexpected messages fill our memory: bw_local_eager_max() is 0 there. */
void bw_local_pressure(struct bw_local *l, bool on);

/* Copy a message into the ring; buf is free on return. Without ack_op: done on 0. With ack_op:
 * sent() follows when the peer's message handler has taken it. -EAGAIN: the ring is full, or too
 * many are to be released by the peer, poll and try again; -EMSGSIZE; -ENOMEM; the status of
 * peer_down once the peer is down. */
int bw_local_send(struct bw_local_peer *p, uint8_t code, uint64_t tag, uint64_t imm,
		  const void *buf, uint64_t len, void *ack_op);

/* Send an envelope: buf must stay unchanged until sent(op), which comes when the peer has pulled or
 * discarded it. Errors as bw_local_send(). op must not be NULL. */
int bw_local_offer(struct bw_local_peer *p, uint8_t code, uint64_t tag, uint64_t imm,
		   const void *buf, uint64_t len, void *op);

/* Take an offer back that is not being pulled: 0 and sent(op, -ECANCELED) follows from the next
 * poll (the buffer is free at once); -ENOENT: too late. The peer's pull of it ends with -ECANCELED.
 */
int bw_local_retract(struct bw_local_peer *p, void *op);

/* Fetch the first len bytes of an envelope into buf and release its sender; the rest is dropped.
 * len 0 discards it. pulled(op) follows from a later poll unless op is NULL. If len is beyond the
 * envelope's, less is fetched. -ENOMEM, or the status of peer_down once the peer is down: -EPROTO
 * if it offers more than a peer may. */
int bw_local_pull(struct bw_local_peer *p, const struct bw_local_envelope *e, void *buf,
		  uint64_t len, void *op);

/* Read len bytes at off of the peer's memory `key`, as its region handler allows: pulled(op,
 * -EACCES) if it does not. Completion and errors as bw_local_pull(); -EAGAIN: too many wait for
 * their turn, poll and try again. */
int bw_local_read(struct bw_local_peer *p, uint64_t key, uint64_t off, void *buf, uint64_t len,
		  void *op);

/* Give up a pull or read that has not ended: nothing is written to its buffer any more, and
 * pulled(op, -ECANCELED) follows from the next poll. -ENOENT: it has ended, or ends with its peer,
 * which is down; -ENOMEM. */
int bw_local_cancel(struct bw_local_peer *p, void *op);

/* Handle what has arrived and go on with pulls; never sleeps, and ends bw_local_arm()'s effect.
 * `now`: monotonic nanoseconds, used only to look at the sockets (contacts, deaths) now and then;
 * `ready`: the descriptor was seen readable, look at them at once. Returns the number of things
 * handled. */
int bw_local_poll(struct bw_local *l, uint64_t now, bool ready);

/* A descriptor for the endpoint's epoll set: readable when a peer calls, comes or goes. Owned by l.
 */
int bw_local_fd(const struct bw_local *l);

/* About to sleep on the descriptor: from now on peers wake us. 0: sleep; -EAGAIN: there is work,
 * poll first. The next bw_local_poll() ends it (as does bw_local_disarm()); until then peers pay a
 * system call per message. */
int bw_local_arm(struct bw_local *l);
void bw_local_disarm(struct bw_local *l);

/* Where the next record of a peer will begin: the word there becomes `come` when it is complete.
 * The memory stays mapped until bw_local_close(), whatever becomes of the peer. */
struct bw_local_sight {
	const uint64_t *record;
	uint64_t come;
};

/* What a poll comes down to for anybody who looks without the endpoint's lock, if there are no more
 * than `most` peers: how many there are, or -1: only polls do. */
int bw_local_sights(const struct bw_local *l, struct bw_local_sight *sight, int most);

/* Do peers ring? */
bool bw_local_armed(const struct bw_local *l);

/* A sleep on bw_local_fd() has ended: it would have ended for the sockets, too. */
void bw_local_looked(struct bw_local *l, uint64_t now);

/* The next poll looks at the sockets: one of them may have woken who slept. */
void bw_local_expect(struct bw_local *l);

const struct bw_local_counters *bw_local_counters(const struct bw_local *l);

/* What is known of a peer, for people. What waits is counted up to BW_LOCAL_VIEW_MOST of a kind. */
#define BW_LOCAL_VIEW_MOST 64
struct bw_local_view {
	uint32_t pid;			 /* 0: not known, */
	bool answered;			 /* before it has answered */
	bool sleeping;			 /* it asked to be woken */
	bool stalled;			 /* it has no room for us */
	uint64_t tx_bytes;		 /* put into the ring, ever, */
	uint64_t tx_waiting;		 /* of these not taken out */
	uint64_t rx_bytes;		 /* taken out of the peer's */
	uint64_t offered, offered_bytes; /* envelopes that it has not released */
	uint64_t pulls;			 /* of ours, and reads, that have not ended */
	uint64_t serves;		 /* of its that we send the data of */
};

void bw_local_look_at(const struct bw_local_peer *p, struct bw_local_view *view);

/* Can this process read another process's memory by cross-memory attach, as far as can be known
 * without a peer? 0, or a negative errno; *why (static text, never NULL) says what forbids it and
 * what fixes it. */
int bw_local_cma_check(const char **why);

#endif
