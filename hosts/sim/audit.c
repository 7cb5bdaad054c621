/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every frame that an engine sends is read by somebody else than an engine: does it follow wire.h
 * in layout, checks and sizes, is each packet number new, is nothing sent beyond the credit that
 * was received, and nothing but HELLOs before the receiver has used the sender's handle?
 */
#include "peer.h"
#include "reliable.h"
#include "sim.h"
#include "spans.h"

#include <stdlib.h>

#define SIM_AUDIT_BUCKETS 64

/* What of one pull was sent at least once: ranges that neither overlap nor touch, in order. */
struct sim_audit_pull {
	struct sim_audit_pull *next;
	uint64_t id;
	struct bw_span *sent;
	uint32_t n;
};

/* One session as its sender's frames show it. */
struct sim_audit_peer {
	struct sim_audit_peer *next;
	uint32_t theirs, ours; /* handles; 0: not seen yet */
	uint32_t token;	       /* that goes with `theirs` */
	uint32_t inc;	       /* of the receiver */
	uint16_t dst;
	bool confirmed; /* the receiver has used our handle */
	bool credited;
	uint64_t limit, used; /* bytes of credit */
	uint32_t charge_min;
	bool pn_any[BW_PATHS_MAX];
	uint32_t pn[BW_PATHS_MAX];
	uint64_t next_id[SIM_EPS][SIM_EPS]; /* messages not yet begun */
	struct sim_audit_pull *pulls[SIM_AUDIT_BUCKETS];
};

struct sim_audit {
	struct sim_audit_peer *peers[SIM_AUDIT_BUCKETS]; /* by dst */
};

static void sim_audit_free(struct sim_audit *a)
{
	uint32_t i, k;

	for (i = 0; a && i < SIM_AUDIT_BUCKETS; i++) {
		struct sim_audit_peer *p, *next;

		for (p = a->peers[i]; p; p = next) {
			next = p->next;
			for (k = 0; k < SIM_AUDIT_BUCKETS; k++) {
				struct sim_audit_pull *u, *after;

				for (u = p->pulls[k]; u; u = after) {
					after = u->next;
					free(u->sent);
					free(u);
				}
			}
			free(p);
		}
	}
	free(a);
}

void sim_audit_reset(struct sim_node *n)
{
	sim_audit_free(n->audit);
	n->audit = calloc(1, sizeof(*n->audit));
	if (!n->audit)
		abort();
}

void sim_audit_end(struct sim_node *n)
{
	sim_audit_free(n->audit);
	n->audit = NULL;
}

static void sim_audit_fail(struct sim_node *n, const struct sim_frame *flat, const char *what)
{
	char text[300];

	sim_text_frame(text, sizeof(text), flat->data, flat->len);
	sim_fail(n->sim, "node %u sends a frame (#%llu, %s): %s", n->number,
		 (unsigned long long)flat->serial, text, what);
}

static struct sim_audit_peer *sim_audit_theirs(struct sim_node *n, uint16_t dst, uint32_t token,
					       uint32_t theirs)
{
	struct sim_audit_peer **bucket = &n->audit->peers[dst % SIM_AUDIT_BUCKETS], *p;

	for (p = *bucket; p; p = p->next)
		if (p->dst == dst && p->token == token && p->theirs == theirs)
			return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->dst = dst;
	p->token = token;
	p->theirs = theirs;
	p->next = *bucket;
	*bucket = p;
	return p;
}

/* The token that a frame of ours shows. In a conversation with a key it is not shown: that of the
 * peer that the engine made it for; 0: for none (any more). */
static uint32_t sim_audit_token(const struct sim_node *n, const struct sim_frame *flat)
{
	const struct bw_hdr *h = (const struct bw_hdr *)flat->data;
	struct bw_engine *e = n->engine;
	const struct bw_peer *p;

	if (!n->cfg.keyed || h->type == BW_FRAME_HELLO)
		return h->token;
	p = bw_peer_get(e, e->last.peer);
	return p ? p->conn_token : 0;
}

/* The same, by what HELLOs name: the receiver's incarnation; 0: any, of one that is in doubt. */
static struct sim_audit_peer *sim_audit_named(struct sim_node *n, uint16_t dst, uint32_t inc,
					      uint32_t theirs)
{
	struct sim_audit_peer *p;

	for (p = n->audit->peers[dst % SIM_AUDIT_BUCKETS]; p; p = p->next)
		if (p->dst == dst && (!inc || p->inc == inc) && p->theirs == theirs)
			return p;
	return NULL;
}

/* The session in which our handle is used now. A HELLO that came late may have named the handle in
 * an earlier one: which one counts is the engine's to say. NULL: the handle is of none any more. */
static struct sim_audit_peer *sim_audit_ours(struct sim_node *n, uint16_t dst, uint32_t ours)
{
	const struct bw_peer *living = bw_peer_get(n->engine, ours);
	struct sim_audit_peer *p;

	for (p = n->audit->peers[dst % SIM_AUDIT_BUCKETS]; p && living; p = p->next)
		if (p->dst == dst && p->ours == ours && p->theirs == living->conn &&
		    p->token == living->conn_token)
			return p;
	return NULL;
}

/* The header's check by our own reading: over all but the payloads. */
struct sim_reading {
	const uint8_t *frame;
	uint32_t end, crc;
	uint32_t from; /* first byte not yet under the check */
};

static void sim_reading_take(struct sim_reading *r, uint32_t to)
{
	r->crc = bw_checksum(r->crc, r->frame + r->from, to - r->from);
	r->from = to;
}

static void sim_reading_begin(struct sim_reading *r, const void *frame, uint32_t end)
{
	struct bw_hdr h;

	memcpy(&h, frame, sizeof(h));
	h.hcrc = 0;
	*r = (struct sim_reading){.frame = frame, .end = end, .from = sizeof(h)};
	r->crc = bw_checksum(0, &h, sizeof(h));
}

static void sim_audit_charge(struct sim_node *n, struct sim_audit_peer *p,
			     const struct sim_frame *flat, uint64_t bytes)
{
	p->used += bytes;
	if (p->credited && p->used > p->limit)
		sim_audit_fail(n, flat, "beyond the credit");
}

static void sim_audit_message(struct sim_node *n, struct sim_audit_peer *p,
			      const struct sim_frame *flat, const struct bw_part_msg *m)
{
	uint64_t *next, least = p->charge_min ? p->charge_min : 1;
	uint64_t bytes = m->total > least ? m->total : least, number;

	if (m->src_ep >= SIM_EPS || m->dst_ep >= SIM_EPS) {
		sim_audit_fail(n, flat, "unknown endpoint");
		return;
	}
	number = sim_oracle_number(n->sim, m->tag);
	if (number < n->sim->nmsgs)
		sim_prompt_left(n, flat->dst, &n->sim->msgs[number], m->offset + m->part.plen);
	next = &p->next_id[m->src_ep][m->dst_ep];
	if (m->id < *next)
		return;
	*next = m->id + 1;
	sim_audit_charge(n, p, flat,
			 (bytes + BW_CREDIT_UNIT - 1) / BW_CREDIT_UNIT * BW_CREDIT_UNIT);
}

/* Bytes [lo, hi) are sent; how many of them for the first time. */
static uint64_t sim_audit_fresh(struct sim_audit_pull *u, uint64_t lo, uint64_t hi)
{
	uint64_t fresh = hi - lo;
	uint32_t i = 0, to;

	while (i < u->n && u->sent[i].hi < lo)
		i++;
	for (to = i; to < u->n && u->sent[to].lo <= hi; to++) {
		const struct bw_span *s = &u->sent[to];
		uint64_t from = s->lo > lo ? s->lo : lo, end = s->hi < hi ? s->hi : hi;

		fresh -= end > from ? end - from : 0;
	}
	if (to > i) {
		lo = u->sent[i].lo < lo ? u->sent[i].lo : lo;
		hi = u->sent[to - 1].hi > hi ? u->sent[to - 1].hi : hi;
	}
	u->sent = realloc(u->sent, (u->n + 1) * sizeof(*u->sent));
	if (!u->sent)
		abort();
	memmove(&u->sent[i + 1], &u->sent[to], (u->n - to) * sizeof(*u->sent));
	u->n += 1 - (to - i);
	u->sent[i].lo = lo;
	u->sent[i].hi = hi;
	return fresh;
}

static void sim_audit_bulk(struct sim_node *n, struct sim_audit_peer *p,
			   const struct sim_frame *flat, const struct bw_part_bulk *b)
{
	struct sim_audit_pull **bucket = &p->pulls[b->id % SIM_AUDIT_BUCKETS], *u = *bucket;

	while (u && u->id != b->id)
		u = u->next;
	if (!u) {
		u = calloc(1, sizeof(*u));
		if (!u)
			abort();
		u->id = b->id;
		u->next = *bucket;
		*bucket = u;
	}
	sim_audit_charge(n, p, flat, sim_audit_fresh(u, b->offset, b->offset + b->part.plen));
}

static uint32_t sim_audit_part(struct sim_node *n, struct sim_audit_peer *p,
			       const struct sim_frame *flat, const struct bw_part *part)
{
	switch (part->kind) {
	case BW_PART_MESSAGE:
		sim_audit_message(n, p, flat, (const struct bw_part_msg *)part);
		return sizeof(struct bw_part_msg);
	case BW_PART_PULL:
	case BW_PART_PULL_ERROR:
		if (part->plen)
			sim_audit_fail(n, flat, "control message with payload");
		return sizeof(struct bw_part_msg);
	case BW_PART_BULK:
		sim_audit_bulk(n, p, flat, (const struct bw_part_bulk *)part);
		return sizeof(struct bw_part_bulk);
	case BW_PART_PAD:
		return sizeof(struct bw_part_bulk);
	}
	sim_audit_fail(n, flat, "part of unknown kind");
	return 0;
}

static uint32_t sim_audit_payload_crc(const struct sim_node *n, const uint8_t *payload,
				      const struct bw_part *part)
{
	if (!part->plen || part->kind == BW_PART_PAD || n->sim->spec.no_checksum ||
	    n->sim->spec.encrypted)
		return 0;
	return bw_checksum(0, payload, part->plen);
}

static void sim_audit_data(struct sim_node *n, const struct sim_frame *flat, struct sim_reading *r)
{
	const struct bw_hdr *h = (const struct bw_hdr *)flat->data;
	struct sim_audit_peer *p =
		sim_audit_theirs(n, flat->dst, sim_audit_token(n, flat), h->conn);
	uint32_t at = sizeof(*h) + sizeof(struct bw_ackblk), size;

	if (h->path >= BW_PATHS_MAX) {
		sim_audit_fail(n, flat, "path number");
		return;
	}
	if (p->pn_any[h->path] && (int32_t)(h->pn - p->pn[h->path]) <= 0)
		sim_audit_fail(n, flat, "packet number used before");
	p->pn_any[h->path] = true;
	p->pn[h->path] = h->pn;
	while (at < r->end && !n->sim->failed) {
		const struct bw_part *part = (const struct bw_part *)(r->frame + at);

		size = sim_audit_part(n, p, flat, part);
		if (at + size > BW_HEAD_MAX)
			sim_audit_fail(n, flat, "a part lies where a host may not look");
		if (!size || at + size + part->plen > r->end)
			sim_audit_fail(n, flat, "a part ends behind the frame");
		else if (part->crc != sim_audit_payload_crc(n, r->frame + at + size, part))
			sim_audit_fail(n, flat, "wrong payload checksum");
		if (n->sim->failed)
			return;
		sim_reading_take(r, at + size);
		r->from += part->plen;
		at = (r->from + 7) & ~7u;
	}
}

static void sim_audit_confirmed(struct sim_node *n, const struct sim_frame *flat)
{
	const struct bw_hdr *h = (const struct bw_hdr *)flat->data;

	const uint32_t token = sim_audit_token(n, flat);

	if (token && !sim_audit_theirs(n, flat->dst, token, h->conn)->confirmed)
		sim_audit_fail(n, flat, "before its handle was used");
}

static void sim_audit_hello(struct sim_node *n, const struct sim_frame *flat)
{
	const struct bw_hdr *h = (const struct bw_hdr *)flat->data;
	const struct bw_hello *b = (const struct bw_hello *)(h + 1);
	struct sim_audit_peer *p;

	if (flat->len != sizeof(*h) + sizeof(*b)) {
		sim_audit_fail(n, flat, "HELLO of wrong length");
		return;
	}
	if (b->inc != n->cfg.incarnation || b->node != n->cfg.node || b->engine != n->cfg.engine)
		sim_audit_fail(n, flat, "HELLO of somebody else");
	if (!h->conn)
		return;
	p = sim_audit_named(n, flat->dst, h->token, h->conn);
	if (!p) {
		sim_audit_fail(n, flat, "a handle that nobody gave");
		return;
	}
	p->ours = b->conn;
}

/* A frame of a protocol that is not known here: its payloads are what its engine took from the
 * host. */
static void sim_audit_segments(const struct bw_tx_frame *f, struct sim_reading *r)
{
	uint32_t i, payload = 0;

	for (i = 0; i < f->segments; i++) {
		sim_reading_take(r, f->segment[i].head_end + payload);
		r->from += f->segment[i].len;
		payload += f->segment[i].len;
	}
}

void sim_audit_frame(struct sim_node *n, const struct bw_tx_frame *f, const struct sim_frame *flat)
{
	const struct bw_hdr *h = (const struct bw_hdr *)flat->data;
	struct sim_reading r;

	if (flat->len < sizeof(*h) || h->magic != BW_MAGIC || h->version != BW_VERSION ||
	    h->cluster != n->cfg.cluster || h->src_engine != n->cfg.engine) {
		sim_audit_fail(n, flat, "wrong header");
		return;
	}
	if (h->len != flat->len - sizeof(*h))
		sim_audit_fail(n, flat, "wrong length");
	if (flat->len > n->cfg.link_mtu[flat->plane] && h->type != BW_FRAME_HELLO)
		sim_audit_fail(n, flat, "longer than the link allows");
	sim_reading_begin(&r, flat->data, flat->len - (f->seal.key ? BW_SEAL_TAG : 0));
	if (h->type == BW_FRAME_DATA || h->type == BW_FRAME_ACK)
		sim_audit_confirmed(n, flat);
	if (h->type == BW_FRAME_DATA)
		sim_audit_data(n, flat, &r);
	else if (h->type == BW_FRAME_HELLO)
		sim_audit_hello(n, flat);
	else if (h->type > BW_FRAME_BYE)
		sim_audit_segments(f, &r);
	if (n->sim->failed)
		return;
	sim_reading_take(&r, r.end > r.from ? r.end : r.from);
	if (r.crc != h->hcrc &&
	    !(n->cfg.keyed && (h->type == BW_FRAME_DATA || h->type == BW_FRAME_ACK ||
			       h->type == BW_FRAME_BYE))) /* a tag, which its receiver checks */
		sim_audit_fail(n, flat, "wrong header checksum");
}

static void sim_audit_credit(struct sim_audit_peer *p, uint32_t units)
{
	int32_t more = (int32_t)(units - (uint32_t)(p->limit / BW_CREDIT_UNIT));

	if (more > 0 || !p->credited)
		p->limit += (uint64_t)more * BW_CREDIT_UNIT;
	p->credited = true;
}

/* Did the engine believe the header, although it may have dropped (part of) the rest? */
static bool sim_audit_believed(int r)
{
	return !r || r == -BW_DROP_DUPLICATE || r == -BW_DROP_RANGES || r == -BW_DROP_DATA ||
	       r == -BW_DROP_NO_BUFFER || r == -BW_DROP_WINDOW;
}

void sim_audit_received(struct sim_node *n, const struct sim_frame *flat, int r)
{
	const struct bw_hdr *h = (const struct bw_hdr *)flat->data;
	const struct bw_hello *b = (const struct bw_hello *)(h + 1);
	const struct bw_ackblk *ack = (const struct bw_ackblk *)(h + 1);
	struct sim_audit_peer *p;

	if (!sim_audit_believed(r) || flat->len < sizeof(*h) + sizeof(*ack))
		return;
	if (h->type == BW_FRAME_HELLO) {
		if (r)
			return;
		p = sim_audit_theirs(n, flat->src, b->token, b->conn);
		p->inc = b->inc;
		p->charge_min = b->charge_min;
		if (h->conn) {
			p->ours = h->conn;
			p->confirmed = true;
		}
		sim_audit_credit(p, b->credit);
		return;
	}
	/* BYE says what was received, and so what may be sent, as an acknowledgement does. */
	if (h->type != BW_FRAME_DATA && h->type != BW_FRAME_ACK && h->type != BW_FRAME_BYE)
		return;
	p = sim_audit_ours(n, flat->src, h->conn);
	if (!p)
		return;
	p->confirmed = true;
	sim_audit_credit(p, ack->credit);
}
