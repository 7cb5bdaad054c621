/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Peers by deadline (timer.c); keys may lag behind deadlines that moved later. */
#ifndef BW_TIMER_H
#define BW_TIMER_H

#include "reliable.h"

void bw_timer_set(struct bw_engine *e, struct bw_peer *p, uint64_t deadline);
void bw_timer_remove(struct bw_engine *e, struct bw_peer *p);
/* The first deadline, or a time before it where many keys lag behind. */
uint64_t bw_timer_next(struct bw_engine *e);
/* A peer whose deadline has come, taken out of the heap; NULL if there is none, or none was found
 * among the first. */
struct bw_peer *bw_timer_due(struct bw_engine *e, uint64_t now);
/* What is wrong in the heap, or NULL (check.c). Goes over all of it. */
const char *bw_timer_check(const struct bw_engine *e);

#endif
