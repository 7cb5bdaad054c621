/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages on top of the engine's two operations. A short message is copied into a buffer of ours
 * and sent eagerly. Of a long one an envelope is sent, an eager message of the same flow (so that
 * order is kept) with the top bit of its code set; its payload is struct bw_envelope, and the
 * receiver pulls the data, which releases the sender. The local link has both operations itself.
 */
#include <errno.h>
#include <string.h>

#include "ep.h"
#include "hosts.h"
#include "place.h"

#define BW_BURST_START 4   /* sends without a round between them that leave at once each */
#define BW_BURST_BYTES 512 /* longer messages end a bundle */

/* Bytes of copied messages that may be on their way, each with what is kept about it: a program far
 * ahead of its peers is told -EAGAIN instead of filling memory. A peer may have as much of it as is
 * still free (Choudhury and Hahne 1998), one alone half: whoever takes nothing leaves room for the
 * others. Each always may have a least share. */
#define BW_COPIED_MAX	(32u << 20)
#define BW_COPIED_LEAST (128u << 10)
#define BW_COPIED_EACH	256

#define BW_COPIED_LATE 2048 /* bytes; longer messages leave before they are copied */

_Static_assert(sizeof(struct bw_local_envelope) <= 3 * sizeof(uint64_t), "struct bw_rndv");

static bool bw_message_has_room(const struct bw_ep *ep, const struct bw_remote *p)
{
	uint64_t room = ep->copied < BW_COPIED_MAX ? BW_COPIED_MAX - ep->copied : 0;

	return p->eager <= bw_max_u64(room, BW_COPIED_LEAST);
}

static void bw_message_charge(struct bw_ep *ep, struct bw_remote *p, const struct bw_buffer *b)
{
	ep->copied += b->len + BW_COPIED_EACH;
	p->eager += b->len + BW_COPIED_EACH;
}

static void bw_message_discharge(struct bw_ep *ep, const struct bw_buffer *b)
{
	ep->copied -= b->len + BW_COPIED_EACH;
	bw_remote_get(&ep->remotes, b->peer)->eager -= b->len + BW_COPIED_EACH;
}

/* After frames have left: what is still needed of the program's memory is copied. */
static void bw_message_keep(struct bw_buffer *b)
{
	uint8_t *copy = (uint8_t *)(b + 1);

	if (b->data == copy)
		return;
	memcpy(copy, b->data, b->len);
	b->data = copy;
}

/* A message on the way to the peer. It is copied here if it is short, else later by *late, which is
 * to be kept after transmission; but with `notify` the program's memory will do. */
static int bw_message_eager(struct bw_ep *ep, struct bw_remote *p, struct bw_op *op,
			    const void *buf, uint64_t len, bool notify, void *user_op,
			    struct bw_buffer **late)
{
	struct bw_buffer *b;
	int error;

	if (!bw_message_has_room(ep, p))
		return -EAGAIN;
	b = bw_buffer_get(&ep->buffers, len);
	if (!b)
		return -EAGAIN;
	b->len = len;
	if (late && len > BW_COPIED_LATE) {
		b->data = (void *)(uintptr_t)buf;
		*late = notify ? NULL : b;
	} else if (len) {
		memcpy(b->data, buf, len);
	}
	b->use = BW_BUFFER_COPY;
	b->notify = notify;
	b->op = user_op;
	b->peer = p->number;
	op->type = BW_OP_SEND;
	op->peer = p->handle;
	op->cookie = bw_buffer_cookie(b);
	op->send.buf = len ? op->cookie : 0;
	op->send.buf_off = 0;
	op->send.len = (uint32_t)len;
	op->send.dst_ep = BW_EP_MESSAGES;
	op->send.src_ep = BW_EP_MESSAGES;
	op->send.urgent = notify;
	op->send.quiet = !notify;
	error = bw_host_submit(ep, op);
	if (!error) {
		bw_message_charge(ep, p, b);
		return 0;
	}
	bw_buffer_put(&ep->buffers, b);
	if (late)
		*late = NULL;
	return error;
}

/* With `copy` a copy is exposed, if there is memory: the buffer is then `owned`, and the program
 * hears no more of it. */
static int bw_message_expose(struct bw_ep *ep, struct bw_remote *p, const void *buf, uint64_t len,
			     bool copy, void *user_op, struct bw_buffer **out)
{
	struct bw_buffer *b = bw_buffer_describe(&ep->buffers, (void *)(uintptr_t)buf, len);
	struct bw_op op = {.type = BW_OP_EXPOSE, .peer = p->handle};
	int error;

	if (!b)
		return -EAGAIN;
	if (copy)
		bw_copies_take(ep, p, b);
	op.cookie = bw_buffer_cookie(b);
	op.expose.buf = op.cookie;
	op.expose.buf_off = 0;
	op.expose.len = len;
	error = bw_host_submit(ep, &op);
	if (error) {
		if (b->owned)
			bw_copies_free(ep, p, b);
		bw_buffer_put(&ep->buffers, b);
		return error;
	}
	b->use = BW_BUFFER_EXPOSED;
	b->notify = !b->owned;
	b->op = user_op;
	b->peer = p->number;
	b->key = op.expose.key;
	bw_copies_exposed(ep, b);
	bw_buffer_link(&ep->pending, b);
	*out = b;
	return 0;
}

/* A long message: its region is exposed, then the envelope sent. As bw_send(), 1: done. */
static int bw_message_envelope(struct bw_ep *ep, struct bw_remote *p, struct bw_op *op,
			       const void *buf, uint64_t len, bool copy, void *user_op)
{
	struct bw_buffer *b;
	struct bw_envelope envelope = {.len = len};
	int error = -EAGAIN;

	if (bw_message_has_room(ep, p)) /* else the envelope cannot leave */
		error = bw_message_expose(ep, p, buf, len, copy, user_op, &b);
	if (error)
		return error;
	envelope.key = b->key;
	op->send.code |= BW_CODE_ENVELOPE;
	error = bw_message_eager(ep, p, op, &envelope, sizeof(envelope), false, NULL, NULL);
	if (error) {
		struct bw_op retract = {.type = BW_OP_RETRACT, .peer = p->handle};

		/* Its REGION_DONE comes, but nobody is to hear of it. */
		b->notify = false;
		retract.expose.key = b->key;
		bw_host_submit(ep, &retract);
		return error;
	}
	return b->owned;
}

static uint32_t bw_message_eager_max(struct bw_ep *ep, struct bw_remote *p)
{
	if (p->local) {
		uint32_t max = bw_local_eager_max(p->local);

		return max ? max : BW_EAGER_LEAST;
	}
	if (p->pressed || (p->handle && bw_reliable_pressed(ep->engine, p->handle)))
		return BW_EAGER_LEAST;
	return ep->eager_max;
}

uint32_t bw_eager_max(struct bw_ep *ep, bw_peer peer)
{
	struct bw_remote *p;
	uint32_t max = 0;

	bw_lock_take(&ep->lock);
	p = bw_remote_get(&ep->remotes, peer);
	if (p && !p->status && !p->connected)
		bw_remote_connect(ep, p); /* if it cannot be connected now, the send will tell */
	if (p)
		max = bw_message_eager_max(ep, p);
	bw_lock_release(&ep->lock);
	return max;
}

static int bw_message_local(struct bw_ep *ep, struct bw_remote *p, const struct bw_op *op,
			    const void *buf, uint64_t len, unsigned int flags, void *user_op)
{
	uint32_t eager =
		flags & BW_SEND_EAGER ? bw_local_send_limit(p->local) : bw_message_eager_max(ep, p);
	struct bw_buffer *b;
	int error;

	if (len <= eager && !(flags & (BW_SEND_SYNC | BW_SEND_ACKED))) {
		error = bw_local_send(p->local, op->send.code, op->send.tag, op->send.imm, buf, len,
				      NULL);
		return error ? error : 1;
	}
	b = bw_buffer_describe(&ep->buffers, (void *)(uintptr_t)buf, len);
	if (!b)
		return -EAGAIN;
	b->use = flags & BW_SEND_SYNC || len > eager ? BW_BUFFER_EXPOSED : BW_BUFFER_COPY;
	b->op = user_op;
	b->peer = p->number;
	b->key = 0;
	if (b->use == BW_BUFFER_EXPOSED)
		error = bw_local_offer(p->local, op->send.code, op->send.tag, op->send.imm, buf,
				       len, b);
	else
		error = bw_local_send(p->local, op->send.code, op->send.tag, op->send.imm, buf, len,
				      b);
	if (error) {
		bw_buffer_put(&ep->buffers, b);
		return error;
	}
	bw_buffer_link(&ep->pending, b);
	return 0;
}

/*
 * A program that sends one message after another, without a look at what has arrived, will look
 * soon: from the fifth on its messages wait for each other, so that one frame and one system call
 * carry many [A6]. They leave when a frame is full, with the program's next round, or when the
 * helper looks.
 */
static bool bw_message_may_wait(struct bw_ep *ep, uint64_t len)
{
	if (ep->burst_round != ep->rounds) {
		ep->burst_round = ep->rounds;
		ep->burst = 0;
	}
	if (ep->burst++ < BW_BURST_START || len > BW_BURST_BYTES || ep->dispatching ||
	    (ep->burst - BW_BURST_START) % BW_TX_SEGMENTS == 0 || !bw_helper_brisk(ep))
		return false;
	ep->deadline = ep->now;
	return true;
}

static int bw_message_engine(struct bw_ep *ep, struct bw_remote *p, struct bw_op *op,
			     const void *buf, uint64_t len, unsigned int flags, void *user_op)
{
	uint32_t eager = BW_EAGER_LIMIT;
	bool acked = flags & BW_SEND_ACKED, sync = flags & BW_SEND_SYNC;
	struct bw_buffer *late = NULL;
	int result;

	if (!(flags & BW_SEND_EAGER) && len > ep->eager_least)
		eager = bw_message_eager_max(ep, p);
	if (sync || len > eager) {
		bool copy = !sync && !acked && bw_copies_pay(ep, p, len);

		result = bw_message_envelope(ep, p, op, buf, len, copy, user_op);
	} else {
		result = bw_message_eager(ep, p, op, buf, len, acked, user_op, &late);
		if (!result && !acked)
			result = 1;
	}
	if (result < 0 || acked || !bw_message_may_wait(ep, len))
		bw_host_transmit(ep);
	if (late)
		bw_message_keep(late);
	return result;
}

static int bw_message_send(struct bw_ep *ep, struct bw_remote *p, struct bw_op *op, const void *buf,
			   uint64_t len, unsigned int flags, void *user_op)
{
	int error;

	if (p->status)
		return p->status;
	bw_host_tick(ep);
	if (BW_UNLIKELY(!p->connected)) {
		error = bw_remote_connect(ep, p);
		if (error)
			return error;
	}
	if (p->local)
		return bw_message_local(ep, p, op, buf, len, flags, user_op);
	if (bw_remote_by_kernel(p))
		return bw_kernel_send(ep, p, op, buf, len, flags, user_op);
	return bw_message_engine(ep, p, op, buf, len, flags, user_op);
}

int bw_send(struct bw_ep *ep, bw_peer peer, uint8_t code, uint64_t tag, uint64_t imm,
	    const void *buf, uint64_t len, unsigned flags, void *user_op)
{
	struct bw_remote *p;
	struct bw_op op;
	int result;

	if (code > BW_CODE_MAX || (len && !buf) ||
	    (flags & ~(unsigned int)(BW_SEND_SYNC | BW_SEND_EAGER | BW_SEND_ACKED)) ||
	    (flags & (BW_SEND_SYNC | BW_SEND_EAGER)) == (BW_SEND_SYNC | BW_SEND_EAGER))
		return -EINVAL;
	if ((flags & BW_SEND_EAGER) && len > BW_EAGER_LIMIT)
		return -EMSGSIZE;
	op.send.code = code;
	op.send.tag = tag;
	op.send.imm = imm;
	bw_lock_take(&ep->lock);
	p = bw_remote_get(&ep->remotes, peer);
	result = p && !ep->dead ? bw_message_send(ep, p, &op, buf, len, flags, user_op) : -EINVAL;
	bw_lock_release(&ep->lock);
	return result;
}

bool bw_send_copies(struct bw_ep *ep, bw_peer peer, uint64_t len)
{
	struct bw_remote *p;
	bool copies;

	bw_lock_take(&ep->lock);
	p = bw_remote_get(&ep->remotes, peer);
	copies = p && !p->local && !bw_remote_by_kernel(p) && bw_copies_pay(ep, p, len);
	bw_lock_release(&ep->lock);
	return copies;
}

static int bw_message_cancel(struct bw_ep *ep, struct bw_buffer *b)
{
	struct bw_remote *p = bw_remote_get(&ep->remotes, b->peer);
	struct bw_op op = {.type = BW_OP_RETRACT};

	if (b->use != BW_BUFFER_EXPOSED)
		return -ENOENT;
	if (!b->key && p->local)
		return bw_local_retract(p->local, b);
	if (!b->key)
		return p->kernel ? bw_kernel_cancel(ep, b) : -ENOENT;
	if (bw_reliable_begun(ep->engine, b->key))
		return -ENOENT;
	bw_host_tick(ep);
	op.peer = p->handle;
	op.expose.key = b->key;
	int error = bw_host_submit(ep, &op);

	bw_host_transmit(ep);
	return error ? -ENOENT : 0;
}

int bw_send_cancel(struct bw_ep *ep, void *user_op)
{
	struct bw_buffer *b;
	int error = -ENOENT;

	bw_lock_take(&ep->lock);
	for (b = ep->pending; b && (b->owned || b->op != user_op); b = b->next)
		;
	if (b && !ep->dead)
		error = bw_message_cancel(ep, b);
	bw_lock_release(&ep->lock);
	return error;
}

void bw_ep_pressure(struct bw_ep *ep, bool on)
{
	struct bw_op op = {.type = BW_OP_PRESSURE, .on = on};

	bw_lock_take(&ep->lock);
	bw_host_tick(ep);
	bw_host_submit(ep, &op);
	bw_host_transmit(ep);
	if (ep->local)
		bw_local_pressure(ep->local, on);
	if (ep->kernel && !ep->dead)
		bw_kernel_pressure(ep, on);
	bw_lock_release(&ep->lock);
}

/* Deliver a message whose bytes are at `data`. */
static void bw_message_deliver(struct bw_ep *ep, struct bw_remote *p, const struct bw_event *ev,
			       const void *data)
{
	struct bw_message m = {
		.peer = p->number,
		.code = ev->code & BW_CODE_MAX,
		.tag = ev->tag,
		.imm = ev->imm,
		.len = ev->len,
		.data = data,
	};

	if (ev->code & BW_CODE_ENVELOPE) {
		struct bw_envelope envelope;

		if (ev->len != sizeof(envelope))
			return; /* not something that bw_send() makes: nothing to pull */
		memcpy(&envelope, data, sizeof(envelope));
		m.envelope = true;
		m.data = NULL;
		m.len = envelope.len;
		m.rndv.word[BW_RNDV_KEY] = envelope.key;
		m.rndv.word[BW_RNDV_LEN] = envelope.len;
		m.rndv.word[BW_RNDV_KIND] = BW_RNDV_ENGINE;
	}
	p->known = true;
	ep->handlers->message(ep->arg, &m);
}

static void bw_message_arrived(struct bw_ep *ep, const struct bw_event *ev)
{
	struct bw_remote *p = bw_remote_by_handle(&ep->remotes, ev->peer);
	struct bw_buffer *b = bw_buffer_of(ev->buf);

	if (b && b->use == BW_BUFFER_PLACED) {
		bw_place_whole(ep, b);
		return;
	}
	if (p && !p->status) {
		const uint8_t *data = b ? b->data : ep->rx_head + ev->frame_off;

		bw_message_deliver(ep, p, ev, data);
	}
	if (b)
		bw_buffer_put(&ep->buffers, b);
}

static void bw_message_sent(struct bw_ep *ep, const struct bw_event *ev)
{
	struct bw_buffer *b = bw_buffer_of(ev->cookie);
	bool notify;
	void *op;

	if (b->use == BW_BUFFER_EXPOSED) {
		bw_buffer_unlink(&ep->pending, b);
		bw_copies_ended(ep, b, ev->status);
	} else {
		bw_message_discharge(ep, b);
	}
	notify = b->notify;
	op = b->op;
	bw_buffer_put(&ep->buffers, b);
	if (notify)
		ep->handlers->sent(ep->arg, op, ev->status);
}

void bw_message_acked(struct bw_ep *ep, uint64_t cookie)
{
	struct bw_buffer *b = bw_buffer_of(cookie);

	ep->handled++;
	bw_message_discharge(ep, b);
	bw_buffer_put(&ep->buffers, b);
}

void bw_message_event(struct bw_ep *ep, const struct bw_event *ev)
{
	switch (ev->type) {
	case BW_EV_MESSAGE:
		bw_message_arrived(ep, ev);
		break;
	case BW_EV_SENT:
	case BW_EV_REGION_DONE:
		bw_message_sent(ep, ev);
		break;
	case BW_EV_PULLED:
		bw_fetch_pulled(ep, ev);
		break;
	case BW_EV_PEER_UP:
	case BW_EV_PEER_DOWN:
	case BW_EV_PATH:
		bw_remote_event(ep, ev);
		break;
	}
}

static int bw_message_local_new(void *arg, struct bw_local_peer *local,
				const struct bw_local_id *id, void **ctx)
{
	struct bw_ep *ep = arg;
	struct bw_remote *p = bw_remote_make(&ep->remotes, id->node, id->engine, id->incarnation);

	if (!p)
		return -ENOMEM;
	if (p->status)
		return -ECONNREFUSED;
	p->local = local;
	p->addr.links |= BW_LINK_LOCAL;
	p->connected = true;
	bw_remote_name(p, id->name, sizeof(id->name));
	*ctx = p;
	return 0;
}

static void bw_message_local_arrived(void *arg, void *ctx, const struct bw_local_message *in)
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
	ep->handlers->message(ep->arg, &m);
}

static void bw_message_local_sent(void *arg, void *ctx, void *op, int status)
{
	struct bw_ep *ep = arg;
	struct bw_buffer *b = op;
	void *user_op = b->op;

	bw_buffer_unlink(&ep->pending, b);
	bw_buffer_put(&ep->buffers, b);
	if (!ep->dead)
		ep->handlers->sent(ep->arg, user_op, status);
}

static void bw_message_local_pulled(void *arg, void *ctx, void *op, int status, uint64_t len)
{
	struct bw_ep *ep = arg;

	if (!ep->dead)
		ep->handlers->pulled(ep->arg, op, status, len);
}

static void bw_message_local_down(void *arg, void *ctx, int status)
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

static void *bw_message_local_region(void *arg, void *ctx, uint64_t key, uint64_t off, uint64_t n)
{
	struct bw_ep *ep = arg;
	struct bw_remote *p = ctx;

	p->known = true;
	return ep->handlers->region ? ep->handlers->region(ep->arg, p->number, key, off, n) : NULL;
}

const struct bw_local_handlers bw_message_local_handlers = {
	.peer_new = bw_message_local_new,
	.message = bw_message_local_arrived,
	.sent = bw_message_local_sent,
	.pulled = bw_message_local_pulled,
	.peer_down = bw_message_local_down,
	.region = bw_message_local_region,
};
