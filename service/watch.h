/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The watch over an interface: refuses in the place of endpoints that have ended, so that their
 * peers learn of it at once. It sees frames for those only, by what the gate's map says of them.
 */
#ifndef BS_WATCH_H
#define BS_WATCH_H

#include <stdint.h>

#include "gate.h"

struct bs_watch {
	int fd;			   /* a packet socket at the interface itself; -1: none */
	uint16_t ended[BS_GRAVES]; /* last */
	uint32_t graves;	   /* ever */
	uint64_t since;		   /* the second that `refused` counts */
	uint32_t refused;
	uint64_t told; /* refusals, ever */
};

/* Once, before system calls are given up. */
void bs_watch_learn_name(void);

/* From a thread in the interface's namespace. 0 or a negative errno. */
int bs_watch_open(struct bs_watch *w, const struct bs_gate *g, uint32_t interface,
		  uint16_t ethertype);
void bs_watch_close(struct bs_watch *w);

/* This endpoint has ended: its rights were taken from it just now. */
void bs_watch_bury(struct bs_watch *w, const struct bs_gate *g, uint16_t engine);

/* Refuse what waits. key: that of bw_key_of_refusals(); NULL: none. */
void bs_watch_visit(struct bs_watch *w, const struct bs_gate *g, const uint8_t mac[6],
		    uint16_t ethertype, const uint8_t *key, uint64_t now);

#endif
