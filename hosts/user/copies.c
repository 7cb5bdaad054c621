/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Copies of long messages: when they pay, and their memory. */
#include "copies.h"

#include <stdlib.h>
#include <string.h>

#include "ep.h"

/* Bytes for one peer: as much as Linux lets a TCP socket keep by default (tcp_wmem,
 * Documentation/networking/ip-sysctl.rst). */
#define BW_COPIES_EACH (4u << 20)

bool bw_copies_pay(const struct bw_ep *ep, const struct bw_remote *p, uint64_t len)
{
	/* What is long for a peer under pressure alone is to be held back. */
	return bw_cost_is_high(p->taken_cost) && len > ep->eager_max &&
	       p->copied + len <= BW_COPIES_EACH && ep->copies.bytes + len <= ep->env.send_copies;
}

void bw_copies_take(struct bw_ep *ep, struct bw_remote *p, struct bw_buffer *b)
{
	uint8_t *copy = malloc(b->len);

	if (!copy)
		return;
	memcpy(copy, b->data, b->len);
	b->data = copy;
	b->owned = true;
	ep->copies.bytes += b->len;
	ep->copies.taken++;
	p->copied += (uint32_t)b->len;
}

void bw_copies_free(struct bw_ep *ep, struct bw_remote *p, struct bw_buffer *b)
{
	ep->copies.bytes -= b->len;
	p->copied -= (uint32_t)b->len;
	b->owned = false;
	free(b->data);
}

void bw_copies_exposed(struct bw_ep *ep, const struct bw_buffer *b)
{
	bw_lone_begin(&ep->copies.lone, b, ep->now);
}

void bw_copies_ended(struct bw_ep *ep, struct bw_buffer *b, int status)
{
	struct bw_remote *p = bw_remote_get(&ep->remotes, b->peer);
	uint64_t took_ns = bw_lone_end(&ep->copies.lone, b, ep->now);

	if (took_ns && !status)
		bw_cost_learn(&p->taken_cost, took_ns, b->len);
	if (b->owned)
		bw_copies_free(ep, p, b);
}

void bw_copies_free_all(struct bw_ep *ep)
{
	for (struct bw_buffer *b = ep->pending; b; b = b->next)
		if (b->owned)
			free(b->data);
}
