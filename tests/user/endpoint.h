/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoints of tests that look inside them: one process, no helper thread, what handlers were told
 * is counted. */
#ifndef TEST_USER_ENDPOINT_H
#define TEST_USER_ENDPOINT_H

#include "ep.h"

#define SOON_MS 120000 /* far beyond what anything here takes */

/* What an endpoint's handlers were told. */
struct told {
	uint64_t messages, sents, pulleds, downs;
	uint64_t failed; /* of the sents */
	int status;	 /* of the last sent, pulled or down */
	bw_peer_no peer;
	struct bw_rndv rndv; /* of the last envelope */
	uint64_t len;	     /* of the last message, or pull */
	uint64_t asked;	     /* calls of place() */
	void *place;	     /* its answer */
	bool needs_nobody;   /* what peer_needed() says */
};

/* Open with these BEOWIRE_LINKS (udp: on the loopback interface). Failure ends the test. */
struct bw_ep *endpoint_open(const char *links, struct told *told);

/* The number of `other` at ep. */
bw_peer_no endpoint_find(struct bw_ep *ep, struct bw_ep *other);

/* Both make rounds until *counter is `value`; failure ends the test. */
void endpoint_await(struct bw_ep *one, struct bw_ep *other, const uint64_t *counter,
		    uint64_t value);

#endif
