/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Claims: names that one process of a network namespace can hold at a time, and that vanish with it
 * however it ends. They are abstract unix sockets, so nothing is left in any file system.
 */
#ifndef BW_CLAIM_H
#define BW_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

/* Bind an abstract name (without its leading zero byte, at most 106 bytes). A descriptor, or
 * -EADDRINUSE if another process holds it, or another negative errno. */
int bw_claim_name(const char *name);

/* Claim a free engine number, starting at a random one. A descriptor, or -EADDRINUSE when all are
 * taken, or another negative errno. */
int bw_claim_engine(uint32_t random, uint16_t *engine);

/* Does a living process hold this engine number? True when that cannot be found out: nobody may be
 * called dead without proof. */
bool bw_claim_engine_held(uint16_t engine);

#endif
