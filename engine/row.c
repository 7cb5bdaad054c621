/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rows: frames of one peer by one path, each with a piece of the same message or pull, that carry
 * on where the one before ends. Such frames differ in their number, their place and their checksums
 * alone. What is the same is made, looked at and accounted once for all of them; each is a frame of
 * its own on the wire, is checked as such, and has a record of its own until it is acknowledged.
 */
#include "ack.h"
#include "contact.h"
#include "credit.h"
#include "duplex.h"
#include "keys.h"
#include "peer.h"
#include "pull.h"
#include "recv.h"
#include "reliable.h"
#include "row.h"
#include "send.h"
#include "single.h"

/* Where the pieces of a row belong. */
struct bw_row_place {
	struct bw_pull *pull; /* NULL: they are of the message */
	struct bw_rxmsg *msg;
	uint64_t buf, buf_off; /* of the host's, and where in it the whole begins */
	uint64_t total;	       /* bytes of the whole */
	uint64_t lo, hi;       /* of it, what of the row has been put in place */
	uint32_t packets, marks;
	bool ack_now;
};

/* There it is, if nothing of the whole has come that lies behind this piece of it. */
static bool bw_row_find(struct bw_engine *e, struct bw_peer *p, const struct bw_single *s,
			struct bw_row_place *w)
{
	const struct bw_span *last;

	memset(w, 0, sizeof(*w));
	if (s->part.kind == BW_PART_BULK) {
		struct bw_pull *u = w->pull = bw_pull_get(e, s->bulk.id);

		if (!u || u->peer != p || u->ended || !u->nspans)
			return false;
		last = &u->span[u->nspans - 1];
		w->buf = u->buf;
		w->buf_off = u->buf_off;
		w->total = u->len;
		w->lo = s->bulk.offset + s->part.plen;
	} else {
		struct bw_rxmsg *m = w->msg = bw_recv_arriving(e, p, &s->msg);

		if (!m || !m->buf || !m->nspans)
			return false;
		last = &m->span[m->nspans - 1];
		w->buf = m->buf;
		w->total = m->total;
		w->lo = s->msg.offset + s->part.plen;
	}
	w->hi = w->lo;
	return last->hi == w->lo;
}

/* Does frame `s` say what the one before it would, were it the next piece? */
static BW_WITHIN bool bw_row_follows(const struct bw_peer *p, const struct bw_path *t,
				     const struct bw_single *s, const struct bw_single *before,
				     const struct bw_row_place *w)
{
	bool keyed = p->keyed; /* half a tag is in place of the token */

	if (memcmp(&s->h, &before->h, offsetof(struct bw_hdr, token)) ||
	    (s->h.token != before->h.token && !keyed) || s->h.conn != before->h.conn ||
	    s->h.path != before->h.path || s->h.pn != (uint32_t)t->rx.got.base ||
	    memcmp(&s->b, &before->b, sizeof(s->b)) || s->part.kind != before->part.kind ||
	    s->part.code != before->part.code || !s->part.plen)
		return false;
	if (w->pull)
		return s->bulk.id == before->bulk.id && s->bulk.offset == w->hi;
	return s->msg.id == before->msg.id && s->msg.offset == w->hi &&
	       !memcmp(&s->msg.total, &before->msg.total,
		       sizeof(s->msg) - offsetof(struct bw_part_msg, total));
}

/* Take it, if it is right. */
static BW_WITHIN bool bw_row_take(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
				  const struct bw_rx_frame *f, uint32_t head,
				  struct bw_row_place *w)
{
	const struct bw_single *s = f->head;
	uint32_t len = s->part.plen;

	if (len > w->total - w->hi || (w->pull && !bw_credit_covers(p, w->hi - w->lo + len)) ||
	    !bw_single_right(e, p, t, s, head) ||
	    bw_ops(e)->place(e->host, w->buf, w->buf_off + w->hi, f, head, len, p->checksum,
			     s->part.crc))
		return false;
	w->hi += len;
	w->packets++;
	w->marks += f->mark;
	w->ack_now |= s->h.flags & BW_HDR_ACK_NOW;
	t->rx.got.base++;
	return true;
}

/* All that were taken, at once. */
static void bw_row_account(struct bw_engine *e, struct bw_peer *p, struct bw_path *t,
			   const struct bw_single *s, const struct bw_row_place *w)
{
	e->count.rx_frames += w->packets;
	if (w->pull) {
		bw_pull_count(e, w->pull, w->lo, w->hi);
	} else {
		bw_recv_placed(e, w->msg, w->lo, w->hi);
		bw_flow_deliver(e, bw_peer_flow_find(e, p, s->msg.dst_ep, s->msg.src_ep));
	}
	bw_ack_note(e, p, t, t->rx.got.base - 1, w->packets, w->marks, w->ack_now);
	bw_single_plan(e, p, t, s);
}

uint32_t bw_row_received(struct bw_engine *e, const struct bw_rx_frame *f, uint32_t n)
{
	const struct bw_single *first = f->head, *s;
	uint32_t head = bw_single_head(f, 0), i;
	struct bw_row_place w;
	struct bw_peer *p;
	struct bw_path *t;

	p = head && first->h.type == BW_FRAME_DATA ? bw_peer_get(e, first->h.conn) : NULL;
	t = bw_contact_shows(p, &first->h) ? bw_peer_path(p, first->h.path) : NULL;
	if (!t || t->state != BW_PATH_UP || t->rx.got.n || !bw_row_find(e, p, first, &w))
		return 0;
	for (i = 1; i < n; i++) {
		s = f[i].head;
		if (bw_single_head(&f[i], 0) != head || sizeof(s->h) + s->h.len > f[i].len ||
		    !bw_link_same(&f[i].from, &t->to) || !bw_row_follows(p, t, s, first, &w) ||
		    !bw_row_take(e, p, t, &f[i], head, &w))
			break;
	}
	if (w.packets)
		bw_row_account(e, p, t, first, &w);
	return w.packets;
}

/* What leaves next, if it carries on where the frame before ended. */
struct bw_row_piece {
	uint8_t kind; /* enum bw_owned_kind */
	void *obj;
	uint64_t off, left, buf_off;
	bool urgent; /* at its end */
};

static BW_WITHIN bool bw_row_piece(const struct bw_row *w, struct bw_row_piece *c)
{
	if (w->serve) {
		struct bw_serve *s = w->serve;

		if (w->peer->serving.next != &s->turn)
			return false;
		*c = (struct bw_row_piece){.kind = BW_OWNED_BULK,
					   .obj = s,
					   .off = s->next_off,
					   .left = s->len - s->next_off,
					   .buf_off = s->buf_off,
					   .urgent = true};
	} else {
		struct bw_txmsg *m = w->msg;

		*c = (struct bw_row_piece){.kind = BW_OWNED_MESSAGE,
					   .obj = m,
					   .off = m->next_off,
					   .left = m->len - m->next_off,
					   .buf_off = m->buf_off,
					   .urgent = bw_send_urgent(w->path, m)};
	}
	return c->left;
}

/* The piece is in a packet of its own, which leaves. */
static BW_WITHIN void bw_row_left(struct bw_engine *e, const struct bw_row *w, struct bw_record *r,
				  uint32_t frame_len)
{
	struct bw_peer *p = w->peer;
	struct bw_path *t = w->path;

	r->pn = t->pn_next++;
	r->sent_ns = e->now;
	r->frame_len = frame_len;
	bw_list_add_before(&t->flight, &r->list);
	bw_duplex_left(e, t, frame_len);
	t->last_sent = e->now;
	e->last.pn = r->pn;
	e->count.tx_frames++;
	p->quantum--;
	if (w->serve)
		bw_send_serve_left(e, w->serve, r->len);
	else
		bw_send_message_left(e, w->msg, r->len);
	bw_send_rest(p, w->serve ? NULL : w->msg->flow);
}

bool bw_row_next(struct bw_engine *e, struct bw_tx_frame *f)
{
	const struct bw_row w = e->row;
	struct bw_single *s = (struct bw_single *)f->head;
	struct bw_tx_segment *g = &f->segment[0];
	struct bw_row_piece c;
	struct bw_record *r;
	uint32_t len;

	if (!w.peer->is_ready || e->ready.next != &w.peer->ready || w.peer->quantum == 1 ||
	    w.path->inflight >= w.path->cc.cwnd || !bw_row_piece(&w, &c))
		return false;
	len = (uint32_t)bw_min_u64(c.left, g->len);
	if (w.serve && w.peer->tx_used + len > w.peer->tx_limit)
		return false;
	r = bw_record_new(e, w.peer, c.kind, c.obj, c.off, len);
	if (!r)
		return false;
	f->len = f->head_len + len;
	g->len = len;
	g->off = c.buf_off + c.off;
	if (w.serve)
		s->bulk.offset = c.off;
	else
		s->msg.offset = w.msg->offset + c.off;
	s->part.plen = (uint16_t)len;
	if (w.peer->checksum)
		s->part.crc = bw_ops(e)->payload_crc(e->host, g->buf, g->off, len);
	bw_row_left(e, &w, r, f->len);
	s->h.pn = (uint32_t)r->pn;
	s->h.flags = (len == c.left && c.urgent) || w.path->inflight >= w.path->cc.cwnd
			     ? BW_HDR_ACK_NOW
			     : 0;
	bw_head_seal(e, bw_peer_tag_key(w.peer), bw_ack_over_data(w.peer, r->pn), f->head,
		     f->head_len, f->len);
	return true;
}
