/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pulls, both sides of them, and regions (pull.c). */
#ifndef BW_PULL_H
#define BW_PULL_H

#include "reliable.h"

/* 32 bits that nobody can foresee; never 0. */
uint32_t bw_nonce(struct bw_engine *e);
int bw_pull_submit(struct bw_engine *e, struct bw_op *op);
int bw_pull_abort(struct bw_engine *e, struct bw_op *op);
int bw_pull_expose(struct bw_engine *e, struct bw_op *op);
int bw_pull_retract(struct bw_engine *e, struct bw_op *op);
int bw_pull_forbid(struct bw_engine *e, struct bw_op *op);
int bw_pull_request(struct bw_engine *e, struct bw_peer *p, const struct bw_part_msg *m);
void bw_pull_error(struct bw_engine *e, struct bw_peer *p, const struct bw_part_msg *m);
int bw_pull_data(struct bw_engine *e, struct bw_peer *p, const struct bw_rx_frame *f,
		 const struct bw_part_bulk *b, uint32_t at);
struct bw_pull *bw_pull_get(struct bw_engine *e, uint64_t id);
/* Bytes [lo, hi) of a pull have come; each is credited once, wanted or not. */
void bw_pull_count(struct bw_engine *e, struct bw_pull *u, uint64_t lo, uint64_t hi);
void bw_pull_end(struct bw_engine *e, struct bw_pull *u, int32_t status);
void bw_pull_told(struct bw_engine *e, struct bw_pull *u);
void bw_region_end(struct bw_engine *e, struct bw_region *g, int32_t status);
void bw_serve_settle(struct bw_engine *e, struct bw_serve *s);
/* Forgotten, whatever is still to be sent of it. */
void bw_serve_end(struct bw_engine *e, struct bw_serve *s);

#endif
