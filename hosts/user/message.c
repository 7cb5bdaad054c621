/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages on top of the engine's two operations. A short message is copied into a buffer of ours
 * and sent eagerly. Of a long one an envelope is sent, an eager message of the same flow (so that
 * order is kept) with the top bit of its code set; its payload is struct bw_envelope, and the
 * receiver pulls the data, which releases the sender.
 *
 * A message that is long, but not very, goes ahead of the receiver's wish where the receiver has
 * given credit for all of it: eagerly and out of the program's memory, which is free when it is
 * acknowledged. So no pull has to be waited for; and one such message at a time is no flood for a
 * program that has no receive for it yet.
 */
#include <errno.h>
#include <string.h>

#include "arriving.h"
#include "ep.h"
#include "hosts.h"
#include "place.h"

#define BW_SEND_FLAGS (BW_SEND_SYNC | BW_SEND_EAGER | BW_SEND_ACKED | BW_SEND_HANDED)

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

/* A message is acknowledged when the peer's endpoint has it, and handed over when the endpoint also
 * has all that was sent before: so their ends are told in the order of sending. */
static void bw_message_track(struct bw_remote *p, struct bw_buffer *b)
{
	b->next = NULL;
	if (p->sent)
		p->sent_last->next = b;
	else
		p->sent = b;
	p->sent_last = b;
}

/* The oldest, which has ended. */
static void bw_message_forget(struct bw_ep *ep, struct bw_remote *p)
{
	struct bw_buffer *b = p->sent;

	p->sent = b->next;
	ep->copied -= b->len + BW_COPIED_EACH;
	p->eager -= b->len + BW_COPIED_EACH;
	bw_buffer_put(&ep->buffers, b);
}

static void bw_message_end(struct bw_remote *p, struct bw_buffer *b, int status)
{
	b->use = BW_BUFFER_ENDED;
	b->status = status;
	p->held++;
}

/* The program hears of all that have ended, as far as none before them is under way. One fails with
 * the peer alone: what the peer had received of those behind it was never handed on. */
static void bw_message_tell(struct bw_ep *ep, struct bw_remote *p)
{
	int status = 0;

	while (p->held && p->sent->use == BW_BUFFER_ENDED) {
		const struct bw_buffer *b = p->sent;
		bool notify = b->notify;
		void *op = b->op;

		if (b->status)
			status = b->status;
		p->held--;
		bw_message_forget(ep, p);
		if (notify)
			ep->handlers->sent(ep->arg, op, status);
	}
}

void bw_message_tell_all(struct bw_ep *ep)
{
	ep->after &= (uint8_t)~BW_AFTER_TELL;
	for (uint32_t i = 0; i < ep->remotes.count; i++) {
		if (ep->remotes.at[i])
			bw_message_tell(ep, ep->remotes.at[i]);
	}
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
 * to be kept after transmission; but with `notify` the program's memory will do, and must for more
 * than BW_EAGER_LIMIT. */
static inline int bw_message_eager(struct bw_ep *ep, struct bw_remote *p, struct bw_op *op,
				   const void *buf, uint64_t len, bool notify, void *user_op,
				   struct bw_buffer **late)
{
	struct bw_buffer *b;
	int error;

	if (!bw_message_has_room(ep, p))
		return -EAGAIN;
	if (BW_UNLIKELY(len > BW_EAGER_LIMIT))
		b = bw_buffer_describe(&ep->buffers, (void *)(uintptr_t)buf, len);
	else
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
		bw_message_track(p, b);
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
	b->by = &bw_by_engine;
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
	if (p->handle && bw_reliable_pressed(ep->engine, p->handle))
		return BW_EAGER_LEAST;
	return ep->eager_max;
}

uint32_t bw_eager_max(struct bw_ep *ep, bw_peer_no peer)
{
	struct bw_remote *p;
	uint32_t max = 0;

	bw_lock_take(&ep->lock);
	p = bw_remote_get(&ep->remotes, peer);
	if (p && !p->status && !p->by) {
		bw_host_tick(ep);
		bw_remote_connect(ep, p); /* if it cannot be connected now, the send will tell */
	}
	if (p)
		max = p->by && !p->status ? p->by->eager_max(ep, p) : ep->eager_max;
	bw_lock_release(&ep->lock);
	return max;
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

/* Is a message of this length better sent without waiting for the receiver's pull? */
static bool bw_message_goes_ahead(struct bw_ep *ep, const struct bw_remote *p, uint64_t len)
{
	return len > BW_EAGER_LIMIT && len <= ep->ahead_max && !p->ahead && p->handle &&
	       bw_reliable_takes(ep->engine, p->handle, len) && !bw_copies_pay(ep, p, len);
}

/* How long it takes tells how slow the receiver is. */
static int bw_message_ahead(struct bw_ep *ep, struct bw_remote *p, struct bw_op *op,
			    const void *buf, uint64_t len, void *user_op)
{
	struct bw_buffer *none = NULL;
	int error = bw_message_eager(ep, p, op, buf, len, true, user_op, &none);

	p->ahead = !error;
	if (!error)
		bw_copies_exposed(ep, bw_buffer_of(op->cookie));
	return error;
}

static int bw_message_engine(struct bw_ep *ep, struct bw_remote *p, struct bw_op *op,
			     const void *buf, uint64_t len, unsigned int flags, void *user_op)
{
	uint32_t eager = BW_EAGER_LIMIT;
	bool acked = flags & (BW_SEND_ACKED | BW_SEND_HANDED), sync = flags & BW_SEND_SYNC;
	struct bw_buffer *late = NULL;
	int result;

	bw_host_tick(ep);
	if (!(flags & BW_SEND_EAGER) && len > ep->eager_least)
		eager = bw_message_eager_max(ep, p);
	if (sync || len > eager) {
		bool copy = !sync && !acked && bw_copies_pay(ep, p, len);

		if (!sync && bw_message_goes_ahead(ep, p, len))
			result = bw_message_ahead(ep, p, op, buf, len, user_op);
		else
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
	if (BW_UNLIKELY(!p->by)) {
		bw_host_tick(ep);
		error = bw_remote_connect(ep, p);
		if (error)
			return error;
	}
	return p->by->send(ep, p, op, buf, len, flags, user_op);
}

static int bw_message_cancel(struct bw_ep *ep, struct bw_remote *p, struct bw_buffer *b)
{
	struct bw_op op = {.type = BW_OP_RETRACT, .peer = p->handle};
	int error;

	if (b->use == BW_BUFFER_PULLING) {
		op.type = BW_OP_CANCEL_PULL;
		op.pull_id = b->key;
	} else if (bw_reliable_begun(ep->engine, b->key)) {
		return -ENOENT;
	} else {
		op.expose.key = b->key;
	}
	bw_host_tick(ep);
	error = bw_host_submit(ep, &op);
	bw_host_transmit(ep); /* its end is told soon, whoever makes progress */
	return error ? -ENOENT : 0;
}

const struct bw_transport bw_by_engine = {
	.send = bw_message_engine,
	.pull = bw_fetch_message,
	.read = bw_fetch_memory,
	.cancel = bw_message_cancel,
	.eager_max = bw_message_eager_max,
};

int bw_send(struct bw_ep *ep, bw_peer_no peer, uint8_t code, uint64_t tag, uint64_t imm,
	    const void *buf, uint64_t len, unsigned flags, void *user_op)
{
	struct bw_remote *p;
	struct bw_op op;
	int result;

	if (code > BW_CODE_MAX || (len && !buf) || (flags & ~(unsigned int)BW_SEND_FLAGS) ||
	    (flags & (BW_SEND_SYNC | BW_SEND_EAGER)) == (BW_SEND_SYNC | BW_SEND_EAGER))
		return -EINVAL;
	if ((flags & BW_SEND_EAGER) && len > BW_EAGER_LIMIT)
		return -EMSGSIZE;
	BW_PROBE3(message_send, ep, peer, len);
	op.send.code = code;
	op.send.tag = tag;
	op.send.imm = imm;
	bw_lock_take(&ep->lock);
	p = bw_remote_get(&ep->remotes, peer);
	result = p && !ep->dead ? bw_message_send(ep, p, &op, buf, len, flags, user_op) : -EINVAL;
	bw_lock_release(&ep->lock);
	return result;
}

bool bw_send_copies(struct bw_ep *ep, bw_peer_no peer, uint64_t len)
{
	struct bw_remote *p;
	bool copies;

	bw_lock_take(&ep->lock);
	p = bw_remote_get(&ep->remotes, peer);
	copies = p && p->by == &bw_by_engine && bw_copies_pay(ep, p, len);
	bw_lock_release(&ep->lock);
	return copies;
}

int bw_send_cancel(struct bw_ep *ep, void *user_op)
{
	struct bw_buffer *b;
	int error = -ENOENT;

	bw_lock_take(&ep->lock);
	for (b = ep->pending; b && (b->owned || b->op != user_op); b = b->next)
		;
	if (b && !ep->dead && b->use == BW_BUFFER_EXPOSED)
		error = b->by->cancel(ep, bw_remote_get(&ep->remotes, b->peer), b);
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
	BW_PROBE2(message_received, ep, &m);
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
		bw_arriving_put(ep, b);
}

static void bw_message_sent(struct bw_ep *ep, const struct bw_event *ev)
{
	struct bw_buffer *b = bw_buffer_of(ev->cookie);
	struct bw_remote *p = bw_remote_get(&ep->remotes, b->peer);

	if (b->len > BW_EAGER_LIMIT) {
		p->ahead = false;
		bw_copies_ended(ep, b, ev->status);
	}
	bw_message_end(p, b, ev->status);
	bw_message_tell(ep, p);
}

static void bw_message_region_done(struct bw_ep *ep, const struct bw_event *ev)
{
	struct bw_buffer *b = bw_buffer_of(ev->cookie);
	bool notify = b->notify;
	void *op = b->op;

	bw_buffer_unlink(&ep->pending, b);
	bw_copies_ended(ep, b, ev->status);
	bw_buffer_put(&ep->buffers, b);
	if (notify)
		ep->handlers->sent(ep->arg, op, ev->status);
}

void bw_message_acked(struct bw_ep *ep, uint64_t cookie)
{
	struct bw_buffer *b = bw_buffer_of(cookie);
	struct bw_remote *p = bw_remote_get(&ep->remotes, b->peer);

	ep->handled++;
	if (BW_UNLIKELY(b != p->sent)) {
		bw_message_end(p, b, 0);
		return;
	}
	bw_message_forget(ep, p);
	if (p->held && p->sent->use == BW_BUFFER_ENDED)
		ep->after |= BW_AFTER_TELL;
}

void bw_message_event(struct bw_ep *ep, const struct bw_event *ev)
{
	switch (ev->type) {
	case BW_EV_MESSAGE:
		bw_message_arrived(ep, ev);
		break;
	case BW_EV_SENT:
		bw_message_sent(ep, ev);
		break;
	case BW_EV_REGION_DONE:
		bw_message_region_done(ep, ev);
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
