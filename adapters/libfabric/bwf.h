/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The objects of the libfabric provider and how they hold together: a fabric holds domains, a
 * domain holds memory regions, address vectors, queues, counters and endpoints; each libfabric
 * endpoint owns one bw_ep of libbeowire, whose lock guards all of that endpoint's state.
 *
 * Order of locks: a domain's `walk`, endpoint (bw_ep_lock), then any one bwf_lock. No bwf_lock is
 * held while an endpoint is entered, except a port's `busy` lock, which only keeps endpoints from
 * being closed meanwhile.
 */
#ifndef BWF_H
#define BWF_H

#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "beowire.h"
#include "codes.h"
#include "lock.h"
#include "match.h"
#include "secret.h"

#define BWF_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Limits, as fi_getinfo() states them. */
#define BWF_NAME	 "beowire"
#define BWF_ADDR_FORMAT	 (BWF_PROV_SPECIFIC | 0xBE0A) /* struct bw_addr */
#define BWF_PROTOCOL	 (BWF_PROV_SPECIFIC | 0xBE0A)
#define BWF_INJECT_MAX	 16384	      /* bytes of one injected message or write */
#define BWF_MESSAGE_MAX	 (1ULL << 40) /* bytes of one message or transfer */
#define BWF_IOV_MAX	 4	      /* local and remote segments of one operation */
#define BWF_WRITE_INLINE 16384	      /* bytes of a remote write that travel with its request */
#define BWF_ATOMIC_MAX	 4096	      /* bytes of each operand of one atomic operation */
#define BWF_CTX_SIZE	 1024	      /* stated depth of the queues; nothing is limited by it */
#define BWF_OBJECT_MAX	 65536	      /* stated number of objects in a domain */

/* An option of libfabric 1.18 that earlier headers do not name. */
#define BWF_FI_OPT_CUDA_API_PERMITTED 10

/* Values of libfabric 1.x that its 2.x headers do not name, or warn of. */
#define BWF_PROV_SPECIFIC (1u << 31)
#define BWF_MR_UNSPEC	  0
#define BWF_MR_BASIC	  (1 << 0)
#define BWF_MR_SCALABLE	  (1 << 1)

/* Capabilities of libfabric 2.x that its 1.x headers do not name. */
#define BWF_FI_TAGGED_DIRECTED_RECV (1ULL << 45)
#define BWF_FI_TAGGED_MULTI_RECV    (1ULL << 46)
#define BWF_FI_EXACT_DIRECTED_RECV  (1ULL << 48)

struct bwf_cntr;
struct bwf_ep;

struct bwf_fabric {
	struct fid_fabric fid;
	atomic_int refs;
};

/* Registered memory, found by key. */
struct bwf_mr {
	struct fid_mr fid;
	struct bwf_domain *dom;
	struct bwf_mr *next; /* in its bucket */
	char *base;
	size_t len;
	uint64_t access;
	uint64_t start;	       /* address or offset by which peers name its first byte */
	struct bwf_cntr *cntr; /* counts remote writes into it; or NULL */
};

#define BWF_MR_BUCKETS 1024

struct bwf_domain {
	struct fid_domain fid;
	struct bwf_fabric *fabric;
	atomic_int refs;
	pid_t pid; /* whose it is; a child of fork() has nothing of its endpoints to close */
	struct bwf_eq *eq;	  /* reports asynchronous operations; or NULL */
	char interface[IFNAMSIZ]; /* by which endpoints are opened; empty: by the settings */
	bool virt_addr;		  /* peers name memory by its address here, not by offset */
	bool prov_key;		  /* keys are chosen here, not by the application */
	struct bwf_lock mr_lock;
	struct bw_secret mr_secret; /* likewise: what keys are made of */
	struct bwf_mr *mr[BWF_MR_BUCKETS];
	struct bwf_lock ep_lock;
	struct bwf_ep **eps; /* open endpoints */
	size_t eps_count;
	/* held while endpoints of a list are entered one after the other: none leaves meanwhile */
	pthread_mutex_t walk;
	struct bwf_lock atomic_lock; /* atomic operations of all endpoints exclude each other */
};

struct bwf_av_entry {
	struct bw_addr addr;
	bool valid;
};

struct bwf_av {
	struct fid_av fid;
	struct bwf_domain *dom;
	struct bwf_eq *eq; /* with FI_EVENT: reports insertions */
	enum fi_av_type type;
	struct bwf_lock lock;
	struct bwf_av_entry *entry; /* indexed by fi_addr_t */
	size_t count, room;
	_Atomic uint64_t inserted; /* addresses, ever */
	struct bwf_ep **eps;	   /* bound endpoints */
	size_t eps_count;
	atomic_int refs;
};

/* The endpoints behind a queue or counter, and how to wait for them. */
struct bwf_port {
	struct bwf_lock busy; /* held while endpoints are driven, changed or slept on */
	atomic_int entering;  /* threads that want it and do not give up */
	struct bwf_ep **eps;
	unsigned count;
	enum fi_wait_obj wait_obj;
	struct bwf_lock fd_lock; /* guards the descriptors' creation and `waiting` */
	struct bw_ep *waiting;	 /* a thread is in bw_wait() on it; or NULL */
	int event_fd;		 /* readable: woken; -1 until needed */
	int epoll_fd;		 /* event_fd and the endpoints' descriptors; -1 until needed */
	_Atomic uint32_t wakes;	 /* times that sleepers were told of something */
	atomic_int sleepers;	 /* threads asleep; guarded by the owner's lock */
	atomic_bool armed;	 /* a program sleeps on epoll_fd: the next entry must wake it */
	atomic_bool signalled;	 /* fi_cq_signal(): the next sleeper returns at once */
};

/* One completion, packed into the queue's format when it is read. */
struct bwf_cqe {
	void *context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	fi_addr_t src;
	int err; /* positive FI_E*; 0: success */
	size_t olen;
};

struct bwf_cq {
	struct fid_cq fid;
	struct bwf_domain *dom;
	struct bwf_port port;
	atomic_int refs;
	size_t entry_size;
	enum fi_cq_format format;
	struct bwf_lock lock;
	struct bwf_cqe *ring;
	size_t room;		     /* a power of two */
	uint64_t most;		     /* entries with which it is full */
	_Atomic uint64_t head, tail; /* entries read and written since the start */
};

struct bwf_cntr {
	struct fid_cntr fid;
	struct bwf_domain *dom;
	struct bwf_port port;
	atomic_int refs;
	struct bwf_lock lock; /* orders a change against a sleeper's last look */
	_Atomic uint64_t count, errors;
	_Atomic uint64_t seen;	      /* count at the application's last look */
	_Atomic uint64_t seen_errors; /* errors likewise */
};

/* What libbeowire's `sent` and `pulled` get back as op. */
struct bwf_done {
	void (*call)(struct bwf_ep *ep, struct bwf_done *done, int status, uint64_t len);
};

enum bwf_rx_state {
	BWF_RX_FREE,
	BWF_RX_POSTED,
	BWF_RX_PULLING,
};

/* A receive: posted, then perhaps fetching the data of a long message. */
struct bwf_rx {
	struct bwf_done done;
	struct bwf_posted posted;
	struct bwf_rx *next; /* list of free ones, or its peer's row */
	enum bwf_rx_state state;
	bool tagged;
	bool report; /* a success makes a completion */
	uint8_t n;   /* used entries of iov */
	void *context;
	struct iovec iov[BWF_IOV_MAX];
	size_t len; /* bytes of iov */
	/* its peer's row */
	bool in_row; /* reported in the row's order */
	bool holds;  /* those behind it in the row come after it */
	bool over;   /* ended, but others of the row come first */
	/* multi-receive buffers */
	struct bwf_rx *parent; /* the buffer that this message is placed in; or NULL */
	size_t used;	       /* bytes of the buffer taken so far */
	uint32_t pulls;	       /* messages still being fetched into the buffer */
	bool multi, retired;
	/* the message */
	uint32_t src;
	uint64_t msg_len, tag, data;
	uint64_t flags; /* of the completion */
	int status;	/* likewise: 0 or a negative errno */
	void *bounce;	/* data on its way to several segments; or NULL */
};

/* A message that no receive fits yet. */
struct bwf_unexpected {
	struct bwf_arrived arrived;
	uint64_t imm, len;
	struct bw_rndv rndv;
	void *claimed_by; /* context of the FI_CLAIM that owns it, once it is out of the queue */
	struct bwf_unexpected *older, *newer; /* of its peer */
	uint64_t since; /* ns of bwf_now_ns(), of a peer in no address vector; when it came */
	struct bwf_unexpected *next; /* list of claimed ones, or of free ones */
	uint32_t peer;
	uint8_t code;
	uint8_t size_class;
	bool envelope;
	bool claimed;
	char data[];
};

#define BWF_UNEXPECTED_CLASSES 9

struct bwf_unexpected_pool {
	struct bwf_unexpected *spare[BWF_UNEXPECTED_CLASSES];
	void *slabs;   /* memory blocks, to be freed at the end */
	size_t bytes;  /* held by unexpected messages now */
	size_t early;  /* bytes of those that are fetched early */
	size_t limit;  /* bytes above which peers send envelopes only */
	size_t each;   /* messages that one peer may have waiting */
	bool pressure; /* peers have been told */
	/* stranger.c: of peers that are in no address vector */
	size_t strangers;     /* bytes, of `bytes`, that hold their messages */
	size_t strangers_max; /* bytes that these may be */
	bool left;	      /* some may be of such that are gone */
};

enum bwf_op_state {
	BWF_OP_FREE,
	BWF_OP_SENDING,	 /* libbeowire calls back for every part */
	BWF_OP_AWAITING, /* also waits for the target's answer */
};

/* An operation of the initiator that is not finished at once: long send, remote read, write,
 * atomic. */
struct bwf_op {
	struct bwf_done done;
	struct bwf_op *next; /* list of free ones */
	enum bwf_op_state state;
	uint32_t index, generation; /* together the token that the target's answer names */
	uint32_t peer;
	uint32_t parts; /* events still to come before it is finished */
	uint8_t answer; /* AWAITING: code of the answer that is still to come; or 0 */
	bool is_long;	/* a write counted in its peer's `writes_out` */
	int status;
	bool report; /* a success makes a completion */
	void *context;
	uint64_t flags; /* of the completion */
	struct bwf_cntr *cntr;
	void *bounce;			  /* copied data, freed at the end; or NULL */
	struct iovec result[BWF_IOV_MAX]; /* where a fetched result goes */
	uint8_t results;
};

#define BWF_OP_CHUNK 256 /* operations allocated at a time */

struct bwf_op_pool {
	struct bwf_op **chunk;
	uint32_t chunks;
	uint32_t under_way; /* each has at most one completion */
	struct bwf_op *spare;
};

/* A call of libbeowire that found no room and is repeated. */
struct bwf_todo {
	struct bwf_todo *next;
	enum { BWF_TODO_PULL, BWF_TODO_READ, BWF_TODO_SEND, BWF_TODO_REFUSE } kind;
	uint32_t peer;
	uint8_t code;	     /* SEND */
	uint64_t tag, imm;   /* SEND; READ: key and offset */
	struct bw_rndv rndv; /* PULL */
	void *buf;
	uint64_t len;
	unsigned flags;	       /* SEND */
	bool owned;	       /* SEND: buf is freed after it */
	bool charged;	       /* the peer asked for it, and accounts for it */
	const char *why;       /* REFUSE */
	struct bwf_done *done; /* or NULL */
};

/* A remote write whose data follows its request. */
struct bwf_incoming {
	struct bwf_done done;
	struct bwf_incoming *next;	     /* in bwf_peer.writes */
	struct bwf_incoming *before, *after; /* in bwf_ep.incoming or bwf_ep.placing */
	bool placing;			     /* in the latter */
	uint32_t peer;
	int status;
	uint64_t token, data, len;
	uint32_t flags;
	uint32_t n; /* used entries of the following */
	struct bwf_segment seg[BWF_IOV_MAX];
	struct iovec to[BWF_IOV_MAX];	/* where the segments lie, while data are placed */
	struct bwf_mr *mr[BWF_IOV_MAX]; /* likewise */
	void *bounce;
};

/* In the order in which they came. */
struct bwf_incoming_list {
	struct bwf_incoming *first, *last;
};

/* What an endpoint keeps for each bw_peer_no. */
struct bwf_peer {
	fi_addr_t addr;		     /* FI_ADDR_NOTAVAIL until it is looked up */
	uint32_t busy;		     /* operations of ours that are not finished */
	uint32_t writes_out;	     /* long writes of ours among them, BWF_WRITES_MAX at most */
	uint32_t writes_in;	     /* its long writes that are not answered, likewise */
	uint32_t asked;		     /* those of them whose data are still to come */
	struct bwf_incoming *writes; /* all of them, the newest first */
	/* ours that wait for its answers, and bytes of those: codes.h has their limits */
	uint32_t requests_out;
	uint64_t answers_out;
	uint32_t calls; /* in bwf_ep.todo, to it */
	uint32_t early; /* in bwf_ep.early, of it */
	/* calls kept for what it asked, and bytes of answers among them */
	uint32_t kept;
	uint64_t kept_bytes;
	/* its messages without a receive, and bytes of those that pressure should have held back */
	size_t unexpected;
	uint64_t unexpected_bytes;
	size_t unread; /* bytes of memory that all its messages without a receive take */
	struct bwf_unexpected *oldest, *newest; /* of them, */
	uint32_t claimed;			/* and how many a FI_CLAIM owns */
	uint32_t guesses; /* keys that it named and nobody has, BWF_GUESSES_MAX at most */
	bool trusted;	  /* it has named a key that somebody has */
	bool refused;	  /* given up by us: nothing of it is taken any more */
	int down;	  /* why it is gone: negative errno, 0 while it lives */
	bool known;	  /* traffic happened or an address was resolved */
	uint32_t blocked; /* number of the todo round in which it had no room */
	/* receives of its messages in the order of sending, from the first that others wait for */
	struct bwf_rx *row_head, *row_tail;
};

/* The face of an endpoint that the application holds: the endpoint itself, or an alias of it. */
struct bwf_face {
	struct fid_ep fid;
	struct bwf_ep *ep;
	uint64_t tx_flags, rx_flags; /* default flags of operations */
};

enum bwf_cntr_slot {
	BWF_CNTR_SEND,
	BWF_CNTR_RECV,
	BWF_CNTR_READ,
	BWF_CNTR_WRITE,
	BWF_CNTR_REMOTE_READ,
	BWF_CNTR_REMOTE_WRITE,
	BWF_CNTR_SLOTS,
};

struct bwf_ep {
	struct bwf_face face;
	struct bwf_domain *dom;
	struct bwf_av *av;
	uint64_t av_seen; /* av->inserted when all sources were last looked up */
	struct bwf_eq *eq;
	struct bw_ep *bw;
	struct bwf_names *names; /* answers to the endpoint's name; NULL if it has none */
	struct bwf_cq *tx_cq, *rx_cq;
	bool tx_selective, rx_selective;
	bool source;   /* completions tell the sender's fi_addr_t */
	bool directed; /* receives may name their source */
	bool enabled;
	atomic_int aliases;
	uint64_t close_ns; /* that fi_close() waits at most for what is under way */
	struct bwf_cntr *cntr[BWF_CNTR_SLOTS];
	size_t min_multi_recv;

	bw_peer_no *peer_of; /* by fi_addr_t; BW_PEER_NONE until resolved */
	size_t peer_of_count;
	struct bwf_peer *peer; /* by bw_peer_no */
	size_t peer_count;
	int crashed;   /* why the last peer that did not say goodbye is gone; 0: none did so */
	bool bereaved; /* one of these was looked up after its end: is anybody left? */
	atomic_bool nameless; /* one is gone that is in no vector: it may be inserted yet */

	struct bwf_match msg, tagged;
	struct bwf_rx *rx_spare;
	void *rx_slabs;
	struct bwf_unexpected_pool unexpected;
	struct bwf_unexpected *claimed;
	uint32_t parts;	  /* messages that multi-receive buffers are getting: completions to come */
	atomic_bool held; /* messages wait although a multi-receive buffer fits them */
	atomic_bool unsought; /* an address may be new, or the last peer gone: bwf_peer_seek() */
	struct bwf_early *early, **early_end; /* fetched before their receive is posted */
	/* stranger.c: keys that strangers named and nobody has, BWF_GUESSES_STRANGERS at most, less
	 * one for each second; and since when (ns of bwf_now_ns()) none was taken off */
	uint32_t guesses;
	uint64_t guesses_ns;
	/* stranger.c: what is held for all strangers that are not given up: sums of their
	 * bwf_peer.asked ... */
	struct {
		uint32_t asked, kept;
		uint64_t kept_bytes;
	} strangers;

	struct bwf_op_pool ops;
	struct bwf_incoming_list incoming; /* their data are still to come */
	struct bwf_incoming_list placing;  /* their data are being fetched */
	uint64_t bounced; /* bytes that those of `placing` to several segments are fetched into */
	struct bwf_todo *todo, **todo_end;
	_Atomic size_t todo_count; /* calls kept, for a look without the lock */
	uint32_t todo_round;
	bool todo_busy; /* bwf_todo_retry() is at work */
};

#define BWF_FACE(fid_) BWF_OF(fid_, struct bwf_face, fid)

static inline struct bwf_ep *bwf_ep_of(struct fid_ep *fid)
{
	return BWF_OF(fid, struct bwf_face, fid)->ep;
}

/* Bytes of a list of segments. */
static inline size_t bwf_iov_len(const struct iovec *iov, size_t n)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++)
		len += iov[i].iov_len;
	return len;
}

#include "calls.h"

#endif
