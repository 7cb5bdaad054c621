/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* HELLO: first contact and new paths (hello.c). */
#ifndef BW_HELLO_H
#define BW_HELLO_H

#include "reliable.h"

int bw_hello_received(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h);
bool bw_hello_frame(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f);

#endif
