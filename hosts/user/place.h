/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of several frames that go where the program wants them while they arrive: it is asked
 * with the first frame, if all that the peer sent before has been delivered.
 */
#ifndef BW_PLACE_H
#define BW_PLACE_H

#include <stdint.h>

struct bw_buffer;
struct bw_ep;
struct bw_event;
struct bw_remote;

/* The cookie of a buffer for this message; 0: the program has no place for it yet. */
uint64_t bw_place_find(struct bw_ep *ep, const struct bw_event *ev);
/* The message is whole. */
void bw_place_whole(struct bw_ep *ep, struct bw_buffer *b);
/* The peer is gone: messages of it that are not whole will never be. The engine has given their
 * buffers back. */
void bw_place_down(struct bw_ep *ep, const struct bw_remote *p, int status);

#endif
