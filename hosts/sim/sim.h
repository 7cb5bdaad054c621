/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The simulator: many hosts, each with an engine of any protocol, on one virtual clock. The hosts
 * drive the engines as protocol.h asks; the network between them does what the scenario says; an
 * oracle knows of every message and region what must become of it.
 */
#ifndef SIM_H
#define SIM_H

#include "checksum.h"
#include "protocol.h"
#include "queue.h"
#include "scenario.h"

#include <stdio.h>

enum sim_event_kind {
	SIM_AT_SWITCH, /* sim_frame: at the switch, before the port out */
	SIM_AT_NODE,   /* sim_frame: at the receiving host */
	SIM_SERVE,     /* sim_node: its host has time for the next frame of the ring */
	SIM_WAKE,      /* sim_node: the engine's deadline; arg: generation */
	SIM_WORK,      /* sim_node: begin the next operation; arg: generation */
	SIM_TROUBLE,   /* arg: enum sim_trouble */
	SIM_HEAL,      /* what: sim_node or NULL; arg: enum sim_trouble */
	SIM_TCP_TIMER, /* sim_tcp; arg: generation */
	SIM_OVERDUE,   /* what is under way for too long? */
};

enum sim_trouble {
	SIM_RESTART,
	SIM_PAUSE,
	SIM_CUT,
	SIM_PATH,
	SIM_SEVER,
	SIM_MOVE,
	SIM_REPLAY,
	SIM_TROUBLES
};

enum sim_frame_kind { SIM_FRAME_ENGINE, SIM_FRAME_TCP_DATA, SIM_FRAME_TCP_ACK };

/* A frame under way: flat bytes, as on a wire. */
struct sim_frame {
	struct sim_frame *next; /* free list, or receive ring */
	uint64_t serial;
	uint32_t len;
	uint32_t room; /* bytes of data */
	uint16_t src, dst;
	uint8_t plane;
	uint8_t place; /* part of the sender's address */
	uint8_t kind;  /* enum sim_frame_kind */
	bool mark;
	bool astray; /* to an address that nobody has any more */
	uint64_t data[];
};

struct sim_port {
	struct sim_wire wire;
	uint64_t busy_until; /* the last frame accepted has left */
	uint64_t last_out;   /* arrival time of the last frame that keeps its order */
	bool burst;	     /* in a burst of losses */
	bool dead;
};

struct sim;
struct sim_node;
struct sim_tcp;

/* A peer as its host knows it: one handle, until PEER_DOWN. Kept for the whole run. */
#define SIM_EPS 3
struct sim_peer {
	struct sim_peer *next; /* of the node, newest first */
	struct sim_node *node;
	uint32_t node_inc; /* incarnation of `node` it belongs to */
	uint32_t handle;
	int32_t remote;		   /* number of the node, -1: unknown */
	uint32_t remote_inc;	   /* 0: unknown */
	uint32_t pending, exposed; /* operations not completed; regions among them */
	bool up, gone, leaving;	   /* leaving: DISCONNECT was submitted */
	bool named;		   /* CONNECT was */
	uint8_t planes;		   /* that it named addresses of */
	bool lost;		   /* an operation found it not connected: PEER_DOWN must follow */
	int32_t failing;	   /* status of operations that failed; PEER_DOWN must follow */
	struct sim_peer *rx_from;  /* the other side's view whose messages come here */
	uint64_t tx_seq[SIM_EPS][SIM_EPS]; /* messages submitted, by own and remote endpoint */
	uint64_t rx_seq[SIM_EPS][SIM_EPS]; /* messages of the other side's peer that came here */
};

/* What is under way at a host; its cookie names index and generation. */
struct sim_op {
	enum bw_op_type type; /* 0: free */
	uint32_t gen, next_free;
	struct sim_peer *peer;
	uint64_t object; /* SEND: message number; EXPOSE, PULL: region number */
	uint64_t buf;
	uint64_t pull_id;   /* PULL */
	uint64_t base, len; /* PULL: what must arrive */
	uint64_t since;	    /* ns */
	uint64_t moved;	    /* PULL: when bytes of it came last */
	uint64_t passed;    /* late PULL: what had come of its peer when that was found, and ... */
	uint32_t ahead;	    /* ... how many operations there were; 0: it is not late */
	bool canceled, final, host_key, must_fail, quiet;
};

enum sim_buf_kind { SIM_BUF_FREE, SIM_BUF_SOURCE, SIM_BUF_TARGET, SIM_BUF_MESSAGE, SIM_BUF_HOST };

struct sim_buf {
	uint8_t kind; /* enum sim_buf_kind */
	uint32_t gen, next_free;
	uint64_t len;
	uint64_t base; /* SOURCE, HOST: where in the pattern its first byte lies */
	uint64_t op;   /* TARGET: cookie of the pull */
	uint8_t *mem;  /* TARGET, MESSAGE: real memory */
};

struct sim_node {
	struct sim *sim;
	uint32_t number;
	uint64_t identity;
	void *engine;		  /* NULL: down */
	struct bw_grown **chunks; /* memory handed in by grow(), in the order of addresses */
	uint32_t nchunks;
	struct bw_config cfg;
	struct sim_rng chance; /* what its engine draws, so that the rest is as without */
	struct sim_port out[SIM_PLANES], in[SIM_PLANES]; /* to the switch, from the switch */
	uint32_t side;					 /* part of the network while it is cut */
	uint8_t place[SIM_PLANES]; /* part of its addresses: changes with its interfaces */
	uint64_t clock_offset;	   /* its clock minus the simulator's */

	/* receive ring */
	struct sim_frame *ring_first, *ring_last;
	uint32_t ring_used;
	bool serving, paused;
	uint32_t batch; /* frames served, to run the engine after some */
	/* The frame of the rx() under way or just made; and how many were offered with it, in the
	 * order of the ring. */
	struct sim_frame *current;
	uint32_t shown;
	uint64_t *quiet; /* cookies of quiet sends that ended */
	uint32_t nquiet;
	uint64_t *head_copy; /* its first bytes, where frames are scattered */

	/* driving the engine */
	uint32_t wake_gen, work_gen;
	uint64_t wake_at;	/* when the engine wants to run */
	uint64_t alarm_at;	/* when the earliest event for that comes, perhaps too early */
	uint64_t blocked_until; /* the link's queue is full */
	uint64_t no_memory_until;
	uint64_t idle_runs; /* calls in a row that changed nothing */
	uint64_t runs;
	uint64_t frames_out;

	struct sim_peer *peers;
	struct sim_peer *live[SIM_NODES]; /* handle in use for each other node */
	struct sim_op *ops;
	uint32_t nops, free_op, pending;
	bool full; /* as many operations are under way as may be */
	struct sim_buf *bufs;
	uint32_t nbufs, free_buf;
	uint32_t engine_bufs; /* MESSAGE buffers in the engine's hands */
	uint64_t host_buf, host_key, host_base;
	uint64_t host_len;
	uint32_t host_reads; /* that region_find() allowed, and that are not over */
	bool forbade;	     /* what was read of it, once */

	uint64_t got_bytes;  /* payload delivered: messages and pulls */
	uint64_t gave_bytes; /* payload of ours that others got */
	uint64_t got_items;
	uint64_t ring_drops;
	uint64_t pings, ping_sent, ping_sum_ns, ping_worst_ns;
	struct sim_tcp *tcp;
	struct sim_audit *audit;
};

/* A message: its content is pattern[base ...]. */
struct sim_msg {
	struct sim_peer *from; /* sender's view; tells source node, incarnation and session */
	uint64_t base, seq;
	uint32_t len;
	uint32_t copies; /* unreliable protocols: how often it was on the wire, at least */
	uint16_t dst;
	uint8_t src_ep, dst_ep;
	uint8_t code;
	bool delivered, acked;
	uint64_t imm;
	uint64_t left;	   /* when bytes of it left last that had not before; 0: none has */
	uint32_t left_end; /* so many have */
};

/* A region exposed to one peer. */
struct sim_region {
	struct sim_peer *owner;
	uint64_t op; /* cookie at the owner, while it is exposed */
	uint64_t base, len, key;
	bool retracted, done, final_asked;
	bool taken;		/* its final pull ended well */
	uint32_t pulls, finals; /* under way, as the puller knows; of these with FINAL and data */
};

#define SIM_TARGET_OFF 24	  /* bytes of a pull's target buffer before the place of its data */
#define SIM_INDEX      (1u << 20) /* places of a hash table of all 8-byte words of the pattern */
#define SIM_PATTERN    256271u	  /* bytes; no power of two: misplaced data never looks right */

struct sim {
	uint64_t seed;
	struct sim_spec spec;
	const struct bw_protocol *protocol;
	bool reliable;
	struct sim_rng rng;
	struct sim_queue queue;
	uint64_t now;
	struct sim_node *nodes;
	FILE *trace;

	uint64_t frames;    /* given to the network */
	uint64_t delivered; /* messages */
	uint64_t pulled;    /* pulls */
	uint64_t downs;	    /* PEER_DOWN events */
	uint64_t fate[8];   /* enum sim_fate */
	bool working;	    /* new operations are begun */
	bool calm;	    /* nothing goes wrong any more, but what the wires always do */
	uint64_t ended_ns;  /* when working stopped */
	uint64_t pending;   /* operations under way at all nodes */
	uint64_t checks;
	uint64_t progress_frames; /* frames when the last payload was placed or operation ended */
	struct sim_fault *fault;
	struct sim_prompt *prompt; /* NULL: it is not promised */

	struct bw_counters ended; /* sums over the engines that have ended */

	struct sim_msg *msgs;
	uint64_t nmsgs, msgs_room;
	struct sim_region *regions;
	uint64_t nregions, regions_room;
	uint8_t *pattern; /* SIM_PATTERN bytes, and the start once more */
	uint32_t *index;  /* unreliable protocols: place of a word in the pattern, plus 1 */

	struct bw_event event; /* being taken */
	struct sim_frame *spare[4];
	struct sim_tcp *tcps;
	bool failed;
	char why[400]; /* the first broken invariant */
};

enum sim_fate {
	SIM_FATE_LOST,
	SIM_FATE_QUEUE,
	SIM_FATE_CUT,
	SIM_FATE_HOLE,
	SIM_FATE_DUP,
	SIM_FATE_DAMAGED,
	SIM_FATE_RING,
	SIM_FATE_GARBAGE,
};

/* sim.c */
struct sim *sim_new(const struct sim_spec *spec, const struct bw_protocol *protocol, uint64_t seed);
/* Start all nodes; sim_run() does it itself. */
void sim_begin(struct sim *s);
/* Run to the end or to the first broken invariant; true when all held. */
bool sim_run(struct sim *s);
/* Run until a virtual time; for measurements. */
void sim_run_until(struct sim *s, uint64_t at);
void sim_free(struct sim *s);
void sim_fail(struct sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_log(struct sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* wire.c: the network */
struct sim_frame *sim_frame_new(struct sim *s, uint32_t len);
void sim_frame_free(struct sim *s, struct sim_frame *f);
/* Could the port out of this host take another frame now? */
bool sim_wire_ready(struct sim *s, const struct sim_node *n, uint8_t plane);
/* Send; the frame belongs to the network from now on. */
void sim_wire_send(struct sim *s, struct sim_frame *f);
void sim_wire_switch(struct sim *s, struct sim_frame *f);
uint64_t sim_wire_time(uint64_t rate_bps, uint32_t bytes);

/* node.c: a host and its engine */
void sim_node_start(struct sim_node *n);
/* End the engine: with BYE, or as if the process was killed. */
/* Add what the node's engine counted (drops, retransmits, spurious) to sum. */
void sim_node_tally(const struct sim_node *n, struct bw_counters *sum);
void sim_node_stop(struct sim_node *n, bool farewell);
void sim_node_receive(struct sim_node *n, struct sim_frame *f);
void sim_node_serve(struct sim_node *n);
/* Let the engine send, take its events, and plan the next wake-up; false: nothing came of it. */
bool sim_node_run(struct sim_node *n);
/* The engine's deadline has come. */
void sim_node_wake(struct sim_node *n);
/* The time that the host's clock shows. */
uint64_t sim_node_clock(const struct sim_node *n);
int sim_node_submit(struct sim_node *n, struct bw_op *op);
struct bw_link_addr sim_node_addr(uint32_t number, uint8_t plane, uint8_t place);

/* memory.c: buffers */
extern const struct bw_host_ops sim_host_ops;
extern const struct bw_host_ops sim_host_ops_direct; /* takes messages at once */
uint64_t sim_buf_new(struct sim_node *n, enum sim_buf_kind kind, uint64_t len, uint64_t base);
struct sim_buf *sim_buf_get(struct sim_node *n, uint64_t cookie);
void sim_buf_end(struct sim_node *n, uint64_t cookie);
/* The bytes that belong at `off` of content `base`, at most 64 KiB in one piece. */
const uint8_t *sim_content(const struct sim *s, uint64_t base, uint64_t off);
/* Do the n bytes at p equal the content? */
bool sim_content_same(const struct sim *s, const uint8_t *p, uint64_t base, uint64_t off,
		      uint64_t n);

/* op.c: operations under way, and peers, as the host knows them */
uint64_t sim_op_new(struct sim_node *n, struct sim_peer *p, enum bw_op_type type);
/* NULL when the cookie names nothing that is under way. */
struct sim_op *sim_op_get(struct sim_node *n, uint64_t cookie);
void sim_op_end(struct sim_node *n, uint64_t cookie);
struct sim_peer *sim_peer_find(struct sim_node *n, uint32_t handle);
struct sim_peer *sim_peer_new(struct sim_node *n, uint32_t handle, int32_t remote);
/* The host lost its engine: what was under way is forgotten. */
void sim_op_forget_all(struct sim_node *n);

/* work.c: operations begun */
void sim_work_next(struct sim_node *n);
/* React to a message that asks for it. */
void sim_work_answer(struct sim_node *n, struct sim_peer *p, const struct bw_event *e);
/* Something has come: perhaps it was all that the receiver wanted, and he takes leave. */
void sim_work_enough(struct sim_node *n, struct sim_peer *p);
/* A transfer has ended: STREAM and the like begin the next one. */
void sim_work_ended(struct sim_node *n, struct sim_peer *p);

/* event.c: events taken and checked */
void sim_event_take(struct sim_node *n, const struct bw_event *e);
/* A quiet send was acknowledged. */
void sim_event_quiet(struct sim_node *n, uint64_t cookie);

/* oracle.c: what must become of messages and regions */
uint64_t sim_oracle_message(struct sim *s, struct sim_peer *p, uint32_t len);
uint64_t sim_oracle_region(struct sim *s, struct sim_peer *p, uint64_t len);
/* Tags are spread over 64 bits; the number comes back out of them. */
uint64_t sim_oracle_tag(const struct sim *s, uint64_t number);
uint64_t sim_oracle_number(const struct sim *s, uint64_t tag);
/* Check a delivery in every respect; the message, or NULL after a failure. */
struct sim_msg *sim_oracle_delivered(struct sim_node *n, struct sim_peer *p,
				     const struct bw_event *e);
/* A place is asked for a message of which a part has come. */
void sim_oracle_due(struct sim_node *n, const struct bw_event *e);
/* After the run. */
void sim_oracle_final(struct sim *s);

/* prompt.c: what was promised ends in time, or fails with its peer */
void sim_prompt_begin(struct sim *s);
/* Has anything been under way for longer than peers are waited for? Comes again by itself. */
void sim_prompt_check(struct sim *s);
/* A message, up to this byte, is in a frame that leaves. */
void sim_prompt_left(struct sim_node *n, uint32_t to, struct sim_msg *m, uint32_t end);
/* Payload has come; op: the pull that it is of, NULL: a message. */
void sim_prompt_came(struct sim_node *n, uint32_t from, struct sim_op *op, uint64_t bytes);

#define SIM_FORGED 0x80 /* places of nobody begin here */

/* fault.c: what goes wrong for good, or is forged */
struct sim_fault *sim_fault_new(const struct sim *s);
void sim_fault_free(struct sim *s);
/* A frame that an engine sends: is it lost on the way? */
bool sim_fault_loses(struct sim *s, const struct sim_frame *f);
/* Since when the ways between two nodes have been as they are. */
uint64_t sim_fault_since(const struct sim *s, uint32_t a, uint32_t b);
/* The planes on which something is cut between them for good. */
uint32_t sim_fault_cut(const struct sim *s, uint32_t a, uint32_t b);
/* From now on what one host sends to another is lost on one plane. */
void sim_fault_sever(struct sim *s);
/* A host's interface of plane 0 is exchanged: it has another address. */
void sim_fault_move(struct sim *s);
/* Somebody sends an old HELLO again, from an address of his own. */
void sim_fault_replay(struct sim *s);

/* trouble.c */
void sim_trouble_plan(struct sim *s);
void sim_trouble_begin(struct sim *s, enum sim_trouble what);
void sim_trouble_end(struct sim *s, struct sim_node *n, enum sim_trouble what);

/* audit.c: each frame that an engine sends is checked by an independent reader of wire.h */
void sim_audit_frame(struct sim_node *n, const struct bw_tx_frame *f, const struct sim_frame *flat);
/* r: what the engine's rx() said to it. */
void sim_audit_received(struct sim_node *n, const struct sim_frame *flat, int r);
void sim_audit_reset(struct sim_node *n);
void sim_audit_end(struct sim_node *n);

/* text.c: a frame in words, such as "@100002 DATA#7[MESSAGE 3 8B]" */
void sim_text_frame(char *text, size_t size, const void *frame, uint32_t len);

/* conserve.c: both ends agree when nothing is under way (reliable protocol only) */
void sim_conserve_check(struct sim *s);

/* tcp.c: a model of a CUBIC flow, to share queues with */
struct sim_tcp *sim_tcp_new(struct sim *s, uint32_t from, uint32_t to, uint32_t mss,
			    uint64_t start);
void sim_tcp_receive(struct sim *s, struct sim_frame *f);
void sim_tcp_timer(struct sim_tcp *t, uint32_t generation);
uint64_t sim_tcp_bytes(const struct sim_tcp *t);
void sim_tcp_free(struct sim *s);

/* report.c */
/* Measure and print, perhaps only "loss", "incast", "tcp" or "ping"; the exit status. What may take
 * other seeds than 1 to SIM_REPORT_SEEDS takes those. */
#define SIM_REPORT_SEEDS 3
int sim_report(const char *only, bool json, uint64_t first, uint64_t last);
bool sim_report_known(const char *only);

#endif
