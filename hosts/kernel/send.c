/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One message on its way out. A short one is copied and sent eagerly. A long one is exposed to its
 * receiver, who gets an envelope and pulls the bytes: out of the sender's own pages where pinning
 * them pays [B6], else out of a copy.
 */
#include "sock.h"

#define BWK_SEND_FLAT	 (BEOWIRE_SEND_EAGER | BEOWIRE_SEND_SHORT) /* no envelope */
#define BWK_SEND_PRESSED 64 /* bytes; an envelope would be no smaller */
#define BWK_SEND_FOLD	 1  /* not an error: an envelope is to be made first */

/* Lock held. */
static int bwk_send_eager(struct bwk_port *port, u32 handle, struct bwk_buf *b,
			  const struct bwk_send *s, u8 code)
{
	struct bw_op op BWK_FILLED;
	int error;

	op.type = BW_OP_SEND;
	op.peer = handle;
	op.cookie = bwk_buf_cookie(b);
	op.send.buf = b->len ? bwk_buf_cookie(b) : 0;
	op.send.buf_off = 0;
	op.send.tag = s->info.tag;
	op.send.imm = s->info.imm;
	op.send.len = (u32)b->len;
	op.send.dst_ep = op.send.src_ep = s->ep;
	op.send.code = code;
	op.send.urgent = (s->info.flags & BEOWIRE_SEND_ACKED) || s->last;
	op.send.quiet = true;
	error = bwk_port_submit(port, &op);
	if (!error)
		bwk_sock_lent(port, b);
	return error;
}

/* Lock held. The envelope's buffer has been made before, so that nothing is half done. */
static int bwk_send_long(struct bwk_port *port, u32 handle, struct bwk_send *s)
{
	struct bwk_buf *b = s->buf;
	struct bw_op op = {.type = BW_OP_EXPOSE, .peer = handle, .cookie = bwk_buf_cookie(b)};
	struct bw_envelope envelope = {.len = b->len};
	int error;

	op.expose.buf = bwk_buf_cookie(b);
	op.expose.buf_off = 0;
	op.expose.len = b->len;
	error = bwk_port_submit(port, &op);
	if (error)
		return error;
	b->key = envelope.key = op.expose.key;
	memcpy(s->envelope->flat, &envelope, sizeof(envelope));
	error = bwk_send_eager(port, handle, s->envelope, s, s->info.code | BW_CODE_ENVELOPE);
	if (error) { /* as if nothing had been: it is tried again once there is memory */
		op.type = BW_OP_RETRACT;
		op.expose.untold = true;
		bwk_port_submit(port, &op);
		return error;
	}
	b->use = BWK_BUF_EXPOSED;
	bwk_sock_lent(port, b);
	s->envelope = NULL;
	bwk_sock_name_buf(b->owner, b);
	return 0;
}

void bwk_send_begin(struct bwk_send *s, const struct sock *sk, const struct msghdr *m, u16 ep)
{
	s->to = NULL;
	s->peer = NULL;
	s->info.tag = s->info.imm = s->info.cookie = 0;
	s->info.peer = 0;
	s->info.code = 0;
	s->info.flags = 0;
	s->buf = s->envelope = NULL;
	s->ep = ep;
	s->last = s->copied = false;
	s->nonblock = m->msg_flags & MSG_DONTWAIT;
	s->more = m->msg_flags & MSG_BATCH;
	s->timeout = bwk_sock_sndtimeo(sk, s->nonblock);
}

/* The peer that a send goes to. Lock held. */
static struct bwk_peer *bwk_send_peer(const struct bwk_sock *bs, struct bwk_port *port,
				      const struct bwk_send *s)
{
	struct bwk_peer *peer = s->peer;

	if (!peer && !s->info.peer)
		return bwk_peer_find(port, s->to ? s->to : &bs->to);
	if (!peer)
		peer = bwk_peer_by_number(port, s->info.peer);
	if (!peer || !peer->handle)
		return ERR_PTR(-ENOTCONN);
	bwk_peer_tell(peer);
	return peer;
}

/* May an envelope go instead of the message? */
static bool bwk_send_foldable(const struct bwk_sock *bs, const struct bwk_send *s)
{
	return bwk_reliable(bs->protocol) && !(s->info.flags & BWK_SEND_FLAT) &&
	       (s->buf->len > sizeof(struct bw_envelope) || (s->info.flags & BEOWIRE_SEND_LONG));
}

/* Lock held. BWK_SEND_FOLD: with an envelope. */
static int bwk_send_submit(struct bwk_sock *bs, struct bwk_port *port, struct bwk_send *s)
{
	bool fold = bwk_send_foldable(bs, s), pressed = false;
	struct bwk_buf *b = s->buf;
	struct bwk_peer *peer;

	if (READ_ONCE(bs->sk.sk_shutdown) & SEND_SHUTDOWN) /* since it began to wait */
		return -EPIPE;
	peer = bwk_send_peer(bs, port, s);
	if (IS_ERR(peer))
		return PTR_ERR(peer);
	b->peer = peer->number;
	b->handle = peer->handle;
	if (fold || (s->info.flags & BEOWIRE_SEND_SHORT))
		pressed = bw_reliable_pressed(port->engine, peer->handle);
	if (pressed && (s->info.flags & BEOWIRE_SEND_SHORT) && b->len > BWK_SEND_PRESSED)
		return -EMSGSIZE;
	if (fold && (b->len > READ_ONCE(bs->eager_max) || b->kind == BWK_BUF_USER || pressed ||
		     (s->info.flags & BEOWIRE_SEND_LONG)))
		return s->envelope ? bwk_send_long(port, peer->handle, s) : BWK_SEND_FOLD;
	return bwk_send_eager(port, peer->handle, b, s, s->info.code);
}

/* Does somebody wait for the end of this send, or will be told of it? */
static bool bwk_send_attended(const struct bwk_send *s)
{
	return (s->info.flags & BEOWIRE_SEND_ASYNC) || !s->nonblock;
}

/* Are its pages to be sent themselves? */
static bool bwk_send_pins(const struct bwk_sock *bs, size_t len, const struct bwk_send *s)
{
	if (!bwk_reliable(bs->protocol) || s->copied)
		return false;
	if ((s->info.flags & BEOWIRE_SEND_ASYNC) && (s->info.flags & BEOWIRE_SEND_LONG))
		return len != 0; /* it may take long: better the program's memory than ours */
	return !(s->info.flags & BWK_SEND_FLAT) && len > sizeof(struct bw_envelope) &&
	       len > READ_ONCE(bs->eager_max) && len > READ_ONCE(bs->copy_max) &&
	       bwk_send_attended(s);
}

struct bwk_buf *bwk_send_copy(struct bwk_sock *bs, struct iov_iter *from, size_t len)
{
	if (len > READ_ONCE(bs->port->node->set.memory_max))
		return ERR_PTR(-ENOBUFS);
	return bwk_buf_copy(&bs->spares, bs->account, from, len);
}

/* The bytes of a send: pinned where that pays and somebody waits for the end, else copied. */
static struct bwk_buf *bwk_send_take(struct bwk_sock *bs, struct bwk_port *port,
				     struct iov_iter *from, size_t len, const struct bwk_send *s)
{
	bool async = s->info.flags & BEOWIRE_SEND_ASYNC; /* the pin outlives the call */
	struct bwk_buf *b;

	if (bwk_send_pins(bs, len, s)) {
		b = bwk_buf_pin(bs->account, from, len, async ? BWK_PIN_READ_LONG : BWK_PIN_READ);
		if (b == ERR_PTR(-EDQUOT))
			atomic_long_inc(&port->memlock_limited);
		else if (b != ERR_PTR(-EAGAIN))
			return b;
	}
	return bwk_send_copy(bs, from, len);
}

/* Copy or pin the bytes of a send. */
static int bwk_send_prepare(struct bwk_sock *bs, struct bwk_port *port, struct iov_iter *from,
			    size_t len, struct bwk_send *s)
{
	struct bwk_buf *b = bwk_send_take(bs, port, from, len, s);

	s->buf = b;
	if (IS_ERR(b))
		return PTR_ERR(b);
	b->owner = bs;
	b->use = BWK_BUF_SEND;
	b->cookie = s->info.cookie;
	b->notify = s->info.cookie && READ_ONCE(bs->info_wanted);
	b->awaited = b->kind == BWK_BUF_USER && !(s->info.flags & BEOWIRE_SEND_ASYNC);
	b->sending = (u32)(len + BWK_SEND_COST);
	s->last = atomic_read(&bs->sending) + (int)b->sending > READ_ONCE(bs->sk.sk_sndbuf);
	/* What waits in the program's own memory does not keep other messages from leaving. */
	if (b->kind == BWK_BUF_USER && (s->info.flags & BEOWIRE_SEND_ASYNC)) {
		bwk_sock_uncharge(bs, b->sending);
		b->sending = 0;
	}
	return 0;
}

/* The receiver may fetch no more of it. Its end comes at once, or with the last frame that refers
 * to the program's pages. Lock held; -EAGAIN as of bwk_port_submit(). */
static int bwk_send_forbid(struct bwk_port *port, struct bwk_buf *b)
{
	struct bw_op retract = {.type = BW_OP_RETRACT, .peer = b->handle};
	u32 done = 0;
	int error;

	if (b->done || b->back)
		return 0;
	retract.expose.key = b->key;
	error = bwk_port_submit_breathing(port, &retract, &done);
	bwk_port_run(port);
	return error;
}

/* The same without the lock. Where there is no memory to tell the receiver of it, the receiver is
 * left. */
static void bwk_send_take_back(struct bwk_port *port, struct bwk_buf *b)
{
	const struct bwk_peer *peer;
	int error;

	do {
		bwk_port_lock(port);
		error = bwk_send_forbid(port, b);
		bwk_port_unlock(port);
	} while (error == -EAGAIN && bwk_port_feed(port) == 0);
	if (error != -EAGAIN)
		return;
	bwk_port_lock(port);
	peer = b->done ? NULL : bwk_peer_by_handle(port, b->handle);
	if (peer)
		bwk_peer_leave(port, peer);
	bwk_port_run(port);
	bwk_port_unlock(port);
}

/* May the receiver have all of it already? */
static bool bwk_send_may_be_there(struct bwk_port *port, const struct bwk_buf *b)
{
	bool may;

	bwk_port_lock(port);
	may = !b->done && !b->back && bw_reliable_asked(port->engine, b->key);
	bwk_port_unlock(port);
	return may;
}

/* Wait for the receiver, until a signal comes or the time is over: then the message is taken back.
 * If the receiver has asked for all of it, it may have it: a signal waits for the end, if the time
 * allows, and the call says what is true, or -ETIMEDOUT if that is not known. The last frames that
 * refer to the program's pages are waited for in any case, but by a call that is killed. */
static int bwk_send_await(struct bwk_sock *bs, struct bwk_port *port, struct bwk_buf *b,
			  long *timeout)
{
	struct bw_op retract = {.type = BW_OP_RETRACT, .peer = b->handle};
	unsigned long until = jiffies + *timeout;
	int error = bwk_sock_await(bs, b, timeout), status;
	bool forever = *timeout == MAX_SCHEDULE_TIMEOUT, unsure;

	retract.expose.key = b->key;
	unsure = error && bwk_send_may_be_there(port, b);
	if (unsure && error != -EAGAIN)
		wait_event_killable_timeout(*sk_sleep(&bs->sk), smp_load_acquire(&b->done),
					    forever ? MAX_SCHEDULE_TIMEOUT
						    : max_t(long, until - jiffies, 0));
	if (error)
		bwk_send_take_back(port, b);
	if (error && wait_event_killable(*sk_sleep(&bs->sk), smp_load_acquire(&b->done)) &&
	    !bwk_sock_stop(port, b, &retract))
		return error;
	status = b->status;
	bwk_buf_free_now(b);
	if (!error || status != -ECANCELED)
		return status;
	this_cpu_inc(port->node->count->taken_back);
	return unsure ? -ETIMEDOUT : error;
}

/* Is there now what was missing? */
static bool bwk_send_mends(struct bwk_sock *bs, struct bwk_port *port, struct bwk_send *s,
			   int *error)
{
	if (*error == -EAGAIN)
		return bwk_port_feed(port) == 0;
	if (*error != BWK_SEND_FOLD)
		return false;
	s->envelope = bwk_buf_held(bs->account, sizeof(struct bw_envelope));
	*error = PTR_ERR_OR_ZERO(s->envelope);
	if (*error)
		s->envelope = NULL;
	return s->envelope;
}

static int bwk_send_message(struct bwk_sock *bs, struct bwk_port *port, struct bwk_send *s)
{
	struct bwk_buf *b = s->buf;
	bool awaited = b->awaited, taken;
	int error;

	do {
		bwk_port_lock(port);
		error = bwk_send_submit(bs, port, s);
		taken = !hlist_unhashed(&b->held);
		if (taken && b->kind != BWK_BUF_USER)
			port->copied_tx += b->len;
		port->priority = READ_ONCE(bs->sk.sk_priority);
		/* Of a row of messages the last one takes all along, if it comes. */
		if (s->more && !error && !awaited)
			bwk_port_run_soon(port);
		else if (taken || error != -EAGAIN) /* else bwk_port_feed() does */
			bwk_port_run(port);
		bwk_port_unlock(port);
	} while (!taken && bwk_send_mends(bs, port, s, &error));
	if (!taken) {
		if (b->sending)
			bwk_sock_uncharge(bs, b->sending);
		bwk_buf_free_now(b);
	} else if (awaited && !error) {
		return bwk_send_await(bs, port, b, &s->timeout);
	}
	return error == -EAGAIN ? -ENOBUFS : error;
}

int bwk_send(struct bwk_sock *bs, struct bwk_port *port, struct iov_iter *from, size_t len,
	     struct bwk_send *s)
{
	int error;

	if (!bwk_send_attended(s) && len > READ_ONCE(bs->sk.sk_sndbuf))
		return -EMSGSIZE; /* there will never be room for its copy */
	error = bwk_sock_charge(bs, len, &s->timeout);
	if (error)
		return error;
	error = bwk_send_prepare(bs, port, from, len, s);
	if (error)
		bwk_sock_uncharge(bs, (u32)(len + BWK_SEND_COST));
	else
		error = bwk_send_message(bs, port, s);
	if (s->envelope)
		bwk_buf_free_now(s->envelope);
	s->envelope = NULL;
	return error;
}
