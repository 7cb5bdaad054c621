/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What callers of this project count among an endpoint's counters (stats.h). */
#ifndef BW_COUNT_H
#define BW_COUNT_H

#include "beowire.h"

enum bw_count {
	BW_COUNT_UNREAD_DROPPED, /* messages dropped unread, whose peers nobody has named */
	BW_COUNT_NAME_DROPS,	 /* questions for an endpoint's name that were none */
	BW_COUNT_KEY_GUESSES,	 /* requests of peers with keys of memory that nobody has */
	BW_COUNT_WRITES_REFUSED, /* writes and atomics of peers that came to nothing */
	BW_COUNT_PEERS_GIVEN_UP, /* peers that asked for too much, or took too little */
	BW_COUNT_MESSAGES_LOST,	 /* messages, for want of memory or as their peers are given up */
	BW_COUNT_MALFORMED,	 /* messages between providers that are of no form that there is */
	BW_COUNTS,
};

/* One more. From any thread, also without the lock. */
void bw_count_event(struct bw_ep *ep, enum bw_count what);

#endif
