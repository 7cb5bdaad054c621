/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* State and frame size of a path (path.c). */
#ifndef BW_PATH_H
#define BW_PATH_H

#include "reliable.h"

/* Memory for a path of this number, not in use yet; NULL if the pool is empty. */
struct bw_path *bw_path_new(struct bw_engine *e, struct bw_peer *p, uint8_t no);
void bw_path_init(struct bw_engine *e, struct bw_path *t, const struct bw_link_addr *to);
void bw_path_up(struct bw_engine *e, struct bw_peer *p, struct bw_path *t);
/* What was sent on this path was answered on it. */
void bw_path_answered(struct bw_engine *e, struct bw_peer *p, struct bw_path *t);
void bw_path_choose(struct bw_engine *e, struct bw_peer *p);
/* An answer to the first HELLO, or to a later one, has come. */
void bw_path_guess(const struct bw_engine *e, struct bw_path *t);
uint64_t bw_path_pto(const struct bw_engine *e, const struct bw_path *t);
/* pmtu.h, and whoever waits is told. */
void bw_path_probe_acked(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint32_t size);
void bw_path_probe_lost(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint32_t size,
			bool later);
void bw_path_size_lost(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint32_t size);

#endif
