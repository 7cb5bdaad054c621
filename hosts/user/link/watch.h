/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The watch over an interface: one endpoint of each user also receives frames that nobody else
 * takes. It refuses in the place of engines that died, so that their peers learn of it at once, and
 * counts foreign frames on our EtherType.
 */
#ifndef BW_WATCH_H
#define BW_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "link/filter.h"

#define BW_KERNEL_PROC "/proc/net/beowire" /* is there while the kernel module is loaded */

struct bw_ep;
struct bw_rx_frame;

struct bw_watch {
	int claim;	    /* descriptor of the claim, -1: another endpoint keeps the watch */
	uint64_t claim_at;  /* when to try for the claim again; BW_NEVER: it is ours */
	uint64_t drain_at;  /* who asks for our claim is turned away by then, also while idle: none
			     * of them may find no room to ask */
	uint64_t forget_at; /* when to ask again whether the engines in alive[] live */
	uint16_t alive[BW_FILTER_ALIVE]; /* engines of this node that the filter leaves out */
	unsigned int n;			 /* of these */
	bool kernel;			 /* the kernel module is loaded */
	bool changed;			 /* alive[] is not what the filter has */
	uint8_t key[16];		 /* of refusals, where there is a cluster key */
	uint64_t foreign;		 /* frames without our magic */
	uint64_t refused;		 /* frames refused for the dead */
};

void bw_watch_init(struct bw_watch *w);
/* In a child of fork() the claim is `inherited`: the parent goes on with it. */
void bw_watch_close(struct bw_watch *w, bool inherited);

/* Now and then: take the watch if it is free, keep the filter up to date. */
void bw_watch_visit(struct bw_ep *ep);

/* A frame that is not for us. */
void bw_watch_frame(struct bw_ep *ep, const struct bw_rx_frame *f);

#endif
