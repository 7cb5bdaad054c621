/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How large a frame passes on a path: searched for by frames of padding, and doubted when large
 * ones vanish (RFC 8899). Sizes are bytes of whole frames; nothing here can fail.
 */
#ifndef BW_PMTU_H
#define BW_PMTU_H

#include "platform.h"

#define BW_MTU_BASE    1280 /* bytes; frame size trusted before probing (as RFC 8899 5.1.2) */
#define BW_PROBE_TRIES 3    /* lost probes of one size before it counts as not passing */
#define BW_PROBE_GRAIN 128  /* bytes; the search for a path's frame size ends below this */
#define BW_BLACK_HOLE  10   /* large frames lost in a row before the size is doubted */

/* Written by pmtu.c only, but: hello.c sets `most`, send.c `flying`, and who knows that losses or
 * silence had another cause clears `lost` or `held`. */
struct bw_pmtu {
	uint32_t mtu;	  /* passes */
	uint32_t probe;	  /* to be tried, 0: none */
	uint32_t lost;	  /* large frames lost since one of their size was acknowledged */
	bool held;	  /* the last probe met silence: none before the path answers */
	bool flying;	  /* a probe is under way */
	bool small_acked; /* a frame shorter than `least` was acknowledged meanwhile */
	uint32_t least;	  /* the shortest of those lost */
	uint32_t fail;	  /* the smallest size known or assumed not to pass */
	uint32_t tries;	  /* probes of this size that were lost */
	uint32_t most;	  /* what the peer can receive here, from its HELLO */
};

/* The search begins anew: no more than this can be handled by both ends. */
void bw_pmtu_begin(struct bw_pmtu *m, uint32_t ceiling);
/* A probe of this size was acknowledged, or is taken for lost; `later`: a later packet was
 * acknowledged, so that it was not mere silence. True: the search has come further. */
bool bw_pmtu_probe_acked(struct bw_pmtu *m, uint32_t size);
bool bw_pmtu_probe_lost(struct bw_pmtu *m, uint32_t size, bool later);
/* The same of any other frame. True: its size is doubted, the search begins anew. */
void bw_pmtu_acked(struct bw_pmtu *m, uint32_t size);
bool bw_pmtu_lost(struct bw_pmtu *m, uint32_t size);

#endif
