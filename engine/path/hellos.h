/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HELLOs of a path: when the next one leaves, what it asks, and what it answers. What is made of
 * the peer's: hello.c.
 */
#ifndef BW_HELLOS_H
#define BW_HELLOS_H

#include "cookies.h"
#include "protocol.h"

#define BW_HELLO_FIRST (1 * BW_MS) /* first repetition of HELLO; doubles */
#define BW_HELLO_LAST  BW_S	   /* longest pause between HELLOs during first contact */
#define BW_HELLO_RETRY (30 * BW_S) /* longest pause between HELLOs on a path that is down */

/* Written by hello.c and contact.c; peer.c repeats them, and whoever doubts the path sets `due`. */
struct bw_hellos {
	bool due;	/* one is to be sent now */
	bool answer;	/* as an answer */
	bool repeated;	/* its answer gives no round-trip sample */
	bool named;	/* the path was named by our host, not only by a HELLO */
	uint32_t nonce; /* of our HELLOs, until one is answered; 0: not drawn yet */
	uint32_t echo;	/* nonce of the HELLO that is to be answered */
	struct bw_cookies cookies;
	uint64_t sent;	/* ns; the first one, answer or not; 0: none */
	uint64_t next;	/* ns; when it is repeated while the path is tried */
	uint64_t pause; /* ns, between the last one and the next */
	uint64_t asked; /* ns; when one was last due for a refusal that is not believed */
	uint64_t heard; /* ns; when a HELLO came by the path last, or our host named it */
	struct bw_hello_move {
		struct bw_link_addr to;
		uint32_t nonce; /* of the HELLO sent there; 0: no such address */
		uint32_t echo;	/* of the HELLO that came from there */
		uint32_t pause; /* ns, until the one after `next` */
		bool due;	/* a HELLO is to be sent there */
		uint64_t next;	/* ns; none further is sent before */
	} move; /* an address from which the peer is said to use this path now, not yet believed */
};

/* They are repeated often again. */
static inline void bw_hellos_hasten(struct bw_hellos *h, uint64_t now)
{
	h->pause = BW_HELLO_FIRST;
	h->next = now + BW_HELLO_FIRST;
}

#endif
