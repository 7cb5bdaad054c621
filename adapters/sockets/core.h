/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The library in this process: its settings, its one lock, its endpoint.
 *
 * The lock: the endpoint's, if there is one, and then a mutex of our own, both recursive. Handlers
 * of libbeowire run with the first one and take the other. Whoever has only the mutex, since there
 * is no endpoint yet, calls nothing of libbeowire.
 */
#ifndef BWS_CORE_H
#define BWS_CORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "beowire.h"

#define BWS_MS 1000000ull
#define BWS_S  1000000000ull

/* When it is measured whether TCP moves more. */
enum bws_compare {
	BWS_COMPARE_CROWDED, /* while cores are short */
	BWS_COMPARE_NEVER,
	BWS_COMPARE_ALWAYS, /* again and again, for tests */
};

struct bws_core {
	bool on;      /* the library follows connections */
	int pid;      /* of the process whose memory this is; another one: a child of vfork() */
	bool explain; /* BEOWIRE_SOCKETS_EXPLAIN: a line for each connection */
	bool within;  /* BEOWIRE_SOCKETS_WITHIN: connections within a node as well */
	bool rings_for_files;	  /* BEOWIRE_SOCKETS_IO_URING: not for connections */
	enum bws_compare compare; /* BEOWIRE_SOCKETS_COMPARE */
	const char *stats;	  /* BEOWIRE_SOCKETS_STATS: a directory, or NULL */
	uint64_t after;		  /* BEOWIRE_SOCKETS_AFTER: bytes before a connection is offered */
	_Atomic(struct bw_ep *) ep;
	bool ep_failed; /* there is none, and never will be */
	/* Some connection is about to leave TCP: who waits makes progress, so that it is soon. */
	_Atomic bool pairing;
	const char *pinned; /* no connection of this process may leave TCP: why */
	/* No connection leaves TCP now: fork() or exec is under way, or the end. */
	_Atomic int held;
	/* Datagrams and HELLOs that were dropped: malformed, or not from who they say. */
	_Atomic uint64_t offers_refused;
};

extern struct bws_core bws;

static inline void bws_offer_refuse(void)
{
	atomic_fetch_add(&bws.offers_refused, 1);
}

/* A thread that has it is not cancelled. */
void bws_lock(void);
void bws_unlock(void);
/* Does this thread have it? */
bool bws_core_is_inside(void);

/* In a child of fork() nobody holds any lock. */
void bws_core_in_child(void);

/* Progress, if there is an endpoint; no lock held. What libbeowire had no room for is tried
 * again. */
int bws_progress(void);

#endif
