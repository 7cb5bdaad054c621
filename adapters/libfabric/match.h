/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Matching of receives and messages, in MPI's order: a message goes to the receive posted first
 * among those that fit, a receive takes the message that arrived first among those that fit.
 *
 * Both queues are plain lists while they are short. A long one is indexed: receives with the same
 * ignore mask and the same kind of source (one peer, or any) form a class, and within a class a
 * lookup is a hash of (peer, tag without ignored bits). Classes beyond BWF_MATCH_CLASSES and the
 * lists behind them are searched linearly, which is slow, but right.
 */
#ifndef BWF_MATCH_H
#define BWF_MATCH_H

#include "lanes.h"

#define BWF_MATCH_CLASSES 4
#define BWF_MATCH_ANY	  UINT32_MAX /* source of a receive that takes messages of any peer */
#define BWF_MATCH_SHORT	  16	     /* entries up to which a list is searched, not hashed */

/* A receive that waits for a message. The caller sets the first group. */
struct bwf_posted {
	uint64_t tag;
	uint64_t ignore; /* bits of the tag that do not matter */
	uint32_t peer;	 /* or BWF_MATCH_ANY */

	uint32_t cls; /* its class; BWF_MATCH_CLASSES: none */
	uint64_t seq; /* order of posting */
	struct bwf_posted *prev, *next;
	struct bwf_link link;
};

/* A message that waits for a receive. The caller sets the first group. */
struct bwf_arrived {
	uint64_t tag;
	uint32_t peer;

	struct bwf_arrived *prev, *next;
	struct bwf_link link[BWF_MATCH_CLASSES];
};

struct bwf_match_class {
	uint64_t ignore;
	bool any;
	bool arrived_hashed; /* every arrived message is in `arrived` */
	struct bwf_lanes posted;
	struct bwf_lanes arrived;
};

struct bwf_match {
	struct bwf_posted *posted_head, *posted_tail;
	struct bwf_arrived *arrived_head, *arrived_tail;
	size_t posted_count, arrived_count;
	uint64_t seq;
	bool posted_hashed;	 /* every posted receive of a class is in its `posted` */
	size_t posted_classless; /* posted receives that belong to no class */
	uint32_t classes;	 /* used entries of cls */
	struct bwf_match_class cls[BWF_MATCH_CLASSES];
};

/* Add a receive. What arrived and fits it has been taken (bwf_match_find()), or is kept for it
 * (held.c). */
void bwf_match_post(struct bwf_match *m, struct bwf_posted *p);
void bwf_match_unpost(struct bwf_match *m, struct bwf_posted *p);
/* The receive that a message takes; it stays posted. NULL: none fits. */
struct bwf_posted *bwf_match_target(const struct bwf_match *m, uint32_t peer, uint64_t tag);

/* Add a message that no posted receive fits, or that is kept for one. */
void bwf_match_store(struct bwf_match *m, struct bwf_arrived *a);
void bwf_match_unstore(struct bwf_match *m, struct bwf_arrived *a);
/* The message that a receive takes; it stays stored. NULL: none fits. */
struct bwf_arrived *bwf_match_find(struct bwf_match *m, uint32_t peer, uint64_t tag,
				   uint64_t ignore);

/* Free the indexes. Receives and messages belong to the caller. */
void bwf_match_free(struct bwf_match *m);

#endif
