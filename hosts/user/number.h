/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Engine numbers of a node: each is held by the socket that its endpoint's local link listens on
 * (bw_local_claim()).
 */
#ifndef BW_NUMBER_H
#define BW_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

struct bw_number {
	int claim;     /* descriptor, for the local link to listen on */
	bool borrowed; /* others hold the number's name: the claim has another */
};

/* Claim a free engine number for this incarnation, starting at a random one. 0, or a negative
 * errno. No node has so many endpoints that all are taken: whoever takes all is stepped around. */
int bw_number_claim(uint32_t random, uint32_t incarnation, uint16_t *engine,
		    struct bw_number *number);
/* The same for a number that is ours, whoever has taken its name. */
int bw_number_own(uint16_t engine, uint32_t incarnation, struct bw_number *number);

/* Does a living process hold this engine number? True when that cannot be found out: nobody may be
 * called dead without proof. */
bool bw_number_held(uint16_t engine);

#endif
