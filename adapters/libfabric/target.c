// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Remote memory access, the target's side: requests of other providers are checked against the
 * registered memory, carried out in the handler, and answered. Everything in a request comes from
 * another process and is checked before it is used.
 */
#include "bwf.h"
#include "count.h"

#include <stdlib.h>

static void bwf_target_pulled(struct bwf_ep *ep, struct bwf_done *done, int status, uint64_t len);

void *bwf_target_region(void *arg, bw_peer_no peer, uint64_t key, uint64_t off, uint64_t n)
{
	struct bwf_ep *ep = arg;
	void *p = bwf_mr_ask(ep, peer, key, off, n, FI_REMOTE_READ, NULL);

	if (p && ep->cntr[BWF_CNTR_REMOTE_READ])
		bwf_cntr_count(ep->cntr[BWF_CNTR_REMOTE_READ], 0);
	return p;
}

/* Read a request. NULL if its form is wrong; where its data begin. */
static const char *bwf_target_parse(const struct bw_message *m, struct bwf_incoming *in)
{
	struct bwf_write_request req;
	const char *at = m->data;
	uint64_t total = 0;

	if (!m->data || m->len < sizeof(req))
		return NULL;
	memcpy(&req, at, sizeof(req));
	at += sizeof(req);
	if (!req.segments || req.segments > BWF_IOV_MAX ||
	    m->len - sizeof(req) < req.segments * sizeof(struct bwf_segment))
		return NULL;
	*in = (struct bwf_incoming){
		.done.call = bwf_target_pulled,
		.peer = m->peer,
		.token = req.token,
		.data = req.data,
		.len = req.len,
		.flags = req.flags,
		.n = req.segments,
	};
	memcpy(in->seg, at, req.segments * sizeof(struct bwf_segment));
	for (uint32_t i = 0; i < in->n; i++) {
		if (in->seg[i].len > BWF_MESSAGE_MAX)
			in->status = -FI_EINVAL;
		total += in->seg[i].len;
	}
	if (total != req.len)
		in->status = -FI_EINVAL;
	return at + req.segments * sizeof(struct bwf_segment);
}

/* Find the memory of a request whose data are there now: it may have been registered long ago. */
static void bwf_target_locate(struct bwf_ep *ep, struct bwf_incoming *in)
{
	for (uint32_t i = 0; i < in->n && !in->status; i++) {
		const struct bwf_segment *s = &in->seg[i];

		in->to[i].iov_len = s->len;
		/* It says nothing of the key to whom the program has named: the answer is the same
		 * for any. */
		if (!s->len && bwf_peer_source(ep, in->peer) != FI_ADDR_NOTAVAIL) {
			bwf_mr_find(ep->dom, s->key, s->addr, 0, FI_REMOTE_WRITE, &in->mr[i]);
			continue;
		}
		in->to[i].iov_base = bwf_mr_ask(ep, in->peer, s->key, s->addr, s->len,
						FI_REMOTE_WRITE, &in->mr[i]);
		if (!in->to[i].iov_base)
			in->status = -FI_EACCES;
	}
	if (!in->status && (in->flags & BWF_WRITE_HAS_DATA) && bwf_cq_overfull(ep->rx_cq))
		in->status = -FI_ENOBUFS;
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
	} else {
		bw_count_event(ep->bw, BW_COUNT_WRITES_REFUSED);
	}
	bwf_todo_answer(ep, in->peer, BWF_CODE_WRITE_DONE, in->token, (uint64_t)-in->status, NULL,
			0);
}

static void bwf_target_write(struct bwf_ep *ep, const struct bw_message *m)
{
	struct bwf_incoming in;
	const char *data = bwf_target_parse(m, &in);

	if (!data) {
		bw_count_event(ep->bw, BW_COUNT_MALFORMED);
		return;
	}
	bwf_target_locate(ep, &in);
	if (m->len - (uint64_t)(data - (const char *)m->data) != in.len)
		in.status = -FI_EINVAL;
	if (!in.status)
		bwf_target_scatter(&in, data);
	bwf_target_finish(ep, &in);
}

static struct bwf_incoming *bwf_target_find(const struct bwf_ep *ep, bw_peer_no peer,
					    uint64_t token)
{
	struct bwf_incoming *in = ep->peer[peer].writes;

	while (in && in->token != token)
		in = in->next;
	return in;
}

static void bwf_target_enter(struct bwf_incoming_list *l, struct bwf_incoming *in)
{
	in->before = l->last;
	in->after = NULL;
	*(in->before ? &in->before->after : &l->first) = in;
	l->last = in;
}

static void bwf_target_leave(struct bwf_incoming_list *l, struct bwf_incoming *in)
{
	*(in->before ? &in->before->after : &l->first) = in->after;
	*(in->after ? &in->after->before : &l->last) = in->before;
}

/* Its data are no longer waited for. */
static void bwf_target_came(struct bwf_ep *ep, struct bwf_incoming *in)
{
	bwf_target_leave(&ep->incoming, in);
	ep->peer[in->peer].asked--;
	if (bwf_stranger_counts(ep, in->peer))
		ep->strangers.asked--;
}

/* It is in no list any more. */
static void bwf_target_forget(struct bwf_ep *ep, const struct bwf_incoming *in)
{
	struct bwf_incoming **at = &ep->peer[in->peer].writes;

	while (*at != in)
		at = &(*at)->next;
	*at = in->next;
	ep->peer[in->peer].writes_in--;
	if (in->bounce)
		ep->bounced -= in->len;
}

static void bwf_target_free(struct bwf_incoming *in)
{
	free(in->bounce);
	free(in);
}

/* A request that is in no list but its peer's is over. It is forgotten first: the answer may be one
 * too many, and the peer be given up with all that it has asked for. */
static void bwf_target_end(struct bwf_ep *ep, struct bwf_incoming *in)
{
	bwf_target_forget(ep, in);
	bwf_target_finish(ep, in);
	bwf_target_free(in);
}

/* Is a request to be kept until its data come? 0, or the error to answer. */
static int bwf_target_admit(const struct bwf_ep *ep, const struct bwf_incoming *in)
{
	if (ep->peer[in->peer].writes_in >= BWF_WRITES_MAX)
		return -FI_ENOBUFS;
	if (bwf_target_find(ep, in->peer, in->token))
		return -FI_EALREADY;
	return 0;
}

/* Refuse the stranger's that has waited longest for its data. Those of peers that have been named
 * meanwhile count as new. */
static void bwf_target_make_room(struct bwf_ep *ep)
{
	const struct bwf_incoming *last = ep->incoming.last;
	struct bwf_incoming *in;

	while ((in = ep->incoming.first) != last && !bwf_stranger_counts(ep, in->peer)) {
		bwf_target_leave(&ep->incoming, in);
		bwf_target_enter(&ep->incoming, in);
	}
	if (!in || !bwf_stranger_counts(ep, in->peer))
		return;
	bwf_target_came(ep, in);
	in->status = -FI_ENOBUFS;
	bwf_target_end(ep, in);
}

static void bwf_target_write_long(struct bwf_ep *ep, const struct bw_message *m)
{
	struct bwf_incoming request, *in;
	int ret;

	if (!bwf_target_parse(m, &request)) {
		bw_count_event(ep->bw, BW_COUNT_MALFORMED);
		return;
	}
	ret = bwf_target_admit(ep, &request);
	in = ret ? NULL : malloc(sizeof(*in));
	if (!in) {
		request.status = ret ? ret : -FI_ENOMEM;
		bwf_target_finish(ep, &request);
		return;
	}
	if (!bwf_stranger_may_ask(ep, request.peer))
		bwf_target_make_room(ep);
	if (bwf_peer_gone(&ep->peer[request.peer])) { /* given up for the answer to that one */
		free(in);
		return;
	}
	*in = request;
	bwf_target_enter(&ep->incoming, in);
	in->next = ep->peer[in->peer].writes;
	ep->peer[in->peer].writes = in;
	ep->peer[in->peer].writes_in++;
	ep->peer[in->peer].asked++;
	if (bwf_stranger_counts(ep, in->peer))
		ep->strangers.asked++;
}

static void bwf_target_pulled(struct bwf_ep *ep, struct bwf_done *done, int status, uint64_t len)
{
	struct bwf_incoming *in = BWF_OF(done, struct bwf_incoming, done);

	bwf_target_leave(&ep->placing, in);
	if (!in->status)
		in->status = status;
	if (!in->status && len != in->len)
		in->status = -FI_EIO;
	if (!in->status && in->bounce)
		bwf_target_scatter(in, in->bounce);
	bwf_target_end(ep, in);
}

/* Memory for data on their way to several segments: all such together may take as much as
 * unexpected messages, and one alone whatever its length. 0, or the error to answer. */
static int bwf_target_bounce(struct bwf_ep *ep, struct bwf_incoming *in)
{
	uint64_t limit = ep->unexpected.limit;

	if (ep->bounced && (ep->bounced > limit || in->len > limit - ep->bounced))
		return -FI_ENOBUFS;
	in->bounce = malloc(in->len ? in->len : 1);
	if (!in->bounce)
		return -FI_ENOMEM;
	ep->bounced += in->len;
	return 0;
}

static void bwf_target_write_data(struct bwf_ep *ep, const struct bw_message *m)
{
	struct bwf_incoming *in = bwf_target_find(ep, m->peer, m->tag);
	void *to;

	if (!in || in->placing) {
		if (m->envelope)
			bwf_todo_discard(ep, m->peer, &m->rndv);
		return;
	}
	bwf_target_came(ep, in);
	if (m->len != in->len && !in->status)
		in->status = -FI_EINVAL;
	bwf_target_locate(ep, in);
	if (!m->envelope) {
		if (!in->status)
			bwf_target_scatter(in, m->data);
		bwf_target_end(ep, in);
		return;
	}
	to = in->to[0].iov_base;
	if (in->n > 1 && !in->status) {
		in->status = bwf_target_bounce(ep, in);
		to = in->bounce;
	}
	in->placing = true;
	bwf_target_enter(&ep->placing, in);
	bwf_todo_pull(ep, m->peer, &m->rndv, to, in->status ? 0 : in->len, &in->done);
}

static bool bwf_target_touches(const struct bwf_incoming *in, const struct bwf_mr *mr)
{
	for (uint32_t i = 0; i < in->n; i++) {
		if (in->mr[i] == mr)
			return true;
	}
	return false;
}

uint64_t bwf_target_placing(const struct bwf_ep *ep, const struct bwf_mr *mr)
{
	uint64_t len = 0;

	for (const struct bwf_incoming *in = ep->placing.first; in; in = in->after) {
		if (bwf_target_touches(in, mr))
			len += in->len;
	}
	return len;
}

bool bwf_target_uses(struct bwf_ep *ep, const struct bwf_mr *mr)
{
	for (const struct bwf_incoming *in = ep->placing.first; in; in = in->after) {
		if (bwf_target_touches(in, mr))
			return true;
	}
	return bw_ep_serving(ep->bw, mr->fid.key, mr->base, mr->len);
}

/* Their initiators are told. */
void bwf_target_give_up(struct bwf_ep *ep, const struct bwf_mr *mr)
{
	bw_ep_forbid(ep->bw, mr->fid.key); /* again, where there was no room */
	for (struct bwf_incoming *in = ep->placing.first; in; in = in->after) {
		if (bwf_target_touches(in, mr))
			bw_pull_cancel(ep->bw, in->peer, &in->done);
	}
}

/* What an answer says about the end of its operation: an error that targets answer with, or EIO.
 * Else a peer could choose what the program takes for its own: a retry (EAGAIN), say. */
static int bwf_target_status(const struct bw_message *m)
{
	switch (m->imm) {
	case 0:
	case FI_EACCES:
	case FI_EALREADY:
	case FI_ECANCELED:
	case FI_EINVAL:
	case FI_EIO:
	case FI_ENOBUFS:
	case FI_ENOMEM:
		return -(int)m->imm;
	default:
		return -FI_EIO;
	}
}

static void bwf_target_write_done(struct bwf_ep *ep, const struct bw_message *m)
{
	struct bwf_op *op = bwf_op_answered(ep, m->peer, BWF_CODE_WRITE_DONE, m->tag);

	if (op)
		bwf_op_part(ep, op, bwf_target_status(m));
}

/* The answer to an atomic: what was in the target's memory before. */
static void bwf_target_atomic_done(struct bwf_ep *ep, const struct bw_message *m)
{
	struct bwf_op *op = bwf_op_answered(ep, m->peer, BWF_CODE_ATOMIC_DONE, m->tag);
	int status = bwf_target_status(m);
	const char *data = m->data;

	if (!op)
		return;
	if (!status && (m->envelope || m->len != bwf_iov_len(op->result, op->results)))
		status = -FI_EIO;
	for (int i = 0; i < op->results && !status; i++) {
		size_t n = op->result[i].iov_len;

		if (n)
			memcpy(op->result[i].iov_base, data, n);
		data += n;
	}
	bwf_op_part(ep, op, status);
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
		bw_count_event(ep->bw, BW_COUNT_MALFORMED);
		if (m->envelope)
			bwf_todo_discard(ep, m->peer, &m->rndv);
	}
}

/* Writes whose data will never come. */
void bwf_target_fail_peer(struct bwf_ep *ep, bw_peer_no peer)
{
	struct bwf_incoming *in = ep->peer[peer].writes, *next;

	for (; in; in = next) {
		next = in->next;
		if (in->placing) /* the end of the fetch tells of it */
			continue;
		bwf_target_came(ep, in);
		bwf_target_forget(ep, in);
		bwf_target_free(in);
	}
}

static void bwf_target_free_list(struct bwf_incoming *in)
{
	while (in) {
		struct bwf_incoming *next = in->after;

		bwf_target_free(in);
		in = next;
	}
}

void bwf_target_free_all(struct bwf_ep *ep)
{
	bwf_target_free_list(ep->incoming.first);
	bwf_target_free_list(ep->placing.first);
}
