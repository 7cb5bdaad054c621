/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The interface between a protocol and its host [A1 A2]: a protocol is a pure state machine behind
 * struct bw_protocol, a host (simulator, user space, kernel) moves frames, bytes and time for it.
 * Nothing here reads a clock, allocates, locks or touches payload; a whole run repeats from its
 * inputs.
 *
 * How a host drives a protocol, under one lock per instance:
 *
 *	after a frame arrives	rx(), then next_event() until it returns false
 *	after submit()		next_frame() until false (send what comes), next_event() until false
 *	at next_deadline()	next_frame() until false, next_event() until false
 *
 * A host that may not do much at a time says so (`piece`). Then no call does more than a piece of
 * what peers or memory make long, and the rest is left to the next one: next_frame() and
 * next_event() may be false though there is more, and next_deadline() is now until all is done.
 *
 * Time is nanoseconds of one monotonic clock, never going back between calls. Buffers are 64-bit
 * cookies that only the host understands; 0 is never a valid cookie.
 */
#ifndef BW_PROTOCOL_H
#define BW_PROTOCOL_H

#include "wire.h"

/* Where a frame comes from or goes to on one of the host's links: opaque to protocols, compared
 * bytewise. `link` is the host's number of the link, lower numbers are preferred. */
struct bw_link_addr {
	uint8_t link;
	uint8_t len; /* used bytes of `bytes`; the rest must be 0 */
	uint8_t bytes[22];
};

struct bw_event;

/* Versions of the wire that this engine speaks. (Tests make later ones that speak others.) */
#ifndef BW_VERSION_MIN
#define BW_VERSION_MIN BW_VERSION
#endif
#ifndef BW_VERSION_MAX
#define BW_VERSION_MAX BW_VERSION
#endif

/* A received frame, valid during rx() and until the next rx() (events may refer to it). */
struct bw_rx_frame {
	const void *head;  /* its first bytes, contiguous, 8-aligned */
	uint32_t head_len; /* at least min(len, BW_HEAD_MAX); the whole frame unless the host
			    * scatters */
	uint32_t len;	   /* bytes of the whole frame from hdr on, link header excluded */
	struct bw_link_addr from;
	bool mark;    /* congestion seen: IP ECN CE, or the receive ring more than half full */
	void *cookie; /* the host's own */
};

#define BW_SEAL_KEY 32 /* bytes */

/* By what a frame is sealed, from BW_DATA_HEAD on: AEAD_CHACHA20_POLY1305 (RFC 8439), of which the
 * BW_SEAL_TAG bytes at its end are the tag (wire-protocol.md, 14). See sealing.h. */
struct bw_seal_by {
	const uint8_t *key; /* BW_SEAL_KEY bytes; NULL: it is not sealed */
	uint64_t pn;	    /* the packet's whole number; its path is in the header */
};

/* A frame to be sent: `head` bytes and, woven in, payload segments. Valid until the next call. */
#define BW_TX_SEGMENTS 14
struct bw_tx_segment {
	uint32_t head_end; /* this payload follows the head bytes up to here (offset in head) */
	uint32_t len;	   /* payload bytes */
	uint64_t buf; /* host cookie of the buffer, as submitted; 0: len zero bytes (padding) */
	uint64_t off; /* offset in that buffer */
};
struct bw_tx_frame {
	struct bw_link_addr to;
	uint32_t head_len;
	uint32_t segments; /* used entries of segment */
	uint32_t len;	   /* head_len plus all payloads, and the tag if it is to be sealed */
	struct bw_seal_by seal;
	struct bw_tx_segment segment[BW_TX_SEGMENTS];
	uint64_t head[BW_HEAD_MAX / 8]; /* fixed parts one after another, and padding zeroes */
};

/* What a protocol asks of its host. All are called synchronously from the protocol's functions. */
struct bw_host_ops {
	/* CRC32C (Castagnoli, RFC 3720 B.4): continue `crc` (0 to begin) over n bytes; any
	 * implementation with bw_crc32c()'s result. */
	uint32_t (*crc32c)(uint32_t crc, const void *p, size_t n);
	/* CRC32C of n bytes of a submitted buffer (for a frame about to be sent). */
	uint32_t (*payload_crc)(void *host, uint64_t buf, uint64_t off, uint32_t n);
	/* Copy n payload bytes at frame offset `at` into buffer `buf` at `off`; buf 0: copy
	 * nothing, only check, and count. With `check`, return -EBADMSG unless their CRC32C is
	 * `crc`. 0 on success. */
	int (*place)(void *host, uint64_t buf, uint64_t off, const struct bw_rx_frame *f,
		     uint32_t at, uint32_t n, bool check, uint32_t crc);
	/* A buffer for an incoming message of n bytes from this peer, 0 if there is none now.
	 * `next`: no message of its flow before it is missing, so that it waits for none. Ownership
	 * goes back to the host with BW_EV_MESSAGE, or by buf_put(). */
	uint64_t (*buf_get)(void *host, uint32_t peer, uint64_t n, bool next);
	void (*buf_put)(void *host, uint64_t buf);
	/* The first bytes of a message of several frames have come, and it is the next of which is
	 * to be told: a buffer of the host's for all of it, where its receiver wants it, or 0:
	 * buf_get() is asked. BW_EV_MESSAGE comes when it is whole, buf_put() if that will not be,
	 * before PEER_DOWN. The protocol must not be called. May be NULL. */
	uint64_t (*buf_for)(void *host, const struct bw_event *ev);
	/* May `peer` pull n (perhaps 0) bytes at `off` of the host's own memory key? 0 and the
	 * buffer cookie and offset that data is read from, or a negative errno; -EAGAIN: not known
	 * yet, the request is to come again. */
	int (*region_find)(void *host, uint32_t peer, uint64_t key, uint64_t off, uint64_t n,
			   uint64_t *buf, uint64_t *buf_off);
	/* What region_find() allowed is over: nothing more is read from this buffer for it. Once
	 * for each time that it allowed anything, until close(). The protocol must not be called.
	 * May be NULL. */
	void (*served)(void *host, uint64_t buf);
	/* 64 bits that nobody can foresee, whatever else of them he has seen: keys, tokens and
	 * nonces are made of these. */
	uint64_t (*random)(void *host);
	/* SipHash-2-4 of n bytes: without the key nobody can tell what it gives. */
	uint64_t (*siphash)(const uint8_t key[16], const void *p, size_t n);
	/* HMAC with SHA-256 (RFC 6234). May be NULL where no key is configured. */
	void (*hmac_sha256)(uint8_t out[32], const uint8_t *key, size_t keylen, const void *data,
			    size_t len);
	/* A quiet send was acknowledged: its buffer is free. The protocol must not be called. May
	 * be NULL if no send is quiet. */
	void (*sent)(void *host, uint64_t cookie);
	/* There is no room for callers: does anybody need this peer, which the host has not named
	 * by CONNECT, all of whose messages it has taken, and of which nothing has come for a
	 * while? If not, PEER_DOWN(BW_DOWN_EVICTED) may follow. The protocol must not be called.
	 * May be NULL: all are needed of whom something has come. */
	bool (*needed)(void *host, uint32_t peer);
	/* Takes a message at once, as BW_EV_MESSAGE would tell it: the last thing that rx() does,
	 * and only if no event waited before. What the same frame ended is told by events
	 * afterwards. May be NULL: events tell all messages. */
	void (*message)(void *host, const struct bw_event *ev);
	/* Open a received frame where it lies, up to its tag, which begins at frame offset `end`.
	 * 0, or -EBADMSG: it is not what was sealed, and as it was. May be NULL where
	 * BW_FEATURE_ENCRYPT is not configured, for which frames have to be sealed as well. */
	int (*unseal)(void *host, const struct bw_rx_frame *f, uint32_t end,
		      const struct bw_seal_by *by);
	/* Timers ran so late while this peer was waited for that the host must have stood still, or
	 * its clock jumped: that time does not count against peers. Told once for each such time,
	 * of one of the peers that were waited for. The protocol must not be called. May be
	 * NULL. */
	void (*excused)(void *host, uint32_t peer, uint64_t late_ns);
};

#define BW_CLUSTER_KEY 32 /* bytes */

struct bw_config {
	uint64_t node;	      /* identity of this node; not 0 */
	uint32_t incarnation; /* fresh random number; not 0 */
	uint32_t cluster;
	uint16_t engine; /* number of this engine on its node */
	uint16_t reserved0;
	uint32_t rx_budget;    /* bytes that all peers together may have under way to us */
	uint32_t charge_min;   /* bytes of budget that one frame costs at least (ring slot); may be
			      * 0 */
	uint64_t features;     /* BW_FEATURE_* to offer; ENCRYPT only with a key */
	uint64_t dead_ns;      /* a peer that answers nothing for so long while we wait for it is
			      * given up (60 s) */
	uint64_t ack_delay_ns; /* longest delay of an acknowledgement; 0: default */
	uint64_t ack_soon_ns;  /* the same once BW_ACK_PACKETS wait for it: for so long a message of
				* the program's, which takes it along, is worth waiting for; 0: not
				* at all */
	uint32_t piece;	       /* peers, or things of one, that a call looks at, at most; 0: all */
	uint32_t link_mtu[8];  /* per host link number: largest frame (hdr included), in bytes */
	uint8_t link_group[8]; /* per host link number: paths by links of one group carry pulled
				* data together, if both sides offer BW_FEATURE_STRIPE; 0: none */
	uint8_t link_line[8];  /* per host link number: of a peer's paths in a group by links of one
				* line one alone carries what is long at a time, the one that
				* carries most; 0: a line of its own */
	bool link_rows[8]; /* per host link number: it sends several frames at once, so it is the
				* one of its line to begin with */
	char name[BW_NAME_MAX];
	bool keyed;		     /* who does not have the key can take no part */
	uint8_t key[BW_CLUSTER_KEY]; /* of the cluster, if so */
};

enum bw_op_type {
	BW_OP_CONNECT = 1, /* make (or find) the state for a peer; sets .peer */
	BW_OP_DISCONNECT,  /* forget a peer: its operations end with -ECANCELED, and those it has
			    * under way to us fail, but for what .on acknowledges */
	BW_OP_SEND,	   /* eager message */
	BW_OP_PULL,	   /* fetch a region of a peer into a buffer */
	BW_OP_EXPOSE,	   /* let peers pull a buffer once; sets .expose.key */
	BW_OP_RETRACT,	   /* take an exposed region back; REGION_DONE(-ECANCELED) follows. After
			    * -EAGAIN it is still exposed, though pulls of it may have ended */
	BW_OP_FORBID,	   /* end what region_find() has allowed; who asked is told -ECANCELED.
			    * After -EAGAIN or -EINPROGRESS some of it goes on */
	BW_OP_CANCEL_PULL, /* end a pull; PULLED(-ECANCELED) follows */
	BW_OP_PRESSURE,	   /* tell peers whether unexpected messages fill this host */
	BW_OP_WATCH,	   /* keep probing this idle peer, so that its death is noticed */
};

struct bw_op {
	enum bw_op_type type;
	uint32_t peer;	 /* handle; CONNECT: result */
	uint64_t cookie; /* the host's own; comes back in the completion event */
	uint32_t left;	 /* FORBID of all: 0 at first; between calls that end `one` the engine's */
	bool one;	 /* RETRACT, FORBID of all: end one pull at most; -EINPROGRESS: there may be
			  * more, the same operation is to be submitted again. Of a region that is
			  * taken back so nothing more can be asked for once a pull was ended */
	union {
		struct {
			uint64_t node; /* 0: unknown */
			uint16_t engine;
			uint16_t paths; /* used entries of path, at least 1 */
			uint32_t inc;	/* 0: any */
			struct bw_link_addr path[BW_PATHS_MAX];
		} connect;
		struct {
			uint64_t buf; /* must stay unchanged until SENT; 0 only when len is 0 */
			uint64_t buf_off;
			uint64_t tag;
			uint64_t imm;
			uint32_t len; /* at most BW_EAGER_LIMIT; bw_reliable_takes() */
			uint16_t dst_ep;
			uint16_t src_ep;
			uint8_t code;
			bool urgent; /* somebody waits for SENT: ask for an acknowledgement at
				      * once */
			bool quiet;  /* ops->sent() will do for SENT, unless it fails */
		} send;
		struct {
			uint64_t key;
			uint64_t off; /* in the region */
			uint64_t len;
			uint64_t buf; /* destination, written until PULLED */
			uint64_t buf_off;
			uint32_t flags; /* BW_PULL_*, BW_OP_QUIET */
			uint64_t id;	/* result: names the pull for CANCEL_PULL */
		} pull;
		struct {
			uint64_t buf; /* must stay unchanged until REGION_DONE */
			uint64_t buf_off;
			uint64_t len;
			uint64_t key; /* result; never 0 */
			bool untold;  /* RETRACT: nobody knows the key: no REGION_DONE follows */
		} expose;	      /* .peer may pull it; also RETRACT (key) */
		struct {
			uint64_t key; /* what was asked for by this one, by any peer; */
			bool all;     /* or by any key, by .peer */
		} forbid;
		uint64_t pull_id; /* CANCEL_PULL */
		bool on;	  /* PRESSURE, WATCH; DISCONNECT: the host has taken all that
				       * came, which is acknowledged first; without it the peer
				       * must not believe that it was taken */
	};
};

/* Of a PULL of no bytes with BW_PULL_FINAL, which only gives a region up: no PULLED follows, and
 * the owner does not answer. */
#define BW_OP_QUIET 0x100

enum bw_event_type {
	BW_EV_MESSAGE = 1, /* a message arrived, in its flow's order */
	BW_EV_SENT,	   /* a send was acknowledged (status 0) or failed; its buffer is free */
	BW_EV_PULLED,	   /* a pull ended; .len bytes are in place when status is 0 */
	BW_EV_REGION_DONE, /* an exposed region was released by its peer, or failed; buffer is
			    * free */
	/* first contact made. Once more for a handle: somebody else had called in the name of the
	 * peer that the host has named, and what the host had given for it before has failed */
	BW_EV_PEER_UP,
	BW_EV_PEER_DOWN, /* peer lost; all its operations fail with the same status; handle invalid
			  * after this event */
	BW_EV_PATH,	 /* a path became usable, was lost, or changed its frame size */
};

/* Reasons in .status of PEER_DOWN (negative errno, Linux numbers). */
#define BW_DOWN_TIMEOUT	 (-ETIMEDOUT)	    /* no answer for dead_ns */
#define BW_DOWN_REFUSED	 (-ECONNREFUSED)    /* no such incarnation or engine there (any more) */
#define BW_DOWN_RESET	 (-ECONNRESET)	    /* it lives, but gave us up */
#define BW_DOWN_VERSION	 (-EPROTONOSUPPORT) /* no version in common */
#define BW_DOWN_CLOSED	 (-ESHUTDOWN)	    /* it said BYE */
#define BW_DOWN_CANCELED (-ECANCELED)	    /* DISCONNECT */
#define BW_DOWN_KEY	 (-EKEYREJECTED)    /* one of the two has another cluster key, or none */
#define BW_DOWN_ENCRYPT	 (-EPROTOTYPE)	    /* one of the two encrypts, and the other does not */
#define BW_DOWN_EVICTED	 (-ENOBUFS)	    /* nobody needed it, and there was no room for others */

struct bw_event {
	enum bw_event_type type;
	int32_t status; /* 0 or negative errno */
	uint32_t peer;
	uint64_t cookie; /* of the operation that completes */
	uint64_t len;	 /* MESSAGE: bytes; PULLED: bytes in place */
	/* MESSAGE */
	uint64_t tag;
	uint64_t imm;
	uint64_t buf; /* the buffer from buf_get(), now the host's; 0: the payload is in the frame
		       * of the rx() just called (or empty), at frame_off */
	uint32_t frame_off;
	uint16_t dst_ep;
	uint16_t src_ep;
	uint8_t code;
	/* PEER_UP, PEER_DOWN, PATH */
	uint8_t path;	     /* PATH: which one */
	bool usable;	     /* PATH */
	uint8_t version_min; /* PEER_DOWN with BW_DOWN_VERSION: what the peer speaks */
	uint8_t version_max;
	uint32_t mtu;		    /* PATH: frame size in use */
	uint64_t node;		    /* PEER_UP: the peer's node identity */
	uint32_t inc;		    /* PEER_UP: its incarnation */
	uint16_t engine;	    /* PEER_UP, PEER_DOWN: its number */
	struct bw_link_addr from;   /* PEER_UP, PATH */
	char name[BW_NAME_MAX + 1]; /* PEER_UP, PEER_DOWN: its host name, "" if unknown */
};

struct bw_protocol {
	const char *name;
	uint32_t version;
	/* Bytes of memory for one instance under this configuration. */
	size_t (*size)(const struct bw_config *cfg);
	/* Start an instance in `mem` (8-aligned, size() bytes, owned by the host, freed after
	 * close). ops must outlive it. 0 or -EINVAL. */
	int (*open)(void *mem, const struct bw_config *cfg, const struct bw_host_ops *ops,
		    void *host, uint64_t now);
	/* End at once: buffers from buf_get() are put back, other cookies are forgotten, and
	 * farewell frames (BYE) are left for next_frame(). Afterwards only next_frame(), unsent()
	 * and next_deadline() may be called: while it is later than now, and not BW_NEVER,
	 * farewells are said again then, all within a millisecond, by a host that has the time. */
	void (*close)(void *p, uint64_t now);
	/* Hand in memory to grow by (BW_GROW_BYTES, 64-aligned, kept until after close). NULL: the
	 * host was asked, and gives none now; until it does, callers need the places of others. */
	void (*grow)(void *p, void *mem);
	/* 0, or: -EAGAIN a pool is empty (grow() and try again), -ENOTCONN the handle is stale,
	 * -EINVAL, -EMSGSIZE, -ENOENT (RETRACT, CANCEL_PULL: already ended). */
	int (*submit)(void *p, struct bw_op *op, uint64_t now);
	/* 0 if the frame was used, else the negative of enum bw_drop, counted as such. */
	int (*rx)(void *p, const struct bw_rx_frame *f, uint64_t now);
	/* NULL, or: rx() of f[0], whose result it returns, and of those behind it, n in all, that
	 * carry on where it ends: pieces of one message or pull, each checked, and accounted
	 * together. *taken, at least 1: so many, of which events refer to f[0] alone. The others
	 * are for the next call. */
	int (*rx_row)(void *p, const struct bw_rx_frame *f, uint32_t n, uint32_t *taken,
		      uint64_t now);
	/* True and *f filled while there is a frame to send now. Runs timers that are due. */
	bool (*next_frame)(void *p, struct bw_tx_frame *f, uint64_t now);
	/* NULL, or: what next_frame() would do at this same time, where *f is as the call before
	 * left it, and the frame now due is of the same length at most and goes the same way: *f
	 * is changed where the two differ. False, and nothing done: ask next_frame(). */
	bool (*next_alike)(void *p, struct bw_tx_frame *f);
	bool (*next_event)(void *p, struct bw_event *e);
	/* When next_frame() is to be called even if nothing else happens; BW_NEVER if not at
	 * all; now (or before) while a frame or an event waits. */
	uint64_t (*next_deadline)(void *p);
	/* True when a pool ran low: grow() should be called. */
	bool (*hungry)(void *p);
	/* The last frame from next_frame() could not be sent (link queue full): forget that it
	 * left. It counts as lost at once, without a congestion response. */
	void (*unsent)(void *p, uint64_t now);
	/* True while something submitted is not yet acknowledged or fetched (what close would
	 * lose). */
	bool (*busy)(void *p);
	/* NULL, or: true while a conversation is about to end, as the peer said, or somebody for
	 * it: the peer's last frames may still be unread. A host with several links, or one that
	 * others may keep from the processor, reads all that has arrived before timers run. */
	bool (*parting)(void *p);
	/* Counters since open; valid as long as the instance. */
	const struct bw_counters *(*counters)(void *p);
};

#define BW_GROW_BYTES 65536

/* Why a received frame (or a part of it) was dropped; every reason has its counter. */
enum bw_drop {
	BW_DROP_NONE = 0,
	BW_DROP_SHORT,	     /* shorter than its type needs */
	BW_DROP_FOREIGN,     /* not our magic */
	BW_DROP_VERSION,     /* our magic, another version */
	BW_DROP_CLUSTER,     /* another cluster's */
	BW_DROP_ENGINE,	     /* for another engine */
	BW_DROP_HEADER,	     /* header checksum wrong */
	BW_DROP_TYPE,	     /* unknown type */
	BW_DROP_INCARNATION, /* HELLO for a dead incarnation of ours (refused) */
	BW_DROP_HANDLE,	     /* unknown handle, or not the token that goes with it (refused) */
	BW_DROP_EARLY,	     /* before first contact was complete */
	BW_DROP_DUPLICATE,   /* packet number seen before */
	BW_DROP_RANGES,	     /* too many gaps to remember: not acknowledged, comes again */
	BW_DROP_MALFORMED,   /* fields contradict each other */
	BW_DROP_DATA,	     /* payload checksum wrong */
	BW_DROP_NO_BUFFER,   /* the host had no buffer or the pool was empty; comes again */
	BW_DROP_WINDOW,	     /* beyond the reordering window of its flow */
	BW_DROP_STALE,	     /* data of a pull that has ended */
	BW_DROP_ECHO,	     /* a refusal or an answer that echoes nothing of ours */
	BW_DROP_CREDIT,	     /* more than its sender was granted: not acknowledged */
	BW_DROP_ADDRESS,     /* not from where the peer is on that path */
	BW_DROP_KEY,	     /* a HELLO or refusal that was not made with the cluster key */
	BW_DROP_SEAL,	     /* sealed, but changed; or a HELLO of who encrypts otherwise than we */
	BW_DROP_REASONS,
};

struct bw_counters {
	uint64_t drop[BW_DROP_REASONS];
	uint64_t tx_frames, rx_frames;	 /* all types */
	uint64_t tx_payload, rx_payload; /* first transmissions; bytes placed once */
	uint64_t tx_messages, rx_messages;
	uint64_t duplex_payload, duplex_messages; /* received while as much was under way */
	uint64_t tx_pulls, rx_pulls;		  /* pulls of data served; fetched */
	uint64_t acks_tx, acks_rx;		  /* ACK frames */
	uint64_t retransmits;			  /* parts sent again */
	uint64_t losses;   /* packets concluded lost from evidence, but for MTU probes */
	uint64_t probes;   /* tail probes */
	uint64_t spurious; /* packets concluded lost that had arrived */
	uint64_t marks_rx; /* frames that arrived with a congestion mark */
	uint64_t backoffs; /* congestion responses */
	uint64_t refusals_tx, refusals_rx;
	uint64_t challenges_tx, challenges_rx;
	uint64_t evicted;	/* peers given up with BW_DOWN_EVICTED */
	uint64_t credit_stalls; /* times a sender had data, but no credit */
	uint64_t peers;		/* peers known now */
};

/* Short lower-case name of a drop reason ("foreign", "cluster" ...), for counters and logs. */
const char *bw_drop_name(enum bw_drop why);

/* Table-driven CRC32C; the result that every faster implementation must give. */
uint32_t bw_crc32c(uint32_t crc, const void *p, size_t n);

extern const struct bw_protocol bw_reliable; /* reliable.c: the reliable message protocol */
extern const struct bw_protocol bw_datagram; /* datagram.c: the thesis's test stack [A12] */

/* All of them, the last one NULL, and the one of this name or NULL. See protocols.c. */
extern const struct bw_protocol *const bw_protocols[];
const struct bw_protocol *bw_protocol_find(const char *name);

/*
 * Beyond the common interface, of the reliable protocol only:
 */

/* Before close(): the program has failed. Peers are told what they would learn had it been killed,
 * that this incarnation is gone (BW_DOWN_REFUSED), and not that it closed in good order. */
void bw_reliable_failed(void *p);

/* close() in pieces, for a host that may not stay away for long: first the beginning, then pieces
 * until one returns false, when no more is left. In between nothing else is called. */
void bw_reliable_close_begin(void *p, uint64_t now);
bool bw_reliable_close_piece(void *p);

/* Is there a message, or an answer, for which the engine finds no memory? */
bool bw_reliable_starved(const void *p);

/* A time that next_deadline() is not earlier than, found with less work; now or before if and only
 * if that is. */
uint64_t bw_reliable_soonest(const void *p);

/* Does an event wait; and is it one of those that a call of rx() has brought, such as a message of
 * its frame? The end of a lost peer's operations and its own may be many, and lie in no frame. */
bool bw_reliable_untold(const void *p);
bool bw_reliable_tells(const void *p);

/* Has this peer asked for envelopes only? An unknown one has not. */
bool bw_reliable_pressed(void *p, uint32_t peer);

/* May a message of so many bytes, more than BW_EAGER_LIMIT, be sent to this peer? It may if the
 * peer takes such messages, and if all of it can leave at once: the peer has given credit for it,
 * and no other message waits. */
bool bw_reliable_takes(void *p, uint32_t peer, uint64_t len);

/* Has the peer begun to fetch this exposed region? Until then RETRACT leaves it nothing; afterwards
 * the peer may have all of it already. */
bool bw_reliable_begun(void *p, uint64_t key);

/* Has it asked for all of the region? Until then it cannot have all, and RETRACT leaves it a part
 * at most. */
bool bw_reliable_asked(void *p, uint64_t key);

/* Is the host's own memory still being read for a peer who asked for it by this key? Once
 * region_find() forbids it and this is false, nothing refers to it any more. */
bool bw_reliable_serving(void *p, uint64_t key);

/* Smoothed round trip (0 before the first sample) and frame size of the path in use. 0 or
 * -ENOTCONN. */
int bw_reliable_path(void *p, uint32_t peer, uint64_t *srtt_ns, uint32_t *mtu, uint8_t *link);

/* One path to a peer, for people. */
struct bw_path_view {
	struct bw_link_addr to;
	bool up;	   /* first contact was made on it, and it has not been left since */
	bool silent;	   /* it does not answer now: it gets nothing but probes */
	bool best;	   /* it carries short messages */
	bool together;	   /* it carries pulled data, beside the best one or instead of it */
	uint64_t srtt_ns;  /* smoothed round trip; 0 before the first sample */
	uint64_t rate_bps; /* what it delivered lately, bits per second; 0: not measured */
	uint32_t mtu;	   /* frame size in use, in bytes */
};

/* The path of this index, from 0. 0, -ENOTCONN, or -ENOENT when there are no more. */
int bw_reliable_path_view(void *p, uint32_t peer, uint8_t index, struct bw_path_view *view);

/* What is known of a peer, for people. Times are those of the engine's calls, 0: never. What waits
 * is counted up to BW_VIEW_MOST of a kind. */
#define BW_VIEW_MOST 64
struct bw_peer_view {
	bool up;			   /* first contact has been made */
	bool pressed;			   /* it wants envelopes only */
	bool stalled;			   /* something waits for credit */
	bool expected;			   /* there is something that only its frames can bring */
	uint8_t paths;			   /* that are up */
	uint8_t silent;			   /* of these: do not answer now */
	uint8_t link;			   /* of the path in use */
	uint32_t mtu;			   /* its frame size, in bytes */
	uint32_t probes;		   /* tail probes of it since it answered last */
	uint64_t srtt_ns;		   /* its round trip, smoothed; 0: not measured */
	uint64_t var_ns;		   /* the deviation of that */
	uint64_t window;		   /* bytes that may be under way by it */
	uint64_t inflight;		   /* bytes under way, by all paths */
	uint64_t credit;		   /* bytes that the peer takes beyond what it was sent */
	uint64_t tx_packets, rx_packets;   /* DATA frames sent, and the highest number received */
	uint64_t tx_messages, rx_messages; /* submitted; delivered */
	uint64_t tx_charged, rx_charged;   /* bytes charged against credit, ever: what was sent and
					    * received, short messages as if they were longer */
	uint64_t retransmits;		   /* parts sent again */
	uint64_t losses;	/* packets concluded lost from evidence, but for MTU probes */
	uint64_t heard;		/* when an answer or data of it came last; 0: never */
	uint64_t proven;	/* when it last answered what it was sent */
	uint64_t waiting_since; /* for that; 0: for nothing */
	uint64_t queued, queued_bytes;	 /* messages of which something has not left */
	uint64_t exposed, exposed_bytes; /* regions that it has not released */
	uint64_t exposed_first;		 /* key of the one exposed first; 0: there is none */
	uint64_t pulls, pull_bytes;	 /* from it; bytes that have not come */
	uint64_t serves;		 /* pulls of its */
	uint64_t arriving;		 /* messages of its that are not whole, or not due */
};

/* 0, or -ENOTCONN. */
int bw_reliable_peer_view(void *p, uint32_t peer, struct bw_peer_view *view);

/* Bytes of memory that one idle peer with so many paths (at least 1) holds, without a key. */
size_t bw_reliable_peer_bytes(uint32_t paths);

/* Before each piece of memory that grow() is given, if it is to be had back; see slab.h. */
struct bw_grown;

/* Look for pieces that nothing lies in, by which memory is not kept until after close(), in steps:
 * at *left free objects at most, which is counted down. `pieces` are all n that grow() was given,
 * in the order of their addresses. The piece that is returned is the host's again, and one less is
 * to be named from then on; there may be more. NULL: *left is 0, or this look at all free memory
 * has ended, and the next call begins another one. What is free can be used meanwhile. */
struct bw_grown *bw_reliable_shrink(void *p, struct bw_grown *const *pieces, uint32_t n,
				    uint32_t *left);

/* Bytes of what an engine has in use for peers, and for all that is theirs and its host's. */
uint64_t bw_reliable_used(void *p);

/* Check every internal invariant; NULL, or the text of the first one broken. Slow: for tests. */
const char *bw_reliable_check(void *p);

#endif
