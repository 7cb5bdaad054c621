/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libbeowire: reliable messages between the processes of a cluster, over Ethernet frames, UDP or
 * shared memory, whichever is the best that passes. One bw_ep is one endpoint with an address of
 * its own; it talks to any number of peers without connections, descriptors or threads for each of
 * them.
 *
 * Messages from one endpoint to another arrive in the order in which they were sent, exactly once.
 * Short ones travel eagerly (copied: the buffer is free at once); of a long one only an envelope
 * travels, and the receiver pulls the data straight into its own buffer, or, where that takes much
 * longer than a copy, out of one.
 *
 * Threads: every function may be called from any thread. Each endpoint has one lock, taken by every
 * call; bw_ep_lock() lets a caller hold it over several calls (it is recursive for its holder's
 * bw_* calls on that endpoint). Handlers run with the lock held, in whatever thread makes progress:
 * a caller of bw_progress()/bw_wait(), any bw_* call, or the endpoint's own helper thread, which
 * serves peers while the program computes. Handlers may call bw_* on the same endpoint except
 * bw_progress(), bw_wait() and bw_ep_close().
 *
 * A child of fork() cannot use its parent's endpoints (-EINVAL, and a message to the log); it may
 * close them, and open its own. Within a handler fork() only to exec.
 *
 * Errors are returned as negative errno numbers; 0 is success unless stated otherwise.
 */
#ifndef BEOWIRE_H
#define BEOWIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BW_API __attribute__((visibility("default")))

struct bw_ep;

/* Address of an endpoint: plain bytes, to be exchanged by any means, valid on every node. */
struct bw_addr {
	uint8_t bytes[56];
};

/* A peer of one endpoint: small number, stable as long as the endpoint. */
typedef uint32_t bw_peer_no;
#define BW_PEER_NONE UINT32_MAX

/* The sender's side of a long message: what bw_pull() needs. Copy it freely; use it once. */
struct bw_rndv {
	uint64_t word[4];
};

struct bw_message {
	bw_peer_no peer;
	uint8_t code; /* the sender's `code`, `tag` and `imm` */
	uint64_t tag;
	uint64_t imm;
	uint64_t len;	     /* bytes of the whole message */
	const void *data;    /* all bytes, valid during the handler only; NULL if `envelope` */
	struct bw_rndv rndv; /* when `envelope`: for bw_pull() */
	bool envelope; /* data must be fetched (or discarded) with bw_pull(), even if len is 0 */
};

/* What a program waits for, or what waits for it, as `beowire status` tells of it. */
struct bw_awaited {
	bw_peer_no peer; /* BW_PEER_NONE: any */
	bool arrived;	 /* a message that no receive fits; else a receive without a message */
	bool tagged;
	uint64_t tag, ignore; /* bits of the tag that do not matter */
	uint64_t bytes;
	uint64_t id; /* the same at the next call if and only if it is the same one */
};

#define BW_AWAITED_MAX 32
struct bw_program {
	uint64_t receives, unexpected, unexpected_bytes; /* in all */
	uint32_t n;					 /* used entries of `awaited` */
	struct bw_awaited awaited[BW_AWAITED_MAX];	 /* the oldest of each kind first */
};

struct bw_handlers {
	/* A message arrived. Copy what you need before returning. */
	void (*message)(void *arg, const struct bw_message *m);
	/* A send with a pending completion ended: 0, or a negative errno. */
	void (*sent)(void *arg, void *op, int status);
	/* A bw_pull() or bw_read(), or a message that had a place, ended; len bytes are in the
	 * buffer when status is 0. */
	void (*pulled)(void *arg, void *op, int status, uint64_t len);
	/* A peer is gone (negative errno: -ETIMEDOUT silent too long, -ECONNREFUSED its endpoint is
	 * dead or its program ended by exit() with an error, -ECONNRESET gave us up, -ESHUTDOWN
	 * closed in good order, -EPROTONOSUPPORT version, -EKEYREJECTED another key, -EPROTOTYPE
	 * one encrypts and the other does not, -ENOBUFS it was not needed: its number is void now,
	 * and may be given to another one; this may follow another reason).
	 * Called for peers that bw_peer_find() or a handler has told of.
	 * Its pending operations end with the same status, before this call. */
	void (*peer_down)(void *arg, bw_peer_no peer, int status);
	/* bw_read() of a peer: where are n bytes of memory `key` at `off`? NULL forbids. May be
	 * NULL. */
	void *(*region)(void *arg, bw_peer_no peer, uint64_t key, uint64_t off, uint64_t n);
	/* The first part of a message has come, and all that the peer sent before has been
	 * delivered: where are its m->len bytes to go? `pulled(*op)` follows instead of `message`,
	 * and until then the memory is written to. NULL: `message` follows when all is there. No
	 * function of libbeowire may be called. May be NULL. m->data is NULL. */
	void *(*place)(void *arg, const struct bw_message *m, void **op);
	/* Fill in what the program waits for: asked some times a second while there is traffic, for
	 * people who ask why it stands still. No function of libbeowire may be called. May be NULL.
	 */
	void (*awaits)(void *arg, struct bw_program *told);
	/* There is no room for peers that call. This one called, bw_peer_find() has not named it,
	 * all that came of it has been delivered, and for a while nothing has come, or it is down:
	 * do you need it? If not, peer_down(-ENOBUFS) may follow. Of peers by the kernel module it
	 * is asked before room is wanted, and the answer holds until something comes again. No
	 * function of libbeowire may be called. May be NULL: you need all. */
	bool (*peer_needed)(void *arg, bw_peer_no peer);
};

struct bw_ep_attr {
	const struct bw_handlers *handlers; /* must outlive the endpoint */
	void *arg;			    /* first argument of every handler */
	bool no_helper;			    /* no threads: progress only inside calls */
	/* Threads that wait for one core while another is idle may be moved there. Their affinity
	 * stays. */
	bool spread;
};

/* Open an endpoint. Interfaces, links and limits come from the environment (BEOWIRE_INTERFACE,
 * BEOWIRE_LINKS, ..., see beowire(7)). On failure *why (static or thread-local text, never NULL)
 * says what is wrong and what fixes it; `why` may be NULL. -EACCES, -ENODEV, -ENOMEM, -EINVAL,
 * -EADDRINUSE. */
BW_API int bw_ep_open(struct bw_ep **ep, const struct bw_ep_attr *attr, const char **why);

/* Let pending sends reach their peers (up to timeout_ns), say goodbye, free everything; without
 * no_helper, a thread frees packet sockets and memory later, as the kernel takes its time for that.
 * bw_wait() returns -EINVAL in threads that are in it meanwhile; no other call may be under way in
 * another thread, and none may follow. */
BW_API void bw_ep_close(struct bw_ep *ep, uint64_t timeout_ns);

BW_API void bw_ep_addr(struct bw_ep *ep, struct bw_addr *addr);
BW_API void bw_ep_lock(struct bw_ep *ep);
BW_API void bw_ep_unlock(struct bw_ep *ep);

/* The peer with this address; made if it is new (no traffic yet). -EINVAL: not an address,
 * -EHOSTUNREACH: no link in common, -EPROTONOSUPPORT: another version or cluster. */
BW_API int bw_peer_find(struct bw_ep *ep, const struct bw_addr *addr, bw_peer_no *peer);
BW_API int bw_peer_addr(struct bw_ep *ep, bw_peer_no peer, struct bw_addr *addr);
/* 0, or why it is down. A peer that is down stays down; its address's next incarnation is a new
 * peer. (But see bw_peer_forget().) */
BW_API int bw_peer_status(struct bw_ep *ep, bw_peer_no peer);
/* The program has done with a peer that is down: its number is void, and it may be found, or make
 * contact, anew by the same address, if its program forgets us as well. Not in a handler. -EINVAL:
 * not an address, -ENOENT: no such peer, -EBUSY: it is not down, or not all is told of what was
 * under way. */
BW_API int bw_peer_forget(struct bw_ep *ep, const struct bw_addr *addr);
/* Keep an eye on an idle peer, so that peer_down is called soon after it dies. */
BW_API void bw_peer_watch(struct bw_ep *ep, bw_peer_no peer, bool on);
/* By which link it is sent to now: `local`, `kernel`, `packet` or `udp`. NULL: none is chosen yet,
 * or it is down. */
BW_API const char *bw_peer_link(struct bw_ep *ep, bw_peer_no peer);
/* Free text for messages to people: host name, engine number, link in use. Thread-local buffer. */
BW_API const char *bw_peer_describe(struct bw_ep *ep, bw_peer_no peer);

/* Bytes; a message of so many costs its receiver no more than an envelope would, even under
 * pressure: whoever would send it eagerly to any peer need not ask how many to this one. */
#define BW_EAGER_LEAST 64
/* Longest message that bw_send() copies and sends eagerly to this peer now, in bytes. */
BW_API uint32_t bw_eager_max(struct bw_ep *ep, bw_peer_no peer);

#define BW_CODE_MAX 127 /* largest `code` of bw_send(); the eighth bit marks envelopes */

enum bw_send_flags {
	BW_SEND_SYNC = 1,  /* complete only when the receiver has taken the data */
	BW_SEND_EAGER = 2, /* never make it an envelope: -EMSGSIZE if longer than BW_EAGER_LIMIT */
	BW_SEND_ACKED = 4, /* complete only when the peer's endpoint has acknowledged it */
	/* Complete only when the peer's program has been called with it (`message`), and with all
	 * that was sent before; or, as with BW_SEND_SYNC, later. */
	BW_SEND_HANDED = 8,
};

/* Send len bytes. Returns 1: done, the buffer is free, no `sent` call comes; 0: the buffer is in
 * use until `sent(op)`; -EAGAIN: no room now, make progress and try again; else the peer is down or
 * arguments are wrong. Never calls handlers itself for this operation. */
BW_API int bw_send(struct bw_ep *ep, bw_peer_no peer, uint8_t code, uint64_t tag, uint64_t imm,
		   const void *buf, uint64_t len, unsigned flags, void *op);

/* Would bw_send() without flags be done with a message of this length at once, although its
 * receiver has to fetch it, since a copy is kept (BEOWIRE_SEND_COPIES)? Messages sent later may
 * then be received before it is fetched. Holds until bw_send() if bw_ep_lock() is held. */
BW_API bool bw_send_copies(struct bw_ep *ep, bw_peer_no peer, uint64_t len);

/* Fetch a long message into buf; len may be shorter than the message (the rest is dropped), 0
 * discards it. Always releases the sender. `pulled(op)` follows unless op is NULL. Returns 0,
 * -EAGAIN, or an error. */
BW_API int bw_pull(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *buf,
		   uint64_t len, void *op);

/* Fetch a long message before it is known where its data are wanted, so that it need not be waited
 * for then. Unlike bw_pull(), which must follow, this does not release the sender. -EOPNOTSUPP: the
 * way from that peer is not so slow that data should be copied once more for that. Without a buffer
 * it only says which. */
BW_API int bw_pull_early(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *buf,
			 uint64_t len, void *op);

/* Read len bytes at off of the peer's memory `key`, as its `region` handler allows. Completion,
 * flags and errors as bw_pull(); the peer's program is not involved. */
BW_API int bw_read(struct bw_ep *ep, bw_peer_no peer, uint64_t key, uint64_t off, void *buf,
		   uint64_t len, void *op);

/* Give up a pull or read from this peer that has not ended: from now on nothing is written to its
 * buffer. 0 if it will end with pulled(-ECANCELED); -ENOENT if it has ended, or ends with its peer,
 * or cannot be given up: those by the kernel link. */
BW_API int bw_pull_cancel(struct bw_ep *ep, bw_peer_no peer, void *op);

/* Is the memory `key`, which is these bytes, still being read for a peer, as `region` allowed?
 * Memory may go away once `region` forbids it and this is false; make progress until then. */
BW_API bool bw_ep_serving(struct bw_ep *ep, uint64_t key, const void *buf, uint64_t len);

/* End such reads: who asked gets -ECANCELED. 0; -EAGAIN: there is no memory to tell them all, and
 * some go on. Reads by the kernel link go on in any case. */
BW_API int bw_ep_forbid(struct bw_ep *ep, uint64_t key);

/* Try to take back a send that returned 0 and is not pulled yet: 0 if it will end with
 * sent(-ECANCELED), -ENOENT if it is too late. */
BW_API int bw_send_cancel(struct bw_ep *ep, void *op);

/* Tell peers whether unexpected messages fill this endpoint's memory: while on, they send
 * envelopes only. */
BW_API void bw_ep_pressure(struct bw_ep *ep, bool on);

/* Handle what has arrived and what is due. Number of frames and messages handled. Does not wait;
 * only where more threads are runnable than cores are granted and nothing arrived for many calls in
 * a row, it gives its core away for some microseconds (never with BEOWIRE_WAIT=spin, and never
 * while the caller holds bw_ep_lock()). */
BW_API int bw_progress(struct bw_ep *ep);

/* Progress, and wait for more: spin, then sleep, as BEOWIRE_WAIT says. Returns as bw_progress() as
 * soon as something was handled, 0 after timeout_ns (UINT64_MAX: none) or bw_ep_wake(), -EINTR on a
 * signal. It gives bw_ep_lock() away while it sleeps: who waits for what a handler sets holds the
 * lock from its look at that on, else the helper thread may call the handler between look and
 * sleep. */
BW_API int bw_wait(struct bw_ep *ep, uint64_t timeout_ns);

/* A descriptor that polls readable when bw_progress() may have work. Before sleeping on it call
 * bw_ep_arm(): 0 means sleep, for at most *timeout_ns; -EAGAIN means there is work already, or that
 * bw_ep_wake() was called since. One thread at a time may sleep on it: its next bw_ep_arm() ends
 * the wake-up. Owned by ep; negative without descriptors. */
BW_API int bw_ep_fd(struct bw_ep *ep);
BW_API int bw_ep_arm(struct bw_ep *ep, uint64_t *timeout_ns);
/* Is there a thread of the endpoint's own that serves peers while no call does? Any thread, without
 * the lock; not while the endpoint is being closed. */
BW_API bool bw_ep_has_helper(const struct bw_ep *ep);
/* Make bw_wait() and sleepers on bw_ep_fd() return; from any thread, also without the lock. */
BW_API void bw_ep_wake(struct bw_ep *ep);

/* Counters as one JSON object (see docs); malloc'ed, the caller frees it. NULL without memory. */
BW_API char *bw_ep_stats(struct bw_ep *ep);

#ifdef __cplusplus
}
#endif
#endif
