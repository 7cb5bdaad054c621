/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What must become of messages: each is delivered exactly once, whole, in the order of its pair of
 * endpoints, to the incarnation it was sent to; and one that was acknowledged is delivered unless a
 * side of it ended.
 */
#include "sim.h"

#include <stdlib.h>

#define SIM_TAG_FACTOR	0x9E3779B97F4A7C15ull
#define SIM_TAG_INVERSE 0xF1DE83E19937733Dull /* the factor's inverse modulo 2^64 */

uint64_t sim_oracle_tag(const struct sim *s, uint64_t number)
{
	return (number ^ s->seed << 32) * SIM_TAG_FACTOR;
}

uint64_t sim_oracle_number(const struct sim *s, uint64_t tag)
{
	return tag * SIM_TAG_INVERSE ^ s->seed << 32;
}

uint64_t sim_oracle_message(struct sim *s, struct sim_peer *p, uint32_t len)
{
	struct sim_msg *m;

	if (s->nmsgs == s->msgs_room) {
		s->msgs_room = s->msgs_room ? 2 * s->msgs_room : 4096;
		s->msgs = realloc(s->msgs, s->msgs_room * sizeof(*s->msgs));
		if (!s->msgs)
			abort();
	}
	m = &s->msgs[s->nmsgs];
	*m = (struct sim_msg){.from = p, .len = len, .dst = (uint16_t)p->remote};
	m->base = s->reliable ? sim_below(&s->rng, SIM_PATTERN) : s->nmsgs % SIM_PATTERN;
	return s->nmsgs++;
}

uint64_t sim_oracle_region(struct sim *s, struct sim_peer *p, uint64_t len)
{
	if (s->nregions == s->regions_room) {
		s->regions_room = s->regions_room ? 2 * s->regions_room : 1024;
		s->regions = realloc(s->regions, s->regions_room * sizeof(*s->regions));
		if (!s->regions)
			abort();
	}
	s->regions[s->nregions] = (struct sim_region){
		.owner = p, .base = sim_below(&s->rng, SIM_PATTERN), .len = len};
	return s->nregions++;
}

/* The message that an unreliable protocol delivers is known by the place of its first bytes in the
 * pattern; the latest one with that place is meant. */
static uint64_t sim_oracle_recognize(struct sim *s, const uint8_t *p, uint64_t len)
{
	uint64_t first, slot, base, number;

	if (len < sizeof(first))
		return UINT64_MAX;
	memcpy(&first, p, sizeof(first));
	for (slot = sim_mix(first) % SIM_INDEX; s->index[slot]; slot = (slot + 1) % SIM_INDEX) {
		base = s->index[slot] - 1;
		if (memcmp(s->pattern + base, &first, sizeof(first)))
			continue;
		if (base >= s->nmsgs)
			return UINT64_MAX;
		number = base + (s->nmsgs - 1 - base) / SIM_PATTERN * SIM_PATTERN;
		return number;
	}
	return UINT64_MAX;
}

static struct sim_msg *sim_oracle_wrong(struct sim_node *n, const struct bw_event *e,
					uint64_t number, const char *what)
{
	sim_fail(n->sim, "node %u: message %lld (tag %llx, %llu bytes): %s", n->number,
		 (long long)number, (unsigned long long)e->tag, (unsigned long long)e->len, what);
	return NULL;
}

/* Only the reliable protocol promises these. */
static const char *sim_oracle_promises(struct sim_node *n, struct sim_peer *p, struct sim_msg *m,
				       const struct bw_event *e)
{
	struct sim_peer *from = m->from;

	if (e->code != m->code || e->imm != m->imm)
		return "wrong code or immediate data";
	if (from->remote_inc != n->cfg.incarnation || from->node_inc != p->remote_inc)
		return "delivered across incarnations";
	if (m->delivered)
		return "delivered twice";
	if (p->rx_from != from) {
		if (p->rx_from && !p->rx_from->gone)
			return "from two sessions at once";
		if (p->rx_from)
			return "a session continues with another one of its peer";
		p->rx_from = from;
	}
	if (p->rx_seq[m->dst_ep][m->src_ep]++ != m->seq)
		return "out of order";
	return NULL;
}

struct sim_msg *sim_oracle_delivered(struct sim_node *n, struct sim_peer *p,
				     const struct bw_event *e)
{
	struct sim *s = n->sim;
	const uint8_t *bytes = NULL;
	struct sim_buf *b = NULL;
	const char *bad = NULL;
	struct sim_msg *m;
	uint64_t number;

	if (e->buf) {
		b = sim_buf_get(n, e->buf);
		if (!b || b->kind != SIM_BUF_MESSAGE || b->len != e->len)
			return sim_oracle_wrong(n, e, 0, "in a buffer that is not its own");
		bytes = b->mem;
	} else if (e->len) {
		if (!n->current || e->frame_off + e->len > n->current->len)
			return sim_oracle_wrong(n, e, 0, "not in the frame just received");
		bytes = (const uint8_t *)n->current->data + e->frame_off;
	}
	number =
		s->reliable ? sim_oracle_number(s, e->tag) : sim_oracle_recognize(s, bytes, e->len);
	if (number >= s->nmsgs)
		return sim_oracle_wrong(n, e, number, "never sent");
	m = &s->msgs[number];
	if (m->dst != n->number || m->from->node->number != (uint32_t)p->remote)
		return sim_oracle_wrong(n, e, number, "at the wrong node");
	if (m->len != e->len || m->src_ep != e->src_ep || m->dst_ep != e->dst_ep)
		return sim_oracle_wrong(n, e, number, "wrong length or endpoints");
	if (e->len && !sim_content_same(s, bytes, m->base, 0, e->len))
		return sim_oracle_wrong(n, e, number, "wrong content");
	if (s->reliable)
		bad = sim_oracle_promises(n, p, m, e);
	else if (++m->copies > 2)
		bad = "delivered more often than a frame can be on the wire";
	if (bad)
		return sim_oracle_wrong(n, e, number, bad);
	m->delivered = true;
	s->delivered++;
	n->got_bytes += e->len;
	m->from->node->gave_bytes += e->len;
	n->got_items++;
	sim_prompt_came(n, m->from->node->number, NULL, e->len);
	if (b) {
		n->engine_bufs--;
		sim_buf_end(n, e->buf);
	}
	return m;
}

void sim_oracle_due(struct sim_node *n, const struct bw_event *e)
{
	struct sim_peer *p = sim_peer_find(n, e->peer);
	uint64_t number = sim_oracle_number(n->sim, e->tag);
	const struct sim_msg *m = &n->sim->msgs[number];

	if (!p || number >= n->sim->nmsgs)
		sim_oracle_wrong(n, e, number, "never sent, and a place is asked for it");
	else if (m->len != e->len || p->rx_seq[m->dst_ep][m->src_ep] != m->seq)
		sim_oracle_wrong(n, e, number, "not the next, and a place is asked for it");
}

/* Does the receiver still have the session in which the message was sent? */
static bool sim_session_lives(const struct sim *s, const struct sim_msg *m)
{
	const struct sim_node *dst = &s->nodes[m->dst];
	const struct sim_peer *p;

	if (m->from->gone)
		return false;
	for (p = dst->peers; p; p = p->next)
		if (!p->gone && p->up && p->node_inc == m->from->remote_inc &&
		    p->remote == (int32_t)m->from->node->number &&
		    p->remote_inc == m->from->node_inc && p->rx_from == m->from)
			return true;
	return false;
}

static void sim_oracle_peers(struct sim *s)
{
	const struct sim_peer *p;
	uint32_t i;

	for (i = 0; i < s->spec.nodes; i++)
		for (p = s->nodes[i].peers; p; p = p->next)
			if ((p->failing || p->lost) && !p->gone)
				sim_fail(s, "node %u: an operation failed with %d for no reason", i,
					 p->failing ? p->failing : -ENOTCONN);
}

void sim_oracle_final(struct sim *s)
{
	uint64_t i;

	sim_oracle_peers(s);
	for (i = 0; s->reliable && i < s->nmsgs && !s->failed; i++) {
		const struct sim_msg *m = &s->msgs[i];

		if (m->acked && !m->delivered && sim_session_lives(s, m))
			sim_fail(s,
				 "message %llu from node %u to node %u was acknowledged, but never "
				 "delivered",
				 (unsigned long long)i, m->from->node->number, m->dst);
	}
}
