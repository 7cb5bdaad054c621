/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One direction of a link in virtual time: a frame arrives, and the model says whether and when it
 * leaves. A queue feeds a wire that sends one frame after another; what was sent travels for the
 * delay. No clock, no chance but the seed's, no input or output: the same frames and the same seed
 * give the same fates.
 *
 * All times are nanoseconds of one clock, whichever. A model belongs to one thread.
 */
#ifndef EM_MODEL_H
#define EM_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "loss.h"
#include "rng.h"
#include "settings.h"

#define EM_FATES	 2	 /* a frame leaves at most twice */
#define EM_REORDER_LEAST 100000u /* ns that a reordered frame is held back at least */

/* What the model must know of a frame. */
struct em_frame {
	uint64_t arrival; /* not before that of the frame before it, else taken as that */
	uint32_t bytes;	  /* from the first address on, without check sequence */
	uint32_t packet;  /* bytes behind the Ethernet header and VLAN tags */
	bool capable;	  /* IP, and its sender understands marks (ECT) [RFC 3168] */
	bool spared;	  /* never corrupted: ARP, since a wrong answer stays in a cache */
};

/* What becomes of a frame, or of its copy. */
struct em_fate {
	uint64_t due;	  /* it leaves then */
	uint64_t sent;	  /* its last bit is on the wire then; `due` without the delay */
	uint64_t flip;	  /* which bit is wrong, any number; only if `corrupt` */
	uint64_t charged; /* wire bytes of this and all earlier frames, lost ones as well */
	uint32_t period;  /* frames of one number were sent with no gap between them */
	bool held_back;	  /* later frames may overtake it */
	bool corrupt, mark, copy;
};

/* All that ever happened, or since the last reset. `frames` is the sum of dropped_queue, too_long,
 * lost, and those that leave; copies are not in it. */
struct em_counts {
	uint64_t frames, bytes;	       /* that came */
	uint64_t passed, passed_bytes; /* that leave, with copies */
	uint64_t lost, duplicated, reordered, corrupted, marked;
	uint64_t dropped_queue, too_long;
};

struct em_waiting {
	uint64_t sent;
	uint32_t bytes;
};

struct em_model {
	struct em_settings set;
	struct sim_rng rng;
	struct em_loss loss;
	struct em_counts count;
	uint64_t arrival; /* of the last frame */
	uint64_t free;	  /* when the wire is free */
	uint64_t rest;	  /* of the last division by the rate, so that no time is lost */
	uint64_t last;	  /* latest `due` of a frame that was not held back */
	uint64_t group;	  /* when the current group of coalesced frames is handed on */
	uint64_t charged;
	uint32_t period;
	/* Frames that wait for the wire or are being sent, the oldest first: a ring of 2^n. */
	struct em_waiting *waiting;
	uint32_t first, n, size;
	uint64_t waiting_bytes;
};

/* Memory for what waits is taken as needed and returned by em_model_close(). */
void em_model_open(struct em_model *m, const struct em_settings *s, uint64_t seed);
void em_model_close(struct em_model *m);

/* From now on. Frames accepted earlier keep their fates, and are not overtaken. */
void em_model_set(struct em_model *m, const struct em_settings *s);

/* A frame arrives: the number of fates, 0 if it is lost or dropped. */
int em_model_offer(struct em_model *m, const struct em_frame *f, struct em_fate fate[EM_FATES]);

/* Bytes that wait for the wire at that time, with the frame that is being sent. */
uint64_t em_model_backlog(struct em_model *m, uint64_t now);

#endif
