/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames that carry on where the one before ends (row.c). */
#ifndef BW_ROW_H
#define BW_ROW_H

#include "reliable.h"

/* Those behind f[0], which was taken just now, that do: how many of n - 1 were taken. */
uint32_t bw_row_received(struct bw_engine *e, const struct bw_rx_frame *f, uint32_t n);
/* bw_protocol.next_alike() */
bool bw_row_next(struct bw_engine *e, struct bw_tx_frame *f);

#endif
