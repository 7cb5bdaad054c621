/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Peers that called by themselves (guest.c). */
#ifndef BW_GUEST_H
#define BW_GUEST_H

#include "reliable.h"

/* A new one: if the host does not give more memory, then in the place of another, who is gone when
 * the host has taken the event. */
struct bw_peer *bw_guest_new(struct bw_engine *e);
/* If the host has no more memory: one whom nobody needs goes, and its place is free once the host
 * has heard of its end. */
void bw_guest_make_room(struct bw_engine *e);
/* It is given up if it is of no use: our host never meant it, and nothing has come of it. */
bool bw_guest_gives_way(struct bw_engine *e, struct bw_peer *p);
/* Which of two guests to do without: the idler one of those that nobody needs; NULL: neither. */
struct bw_peer *bw_guest_idler(struct bw_engine *e, struct bw_peer *p, struct bw_peer *than);
/* Give it up. */
void bw_guest_dismiss(struct bw_engine *e, struct bw_peer *p);

#endif
