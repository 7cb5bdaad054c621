/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fetching: long messages, whose data lie at their sender until then, and memory of peers. */
#include <errno.h>
#include <string.h>

#include "ep.h"
#include "hosts.h"

/* Common to pulls and reads over the engine. */
static int bw_fetch_start(struct bw_ep *ep, struct bw_remote *p, struct bw_op *op, void *buf,
			  uint64_t len, void *user_op)
{
	struct bw_buffer *b = bw_buffer_describe(&ep->buffers, buf, len);
	int error;

	if (!b)
		return -EAGAIN;
	b->use = BW_BUFFER_PULLING;
	b->notify = user_op != NULL;
	b->op = user_op;
	b->peer = p->number;
	op->type = BW_OP_PULL;
	op->peer = p->handle;
	op->cookie = bw_buffer_cookie(b);
	op->pull.len = len;
	op->pull.buf = op->cookie;
	op->pull.buf_off = 0;
	error = bw_host_submit(ep, op);
	if (error) {
		bw_buffer_put(&ep->buffers, b);
		return error;
	}
	b->key = op->pull.id;
	b->by = &bw_by_engine;
	bw_buffer_link(&ep->pulling, b);
	bw_lone_begin(&ep->fetching, b, ep->now);
	bw_host_transmit(ep);
	return 0;
}

int bw_fetch_message(struct bw_ep *ep, struct bw_remote *p, const struct bw_rndv *rndv, void *buf,
		     uint64_t len, void *user_op)
{
	struct bw_op op;

	if (!p->handle)
		return -EINVAL;
	bw_host_tick(ep);
	op.pull.key = rndv->word[BW_RNDV_KEY];
	op.pull.off = 0;
	op.pull.flags = BW_PULL_FINAL;
	len = bw_min_u64(len, rndv->word[BW_RNDV_LEN]);
	return bw_fetch_start(ep, p, &op, buf, len, user_op);
}

/* Back by the way that the envelope came. */
static int bw_fetch_envelope(struct bw_ep *ep, struct bw_remote *p, const struct bw_rndv *rndv,
			     void *buf, uint64_t len, void *user_op)
{
	static const struct bw_transport *const by[] = {
		[BW_RNDV_ENGINE] = &bw_by_engine,
		[BW_RNDV_LOCAL] = &bw_by_local,
		[BW_RNDV_KERNEL] = &bw_by_kernel,
	};
	uint64_t kind = rndv->word[BW_RNDV_KIND];

	if (p->status)
		return p->status;
	if (kind >= sizeof(by) / sizeof(by[0]) || !by[kind])
		return -EINVAL;
	return by[kind]->pull(ep, p, rndv, buf, len, user_op);
}

int bw_pull(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *buf, uint64_t len,
	    void *user_op)
{
	struct bw_remote *p;
	int error = -EINVAL;

	bw_lock_take(&ep->lock);
	p = bw_remote_get(&ep->remotes, peer);
	if (p && !ep->dead && (buf || !len))
		error = bw_fetch_envelope(ep, p, rndv, buf, len, user_op);
	bw_lock_release(&ep->lock);
	return error;
}

static int bw_fetch_early(struct bw_ep *ep, struct bw_remote *p, const struct bw_rndv *rndv,
			  void *buf, uint64_t len, void *user_op)
{
	struct bw_op op;
	int error;

	if (p->status)
		return p->status;
	if (rndv->word[BW_RNDV_KIND] != BW_RNDV_ENGINE || !p->handle ||
	    !bw_cost_is_high(p->fetched_cost))
		return -EOPNOTSUPP;
	if (!buf)
		return 0;
	bw_host_tick(ep);
	op.pull.key = rndv->word[BW_RNDV_KEY];
	op.pull.off = 0;
	op.pull.flags = 0;
	error = bw_fetch_start(ep, p, &op, buf, bw_min_u64(len, rndv->word[BW_RNDV_LEN]), user_op);
	ep->early += !error;
	return error;
}

int bw_pull_early(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *buf,
		  uint64_t len, void *user_op)
{
	struct bw_remote *p;
	int error = -EINVAL;

	bw_lock_take(&ep->lock);
	p = bw_remote_get(&ep->remotes, peer);
	if (p && !ep->dead && len)
		error = bw_fetch_early(ep, p, rndv, buf, len, user_op);
	bw_lock_release(&ep->lock);
	return error;
}

int bw_fetch_memory(struct bw_ep *ep, struct bw_remote *p, uint64_t key, uint64_t off, void *buf,
		    uint64_t len, void *user_op)
{
	struct bw_op op;

	bw_host_tick(ep);
	op.pull.key = key;
	op.pull.off = off;
	op.pull.flags = BW_PULL_HOST_KEY;
	return bw_fetch_start(ep, p, &op, buf, len, user_op);
}

static int bw_fetch_read(struct bw_ep *ep, struct bw_remote *p, uint64_t key, uint64_t off,
			 void *buf, uint64_t len, void *user_op)
{
	int error;

	if (p->status)
		return p->status;
	if (!p->by) {
		bw_host_tick(ep);
		error = bw_remote_connect(ep, p);
		if (error)
			return error;
	}
	return p->by->read(ep, p, key, off, buf, len, user_op);
}

int bw_read(struct bw_ep *ep, bw_peer_no peer, uint64_t key, uint64_t off, void *buf, uint64_t len,
	    void *user_op)
{
	struct bw_remote *p;
	int error = -EINVAL;

	bw_lock_take(&ep->lock);
	p = bw_remote_get(&ep->remotes, peer);
	if (p && !ep->dead && (buf || !len))
		error = bw_fetch_read(ep, p, key, off, buf, len, user_op);
	bw_lock_release(&ep->lock);
	return error;
}

static int bw_fetch_cancel(struct bw_ep *ep, struct bw_remote *p, void *user_op)
{
	struct bw_buffer *b;

	for (b = ep->pulling; b && (b->op != user_op || b->peer != p->number); b = b->next)
		;
	if (b)
		return b->by->cancel(ep, p, b);
	return p->local ? bw_local_cancel(p->local, user_op) : -ENOENT;
}

int bw_pull_cancel(struct bw_ep *ep, bw_peer_no peer, void *user_op)
{
	struct bw_remote *p;
	int error = -ENOENT;

	bw_lock_take(&ep->lock);
	p = bw_remote_get(&ep->remotes, peer);
	if (p && user_op && !ep->dead)
		error = bw_fetch_cancel(ep, p, user_op);
	bw_lock_release(&ep->lock);
	return error;
}

/* The local link asks `region` again for every piece. */
bool bw_ep_serving(struct bw_ep *ep, uint64_t key, const void *buf, uint64_t len)
{
	bool serving;

	bw_lock_take(&ep->lock);
	serving = !ep->dead && (bw_reliable_serving(ep->engine, key) ||
				(ep->kernel && bw_kernel_serving(ep, buf, len)));
	bw_lock_release(&ep->lock);
	return serving;
}

int bw_ep_forbid(struct bw_ep *ep, uint64_t key)
{
	struct bw_op op = {.type = BW_OP_FORBID, .forbid.key = key};
	int error;

	bw_lock_take(&ep->lock);
	error = ep->dead ? 0 : bw_host_submit(ep, &op);
	bw_lock_release(&ep->lock);
	return error;
}

void bw_fetch_pulled(struct bw_ep *ep, const struct bw_event *ev)
{
	struct bw_buffer *b = bw_buffer_of(ev->cookie);
	uint64_t took_ns = bw_lone_end(&ep->fetching, b, ep->now);
	bool notify = b->notify;
	void *op = b->op;

	bw_buffer_unlink(&ep->pulling, b);
	if (took_ns && !ev->status)
		bw_cost_learn(&bw_remote_get(&ep->remotes, b->peer)->fetched_cost, took_ns,
			      ev->len);
	bw_buffer_put(&ep->buffers, b);
	if (notify)
		ep->handlers->pulled(ep->arg, op, ev->status, ev->len);
}
