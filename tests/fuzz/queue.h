/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What holds of the bytes that a socket program's connection keeps, whatever its peer says. */
#ifndef FUZZ_QUEUE_H
#define FUZZ_QUEUE_H

#include "../../adapters/sockets/conn.h"
#include "fuzz.h"

/* How many there are, one after another. */
static inline uint64_t fuzz_bytes_of(const struct bws_queue *q)
{
	uint64_t n = 0;

	for (const struct bws_piece *p = q->first; p; p = p->next) {
		if (p->next && p->off + p->len != p->next->off)
			fuzz_bad("a hole between two pieces");
		if (p->len > p->room || p->done > p->len || p->given > p->len)
			fuzz_bad("a piece beyond its end");
		if (p->room > BWS_PIECE)
			fuzz_bad("a piece beyond the longest");
		n += p->len - p->done;
	}
	return n;
}

#endif
