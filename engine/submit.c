/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Life of a message that is sent: taken from the host, completely sent, acknowledged. What the
 * engine itself asks of a peer, by control messages, lives alike.
 */
#include "credit.h"
#include "duplex.h"
#include "event.h"
#include "late.h"
#include "peer.h"
#include "reliable.h"
#include "submit.h"

void bw_txmsg_left(struct bw_engine *e, struct bw_txmsg *m)
{
	m->sent = true;
	bw_list_del(&m->queue);
	if (m->kind == BW_PART_MESSAGE) {
		m->peer->unsent--;
		bw_duplex_sent_message(e);
	}
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
	m->again.near = m->again.late = NULL;
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

	if (!p || !p->longs || p->pressed || p->lines > 1 || len > BW_LONG_LIMIT || p->unsent)
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
	bw_flow_sends(p, flow);
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
	p->unsent++;
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
	m->charged = true; /* it costs nothing */
	bw_list_add_before(&p->controls, &m->all);
	return m;
}
