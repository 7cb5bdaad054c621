/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * In place of libbeowire for what fuzzes the libfabric provider: it takes every call, remembers
 * what is under way, and ends it when the script says so. It promises what beowire.h promises and
 * aborts when the provider breaks its part of that.
 */
#ifndef FAKE_BEOWIRE_H
#define FAKE_BEOWIRE_H

#include "beowire.h"
#include "fuzz.h"

#define FAKE_PEERS  6
#define FAKE_TOKENS 4
#define FAKE_OPS    256 /* under way at a time */

/* How calls go from now on; set of bits. */
enum fake_mood {
	FAKE_FULL = 1,	  /* no room: -EAGAIN */
	FAKE_LONG = 2,	  /* sends stay pending */
	FAKE_EARLY = 4,	  /* long messages are worth fetching early */
	FAKE_REFUSE = 8,  /* every call fails */
	FAKE_COPIES = 16, /* long messages are copied, not lent */
};

/* The one endpoint; NULL: not open. */
extern struct bw_ep *fake_ep;

void fake_mood(unsigned mood);
bool fake_down(bw_peer_no peer);
/* A token that the provider wrote into a request lately. */
uint64_t fake_token(unsigned which);
/* Deliver a message: its bytes lie in memory of exactly their length, which is gone afterwards. */
void fake_deliver(const struct bw_message *m);
/* Is this the memory of an operation under way? */
bool fake_uses(const void *buf);
/* End one operation under way, by its place among them: what is fetched is there if status is 0. */
void fake_end(unsigned which, int status);
/* End all there are, and those that come of it. */
void fake_end_all(int status);
/* The peer is gone: its operations end, then the provider is told. */
void fake_lose(bw_peer_no peer, int status);

#endif
