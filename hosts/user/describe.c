/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is said of a peer: by which link it is sent to, and, for people, who it is. */
#include <stdio.h>

#include "ep.h"

static const char *bw_remote_link(struct bw_ep *ep, const struct bw_remote *p)
{
	uint64_t srtt;
	uint32_t mtu;
	uint8_t number;

	if (p->status)
		return NULL; /* it has none any more */
	if (p->local)
		return "local";
	if (bw_remote_by_kernel(p))
		return p->by ? "kernel" : NULL;
	if (p->handle && !bw_reliable_path(ep->engine, p->handle, &srtt, &mtu, &number) &&
	    number < BW_LINK_NUMBERS)
		return number < BW_LINK_NO_UDP ? "packet" : "udp";
	return NULL;
}

const char *bw_peer_link(struct bw_ep *ep, bw_peer_no peer)
{
	const struct bw_remote *p;
	const char *link;

	bw_lock_take(&ep->lock);
	p = bw_remote_get(&ep->remotes, peer);
	link = p ? bw_remote_link(ep, p) : NULL;
	bw_lock_release(&ep->lock);
	return link;
}

const char *bw_peer_describe(struct bw_ep *ep, bw_peer_no peer)
{
	static _Thread_local char text[160];
	const char *link, *host = "unknown host";
	struct bw_remote *p;

	bw_lock_take(&ep->lock);
	p = bw_remote_get(&ep->remotes, peer);
	if (!p) {
		bw_lock_release(&ep->lock);
		return "no such peer";
	}
	if (p->kernel)
		bw_kernel_name(ep, p);
	link = bw_remote_link(ep, p);
	if (p->name[0])
		host = p->name;
	else if (p->addr.node == ep->self.node)
		host = ep->host;
	if (!link && !p->status)
		link = "not connected";
	snprintf(text, sizeof(text), "%s (node %016llx) engine %u%s%s", host,
		 (unsigned long long)p->addr.node, p->addr.engine, link ? ", " : "",
		 link ? link : "");
	bw_lock_release(&ep->lock);
	return text;
}
