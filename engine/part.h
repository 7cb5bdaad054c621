/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the straight line (single.c) and the general way (send.c) do alike with a DATA frame that
 * leaves: its parts, their records, and the path's account of it. All inline, nothing can fail.
 */
#ifndef BW_PART_H
#define BW_PART_H

#include "duplex.h"
#include "reliable.h"

/* A part of a message, but for bw_part_payload(). */
static inline void bw_part_message(struct bw_part_msg *w, const struct bw_txmsg *m, uint8_t kind,
				   uint64_t offset, int32_t status)
{
	w->part.kind = kind;
	w->part.code = m->code;
	w->id = m->id;
	w->offset = offset;
	w->total = m->total;
	w->tag = m->tag;
	w->imm = m->imm;
	w->dst_ep = m->flow->remote_ep;
	w->src_ep = m->flow->local_ep;
	w->status = status;
}

static inline void bw_part_bulk(struct bw_part_bulk *w, const struct bw_serve *s, uint64_t offset)
{
	w->part.kind = BW_PART_BULK;
	w->part.code = 0;
	w->id = s->pull_id;
	w->offset = offset;
}

/* The length and check of a part's payload. */
static inline void bw_part_payload(struct bw_engine *e, struct bw_part *part, uint64_t buf,
				   uint64_t off, uint32_t len, bool check)
{
	part->plen = (uint16_t)len;
	part->crc = len && check ? bw_ops(e)->payload_crc(e->host, buf, off, len) : 0;
}

#define BW_LOAD_FRAMES 4 /* a message of more frames tells how fast its path carries */

static inline bool bw_part_loads(const struct bw_path *t, const struct bw_txmsg *m)
{
	return m->len > BW_LOAD_FRAMES * t->pmtu.mtu;
}

/* Is the packet with the message's bytes up to this one to be acknowledged at once? The last one
 * is if somebody waits for that, or if the message is long and its path is being measured: it is
 * when it is acknowledged that counts, not when the peer has something to say. */
static inline bool bw_part_urgent(const struct bw_path *t, const struct bw_txmsg *m, uint32_t end)
{
	return end == m->len && (m->urgent || (!t->carry.warm && bw_part_loads(t, m)));
}

/* The range of this record leaves in packet `pn`; the first record of a packet tells its length. */
static inline void bw_part_owned(struct bw_path *t, struct bw_record *r, uint64_t pn, uint64_t now,
				 uint32_t frame_len)
{
	r->pn = pn;
	r->sent_ns = now;
	r->frame_len = frame_len;
	bw_list_add_before(&t->flight, &r->list);
}

/* Last step before DATA leaves. What is sealed is under its own tag: that of the head covers what
 * is shown, so that a frame which is not the peer's, or comes again, is not opened. */
static inline void bw_part_seal(struct bw_engine *e, const struct bw_peer *p, struct bw_tx_frame *f,
				uint64_t pn)
{
	const uint8_t *key = bw_peer_tag_key(p);
	uint32_t covered = f->head_len;

	if (BW_UNLIKELY(key) && p->trailer) {
		covered = BW_DATA_HEAD;
		f->seal.key = p->keys->tx.seal;
		f->seal.pn = pn;
	}
	bw_head_seal(e, key, pn, f->head, covered, f->len);
}

/* The packet leaves. */
static inline void bw_part_left(struct bw_engine *e, struct bw_path *t, uint64_t pn)
{
	e->last.pn = pn;
	t->pn_next = pn + 1;
	t->last_sent = e->now;
	t->probe_allow = false;
}

#endif
