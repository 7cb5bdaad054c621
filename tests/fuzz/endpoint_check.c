/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an endpoint counts, against what there is. */
#include "endpoint_ops.h"

#define COPIED_EACH 256		 /* bytes that an eager message counts beside its own */
#define COPIED_MOST (68u << 20)	 /* of all such messages */
#define GROWN_MOST  (300u << 20) /* bytes of the engine, whatever peers do */

static void expect(bool holds, const char *what)
{
	if (!holds)
		fuzz_bad(what);
}

/* Entries of a list; their links fit. */
static uint32_t count(const struct bw_buffer *list, uint8_t use)
{
	uint32_t n = 0;

	for (const struct bw_buffer *b = list; b; b = b->next, n++) {
		expect(b->use == use, "a buffer in a list of others");
		expect(b->next ? b->next->prev == b : true, "a list that is broken");
	}
	return n;
}

/* Eager messages of a peer; how many of them are long. */
static uint32_t check_sent(const struct bw_remote *p)
{
	uint64_t bytes = 0;
	uint32_t held = 0, ahead = 0;

	for (const struct bw_buffer *b = p->sent; b; b = b->next) {
		bytes += b->len + COPIED_EACH;
		held += b->use == BW_BUFFER_ENDED;
		ahead += b->use == BW_BUFFER_COPY && b->len > BW_EAGER_LIMIT;
		expect(b->peer == p->number, "a message to somebody else");
		expect(b->next || b == p->sent_last, "the last message is not the last");
		if (b == p->sent_last)
			break;
	}
	expect(bytes == p->eager, "bytes of eager messages");
	expect(held == p->held, "eager messages that have ended");
	expect(ahead == p->ahead, "messages that go ahead");
	return ahead;
}

static void check_remotes(const struct bw_ep *ep, uint32_t *ahead)
{
	const struct bw_remotes *r = &ep->remotes;
	uint64_t eager = world.crowded ? WORLD_COPIED : 0;
	uint64_t arriving = world.come, copied = 0;
	uint32_t vacant = 0, named = 0, ghosts = 0, gone = 0;

	for (uint32_t i = 0; i < r->count; i++) {
		struct bw_remote *p = r->at[i];

		if (!p) {
			vacant++;
			continue;
		}
		expect(p->number == i, "a peer of another number");
		expect(bw_remote_find(r, p->addr.node, p->addr.engine, p->addr.inc) == p,
		       "a peer that is not found by who it is");
		expect(!p->handle || bw_remote_by_handle(r, p->handle) == p,
		       "a peer that is not found by its handle");
		expect(!p->status || p->status < 0, "a peer that is down for no reason");
		expect(p->known || !p->status, "a peer is kept that nobody knows, and down");
		expect(memchr(p->name, 0, sizeof(p->name)), "a name without an end");
		for (const char *c = p->name; *c; c++)
			expect(*c >= ' ' && *c <= '~', "a name that is no text");
		eager += p->eager;
		arriving += p->arriving;
		copied += p->copied;
		named += p->complete;
		ghosts += p->ghost;
		gone += p->gone;
		expect(p->arriving_next <= p->arriving, "messages that are the next");
		*ahead += check_sent(p);
	}
	expect(vacant == r->vacant, "free numbers");
	expect(named == r->named, "peers that were named");
	expect(ghosts == r->ghosts && gone == r->gone, "peers that are gone");
	expect(eager == ep->copied && eager <= COPIED_MOST, "bytes on their way");
	expect(arriving <= ep->arriving &&
		       ep->arriving <= BW_ARRIVING_MAX + BW_ARRIVING_NEXT + BW_LONG_LIMIT,
	       "bytes of messages that arrive");
	expect(copied == ep->copies.bytes && copied <= ep->env.send_copies, "bytes of copies");
}

void check_endpoint(struct bw_ep *ep)
{
	const char *bad = bw_reliable_check(ep->engine);
	uint32_t ahead = 0, exposed = count(ep->pending, BW_BUFFER_EXPOSED);

	if (bad)
		fuzz_bad(bad);
	check_remotes(ep, &ahead);
	expect(count(ep->pulling, BW_BUFFER_PULLING) == ep->fetching.n, "pulls under way");
	expect(exposed + ahead == ep->copies.lone.n, "long messages under way");
	count(ep->placing, BW_BUFFER_PLACED);
	expect(ep->watch.n <= BW_FILTER_ALIVE, "engines that live");
	expect(!ep->dispatching, "a handler is called, and none is");
	expect(ep->packet[0].batch->count <= BW_BATCH_FRAMES, "frames of a batch");
	expect(ep->grown_bytes <= GROWN_MOST, "memory of the engine");
}

void check_quiet(struct bw_ep *ep)
{
	expect(ep->copied == (world.crowded ? WORLD_COPIED : 0) && !ep->copies.bytes,
	       "bytes that nobody has");
	expect(ep->arriving == world.come || !ops_honest, "a message of which a part has arrived");
	expect(!ep->pending && !ep->pulling && !ep->placing, "operations that nobody has");
	expect(!bw_reliable.busy(ep->engine), "an engine that has something to do");
	for (uint32_t i = 0; i < ep->remotes.count; i++)
		expect(!ep->remotes.at[i] || !ep->remotes.at[i]->sent, "a message that is kept");
}
