/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Copies of long messages: when they pay, and their memory. */
#include "copies.h"

#include <stdlib.h>
#include <string.h>

#include "ep.h"

/* Bytes for one peer: as much as Linux lets a TCP socket keep by default (tcp_wmem,
 * Documentation/networking/ip-sysctl.rst). */
#define BW_COPIES_EACH (4u << 20)
/* Nanoseconds per KiB from exposure to the end of the pull. Memory is copied in about 200; a copy
 * where the pull takes twenty times that costs 5 % of it at most. That is 250 MB/s. */
#define BW_COPIES_SLOW 4096
/* More does not count. */
#define BW_COPIES_LATE (4 * BW_COPIES_SLOW)

bool bw_copies_pay(const struct bw_ep *ep, const struct bw_remote *p, uint64_t len)
{
	return p->pull_cost > BW_COPIES_SLOW && p->copied + len <= BW_COPIES_EACH &&
	       ep->copies.bytes + len <= ep->env.send_copies;
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
	p->copied += (uint32_t)b->len;
	ep->copies.taken++;
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
	ep->copies.lone = ep->copies.exposed++ ? NULL : b;
	ep->copies.since = ep->now;
}

/* A running mean over some eight messages. A few that were taken late do not make a peer slow. */
static void bw_copies_learn(struct bw_remote *p, uint64_t took_ns, uint64_t len)
{
	uint64_t exact = bw_min_u64(took_ns * 1024 / len, BW_COPIES_LATE);
	uint32_t cost = exact ? (uint32_t)exact : 1;

	p->pull_cost = p->pull_cost ? p->pull_cost - p->pull_cost / 8 + cost / 8 : cost;
}

void bw_copies_ended(struct bw_ep *ep, struct bw_buffer *b, int status)
{
	struct bw_remote *p = bw_remote_get(&ep->remotes, b->peer);

	ep->copies.exposed--;
	if (ep->copies.lone == b) {
		if (!status && b->len)
			bw_copies_learn(p, ep->now - ep->copies.since, b->len);
		ep->copies.lone = NULL;
	}
	if (b->owned)
		bw_copies_free(ep, p, b);
}

void bw_copies_free_all(struct bw_ep *ep)
{
	for (struct bw_buffer *b = ep->pending; b; b = b->next)
		if (b->owned)
			free(b->data);
}
