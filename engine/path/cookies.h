/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cookies that a path's HELLOs show: several, as a CHALLENGE can be somebody else's. Whoever
 * tells us wrong ones thus does not make us forget the right one.
 */
#ifndef BW_COOKIES_H
#define BW_COOKIES_H

#include "platform.h"

#define BW_COOKIES	   2 /* remembered */
#define BW_COOKIES_AT_ONCE 4 /* HELLOs that challenges cause between two repetitions, at most */

struct bw_cookies {
	uint32_t known : 2;   /* so many, from the first place on */
	uint32_t oldest : 1;  /* place that another one gets when all are taken */
	uint32_t shown : 1;   /* place of the one that the last HELLO showed */
	uint32_t waiting : 2; /* a bit for each that is to be shown at once */
	uint32_t tried : 2;   /* a bit for each that was shown since HELLO was repeated */
	uint32_t at_once : 3; /* HELLOs that challenges caused since then */
	uint32_t genuine : 1; /* they were told by who has the cluster's key */
	uint64_t of[BW_COOKIES];
} __attribute__((packed, aligned(4)));

/* Another one was told. Is it to be shown at once? */
static inline bool bw_cookies_add(struct bw_cookies *c, uint64_t cookie)
{
	uint32_t i = 0;

	while (i < c->known && c->of[i] != cookie)
		i++;
	if (i == BW_COOKIES) {
		i = c->oldest;
		c->oldest = !i;
		c->tried &= ~(1u << i) & 3;
	} else if (i == c->known) {
		c->known = (i + 1) & 3;
	}
	c->of[i] = cookie;
	if ((c->tried >> i & 1) || c->at_once == BW_COOKIES_AT_ONCE)
		return false;
	c->at_once = (c->at_once + !(c->waiting >> i & 1)) & 7;
	c->waiting |= (1u << i) & 3;
	return true;
}

/* The one that the next HELLO shows: they take turns, and one that waits is first. 0: none. */
static inline uint64_t bw_cookies_next(struct bw_cookies *c)
{
	uint32_t i = !c->shown;

	if (!c->known)
		return 0;
	if (i >= c->known || (c->waiting && !(c->waiting >> i & 1)))
		i = !i;
	c->shown = i & 1;
	c->waiting &= ~(1u << i) & 3;
	c->tried |= (1u << i) & 3;
	return c->of[i];
}

/* The HELLO that showed one did not leave. */
static inline void bw_cookies_unshown(struct bw_cookies *c)
{
	if (c->known)
		c->waiting |= (1u << c->shown) & 3;
}

/* HELLO is repeated: what was in vain may have been lost. */
static inline void bw_cookies_again(struct bw_cookies *c)
{
	c->tried = 0;
	c->at_once = 0;
}

#endif
