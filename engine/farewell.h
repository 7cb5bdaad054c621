/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* REFUSE, BYE, and frames that belong to no peer (farewell.c). */
#ifndef BW_FAREWELL_H
#define BW_FAREWELL_H

#include "reliable.h"

int bw_farewell_refused(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h);
int bw_farewell_bye(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h);
void bw_farewell_refuse(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h,
			enum bw_refusal why);
/* Leave the acknowledgements that are owed for next_frame(), before the peer is dropped. */
void bw_farewell_settle(struct bw_engine *e, struct bw_peer *p);
/* Who is said to be dead may answer for so long, or for a quarter of dead_ns if that is less; he is
 * not asked more often, and what is said no more for so long is forgotten. */
#define BW_DOUBT	(2 * BW_S)
#define BW_DOUBT_PAUSE	(250 * BW_MS)
#define BW_DOUBT_FORGET (3 * BW_S)
/* The peer is dropped by us: leave a BYE for next_frame(), which tells on request what was received
 * on the path in use. */
void bw_farewell_bid_bye(struct bw_engine *e, struct bw_peer *p, bool acknowledge);
/* A frame came by a handle that is unknown: say BYE again if we took leave, else refuse it. */
void bw_farewell_unknown(struct bw_engine *e, const struct bw_rx_frame *f, const struct bw_hdr *h);
/* While closing: last acknowledgements and BYEs, or refusals if the host failed. */
bool bw_farewell_frame(struct bw_engine *e, struct bw_tx_frame *f);
/* The same: when there is one; BW_NEVER if not any more. */
uint64_t bw_farewell_deadline(const struct bw_engine *e);
/* A frame of no peer to this address, for next_frame(): to be written at once. NULL: too many wait.
 */
struct bw_stray *bw_stray_new(struct bw_engine *e, const struct bw_link_addr *to);
bool bw_stray_frame(struct bw_engine *e, struct bw_tx_frame *f);

#endif
