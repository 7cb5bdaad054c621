/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Proof of a caller's address before anything is kept of him (cookie.c). */
#ifndef BW_COOKIE_H
#define BW_COOKIE_H

#include "reliable.h"

/* Does the HELLO show what only who receives at its address was told? */
bool bw_cookie_shown(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hello *b);
/* Tell it to whoever is there. 0, or the negative reason why not. */
int bw_cookie_challenge(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hello *b);
/* A CHALLENGE of ours. */
int bw_cookie_challenged(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h);

#endif
