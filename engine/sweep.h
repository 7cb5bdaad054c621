/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What concerns all peers at once reaches them in pieces (sweep.c). */
#ifndef BW_SWEEP_H
#define BW_SWEEP_H

#include "reliable.h"

/* PRESSURE, or its end, is to be told. The first piece is done at once. */
void bw_sweep_begin(struct bw_engine *e);
/* The next piece. */
void bw_sweep_piece(struct bw_engine *e);
/* A peer has come to the end of engine.peers, or is about to leave it. */
void bw_sweep_join(struct bw_engine *e);
void bw_sweep_leave(struct bw_engine *e, const struct bw_peer *p);

#endif
