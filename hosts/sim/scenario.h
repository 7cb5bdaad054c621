/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a run is made of: nodes, the network between them, what goes wrong and what is to be done. A
 * scenario is a table entry or drawn from the seed; zero always means "none" or "not limited".
 */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include "rng.h"

#include <stddef.h>

#define SIM_NODES  64 /* most nodes of a run */
#define SIM_PLANES 3  /* most networks that each node is attached to */

/* One network: each node has a port into its switch and one out of it. Rates in parts per
 * million. */
struct sim_wire {
	uint64_t rate_bps;    /* of each port, bits per second */
	uint64_t delay_ns;    /* node to node, one way, without queueing */
	uint64_t jitter_ns;   /* up to so much more, order kept */
	uint32_t queue_bytes; /* of a port out of the switch; a frame that does not fit is lost */
	uint32_t mark_bytes;  /* frames that meet a longer queue get a congestion mark */
	uint32_t loss_ppm;    /* independent losses */
	uint32_t burst_ppm; /* chance per frame that a burst of losses begins [Gilbert, Elliott] */
	uint32_t burst_end_ppm; /* chance per frame that it ends */
	uint32_t dup_ppm;	/* frames that arrive twice */
	uint32_t reorder_ppm;	/* frames that are late by up to reorder_ns */
	uint64_t reorder_ns;
	uint32_t corrupt_ppm;  /* frames with 1 to 8 flipped bits anywhere */
	uint32_t truncate_ppm; /* frames cut short */
	uint32_t garbage_ppm;  /* chance per frame that a frame of random bytes follows it */
	uint32_t hole;	       /* frames longer than so many bytes vanish without a word */
	uint32_t mtu;	       /* what the hosts believe to be able to send, bytes; never 0 */
};

enum sim_work {
	SIM_WORK_MIX,	 /* everybody does everything with everybody */
	SIM_WORK_INCAST, /* all send to node 0 */
	SIM_WORK_STREAM, /* node 0 keeps `depth` transfers of `stream_len` bytes under way to node
			  * 1 */
	SIM_WORK_EAGER,	 /* the same with eager messages */
	SIM_WORK_PING,	 /* one small message to and fro */
};

struct sim_spec {
	const char *name, *about;
	uint32_t nodes, planes;
	struct sim_wire wire[SIM_PLANES];
	bool stripe; /* hosts let the planes carry pulled data together */
	bool line;   /* or take them for one line, over which one alone is to carry them */
	bool uneven; /* delay, rate and loss differ between nodes and directions */

	/* host */
	uint64_t rx_cost_ns;	/* time that a host takes for each frame received */
	uint32_t ring;		/* frames its receive ring holds */
	uint32_t driver_bytes;	/* what the transmit queue of one of its ports holds */
	uint64_t clock_ns;	/* granularity of its clock */
	uint32_t no_buffer_ppm; /* calls of buf_get() that get nothing */
	uint64_t no_memory_ns;	/* grow() is withheld for up to so long */
	uint32_t unsent_ppm;	/* frames that the host cannot send when they come */
	bool direct;		/* hosts take messages at once where they may */
	bool singly;		/* frames are sent and received one by one, never as rows */
	bool scatter;		/* only the first BW_HEAD_MAX bytes of a frame lie in one piece */
	bool no_checksum;	/* data checksum not offered */
	bool keyed;		/* there is a cluster key */
	bool encrypted;		/* and payloads are sealed with it */
	bool longs;		/* messages of up to BW_LONG_LIMIT bytes are taken */

	/* protocol */
	uint64_t dead_ns, ack_delay_ns, ack_soon_ns;
	uint32_t rx_budget, charge_min;
	uint32_t piece; /* peers that a call looks at, at most; 0: all */

	/* events, every so many ns on average over all nodes, and how long they last at most */
	uint64_t restart_every_ns, restart_for_ns;
	uint64_t pause_every_ns, pause_for_ns;
	uint64_t cut_every_ns, cut_for_ns;   /* the network falls into two parts */
	uint64_t path_every_ns, path_for_ns; /* one plane of one node is dead */
	uint64_t sever_every_ns; /* one plane is cut in one direction between two nodes, for good */
	bool sever_all;		 /* the last one, too, that worked in both */
	uint64_t move_every_ns;	 /* a node's address on plane 0 changes */
	uint64_t replay_every_ns; /* an old HELLO comes again from elsewhere */

	/* work */
	enum sim_work work;
	uint64_t work_ns;     /* virtual time after which nothing new is begun ... */
	uint64_t work_frames; /* ... or frames */
	uint64_t gap_ns;      /* mean pause between operations of a node */
	uint32_t pending;     /* operations that a node may have under way */
	uint32_t eager_max;   /* longest eager message */
	uint32_t bulk_max;    /* longest region */
	uint32_t depth;	      /* STREAM, EAGER: transfers under way */
	uint32_t leave_ppm;   /* messages and pulls after which their receiver takes leave at once;
			       * what it got is then known to the sender, as no frame may get lost
			       * or overtake another one */
	uint32_t stream_len;
	bool quiet;  /* no cancels, retracts, disconnects, wrong keys, pressure */
	bool steady; /* nothing happens that excuses the loss of a peer */
	bool clean;  /* nothing happens that excuses sending anything twice */
	bool prompt; /* every operation must end soon, or fail with its peer (prompt.c) */
};

/* The fixed scenarios, ended by one without name. */
extern const struct sim_spec sim_scenarios[];

const struct sim_spec *sim_scenario_find(const char *name);
/* A scenario with every kind of trouble in some mixture. */
void sim_scenario_draw(struct sim_spec *spec, uint64_t seed);
/* Fill in what every scenario needs and its table entry leaves 0. */
void sim_scenario_defaults(struct sim_spec *spec);
/* One line that tells what the scenario is made of. */
void sim_scenario_print(const struct sim_spec *spec, char *text, size_t size);

#endif
