/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * State of the reliable message protocol. An engine has peers; a peer has paths (packet numbers,
 * acknowledgements, round trip, congestion: all per path), flows (order of messages) and the pulls
 * between the two. Acknowledged are packets, retransmitted are ranges of messages: a sent record
 * names the range a packet carried, and each range has exactly one owner at a time, either unsent
 * in its object, or a record under way on a path, or a record in the peer's retransmission queue.
 * Copies of records tell what packets carried that were taken for lost; they own nothing.
 */
#ifndef BW_RELIABLE_H
#define BW_RELIABLE_H

#include "path/cc.h"
#include "path/hellos.h"
#include "path/lost.h"
#include "path/pmtu.h"
#include "path/rtt.h"
#include "path/rxset.h"
#include "slab.h"

#define BW_PTO_ASK	   4 /* tail probes before the other paths are asked */
#define BW_PTO_LEAVE	   6 /* tail probes before a path is left for one that answers */
#define BW_PTO_PING	   3 /* tail probes before a small frame is tried instead */
#define BW_PTO_MOVE	   2 /* tail probes before a striped path's data moves to another one */
#define BW_ACK_DELAY	   (100 * BW_US) /* default longest delay of an acknowledgement */
#define BW_ACK_PACKETS	   16		 /* packets that may wait for one acknowledgement */
#define BW_ACK_PACKETS_MAX 128		 /* for one that a message is expected to take along */
#define BW_REORDER_MIN	   3		 /* packets; as RFC 9002 6.1.1 */
#define BW_REORDER_MAX	   512
#define BW_PTO_MAX	   BW_S		/* longest pause between tail probes */
#define BW_PING_MIN	   (10 * BW_MS) /* first pause between pings while waiting; doubles */
#define BW_PING_MAX	   BW_S		/* longest one */
#define BW_SHARE_MIN	   (2u * BW_EAGER_LIMIT) /* bytes of credit every peer always may have */
#define BW_FLOW_WINDOW	   4096			 /* messages that may arrive ahead of the one due */
#define BW_FLOWS_MAX	   1024			 /* flows that the messages of one peer may open */
#define BW_ASKED_MAX	   16384	/* pulls of one peer served or answered at a time */
#define BW_OWED_MAX	   BW_ASKED_MAX /* pulls given up that one peer has yet to answer */
#define BW_LEAVES	   64		/* peers left by BYE that are remembered */
#define BW_BYES		   3 /* times that a closing engine says what it has received, and BYE */
/* After BYE, for what acknowledges packets of other paths: it left before, and may be read later.
 * Less than the time for which a closing engine answers. */
#define BW_BYE_GRACE	 (300 * BW_US)
#define BW_BYE_PAUSE	 (250 * BW_US) /* between them */
#define BW_MSG_SPANS	 16	       /* gaps+1 remembered within one message or pull */
#define BW_STRIPE_SLACK	 BW_MS /* queueing that striped data may meet beyond the round trip */
#define BW_STRIPE_FRAMES 4     /* frames that may be under way on a striped path at least */
#define BW_STRIPE_ROUND	 BW_MS /* a rate is measured over so long, or a round trip */
#define BW_QUANTUM	 16    /* frames a peer may send before the next one's turn */
#define BW_EAGER_TURN	 8     /* eager frames before pulls get a turn */
/* Bytes of a frame with a message before its payload. */
#define BW_MESSAGE_HEAD                                                                            \
	(sizeof(struct bw_hdr) + sizeof(struct bw_ackblk) + sizeof(struct bw_part_msg))

#define BW_BUCKETS	  512 /* of the tables of peers */
#define BW_ROWS		  256 /* of the table of paths */
#define BW_NAMESAKES	  8   /* callers of no use of one node and engine number, at most */
#define BW_NAMESAKES_MOST 32  /* of any use, at most, with those that the host has named */

/* Who is at an address that our host has named may answer for so long before somebody elsewhere is
 * taken for the peer. */
#define BW_NAMED_PATIENCE (3 * BW_S)

#define BW_FLOWS_LISTED 8   /* flows of a peer that are looked at one after another */
#define BW_FLOW_BUCKETS 256 /* of the table of the flows of a peer that has more */
#define BW_QUEUE_LISTED 64  /* waiting messages of a flow that are looked at one after another */
#define BW_QUEUE_BLOCK	64  /* numbers for which the index of a flow with more has one entry */
#define BW_QUEUE_BLOCKS 128 /* entries; more than there are blocks in a window */

struct bw_engine;
struct bw_peer;

/* Hook in the queue of events; every object that can end in an event carries its own. */
struct bw_evnode {
	struct bw_evnode *next;
	uint8_t type; /* enum bw_event_type; 0: not queued */
};

/* A numbered order of messages between two endpoints of the two engines. */
struct bw_flow {
	struct bw_flow *next; /* of the peer; those of one bucket follow each other */
	uint16_t local_ep, remote_ep;
	uint16_t waiting;  /* messages in `rx`; written by queue.c */
	uint16_t bucket;   /* of peer.flow_table, if there is one */
	uint64_t tx_next;  /* number of the next message submitted */
	struct bw_list tx; /* bw_txmsg.queue: not yet completely sent */
	uint64_t rx_next;  /* number of the next message to deliver */
	struct bw_list rx; /* bw_rxmsg.queue: ahead of it or incomplete, by number */
};

/* Of a flow in which many messages wait: the last one of each block of numbers; NULL: none of the
 * block waits. */
struct bw_flow_index {
	struct bw_rxmsg *last[BW_QUEUE_BLOCKS]; /* by number / BW_QUEUE_BLOCK, modulo entries */
};

/* The flows of a peer that has many, by endpoints; written by peer.c. */
struct bw_flow_table {
	struct bw_flow *latest;			 /* the one that was asked for last */
	struct bw_flow *bucket[BW_FLOW_BUCKETS]; /* the first one in each; NULL: it is empty */
	uint64_t sends[BW_FLOW_BUCKETS / 64];	 /* a bit for each with messages to be sent, or with
						  * such that have left since */
};

enum bw_owned_kind {
	BW_OWNED_MESSAGE = 1,
	BW_OWNED_BULK,
	BW_OWNED_PING,
	BW_OWNED_PAD,
	BW_OWNED_MOVED, /* nothing any more: another packet has the range, or it is settled */
};

/* What of a message or serve is to be sent again (again.h), or was and is not any more (late.c). */
struct bw_again {
	struct bw_list turn;	/* in peer.again while ranges wait */
	struct bw_list ranges;	/* the records, ascending; set up when the first one comes */
	struct bw_record *near; /* where the last one went that was not the highest; NULL: none
				 * waits */
	struct bw_record *late; /* a copy whose range is settled now; NULL otherwise */
};

/* A message being sent: eager, or a control message (PULL, PULL_ERROR). */
struct bw_txmsg {
	struct bw_evnode ev;
	struct bw_list queue; /* in flow.tx until completely sent, then unlinked */
	struct bw_list all;   /* in peer.txmsgs, or peer.controls for control messages */
	struct bw_peer *peer;
	struct bw_flow *flow;
	struct bw_pull *pull; /* PULL: whose request this is, while it lives */
	uint64_t id, tag, imm, offset, total;
	uint64_t buf, buf_off, cookie;
	struct bw_again again;
	uint32_t len;	     /* payload bytes */
	uint32_t next_off;   /* first byte never sent */
	uint32_t refs;	     /* records that own a range of it */
	int32_t wire_status; /* part_msg.status */
	int32_t status;	     /* of the SENT event; before that, see bw_named_mark() */
	uint32_t peer_handle;
	uint8_t kind; /* enum bw_part_kind */
	uint8_t code;
	bool sent;    /* all ranges have left at least once */
	bool charged; /* its credit is taken */
	bool urgent, quiet;
};

/* A message arriving. */
struct bw_rxmsg {
	struct bw_evnode ev;
	struct bw_list queue;	     /* in flow.rx while not delivered */
	struct bw_peer *peer;	     /* NULL once the peer is gone */
	struct bw_flow_index *index; /* of flow.rx, if it is the first there; NULL: there is none */
	uint64_t id, tag, imm, total;
	uint64_t buf;	   /* from buf_get(), 0: in the frame, or empty */
	uint64_t received; /* bytes */
	uint32_t peer_handle;
	uint32_t frame_off;
	uint32_t nspans;
	uint16_t dst_ep, src_ep;
	uint8_t code;
	struct bw_span span[BW_MSG_SPANS];
};

/* A pull of ours. One that was canceled stays until all its data has come, for the sake of
 * credit. */
struct bw_pull {
	struct bw_evnode ev;
	struct bw_list all; /* in peer.pulls, or peer.given_up */
	struct bw_peer *peer;
	struct bw_txmsg *request; /* until acknowledged */
	uint64_t id;		  /* serial << 32 | handle */
	uint64_t cookie, buf, buf_off, len, received;
	int32_t status;
	uint32_t peer_handle;
	bool ended;   /* its event is queued or taken */
	bool told;    /* taken */
	bool settled; /* no data can come for it */
	bool owed;    /* counted in peer.owed */
	uint32_t nspans;
	struct bw_span span[BW_MSG_SPANS];
};

/* A buffer that a peer may pull. */
struct bw_region {
	struct bw_evnode ev;
	struct bw_list all;    /* in peer.regions */
	struct bw_list serves; /* that read it */
	struct bw_peer *peer;
	uint64_t key; /* nonce << 32 | handle */
	uint64_t cookie, buf, buf_off, len;
	int32_t status;
	uint32_t peer_handle;
	uint64_t asked; /* bytes of it that its peer has asked for, some perhaps twice */
	bool begun;	/* it has asked */
	bool released;	/* by its peer; ends with the last serve that reads it */
	bool recalled;	/* by the host, who has its serves ended one by one */
};

/* A pull of a peer that we serve. */
struct bw_serve {
	struct bw_list all;  /* in peer.serves */
	struct bw_list turn; /* in peer.serving while bytes are unsent */
	struct bw_peer *peer;
	struct bw_region *region; /* NULL: the host's memory, or the region was taken back */
	struct bw_list sibling;	  /* in region.serves */
	struct bw_again again;
	uint64_t pull_id, buf, buf_off, len, next_off;
	uint32_t refs;
	bool final;
	bool aborted; /* send nothing more of it */
	bool hosts;   /* region_find() gave `buf`, for `key` */
	uint64_t key;
};

/* What one packet carried; packets with several parts have several records with the same number. */
struct bw_record {
	struct bw_list list; /* in path.flight, again.ranges of its message or serve, path.share,
			      * peer.spare or path.lost.late */
	void *obj;	     /* bw_txmsg or bw_serve; NULL for PING, PAD and MOVED */
	uint64_t pn, sent_ns, off;
	uint32_t len;	    /* bytes of the range; PAD: frame size probed */
	uint32_t frame_len; /* bytes of the whole frame, on its first record only */
	uint8_t kind;	    /* enum bw_owned_kind */
	bool waits;	    /* to be sent again */
};

#define BW_PATH_UNKNOWN 0xFF

/* How well a path carries what is long, beside others over its line (carry.c). */
struct bw_carry {
	bool yields;	   /* another path of its line carries */
	bool trial;	   /* it carries for a while only, to be measured */
	bool loaded;	   /* of what is under way something is long */
	bool whole;	   /* nothing was under way when the present piece began */
	uint64_t warm;	   /* bytes still to be carried before it is measured */
	uint64_t bytes;	   /* acknowledged while it was loaded, of the piece that is measured now */
	uint64_t ns;	   /* in which these were under way */
	uint64_t measured; /* bytes of the pieces before it */
	uint64_t fastest;  /* bytes a millisecond of the fastest of them */
	uint64_t since;	   /* time from which `ns` has not been counted yet */
	uint64_t rate;	   /* bytes a millisecond when it carried last; 0: never */
	uint64_t tried;	   /* when that was */
	uint64_t pause;	   /* bytes to be carried before the next trial of another one */
};

enum bw_path_state { BW_PATH_NONE, BW_PATH_TRYING, BW_PATH_UP };

/* What each message touches comes first, and first in each part, so that it lies in few lines of
 * the cache. Written by the files of its parts; what is under way by send.c, ack.c and loss.c. */
struct bw_path {
	uint8_t state;	    /* enum bw_path_state */
	uint8_t no;	    /* its index in owner->path, and its number on the wire */
	uint8_t remote_no;  /* the peer's number of this path, BW_PATH_UNKNOWN before its HELLO */
	bool probe_allow;   /* one frame may leave beyond the window */
	uint32_t pto_count; /* tail probes since the last progress */
	uint16_t reorder;   /* adaptive reordering window, packets */
	bool ask;	    /* striping: a ping is to be sent by it: does it carry anything? */
	bool lax;	    /* striping: it could have carried more in the present round */
	uint32_t losses;    /* packets concluded lost from evidence, but for MTU probes, ever */
	struct bw_list flight; /* bw_record, by packet number */
	uint64_t pn_next;      /* from 1 */
	uint64_t floor;	       /* lowest number of interest to us */
	uint64_t inflight;     /* bytes */
	uint64_t acked_max;    /* largest number acknowledged, 0: none */
	uint64_t last_sent;    /* time of the last DATA */
	uint64_t loss_at;      /* when the oldest suspect counts as lost; BW_NEVER */
	uint64_t answered; /* when it last carried something there and an answer back; 0: never */
	struct bw_rtt rtt;
	struct bw_pmtu pmtu;
	struct bw_link_addr to; /* the peer's address on it */
	struct bw_hellos hello;

	/* striping */
	struct bw_list share; /* bw_record: bytes of a serve to be sent by this path, not charged */
	uint64_t delivered;   /* bytes acknowledged */
	uint64_t rate;	      /* bytes a millisecond; 0: not known */
	uint64_t rate_pn, rate_since, rate_from; /* the round in which it is measured */
	struct bw_carry carry;

	struct bw_cc cc;
	uint64_t reorder_pn; /* it shrinks again once packets from here on are acknowledged */
	uint64_t pto_since;  /* time of the first tail probe, or of one after a late answer */
	struct bw_peer *owner;
	struct bw_list at; /* in engine.paths_at, once it leads somewhere; written by contact.c */
	struct bw_evnode ev;

	struct bw_rxset rx;
	struct bw_lost lost;
};

enum bw_peer_state { BW_PEER_HELLO, BW_PEER_UP, BW_PEER_DOWN };

/* What one side of a conversation says with, and the other one checks with. */
struct bw_key_pair {
	uint8_t tag[16];  /* of frames */
	uint8_t seal[32]; /* of payloads */
};

/* What a peer has more where there is a cluster key; written by key.c. */
struct bw_keys {
	struct bw_key_pair tx, rx; /* void while peer.keyed is false */
	uint64_t random;	   /* drawn by us, goes with peer.wire */
	uint64_t doubted; /* ns; since when it is said to be dead and has not answered; 0: is not */
	uint64_t said;	  /* ns; when that was said last */
	uint64_t ask_at;  /* ns; it is not asked again before */
};

struct bw_peer {
	struct bw_list all;   /* in engine.peers */
	struct bw_list ready; /* in engine.ready while it may have something to send */
	struct bw_evnode ev_up, ev_down;
	uint8_t state;	/* enum bw_peer_state */
	bool confirmed; /* it has got a HELLO of ours, as an echo, token or tag shows: what we know
			 * of it is neither an old HELLO's tale nor made up */
	bool is_ready, watch, pressed, ping_due, checksum, credit_stalled;
	bool stripes;		/* it takes data by several paths together */
	bool keyed;		/* its frames have tags */
	uint8_t trailer;	/* bytes behind what DATA says: BW_SEAL_TAG if it is sealed */
	bool longs;		/* it takes eager messages longer than BW_EAGER_LIMIT */
	bool striped;		/* and several are in use now */
	uint8_t together;	/* paths that are up and in the group of the best one */
	uint8_t lines;		/* over so many lines */
	bool ping_expects : 1;	/* the pings are planned because something is expected */
	bool doubted : 1;	/* our host has named it by addresses at none of which it has been
				* heard of; not confirmed then. This and the next two: named.c */
	bool doubted_longs : 1; /* `longs`, which is false while it is doubted */
	bool hidden : 1;	/* our host does not know it: no event tells of it */
	uint8_t npaths, best;	/* best: path in use */
	uint16_t engine;
	uint32_t handle;     /* what the host calls it */
	uint32_t wire;	     /* our handle that the peer is to use; at first the same */
	uint32_t conn;	     /* the peer's handle for us; 0 unknown */
	uint32_t wire_token; /* what goes with `wire`: who shows both is the peer */
	uint32_t conn_token; /* what goes with `conn` */
	uint32_t inc;
	uint32_t flows; /* behind `app`, whoever made them */
	uint64_t node;
	uint32_t charge_min;
	int32_t down_status;
	uint8_t version_min, version_max;
	uint8_t version; /* of its frames: the highest that both speak; 0 before first contact */
	char name[BW_NAME_MAX + 1];
	int32_t gone_as; /* status, once gone_at has come */

	struct bw_flow app, control;
	struct bw_flow_table *flow_table; /* of those behind `app`; NULL: they are few */
	uint64_t control_seen_base;
	uint64_t control_seen[BW_CONTROL_MAX / 64]; /* bit id % BW_CONTROL_MAX */
	struct bw_list txmsgs, controls, pulls, given_up, regions, serves, serving, again;
	struct bw_list spare; /* bw_record: as path.share, but of a path that was given up */
	uint32_t aside;	      /* records in spare and all shares */
	uint32_t late;	      /* records in path.lost.late of all paths */
	uint16_t eager_turn;
	uint8_t quantum; /* frames before the next one's turn */
	bool starved;	 /* it found no memory for a record: counted in engine.starve */
	uint32_t serve_turn;
	uint32_t unsent;   /* messages in bw_flow.tx of all flows but `control` */
	uint32_t arriving; /* messages of its that wait in flows for what is missing */
	uint16_t asked;	   /* its pulls that are being served, and answers not yet acknowledged */
	uint16_t owed;	   /* pulls in given_up */
	uint8_t heap_rank; /* peers on the shortest way down to a missing child; 0: it is in no
			    * heap, as it has no deadline; written by timer.c */
	uint8_t denied_as; /* enum bw_refusal: for KEY or VERSION somebody has refused our HELLO,
			    * without proof; 0: nobody has. Written by farewell.c */
	uint16_t flows_opened; /* flows that its messages made; at most BW_FLOWS_MAX */

	/* credit, bytes since first contact */
	uint64_t tx_limit, tx_used;
	uint64_t rx_used; /* charged for what has arrived, taken or not */
	uint64_t rx_taken, rx_limit, rx_told;
	uint64_t rx_epoch;

	/* time */
	uint64_t proven; /* when it last answered: what we send arrives there, and the reverse */
	uint64_t waiting_since; /* 0: for nothing */
	uint64_t arrived;	/* when something of what is arriving came last */
	uint64_t gone_at;	/* it has said BYE, or was refused for: gone at this time; 0: not */
	uint64_t ping_at, ping_pause, ping_first; /* pause: the present one; first: the shortest */
	struct bw_peer *heap_left, *heap_right, *heap_up; /* in the heap of engine.heap */
	uint64_t heap_key, deadline;
	/* ns; while it is not confirmed, until then: who is at an address that our host has named
	 * may become the peer, and nobody else; who is said to refuse us may answer. 0: there is no
	 * such time. Written by named.c and farewell.c */
	uint64_t patience;

	struct bw_keys *keys; /* NULL without a cluster key */

	/* where it is found by others than its handle */
	struct bw_list namesake; /* in engine.names once its node is known */
	struct bw_list given;	 /* in engine.given, once it has given us a handle */
	struct bw_list caller;	 /* in engine.callers or engine.guests, if it came by itself */

	/* `npaths` of them, and an empty one before the first: a peer always has path[best] */
	struct bw_path *path[BW_PATHS_MAX];
};

#define BW_ACK_BYTES                                                                               \
	(sizeof(struct bw_hdr) + sizeof(struct bw_ackblk) + sizeof(struct bw_ack) +                \
	 BW_ACK_RANGES_MAX * sizeof(struct bw_range))

/* Frames that belong to no peer (any more): refusals and farewells. */
#define BW_STRAYS 32
struct bw_stray {
	struct bw_link_addr to;
	uint32_t len;
	uint64_t head[BW_ACK_BYTES / 8]; /* the longest of them */
};

/* A conversation that we ended by BYE. Its peer may not know it yet, as a BYE is not
 * acknowledged. */
struct bw_leave {
	uint32_t wire, wire_token; /* ours in it; wire 0: unused */
	uint32_t conn, conn_token; /* the peer's */
	uint16_t engine;
	uint8_t version;
	bool keyed; /* with `tag` */
	uint8_t tag[16];
	uint8_t path;	   /* that `ackblk` and `ack` are of */
	bool acknowledges; /* its BYE does, with these and no ranges */
	struct bw_ackblk ackblk;
	struct bw_ack ack;
	uint64_t over;			      /* of that BYE, as in bw_key_tag() */
	uint8_t paths;			      /* used entries of `at` */
	struct bw_link_addr at[BW_PATHS_MAX]; /* where the peer was; only there BYE is said again */
};

/* Of what the frame sent last was a piece, alone in it, if more of the same may follow; until
 * anything but that happens. Written by send.c and row.c. */
struct bw_row {
	struct bw_peer *peer; /* NULL: none */
	struct bw_path *path;
	struct bw_serve *serve; /* NULL: it was of the message */
	struct bw_txmsg *msg;
};

/* Peers that something concerns all at once. Written by sweep.c. */
struct bw_sweep {
	struct bw_list *next; /* bw_peer.all of the next one, or engine.peers; NULL at first */
	uint32_t left;	      /* peers still to be told whether there is room for messages */
};

/* Peers that found no memory for a record. Written by starve.c. */
struct bw_starve {
	struct bw_list *next; /* bw_peer.all of the first that may be the next, or engine.peers;
			       * NULL at first */
	uint32_t peers;	      /* so many */
	bool seeks;	      /* there are records; who is to have them is looked for */
};

struct bw_engine {
	struct bw_config cfg;
	const struct bw_host_ops *ops;
	void *host;
	uint64_t now;
	struct bw_arena arena;
	struct bw_slab peers_slab, paths, flows, txmsgs, rxmsgs, pulls, regions, serves, records,
		keys, indexes, flow_tables;
	struct bw_table peer_table, pull_table, region_table;
	struct bw_list peers, ready;
	struct bw_list names[BW_BUCKETS]; /* bw_peer.namesake, by node and engine number */
	struct bw_list paths_at[BW_ROWS]; /* bw_path.at, by address and the peer's engine number;
					   * those first of whose peer no node is known */
	struct bw_list given[BW_BUCKETS]; /* bw_peer.given, by the handle and token given to us */
	struct bw_list callers; /* bw_peer.caller: among them are all of whom nothing has come,
				 * oldest first */
	struct bw_list guests;	/* bw_peer.caller: of whom something has come, in turn */
	struct bw_evnode *ev_first, *ev_last;
	struct bw_event told; /* for ops->message() and ops->buf_for() */
	struct bw_peer *heap;
	struct bw_sweep sweep;
	struct bw_starve starve;
	uint32_t ack_packets; /* that may wait for one acknowledgement */
	uint64_t serial;
	bool closed, pressure;
	bool crowded;  /* the host has said that it gives no memory, and has given none since */
	bool failed;   /* closes, but not in good order */
	uint64_t late; /* when ops->excused() was called last; 0: not yet */
	uint64_t work; /* txmsgs, regions and serves alive */

	/* credit across all senders */
	uint64_t epoch;
	uint32_t active, active_before;

	struct { /* from the cluster's */
		uint8_t hello[32], refuse[16], challenge[16];
	} key;
	uint8_t secret[16]; /* key of cookies and buckets, of this incarnation alone */
	struct bw_stray stray[BW_STRAYS];
	uint32_t stray_head, stray_tail;
	struct bw_leave leave[BW_LEAVES];
	uint32_t leaves;  /* ever written to it */
	uint32_t parting; /* peers with gone_at */

	/* closed */
	struct bw_flow *dropping; /* of the peer whose messages are dropped; NULL: its first one */
	struct bw_list left;	  /* bw_peer.all: told by BYE; told again at `bye_at` */
	uint64_t bye_at;
	uint32_t byes; /* times that they were told again */

	struct { /* for unsent() */
		uint32_t peer;
		uint8_t type, path;
		bool stray;	   /* of no peer */
		bool answer, move; /* HELLO: was it an answer, or to path.hello.move.to? */
		uint64_t pn;
	} last;
	struct bw_row row;
	uint32_t sorted; /* pools of which free objects are sorted, or are being so; see slab.h */
	struct {	 /* see duplex.h */
		uint64_t inflight;	  /* bytes under way to all peers */
		uint64_t bytes, messages; /* sent since it was 0, not yet counted as at once */
	} duplex;
	uint64_t steps; /* along what peers make long: flows, waiting messages. Ever; for tests */
	uint64_t looks; /* at peers and at what they leave, by calls that do a piece. The same */
	struct bw_counters count;
};

/* The host's operations. A host that is compiled in one unit with the engine says which these are,
 * so that they are called directly; whoever opens an engine there hands in the same ones. */
#ifdef BW_HOST_OPS
#define bw_ops(e) (&BW_HOST_OPS)
#else
#define bw_ops(e) ((e)->ops)
#endif

static inline bool bw_link_same(const struct bw_link_addr *a, const struct bw_link_addr *b)
{
	uint64_t x, y; /* link, length and the bytes of a MAC, or of IPv4: all that mostly is */

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x == y && (a->len <= 6 || !memcmp(a->bytes + 6, b->bytes + 6, 16));
}

#endif
