/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages by the local link, which has both short and long ones itself. A send needs no time. */
#include <errno.h>
#include <string.h>

#include "ep.h"

_Static_assert(sizeof(struct bw_local_envelope) <= 3 * sizeof(uint64_t), "struct bw_rndv");

static uint32_t bw_by_local_eager_max(struct bw_ep *ep, struct bw_remote *p)
{
	uint32_t max = bw_local_eager_max(p->local);

	return max ? max : BW_EAGER_LEAST;
}

static int bw_by_local_send(struct bw_ep *ep, struct bw_remote *p, struct bw_op *op,
			    const void *buf, uint64_t len, unsigned int flags, void *user_op)
{
	uint32_t eager = flags & BW_SEND_EAGER ? bw_local_send_limit(p->local)
					       : bw_by_local_eager_max(ep, p);
	bool offer = flags & BW_SEND_SYNC || len > eager;
	struct bw_buffer *b = NULL; /* of a send whose end is told */
	int error;

	if (offer || flags & (BW_SEND_ACKED | BW_SEND_HANDED)) {
		b = bw_buffer_describe(&ep->buffers, (void *)(uintptr_t)buf, len);
		if (!b)
			return -EAGAIN;
		b->use = offer ? BW_BUFFER_EXPOSED : BW_BUFFER_COPY;
		b->op = user_op;
		b->peer = p->number;
		b->by = &bw_by_local;
	}
	if (offer)
		error = bw_local_offer(p->local, op->send.code, op->send.tag, op->send.imm, buf,
				       len, b);
	else
		error = bw_local_send(p->local, op->send.code, op->send.tag, op->send.imm, buf, len,
				      b);
	if (!b)
		return error ? error : 1;
	if (error)
		bw_buffer_put(&ep->buffers, b);
	else
		bw_buffer_link(&ep->pending, b);
	return error;
}

static int bw_by_local_pull(struct bw_ep *ep, struct bw_remote *p, const struct bw_rndv *rndv,
			    void *buf, uint64_t len, void *user_op)
{
	struct bw_local_envelope envelope;

	if (!p->local)
		return -EINVAL;
	memcpy(&envelope, rndv->word, sizeof(envelope));
	return bw_local_pull(p->local, &envelope, buf, len, user_op);
}

static int bw_by_local_read(struct bw_ep *ep, struct bw_remote *p, uint64_t key, uint64_t off,
			    void *buf, uint64_t len, void *user_op)
{
	bw_host_tick(ep);
	return bw_local_read(p->local, key, off, buf, len, user_op);
}

static int bw_by_local_cancel(struct bw_ep *ep, struct bw_remote *p, struct bw_buffer *b)
{
	return p->local ? bw_local_retract(p->local, b) : -ENOENT;
}

const struct bw_transport bw_by_local = {
	.send = bw_by_local_send,
	.pull = bw_by_local_pull,
	.read = bw_by_local_read,
	.cancel = bw_by_local_cancel,
	.eager_max = bw_by_local_eager_max,
};

static int bw_by_local_new(void *arg, struct bw_local_peer *local, const struct bw_local_id *id,
			   void **ctx)
{
	struct bw_ep *ep = arg;
	struct bw_remote *p = bw_remote_meet(ep, id->node, id->engine, id->incarnation);

	if (!p)
		return -ENOMEM;
	if (p->status)
		return -ECONNREFUSED;
	p->local = local;
	p->addr.links |= BW_LINK_LOCAL;
	p->by = &bw_by_local;
	bw_remote_name(p, id->name, sizeof(id->name));
	*ctx = p;
	return 0;
}

static void bw_by_local_arrived(void *arg, void *ctx, const struct bw_local_message *in)
{
	struct bw_ep *ep = arg;
	struct bw_remote *p = ctx;
	struct bw_message m = {
		.peer = p->number,
		.code = in->code & BW_CODE_MAX,
		.tag = in->tag,
		.imm = in->imm,
		.len = in->len,
		.data = in->data,
		.envelope = in->is_envelope,
	};

	if (p->status)
		return;
	if (in->is_envelope) {
		memcpy(m.rndv.word, &in->envelope, sizeof(in->envelope));
		m.rndv.word[BW_RNDV_KIND] = BW_RNDV_LOCAL;
	}
	p->known = true;
	BW_PROBE2(message_received, ep, &m);
	ep->handlers->message(ep->arg, &m);
}

static void bw_by_local_sent(void *arg, void *ctx, void *op, int status)
{
	struct bw_ep *ep = arg;
	struct bw_buffer *b = op;
	void *user_op = b->op;

	bw_buffer_unlink(&ep->pending, b);
	bw_buffer_put(&ep->buffers, b);
	if (!ep->dead)
		ep->handlers->sent(ep->arg, user_op, status);
}

static void bw_by_local_pulled(void *arg, void *ctx, void *op, int status, uint64_t len)
{
	struct bw_ep *ep = arg;

	if (!ep->dead)
		ep->handlers->pulled(ep->arg, op, status, len);
}

static void bw_by_local_down(void *arg, void *ctx, int status)
{
	struct bw_ep *ep = arg;
	struct bw_remote *p = ctx;

	p->local = NULL;
	if (p->handle) {
		struct bw_op op = {.type = BW_OP_DISCONNECT, .peer = p->handle};

		bw_host_submit(ep, &op);
	}
	bw_remote_down(ep, p, status);
}

static void *bw_by_local_region(void *arg, void *ctx, uint64_t key, uint64_t off, uint64_t n)
{
	struct bw_ep *ep = arg;
	struct bw_remote *p = ctx;

	p->known = true;
	return ep->handlers->region ? ep->handlers->region(ep->arg, p->number, key, off, n) : NULL;
}

static void bw_by_local_share(void *arg, void *at, size_t n)
{
	const struct bw_ep *ep = arg;

	bw_home_share(&ep->home, at, n);
}

const struct bw_local_handlers bw_by_local_handlers = {
	.peer_new = bw_by_local_new,
	.message = bw_by_local_arrived,
	.sent = bw_by_local_sent,
	.pulled = bw_by_local_pulled,
	.peer_down = bw_by_local_down,
	.region = bw_by_local_region,
	.share = bw_by_local_share,
};
