/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Peers that were lost and may come again. A lost peer stays lost for a program that says nothing
 * else, since what was under way to it is in doubt. A program that has settled that by itself
 * forgets the peer, and both begin anew by the same address.
 *
 * Nothing of the old conversation reaches the new one: the engine has ended that (PEER_DOWN comes
 * last), and the new one has another handle and another token, without which frames are refused
 * (docs/wire-protocol.md, "Another handle"). What has not been told to the program yet of messages
 * to the old one refers to it, and is waited for.
 */
#include <errno.h>

#include "ep.h"

bool bw_remote_in_use(const struct bw_remote *p)
{
	return p->handle || p->local || p->kernel || p->sent || p->arriving || p->copied ||
	       p->gone || p->meeting;
}

int bw_peer_forget(struct bw_ep *ep, const struct bw_addr *addr)
{
	struct bw_addr_fields a;
	struct bw_remote *p;
	int error = bw_addr_unpack(addr, &a);

	if (error)
		return error;
	bw_lock_take(&ep->lock);
	p = bw_remote_find(&ep->remotes, a.node, a.engine, a.inc);
	if (!p) {
		error = -ENOENT;
	} else if (!p->status || bw_remote_in_use(p)) {
		error = -EBUSY;
	} else {
		bw_remote_ghost(&ep->remotes, p, false);
		ep->remotes.named -= p->complete;
		bw_remote_forget(&ep->remotes, p);
	}
	bw_lock_release(&ep->lock);
	return error;
}
