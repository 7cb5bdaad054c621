/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ranges of a peer's messages and serves that are to be sent again (again.c): each message or serve
 * has a list of its own, ascending, and those that have some wait in turn. What a peer leaves
 * unacknowledged decides how many there are; to find a range its place takes few steps whatever
 * others wait.
 */
#ifndef BW_AGAIN_H
#define BW_AGAIN_H

#include "reliable.h"

/* To the end of the queue, or among the ranges of its message or serve that wait already: a
 * receiver that remembers as many ranges as it can takes only what touches one, as the lowest that
 * is missing does. `r` is in no list. */
void bw_again_add(struct bw_engine *e, struct bw_peer *p, struct bw_record *r);
/* The record does not wait any more, if it did. The caller takes it out of its list afterwards. */
void bw_again_leave(struct bw_record *r);
/* The range whose turn it is, or NULL. */
struct bw_record *bw_again_first(const struct bw_peer *p);
/* The ranges of a message or serve that wait; none: they wait for nothing. */
struct bw_again *bw_again_of(const struct bw_record *r);

#endif
