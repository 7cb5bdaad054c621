/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The watch over an interface: one endpoint per node looks, on a second packet socket and without
 * haste, at frames that nobody else takes. It refuses in the place of engines that died, so that
 * their peers learn of it at once, and counts foreign frames on our EtherType.
 */
#ifndef BW_WATCH_H
#define BW_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct bw_ep;

struct bw_watch {
	int claim;	   /* descriptor of the claim, -1: another endpoint keeps the watch */
	int fd;		   /* the socket, -1 without the claim */
	uint64_t visit_at; /* not looked at before that */
	uint64_t claim_at; /* when to try for the claim again; BW_NEVER: it is ours */
	uint64_t foreign;  /* frames without our magic */
	uint64_t refused;  /* frames refused for the dead */
};

void bw_watch_init(struct bw_watch *w);
void bw_watch_close(struct bw_watch *w);

/* Take the watch if it is free, and look at what has come. */
void bw_watch_visit(struct bw_ep *ep);

#endif
