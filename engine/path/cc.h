/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Congestion control of a path: how much may be under way (window.c), and when it leaves (pace.c).
 * Packet numbers are the path's, bytes those of whole frames. Nothing here can fail.
 */
#ifndef BW_CC_H
#define BW_CC_H

#include "platform.h"

#define BW_CWND_INITIAL 65536	   /* bytes */
#define BW_CWND_MAX	(8u << 20) /* bytes */
#define BW_CWND_PACKETS 2	   /* the window never falls below so many frames */

struct bw_engine;
struct bw_path;

/* Written by window.c and pace.c; but whoever finds the window full sets limited_pn, and stripe.c
 * lowers the window of a path that fell silent. */
struct bw_cc {
	uint64_t cwnd;	     /* bytes that may be under way */
	uint64_t limited_pn; /* packets below it were under way while the window was full */
	struct {
		uint32_t alpha;	  /* smoothed share of marked packets, 1/1024, as RFC 8257 */
		uint32_t marked;  /* packets told of in the present round */
		uint16_t seen;	  /* what the peer counted last */
		uint32_t packets; /* acknowledged in the round */
		uint64_t end;	  /* packet number that ends it */
	} mark;
	uint64_t ssthresh;    /* bytes; slow start below */
	uint64_t recovery_pn; /* losses below this number belong to an answered event */
	struct {
		uint64_t cwnd, ssthresh, w_max; /* bytes; cwnd 0: none */
	} undo;					/* what was so before the last response */
	struct {
		uint64_t w_max;	 /* bytes; window before the last response */
		uint64_t w_reno; /* bytes; what plain TCP would use */
		uint64_t since;	 /* ns; when the present curve began, 0: none has; less pauses */
		uint64_t at;	 /* ns; when it was last followed */
	} cubic;
	uint32_t cubic_k;      /* 1/1024 s; from cubic.since to cubic.w_max */
	uint32_t chance_count; /* losses from the next one on; distant paths only */
	uint64_t chance_from;  /* packet number */
	struct {
		uint64_t end;	  /* packet number that ends the present round trip */
		uint64_t least;	  /* ns; the shortest of its samples */
		uint32_t samples; /* of it */
		uint32_t slow;	  /* round trips since growth slowed down */
	} delay;		  /* in slow start */
	struct {
		uint64_t at;	/* ns; before then nothing is to leave */
		uint64_t until; /* ns; when to look again for what waits for that; BW_NEVER */
		uint64_t rate;	/* bytes a millisecond carried lately; 0: not known */
		uint64_t end;	/* packet number that ends the present round */
		uint64_t since; /* ns; when it began */
		uint64_t bytes; /* acknowledged in it */
	} pace;			/* distant paths only */
};

/* Do marks matter now: are there new ones by the peer's count, or have there been some lately? */
static inline bool bw_cc_marked(const struct bw_cc *c, uint16_t count)
{
	return count != c->mark.seen || c->mark.marked || c->mark.alpha;
}

/* window.c */
/* A round trip was measured, by the acknowledgement of this packet. */
void bw_window_sample(struct bw_path *t, uint64_t rtt, uint64_t pn);
void bw_window_acked(struct bw_engine *e, struct bw_path *t, uint64_t bytes, uint64_t pn);
/* A packet is taken for lost. */
void bw_window_lost(struct bw_engine *e, struct bw_path *t, uint64_t pn);
/* The same, and it is no matter of chance. */
void bw_window_respond(struct bw_engine *e, struct bw_path *t, uint64_t pn);
/* The last response was to a loss that was none. */
void bw_window_undo(struct bw_path *t);
void bw_window_marks(struct bw_engine *e, struct bw_path *t, uint16_t marks, uint32_t packets);

/* pace.c */
/* Is the path to be let alone for now? */
bool bw_pace_holds(const struct bw_engine *e, struct bw_path *t);
/* Packets up to this one have been acknowledged, so many bytes for the first time. */
void bw_pace_acked(const struct bw_engine *e, struct bw_path *t, uint64_t bytes, uint64_t pn);
void bw_pace_sent(const struct bw_engine *e, struct bw_path *t, uint64_t bytes);

#endif
