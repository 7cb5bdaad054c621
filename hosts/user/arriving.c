/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages of which a part has arrived; see arriving.h. */
#include "arriving.h"
#include "ep.h"

#define BW_ARRIVING_PAUSE (100 * BW_MS) /* between two looks at all peers */

static void bw_arriving_moves(const struct bw_ep *ep, struct bw_remote *p)
{
	p->arriving_at = ep->now;
	p->arriving_refused = 0;
}

uint64_t bw_arriving_get(struct bw_ep *ep, uint32_t peer, uint64_t n, bool next)
{
	struct bw_remote *p = bw_remote_by_handle(&ep->remotes, peer);
	struct bw_buffer *b;

	if (ep->arriving + n > BW_ARRIVING_MAX + (next ? BW_ARRIVING_NEXT : 0)) {
		ep->after |= BW_AFTER_RELIEVE;
		if (p && next)
			p->arriving_refused = ep->now;
		return 0;
	}
	b = bw_buffer_get(&ep->buffers, n);
	if (!b)
		return 0;
	b->use = BW_BUFFER_ARRIVING;
	n = bw_buffer_bytes(b);
	b->peer = p ? p->number : BW_PEER_NONE;
	b->next_in_flow = next;
	ep->arriving += n;
	if (p) {
		p->arriving += n;
		p->arriving_next += next;
		bw_arriving_moves(ep, p);
	}
	return bw_buffer_cookie(b);
}

void bw_arriving_put(struct bw_ep *ep, struct bw_buffer *b)
{
	struct bw_remote *p = bw_remote_get(&ep->remotes, b->peer);
	uint32_t n = bw_buffer_bytes(b);

	ep->arriving -= n;
	if (p) {
		p->arriving -= n;
		p->arriving_next -= b->next_in_flow;
		bw_arriving_moves(ep, p);
	}
	bw_buffer_put(&ep->buffers, b);
}

static void bw_arriving_give_up(struct bw_ep *ep, const struct bw_remote *p)
{
	struct bw_op op = {.type = BW_OP_DISCONNECT, .peer = p->handle};

	ep->stale_peers++;
	/* Who is nobody's cannot fill what people read either. */
	bw_log(p->complete ? BW_LOG_WARN : BW_LOG_INFO,
	       "%s engine %u is given up: messages of %llu bytes that it began stand still, and "
	       "all room for such is taken",
	       p->name[0] ? p->name : "a peer", p->addr.engine, (unsigned long long)p->arriving);
	bw_host_submit(ep, &op);
}

/* Is there no room for what its messages wait for? Whoever wants room sends again, at the latest
 * BW_PTO_MAX (1 s) later: who has long not done so does not want any more. */
static bool bw_arriving_held_up(const struct bw_ep *ep, const struct bw_remote *p)
{
	return p->arriving_refused && ep->now - p->arriving_refused < BW_ARRIVING_STALE;
}

/* Does it keep its messages from going on? Not if there was no room for the next one, unless it has
 * begun another that waits for none: that it could end. */
static bool bw_arriving_stands_still(const struct bw_ep *ep, const struct bw_remote *p)
{
	return p->arriving && ep->now - p->arriving_at >= BW_ARRIVING_STALE &&
	       (!bw_arriving_held_up(ep, p) || p->arriving_next);
}

void bw_arriving_relieve(struct bw_ep *ep)
{
	ep->after &= (uint8_t)~BW_AFTER_RELIEVE;
	if (ep->now < ep->relief_at)
		return;
	ep->relief_at = ep->now + BW_ARRIVING_PAUSE;
	for (uint32_t i = 0; i < ep->remotes.count; i++) {
		const struct bw_remote *p = ep->remotes.at[i];

		if (p && bw_arriving_stands_still(ep, p))
			bw_arriving_give_up(ep, p);
	}
}
