/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests of the control thread of socket programs, which runs as it is: two connections, and
 * stand-ins for the rest of the library and for libbeowire, which do as `stage` says and note there
 * what they were asked for. The thread holds the library's lock while it looks; who reads or
 * changes the stage meanwhile takes it as well.
 */
#ifndef BWS_TEST_CONTROL_STAGE_H
#define BWS_TEST_CONTROL_STAGE_H

#include "control.h"
#include "core.h"
#include "flow.h"
#include "offer.h"
#include "wait.h"

#define SOON_NS 20000000000ull /* less than an orphan's time */
#define FOUND	7	       /* the peer at any address */
#define WATCHED 4 /* the try at which it is noted what the first connection is by then */

struct stage {
	struct bws_conn conn[2];  /* those with an id are there */
	struct bws_shared shared; /* for both */
	/* Looks. */
	void (*while_looking)(void); /* once, while the second one is looked at */
	uint32_t drains;	     /* looks at the first one */
	bool settled;		     /* is the first one */
	uint32_t looks;		     /* at all of them */
	uint32_t looks_before;	     /* for has_looked() */
	bool rings;		     /* the program has some */
	uint64_t due;		     /* when it is to be looked for them again */
	uint32_t ways_back;
	/* Opening an endpoint fails by these errors, the last one first. */
	int refusals[8];
	int refused; /* of these are left */
	uint32_t tries;
	const char *why_then;
	uint32_t offers_then;
	uint32_t roused; /* times that sleepers were told of an endpoint */
	/* The peer's datagrams: one at a time. What comes of offers comes by the registrar. */
	int mail;	/* an eventfd: one is there */
	bool offered;	/* one is there by the registrar */
	bool malformed; /* it is */
	struct bws_offer came;
	uint8_t sender[16]; /* whose datagrams they are */
	_Atomic uint32_t heard;
	_Atomic uint32_t handled; /* of the registrar's */
	/* What the thread says: the last of each kind, and how many. */
	struct bws_offer told[BWS_OFFER_KINDS];
	uint32_t tells[BWS_OFFER_KINDS];
	uint32_t forgotten, returned, closed;
};

extern struct stage stage;

/* Is it so, now or before long? `what` is called with the lock held. */
bool becomes(bool (*what)(void));
/* Has it looked at all since looks_before? */
bool has_looked(void);
/* The thread runs, and has nothing to do; set-up of a group of tests. */
int stage_begin(void **state);

#endif
