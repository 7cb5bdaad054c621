/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies of long messages. A long message stays in the program's memory until its receiver has
 * pulled it, so that a program that sends one after another waits for each peer in turn. Where the
 * way to a peer is much slower than memory, a copy is kept instead and the send is done, as with a
 * socket's send buffer: one fast node then serves many slow ones at once [D3]. All with the
 * endpoint's lock held.
 */
#ifndef BW_COPIES_H
#define BW_COPIES_H

#include "cost.h"

struct bw_ep;
struct bw_remote;

struct bw_copies {
	uint64_t bytes;	     /* of copies whose receivers have not pulled them */
	uint64_t taken;	     /* copies, ever */
	struct bw_lone lone; /* messages that wait for their pull, copies among them */
};

/* Is a message of len bytes to this peer to be copied? */
bool bw_copies_pay(const struct bw_ep *ep, const struct bw_remote *p, uint64_t len);
/* Make b's data, which are the program's, a copy of its own, unless there is no memory: `owned`. */
void bw_copies_take(struct bw_ep *ep, struct bw_remote *p, struct bw_buffer *b);
void bw_copies_free(struct bw_ep *ep, struct bw_remote *p, struct bw_buffer *b);
/* A message has been exposed; its region has ended. The latter frees a copy. */
void bw_copies_exposed(struct bw_ep *ep, const struct bw_buffer *b);
void bw_copies_ended(struct bw_ep *ep, struct bw_buffer *b, int status);
/* When the endpoint is closed: the copies that nobody has pulled. */
void bw_copies_free_all(struct bw_ep *ep);

#endif
