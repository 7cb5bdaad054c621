/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which transport moves more while cores are short: Beowire or TCP? Measured by trying both.
 *
 * With a core to spare a thread that waits finds its message sooner by Beowire. Without one, what a
 * message costs the processor decides, and that is more by Beowire where each message is waited for
 * in a sleep (many processes with a connection each). So this process's connections change to TCP
 * and back, in turn (B T T B, B T T B, so that a load that grows counts for neither), and what they
 * move is compared. The result holds for a while, twice as long each time that it is confirmed.
 *
 * The process that connected compares, all its connections together: what they move is the result
 * of both ends, whichever is short of cores.
 */
#ifndef BWS_CHOICE_H
#define BWS_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#define BWS_CHOICE_WINDOWS  8		   /* of a comparison: four by each, or two */
#define BWS_CHOICE_SETTLE   5000000ull	   /* ns from a change to when it is measured */
#define BWS_CHOICE_PATIENCE 50000000ull	   /* the same while connections have not changed yet */
#define BWS_CHOICE_MEASURE  20000000ull	   /* ns of a window that are measured, at least */
#define BWS_CHOICE_STALE    400000000ull   /* ns; a longer one proves nothing */
#define BWS_CHOICE_LEAST    4096	   /* bytes in the first window, else nothing is compared */
#define BWS_CHOICE_HOLD	    1000000000ull  /* ns for which a result holds, at first */
#define BWS_CHOICE_LONGEST  16000000000ull /* and at most */
#define BWS_CHOICE_NEVER    UINT64_MAX

/* All zero: by Beowire, and nothing has been compared. */
struct bws_choice {
	bool by_tcp;	   /* what connections are to use now, as a result or for a comparison */
	bool result;	   /* of the last comparison: TCP moves more */
	bool measuring;	   /* the window's first part, in which connections change, is over */
	bool again;	   /* the window took too long once, and is measured anew */
	uint32_t window;   /* of the comparison under way, from 1; 0: none is */
	uint64_t next;	   /* clock, ns: when to look again while one is under way, else the first
			    * time that another one may begin */
	uint64_t began;	   /* clock, ns: the window, then what is measured in it */
	uint64_t bytes;	   /* moved by then */
	double rate[2];	   /* sums over this comparison's windows, bytes per second: Beowire, TCP */
	double before;	   /* rate of the window before */
	uint32_t tcp_wins; /* pairs of windows in which TCP moved more */
	uint64_t hold_ns;  /* for which the last result holds */
};

/* What the connections do together. */
struct bws_choice_seen {
	uint64_t bytes; /* moved in both directions since any time */
	bool changed;	/* all use what they are to use */
};

/* Is there something to be done? `crowded`: cores are short now. */
bool bws_choice_due(const struct bws_choice *c, uint64_t now, bool crowded);
/* Do it, as it is due. */
void bws_choice_look(struct bws_choice *c, uint64_t now, const struct bws_choice_seen *seen);
/* When to look again; BWS_CHOICE_NEVER: once cores are short. */
uint64_t bws_choice_next(const struct bws_choice *c, uint64_t now);

#endif
