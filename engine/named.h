/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whom the host names by addresses (named.c). */
#ifndef BW_NAMED_H
#define BW_NAMED_H

#include "reliable.h"

/* Does our host know an address of the peer's, rather than the peer our address? */
bool bw_named(const struct bw_peer *p);
/* Has this guest been heard of only at other addresses than those that the host names now? */
bool bw_named_elsewhere(const struct bw_engine *e, struct bw_peer *p, const struct bw_op *op);
/* The host has named the peer, `doubt`: which has been heard of elsewhere alone. 0 or -EAGAIN. */
int bw_named_begin(struct bw_engine *e, struct bw_peer *p, const struct bw_op *op, bool doubt);
/* Is somebody at a named address waited for, so that a caller from here is not the peer? */
bool bw_named_awaited(const struct bw_engine *e, struct bw_peer *p,
		      const struct bw_link_addr *from);
/* An echo has come by this path. Does it confirm the peer? */
bool bw_named_confirms(struct bw_peer *p, const struct bw_path *t);
/* Is the peer in doubt, and who speaks from here at no address that the host has named? Such a
 * guest can end nothing but itself. */
bool bw_named_only_guest(struct bw_peer *p, const struct bw_link_addr *from);
/* Who answers at the address of this path knows another conversation than that of the guest in
 * doubt: the guest goes, and the host's handle is that of who is there. The negative of enum
 * bw_drop. */
int bw_named_contradicted(struct bw_engine *e, struct bw_peer *p);
/* Nobody has answered at the named addresses of a peer in doubt: it may have moved. */
void bw_named_trust(struct bw_engine *e, struct bw_peer *p);

#endif
