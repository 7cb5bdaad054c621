// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Remote memory access, the target's side: requests of other providers are checked against the
 * registered memory, carried out in the handler, and answered. Everything in a request comes from
 * another process and is checked before it is used.
 */
#include "bwf.h"
#include "codes.h"

#include <stdlib.h>

static void bwf_target_pulled(struct bwf_ep *ep, struct bwf_done *done, int status, uint64_t len);

void *bwf_target_region(void *arg, bw_peer peer, uint64_t key, uint64_t off, uint64_t n)
{
	struct bwf_ep *ep = arg;
	void *p = bwf_mr_find(ep->dom, key, off, n, FI_REMOTE_READ, NULL);

	if (p && ep->cntr[BWF_CNTR_REMOTE_READ])
		bwf_cntr_count(ep->cntr[BWF_CNTR_REMOTE_READ], 0);
	return p;
}

/* Read a request and find its memory. What is wrong with it is kept in in->status. */
static const char *bwf_target_parse(struct bwf_ep *ep, const struct bw_message *m,
				    struct bwf_incoming *in)
{
	struct bwf_write_request req;
	const char *at = m->data;
	uint64_t total = 0;

	if (!m->data || m->len < sizeof(req))
		return NULL;
	memcpy(&req, at, sizeof(req));
	at += sizeof(req);
	*in = (struct bwf_incoming){
		.done.call = bwf_target_pulled,
		.peer = m->peer,
		.token = req.token,
		.data = req.data,
		.len = req.len,
		.flags = req.flags,
		.n = req.segments,
	};
	if (!req.segments || req.segments > BWF_IOV_MAX ||
	    m->len - sizeof(req) < req.segments * sizeof(struct bwf_segment))
		return NULL;
	for (uint32_t i = 0; i < req.segments; i++, at += sizeof(struct bwf_segment)) {
		struct bwf_segment seg;

		memcpy(&seg, at, sizeof(seg));
		in->to[i].iov_len = seg.len;
		in->to[i].iov_base = bwf_mr_find(ep->dom, seg.key, seg.addr, seg.len,
						 FI_REMOTE_WRITE, &in->mr[i]);
		if (seg.len && !in->to[i].iov_base)
			in->status = -FI_EACCES;
		if (seg.len > BWF_MESSAGE_MAX)
			in->status = -FI_EINVAL;
		total += seg.len;
	}
	if (total != req.len)
		in->status = -FI_EINVAL;
	return at;
}

static void bwf_target_scatter(const struct bwf_incoming *in, const char *data)
{
	for (uint32_t i = 0; i < in->n; i++) {
		if (in->to[i].iov_len)
			memcpy(in->to[i].iov_base, data, in->to[i].iov_len);
		data += in->to[i].iov_len;
	}
}

/* The data are in place, or will never be: tell the program and the initiator. */
static void bwf_target_finish(struct bwf_ep *ep, const struct bwf_incoming *in)
{
	if (!in->status) {
		if ((in->flags & BWF_WRITE_HAS_DATA) && ep->rx_cq)
			bwf_cq_push(ep->rx_cq,
				    &(struct bwf_cqe){
					    .flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
					    .len = in->len,
					    .data = in->data,
					    .src = ep->source ? bwf_peer_source(ep, in->peer)
							      : FI_ADDR_NOTAVAIL,
				    });
		if (ep->cntr[BWF_CNTR_REMOTE_WRITE])
			bwf_cntr_count(ep->cntr[BWF_CNTR_REMOTE_WRITE], 0);
		if (in->mr[0] && in->mr[0]->cntr)
			bwf_cntr_count(in->mr[0]->cntr, 0);
	}
	bwf_todo_answer(ep, in->peer, BWF_CODE_WRITE_DONE, in->token, (uint64_t)-in->status, NULL,
			0);
}

static void bwf_target_write(struct bwf_ep *ep, const struct bw_message *m)
{
	struct bwf_incoming in;
	const char *data = bwf_target_parse(ep, m, &in);

	if (!data)
		return;
	if (m->len - (uint64_t)(data - (const char *)m->data) != in.len)
		in.status = -FI_EINVAL;
	if (!in.status)
		bwf_target_scatter(&in, data);
	bwf_target_finish(ep, &in);
}

static void bwf_target_write_long(struct bwf_ep *ep, const struct bw_message *m)
{
	struct bwf_incoming *in = malloc(sizeof(*in));

	if (!in || !bwf_target_parse(ep, m, in)) {
		free(in);
		return;
	}
	in->next = ep->incoming;
	ep->incoming = in;
}

static struct bwf_incoming *bwf_target_take(struct bwf_ep *ep, bw_peer peer, uint64_t token)
{
	struct bwf_incoming **at = &ep->incoming, *in;

	while (*at && ((*at)->token != token || (*at)->peer != peer))
		at = &(*at)->next;
	in = *at;
	if (in)
		*at = in->next;
	return in;
}

static void bwf_target_pulled(struct bwf_ep *ep, struct bwf_done *done, int status, uint64_t len)
{
	struct bwf_incoming *in = BWF_OF(done, struct bwf_incoming, done);

	if (!in->status)
		in->status = status;
	if (!in->status && in->bounce)
		bwf_target_scatter(in, in->bounce);
	bwf_target_finish(ep, in);
	free(in->bounce);
	free(in);
}

static void bwf_target_write_data(struct bwf_ep *ep, const struct bw_message *m)
{
	struct bwf_incoming *in = bwf_target_take(ep, m->peer, m->tag);
	void *to;

	if (!in) {
		if (m->envelope)
			bwf_todo_pull(ep, m->peer, &m->rndv, NULL, 0, NULL);
		return;
	}
	if (m->len != in->len && !in->status)
		in->status = -FI_EINVAL;
	if (!m->envelope) {
		if (!in->status)
			bwf_target_scatter(in, m->data);
		bwf_target_finish(ep, in);
		free(in);
		return;
	}
	to = in->to[0].iov_base;
	if (in->n > 1 && !in->status) {
		to = in->bounce = malloc(in->len);
		if (!to)
			in->status = -FI_ENOMEM;
	}
	bwf_todo_pull(ep, m->peer, &m->rndv, to, in->status ? 0 : in->len, &in->done);
}

static void bwf_target_write_done(struct bwf_ep *ep, const struct bw_message *m)
{
	struct bwf_op *op = bwf_op_find(ep, m->tag);

	if (op && op->peer == m->peer)
		bwf_op_part(ep, op, m->imm > INT32_MAX ? -FI_EIO : -(int)m->imm);
}

/* The answer to an atomic: what was in the target's memory before. */
static void bwf_target_atomic_done(struct bwf_ep *ep, const struct bw_message *m)
{
	struct bwf_op *op = bwf_op_find(ep, m->tag);
	const char *data = m->data;
	size_t left = m->envelope ? 0 : m->len;

	if (!op || op->peer != m->peer)
		return;
	for (int i = 0; i < op->results && !m->imm; i++) {
		size_t n = op->result[i].iov_len < left ? op->result[i].iov_len : left;

		if (n)
			memcpy(op->result[i].iov_base, data, n);
		data += n;
		left -= n;
	}
	bwf_target_write_done(ep, m);
}

void bwf_target_message(struct bwf_ep *ep, const struct bw_message *m)
{
	switch (m->code & BWF_CODE_MASK) {
	case BWF_CODE_WRITE:
		bwf_target_write(ep, m);
		break;
	case BWF_CODE_WRITE_LONG:
		bwf_target_write_long(ep, m);
		break;
	case BWF_CODE_WRITE_DATA:
		bwf_target_write_data(ep, m);
		break;
	case BWF_CODE_WRITE_DONE:
		bwf_target_write_done(ep, m);
		break;
	case BWF_CODE_ATOMIC:
		bwf_atomic_target(ep, m);
		break;
	case BWF_CODE_ATOMIC_DONE:
		bwf_target_atomic_done(ep, m);
		break;
	default:
		if (m->envelope)
			bwf_todo_pull(ep, m->peer, &m->rndv, NULL, 0, NULL);
	}
}

/* Writes whose data will never come. */
void bwf_target_fail_peer(struct bwf_ep *ep, bw_peer peer)
{
	struct bwf_incoming **at = &ep->incoming;

	while (*at) {
		struct bwf_incoming *in = *at;

		if (in->peer == peer) {
			*at = in->next;
			free(in);
		} else {
			at = &in->next;
		}
	}
}

void bwf_target_free_all(struct bwf_ep *ep)
{
	while (ep->incoming) {
		struct bwf_incoming *in = ep->incoming;

		ep->incoming = in->next;
		free(in);
	}
}
