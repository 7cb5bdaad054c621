/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DATA frames: what is to be sent again first, then control messages, then eager messages and
 * pulled data in turns, as many parts as fit, within the window of the path and the credit of the
 * peer.
 */
#include "part.h"

#define BW_SERVE_TURN 32 /* frames one pull may send before the next one's turn */
#define BW_ALIGN8(x)  (((x) + 7u) & ~7u)

struct bw_builder {
	struct bw_engine *e;
	struct bw_peer *p;
	struct bw_path *t;
	struct bw_tx_frame *f;
	uint32_t mtu;
	uint32_t parts;
	struct bw_record *first; /* record of the first part */
	uint32_t what;		 /* enum bw_send_what: what may be sent */
	bool urgent;
	bool load; /* some of what is long is in it */
	bool full; /* nothing more fits */
};

static uint32_t bw_builder_room(const struct bw_builder *b, uint32_t part)
{
	uint32_t at = BW_ALIGN8(b->f->len) + part;

	if (b->full || b->f->segments == BW_TX_SEGMENTS || b->parts == BW_TX_SEGMENTS ||
	    at > BW_HEAD_MAX)
		return 0;
	return at < b->mtu ? b->mtu - at : 0;
}

/* Append a fixed part (zero padding before it) and its payload; buf 0: zeroes. Parts are aligned in
 * the frame, but not in `head`, which lacks the payloads: hence the copy. */
static void bw_builder_part(struct bw_builder *b, struct bw_part *part, uint32_t size, uint64_t buf,
			    uint64_t off, uint32_t len)
{
	struct bw_tx_frame *f = b->f;
	uint32_t pad = BW_ALIGN8(f->len) - f->len;
	uint8_t *at = (uint8_t *)f->head + f->head_len;
	struct bw_tx_segment *s;

	bw_part_payload(b->e, part, buf, off, len, buf && b->p->checksum);
	memset(at, 0, pad);
	memcpy(at + pad, part, size);
	f->head_len += pad + size;
	f->len += pad + size;
	b->parts++;
	if (!len)
		return;
	s = &f->segment[f->segments++];
	s->head_end = f->head_len;
	s->len = len;
	s->buf = buf;
	s->off = off;
	f->len += len;
}

static void bw_builder_record(struct bw_builder *b, struct bw_record *r)
{
	if (!b->first)
		b->first = r;
	bw_part_owned(b->t, r, b->t->pn_next, b->e->now, 0);
}

struct bw_record *bw_record_new(struct bw_engine *e, uint8_t kind, void *obj, uint64_t off,
				uint32_t len)
{
	struct bw_record *r = bw_slab_alloc(&e->records);

	if (!r) {
		e->starved = true;
		return NULL;
	}
	bw_list_init(&r->list);
	r->kind = kind;
	r->obj = obj;
	r->off = off;
	r->len = len;
	return r;
}

static void bw_builder_message(struct bw_builder *b, const struct bw_txmsg *m, uint32_t off,
			       uint32_t len)
{
	struct bw_part_msg w;

	bw_part_message(&w, m, m->kind, m->kind == BW_PART_MESSAGE ? off : m->offset,
			m->wire_status);
	b->urgent |= bw_part_urgent(b->t, m, off + len);
	b->load |= bw_part_loads(b->t, m);
	bw_builder_part(b, &w.part, sizeof(w), m->buf, m->buf_off + off, len);
}

static void bw_builder_bulk(struct bw_builder *b, const struct bw_serve *s, uint64_t off,
			    uint32_t len)
{
	struct bw_part_bulk w;

	bw_part_bulk(&w, s, off);
	b->urgent |= off + len == s->len;
	b->load = true;
	bw_builder_part(b, &w.part, sizeof(w), s->buf, s->buf_off + off, len);
	b->full = true; /* bulk travels alone or last */
}

/* One range of the retransmission queue, as much of it as fits. False: nothing was added. */
static bool bw_builder_again(struct bw_builder *b)
{
	struct bw_record *r = bw_first(&b->p->again, struct bw_record, list), *piece = r;
	bool bulk = r->kind == BW_OWNED_BULK;
	uint32_t room =
		bw_builder_room(b, bulk ? sizeof(struct bw_part_bulk) : sizeof(struct bw_part_msg));
	uint32_t len = (uint32_t)bw_min_u64(r->len, room);

	if ((b->parts && (bulk || len < r->len)) || (!room && (r->len || b->parts)))
		return false;
	if (bulk && ((struct bw_serve *)r->obj)->aborted) {
		struct bw_serve *s = r->obj;

		bw_record_forget(b->e, r);
		bw_serve_settle(b->e, s);
		return true;
	}
	if (len < r->len) {
		piece = bw_record_new(b->e, r->kind, r->obj, r->off, len);
		if (!piece)
			return false;
		if (bulk)
			((struct bw_serve *)r->obj)->refs++;
		else
			((struct bw_txmsg *)r->obj)->refs++;
		r->off += len;
		r->len -= len;
	} else {
		bw_list_del(&r->list);
	}
	b->e->count.retransmits++;
	b->t->retransmits++;
	BW_PROBE2(retransmission, b->p->engine, len);
	if (bulk)
		bw_builder_bulk(b, piece->obj, piece->off, len);
	else
		bw_builder_message(b, piece->obj, (uint32_t)piece->off, len);
	bw_builder_record(b, piece);
	return true;
}

void bw_txmsg_left(struct bw_engine *e, struct bw_txmsg *m)
{
	m->sent = true;
	bw_list_del(&m->queue);
	if (m->kind == BW_PART_MESSAGE)
		bw_duplex_sent_message(e);
}

/* There is something to send, but no credit for it: the peer is expected to give some. */
static void bw_builder_stall(struct bw_builder *b)
{
	if (b->p->credit_stalled)
		return;
	b->p->credit_stalled = true;
	b->e->count.credit_stalls++;
	bw_peer_progress(b->p);
}

static bool bw_builder_next_message(struct bw_builder *b, struct bw_flow *flow)
{
	struct bw_txmsg *m = bw_first(&flow->tx, struct bw_txmsg, queue);
	uint32_t room = bw_builder_room(b, sizeof(struct bw_part_msg));
	uint32_t left = m->len - m->next_off, len = left < room ? left : room;
	struct bw_peer *p = b->p;
	struct bw_record *r;

	if (len < left && (b->parts || !room))
		return false;
	if (!left && !bw_builder_room(b, sizeof(struct bw_part_msg) - 1))
		return false;
	if (!m->charged && m->kind == BW_PART_MESSAGE) {
		uint64_t charge = bw_credit_charge(m->total, p->charge_min);

		if (p->tx_used + charge > p->tx_limit) {
			bw_builder_stall(b);
			return false;
		}
		p->tx_used += charge;
	}
	r = bw_record_new(b->e, BW_OWNED_MESSAGE, m, m->next_off, len);
	if (!r) {
		if (!m->charged && m->kind == BW_PART_MESSAGE)
			p->tx_used -= bw_credit_charge(m->total, p->charge_min);
		return false;
	}
	m->charged = true;
	m->refs++;
	bw_builder_message(b, m, m->next_off, len);
	bw_builder_record(b, r);
	m->next_off += len;
	bw_duplex_sent(b->e, len);
	if (m->next_off == m->len)
		bw_txmsg_left(b->e, m);
	return true;
}

static bool bw_builder_next_control(struct bw_builder *b)
{
	struct bw_peer *p = b->p;
	struct bw_txmsg *m = bw_first(&p->control.tx, struct bw_txmsg, queue);
	struct bw_txmsg *oldest = bw_first(&p->controls, struct bw_txmsg, all);

	if (m->id - oldest->id >= BW_CONTROL_MAX)
		return false;
	return bw_builder_next_message(b, &p->control);
}

/* Pulled data, which go out for the first time. */
static void bw_builder_pulled(struct bw_builder *b, struct bw_record *r)
{
	b->p->tx_used += r->len;
	bw_builder_bulk(b, r->obj, r->off, r->len);
	bw_builder_record(b, r);
	bw_duplex_sent(b->e, r->len);
}

/* Some of what is set aside for the path. */
static bool bw_builder_share(struct bw_builder *b)
{
	struct bw_peer *p = b->p;
	uint32_t room = bw_builder_room(b, sizeof(struct bw_part_bulk)), len;
	struct bw_record *r, *piece;

	if (b->parts || !room)
		return false;
	piece = r = bw_stripe_next(b->e, p, b->t, room);
	if (!r)
		return false;
	len = r->len < room ? r->len : room;
	if (p->tx_used + len > p->tx_limit) {
		bw_builder_stall(b);
		return false;
	}
	if (len < r->len) {
		piece = bw_record_new(b->e, BW_OWNED_BULK, r->obj, r->off, len);
		if (!piece)
			return false;
		((struct bw_serve *)r->obj)->refs++;
		r->off += len;
		r->len -= len;
	} else {
		bw_list_del(&r->list);
		p->aside--;
	}
	bw_builder_pulled(b, piece);
	return true;
}

static bool bw_builder_next_bulk(struct bw_builder *b)
{
	struct bw_peer *p = b->p;
	struct bw_serve *s = bw_first(&p->serving, struct bw_serve, turn);
	uint32_t room = bw_builder_room(b, sizeof(struct bw_part_bulk));
	uint32_t len;
	struct bw_record *r;

	if (p->striped || p->aside)
		return bw_builder_share(b);
	if (b->parts || !room)
		return false;
	len = (uint32_t)bw_min_u64(s->len - s->next_off, room);
	if (p->tx_used + len > p->tx_limit) {
		bw_builder_stall(b);
		return false;
	}
	r = bw_record_new(b->e, BW_OWNED_BULK, s, s->next_off, len);
	if (!r)
		return false;
	s->refs++;
	bw_builder_pulled(b, r);
	s->next_off += len;
	if (s->next_off == s->len) {
		bw_list_del(&s->turn);
		p->serve_turn = 0;
	} else if (++p->serve_turn >= BW_SERVE_TURN) {
		bw_list_del(&s->turn);
		bw_list_add_before(&p->serving, &s->turn);
		p->serve_turn = 0;
	}
	return true;
}

static bool bw_builder_next_eager(struct bw_builder *b)
{
	struct bw_flow *flow;

	for (flow = &b->p->app; flow; flow = flow->next)
		if (!bw_list_empty(&flow->tx) && bw_builder_next_message(b, flow))
			return true;
	return false;
}

static void bw_builder_fill(struct bw_builder *b)
{
	struct bw_peer *p = b->p;
	bool bulk = b->what & BW_SEND_BULK && (!bw_list_empty(&p->serving) || p->aside);
	bool messages = b->what & BW_SEND_MESSAGES;

	while (b->what & BW_SEND_AGAIN && !bw_list_empty(&p->again) && bw_builder_again(b))
		;
	while (messages && !bw_list_empty(&p->control.tx) && bw_builder_next_control(b))
		;
	if (bulk && p->eager_turn >= BW_EAGER_TURN) {
		p->eager_turn = 0;
		if (bw_builder_next_bulk(b))
			return;
	}
	if (messages && bw_builder_next_eager(b)) {
		p->eager_turn++;
		while (bw_builder_next_eager(b))
			;
	} else if (bulk) {
		bw_builder_next_bulk(b);
	}
}

static void bw_builder_begin(struct bw_builder *b)
{
	struct bw_hdr *h = (struct bw_hdr *)b->f->head;

	bw_hdr_fill(b->e, b->p, h, BW_FRAME_DATA);
	h->pn = (uint32_t)b->t->pn_next;
	h->path = b->t->no;
	b->f->segments = 0;
	b->f->head_len = b->f->len = BW_DATA_HEAD;
}

static void bw_builder_end(struct bw_builder *b)
{
	struct bw_hdr *h = (struct bw_hdr *)b->f->head;
	struct bw_path *t = b->t;
	const uint64_t pn = t->pn_next;

	bw_carry_sent(b->e, t, b->load);
	b->f->len += b->p->trailer;
	bw_duplex_left(b->e, t, b->f->len);
	b->first->frame_len = b->f->len;
	b->f->to = t->to;
	if (b->urgent ||
	    t->inflight >= (b->p->striped ? bw_stripe_limit(b->e, b->p, t) : t->cc.cwnd))
		h->flags |= BW_HDR_ACK_NOW;
	bw_ack_block(b->e, b->p, t, (struct bw_ackblk *)(h + 1));
	bw_part_left(b->e, t, pn);
	bw_pace_sent(b->e, t, b->f->len);
	bw_part_seal(b->e, b->p, b->f, pn);
}

/* A frame of padding alone with a record of its own: a ping, or a probe of the frame size. */
static bool bw_builder_alone(struct bw_builder *b, uint8_t kind, uint32_t size)
{
	struct bw_record *r = bw_record_new(b->e, kind, NULL, 0, size);
	struct bw_part_bulk w = {.part.kind = BW_PART_PAD};

	if (!r)
		return false;
	bw_builder_part(b, &w.part, sizeof(w), 0, 0,
			size - BW_DATA_HEAD - sizeof(w) - b->p->trailer);
	b->urgent = true;
	bw_builder_record(b, r);
	return true;
}

static bool bw_builder_probe(struct bw_builder *b)
{
	struct bw_path *t = b->t;

	if (BW_LIKELY(!t->pmtu.probe) || t->pmtu.flying || t->pmtu.held)
		return false;
	if (!bw_builder_alone(b, BW_OWNED_PAD, t->pmtu.probe))
		return false;
	t->pmtu.flying = true;
	return true;
}

static bool bw_builder_data(struct bw_builder *b)
{
	struct bw_path *t = b->t;

	if (t->inflight >= t->cc.cwnd && !t->probe_allow) {
		t->cc.limited_pn = t->pn_next;
		return false;
	}
	if (!t->probe_allow && bw_pace_holds(b->e, t))
		return false;
	bw_builder_fill(b);
	return b->first;
}

static bool bw_builder_ping(struct bw_builder *b)
{
	if (b->t->ask) {
		b->t->ask = false;
	} else {
		if (!b->p->ping_due || !(b->what & BW_SEND_MESSAGES))
			return false;
		b->p->ping_due = false;
	}
	/* As long as the refusal that may be its answer. */
	return bw_builder_alone(b, BW_OWNED_PING, BW_REFUSE_BYTES);
}

bool bw_send_by(struct bw_engine *e, struct bw_peer *p, struct bw_path *t, uint32_t what,
		struct bw_tx_frame *f)
{
	struct bw_builder b = {
		.e = e, .p = p, .t = t, .f = f, .mtu = t->pmtu.mtu - p->trailer, .what = what};

	if (!p->confirmed || t->state != BW_PATH_UP)
		return false;
	bw_builder_begin(&b);
	if (!(t->pto_count >= BW_PTO_PING && bw_builder_ping(&b)) && !bw_builder_probe(&b) &&
	    !(what && bw_builder_data(&b)) && !bw_builder_ping(&b))
		return false;
	bw_builder_end(&b);
	return true;
}

uint64_t bw_send_length(const struct bw_peer *p)
{
	const struct bw_flow *flow = &p->app;

	while (flow && bw_list_empty(&flow->tx))
		flow = flow->next;
	return flow ? bw_first(&flow->tx, struct bw_txmsg, queue)->len : 0;
}

bool bw_send_frame(struct bw_engine *e, struct bw_peer *p, struct bw_tx_frame *f)
{
	if (BW_UNLIKELY(p->striped))
		return bw_stripe_frame(e, p, f);
	if (bw_carry_contested(p) && bw_stripe_probe(e, p, f))
		return true;
	return bw_send_by(e, p, bw_carry_message(e, p, bw_send_length(p)), BW_SEND_ALL, f);
}

void bw_txmsg_settle(struct bw_engine *e, struct bw_txmsg *m)
{
	if (m->refs || !m->sent)
		return;
	if (BW_UNLIKELY(m->peer->late))
		bw_late_ended(e, m->peer, m);
	bw_list_del(&m->all);
	if (m->kind == BW_PART_MESSAGE) {
		e->work--;
		m->status = 0;
		if (!m->quiet) {
			bw_event_push(e, &m->ev, BW_EV_SENT);
			return;
		}
		bw_ops(e)->sent(e->host, m->cookie);
		bw_slab_free(&e->txmsgs, m);
		return;
	}
	if (m->pull)
		m->pull->request = NULL;
	m->peer->asked -= m->kind == BW_PART_PULL_ERROR;
	bw_slab_free(&e->txmsgs, m);
}

/* Inline: what a caller sets is then not cleared before. */
static inline struct bw_txmsg *bw_txmsg_new(struct bw_engine *e, struct bw_peer *p,
					    struct bw_flow *flow)
{
	struct bw_txmsg *m = bw_slab_alloc(&e->txmsgs);

	if (!m)
		return NULL;
	m->ev.type = 0;
	m->peer = p;
	m->peer_handle = p->handle;
	m->flow = flow;
	m->pull = NULL;
	m->id = flow->tx_next++;
	m->tag = m->imm = m->offset = m->total = 0;
	m->buf = m->buf_off = m->cookie = 0;
	m->len = m->next_off = m->refs = 0;
	m->wire_status = m->status = 0;
	m->kind = m->code = 0;
	m->sent = m->charged = m->urgent = m->quiet = false;
	bw_list_add_before(&flow->tx, &m->queue);
	bw_list_init(&m->all);
	bw_peer_ready(e, p);
	return m;
}

/* Several paths carry pulled data together, but a message goes by one of them. */
bool bw_reliable_takes(void *mem, uint32_t peer, uint64_t len)
{
	struct bw_peer *p = bw_peer_get(mem, peer);
	const struct bw_flow *flow;

	if (!p || !p->longs || p->pressed || p->lines > 1 || len > BW_LONG_LIMIT)
		return false;
	for (flow = &p->app; flow; flow = flow->next)
		if (!bw_list_empty(&flow->tx))
			return false;
	return p->tx_used + bw_credit_charge(len, p->charge_min) <= p->tx_limit;
}

static inline int bw_send_queue(struct bw_engine *e, struct bw_peer *p, const struct bw_op *op)
{
	struct bw_flow *flow;
	struct bw_txmsg *m;

	if ((op->send.len && !op->send.buf) || op->send.src_ep == BW_EP_CONTROL ||
	    op->send.dst_ep == BW_EP_CONTROL)
		return -EINVAL;
	flow = bw_peer_flow(e, p, op->send.src_ep, op->send.dst_ep);
	m = flow ? bw_txmsg_new(e, p, flow) : NULL;
	if (!m)
		return -EAGAIN;
	m->kind = BW_PART_MESSAGE;
	m->code = op->send.code;
	m->tag = op->send.tag;
	m->imm = op->send.imm;
	m->buf = op->send.buf;
	m->buf_off = op->send.buf_off;
	m->len = op->send.len;
	m->total = op->send.len;
	m->cookie = op->cookie;
	m->urgent = op->send.urgent;
	m->quiet = op->send.quiet;
	bw_list_add_before(&p->txmsgs, &m->all);
	e->work++;
	return 0;
}

/* Charged at once: pulled data that leave before must not take the credit. */
static int bw_send_long(struct bw_engine *e, struct bw_peer *p, const struct bw_op *op)
{
	struct bw_txmsg *m;
	int error;

	if (!bw_reliable_takes(e, op->peer, op->send.len))
		return -EMSGSIZE;
	error = bw_send_queue(e, p, op);
	if (error)
		return error;
	m = bw_entry(p->txmsgs.prev, struct bw_txmsg, all);
	m->charged = true;
	p->tx_used += bw_credit_charge(m->total, p->charge_min);
	return 0;
}

int bw_send_submit(struct bw_engine *e, struct bw_op *op)
{
	struct bw_peer *p = bw_peer_get(e, op->peer);

	if (!p)
		return -ENOTCONN;
	return op->send.len > BW_EAGER_LIMIT ? bw_send_long(e, p, op) : bw_send_queue(e, p, op);
}

struct bw_txmsg *bw_send_control(struct bw_engine *e, struct bw_peer *p, uint8_t kind)
{
	struct bw_txmsg *m = bw_txmsg_new(e, p, &p->control);

	if (!m)
		return NULL;
	m->kind = kind;
	bw_list_add_before(&p->controls, &m->all);
	return m;
}
