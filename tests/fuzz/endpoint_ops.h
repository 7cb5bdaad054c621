/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs of the endpoints of endpoint_world.h: what they ask of libbeowire, what they are
 * told, and whether the two fit.
 */
#ifndef ENDPOINT_OPS_H
#define ENDPOINT_OPS_H

#include "endpoint_world.h"

/* Whether nothing but loss, doubling and reordering happens: then all that is told is checked. */
extern bool ops_honest;
/* What programs do with messages: their places, and when they fetch. */
extern uint8_t ops_habits;

extern const struct bw_handlers ops_handlers;

void ops_begin(void);
/* Side i has another incarnation from now on. */
void ops_opened(int i);
/* All of side i is over, and nobody hears of its operations. */
void ops_closed(int i);
void ops_end(void);

/* Side s does this, to side t where there is one. */
void ops_send(struct fuzz_input *in, int s, int t);
/* The same to peers by addresses that nobody has any more, on t's node. */
void ops_strangers(struct fuzz_input *in, int s, int t);
void ops_read(struct fuzz_input *in, int s, int t);
/* Fetch a message that is announced; false: there is none, or it cannot be fetched now. */
bool ops_pull(struct fuzz_input *in, int s);
void ops_cancel(struct fuzz_input *in, int s);
void ops_misc(struct fuzz_input *in, int s, int t);

/* Operations that have not ended, and envelopes that nobody has fetched. */
uint32_t ops_pending(void);
/* What failed was allowed to. */
void ops_check(void);

/* endpoint_check.c: what an endpoint counts is what there is; */
void check_endpoint(struct bw_ep *ep);
/* and that is nothing, as nothing is under way. */
void check_quiet(struct bw_ep *ep);

#endif
