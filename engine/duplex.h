/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How much of what comes in does so while own data are under way. A program that exchanges with its
 * neighbours does both at once, one that deals out work and then gathers results one after the
 * other; what a faster network brings it depends on which.
 *
 * A received byte counts as at once with a sent one that is not acknowledged yet; each sent byte
 * stands for one received byte at most. An answer brings the acknowledgement of what it answers,
 * which is taken first: a ping-pong counts nothing.
 */
#ifndef BW_DUPLEX_H
#define BW_DUPLEX_H

#include "reliable.h"

/* A packet of `len` bytes leaves by the path. */
static inline void bw_duplex_left(struct bw_engine *e, struct bw_path *t, uint64_t len)
{
	t->inflight += len;
	e->duplex.inflight += len;
}

/* `len` bytes of the path's packets are under way no more. */
static inline void bw_duplex_landed(struct bw_engine *e, struct bw_path *t, uint64_t len)
{
	t->inflight -= len;
	e->duplex.inflight -= len;
	if (!e->duplex.inflight)
		e->duplex.bytes = e->duplex.messages = 0;
}

/* Payload leaves for the first time. */
static inline void bw_duplex_sent(struct bw_engine *e, uint64_t len)
{
	e->count.tx_payload += len;
	e->duplex.bytes += len;
}

/* The last of a message leaves for the first time. */
static inline void bw_duplex_sent_message(struct bw_engine *e)
{
	e->count.tx_messages++;
	e->duplex.messages++;
}

/* Payload has come for the first time. */
static inline void bw_duplex_received(struct bw_engine *e, uint64_t len)
{
	uint64_t both = bw_min_u64(len, e->duplex.bytes);

	e->count.rx_payload += len;
	e->count.duplex_payload += both;
	e->duplex.bytes -= both;
}

/* A message is handed over. */
static inline void bw_duplex_received_message(struct bw_engine *e)
{
	e->count.rx_messages++;
	if (e->duplex.messages) {
		e->count.duplex_messages++;
		e->duplex.messages--;
	}
}

#endif
