/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A world of three engines and a wire between them. Tests submit, let frames travel or meddle with
 * them, and compare two logs: of the frames that were sent, and of the events that hosts got. Every
 * byte delivered is compared with what was sent, and every invariant is checked after every step.
 */
#ifndef TEST_WORLD_H
#define TEST_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "frame.h"
#include "reliable.h"

enum { A, B, C, NODES };

#define HOP_NS	  (10 * BW_US) /* time that frames travel in settle() */
#define WIRE_MAX  4096
#define LOG_BYTES (1u << 20)
#define CLUSTER	  7u

/* A buffer of a host: cookie is its address. */
struct buffer {
	struct buffer *next;
	uint8_t *bytes;
	uint64_t len;
	int node;
	uint64_t cookie, seed, seed_off; /* of the operation it serves */
	uint64_t key;			 /* EXPOSE: of the region */
	enum bw_op_type use;		 /* 0: an incoming message */
};

struct node {
	const struct bw_protocol *protocol;
	struct bw_config cfg;
	void *mem; /* NULL: not running */
	uint32_t peer[NODES];
	struct frame *last_rx;
	struct bw_grown *grown[64];	/* in the order of addresses */
	unsigned int grown_n, grow_max; /* memory that the host will hand in at most */
	bool slow;			/* so far the host has not got to giving memory */
	bool no_buffers;		/* buf_get() fails */
	uint64_t placed;		/* bytes that the host was shown, for whatever it counts */
	unsigned int asked, asked_next; /* calls of it, and of these those for the next message */
	bool no_places;			/* buf_for() finds none */
	int buffers_out;		/* buf_get() not yet put or delivered */
	uint64_t host_key, host_len;	/* memory registered with the host, 0: none */
	int host_reads;			/* that region_find() allowed, and that are not over */
	uint64_t host_buf;
	bool ignore_events;    /* the host does not take events */
	bool needs_nobody;     /* of whom something has come, but for `needs` */
	uint32_t needs;	       /* handle of a peer */
	unsigned int excused;  /* times that excused() was called, */
	uint64_t excused_ns;   /* and for how long the last time, */
	uint32_t excused_peer; /* and of whom */
	uint8_t place; /* part of its addresses: changes when its interfaces are exchanged */
};

enum fate { PASS, LOSE, MARK };

struct world {
	uint64_t now;
	struct node node[NODES];
	struct frame *wire[WIRE_MAX]; /* under way, oldest first */
	unsigned int wire_n;
	enum fate (*fate)(const struct frame *f); /* what becomes of each frame; NULL: all pass */
	bool quiet;				  /* frames are not logged */
	unsigned int alike;			  /* frames that next_alike() made */
	/* Callers have to show the cookies that they were told. Else HELLOs get the right one on
	 * their way, so that most tests begin with what comes after that. */
	bool strangers;
	bool keyed;	/* all nodes have a cluster key; set before they are opened */
	bool encrypted; /* and seal their DATA: when it arrives, so that tests can read and change
			 * it on the wire; with `secret` when it leaves */
	bool secret;
	unsigned int opened; /* frames that were, or were not genuine */
	struct frame_view view[NODES][NODES][4];
	char frames[LOG_BYTES], events[LOG_BYTES];
	struct buffer *buffers;
	unsigned int steps; /* to notice endless exchanges */
};
extern struct world world;
extern bool world_keyed;     /* what world.keyed is at the begin of each test */
extern bool world_encrypted; /* the same of world.encrypted */

/* cmocka */
int world_setup(void **state);
int world_teardown(void **state);
#define TEST(function) cmocka_unit_test_setup_teardown(function, world_setup, world_teardown)

/* nodes */
void node_open(int n);			      /* with world.node[n].cfg */
void node_kill(int n);			      /* gone without a word */
void node_restart(int n);		      /* killed and opened again with a new incarnation */
void node_close(int n);			      /* its farewells are sent */
static inline struct bw_engine *engine(int n) /* for what the interface does not tell */
{
	return world.node[n].mem;
}
/* Is it the reliable protocol, in this version or a later one? */
static inline bool world_reliable(int n)
{
	return world.node[n].protocol->size == bw_reliable.size ||
	       world.node[n].protocol->version > BW_VERSION;
}
struct bw_peer *peer(int n, int of);
struct bw_path *path(int n, int of, unsigned int no);
const struct bw_counters *count(int n);
struct bw_link_addr address(int n, uint8_t link);

/* Two numbers that were drawn: not the same, nor is one of them a few more than the other. */
static inline bool unrelated(uint32_t a, uint32_t b)
{
	return a - b > 1u << 10 && b - a > 1u << 10;
}

/* operations; their cookie, and the pattern of their bytes, is `tag` */
int submit(int n, struct bw_op *op);
struct bw_op op_connect(int n, int to);
/* Have the engine give back what nothing lies in. How many pieces. */
unsigned int shrink(int n);
/* The same in one step that looks at so many free objects at most. `ended`: the look at all has. */
unsigned int shrink_step(int n, uint32_t left, bool *ended);
struct bw_op op_send(int n, int to, uint64_t tag, uint32_t len);
void connect_to(int n, int to);
void post(int n, int to, uint64_t tag, uint32_t len);
/* A region of node n for node `to`; returns its key. */
uint64_t expose(int n, int to, uint64_t tag, uint64_t len);
/* Node n pulls [off, off + len) of the region with this key, with `tag` as its cookie; returns the
 * id. */
uint64_t pull(int n, int to, uint64_t key, uint64_t tag, uint64_t off, uint64_t len,
	      uint32_t flags);
int retract(int n, uint64_t key);
int forbid(int n, uint64_t key);
int cancel(int n, uint64_t pull_id);
void disconnect(int n, int to);
void watch(int n, int to, bool on);
void pressure(int n, bool on);
/* Memory of node n that peers may pull with BW_PULL_HOST_KEY. */
void host_region(int n, uint64_t key, uint64_t tag, uint64_t len);

/* First contact between two nodes (opened if need be); logs are empty afterwards. */
void meet(int n, int m);
/* Opened with a key of this byte; 0: without one. */
void open_keyed(int n, uint8_t key);
/* A and B with one key, who have said something. */
void meet_keyed(void);
/* What C says first to B; C itself is gone. */
struct frame *hello_of_the_dead(void);
/* The n-th stranger calls B so, from an address of his own, which he has proven: as deliver(). */
int stranger_call(const struct frame *hello, uint32_t n);

/* frames */
void flush(int n);	     /* all that node n sends now goes onto the wire */
int deliver(unsigned int i); /* frame i of the wire arrives; the result of rx() */
/* The first n frames of the wire, of one sender to one node, arrive as a row: the result of
 * rx_row(); *taken of them are gone. */
int deliver_row(unsigned int n, uint32_t *taken);
void deliver_all(void); /* all frames on the wire arrive, HOP_NS later */
void drop(unsigned int i);
void drop_all(void);
/* A REFUSE of this version with this body, which no engine made. */
struct frame *refuse_frame(int from, int to, uint8_t version, const struct bw_refuse *body);
struct frame *take(unsigned int i); /* out of the wire, now the test's own */
void give(struct frame *f);	    /* onto the wire, at its end */
int receive(struct frame *f);	    /* arrives now; freed */
void reverse(void);		    /* the order of the frames on the wire */
void pass(uint64_t ns);		    /* time passes, nobody acts */
void settle(void);		    /* frames travel until nobody has one to send */
void run(uint64_t ns);	 /* settle and act at deadlines, until that much time has passed */
uint64_t deadline(void); /* the earliest of all nodes */

/* the logs; each is emptied by its comparison. The last argument is NULL. */
void expect_frames(const char *line, ...) __attribute__((sentinel));
void expect_events(const char *line, ...) __attribute__((sentinel));
void expect_drop(int n, enum bw_drop why, uint64_t times);
void forget_logs(void);
unsigned int frames_with(const char *text); /* how many lines of the log of frames contain it */
unsigned int events_with(const char *text);

#endif
