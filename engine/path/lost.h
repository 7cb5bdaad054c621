/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets of a path that were taken for lost lately: an acknowledgement of one of them tells that
 * it was only late. Nothing here can fail.
 */
#ifndef BW_LOST_H
#define BW_LOST_H

#include "list.h"

#define BW_LOST_RING 16 /* packets that are remembered for a while */

/* The ring is written by lost.c; ack.c and loss.c clear its places, loss.c the whole. */
struct bw_lost {
	uint32_t n;	      /* ever written to the ring; 0: nothing is in it */
	uint32_t retransmits; /* parts sent again by the path, ever; written by send.c */
	struct bw_list late;  /* bw_record, late.c: copies that own nothing */
	struct {
		uint64_t pn;	   /* packet number, 0: none */
		uint64_t sent_ns;  /* when it left */
		uint64_t since_ns; /* when it was taken for lost, or a silence ended */
	} ring[BW_LOST_RING];
};

/* A packet is taken for lost. Returns the number of one that is forgotten for it, 0: none. */
uint64_t bw_lost_add(struct bw_lost *l, uint64_t pn, uint64_t sent_ns, uint64_t now);
/* The path was silent since then, and has answered: those that were taken for lost meanwhile may be
 * late only. */
void bw_lost_heard(struct bw_lost *l, uint64_t since, uint64_t now);

#endif
